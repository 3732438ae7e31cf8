"""Hostile and unusual inputs: each is a chapter that gives a right page, or an error that helps.

To try one more, add it to ``RIGHT`` with what its page shows, or to ``WRONG`` with its message.
"""

import os
import re
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest
from small_books import Built, Shelf, run_chapter
from sphinx_annotated.read.syntax import ChapterError

New = Callable[[dict[str, str]], Shelf]


@dataclass
class Try:
    """A chapter, what its page shows, and what it does not."""

    text: str
    shows: tuple[str, ...] = ()
    hides: tuple[str, ...] = ()
    page: str = ""  # which it shares with others; a kernel takes a second to start


RIGHT = {
    "a_banner_is_a_note_without_its_rules": Try(
        '''
        # -----------------
        # Banner
        # -----------------
        x = 1
        # ======
        # Another
        y = 2
        ''',
        shows=("<p>Banner</p>", "<p>Another</p>"),
        hides=("-----", "====="), page="notes"),
    "a_rule_in_a_docstring_is_a_rule": Try(
        '''
        def f():
            """Above.

            ---

            Below.

            Parameters
            ----------
            x
            """
        ''',
        shows=("<p>Above.</p>", "<hr>", "<p>Below.</p>", ">Parameters</h"),
        hides=("-----",), page="notes"),
    "a_comment_after_a_docstring_is_shown": Try(
        '''
        def f():
            """A docstring."""  # then a comment
            return 1


        if __name__ == "__main__":  # behind the head
            f()
        ''',
        shows=("<p>A docstring.</p>", "then a comment", "behind the head"), page="notes"),
    "a_pragma_after_a_docstring_is_for_tools": Try(
        'def f():\n    """A docstring."""  # noqa: D200\n', hides=("D200",), page="notes"),
    "colours_and_control_characters_are_left_out": Try(
        r'''
        r"""# Colours

        Bell\x07 in prose.
        """

        if __name__ == "__main__":
            print("\x1b[31mred\x1b(B\x1b[0m, \x1b]0;title\x07bell\x07, o\x08k")
            print("10%\r99%")
            "a value"
        ''',
        shows=("red, bell, k", "99%", r"Bell\x07 in prose"),
        hides=("10%\r", "[31mred", "\x07", "\x1b", "\x08"),
    ),
    "half_a_character_is_printed_as_a_question_mark": Try(
        r'print("half: \ud800", flush=True)', shows=("half: ?",), hides=("\ud800",), page="outputs"),
    "a_link_that_is_a_script_is_dropped_from_figures": Try(
        '''
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots()
        axes.text(0, 0, "bad", url="java\\tscript:alert(1)")
        axes.text(0, 0, "worse", url="JavaScript:alert(1)")
        axes.text(0, 0, "good", url="https://example.org/")
        axes.text(0, 0, "near", url="other.html#here")
        plt.show()
        ''',
        shows=('href="https://example.org/"', 'href="other.html#here"'),
        hides=('="java\tscript', '="JavaScript'), page="figures"),
    "a_picture_with_a_script_shows_only_the_picture": Try(
        '''
        from IPython.display import SVG

        if __name__ == "__main__":
            SVG('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1" onload="alert(2)">'
                '<script>alert(3)</script><path d="M 0 0"/></svg>')
        ''',
        shows=('<path d="M 0 0"',),
        hides=("<script>alert", ' onload="'), page="figures"),
    "a_docstring_of_the_chapter_can_be_printed": Try(
        '"""# Documented\n\nA summary."""\n\nprint("it says", __doc__.split()[-1])\n',
        shows=("it says summary.",),
    ),
    "the_value_of_the_last_expression_of_a_step_is_shown": Try(
        '''
        if __name__ == "__main__":
            "hidden" + " by the next"
            "shown" + " as the last"
            # Then
            "hidden" + " by a semicolon";
        ''',
        shows=("'shown as the last'",),
        hides=("'hidden by the next'", "'hidden by a semicolon'"), page="outputs"),
    "a_figure_that_comments_cut_is_shown_once_and_whole": Try(
        '''
        import matplotlib.pyplot as plt

        if __name__ == "__main__":
            figure, axes = plt.subplots()
            # A title.
            axes.set_title("the title");
            # A label.
            axes.set_xlabel("the label");
        ''',
        shows=(">the title</text>", ">the label</text>"), page="figures"),
    "statements_on_one_line_run_once": Try(
        'x = 1; x += 1; print("x is", x)\n', shows=("x is 2",), hides=("x is 3",), page="outputs"),
    "a_sum_of_150_terms_is_read": Try(
        "print('sum', " + " + ".join(["1"] * 150) + ")\n", shows=("sum 150",), page="outputs"),
    "a_long_shape_note_costs_nothing": Try(
        '''
        import numpy as np

        x = np.ones(3)  # [9**9**9]
        y = np.ones(3)  # [1 << 10**9]
        z = np.ones(3)  # [3 // 0]
        ''', page="notes"),
    "a_printed_formula_and_markup_are_text": Try(
        'print("<b>$x$</b> {value}`1` :::{note}")\n',
        shows=("&lt;b&gt;$x$&lt;/b&gt; {value}`1` :::{note}",), page="outputs"),
    "an_empty_module": Try(""),
    "only_comments": Try("# Only.\n\n# Comments.\n", shows=("Only.", "Comments.")),
    "a_form_feed_between_statements": Try("x = 1\n\x0c\ny = 2\nprint(x + y)\n", shows=("3",)),
    "carriage_returns_end_lines": Try("x = 1\r\nprint('a', x)\r\n", shows=("a 1",)),
    "other_scripts_and_emoji": Try("größe = '日本 🎉'\nprint(größe)\n", shows=("日本 🎉",), page="outputs"),
}  # fmt: skip
LONG = '''
    """# Long"""

    if __name__ == "__main__":
        print("first")
        for i in range(4_000):
            print("line", i, "." * 94)
        # A value.
        "y" * 200_000
'''


