"""Catalogues: what is translated is found again, what is wrong is named with file, line and fix."""

import re
from dataclasses import replace
from gettext import translation
from pathlib import Path

import pytest
import translations
from editions import SCRIPTS
from editions.catalogues import (
    CatalogueError,
    Language,
    Message,
    counted,
    faults,
    key,
    language,
    read,
    updated,
    written,
)
from editions.checks import differences, has_label, has_words
from editions.compiled import compile_catalogues, publish

HEAD = written([], "ja")


def one(*messages: Message) -> dict[str, list[Message]]:
    return {"page": list(messages)}


def found(path: Path) -> list[Message]:
    return [replace(m, line=0) for m in read(path)]


def test_reading_and_writing_a_catalogue_changes_no_byte(tmp_path: Path) -> None:
    messages = [
        Message('A "quoted" `x`\\y.', "「引用」`x`。"),
        Message("New text. " * 20, "訳。", previous="Old text. " * 20),
        Message("Not yet."),
        Message("full", "すべての計算", context="results"),
        Message("full", "すべてのチャネル", context="parts"),
        Message("Gone.", "消えた。", obsolete=True),
    ]
    path = tmp_path / "page.po"
    path.write_text(written(messages, "ja"), "utf-8")
    assert found(path) == messages
    assert written(read(path), "ja") == path.read_text("utf-8")


def test_an_edited_message_is_stale_and_keeps_its_previous_english() -> None:
    old = one(
        Message("The layer has eight heads.", "この層には八つのヘッドがあります。")
    )
    (now,) = updated(old, {"page": ["This layer has eight heads."]})["page"]
    assert now.stale and now.previous == "The layer has eight heads."
    assert now.text == "この層には八つのヘッドがあります。"
    (again,) = updated(one(now), {"page": [now.english]})["page"]
    assert again == now
    (twice,) = updated(one(now), {"page": ["This layer has many heads."]})["page"]
    assert twice.previous == "The layer has eight heads."


def test_a_message_that_moves_to_another_page_keeps_its_translation() -> None:
    old = {"one": [Message("Moved.", "移動。")], "two": [Message("Stays.", "残る。")]}
    now = updated(old, {"one": [], "two": ["Stays.", "Moved."]})
    assert now["two"] == [Message("Stays.", "残る。"), Message("Moved.", "移動。")]
    assert now["one"] == []


def test_words_of_figures_take_no_translation_from_a_page() -> None:
    old = {"page": [Message("is", "その種類")], "outputs": [Message("an", "an")]}
    made = updated(old, {"page": ["is"], "outputs": ["an", "is"], "two": ["is"]})
    assert [m.text for m in made["outputs"]] == ["an", ""]
    assert updated({"words": [Message("second", "第二")]}, {"words": ["section"]})[
        "words"
    ][0] == Message("section")
    assert [m.text for m in made["two"]] == ["その種類"]


def test_a_word_of_figures_has_a_translation_of_its_own_on_each_page(
    tmp_path: Path,
) -> None:
    keys = [key("full", page) for page in ("parts", "results", "new")]
    old = {
        "outputs": [
            Message("full", "すべてのチャネル", context="parts"),
            Message("full", "すべての計算", context="results"),
        ]
    }
    made = updated(old, {"outputs": keys})["outputs"]
    # What is new on a page begins with another page's.
    assert [m.text for m in made] == [
        "すべてのチャネル",
        "すべての計算",
        "すべてのチャネル",
    ]
    (tmp_path / "ja").mkdir()
    (tmp_path / "ja/language.toml").write_text('name = "日本語"\n', "utf-8")
    (tmp_path / "ja/outputs.po").write_text(written(made, "ja"), "utf-8")
    compile_catalogues(language(tmp_path / "ja"), tmp_path / "made")
    found = translation("outputs", tmp_path / "made", ["ja"])
    assert found.pgettext("results", "full") == "すべての計算"
    assert found.pgettext("parts", "full") == "すべてのチャネル"


