"""What every chapter promises: its module, line by line, beside its prose, with what it printed."""

import ast
import io
import re
import tokenize
from collections import Counter

import pytest
from built_book import Site, Visitor
from fontTools.ttLib import TTFont

# -- the module on the page -----------------------------------------------------------------


def code_lines(text: str) -> set[int]:
    """Lines that are neither blank, nor comment, nor docstring, nor the head of a demo."""
    lines = text.split("\n")
    kept = {n for n, line in enumerate(lines, 1) if line.strip()}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        alone = not token.line[: token.start[1]].strip()
        if token.type == tokenize.COMMENT and alone:
            kept.discard(token.start[0])
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, holders) and body and ast.get_docstring(node) is not None:
            kept -= set(range(body[0].lineno, (body[0].end_lineno or 0) + 1))
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            kept.discard(node.lineno)
    return kept


def definitions(text: str) -> dict[str, int]:
    """Every definition's dotted name, with its first line."""
    found: dict[str, int] = {}

    def look(node: ast.AST, outer: str) -> None:
        for child in ast.iter_child_nodes(node):
            name = outer
            if isinstance(child, ast.ClassDef | ast.FunctionDef):
                name = f"{outer}.{child.name}".strip(".")
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                found.setdefault(name, first)
            look(child, name)

    look(ast.parse(text), "")
    return found


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


def test_shown_lines_and_those_of_each_fold_are_in_order(
    site: Site, chapter: str
) -> None:
    soup = site.soup(chapter)
    folds = [fold.select(".ln[id]") for fold in soup.select("details.fold")]
    shown = [e for e in soup.select(".ln[id]") if not e.find_parent(class_="fold")]
    for lines in (shown, *folds):
        numbers = [int(str(e["id"])[1:]) for e in lines]
        assert numbers == sorted(numbers)


def test_the_name_of_a_definition_is_its_anchor(site: Site, chapter: str) -> None:
    soup = site.soup(chapter)
    for name, line in definitions(site.module(chapter)).items():
        block = soup.find(id=name)
        assert block is not None, name
        first = block.select_one(".ln")
        assert first is not None and first["id"] == f"L{line}", name


