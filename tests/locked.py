"""Environments of their own, for tests of what other people have."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock

BUILT = Path(__file__).resolve().parent.parent / "_build"


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
            install = ["-m", "pip", "install", "-q", "--disable-pip-version-check"]
            install += ["--no-deps", "-r", str(lock)]
            subprocess.run([str(python), *install], check=True)
            stamp.write_text(digest)
    return python
