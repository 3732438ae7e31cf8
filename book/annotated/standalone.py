"""A definition with all that it needs, symbol by symbol, out of whatever modules they stand in."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from annotated.modules import Module, Project, absolute, library
from annotated.names import bound_names, free_names
from annotated.parse import Chapter, ChapterError, bare, first_line, parse

NAMES = "Import the names that are used, so that they can be copied."


@dataclass
class Bundle:
    """What a piece of code needs before it can run: imports, then definitions in order."""

    imports: dict[str, ast.stmt] = field(
        default_factory=dict
    )  # bound name -> import of that one name
    definitions: list[tuple[Module, ast.stmt]] = field(default_factory=list)
    owners: dict[str, tuple[Module, str]] = field(
        default_factory=dict
    )  # name -> where it is defined
    aliases: dict[str, str] = field(default_factory=dict)

    @property
    def modules(self) -> list[Module]:
        """Modules that definitions come from, in order of first use."""
        return list({module.name: module for module, _ in self.definitions}.values())

    def source(self) -> str:
        """Python: runs in an empty interpreter that has the packages."""
        future = any(
            "from __future__ import annotations" in module.text
            for module in self.modules
        )
        parts = ["from __future__ import annotations"] if future else []
        parts.append("\n".join(_merged(list(self.imports.values()))))
        parts += [clean_source(module, node) for module, node in self.definitions]
        parts += [f"{alias} = {name}" for alias, name in self.aliases.items()]
        return "\n\n\n".join(part for part in parts if part)


class Collector:
    """Follows names from module to module."""

    def __init__(self, project: Project):
        self.project = project
        self.bundle = Bundle()
        self._seen: set[tuple[str, int]] = set()

    def need(self, module: Module, name: str) -> str:
        """Adds what ``name`` means in ``module``, and all that it needs. Returns its own name."""
        statements = [s for s in library(module.tree) if name in bound_names(s)]
        for statement in statements:
            if isinstance(statement, ast.ImportFrom):
                source = self.project.find(absolute(statement, module.package))
                if source:
                    return self._imported(module, source, statement, name)
            if isinstance(statement, ast.Import | ast.ImportFrom):
                self._package(module, statement, name)
            else:
                self._definition(module, statement, name)
        return name

    def need_all(self, module: Module, statement: ast.stmt) -> None:
        """Adds what a statement of ``module`` takes from the module around it."""
        for name in sorted(free_names(statement)):
            used = self.need(module, name)
            if used != name:
                self.bundle.aliases[name] = used

    def _imported(
        self, module: Module, source: Module, statement: ast.ImportFrom, name: str
    ) -> str:
        alias = next(a for a in statement.names if (a.asname or a.name) == name)
        if self.project.find(f"{source.name}.{alias.name}"):
            raise ChapterError(
                str(module.path),
                statement.lineno,
                f"imports the module {alias.name} of {source.name}. {NAMES}",
            )
        if not any(alias.name in bound_names(s) for s in library(source.tree)):
            raise ChapterError(
                str(module.path),
                statement.lineno,
                f"{source.name} does not define {alias.name}. Correct the name.",
            )
        return self.need(source, alias.name)

    def _package(
        self, module: Module, statement: ast.Import | ast.ImportFrom, name: str
    ) -> None:
        alias = next(
            a for a in statement.names if (a.asname or a.name.partition(".")[0]) == name
        )
        if isinstance(statement, ast.Import) and self.project.find(alias.name):
            raise ChapterError(
                str(module.path),
                statement.lineno,
                f"imports the module {alias.name}. {NAMES}",
            )
        one: ast.stmt = (
            ast.Import([alias])
            if isinstance(statement, ast.Import)
            else ast.ImportFrom(statement.module, [alias], statement.level)
        )
        known = self.bundle.imports.get(name)
        if known is not None and ast.unparse(known) != ast.unparse(one):
            raise ChapterError(
                str(module.path),
                statement.lineno,
                f"{name} means `{ast.unparse(one)}` here and `{ast.unparse(known)}` in another "
                "module. Use one name for one thing.",
            )
        self.bundle.imports[name] = one

    def _definition(self, module: Module, statement: ast.stmt, name: str) -> None:
        key = (module.name, statement.lineno)
        if key in self._seen:
            return
        self._seen.add(key)
        owner = self.bundle.owners.setdefault(name, (module, name))
        if owner[0].name != module.name:
            raise ChapterError(
                str(module.path),
                statement.lineno,
                f"{name} is also defined in {owner[0].path}, and both are needed at once. Rename one.",
            )
        self.need_all(module, statement)
        self.bundle.definitions.append((module, statement))


def snippets(
    project: Project, module: Module, chapter: Chapter, title: str, page: str
) -> dict[str, str]:
    """Each definition at the top of a chapter with all that it needs; the first line says where from."""
    found = {}
    for name in (name.qualname for name, _ in chapter.names() if name.level == 1):
        collector = Collector(project)
        collector.need(module, name)
        origin = f"# {name}, from {title}, {page}#{name} (MIT license)"
        found[name] = f"{origin}\n{collector.bundle.source()}\n"
    return found


def clean_source(module: Module, node: ast.stmt) -> str:
    """A statement's own lines without docstrings and full-line comments."""
    chapter = parse(module.text, str(module.path))
    shown = {
        n
        for cell in chapter.cells
        for row in cell.rows
        for block in row.blocks
        for n in block.lines
    }
    lines = chapter.lines
    kept: list[str] = []
    for n in range(first_line(node), (node.end_lineno or node.lineno) + 1):
        if n in shown:
            kept.append(lines[n - 1])
        elif n not in chapter.aside and kept and kept[-1].strip():
            kept.append("")
    text = "\n".join(kept).strip("\n")
    try:
        same = ast.unparse(ast.parse(text)) == bare([node])
    except SyntaxError:
        same = False
    return text if same else bare([node])


def _merged(imports: list[ast.stmt]) -> list[str]:
    """Imports as one would write them: a line a module, the standard library's and ``import`` first."""
    plain = sorted(
        {ast.unparse(node) for node in imports if isinstance(node, ast.Import)}
    )
    named: dict[str, set[str]] = {}
    for node in imports:
        if isinstance(node, ast.ImportFrom) and node.module:
            named.setdefault(node.module, set()).update(
                ast.unparse(alias) for alias in node.names
            )
    return plain + [
        f"from {module} import {', '.join(sorted(names))}"
        for module, names in sorted(named.items())
    ]
