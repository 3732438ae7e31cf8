"""Put all releases into a site, each at an address of its own, such as `v1.2.0/`.

    python book/tools/keep_releases.py _build/releases

The folder has one for each release, named by its tag, with the archives that `make offline` wrote for it.
Every page of a release says which version it is, and links to the newest.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("book", "book/extensions", "engine")]

from changelog import kept, older  # noqa: E402
from editions.catalogues import languages, read  # noqa: E402

SITE = ROOT / "_build" / "html"
LOCALE = ROOT / "book" / "locale"
CHANGES = "book/pages/changes.html"
MAIN = re.compile(r"<main [^>]*>")
NEWEST = re.compile(r'<link rel="canonical" href="([^"]*)">')
LOOK = 'style="grid-column: 1 / -1; padding: 0.5em 1em; border: 1px solid; order: -9"'
Words = Callable[[str], str]


def keep(releases: Path, site: Path, locale: Path = LOCALE) -> list[str]:
    """Unpack the archives of each release into the site. Return the folders of the releases."""
    words = {each.code: _words(each.path("words")) for each in languages(locale)}
    found = sorted(
        folder for folder in releases.glob("v*") if any(folder.glob("*.zip"))
    )
    for folder in found:
        target = site / folder.name
        # The shortest name is that of the English book, whose welcome page is the first.
        for path in sorted(folder.glob("*.zip"), key=lambda each: -len(each.name)):
            with ZipFile(path) as zipped, TemporaryDirectory() as unpacked:
                zipped.extractall(unpacked)
                shutil.copytree(Path(unpacked, path.stem), target, dirs_exist_ok=True)
        for page in target.rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            text = _marked(text, folder.name, page.relative_to(target), site, words)
            page.write_text(text, encoding="utf-8")
    names = [folder.name for folder in found]
    for code in ("", *words):
        if (page := site / code / CHANGES).is_file():
            text = page.read_text(encoding="utf-8")
            page.write_text(_linked(text, names, code, words), encoding="utf-8")
    return names


def _words(path: Path) -> Words:
    found = {message.english: message.text for message in read(path) if message.shown}
    return lambda text: found.get(text, text)


def _marked(
    text: str, tag: str, page: Path, site: Path, words: dict[str, Words]
) -> str:
    """Return a page of a release with a line that says so.

    It leads to the newest text of the page, or to the welcome page if the page is no more.
    """
    newest = NEWEST.search(text)
    if newest is None:
        return text
    code = page.parts[0] if page.parts[0] in words else ""
    address = newest[1]
    if not (site / page).is_file():
        address = posixpath.join("../" * len(page.parts), code, "index.html")
    line = older(tag.removeprefix("v"), address, words.get(code, str))
    return MAIN.sub(lambda main: f"{main[0]}\n<p {LOOK}>{line}</p>", text, count=1)


def _linked(page: str, tags: list[str], code: str, words: dict[str, Words]) -> str:
    """Return the page of changes with links to the releases that the site keeps."""
    up = "../" * (CHANGES.count("/") + bool(code))
    for tag in tags:
        text = kept(
            f"{up}{tag}/{code}/index.html".replace("//", "/"), words.get(code, str)
        )
        heading = re.compile(rf'(<section id="{re.escape(tag)}">.*?</h2>)', re.DOTALL)
        page = heading.sub(rf"\1\n<p>{text}</p>", page)
    return page


if __name__ == "__main__":
    print("Kept:", ", ".join(keep(Path(sys.argv[1]), SITE)) or "no release")
