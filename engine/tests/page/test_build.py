"""The pages of a built book: many tests on one build of one book."""

import re
import shutil
import textwrap
from collections.abc import Callable
from html import unescape

import pytest
from small_books import Built, Shelf

ONE = '''
    r"""
    # One

    A summary with $x^2$.

    See {py:func}`two.twice`, {ref}`the label <there>`, {doc}`two` and {cite:t}`ada1843`.[^note]

    :::{note}
    A note in prose.
    :::

    Here `scale` is $S$.

    $$y = x$$ (eq)

    [^note]: A footnote.
    """

    import sys

    import matplotlib.pyplot as plt
    from IPython.display import Image

    from lib.helper import SCALE, Table


    def scale(x: int) -> int:
        """## Scale

        Multiplies. Zanzibar.
        """
        # (there)=
        # By a constant.
        #
        # :::{deviation} the *paper*
        # It adds.
        # :::
        return x * SCALE


    if __name__ == "__main__":
        # ## It runs
        #
        # Printed.
        print("printed", scale(2))
        # A table.
        Table()
        # Two curves, drawn. And more.
        figure, axes = plt.subplots()
        axes.plot([1, 2, 3])
        axes.plot([3, 2, 1])
        plt.show()
        # A picture.
        Image(data=bytes.fromhex(PNG))
        # Warned.
        print("to the author", file=sys.stderr)
        print(__name__, __package__)
        # Done.


    class Thing:
        """## Thing"""

        def double(self) -> int:
            """Doubles."""
            return self.once() * 2

        def once(self) -> int:
            return scale(1)


    # ## Colours
    #
    # Not a definition.
    color = 1


    def colours() -> None:
        """### colours"""


    def twin(x: int) -> int: ...


    def twin(x: int) -> int:  # noqa: F811
        return x
'''
PNG = (
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c"
    "6360606060000000050001a5f645400000000049454e44ae426082"
)
FILES = {
    "lib/__init__.py": "",
    "lib/helper.py": """
        SCALE = 2


        class Table:
            def _repr_html_(self):
                return "<table><tr><td>cell</td></tr></table>"
    """,
    "one.py": ONE.replace("PNG", repr(PNG)),
    "two.py": '''
        """
        # Two

        Another.
        """

        from one import Thing, scale


        def twice(x: int) -> int:
            """## Twice"""
            local = scale
            return scale(scale(x))


        class L7:
            """A name that a line has, too."""


        if __name__ == "__main__":
            scale = scale(Thing().double())
    ''',
    "pkg/__init__.py": "",
    "pkg/sub/__init__.py": "",
    "pkg/far.py": "far = 'from afar'\n",
    "pkg/sub/near.py": "near = 'nearby'\n",
    "pkg/sub/inner.py": """
        '''# Inner'''

        from .near import near
        from ..far import far

        if __name__ == "__main__":
            print(near, far, __package__, __file__.rpartition("/")[2])
    """,
    "refs.md": "# References\n\n```{bibliography}\n```\n",
    "index.md": "# Book\n\n```{toctree}\n:caption: Part\n\none\ntwo\npkg/sub/inner\nrefs\n```\n",
    "refs.bib": "@book{ada1843, title={Notes}, author={Lovelace, Ada}, publisher={Taylor}, year={1843}}\n",
}


# Prints how many documents are in memory when one more is read.
COUNTING = """
def setup(app):
    def count(app, doctree):
        print("in memory:", len(getattr(app.env, "_write_doc_doctree_cache", ())))

    app.connect("doctree-read", count)
"""


@pytest.fixture(scope="module")
def book(shelf: Callable[[dict[str, str]], Shelf]) -> Shelf:
    made = shelf(FILES)
    made.edit(
        "conf.py",
        '["sphinx_annotated"]',
        '["sphinx_annotated", "sphinxcontrib.bibtex"]',
    )
    made.edit(
        "conf.py",
        "annotated_workers",
        'bibtex_bibfiles = ["refs.bib"]\nannotated_workers',
    )
    made.edit("conf.py", '"lib"', '"lib", "pkg/far.py", "pkg/sub/near.py"')
    made.configure(COUNTING)
    return made


@pytest.fixture(scope="module")
def built(book: Shelf) -> Built:
    return book.well_built("-W", "--keep-going")


def row_of(page: str, line: int) -> str:
    """The HTML of the row with a line of the module, up to the next row."""
    (row,) = [
        part
        for part in page.split('<div class="sbs__row')[1:]
        if f'id="L{line}"' in part
    ]
    return row


