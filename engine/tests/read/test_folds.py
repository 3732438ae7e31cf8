"""Code that only draws is found without a word of the author."""

import textwrap
from collections.abc import Callable

import pytest
from sphinx_annotated.read.chapter import Chapter
from sphinx_annotated.read.folds import folds

Parse = Callable[[str], Chapter]


def folded(chapter: Chapter, everything: bool = False) -> list[str]:
    """The folded lines, without indentation."""
    lines = set[int]().union(*(f.lines for f in folds(chapter, everything)))
    shown = [chapter.lines[n - 1].strip() for n in sorted(lines)]
    return [line for line in shown if line and not line.startswith("#")]


def demo(steps: str) -> str:
    body = textwrap.indent(textwrap.dedent(steps).strip(), "    ")
    return f'"""# One"""\n\nimport math\n\nif __name__ == "__main__":\n{body}\n'


def test_drawing_is_folded_from_its_first_statement_on(chapter: Parse) -> None:
    found = folded(
        chapter(
            demo("""
            # Look.
            import matplotlib.pyplot as plt

            values = [math.sin(x) for x in range(9)]
            fig, ax = plt.subplots()
            for value in values:
                ax.plot(value)
            highest = max(values)
            ax.set(title=highest)
            plt.show()
            print(highest)
            """)
        )
    )
    assert found == [
        "import matplotlib.pyplot as plt",
        "fig, ax = plt.subplots()",
        "for value in values:",
        "ax.plot(value)",
        "highest = max(values)",
        "ax.set(title=highest)",
        "plt.show()",
    ]


def test_steps_share_the_names_of_what_is_drawn_on(chapter: Parse) -> None:
    found = folded(
        chapter(
            demo("""
            import matplotlib.pyplot as plt

            # One.
            figure, (left, right) = plt.subplots(1, 2)
            # Two.
            left.plot([1])
            right.plot([2])
            plt.show()
            # Three: another meaning of a name.
            left = 3
            right = left + 4
            print(left, right)
            """)
        )
    )
    assert found == ["left.plot([1])", "right.plot([2])", "plt.show()"]


@pytest.mark.parametrize(
    "head",
    [
        "def curve(where: Axes, x: float) -> None:",
        "def curve(where: plt.Axes | None, x: float) -> None:",
        "def curve(ax, x):",
    ],
)
def test_functions_that_draw_are_folded(chapter: Parse, head: str) -> None:
    text = f"{head}\n    y = x\n    use(y)\n    use(x)\n"
    plots = '"""# One"""\n\nif TYPE_CHECKING:\n    from matplotlib.axes import Axes\n\n'
    found = folded(chapter(plots + text))
    assert found[-4:] == [head, "y = x", "use(y)", "use(x)"]
    # In a module that does not plot, axes are those of an array.
    assert folded(chapter('"""# One"""\n\nfrom arrays import Axes\n\n\n' + text)) == []


def test_functions_with_plots_inside_are_folded_and_others_are_not(
    chapter: Parse,
) -> None:
    text = demo("""
        # One.
        def curve(x):
            import matplotlib.pyplot as plt

            plt.plot(x)

        def double(axis):
            return 2 * axis

        x = double(1)
        curve(x)
        """)
    assert folded(chapter(text)) == [
        "def curve(x):",
        "import matplotlib.pyplot as plt",
        "plt.plot(x)",
        "curve(x)",
    ]


def test_two_lines_are_not_worth_a_fold(chapter: Parse) -> None:
    text = demo("""
        import matplotlib.pyplot as plt

        x = 1
        plt.plot(x)
        """)
    assert folded(chapter(text)) == []


def test_a_step_that_builds_a_table_is_folded_whole(chapter: Parse) -> None:
    text = demo("""
        # A table.
        from book import Table

        rows = [[x, 2 * x] for x in range(9)]
        display(Table(["x", "twice"], rows))
        print("more")
        # Without `display`.
        rows = [[1]]
        more = [[2]]
        tables.SourcedTable(["a"], rows + more)
        # Two lines.
        rows = []
        Table(["a"], rows)
        # Kept for later, and something else.
        table = Table(["a"], rows)
        number = len(rows)
        display(number)
        """)
    assert folded(chapter(text)) == [
        "from book import Table",
        "rows = [[x, 2 * x] for x in range(9)]",
        'display(Table(["x", "twice"], rows))',
        'print("more")',
        "rows = [[1]]",
        "more = [[2]]",
        'tables.SourcedTable(["a"], rows + more)',
    ]
    assert (
        folded(chapter('"""# One"""\n\n"""A table."""\nrows = [1]\nTable(rows)\n'))
        == []
    )


def test_one_word_says_where_a_fold_begins(chapter: Parse) -> None:
    text = demo("""
        # Computed and drawn.
        import matplotlib.pyplot as plt

        fig, ax = plt.subplots()
        x = math.pi
        rows = [  #: fold
            x
        ]
        print(rows)
        # Next.
        print("shown")
        """)
    assert folded(chapter(text)) == ["rows = [  #: fold", "x", "]", "print(rows)"]


def test_everything_but_a_solution_can_be_folded(chapter: Parse) -> None:
    text = demo("""
        # Results.
        print(1)
        # :::{exercise} Two
        # What?
        # :::
        print(2)
        """)
    assert folded(chapter(text), everything=True) == ["import math", "print(1)"]


def test_a_fold_says_what_it_is_the_code_of(chapter: Parse) -> None:
    text = demo("""
        # A figure.
        import matplotlib.pyplot as plt

        plt.plot([1])
        # A table.
        from book import Table

        Table(["a"], [[1]])
        # A table from elsewhere.
        display(table)
        # A print, and an import for later.
        from matplotlib.axes import Axes

        print(3)
        """)
    found = [fold.title for f in folds(chapter(text), True) for fold in f.at.values()]
    assert found == [
        "Code",
        "Code of this figure",
        "Code of this table",
        "Code of this table",
        "Code",
    ]
