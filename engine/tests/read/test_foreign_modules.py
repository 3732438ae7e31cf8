"""Modules in the manner of other projects, with what their docstrings get wrong: nothing of them is lost."""

import re
from collections import Counter
from collections.abc import Callable
from html import unescape

import pytest
from small_books import Built, Shelf, words
from sphinx_annotated.read.manners.rest import titles
from sphinx_annotated.take.written import as_markdown

pytestmark = pytest.mark.slow

SIGNAL = '''
    """Filters for signals."""


    class Window:
        """
        A window that slides.

        Parameters
        ----------
        width, step : int
            How wide, and how far. It may be

            - odd, with a middle, or
            - even.

            .. math:: w_k = 2^{-k}
        *bands : float
            More of them.

        This sentence follows without a title, and has a comma.

        Other Parameters
        ----------------
        loud : bool
            Rarely given.

        Attributes
        ----------
        filled : int
            So many samples.

        Methods
        -------
        push(sample: float)
            Add one.

        Tuning Advice
        -------------
        Start narrow, then widen.

        ================
        Memory footprint
        ================
        It keeps one buffer.

        See Also
        --------
        scipy.signal : The original, with more.
        median, mean
        numpy.convolve for short kernels (see its page).

        Todo
        ----
        Measure drift.

        Notes
        -----
        It is causal [1]_, see x["--y"].

        References
        ----------
        .. [1] Person, Somewhere 12.
        """

        def values(self):
            """Yield what is inside.

            Yields
            ------
            sample : float
                The oldest one first.

            Receives
            --------
            flush : bool
                Whether to stop early.

            Warns
            -----
            RuntimeWarning
                If it is empty.

            Raises
            ------
            KeyError
                If nothing was pushed, over
                two lines.
            """
            yield 1

        def total(self):
            """Add up.

            Returns
            -------
            The sum over all samples inside.
            """
'''
LAYERS = '''
    """Layers in the manner of a big framework."""


    class Mixer:
        r"""Mixes channels.

        .. plot::

            draw_nothing()

        Args:
            rate (Tensor (n, m), optional): How much. One of:

                * ``low``
                * ``high``

                For example::

                    Mixer(rate=low)
            depth: A number that is
            continued at the margin, by mistake, twice.
            mode: See
                :math:`a_i`.

        Shape:
            - Input: :math:`(N, C)`
            - Output: same

        Attributes:
            weight (Tensor): learned

        Yields:
            int: countdown

        Todo:
            * Fuse kernels.

        Example::

            >>> mixer = Mixer()
            >>> # comment inside
            >>> mixer(1)

        .. versionadded:: 1.2
           Gained depth.
        """

        def forward(self, inputs):
            """Applies it.

            Usage:
            ```python
            for each in inputs:
                Args: int
            ```

            Returns:
                Either a tensor,
                or nothing.
            """

        def sizes(self):
            """Sizes.

            Returns:
                A dictionary with these keys:
                - rows
                - columns
            """
'''
ARCHIVE = '''
    """
    =======
    Archive
    =======

    Reads and writes.

    --------
    Entries
    --------

    Each has a name.
    """


    def open_it(path, mode):
        """Open an archive.

        :param path: somewhere
        :type path: str
        :type mode: one of r and w
        :rtype: Archive

            More about it.
        :Yields: each entry
        :unusual: stays
        :raises OSError: if broken

        ==========  =====
        Column one  Two
        ==========  =====
        wide cell that overflows  x
        ==========  =====

        .. nosuchthing:: argument

           Indented remark.

        Pitfalls
        ~~~~~~~~

        Beware of |pipes|.
        """


    def close_it():
        """Close each `<thead>`.

        .. note:: Flushes `buffers`_ first.

        .. _buffers: https://example.org/buffers
        """
'''
BANNERS = '''
    """module banners - old school

       usage: banners [-v] FILE

         -v    verbose
         FILE  whatever
    """

    ########################################
    #
    # Constants
    #
    ########################################
    # explained below

    LIMIT = 3   # inline

    # =====================================
    # Section two
    # =====================================

    def go(a, b):
        """go(a, b) -> c

        @param a: epytext
        @return: c

          x | y
         ---+---
          1 | 2
        """
        # TODO(me): fix <this> & *that*
        #   indented further
        return a
'''
GAPS = '''
    """Scores."""


    def score(kind):
        """
        Return a score. It takes care of:
        - overflow,
          which is rare, and
        - gaps.

        Parameters
        ----------
        kind : {'one', 'rest'}
            How classes are compared.
            ``'one'``:
                Each with each::

                    for a in b:
                        for c in d:
                            pass
            ``'rest'``:
                Each with the others, see [the
                paper](
                https://example.org/alpha).

        Returns
        -------
        h : The score of the given kind.
        """


    def area(x):
        """
        Return an area.

        Returns
        -------
        width : float
        height : float
            Upwards.

        See Also
        --------
        depth : Of a hole.
        :class:`Elastic` : Both.
        """


    def depth(x):
        """
        Return a depth.

        See [the paper](
        https://example.org/about).

        Returns
        -------
        depth : float
            Downwards.

        Examples
        --------
        >>> depth()
        Traceback (most recent call last):
            ...
        TypeError: it takes x
        """
'''
CALLS = '''
    """Cells."""


    class Cell:
        """A cell.

        .. testcode::
            :hide:

            drawn = 1

        Call arguments:
            inputs: The values, of which each
                is a number.
            states: The state.
        """
'''
TABS = '''
    """Counts."""


    def count(text):
        """Counts.

        Using a string:
        >>> count("a")
        <Array>
          * x
        Dimensions: none

        Args:
            inputs: The following tensors:
                - `query`: Query tensor of some shape. If
                    not given, none.
            mask: The following masks:
                - `key`: A mask of the same shape.
                    It may be empty.

        Returns:
            A tensor, and then
            its scores, with shape
                `(batch, time)`.
        """
'''
SENDS = '''
    """
    .. topic:: Before anything

       Read this.

    .. _sending it:

    Sending
    -------

    Sends.
    """


    def send(url):
        """Sends `url` and `more`.

        :param url: where, or a list of
        places to send to.
        :param more: the rest
        :meta private:
        """
'''
GRID = """
    # ---
    # jupyter:
    #   jupytext:
    #     text_representation:
    #       format_name: light
    # ---

    # # Gridding
    #
    # + large
    # + old

    import math

    # + [markdown] tags=["one"]
    # ## Images
    # -

    # + nbsphinx="hidden"
    GRID = math.pi
    # -
"""
LIBRARY = '''
    """Wraps text. For example:
    >>> wrap("a b")
    ['a', 'b']

    Use:
    ```python
    wrap("a")

    wrap("b")
    ```
    """

    # -- Public interface ----------

    ###  Wrapping ###
    WIDTH = 70
'''
FILES = {
    "google/counts.py": TABS,
    "rest/sends.py": SENDS,
    "markdown/grid.py": GRID,
    "plain/library.py": LIBRARY,
    "google/calls.py": CALLS,
    "numpy/gaps.py": GAPS,
    "numpy/window.py": SIGNAL,
    "google/mixer.py": LAYERS,
    "rest/archive.py": ARCHIVE,
    "plain/banners.py": BANNERS,
    "markdown/banners.py": BANNERS,
    "markdown/star.py": "from math import *\nfrom .grid import *\n\n\ndef area(r):\n    return pi * r\n",
}
CONF = """
annotated_style = {"google": "google", "numpy": "numpy", "rest": "rest", "plain": "plain"}
annotated_chapters = ["**"]
nb_execution_mode = "off"
"""
# Words of markup, which no reader sees, in lower case.
MARKUP = """
    param type rtype raises math note class versionadded deprecated markdown tags args arguments python
    https example org _buffers buffers path about alpha testcode hide plot topic meta private jupyter jupytext
    text_representation format_name light nbsphinx hidden one _sending it
"""