def line_of(text: str) -> int:
    """The line of a text in the module ``one``, counted from 1."""
    lines = textwrap.dedent(FILES["one.py"]).lstrip("\n").split("\n")
    return next(n for n, line in enumerate(lines, 1) if text in line)


def typed(html: str) -> str:
    """The text of HTML, with its blanks."""
    return unescape(re.sub(r"<[^>]+>", "", html))


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ('print("printed"', "printed 4"),
        ("    Table()", '<div class="out out--table"><table><tr><td>cell</td></tr>'),
        ("plt.show()", '<figure class="out out--plot"><svg class="plot"'),
        ("Image(data", '<img alt="A picture" src="_images/'),
        ("print(__name__", "__main__"),
    ],
)
def test_an_output_is_in_the_row_of_its_code(
    built: Built, line: str, output: str
) -> None:
    page = built.page("one")
    row = row_of(page, line_of(line))
    assert output in row[row.index("sbs__code") :]
    assert page.count(output) == row.count(output)


def test_the_files_that_a_page_asks_for_are_in_the_site_whatever_the_book_excludes(
    built: Built,
) -> None:
    asked = re.findall(r'(?:src|href)="(_[^"?]+)', built.page("one"))
    assert {"_static/annotated.js", "_static/annotated.css"} <= set(asked)
    site = built.root / "_build/html"
    assert [name for name in asked if not (site / unescape(name)).is_file()] == []


def test_every_line_of_code_is_shown_once_with_its_number_and_anchor(
    built: Built,
) -> None:
    found = re.findall(
        r'<span class="ln[^"]*" id="L(\d+)">(.*?)\n</span>',
        built.page("one"),
        re.DOTALL,
    )
    lines = (built.root / "one.py").read_text(encoding="utf-8").split("\n")
    for number, html in found:
        source = lines[int(number) - 1]
        assert typed(html) in (source, source[4:]), number
    numbers = [int(number) for number, _ in found]
    assert numbers == sorted(set(numbers))
    assert line_of("return scale(1)") in numbers


def test_copied_code_contains_no_line_numbers(built: Built) -> None:
    row = row_of(built.page("one"), line_of("return x * SCALE"))
    assert (
        typed(row[row.index("<pre") : row.index("</pre>")]) == "    return x * SCALE\n"
    )


def test_figures_follow_the_theme_and_leak_nothing(built: Built) -> None:
    figures = re.findall(
        r'<figure class="out out--plot">.*?</figure>', built.page("one"), re.DOTALL
    )
    assert len(figures) == 1
    for name in ("0", "1", "axis", "muted"):
        assert f"var(--fig-{name}, #" in figures[0]
    assert "<style" not in figures[0]
    assert "<metadata" not in figures[0]
    assert 'role="img" aria-label="Two curves, drawn"' in figures[0]
    links = re.findall(r'(?:href="|url\()#([^")]+)', figures[0])
    ids = re.findall(r' id="([^"]+)"', figures[0])
    assert links
    assert set(links) == set(ids)


def test_ids_of_a_page_are_unique(built: Built) -> None:
    for name in ("one", "two"):
        ids = re.findall(r'\sid="([^"]+)"', built.page(name))
        assert len(ids) == len(set(ids))
    assert re.search(r'<div class="[^"]*\bdef\b[^"]*" id="L7">', built.page("two"))


def test_stderr_is_shown_only_to_the_author(built: Built) -> None:
    assert "one wrote to stderr: to the author" in built.log
    assert built.page("one").count("to the author") == 1  # the code


@pytest.mark.parametrize(
    "name", ["scale", "Thing", "Thing.double", "Thing.once", "colours", "twin"]
)
def test_every_definition_has_an_anchor_of_its_own_name(
    built: Built, name: str
) -> None:
    (box,) = re.findall(
        rf'<div class="([^"]*)" id="{re.escape(name)}">', built.page("one")
    )
    assert box.startswith("sbs__block def ")


def test_a_definition_gets_its_anchor_before_a_heading_of_its_name(
    built: Built,
) -> None:
    page = built.page("one")
    assert '<h2 id="colours-section">' in page
    assert 'href="#colours-section"' in page


def test_names_in_code_link_to_definitions_here_and_in_other_chapters(
    built: Built,
) -> None:
    one, two = built.page("one"), built.page("two")
    assert '<a class="ref" href="#scale">' in row_of(one, line_of("return scale(1)"))
    assert '<a class="ref" href="#Thing.once">' in row_of(one, line_of("self.once()"))
    assert two.count('<a class="ref" href="one.html#scale">') == 5
    assert two.count('<a class="ref" href="one.html#Thing">') == 2


