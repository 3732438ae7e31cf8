"""A model has one colour, wherever figures show it."""

from pictures.primer import family

from experiments.measured.figures import WHOLE_MODELS
from experiments.paper.tables import COLOURS


def test_a_model_has_one_colour_in_figures_of_our_runs_and_of_the_papers() -> None:
    ours = {name: colour for name, colour, _ in WHOLE_MODELS.values()}
    shared = ours.keys() & COLOURS.keys()
    assert len(shared) >= 6
    assert {name: ours[name] for name in shared} == {n: COLOURS[n] for n in shared}


def test_orange_is_no_models_colour() -> None:
    """In pictures, it is what is new."""
    colours = {colour for _, colour, _ in WHOLE_MODELS.values()} | {*COLOURS.values()}
    assert "C1" not in colours
    assert "c1" not in {model.colour for model in family.MODELS.values()}
