"""The prose of a notebook in another language: the same texts that Sphinx translates on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from markdown_it.token import Token

from sphinx_annotated.read.prose import blocks

Say = Callable[
    [str], str
]  # a text of the page, as its catalogue has it -> its translation


def translated(lines: list[str], say: Say) -> list[str]:
    """Return lines of Markdown with what ``say`` returns for each paragraph, heading, item and cell."""
    out = list(lines)
    for texts, (first, last) in reversed(list(_texts(lines))):
        others = [say(" ".join(text.split("\n")).strip()) for text in texts]
        if len(texts) > 1 or lines[first].lstrip().startswith("|"):
            out[first:last] = [f"| {' | '.join(others)} |"]
        else:
            margin = lines[first].find(texts[0].split("\n")[0])
            out[first:last] = [lines[first][:margin] + others[0]]
    return out


def _texts(lines: list[str]) -> Iterator[tuple[list[str], tuple[int, int]]]:
    """Yield each text with its lines; the cells of a row of a table together."""
    cells: list[str] = []
    row: Token | None = None
    for token in blocks(lines):
        if token.type == "tr_open":
            row, cells = token, []
        elif token.type == "tr_close" and row is not None and row.map:
            yield cells, (row.map[0], row.map[1])
            row = None
        elif token.type == "inline" and row is not None:
            cells.append(token.content)
        elif token.type == "inline" and token.map and token.content:
            yield [token.content], (token.map[0], token.map[1])
