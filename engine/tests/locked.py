"""Environments of their own, for tests of what other people have."""

import hashlib
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest
from filelock import FileLock

BUILT = Path(__file__).resolve().parents[2] / "_build"


def python_of(lock: Path, name: str) -> Path:
    """Python of an environment with what a lock file names; made once, kept between runs."""
    folder = BUILT / f".venv-{name}"
    BUILT.mkdir(exist_ok=True)
    with FileLock(BUILT / f".venv-{name}.lock"):  # several workers may ask at once
        stamp, python = folder / "lock.sha256", folder / "bin" / "python"
        digest = hashlib.sha256(lock.read_bytes()).hexdigest() + sys.version
        if not stamp.is_file() or stamp.read_text() != digest:
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            install_into(python, ["-r", str(lock)])
            stamp.write_text(digest)
    return python


def folder_of(lock: Path, name: str, packages: Collection[str]) -> Path:
    """A folder with some of the packages that a lock file names; made once, kept between runs.

    Python finds them there before those of its environment if `PYTHONPATH` names the folder.
    """
    wanted = [
        line
        for line in lock.read_text().splitlines()
        if re.sub(r"==.*", "", line) in packages
    ]
    assert len(wanted) == len(packages)
    folder = BUILT / f".{name}"
    BUILT.mkdir(exist_ok=True)
    with FileLock(BUILT / f".{name}.lock"):
        stamp, digest = folder / "lock.txt", "\n".join([*wanted, sys.version])
        if not stamp.is_file() or stamp.read_text() != digest:
            shutil.rmtree(folder, ignore_errors=True)
            install_into(Path(sys.executable), ["--target", str(folder), *wanted])
            stamp.write_text(digest)
    return folder


def install_into(python: Path, what: list[str]) -> None:
    """Install pinned packages by pip, or say which command failed."""
    install = [str(python), "-m", "pip", "install", "-q", "--no-deps"]
    install += ["--disable-pip-version-check", *what]
    done = subprocess.run(install, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        pytest.fail(
            f"{shlex.join(install)} failed. It needs the network, the first time a "
            f"test asks for it:\n{done.stderr}",
            pytrace=False,
        )
