"""Words in figures and tables: an edition in another language shows its translation of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import escape, unescape

TEXT = re.compile(
    r"(<(text|t[hd]|caption|figcaption)\b[^>]*>)([^<>]*[^\W\d_][^<>]*)(</\2>)"
)


def texts(markup: str) -> Iterator[str]:
    """Yield the texts of a figure or a table that have a letter."""
    for match in TEXT.finditer(markup):
        yield " ".join(unescape(match[3]).split())


def said(markup: str, say: Callable[[str], str]) -> str:
    """Return a figure or a table with what ``say`` returns for each of its texts."""

    def translated(match: re.Match[str]) -> str:
        text = " ".join(unescape(match[3]).split())
        other = say(text)
        return match[0] if other == text else f"{match[1]}{escape(other)}{match[4]}"

    return TEXT.sub(translated, markup)
