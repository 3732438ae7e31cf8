"""A reader's tools: what is copied, shown, lit up, found, linked to, unfolded."""

import ast
import re

import pytest
from built_book import (
    CHAPTERS,
    ROOT,
    Site,
    cases,
    code_lines,
    definitions,
    every_chapter,
)
from measures import COPY, Looker, Reader
from playwright.sync_api import Locator, expect
from pybtex.database import parse_file, parse_string
from sphinx_annotated.read.parse import parse
from sphinx_annotated.take.standalone import snippets
from visits import Reading, Visitor
from write_notebooks import the_book

PRIMER = "labml_primer/primer/primer_ez"
VARIATIONS = "labml_primer/primer/variations"
ATTENTION = "labml_primer/transformer/attention"
REFERENCES = "book/pages/references"
TAUGHT = ("labml_primer/transformer/", "labml_primer/primer/", "book/pages/")
DAILY = [PRIMER, ATTENTION]
OPEN = ":not(details:not([open]) *)"  # not in a solution that is folded


def focused(locator: Locator) -> bool:
    found: bool = locator.evaluate("e => e === document.activeElement")
    return found


# -- copy -----------------------------------------------------------------------------------


def source(text: str, name: str) -> list[str]:
    """A definition's lines of code, without notes and blank lines, at the left margin."""
    tree, lines = ast.parse(text), text.split("\n")
    for part in name.split("."):
        kinds = ast.ClassDef | ast.FunctionDef
        tree = next(
            n for n in ast.walk(tree) if isinstance(n, kinds) and n.name == part
        )  # type: ignore[assignment]
    first, last = definitions(text)[name], tree.end_lineno  # type: ignore[attr-defined]
    kept = [lines[n - 1] for n in sorted(code_lines(text)) if first <= n <= last]
    indent = len(kept[0]) - len(kept[0].lstrip())
    return [line[indent:].rstrip() for line in kept]


@cases("chapter", CHAPTERS, daily=DAILY)
def test_a_definition_is_copied_as_it_stands_in_the_module(
    use: Reader, site: Site, chapter: str
) -> None:
    copied = use(chapter)["copy"]
    text = site.module(chapter)
    outside_demos = {
        block.name.qualname
        for cell in parse(text).cells
        if cell.kind == "definition"
        for row in cell.rows
        for block in row.blocks
        if block.name
    }
    inner = {
        name.qualname
        for name, _ in parse(text).names()
        if name.kind == "function" and name.level > 1
    }
    assert set(copied) == outside_demos - inner
    for name, got in copied.items():
        lines = [line for line in got.split("\n") if line.strip() not in ("", "...")]
        assert lines == source(text, name)
        compile(got, name, "exec")  # so a body that was a docstring is an ellipsis


@cases("chapter", CHAPTERS, daily=DAILY)
def test_a_definition_is_copied_with_all_that_it_needs(
    use: Reader, site: Site, chapter: str
) -> None:
    copied = use(chapter)["standalone"]
    book = the_book()
    module = book.project.at(ROOT / f"{chapter}.py")
    assert copied == snippets(book, module)


def test_a_copy_is_told_of(reading: Reading) -> None:
    page = reading(PRIMER)
    told = page.locator("#toast[role=status]")
    for name, words in (
        ("Copy", "SquaredReLU copied"),
        ("Copy with the imports and definitions it needs", "with what it needs"),
        ("Copy link", "Link copied"),
    ):
        page.locator(f"#SquaredReLU [title='{name}']").click()
        expect(told).to_contain_text(words)


# -- shapes ---------------------------------------------------------------------------------


