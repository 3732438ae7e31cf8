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


@printed_chapters
def test_paper_shows_pictures_whole_with_their_origin_and_licence(
    look: Looker, chapter: str
) -> None:
    paper = look(chapter, 1400, "light")["paper"]
    assert paper["not of the last step"] == []
    for words in paper["below pictures"]:
        assert words.split("\n") == ["Primer, annotated", "MIT license"]


@printed_chapters
def test_on_paper_solutions_are_after_all_exercises_and_name_them(
    look: Looker, chapter: str
) -> None:
    titles = look(chapter, 1400, "light")["paper"]["exercises"]
    half = len(titles) // 2
    assert titles[half:] == [f"Solution: {title}" for title in titles[:half]]