def chapter_of(name: str, text: str) -> str:
    """The text of a chapter, with a title."""
    text = textwrap.dedent(text)
    return (
        text
        if text.lstrip().startswith(('"""# ', 'r"""# '))
        else f'"""# {name}"""\n{text}'
    )


@pytest.fixture(scope="module")
def right(shelf: New) -> Built:
    """A book of all these chapters."""
    pages: dict[str, str] = {}
    for name, each in RIGHT.items():
        page, text = each.page or name, textwrap.dedent(each.text)
        pages[page] = f"{pages[page]}\n\n{text}" if page in pages else text
    texts = {f"{page}.py": chapter_of(page, text) for page, text in pages.items()}
    book = shelf({**texts, "long.py": LONG})
    for name, text in texts.items():
        (book.root / name).write_bytes(text.lstrip("\n").encode())
    return book.well_built("-W", "--keep-going")


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_an_unusual_chapter_has_a_right_page(right: Built, name: str) -> None:
    html = right.page(RIGHT[name].page or name)
    prose_and_outputs = re.sub(r'<pre class="code".*?</pre>', "", html, flags=re.DOTALL)
    plain = unescape(re.sub(r"</?span[^>]*>", "", prose_and_outputs))
    for part in RIGHT[name].shows:
        assert part in plain or part in prose_and_outputs, part
    for part in RIGHT[name].hides:
        assert part not in plain, part
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", html)
    written = (right.root / f"{RIGHT[name].page or name}.py").read_text("utf-8")
    pictures = written.count("subplots()") + written.count("SVG(")
    assert html.count('<svg class="plot"') == pictures


@pytest.mark.slow
def test_a_long_output_is_cut_and_the_whole_is_a_link_away(right: Built) -> None:
    html = right.page("long")
    assert len(html) < 300_000
    links = re.findall(
        r'The first ([\d,]+) of ([\d,]+) characters. <a href="([^"]+)"', html
    )
    assert [total for _, total, _ in links] == ["418,896", "200,002"]
    whole = (right.root / "_build/html" / links[0][2]).read_text(encoding="utf-8")
    assert whole.startswith("first\nline 0 ..")
    assert whole.endswith(f"line 3999 {'.' * 94}\n")
    assert "line 3999" not in html


