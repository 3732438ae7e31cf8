"""What the site has for those who search, in a book with odd pages, with and without an address."""

import json
import os
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from built_book import nightly

ROOT = Path(__file__).resolve().parents[2]
ODD = 'A <b> & "quoted" [title] with `code`'
pytestmark = pytest.mark.slow
PAGES = {
    "index": "# Book\n\nWelcome, see {doc}`odd`.\n\n```{toctree}\nodd\nbare\nlong\n```\n",
    "odd": f"# {ODD.replace('<', '&lt;')}\n\nIts *first* paragraph, $a < b$, leads to [here](bare.md).\n",
    "bare": "A page without a heading. 2 * 3 is 6.\n\n1986\\. A year begins it.\n",
    "long": f"# {'unbreakable' * 30}\n\nThe title is one word.\n\n"
    "```{install}\n```\n\n```{named} json.loads json.JSONDecoder\n```\n\n"
    "```{changelog}\n```\n",
}
CONF = """
import sys
sys.path[:0] = {path!r}
project = author = "Fixture"
html_title = "A <book>"
extensions = ["sphinx_annotated", "theme", "myst_nb", "online", "markdown_twins"]
extensions += ["changelog", "described", "use_it"]
html_theme = "primer"
nb_execution_mode = "off"
smartquotes = False
myst_enable_extensions = ["dollarmath"]
annotated_repository = {{"url": {url!r}}}
changelog_page = "long"
exclude_patterns = ["_build", "CHANGELOG.md"]
"""
CHANGES = """# Changelog

## Unreleased

- Words of <b>, `code`, and a [file](bare.md).

## 1.0.0 (2026-01-01)

- The first.
"""
WHO = ("AUTHOR", "COMMITTER")
WHERE = "https://github.com/a/b"
ELSEWHERE = "https://git.example.org/a/b"  # a host of a kind that is not known


