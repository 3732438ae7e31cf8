"""Patterns of chapters in a book's settings, as in Sphinx's ``exclude_patterns``.

``*`` stays within a folder, and ``**`` does not. A pattern names pages, with or without ``.py``, or a folder
with everything in it.
"""

from __future__ import annotations

import re
from functools import cache

from sphinx.util.matching import Matcher


def matches(pattern: str, docname: str) -> bool:
    """Return whether a pattern names this page."""
    return _matcher(pattern)(docname)


@cache
def _matcher(pattern: str) -> Matcher:
    path = pattern.removesuffix(".py").rstrip("/")
    folder = not re.search(r"[*?\[]", path)
    return Matcher([path, f"{path}/**"] if folder else [path])
