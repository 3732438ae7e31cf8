"""The ``picture`` directive: a drawing whose boxes are links into the book.

``:::{picture} name`` shows what ``draw()`` of the module ``name`` returns, as SVG. The module is in
any folder of the package that ``annotated_pictures`` names. In the drawing,
``<a href="package.module.Class">`` leads to that definition's place,
``<a href="package.module.NAME[key]">`` to the line of that entry of a dictionary, and
``<a href="package.module">`` to the top of that chapter.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from base64 import b64encode
from collections.abc import Callable
from html import escape, unescape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.locale import _
from sphinx.util.docutils import SphinxDirective

from sphinx_annotated.page.build.book import Book
from sphinx_annotated.page.build.state import state_of
from sphinx_annotated.read.digest import data
from sphinx_annotated.read.modules import Project

HREF = re.compile(r'(?<=<a href=")([^"]*)(?=")')
SPOKEN = re.compile(r'aria-label="([^"]*)".*?<desc>(.*?)</desc>', re.DOTALL)
STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
DARK = re.compile(
    r"@media \(prefers-color-scheme: dark\) *\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}"
)
DEFINED = re.compile(r"(--[\w-]+): *([^;{}]+)")
VARIABLE = re.compile(r"var\((--[\w-]+)(?:, *([^()]*))?\)")
FOLDER = "_downloads/pictures"


class picture(nodes.General, nodes.Element):  # noqa: N801 (docutils names nodes so)
    """A drawing: its ``name``, and ``svg`` with links as they were drawn."""


class Picture(SphinxDirective):
    """In a chapter, its row moves it to the code column."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name, project = self.arguments[0], state_of(self.env).project
        try:
            svg = drawn(self.config.annotated_pictures, name)
            for target in HREF.findall(svg):
                place_of(target, project)
        except LookupError as error:
            raise self.error(f"picture {name}: {error}") from None
        for path in files(self.config.annotated_pictures, name):
            self.env.note_dependency(str(path))
        return [picture(name=name, svg=svg)]


def drawn(package: str, name: str) -> str:
    """Return a picture as SVG. Raises ``LookupError`` if there is none of that name."""
    root, path = _found(package, name)
    module = ".".join(path.relative_to(root).with_suffix("").parts)
    svg: str = importlib.import_module(module).draw()
    return svg


def files(package: str, name: str) -> list[Path]:
    """Return the files that a picture is drawn with: its module, those it imports, and their data."""
    root, path = _found(package, name)
    project = Project(root)
    module = project.at(path)
    modules = [module, *project.dependencies(module)]
    read = [file for each in modules for _, file in data(each, project)]
    return [*(each.path for each in modules), *read]


def _found(package: str, name: str) -> tuple[Path, Path]:
    """Return the folder that a picture's module is imported from, and its file.

    Raises ``LookupError`` unless exactly one file of the package has that name.
    """
    spec = importlib.util.find_spec(package) if package else None
    if spec is None or not spec.submodule_search_locations:
        message = f"there is no package {package!r}. Correct annotated_pictures."
        raise LookupError(message)
    folder = Path(spec.submodule_search_locations[0])
    paths = sorted(folder.rglob(f"{name}.py"))
    if not paths:
        message = (
            f"no folder of {package} has {name}.py. Write it, or correct the name."
        )
        raise LookupError(message)
    if len(paths) > 1:
        each = " and ".join(path.relative_to(folder).as_posix() for path in paths)
        raise LookupError(f"{each} have the same name. Rename one.")
    return folder.parents[package.count(".")], paths[0]


def place_of(target: str, project: Project) -> tuple[str, str]:
    """Return the page of a module, a definition or an entry of a dictionary, and its anchor there.

    Raises ``LookupError`` if the project does not have it.
    """
    if target.endswith("]"):
        name, _, key = target[:-1].partition("[")
        return _place_of_entry(name, key, project)
    parts = target.split(".")
    for cut in range(len(parts), 0, -1):
        module = project.find(".".join(parts[:cut]))
        if module is not None and module.path.stem != "__init__":
            anchor = ".".join(parts[cut:])
            names = {name.qualname for name, _ in module.chapter.names()}
            if anchor and anchor not in names:
                break
            return project.docname(module), f"#{anchor}" if anchor else ""
    message = f"{target} is not defined. Correct the link of the box."
    raise LookupError(message)


def _place_of_entry(target: str, key: str, project: Project) -> tuple[str, str]:
    """Return the page and the line of an entry of a dictionary that a module assigns to a name."""
    where, _, name = target.rpartition(".")
    module = project.find(where)
    for node in module.tree.body if module else ():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            for each in getattr(node.value, "keys", []):
                if isinstance(each, ast.Constant) and each.value == key:
                    assert module
                    return project.docname(module), f"#L{each.lineno}"
    message = f"{target} has no entry {key!r}. Correct the link of the box."
    raise LookupError(message)


def linked(svg: str, project: Project, address: Callable[[str], str]) -> str:
    """Return a picture with the links that ``address`` gives to pages."""

    def link(match: re.Match[str]) -> str:
        docname, anchor = place_of(match[1], project)
        return address(docname) + anchor

    return HREF.sub(link, svg)


def standalone(svg: str, book: Book) -> str:
    """Return a picture as a file: its links lead to the site, and it names its licence."""
    origin = f"From {book.title}, {book.url}. {book.license_name} license."
    svg = linked(svg, book.project, book.address)
    return svg.replace("<desc>", f"<metadata>{origin}</metadata><desc>", 1)


def light(svg: str) -> str:
    """Return a picture as a file for slides: light, and its variables as their values.

    Most programs that place an SVG on a slide know no variables.
    """
    svg = DARK.sub("", svg)
    values: dict[str, str] = dict(DEFINED.findall("".join(STYLE.findall(svg))))
    while VARIABLE.search(svg):
        svg = VARIABLE.sub(lambda found: values.get(found[1], found[2] or ""), svg)
    return svg


def as_markdown(svg: str, book: Book) -> str:
    """Return a picture as an image inside Markdown, with its text alternative."""
    match = SPOKEN.search(svg)
    words = unescape(f"{match[1]}. {match[2]}") if match else ""
    data = b64encode(standalone(svg, book).encode()).decode()
    words = re.sub(r"[\[\]]", "", words)
    return f"![{words}](data:image/svg+xml;base64,{data})"


def visit_picture(translator: Any, node: picture) -> None:
    builder = translator.builder
    state = state_of(builder.env)
    here = builder.current_docname
    name, svg = node["name"], node["svg"]
    file = Path(builder.outdir, FOLDER, f"{name}.svg")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(light(standalone(svg, state.book)), encoding="utf-8")
    up = "../" * here.count("/")

    def address(docname: str) -> str:
        same = docname == here
        return "" if same else str(builder.get_relative_uri(here, docname))

    svg = STYLE.sub("", linked(svg, state.project, address))  # the page has its own
    of_this = _("of this picture")
    license_name = f"{state.book.license_name} license"
    terms = state.book.license_name and _(license_name)
    translator.body.append(
        f'<figure class="out out--picture" data-pagefind-ignore>{svg}'
        f'<figcaption class="picture-foot">'
        f'<a class="picture-file" href="{up}{FOLDER}/{name}.svg" download>'
        f'SVG<span class="visually-hidden"> {of_this}</span></a>'
        f'<span class="picture-origin">{escape(state.book.title)}</span>'
        f"<span>{escape(terms)}</span></figcaption></figure>"
    )
    raise nodes.SkipNode
