"""The book offline: `make offline` writes a PDF, and an archive that opens from disk.

Both go into the site's `downloads`. As a Sphinx extension, this links those that exist from the
welcome page.
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
    """Make both from the built site."""
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
SERVED = re.compile(  # preloading and policies need an origin, and files have none
    r'<link rel="preload"[^>]*>\n?|<meta http-equiv="Content-Security-Policy"[^>]*>\n?'
)
DOWNLOADS = re.compile(r'<p class="downloads">.*?</p>\n?', re.DOTALL)


def archive(site: Path, target: Path) -> None:
    """Archive the site's files, changed so that they need no server."""
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
    """Remove parts of a page that need a server, and links to files outside the archive."""
    return DOWNLOADS.sub("", SERVED.sub("", page))


def without_summaries(options: str) -> str:
    """Turn off the search page's summaries: on disk it cannot read other pages."""
    return options.replace("SHOW_SEARCH_SUMMARY: true", "SHOW_SEARCH_SUMMARY: false")


# -- the welcome page ----------------------------------------------------------------------


def found(site: Path) -> list[dict[str, str]]:
    """Return the existing downloads, for the welcome page."""
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
    """Write the welcome page again if the downloads have changed."""
    before, now = getattr(env, "offline", []), found(Path(app.outdir))
    env.offline = now  # type: ignore[attr-defined]
    return [app.config.root_doc] if now != before else []


def offer(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give the welcome page its links."""
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
