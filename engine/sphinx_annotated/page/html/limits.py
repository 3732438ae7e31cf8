"""Outputs that are too long for a page: it shows their beginning, and links to the whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sphinx.locale import _
from sphinx.util.osutil import relative_uri

TEXT = 100_000  # characters of one output that a page shows
MARKUP = 2_000_000  # of a figure or a table, which cannot be cut
FOLDER = "_outputs"
SCHEME = (
    "annotated-output:"  # of links to whole outputs until the page's address is known
)
SUFFIXES = {"image/svg+xml": "svg", "text/html": "html", "text/plain": "txt"}


def limited(outputs: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Return the outputs of a cell, long ones cut and followed by a link to the whole.

    ``name`` is the start of the names of its files. See ``with_links``.
    """
    shown: list[dict[str, Any]] = []
    for i, output in enumerate(outputs):
        kind, text = _content(output)
        if len(text) <= _limit(kind):
            shown.append(output)
            continue
        path = _path(name, i, kind)
        size = f"{len(text):,}"
        if kind == "text/plain":
            start = text[: text.rfind("\n", 0, TEXT) + 1] or text[:TEXT]
            shown.append({"output_type": "stream", "name": "stdout", "text": start})
            words = _("The first {} of {} characters.").format(f"{len(start):,}", size)
        else:
            words = _("An output of {} characters, too long for this page.").format(
                size
            )
        whole = _("The whole output")
        link = f'<p class="out out--whole">{words} <a href="{SCHEME}{path}">{whole}</a></p>'
        data = {"text/html": link, "text/plain": f"{words} {whole}: {path}"}
        shown.append({"output_type": "display_data", "data": data, "metadata": {}})
    return shown


def with_links(html: str, page: str) -> tuple[str, set[str]]:
    """Return a page with links to whole outputs, and the chapters that they are of.

    ``page`` is its address in the site.
    """
    chapters: set[str] = set()

    def link(match: re.Match[str]) -> str:
        chapters.add(match["docname"])
        return f'href="{relative_uri(page, match["path"])}"'

    path = rf'(?P<path>{FOLDER}/(?P<docname>[^"]+?)-\d+-\d+\.\w+)'
    return re.sub(rf'href="{SCHEME}{path}"', link, html), chapters


def write_whole(outputs: list[dict[str, Any]], name: str, site: Path) -> None:
    """Write those outputs of a cell that are too long for its page into the site."""
    for i, output in enumerate(outputs):
        kind, text = _content(output)
        if len(text) > _limit(kind):
            path = site / _path(name, i, kind)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def _path(name: str, number: int, kind: str) -> str:
    return f"{FOLDER}/{name}-{number}.{SUFFIXES[kind]}"


def _content(output: dict[str, Any]) -> tuple[str, str]:
    """Return the kind and the text of what a page shows of an output."""
    data = output.get("data", {"text/plain": output.get("text", "")})
    kind = next((kind for kind in SUFFIXES if kind in data), "text/plain")
    if "image/png" in data:  # a file of its own already
        return kind, ""
    return kind, "".join(data.get(kind, ""))


def _limit(kind: str) -> int:
    return TEXT if kind == "text/plain" else MARKUP
