"""What the family tree promises."""

from pathlib import Path

from experiments.family import FAMILY, depth
from labml_primer.compared.t5 import T5_PRESETS
from labml_primer.presets import PRESETS

ROOT = Path(__file__).parent.parent


def test_every_preset_is_in_the_family_and_nobody_else():
    assert set(FAMILY) == set(PRESETS) | set(T5_PRESETS)


def test_everyone_but_the_first_is_a_change_of_one_that_came_before():
    names = list(FAMILY)
    for n, name in enumerate(names):
        assert FAMILY[name].parent in ([""] if n == 0 else names[:n])


def test_children_stand_below_their_parent_and_before_its_next_sibling():
    """The order in which a tree is drawn: a line never crosses another."""
    way: list[str] = []
    for name in FAMILY:
        del way[depth(name) :]
        assert not way or way[-1] == FAMILY[name].parent
        way.append(name)


def test_every_name_leads_to_a_chapter():
    for relative in FAMILY.values():
        assert (ROOT / "labml_primer" / f"{relative.page}.py").is_file()