WRONG = {
    "a_sum_of_5000_terms": (
        "x = 1\ny = " + " + ".join(["x"] * 5000),
        r"2: this is nested more than 200 deep",
    ),
    "many_brackets": ("x = " + "[" * 5000 + "]" * 5000, "1: this is not Python: too many nested"),
    "half_a_character_in_a_docstring": (
        'def f():\n    """Half: \\ud83d"""\n',
        "2: this docstring contains half of a character",
    ),
    "an_exit": ("import sys\n\nx = 1\nsys.exit(3)\n", r"4: SystemExit: 3\n    sys.exit\(3\)"),
    "an_exit_in_a_function": (
        "def f():\n    raise SystemExit('over')\n\n\nf()\n", "2: SystemExit: over"
    ),
    "an_exit_before_the_end": ("x = 1\nexit()\ny = 2\n", "2: the program ends here"),
    "a_quit_with_a_number": ("x = 1\nquit(3)\n", "2: SystemExit: 3"),
    "a_value_that_cannot_be_shown": (
        "class A:\n    def __repr__(self):\n        raise ValueError('the reason')\n\n\nA()\n",
        "3: ValueError: the reason",
    ),
    "an_error_in_a_group": (
        "def f():\n    raise ExceptionGroup('several', [ValueError('one')])\n\n\nx = 1\nf()\n",
        r"2: ExceptionGroup: several \(1 sub-exception\)",
    ),
    "a_loop_without_an_end": (
        "x = 1\n\n\ndef f():\n    while True:\n        pass\n\n\nf()\n",
        "[56]: ran longer than 4 s",
    ),
    "a_sleep_in_a_function": (
        "import time\n\n\ndef f():\n    x = 1\n    time.sleep(60)\n\n\nf()\n",
        "6: ran longer than 4 s",
    ),
    "a_death_in_a_step": (
        "import os\n\nx = 1\ny = 2\nos._exit(1)\n", "5: the kernel died here"
    ),
    "a_crash_in_a_function": (
        "import ctypes\n\n\ndef f():\n    x = 1\n    ctypes.string_at(0)\n\n\nf()\n",
        "6: the kernel died here",
    ),
}  # fmt: skip


FURTHER = {
    "an_exit_in_a_function",
    "an_exit_without_sys",
    "a_quit_with_a_number",
    "an_error_in_a_group",
    "a_loop_without_an_end",
    "a_crash_in_a_function",
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.nightly] * (name in FURTHER))
        for name in WRONG
    ],
)
def test_a_wrong_chapter_is_an_error_with_its_line(tmp_path: Path, name: str) -> None:
    text, message = WRONG[name]
    timeout = 4 if "ran longer" in message else 60  # a busy machine is slow
    with pytest.raises(ChapterError, match=rf"one\.py:{message}"):
        run_chapter(text, tmp_path, timeout)


@pytest.mark.slow
def test_processes_that_a_chapter_left_running_end_with_it(tmp_path: Path) -> None:
    text = "import os, subprocess\n\nsleeper = subprocess.Popen(['sleep', '600'])\nif not os.fork():\n"
    text += "    import time\n\n    time.sleep(600)\n\nprint(sleeper.pid)\n"
    record = run_chapter(text, tmp_path)
    pid = int(record.outputs[-1][0]["text"])
    end = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    stat = Path(f"/proc/{pid}/stat")
    assert not stat.exists() or stat.read_text().split()[2] == "Z"
    assert os.getpid()  # and this process has not


ROWS = """
# Page

```{annotated-row} 0 0 0
By hand.
```

:::{annotated-remark} abc
By hand.
:::

:::{variant} A
:of: b.B
:::
"""


@pytest.mark.slow
def test_a_directive_of_the_engine_used_by_hand_is_an_error_with_its_line(
    shelf: New,
) -> None:
    text = '"""\n# One\n\nS.\n\n```{annotated-row} 0 0 0\nx\n```\n"""\n\nx = 1\n'
    book = shelf({"one.py": text, "page.md": ROWS})
    book.edit("index.md", "one", "one\npage")
    log = book.build("-W", "--keep-going").log
    for place in ("one.py:6", "page.md:3", "page.md:7"):
        found = re.search(
            rf"/{place}: .*\n?.*only the engine writes this directive", log
        )
        assert found, (place, log)
    assert re.search(r"/page\.md:11: .*\n?.*variant: only a chapter can show one", log)
    assert "Traceback" not in log
