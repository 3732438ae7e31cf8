"""Each translation uses its fixed terms, and types no space where none belongs."""

import re
import tomllib
from pathlib import Path

import pytest
import theme
from editions.catalogues import Language, Message, faults, languages

LOCALE = Path(__file__).resolve().parents[2] / "book" / "locale"
EDITIONS = languages(LOCALE)
every_edition = pytest.mark.parametrize(
    "language", EDITIONS, ids=[each.code for each in EDITIONS]
)


def messages(language: Language) -> list[tuple[str, Message]]:
    every = language.catalogues().items()
    return [
        (domain, m)
        for domain, found in every
        for m in found
        if m.text and not m.obsolete
    ]


@every_edition
def test_translations_keep_formulas_code_links_and_numbers(language: Language) -> None:
    """Also those of a draft, which no usual build compiles."""
    assert list(faults(language)) == []


@every_edition
def test_what_a_language_never_says_does_not_occur(language: Language) -> None:
    about = tomllib.loads((language.folder / "language.toml").read_text("utf-8"))
    found = [
        f"{language.path(domain)}:{m.line}: {word}; write {right}"
        for domain, m in messages(language)
        for word, right in about.get("never", {}).items()
        if word in m.text
    ]
    assert found == []


@every_edition
def test_no_space_is_typed_between_chinese_or_japanese_and_latin_letters(
    language: Language,
) -> None:
    letter = "[ぁ-んァ-ヶ一-龠々ー]"
    gap = re.compile(f"{letter} [A-Za-z0-9`$]|[A-Za-z0-9`$] {letter}")
    left = [
        f"{language.path(domain)}:{m.line}: {match[0]}"
        for domain, m in messages(language)
        if domain not in ("pictures", "words") and (match := gap.search(m.text))
    ]
    assert left == []


def test_a_line_does_not_begin_with_the_punctuation_after_a_formula() -> None:
    tex = '<annotation encoding="application/x-tex">x</annotation>'
    formula = f'<span class="math">{tex}</span>'
    shown = theme.glued(f"値は（{formula}）。")
    assert shown == f'値は<span class="glue">（{formula}）。</span>'
