"""Build books in forks of one process that has imported Sphinx and the engine.

Importing takes 2.5 of the 3 CPU seconds of a small build. Run as a script, this file is that process.
"""

import json
import os
import signal
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

from forked_kernels import nursery, use

ENGINE = Path(__file__).resolve().parents[1]
LONGEST = 1200  # seconds; a busy machine is slow


@cache
def server() -> "subprocess.Popen[str]":
    """Start the process. It ends with this one."""
    return subprocess.Popen(
        [sys.executable, __file__, nursery()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def sphinx(arguments: list[str], log: Path, environment: dict[str, str]) -> int:
    """Do what `python -m sphinx` does with these arguments, and return its exit code.

    Both of its outputs go to `log`.
    """
    order = {"arguments": arguments, "log": str(log), "environment": environment}
    orders, codes = server().stdin, server().stdout
    assert orders and codes
    print(json.dumps(order), file=orders, flush=True)
    return int(codes.readline())


def serve() -> None:
    """Carry out orders, each in a fork, until there are no more."""
    from sphinx.application import builtin_extensions

    sys.path.insert(0, str(ENGINE))
    for name in (
        *builtin_extensions,
        "myst_nb.sphinx_ext",
        "sphinx_annotated.sphinx_extension",
    ):
        import_module(name)
    use(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            sys.exit(carry_out(**json.loads(line)))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def carry_out(arguments: list[str], log: str, environment: dict[str, str]) -> int:
    """Build a book in this process."""
    from sphinx.cmd.build import main

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.alarm(LONGEST)
    os.environ.clear()
    os.environ.update(environment)
    for path, flags, streams in (
        (log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, (1, 2)),
        (os.devnull, os.O_RDONLY, (0,)),
    ):
        file = os.open(path, flags)
        for stream in streams:
            os.dup2(file, stream)
    sys.argv = ["sphinx", *arguments]
    return main(arguments)


if __name__ == "__main__":
    serve()
