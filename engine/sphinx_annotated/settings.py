"""The settings of a book, in ``conf.py``: their names, defaults and kinds, checked before anything else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ConfigError

from sphinx_annotated.ends import say_and_end
from sphinx_annotated.page.build.chapters import place
from sphinx_annotated.page.build.repository import Repository
from sphinx_annotated.page.build.state import styles_of

# Name in ``conf.py``, default, and what Sphinx builds again when it changes.
CONFIGURATION: list[tuple[str, Any, Any] | tuple[str, Any, Any, Any]] = [
    # How prose is written: one style, or styles by pattern.
    ("annotated_style", "markdown", "env", (str, dict)),
    ("annotated_chapters", [], "env"),  # patterns; none: modules in a toctree
    ("annotated_execute", ["**"], "env"),  # patterns of chapters that are executed
    ("annotated_say_unexecuted", True, "env"),  # whether a page says that it was not
    ("annotated_workers", 0, ""),  # chapters executed at a time; 0: one per core
    ("annotated_timeout", 600, ""),  # seconds that one statement may run
    ("annotated_outputs", "", ""),  # folder of the stored outputs; "": next to the site
    ("annotated_figure_fonts", [], ""),  # files of the font in which figures are set
    ("annotated_pictures", "", "env"),  # the package whose modules draw pictures
    ("annotated_repository", {}, "html"),  # its url, branch, folder of notebooks
    ("annotated_glossary", "", "html"),  # the file with the glossary, for notebooks
    ("annotated_license", "", "html"),  # of the code that readers copy, as "MIT"
    ("annotated_folded", [], "env"),  # folders of chapters whose code is all folded
    ("annotated_install", {}, ""),  # package: what a notebook passes to pip install
    ("annotated_verified", [], "html"),  # packages whose versions are shown
]
FILES = ("annotated_figure_fonts", "annotated_glossary")
OF_REPOSITORY = tuple(each.name for each in fields(Repository))


def check(app: Sphinx, config: Any) -> None:
    """End the build with a line for each setting that is of a wrong kind."""
    found = []
    for name, default, *_ in CONFIGURATION:
        value = getattr(config, name)
        wrong = problem(name, default, value)
        missing = [] if wrong else list(_missing(Path(app.srcdir), name, value))
        where = place(app, name)
        for text in [wrong] if wrong else missing:
            found.append(f"{where}: {name} {text}" if where else f"{name} {text}")
    try:
        if found:
            raise ConfigError("\n".join(found))
        styles_of(config.annotated_style)
    except ConfigError as error:
        say_and_end(app, error)
        raise


def problem(name: str, default: Any, value: Any) -> str:
    """Return what is wrong with the kind of a value, and the fix, or nothing."""
    if name == "annotated_style":
        right = isinstance(value, str) or (
            isinstance(value, dict) and _are_words(value)
        )
        return "" if right else f"is {value!r}. Write a style, or styles by pattern."
    if isinstance(default, bool):
        right = isinstance(value, bool)
        return "" if right else f"is {value!r}, and must be True or False."
    if isinstance(default, list):
        if isinstance(value, str):
            return f"is {value!r}, and must be a list: [{value!r}]."
        right = isinstance(value, list | tuple | set) and _are_words(value)
        return "" if right else f"is {value!r}, and must be a list of strings."
    if isinstance(default, dict):
        if not isinstance(value, dict) or not _are_words([*value, *value.values()]):
            return f"is {value!r}, and must be a dict of strings."
        known = OF_REPOSITORY if name == "annotated_repository" else value
        odd = ", ".join(key for key in value if key not in known)
        return f"has {odd}. It may have {', '.join(known)}." if odd else ""
    if isinstance(default, int):
        least = min(default, 1)
        number = isinstance(value, int | float) and not isinstance(value, bool)
        right = number and value >= least
        return "" if right else f"is {value!r}, and must be a number, at least {least}."
    return "" if isinstance(value, str) else f"is {value!r}, and must be a string."


def _are_words(values: Any) -> bool:
    return all(isinstance(each, str) for each in values)


def _missing(root: Path, name: str, value: Any) -> Iterator[str]:
    """Yield what is wrong with each file that a setting names and that is not there."""
    if name in FILES:
        for file in [value] if isinstance(value, str) else value:
            if file and not (root / file).is_file():
                yield f"names {file}, which is no file in {root}. Correct it."
