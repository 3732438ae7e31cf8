"""Make a chapter's kernel behave as ``python -m`` does.

In a kernel, an event loop is running, the arguments are the kernel's own, ``sys.exit`` is an error, and a
child of ``os.fork`` would continue as a second kernel. This runs in the kernel, and imports nothing of the
engine.
"""

import asyncio
import os
import sys
import threading
import traceback
import warnings
from contextlib import suppress
from importlib.machinery import ModuleSpec
from typing import Any

RELAY = 0.2  # seconds that a piece waits for the last words of a child that lives on


class Program:
    """A chapter as a program that runs piece by piece."""

    def __init__(self, shell: Any, path: str, name: str, pieces: list[str]):
        self.shell, self.path, self.name, self.left = shell, path, name, list(pieces)
        self.process = os.getpid()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.pipe = (0, 0)  # from a child that is being forked
        self.relays: list[threading.Thread] = []

    def install(self) -> None:
        sys.argv = [self.path]
        # By its name, processes that multiprocessing starts find the chapter's functions.
        # IPython would take `>>> ` out of a text that looks like a pasted session. Python changes nothing.
        prompt = self.shell.input_transformer_manager
        prompt.cleanup_transforms, prompt.line_transforms = [], []
        prompt.token_transformers = []
        self.shell.user_ns["__spec__"] = ModuleSpec(self.name, None, origin=self.path)
        warnings.filterwarnings("ignore", "To exit: use")
        self.shell.events.register("pre_run_cell", self.before)
        self.shell.events.register("post_run_cell", self.after)
        show = self.shell.showtraceback
        self.shell.showtraceback = lambda *arguments, **options: (
            None if self._is_end(sys.exc_info()[1]) else show(*arguments, **options)
        )
        os.register_at_fork(
            before=self._prepare,
            after_in_parent=self._listen,
            after_in_child=self._become_child,
        )

    def before(self, info: Any) -> None:
        """Hide the kernel's event loop from the piece, so that it can run one of its own."""
        del self.left[:1]
        self.loop = asyncio._get_running_loop()
        asyncio._set_running_loop(None)

    def after(self, result: Any) -> None:
        """Show the kernel its loop again. End a forked child, and the program if it is at its end."""
        if os.getpid() != self.process:
            self._continue(result.error_before_exec or result.error_in_exec)
        for relay in self.relays:
            relay.join(RELAY)
        if self.loop:
            asyncio.set_event_loop(self.loop)
            asyncio._set_running_loop(self.loop)
        if self._is_end(result.error_in_exec):
            result.error_in_exec = None

    def _is_end(self, error: BaseException | None) -> bool:
        """Return whether a piece ended the program as it should: the last one, without an error."""
        success = isinstance(error, SystemExit) and error.code in (None, 0)
        return success and not self.left

    def _prepare(self) -> None:
        self.pipe = os.pipe()

    def _listen(self) -> None:
        """Print what the child prints: it cannot use the kernel's sockets."""
        os.close(self.pipe[1])
        relay = threading.Thread(target=_relay, args=(self.pipe[0],), daemon=True)
        relay.start()
        self.relays = [*(each for each in self.relays if each.is_alive()), relay]

    def _become_child(self) -> None:
        os.close(self.pipe[0])
        sys.stdout = open(self.pipe[1], "w", 1, "utf-8")  # noqa: SIM115
        sys.stderr = open(2, "w", 1, "utf-8", closefd=False)  # noqa: SIM115
        self.relays = []
        self.shell.showtraceback = lambda *_, **__: None
        self.shell.events.callbacks["post_execute"].clear()  # they show figures

    def _continue(self, error: BaseException | None) -> None:
        """Run the rest of the program in a child, and end it with the status that Python would give it."""
        try:
            for piece in [] if error else self.left:
                exec(compile(piece, self.path, "exec"), self.shell.user_ns)
        except BaseException as raised:
            error = raised
        if error and not isinstance(error, SystemExit):
            traceback.print_exception(error)
        code = getattr(error, "code", 1) if error else None
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def _relay(pipe: int) -> None:
    with open(pipe, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            sys.stdout.write(line)