@cases("chapter", CHAPTERS, daily=DAILY)
def test_a_tensor_tells_its_shape_when_pointed_at_and_when_focused(
    reading: Reading, chapter: str
) -> None:
    page = reading(chapter)
    tip = page.locator("#tip[role=tooltip]")
    names = page.locator(f".t[tabindex]{OPEN}")
    if not names.count() and not chapter.startswith("labml_primer/"):
        pytest.skip("a chapter without tensors")
    name = names.first
    name.hover()
    shape = f"[{name.get_attribute('data-shape')}]"
    dtype = name.get_attribute("data-dtype") or "no dtype"
    expect(tip).to_contain_text(shape)
    expect(tip).to_contain_text(dtype)
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.mouse.move(0, 0)
    name.focus()
    expect(tip).to_contain_text(shape)
    expect(name).to_have_attribute("aria-describedby", "tip")


INLAYS = """() => [...document.querySelectorAll(".inlay")].map(
    e => getComputedStyle(e, "::before").content).filter(words => words !== "none")"""


@pytest.mark.parametrize("way", ["key", "button"])
def test_the_switch_shows_shapes_at_the_ends_of_lines(
    reading: Reading, way: str
) -> None:
    page = reading(ATTENTION)
    button = page.locator("#shapes-toggle")
    for on in (True, False):
        if way == "key":
            page.keyboard.press("s")
        else:
            button.click()
        expect(button).to_have_attribute("aria-pressed", str(on).lower())
        shown = page.evaluate(INLAYS)
        assert bool(shown) == on
        assert all(re.search(r"\w \[[\d, ]*\]", words) for words in shown)


# -- names and symbols ----------------------------------------------------------------------

LIT = """() => [...document.querySelectorAll(".lit")].map(e => e.textContent)"""


@pytest.mark.parametrize("way", ["hover", "focus"])
def test_a_name_lights_up_its_other_uses(reading: Reading, way: str) -> None:
    page = reading(ATTENTION)
    name = page.locator(
        "[data-of=attention_weights] .t[tabindex]", has_text="scores"
    ).first
    getattr(name, way)()
    lit = page.evaluate(LIT)
    uses = page.locator(".sbs__code .n").all_text_contents().count("scores")
    assert set(lit) == {"scores"}
    assert len(lit) == uses > 3


@pytest.mark.parametrize(
    ("where", "ties"),
    [
        (ATTENTION, {"query": "Q", "key": "K", "value": "V", "x": "X", "y": "Y"}),
        ("labml_primer/transformer/embedding", {"table": "E"}),
        ("labml_primer/transformer/feed_forward", {"expand": "W1", "contract": "W2"}),
        ("labml_primer/transformer/positional_encoding", {"position": "t", "omega": "ωk"}),
        (PRIMER, {"weight": "w", "kernel_size": "K"}),
    ],
    ids=lambda value: value.split("/")[-1] if isinstance(value, str) else "",
)  # fmt: skip
def test_a_name_lights_up_the_symbol_that_the_chapter_ties_to_it(
    reading: Reading, where: str, ties: dict[str, str]
) -> None:
    page = reading(where)
    page.locator(f".sbs__code .ln{OPEN}").first.hover()  # now each name has an element
    for name, symbol in ties.items():
        named = re.compile(f"^{name}$")
        page.locator(f".sbs__code .n{OPEN}", has_text=named).first.hover()
        lit = page.evaluate(
            """() => [...document.querySelectorAll(".katex-display .katex-html .lit")].map(
                e => e.textContent.replace(/[\\u200b\\s]/g, ""))"""
        )
        assert set(lit) == {symbol}, name
        assert page.locator(".tie code.lit").all_text_contents() == [name]


def test_a_tie_lights_up_by_keyboard_and_from_its_symbol(
    reading: Reading,
) -> None:
    page = reading(ATTENTION)
    page.locator(".tie[data-tie=query][tabindex='0']").first.focus()
    assert {"query", "Q"} <= set(page.evaluate(LIT))
    page.locator(".tie[data-tie=key][tabindex='0']").first.focus()
    assert not {"query", "Q"} & set(page.evaluate(LIT))
    page.locator(".katex-display .mord.mathnormal:text-is('V')").first.hover()
    assert {"value", "V"} <= set(page.evaluate(LIT))


