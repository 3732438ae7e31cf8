"""Tests of the family tree."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from pictures.primer.family import MODELS

from experiments.chapters.paper import __data__
from experiments.paper.tables import COLOURS, read_paper
from labml_primer.compared.t5 import T5_PRESETS
from labml_primer.presets import PRESETS

ROOT = Path(__file__).parents[3]


def test_family_has_exactly_the_presets():
    for name in MODELS.keys() ^ (PRESETS.keys() | T5_PRESETS.keys()):
        pytest.fail(
            f"{name}: a model is both a preset and, below the one that it changes, in MODELS of "
            "book/pictures/primer/family.py"
        )


def test_every_model_but_the_first_follows_its_parent_or_a_relative():
    """The tree is drawn in this order: a model is at most one level deeper than the one before."""
    depths = [model.depth for model in MODELS.values()]
    assert depths[0] == 0
    for before, depth in pairwise(depths):
        assert 1 <= depth <= before + 1


def colour(model: str) -> str:
    return MODELS[model].colour.upper() or "C5"


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
        assert COLOURS[name] == colour(NAMES[name]), name


def test_a_model_has_one_colour_in_every_chapter():
    """Where a chapter names models and their colours: `"name": "C0"`, or a tuple with it."""
    named = re.compile(r'"([\w+* -]+)": (?:\([^"]*)?(?:"[^"]*", )?"(C\d)')
    seen = set()
    for folder in ("labml_primer", "experiments", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            for name, named_colour in named.findall(path.read_text(encoding="utf-8")):
                preset = NAMES.get(name, name)
                if preset in MODELS:
                    assert named_colour == colour(preset), (path, name)
                    seen.add(preset)
    assert seen >= {
        "transformer",
        "transformer-pp",
        "primer-ez",
        "primer",
        "evolved-transformer",
    }
