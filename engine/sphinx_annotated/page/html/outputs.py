"""HTML and Markdown outputs as a page can show them.

An output must not style, title or end the page around it. What needs a script, a file or another site is
not shown, because a page loads only what the book has; the author gets a warning with the line.
"""

from __future__ import annotations

import hashlib
import html
import re
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

from sphinx.locale import _

SCRIPTS = ("application/javascript", "application/vnd.jupyter.widget-view+json")
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
DOCUMENT = ("html", "head", "body", "meta", "base")  # of a whole page
VOID = ("area", "br", "col", "hr", "img", "input", "source", "track", "wbr")
# Their ends may be left out.
OPTIONAL = ("p", "li", "dt", "dd", "tr", "td", "th", "thead", "tbody", "option")
LOADS = ("src", "srcset", "poster", "data", "xlink:href")
IMPORTED = re.compile(r"@import\b|url\(\s*[\"']?(?!#|data:)", re.IGNORECASE)
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
ATX = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*")
SETEXT = re.compile(r" {0,3}(?:=+|-+)[ \t]*")


class Fragment(HTMLParser):
    """Reads HTML: ``text`` is what a page can show of it, and ``problem`` what it cannot."""

    def __init__(self, source: str):
        super().__init__(convert_charrefs=False)
        self.parts: list[str] = []
        self.open: list[str] = []
        self.problem = ""
        self.styled = False
        self.feed(source)
        self.close()
        for tag in reversed(self.open):
            if tag not in OPTIONAL:
                self._end(tag)

    @property
    def text(self) -> str:
        """The fragment, whose styles reach only itself."""
        text = "".join(self.parts)
        if not self.styled:
            return text
        name = f"o-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        text = text.replace("<style>", f"<style>#{name} {{").replace(
            "</style>", "}</style>"
        )
        return f'<div id="{name}">{text}</div>'

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in DOCUMENT:
            return
        given = {name: value or "" for name, value in attrs}
        self._examine(tag, given)
        if tag == "iframe":
            self._link(given.get("src", ""))
            return
        if tag in HEADINGS:
            self.parts.append("<p><strong>")
        elif tag == "style":
            self.styled = True
            self.parts.append("<style>")
        else:
            self.parts.append(self.get_starttag_text() or "")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag in self.open[-1:]:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        while tag in self.open:
            last = self.open.pop()
            if last == tag or last not in OPTIONAL:
                self._end(last)
            if last == tag:
                return

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["style"]:
            if IMPORTED.search(data):
                self._cannot("loads a file by its style", "Put it into the output")
            if data.count("{") != data.count("}"):
                self._cannot("has a style whose braces do not match", "Correct it")
        self.parts.append(data)

    def handle_entityref(self, name: str) -> None:
        self.parts.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.parts.append(f"&#{name};")

    def _end(self, tag: str) -> None:
        self.parts.append("</strong></p>" if tag in HEADINGS else f"</{tag}>")

    def _examine(self, tag: str, given: dict[str, str]) -> None:
        calls = any(name.startswith("on") for name in given)
        if tag == "script" or calls or "javascript:" in given.get("href", ""):
            self._cannot(
                "needs a script",
                "Show a figure; of an animation, a few frames next to one another, or a GIF",
            )
        if tag == "iframe" and not urlsplit(given.get("src", "")).netloc:
            self._cannot("is a frame with a document of its own", "Show what is in it")
        loaded = [given[name] for name in LOADS if name in given and tag != "iframe"]
        loaded += [given.get("href", "")] if tag == "link" else []
        for address in loaded:
            if not address.startswith(("data:", "#")):
                where = urlsplit(address).netloc or "a file that the page does not have"
                self._cannot(f"loads from {where}", "Show the content, or a link")

    def _cannot(self, what: str, instead: str) -> None:
        self.problem = self.problem or f"an output {what}. {instead}."

    def _link(self, address: str) -> None:
        """Show a link instead of another site."""
        shown = html.escape(address.partition("?")[0], quote=True)
        href = html.escape(address, quote=True)
        self.parts.append(f'<p class="out"><a href="{href}">{shown}</a></p>')


def problem(output: dict[str, Any]) -> str:
    """Return what a page cannot show of an output, and what to do instead; or nothing."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        return ""
    if any(kind in data for kind in SCRIPTS):
        return Fragment("<script>").problem
    kind = next((k for k in ("text/html", "text/markdown") if k in data), "")
    return Fragment("".join(data[kind])).problem if kind else ""


def portrayed(data: dict[str, Any], label: str) -> dict[str, Any]:
    """Return the formats of an output as a page can show them."""
    if what := problem({"data": data}):
        words = html.escape(what.partition(".")[0].replace("an output", "This output"))
        text = _("{}, so it is shown in the notebook only.").format(words)
        return {"text/html": f'<p class="out">{text}</p>', "text/plain": text}
    if "text/html" in data:
        return {**data, "text/html": Fragment("".join(data["text/html"])).text}
    if "text/markdown" in data:
        return {
            **data,
            "text/markdown": without_headings("".join(data["text/markdown"])),
        }
    if "image/gif" in data:
        source = "".join("".join(data["image/gif"]).split())
        name = html.escape(label, quote=True)
        image = f'<img class="out" alt="{name}" src="data:image/gif;base64,{source}">'
        return {**data, "text/html": image}
    return data


def without_headings(markdown: str) -> str:
    """Return Markdown with its headings as bold lines: a page's headings are its chapter's."""
    lines: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        mark = FENCE.match(line)
        heading = ATX.fullmatch(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) else fence
        elif mark:
            fence = mark[1]
        elif heading:
            line = f"\n**{heading[1]}**\n" if heading[1] else ""
        elif SETEXT.fullmatch(line) and lines and lines[-1].strip():
            lines[-1], line = f"**{lines[-1].strip()}**", ""
        lines.append(line)
    return "\n".join(lines)
