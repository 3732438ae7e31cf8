"""The book's table of contents: its pages in order, with numbers and parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from sphinx_annotated.page.build.catalogues import say_of


@dataclass(frozen=True)
class Entry:
    """A page in the table of contents."""

    docname: str
    number: str
    title: str
    part: str


def in_order(app: Sphinx) -> list[str]:
    """Return the names of the book's pages in order, when all are read."""
    return [entry.docname for entry in contents(app)]


def contents(app: Sphinx) -> list[Entry]:
    """Return the book's pages in order. The modules of packages are numbered chapters."""
    env = app.env
    root = env.config.root_doc
    # An external table of contents is inserted after Sphinx has translated the page.
    say = say_of(app, root) or str
    entries: list[Entry] = []
    count = 0

    def walk(docname: str, part: str) -> None:
        nonlocal count
        if docname not in env.toctree_includes:
            return  # without reading the page
        for toctree in env.get_doctree(docname).findall(addnodes.toctree):
            caption = say(toctree["caption"]) if toctree.get("caption") else part
            for title, ref in toctree["entries"]:
                if ref not in env.all_docs:
                    continue
                number = ""
                path = Path(env.doc2path(ref))
                if path.suffix == ".py" and path.with_name("__init__.py").is_file():
                    count += 1
                    number = str(count)
                name = title or env.titles.get(ref, nodes.title("", ref)).astext()
                entries.append(Entry(ref, number, name, caption))
                walk(ref, caption)

    walk(root, "")
    return entries


def lost_pages(app: Sphinx) -> Iterator[str]:
    """Yield an error for each page that the external table of contents lists in vain."""
    name = getattr(app.config, "external_toc_path", None)
    path = Path(app.srcdir, name) if name else None
    if path is None or not path.is_file():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        entry = re.match(r"[\s-]*(?:file|root): *[\"']?([^\s\"'#]+)", line)
        docname = entry[1] if entry else None
        known = docname is None or app.env.path2doc(docname) in app.env.found_docs
        if not known and docname not in app.env.found_docs:
            message = (
                f"lists {docname}, which is no page. Write it, or remove the line."
            )
            yield f"{path}:{number}: {message}"


class Navigation:
    """The list of chapters by part, with links relative to one page. It is made if a theme shows it."""

    def __init__(self, app: Sphinx, entries: list[Entry], pagename: str):
        self.given = app, entries, pagename

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.parts)

    def __bool__(self) -> bool:
        return bool(self.given[1])

    @cached_property
    def parts(self) -> list[dict[str, Any]]:
        """Each part's caption and its items."""
        app, entries, pagename = self.given
        parts: list[dict[str, Any]] = []
        for entry in entries:
            if not parts or parts[-1]["caption"] != entry.part:
                parts.append({"caption": entry.part, "items": []})
            parts[-1]["items"].append(
                {
                    "number": entry.number,
                    "title": entry.title,
                    "href": app.builder.get_relative_uri(pagename, entry.docname),
                    "current": entry.docname == pagename,
                }
            )
        return parts
