"""The routes through the book: what each page needs, what comes next, and how long it takes.

`routes.toml` has the data. The theme shows at each page its line, and remembers in the reader's browser
which route was chosen and which pages were read. On the welcome page, ``{times}`` shows the minutes of each
part, and ``{route} name`` a route: its description, its minutes and its pages.

A page takes a minute for 200 words, or 500 characters of Chinese or Japanese, and four seconds for each line
of code. What is folded does not count.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.locale import _
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective
from sphinx_annotated.page.build.contents import Entry
from sphinx_annotated.page.build.state import state_of

WORDS, LETTERS, SECONDS = 200, 500, 4  # a minute; a minute; for a line of code
FOLDED = ("fold", "deeper", "solution")  # nodes that the page shows closed
SPACELESS = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
GONE = "{}:{}: names {}, which is no page. Write it, or remove it."
TOLD = (nodes.title, nodes.paragraph, nodes.rubric, nodes.entry)


@dataclass(frozen=True)
class Routes:
    """What each page needs, and the pages of each route in order."""

    needs: dict[str, list[str]]
    routes: dict[str, list[str]]

    def after(self, docname: str) -> dict[str, str]:
        """Return the next page on each route that has this one."""
        return {
            name: pages[pages.index(docname) + 1]
            for name, pages in self.routes.items()
            if docname in pages[:-1]
        }


def read(path: Path, pages: set[str]) -> Routes:
    """Return the routes of a file. A page that the book lacks is an `ExtensionError`."""
    text = path.read_text("utf-8")
    found = tomllib.loads(text)
    routes = Routes(found.get("needs", {}), found.get("routes", {}))
    lists = [list(routes.needs), *routes.needs.values(), *routes.routes.values()]
    for name in chain(*lists):
        if name not in pages:
            line = text[: text.index(f'"{name}"')].count("\n") + 1
            raise ExtensionError(GONE.format(path, line, name))
    return routes


def check(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Read the routes, when all pages are known. If they have changed, all pages are written again."""
    path = Path(app.srcdir, app.config.routes_file)
    app.routes = read(path, env.found_docs)  # type: ignore[attr-defined]
    before, now = getattr(env, "routes", None), app.routes  # type: ignore[attr-defined]
    env.routes = now  # type: ignore[attr-defined]
    return sorted(env.found_docs) if before != now else []


def minutes(document: nodes.document) -> float:
    """Return how long a page takes to read."""
    words = letters = lines = 0
    for node in document.findall(_counts):
        if isinstance(node, nodes.literal_block):
            lines += sum(bool(line.strip()) for line in node.astext().splitlines())
        else:
            text, several = SPACELESS.subn(" ", node.astext())
            words, letters = words + len(text.split()), letters + several
    return words / WORDS + letters / LETTERS + lines * SECONDS / 60


def _counts(node: nodes.Node) -> bool:
    """Return whether a node is read: a text, or code, that is neither folded nor an output."""
    if not isinstance(node, (*TOLD, nodes.literal_block)):
        return False
    above = node.parent
    if "output" in node.get("classes", ()):  # type: ignore[attr-defined]
        return False
    while above is not None:
        if type(above).__name__ in FOLDED or isinstance(above, nodes.entry):
            return False
        above = above.parent
    return True


def duration(found: float) -> str:
    """Return minutes in words, to five of them."""
    rounded = max(5, 5 * round(found / 5))
    hours, left = divmod(rounded, 60)
    if not hours:
        return _("{} min").format(left)
    return _("{} h {} min").format(hours, left) if left else _("{} h").format(hours)


class times(nodes.General, nodes.Element):  # noqa: N801 (docutils names nodes so)
    """Where the table of times goes."""


class stops(nodes.General, nodes.Element):  # noqa: N801
    """Where the pages of a route go."""


class Times(SphinxDirective):
    """The time that each part of the book takes."""

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # any page may have other words
        return [times()]


class Route(SphinxDirective):
    """A route: its description, then its time and its pages."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        name = self.arguments[0]
        box = nodes.container(classes=["route", f"route--{name}"])
        box.document = self.state.document
        self.state.nested_parse(self.content, self.content_offset, box)
        box += stops(route=name, line=self.lineno)
        return [box]


class Fill(SphinxPostTransform):
    """Puts times and links into the page, which are known when all pages are read."""

    default_priority = 5

    def run(self, **kwargs: Any) -> None:
        for place in list(self.document.findall(times)):
            place.replace_self(self._times())
        for place in list(self.document.findall(stops)):
            place.replace_self(self._stops(place["route"], place["line"]))

    def _minutes(self, docname: str) -> float:
        return minutes(self.env.get_doctree(docname))

    def _times(self) -> nodes.Node:
        """Return a line for each part that has chapters."""
        entries = state_of(self.env).contents
        parts: dict[str, float] = {}
        for entry in entries:
            if entry.docname in self.app.routes.needs:  # type: ignore[attr-defined]
                found = self._minutes(entry.docname)
                parts[entry.part] = parts.get(entry.part, 0.0) + found
        told = nodes.definition_list(classes=["times"])
        for part, whole in [*parts.items(), (_("All parts"), sum(parts.values()))]:
            text = nodes.paragraph("", duration(whole))
            line = nodes.term("", part), nodes.definition("", text)
            told += nodes.definition_list_item("", *line)
        return told

    def _stops(self, name: str, line: int) -> nodes.Node:
        """Return the time and the pages of a route."""
        routes = self.app.routes.routes  # type: ignore[attr-defined]
        if name not in routes:
            known = ", ".join(routes)
            raise ExtensionError(
                f"{self.env.doc2path(self.env.docname)}:{line}: there is no route {name}, only {known}."
            )
        whole = duration(sum(map(self._minutes, routes[name])))
        shown = nodes.paragraph("", _("{}: {}").format(whole, ""), classes=["stops"])
        entries = state_of(self.env).contents
        for at, docname in enumerate(routes[name]):
            link = link_to(self.app, entries, self.env.docname, docname)
            shown += [nodes.Text(" → ")] if at else []
            shown += nodes.reference(
                "", link["title"], refuri=link["href"], internal=True
            )
        return shown


def link_to(app: Sphinx, entries: list[Entry], page: str, other: str) -> dict[str, str]:
    """Return the number, the title and the address of another page."""
    entry = next((e for e in entries if e.docname == other), None)
    title = entry.title if entry else app.env.titles[other].astext()
    number = f"{entry.number} " if entry and entry.number else ""
    href = app.builder.get_relative_uri(page, other)
    return {"title": number + title, "href": href}


def show(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give a page the links to what it needs and to what comes next on each route."""
    routes: Routes = app.routes  # type: ignore[attr-defined]
    entries = state_of(app.env).contents
    if pagename == app.config.root_doc:
        app.add_js_file("routes.js", loading_method="defer")
    if pagename not in routes.needs and not routes.after(pagename):
        return

    def link(other: str) -> dict[str, str]:
        return link_to(app, entries, pagename, other)

    context["way"] = {
        "needs": [link(other) for other in routes.needs.get(pagename, [])],
        "next": {name: link(o) for name, o in routes.after(pagename).items()},
        "usual": next(iter(routes.routes), ""),
    }


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("routes_file", "routes.toml", "html", types=[str])
    app.add_directive("times", Times)
    app.add_directive("route", Route)
    app.add_node(times)
    app.add_node(stops)
    app.add_post_transform(Fill)
    app.connect("env-updated", check)
    app.connect("html-page-context", show)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
