"""Start the kernels of small books in forks of one process that has imported IPython and ipykernel.

Importing takes most of the CPU second in which a kernel starts. Run as a script, this file is that process.
"""

import atexit
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

# With NumPy, and without matplotlib, which reads its settings when it is imported.
IMPORTED = [
    "ipykernel.debugger",
    "ipykernel.kernelapp",
    "numpy",
]
LAUNCH = [sys.executable, "-m", "ipykernel_launcher"]


@cache
def nursery() -> str:
    """Start the process, and return the address of its socket. It ends with this one.

    A system without descriptors of processes has no nursery: there, kernels start as a book's do.
    """
    if not hasattr(os, "pidfd_open"):
        return ""
    folder = mkdtemp(prefix="kernels")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    address = str(Path(folder) / "socket")
    process = subprocess.Popen(
        [sys.executable, __file__, address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={
            **os.environ,
            "OPENBLAS_NUM_THREADS": "1",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        },
    )
    assert process.stdout and process.stdout.readline() == b"ready\n"
    return address


def use(address: str) -> None:
    """Let jupyter_client start kernels in the nursery, from this process and its forks."""
    from jupyter_client import launcher

    def start(command: list[str], **options: Any) -> Any:
        if command[: len(LAUNCH)] != LAUNCH:
            return subprocess.Popen(command, **options)
        return Forked(address, command[len(LAUNCH) :], **options)

    if address:
        launcher.Popen = start  # type: ignore[assignment, misc]


class Forked:
    """A kernel of the nursery, with what jupyter_client uses of a `Popen`."""

    def __init__(
        self,
        address: str,
        arguments: list[str],
        cwd: str,
        env: dict[str, str],
        stderr: Any = None,
        **_: Any,
    ):
        self.stdin = open(os.devnull, "rb")  # noqa: SIM115 (jupyter_client closes it)
        self.stdout, self.stderr = None, stderr
        self.returncode: int | None = None
        order = {"arguments": arguments, "folder": cwd, "environment": env}
        files = [self.stdin.fileno(), 1, stderr.fileno() if stderr else 2]
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(address)
            socket.send_fds(line, [b"!"], files)
            line.sendall(json.dumps(order).encode())
            line.shutdown(socket.SHUT_WR)
            self.pid = int(line.recv(20))  # its session is its own by now
        self.process = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        """Return 1 if it has ended: nobody asks how."""
        if self.returncode is None and select.select([self.process], [], [], 0)[0]:
            self.returncode = 1
            os.close(self.process)
        return self.returncode

    def wait(self) -> int:
        while self.poll() is None:
            select.select([self.process], [], [])
        return 1

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def serve(address: str) -> None:
    """Fork a kernel for each order, until the process that ordered them ends."""
    for name in IMPORTED:
        import_module(name)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(20)
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([listening, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        line, _ = listening.accept()
        _, files, _, _ = socket.recv_fds(line, 1, 3)
        if not os.fork():
            listening.close()
            become_kernel(line, files)
        for file in files:
            os.close(file)
        line.close()  # ended kernels stay zombies, so that no other process gets their numbers


def become_kernel(line: socket.socket, files: list[int]) -> None:
    """Do what the launcher does as a program of its own."""
    os.setsid()
    with line, line.makefile("rb") as read:
        order = json.load(read)
        line.sendall(str(os.getpid()).encode())
    for stream, file in enumerate(files):
        os.dup2(file, stream)
        os.close(file)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = filter(None, paths)  # instead of this file's folder
    sys.argv = [
        "ipykernel_launcher",
        *order["arguments"],
        f"--IPKernelApp.parent_handle={os.getppid()}",
    ]
    runpy.run_module("ipykernel_launcher", run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    serve(sys.argv[1])
