"""An edition in another language, with a made-up one: every message is translated to itself in brackets."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from bs4 import BeautifulSoup
from builds import sphinx
from docutils.utils import new_document
from editions import alternates, labels_left
from editions.catalogues import Language, Message, language, written
from editions.compiled import compile_catalogues
from small_books import Built, Shelf, environment, plain
from sphinx import addnodes
from sphinx_annotated.page.build.contents import contents
from sphinx_annotated.page.directives.pictures import picture

pytestmark = pytest.mark.slow

CONF = """
import sys
sys.path[:0] = [{engine!r}, {book!r}]
project = "Fixture"
extensions = ["sphinx_annotated", "editions"]
exclude_patterns = ["_build", "conf.py", "locale", "notebooks"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
annotated_workers = 1
annotated_repository = {{"url": "https://github.com/owner/name"}}
editions_locale = "locale"
"""
CHAPTER = '''
"""
# One

A summary with $x^2$.

| head | other | |
|---|---|---|
| cell of a table | 3 | |
"""

# `query` and `key` are $Q$ and $K$. Stays as it is.
query, key = 1, 2


# :::{deviation} the paper
# It differs.
# :::
# Returns a sum.
def f(a):
    return a + 1


if __name__ == "__main__":
    # :::{exercise} A question
    # What is printed?
    # :::
    # :::{solution}
    # A number.
    # :::
    print(f(query))
'''
INDEX = """# Book

```{toctree}
parts/one
```
"""


class Small:
    """A small book with its edition."""

    def __init__(self, shelf: Shelf):
        self.shelf, self.root = shelf, shelf.root

    def english(self) -> Built:
        return self.shelf.build("-W", "--keep-going")

    def messages(self) -> list[str]:
        text = (self.root / "_build/.messages/parts/one.json").read_text("utf-8")
        return list(json.loads(text))

    def translate(self, say: Callable[[str], Message]) -> None:
        folder = self.root / "locale" / "eo"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "language.toml").write_text('name = "Esperanto"\n')
        text = written([say(m) for m in self.messages()], "eo")
        (folder / "parts").mkdir(exist_ok=True)
        (folder / "parts/one.po").write_text(text, "utf-8")

    def edition(self) -> Built:
        compile_catalogues(
            language(self.root / "locale/eo"), self.root / "_build/.locale"
        )
        out, log = self.root / "_build" / ".editions" / "eo", self.root / "log.txt"
        options = {
            "language": "eo",
            "editions_code": "eo",
            "locale_dirs": "_build/.locale",
            "annotated_outputs": "_build",
        }
        arguments = [
            "-b",
            "html",
            "-d",
            str(self.root / "_build/doctrees-eo"),
            "-W",
            "--keep-going",
        ]
        for name, value in options.items():
            arguments += ["-D", f"{name}={value}"]
        code = sphinx([*arguments, str(self.root), str(out)], log, environment())
        return Built(self.root, code, plain(log))

    def page(self) -> BeautifulSoup:
        path = self.root / "_build/.editions/eo/parts/one.html"
        return BeautifulSoup(path.read_text("utf-8"), "html.parser")


@pytest.fixture(scope="module")
def small(shelf: Callable[[dict[str, str]], Shelf]) -> Small:
    root = Path(__file__).resolve().parents[2]
    made = Small(
        shelf(
            {
                "conf.py": CONF.format(
                    engine=str(root / "engine"), book=str(root / "book")
                ),
                "parts/one.py": CHAPTER,
                "notebooks/one.ipynb": "",
                "index.md": INDEX,
            }
        )
    )
    built = made.english()
    assert built.code == 0, built.log
    return made


def bracketed(text: str) -> Message:
    return Message(text, f"〔{text}〕")


def test_everything_a_reader_sees_of_a_chapter_can_be_translated(small: Small) -> None:
    """Prose, table cells, titles of notes and exercises, ties; no cell runs again."""
    small.translate(bracketed)
    built = small.edition()
    assert built.code == 0, built.log
    assert built.executed() == []
    sheet = small.page().select_one(".sbs__sheet")
    assert sheet
    for hidden in sheet.select(
        "pre, .out, .cell_output, template, code, .math, summary.fold"
    ):
        hidden.extract()
    plain_text = re.sub(r"〔[^〕]*〕", "", sheet.get_text(" "))
    left = set(re.findall(r"[A-Za-z]{3,}", plain_text))
    assert left <= {
        "Solution",
        "Deviation",
        "from",
        "Link",
        "this",
        "heading",
        "Code",
    }, left
    assert len(small.page().select("[data-tie]")) == 4
    assert not small.page().select(".untranslated, .older")


def test_the_notebook_of_an_edition_has_the_translations_of_its_page(
    small: Small,
) -> None:
    small.translate(bracketed)
    small.edition()
    path = small.root / "_build/.editions/eo/notebooks/one.ipynb"
    cells = json.loads(path.read_text("utf-8"))["cells"]
    prose = "\n".join(
        "".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"
    )
    own = re.sub(r"\*A chapter of .*?\*|</?\w+>|Solution, in words", "", prose)
    left = re.sub(r"〔[^〕]*〕|\$[^$]*\$|\W|\d|_", "", own)
    assert left == "Deviationfrom", left
    table = "| 〔head〕 | 〔other〕 |  |\n|---|---|---|\n| 〔cell of a table〕 | 3 |  |"
    assert table in prose
    assert "/eo/parts/one.html" in prose


def test_a_strict_build_shows_a_missing_paragraph_in_english_and_marks_a_stale_one(
    small: Small,
) -> None:
    def say(text: str) -> Message:
        if text == "Returns a sum.":
            return Message(text)
        if text == "What is printed?":
            return Message(text, "〔Kio?〕", previous="What does it print?")
        return bracketed(text)

    small.translate(say)
    built = small.edition()
    assert built.code == 0, built.log
    page = small.page()
    missing = page.select(".untranslated")
    assert [m.get_text() for m in missing] == ["Returns a sum."]
    assert missing[0]["lang"] == "en"
    stale = page.select_one("a.older")
    assert stale and "〔Kio?〕" in stale.parent.get_text()  # type: ignore[union-attr]
    assert str(stale["href"]).startswith("../../parts/one.html#")


def test_labels_without_a_translation_count_on_the_page_that_shows_them(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "locale" / "eo"
    folder.mkdir(parents=True)
    (folder / "language.toml").write_text('name = "Esperanto"\n')
    drawn = [
        Message("A sum", "Sumo", context="A sum"),
        Message("number", context="A sum"),  # missing
        Message("number", context="A picture of another page"),
    ]
    shown = [
        Message("loss", "perdo", previous="cost", context="one"),  # stale
        Message("step", "paŝo", context="one"),
        Message("loss", context="another page"),
    ]
    for name, messages in {"pictures": drawn, "outputs": shown}.items():
        (folder / f"{name}.po").write_text(written(messages, "eo"), "utf-8")
    page = new_document("")
    page += picture(svg='<svg aria-label="Sumo"><desc></desc></svg>')
    options = {"editions_code": "eo", "editions_locale": "locale"}
    config = SimpleNamespace(**options, editions_drafts=False)
    app: Any = SimpleNamespace(srcdir=tmp_path, config=config)
    assert labels_left(app, "one", page) == 2


def test_a_page_that_is_mostly_english_does_not_mark_each_paragraph(
    small: Small,
) -> None:
    small.translate(Message)
    built = small.edition()
    assert built.code == 0, built.log
    page = small.page()
    assert page.select("p[lang=en]") and not page.select(".untranslated")


def test_a_page_names_its_languages_as_html_does() -> None:
    chinese = Language("zh_Hans", Path("zh_Hans"), "简体中文")
    assert alternates("https://a.b/", "c.html", [chinese]) == [
        ("en", "https://a.b/c.html"),
        ("zh-Hans", "https://a.b/zh_Hans/c.html"),
        ("x-default", "https://a.b/c.html"),
    ]


def test_a_part_of_an_external_table_of_contents_has_its_name_in_the_edition(
    tmp_path: Path,
) -> None:
    """Also if Sphinx has not read the page with the parts in this process, and so not its catalogue."""
    messages = tmp_path / "locale" / "eo" / "LC_MESSAGES"
    messages.mkdir(parents=True)
    catalogue = Catalog(locale="eo")
    catalogue.add("A part", "〔A part〕")
    with (messages / "all_parts.mo").open("wb") as file:
        write_mo(file, catalogue)
    page = new_document("")
    page += addnodes.toctree(caption="A part", entries=[("One", "one")])
    config = SimpleNamespace(
        root_doc="all_parts",
        gettext_compact=False,
        locale_dirs=["locale"],
        language="eo",
    )
    env = SimpleNamespace(
        config=config,
        toctree_includes={"all_parts": ["one"]},
        all_docs={"one": 0},
        titles={},
        get_doctree={"all_parts": page}.get,
        doc2path="{}.md".format,
    )
    app: Any = SimpleNamespace(srcdir=tmp_path, env=env, config=config)
    assert [entry.part for entry in contents(app)] == ["〔A part〕"]
