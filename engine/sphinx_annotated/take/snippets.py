"""The standalone code of each definition, placed in its page for the copy buttons."""

from __future__ import annotations

import ast
import json
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.osutil import relative_uri

from sphinx_annotated.page.build.state import Shown, State, state_of
from sphinx_annotated.page.directives.difference import code_lines
from sphinx_annotated.page.html.boxes import is_sheet
from sphinx_annotated.read.memo import digest_of
from sphinx_annotated.read.syntax import ChapterError
from sphinx_annotated.take.compare import Verdict
from sphinx_annotated.take.standalone import NEEDED, snippet, summary

UNCOPIED = "%s Until then, readers cannot copy this with what it needs: %s."
UNRUN = ". This copy was not run."
LOGGER = logging.getLogger(__name__)


class standalone_code(nodes.Element):  # noqa: N801 (docutils names nodes so)
    """``texts``: the standalone code of each definition, by its name."""


class OfferSnippets(SphinxPostTransform):
    """HTML only: adds the standalone code to the sheet, and marks what can be copied.

    A function inside another one is not marked, because it is of no use elsewhere.
    """

    default_priority = 910  # after the sheet is made
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        state, docname = state_of(self.env), self.env.docname
        sheet = next(self.document.findall(is_sheet), None)
        if docname not in state.jobs or not isinstance(sheet, nodes.container):
            return
        job = state.job(docname)
        names = [name for name, _ in job.chapter.names()]
        texts = self._texts([name.qualname for name in names if name.level == 1])
        inner = {n.qualname for n in names if n.kind == "function" and n.level > 1}
        for box in list(sheet.findall(_is_definition)):
            name = box["ids"][0]  # type: ignore[index]
            if name.partition(".")[0] in texts and name not in inner:
                box["classes"].append("def--own")  # type: ignore[index]
        sheet += standalone_code(texts=texts)

    def _texts(self, names: list[str]) -> dict[str, str]:
        """Return the standalone code of definitions, and warn if some have none."""
        state, page = state_of(self.env), self.env.docname
        module = state.project.at(state.job(page).path)
        verdict: Verdict | None = state.verdicts.get(page)
        texts: dict[str, str] = {}
        reasons: dict[str, list[str]] = {}
        for name in names:
            try:
                reach, note = NEEDED, UNRUN
                if verdict:
                    reach, note = verdict.reach_of(state.project, module, name), ""
                texts[name] = snippet(state.book, module, name, reach, note)
            except ChapterError as error:
                reasons.setdefault(str(error), []).append(name)
        for reason, lacking in reasons.items():
            place, _, words = reason.partition(": ")
            LOGGER.warning(
                *(UNCOPIED, words, ", ".join(lacking)),
                location=place,
                type="annotated",
                subtype="standalone",
            )
        return texts


def _copies_of(state: State, name: str) -> str:
    """Return a digest of what copies and notebooks of other chapters may take from a module."""
    module = state.project.find(name)
    if module is None:
        return ""

    def work() -> str:
        code = [line.text for line in code_lines(module)]
        parts = ast.walk(module.tree)
        documented = (n for n in parts if isinstance(n, ast.FunctionDef | ast.ClassDef))
        return digest_of([*code, *map(summary, documented)])

    found: str = state.project.once(module, "copies", work)
    return found


Shown.kinds["copies"] = _copies_of


def _is_definition(node: nodes.Node) -> bool:
    return (
        isinstance(node, nodes.container)
        and "def" in node["classes"]
        and bool(node["ids"])
    )


def script_of(docname: str) -> str:
    """Return where the script with a chapter's code is in the site."""
    return f"_static/standalone/{docname.replace('/', '.')}.js"


def visit_standalone_code(translator: Any, node: standalone_code) -> None:
    """Write the code to a script, which the page loads when a reader wants to copy it.

    A script can be read from disk too, where nothing can be fetched. Each shared piece is in it
    once, and a definition lists the numbers of its pieces.
    """
    pieces: dict[str, int] = {}
    lists = []
    for name, text in node["texts"].items():
        parts = text.removesuffix("\n").split("\n\n\n")
        numbers = " ".join(str(pieces.setdefault(part, len(pieces))) for part in parts)
        lists.append(f'<b title="{name}">{numbers}</b>')
    texts = [f"<i>{escape(piece, quote=False)}</i>" for piece in pieces]
    held = json.dumps("".join((*texts, *lists)))
    builder = translator.builder
    page = builder.current_docname
    name = script_of(page)
    path = Path(builder.outdir, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    script = f'document.getElementById("standalone").innerHTML = {held}'
    path.write_text(script, encoding="utf-8")
    source = relative_uri(builder.get_target_uri(page), name)
    names = " ".join(node["texts"])
    translator.body.append(
        f'<template id="standalone" data-of="{names}" data-source="{source}"></template>'
    )
    raise nodes.SkipNode
