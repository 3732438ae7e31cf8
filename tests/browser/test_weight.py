"""What a page weighs, and whether it stands still while it comes."""

from built_book import PAGES, Site, cases, every_chapter
from measures import KINDS, Looker, every_look
from visits import weights

RARE = "KaTeX_"  # the fonts of a formula's rare signs


@every_chapter
def test_the_first_view_of_a_chapter_weighs_at_most_125_kilobytes(
    look: Looker, site: Site, chapter: str
) -> None:
    parts = weights(site, look(chapter, 1400, "light")["asked"])
    assert any(name.endswith(".woff2") for name in parts)
    assert sum(parts.values()) <= 125_000, parts


@every_look
def test_nothing_shifts_while_a_page_loads(
    look: Looker, page: str, width: int, theme: str
) -> None:
    shifts = look(page, width, theme)["shifts"]
    # Fonts that come late on a busy machine make up to 0.073; browsers call less than 0.1 good.
    assert sum(value for value, _ in shifts) < 0.1, shifts


@cases("page", PAGES, daily=KINDS)
def test_a_page_loads_at_once_the_fonts_that_it_needs(look: Looker, page: str) -> None:
    found = look(page, 1400, "light")
    preloaded, needed = set(found["preloaded"]), set(found["fonts"])
    folded = set(found.get("paper", found)["fonts"])  # on paper all folds are open
    assert any(url.endswith("/serif.woff2") for url in needed)
    assert preloaded <= needed | folded  # none in vain
    late = {url.split("/")[-1] for url in (needed | folded) - preloaded}
    assert {name for name in late if not name.startswith(RARE)} == set()
    asked = [url for url in found["asked"] if url.endswith(".woff2")]
    assert sorted(asked) == sorted(needed | preloaded)  # each of them once
