"""Modules in the manner of other projects, with what their docstrings get wrong: nothing of them is lost."""

import re
from collections import Counter
from collections.abc import Callable
from html import unescape

import pytest
from conftest import Built, Shelf

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
        It is causal [1]_.

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
        """Close.

        .. note:: Flushes `buffers`_ first.

        .. _buffers: https://example.org/buffers
        """
'''
STEPS = '''
    # -*- coding: utf-8 -*-
    """
    .. _steps:

    Training step by step
    =====================

    **Author**: `Someone <https://example.org>`_

    Opening words.
    """

    ######################################################################
    # Preparing
    # ---------
    #
    # .. note:: Needs patience.
    #
    # .. math:: x^2

    import math  # trailing remark

    ######################################################################
    # Looking
    # ~~~~~~~
    # It has an *angle* of :math:`\\\\pi`.
    #

    ANGLE = math.pi

    ################################
    #        Boxed banner          #
    ################################

    DONE = True
'''
CELLS = """
    # %%
    # %matplotlib inline
    # !pip install something

    # %% [markdown]
    # # Exploring tides
    #
    # Water *rises*.

    # %% Loading
    import math


    # %%
    def wave(x):
        # %%timeit is magic here
        return math.sin(x)

    # %%timeit wave(1)

    # %% [markdown] tags=["end"]
    # ## Finally
    # - low
    # - high
"""
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
CONFIG = '''
    """Configuration of everything."""

    from __future__ import annotations

    from typing import TYPE_CHECKING, overload

    if TYPE_CHECKING:
        import os

    __docformat__: str = "restructuredtext"

    #: Documented by a comment.
    DEFAULT = 1

    OTHER = 2
    """Documented below."""


    class Settings:
        """Settings (see :pep:`8` and :class:`!dict`).

        .. attribute:: color

           Of everything.
        """

        size: int = 3
        """Size in points."""

        @overload
        def get(self, key: int) -> int: ...

        @overload
        def get(self, key: str) -> str: ...

        def get(self, key):
            """Get it. Unlike ``dict.get``, this raises

            :exc:`KeyError` -- see `Mapping`s.
            """
            class Inner:
                """Inner words."""

            return Inner
'''
PAPER = '''
    """
    ---
    title: Attention revisited
    summary: >
      About \\\\alpha scores.
    ---

    # Attention revisited

    Scores are $\\\\frac{q}{k}$.
    """

    from typing import Any

    # ## Scores
    #
    # They are **scaled**.


    class Scores:
        """
        ### Scaled scores

        $$s = \\\\theta q$$

        * `queries` are large
        """

        def __init__(self, size: int):
            """
            * `size` is $d$
            """
            super().__init__()
            # Keep it
            self.size = size
'''
KERAS = '''
    """
    Title: Counting boats
    Author: Somebody
    Date created: 2021/05/05
    Last modified: 2021/05/06
    Description: Boats, counted.
    Accelerator: None
    """

    """
    ## Introduction

    Boats are many:

    - small
    - large
    """

    BOATS = ["a", "b"]

    """
    Then count.

    ```python
    count(BOATS)
    ```
    """


    def count(boats):
        """Counts `boats`.

        Arguments:
            boats: A list.
              Nested deeper.

        Returns:
            int.
        """
        return len(boats)
'''
TYPES = '''
    """Types of plain data.

    Functions
    ---------
    area : compute

    Notes
    -----
    Short.
    """


    def area(shape, unit=None):
        """
        Compute area (fast).

        Parameters
        ----------
        shape : {'circle', 'square'}, default: 'circle'
            Kind; see :doc:`nowhere`.

            ::

                o   square
        unit
            Undescribed type.

        Returns
        -------
        ndarray of shape (n, m)
        size : int
            Count.
        .. deprecated:: 3
           Gone soon.

        Examples
        --------
        Simple:

        >>> area("circle")
        3

        With text in between,

        >>> area("square")  # doctest: +SKIP
        4

        Shape
        -----
        Round.
        """
'''
FILES = {
    "numpy/window.py": SIGNAL,
    "numpy/kinds.py": TYPES,
    "google/mixer.py": LAYERS,
    "google/boats.py": KERAS,
    "rest/archive.py": ARCHIVE,
    "rest/steps.py": STEPS,
    "rest/settings.py": CONFIG,
    "plain/banners.py": BANNERS,
    "markdown/tides.py": CELLS,
    "markdown/banners.py": BANNERS,
    "markdown/paper.py": PAPER,
    "keras.py": KERAS,
}
CONF = """
annotated_style = {"google": "google", "numpy": "numpy", "rest": "rest", "plain": "plain"}
annotated_chapters = ["**"]
nb_execution_mode = "off"
"""
# Words of markup, which no reader sees, in lower case.
MARKUP = """
    param type rtype raises unusual math note class exc pep doc versionadded deprecated attribute markdown
    tags args arguments python _steps title summary docformat restructuredtext title description skip
    doctest utf coding author https example org _buffers
"""


@pytest.fixture(scope="module")
def book(shelf: Callable[[dict[str, str]], Shelf]) -> Shelf:
    made = shelf(FILES)
    with (made.root / "conf.py").open("a") as conf:
        conf.write(CONF)
    return made


@pytest.fixture(scope="module")
def built(book: Shelf) -> Built:
    done = book.build()
    assert done.code == 0, done.log
    return done


def text_of(html: str) -> str:
    """The words that a page shows, in order."""
    body = html.partition('<div class="sbs__sheet')[2].partition("sphinxsidebar")[0]
    title = "".join(re.findall(r"<h1>.*?</h1>", html, re.DOTALL))
    plain = re.sub(
        r"<[^>]+>", "", re.sub(r"</(p|li|dt|dd|div|span)>|<br>", " ", title + body)
    )
    return " ".join(unescape(plain).split())


def words(text: str) -> list[str]:
    return re.findall(r"\w\w+", text.lower())


def test_no_word_and_no_line_of_code_is_lost(book: Shelf, built: Built) -> None:
    for name in FILES:
        source = (book.root / name).read_text("utf-8")
        page = text_of(built.page(name.removesuffix(".py")))
        lost = Counter(words(source)) - Counter(words(page))
        assert not set(lost) - set(words(MARKUP)), name