@pytest.fixture(scope="module")
def built(shelf: Callable[..., Shelf]) -> Built:
    return shelf(FILES, CONF).well_built()


def text_of(html: str) -> str:
    """The words that a page shows, in order."""
    body = html.partition('role="main">')[2].partition('class="sphinxsidebar"')[0]
    apart = re.sub(r"</(p|li|dt|dd|div|h\d)>|<br>", " ", body)
    return words(apart)


def vocabulary(text: str) -> list[str]:
    return re.findall(r"\w\w+", text.lower())


def test_no_word_and_no_line_of_code_is_lost(built: Built) -> None:
    for name in FILES:
        source = (built.root / name).read_text("utf-8")
        page = text_of(built.page(name.removesuffix(".py")))
        lost = Counter(vocabulary(source)) - Counter(vocabulary(page))
        assert not set(lost) - set(vocabulary(MARKUP)), name


def prose(built: Built, name: str) -> str:
    return text_of(built.page(name))


def test_sections_that_numpydoc_does_not_know_are_bold_lines(built: Built) -> None:
    page = built.page("numpy/window")
    for title in ("Tuning Advice", "Memory footprint", "Todo", "Notes"):
        assert re.search(rf'<p class="rubric">{title}</p>', page), title
    assert "Start narrow, then widen." in prose(built, "numpy/window")
    assert "====" not in prose(built, "numpy/window")


