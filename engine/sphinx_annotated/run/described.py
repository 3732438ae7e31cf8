"""Run modules and copies of their code, each in a process of its own, and compare what they define.

A program by itself: it reads jobs from stdin, and writes to stdout the first difference of each copy. A
definition is described by all that it is made of: its code, defaults, closures and attributes, and the values
of the names that its code reaches, down to what packages define, which is known by name.
"""

from __future__ import annotations

import ast
import builtins
import dis
import gc
import hashlib
import importlib
import importlib.abc
import importlib.util
import json
import multiprocessing
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from itertools import zip_longest
from typing import Any

COPY = "pasted"  # the name of the module that a copy is
ATOMS = (type(None), bool, int, float, complex, str, bytes)
# What a copy has otherwise, because it is elsewhere, with others, or shorter: it counts if the code reads it.
ASKED = (
    *("__module__", "__firstlineno__", "__doc__"),
    *("__subclasses__", "__slotnames__", "__static_attributes__"),
)
FUTURE = 0x1000000  # the flag of code whose annotations stay texts; they are compared themselves
MOST = 1_000_000  # lines of a description
Parts = Iterable[tuple[str, object]]


class Description:
    """The lines of one description, and the global name that each belongs to."""

    def __init__(self, own: Iterable[str], job: Any):
        self.own, self.job = {*own}, job
        self.lines: list[str] = []
        self.places: list[tuple[str, str]] = []
        self._seen: dict[int, int] = {}
        self._kept: list[object] = []  # so that no other object gets the number of one
        # The attributes that the code reads, and those that count if it does.
        self._read: set[str] = {"__doc__"} if job["documented"] else set()
        self._asked: list[tuple[str, object, tuple[str, str]]] = []

    def add(self, module: types.ModuleType, names: Iterable[str]) -> None:
        """Describe what these names of a module are."""
        waiting = [self._global(vars(module), name) for name in [*names][::-1]]
        while waiting:
            label, found, place = waiting.pop()
            text, parts = self._form(found)
            self.lines.append(f"{label} {text}".strip())
            self.places.append(place)
            if len(self.lines) > MOST:
                raise ValueError("there is too much to compare")
            for part in [*parts][::-1]:
                each = (*part, place) if len(part) == 2 else part
                (self._asked if each[0] in ASKED else waiting).append(each)
            if not waiting:
                asked, self._asked = self._asked, []
                for each in asked:
                    (waiting if each[0] in self._read else self._asked).append(each)

    def _global(self, names: dict[str, Any], name: str) -> Any:
        """Return a label and the value of a name in a module, and its place."""
        found = names[name] if name in names else vars(builtins).get(name, Absent)
        found = Absent if name in self.job["recorded"] else found
        return f"{name} is", found, (str(names.get("__name__")), name)

    def _form(self, it: Any) -> tuple[str, Any]:
        """Return an object in a word, and its parts."""
        kind: Any = type(it)
        if it is Absent:
            return "missing", ()
        if kind in ATOMS:
            return repr(it), ()
        if kind is tuple:
            return f"a tuple of {len(it)}", [("", each) for each in it]
        if kind is types.CodeType:
            return self._code(it)
        if isinstance(it, types.ModuleType):
            return self._module(it)
        if isinstance(it, type | types.FunctionType) and self._is_of_package(it):
            return f"{it.__module__}.{it.__qualname__}", ()
        if id(it) in self._seen:
            return f"number {self._seen[id(it)]} again", ()
        self._seen[id(it)] = len(self.lines)
        self._kept.append(it)
        if isinstance(it, types.FunctionType):
            return f"the function {it.__qualname__}", self._function(it)
        if isinstance(it, type):
            return f"the class {it.__qualname__}", self._class(it)
        size = f" of {len(it)}" if isinstance(it, dict | list) else ""
        name = f"a {kind.__qualname__}{size}"
        if kind in (set, frozenset):  # which have no order
            ordered = sorted(
                it, key=lambda each: getattr(each, "__qualname__", repr(each))
            )
            return name, [("has", each) for each in ordered]
        if isinstance(it, ContextVar):
            return name, [("value", it.get(Absent))]
        if hasattr(it, "tolist") and hasattr(it, "dtype"):
            return name, [("type", str(it.dtype)), ("numbers", it.tolist())]
        return name, self._object(it)

    def _is_of_package(self, it: Any) -> bool:
        """Return whether a class or function is found in a package by its name."""
        found: Any = sys.modules.get(it.__module__ or "")
        if found is None or it.__module__ in self.own:
            return False
        for name in it.__qualname__.split("."):
            found = getattr(found, name, None)
        return found is it

    def _code(self, code: types.CodeType) -> tuple[str, Parts]:
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
        own = code.co_code, code.co_flags & ~FUTURE, counts, code.co_exceptiontable
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        self._read.update(code.co_names, (c for c in code.co_consts if type(c) is str))
        number = hashlib.sha256(repr((own, names)).encode()).hexdigest()[:12]
        return f"of {code.co_name}, number {number}", [
            ("constant", c) for c in code.co_consts
        ]

    def _module(self, it: types.ModuleType) -> tuple[str, Any]:
        if it.__name__ not in self.own:
            return f"the package {it.__name__}", ()
        self._seen.setdefault(id(it), len(self.lines))
        if self._seen[id(it)] < len(self.lines):
            return "the module", ()
        names = (n for n in sorted(vars(it)) if not n.startswith("__"))
        return "the module", [self._global(vars(it), name) for name in names]

    def _function(self, it: types.FunctionType) -> Iterator[Any]:
        yield "__module__", it.__module__
        yield "__doc__", it.__doc__
        yield "code", it.__code__
        yield "defaults", it.__defaults__
        yield "defaults", it.__kwdefaults__
        for cell in it.__closure__ or ():
            with suppress(ValueError):  # which has no value yet
                yield "closure", cell.cell_contents
        yield "attributes", vars(it)
        yield "annotations", getattr(it, "__annotate__", None) or it.__annotations__
        names = it.__globals__
        if (
            names.get("__name__") in self.own
            or names.get("__name__") not in sys.modules
        ):
            for name in sorted(_globals(it.__code__)):
                yield self._global(names, name)

    def _class(self, it: type) -> Iterator[Any]:
        yield "bases", it.__bases__
        yield "kind", type(it)
        own = type(it) is type or type(it).__module__ in self.own
        for name, value in [*vars(it).items()]:  # and not those that a package sets
            if own or not name.startswith("_") or name.startswith("__"):
                yield name, value
        below: list[type] = type.__subclasses__(it)
        yield "__subclasses__", [each.__qualname__ for each in below]

    def _pairs(self, pairs: Iterable[tuple[object, object]]) -> Iterator[Any]:
        for key, value in [*pairs]:
            if type(key) in ATOMS:
                yield str(key), value
            else:
                yield "pair", (key, value)

    def _object(self, it: Any) -> Parts:
        """Return the parts from which an object is made again, or if it cannot be, what it refers to."""
        try:
            made: Any = it.__reduce_ex__(4)
        except Exception:
            return [("with", each) for each in gc.get_referents(it)]
        if isinstance(made, str):
            return [("named", made), ("with", getattr(it, "__dict__", None))]
        make, given, state, items, pairs = (*made, None, None, None)[:5]
        if isinstance(make, types.FunctionType | types.BuiltinFunctionType):
            # What a package finds by the name of the module, as a logger, is the copy's own.
            given = tuple(
                Place if isinstance(each, str) and each in self.own else each
                for each in given
            )
        return [
            ("made by", make),
            ("of", given),
            ("with", state),
            *(("item", each) for each in items or ()),
            *self._pairs(pairs or ()),
        ]


