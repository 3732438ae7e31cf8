"""`make offline`: write a PDF and an EPUB of the book, and an archive that opens from disk.

They go into the site's `downloads`. The next build links them from the welcome page. Editions in other
languages that the site has get their own, the PDF only if the machine has a font for the language; with
STRICT=1 that is an error.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("book", "book/extensions", "engine")]

from build import EDITIONS  # noqa: E402
from chromium import launched  # noqa: E402
from editions.catalogues import Language, languages, read  # noqa: E402
from editions.compiled import shared  # noqa: E402
from epub import epub  # noqa: E402
from offline_links import FOLDER, found  # noqa: E402
from online import moved  # noqa: E402
from pdf import Title, pdf, title_page  # noqa: E402
from playwright.sync_api import Error, sync_playwright  # noqa: E402
from writing import said_if_refused, whole, write_whole  # noqa: E402

SITE = ROOT / "_build" / "html"
# Pagefind needs a server; the search page does not. The others are for a site.
LEFT_OUT: tuple[str, ...] = (FOLDER, "_pagefind", "404.html", "robots.txt")
LEFT_OUT += ("sitemap.xml", "_cards", "_headers", "feed.xml", "llms.txt")
UNFOUND = (
    "No PDF and no EPUB: no Chromium is here, and none could be installed. Install one, for example with: "
    "apt-get install chromium"
)
SERVED = re.compile(  # preloading and policies need an origin, and files have none
    r'<link rel="preload"[^>]*>\n?|<meta http-equiv="Content-Security-Policy"[^>]*>\n?'
)
LOCALE = ROOT / "book" / "locale"
LANGUAGE = re.compile(r'<a class="language".*?</a>\n?', re.DOTALL)
ALTERNATES = re.compile(  # the feed and the page as Markdown
    r'<link rel="alternate"[^>]*>\n?|<a href="[^"]*\.html\.md">[^<]*</a>'
)
# To the English page of a paragraph that has no translation, or an older one.
ENGLISH = re.compile(r' ?<a (?=[^>]*(?:hreflang=|class="older))[^>]*>[^<]*</a>')
DOWNLOADS = re.compile(r'<p class="downloads">.*?</p>\n?', re.DOTALL)


def write(strict: bool) -> None:
    """Make all from the built site. If it is strict, a language without a font ends it before it begins."""
    editions = [each for each in languages(LOCALE) if (SITE / each.code).is_dir()]
    printed = [each for each in editions if _can_be_printed(each)]
    if strict and printed != editions:
        sys.exit(1)
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    pages = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    title = title_page(SITE, toc["root"], config)
    folder = SITE / FOLDER
    folder.mkdir(exist_ok=True)
    name = config["repository"].get("url", "").rstrip("/").split("/")[-1] or "book"
    start = time.monotonic()
    archive(SITE, folder / f"{name}.zip")
    with sync_playwright() as playwright:
        try:
            browser = launched(playwright)
        except (Error, OSError, subprocess.SubprocessError):
            sys.exit(UNFOUND)
        content = pdf(SITE, pages, title, browser)
        write_whole(folder / f"{name}.pdf", content)
        write_whole(folder / f"{name}.epub", epub(SITE, pages, title, browser))
        for language in editions:
            own = EDITIONS / language.code / FOLDER  # from where the build brings it
            own.mkdir(exist_ok=True)
            archive(SITE, own / f"{name}-{language.code}.zip", language.code)
            title, own_pages = edition(language, toc["root"], pages, config)
            content = epub(SITE, own_pages, title, browser)
            write_whole(own / f"{name}-{language.code}.epub", content)
            if language in printed:
                content = pdf(SITE, own_pages, title, browser)
                write_whole(own / f"{name}-{language.code}.pdf", content)
        browser.close()
    print(f"{time.monotonic() - start:.0f} s. In {folder}:")
    for each in found(SITE):
        print(f"  {each['href']}, {each['size']}")


def edition(
    language: Language, welcome: str, pages: list[str], config: dict[str, Any]
) -> tuple[Title, list[str]]:
    """Return the title page and the pages of the edition in a language."""
    words = {m.english: m.text for m in read(language.path("words")) if m.shown}
    code = language.code
    title = title_page(SITE, f"{code}/{welcome}", config, code)
    own = {
        name: words.get(getattr(title, name), getattr(title, name))
        for name in ("contents", "formulas")
    }
    return replace(title, **own), [f"{code}/{page}" for page in pages]


def _can_be_printed(language: Language) -> bool:
    """Return whether the machine has a font for a language. Say which to install if it has none."""
    if not shutil.which("fc-list"):  # not a Linux: its fonts are not asked for
        return True
    command = ["fc-list", f":lang={language.code.partition('_')[0]}", "family"]
    if subprocess.run(command, capture_output=True, text=True).stdout.strip():
        return True
    print(
        f"No PDF in {language.name}: this machine has no font for it. Install one, for example "
        "with: apt-get install fonts-noto-cjk"
    )
    return False


def archive(site: Path, target: Path, language: str = "") -> None:
    """Archive the site's files in a language, changed so that they need no server."""
    with (
        whole(target) as part,
        ZipFile(part, "w", ZIP_DEFLATED, compresslevel=9) as zipped,
    ):
        for name in _files(site, language):
            path, inside = site / name, f"{target.stem}/{name.as_posix()}"
            if path.suffix == ".html":
                zipped.writestr(inside, on_disk(path.read_text(encoding="utf-8")))
            elif name.name == "documentation_options.js":
                zipped.writestr(inside, without_summaries(path.read_text("utf-8")))
            elif name.name == "primer.css":
                zipped.writestr(inside, with_its_fonts(path.read_text("utf-8")))
            else:
                zipped.write(path, inside)
        if language:  # its welcome page is the first thing that a reader opens, too
            first = f"{language}/index.html"
            page = moved((site / first).read_text(encoding="utf-8"), first, "./")
            zipped.writestr(f"{target.stem}/index.html", on_disk(page))


def _files(site: Path, language: str) -> Iterator[Path]:
    """Yield what a reader of a language needs: its own files, and those that exist once for all."""
    editions = {folder.name for folder in LOCALE.glob("*")}
    for path in sorted(filter(Path.is_file, site.rglob("*"))):
        name = path.relative_to(site)
        edition = name.parts[0] if name.parts[0] in editions else ""
        own = name.relative_to(edition)
        if edition != language and (edition or not shared(name, ())):
            continue
        left_out = own.parts[0] in LEFT_OUT or own.parts[0].startswith(".")
        if not left_out and own.suffix != ".md":
            yield name


def on_disk(page: str) -> str:
    """Remove parts of a page that need a server, and links to files outside the archive."""
    for what in (LANGUAGE, ENGLISH, DOWNLOADS, SERVED, ALTERNATES):
        page = what.sub("", page)
    return page


def without_summaries(options: str) -> str:
    """Turn off the search page's summaries: on disk it cannot read other pages."""
    return options.replace("SHOW_SEARCH_SUMMARY: true", "SHOW_SEARCH_SUMMARY: false")


def with_its_fonts(style: str) -> str:
    """Let text wait for its font: on disk there is no preloading, and no second visit with a full cache."""
    return re.sub(r"font-display:\s*optional", "font-display: swap", style)


if __name__ == "__main__":
    with said_if_refused(SITE / FOLDER):
        write(strict="--strict" in sys.argv)
