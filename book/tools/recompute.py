"""Recompute every number of the measured chapters from the records, next to what the pages show.

    .venv/bin/python book/tools/recompute.py [CHAPTER ...]

Each chapter runs again, in this process and without anything that the build has kept. Its values in prose
and its tables are compared with those of the built page. The chapter on the search reads a summary of the
logs, so that is made again as well. A difference makes the exit status 1. Without a name, all measured
chapters are recomputed.
"""

from __future__ import annotations

import argparse
import json
import runpy
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any
from unittest.mock import patch

import matplotlib
from bs4 import BeautifulSoup, Tag

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "book"), str(ROOT / "engine")]

from sphinx_annotated.read.expressions import OTHER, ROLE, one_line  # noqa: E402
from sphinx_annotated.read.modules import Project  # noqa: E402

from experiments.records.runs import RESULTS  # noqa: E402
from experiments.search.summary import SEARCHES, all_gathered  # noqa: E402

PAGES = ROOT / "_build" / "html"
MEASURED = sorted((ROOT / "experiments" / "chapters").glob("*.py"))
MEASURED.append(ROOT / "benchmarks" / "speed.py")
LONG = 2000
"""So many characters of a table or a summary are printed, around the first that differs."""
TIMED = {'f"{longer:.0%}"'}
"""Values that are measured when a page is built, and are in no record."""


def roles(chapter: Path) -> list[str]:
    """Return the expressions of a chapter's values in the order in which its page shows them."""
    cells = Project(ROOT).at(chapter).chapter.cells
    notes = [note for cell in cells for row in cell.rows for _, note in row.notes]
    found = [match for note in notes for match in ROLE.finditer(note)]
    return [one_line(match["text"]) for match in found if match["role"] == "value"]


def run(chapter: Path) -> tuple[dict[str, Any], list[BeautifulSoup]]:
    """Run a chapter as a program. Return its variables, and the tables that it displayed."""
    shown: list[Any] = []
    matplotlib.use("Agg")  # here alone: a variable would reach other processes
    with (
        patch("IPython.display.display", shown.append),
        redirect_stdout(StringIO()),
    ):
        names = runpy.run_path(str(chapter), run_name="__main__")
    tables = [each._repr_html_() for each in shown if hasattr(each, "_repr_html_")]
    return names, [BeautifulSoup(table, "html.parser") for table in tables]


def entries(table: Tag) -> list[str]:
    """Return the caption and the cells of a table."""
    return [cell.get_text() for cell in table.find_all(["caption", "th", "td"])]


def compare(chapter: Path, page: Path) -> Iterator[tuple[str, str, str]]:
    """Yield what each number is of, what it is now, and what the page shows."""
    html = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    shown = [value.get_text().replace("’", "'") for value in html.select("span.value")]
    expressions = roles(chapter)
    if len(shown) != len(expressions):
        yield "values of the page", str(len(expressions)), str(len(shown))
        return
    names, tables = run(chapter)
    for expression, text in zip(expressions, shown, strict=True):
        if not OTHER.fullmatch(expression) and expression not in TIMED:
            yield expression, str(eval(expression, names)), text
    by_caption: dict[str, list[str]] = {}
    for table in html.find_all("table"):
        cells = entries(table)
        by_caption.setdefault(cells[0] if cells else "", cells)
    for table in tables:
        caption, *cells = entries(table)
        on_page = by_caption.get(caption, [caption])[1:]
        yield f"table: {caption}", " | ".join(cells), " | ".join(on_page)


def logs() -> Iterator[tuple[str, str, str]]:
    """Yield each search's summary, from its log and as recorded."""
    recorded = json.loads((RESULTS / SEARCHES).read_text(encoding="utf-8"))
    again = json.loads(json.dumps(all_gathered(recorded["searches"])))
    yield "retrained", str(again["retrained"]), str(recorded["retrained"])
    for name, search in recorded["searches"].items():
        yield name, str(again["searches"].get(name)), str(search)


def recompute(chapters: list[Path], pages: Path) -> int:
    """Print all numbers next to the pages', and return how many differ."""
    differ = 0
    for chapter in chapters:
        name = chapter.relative_to(ROOT).with_suffix("")
        page, same = pages / f"{name}.html", 0
        if not page.exists():
            sys.exit(f"{page} is not there: make book")
        print(f"\n{name}")
        numbers = compare(chapter, page)
        for of, now, shown in (
            chain(logs(), numbers) if name.stem == "search" else numbers
        ):
            same += now == shown
            differ += now != shown
            mark = "  " if now == shown else "! "
            pairs = enumerate(zip(now, shown, strict=False))
            differs = (at for at, (new, old) in pairs if new != old)
            same_until = next(differs, min(len(now), len(shown)))
            first = max(same_until - LONG // 2, 0) if now != shown else 0
            seen = slice(first, first + LONG)
            print(
                f"{mark}{of}\n    recomputed {now[seen]}\n    on page    {shown[seen]}"
            )
        print(f"{name}: {same} as shown")
    print(f"\n{differ} numbers or tables differ from what the pages show")
    return differ


def main() -> None:
    known = {path.stem: path for path in MEASURED}
    parser = argparse.ArgumentParser(description="Recompute the measured numbers.")
    parser.add_argument("chapter", nargs="*", choices=[[], *known], metavar="CHAPTER")
    parser.add_argument("--pages", type=Path, default=PAGES)
    chosen = parser.parse_args()
    chapters = [known[name] for name in chosen.chapter] or MEASURED
    sys.exit(1 if recompute(chapters, chosen.pages) else 0)


if __name__ == "__main__":
    main()
