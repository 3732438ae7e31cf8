"""The book to take along: `make offline` writes one PDF and an archive that opens from disk.

Both go into the site's `downloads`. As an extension of Sphinx, this links from the welcome page
what is there: a site built without them has no dead link.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import yaml
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
FOLDER = "downloads"
KINDS = {".pdf": "one PDF", ".zip": "an archive to read offline"}


def write() -> None:
    """Makes both from the site as it is built now."""
    sys.path.insert(0, str(ROOT / "book"))  # where the engine is
    from chromium import launched
    from pdf import pdf, title_page
    from playwright.sync_api import sync_playwright

    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    pages = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    title = title_page(SITE, toc["root"], config)
    folder = SITE / FOLDER
    folder.mkdir(exist_ok=True)
    name = config["repository"]["url"].rstrip("/").split("/")[-1]
    start = time.monotonic()
    archive(SITE, folder / f"{name}.zip")
    with sync_playwright() as playwright:
        browser = launched(playwright)
        content = pdf(SITE, pages, title, browser)
        browser.close()
    (folder / f"{name}.pdf").write_bytes(content)
    print(f"{time.monotonic() - start:.0f} s. In {folder}:")
    for each in found(SITE):
        print(f"  {each['href']}, {each['size']}")


# -- the archive ---------------------------------------------------------------------------

LEFT_OUT = (FOLDER, "_pagefind")  # Pagefind needs a server; the search page does not
SERVED = re.compile(  # a file has no origin to ask fonts from, or to name in a policy
    r'<link rel="preload"[^>]*>\n?|<meta http-equiv="Content-Security-Policy"[^>]*>\n?'
)
DOWNLOADS = re.compile(r'<p class="downloads">.*?</p>\n?', re.DOTALL)


def archive(site: Path, target: Path) -> None:
    """The site's files in one folder, changed so that they need no server."""
    with ZipFile(target, "w", ZIP_DEFLATED, compresslevel=9) as zipped:
        for path in sorted(site.rglob("*")):
            name = path.relative_to(site)
            left_out = name.parts[0] in LEFT_OUT or name.parts[0].startswith(".")
            if path.is_file() and not left_out:
                inside = f"{target.stem}/{name.as_posix()}"
                if path.suffix == ".html":
                    zipped.writestr(inside, on_disk(path.read_text(encoding="utf-8")))
                elif name.name == "documentation_options.js":
                    zipped.writestr(inside, without_summaries(path.read_text()))
                else:
                    zipped.write(path, inside)


def on_disk(page: str) -> str:
    """A page without what only a server can give, and without links to what is left out."""
    return DOWNLOADS.sub("", SERVED.sub("", page))


def without_summaries(options: str) -> str:
    """The search page's options: it may not read other pages to quote from them."""
    return options.replace("SHOW_SEARCH_SUMMARY: true", "SHOW_SEARCH_SUMMARY: false")


# -- the welcome page ----------------------------------------------------------------------


def found(site: Path) -> list[dict[str, str]]:
    """What there is to take along, as the welcome page links to it."""
    return [
        {
            "href": path.relative_to(site).as_posix(),
            "what": KINDS[path.suffix],
            "size": f"{path.stat().st_size / 1e6:.1f} MB",
        }
        for path in sorted((site / FOLDER).glob("*"))
        if path.suffix in KINDS
    ]


def changed(
    app: Sphinx,
    env: BuildEnvironment,
    added: set[str],
    edited: set[str],
    gone: set[str],
) -> list[str]:
    """The welcome page is to be written anew where there is something else to take along."""
    before, now = getattr(env, "offline", []), found(Path(app.outdir))
    env.offline = now  # type: ignore[attr-defined]
    return [app.config.root_doc] if now != before else []


def offer(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Gives the welcome page its links."""
    if pagename == app.config.root_doc:
        up = "../" * pagename.count("/")
        context["take_along"] = [
            each | {"href": up + each["href"]} for each in found(Path(app.outdir))
        ]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("env-get-outdated", changed)
    app.connect("html-page-context", offer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    write()
