"""Collect a definition with everything it needs, from all modules of the project."""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial

from sphinx_annotated.page.build.book import Book
from sphinx_annotated.read.modules import Module, Project, absolute, imported_names
from sphinx_annotated.read.names import (
    bound_names,
    class_names,
    free_names,
    quoted_names,
)
from sphinx_annotated.read.syntax import (
    DEFINITIONS,
    ChapterError,
    Definition,
    bare,
    first_line,
    is_for_types,
)
from sphinx_annotated.take.changes import (
    docstrings_read,
    is_setting,
    makers,
    run_at_once,
    set_as_global,
)

Import = ast.Import | ast.ImportFrom

OF_FILE = ("__doc__", "__file__", "__spec__")  # which a copy has not, or others
IN_NOTEBOOKS = ("display", "get_ipython")  # which are there without an import
STARS = "imports everything. Import the names that are used."
ROLE = re.compile(r"\{[\w:]+\}`~?(?:([^`<]+?) *<[^`>]*>|(?:[^`]*[./])?([^`]+))`")
SENTENCE = re.compile(r"[A-Z`{].*?[.?!](?=\s|$)", re.DOTALL)
READS_ANNOTATIONS = re.compile(
    r"__annotations__|\b(get_annotations|get_type_hints)\b|\.annotation\b|\bfields\((?s:.*)\.type\b"
)
WIDTH = 88  # of a line of copied code


@dataclass
class Piece:
    """A statement at a module's top level, and the pieces that it needs."""

    module: Module
    node: ast.stmt
    rank: tuple[int, int, int]  # order of first use of its module, line, column
    needs: set[int] = field(default_factory=set)  # before it can be used
    first: set[int] = field(default_factory=set)  # of these, before it can run
    again: bool = False  # whether it changes what a name meant before it


@dataclass
class Bundle:
    """Everything that code needs before it can run: imports, then definitions in order."""

    imports: dict[str, ast.stmt] = field(default_factory=dict)  # each of one name
    pieces: dict[int, Piece] = field(default_factory=dict)
    meanings: dict[str, str] = field(default_factory=dict)  # by name
    aliases: dict[str, str] = field(default_factory=dict)  # alias -> own name

    @property
    def modules(self) -> list[Module]:
        """The modules of the definitions, in the order of the source."""
        return list({module.name: module for module, _ in self.code}.values())

    @property
    def code(self) -> list[tuple[Module, ast.stmt]]:
        """The definitions with their modules, in the order of the source."""
        return [(p.module, p.node) for p in _ordered(self.pieces)]

    @property
    def has_future(self) -> bool:
        """Whether annotations stay texts in it, as one of its modules says."""
        return any(_has_future(module) for module in self.modules)

    @property
    def packages_at_once(self) -> set[str]:
        """The packages that statements other than definitions use while they run, or what they call does."""
        run = {k for k, p in self.pieces.items() if not isinstance(p.node, DEFINITIONS)}
        run = run.union(*(_reach(self.pieces, key) for key in run))
        names = {name for k in run for name in free_names(self.pieces[k].node)}
        found = [packages(node) for node in self.imports.values()]
        return {each[name] for each in found for name in names & each.keys()}

    def source(
        self, project: Project, documented: bool = False, whole: bool = False
    ) -> str:
        """Return code that runs in an empty interpreter with the packages installed.

        It imports nothing from the project. ``documented`` definitions keep a sentence of their
        docstrings. They keep them ``whole`` if the code itself reads some.
        """
        whole = whole or any([*docstrings_read(node)] for _, node in self.code)
        future = self.has_future
        if future:
            check_annotations(self.code)
        parts = ["from __future__ import annotations"] if future else []
        parts.append("\n".join(_merged(list(self.imports.values()))))
        parts += self._aliases(
            {name for name in self.meanings if self._is_import(name)}
        )
        for piece in _ordered(self.pieces):
            node = piece.node
            if whole:
                text = ast.unparse(
                    without(node, partial(is_local, project, piece.module))
                )
            else:
                text = clean_source(project, piece.module, node)
            parts.append(
                with_summaries(text, node) if documented and not whole else text
            )
            parts += self._aliases(set(bound_names(piece.node)))
        return "\n\n\n".join(part for part in parts if part)

    def _is_import(self, name: str) -> bool:
        return self.meanings[name] in self.imports

    def _aliases(self, names: set[str]) -> list[str]:
        lines = [
            f"{alias} = {own}" for alias, own in self.aliases.items() if own in names
        ]
        return ["\n".join(lines)] if lines else []


