"""`make book`: run Jupyter Book's build with little output.

``jupyter-book build .`` builds the same site, but prints a traceback under messages that already
give the file, the line and the fix.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import NamedTemporaryFile

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "book"), str(ROOT / "engine")]

from editions import OWN  # noqa: E402
from editions.catalogues import CatalogueError, Language, languages  # noqa: E402
from editions.compiled import compile_catalogues, publish  # noqa: E402
from writing import said_if_refused  # noqa: E402

SITE = ROOT / "_build" / "html"
LOCALE = ROOT / "book" / "locale"
COMPILED = ROOT / "_build" / ".locale"
EDITIONS = ROOT / "_build" / ".editions"  # the languages that the site has
ROOM = 100  # megabytes without which no build begins


def build(strict: bool, drafts: bool = False) -> int:
    """Build the site, and next to it an edition per language. Returns 0 on success.

    All use the same outputs of chapters, so editions begin when the English book has executed them.
    ``strict`` turns warnings into errors.
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
    editions: dict[str, subprocess.Popen[str]] = {}

    def begin() -> None:
        for code in codes:
            editions[code] = subprocess.Popen(
                [*command, "--edition", code],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )

    try:
        result = build_one("", strict, drafts, executed=begin)
        left = [] if result else report(found)  # while the editions are being written
        for code, edition in editions.items():
            if result:
                break  # what concerns both was said already
            said, _ = edition.communicate()
            print(said, end="", flush=True)
            result = edition.returncode
            if not result:
                publish(EDITIONS / code, SITE / code, OWN)
    finally:
        for edition in editions.values():
            edition.terminate()
            edition.wait()
    if not result:
        forget_others(codes)
        print(*left, sep="\n", end="\n" if left else "")
    return result


def report(found: list[Language]) -> list[str]:
    """Return what editions lack. A translation may come later, so it is no error of a strict build."""
    import translations

    now = translations.everything() if found else {}
    return [
        line
        for each in found
        for line in translations.report(each, translations.counts(each, now))
    ]


def build_edition(code: str) -> int:
    """Build the edition in a language again, next to a site that is there. Returns 0 on success.

    A draft that the site does not have is left out.
    """
    try:
        found = next((each for each in languages(LOCALE) if each.code == code), None)
        if found is None or not (EDITIONS / code).is_dir():
            return 0
        compile_catalogues(found, COMPILED)
    except CatalogueError as error:
        print(error, file=sys.stderr)
        return 1
    result = build_one(code, strict=False, drafts=found.draft)
    if not result:
        publish(EDITIONS / code, SITE / code, OWN)
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


def build_one(
    code: str,
    strict: bool,
    drafts: bool,
    quick: str = "",
    executed: Callable[[], None] | None = None,
) -> int:
    """Build the English book, or its edition in a language. Call ``executed`` when chapters have been.

    A ``quick`` build writes pages alone: those whose ``own`` files changed, or ``all`` that changed.
    """
    import yaml
    from address import online
    from jupyter_book.sphinx import build_sphinx
    from sphinx_annotated.page.build.repository import Repository

    show_progress()
    # Pages are millions of objects that last. Looking for garbage among them less often halves the time.
    gc.set_threshold(100_000, 50, 100)
    options: dict[str, object] = {"quick": quick, "editions_executed": executed}
    options |= {"editions_drafts": True} if drafts else {}
    if code:
        language = next(each for each in languages(LOCALE) if each.code == code)
        options |= {
            "glossary_readings": dict(language.readings),
            "search_variants": dict(language.variants),
            "glossary_letters": language.letters,
            "editions_code": code,
            "editions_drafts": True,
            "language": code,
            "locale_dirs": [COMPILED.relative_to(ROOT).as_posix()],
            "annotated_outputs": "_build",
        }
    # PyTorch's profiler says on standard error when it starts and stops, unless it is told not to.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    # Node, which renders the math, hangs on an inherited standard input.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    text = (ROOT / "_config.yml").read_text(encoding="utf-8")
    repository = online(yaml.safe_load(text)["repository"], os.environ)
    memory = doctrees(code) / "environment.pickle"
    before = memory.read_bytes() if quick and memory.is_file() else b""
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
    # After an error Sphinx forgets all pages, and would read them again when the error is mended.
    if before and not memory.is_file():
        memory.write_bytes(before)
    return 1 if isinstance(result, BaseException) else int(result)


def obstacle(folder: Path) -> str:
    """Return what would end a build that writes to a folder, and what to do; or nothing."""
    try:
        folder.mkdir(exist_ok=True)
        with NamedTemporaryFile(dir=folder) as file:
            file.write(b"1")
    except OSError as error:
        return f"{folder}: {error.strerror}. Build where this folder can be written."
    free = shutil.disk_usage(folder).free // 10**6
    if free < ROOM:
        return f"{folder}: only {free} MB are free on its disk. Make room, and build again."
    return ""


def show_progress() -> None:
    """Print what the engine and the stopwatch report, while Sphinx is quiet about its own progress."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setLevel(logging.INFO)
    handler.addFilter(lambda record: record.levelno < logging.WARNING)
    for name in ("sphinx_annotated", "stages", "online"):
        logging.getLogger(f"sphinx.{name}").addHandler(handler)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Build the book, with its editions in other languages."
    )
    parser.add_argument("--strict", action="store_true", help="warnings are errors")
    parser.add_argument("--edition", help="build this edition alone")
    parser.add_argument("--drafts", action="store_true", help="build draft editions")
    options = parser.parse_args()
    if problem := obstacle(ROOT / "_build"):
        sys.exit(problem)
    # What a build started ends with it, also if it is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with said_if_refused(ROOT / "_build"):
            if options.edition:
                sys.exit(build_one(options.edition, options.strict, options.drafts))
            sys.exit(build(options.strict, options.drafts))
    except KeyboardInterrupt:
        sys.exit(130)  # as the shell says it: ended by Ctrl-C


if __name__ == "__main__":
    main()
