"""Tables of data: sorted by any column, by hand and by keyboard, and readable without scripts."""

import pytest
from playwright.sync_api import Locator, Page, expect
from visits import Reading, Visitor

PAPER = "experiments/chapters/paper"
ROWS = "rows => rows.map(row => row.cells[%d].textContent)"


@pytest.fixture
def unsorted(reading: Reading) -> Page:
    """The page with the tables as they come."""
    page = reading(PAPER)
    page.reload()
    return page


def speeds(table: Locator, column: int) -> list[str]:
    found: list[str] = table.locator("tbody tr").evaluate_all(ROWS % column)
    return found


def test_a_click_sorts_by_number_up_and_down_and_back(unsorted: Page) -> None:
    table = unsorted.locator("table.sortable", has_text="The search task")
    head = table.get_by_role("columnheader", name="speedup")
    source = speeds(table, 6)
    for direction, sign in (("ascending", 1), ("descending", -1)):
        head.get_by_role("button").click()
        expect(head).to_have_attribute("aria-sort", direction)
        found = speeds(table, 6)
        numbers = [sign * float(entry.split()[0]) for entry in found if entry != "-"]
        assert numbers == sorted(numbers)
        assert found[len(numbers) :] == ["-"] * 3  # what has no number stands last
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") is None
    assert speeds(table, 6) == source


def test_letters_behind_a_number_count(unsorted: Page) -> None:
    table = unsorted.locator("table.sortable", has_text="full T5 compute")
    table.get_by_role("button", name="steps").click()
    assert speeds(table, 1) == ["207K", "251K", "480K", "1M", "1M", "1M"]


def test_words_sort_as_words_and_one_column_at_a_time(unsorted: Page) -> None:
    table = unsorted.locator("table.sortable", has_text="The search task")
    table.get_by_role("button", name="speedup").click()
    table.get_by_role("button", name="model").click()
    models = speeds(table, 1)
    assert models == sorted(models)
    assert table.locator("[aria-sort]").count() == 1


def test_a_table_is_sorted_by_keyboard(unsorted: Page) -> None:
    table = unsorted.locator("table.sortable", has_text="full T5 compute")
    button = table.get_by_role("button", name="hours")
    table.get_by_role("button", name="steps").focus()
    unsorted.keyboard.press("Tab")
    expect(button).to_be_focused()
    unsorted.keyboard.press("Enter")
    assert speeds(table, 2)[0] == "3.8K"


def test_without_scripts_a_table_stands_as_in_the_paper(visit: Visitor) -> None:
    page = visit(PAPER, scripts=False).page
    table = page.locator("table.sortable", has_text="full T5 compute")
    expect(table).to_be_visible()
    expect(table.locator("button")).to_have_count(0)
    assert speeds(table, 0)[0] == "Original T5"