def test_each_half_of_a_split_paragraph_gets_its_own_sentences() -> None:
    old = one(
        Message("First it reads. Then it writes.", "まず読みます。次に書きます。")
    )
    first, second, whole = updated(
        old, {"page": ["First it reads.", "Then it writes."]}
    )["page"]
    assert (first.text, second.text) == ("まず読みます。", "次に書きます。")
    assert whole.obsolete
    assert first.stale and second.stale  # a translator reads them


def test_what_is_obsolete_stays_and_counts_nowhere() -> None:
    old = one(Message("Gone for good.", "消えた。"))
    now = updated(old, {"page": []})["page"]
    assert now == [Message("Gone for good.", "消えた。", obsolete=True)]
    assert counted(now).messages == 0
    assert updated({"page": now}, {"page": ["Gone for good."]})["page"] == [
        Message("Gone for good.", "消えた。")
    ]


def test_a_stale_translation_is_shown_only_with_the_same_formulas_and_numbers() -> None:
    assert Message(
        "It has `x` and 3 parts.", "訳", previous="It had `x` and 3 parts."
    ).shown
    assert not Message(
        "It has `x` and 4 parts.", "訳", previous="It had `x` and 3 parts."
    ).shown
    assert not Message(
        "It has `y` and 3 parts.", "訳", previous="It had `x` and 3 parts."
    ).shown
    assert not Message("Gone", "訳", obsolete=True).shown


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        (HEAD + '\nmsgid "A"\nmsgstr "B\n', 9, "Close its quotes"),
        (HEAD + '\nmsgid "A"\nmsgstr "B"\n\nmsgid "A"\nmsgstr "C"\n', 11, "line 8"),
        (HEAD + "\nnonsense\n", 8, "no line of a catalogue"),
    ],
    ids=["open quotes", "a message twice", "nonsense"],
)
def test_a_broken_catalogue_is_an_error_with_file_and_line(
    tmp_path: Path, text: str, place: int, what: str
) -> None:
    path = tmp_path / "page.po"
    path.write_text(text, "utf-8")
    with pytest.raises(CatalogueError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}:{place}: ") and what in str(error.value)


def test_a_catalogue_that_is_not_utf_8_is_an_error_with_its_line(
    tmp_path: Path,
) -> None:
    path = tmp_path / "page.po"
    path.write_bytes(HEAD.encode() + '\nmsgid "A"\nmsgstr "訳"\n'.encode("shift-jis"))
    with pytest.raises(CatalogueError, match=r"page\.po:9: is not UTF-8"):
        read(path)


def test_a_folder_that_cannot_be_written_is_an_error_with_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *content: bytes) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    a_book(tmp_path, monkeypatch, {"page": ["A text."]})
    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(SystemExit, match=r"\.po.*: Permission denied\. .* rights"):
        translations.main()


def a_book(
    folder: Path, patch: pytest.MonkeyPatch, now: dict[str, list[str]], *arguments: str
) -> Language:
    """Give `make translations` a French book with these messages."""
    patch.setattr(translations, "LOCALE", folder)
    patch.setattr(translations, "everything", lambda: now)
    patch.setattr("sys.argv", ["translations.py", *arguments])
    (folder / "fr").mkdir()
    (folder / "fr/language.toml").write_text('name = "français"\n')
    return language(folder / "fr")


@pytest.mark.parametrize(
    ("domain", "english", "said"),
    [
        ("page", "The layer has heads, too.", "1 stale, 0 missing, of 3"),
        ("page", "Another sentence altogether", "0 stale, 1 missing, of 3"),
        ("words", "The layer has heads, too.", "0 stale, 1 missing, of 3"),
        ("pictures", "The layer has heads, too.", "0 stale, 1 missing, of 3"),
        ("outputs", "The layer has heads, too.", "0 stale, 1 missing, of 3"),
    ],
)
def test_only_a_release_wants_a_translation_of_each_corrected_text(
    domain: str,
    english: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = {domain: ["One.", "Two.", english], "not begun": ["Three.", "Four."]}
    french = a_book(tmp_path, monkeypatch, now)
    before = [
        Message(text, "Oui.") for text in ("One.", "Two.", "The layer has heads.")
    ]
    french.path(domain).write_text(written(before, "fr"), "utf-8")
    translations.main()
    assert f"{french.path(domain)}: {said} messages\n" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["translations.py", "--strict"])
    with pytest.raises(SystemExit, match="before a release"):
        translations.main()
    done = [Message(text, "Oui.") for text in now[domain]]
    french.path(domain).write_text(written(done, "fr"), "utf-8")
    translations.main()


