"""Record, in a chapter's kernel, what its run did: shapes, imports, and where it is.

The engine runs this file in the kernel before the chapter's code, which runs piece by piece. It
records the shape of each tensor when it is assigned to a name. For that it traces only the
chapter's own code, only the first calls of each function, and each piece only for a limited
number of calls and lines, or until it draws. After that the piece runs at full speed: while Python
traces, all code takes twice as long.
"""

import ast
import faulthandler
import os
import site
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NoReturn

CALLS = 3  # calls of each function that are traced
BUDGET = 100_000  # calls, of any code, and own lines of each piece that are looked at
DRAWS = f"{os.sep}matplotlib{os.sep}"  # in a file's name: no tensors come from there
SILENCE = 60  # seconds between two pieces after which the kernel ends

Targets = dict[
    int, list[tuple[int, str]]
]  # by line, the names assigned with their lines
MODULE = (0, "<module>")


class Recorder:
    """Traces the pieces as they run.

    ``starts`` is the module line on which each starts, and ``last`` whether figures that are
    open after it are shown. In ``trail`` it leaves where the code is after ``timeout`` seconds.
    """

    def __init__(
        self, shell: Any, starts: list[int], last: list[bool], trail: str, timeout: int
    ):
        self.shell = shell
        self.starts, self.last, self.timeout = list(starts), list(last), timeout
        self.trail = open(trail, "w", encoding="utf-8")  # noqa: SIM115 (until the end)
        self.shows = False  # open figures, after this piece
        self.drawn = False  # something since figures were shown
        # For the file name of a cell: what to add to its line numbers.
        self.offsets: dict[str, int] = {}
        self.targets: dict[str, dict[tuple[int, str], Targets]] = {}
        self.counts: dict[CodeType, int] = {}
        self.names: dict[tuple[int, str], tuple[list[int] | None, str]] = {}
        self.calls: list[dict[str, Any]] = []
        self.left = 0  # of the budget

    def install(self) -> None:
        self.shell.events.register("pre_run_cell", self.before)
        self.shell.events.register("post_run_cell", self.after)
        self.shell.events.register("post_execute", self.hold)
        self.shell.user_ns["exit"] = self.shell.user_ns["quit"] = leave
        show = self.shell.showtraceback  # for SystemExit it would not say where
        self.shell.showtraceback = lambda exc_tuple=None, *others, **options: show(
            exc_tuple, *others, **{**options, "exception_only": False}
        )
        for stream in (sys.stdout, sys.stderr):
            stream.write = whole_characters(stream.write)  # type: ignore[method-assign]
        faulthandler.enable(self.trail)

    def before(self, info: Any) -> None:
        """Start tracing when a piece starts."""
        self.shows = False
        faulthandler.cancel_dump_traceback_later()
        if not self.starts:
            return
        self.shows = self.last.pop(0)
        source = self.shell.transform_cell(info.raw_cell)
        compiler = self.shell.compile
        name = compiler.get_code_name(info.raw_cell, source, self.shell.execution_count)
        self.offsets[name] = self.starts.pop(0) - 1
        print("cell", name, self.offsets[name], file=self.trail, flush=True)
        faulthandler.dump_traceback_later(self.timeout, file=self.trail)
        self.targets[name] = assigned(ast.parse(source))
        self.left = BUDGET
        sys.settrace(self.enter)

    def after(self, result: Any) -> None:
        """Stop tracing when a piece ends. A kernel that is then asked nothing can no longer hear."""
        sys.settrace(None)
        seconds = min(SILENCE, self.timeout)
        faulthandler.dump_traceback_later(seconds, file=self.trail, exit=True)

    def hold(self) -> None:
        """Let matplotlib show figures that are open only after the last piece of a demo."""
        backend = sys.modules.get("matplotlib_inline.backend_inline")
        if backend:
            self.drawn |= backend.show._draw_called
            backend.show._draw_called = self.drawn and self.shows
            self.drawn &= not self.shows

    def enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Decide for a called function whether to trace it."""
        code = frame.f_code
        self.left -= 1
        if self.left < 0 or DRAWS in code.co_filename:
            sys.settrace(None)
            return None
        if code.co_filename not in self.offsets:
            return None
        count = self.counts[code] = self.counts.get(code, 0) + 1
        if count > CALLS:
            return None
        return Follower(self, frame).step

    def note(self, line: int, name: str, value: Any, call: dict[str, Any]) -> None:
        """Record a tensor's shape, and that a value has none."""
        shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
        if dtype is None or not isinstance(shape, tuple) or isinstance(value, type):
            self.names.setdefault((line, name), (None, ""))
            return
        sizes = [int(size) for size in shape]
        if self.names.get((line, name), (None, ""))[0] is None:
            self.names[line, name] = (sizes, str(dtype).rpartition(".")[2])
        call["tensors"].append([line, name, sizes])

    def result(self) -> dict[str, Any]:
        """Return everything recorded, ready for JSON.

        ``names`` are lines, names, sizes and dtypes. A name that was a tensor has no sizes where it
        was something else.
        """
        tensors = {
            name for (_, name), seen in self.names.items() if seen[0] is not None
        }
        names = [
            [line, name, *seen]
            for (line, name), seen in sorted(self.names.items())
            if name in tensors
        ]
        return {
            "names": names,
            "calls": [call for call in self.calls if call["tensors"]],
        }

    def imported(self, root: str) -> list[str]:
        """Return the files below ``root`` of the modules that were imported."""
        inside, *libraries = (
            os.path.join(os.path.realpath(each), "")
            for each in (root, sys.prefix, *site.getsitepackages())
        )
        folders: dict[str, str] = {}  # without links; thousands of modules share a few
        found = set()
        for module in list(sys.modules.values()):
            folder, name = os.path.split(getattr(module, "__file__", None) or "/")
            if folder not in folders:
                folders[folder] = os.path.realpath(folder)
            path = os.path.join(folders[folder], name)
            if os.path.islink(path):
                path = os.path.realpath(path)
            known = path.endswith(".py") and path.startswith(inside)
            if known and not path.startswith(tuple(libraries)):
                found.add(Path(path).relative_to(inside).as_posix())
        return sorted(found)


