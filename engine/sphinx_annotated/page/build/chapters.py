"""Which modules are chapters: those that the book names, by patterns or in a table of contents.

All other files of Python below the folder of the sources are left alone: ``conf.py``, scripts, tests.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.matching import Matcher, get_matching_files

from sphinx_annotated.read.patterns import matches

TEXTS = ("**.md", "**.rst", "**.txt", "**.ipynb", "**.py")
MYST = re.compile(r"(?ms)^ *(`{3,}|~{3,}|:{3,})\{toctree\}[^\n]*\n(.*?)^ *\1")
REST = re.compile(r"(?m)^( *)\.\. toctree::[^\n]*\n((?:\1 +[^\n]*\n|[ \t]*\n)*)")
ENTRY = re.compile(r"(?:.*<([^<>]+)>|([^\s:][^\n]*))$")
UNMATCHED = (
    '%s: the pattern "%s" names no chapter.%s Correct it, or remove it. '
    "A * stays within a folder, a ** does not."
)
LOGGER = logging.getLogger(__name__)


def written(app: Sphinx) -> list[str]:
    """Return patterns of what builds write below the sources: notebooks there are no pages.

    An earlier build may have written elsewhere than this one.
    """
    out, root = Path(app.outdir), Path(app.srcdir)
    below = [out.relative_to(root).as_posix()] if root in out.parents else []
    return [*below, "jupyter_execute", "**/jupyter_execute"]  # MyST-NB's


def choose(app: Sphinx, config: Any) -> None:
    """Let Sphinx find those modules alone that are chapters.

    A book that sets ``include_patterns`` has the files that these name, and no others.
    """
    config.exclude_patterns = [*config.exclude_patterns, *written(app)]
    if list(config.include_patterns) != ["**"]:
        config.exclude_patterns = [*config.exclude_patterns, "conf.py"]
        return
    root = Path(app.srcdir)
    excluded = [*config.exclude_patterns, *config.templates_path]
    files = {
        name
        for name in get_matching_files(root, TEXTS, excluded)
        if name != "conf.py" or config.root_doc == "conf"
    }
    modules = {name for name in files if name.endswith(".py")}
    if config.annotated_chapters:
        patterns = config.annotated_chapters
        named = {
            m
            for m in modules
            if any(matches(p, m.removesuffix(".py")) for p in patterns)
        }
    else:
        named = _listed(root, files, modules, config)
    others = [suffix for suffix in config.source_suffix if suffix != ".py"]
    config.include_patterns = [
        *(f"**{suffix}" for suffix in others),
        *(re.sub(r"[\[\]*]", "?", name) for name in sorted(named)),
    ]


def warn_of_patterns(app: Sphinx, docnames: list[str]) -> None:
    """Warn of patterns in the settings that name none of the chapters."""
    for name in ("annotated_chapters", "annotated_execute", "annotated_style"):
        setting = getattr(app.config, name)
        for pattern in [] if isinstance(setting, str) else setting:
            if pattern == "**" or any(matches(pattern, each) for each in docnames):
                continue
            near = get_close_matches(pattern.removesuffix(".py"), docnames, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            LOGGER.warning(
                *(UNMATCHED, name, pattern, hint),
                location=place(app, name),
                type="annotated",
                subtype="pattern",
            )


def place(app: Sphinx, name: str) -> str | None:
    """Return the file and the line of a setting, if a file has it."""
    for path in (Path(app.confdir, "conf.py"), Path(app.confdir, "_config.yml")):
        lines = path.read_text("utf-8").split("\n") if path.is_file() else []
        for number, line in enumerate(lines, 1):
            if re.match(rf"\s*{name}\b", line):
                return f"{path}:{number}"
    return None


def _listed(root: Path, files: set[str], modules: set[str], config: Any) -> set[str]:
    """Return the modules in tables of contents: external ones, of texts, and of these modules."""
    found = {f"{config.root_doc}.py"} & modules
    if site := getattr(config, "external_site_map", None):
        globs = Matcher(list(site.globs()))
        for name in modules:
            docname = name.removesuffix(".py")
            if name in site or docname in site or globs(docname):
                found.add(name)
    waiting = sorted(files - modules) + sorted(found)
    while waiting:
        name = waiting.pop()
        new = set(_entries(root, name, modules)) - found
        found |= new
        waiting += sorted(new)
    return found


def _entries(root: Path, name: str, modules: set[str]) -> Iterator[str]:
    """Yield the modules in the tables of contents of a file."""
    text = (root / name).read_text(encoding="utf-8", errors="replace")
    if "toctree" not in text:
        return
    if name.endswith(".ipynb"):  # lines of its texts are strings
        text = re.sub(r'(?m)^\s*"(.*?)(\\n)?",?$', r"\1", text)
    for body in [
        *(m[2] for m in MYST.finditer(text)),
        *(m[2] for m in REST.finditer(text)),
    ]:
        pattern = re.search(r"(?m)^\s*:?glob:?\s*(true)?\s*$", body) is not None
        for line in body.split("\n"):
            entry = ENTRY.fullmatch(line.strip())
            if not entry:
                continue
            path = _from_root(name, (entry[1] or entry[2]).strip())
            listed = (
                Matcher([path, f"{path}.py"])
                if pattern
                else {path, f"{path}.py"}.__contains__
            )
            yield from (
                module
                for module in modules
                if listed(module) or (pattern and listed(module.removesuffix(".py")))
            )


def _from_root(name: str, entry: str) -> str:
    """Return an entry as a path from the root: it is relative to its file, or starts with a slash."""
    folder = posixpath.dirname(name)
    return posixpath.normpath(posixpath.join("/", folder, entry)).lstrip("/")
