"""The site's search: Pagefind indexes the built pages for the theme's search field."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError


def index(app: Sphinx, exception: Exception | None) -> None:
    """Write the index to `_pagefind` in the site, if a page is newer than the index."""
    if exception is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    target = site / "_pagefind"
    entry = target / "pagefind-entry.json"
    newest = max(page.stat().st_mtime for page in site.rglob("*.html"))
    if entry.is_file() and entry.stat().st_mtime > newest:
        return
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "pagefind_bin", "--site", str(site)]
    command += ["--output-subdir", "_pagefind", "--quiet"]
    # A formula is in the page as HTML, as MathML and as TeX. Only the MathML is indexed.
    command += ["--exclude-selectors", ".katex-html, .katex annotation"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ExtensionError(f"Pagefind made no index: {done.stderr.strip()}")
    for pattern in ("*ui.*", "pagefind-highlight.js", "wasm.unknown.*"):
        for unused in target.glob(pattern):
            unused.unlink()  # the theme has a field and a list of its own


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
