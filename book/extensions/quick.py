"""A quick build, for an author who waits: it writes the pages that changed, and nothing that takes all pages.

The search, and the digests of styles and scripts in links, stay those of the last whole build, and the next
one brings them up to date.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx


def is_quick(app: Sphinx) -> bool:
    """Return whether this build is quick."""
    return bool(getattr(app.config, "quick", False))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("quick", False, "", types=[bool])
    return {"parallel_read_safe": True, "parallel_write_safe": True}
