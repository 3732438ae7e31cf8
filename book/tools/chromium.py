"""Find or install a Chromium: an installed one, else Debian's, else Playwright's."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from filelock import FileLock
from playwright.sync_api import Browser, Playwright

ROOT = Path(__file__).resolve().parents[2]
SHELL = "chromium-headless-shell"  # opens a page in two thirds of the time
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def launched(playwright: Playwright) -> Browser:
    """Start a browser. Raises ``Error``, ``OSError`` or ``SubprocessError`` if none is found."""
    (ROOT / "_build").mkdir(exist_ok=True)
    with FileLock(ROOT / "_build" / ".chromium.lock"):
        path = installed()
        own = Path(playwright.chromium.executable_path)
        if not path and not own.is_file():
            if shutil.which("apt-get") and os.geteuid() == 0:
                for step in (["update", "-q"], ["install", "-qy", SHELL]):
                    subprocess.run(["apt-get", *step], capture_output=True, timeout=600)
                path = installed()
            if not path:
                command = [sys.executable, "-m", "playwright", "install", "chromium"]
                subprocess.run(command, capture_output=True, timeout=600, check=True)
    return playwright.chromium.launch(executable_path=path, args=FLAGS)


def installed() -> str | None:
    names = (SHELL, "chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)
