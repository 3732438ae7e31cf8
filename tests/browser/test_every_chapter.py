"""What every chapter promises in a browser: its module, line by line, beside its prose."""

from built_book import CHAPTERS, Site, cases, code_lines, every_chapter
from fontTools.ttLib import TTFont
from measures import Looker, Reader
from visits import Visitor

DAILY = ["labml_primer/primer/primer_ez", "experiments/chapters/sizes"]  # plain, folded


@every_chapter
def test_the_title_stands_at_the_top(look: Looker, chapter: str) -> None:
    below_the_bar = look(chapter, 1400, "light")["title"]
    assert below_the_bar < 60  # however many definitions are listed beside it


@every_chapter
def test_the_text_begins_soon_below_the_title(look: Looker, chapter: str) -> None:
    assert look(chapter, 1400, "light")["first sentence"] < 100


@every_chapter
def test_on_a_phone_the_links_to_run_a_chapter_are_below_its_title(
    look: Looker, chapter: str
) -> None:
    top, bottom = look(chapter, 1400, "light")["phone"]["tools"]
    assert 52 < top < bottom < 450  # the upper half of a screen


@every_chapter
def test_prose_and_code_of_a_row_share_their_first_baseline(
    look: Looker, chapter: str
) -> None:
    found = look(chapter, 1400, "light")
    assert found["baselines"] or found["open code"] == 0  # all folded
    assert [row for row in found["baselines"] if abs(row[1]) > 1.5] == []


@every_chapter
def test_the_columns_are_as_wide_as_reading_wants(look: Looker, chapter: str) -> None:
    found = look(chapter, 1400, "light")
    assert 34 <= found["characters"] <= 48
    assert found["88 fit"]


@every_chapter
def test_no_code_and_no_output_is_cut_where_there_is_room(
    look: Looker, chapter: str
) -> None:
    assert look(chapter, 1400, "light")["cut"] == []


@cases("chapter", CHAPTERS, daily=DAILY)
def test_a_line_that_is_linked_to_is_marked_and_in_sight(
    visit: Visitor, site: Site, chapter: str
) -> None:
    numbers = sorted(code_lines(site.module(chapter)))
    line = numbers[len(numbers) // 2]
    opened = visit(f"{chapter}#L{line}").page
    marked, plain, top = opened.evaluate(
        """n => {
          const line = document.getElementById("L" + n);
          const ground = e => getComputedStyle(e).backgroundColor;
          const other = [...document.querySelectorAll(".ln:not(.ln--deviation)")].find(e => e !== line);
          return [ground(line), ground(other), line.getBoundingClientRect().top];
        }""",
        line,
    )
    assert marked != plain
    assert 52 <= top < 900


@cases("chapter", CHAPTERS, daily=DAILY)
def test_code_is_copied_without_its_numbers(
    use: Reader, site: Site, chapter: str
) -> None:
    copied = use(chapter)["selected"].rstrip("\n").split("\n")
    lines = site.module(chapter).split("\n")
    assert len(copied) > 1
    # Lines of prose between them leave no gap in the copy, so each is looked for behind the last.
    at = use(chapter)["first line"] - 1
    for line in copied:
        at = next(
            k
            for k in range(at, len(lines))
            if line.rstrip() in (lines[k], lines[k].removeprefix("    "))
        )
        at += 1


# -- figures --------------------------------------------------------------------------------


@every_chapter
def test_figures_take_the_colours_of_the_theme(look: Looker, chapter: str) -> None:
    light = look(chapter, 1400, "light")["colours of figures"]
    dark = look(chapter, 1400, "light")["phone"]["colours of figures"]
    for one, other in zip(light, dark, strict=True):
        assert one != other
        black = ("nonergb(0, 0, 0)", "rgb(0, 0, 0)none")
        assert not [c for c in other if c in black and one.count(c) > len(one) / 2]


@every_chapter
def test_figures_have_only_characters_of_the_font_that_they_are_set_in(
    look: Looker, site: Site, chapter: str
) -> None:
    font = TTFont(site.folder / "_static" / "serif.woff2").getBestCmap()
    found = look(chapter, 1400, "light")
    missing = {
        c for text in found["words of figures"] for c in text if ord(c) not in font
    }
    assert {c for c in missing if not c.isspace()} == set()
    assert set(found["fonts of figures"]) <= {'"Source Serif 4 drawn"'}


@every_chapter
def test_the_words_of_a_figure_do_not_lie_on_each_other(
    look: Looker, chapter: str
) -> None:
    assert look(chapter, 1400, "light")["crossed"] == []
