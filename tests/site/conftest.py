"""The tests that read the files of the built book, and open no browser."""

from pathlib import Path

import pytest
from built_book import Site, built, page_by_page


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in page_by_page(items, Path(__file__).parent):
        item.add_marker(pytest.mark.slow)  # the book may have to be built


@pytest.fixture(scope="session")
def site() -> Site:
    """The book, built if it is older than its sources."""
    return Site(built())