class Absent:
    """Stands for a name without a value."""


class Place:
    """Stands for the name of the module in which code is."""


def _globals(code: types.CodeType) -> set[str]:
    """Return the names that code takes from its module."""
    found = {
        step.argval
        for step in dis.get_instructions(code)
        if step.opname.endswith(("_GLOBAL", "_NAME"))
        and not step.opname.startswith("IMPORT")
    }
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            found |= _globals(inner)
    return found


class Modules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the project's modules from the texts that a job has, or if there are none, not at all."""

    def __init__(self, texts: dict[str, list[str]], there: bool):
        self.texts, self.there = texts, there

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        if name not in self.texts:
            return None
        if not self.there:
            raise ModuleNotFoundError(f"No module named {name!r}")
        file = self.texts[name][1]
        folder = [os.path.dirname(file)] if file.endswith("__init__.py") else None
        return importlib.util.spec_from_file_location(
            name, file, loader=self, submodule_search_locations=folder
        )

    def exec_module(self, module: types.ModuleType) -> None:
        text, file = self.texts[module.__name__]
        exec(compile(text, file, "exec", dont_inherit=True), vars(module))


def of_module(job: Any, asked: list[list[str]]) -> list[Any]:
    """Return the descriptions of some names of a job's module, which is imported."""
    sys.meta_path.insert(0, Modules(job["own"], True))
    module = importlib.import_module(job["module"])
    return [_described(module, each, job["own"], job) for each in asked]


