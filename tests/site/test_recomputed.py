"""One command recomputes the measured numbers and compares them with what the pages show."""

import shutil
from pathlib import Path

import pytest
from built_book import ROOT, Site, built
from recompute import MEASURED, recompute

CHEAP = [
    ROOT / "experiments" / "chapters" / f"{name}.py" for name in ("family", "transfer")
]


def test_numbers_of_the_pages_are_those_of_the_records(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    assert recompute(CHEAP, site.folder) == 0
    assert "recomputed 0.8 to 0.9\n    on page    0.8 to 0.9" in capsys.readouterr().out


def test_a_value_or_a_table_that_differs_from_the_page_is_counted_and_marked(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "experiments/chapters/transfer.html"
    page = tmp_path / name
    page.parent.mkdir(parents=True)
    shutil.copy(site.folder / name, page)
    text = page.read_text(encoding="utf-8")
    changed = text.replace('class="value">1.03<', 'class="value">1.04<')
    changed = changed.replace("0.143 ± 0.069", "0.144 ± 0.069")
    assert changed.count("1.04<") == text.count("1.04<") + 1
    page.write_text(changed, encoding="utf-8")
    assert recompute(CHEAP[1:], tmp_path) == 2
    said = capsys.readouterr().out
    assert '! f"{two_sided:.2f}"\n    recomputed 1.03\n    on page    1.04' in said
    assert "! table: With and without the changes" in said
    page.write_text(text.replace('class="value"', 'class="lost"', 1), encoding="utf-8")
    assert recompute(CHEAP[1:], tmp_path) == 1


@pytest.mark.nightly
def test_every_number_of_the_measured_part_is_that_of_the_records() -> None:
    assert recompute(MEASURED, built()) == 0
