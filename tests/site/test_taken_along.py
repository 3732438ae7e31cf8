"""What a reader takes along: notebooks, the module, the archive, the PDF."""

import os
import re
from collections import Counter
from pathlib import Path
from subprocess import CompletedProcess
from zipfile import ZipFile

import nbformat
import offline
import pdf
import pytest
import yaml
from address import online
from built_book import ROOT, Site, every_chapter, short
from editions.catalogues import Language
from editions.checks import LINK, MATH, TAG
from notebook_patterns import without_values

EDITION = "ja"
TITLE = re.compile(r"(?<=# @title ).*(?= \{)")


def linked(site: Site, chapter: str, place: str) -> dict[str, str]:
    """What a chapter's page offers: the words of each link, and where it leads."""
    links = site.soup(chapter).select(f"{place} a")
    return {link.get_text(): str(link["href"]) for link in links}


@every_chapter
def test_each_link_to_take_a_chapter_along_leads_to_the_right_file(
    site: Site, chapter: str
) -> None:
    links = site.soup(chapter).select(".page-tools a[download]")
    files = {
        link.get_text(): (site.folder / chapter).parent / str(link["href"])
        for link in links
    }
    name = short(chapter)
    assert {words: file.name for words, file in files.items()} == {
        ".ipynb without outputs": f"{name}.ipynb",
        ".ipynb with outputs": f"{name}-with-outputs.ipynb",
        ".py": f"{name}.py",
    }
    got = {words: file.read_text() for words, file in files.items()}
    bare, full = (
        nbformat.reads(got[f".ipynb {x} outputs"], 4) for x in ("without", "with")
    )
    heading = site.soup(chapter).select_one("h1")
    assert heading
    title = re.sub(r"[#¶]$", "", heading.get_text()).strip().replace("’", "'")
    for notebook in (bare, full):
        nbformat.validate(notebook)
        assert notebook.cells[0].source.startswith(f"# {title}\n")
    if site.folder.is_relative_to(ROOT):
        assert got[".py"] == (ROOT / f"{chapter}.py").read_text()
        committed = ROOT / "notebooks" / f"{name}.ipynb"
        pattern = without_values(ROOT / f"{chapter}.py")
        assert pattern.fullmatch(got[".ipynb without outputs"])
        assert pattern.fullmatch(committed.read_text())
    assert [cell.source for cell in bare.cells[2:]] == [
        c.source for c in full.cells[2:]
    ]
    assert not any(cell.get("outputs") for cell in bare.cells)


@every_chapter
def test_the_notebook_with_outputs_shows_what_the_page_shows(
    site: Site, chapter: str
) -> None:
    name = chapter.split("/")[-1]
    path = site.folder / "notebooks" / f"{name}-with-outputs.ipynb"
    outputs = [
        output
        for cell in nbformat.read(path, as_version=4).cells
        for output in cell.get("outputs", [])
    ]
    figures = [o for o in outputs if "image/svg+xml" in o.get("data", {})]
    assert len(figures) == len(site.soup(chapter).select("svg.plot"))
    shown = site.soup(chapter).select_one("main")
    page = " ".join(shown.get_text().split()) if shown else ""
    printed = [o.text for o in outputs if o.output_type == "stream"]
    assert outputs
    for text in printed:
        assert " ".join(text.split()) in page


@every_chapter
def test_colab_opens_the_chapters_own_notebook(site: Site, chapter: str) -> None:
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    here = online(config["repository"], os.environ)
    repository = here["url"].removeprefix("https://github.com/")
    branch, folder = here["branch"], here["notebooks"]
    name = chapter.split("/")[-1]
    start = f"https://colab.research.google.com/github/{repository}/blob/{branch}"
    for place in (".topbar__tools", ".page-tools"):
        for page, own in ((chapter, ""), (f"{EDITION}/{chapter}", f"{EDITION}/")):
            assert (
                f"{start}/{folder}/{own}{name}.ipynb"
                in linked(site, page, place).values()
            )


@every_chapter
def test_the_bar_offers_what_the_title_block_offers(site: Site, chapter: str) -> None:
    offered = linked(site, chapter, ".page-tools")
    assert len(offered) == 4
    assert linked(site, chapter, ".topbar__tools") == offered


def shape(cell: nbformat.NotebookNode) -> tuple[object, ...]:
    """What a cell of a notebook has in every edition: all but its words."""
    if cell.cell_type == "code":
        return "code", *TITLE.sub("", cell.source).split("\n")
    source = cell.source.replace(f"/{EDITION}/", "/")
    found = [m[3].partition(",")[0] for m in LINK.finditer(source)]
    tags = [re.split(r"[\s>]", tag)[0] for tag in TAG.findall(source)]
    folds = [each for each in tags if each.strip("</") in ("details", "summary")]
    quotes = len(re.findall(r"^(?:> )*(?=> \*\*)", source, re.MULTILINE))
    formulas = Counter(" ".join(m[2].split()) for m in MATH.finditer(source))
    return "markdown", folds, quotes, Counter(found), formulas


@every_chapter
def test_the_notebook_of_an_edition_is_the_english_one_in_other_words(
    site: Site, chapter: str
) -> None:
    for end in ("", "-with-outputs"):
        name = f"notebooks/{short(chapter)}{end}.ipynb"
        paths = (site.folder / name, site.folder / EDITION / name)
        english, other = (nbformat.read(path, as_version=4) for path in paths)
        assert [shape(each) for each in other.cells] == [
            shape(each) for each in english.cells
        ]


