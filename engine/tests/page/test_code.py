"""Highlighted lines of code."""

from sphinx_annotated.page.html.code import Highlighter
from sphinx_annotated.read.parse import parse


def test_a_keyword_in_a_call_is_not_marked_as_a_tensor() -> None:
    chapter = parse("x = f(x=x, y=g(x))\n")
    seen = {1: {"x": ("2, 3", "float32", True)}}
    segments = Highlighter(chapter, "m", "", seen).line(chapter.cells[0], 1)
    tensors = [tensor is not None for _, text, _, tensor in segments if text == "x"]
    assert tensors == [True, False, True, True]
