"""What has changed: `CHANGELOG.md` as a page, by the directive ``{changelog}``, and as a feed.

The site keeps each release at an address of its own (`book/tools/keep_releases.py`), with a link to the
newest version on each page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from markdown_it import MarkdownIt
from markdown_twins import edition, wanted
from online import of, write_changed
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.util.docutils import SphinxDirective
from sphinx_annotated.page.build.repository import Repository

FILE, FEED = "CHANGELOG.md", "feed.xml"
HEADING = re.compile(r"^## ([^\s(]+)(?: \(([\d-]+)\))?\n", re.MULTILINE)
LINK = re.compile(r"\[([^]]+)\]\((?!https?:)([^)]+)\)")  # to a file


@dataclass(frozen=True)
class Release:
    """A version, and what is new in it, as Markdown. What is not released has no day."""

    name: str
    day: str
    text: str

    @property
    def anchor(self) -> str:
        """The place on the page, which is also the folder in which the site keeps the release."""
        return f"v{self.name}" if self.day else self.name.lower()


def releases(root: Path, repository: Repository) -> list[Release]:
    """Return what the changelog lists, the newest first. Links to files lead to the repository."""

    def link(match: re.Match[str]) -> str:
        address = repository.file(match[2])
        return f"[{match[1]}]({address})" if address else match[1]

    text = LINK.sub(link, (root / FILE).read_text(encoding="utf-8"))
    _before, *parts = HEADING.split(text)
    each = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return [Release(name, day or "", text.strip()) for name, day, text in each]


class Changelog(SphinxDirective):
    """A section for each release, in English."""

    def run(self) -> list[nodes.Node]:
        root, sections = Path(self.env.srcdir), list[nodes.Node]()
        if site := of(self.env.app).pages:
            feed = nodes.reference("", _("The same as a feed"), refuri=site + FEED)
            sections.append(nodes.paragraph("", "", feed, translatable=False))
        self.env.note_dependency(str(root / FILE))
        for release in releases(root, of(self.env.app)):
            title = (
                f"{release.name} ({release.day})" if release.day else _("Unreleased")
            )
            section = nodes.section("", nodes.title("", title), ids=[release.anchor])
            self.state.document.ids[release.anchor] = section
            lines = StringList(release.text.split("\n"), str(root / FILE))
            self.state.nested_parse(lines, 0, section)
            for part in section[1:]:
                part["classes"].append("language-en")  # which is not translated
                for text in part.findall(nodes.TextElement):
                    text["translatable"] = False
            sections.append(section)
        return sections


def link_feed(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Let a page name the feed."""
    if doctree is None or not wanted(app) or not of(app).pages:
        return
    place = "../" * (page.count("/") + bool(edition(app))) + FEED
    link = f'<link rel="alternate" type="application/atom+xml" href="{place}" '
    link += f'title="{escape(app.config.html_title)}">'
    context["metatags"] = "\n".join([context.get("metatags") or "", link])


def write_feed(app: Sphinx, exception: Exception | None) -> None:
    """Write the feed: an entry for each release, and one for what comes next."""
    if exception is not None or not wanted(app) or not of(app).pages or edition(app):
        return
    root, out = Path(app.srcdir), Path(app.outdir)
    site, book = of(app).pages, app.config.html_title
    _version, changes = app.online  # type: ignore[attr-defined]
    found = releases(root, of(app))
    latest = max(release.day for release in found)
    changed = changes[FILE].last if FILE in changes else latest
    lines = ['<?xml version="1.0" encoding="utf-8"?>']
    lines.append('<feed xmlns="http://www.w3.org/2005/Atom">')
    lines.append(f"<title>{escape(book)}</title><id>{escape(site)}</id>")
    lines.append(f'<link href="{escape(site)}"/>')
    lines.append(f'<link rel="self" href="{escape(site + FEED)}"/>')
    lines.append(f"<author><name>{escape(app.config.author)}</name></author>")
    lines.append(f"<updated>{moment(found[0].day or changed)}</updated>")
    page = app.builder.get_target_uri(app.config.changelog_page)
    markdown = MarkdownIt("commonmark", {"html": False})
    for release in found:
        address = escape(f"{site}{page}#{release.anchor}")
        lines.append(
            f"<entry><title>{escape(f'{book}: {release.name}')}</title><id>{address}</id>"
            f'<link href="{address}"/><updated>{moment(release.day or changed)}</updated>'
            f'<content type="html">{escape(markdown.render(release.text))}</content>'
            "</entry>"
        )
    write_changed(out / FEED, "\n".join([*lines, "</feed>", ""]))


def moment(day: str) -> str:
    return f"{day}T00:00:00Z"


def older(version: str, newest: str, _: Callable[[str], str]) -> str:
    """Return what a page of an older release says, in the page's language."""
    says = _("This is the book as of version {}.").format(version)
    newer = _("Read the newest version")
    return f'{says} <a href="{newest}">{newer}</a>'


def kept(address: str, _: Callable[[str], str]) -> str:
    """Return what the page of changes says below a release that the site keeps."""
    says = _("Read the book as of this version")
    return f'<a href="{address}">{says}</a>'


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("changelog_page", "", "html", types=[str])
    app.add_directive("changelog", Changelog)
    app.connect("html-page-context", link_feed, priority=965)  # after `described`
    app.connect("build-finished", write_feed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