def test_roles_directives_math_notes_and_citations_work_in_rows(built: Built) -> None:
    page = built.page("one")
    prose = row_of(page, line_of("import sys"))
    for part in (
        'href="two.html#twice"',
        'href="#there"',
        'href="two.html">',
        'href="refs.html#',
        '<div class="admonition note">',
        'class="footnote-reference',
        'id="equation-eq"',
    ):
        assert part in prose, part
    assert 'id="there"' in page
    note = row_of(page, line_of("return x * SCALE"))
    assert '<details class="note note--deviation">' in note
    assert "Deviation from the <em>paper</em>" in note
    assert "ln--deviation" in note


def test_a_heading_is_at_the_top_of_its_note(built: Built) -> None:
    row = row_of(built.page("one"), line_of("def scale"))
    assert re.search(
        r'sbs__prose[^>]*>\s*<h2 id="[^"]*">Scale<a class="headerlink"', row
    )


def test_search_finds_words_of_prose_and_code(built: Built) -> None:
    index = (built.root / "_build/html/searchindex.js").read_text(encoding="utf-8")
    terms = index[index.index('"terms"') :]
    for word in ("zanzibar", "subplot", "constant"):
        assert word in terms, word


def test_modules_are_copied_to_the_site(built: Built) -> None:
    copied = built.root / "_build/html/_sources/one.py"
    assert copied.read_bytes() == (built.root / "one.py").read_bytes()


@pytest.mark.slow
def test_prose_of_rows_can_be_translated(book: Shelf, built: Built) -> None:
    done = book.well_built("-W", "--keep-going", builder="gettext")
    assert done.executed() == []
    text = (book.root / "_build/gettext/one.pot").read_text(encoding="utf-8")
    for message in (
        "One",
        "A summary with $x^2$.",
        "A note in prose.",
        "Printed.",
        "Doubles.",
    ):
        assert f'msgid "{message}"' in text, message
    assert f"one.py:{line_of('Multiplies. Zanzibar.')}\n" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("builder", "name"),
    [
        ("text", "one.txt"),
        pytest.param("latex", "fixture.tex", marks=pytest.mark.nightly),
    ],
)
def test_other_builders_show_code_and_outputs(
    book: Shelf, built: Built, builder: str, name: str
) -> None:
    book.well_built("-W", "--keep-going", builder=builder)
    text = (book.root / "_build" / builder / name).read_text(encoding="utf-8")
    for part in (
        "SCALE",
        "printed 4",
        "Deviation from",
        "Figure: Two curves, drawn",
    ):
        assert part in text, part


def test_relative_imports_work_in_the_cells_of_a_package(built: Built) -> None:
    assert "nearby from afar pkg.sub inner.py" in built.page("pkg/sub/inner")


def test_documents_that_were_read_are_not_kept_in_memory(built: Built) -> None:
    counts = re.findall(r"in memory: (\d+)", built.log)
    assert len(counts) > 3 and set(counts) == {"0"}


def test_a_tie_is_in_the_page(built: Built) -> None:
    page = built.page("one")
    assert '<span class="tie" data-tie="scale" tabindex="0"><code' in page
    assert re.search(r'<span class="tie" data-tie="scale"><span class="math', page)


EDITED = {
    "index.md": "# B\n\n```{toctree}\none\ntwo\nbase\nother\n```\n",
    "one.py": '''
        """# One

        Before."""

        from pathlib import Path

        path = Path("one.py")
        path.write_text(path.read_text().replace("Be" + "fore", "Af" + "ter"))
    ''',
    "two.py": '"""# Two"""\n',
    "base.py": """
        '''
        # Base

        Prose.
        '''


        class Base:
            '''## A base'''

            def size(self):
                return 1
    """,
    "other.py": """
        '''
        # Other
        '''

        from base import Base


        class Other(Base):
            '''
            ## Another

            :::{variant} Other
            :of: base.Base
            :::
            '''

            def size(self):
                return 2
    """,
}


@pytest.fixture(scope="module")
def before(shelf: Callable[..., Shelf]) -> Built:
    """A book whose first chapter edits itself while it runs."""
    book = shelf(EDITED)
    book.edit("conf.py", '"lib"', '"notebooks"')
    return book.well_built()


@pytest.fixture(scope="module")
def first(before: Built) -> Built:
    return before.copy()


@pytest.fixture(scope="module")
def second(before: Built, first: Built) -> Built:
    """The same book after edits: a new chapter, more prose in another, a committed notebook."""
    book = Shelf(before.root)
    book.write({"three.py": '"""# Three"""\n', "notebooks/two.ipynb": "{}"})
    book.edit("index.md", "two", "two\nthree")
    book.edit("base.py", "Prose.", "Prose.\n\nAnd more.")
    done = book.well_built()
    assert done.executed() == ["three"]
    return done


