"""Annotated modules: plain Python files become a book to read, run and copy from.

Add ``sphinx_annotated`` to Sphinx's extensions. Every ``.py`` file among the documents is then a chapter.

The groups follow the way of the data, and each imports only from those before it: ``read``
parses modules, ``run`` executes them, ``page`` builds pages, ``take`` writes files for readers.
"""

from typing import Any

RELEASE = "0.1.0"


def setup(app: Any) -> dict[str, Any]:
    """Set up the Sphinx extension."""
    from sphinx_annotated.sphinx_extension import setup as extension

    return extension(app)
