"""Collect a definition with everything it needs, from all modules of the project.

One rule decides what it needs: the statements that bind the names it reaches, and each statement that binds
nothing and mentions one of them. They are in the order in which Python runs them. Whether that is enough is
not read from the code but found by running it: see ``compare.py``.
"""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from collections import deque
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import partial

from sphinx_annotated.page.build.book import Book
from sphinx_annotated.read.digest import DOCUMENTATION, words_in
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
    bare,
    first_line,
    is_for_types,
)

Import = ast.Import | ast.ImportFrom

# How much comes with a reached name: what binds it or binds nothing, whatever mentions it, or its module.
NEEDED, MENTIONING, WHOLE = range(3)
STARS = "imports everything. Import the names that are used."
ROLE = re.compile(r"\{[\w:]+\}`~?(?:([^`<]+?) *<[^`>]*>|(?:[^`]*[./])?([^`]+))`")
SENTENCE = re.compile(r"[A-Z`{].*?[.?!](?=\s|$)", re.DOTALL)
WIDTH = 88  # of a line of copied code
SUMMARIES, CODE, WHOLE_CODE, BARE = range(4)  # how the text of a statement is copied


@dataclass(frozen=True)
class Piece:
    """What copies ask of a statement. It is found out once, for all of them."""

    binds: list[str]
    names: list[str]  # that it reaches or binds
    imports: list[Import]  # in it, from the project
    asks: bool  # whether it asks for documentation