@every_chapter
def test_each_tie_binds_a_name_of_the_code_to_a_symbol_of_a_formula(
    look: Looker, chapter: str
) -> None:
    assert look(chapter, 1400, "light")["loose"] == []


# -- keys and search ------------------------------------------------------------------------


def test_a_question_mark_lists_the_keys(reading: Reading) -> None:
    page = reading(ATTENTION)
    keys = page.locator("dialog#keys")
    expect(keys).to_be_hidden()
    page.keyboard.press("?")
    expect(keys).to_be_visible()
    for key in ("/", "?", "s", "↑ ↓", "Escape"):
        expect(keys.locator("kbd", has_text=key).first).to_be_visible()
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()


@pytest.mark.parametrize(
    ("words", "where"),
    [
        ("soft look-up", "attention.html"),  # prose
        ("SpatialDepthWiseSharedConvolution", "variations.html"),  # a definition
        ("scaled_dot_product_attention", "attention.html"),  # code
    ],
)
def test_search_answers_as_one_types_and_is_used_by_keyboard_alone(
    reading: Reading, words: str, where: str
) -> None:
    page = reading(PRIMER)
    field, hits = page.locator(".search input"), page.locator("#hits [role=option]")
    page.keyboard.press("/")
    assert focused(field)
    page.keyboard.type(words)
    found = page.locator(f"#hits [role=option][href*='{where}']").first
    expect(found).to_be_visible()
    expect(found.locator("mark, code").first).to_be_visible()
    for _ in range(hits.count()):
        page.keyboard.press("ArrowDown")
        if found.get_attribute("aria-selected") == "true":
            break
    expect(field).to_have_attribute(
        "aria-activedescendant", found.get_attribute("id") or "none"
    )
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(re.escape(where)))


def test_a_formula_in_a_result_stands_there_once(
    reading: Reading,
) -> None:
    page = reading(ATTENTION)
    page.keyboard.press("/")
    page.keyboard.type("why the root of")
    found = page.locator("#hits [role=option] > b", has_text="Why the root of")
    expect(found).to_have_text(["Why the root of d_k"])


