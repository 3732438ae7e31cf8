"""Expressions in prose that the kernel evaluates once the chapter's last cell has run."""

from __future__ import annotations

import re

from annotated.read.parse import Chapter

COST = re.compile(r"^:cost: *(.+)$", re.MULTILINE)


def costs(chapter: Chapter) -> list[tuple[int, str]]:
    """Return the ``:cost:`` expressions of a chapter's variants, each with its line."""
    return [
        (row.line + row.prose[: match.start()].count("\n"), match[1].strip())
        for cell in chapter.cells
        for row in cell.rows
        for match in COST.finditer(row.prose)
    ]
