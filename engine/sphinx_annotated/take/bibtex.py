"""The BibTeX of each entry on the references page, as in the book's own file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.locale import _
from sphinx.transforms.post_transforms import SphinxPostTransform

OPENING = re.compile(r"^@\w+\s*\{\s*([^\s,]+)\s*,", re.MULTILINE)


class bibtex(nodes.General, nodes.Element):  # noqa: N801 (docutils names nodes so)
    """The entry ``key`` as ``text``."""


def entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield key and text of each entry, from its ``@`` to the closing brace."""
    for match in OPENING.finditer(text):
        depth, end = 1, text.index("{", match.start()) + 1
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield match[1], text[match.start() : end]


class OfferBibtex(SphinxPostTransform):
    """HTML only: adds its BibTeX to each entry of a bibliography."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        domain = self.env.domains.get("cite")
        if domain is None:
            return
        root = Path(self.app.srcdir)
        texts = dict(
            entry
            for name in self.config.bibtex_bibfiles
            for entry in entries((root / name).read_text(encoding="utf-8"))
        )
        keys = {c.citation_id: c.key for c in domain.citations}  # type: ignore[attr-defined]
        for citation in list(self.document.findall(nodes.citation)):
            key = next((keys[i] for i in citation["ids"] if i in keys), None)
            if key in texts:
                citation += bibtex(key=key, text=texts[key])


def visit_bibtex(translator: Any, node: bibtex) -> None:
    anchor = f"bibtex:{node['key']}"
    label, copy = _("Copy BibTeX of {}").format(node["key"]), _("Copy")
    translator.body.append(
        '<details class="bibtex" data-pagefind-ignore><summary>BibTeX</summary>'
        f'<pre id="{anchor}">{escape(node["text"], quote=False)}\n</pre>'
        f'<button type="button" data-bibtex="{anchor}" '
        f'aria-label="{label}">{copy}</button></details>'
    )
    raise nodes.SkipNode
