"""The labels of figures in other languages, measured with estimated widths of their letters."""

import re
from collections import defaultdict
from collections.abc import Iterator
from html import unescape
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
WIDE = "\u2e80"  # the first of the letters that are as wide as they are high
MUCH = 0.5  # of a letter, within which an estimate may err


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
