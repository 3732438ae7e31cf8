"""`make serve`: serve the site, and build what changes while an author writes.

This process serves the site and watches its sources. Another, the builder, has imported the engine and the
packages that a build needs, has parsed the chapters, and forks a child for each build. The child imports all
else of the book as it is now, and writes the changed pages alone, those that were edited before those that
show parts of them; a changed catalogue builds its language. The search and other languages wait for
`make book`. Styles and scripts are served from their sources.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
ENGINE = ROOT / "engine" / "sphinx_annotated"
sys.path[:0] = [str(BOOK), str(ENGINE.parent)]
SITE = ROOT / "_build" / "html"
LOCALE = BOOK / "locale"
STATIC = [BOOK / "theme/static", ENGINE / "static", BOOK / "live/static"]
FOLDERS = ("labml_primer", "benchmarks", "experiments", "book", "engine")
WATCHED = [ROOT / name for name in (*FOLDERS, "_config.yml", "_toc.yml")]
KINDS = (".md", ".yml", ".bib", ".json", ".css", ".js", ".html", ".toml", ".po")
# Packages that a build imports.
PACKAGES = (
    *("fontTools.subset", "jupyter_book.sphinx", "matplotlib", "myst_nb.sphinx_"),
    *("nbclient", "PIL.ImageFont", "pybtex.database", "resvg_py"),
    *("sphinx.builders.html", "sphinx.util.i18n", "sphinxcontrib.bibtex"),
    "sphinxcontrib.katex",
)
# First characters of lines that the builder prints: of what is wrong, and of the end of a build.
WRONG, END = "\1", "\2"
REST = "rest"  # asks for the pages that a build has left to the next one
LEFT = 90  # exit code of a build that has left pages
COLOUR = re.compile(r"\x1b\[[\d;]*m")


# -- the builder ---------------------------------------------------------------------------


def build_on_request() -> None:
    """Build for each line of the standard input.

    An empty one asks for the edited pages of the English book, ``REST`` for what else changed, and others
    name a language.
    """
    for name in PACKAGES:
        with suppress(ImportError):  # the build says what is missing
            importlib.import_module(name)
    parse_chapters()
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
            child = os.fork()
            if not child:
                os.dup2(errors.fileno(), 2)
                _build_and_end(line.strip())
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            errors.seek(0)
            for wrong in errors:
                print(f"{WRONG}{COLOUR.sub('', wrong).rstrip()}")
        print(f"{END}{code}", flush=True)
        parse_chapters()


def parse_chapters() -> None:
    """Parse the chapters that have changed, so that the next build need not. It reports what is wrong."""
    import yaml
    from sphinx_annotated.page.build.state import before, styles_of
    from sphinx_annotated.read.digest import versions
    from sphinx_annotated.read.modules import Project

    with suppress(Exception):
        text = (ROOT / "_config.yml").read_text(encoding="utf-8")
        config = yaml.safe_load(text)["sphinx"]["config"]
        contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
        names = [
            page["file"] for part in contents["parts"] for page in part["chapters"]
        ]
        styles = styles_of(config.get("annotated_style", "markdown"))
        project = Project(ROOT, styles, before=before.project)
        for path in (ROOT / f"{name}.py" for name in names):
            with suppress(Exception):
                module = project.at(path)
                others = project.dependencies(module)
                versions(module, others, project)
                for each in (module, *others):
                    _ = each.chapter, each.library
        before.project = project
    gc.freeze()  # a build need not look for garbage there


def _build_and_end(language: str) -> None:
    """Build, and end this process with those that it has started, as KaTeX's."""
    code = 1
    atexit._clear()  # what the parent does at its own end
    try:
        import build

        if language not in ("", REST):
            code = build.build_edition(language)
        else:
            how = "all" if language == REST else "own"
            code = build.build_one("", strict=False, drafts=False, quick=how)
            left = getattr(sys.modules.get("quick"), "left", ())
            code = LEFT if left and not code else code
    except Exception:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class Builder:
    """The process that builds on request. If it ends, the next build starts another."""

    process: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        """Return the process, started if there is none."""
        if self.process is None or self.process.poll() is not None:
            command = [sys.executable, __file__, "--builder"]
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        return self.process

    def end(self) -> None:
        """End the process: it knows an engine or modules that are no longer there."""
        if self.process and self.process.poll() is None:
            self.process.communicate()

    def build(self, language: str) -> tuple[int, str]:
        """Build, and print what the build says. Return its exit code and what is wrong."""
        process = self.start()
        assert process.stdin and process.stdout
        process.stdin.write(f"{language}\n")
        process.stdin.flush()
        wrong = ""
        for line in process.stdout:
            if line.startswith(END):
                return int(line.removeprefix(END)), wrong
            said = line.removeprefix(WRONG)
            wrong += said if line.startswith(WRONG) else ""
            print(said, end="", flush=True)
        return 1, f"{wrong}The process that builds has ended. Save again."


