"""Tests of the family tree."""

import re
from pathlib import Path

import pytest
from pictures.family import MODELS

from experiments.chapters.family import FAMILY
from experiments.chapters.paper import COLOURS, __data__
from experiments.paper_claims import read_paper
from labml_primer.compared.t5 import T5_PRESETS
from labml_primer.presets import PRESETS

ROOT = Path(__file__).parent.parent


def test_family_has_exactly_the_presets():
    assert set(FAMILY) == set(PRESETS) | set(T5_PRESETS)


def test_every_model_but_the_first_comes_after_its_parent():
    names = list(FAMILY)
    for n, name in enumerate(names):
        assert FAMILY[name].parent in ([""] if n == 0 else names[:n])


def depth(name: str) -> int:
    parent = FAMILY[name].parent
    return depth(parent) + 1 if parent else 0


def test_children_follow_their_parent_and_precede_its_next_sibling():
    """The tree is drawn in this order, so that no lines cross."""
    way: list[str] = []
    for name in FAMILY:
        del way[depth(name) :]
        assert not way or way[-1] == FAMILY[name].parent
        way.append(name)


def test_picture_has_the_same_tree_colours_and_pages_as_the_chapter():
    drawn = {
        name: (model.depth, model.colour.upper() or "C5")
        for name, model in MODELS.items()
    }
    assert list(drawn) == list(FAMILY)
    assert drawn == {name: (depth(name), FAMILY[name].colour) for name in FAMILY}
    for name, model in MODELS.items():
        module = "labml_primer." + FAMILY[name].page.replace("/", ".")
        assert f"{model.link}.".startswith(f"{module}."), name


def test_every_model_links_to_a_chapter():
    for relative in FAMILY.values():
        assert (ROOT / "labml_primer" / f"{relative.page}.py").is_file()


# What chapters call a model in their figures.
NAMES = {
    "Transformer": "transformer",
    "Vanilla Transformer": "transformer",
    "Vanilla Transformer*": "transformer",
    "Original T5": "t5",
    "gelu": "transformer-gelu",
    "Transformer+GELU": "transformer-gelu",
    "Transformer+GeLU*": "t5-gelu",
    "pp": "transformer-pp",
    "Transformer++": "transformer-pp",
    "T5++": "t5-pp",
    "squared-relu": "transformer-squared-relu",
    "mdha": "transformer-mdha",
    "convolution alone": "transformer-mdha",
    "Transformer+MDHA": "transformer-mdha",
    "Transformer+Sep Conv": "transformer-sep-conv",
    "Evolved": "evolved-transformer",
    "Evolved Transformer": "evolved-transformer",
    "Primer-EZ": "primer-ez",
    "Primer": "primer",
    "Primer-EZ Decoder": "t5-primer-ez-decoder",
    "Switch Transformer": "switch-transformer",
    "Switch Primer": "switch-primer",
    "Synthesizer": "synthesizer-dense",
    # Not a preset. Its colour is that of the change.
    "Synthesizer + Squared ReLU": "transformer-squared-relu",
}


@pytest.mark.parametrize(
    "table", ["table_1", "table_4", "table_5", "table_7", "table_8"]
)
def test_every_model_of_the_papers_tables_has_its_colour(table):
    for name in read_paper(__data__)[table].column("model"):
        assert COLOURS[name] == FAMILY[NAMES[name]].colour, name


def test_a_model_has_one_colour_in_every_chapter():
    """Where a chapter names models and their colours: `"name": "C0"`, or a tuple with it."""
    named = re.compile(r'"([\w+* -]+)": (?:\([^"]*)?(?:"[^"]*", )?"(C\d)')
    seen = set()
    for folder in ("labml_primer", "experiments", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            for name, colour in named.findall(path.read_text(encoding="utf-8")):
                preset = NAMES.get(name, name)
                if preset in FAMILY:
                    assert colour == FAMILY[preset].colour, (path, name)
                    seen.add(preset)
    assert seen >= {
        "transformer",
        "transformer-pp",
        "primer-ez",
        "primer",
        "evolved-transformer",
    }