def test_a_release_may_have_pictures_that_nobody_has_begun_to_translate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (("One", "a"), ("Two", "a"), ("Three", "b"), ("Four", "b"))
    now = {"pictures": [key(*each) for each in words]}
    french = a_book(tmp_path, monkeypatch, now, "--strict")
    done = [Message(text, "Oui", context="a") for text in ("One", "Two")]
    french.path("pictures").write_text(written(done, "fr"), "utf-8")
    translations.main()
    french.path("pictures").write_text(written(done[:1], "fr"), "utf-8")
    with pytest.raises(SystemExit, match="before a release"):
        translations.main()


def test_windows_line_ends_and_an_empty_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "page.po"
    path.write_bytes(
        (HEAD + '\nmsgid "A"\nmsgstr "B"\n').replace("\n", "\r\n").encode()
    )
    assert found(path) == [Message("A", "B")]
    path.write_bytes(b"")
    assert found(path) == []


def test_a_folder_that_names_no_language_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "nowhere"
    folder.mkdir()
    with pytest.raises(CatalogueError, match="no code of a language"):
        language(folder)
    folder = folder.rename(tmp_path / "fr")
    with pytest.raises(CatalogueError, match=r"language\.toml:1: is missing"):
        language(folder)
    (folder / "language.toml").write_text('name = "français"\n')
    assert language(folder).name == "français"


@pytest.mark.parametrize(
    ("english", "text", "what"),
    [
        ("See {doc}`one`.", "見てください。", "has no role '{doc} one'"),
        ("See it.", "{doc}`one`を見てください。", "has a role '{doc} one'"),
        ("A {term}`kernel`.", "{term}`核 <nucleus>`。", "has no role '{term} kernel'"),
        ("With $x$.", "$y$で。", "has no formula 'x'"),
        ("Call `f`.", "呼びます。", "has no code 'f'"),
        ("It took 3 s.", "4秒かかりました。", "has no number 3"),
        ("It is *causal*.", "**「因果的」**とは。", "Markdown shows the asterisks"),
        ("It is a half.", "**50%**です。", "Markdown shows the asterisks"),
        ("Bold.", "ｶﾀｶﾅ", "half-width"),
        ("Bold.", "<b>太字</b>", "has a tag '<b>'"),
    ],
)
def test_a_translation_whose_markup_differs_is_an_error_with_the_fix(
    tmp_path: Path, english: str, text: str, what: str
) -> None:
    folder = tmp_path / "ja"
    folder.mkdir()
    path = folder / "page.po"
    path.write_text(written([Message(english, text)], "ja"), "utf-8")
    (fault,) = faults(Language("ja", folder, "日本語"))
    assert fault.startswith(f"{path}:8: ") and what in fault
    with pytest.raises(CatalogueError):
        compile_catalogues(Language("ja", folder, "日本語"), tmp_path / "out")


@pytest.mark.parametrize(
    ("english", "text"),
    [
        (
            "A {term}`kernel` is *causal*.",
            "{term}`カーネル <kernel>`は**因果的**です。",
        ),
        ("With 110 million parameters.", "1.1億個のパラメータ。"),
        ("At 1,200 steps, `a` and `a`.", "1200ステップで`a`。"),
        ("[The slides](https://a.b/c).", "[スライド](https://a.b/c)。"),
        ("A rate of 0.5/3.", "0.5/3の学習率。"),
        ("Of `S{s}` that computes `h{v}`.", "`h{v}`を計算する`S{s}`の。"),
    ],
)
def test_a_translation_may_order_its_markup_as_its_language_does(
    english: str, text: str
) -> None:
    assert list(differences(english, text, "ja")) == []


