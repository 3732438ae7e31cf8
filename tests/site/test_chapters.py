"""What every chapter promises: its module, line by line, beside its prose, with what it printed."""

import ast
import re
from collections import Counter
from itertools import groupby

import pytest
from built_book import Site, code_lines, definitions, every_chapter

PRIMER = "labml_primer/primer/primer_ez"
VARIATIONS = "labml_primer/primer/variations"
TAUGHT = ("labml_primer/transformer/", "labml_primer/primer/", "book/pages/")


# -- the module on the page --------------------------------------------------------------


@every_chapter
def test_every_line_of_the_module_stands_on_the_page_once(
    site: Site, chapter: str
) -> None:
    text = site.module(chapter)
    lines = text.split("\n")
    shown = Counter[int]()
    for element in site.soup(chapter).select(".ln[id]"):
        number = int(str(element["id"]).removeprefix("L"))
        shown[number] += 1
        line = lines[number - 1].rstrip()
        assert element.get_text() in (f"{line}\n", f"{line[4:]}\n"), number
    assert [n for n, times in shown.items() if times > 1] == []
    assert sorted(code_lines(text) - set(shown)) == []


@every_chapter
def test_shown_lines_and_those_of_each_fold_are_in_order(
    site: Site, chapter: str
) -> None:
    soup = site.soup(chapter)
    folds = [fold.select(".ln[id]") for fold in soup.select("details.fold")]
    shown = [e for e in soup.select(".ln[id]") if not e.find_parent(class_="fold")]
    for lines in (shown, *folds):
        numbers = [int(str(e["id"])[1:]) for e in lines]
        assert numbers == sorted(numbers)


@every_chapter
def test_the_name_of_a_definition_is_its_anchor(site: Site, chapter: str) -> None:
    soup = site.soup(chapter)
    for name, line in definitions(site.module(chapter)).items():
        block = soup.find(id=name)
        assert block is not None, name
        first = block.select_one(".ln")
        assert first is not None and first["id"] == f"L{line}", name


@every_chapter
def test_each_line_of_a_definition_has_a_link_that_counts_from_its_head(
    site: Site, chapter: str
) -> None:
    text = site.module(chapter)
    ends = {
        (name, first): source_end(text, name, first)
        for name, first in definitions(text).items()
    }
    for number in site.soup(chapter).select(".ln[id] > .lno"):
        n = int(str(number.parent["id"])[1:])
        around = [key for key, end in ends.items() if key[1] <= n <= end]
        if around:
            name, first = max(around, key=lambda key: key[1])
            assert number["href"] == f"#{name}:{n - first + 1}"
            assert number["id"] == f"{name}:{n - first + 1}"
        else:
            assert number["href"] == f"#L{n}"


def source_end(text: str, name: str, first: int) -> int:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            start = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if (node.name, start) == (name.split(".")[-1], first):
                return node.end_lineno or start
    raise AssertionError(name)


@every_chapter
def test_a_keyword_of_a_call_is_no_tensor(site: Site, chapter: str) -> None:
    for tensor in site.soup(chapter).select(".t"):
        behind = tensor.parent and tensor.parent.next_sibling
        called = behind is not None and behind.get_text() == "="
        line = tensor.find_parent(class_="ln")
        assert line is not None
        assert not called or line.get_text().lstrip().startswith(tensor.get_text())


@every_chapter
def test_the_page_ends_with_what_the_chapter_is(site: Site, chapter: str) -> None:
    foot = site.soup(chapter).select_one("main > section ~ .chapter-facts")
    assert foot is not None
    facts = {
        term.get_text(): term.find_next_sibling("dd") for term in foot.select("dt")
    }
    source, runs, last = facts["Source"], facts["Runs in"], facts["Last run"]
    assert source and source.select_one("a[href]")
    assert runs and re.search(r"\d+ s", runs.get_text())
    assert last and (
        re.search(r"torch \d+\.\d+", last.get_text())
        or "import torch" not in site.module(chapter)
    )
    date = last.select_one("time")
    assert date and re.fullmatch(r"\d{4}-\d\d-\d\d", str(date["datetime"]))


@every_chapter
def test_the_title_block_lists_the_definitions(site: Site, chapter: str) -> None:
    text = site.module(chapter)
    top = ast.parse(text).body
    kinds = ast.ClassDef | ast.FunctionDef
    wanted = {
        node.name: definitions(text)[node.name]
        for node in top
        if isinstance(node, kinds)
    }
    listed = {}
    for link in site.soup(chapter).select(".glance a"):
        name, number = link.select("span:not(.leader)")
        listed[name.get_text()] = int(number.get_text().removeprefix("L"))
        assert link["href"] == f"#{name.get_text()}"
    assert listed == wanted


# -- what it printed and drew ------------------------------------------------------------


@every_chapter
def test_a_chapter_shows_what_it_printed_or_drew(site: Site, chapter: str) -> None:
    soup = site.soup(chapter)
    assert soup.select(".sbs__code .out")
    assert not soup.select(
        ".sbs__code img:not(.own img)"
    )  # figures are part of the page


