"""The book's font is the one in which its figures are measured."""

from pathlib import Path

import matplotlib
import pytest
import theme
from matplotlib.font_manager import FontProperties, findfont
from sphinx_annotated.run.fonts import unpacked, use


@pytest.mark.parametrize(
    ("style", "file"),
    [
        ({}, "serif-regular.ttf"),
        ({"weight": "bold"}, "serif-bold.ttf"),
        ({"style": "italic"}, "serif-i-regular.ttf"),
    ],
)
def test_matplotlib_measures_words_and_formulas_with_the_fonts_of_the_page(
    tmp_path: Path, style: dict[str, str], file: str
) -> None:
    static = theme.FOLDER / "static"
    with matplotlib.rc_context():
        use(unpacked([static / "serif.woff2", static / "serif-i.woff2"], tmp_path))
        assert Path(findfont(FontProperties(**style))).name == file  # type: ignore[arg-type]
        formula = FontProperties(matplotlib.rcParams["mathtext.it"])
        assert formula.get_style() == "italic"
        assert "Source Serif 4" in formula.get_family()