@pytest.mark.slow
def test_a_new_chapter_is_listed_on_every_existing_page(
    first: Built, second: Built
) -> None:
    for name in ("one", "two", "base", "other"):
        assert "three.html" not in first.page(name)
        assert "three.html" in second.page(name)


@pytest.mark.slow
def test_edits_during_a_build_are_shown_by_the_next_build(
    first: Built, second: Built
) -> None:
    assert "Before." in first.page("one")
    assert "After." in second.page("one")


@pytest.mark.slow
def test_a_notebook_that_was_committed_is_in_the_site_after_the_next_build(
    first: Built, second: Built
) -> None:
    notebook = "_build/html/notebooks/two.ipynb"
    assert not (first.root / notebook).exists()
    assert (second.root / notebook).is_file()


SAYS_COLAB = """
annotated_repository = {"url": "https://github.com/a/b"}
language = "fr"
def setup(app):
    def say(app, name, template, context, doctree):
        if context.get("chapter"):
            print(f"Colab opens {context['chapter'].get('colab')}.")
    app.connect("html-page-context", say, priority=900)
"""


@pytest.mark.slow
def test_colab_opens_the_notebook_of_the_pages_language_once_it_is_committed(
    shelf: Callable[..., Shelf],
) -> None:
    book = shelf({"one.py": '"""# One"""\n', "notebooks/one.ipynb": "{}"})
    book.edit("conf.py", '"lib"', '"notebooks"')
    book.configure(SAYS_COLAB)
    start = "Colab opens https://colab.research.google.com/github/a/b/blob/main"
    assert f"{start}/notebooks/one.ipynb." in book.well_built().log
    book.write({"notebooks/fr/one.ipynb": "{}"})
    assert f"{start}/notebooks/fr/one.ipynb." in book.well_built().log


@pytest.mark.slow
def test_a_difference_has_the_new_line_numbers_after_the_other_chapters_prose_changed(
    first: Built, second: Built
) -> None:
    def number(built: Built) -> int:
        """The line of the base that the other chapter's page shows as removed."""
        removed = re.findall(
            r'href="base.html#L(\d+)" data-sign="-"', built.page("other")
        )
        return int(removed[-1])

    assert number(second) == number(first) + 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "forgotten",
    [
        pytest.param(False, id="known", marks=pytest.mark.nightly),
        pytest.param(True, id="forgotten"),
    ],
)
def test_nothing_is_left_of_a_page_that_was_renamed_or_deleted(
    shelf: Callable[..., Shelf], forgotten: bool
) -> None:
    """`forgotten`: Sphinx starts without the memory of its last build, as after a change of an extension."""
    index = "# B\n\n```{toctree}\none\npkg/two\npkg/page\n```\n"
    long = '"""# Two"""\n\nprint("zanzibar " * 20_000)\n'
    book = shelf(
        {
            "index.md": index,
            "one.py": '"""# One\n\nSee {doc}`pkg/page`."""\n',
            "pkg/two.py": long,
            "pkg/page.md": "# Page\n\nMadagascar.\n",
            "notebooks/two.ipynb": "{}",
        }
    )
    book.edit("conf.py", "import sys\n", "import sys\nhtml_copy_source = False\n")
    book.edit("conf.py", '"lib"', '"notebooks"')
    site = book.root / "_build/html"

    def files() -> set[str]:
        return {
            path.relative_to(site).as_posix()
            for path in site.rglob("*")
            if re.search(r"two|page\.", path.name) and "static" not in str(path)
        }

    book.well_built()
    assert files() == {
        "_outputs/pkg/two-0-0.txt",
        "_sources/pkg/two.py",
        "notebooks/two-with-outputs.ipynb",
        "notebooks/two.ipynb",
        "pkg/page.html",
        "pkg/two.html",
    }
    (book.root / "pkg/two.py").rename(book.root / "pkg/three.py")
    (book.root / "pkg/page.md").unlink()
    book.edit("one.py", "See {doc}`pkg/page`.", "Text.")
    book.edit("index.md", "pkg/two\npkg/page", "pkg/three")
    if forgotten:
        shutil.rmtree(book.root / "_build/doctrees-html")
    other = '<html data-content_root="../">Of another extension.</html>'
    (site / "pkg/own.html").write_text(other)
    book.well_built()
    assert files() == set() and (site / "pkg/own.html").is_file()
    assert (site / "pkg/three.html").is_file()
    assert "pkg/two" not in (site / "searchindex.js").read_text(encoding="utf-8")
