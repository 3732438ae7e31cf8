"""HTML of outputs and of directives as Markdown: text, links, code, tables, and the words of figures."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

BLOCKS = {
    *("p", "div", "figure", "figcaption", "form", "fieldset", "section", "details"),
    *("summary", "ol", "ul", "li", "caption", "dl", "dt", "dd", "br", "hr"),
}
DROPPED = {
    *("style", "script", "template", "button", "select", "title", "svg", "label"),
    "canvas",
}
VOID = ("br", "hr", "img", "input", "source", "wbr")
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
MARKS = {"code": "`", "em": "*", "strong": "**", "b": "**", "cite": "*"}


def markdown_of(html: str, address: Callable[[str], str]) -> str:
    """Return HTML as Markdown. `address` completes a link."""
    reader = _Reader(address)
    reader.feed(html)
    reader.close()
    text = re.sub(r"[ \t]*\n[ \t]*", "\n", "".join(reader.parts))
    text = re.sub(r"\n-\s+", "\n- ", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


class _Reader(HTMLParser):
    def __init__(self, address: Callable[[str], str]):
        super().__init__()
        self.address = address
        self.parts: list[str] = []
        self.dropped = 0  # how many elements around this one are left out
        self.dropping = ""  # their outermost
        self.links: list[str] = []
        self.verbatim = 0
        self.rows: list[list[str]] | None = None
        self.outside: list[str] = []  # what comes before the cell

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if self.dropping:
            self.dropped += tag == self.dropping
            return
        hidden = "display: none" in given.get("style", "") or "hidden" in given
        if tag in DROPPED or (hidden and tag not in VOID):
            self.dropping, self.dropped = tag, 1
            if tag == "svg" and not hidden and given.get("aria-label"):
                self.parts.append(f"\n\n*Figure: {given['aria-label']}*\n\n")
        elif tag == "img":
            self.parts.append(f"*Figure: {given.get('alt', '')}*")
        elif tag == "pre":
            self.verbatim += 1
            self.parts.append("\n\n```text\n")
        elif tag == "table":
            self.rows = []
        elif tag == "tr" and self.rows is not None:
            self.rows.append([])
        elif tag in ("td", "th", "caption") and self.rows is not None:
            self.outside, self.parts = self.parts, []
        elif tag == "a" and "href" in given:
            self.links.append(self.address(given["href"]))
            self.parts.append("[")
        elif tag in HEADINGS or tag in ("strong", "b"):
            self.parts.append("\n\n**" if tag in HEADINGS else "**")
        elif tag == "li":
            self.parts.append("\n- ")
        elif tag in BLOCKS and self.rows is None:
            self.parts.append("\n\n")
        elif tag in MARKS and not self.verbatim:
            self.parts.append(MARKS[tag])

    def handle_endtag(self, tag: str) -> None:
        if self.dropping:
            self.dropped -= tag == self.dropping
            self.dropping = self.dropping if self.dropped else ""
        elif tag == "pre":
            self.verbatim -= 1
            self.parts.append("\n```\n\n")
        elif tag == "table" and self.rows is not None:
            rows = [row for row in self.rows if row]
            self.rows = None
            self.parts.append(f"\n\n{table(rows)}\n\n")
        elif tag == "caption" and self.rows is not None:
            self.parts = [*self.outside, "\n\n**", *self.parts, "**"]
        elif tag in ("td", "th") and self.rows:
            cell = " ".join("".join(self.parts).split())
            self.parts = self.outside
            self.rows[-1].append(cell)
        elif tag == "a" and self.links:
            self.parts.append(f"]({self.links.pop()})")
        elif tag in HEADINGS or tag in ("strong", "b"):
            self.parts.append("**\n\n" if tag in HEADINGS else "**")
        elif tag in BLOCKS and self.rows is None:
            self.parts.append("\n\n" if tag != "li" else "")
        elif tag in MARKS and not self.verbatim:
            self.parts.append(MARKS[tag])

    def handle_data(self, data: str) -> None:
        if self.dropping:
            return
        self.parts.append(data if self.verbatim else re.sub(r"\s+", " ", data))


def table(rows: list[list[str]]) -> str:
    """Return rows of cells as a table, the first row as its head."""
    if not rows:
        return ""
    wide = max(map(len, rows))
    full = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    full = [[*row, *[""] * (wide - len(row))] for row in full]
    lines = [f"| {' | '.join(row)} |" for row in full]
    return "\n".join([lines[0], f"|{' --- |' * wide}", *lines[1:]])
