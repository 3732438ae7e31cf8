"""The site's search: Pagefind indexes the built pages for the theme's search field.

Next to its index is a list of places: pages, sections, definitions and the terms of the glossary.
The field finds them by their names, and shows them before Pagefind's results.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from docutils import nodes
from glossary import entries, explained
from plain_math import plain_title
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError


class Place(TypedDict):
    """What the search field finds by name. Addresses are relative to the root of the site."""

    kind: str  # page, definition, section or term
    names: list[str]  # what a reader may type
    url: str
    page: str  # the title of its page
    text: NotRequired[str]  # a term's definition, as HTML
    explained: NotRequired[str]  # the address of the place that explains a term


def index(app: Sphinx, exception: Exception | None) -> None:
    """Write the index and the list of places to `_pagefind` in the site."""
    if exception is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    target = site / "_pagefind"
    entry = target / "pagefind-entry.json"
    newest = max(page.stat().st_mtime for page in site.rglob("*.html"))
    if not entry.is_file() or entry.stat().st_mtime <= newest:
        _run_pagefind(site, target)
        text = json.dumps(list(places(app)), ensure_ascii=False, separators=(",", ":"))
        (target / "places.json").write_text(text, encoding="utf-8")


def _run_pagefind(site: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "pagefind_bin", "--site", str(site)]
    command += ["--output-subdir", target.name, "--quiet"]
    # Of a formula, the plain text in an attribute around it is indexed. A term of the glossary is found by
    # its name, in the list of places.
    left_out = [".katex", ".headerlink", ".letters", "dl.glossary"]
    command += ["--exclude-selectors", ", ".join(left_out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ExtensionError(f"Pagefind made no index: {done.stderr.strip()}")
    for pattern in ("*ui.*", "pagefind-highlight.js", "wasm.unknown.*"):
        for unused in target.glob(pattern):
            unused.unlink()  # the theme has a field and a list of its own


def places(app: Sphinx) -> Iterator[Place]:
    """Yield the places of all pages, in the book's order, and the terms of the glossary."""
    env, address = app.env, app.builder.get_target_uri
    defined = _definitions(env)
    for docname in env.collect_relations():
        page, url = plain_title(env.titles[docname]), address(docname)
        yield {"kind": "page", "names": [page], "url": url, "page": page}
        left = defined.get(docname, [])
        for section in _sections(env, docname):
            title = plain_title(section[0])
            name = next((i for i in _anchors(section) if i in left), None)
            if name:  # the section of a definition: one place with two names
                left = [other for other in left if other != name]
            yield {
                "kind": "definition" if name else "section",
                "names": [title, name] if name else [title],
                "url": f"{url}#{name or section['ids'][0]}",
                "page": page,
            }
        for name in left:
            found = {"kind": "definition", "names": [name], "url": f"{url}#{name}"}
            yield {**found, "page": page}  # type: ignore[typeddict-item]
    for entry in entries(env):
        term: Place = {
            "kind": "term",
            "names": list(entry.anchors),
            "url": f"{address(entry.docname)}#{next(iter(entry.anchors.values()))}",
            "page": env.titles[entry.docname].astext(),
            "text": escape(entry.text),
        }
        if place := explained(env, entry):
            docname, anchor = place
            term["explained"] = address(docname) + (f"#{anchor}" if anchor else "")
        yield term


def _definitions(env: BuildEnvironment) -> dict[str, list[str]]:
    """Return the names of the definitions of each page, without its helpers."""
    found: dict[str, list[str]] = {}
    for full, entry in env.get_domain("py").objects.items():  # type: ignore[attr-defined]
        own = full.endswith(f".{entry.node_id}") and not entry.aliased
        if own and not full.endswith("__"):
            found.setdefault(entry.docname, []).append(entry.node_id)
    return found


def _sections(env: BuildEnvironment, docname: str) -> list[nodes.section]:
    """Return the sections of a page, without the page's own."""
    found = list(env.get_doctree(docname).findall(nodes.section))
    return [s for s in found if s.parent is not s.document]


def _anchors(section: nodes.section) -> list[str]:
    """Return the anchors in the section's first row, if that row is a definition's."""
    row = section[1] if len(section) > 1 else section
    if "sbs__row--definition" not in row.get("classes", ()):  # type: ignore[attr-defined]
        return []
    return [i for node in row.findall(nodes.Element) for i in node["ids"]]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("build-finished", index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
