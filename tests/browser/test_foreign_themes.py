"""A chapter in a stock theme, as the engine's base style shows it: wide, on a phone, dark, and on paper."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from builds import ENGINE
from fixtures import shelf  # noqa: F401
from locked import folder_of
from playwright.sync_api import Browser
from small_books import Shelf

pytestmark = pytest.mark.slow
CHAPTER = '''
    """
    # One

    The half of $x$, and a wide formula:

    $$y$$
    """

    import matplotlib.pyplot as plt


    def half(x: float) -> float:
        """## Half

        A long sentence next to the head of a function, which fills its line on a phone and more.
        """
        return x / 2 if x > 0 else -half(abs(x))  # as long as lines are



    if __name__ == "__main__":
        # Drawn.
        plt.plot([half(1), half(2)])
        plt.show()
'''
MEASURE = """() => {
  const formula = document.querySelector(".sbs__prose div.math");
  // As wide as MathJax would make it.
  formula.innerHTML = '<span style="display: inline-block; min-width: 1500px; height: 1rem"></span>';
  const box = name => document.querySelector(name).getBoundingClientRect();
  const row = document.querySelector(".def-actions").closest(".sbs__row");
  const prose = row.querySelector(".sbs__prose"), code = row.querySelector(".sbs__code");
  const shown = [...document.querySelectorAll(".plot, .plot-narrow")].filter(each => each.checkVisibility());
  const colour = (element, name) => getComputedStyle(element)[name].match(/[\\d.]+/g).slice(0, 3).map(Number);
  return {
    prose: prose.lastElementChild.getBoundingClientRect().toJSON(),
    code: code.getBoundingClientRect().toJSON(),
    actions: box(".def-actions").toJSON(),
    icon: box(".def-actions .icon").width,
    shown: shown.map(each => each.classList[0]),
    text: colour(prose.lastElementChild, "color"), ground: colour(code, "backgroundColor"),
    keyword: colour(document.querySelector(".code .k"), "color"),
    number: getComputedStyle(document.querySelector(".lno"), "::before").content,
    cut: [...document.querySelectorAll("pre.code")].filter(e => e.scrollWidth > e.clientWidth).length,
    formula: formula.getBoundingClientRect().right,
    column: formula.closest(".sbs__prose").getBoundingClientRect().right,
    scrolls: getComputedStyle(formula).overflowX, inside: formula.scrollWidth > formula.clientWidth,
    over: document.documentElement.scrollWidth - innerWidth,
  };
}"""


THEMES = [
    *("alabaster", "sphinx_book_theme"),
    pytest.param("pydata_sphinx_theme", marks=pytest.mark.nightly),
    pytest.param("furo", marks=pytest.mark.nightly),
]
LOCK = ENGINE / "tests" / "themes.lock"  # of themes that this environment does not have


@pytest.fixture(scope="module", params=THEMES)
def look(
    request: pytest.FixtureRequest,
    shelf: Callable[..., Shelf],  # noqa: F811
    chromium: Browser,
) -> Callable[..., dict[str, Any]]:
    """What a page of a small book in one of these themes measures."""
    settings = f'html_theme = "{request.param}"\n'
    if request.param == "furo":
        folder = folder_of(LOCK, "themes", ["furo", "sphinx-basic-ng"])
        settings += f"sys.path.insert(0, {str(folder)!r})\n"
    book = shelf({"one.py": CHAPTER}, settings)
    address = (book.well_built().root / "_build/html/one.html").as_uri()

    def measured(width: int, scheme: str = "light") -> dict[str, Any]:
        context = chromium.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,  # type: ignore[arg-type]
        )
        page = context.new_page()
        page.route("https://**", lambda route: route.abort())
        page.goto(address, wait_until="domcontentloaded")
        page.locator(".def-actions").first.wait_for(state="attached")
        found: dict[str, Any] = page.evaluate(MEASURE)
        context.close()
        return found

    return measured


def light(colour: list[float]) -> float:
    return sum(colour) / 3


def test_prose_is_next_to_numbered_and_coloured_code(
    look: Callable[..., dict[str, Any]],
) -> None:
    seen = look(1920)
    assert seen["code"]["left"] > seen["prose"]["right"], json.dumps(seen)
    assert seen["shown"] == ["plot"] and seen["icon"] < 20 and seen["over"] <= 0
    assert "counter(" in seen["number"] or seen["number"] not in ("none", "normal")
    assert seen["keyword"] != seen["text"]


def test_code_is_next_to_prose_only_where_its_lines_fit(
    look: Callable[..., dict[str, Any]],
) -> None:
    for width in (1000, 1200, 1400, 1600, 1920):
        seen = look(width)
        below = (
            seen["code"]["left"] < seen["prose"]["right"]
        )  # it has all the width there is
        assert below or seen["cut"] == 0, (width, json.dumps(seen))
        assert seen["over"] <= 0, (width, json.dumps(seen))


def test_a_wide_formula_scrolls_in_its_column(
    look: Callable[..., dict[str, Any]],
) -> None:
    for width in (390, 1000, 1400):
        seen = look(width)
        assert seen["formula"] <= seen["column"] + 1, (width, json.dumps(seen))
        assert seen["over"] <= 0, (width, json.dumps(seen))
        assert seen["scrolls"] == "auto" and seen["inside"]


def test_on_a_phone_nothing_lies_on_the_prose_and_the_figure_is_shown(
    look: Callable[..., dict[str, Any]],
) -> None:
    seen = look(390)
    assert seen["code"]["top"] >= seen["prose"]["bottom"] - 1
    assert seen["actions"]["top"] >= seen["prose"]["bottom"] - 1, json.dumps(seen)
    assert seen["shown"] == ["plot-narrow"] and seen["over"] <= 0


def test_text_differs_from_its_ground_in_light_and_dark(
    look: Callable[..., dict[str, Any]],
) -> None:
    for scheme in ("light", "dark"):
        seen = look(1400, scheme)
        for name in ("text", "keyword"):
            assert abs(light(seen[name]) - light(seen["ground"])) > 60, (scheme, name)
