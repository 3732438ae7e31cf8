"""Galleries of examples and tutorials: prose in cells of comments, and in strings between the code.

Sphinx-Gallery starts a cell with ``# %%`` or a row of ``#``. It has settings in comments, which are code, and
hides what is between two of them. In tutorials of Keras, strings are statements.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from sphinx_annotated.read.chapter import Kind
from sphinx_annotated.read.parse import Manner, comment_tokens, comments
from sphinx_annotated.read.syntax import docstring, first_line, is_text

HASHES = re.compile(r"(?m)#{20,}\s*$")  # above a cell
SETTING = re.compile(r"#\s*sphinx_gallery_(?P<name>\w+)(\s*=.*)?\s*")
CELL = re.compile(r"#\s*%%+(?P<words>(?:\s.*)?)")  # the first line of one


def read(text: str, tree: ast.Module) -> Manner:
    """Return what is prose in a module because it is a gallery or a tutorial."""
    marks = {
        token.line: match["words"].strip()
        for token in comment_tokens(text)
        if token.column == 0 and (match := CELL.fullmatch(token.text))
    }
    kinds: dict[int, Kind] = {}
    for before, node in zip([None, *tree.body], tree.body, strict=False):
        if docstring(tree) is not node and _stands_alone(node, before):
            kinds[first_line(node)] = "block"
    for comment in comments(text)[0]:
        opens = comment.line - 1 in marks or HASHES.match(comment.text)
        if opens and not comment.is_boxed:
            kinds |= dict.fromkeys(range(comment.line, comment.end + 1), "block")
    titles = {line: title for line, title in marks.items() if title}
    settings = {
        token.line: match["name"]
        for token in comment_tokens(text)
        if token.alone and (match := SETTING.fullmatch(token.text))
    }
    kinds |= dict.fromkeys(settings, "code")
    return Manner(kinds=kinds, marks={*marks, *_ignored(settings)}, titles=titles)


def _ignored(settings: dict[int, str]) -> Iterator[int]:
    """Yield the lines that settings hide, which run nevertheless."""
    for start, name in settings.items():
        ends = [n for n, name in settings.items() if n > start and name == "end_ignore"]
        if name == "start_ignore" and ends:
            yield from range(start, ends[0] + 1)


def _stands_alone(node: ast.stmt, before: ast.stmt | None) -> bool:
    """Return whether a statement is a text of its own.

    A text on the line below an assignment describes that.
    """
    if not is_text(node) or node.col_offset:
        return False
    assigns = isinstance(before, ast.Assign | ast.AnnAssign)
    return not (before and assigns and before.end_lineno == node.lineno - 1)


def as_shell(text: str) -> str:
    """Return a text that is a command of the shell, by its first line, as code."""
    first, _, rest = text.partition("\n")
    return f"```{first}\n{rest}\n```" if first in ("shell", "bash") else text
