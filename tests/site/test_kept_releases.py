"""The site keeps each release at an address of its own, which says that there is a newer one."""

import os
from pathlib import Path
from zipfile import ZipFile

import keep_releases
import yaml
from address import online
from bs4 import BeautifulSoup
from built_book import ROOT, Site
from changelog import releases
from sphinx_annotated.page.build.repository import Repository

CONFIGURED = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]
HERE = Repository(**online(CONFIGURED, os.environ))
PAGE = "book/pages/changes"


def archived(path: Path, site: Site, names: list[str], code: str = "") -> None:
    """Write an archive of some of the site's files and the edition's welcome page, as a release has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(path, "w") as zipped:
        for name in names:
            zipped.write(site.folder / name, f"{path.stem}/{name}")
        zipped.write(site.folder / code / "index.html", f"{path.stem}/index.html")


def test_each_release_is_kept_and_its_pages_lead_to_the_newest(
    site: Site, tmp_path: Path
) -> None:
    archives, new = tmp_path / "releases", tmp_path / "site"
    tags = [next(each.anchor for each in releases(ROOT, HERE) if each.day), "v99.0"]
    pages = [f"{PAGE}.html", *(f"{code}/{PAGE}.html" for code in site.editions)]
    for tag in tags:
        archived(archives / tag / "book.zip", site, [pages[0]])
        for code, page in zip(site.editions, pages[1:], strict=True):
            archived(archives / tag / f"book-{code}.zip", site, [page], code)
    (archives / "v0.0").mkdir()  # a release without an archive
    for page in pages:
        (new / page).parent.mkdir(parents=True)
        (new / page).write_text((site.folder / page).read_text())
    assert keep_releases.keep(archives, new) == sorted(tags)
    for tag in tags:
        for page in pages:
            said = BeautifulSoup((new / tag / page).read_text(), "html.parser")
            line = said.select_one("main > p:first-child")
            assert line and tag.removeprefix("v") in line.get_text()
            link = line.select_one("a[href]")
            assert link and link["href"] == f"{HERE.pages}{page}"
            english = link.get_text() == "Read the newest version"
            assert english == (page == pages[0]), "it is in the page's language"
        first = BeautifulSoup((new / tag / "index.html").read_text(), "html.parser")
        assert first.select("html[lang=en]")
    for code, page in zip(["", *site.editions], pages, strict=True):
        text = BeautifulSoup((new / page).read_text(), "html.parser")
        # A release that is kept is linked from its place among the changes.
        kept = [a for a in text.select("main a") if f"/{tags[0]}/" in str(a["href"])]
        (link,) = kept
        place = (new / page).parent / str(link["href"])
        assert place.resolve().parent == (new / tags[0] / code).resolve()
        assert link.find_parent(id=tags[0])
        assert (link.get_text() == "Read the book as of this version") == (not code)


def test_a_page_that_is_no_more_leads_to_the_welcome_page(
    site: Site, tmp_path: Path
) -> None:
    archives, new = tmp_path / "releases", tmp_path / "site"
    pages = [f"{PAGE}.html", *(f"{code}/{PAGE}.html" for code in site.editions)]
    archived(archives / "v1.0" / "book.zip", site, pages)
    keep_releases.keep(archives, new)
    for code, page in zip(["", *site.editions], pages, strict=True):
        old = new / "v1.0" / page
        said = BeautifulSoup(old.read_text(), "html.parser")
        (link,) = said.select("main > p:first-child a[href]")
        home = old.parent / str(link["href"])
        assert home.resolve() == (new / code / "index.html").resolve()
