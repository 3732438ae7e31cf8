"""A quick build, for an author who waits: it writes the pages that changed, and nothing that takes all pages.

The search, the digests of styles and scripts in links, and the lists of all deviations and all numbers stay
those of the last whole build, and the next one brings them up to date.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def is_quick(app: Sphinx) -> bool:
    """Return whether this build is quick."""
    return bool(getattr(app.config, "quick", False))


def put_off(app: Sphinx) -> None:
    """Leave out pages that each whole build reads again."""
    if is_quick(app):
        app.put_off = set(app.env.reread_always)  # type: ignore[attr-defined]
        app.env.reread_always.clear()


def remember(app: Sphinx, env: BuildEnvironment) -> None:
    """Let the next whole build read them, as this one ends reading."""
    env.reread_always |= getattr(app, "put_off", set())


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("quick", False, "", types=[bool])
    app.connect("builder-inited", put_off)
    app.connect("env-updated", remember)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
