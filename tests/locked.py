"""Environments of their own, for tests of what other people have."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

BUILT = Path(__file__).resolve().parent.parent / "_build"


def python_of(lock: Path, name: str) -> Path:
    """Python of an environment with what a lock file names; made once, kept between runs."""
    folder = BUILT / f".venv-{name}"
    stamp, python = folder / "lock.sha256", folder / "bin" / "python"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest() + sys.version
    if not stamp.is_file() or stamp.read_text() != digest:
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        install = [
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            "--no-deps",
            "-r",
        ]
        subprocess.run([str(python), *install, str(lock)], check=True)
        stamp.write_text(digest)
    return python
