"""Check that the package, the citation, the changelog and a tag have one version, before a release.

The engine is a package of its own, with a version, a changelog and tags (``engine-v1.2.3``) of its own.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACES = {
    "pyproject.toml": r'^version = "(?P<version>[^"]+)"$',
    "CITATION.cff": r"^version: (?P<version>\S+)$",
    "CHANGELOG.md": r"^## (?P<version>\d\S*) \((?P<day>[\d-]+)\)$",
}
ENGINE = "engine/pyproject.toml"
ENGINE_NEWS = r"^## (?P<version>\d\S*) \((?P<day>[\d-]+|unreleased)\)$"
NEWS = r"^## (?P<name>\S+)"
DAY = r"^date-released: (?P<day>\S+)$"


def found(root: Path, name: str, pattern: str) -> tuple[str, re.Match[str]]:
    """Return where a pattern is first in a file, as `file:line`, and the match."""
    text = (root / name).read_text(encoding="utf-8")
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise LookupError(f"{name}:1: there is no line like {pattern}")
    return f"{name}:{text.count(chr(10), 0, match.start()) + 1}", match


def disagreements(root: Path, tag: str = "") -> list[str]:
    """Return a line with file, line and fix for each place whose version is another than the package's."""
    _, project = found(root, "pyproject.toml", PLACES["pyproject.toml"])
    wanted = project["version"]
    problems = []
    for name, pattern in PLACES.items():
        place, match = found(root, name, pattern)
        if match["version"] != wanted:
            problems.append(
                f"{place}: version {match['version']}; pyproject.toml has {wanted}. Write the same in both."
            )
    _, newest = found(root, "CHANGELOG.md", PLACES["CHANGELOG.md"])
    place, cited = found(root, "CITATION.cff", DAY)
    if cited["day"] != newest["day"]:
        problems.append(
            f"{place}: released {cited['day']}; CHANGELOG.md has {newest['day']}. Write the same in both."
        )
    problems += of_the_engine(root, tag)
    if not tag or tag.startswith("engine-"):
        return problems
    if tag != f"v{wanted}":
        problems.append(
            f"the tag is {tag}; pyproject.toml has {wanted}. Tag v{wanted}, or set the version."
        )
    place, first = found(root, "CHANGELOG.md", NEWS)
    if first["name"] != wanted:
        problems.append(
            f"{place}: {first['name']}; the tag is {tag}. Write the version and the day instead."
        )
    return problems


def of_the_engine(root: Path, tag: str) -> list[str]:
    """Return the disagreements of the engine's version, changelog and tag."""
    _, project = found(root, ENGINE, PLACES["pyproject.toml"])
    wanted = project["version"]
    place, newest = found(root, "engine/CHANGELOG.md", ENGINE_NEWS)
    problems = []
    if newest["version"] != wanted:
        problems.append(
            f"{place}: version {newest['version']}; {ENGINE} has {wanted}. Write the same in both."
        )
    if not tag.startswith("engine-"):
        return problems
    if newest["day"] == "unreleased":
        problems.append(
            f"{place}: unreleased; the tag is {tag}. Write the day of the release."
        )
    if tag != f"engine-v{wanted}":
        problems.append(
            f"the tag is {tag}; {ENGINE} has {wanted}. Tag engine-v{wanted}, or set the version."
        )
    return problems


if __name__ == "__main__":
    problems = disagreements(ROOT, *sys.argv[1:2])
    sys.exit("\n".join(problems) or 0)