@pytest.mark.parametrize(
    ("english", "code", "text"),
    [
        ("537 million, 1,200", "ja", "5.37億と1200"),
        ("110 million", "ja", "1億1000万"),
        ("34 and 35 million", "ja", "3400万と3500万"),
        ("110 million", "zh_Hans", "1.1亿"),
        ("1.9 billion", "zh_Hans", "19亿"),
        ("110 million, 1.75, 5,000", "de", "110 Millionen, 1,75 und 5.000"),
        ("34 and 35 million", "de", "34 und 35 Millionen"),
        ("1.1 million, 12,500.5", "fr", "1,1 million, 12\u202f500,5"),
        ("2 billion", "pt_BR", "2 bilhões"),
        ("110 million", "ru", "110 миллионов"),
        ("Python 3.11", "de", "Python 3.11"),
    ],
)
def test_numbers_are_equal_however_a_language_writes_them(
    english: str, code: str, text: str
) -> None:
    assert list(differences(english, text, code)) == []


@pytest.mark.parametrize(
    ("english", "code", "text"),
    [
        ("110 million", "ja", "1.1万"),
        ("1.75", "de", "17,5"),
        ("5,000", "de", "500"),
        ("35 million", "fr", "35 milliards"),
    ],
)
def test_another_number_is_a_fault_in_every_language(
    english: str, code: str, text: str
) -> None:
    (fault,) = differences(english, text, code)
    assert fault.startswith("the translation has no number")


def test_symbols_and_names_in_figures_are_no_messages() -> None:
    assert not any(
        map(has_label, ("'e' 8%", "MAX", "T5", "P4", "q · k", "`[batch, seq]`"))
    )
    assert has_label("Linear, *d*")


def test_formulas_and_code_are_no_messages() -> None:
    assert not has_words("$x^2$ `MultiHeadAttention` 3")
    assert has_words("A summary with $x^2$.") == 3
    assert has_words("{doc}`The first chapter </one>`") == 3


def test_publishing_an_edition_removes_only_its_own_old_files(tmp_path: Path) -> None:
    built, site = tmp_path / "built", tmp_path / "site"
    for name in (
        "page.html",
        "_static/words.js",
        "_static/primer.css",
        "parts/search/page.html",
        "notebooks/a.ipynb",
        "_sources/a.py",
    ):
        (built / name).parent.mkdir(parents=True, exist_ok=True)
        (built / name).write_text(name)
    (site / "ja").mkdir(parents=True)
    (site / "page.html").write_text("English")
    (site / "ja" / "old.html").write_text("old")
    publish(built, site / "ja", ["words.js"])
    files = sorted(
        p.relative_to(site).as_posix() for p in site.rglob("*") if p.is_file()
    )
    assert files == [
        "ja/_static/words.js",
        "ja/notebooks/a.ipynb",
        "ja/page.html",
        "ja/parts/search/page.html",
        "page.html",
    ]


def test_no_word_to_translate_hides_where_the_extraction_does_not_look() -> None:
    """Babel finds no word within an f-string or a nested template: give it a name before."""
    found, hidden = set(translations.words()), []
    files = [
        path
        for source in translations.SOURCES
        for path in (translations.ROOT / source).rglob("*")
        if path.suffix in (".py", ".js")
    ]
    for path in files:
        for text in re.findall(r'\b_\(\s*f?"([^"\\]+)"', path.read_text("utf-8")):
            if text not in found:
                hidden.append(f"{path}: {text}")
    assert hidden == []


def test_quotation_marks_and_commas_of_scripts_are_words_to_translate() -> None:
    """Japanese has other ones: 「e」、「t」."""
    own = re.compile(r'join\("[,;]|`[^`]*“\$\{|\? "[,;] "')
    found = [
        f"{path}: {match[0]}"
        for pattern in SCRIPTS
        for path in sorted(translations.ROOT.glob(pattern))
        for match in own.finditer(path.read_text("utf-8"))
    ]
    assert found == []
