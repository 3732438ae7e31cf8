"""HTML in Markdown cells of notebooks, where it is markup: headings, links and images as Markdown has them.

Other elements are HTML on the page too. A tag that nothing closes is text, as ``<pad>`` is. Formulas between
``\\(`` and ``\\)`` or ``\\[`` and ``\\]`` are those of dollars.
"""

from __future__ import annotations

import re
from html import unescape

ROLE = "annotated-html"  # of a tag
CODE = re.compile(
    r"(?ms)(?P<kept>^ *(?P<fence>`{3,}|~{3,}).*?^ *(?P=fence)|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
    r"|^(?: {4}|\t)[^\n]*|<a +(?:id|name)=[\"'][^\"']+[\"'] *> *</a>)"
)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
IMAGE = re.compile(r"<img\b(?P<facts>[^<>]*)/?>", re.IGNORECASE)
LINK = re.compile(
    r"<a\b[^<>]*?\bhref=(?P<q>[\"'])(?P<href>[^\"'<>]+)(?P=q)[^<>]*>(?P<words>.*?)</a>",
    re.DOTALL | re.IGNORECASE,
)
HEADING = re.compile(
    r"(?im)^ {0,3}<h(?P<level>[1-6])\b[^<>]*>(?P<words>.*?)</h(?P=level)>[ \t]*$",
    re.DOTALL,
)
TAG = re.compile(r"</?(?P<name>[A-Za-z][\w-]*)(?:\s[^<>`]*)?/?>")
VOID = ("br", "hr", "img", "wbr")
INLINE = re.compile(r"\\?\\\((?=\S)([^$`\n]+?)(?<=[^\s\\])\\?\\\)")
DISPLAY = re.compile(r"\\?\\\[(?P<words>[^$`]+?)\\?\\\](?!\()")


def as_markdown(text: str) -> str:
    """Return the text of a Markdown cell, in as many lines, with its HTML as Markdown or in roles."""
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"\ue002{len(kept) - 1}\ue003"

    text = COMMENT.sub(lambda m: "\n" * m[0].count("\n"), CODE.sub(keep, text))
    text = INLINE.sub(r"$\1$", text)
    text = DISPLAY.sub(lambda m: f"$${_flat(m['words'])}$${_ends(m)}", text)
    if "<" in text:
        text = IMAGE.sub(_image, text)
        text = LINK.sub(
            lambda m: f"[{_flat(m['words'])}]({m['href'].strip()}){_ends(m)}", text
        )
        text = HEADING.sub(
            lambda m: f"{'#' * int(m['level'])} {_flat(m['words'])}{_ends(m)}", text
        )
        found = [tag["name"].lower() for tag in TAG.finditer(text) if tag[0][1] == "/"]
        lines = (
            TAG.sub(lambda m: _tag(m, {*found, *VOID}, line[:1] == "#"), line)  # noqa: B023
            for line in text.split("\n")
        )
        text = "\n".join(lines)
    return re.sub("\ue002(\\d+)\ue003", lambda m: kept[int(m[1])], text)


def _image(match: re.Match[str]) -> str:
    found = re.findall(r"([\w-]+)\s*=\s*([\"'])(.*?)\2", match["facts"], re.DOTALL)
    facts = {
        name.lower(): unescape(" ".join(value.split())) for name, _, value in found
    }
    if "src" not in facts:
        return match[0]
    words = re.sub(r"([\[\]])", r"\\\1", facts.get("alt", ""))
    return f"![{words}]({facts['src'].replace(' ', '%20')})"


def _flat(words: str) -> str:
    return " ".join(words.split())


def _ends(match: re.Match[str]) -> str:
    """Return the line ends of what is now on one line."""
    return "\n" * match["words"].count("\n")


def _tag(match: re.Match[str], closed: set[str], in_heading: bool) -> str:
    """Return a tag in a role, or as it is if it is none. Headings have no HTML."""
    if match["name"].lower() not in closed:
        return match[0]
    return "" if in_heading else f"{{{ROLE}}}`{match[0]}`"
