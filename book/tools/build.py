"""`make book` and `make serve`: run Jupyter Book's build with little output.

``jupyter-book build .`` builds the same site, but prints a traceback under messages that already
give the file, the line and the fix.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book"))  # where the engine is
SITE = ROOT / "_build" / "html"


def build(strict: bool) -> int:
    """Build the site. Returns 0 on success. ``strict`` turns warnings into errors."""
    import yaml
    from address import online
    from annotated.page.book import Repository
    from jupyter_book.sphinx import build_sphinx

    show_progress()
    # Node, which renders the math, hangs on an inherited standard input.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    text = (ROOT / "_config.yml").read_text(encoding="utf-8")
    repository = online(yaml.safe_load(text)["repository"], os.environ)
    result = build_sphinx(
        ROOT,
        SITE,
        path_config=ROOT / "_config.yml",
        confoverrides={
            "external_toc_path": "_toc.yml",
            "latex_individualpages": False,
            "annotated_repository": repository,
            "html_baseurl": Repository(**repository).pages,
        },
        noconfig=True,
        quiet=True,
        warningiserror=strict,
        keep_going=strict,
    )
    return 1 if isinstance(result, BaseException) else int(result)


def show_progress() -> None:
    """Print what the engine and the stopwatch report, while Sphinx is quiet about its own progress."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setLevel(logging.INFO)
    handler.addFilter(lambda record: record.levelno < logging.WARNING)
    for name in ("annotated", "stages"):
        logging.getLogger(f"sphinx.{name}").addHandler(handler)


def serve(port: int) -> None:
    """Serve the site on localhost, and build it again when a source file changes.

    Port 0 is any free one.
    """
    from watchfiles import PythonFilter, watch

    handler = partial(SimpleHTTPRequestHandler, directory=str(SITE))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        message = f"port {port} cannot be used ({error.strerror})"
        sys.exit(f"{message}; try: make serve PORT={port + 1}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = [sys.executable, __file__]
    subprocess.run(command, check=False)
    address = f"http://localhost:{server.server_port}/book/pages/index.html"
    print(f"{address}  (Ctrl-C ends)", flush=True)
    kinds = PythonFilter(
        extra_extensions=(
            *(".md", ".yml", ".bib", ".json"),
            *(".css", ".js", ".html", ".toml"),
        )
    )
    sources = [
        ROOT / "labml_primer",
        ROOT / "benchmarks",
        ROOT / "experiments",
        ROOT / "book",
        ROOT / "_config.yml",
        ROOT / "_toc.yml",
    ]
    for _ in watch(*sources, watch_filter=kinds, raise_interrupt=False):
        subprocess.run(command, check=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Build the book, or serve it while it is written."
    )
    parser.add_argument("--strict", action="store_true", help="warnings are errors")
    parser.add_argument(
        "--serve", type=int, metavar="PORT", help="serve and rebuild on change"
    )
    options = parser.parse_args()
    try:
        if options.serve is not None:
            serve(options.serve)
        else:
            sys.exit(build(options.strict))
    except KeyboardInterrupt:
        sys.exit(130)  # as the shell says it: ended by Ctrl-C


if __name__ == "__main__":
    main()
