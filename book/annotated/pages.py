"""What a theme needs to know of a page: the title block, and the list of chapters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from annotated.code import Highlighter
from annotated.execute import Record
from annotated.modules import Project
from annotated.parse import Chapter


@dataclass
class Page:
    """A chapter while Sphinx works on it."""

    chapter: Chapter
    project: Project
    module: str
    record: Record
    highlighter: Highlighter


@dataclass(frozen=True)
class Entry:
    """A page in the book's order."""

    docname: str
    number: str
    title: str
    part: str


def site_url(repository: str) -> str:
    """Where a repository's pages are published, with a slash at the end."""
    owner, _, name = (
        repository.rstrip("/").removeprefix("https://github.com/").partition("/")
    )
    return f"https://{owner}.github.io/{name}/" if name else ""


def contents(app: Sphinx) -> list[Entry]:
    """The book's pages in order; the modules of a package are numbered chapters."""
    env = app.env
    root = env.config.root_doc
    entries: list[Entry] = []
    count = 0

    def walk(docname: str, part: str) -> None:
        nonlocal count
        for toctree in env.get_doctree(docname).findall(addnodes.toctree):
            caption = toctree.get("caption") or part
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
    """What an external table of contents lists and the book has not, with file, line and mend."""
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
                f"lists {docname}, which is no page. Write it, or take the line out."
            )
            yield f"{path}:{number}: {message}"


def navigation(
    app: Sphinx, entries: list[Entry], pagename: str
) -> list[dict[str, Any]]:
    """The list of chapters, part by part, as seen from one page."""
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


def title_block(
    app: Sphinx, page: Entry, facts: dict[str, Any], doctree: nodes.document
) -> dict[str, Any]:
    """What stands above the sheet."""
    render = app.builder.render_partial  # type: ignore[attr-defined]
    pieces = getattr(doctree, "annotated_head", {})
    summary, source = pieces.get("summary"), pieces.get("source")
    rows = []
    if source is not None:
        rows.append({"name": "Source", "html": render(source)["fragment"]})
    rows.append({"name": "Runs in", "html": facts["runs"]})
    rows.append({"name": "Last run", "html": facts["last"]})
    return {
        "number": page.number,
        "part": page.part,
        "title": page.title,
        "summary": render(summary)["fragment"] if summary is not None else "",
        "facts": rows,
        "glance": facts["glance"],
    }
