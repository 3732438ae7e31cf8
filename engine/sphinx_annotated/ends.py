"""How a build ends that an author's error stops: with the message alone.

An exception while a chapter is read or written names its file and line.
"""

from __future__ import annotations

import errno
import shutil
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import Any, TypeGuard

import sphinx
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.errors import ConfigError, SphinxError, SphinxParallelError
from sphinx.util.build_phase import BuildPhase


class AnnotatedError(SphinxError):
    """Ends the build. Each line of the message has a file, a line and the fix."""

    category = "The book was not built"


class UnwrittenError(SphinxError):
    """A file of the site could not be written."""

    category = "The book was not written"


OURS = (AnnotatedError, UnwrittenError, ConfigError)
# A full disk, a used-up quota, a limit of files' size, a file system or a file that is read-only.
REFUSALS = ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EACCES", "EPERM")
REFUSED = {getattr(errno, name, None) for name in REFUSALS} - {None}


def say_early_ends(app: Sphinx) -> None:
    """Let a build end with the message alone also before Sphinx begins to read."""
    emit = app.events.emit

    def emit_or_end(*args: Any, **options: Any) -> Any:
        try:
            return emit(*args, **options)
        except Exception as error:
            if app.phase == BuildPhase.INITIALIZATION:
                say_and_end(app, error)
            raise

    app.events.emit = emit_or_end  # type: ignore[method-assign]


def name_places(app: Sphinx) -> None:
    """Let exceptions in other processes name their chapter: Sphinx takes over their messages alone."""
    for step in ("read_doc", "write_doc"):
        work = getattr(app.builder, step)
        setattr(app.builder, step, partial(_placed, app, work))


def _placed(
    app: Sphinx, work: Callable[..., None], docname: str, *args: Any, **options: Any
) -> None:
    try:
        work(docname, *args, **options)
    except Exception as error:
        raise located(app, error, str(app.env.doc2path(docname))) from error


def located(app: Sphinx, error: Exception, path: str = "") -> Exception:
    """Return an error with the file and the line of the chapter that was handled, if it was one.

    These are those of the innermost part of a page, or else module, that a function had.
    """
    cause = getattr(error, "orig_exc", error) or error  # of a handler of events
    if isinstance(cause, SphinxParallelError):
        return _of_a_worker(cause)
    if is_refused(cause):
        return unwritten(app, cause)
    if isinstance(cause, SphinxError | OSError):
        return error
    frames = [frame for frame, _ in traceback.walk_tb(cause.__traceback__)]
    known = [value for f in reversed(frames) for value in f.f_locals.values()]
    path = path or next(filter(None, map(_path, known)), "")
    if not path.endswith(".py"):
        return error
    line = next(filter(None, map(_line, known)), 1)
    what = " ".join(traceback.format_exception_only(cause)[-1].split())
    place = traceback.extract_tb(cause.__traceback__)[-1]
    message = f"{what} ({place.filename}, line {place.lineno}). Write this in another way, and report it. "
    message += "The option -T of Sphinx shows how it came to this."
    return AnnotatedError(f"\n{path}:{line}: {message}")


def _of_a_worker(error: SphinxParallelError) -> Exception:
    """Return what ended another process: Sphinx passes on its name and its message."""
    name, _, message = str(error).partition(": ")
    kinds = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in OURS}
    return kinds[name](message) if name in kinds else error


def is_refused(error: BaseException) -> TypeGuard[OSError]:
    """Return whether the machine let a file not be written."""
    return isinstance(error, OSError) and error.errno in REFUSED


def unwritten(app: Sphinx, error: OSError) -> UnwrittenError:
    """Return an error with the file that could not be written, or the folder that has the least room."""
    known = [Path(app.outdir), Path(app.doctreedir), Path(gettempdir())]
    folders = [folder for folder in known if folder.exists()]
    fullest = min(folders, key=lambda folder: shutil.disk_usage(folder).free)
    path = error.filename2 or error.filename or fullest
    message = f"{path}: {error.strerror}. "
    message += "Make room or change its rights, and build again."
    return UnwrittenError(f"\n{message}")


def _path(value: object) -> str:
    """Return the file of a part of a page, or of what has a module."""
    if isinstance(value, nodes.Node):
        return str(getattr(value.document, "attributes", {}).get("source", ""))
    known = getattr(value, "__dict__", {})
    return str(known["path"]) if known.get("docname") and "path" in known else ""


def _line(value: object) -> int:
    """Return the line of the module from which a part of a page is."""
    if isinstance(value, Directive):
        return value.lineno
    while isinstance(value, nodes.Node):
        if value.line:
            return value.line
        value = value.parent
    return 0


def say_and_end(app: Sphinx, exception: Exception | None) -> None:
    """Print an error of an author and end the command.

    Sphinx 8.2 and later would print the message in the middle of its versions, extensions and traceback, as
    for a fault of its own. It does so still if it is asked for more (``-v``) or for a debugger (``-P``).
    """
    error = located(app, exception) if exception else None
    if not isinstance(error, OURS):
        return
    if sphinx.version_info >= (8, 2) and not (app.pdb or app.verbosity):
        print(f"\n{error.category}:\n{error}", file=sys.stderr)
        raise SystemExit(2)
    if error is not exception:
        raise error from exception