def test_text_after_the_entries_of_a_section_is_none_of_them(built: Built) -> None:
    text = prose(built, "numpy/window")
    assert "This sentence follows without a title, and has a comma." in text
    assert "Returns The sum over all samples inside." in text
    assert "Returns Either a tensor, or nothing." in prose(built, "google/mixer")
    assert "Returns A dictionary with these keys: rows columns" in prose(
        built, "google/mixer"
    )
    assert "A number that is continued at the margin, by mistake, twice." in prose(
        built, "google/mixer"
    )


def test_lists_and_terms_need_no_blank_line_above(built: Built) -> None:
    page = built.page("numpy/gaps")
    text = prose(built, "numpy/gaps")
    assert "takes care of: overflow, which is rare, and gaps. Parameters" in text
    assert re.search(r"<li><p>overflow,\s+which is rare, and</p>", page)
    assert re.search(r"<dt>.*one.*</dt>.*<dt>.*rest.*</dt>", page, re.S)
    assert "for a in b:\n    for c in d:\n        pass" in unescape(
        re.sub(r"<[^>]+>", "", page)
    )
    assert '<a class="reference external" href="https://example.org/about">' in page
    assert "Traceback (most recent call last):\n    ...\nTypeError" in unescape(
        re.sub(r"<[^>]+>", "", page)
    )
    assert not re.search(r"gaps\.py:\d+: (ERROR|WARNING)", built.log), built.log


def test_arguments_of_calls_are_a_list_of_their_own(built: Built) -> None:
    text = prose(built, "google/calls")
    assert (
        "Call arguments inputs – The values, of which each is a number. states –"
        in text
    )
    assert 'class="highlight-python' in built.page("google/calls")
    assert "testcode" not in text and ":hide:" not in text and "drawn = 1" in text
    assert not re.search(r"calls\.py:\d+: (ERROR|WARNING)", built.log), built.log


