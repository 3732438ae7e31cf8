"""`make translations`: bring the catalogues of all languages up to the English book, and count.

The messages of a page are those that the last build has read (`make book` comes first). The words of the
frame and the scripts are found in their sources, those of pictures by drawing them, those of figures and
tables in the stored outputs.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("", "book", "book/tools", "engine")]

from babel.messages.extract import extract_from_dir  # noqa: E402
from editions import MESSAGES, words_of_scripts  # noqa: E402
from editions import catalogues as catalogue  # noqa: E402
from editions.catalogues import CatalogueError, Count, Language, Message, key  # noqa: E402
from editions.checks import has_label  # noqa: E402
from sphinx_annotated.page.html.words import pattern, texts  # noqa: E402
from writing import said_if_refused, write_whole  # noqa: E402

LOCALE = ROOT / "book" / "locale"
SOURCES = (
    "engine/sphinx_annotated",
    *("book/theme", "book/extensions", "book/live", "book/editions"),
)
COMMIT = re.compile(r"[0-9a-f]{7,40}")
METHODS = [("**.py", "python"), ("**.html", "jinja2")]


def pages() -> dict[str, list[str]]:
    """Return the messages of each page, in the book's order."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    names = [toc["root"]]
    names += [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    folder = ROOT / "_build" / MESSAGES
    missing = [name for name in names if not (folder / f"{name}.json").is_file()]
    if missing:
        sys.exit(f"The build has not read {', '.join(missing)}. Run: make book")
    return {
        name: json.loads((folder / f"{name}.json").read_text("utf-8")) for name in names
    }


def words() -> list[str]:
    """Return the words of the frame, the engine and the scripts, in the order of their files.

    Punctuation between words is a message, too: a language may have its own.
    """
    found: dict[str, None] = {}
    sources = [ROOT / name for name in SOURCES]
    for folder in sources:
        for _file, _line, message, _comments, _context in sorted(
            extract_from_dir(folder, METHODS, keywords={"_": None}),
            key=lambda each: each[:2],
        ):
            found[message if isinstance(message, str) else message[0]] = None
    found |= dict.fromkeys(words_of_scripts(ROOT))
    return list(found)


def pictures() -> list[str]:
    """Return the words of all pictures, each with the title of its picture as its context."""
    from drawing import canvas

    found: dict[str, None] = {}

    def say(text: str, picture: str) -> str:
        if has_label(canvas.MARKUP.sub(lambda m: m[1] or " ", text)):
            found[key(text, picture)] = None
        return text

    canvas.say = say
    for path in sorted((ROOT / "book" / "pictures").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT / "book").with_suffix("").parts)
        module = importlib.import_module(name.removesuffix(".__init__"))
        if hasattr(module, "draw"):
            module.draw()
    return list(found)


def outputs() -> list[str]:
    """Return the words of figures, tables and values, `{}` for each number, each with its page as context."""
    from write_notebooks import chapters, recorded, the_book

    book = the_book()
    found: dict[str, None] = {}
    for path in chapters():
        docname = path.relative_to(ROOT).with_suffix("").as_posix()
        record = recorded(book, docname)
        for text in (*_of_outputs(record), *record.values.values()):
            if has_label(pattern(text)) and not COMMIT.fullmatch(text):
                found[key(pattern(text), docname)] = None
    return list(found)


def _of_outputs(record: object) -> Iterator[str]:
    for output in (each for some in record.outputs for each in some):  # type: ignore[attr-defined]
        for content in output.get("data", {}).values():
            if isinstance(content, str | list):
                yield from texts("".join(content))


def everything() -> dict[str, list[str]]:
    """Return the keys of the messages of each catalogue."""
    apart = {"words": words(), "pictures": pictures(), "outputs": outputs()}
    return pages() | apart


def update(language: Language, now: dict[str, list[str]]) -> None:
    """Write the catalogues of a language."""
    for domain, messages in catalogue.updated(language.catalogues(), now).items():
        path, text = language.path(domain), catalogue.written(messages, language.code)
        if not path.is_file() or path.read_text("utf-8") != text:
            write_whole(path, text.encode())


Counts = dict[tuple[str, str], Count]  # by catalogue and context


def counts(language: Language, now: dict[str, list[str]]) -> Counts:
    """Return how far a language is: each page, and the words of each picture and of each page's figures."""
    found: dict[tuple[str, str], list[Message]] = defaultdict(list)
    for domain, english in now.items():
        for message in catalogue.current(language.path(domain), english):
            found[domain, message.context].append(message)
    return {place: catalogue.counted(messages) for place, messages in found.items()}


def report(language: Language, found: Counts) -> Iterator[str]:
    """Yield a line for each page or picture that is translated in part, and one for the language."""
    for (domain, context), count in found.items():
        if count.half_done:
            path = language.path(domain)
            name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
            yield f"{name}{f' ({context})' if context else ''}: {count}"
    total = sum(found.values(), Count())
    note = ". Until they are translated, pages show them in English or marked."
    yield f"{language.code}: {total}{note if total.left else ''}"


@said_if_refused(LOCALE)
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--strict", action="store_true", help="as for a release: half-done is an error"
    )
    strict, half_done = parser.parse_args().strict, False
    try:
        found, now = catalogue.languages(LOCALE), everything()
        for language in found:
            update(language, now)
            of_each = counts(language, now)
            print(*report(language, of_each), sep="\n")
            half_done |= not language.draft and any(
                count.half_done for count in of_each.values()
            )
    except CatalogueError as error:
        sys.exit(str(error))
    if not found:
        print(
            f'No language yet. Add {LOCALE.relative_to(ROOT)}/ja/language.toml, with a line: name = "日本語"'
        )
    if strict and half_done:
        sys.exit(
            "Translate what is left before a release, or make the language a draft."
        )


if __name__ == "__main__":
    main()