class Collector:
    """Follows names from module to module.

    Functions that ``recorded`` lists for a module are not followed: others will define them.
    """

    def __init__(
        self,
        project: Project,
        recorded: Callable[[Module], Iterable[str]] = lambda module: (),
    ):
        self.project, self.recorded = project, recorded
        self.left: dict[
            str, str
        ] = {}  # such functions that are needed, with their modules
        self.bundle = Bundle()
        self._modules: dict[str, int] = {}  # in order of first use

    def source(self, documented: bool = False, whole: bool = False) -> str:
        """Return the bundle as Python."""
        return self.bundle.source(self.project, documented, whole)

    def imports_of(self, module: Module, tree: ast.AST) -> set[int]:
        """Add and return the pieces that imports anywhere in ``tree`` take from the project."""
        pieces: set[int] = set()
        for node in _that_run(tree):
            if isinstance(node, DEFINITIONS):
                self._once_inside(module, node)
            if isinstance(node, Import) and is_local(self.project, module, node):
                for alias in node.names:
                    pieces |= self._imported(module, node, alias)[1]
        return pieces

    def need(self, module: Module, name: str) -> tuple[str, set[int]]:
        """Add the definition of ``name`` in ``module`` and everything it needs.

        Returns its own name, and the pieces that define it.
        """
        statements = _by_name(module).get(name, [])
        pieces: set[int] = set()
        if name in self.recorded(module):
            self.left[name] = module.name
            self._mean(module, statements[0], name, f"{module.name}.{name}")
            return name, pieces
        for statement in statements:
            if isinstance(statement, Import):
                self._once(module, statement, name, statements)
                if is_local(self.project, module, statement):
                    alias = next(a for a in statement.names if bound(a) == name)
                    return self._imported(module, statement, alias)
                self._package(module, statement, name)
                settings = [s for s in statements if is_setting(s, name)]
                return name, {self._definition(module, s) for s in settings}
        pieces |= {self._definition(module, statement) for statement in statements}
        if not pieces:
            self._no_stars(module)
        return name, pieces

    def _once(
        self, module: Module, node: Import, name: str, statements: list[ast.stmt]
    ) -> None:
        """Raise ``ChapterError`` if an imported name gets another value, which a copy would not have.

        What changes the object itself counts for the project's own, since a package's import is copied whole.
        """
        local = is_local(self.project, module, node)
        for other in statements:
            binds = name in bound_names(other)
            if not isinstance(other, Import) and (binds or local):
                message = f"{name} is imported in line {node.lineno} and changed here, "
                fix = "which a copy would not have. Use another name."
                raise _error(module, other, message + fix)

    def _once_inside(self, module: Module, scope: Definition) -> None:
        """Raise ``ChapterError`` if an import from the project, which moves to the top, would leave a gap."""
        imports = [
            node
            for node in _statements_of(scope)
            if isinstance(node, Import) and is_local(self.project, module, node)
        ]
        imported = Counter(name for node in imports for name in bound_names(node))
        every = Counter(name for node in scope.body for name in bound_names(node))
        for node in imports:
            for name in bound_names(node):
                if isinstance(scope, ast.ClassDef):
                    message = f"{name} is imported into the class {scope.name}; a copy lacks this attribute. "
                    raise _error(module, node, message + "Import it above the class.")
                if every[name] > imported[name]:
                    message = f"{name} is imported in {scope.name}, which gives it another value too. "
                    raise _error(module, node, message + "Use another name.")

    def _no_stars(self, module: Module) -> None:
        for statement in module.library:
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                raise _error(module, statement, STARS)

    def _imported(
        self, module: Module, node: Import, alias: ast.alias
    ) -> tuple[str, set[int]]:
        """Follow one name of an import from the project."""
        base = (
            absolute(node, module.package)
            if isinstance(node, ast.ImportFrom)
            else alias.name
        )
        source = self.project.find(base)
        if alias.name == "*":
            raise _error(module, node, STARS)
        if isinstance(node, ast.Import) or not (
            source and _defines(source, alias.name)
        ):
            if isinstance(node, ast.Import) or self.project.find(
                f"{base}.{alias.name}"
            ):
                message = f"imports the module {alias.name} whole. Import the names that are used, "
                raise _error(module, node, message + "so that they can be copied.")
            message = f"{base} does not define {alias.name}. Correct the name."
            if source is None:
                message = f"{base} does not exist. Write it, or correct the name."
            raise _error(module, node, message)
        self._of_one_value(module, node, source, alias.name)
        own, pieces = self.need(source, alias.name)
        if bound(alias) != own:
            self._mean(module, node, bound(alias), self.bundle.meanings[own])
            self.bundle.aliases[bound(alias)] = own
        return own, pieces

    def _of_one_value(
        self, module: Module, node: Import, source: Module, name: str
    ) -> None:
        """Raise ``ChapterError`` if a function of its module gives an imported name another value."""
        for statement in _by_name(source).get(name, []):
            if name in set_as_global(statement):
                message = f"{name} is imported, and line {statement.lineno} of {source.name} may change it "
                fix = "later, which only a copy would see. Import a function that returns it."
                raise _error(module, node, message + fix)

    def _package(self, module: Module, statement: Import, name: str) -> None:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            return
        for alias in statement.names:
            if bound(alias) == name:
                one = _single(statement, alias)
                self.bundle.imports[ast.unparse(one)] = one
                self._mean(module, statement, name, meaning(statement, alias))
        for other in module.library:  # `import a.b` and `import a.c`
            if isinstance(statement, ast.Import) and isinstance(other, ast.Import):
                for alias in other.names:
                    if bound(alias) == name and not alias.asname:
                        one = _single(other, alias)
                        self.bundle.imports[ast.unparse(one)] = one

    def _definition(self, module: Module, statement: ast.stmt) -> int:
        key = id(statement)
        if key in self.bundle.pieces:
            return key
        index = self._modules.setdefault(module.name, len(self._modules))
        piece = Piece(
            module, statement, (index, statement.lineno, statement.col_offset)
        )
        piece.again = _is_again(module, statement)
        self.bundle.pieces[key] = piece
        check_conditions(self.project, module, statement)
        for name in bound_names(statement):
            self._mean(module, statement, name, f"{module.name}.{name}")
        touched = set(bound_names(statement))
        later, eager = _used_names(module, statement)
        for name in sorted(later | eager | touched):
            if name in OF_FILE and name not in _by_name(module):
                message = f"{name} is another one where this is copied to, or none."
                raise _error(module, statement, f"{message} Write its value instead.")
            if name not in _by_name(module) and hasattr(builtins, name):
                self._mean(module, statement, name, f"builtins.{name}")
            pieces = self.need(module, name)[1] - {key}
            if name in touched:  # statements that change it stay after it
                pieces = {k for k in pieces if self.bundle.pieces[k].rank < piece.rank}
            piece.needs |= pieces
            piece.first |= pieces if name in eager | touched else set()
        for name in sorted(_unbound(module, statement, later | eager)):
            message = f"nothing in this module binds {name}, so a copy would lack it. "
            raise _error(module, statement, message + "Assign, define or import it.")
        piece.needs |= self.imports_of(module, statement)
        return key

    def _mean(self, module: Module, node: ast.stmt, name: str, what: str) -> None:
        """Record the meaning of a name. Raises ``ChapterError`` if it has another."""
        known = self.bundle.meanings.setdefault(name, what)
        if known != what:
            message = f"{name} means `{what}` here and `{known}` elsewhere, and both are needed at once."
            raise _error(module, node, message + " Rename one.")