class Follower:
    """Traces one call: after each statement, records the tensors that it assigned."""

    def __init__(self, recorder: Recorder, frame: FrameType):
        code = frame.f_code
        self.recorder = recorder
        self.offset = recorder.offsets[code.co_filename]
        self.top = code.co_name == "<module>"
        scope = MODULE if self.top else (code.co_firstlineno, code.co_name)
        self.targets = recorder.targets[code.co_filename].get(scope, {})
        self.due: list[tuple[int, str]] = []  # of the statement that runs
        self.call: dict[str, Any] = {
            "line": 0 if self.top else code.co_firstlineno + self.offset,
            "name": code.co_qualname if hasattr(code, "co_qualname") else code.co_name,
            "sizes": {},
            "tensors": [],
        }
        recorder.calls.append(self.call)
        self._note(frame, self.targets.get(0, []))

    def step(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Record what a statement assigned when another one starts: one may have several lines."""
        if event in ("line", "return"):
            here = self.targets.get(frame.f_lineno, []) if event == "line" else []
            self._note(frame, [target for target in self.due if target not in here])
            self.due = here
        if event == "return":
            self._sizes(frame)
        self.recorder.left -= 1
        if self.recorder.left < 0 and event != "return":
            frame.f_trace = None
            return None
        return self.step

    def _note(self, frame: FrameType, targets: list[tuple[int, str]]) -> None:
        for line, name in targets:
            value = frame.f_locals.get(name)
            self.recorder.note(line + self.offset, name, value, self.call)

    def _sizes(self, frame: FrameType) -> None:
        """Record the integers among the function's variables and the attributes of ``self``."""
        own = {} if self.top else dict(frame.f_locals)
        for name, value in [*vars_of(own.get("self")).items(), *own.items()]:
            if type(value) is int:
                self.call["sizes"][name] = value


def whole_characters(write: Callable[[str], int]) -> Callable[[str], int]:
    """Return ``write``, with "?" for halves of characters: they cannot leave the kernel."""

    def write_whole(text: str) -> int:
        if isinstance(text, str):
            text = text.encode("utf-8", "replace").decode()
        return write(text)

    return write_whole


def leave(code: object = None) -> NoReturn:
    """End the program, as ``exit`` does in a script. IPython's would end the kernel unseen."""
    raise SystemExit(code)


def vars_of(value: Any) -> dict[str, Any]:
    return dict(getattr(value, "__dict__", {}))


def assigned(tree: ast.Module) -> dict[tuple[int, str], Targets]:
    """Return for each scope, by its first line and its name, the names that its statements assign.

    Arguments are at line 0. Lambdas and comprehensions have no statements, so nothing is of them.
    """
    found: dict[tuple[int, str], Targets] = {}
    scopes: list[tuple[tuple[int, str], ast.AST]] = [(MODULE, tree)]
    for scope, owner in scopes:
        targets = found[scope] = {0: parameters(owner)}
        waiting = list(ast.iter_child_nodes(owner))
        for node in waiting:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                scopes.append(((first, node.name), node))
                continue
            waiting += ast.iter_child_nodes(node)
            if isinstance(node, ast.stmt):
                inner = [n.lineno for n in ast.walk(node) if isinstance(n, ast.stmt)]
                end = min(inner[1:], default=(node.end_lineno or node.lineno) + 1)
                for line in range(node.lineno, end):
                    targets.setdefault(line, []).extend(names(node))
    return found


def parameters(node: ast.AST) -> list[tuple[int, str]]:
    """Return the arguments of a function, with their lines."""
    arguments = getattr(node, "args", None)
    own = ast.iter_child_nodes(arguments) if arguments else ()
    return [(each.lineno, each.arg) for each in own if isinstance(each, ast.arg)]


def names(statement: ast.stmt) -> list[tuple[int, str]]:
    """Return the names that a statement itself assigns or deletes, with their lines."""
    found = []
    waiting: list[ast.AST] = [statement]
    for node in waiting:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found.append((node.lineno, node.id))
        waiting += [
            child
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, ast.stmt | ast.Lambda | ast.comprehension)
        ]
    return found