def code_of(built: Built, name: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", built.page(name)))


def test_what_goes_on_with_a_text_may_be_indented_in_any_way(built: Built) -> None:
    text = prose(built, "google/counts")
    assert "query: Query tensor of some shape. If not given, none." in text
    assert "key: A mask of the same shape. It may be empty." in text
    assert "its scores, with shape (batch, time)." in text
    text = prose(built, "rest/sends")
    assert "url – where, or a list of places to send to." in text
    assert "more – the rest" in text and "private" not in text
    assert not re.search(r"(counts|sends)\.py:\d+: (ERROR|WARNING)", built.log)


def test_a_session_below_a_text_is_code(built: Built) -> None:
    shown = '>>> count("a")\n<Array>\n  * x\nDimensions: none\n'
    assert shown in code_of(built, "google/counts")
    assert ">>> wrap(\"a b\")\n['a', 'b']\n" in code_of(built, "plain/library")
    assert 'wrap("a")\n\nwrap("b")\n' in code_of(built, "plain/library")


def test_a_label_above_a_title_is_that_titles(built: Built) -> None:
    assert re.search(r'id="sending-it"', built.page("rest/sends"))
    assert "Before anything Read this." in prose(built, "rest/sends")


def test_marks_of_cells_in_light_format_are_not_shown(built: Built) -> None:
    page = built.page("markdown/grid")
    assert re.search(r"<h2[^>]*>Images<", page) and "nbsphinx" not in page
    assert re.search(r"<li>(<p>)?large", page)
    assert "GRID = math.pi" in code_of(built, "markdown/grid")
    assert "[markdown]" not in page


def test_rules_beside_a_plain_comment_are_not_shown(built: Built) -> None:
    text = prose(built, "plain/library")
    assert "Public interface" in text and "Public interface -" not in text
    assert "#  Wrapping" not in text and "Wrapping #" not in text


def test_a_result_with_a_name_has_its_name_first(built: Built) -> None:
    text = prose(built, "numpy/gaps")
    assert "Returns h – The score of the given kind." in text
    assert "Returns depth (float) – Downwards." in text


def test_each_kind_of_field_has_a_title_of_its_own(built: Built) -> None:
    text = prose(built, "numpy/window")
    assert "Other Parameters loud (bool) – Rarely given." in text
    assert "Yields sample (float) – The oldest one first." in text
    assert "Receives flush (bool) – Whether" in text
    assert "Warns RuntimeWarning – If it is empty." in text
    assert "Methods push(sample: float) – Add one." in text
    text = prose(built, "rest/archive")
    assert "Yields each entry" in text and "mode (one of r and w)" in text
    assert "Returns Archive More about it." in text.replace("– ", "")


def test_see_also_keeps_the_words_around_names(built: Built) -> None:
    text = prose(built, "numpy/window")
    assert "numpy.convolve for short kernels (see its page)." in text
    text = prose(built, "numpy/gaps")
    assert "depth Of a hole. Elastic Both." in text, text


def test_what_docutils_cannot_read_is_shown_as_typed_with_its_error(
    built: Built,
) -> None:
    text = prose(built, "rest/archive")
    assert ".. nosuchthing:: argument Indented remark." in text
    assert "wide cell that overflows" in text
    for kind in ('Unknown directive type "nosuchthing"', "Malformed table"):
        assert re.search(rf"archive\.py:\d+: ERROR: {kind}", built.log), built.log


def test_plain_lists_are_lines_in_every_format(built: Built) -> None:
    page = built.page("plain/banners")
    assert '<div class="line">' in page and "<br>" not in page
    assert "|" in prose(built, "plain/banners") and "---+---" in page


def test_titles_in_boxes_are_titles(built: Built) -> None:
    page = built.page("rest/archive")
    assert "<h1>Archive<" in page and re.search(r"<h2[^>]*>Entries<", page)
    for name in ("plain/banners", "markdown/banners"):
        assert "####" not in built.page(name)


def test_what_cannot_be_copied_alone_is_shown_with_a_warning(built: Built) -> None:
    assert "return pi * r" in prose(built, "markdown/star")
    assert 'data-of=""' in built.page("markdown/star")
    assert re.search(
        r"star\.py:\d+: WARNING: imports everything.*copy this with what it needs: area\.",
        built.log,
    )


def test_errors_come_only_from_what_is_wrong(built: Built) -> None:
    said = re.findall(r".*(?:WARNING|ERROR|SEVERE).*", built.log)
    known = r"nosuchthing|Malformed table|\"plot\"|pipes|toctree|star"
    assert not [line for line in said if not re.search(known, line)]


def test_notebooks_keep_what_is_below_a_parameter_apart() -> None:
    for style, text in (
        ("numpy", "Parameters\n----------\nx : int\n    {}\ny\n    Last."),
        ("google", "Args:\n    x (int): {}\n    y: Last."),
        ("restructuredtext", ":param x: {}\n:param y: Last."),
    ):
        indent = " " * (8 if style == "google" else 4)
        below = "One of\nthese:\n\n- a\n- b\n\n.. math:: x^2\n\nCode::\n\n    f(1)"
        filled = text.format(below.replace("\n", f"\n{indent}"))
        made = "\n".join(as_markdown(filled.split("\n"), style))
        assert re.search(r"- .*`x`.*: One of these:\n\n  - a\n  - b\n", made), made
        assert "  $$\n  x^2\n  $$\n" in made and "  ```python\n  f(1)\n  ```" in made
        assert re.search(r"\n- .*`y`: Last\.", made)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Title\n=====\n\nText", ["Title"]),
        ("=====\nTitle\n=====\n", ["Title"]),
        (" =====\n Title\n =====\n", ["Title"]),
        ("Text\n\nTitle\n~~~~~\nText\n\nNext\n....", ["Title", "Next"]),
        ("Text\ngoes on\n-------", []),
        ("Code::\n\n    Title\n    -----\n", []),
        ("```\nTitle\n-----\n```\n", []),
        (">>> f()\nTitle\n-----\n", []),
        ("Long title\n---", []),
        ("=====  ====\nA      B\n=====  ====\n", []),
        ("-----\n\nText", []),
    ],
)
def test_titles_are_recognized_alike_everywhere(text: str, found: list[str]) -> None:
    assert [title.text for title in titles(text.split("\n"))] == found


def test_names_in_see_also_are_a_list_in_notebooks() -> None:
    text = "See Also\n--------\nmean : Of all.\nmedian, mode\n\nText."
    made = "\n".join(as_markdown(text.split("\n"), "numpy"))
    assert "- mean : Of all.\n- median, mode\n\n" in made