def _by_name(module: Module) -> dict[str, list[ast.stmt]]:
    """Return, for each name, the statements that bind it or change its object."""
    found: dict[str, list[ast.stmt]] = module.keep(
        ("by name",), lambda: makers(module.run)
    )
    return found


def _is_again(module: Module, statement: ast.stmt) -> bool:
    """Return whether a statement changes a name that had a value before it, from its module or Python."""

    def work() -> set[int]:
        made = _by_name(module).items()
        return {id(s) for n, found in made for s in found[not hasattr(builtins, n) :]}

    found: set[int] = module.keep(("again",), work)
    return id(statement) in found


def _used_names(module: Module, node: ast.stmt) -> tuple[set[str], set[str]]:
    """Return the names that a statement takes from its module, and those it needs to run."""

    def work() -> tuple[set[str], set[str]]:
        at_once = run_at_once(node, _has_future(module))
        known = _by_name(module).keys()
        of_classes = class_names(node) & known
        quoted = quoted_names(node) & known
        return free_names(node) | of_classes | quoted, free_names(at_once) | of_classes

    found: tuple[set[str], set[str]] = module.keep(("used", id(node)), work)
    return found


def _unbound(module: Module, node: ast.stmt, names: set[str]) -> set[str]:
    """Return those of ``names`` that a statement needs and that nothing in its module shows to be bound."""
    left = {n for n in names - _by_name(module).keys() if not hasattr(builtins, n)}
    left -= {*IN_NOTEBOOKS, *(n for n in names if n.startswith("__"))}
    if not left or "NameError" in names:
        return set()
    left -= {name for other in module.tree.body for name in bound_names(other)}
    return left & free_names(_unannotated(node))