def test_escape_closes_the_results(reading: Reading) -> None:
    page = reading(ATTENTION)
    page.keyboard.press("/")
    page.keyboard.type("softmax")
    expect(page.locator("#hits")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#hits")).to_be_hidden()
    expect(page.locator(".search input")).to_have_attribute("aria-expanded", "false")


# -- differences ----------------------------------------------------------------------------


def test_signs_and_tints_of_a_difference_are_seen(reading: Reading) -> None:
    page = reading(PRIMER)
    grounds = set()
    for kind, sign in (("del", "-"), ("add", "+")):
        line = page.locator(f".vdiff .ln--{kind}").first
        content = "e => getComputedStyle(e, '::after').content"
        assert line.locator(".lno").evaluate(content) == f'"{sign}"'
        grounds.add(line.evaluate("e => getComputedStyle(e).backgroundColor"))
    assert len(grounds) == 2


# -- links to lines -------------------------------------------------------------------------


@pytest.mark.parametrize("where", [PRIMER, VARIATIONS, ATTENTION])
def test_each_line_shows_the_number_that_it_says(reading: Reading, where: str) -> None:
    page = reading(where)
    # What the style counts has no text in the page; it has in the tree for screen readers.
    browser = page.context.new_cdp_session(page)
    nodes = browser.send("Accessibility.getFullAXTree")["nodes"]
    known = {node["nodeId"]: node for node in nodes}
    pairs = []
    for node in nodes:
        generated = known.get(node.get("parentId"), {})
        link = known.get(generated.get("parentId"), {})
        text = node.get("name", {}).get("value", "")
        said = link.get("name", {}).get("value", "")
        if said.startswith("line ") and text.isdecimal():
            pairs.append((said, f"line {text}"))
    assert len(pairs) >= page.locator(f".ln[id] > .lno{OPEN}").count() > 40
    assert [pair for pair in pairs if pair[0] != pair[1]] == []


MARKED = """name => {
  const line = document.getElementById(name).closest(".ln"), box = line.getBoundingClientRect();
  const plain = [...document.querySelectorAll(".ln:not(.ln--deviation)")].find(e => e !== line);
  return [getComputedStyle(line).backgroundColor !== getComputedStyle(plain).backgroundColor, box.top];
}"""


def test_a_link_to_a_line_of_a_definition_shows_and_marks_it(visit: Visitor) -> None:
    name = "MultiDConvHeadAttention.project:2"
    page = visit(f"{PRIMER}#{name}").page
    marked, top = page.evaluate(MARKED, name)
    assert marked
    assert 52 <= top < 900


def test_a_click_on_a_line_number_puts_its_link_into_the_address(
    reading: Reading,
) -> None:
    page = reading(PRIMER)
    number = page.locator("#SquaredReLU\\.forward .lno").last
    number.click()
    name = number.get_attribute("id")
    assert name and page.url.endswith(f"#{name}")
    marked, top = page.evaluate(MARKED, name)
    assert marked
    assert 52 <= top < 900


# -- exercises ------------------------------------------------------------------------------


@cases("chapter", CHAPTERS, daily=[ATTENTION])
def test_a_chapter_asks_a_question_and_folds_the_answer(
    reading: Reading, chapter: str
) -> None:
    page = reading(chapter)
    exercises = page.locator(".sbs__row:has(.note--exercise)")
    assert exercises.count() or not chapter.startswith(TAUGHT)
    for exercise in exercises.all():
        solution = exercise.locator("details.solution")
        expect(solution.locator(".code").first).to_be_hidden()
        summary = solution.locator("summary")
        summary.focus()
        page.keyboard.press("Enter")
        for part in (".solution__body > p", ".code", ".out"):
            expect(solution.locator(part).first).to_be_visible()
        code = "\n".join(solution.locator(".code").all_inner_texts())
        assert re.search(
            r"\bassert(_close)?\b", code
        )  # it ran, so what it claims holds


def test_without_scripts_a_solution_unfolds(visit: Visitor) -> None:
    page = visit(ATTENTION, scripts=False).page
    page.locator(".solution summary").first.click()
    expect(page.locator(".solution .code").first).to_be_visible()


def test_a_link_to_a_line_of_a_solution_unfolds_it(
    visit: Visitor, reading: Reading
) -> None:
    line = reading(ATTENTION).locator(".solution .ln[id]").last
    name = line.get_attribute("id")
    page = visit(f"{ATTENTION}#{name}").page
    expect(page.locator(f"#{name}")).to_be_in_viewport()


# -- references -----------------------------------------------------------------------------


def test_each_reference_gives_its_bibtex_to_the_clipboard(
    reading: Reading,
) -> None:
    entries = parse_file(str(ROOT / "book" / "pages" / "references.bib")).entries
    copied = reading(REFERENCES).evaluate(COPY, "bibtex")
    assert set(copied) == {f"bibtex:{key}" for key in entries}
    for anchor, text in copied.items():
        key = anchor.removeprefix("bibtex:")
        assert parse_string(text, "bibtex").entries[key] == entries[key]


def test_bibtex_is_reached_from_a_citation_and_copied_by_keyboard(
    reading: Reading,
) -> None:
    page = reading(ATTENTION)
    page.locator("a[href*='references.html#']").first.click()
    page.wait_for_url(re.compile("references.html#"))
    entry = page.locator(":target")
    entry.locator(".bibtex summary").focus()
    page.keyboard.press("Enter")
    expect(entry.locator("pre")).to_be_visible()
    page.keyboard.press("Tab")
    assert focused(entry.locator("[data-bibtex]"))
    page.keyboard.press("Enter")
    expect(page.locator("#toast")).to_contain_text("BibTeX copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("@")
    assert copied.split() == entry.locator("pre").inner_text().split()
