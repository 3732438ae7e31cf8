"""A docstring is shown as it is written in the source, with a warning where Python reads another text."""

import pytest
from sphinx_annotated.read.docstrings import as_written
from sphinx_annotated.read.parse import parse


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r'"""Angle \theta, \frac{1}{2}, 3\times1."""', r"Angle \theta, \frac{1}{2}, 3\times1."),
        (r'"""In C:\new\table\bin\a."""', r"In C:\new\table\bin\a."),
        (r'"""Gradient \nabla f and \rho, \vec x."""', r"Gradient \nabla f and \rho, \vec x."),
        (r'"""Bell \x07, \033[1m, \u202e."""', r"Bell \x07, \033[1m, \u202e."),
        (r'"""Split at "\n" and "\t"; here."""', r'Split at "\n" and "\t"; here.'),
        (r'"""\frac{1}{2} & b \\ c & \times"""', r"\frac{1}{2} & b \\ c & \times"),
        (r'"""S = \sigma \\[2pt] L"""', r"S = \sigma \\[2pt] L"),
        (r'"""\\alpha \\ \theta \\\\ b"""', r"\alpha \\ \theta \\ b"),
    ],
)  # fmt: skip
def test_a_docstring_is_shown_as_written_and_python_misreads_it(
    source: str, text: str
) -> None:
    shown, misread = as_written(source)
    assert shown == text
    assert misread and misread in source


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (r'"One.\n\nTwo."', "One.\n\nTwo."),
        (r'"\nOne.\n"', "\nOne.\n"),
        (r'("One.\n" "Two.\n")', "One.\nTwo.\n"),
        (r'"""A \"quoted\" \'word\'."""', "A \"quoted\" 'word'."),
        (r'"""A \\theta and C:\\new."""', r"A \theta and C:\new."),
        (r'"""\u03b8, \N{GREEK SMALL LETTER ALPHA}, \xe9."""', "θ, α, é."),
        ('"""\\\nOne \\\nline."""', "One line."),
        (r'r"""A \theta \\ \n."""', r"A \theta \\ \n."),
        (r'"""A \d and \(x\)."""', r"A \d and \(x\)."),
        (r'u"One."', "One."),
    ],
)
def test_an_escape_that_means_itself_is_read(source: str, text: str) -> None:
    assert as_written(source) == (text, "")


def test_the_line_of_a_docstring_that_python_misreads_is_known() -> None:
    made = parse('"""# T"""\n\n\ndef f():\n    """Angle \\theta."""\n')
    assert made.misread == {5: r"\theta"}
    assert made.cells[1].rows[0].prose == r"Angle \theta."