def _unannotated(node: ast.stmt) -> ast.stmt:
    """Return a statement without annotations, which may have names that only a type checker knows."""
    node = deepcopy(node)
    for part in ast.walk(node):
        if isinstance(part, ast.arg):
            part.annotation = None
        elif isinstance(part, ast.AnnAssign):
            part.annotation = ast.Constant(None)
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            part.returns = None
    return node


def _statements_of(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a function or class, without what the definitions in it contain."""
    for part in ast.iter_child_nodes(scope):
        yield part
        if not isinstance(part, DEFINITIONS):
            yield from _statements_of(part)


def _that_run(tree: ast.AST) -> list[ast.AST]:
    """Return a tree and all its parts, as ``ast.walk`` does, without what only a type checker reads."""
    found = [tree]
    for node in found:
        found += [n for n in ast.iter_child_nodes(node) if not is_for_types(n)]
    return found


def check_conditions(project: Project, module: Module, statement: ast.stmt) -> None:
    """Raise ``ChapterError`` if a statement of a module may or may not import from the project."""
    parts = () if isinstance(statement, DEFINITIONS) else _statements_of(statement)
    for node in parts:
        if isinstance(node, Import) and is_local(project, module, node):
            message = f"{bound(node.names[0])} is imported from the project under a condition, "
            fix = "which a copy cannot decide. Import it without one."
            raise _error(module, node, message + fix)


def is_local(project: Project, module: Module, node: ast.AST) -> bool:
    """Return whether a statement of ``module`` imports from the project."""
    names = imported_names(node, module.package)
    return any(project.owns(name) for name in names)


def _error(module: Module, node: ast.stmt, message: str) -> ChapterError:
    return ChapterError(str(module.path), node.lineno, message)


def bound(alias: ast.alias) -> str:
    """Return the name that an import binds."""
    return alias.asname or alias.name.partition(".")[0]


def packages(node: ast.stmt) -> dict[str, str]:
    """Return, by the names that a statement imports, the packages that they are from."""
    if isinstance(node, ast.ImportFrom):
        return dict.fromkeys(bound_names(node), (node.module or "").partition(".")[0])
    aliases = node.names if isinstance(node, ast.Import) else []
    return {bound(alias): alias.name.partition(".")[0] for alias in aliases}


def _single(statement: Import, alias: ast.alias) -> ast.stmt:
    if isinstance(statement, ast.Import):
        return ast.Import([alias])
    return ast.ImportFrom(statement.module, [alias], statement.level)


def meaning(statement: Import, alias: ast.alias) -> str:
    """Return the meaning that an import gives a name, as text.

    ``import a.b`` and ``import a.c`` give ``a`` the same meaning.
    """
    if isinstance(statement, ast.Import) and not alias.asname:
        return f"import {bound(alias)}"
    return ast.unparse(_single(statement, alias))


def _defines(module: Module, name: str) -> bool:
    return any(name in bound_names(s) for s in _by_name(module).get(name, []))


def _has_future(module: Module) -> bool:
    return any(
        isinstance(s, ast.ImportFrom)
        and s.module == "__future__"
        and any(a.name == "annotations" for a in s.names)
        for s in module.tree.body
    )


def check_annotations(code: list[tuple[Module, ast.stmt]]) -> None:
    """Raise ``ChapterError`` if code reads annotations, some of which would become texts among the rest."""
    if not any(READS_ANNOTATIONS.search(ast.unparse(node)) for _, node in code):
        return
    for module, node in code:
        if not _has_future(module) and any(map(_is_annotated, ast.walk(node))):
            message = (
                "its annotations are read, and would be texts next to code that has "
            )
            fix = "`from __future__ import annotations`. Write this line in both modules or in none."
            raise _error(module, node, message + fix)


def _is_annotated(part: ast.AST) -> bool:
    return bool(getattr(part, "annotation", None) or getattr(part, "returns", None))


def _ordered(pieces: dict[int, Piece]) -> Iterator[Piece]:
    """Yield each piece after those it needs; pieces in a circle in an order that runs."""
    _keep_old_values(pieces)
    reach = {key: _reach(pieces, key) for key in pieces}
    left = set(pieces)
    while left:
        lowest = [k for k in left if all(k in reach[r] for r in reach[k] & left)]
        ready = [k for k in lowest if not (pieces[k].first & left - {k})]
        key = min(ready or lowest, key=lambda k: pieces[k].rank)
        left.remove(key)
        yield pieces[key]


def _keep_old_values(pieces: dict[int, Piece]) -> None:
    """Put what changes a name after the earlier pieces of its module that read it while they run."""
    for key, piece in pieces.items():
        run = set(piece.first).union(*(_reach(pieces, k) for k in piece.first))
        for k in run - {key}:
            other = pieces[k]
            if other.again and other.module is piece.module and other.rank > piece.rank:
                piece.first.discard(k)
                other.needs.add(key)
                other.first.add(key)


def _reach(pieces: dict[int, Piece], key: int) -> set[int]:
    found: set[int] = set()
    waiting = [key]
    while waiting:
        new = pieces[waiting.pop()].needs - found
        found |= new
        waiting += new
    return found


def snippets(book: Book, module: Module) -> dict[str, str]:
    """Return each definition at the top of a chapter with everything it needs."""
    names = [name.qualname for name, _ in module.chapter.names() if name.level == 1]
    return {name: snippet(book, module, name) for name in names}


def snippet(book: Book, module: Module, name: str) -> str:
    """Return a definition with everything it needs. Raises ``ChapterError`` if that cannot be copied.

    The first line says where it comes from. Docstrings keep their first sentence.
    """
    page = book.address(book.project.docname(module))
    terms = f" ({book.license_name} license)" if book.license_name else ""
    collector = Collector(book.project)
    collector.need(module, name)
    origin = f"# {name}, from {book.title}, {page}#{name}"
    return f"{origin}{terms}\n{collector.source(documented=True)}\n"


def clean_source(project: Project, module: Module, node: ast.stmt) -> str:
    """Return a statement's lines without docstrings, notes and imports from the project."""
    key = ("source", id(project), id(node))
    found: str = module.keep(key, lambda: _clean_source(project, module, node))
    return found


def _clean_source(project: Project, module: Module, node: ast.stmt) -> str:
    wanted = bare([without(node, lambda part: is_local(project, module, part))])
    chapter = module.chapter
    lines = chapter.lines
    kept: list[str] = []
    for n in range(first_line(node), (node.end_lineno or node.lineno) + 1):
        if n in chapter.shown:
            kept.append(lines[n - 1])
        elif n not in chapter.aside and kept and kept[-1].strip():
            kept.append("")
    text = "\n".join(kept).strip("\n")
    try:
        same = ast.unparse(ast.parse(text)) == wanted
    except SyntaxError:
        same = False
    return text if same else wanted


def with_summaries(text: str, node: ast.stmt) -> str:
    """Return a statement's ``text`` with the summary of each docstring that ``node`` has."""
    lines = text.split("\n")
    pairs = zip(_defined_in(node), _defined_in(ast.parse(text).body[0]), strict=True)
    for documented, bare_one in sorted(pairs, key=lambda pair: -pair[1].lineno):
        first = bare_one.body[0]
        at = first_line(first) - 1
        if (words := summary(documented)) and at > bare_one.lineno - 1:
            while not lines[at - 1].strip():
                at -= 1
            there = lines[first_line(first) - 1]  # with its tabs
            indent = there[: len(there) - len(there.lstrip())]
            # A shape stays on one line.
            whole = re.sub("`[^`]*`", lambda code: code[0].replace(" ", "\0"), words)
            wrapped = textwrap.wrap(f'"""{whole}"""', WIDTH - len(indent))
            quoted = [line.replace("\0", " ") for line in wrapped]
            lines[at:at] = [indent + line for line in quoted]
    return "\n".join(lines)


def _defined_in(node: ast.AST) -> list[ast.FunctionDef | ast.ClassDef]:
    return [n for n in ast.walk(node) if isinstance(n, ast.FunctionDef | ast.ClassDef)]


def summary(node: ast.FunctionDef | ast.ClassDef) -> str:
    """Return a docstring's first sentence without markup, or its heading.

    The heading says more of a class, except if the sentence has a shape. A sentence with a
    formula is left out.
    """
    heading, paragraphs = "", (ast.get_docstring(node) or "").split("\n\n")
    if paragraphs[0].startswith("#"):
        heading, paragraphs = paragraphs[0].lstrip("# "), paragraphs[1:]
    found = SENTENCE.match(paragraphs[0]) if paragraphs else None
    texts = [found[0] if found else "", heading]
    if isinstance(node, ast.ClassDef) and "`[" not in texts[0]:
        texts.reverse()
    for text in texts:
        plain = ROLE.sub(lambda role: role[1] or role[2], " ".join(text.split()))
        plain = re.sub(r"\$(\w+)\$", r"\1", plain)
        if plain and not re.search(r'[$\\{}]|"$|"""', plain):
            return plain
    return ""


def without(node: ast.stmt, unwanted: Callable[[ast.AST], bool]) -> ast.stmt:
    """Return a statement without unwanted ones in it. An empty body gets a ``pass``."""
    if not any(unwanted(part) for part in ast.walk(node)):
        return node
    node = deepcopy(node)
    for part in ast.walk(node):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(part, name, None)
            if isinstance(body, list) and any(unwanted(n) for n in body):
                kept = [n for n in body if not unwanted(n)]
                setattr(part, name, kept or ([ast.Pass()] if name == "body" else []))
    return node


def _merged(imports: list[ast.stmt]) -> list[str]:
    """Return imports in the usual form: one line per module, ``import`` before ``from``."""
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
