"""The labels of figures in other languages, measured with estimated widths of their letters."""

import re
from collections import defaultdict
from collections.abc import Iterator
from html import unescape
from itertools import combinations
from pathlib import Path

import pytest
from built_book import Site
from editions.catalogues import Language, languages, read
from sphinx_annotated.page.html.words import spoken

LANGUAGES = languages(Path(__file__).resolve().parents[2] / "book" / "locale")
FIGURE = re.compile(
    r'<svg class="plot[^>]*viewBox="0 0 ([\d.]+) [\d.]+".*?</svg>', re.DOTALL
)
LABEL = re.compile(  # not rotated ones, along an axis
    r'<text style="font-size: ([\d.]+)px;?(?: text-anchor: (\w+))?[^"]*"'
    r'(?: x="| transform="translate\()([\d.]+)(?![^>]*rotate)[^>]*>([^<]*[a-z][^<]*)</text>'
)
TEXT = re.compile(  # with its size, its end, its place, and whether it is turned
    r'<text style="font-size: ([\d.]+)px(?:; text-anchor: (\w+))?[^"]*"'
    r'(?: x="([\d.]+)" y="([\d.]+)")?(?: transform="(?:translate\(([\d.]+) ([\d.]+)\))? ?(rotate[^"]*)?")?'
    r">([^<]+)</text>"
)
AXES = re.compile(  # the left, lower, right and upper end
    r"<g data-axes[^>]*>\s*<g>\s*<path d=\"M ([\d.]+) ([\d.]+) L ([\d.]+) [\d.]+ L [\d.]+ ([\d.]+)"
)
WIDE = "\u2e80"  # the first of the letters that are as wide as they are high
MUCH = 0.5  # of a letter, within which an estimate may err
Box = tuple[float, float, float, float]  # left, top, right, bottom


def outside(figure: re.Match[str], words: dict[str, str]) -> Iterator[str]:
    """Yield the translated labels that begin before their figure or end after it."""
    for size, anchor, x, text in LABEL.findall(figure[0]):
        label = " ".join(unescape(text).split())
        other = spoken(label, lambda message: words.get(message, message))
        letters = sum(1 if each >= WIDE else 0.5 for each in other)
        before = {"end": 1.0, "middle": 0.5}.get(anchor, 0.0) * letters
        at, end = float(x) / float(size), float(figure[1]) / float(size)
        over = max(before - at, at - before + letters - end)
        if other != label and over > MUCH:
            yield f"{label}: {other} is {over:.1f} letters too long"


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.code)
def test_no_translated_label_leaves_its_figure(site: Site, language: Language) -> None:
    words: dict[str, dict[str, str]] = defaultdict(dict)
    for message in read(language.path("outputs")):
        if message.shown:
            words[message.context][message.english] = message.text
    found = {
        label
        for page in site.pages
        for figure in FIGURE.finditer((site.folder / f"{page}.html").read_text("utf-8"))
        for label in outside(figure, words[page])
    }
    assert found == set()


def boxes(figure: str) -> Iterator[tuple[str, Box]]:
    """Yield the texts of a figure with their places."""
    for size, anchor, x, y, moved, lowered, turned, text in TEXT.findall(figure):
        label = " ".join(unescape(text).split())
        letter, at, base = float(size), float(x or moved), float(y or lowered)
        width = letter * sum(1 if each >= WIDE else 0.5 for each in label)
        before = {"end": 1.0, "middle": 0.5}.get(anchor, 0.0) * width
        up, down = 0.7 * letter, 0.1 * letter
        if turned:
            yield label, (at - up, base + before - width, at + down, base + before)
        else:
            yield label, (at - before, base - up, at - before + width, base + down)


def clashes(figure: str) -> list[str]:
    """Return which texts of a figure overlap, or cross an axis."""
    placed = list(boxes(figure))
    found = []
    for (one, a), (other, b) in combinations(placed, 2):
        wide, high = (
            min(a[2], b[2]) - max(a[0], b[0]),
            min(a[3], b[3]) - max(a[1], b[1]),
        )
        if min(wide, high) > 1:
            found.append(f"{one} / {other}")
    for left, low, right, top in (map(float, each) for each in AXES.findall(figure)):
        for label, (start, over, end, under) in placed:
            if start + 1 < left < end - 1 and under > top and over < low:
                found.append(f"{label} / the vertical axis")
            if over + 1 < low < under - 1 and end > left and start < right:
                found.append(f"{label} / the horizontal axis")
    return found


def test_labels_of_an_edition_overlap_no_more_than_the_english(site: Site) -> None:
    found = {}
    for language in site.editions:
        for page in site.pages:
            each = (f"{page}.html", f"{language}/{page}.html")
            english, other = (
                [
                    match[0]
                    for match in FIGURE.finditer(
                        (site.folder / name).read_text("utf-8")
                    )
                ]
                for name in each
            )
            for number, (own, translated) in enumerate(
                zip(english, other, strict=True)
            ):
                if len(now := clashes(translated)) > len(clashes(own)):
                    found[f"{each[1]}, figure {number}"] = now
    assert found == {}
