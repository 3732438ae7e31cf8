"""`make notebooks`: write the readers' notebooks, one per chapter that _toc.yml lists, in each language."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "book"), str(ROOT / "engine")]

from editions.catalogues import languages  # noqa: E402
from sphinx_annotated.page.build.book import Book, book_of  # noqa: E402
from sphinx_annotated.read.expressions import of_others, with_others  # noqa: E402
from sphinx_annotated.read.modules import Project  # noqa: E402
from sphinx_annotated.read.syntax import ChapterError  # noqa: E402
from sphinx_annotated.run.job import Job, job_of  # noqa: E402
from sphinx_annotated.run.store import Record, Store  # noqa: E402
from sphinx_annotated.take.compare import (  # noqa: E402
    NOTEBOOK,
    Chapter,
    Comparison,
    Verdict,
)
from sphinx_annotated.take.notebook import reader_notebook  # noqa: E402
from writing import said_if_refused, write_whole  # noqa: E402


def chapters() -> list[Path]:
    """Return the modules that are chapters, in the book's order."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    files = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [path for file in files if (path := ROOT / f"{file}.py").is_file()]


def configuration() -> dict[str, Any]:
    """Return what _config.yml says."""
    text = (ROOT / "_config.yml").read_text(encoding="utf-8")
    config: dict[str, Any] = yaml.safe_load(text)
    return config


NOTEBOOKS = ROOT / configuration()["repository"]["notebooks"]


def the_book() -> Book:
    """Return the book that _config.yml describes."""
    config = configuration()
    options = config["sphinx"]["config"]
    return book_of(
        Project(ROOT),
        title=config["title"],
        repository=options["annotated_repository"],
        docnames=[
            path.relative_to(ROOT).with_suffix("").as_posix() for path in chapters()
        ],
        install=options["annotated_install"],
        packages=options["annotated_verified"],
        bibliographies=options["bibtex_bibfiles"],
        license_name=options["annotated_license"],
        pictures=options["annotated_pictures"],
        folded=options["annotated_folded"],
        glossary=options["annotated_glossary"],
    )


STORE = Store(ROOT / "_build" / ".executed")


def job_at(book: Book, docname: str) -> Job:
    """Return the job of executing a chapter."""
    options = configuration()["sphinx"]["config"]
    fonts = [ROOT / name for name in options["annotated_figure_fonts"]]
    return job_of(book.project, ROOT / f"{docname}.py", fonts)


def recorded(book: Book, docname: str) -> Record:
    """Return what a chapter's run recorded, and nothing if the book was not built since it changed."""
    return STORE.load(docname, job_at(book, docname).digest) or Record()


def values_of(book: Book, docname: str) -> dict[str, str]:
    """Return what a chapter's run computed for prose."""
    return recorded(book, docname).values


def compared(book: Book) -> dict[str, Verdict]:
    """Return how far the notebooks of executed chapters reach, as the last build found, or now."""
    found = {}
    for docname in book.titles:
        job = job_at(book, docname)
        if ran := STORE.ran(job, book.project):
            key = f"{job.digest} {ran[0]}"
            returned = partial(_returned, book, docname)
            found[docname] = Chapter(job.module, key, returned)
    seconds = configuration()["sphinx"]["config"]["annotated_timeout"]
    return Comparison(book, STORE.folder, seconds).verdicts(found)


def _returned(book: Book, docname: str) -> dict[str, list[Any]]:
    return recorded(book, docname).returned


def notebooks() -> dict[Path, str]:
    """Return the path and text of every notebook."""
    book, found = the_book(), {}
    verdicts = compared(book)
    for path in chapters():
        module = book.project.at(path)
        docname = book.project.docname(module)
        record = recorded(book, docname)
        values = with_others(
            of_others(module.chapter), record.values, partial(values_of, book)
        )
        verdict = verdicts.get(docname, Verdict())
        reach = verdict.reach_of(book.project, module, NOTEBOOK)
        found[NOTEBOOKS / f"{path.stem}.ipynb"] = reader_notebook(
            path, book, values=values, returned=record.returned, reach=reach
        )
    return found


def of_editions() -> dict[Path, str]:
    """Return the notebooks of editions, as the build has written them into the site."""
    site = ROOT / "_build" / "html"
    return {
        NOTEBOOKS / language.code / path.name: path.read_text(encoding="utf-8")
        for language in languages(ROOT / "book" / "locale")
        for path in (site / language.code / NOTEBOOKS.name).glob("*.ipynb")
        if not path.stem.endswith("-with-outputs")
    }


if __name__ == "__main__":
    try:
        written = notebooks() | of_editions()
    except ChapterError as error:
        sys.exit(str(error))
    for path in set(NOTEBOOKS.rglob("*.ipynb")) - set(written):
        path.unlink()
    with said_if_refused(NOTEBOOKS):
        for path, text in written.items():
            write_whole(path, text.encode())
    print(f"{len(written)} notebooks in {NOTEBOOKS.relative_to(ROOT)}/")