def test_the_title_block_says_what_the_chapter_is(site: Site, chapter: str) -> None:
    head = site.soup(chapter).select_one(".chapter-head")
    assert head is not None
    facts = {
        term.get_text(): term.find_next_sibling("dd") for term in head.select("dt")
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


# -- what it looks like ---------------------------------------------------------------------


def test_the_title_stands_at_the_top(visit: Visitor, chapter: str) -> None:
    page = visit(chapter).page
    bar, text = page.locator(".topbar"), page.locator(".chapter-head__text")
    above, below = bar.bounding_box(), text.bounding_box()
    assert above and below
    assert (
        below["y"] - above["height"] < 60
    )  # however many definitions are listed beside it


BASELINES = """() => {
  const baseline = (box, skip) => {
    const walk = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const node = walk.currentNode;
      if (!node.data.trim() || node.parentElement.closest(skip)) continue;
      if (node.parentElement.closest(".katex-display, table, .shape, .picture")) return null;
      const probe = document.createElement("span");
      probe.style.cssText = "display: inline-block; width: 0; height: 0";
      node.before(probe);
      const bottom = probe.getBoundingClientRect().bottom;
      probe.remove();
      return bottom;
    }
    return null;
  };
  const rows = [];
  for (const row of document.querySelectorAll(".sbs__row")) {
    const [prose, code] = row.children;
    const line = code.querySelector(".ln, summary, .out");
    if (!line || line.matches(".out") || !prose.textContent.trim()) continue; // a figure has no baseline
    const pair = [baseline(prose, ".katex-mathml"), baseline(line, ".lno")];
    if (pair.includes(null)) continue;
    rows.push([line.id || line.textContent, pair[0] - pair[1]]);
  }
  return rows;
}"""


def test_prose_and_code_of_a_row_share_their_first_baseline(
    visit: Visitor, chapter: str
) -> None:
    opened = visit(chapter).page
    rows = opened.evaluate(BASELINES)
    assert rows or opened.locator(".sbs__code > .sbs__block").count() == 0  # all folded
    assert [row for row in rows if abs(row[1]) > 1.5] == []


def test_the_columns_are_as_wide_as_reading_wants(visit: Visitor, chapter: str) -> None:
    opened = visit(chapter).page
    characters = opened.evaluate(
        """() => {
          const prose = document.querySelector(".sbs__prose"), text = prose.querySelector("p");
          const ruler = document.createElement("span");
          ruler.textContent = "The weights are computed from the words themselves, anew, ";
          ruler.style.whiteSpace = "pre";
          text.append(ruler);
          const one = ruler.getBoundingClientRect().width / ruler.textContent.length;
          ruler.remove();
          return prose.getBoundingClientRect().width / one;
        }"""
    )
    assert 34 <= characters <= 48
    fits = opened.evaluate(
        """() => {
          const code = document.querySelector(".code"), line = code.querySelector(".ln").cloneNode(true);
          line.removeAttribute("id");
          line.lastChild.before("m".repeat(88 - line.textContent.trimEnd().length));
          code.append(line);
          const fits = code.scrollWidth <= code.clientWidth;
          line.remove();
          return fits;
        }"""
    )
    assert fits


def test_no_code_and_no_output_is_cut_where_there_is_room(
    visit: Visitor, chapter: str
) -> None:
    opened = visit(chapter).page
    cut = opened.evaluate(
        """() => [...document.querySelectorAll(
                ".code, .out, .out pre, .sbs__code .output, .sbs__prose .katex-display")]
            .filter(e => e.scrollWidth > e.clientWidth + 1)
            .map(e => e.textContent.slice(0, 80))"""
    )
    assert cut == []


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


def test_code_is_copied_without_its_numbers(
    visit: Visitor, site: Site, chapter: str
) -> None:
    opened = visit(chapter).page
    opened.context.grant_permissions(["clipboard-read", "clipboard-write"])
    first = opened.evaluate(
        """() => {
          for (const fold of document.querySelectorAll("main details")) fold.open = true;
          const all = [...document.querySelectorAll(":not(.vdiff) > .code")];
          const code = all.reduce((a, b) => b.children.length > a.children.length ? b : a);
          getSelection().selectAllChildren(code);
          return Number(code.firstElementChild.id.slice(1));
        }"""
    )
    opened.keyboard.press("Control+c")
    copied = opened.evaluate("navigator.clipboard.readText()").rstrip("\n").split("\n")
    lines = site.module(chapter).split("\n")
    assert len(copied) > 1
    # Lines of prose between them leave no gap in the copy, so each is looked for behind the last.
    at = first - 1
    for line in copied:
        at = next(
            k
            for k in range(at, len(lines))
            if line.rstrip() in (lines[k], lines[k].removeprefix("    "))
        )
        at += 1


# -- what it printed and drew ---------------------------------------------------------------


def test_a_chapter_shows_what_it_printed_or_drew(site: Site, chapter: str) -> None:
    soup = site.soup(chapter)
    assert soup.select(".sbs__code .out")
    assert not soup.select(".sbs__code img")  # figures are part of the page


def test_no_output_tells_of_a_fault_or_of_the_machine(site: Site, chapter: str) -> None:
    outputs = site.soup(chapter).select(".sbs__code .out, .sbs__code .output")
    text = "\n".join(output.get_text() for output in outputs)
    faults = r"Traceback|Warning\b|\x1b\[|site-packages|/(home|root|tmp|Users|work)/"
    assert not re.findall(faults, text)


def test_a_figure_has_a_name(site: Site, chapter: str) -> None:
    names = []
    for figure in site.soup(chapter).select("svg.plot"):
        assert figure["role"] == ("group" if figure.select("a") else "img")
        name = str(figure["aria-label"])
        assert 2 < len(name) < 250
        assert not re.search(r"[\\$`{}*]", name), name
        names.append(name)
    assert sorted(names) == sorted(set(names))


def test_figures_take_the_colours_of_the_theme(visit: Visitor, chapter: str) -> None:
    opened = visit(chapter).page
    colours = """() => [...document.querySelectorAll("svg.plot")].map(figure =>
        [...figure.querySelectorAll("path, text, line, use")].map(
            e => getComputedStyle(e).stroke + getComputedStyle(e).fill))"""
    light = opened.evaluate(colours)
    opened.evaluate("document.documentElement.dataset.theme = 'dark'")
    dark = opened.evaluate(colours)
    for one, other in zip(light, dark, strict=True):
        assert one != other
        black = ("nonergb(0, 0, 0)", "rgb(0, 0, 0)none")
        assert not [c for c in other if c in black and one.count(c) > len(one) / 2]


def test_figures_have_only_characters_of_the_font_that_they_are_set_in(
    visit: Visitor, site: Site, chapter: str
) -> None:
    font = TTFont(site.folder / "_static" / "serif.woff2").getBestCmap()
    words = [text.get_text() for text in site.soup(chapter).select("svg.plot text")]
    missing = {c for text in words for c in text if ord(c) not in font}
    assert {c for c in missing if not c.isspace()} == set()
    families = visit(chapter).page.evaluate(
        """() => [...document.querySelectorAll("svg.plot text, svg.plot tspan")]
            .map(e => getComputedStyle(e).fontFamily.split(",")[0])"""
    )
    assert set(families) <= {'"Source Serif 4 drawn"'}


def test_the_words_of_a_figure_do_not_lie_on_each_other(
    visit: Visitor, chapter: str
) -> None:
    opened = visit(chapter).page
    crossed = opened.evaluate(
        """() => [...document.querySelectorAll("svg.plot")].flatMap((figure, i) => {
          const words = [...figure.querySelectorAll("text")].filter(t => t.textContent.trim().length > 3);
          const boxes = words.map(t => t.getBoundingClientRect());
          const found = [];
          for (let a = 0; a < words.length; a++) for (let b = a + 1; b < words.length; b++) {
            const x = Math.min(boxes[a].right, boxes[b].right) - Math.max(boxes[a].left, boxes[b].left);
            const y = Math.min(boxes[a].bottom, boxes[b].bottom) - Math.max(boxes[a].top, boxes[b].top);
            if (x > 2 && y > 4) found.push([i, words[a].textContent, words[b].textContent]);
          }
          return found;
        })"""
    )
    assert crossed == []


@pytest.mark.parametrize(
    "of", ["results", "ours", "parts", "mdha", "sizes", "transfer"]
)
def test_figures_of_recorded_runs_say_what_they_rest_on(site: Site, of: str) -> None:
    figures = site.soup(f"experiments/chapters/{of}").select(".plot")
    assert figures
    for figure in figures:
        words = figure.get_text(" ", strip=True)
        data = "characters(?: and subwords)?"
        assert re.search(rf"\d seeds, {data}, [\d. to]+ trillion multiply-adds", words)