# -- the server ----------------------------------------------------------------------------


def is_own(host: str) -> bool:
    """Return whether the host that a request names is this machine."""
    with suppress(ValueError):
        name = (urlsplit(f"//{host}").hostname or "").removesuffix(".")
        return name == "localhost" or ip_address(name).is_loopback
    return False


@dataclass
class State:
    """What an open page asks for."""

    building: bool = False
    wrong: str = ""  # what the last build warned of, and its errors
    styles: int = 0  # how often one has changed
    scripts: int = 0


class Handler(SimpleHTTPRequestHandler):
    """Serve the site quietly, with a script in each page that loads it again after a build."""

    state = State()

    def parse_request(self) -> bool:
        """Return whether a request is answered.

        It must name this machine: another site could lead a name of its own here, and read the folder.
        """
        if not super().parse_request():
            return False
        if not is_own(self.headers.get("Host", "")):
            self.send_error(421, "open http://localhost instead")
            return False
        return True

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path == "/.serve.js":
            text = Path(__file__).with_name("serve.js").read_text(encoding="utf-8")
            self.reply(text, "text/javascript")
        elif address.path == "/.state":
            page = parse_qs(address.query).get("page", ["/"])[0]
            written = {"page": self.written(page)}
            self.reply(json.dumps(asdict(self.state) | written), "application/json")
        elif address.path == "/_static/primer.css":
            self.reply(style(), "text/css")
        else:
            super().do_GET()

    def written(self, page: str) -> str:
        """Return when a page was written, or nothing if there is none."""
        path = Path(self.translate_path(page))
        path = path / "index.html" if path.is_dir() else path
        return str(path.stat().st_mtime_ns) if path.is_file() else ""

    def translate_path(self, path: str) -> str:
        """Return the file of an address: of a style, a script or a font it is the source."""
        found = super().translate_path(path)
        name = os.path.relpath(found, os.path.join(self.directory, "_static"))
        sources = [] if name.startswith("..") else [each / name for each in STATIC]
        return next((str(each) for each in sources if each.is_file()), found)

    def copyfile(self, source: Any, outputfile: Any) -> None:
        super().copyfile(source, outputfile)
        if self.is_page():
            outputfile.write(b'<script src="/.serve.js"></script>')

    def send_header(self, keyword: str, value: str) -> None:
        # A page is longer by the script, and the connection ends with it.
        if not (keyword == "Content-Length" and self.is_page()):
            super().send_header(keyword, value)

    def end_headers(self) -> None:
        super().send_header("Cache-Control", "no-cache")
        super().end_headers()

    def is_page(self) -> bool:
        path = self.translate_path(self.path)
        return path.endswith("/") or self.guess_type(path) == "text/html"

    def reply(self, text: str, kind: str) -> None:
        content = text.encode()
        self.send_response(200)
        super().send_header("Content-Type", f"{kind}; charset=utf-8")
        super().send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Print no requests."""


def style() -> str:
    """Return the theme's style as its sources are now."""
    import theme

    return importlib.reload(theme).style()


