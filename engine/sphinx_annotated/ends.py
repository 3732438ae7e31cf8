"""How a build ends that an author's error stops: with the message alone."""

from __future__ import annotations

import sys

import sphinx
from sphinx.application import Sphinx
from sphinx.errors import ConfigError, SphinxError


class AnnotatedError(SphinxError):
    """Ends the build. Each line of the message has a file, a line and the fix."""

    category = "The book was not built"


class UnwrittenError(SphinxError):
    """A file of the site could not be written."""

    category = "The book was not written"


OURS = (AnnotatedError, UnwrittenError, ConfigError)


def say_and_end(app: Sphinx, exception: Exception | None) -> None:
    """Print an error of an author and end the command.

    Sphinx 8.2 and later would print the message in the middle of its versions, extensions and traceback, as
    for a fault of its own. It does so still if it is asked for more (``-v``) or for a debugger (``-P``).
    """
    if not isinstance(exception, OURS) or sphinx.version_info < (8, 2):
        return
    if not (app.pdb or app.verbosity):
        print(f"\n{exception.category}:\n{exception}", file=sys.stderr)
        raise SystemExit(2)
