"""The signs of reStructuredText that the engine reads itself: titles, roles, links, and blocks of code.

Docutils reads the rest. It knows neither the fences of Markdown nor sections in the middle of a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

ADORNMENT = re.compile(r" *([!-/:-@\[-`{-~])\1{2,}\s*")  # of a title, or a rule
ROLE = re.compile(r":(?P<role>[\w:+.-]+):`(?P<text>[^`]+)`")
LINK = re.compile(r"`(?P<text>[^`<]+?)\s*<(?P<target>[^`<>]+)>`__?(?!\w)")
EXPLICIT = re.compile(r"(?P<text>.*?)\s*<[^<>]+>", re.DOTALL)
FENCE = re.compile(r"(?P<indent> *)(?P<mark>`{3,}|~{3,}) *(?P<language>[\w+-]*)[^`]*$")
CODE = re.compile(
    r"\s*\.\. ([\w-]*code[\w-]*|math|plot|ipython|parsed-literal|prompt|doctest|test\w+)::"
)


class Title(NamedTuple):
    """An underlined title: its first line, its words, the sign below it, and the line after it."""

    at: int
    text: str
    sign: str
    end: int
    indent: int


def titles(lines: Sequence[str]) -> Iterator[Title]:
    """Yield the underlined titles, also those with a line above them, except in code."""
    at = 0
    while at < len(lines):
        title = _title(lines, at)
        if title:
            yield title
        at = (
            title.end if title else max(at + 1, code_end(lines, at), _quoted(lines, at))
        )


def _title(lines: Sequence[str], at: int) -> Title | None:
    over = ADORNMENT.fullmatch(lines[at])
    first = at + 1 if over else at
    if first + 1 >= len(lines) or ADORNMENT.fullmatch(lines[first]):
        return None
    words, under = lines[first].strip(), ADORNMENT.fullmatch(lines[first + 1])
    if not words or not under or words.startswith((">>>", ".. ")):
        return None
    indent, length = indentation(lines[at]), len(under[0].strip())
    free = at == 0 or not lines[at - 1].strip() or indentation(lines[at - 1]) > indent
    flush = indentation(lines[first + 1]) == indent and (
        over or indentation(lines[first]) == indent
    )
    long = length >= (len(words) if under[1] == "`" else min(len(words), 4))
    if not (free and flush and long) or (over and over[1] != under[1]):
        return None
    return Title(at, words, under[1], first + 2, indent)


def code_end(lines: Sequence[str], at: int) -> int:
    """Return the line after the block of code that starts here, a fenced one or a session, or this line."""
    fence = FENCE.fullmatch(lines[at])
    if not fence and not lines[at].lstrip().startswith(">>>"):
        return at
    last = fence["mark"] if fence else ""
    ends = (k for k in range(at + 1, len(lines)) if lines[k].strip() == last)
    if fence:  # without a last line, it is none
        return next(ends, at - 1) + 1
    return next(ends, len(lines))


def _quoted(lines: Sequence[str], at: int) -> int:
    """Return the line after what is quoted below this line, which ends with two colons."""
    directive = lines[at].lstrip().startswith("..")
    quotes = CODE.match(lines[at]) if directive else lines[at].rstrip().endswith("::")
    return block_end(lines, at) if quotes else at


def block_end(lines: Sequence[str], at: int) -> int:
    """Return the line after those that are indented more than this line."""
    end, own = at + 1, indentation(lines[at])
    while end < len(lines) and (
        not lines[end].strip() or indentation(lines[end]) > own
    ):
        end += 1
    return end


def indentation(line: str) -> int:
    """Return how many blanks a line starts with."""
    return len(line) - len(line.lstrip())


def named(match: re.Match[str]) -> str:
    """Return the words that a role shows: its title, or the last part of a name after ``~``."""
    explicit = EXPLICIT.fullmatch(match["text"])
    if explicit and explicit["text"]:
        return explicit["text"]
    text = match["text"].removeprefix("!")
    return text.rpartition(".")[2] if text.startswith("~") else text
