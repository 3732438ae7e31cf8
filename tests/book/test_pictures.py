"""The book's own pictures: their links, words and descriptions."""

import math
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from drawing.canvas import CODE, WIDTH, Canvas
from sphinx_annotated.page.directives.pictures import HREF, drawn, place_of
from sphinx_annotated.read.modules import Project

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "book" / "pictures"
NAMES = sorted(path.stem for path in FOLDER.glob("*/[a-z]*.py"))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def project() -> Project:
    return Project(ROOT)


@pytest.fixture(params=NAMES)
def svg(request: pytest.FixtureRequest) -> str:
    return drawn("pictures", request.param)


def test_every_picture_is_shown_by_a_page() -> None:
    pages = [
        *ROOT.glob("labml_primer/**/*.py"),
        *ROOT.glob("experiments/chapters/*.py"),
    ]
    pages += [*ROOT.glob("book/pages/*.*"), *ROOT.glob("benchmarks/*.py")]
    shown = {
        name
        for page in pages
        for name in re.findall(r"\{picture\} (\w+)", page.read_text(encoding="utf-8"))
    }
    assert shown == set(NAMES)


def test_every_box_that_is_a_link_leads_to_a_definition(
    svg: str, project: Project
) -> None:
    for target in HREF.findall(svg):
        place_of(target, project)


def test_every_picture_leads_somewhere_and_tab_stops_once_at_each_place(
    svg: str,
) -> None:
    links = re.findall(r'<a href="([^"]*)"([^>]*)>', svg)
    stops = [target for target, more in links if "tabindex" not in more]
    assert links, "link a box of the picture to a definition: canvas.box(..., link=...)"
    assert sorted(stops) == sorted({target for target, _ in links})


def test_each_primitive_leads_to_its_own_place(project: Project) -> None:
    targets = HREF.findall(drawn("pictures", "primitives"))
    assert len({place_of(target, project) for target in targets}) == 39
    mutations = HREF.findall(drawn("pictures", "mutations"))
    assert len(set(mutations)) == 6


def test_a_picture_is_as_wide_as_a_phone_and_describes_itself(svg: str) -> None:
    root = ElementTree.fromstring(svg)
    assert root.attrib["viewBox"].split()[:3] == ["0", "0", str(WIDTH)]
    assert float(root.attrib["viewBox"].split()[3]) < 700  # less than a screen
    description = root.findtext(f"{SVG}desc") or ""
    assert root.attrib["aria-label"], "give the Canvas a title"
    assert description.count(". ") + 1 >= 2, (
        f"the description of a picture needs two sentences, the second argument of its Canvas: {description}"
    )


def test_colours_come_from_the_theme(svg: str) -> None:
    own = re.sub(r"<style>.*?</style>", "", svg, flags=re.DOTALL)
    assert not re.search(r"#[0-9a-fA-F]{3,6}\b|\brgb|(fill|stroke)=", own)


def test_steps_end_with_the_whole_picture(svg: str) -> None:
    root = ElementTree.fromstring(svg)
    groups = [each for each in root.iter() if "data-at" in each.attrib]
    last = int(root.attrib.get("data-steps", 0))
    for each in groups:
        steps = {int(number) for number in each.attrib["data-at"].split()}
        assert steps and steps <= set(range(1, last + 1))
        assert (each.attrib.get("class") == "off") == (last not in steps)
    assert bool(groups) == bool(last)


def test_markup_in_words_becomes_spans_and_indices_return_to_the_line() -> None:
    canvas = Canvas(10, "Title", "Words.")
    canvas.words(0, 0, "a<b *q*_{i}`k`c")
    svg = re.sub(r' textLength="[^"]*"', "", canvas.svg())
    spans = re.findall(r"<tspan([^>]*)>([^<]*)", svg)
    assert spans == [
        (' class="i"', "q"),
        (' class="s" dy="3"', "i"),
        (' class="m" dy="-3"', "k"),
    ]
    assert "a&lt;b " in canvas.svg()


def test_code_in_a_picture_is_as_wide_in_every_font() -> None:
    canvas = Canvas(10, "Title", "Words.")
    canvas.words(0, 0, "`heads` and `q`")
    lengths = re.findall(r'textLength="([\d.]+)"', canvas.svg())
    assert [float(length) / CODE for length in lengths] == pytest.approx([5, 1])


def test_an_arrow_ends_at_its_last_point() -> None:
    canvas = Canvas(10, "Title", "Words.")
    canvas.arrow((0, 0), (30, 40))
    (head,) = re.findall(r'class="head" d="M([\d.]+) ([\d.]+)', canvas.svg())
    assert math.dist(map(float, head), (30, 40)) < 0.01
