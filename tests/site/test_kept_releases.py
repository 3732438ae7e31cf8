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


def archived(path: Path, site: Site, names: list[str]) -> None:
    """Write an archive of some of the site's files, as a release has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(path, "w") as zipped:
        for name in names:
            zipped.write(site.folder / name, f"{path.stem}/{name}")


def test_each_release_is_kept_and_its_pages_lead_to_the_newest(
    site: Site, tmp_path: Path
) -> None:
    archives, new = tmp_path / "releases", tmp_path / "site"
    tags = [next(each.anchor for each in releases(ROOT, HERE) if each.day), "v99.0"]
    pages = [f"{PAGE}.html", *(f"{code}/{PAGE}.html" for code in site.editions)]
    for tag in tags:
        archived(archives / tag / "book.zip", site, ["index.html", pages[0]])
        for code, page in zip(site.editions, pages[1:], strict=True):
            archived(archives / tag / f"book-{code}.zip", site, [page])
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
        assert (new / tag / "index.html").is_file()
    for code, page in zip(["", *site.editions], pages, strict=True):
        text = BeautifulSoup((new / page).read_text(), "html.parser")
        # A release that is kept is linked from its place among the changes.
        kept = [a for a in text.select("main a") if f"/{tags[0]}/" in str(a["href"])]
        (link,) = kept
        place = (new / page).parent / str(link["href"])
        assert place.resolve().parent == (new / tags[0] / code).resolve()
        assert link.find_parent(id=tags[0])
