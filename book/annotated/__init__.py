"""Annotated modules: a package's plain Python files as a book that is read, run and copied.

Add ``annotated`` to Sphinx's extensions; any ``.py`` file among the documents is then a chapter.
"""

from typing import Any


def setup(app: Any) -> dict[str, Any]:
    """Sphinx's entry point."""
    from annotated.sphinx_extension import setup as extension

    return extension(app)