class Collector:
    """Follows names from module to module, as far as ``reach`` says.

    Functions that ``recorded`` lists for a module are not followed: others will define them.
    """

    def __init__(
        self,
        project: Project,
        recorded: Callable[[Module], Iterable[str]] = lambda module: (),
        reach: int = NEEDED,
    ):
        self.project, self.recorded, self.reach = project, recorded, reach
        self.left: dict[str, str] = {}  # needed recorded functions, with their modules
        self.imports: dict[str, ast.stmt] = {}  # of packages, each of one name
        self.taken: dict[int, tuple[Module, ast.stmt]] = {}
        self.meanings: dict[str, str] = {}  # by name
        # Imports under other names: their module, and by name the own one.
        self.aliases: dict[int, tuple[Module, ast.stmt, dict[str, str]]] = {}
        self._known: dict[tuple[str, str], tuple[str, str]] = {}  # see `_reach`
        self._modules: dict[str, Module] = {}  # in order of first use
        self._waiting: deque[tuple[Module, ast.stmt]] = deque()

    @property
    def modules(self) -> list[Module]:
        """The modules of the statements, in the order in which they run."""
        return list({m.name: m for m, _ in self.taken.values()}.values())

    @property
    def has_future(self) -> bool:
        """Whether annotations stay texts, as one of the modules says."""
        return any(map(_has_future, self.modules))

    @property
    def reads_docstrings(self) -> bool:
        """Whether the code asks for documentation, which then stays whole."""
        return any(self._piece(*each).asks for each in self.taken.values())

    def need(self, module: Module, name: str) -> str:
        """Add what makes ``name`` in ``module``, and everything that needs. Return its own name."""
        own, _ = self._reach(module, name)
        self._follow()
        return own

    def need_imports(self, module: Module, tree: ast.AST) -> None:
        """Add what imports anywhere in ``tree`` take from the project."""
        self._take_from(module, _local_imports(self.project, module, tree))
        self._follow()

    def source(self, documented: bool = False, whole: bool = False) -> str:
        """Return code that runs in an empty interpreter with the packages installed.

        It imports nothing from the project. ``documented`` definitions keep a sentence of their
        docstrings. They keep them ``whole`` if the code itself reads some.
        """
        form = SUMMARIES if documented else CODE
        return self._written(WHOLE_CODE if whole or self.reads_docstrings else form)

    def bare(self) -> str:
        """Return the same code without comments and layout, and without docstrings if it reads none."""
        return self._written(WHOLE_CODE if self.reads_docstrings else BARE)

    def _written(self, form: int) -> str:
        parts = ["from __future__ import annotations"] if self.has_future else []
        parts.append("\n".join(_merged(list(self.imports.values()))))
        parts += (
            _assigned(self.aliases[id(node)][2])
            if id(node) in self.aliases
            else _text(self.project, module, node, form)
            for module, node in self._in_order()
        )
        return "\n\n\n".join(filter(None, parts))

    def _in_order(self) -> list[tuple[Module, ast.stmt]]:
        """Return the statements as Python runs them: a module's where it is first imported.

        Imports that run later, in functions, are last.
        """
        left = [*self.taken.values(), *((m, n) for m, n, _ in self.aliases.values())]
        found: list[tuple[Module, ast.stmt]] = []
        for first in self._modules.values():
            order = _order(self.project, first)
            ranks = [order.get((m.name, *_place(m, node)), -1) for m, node in left]
            pairs = sorted((rank, i) for i, rank in enumerate(ranks) if rank >= 0)
            found += (left[i] for _, i in pairs)
            left = [each for each, rank in zip(left, ranks, strict=True) if rank < 0]
            if not left:
                break
        return found + left

    def _piece(self, module: Module, node: ast.stmt) -> Piece:
        key = ("piece", id(self.project), id(node))
        piece: Piece = module.keep(key, lambda: _piece(self.project, module, node))
        return piece

    # -- what is reached -------------------------------------------------------------------

    def _reach(self, module: Module, name: str) -> tuple[str, str]:
        """Let what makes a name wait to be followed. Return its name where it is made, and its meaning."""
        key = (module.name, name)
        if key in self._known:
            return self._known[key]
        self._known[key] = name, f"{module.name}.{name}"
        self._modules.setdefault(module.name, module)
        makers = _makers(module).get(name, [])
        if name in self.recorded(module):
            self.left[name] = module.name
            self._mean(module, makers[0], name, self._known[key][1])
            return self._known[key]
        for node in makers:
            if not isinstance(node, Import):
                self._waiting.append((module, node))
            elif is_local(self.project, module, node):
                alias = next(a for a in node.names if bound(a) == name)
                self._known[key] = self._imported(module, node, alias)
            else:
                self._known[key] = name, self._package(module, node, name)
        if not makers:
            _no_stars(module)
        elif self.reach == WHOLE:
            nodes = (node for node in module.run if not isinstance(node, Import))
            self._waiting += [(module, node) for node in nodes]
        else:
            found = _mentions(module, self.reach == MENTIONING).get(name, ())
            self._waiting += [(module, node) for node in found]
        return self._known[key]

    def _follow(self) -> None:
        """Take the statements that wait, and reach the names in them."""
        while self._waiting:
            module, node = self._waiting.popleft()
            if id(node) in self.taken:
                continue
            self.taken[id(node)] = module, node
            piece = self._piece(module, node)
            for name in piece.binds:
                self._mean(module, node, name, f"{module.name}.{name}")
            for name in piece.names:
                if (module.name, name) in self._known:
                    continue
                if name in _makers(module):
                    self._reach(module, name)
                    continue
                _no_stars(module)
                if hasattr(builtins, name):
                    self._mean(module, node, name, f"builtins.{name}")
            self._take_from(module, piece.imports)

    def _take_from(self, module: Module, imports: list[Import]) -> None:
        for node in imports:
            for alias in node.names:
                self._imported(module, node, alias)

    def _imported(
        self, module: Module, node: Import, alias: ast.alias
    ) -> tuple[str, str]:
        """Follow one name of an import from the project, as ``_reach`` does."""
        base = (
            absolute(node, module.package)
            if isinstance(node, ast.ImportFrom)
            else alias.name
        )
        source = self.project.find(base)
        if alias.name == "*":
            raise _error(module, node, STARS)
        if isinstance(node, ast.Import) or not (
            source and alias.name in _makers(source)
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
        for other in _makers(source)[alias.name]:
            if alias.name not in bound_names(other):
                message = f"{alias.name} is imported, and line {other.lineno} of {base} may change it later, "
                fix = "which only a copy would see. Import a function that returns it."
                raise _error(module, node, message + fix)
        own, what = self._reach(source, alias.name)
        if bound(alias) != own:
            self._mean(module, node, bound(alias), what)
            known = self.aliases.setdefault(id(node), (module, node, {}))
            known[2][bound(alias)] = own
        return own, what

    def _package(self, module: Module, node: Import, name: str) -> str:
        """Add the import of a name from a package. Return its meaning."""
        alias = next(alias for alias in node.names if bound(alias) == name)
        if getattr(node, "module", "") != "__future__":
            one = _single(node, alias)
            # Of two ways to import the same, the first. One of several modules of a package is needed itself.
            own = isinstance(node, ast.Import) and not alias.asname
            self.imports.setdefault(
                ast.unparse(one) if own else meaning(node, alias), one
            )
            self._mean(module, node, name, meaning(node, alias))
        return meaning(node, alias)

    def _mean(self, module: Module, node: ast.stmt, name: str, what: str) -> None:
        """Record the meaning of a name. Raises ``ChapterError`` if it has another."""
        known = self.meanings.setdefault(name, what)
        if known != what:
            message = f"{name} means `{what}` here and `{known}` elsewhere, and both are needed at once."
            raise _error(module, node, message + " Rename one.")


def _makers(module: Module) -> dict[str, list[ast.stmt]]:
    """Return, for each name, the statements that bind it, also as ``global`` in a function."""

    def work() -> dict[str, list[ast.stmt]]:
        found: dict[str, list[ast.stmt]] = {}
        for node in module.run:
            said = (p.names for p in ast.walk(node) if isinstance(p, ast.Global))
            for name in dict.fromkeys(
                [*bound_names(node), *(n for s in said for n in s)]
            ):
                found.setdefault(name, []).append(node)
        return found

    made: dict[str, list[ast.stmt]] = module.keep(("makers",), work)
    return made


def _mentions(module: Module, every: bool) -> dict[str, list[ast.stmt]]:
    """Return, for each name, the statements that mention it: ``every`` one, or those that bind nothing."""

    def work() -> dict[str, list[ast.stmt]]:
        found: dict[str, list[ast.stmt]] = {}
        for node in module.run:
            if not isinstance(node, Import) and (every or not bound_names(node)):
                for name in _names(module, node):
                    found.setdefault(name, []).append(node)
        return found

    index: dict[str, list[ast.stmt]] = module.keep(("mentions", every), work)
    return index


def _names(module: Module, node: ast.stmt) -> set[str]:
    """Return the names that a statement takes from its module or from Python, deletes or imports again."""

    def work() -> set[str]:
        found = quoted_names(node)
        for part in ast.walk(node):
            if isinstance(node, ast.Delete) and isinstance(part, ast.Name):
                found.add(part.id)
            elif isinstance(part, Import):  # the package that the module has, too
                found.update(bound_names(part))
            elif isinstance(part, ast.ClassDef):
                found |= class_names(part)
        return free_names(node) | found & _makers(module).keys()

    names: set[str] = module.keep(("names", id(node)), work)
    return names


def _piece(project: Project, module: Module, node: ast.stmt) -> Piece:
    binds = bound_names(node)
    names = sorted({*_names(module, node), *binds})
    imports = _local_imports(project, module, node)
    return Piece(binds, names, imports, bool(words_in(node) & DOCUMENTATION))


def _local_imports(project: Project, module: Module, tree: ast.AST) -> list[Import]:
    """Return the imports from the project in a tree, as it runs."""
    imports = (part for part in _that_run(tree) if isinstance(part, Import))
    return [part for part in imports if is_local(project, module, part)]


def _text(project: Project, module: Module, node: ast.stmt, form: int) -> str:
    """Return a statement without imports from the project, in one of the forms."""

    def work() -> str:
        if form == SUMMARIES:
            return with_summaries(_text(project, module, node, CODE), node)
        if form == CODE:
            return clean_source(module, node, _text(project, module, node, BARE))
        rest = without(node, partial(is_local, project, module))
        return bare([rest]) if form == BARE else ast.unparse(rest)

    text: str = module.keep(("text", id(project), id(node), form), work)
    return text


def _order(project: Project, first: Module) -> dict[tuple[str, int, int], int]:
    """Return when statements run if a module is imported first: a number for each module and place."""

    def work() -> dict[tuple[str, int, int], int]:
        found: dict[tuple[str, int, int], int] = {}
        started: set[str] = set()

        def run(module: Module) -> None:
            for each in (*reversed([*project.parents(module.name)]), module):
                if each.name not in started:
                    started.add(each.name)
                    for node, place in _places(each):
                        for name in imported_names(node, each.package):
                            if source := project.find(name):
                                run(source)
                        found[(each.name, *place)] = len(found)

        run(first)
        return found

    order: dict[tuple[str, int, int], int] = first.keep(("order", id(project)), work)
    return order


def _places(module: Module) -> list[tuple[ast.stmt, tuple[int, int]]]:
    """Return the statements that run on import, and the imports in each before it, with their places."""

    def work() -> list[tuple[ast.stmt, tuple[int, int]]]:
        found: list[tuple[ast.stmt, tuple[int, int]]] = []
        for i, node in enumerate(module.run):
            parts = [] if isinstance(node, DEFINITIONS) else _that_run(node)[1:]
            inner = [part for part in parts if isinstance(part, Import)]
            found += ((part, (i, k)) for k, part in enumerate([*inner, node]))
        return found

    places: list[tuple[ast.stmt, tuple[int, int]]] = module.keep(("places",), work)
    return places


def _place(module: Module, node: ast.stmt) -> tuple[int, int]:
    """Return the place of a statement, or one that none has if it runs later."""
    by_id: dict[int, tuple[int, int]] = module.keep(
        ("place",), lambda: {id(each): place for each, place in _places(module)}
    )
    return by_id.get(id(node), (-1, -1))


def _no_stars(module: Module) -> None:
    def work() -> list[ast.stmt]:
        nodes = (n for n in module.library if isinstance(n, ast.ImportFrom))
        return [node for node in nodes if node.names[0].name == "*"]

    for node in module.keep(("stars",), work):
        raise _error(module, node, STARS)


def _that_run(tree: ast.AST) -> list[ast.AST]:
    """Return a tree and all its parts, as ``ast.walk`` does, without what only a type checker reads."""
    found = [tree]
    for node in found:
        found += [n for n in ast.iter_child_nodes(node) if not is_for_types(n)]
    return found


def is_local(project: Project, module: Module, node: ast.AST) -> bool:
    """Return whether a statement of ``module`` imports from the project."""
    names = imported_names(node, module.package)
    return any(project.owns(name) for name in names)


def _error(module: Module, node: ast.stmt, message: str) -> ChapterError:
    return ChapterError(str(module.path), node.lineno, message)


def bound(alias: ast.alias) -> str:
    """Return the name that an import binds."""
    return alias.asname or alias.name.partition(".")[0]


def _single(statement: Import, alias: ast.alias) -> ast.stmt:
    if isinstance(statement, ast.Import):
        return ast.Import([alias])
    return ast.ImportFrom(statement.module, [alias], statement.level)


def meaning(statement: Import, alias: ast.alias) -> str:
    """Return the meaning that an import gives a name, as text.

    ``import a.b`` and ``import a.c`` give ``a`` the same meaning, and ``import a.b as c`` gives ``c``
    that of ``from a import b as c``.
    """
    if isinstance(statement, ast.Import) and not alias.asname:
        return f"import {bound(alias)}"
    package, _, name = alias.name.rpartition(".")
    if isinstance(statement, ast.Import) and package:
        statement = ast.ImportFrom(package, [], 0)
        alias = ast.alias(name, alias.asname)
    if alias.name == alias.asname:
        alias = ast.alias(alias.name)
    return ast.unparse(_single(statement, alias))


def _has_future(module: Module) -> bool:
    def work() -> bool:
        return any(
            isinstance(s, ast.ImportFrom)
            and s.module == "__future__"
            and any(a.name == "annotations" for a in s.names)
            for s in module.tree.body
        )

    found: bool = module.keep(("future",), work)
    return found


def snippets(book: Book, module: Module) -> dict[str, str]:
    """Return each definition at the top of a chapter with everything it needs, by the plain rule."""
    names = [name.qualname for name, _ in module.chapter.names() if name.level == 1]
    return {name: snippet(book, module, name) for name in names}


def snippet(
    book: Book, module: Module, name: str, reach: int = NEEDED, note: str = ""
) -> str:
    """Return a definition with everything it needs. Raises ``ChapterError`` if that cannot be copied.

    The first line says where it comes from, and has the ``note``. Docstrings keep their first sentence.
    """
    page = book.address(book.project.docname(module))
    terms = f" ({book.license_name} license)" if book.license_name else ""
    collector = Collector(book.project, reach=reach)
    collector.need(module, name)
    origin = f"# {name}, from {book.title}, {page}#{name}"
    return f"{origin}{terms}{note}\n{collector.source(documented=True)}\n"


def clean_source(module: Module, node: ast.stmt, wanted: str) -> str:
    """Return a statement's lines without docstrings and notes, or ``wanted`` if they are other code."""
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
    if not any(map(summary, _defined_in(node))):
        return text
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
    if not any(unwanted(n) for n in ast.walk(node) if isinstance(n, ast.stmt)):
        return node
    node = deepcopy(node)
    for part in ast.walk(node):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(part, name, None)
            if isinstance(body, list) and any(unwanted(n) for n in body):
                kept = [n for n in body if not unwanted(n)]
                setattr(part, name, kept or ([ast.Pass()] if name == "body" else []))
    return node


def _assigned(aliases: dict[str, str]) -> str:
    return "\n".join(f"{alias} = {own}" for alias, own in aliases.items())


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
