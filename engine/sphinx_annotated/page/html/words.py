"""Words in figures, tables and values: an edition in another language shows its translation of them.

A message has `{}` for each number, so that it is the same when a chapter has other results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html import escape, unescape
from xml.sax.saxutils import quoteattr

TEXT = re.compile(
    r"(<(text|t[hd]|caption|figcaption|small)\b[^>]*>)([^<>]*[^\W\d_][^<>]*?)(</\2>|(?=\s*<small>))"
)
NUMBER = re.compile(r"(?<![A-Za-z\d_.])[-−+]?\d+(?:[.,]\d+)*%?")
# What a script shows at the pointer: in a figure as it was drawn, and in one that is part of a page.
NOTE = re.compile(
    r"""\b(?:id=(?P<a>["'])|data-)(?P<kind>axes|curve|dots)(?(a):|=(?P<b>["']))(?P<text>.*?)(?(a)(?P=a)|(?P=b))"""
)


def pattern(text: str) -> str:
    """Return the message of a text: the text with `{}` in place of each number."""
    return text if "{" in text else NUMBER.sub("{}", text)


def spoken(text: str, say: Callable[[str], str]) -> str:
    """Return a text with what ``say`` returns for its pattern."""
    message = pattern(text)
    other = say(message) if message else message
    if other == message:
        return text
    return other if message == text else other.format(*NUMBER.findall(text))


def texts(markup: str) -> Iterator[str]:
    """Yield the texts of a figure or a table that have a letter."""
    for match in TEXT.finditer(markup):
        yield " ".join(unescape(match[3]).split())
    for match in NOTE.finditer(markup):
        yield from _names(match)


def said(markup: str, say: Callable[[str], str]) -> str:
    """Return a figure or a table with what ``say`` returns for each of its texts."""

    def shown(text: str) -> str:
        return spoken(text, say)

    def translated(match: re.Match[str]) -> str:
        text = " ".join(unescape(match[3]).split())
        other = shown(text)
        return match[0] if other == text else f"{match[1]}{escape(other)}{match[4]}"

    def noted(match: re.Match[str]) -> str:
        if all(shown(name) == name for name in _names(match)):
            return match[0]
        text = unescape(match["text"])
        if match["kind"] != "axes":
            return f"data-{match['kind']}={quoteattr(shown(text))}"
        scales = {
            way: [shown(label), *rest]
            for way, (label, *rest) in json.loads(text).items()
        }
        return f"data-axes={quoteattr(json.dumps(scales, ensure_ascii=False, separators=(',', ':')))}"

    return NOTE.sub(noted, TEXT.sub(translated, markup))


def _names(match: re.Match[str]) -> Iterator[str]:
    """Yield the names of a line, or those of the two scales of axes."""
    text = unescape(match["text"])
    labels = [text]
    if match["kind"] == "axes":
        labels = [str(label) for label, *_ in json.loads(text).values()]
    yield from filter(None, labels)
