"""A chapter on paper: a clean document, whatever the screen showed."""

from built_book import CHAPTERS, cases
from measures import KINDS, Looker

printed_chapters = cases("chapter", CHAPTERS, daily=KINDS)


@printed_chapters
def test_paper_shows_no_part_of_the_screen(look: Looker, chapter: str) -> None:
    assert look(chapter, 1400, "light")["paper"]["of the screen"] == []


@printed_chapters
def test_nothing_is_cut_on_paper(look: Looker, chapter: str) -> None:
    assert look(chapter, 1400, "light")["paper"]["cut"] == []


@printed_chapters
def test_paper_is_light(look: Looker, chapter: str) -> None:
    paper = look(chapter, 1400, "light")["paper"]
    assert paper["changed by the theme"] == []
    assert paper["ground"] == "rgb(255, 255, 255)"


@printed_chapters
def test_no_word_of_a_table_is_broken_on_paper(look: Looker, chapter: str) -> None:
    assert look(chapter, 1400, "light")["paper"]["broken"] == []
