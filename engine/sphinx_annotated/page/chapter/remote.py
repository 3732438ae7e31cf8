"""Images of other sites: a chapter shows a link with the words of the image, and loads it when a reader asks.

A page that loads an image from another site tells that site who reads it. The script replaces the link by the
image at a click. Without scripts, and in an image that is a link already, the words remain.
"""

from __future__ import annotations

from html import escape
from typing import Any
from urllib.parse import urlsplit

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from sphinx_annotated.page.build.state import state_of


class remote_image(nodes.General, nodes.Inline, nodes.Element):  # noqa: N801 (docutils names nodes so)
    """An image that is not loaded yet: its ``uri`` and its ``words``."""


class RemoteImages(SphinxPostTransform):
    """HTML only: replaces the images of other sites in chapters."""

    default_priority = 50
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        if self.env.docname not in state_of(self.env).jobs:
            return
        for image in list(self.document.findall(nodes.image)):
            uri = image["uri"]
            host = urlsplit(uri).netloc if "//" in uri[:8] else ""
            if not host:
                continue
            words = f"{image.get('alt') or uri.rpartition('/')[2]} ({host})"
            link = image.parent if isinstance(image.parent, nodes.reference) else None
            new = nodes.Text(words) if link else remote_image(uri=uri, words=words)
            image.replace_self(new)
            part = link or new
            if not isinstance(part.parent, nodes.TextElement):
                around = nodes.paragraph()
                part.replace_self(around)  # type: ignore[union-attr]
                around += part


def visit_remote_image(translator: Any, node: remote_image) -> None:
    href, words = escape(node["uri"]), escape(node["words"])
    link = f'<a class="remote-image" rel="noreferrer" href="{href}">{words}</a>'
    translator.body.append(link)
    raise nodes.SkipNode
