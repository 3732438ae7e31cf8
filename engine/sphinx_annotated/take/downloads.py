"""The downloads of a chapter: its module, and its notebook with and without outputs."""

from __future__ import annotations

import json
import os
import shutil
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.osutil import relative_uri

from sphinx_annotated.page.build.book import Book
from sphinx_annotated.page.build.catalogues import say_of
from sphinx_annotated.page.chapter.site_notebook import visible
from sphinx_annotated.page.directives.values import in_edition
from sphinx_annotated.page.html.limits import FOLDER, write_whole
from sphinx_annotated.read.syntax import ChapterError
from sphinx_annotated.run.job import Job
from sphinx_annotated.run.store import Record
from sphinx_annotated.take.compare import NOTEBOOK, Verdict
from sphinx_annotated.take.notebook import reader_notebook
from sphinx_annotated.take.snippets import script_of

ENDS = ("", "-with-outputs")  # of the names of a chapter's notebooks


def write_downloads(
    app: Sphinx,
    job: Job,
    record: Record,
    values: Mapping[str, str],
    book: Book,
    verdict: Verdict,
) -> dict[str, str]:
    """Write a chapter's files into the site. Returns links to them, relative to its page.

    Only chapters with a committed notebook get one, because Colab opens the committed file: in an edition,
    that in the folder of its language, if there is one. Raises ``ChapterError`` if it would not have what the
    module has.
    """
    out = Path(app.outdir)
    here = app.builder.get_target_uri(job.docname)
    module = f"_sources/{job.docname}.py"
    _folder_of(out / module)
    shutil.copyfile(job.path, out / module)
    links = {"source": relative_uri(here, module)}
    committed = committed_notebook(job, book)
    if committed and record.date:  # its prose has numbers that a run computed
        reach = verdict.reach_of(book.project, job.module, NOTEBOOK)
        if say := say_of(app, job.docname):
            book = _in_language(app, book)
            values = in_edition(values, job.docname)
        for key, file, shown in (
            ("notebook", committed, None),
            ("executed", committed.replace(".ipynb", "-with-outputs.ipynb"), record),
        ):
            text = reader_notebook(
                job.path, book, shown, values, record.returned, say, reach
            )
            _folder_of(out / file).write_text(text, encoding="utf-8")
            links[key] = relative_uri(here, file)
        if start := book.repository.colab:
            links["colab"] = start + opened_in_colab(app, job, book)
    return links


def _in_language(app: Sphinx, book: Book) -> Book:
    """Return the book with the titles and the address of an edition, which is in a folder of its own."""
    titles = {
        docname: say(title) if (say := say_of(app, docname)) else title
        for docname, title in book.titles.items()
    }
    url = f"{book.url}{app.config.language}/" if book.url else ""
    return replace(book, titles=titles, url=url)


def write_outputs(site: Path, job: Job, record: Record) -> None:
    """Write a chapter's outputs that are too long for its page."""
    outputs = record.by_cell(job.chapter)
    for i, cell in enumerate(job.chapter.cells):
        if cell.nodes:
            write_whole(visible(next(outputs)), f"{job.docname}-{i}", site)


def committed_notebook(job: Job, book: Book) -> str | None:
    """Return the path of a chapter's committed notebook in the repository, if there is one.

    Its name is the chapter's, in the folder of notebooks or there in the chapter's own.
    """
    return _committed(job, book.project.root, book.repository.notebooks)


def opened_in_colab(app: Sphinx, job: Job, book: Book) -> str:
    """Return the committed notebook that Colab opens: of the page's language, else the usual one, or none."""
    folder = f"{book.repository.notebooks}/{app.config.language}"
    own = _committed(job, book.project.root, folder)
    return own or committed_notebook(job, book) or ""


def _committed(job: Job, root: Path, folder: str) -> str | None:
    paths = (f"{folder}/{name}.ipynb" for name in (job.docname, job.path.stem))
    return next((path for path in paths if (root / path).is_file()), None)


class Written:
    """The files that builds wrote for each document, kept in a file of the site.

    Files that no build recorded, such as pages of other extensions, are not removed.
    """

    def __init__(self, app: Sphinx):
        self.app, self.site = app, Path(app.outdir)
        self.path = self.site / ".written.json"
        self.listed: dict[Path, list[str]] = {}

    def update(self, notebooks: str) -> None:
        """Remove the files of documents that are no longer in the book, and record the others'."""
        before: dict[str, list[str]] = {}
        with suppress(OSError, ValueError):  # none yet, or cut by a full disk
            before = json.loads(self.path.read_text(encoding="utf-8"))
        now = {
            docname: sorted(self._files(docname, notebooks))
            for docname in self.app.env.found_docs
        }
        kept = {file for files in now.values() for file in files}
        lost = {file for files in before.values() for file in files} - kept
        for file in lost:
            (self.site / file).unlink(missing_ok=True)
        text = json.dumps(now, indent=0, sort_keys=True)
        self.path.write_text(text, encoding="utf-8")

    def _files(self, docname: str, notebooks: str) -> Iterator[str]:
        """Yield the files of a document in the site."""
        name = Path(docname).name
        page = Path(self.app.builder.get_outfilename(docname))  # type: ignore[attr-defined]
        paths = [page, *self._beginning(self.site / "_sources" / f"{docname}.")]
        if str(self.app.env.doc2path(docname)).endswith(".py"):
            paths += self._beginning(self.site / FOLDER / f"{docname}-")
            paths.append(self.site / script_of(docname))
            names = {name, docname}
            paths += [
                self.site / notebooks / f"{n}{end}.ipynb" for n in names for end in ENDS
            ]
        for path in paths:
            if path.is_file():
                yield path.relative_to(self.site).as_posix()

    def _beginning(self, path: Path) -> list[Path]:
        """Return the files whose paths begin like this. A folder is listed once."""
        folder, start = path.parent, path.name
        if folder not in self.listed:
            names = os.listdir(folder) if folder.is_dir() else []
            self.listed[folder] = sorted(names)
        names = self.listed[folder]
        found = names[bisect_left(names, start) :]
        return [folder / n for n in takewhile(lambda n: n.startswith(start), found)]


def check_names(jobs: Iterable[Job], root: Path, notebooks: str) -> None:
    """Raise ``ChapterError`` if the notebooks of two chapters would be one file."""
    known: dict[str, Job] = {}
    for job in jobs:
        file = _committed(job, root, notebooks)
        other = known.setdefault(file, job) if file else job
        if other is not job:
            message = f"the notebook of this chapter and of {other.path} is {file}. "
            message += (
                f"Write this one's to {notebooks}/{job.docname}.ipynb, or rename one."
            )
            raise ChapterError(str(job.path), 1, message)


def _folder_of(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
