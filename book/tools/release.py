"""Check that the package, the citation, the changelog and a tag have one version, before a release."""

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
    if tag and tag != f"v{wanted}":
        problems.append(
            f"the tag is {tag}; pyproject.toml has {wanted}. Tag v{wanted}, or set the version."
        )
    return problems


if __name__ == "__main__":
    problems = disagreements(ROOT, *sys.argv[1:2])
    sys.exit("\n".join(problems) or 0)