@pytest.fixture(scope="module", params=[nightly(""), WHERE, nightly(ELSEWHERE)])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, str]:
    """The address of the repository, the folder of the site, and what the build said."""
    root = tmp_path_factory.mktemp("book")
    for name, text in PAGES.items():
        (root / f"{name}.md").write_text(text, encoding="utf-8")
    path = [str(ROOT / name) for name in ("engine", "book", "book/extensions")]
    (root / "conf.py").write_text(CONF.format(path=path, url=request.param))
    (root / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    (root / "CHANGELOG.md").write_text(CHANGES)
    (root / "CITATION.cff").write_text("date-released: 2026-01-02\n")
    return request.param, root / "_build" / "html", built(root)


def built(root: Path) -> str:
    """Build a book, and return what was said."""
    command = [sys.executable, "-m", "sphinx", "-b", "html", str(root)]
    done = subprocess.run(
        [*command, str(root / "_build" / "html")],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def soup(site: Path, page: str) -> BeautifulSoup:
    text = (site / f"{page}.html").read_text(encoding="utf-8")
    return BeautifulSoup(text, "html.parser")


def test_odd_titles_are_whole_everywhere(site: tuple[str, Path, str]) -> None:
    url, folder, _ = site
    title = ODD.replace("`", "")
    twin = (folder / "odd.html.md").read_text(encoding="utf-8")
    assert twin.startswith('# A \\<b> & "quoted" \\[title\\] with `code`\n'), twin
    listed = (folder / "llms.txt").read_text(encoding="utf-8")
    assert "- [" + re.sub(r"([<\[\]])", r"\\\1", title) + "](" in listed
    assert "): Its first paragraph" in listed.replace("*", "")
    if url != WHERE:
        return
    page = soup(folder, "odd")
    (script,) = page.select('script[type="application/ld+json"]')
    assert json.loads(script.get_text())["headline"] == title
    assert page.select_one('meta[property="og:title"]')["content"] == title  # type: ignore[index]
    feed = ElementTree.parse(folder / "feed.xml").getroot()
    texts = [each.text for each in feed.iter() if str(each.text).strip()]
    assert texts[0] == "A <book>" and "A <book>: 1.0.0" in texts
    cards = {path.name for path in (folder / "_cards").iterdir()}
    assert cards == {f"{name}.png" for name in PAGES}


def test_other_books_can_link_to_the_names_of_a_section(
    site: tuple[str, Path, str],
) -> None:
    _, folder, _ = site
    *_, packed = (folder / "objects.inv").read_bytes().split(b"\n", maxsplit=4)
    listed = zlib.decompress(packed).decode().splitlines()
    assert "json.loads py:function 1 long.html#$ -" in listed
    assert "json.JSONDecoder py:class 1 long.html#$ -" in listed
    page = soup(folder, "long")
    assert page.find(id="json.loads") and page.find(id="json.JSONDecoder")


def test_the_changes_are_a_page_and_a_feed_with_links_to_files(
    site: tuple[str, Path, str],
) -> None:
    url, folder, _ = site
    page = soup(folder, "long")
    for anchor, title in (("unreleased", "Unreleased"), ("v1.0.0", "1.0.0 (2026")):
        heading = page.select_one(f"[id='{anchor}'] > h2")
        assert heading and heading.get_text().startswith(title)
    if url != WHERE:
        return
    link = f"{url}/blob/main/bare.md"
    assert page.select(f'main li a[href="{link}"]')
    feed = ElementTree.parse(folder / "feed.xml").getroot()
    ids = [each.text for each in feed.iter() if each.tag.endswith("}id")]
    assert [str(each).partition("#")[2] for each in ids] == ["", "unreleased", "v1.0.0"]
    contents = [each.text for each in feed.iter() if each.tag.endswith("}content")]
    assert f'<code>code</code>, and a <a href="{link}">file</a>' in str(contents[0])
    assert "Words of &lt;b&gt;" in str(contents[0])


def test_the_feed_is_one_by_the_rules_of_atom_and_each_page_names_it(
    site: tuple[str, Path, str],
) -> None:
    url, folder, _ = site
    if url != WHERE:
        return
    atom, home = "{http://www.w3.org/2005/Atom}", "https://a.github.io/b/"
    feed = ElementTree.parse(folder / "feed.xml").getroot()
    assert feed.tag == f"{atom}feed" and feed.findtext(f"{atom}author/{atom}name")
    links = {each.get("rel"): each.get("href") for each in feed.iter(f"{atom}link")}
    assert links["self"] == f"{home}feed.xml"
    for part in (feed, *feed.findall(f"{atom}entry")):
        for name in ("title", "id", "updated"):
            assert len(part.findall(atom + name)) == 1, name
        moment = str(part.findtext(f"{atom}updated"))
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT00:00:00Z", moment), moment
        assert str(part.findtext(f"{atom}id")).startswith(home)
    for page in PAGES:
        (link,) = soup(folder, page).select('link[type="application/atom+xml"]')
        assert (folder / str(link["href"])).name == "feed.xml"


def test_a_page_without_a_heading_has_a_twin_that_is_read_as_written(
    site: tuple[str, Path, str],
) -> None:
    _, folder, _ = site
    text = (folder / "bare.html.md").read_text(encoding="utf-8")
    assert text.startswith("A page without a heading. 2 \\* 3 is 6.\n\n1986\\. A year")
    listed = (folder / "llms.txt").read_text(encoding="utf-8")
    assert ": A page without a heading. 2 * 3 is 6.\n" in listed


def test_without_an_address_links_to_it_are_left_out_and_counted(
    site: tuple[str, Path, str],
) -> None:
    url, folder, said = site
    foot = [str(a["href"]) for a in soup(folder, "odd").select(".foot a")]
    twin = (folder / "odd.html.md").read_text(encoding="utf-8")
    if url == ELSEWHERE:
        assert foot == ["odd.html.md", url] or foot == [url, "odd.html.md"]
        (count,) = re.findall(r"(\d+) links to files and forms there", said)
        # Three on each of four pages, one on those that have no source.
        assert int(count) == 3 * 4 + 3
        return
    if url:
        assert len(foot) == 5 and foot[0] == url and "left out" not in said
        assert "[here](https://a.github.io/b/bare.html)" in twin
        return
    assert foot == ["odd.html.md"]
    (count,) = re.findall(r"(\d+) links to it are left out", said)
    # Four on each of four pages, two on those that have no source: the index, the search, the missing page.
    assert int(count) == 4 * 4 + 3 * 2
    assert "[here](bare.html)" in twin and "<odd.html>" in twin
    assert not list(folder.glob("sitemap.xml")) + list(folder.glob("feed.xml"))
    texts = [path.read_text(encoding="utf-8") for path in folder.rglob("*.html*")]
    assert not any("github" in text or "file:" in text for text in texts)


def test_a_page_that_is_built_and_then_committed_has_the_day_of_its_commit(
    site: tuple[str, Path, str], tmp_path: Path
) -> None:
    url, built_before, _ = site
    if url != WHERE:
        return
    root = tmp_path / "book"
    shutil.copytree(built_before.parents[1], root)

    def commit(day: str) -> None:
        who = {
            f"GIT_{each}_{what}": "a@b" for each in WHO for what in ("NAME", "EMAIL")
        }
        when = {f"GIT_{each}_DATE": f"{day}T12:00:00Z" for each in WHO}
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", day]):
            subprocess.run(
                ["git", *words], cwd=root, env=os.environ | who | when, check=True
            )

    (root / ".gitignore").write_text("_build\n")
    commit("2026-01-03")
    (root / "odd.md").write_text(PAGES["odd"] + "\nOne more.\n", encoding="utf-8")
    (root / "CHANGELOG.md").write_text(CHANGES.replace("Words", "More words"))
    built(root)
    other = (root / "_build/html/bare.html").stat().st_mtime_ns
    commit("2026-02-04")
    built(root)
    folder = root / "_build" / "html"
    changed = soup(folder, "odd").select_one('meta[property="article:modified_time"]')
    assert changed and str(changed["content"]).startswith("2026-02-04")
    feed = ElementTree.parse(folder / "feed.xml").getroot()
    days = [each.text for each in feed.iter() if each.tag.endswith("}updated")]
    assert [str(day)[:10] for day in days] == ["2026-02-04"] * 2 + ["2026-01-01"]
    assert (folder / "bare.html").stat().st_mtime_ns == other


def test_the_command_that_installs_is_one_that_can_work(
    site: tuple[str, Path, str],
) -> None:
    url, folder, _ = site
    command = f"pip install git+{url}" if url else "pip install labml_primer"
    assert command in soup(folder, "long").get_text()
