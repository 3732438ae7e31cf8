"""Prose of a module is shown as it was typed, except for markup that was meant."""

import re
from html import unescape

import pytest
from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser
from sphinx_annotated.read.prose import as_typed

EXTENSIONS = {"dollarmath", "colon_fence", "deflist", "fieldlist", "attrs_inline"}


def html(text: str) -> str:
    """What MyST makes of a note."""
    config = MdParserConfig(enable_extensions=EXTENSIONS, dmath_double_inline=True)
    return str(create_md_parser(config, RendererHTML).render(as_typed(text)))


def seen(text: str) -> str:
    """The text that a reader sees, on one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", "", html(text))).split())


@pytest.mark.parametrize(
    "text",
    [
        "It calls __init__, _private, coef_ and add_ of _all_ __slots__.",
        "2*x*y is x**2 + y**2*z, or (a)*(b)*c.",
        "Takes *args, **kwargs, a_b_c and *.py, foo* or bar*.",
        "Costs $5 and $6, or $1,000 and $2, or $HOME/$USER and $HOME:$PATH.",
        "Removes <s>, </s>, <pad>, <unk>, <!-- x -->, <select> and <title>.",
        "If a<b and c>d, a List<int> is <class 'int'> or <lambda:x>.",
        "By Ada Lovelace <ada@lovelace.org>.",
        "An &lt; and &nbsp; stay, as do AT&T and &copy.",
        "f[0](x), a[i][j](y) and g()[1](z) are calls.",
        "Tokens [x] and [^1] and [^abc], |a|b|, {name} and {a: b}.",
        "#!/bin/sh",
        "% of users and\n50\n% of them",
        "+++ and\n+++\nmore",
        "about\n~ 5 of\n~ 6",
        "in version\n1. Then",
        "x is a\n- b of c",
        "the product of x\n* y",
        "if a\n> b then",
        "shifted by x\n>> 2",
        "see issue\n# 5 of",
        "a\n-\nb",
        "a\n=\nb",
        "Title\n~~~~~\nText of __x__.",
        "a trailing\\\nbackslash\\",
        r"\d+ \. \w C:\new\table \\server\share",
        "[0]: first",
        "[1]: http://x.org/is_not_used",
        "| a | b |\n|---|---|\n| __x__ | 2*x*y |",
        "- an item of __x__\n- 2*x*y",
        "A :class:`Foo` of <a_b>",
    ],
)
def test_what_is_not_meant_as_markup_stays_as_typed(text: str) -> None:
    typed = text.replace("`", "")
    if text.startswith(("- ", "| ")):  # a list or a table
        typed = re.sub(r"\||-{3,}|^- ", "", typed, flags=re.MULTILINE)
    assert seen(text).split() == typed.split()
    assert not re.search("<(em|strong|del|s|blockquote|h\\d|dl)>", html(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("y = a\n- b\n+ c", "y = a - b + c"),
        ("the sum of\n+ a\nand then\n- b", "the sum of + a and then - b"),
        ("the sum of\n+ a\n- b\n+ c\n*", "the sum of + a - b + c *"),
    ],
)
def test_a_sum_over_several_lines_is_no_list(text: str, shown: str) -> None:
    assert seen(text) == shown
    assert "<li>" not in html(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("the *n*th *word* of **two words**", "<em>n</em>th <em>word</em> of <strong>"),
        ("(*x*), \"*y*\", *`z`*: *a*.", "(<em>x</em>), &quot;<em>y</em>&quot;, <em><code>z"),
        ("これは**重要**です", "<strong>重要</strong>"),
        ("***both***", "<em><strong>both</strong></em>"),
        ("*two\nlines*", "<em>two\nlines</em>"),
        ("`__x__` and ``2*x*y <s>``", "<code>__x__</code> and <code>2*x*y &lt;s&gt;</code>"),
        ("$a_b*c_d$ and $n$th of $5$", '<span class="math inline">a_b*c_d</span>'),
        ("$$\na_1*b*c < d\n$$", "a_1*b*c &lt; d"),
        ("[text of *it*](http://x.org/_a_)", '<a href="http://x.org/_a_">text of <em>'),
        ("<http://x.org/a_b_>", '<a href="http://x.org/a_b_">'),
        ("See [1].\n\n[1]: http://x.org", 'See <a href="http://x.org">1</a>'),
        ("One[^1].\n\n[^1]: Two.", 'class="footnote-ref"'),
        ("A list:\n- a\n- b", "<li>a</li>"),
        ("a list\n- a\n- b\n  - c", "<li>c</li>"),
        ("> a quotation", "<blockquote>"),
        ("Parameters\n----------\nx", "<h2>Parameters</h2>"),
        ("(label)=\n## A title", "<h2>A title</h2>"),
        ("```python\n__x__ <s>\n```", '<code class="language-python">__x__ &lt;s&gt;'),
        ("Then:\n\n    __x__ = 2*x*y", "<pre><code>__x__ = 2*x*y"),
        (r"an escaped \* and \_ and \$", "an escaped * and _ and $"),
    ],
)  # fmt: skip
def test_what_is_meant_as_markup_is_markup(text: str, shown: str) -> None:
    assert shown in html(text)


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ("| `x|y` | b |", ["<code>x|y</code>", "b"]),
        ("| a | ``x || `y` z``", ["a", "<code>x || `y` z</code>"]),
        (r"| `x\|y` | `z` |", ["<code>x|y</code>", "<code>z</code>"]),
        ("| $|x|$ | $5 |", [r'<span class="math inline">\vert x\vert</span>', "$5"]),
        ("| $$|x|$$ | b |", [r'<div class="math inline">\vert x\vert</div>', "b"]),
        ("| 5` | 6` |", ["5`", "6`"]),
    ],
)
def test_a_bar_in_code_or_a_formula_ends_no_cell(row: str, cells: list[str]) -> None:
    for text in (f"| A | B |\n|---|:-:|\n{row}", f"- {row}\n  |---|---|\n  | c | d |"):
        found = re.findall(
            r"<(?:th|td)\b[^>]*>\s*(.*?)\s*</t[hd]>", html(text), re.DOTALL
        )
        at = 0 if text.startswith("-") else 2
        assert found[at : at + 2] == cells and len(found) == 4


@pytest.mark.parametrize(
    ("text", "formulas", "words"),
    [
        ("$$a$$ and $$b$$", ["a", "b"], "and"),
        ("Text.\n\n$$a$$ and $$b$$ or $$c$$\n\nMore.", ["a", "b", "c"], "Text. and or More."),
        ("$$a$$ - $$b$$", ["a", "b"], "-"),
        ("$$a$$ 1. $$b$$", ["a", "b"], "1."),
        ("$$a$$ $$b$$ $$c$$", ["a", "b", "c"], ""),
        ("- $$a$$ and $$b$$\n- $$c$$", ["a", "b", "c"], "and"),
        ("> $$a$$ and $$b$$", ["a", "b"], "and"),
    ],
)  # fmt: skip
def test_two_formulas_on_a_line_stay_two(
    text: str, formulas: list[str], words: str
) -> None:
    shown = html(text)
    blocks = r'<div class="math (?:block|inline)">\s*(.*?)\s*</div>'
    assert re.findall(blocks, shown) == formulas, shown
    rest = re.sub(r"<[^>]+>", " ", re.sub(blocks, "", shown))
    assert rest.split() == words.split()
    noted = as_typed(f":::{{note}}\n{text}\n:::")
    assert noted == f":::{{note}}\n{as_typed(text)}\n:::"


@pytest.mark.parametrize(
    "text",
    [
        ">>> f(1)\n4",
        "Text.\n\n>>> f(1)\n4\n\nMore.",
        "Example:\n>>> f(1)\n4",
        "Example:\n    >>> f(1)\n    4\n\n    More.",
        "- an item\n\n  >>> f(1)\n  4\n- another",
        "- >>> f(1)\n  4\n- another",
        "Two:\n\n1. - >>> f(1)\n     4\n\nText.",
        ":::{note}\nText.\n\n>>> f(1)\n4\n:::",
    ],
)
def test_a_doctest_is_a_block_of_code_with_its_prompts(text: str) -> None:
    block = re.search(r" *```pycon\n(.*?)\n *```", as_typed(text), re.DOTALL)
    assert block and re.sub("^ +", "", block[1], flags=re.M) == ">>> f(1)\n4"


def test_a_doctest_that_starts_an_item_is_in_the_list() -> None:
    shown = html("- >>> f(1)\n  4\n- *>>>* or >>>")
    assert shown.count("<ul>") == 1 and shown.count("<li>") == 2
    assert re.search(r"<li>\s*<pre>.*&gt;&gt;&gt; f\(1\)\n4\n<", shown)
    assert "<blockquote>" not in shown and "<em>&gt;&gt;&gt;</em> or" in shown
    assert as_typed("Then:\n\n    - >>> f(1)") == "Then:\n\n    - >>> f(1)"


def test_doctests_with_a_blank_line_between_them_are_one_block() -> None:
    text = as_typed(">>> f(1)\n4\n\n>>> f(2)\n8")
    assert text == "```pycon\n>>> f(1)\n4\n\n>>> f(2)\n8\n```"


def test_a_doctest_in_a_block_of_code_stays_as_it_is() -> None:
    text = "```python\n>>> f(1)\n4\n```"
    assert as_typed(text) == text


def test_a_doctest_between_blank_lines_moves_no_line() -> None:
    text = "One.\n\n>>> f(1)\n4\n\nTwo."
    assert as_typed(text).split("\n")[-1] == "Two."
    assert as_typed(text).count("\n") == text.count("\n")


@pytest.mark.parametrize("name", ["note", "deviation", "exercise"])
def test_prose_inside_of_directives_stays_as_typed(name: str) -> None:
    text = as_typed(f":::{{{name}}} of __init__\n:class: a_b_\n\n2*x*y\n:::")
    title = "of __init__" if name == "note" else r"of \_\_init\_\_"
    assert text == f":::{{{name}}} {title}\n:class: a_b_\n\n2\\*x\\*y\n:::"


@pytest.mark.parametrize("name", ["code-block", "math", "variant", "picture"])
def test_the_content_of_directives_for_code_is_not_touched(name: str) -> None:
    text = f":::{{{name}}} __init__\n2*x*y <s>\n:::"
    assert as_typed(text) == text


@pytest.mark.parametrize(
    "formula",
    [
        r"$\{1, 2\}$",
        r"$\|x\|$",
        r"$50\%$",
        r"$i \in \{1, \ldots, h\}$",
        r"$f(x) \otimes g(x) $",
        "$$\\{x\\}$$",
        "$$\nx \\to y\n$$",
    ],
)
def test_a_formula_may_end_in_an_escape_or_a_line(formula: str) -> None:
    made = html(f"The formula {formula} is one")
    assert made.count('class="math') == 1 and "$" not in made
    assert seen(formula).split() == formula.strip("$").split()
