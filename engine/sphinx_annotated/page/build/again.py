"""Pages that the next build reads again: what is wrong with them must not be forgotten.

Sphinx warns only when it reads or writes a page, so a strict build would pass over warnings of
the build before it. And it takes a page for written when it is read, so a build that ends in
between would leave the old page for good.
"""

from __future__ import annotations

import logging
import re
from copy import copy
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.logging import (
    NAMESPACE,
    WarningLogRecordTranslator,
    is_suppressed_warning,
)

from sphinx_annotated.ends import is_refused, unwritten

LINE = re.compile(
    r":(docstring of .*|\d*)$"
)  # after a path, which has a colon on Windows
ALL = "*"  # in place of names, while pages are written


class Again(logging.Handler):
    """Collects the pages that warnings are about, and keeps them in a file."""

    def __init__(self, app: Sphinx):
        super().__init__(logging.WARNING)
        self.app = app
        self.pages: set[str] = set()
        self.translator = WarningLogRecordTranslator(app)  # places as "path:line"
        logging.getLogger(NAMESPACE).addHandler(self)
        app.connect("env-get-outdated", self.read)
        app.connect("env-updated", self.begin)
        app.connect("build-finished", self.end)

    def emit(self, record: logging.LogRecord) -> None:
        arguments = record.args if isinstance(record.args, tuple) else ()
        for error in arguments:
            if isinstance(error, OSError) and is_refused(error):  # Sphinx would warn
                raise unwritten(self.app, error)
        record = copy(record)  # Sphinx adds the kind of a warning each time
        self.translator.filter(record)  # type: ignore[arg-type]
        path = LINE.sub("", str(getattr(record, "location", None) or ""))
        kind, part = getattr(record, "type", ""), getattr(record, "subtype", "")
        silenced = self.app.config.suppress_warnings
        if path and not is_suppressed_warning(kind, part, silenced):
            self.pages.add(str(self.app.env.path2doc(path)))

    def read(self, app: Sphinx, env: BuildEnvironment, *changes: set[str]) -> list[str]:
        """Return the pages that the last build left to read again."""
        found = (
            self._file.read_text("utf-8").split("\n") if self._file.is_file() else []
        )
        every = ALL in found or self._has_part_of_an_index()
        return sorted(env.found_docs if every else env.found_docs & set(found))

    def begin(self, app: Sphinx, env: BuildEnvironment) -> list[str]:
        """Note that pages are being written."""
        self._file.write_text(ALL, "utf-8")
        return []

    def end(self, app: Sphinx, exception: Exception | None) -> None:
        """Note the pages of this build's warnings, if it came to its end."""
        if exception is None:
            self._file.write_text("\n".join(sorted(self.pages)), "utf-8")

    def _has_part_of_an_index(self) -> bool:
        """Return whether the search index ends early, as on a full disk: Sphinx cannot add to it."""
        name = getattr(self.app.builder, "searchindex_filename", None) or "none"
        path = Path(self.app.outdir, name)
        return path.is_file() and not path.read_bytes().endswith(b"})")

    @property
    def _file(self) -> Path:
        return Path(self.app.doctreedir) / "again"
