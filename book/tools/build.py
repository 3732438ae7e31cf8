"""`make book` and `make serve`: run Jupyter Book's build with little output.

``jupyter-book build .`` builds the same site, but prints a traceback under messages that already
give the file, the line and the fix.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book"))  # where the engine is

from editions import OWN  # noqa: E402
from editions.catalogues import CatalogueError, languages  # noqa: E402
from editions.compiled import compile_catalogues, publish  # noqa: E402

SITE = ROOT / "_build" / "html"
LOCALE = ROOT / "book" / "locale"
COMPILED = ROOT / "_build" / ".locale"
EDITIONS = ROOT / "_build" / ".editions"  # the languages that the site has


def build(strict: bool, drafts: bool = False) -> int:
    """Build the site, and next to it an edition per language. Returns 0 on success.

    All use the same outputs of chapters: who comes first executes them. ``strict`` turns warnings into
    errors.
    """
    try:
        found = [each for each in languages(LOCALE) if drafts or not each.draft]
        codes = [language.code for language in found]
        for language in found:
            compile_catalogues(language, COMPILED)
    except CatalogueError as error:
        print(error, file=sys.stderr)
        return 1
    command = [sys.executable, __file__, *(["--strict"] if strict else [])]
    command += ["--drafts"] if drafts else []
    editions = {
        code: subprocess.Popen(
            [*command, "--edition", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for code in codes
    }
    result = build_one("", strict, drafts)
    for code, edition in editions.items():
        if result:
            edition.terminate()
        said, _ = edition.communicate()  # what concerns both was said already
        if not result:
            print(said, end="", flush=True)
            result = edition.returncode
        if not result:
            publish(EDITIONS / code, SITE / code, OWN)
    if not result:
        forget_others(codes)
    return result


def forget_others(codes: list[str]) -> None:
    """Remove the editions of languages that the book no longer has."""
    for built in EDITIONS.glob("*"):
        if built.is_dir() and built.name not in codes:
            shutil.rmtree(SITE / built.name, ignore_errors=True)
            shutil.rmtree(COMPILED / built.name, ignore_errors=True)
            shutil.rmtree(doctrees(built.name), ignore_errors=True)
            shutil.rmtree(built)


def doctrees(code: str) -> Path:
    """Return the folder in which Sphinx keeps what it has read."""
    return ROOT / "_build" / (f".doctrees-{code}" if code else ".doctrees")


def build_one(code: str, strict: bool, drafts: bool) -> int:
    """Build the English book, or its edition in a language."""
    import yaml
    from address import online
    from annotated.page.book import Repository
    from jupyter_book.sphinx import build_sphinx

    show_progress()
    options: dict[str, object] = {"editions_drafts": True} if drafts else {}
    if code:
        options |= {
            "editions_code": code,
            "editions_drafts": True,
            "language": code,
            "locale_dirs": [COMPILED.relative_to(ROOT).as_posix()],
            "annotated_outputs": "_build",
        }
    # Node, which renders the math, hangs on an inherited standard input.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    text = (ROOT / "_config.yml").read_text(encoding="utf-8")
    repository = online(yaml.safe_load(text)["repository"], os.environ)
    result = build_sphinx(
        ROOT,
        EDITIONS / code if code else SITE,
        path_config=ROOT / "_config.yml",
        confoverrides={
            "external_toc_path": "_toc.yml",
            "latex_individualpages": False,
            "annotated_repository": repository,
            "html_baseurl": Repository(**repository).pages,
            **options,
        },
        doctreedir=doctrees(code),
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
    for name in ("annotated", "stages", "editions"):
        logging.getLogger(f"sphinx.{name}").addHandler(handler)


class Handler(SimpleHTTPRequestHandler):
    """Serve the site quietly, with a script in each page that loads it again after a build."""

    built = 0  # the number of builds that have ended

    def do_GET(self) -> None:
        if self.path == "/.reload.js":
            self.reply(RELOAD.encode(), "text/javascript")
        elif self.path == "/.built":
            self.reply(str(Handler.built).encode(), "text/plain")
        else:
            super().do_GET()

    def copyfile(self, source: Any, outputfile: Any) -> None:
        super().copyfile(source, outputfile)
        if self.is_page():
            outputfile.write(b'<script src="/.reload.js"></script>')

    def send_header(self, keyword: str, value: str) -> None:
        # A page is longer by the script, and the connection ends with it.
        if not (keyword == "Content-Length" and self.is_page()):
            super().send_header(keyword, value)

    def is_page(self) -> bool:
        path = self.translate_path(self.path)
        return path.endswith("/") or self.guess_type(path) == "text/html"

    def reply(self, content: bytes, kind: str) -> None:
        self.send_response(200)
        super().send_header("Content-Type", kind)
        super().send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Print no requests."""


RELOAD = """
let built;
setInterval(async () => {
  const now = await fetch("/.built").then((reply) => reply.text(), () => built);
  if (built !== undefined && now !== built) location.reload();
  built = now;
}, 500);
"""


def rebuild(command: list[str], why: str = "") -> None:
    """Build in a process of its own, and say that and how long it took."""
    print(f"building{why} …", flush=True)
    start = time.monotonic()
    done = subprocess.run(command, check=False)
    end = "built" if done.returncode == 0 else "NOT built (see above)"
    print(f"{end} in {time.monotonic() - start:.0f} s", flush=True)
    Handler.built += 1


def serve(port: int) -> None:
    """Serve the site on localhost, and build it again when a source file changes.

    Port 0 is any free one.
    """
    from watchfiles import PythonFilter, watch

    handler = partial(Handler, directory=str(SITE))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        message = f"port {port} cannot be used ({error.strerror})"
        sys.exit(f"{message}; try: make serve PORT={port + 1}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = [sys.executable, __file__]
    rebuild(command)
    print(f"http://localhost:{server.server_port}/  (Ctrl-C ends)", flush=True)
    kinds = PythonFilter(
        extra_extensions=(
            *(".md", ".yml", ".bib", ".json"),
            *(".css", ".js", ".html", ".toml", ".po"),
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
    for changes in watch(*sources, watch_filter=kinds, raise_interrupt=False):
        names = sorted({os.path.relpath(path, ROOT) for _, path in changes})
        rebuild(command, f", because of {', '.join(names)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Build the book, or serve it while it is written."
    )
    parser.add_argument("--strict", action="store_true", help="warnings are errors")
    parser.add_argument(
        "--serve", type=int, metavar="PORT", help="serve and rebuild on change"
    )
    parser.add_argument("--edition", help="build this edition alone")
    parser.add_argument("--drafts", action="store_true", help="build draft editions")
    options = parser.parse_args()
    try:
        if options.edition:
            sys.exit(build_one(options.edition, options.strict, options.drafts))
        if options.serve is not None:
            serve(options.serve)
        else:
            sys.exit(build(options.strict, options.drafts))
    except KeyboardInterrupt:
        sys.exit(130)  # as the shell says it: ended by Ctrl-C


if __name__ == "__main__":
    main()
