"""The notebook that becomes a page of the site."""

from typing import Any

from sphinx_annotated.page.chapter.site_notebook import site_notebook
from sphinx_annotated.read.parse import parse
from sphinx_annotated.run.store import Record


def test_prints_are_joined_but_not_across_a_figure() -> None:
    def said(text: str, name: str = "stdout") -> dict[str, Any]:
        return {"output_type": "stream", "name": name, "text": text}

    drawn = {
        "output_type": "display_data",
        "data": {"text/plain": ["F"]},
        "metadata": {},
    }
    chapter = parse("x = 1\n")
    outputs = [said("a"), said("w", "stderr"), said("b"), drawn, said("c")]
    notebook = site_notebook(chapter, Record(outputs=[outputs]))
    shown = notebook.cells[-1].outputs
    assert [o.get("text", "figure") for o in shown] == ["ab", "figure", "c"]


def test_the_description_of_a_constant_is_not_shown_as_a_result() -> None:
    result = {
        "output_type": "execute_result",
        "data": {"text/plain": ["'words'"]},
        "metadata": {},
    }
    outputs = [{**result, "execution_count": 1}]
    described = site_notebook(parse('X = 1\n"""words"""\n'), Record(outputs=[outputs]))
    assert described.cells[-1].cell_type == "markdown"
    asked = site_notebook(parse("X = 1\nX\n"), Record(outputs=[outputs]))
    assert asked.cells[-1].cell_type == "code"
