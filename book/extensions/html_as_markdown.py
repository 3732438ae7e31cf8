"""HTML of outputs and of directives as Markdown: text, links, code, tables, and the words of figures."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

SPECIAL = re.compile(  # what Markdown would interpret in a line
    r"[\\`*<\[\]$]|(?<!\w)_|_(?!\w)|&(?=#?\w+;)"
)
BLOCKS = {"p", "div", "figure", "figcaption", "form", "fieldset", "section", "details"}
BLOCKS |= {"summary", "ol", "ul", "li", "caption", "dl", "dt", "dd", "br", "hr"}
DROPPED = {"style", "script", "template", "button", "select", "title", "svg", "label"}
DROPPED |= {"canvas"}
VOID = ("br", "hr", "img", "input", "source", "wbr")
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
MARKS = {"em": "*", "strong": "**", "b": "**", "cite": "*"}


def markdown_of(html: str, address: Callable[[str], str]) -> str:
    """Return HTML as Markdown. `address` completes a link."""
    reader = _Reader(address)
    reader.feed(html)
    reader.close()
    text = re.sub(r"[ \t]*\n[ \t]*", "\n", "".join(reader.parts))
    text = re.sub(r"\n-\s+", "\n- ", text)
    text = re.sub(r"\n{3,}", "\n\n", text).strip()
    return re.sub(r"\0(\d+)\0", lambda match: reader.blocks[int(match[1])], text)


class _Reader(HTMLParser):
    def __init__(self, address: Callable[[str], str]):
        super().__init__()
        self.address = address
        self.parts: list[str] = []
        self.dropped = 0  # how many elements around this one are left out
        self.dropping = ""  # their outermost
        self.links: list[str] = []
        self.verbatim = ""  # the element of code around this place
        self.code = ""  # its text
        self.blocks: list[str] = []  # of code; `parts` has their numbers
        self.rows: list[list[str]] | None = None
        self.outside: list[str] = []  # what comes before the cell

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if self.dropping:
            self.dropped += tag == self.dropping
            return
        if self.verbatim:
            return
        hidden = "display: none" in given.get("style", "") or "hidden" in given
        if tag in DROPPED or (hidden and tag not in VOID):
            self.dropping, self.dropped = tag, 1
            if tag == "svg" and not hidden and given.get("aria-label"):
                self.parts.append(f"\n\n*Figure: {given['aria-label']}*\n\n")
        elif tag == "img":
            self.parts.append(f"*Figure: {given.get('alt', '')}*")
        elif tag in ("pre", "code"):
            self.verbatim, self.code = tag, ""
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
        elif tag in MARKS:
            self.parts.append(MARKS[tag])

    def handle_endtag(self, tag: str) -> None:
        if self.dropping:
            self.dropped -= tag == self.dropping
            self.dropping = self.dropping if self.dropped else ""
        elif self.verbatim:
            self._end_code(tag)
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
        elif tag in MARKS:
            self.parts.append(MARKS[tag])

    def _end_code(self, tag: str) -> None:
        if tag != self.verbatim:
            return
        self.verbatim = ""
        if tag == "code" or self.rows is not None:
            self.parts.append(code(self.code))
        else:
            self.parts.append(f"\n\n\0{len(self.blocks)}\0\n\n")
            self.blocks.append(fenced(self.code.strip("\n"), "text"))

    def handle_data(self, data: str) -> None:
        if self.verbatim:
            self.code += data
        elif not self.dropping:
            self.parts.append(SPECIAL.sub(r"\\\g<0>", re.sub(r"\s+", " ", data)))


def fenced(text: str | list[str], language: str) -> str:
    """Return a block of code, its fence longer than any inside."""
    text = text if isinstance(text, str) else "\n".join(text)
    inside = re.findall(r"`{3,}", text)
    fence = "`" * max([3, *(len(each) + 1 for each in inside)])
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def code(text: str) -> str:
    """Return code inside a line."""
    text = " ".join(text.split())
    marks = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    space = " " if len(marks) > 1 else ""
    return f"{marks}{space}{text}{space}{marks}" if text else ""


def table(rows: list[list[str]]) -> str:
    """Return rows of cells as a table, the first row as its head."""
    if not rows:
        return ""
    wide = max(map(len, rows))
    full = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    full = [[*row, *[""] * (wide - len(row))] for row in full]
    lines = [f"| {' | '.join(row)} |" for row in full]
    return "\n".join([lines[0], f"|{' --- |' * wide}", *lines[1:]])
