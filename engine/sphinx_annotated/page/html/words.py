"""Words in figures, tables and values: an edition in another language shows its translation of them.

A message has `{}` for each number, so that it is the same when a chapter has other results. A label of
several lines is one message, and its translation may have other lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html import escape, unescape
from statistics import fmean
from xml.sax.saxutils import quoteattr

TEXT = re.compile(
    r"(<(text|t[hd]|caption|figcaption|small)\b[^>]*>)([^<>]*[^\W\d_][^<>]*?)(</\2>|(?=\s*<small>))"
)
PLACED = r'transform="translate\([\d. ]+\)">[^<]*</text>'
LABEL = re.compile(  # lines of one style in one group
    rf'<text (style="[^"]*") {PLACED}(?:\s*<text \1 {PLACED})+'
)
LINE = re.compile(
    r'style="(?P<style>[^"]*)" transform="translate\((?P<x>\S+) (?P<y>\S+)\)">(?P<text>[^<]*)'
)
# A line break in a translation that has one line here: no space between letters as wide as high.
BREAK = re.compile("(?<=[\u2e80-\uffef])\n|\n(?=[\u2e80-\uffef])")
LETTER = 0.5  # the width of a letter, in heights, about
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
    for label in LABEL.finditer(markup):
        yield " ".join(unescape(line["text"]).strip() for line in _lines(label))
    for match in TEXT.finditer(LABEL.sub("", markup)):
        yield " ".join(unescape(match[3]).split())
    for match in NOTE.finditer(markup):
        yield from _names(match)


def said(markup: str, say: Callable[[str], str]) -> str:
    """Return a figure or a table with what ``say`` returns for each of its texts."""

    def shown(text: str) -> str:
        return BREAK.sub("", spoken(text, say)).replace("\n", " ")

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

    def relabelled(match: re.Match[str]) -> str:
        lines = list(_lines(match))
        text = " ".join(unescape(line["text"]).strip() for line in lines)
        other = spoken(text, say)
        return match[0] if other == text else _placed(lines, other.split("\n"))

    whole = LABEL.sub(relabelled, markup)
    return NOTE.sub(noted, TEXT.sub(translated, whole))


def _lines(label: re.Match[str]) -> Iterator[re.Match[str]]:
    return LINE.finditer(label[0])


def _placed(lines: list[re.Match[str]], others: list[str]) -> str:
    """Return other lines where those of a label were: about the same middle, and aligned as they were."""
    style = lines[0]["style"]
    size = re.search(r"font-size: ([\d.]+)", style)
    letter = LETTER * float(size[1] if size else 10)
    starts = [float(line["x"]) for line in lines]
    widths = [len(unescape(line["text"])) * letter for line in lines]
    share, anchor = (
        min(  # of its width, by which a line is to the left of a common line
            ((0, "start"), (0.5, "middle"), (1, "end")),
            key=lambda each: _spread(starts, widths, each[0]),
        )
    )
    x = fmean(
        start + share * width for start, width in zip(starts, widths, strict=True)
    )
    heights = [float(line["y"]) for line in lines]
    step = heights[1] - heights[0]
    y = fmean(heights) - step * (len(others) - 1) / 2
    return "\n".join(
        f'<text style="{style}; text-anchor: {anchor}" transform="translate({x:.2f} {y + k * step:.2f})">'
        f"{escape(other)}</text>"
        for k, other in enumerate(others)
    )


def _spread(starts: list[float], widths: list[float], share: float) -> float:
    """Return how far apart the places are that are this share of its width after each line's start."""
    places = [
        start + share * width for start, width in zip(starts, widths, strict=True)
    ]
    return max(places) - min(places)


def _names(match: re.Match[str]) -> Iterator[str]:
    """Yield the names of a line, or those of the two scales of axes."""
    text = unescape(match["text"])
    labels = [text]
    if match["kind"] == "axes":
        labels = [str(label) for label, *_ in json.loads(text).values()]
    yield from filter(None, labels)
