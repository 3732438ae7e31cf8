"""Processes of the tests, forked from one server that has imported everything once.

A new Python would take four CPU seconds to import torch and labml.
"""

import importlib
import multiprocessing
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from signal import SIGKILL
from typing import Any

from runs import ONE_CORE, ROOT, TINY

from experiments.harness import command

SERVER = "FORKS_PROCESSES"

if SERVER in os.environ:
    # In the server, once for all processes.
    import torch._dynamo

    from experiments.harness import sweep
    from experiments.harness.fingerprint import fingerprint
    from experiments.harness.run import pace

    # Behind the other tests, the workers of a sweep would wait for minutes.
    sweep.NICENESS = "0"
    torch.set_num_threads(1)
    fingerprint(TINY)
    pace()


@cache
def server() -> "multiprocessing.context.ForkServerContext":
    """Start the server from which processes are forked."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["forks"])
    here = Path(__file__).parent
    rooms = (ROOT, here, *(here / room for room in ("harness", "real_scale", "search")))
    path = os.pathsep.join(map(str, rooms))
    with command.environment(ONE_CORE | {"PYTHONPATH": path, SERVER: "1"}):
        forkserver.ensure_running()
    return context


@dataclass
class Started:
    """A process that prints to files."""

    process: BaseProcess
    folder: Path
    name: str

    @property
    def printed(self) -> str:
        """What it has printed until now, errors first."""
        paths = (self.folder / f"{self.name}.{kind}" for kind in ("err", "out"))
        return "".join(path.read_text() for path in paths if path.exists())

    def wait(self, seconds: float | None = None) -> int:
        """Wait for its end, and return its exit status."""
        self.process.join(seconds)
        assert self.process.exitcode is not None, f"it has not ended\n{self.printed}"
        return self.process.exitcode

    def kill(self) -> None:
        """Kill it with all processes that it has started."""
        leader = self.process.pid
        assert leader and self.process.is_alive(), self.printed
        for each in [p.name for p in Path("/proc").iterdir() if p.name.isdigit()]:
            with suppress(ProcessLookupError):
                if os.getsid(int(each)) == leader:
                    os.kill(int(each), SIGKILL)
        assert self.wait() == -SIGKILL


def start(
    folder: Path,
    name: str,
    act: Callable[..., Any],
    *arguments: Any,
    settings: Mapping[str, str] | None = None,
) -> Started:
    """Let a process `act` in `folder`. What it prints is in files that begin with `name`."""
    target = (folder, name, settings or {}, act, arguments)
    process = server().Process(target=lead, args=target)
    process.start()
    return Started(process, folder, name)


def start_command(
    folder: Path, name: str, module: str, *words: object, **settings: str
) -> Started:
    """Give a command: that of the module, with these words and environment."""
    return start(folder, name, give, module, *map(str, words), settings=settings)


def give(module: str, *words: str) -> None:
    sys.argv = [module, *words]
    importlib.import_module(module).main()


def lead(
    folder: Path,
    name: str,
    settings: Mapping[str, str],
    act: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    """Act as the leader of a session, and end without the server's threads, which a fork does not have."""
    os.setsid()
    os.chdir(folder)
    os.environ |= {"HOME": str(folder), **settings}
    for stream, kind in ((1, "out"), (2, "err")):
        os.dup2(
            os.open(f"{name}.{kind}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC), stream
        )
    code = 0
    try:
        act(*arguments)
    except SystemExit as ended:
        code = int(ended.code is not None) if isinstance(ended.code, str) else 0
        code = ended.code if isinstance(ended.code, int) else code
        print(ended.code or "", file=sys.stderr)
    except BaseException:
        code = 1
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
