"""`make notebooks`: writes notebooks/*.ipynb, one a chapter, from the modules that _toc.yml names."""

from __future__ import annotations

import sys
from pathlib import Path

import yaml
from pybtex.database import Entry, parse_file

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "book"))

from annotated.modules import Project  # noqa: E402
from annotated.parse import ChapterError, parse  # noqa: E402
from annotated.reader import Book, reader_notebook  # noqa: E402

NOTEBOOKS = ROOT / "notebooks"


def chapters() -> list[Path]:
    """The modules that are chapters, in the book's order."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    files = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [path for file in files if (path := ROOT / f"{file}.py").is_file()]


def the_book() -> Book:
    """The book, as its configuration describes it."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    owner, name = config["repository"]["url"].rstrip("/").split("/")[-2:]
    entries = parse_file(str(ROOT / "book" / "references.bib")).entries
    return Book(
        title=config["title"],
        project=Project(ROOT),
        url=f"https://{owner}.github.io/{name}/",
        install=config["sphinx"]["config"]["annotated_install"],
        titles={
            path.relative_to(ROOT).with_suffix("").as_posix(): parse(
                path.read_text(encoding="utf-8")
            ).title
            for path in chapters()
        },
        cite=lambda key: citation(entries[key]),
    )


def citation(entry: Entry) -> str:
    """Authors and year, linked."""
    names = [str(" ".join(person.last_names)) for person in entry.persons["author"]]
    names = [name.replace("{", "").replace("}", "") for name in names]
    authors = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
    text = f"{authors} ({entry.fields['year']})"
    return f"[{text}]({entry.fields['url']})" if "url" in entry.fields else text


def notebooks() -> dict[Path, str]:
    """Every notebook's path and text."""
    book = the_book()
    return {
        NOTEBOOKS / f"{path.stem}.ipynb": reader_notebook(path, book)
        for path in chapters()
    }


if __name__ == "__main__":
    try:
        written = notebooks()
    except ChapterError as error:
        sys.exit(str(error))
    for path in set(NOTEBOOKS.glob("*.ipynb")) - set(written):
        path.unlink()
    for path, text in written.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"{len(written)} notebooks in {NOTEBOOKS.relative_to(ROOT)}/")
