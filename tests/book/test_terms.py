"""The glossary's terms: their definitions at links, their places in the search and in notebooks."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from builds import ENGINE
from glossary import IDEOGRAPHS, initial, reading
from small_books import Built, Shelf
from sphinx_annotated.page.build.book import book_of
from sphinx_annotated.read.modules import Project

BOOK = Path(__file__).resolve().parents[2] / "book"
New = Callable[[dict[str, str]], Shelf]
CONF = f"""
import sys
sys.path[:0] = [{str(ENGINE)!r}, {str(BOOK / "extensions")!r}]
exclude_patterns = ["_build", "conf.py", "log.txt"]
extensions = ["sphinx_annotated", "glossary", "search_index"]
myst_enable_extensions = ["colon_fence"]
annotated_glossary = "words.md"
annotated_repository = {{"url": "https://github.com/someone/fixture"}}
"""
INDEX = """
# Book

```{toctree}
one
words
```
"""
WORDS = """
# Words

```{glossary}
:sorted:

KV cache
key-value cache
  Stored keys and values, `k < v`.

  {py:func}`~one.remember`

token
  A unit
  of text.

  {doc}`/one`

Model++
Model
  What predicts.
```
"""
ONE = '''
"""
# One

Each {term}`token` has a {term}`place <key-value cache>`; a {term}`Model++` reads it.
"""


def remember() -> None:
    """
    ## Remembering

    It fills the {term}`KV
    cache`.
    """


def forget() -> None:
    """Forget it."""

    def inner() -> None: ...


class One:
    """
    ## One
    """


if __name__ == "__main__":
    # A demonstration.
    def helper() -> None: ...
'''
FILES = {"index.md": INDEX, "words.md": WORDS, "one.py": ONE}


MORE = {f"page{i}.md": f"# Page {i}\n\nA {{term}}`token`." for i in range(6)}
MORE["more.md"] = "# More\n\n```{glossary}\nloss\n  A distance.\n```\n"


@pytest.fixture(scope="module")
def book(shelf: New) -> Shelf:
    listed = "".join(f"{name.removesuffix('.md')}\n" for name in MORE)
    index = INDEX.replace("words\n", f"words\n{listed}")
    return shelf({**FILES, **MORE, "index.md": index, "conf.py": CONF})


@pytest.fixture(scope="module")
def built(book: Shelf) -> Built:
    """The book as two processes read it."""
    return book.well_built("-W", "-j", "2").copy()


@pytest.fixture(scope="module")
def again(book: Shelf, built: Built) -> Built:
    """The book after edits: a definition, a page less, and a term that there is not."""
    book.edit("words.md", "What predicts.", "What foresees.")
    book.edit("index.md", "more\n", "")
    (book.root / "more.md").unlink()
    book.edit("one.py", "KV\n    cache`", "nonsense`")
    return book.build()


def links(page: str) -> dict[str, str]:
    """The words of each link to a term, with its title."""
    found = re.findall(r"<a ([^>]*)><span class=\"[^\"]*std-term\">(.*?)</span>", page)
    titles = {
        " ".join(words.split()): re.search(r'title="(.*?)"', attributes)
        for attributes, words in found
    }
    return {words: title[1] if title else "" for words, title in titles.items()}


def test_a_link_to_a_term_holds_its_definition(built: Built) -> None:
    assert links(built.page("one")) == {
        "token": "A unit of text.",
        "place": "Stored keys and values, k &lt; v.",
        "Model++": "What predicts.",
        "KV cache": "Stored keys and values, k &lt; v.",
    }


def test_a_changed_definition_reaches_the_pages_that_use_it(again: Built) -> None:
    assert "What foresees." in links(again.page("one")).values()


def test_definitions_are_kept_when_several_processes_read(built: Built) -> None:
    pages = [built.page(f"page{i}") for i in range(6)]
    assert all(links(page) == {"token": "A unit of text."} for page in pages)


def test_the_search_forgets_the_terms_of_a_page_that_was_removed(
    built: Built, again: Built
) -> None:
    assert "loss" in terms(built) and "loss" not in terms(again)


def terms(done: Built) -> list[str]:
    """The names of the terms that the search knows."""
    (file,) = (done.root / "_build" / "html").rglob("places.json")
    places = json.loads(file.read_text())
    return [name for each in places if each["kind"] == "term" for name in each["names"]]


def test_an_unknown_term_is_an_error_at_its_line(again: Built) -> None:
    line = ONE.lstrip("\n").split("\n").index("    It fills the {term}`KV") + 1
    message = rf"one\.py:{line}: (?:WARNING: )?term not in glossary: .nonsense"
    assert re.search(message, again.log), again.log


def test_the_notebook_links_each_term_to_its_entry(built: Built) -> None:
    book = book_of(
        Project(built.root),
        title="Fixture",
        repository={"url": "https://github.com/someone/fixture"},
        docnames=["one"],
        install={},
        packages=[],
        bibliographies=[],
        glossary="words.md",
    )
    page = built.page("words")
    for name in ("kv cache", "key-value cache", "token", "model++"):
        place, _, anchor = book.terms[name].partition("#")
        assert place == "words.html" and f'id="{anchor}"' in page
    # Sphinx gives two terms one name, so it numbers the second.
    assert book.terms["model"] == "words.html"


def test_the_search_knows_pages_sections_definitions_and_terms(built: Built) -> None:
    path = built.root / "_build/html/_pagefind/places.json"
    places = {place["url"]: place for place in json.loads(path.read_text("utf-8"))}
    assert places["one.html"]["kind"] == "page"
    remember = places["one.html#remember"]
    assert remember["names"] == ["Remembering", "remember"]
    assert remember["kind"] == places["one.html#forget"]["kind"] == "definition"
    one = places["one.html#One"]
    assert one["names"][-1] == "One" and one["kind"] == "definition"
    assert "one.html#helper" not in places and "one.html#forget.inner" not in places
    cache = places["words.html#term-KV-cache"]
    assert cache["names"] == ["KV cache", "key-value cache"]
    assert cache["explained"] == "one.html#remember"
    assert cache["text"] == "Stored keys and values, k &lt; v."
    assert places["words.html#term-token"]["explained"] == "one.html"


def test_letters_lead_to_the_first_term_of_each_in_a_sorted_glossary(
    built: Built,
) -> None:
    letters = re.findall(r'<p class="letters">(.*?)</p>', built.page("words"), re.S)
    assert len(letters) == 1
    assert re.findall(r'href="#(term-[^"]*)">(\w)<', letters[0]) == [
        ("term-KV-cache", "K"),
        ("term-Model", "M"),
        ("term-token", "T"),
    ]
    assert "letters" not in built.page("more")  # not sorted


def test_terms_in_japanese_are_in_the_order_of_the_fifty_sounds() -> None:
    terms = [
        "注意機構",
        "RoPE",
        "ヘッド",
        "バッチ",
        "パディング",
        "Adafactor",
        "ハードル",
    ]
    terms += ["キー", "ウォームアップ", "重み減衰", "ッ"]
    readings = {"注意": "ちゅうい", "重み": "おもみ"}
    read = {term: reading(term, readings) for term in terms}
    assert sorted(terms, key=read.__getitem__) == [
        *("Adafactor", "RoPE", "ウォームアップ", "重み減衰", "キー", "注意機構", "ッ"),
        *("バッチ", "パディング", "ハードル", "ヘッド"),
    ]
    assert (
        "".join(initial(read[term], "あかさたなはまやらわ") for term in terms)
        == "たRはははAはかああた"
    )
    assert initial("zhuyili", "") == "Z"
    assert reading("語彙", readings) >= IDEOGRAPHS > reading("語彙", {"語彙": "ごい"})
