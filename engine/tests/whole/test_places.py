"""Links by address, places that HTML names, front matter, and errors: each has its place."""

import re
from collections.abc import Callable

import pytest
from small_books import Built, Shelf, words

pytestmark = pytest.mark.slow
New = Callable[..., Shelf]
FILES = {
    "parts/__init__.py": '''
        """
        ---
        title: "Parts"
        summary: >
          A "summary" over
          two lines
        ---

        # Parts

        - [A layer](layer.html)
        - [Its core](layer.html#core) and [its class](layer.html#Layer)
        - [Nothing](gone/index.html) and [no place](layer.html#nothing)
        """
    ''',
    "parts/layer.py": '''
        """
        ---
        title: Layers
        summary: One line
        ---

        Text. <a id="here"></a> See [here](#here), [the class](#Layer), [all](index.html), [up](../parts/).
        """


        class Layer:
            """
            <a id="Layer"></a>

            ## [Layers](index.html) and [others](https://example.org)

            Words.
            """

            def forward(self):
                """
                <a id="core"></a>

                ### The core

                It says <a> and <a id="x">.
                """
    ''',
}
FILES["parts/args.py"] = '''
    """Arguments."""

    __docformat__ = "google"


    def f(x, y):
        """Return nothing.

        Args:
            x: A number.
            y: Another, as in `a paper`_.
        """
'''
FAULT = """
def setup(app):
    from docutils import nodes
    from sphinx.transforms import SphinxTransform
    from sphinx.transforms.post_transforms import SphinxPostTransform
    from sphinx.writers.html5 import HTML5Translator

    def look(document):
        for node in document.findall(nodes.paragraph):
            if "fault" in node.astext():
                raise AssertionError("as it is")

    class Read(SphinxTransform):
        default_priority = 500

        def apply(self):
            look(self.document)

    class Resolved(SphinxPostTransform):
        default_priority = 5

        def run(self):
            look(self.document)

    if {when!r} == "read":
        app.add_transform(Read)
    elif {when!r} == "resolved":
        app.add_post_transform(Resolved)
    else:
        visit = HTML5Translator.visit_paragraph

        def written(self, node):
            look(node)
            visit(self, node)

        HTML5Translator.visit_paragraph = written
"""


@pytest.fixture(scope="module")
def built(shelf: New) -> Built:
    index = "# B\n\n```{toctree}\nparts/__init__\nparts/layer\nparts/args\n```\n"
    book = shelf({"index.md": index, **FILES})
    book.edit("conf.py", '"**/__init__.py", ', "")
    book.configure("annotated_execute = []\n")
    return book.well_built()


def test_links_by_address_lead_to_pages_and_places(built: Built) -> None:
    page = built.page("parts/__init__")
    for href in ("layer.html", "layer.html#core", "layer.html#Layer"):
        assert f'href="{href}"' in page
    page = built.page("parts/layer")
    for href in ("#here", "#Layer", "__init__.html"):
        assert f'href="{href}"' in page
    for name in ("here", "Layer", "core"):
        assert page.count(f' id="{name}"') == 1
    assert 'It says <a> and <a id="x">.' in words(page)


def test_a_link_that_leads_nowhere_is_text_with_a_warning(built: Built) -> None:
    page = built.page("parts/__init__")
    assert "gone" not in page and "#nothing" not in page
    assert "Nothing and no place" in words(page)
    assert re.search(r"__init__\.py:\d+: WARNING: .*gone/index\.html", built.log)
    assert re.search(r"__init__\.py:\d+: WARNING: .*no place #nothing", built.log)


def test_a_message_about_a_parameter_names_its_line(built: Built) -> None:
    assert re.search(r"args\.py:11: ERROR: Unknown target name", built.log)


def test_the_summary_of_front_matter_is_below_the_title(built: Built) -> None:
    for name, title, summary in (
        ("__init__", "Parts", "A “summary” over two lines"),
        ("layer", "Layers", "One line"),
    ):
        page = built.page(f"parts/{name}")
        below = page.partition(f"<h1>{title}<")[2]
        assert re.match(rf".*?</h1>\s*<p>{summary}</p>", below, re.DOTALL)
        assert "summary:" not in page


def test_a_heading_of_a_definition_may_be_a_link(built: Built) -> None:
    page = built.page("parts/layer")
    heading = re.search(
        r"<h2[^>]*>(.*?)</h2>", page.partition("sbs__row--def")[2] or page
    )
    assert heading and 'href="__init__.html"' in heading[1]
    assert 'href="https://example.org"' in heading[1]


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("when", ["read", "resolved", "written"])
def test_an_exception_names_the_file_and_the_line_of_its_chapter(
    shelf: New, when: str, workers: str
) -> None:
    text = '"""# One\n\nWords.\n"""\n\n\ndef f():\n    """Words.\n\n    A fault.\n    """\n'
    book = shelf({"one.py": text, "two.py": '"""# Two"""\n'})
    book.configure("annotated_execute = []\n" + FAULT.format(when=when))
    done = book.build("-j", workers)
    assert done.code != 0
    assert re.search(
        r"one\.py:10: AssertionError: as it is \(.*conf\.py, line \d+\)", done.log
    )
    assert "Traceback" not in done.log
