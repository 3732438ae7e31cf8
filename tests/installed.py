"""Install packages that only some nightly tests need."""

import subprocess
import sys
from pathlib import Path

import pytest


def install(folder: Path, *packages: str) -> None:
    """Install packages into a folder, or skip the test if there is no network."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder)]
    done = subprocess.run(
        [*command, *packages], capture_output=True, text=True, check=False
    )
    if "Temporary failure in name resolution" in done.stderr:
        pytest.skip("without the network, nothing can be installed")
    assert done.returncode == 0, done.stderr
