"""Warnings name the line and can be silenced by kind. No chapter loads an image of another site by itself."""

import re
from collections.abc import Callable

import pytest
from small_books import Built, Shelf

pytestmark = pytest.mark.slow
New = Callable[[dict[str, str]], Shelf]
FILES = {
    "one.py": """
        '''
        One
        ===

        .. image:: https://example.org/a/chart.svg
           :alt: A chart

        .. image:: https://example.org/badge.svg
           :target: https://example.com/

        .. note: lost

        .. a remark: which stays one, as
           .. warning: in it does

        .. seealso:: :func:`f`
        '''

        __docformat__ = "rst"

        from lib.names import *


        def f():
            return value
    """,
    "two.py": '''
        """
        # Two

        ![](https://example.org/b/photo.png?large&x=1)
        """

        from IPython.display import Markdown

        Markdown("![drawn](https://example.org/c.png)")
    ''',
    "lib/names.py": "value = 1\n",
}


@pytest.fixture(scope="module")
def book(shelf: New) -> Shelf:
    return shelf(FILES)


@pytest.fixture(scope="module")
def built(book: Shelf) -> Built:
    return book.well_built().copy()


def test_each_warning_has_its_line(built: Built) -> None:
    assert re.findall(r"(\w+\.py:\d+): WARNING", built.log) == [
        "one.py:11",
        "one.py:21",
    ]
    assert "write two colons: .. note::" in built.log
    assert "readers cannot copy this with what it needs: f." in built.log
    assert "lost" not in built.page("one")


def test_each_kind_of_warning_can_be_silenced(book: Shelf, built: Built) -> None:
    book.configure('suppress_warnings = ["annotated.standalone"]\n')
    done = book.build("-E")
    assert re.findall(r"(\w+\.py:\d+): WARNING", done.log) == ["one.py:11"]
    book.configure('suppress_warnings = ["annotated"]\n')
    strict = book.build("-E", "-W")
    assert strict.code == 0 and "WARNING" not in strict.log


def test_images_of_other_sites_are_links_until_a_reader_asks(built: Built) -> None:
    one, two = built.page("one"), built.page("two")
    for page in (one, two):
        assert not re.search(r'<(img|source)[^>]*"(https?:)?//', page)
    link = '<a class="remote-image" rel="noreferrer" href="https://example.org/'
    assert f'{link}a/chart.svg">A chart (example.org)</a>' in one
    assert f'{link}b/photo.png?large&amp;x=1">photo.png?large&amp;x=1 (exam' in two
    assert f'{link}c.png">drawn (example.org)</a>' in two
    badge = r'href="https://example\.com/"[^>]*>[^<]*badge\.svg \(example\.org\)</a>'
    assert re.search(badge, one)