def of_copy(job: Any, names: list[str], text: str) -> Any:
    """Return the description of some names of a copy, which is run where the project is not."""
    sys.meta_path.insert(0, Modules(job["own"], False))
    module = sys.modules[COPY] = types.ModuleType(COPY)
    exec(compile(text, "copy", "exec", dont_inherit=True), vars(module))
    return _described(module, names, [COPY], job)


def _described(
    module: types.ModuleType, names: list[str], own: Iterable[str], job: Any
) -> Any:
    found = Description(own, job)
    found.add(module, names)
    return found.lines, found.places


def apart(work: Callable[..., Any], *given: Any, seconds: float) -> Any:
    """Return what ``work`` returns in another process, or in a sentence why it does not."""
    fork = "fork" in multiprocessing.get_all_start_methods()  # all but Windows
    context: Any = multiprocessing.get_context("fork" if fork else "spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(theirs, work, given))
    process.start()
    theirs.close()
    try:
        return ours.recv() if ours.poll(seconds) else f"it ran longer than {seconds} s"
    except EOFError:
        return "its process ended"
    finally:
        process.kill()
        process.join()


def _send(pipe: Any, work: Callable[..., Any], given: tuple[Any, ...]) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    try:
        found = work(*given)
    except BaseException as error:
        found = f"it stops with {type(error).__name__}: {error}"
    pipe.send(found)
    os._exit(0)


def difference(module: Any, copy: Any) -> list[str] | None:
    """Return the first difference as the module and the name of its place, and a sentence."""
    if isinstance(module, str) or isinstance(copy, str):
        where, words = ("copy", copy) if isinstance(copy, str) else ("module", module)
        return ["", "", f"{words} in the {where}"]
    (lines, places), (others, _) = module, copy
    pairs = zip_longest(lines, others, fillvalue="nothing")
    for place, (line, other) in zip([*places, ("", "")], pairs, strict=False):
        if line != other:
            words = f"`{_short(other)}` in the copy and `{_short(line)}` in the module"
            return [*place, words]
    return None


def _short(line: str) -> str:
    return line if len(line) < 120 else f"{line[:100]} …"


def answers(jobs: list[Any], seconds: float) -> Iterator[list[Any]]:
    """Yield, for each job, the first difference of each of its copies."""
    for job in jobs:
        asked = [names for names, _ in job["copies"]]
        found = apart(of_module, job, asked, seconds=seconds)
        each = [found] * len(asked) if isinstance(found, str) else found
        yield [
            difference(one, apart(of_copy, job, names, text, seconds=seconds))
            for one, (names, text) in zip(each, job["copies"], strict=True)
        ]


def main() -> None:
    """Answer the jobs of stdin. Packages are imported once, before the processes that use them."""
    sys.path.pop(0)
    given = json.load(sys.stdin)
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    texts = (text for job in given["jobs"] for _, text in job["copies"])
    for name in dict.fromkeys(n for text in texts for n in _imported(text)):
        with suppress(Exception):
            importlib.import_module(name)
    json.dump([*answers(given["jobs"], given["seconds"])], answer)
    answer.close()


def _imported(text: str) -> Iterator[str]:
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


if __name__ == "__main__":
    main()