@every_chapter
def test_no_output_tells_of_a_fault_or_of_the_machine(site: Site, chapter: str) -> None:
    outputs = site.soup(chapter).select(".sbs__code .out, .sbs__code .output")
    text = "\n".join(output.get_text() for output in outputs)
    faults = r"Traceback|Warning\b|\x1b\[|site-packages|/(home|root|tmp|Users|work)/"
    assert not re.findall(faults, text)


@every_chapter
def test_a_figure_has_a_name(site: Site, chapter: str) -> None:
    names = []
    for figure in site.soup(chapter).select("svg.plot"):
        assert figure["role"] == ("group" if figure.select("a") else "img")
        name = str(figure["aria-label"])
        assert 2 < len(name) < 250
        assert not re.search(r"[\\$`{}*]", name), name
        names.append(name)
    cells = [name for name, _figures in groupby(names)]  # one may draw several
    assert sorted(cells) == sorted(set(cells))


@pytest.mark.parametrize(
    "of", ["results", "positions", "ours", "parts", "mdha", "sizes", "transfer"]
)
def test_figures_of_recorded_runs_say_what_they_rest_on(site: Site, of: str) -> None:
    figures = site.soup(f"experiments/chapters/{of}").select(".plot")
    assert figures
    for figure in figures:
        words = figure.get_text(" ", strip=True)
        data = "(?:characters|code|subwords)(?:(?:, code)? and subwords)?"
        assert re.search(rf"\d seeds, {data}, [\d. to]+ trillion multiply-adds", words)


def test_the_curves_of_the_race_have_names(site: Site) -> None:
    race = site.soup("labml_primer/primer/primer_ez").select(".plot:has([data-axes])")
    names = [{str(c["data-curve"]) for c in r.select("[data-curve]")} for r in race]
    assert {"Transformer", "Primer-EZ"} in names


# -- differences, deviations, exercises --------------------------------------------------


@pytest.mark.parametrize(
    ("where", "base", "variant"),
    [
        (PRIMER, "MultiHeadAttention", "MultiDConvHeadAttention"),
        (PRIMER, "PositionwiseFeedForward", "PositionwiseFeedForward(activation=SquaredReLU)"),
        (VARIATIONS, "MultiDConvHeadAttention", "MultiDSharedConvHeadAttention"),
        (VARIATIONS, "MultiDConvHeadAttention", "MultiDPHConvHeadAttention"),
        ("book/pages/example", "MovingAverage", "Novelty"),
    ],
    ids=lambda value: value.split("/")[-1],
)  # fmt: skip
def test_a_difference_shows_signs_and_changed_words(
    site: Site, where: str, base: str, variant: str
) -> None:
    shown = [
        figure
        for figure in site.soup(where).select(".vdiff")
        if [c.get_text() for c in figure.select(".vdiff__head code")] == [base, variant]
    ]
    assert len(shown) == 1
    for kind, sign, word in (("del", "-", "removed: "), ("add", "+", "added: ")):
        for line in shown[0].select(f".ln--{kind}"):
            number, said = line.select_one(".lno"), line.select_one(".visually-hidden")
            assert number and number["data-sign"] == sign
            assert said and said.get_text() == word
        assert shown[0].select(f".ln--{kind}")
    assert shown[0].select(".ln--add mark")


@pytest.mark.parametrize("where", [PRIMER, VARIATIONS])
def test_a_line_of_a_difference_leads_to_the_line_it_is(site: Site, where: str) -> None:
    for link in site.soup(where).select(".vdiff .lno[href]"):
        page, _, fragment = str(link["href"]).partition("#")
        name = (site.folder / where).parent / (page.removesuffix(".html"))
        other = str(name.resolve().relative_to(site.folder)) if page else where
        target = site.soup(other).find(id=fragment)
        assert target and link["aria-label"] == f"line {fragment[1:]}"


@every_chapter
def test_a_deviation_says_from_what_in_a_sentence(site: Site, chapter: str) -> None:
    for title in site.soup(chapter).select(".note--deviation > .note__title"):
        assert re.match(r"Deviation from (the |[A-Z])", title.get_text())


@every_chapter
def test_a_chapter_asks_a_question_and_proves_its_answer(
    site: Site, chapter: str
) -> None:
    exercises = site.soup(chapter).select(".sbs__row:has(.note--exercise)")
    assert exercises or not chapter.startswith(TAUGHT)
    for exercise in exercises:
        solution = exercise.select_one("details.solution:not([open])")
        assert solution is not None
        for part, what in (
            (".solution__body > p", "words, below `:::{solution}`"),
            (".code", "code that checks its claim"),
            (".out", "an output: print what the code computes"),
        ):
            assert solution.select(part), f"{chapter}.py: a solution needs {what}"
        code = "\n".join(block.get_text() for block in solution.select(".code"))
        assert re.search(
            r"\bassert(_close)?\b", code
        )  # it ran, so what it claims holds