# -- what changes --------------------------------------------------------------------------


def due(paths: Iterable[str]) -> tuple[set[str], list[str]]:
    """Return what changed files ask for: kinds of static files, and builds by language, English first."""
    kinds: set[str] = set()
    builds: set[str] = set()
    for path in map(Path, paths):
        if any(path.is_relative_to(folder) for folder in STATIC):
            kinds.add("scripts" if path.suffix == ".js" else "styles")
        elif path.is_relative_to(LOCALE) and path.parent != LOCALE:
            builds.add(path.relative_to(LOCALE).parts[0])
        else:
            builds.add("")
    return kinds, sorted(builds)


def react(builder: Builder, paths: Iterable[str]) -> None:
    """Build what changed files ask for, let open pages show it, and say what is done and how long it took."""
    paths = list(paths)
    names = ", ".join(sorted(os.path.relpath(path, ROOT) for path in paths))
    kinds, builds = due(paths)
    state = Handler.state
    state.styles += "styles" in kinds
    state.scripts += "scripts" in kinds
    if not builds:
        print(f"shown, without a build: {names}", flush=True)
    for language in builds:
        edition = f" {language}" if language else ""
        print(f"building{edition}, because of {names} …", flush=True)
        code = build(builder, language)
        if code == LEFT:
            print("building the pages that show parts of it …", flush=True)
            before, state.wrong = state.wrong, ""
            build(builder, REST)
            state.wrong = before + state.wrong


def build(builder: Builder, language: str) -> int:
    """Build, and say how long it took. Return the exit code."""
    state = Handler.state
    state.building = True
    start = time.monotonic()
    code, state.wrong = builder.build(language)
    state.building = False
    end = "built" if code in (0, LEFT) else "NOT built (see above)"
    print(f"{end} in {time.monotonic() - start:.1f} s", flush=True)
    return code


def first_build() -> None:
    """Build the whole book, which may have changed since it was built last."""
    print("building …", flush=True)
    start = time.monotonic()
    command = [sys.executable, str(Path(__file__).with_name("build.py"))]
    done = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
    print(done.stderr, end="", file=sys.stderr, flush=True)
    Handler.state.wrong = done.stderr
    end = "NOT built (see above)" if done.returncode else "built"
    print(f"{end} in {time.monotonic() - start:.0f} s", flush=True)


def serve(port: int) -> None:
    """Serve the site on localhost, and build it again when a source file changes.

    Port 0 is any free one.
    """
    from watchfiles import PythonFilter, watch

    handler = partial(Handler, directory=str(SITE))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", error)
        sys.exit(
            f"port {port} cannot be used ({reason}); try any free one: make serve PORT=0"
        )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    first_build()
    builder = Builder()
    builder.start()
    print(f"http://localhost:{server.server_port}/  (Ctrl-C ends)")
    print("Pages follow each save; the search and translations wait for `make book`.")
    sys.stdout.flush()
    kinds = PythonFilter(extra_extensions=KINDS)
    known = modules()
    for changes in watch(*WATCHED, watch_filter=kinds, raise_interrupt=True):
        paths = {path for _, path in changes}
        before, known = known, modules()
        if known != before or any(map(is_engine, paths)):
            builder.end()
        react(builder, paths)


def modules() -> set[Path]:
    """Return the modules that chapters may import."""
    return {path for name in FOLDERS[:3] for path in (ROOT / name).rglob("*.py")}


def is_engine(path: str) -> bool:
    return path.endswith(".py") and Path(path).is_relative_to(ENGINE)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the book while it is written.")
    parser.add_argument("port", type=int, nargs="?", default=8000)
    parser.add_argument("--builder", action="store_true", help="build on request")
    options = parser.parse_args()
    try:
        if options.builder:
            build_on_request()
        else:
            serve(options.port)
    except KeyboardInterrupt:
        sys.exit(130)  # as the shell says it: ended by Ctrl-C


if __name__ == "__main__":
    main()