@every_chapter
def test_the_committed_notebook_of_an_edition_is_the_sites_but_for_numbers_of_runs(
    site: Site, chapter: str
) -> None:
    for edition in site.editions:
        built = site.folder / edition / f"notebooks/{short(chapter)}.ipynb"
        committed = ROOT / "notebooks" / edition / built.name
        assert committed.is_file(), "run `make notebooks`"
        texts = (path.read_text(encoding="utf-8") for path in (built, committed))
        here, there = (re.sub(r"\d[\d,.]*", "0", text) for text in texts)
        assert here == there, "run `make notebooks`"


@every_chapter
def test_the_notebook_asks_too_and_folds_the_answer(site: Site, chapter: str) -> None:
    read = nbformat.read(
        site.folder / "notebooks" / f"{chapter.split('/')[-1]}.ipynb", as_version=4
    )
    answered = "<details><summary>Solution"
    asked = [i for i, cell in enumerate(read.cells) if answered in cell.source]
    assert len(asked) == len(site.soup(chapter).select(".note--exercise"))
    for i in asked:
        assert read.cells[i].cell_type == "markdown"
        answer = read.cells[i + 1]
        assert answer.cell_type == "code"
        assert answer.metadata.jupyter.source_hidden
        assert answer.metadata.cellView == "form"


# -- the book away from its server -------------------------------------------------------


@pytest.fixture(scope="module")
def unpacked(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a reader has who unpacked the archive."""
    folder = tmp_path_factory.mktemp("archive")
    offline.archive(site.folder, folder / "book.zip")
    with ZipFile(folder / "book.zip") as zipped:
        zipped.extractall(folder)
    return folder / "book"


def test_no_link_of_the_archive_leads_to_what_is_left_out(unpacked: Path) -> None:
    for path in unpacked.rglob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"#?:]+)["#?]', path.read_text()):
            assert (path.parent / link).resolve().exists(), f"{path.name}: {link}"


def test_the_archive_of_an_edition_has_what_its_pages_ask_for(
    site: Site, tmp_path: Path
) -> None:
    for code in site.editions:
        offline.archive(site.folder, tmp_path / "book.zip", code)
        with ZipFile(tmp_path / "book.zip") as zipped:
            names = {name.removeprefix("book/") for name in zipped.namelist()}
            pages = {page for page in names if page.endswith(".html")}
            texts = {page: zipped.read(f"book/{page}").decode() for page in pages}
        assert pages - {"index.html"} >= {f"{code}/{page}.html" for page in site.pages}
        assert all(page.startswith((code, "index.html")) for page in pages)
        for page, text in texts.items():
            for link in re.findall(r'(?:href|src)="([^"#?:]+)["#?]', text):
                asked = os.path.normpath(Path(page).parent / link)
                assert asked in names, f"{page}: {link}"


def test_an_archive_does_not_link_to_the_english_pages_that_it_leaves_out() -> None:
    """A paragraph without a translation, or with an older one, has such a link on the site."""
    counts = (
        '<p>1 of 2. <a href="../../one.html" hreflang="en" lang="en">English</a></p>'
    )
    older = (
        '<p>Alt <a class="older reference external" href="../../one.html#a">EN</a></p>'
    )
    inside = '<a class="reference internal" href="two.html">two</a>'
    assert offline.on_disk(counts + older + inside) == (
        f"<p>1 of 2.</p><p>Alt</p>{inside}"
    )


def test_a_machine_without_a_font_for_a_language_says_which_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    japanese = Language("ja", Path("ja"), "日本語")
    monkeypatch.setattr(offline.shutil, "which", lambda name: f"/usr/bin/{name}")
    for fonts, can in (("", False), ("Noto Sans CJK JP\n", True)):
        found = CompletedProcess([], 0, stdout=fonts)
        monkeypatch.setattr(offline.subprocess, "run", lambda *_, f=found, **__: f)
        assert offline._can_be_printed(japanese) is can
    assert "install fonts-noto-cjk" in capsys.readouterr().out


def test_a_release_without_a_font_for_a_language_ends_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ja").mkdir()
    monkeypatch.setattr(offline, "SITE", tmp_path)
    monkeypatch.setattr(offline, "_can_be_printed", lambda _language: False)
    with pytest.raises(SystemExit):
        offline.write(strict=True)
    assert [each.name for each in tmp_path.iterdir()] == ["ja"]


def test_links_to_what_the_pdf_does_not_have_are_no_links(tmp_path: Path) -> None:
    picture = '<svg><a href="two.html#c:1"></a><a href="#gone"></a><use href="#dot"/><path id="dot"/></svg>'
    pages = {
        "one": f'<a href="#a">1</a><a href="#search-0/34">2</a><b id="a"></b>{picture}',
        "two": '<a href="one.html">3</a><a href="one.html#gone">4</a><i id="c:1"></i>'
        '<a href="three.html">5</a><a href="https://a.b/#c">6</a>',
    }
    for name, text in pages.items():
        html = f"<main><h1>{name}</h1>{text}</main>"
        (tmp_path / f"{name}.html").write_text(html, encoding="utf-8")
    read = "".join(page.html for page in pdf.read(tmp_path, list(pages)))
    links = ["#one:a", "#two:c:1", "#dot", "#one", "https://a.b/#c"]
    assert re.findall(r'href="([^"]*)"', read) == links
    assert re.findall(r'id="([^"]*)"', read) == ["one:a", "dot", "two:c:1"]
