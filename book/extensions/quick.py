"""A quick build, for an author who waits: it writes the pages that changed, and nothing that takes all pages.

It first builds the pages whose own files changed. Others that show parts of them, as a difference of two
layers does, are left to a second quick build. The search, the digests of styles and scripts in links, and the
list of all numbers stay those of the last whole build, and the next one brings them up to date.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment


def is_quick(app: Sphinx) -> bool:
    """Return whether this build is quick."""
    return bool(getattr(app.config, "quick", False))


left: set[str] = set()  # pages that this build has left to the next one


def own_first(
    app: Sphinx,
    env: BuildEnvironment,
    added: set[str],
    changed: set[str],
    removed: set[str],
) -> list[str]:
    """Leave those pages out that changed only by other files, if there are both kinds."""
    if app.config.quick == "own":
        own = {name for name in changed if _is_edited(env, name)}
        if own or added:
            left.update(changed - own)
            changed &= own
    return []


def _is_edited(env: BuildEnvironment, docname: str) -> bool:
    """Return whether a page's own file is newer than what Sphinx has read, as Sphinx finds it.

    So is a file of sources on the page that lists them: a new one can be cited when this page is read.
    """
    sources = (
        name for name in env.dependencies.get(docname, ()) if name.endswith(".bib")
    )
    files = [Path(env.doc2path(docname)), *(Path(env.srcdir, name) for name in sources)]
    now = max(path.stat().st_mtime_ns for path in files if path.is_file()) // 1000
    return now > env.all_docs.get(docname, 0)


def put_off(app: Sphinx) -> None:
    """Leave out pages that each whole build reads again."""
    if is_quick(app):
        app.put_off = set(app.env.reread_always)  # type: ignore[attr-defined]
        app.env.reread_always.clear()


def remember(app: Sphinx, env: BuildEnvironment) -> None:
    """Let the next whole build read them, as this one ends reading."""
    env.reread_always |= getattr(app, "put_off", set())


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("quick", "", "")  # "own": pages whose own files changed; "all"
    app.connect("env-get-outdated", own_first, priority=1)
    app.connect("builder-inited", put_off)
    app.connect("env-updated", remember)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
