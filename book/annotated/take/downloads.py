"""The downloads of a chapter: its module, and its notebook with and without outputs."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from sphinx.application import Sphinx

from annotated.page.book import Book
from annotated.page.limits import FOLDER, write_whole
from annotated.page.site_notebook import visible
from annotated.run.execute import Job, Record
from annotated.take.notebook import reader_notebook

ENDS = ("", "-with-outputs")  # of the names of a chapter's notebooks


def write_downloads(
    app: Sphinx, job: Job, record: Record, values: Mapping[str, str], book: Book
) -> dict[str, str]:
    """Write a chapter's files into the site. Returns links to them, relative to its page.

    Only chapters with a committed notebook get one, because Colab opens the committed file.
    """
    out = Path(app.outdir)
    up = "../" * job.docname.count("/")
    module = f"_sources/{job.docname}.py"
    _folder_of(out / module)
    shutil.copyfile(job.path, out / module)
    links = {"source": f"{up}{module}"}
    outputs = record.by_cell(job.chapter)
    for i, cell in enumerate(job.chapter.cells):
        if cell.nodes:
            write_whole(visible(next(outputs)), f"{job.docname}-{i}", out)
    if committed := committed_notebook(job, book):
        for key, file, shown in (
            ("notebook", committed, None),
            ("executed", committed.replace(".ipynb", "-with-outputs.ipynb"), record),
        ):
            text = reader_notebook(job.path, book, shown, values, record.returned)
            _folder_of(out / file).write_text(text, encoding="utf-8")
            links[key] = f"{up}{file}"
        if book.repository.url:
            file = book.repository.file(committed).removeprefix("https://github.com/")
            links["colab"] = f"https://colab.research.google.com/github/{file}"
    return links


def committed_notebook(job: Job, book: Book) -> str | None:
    """Return the path of a chapter's committed notebook in the repository, if there is one."""
    path = f"{book.repository.notebooks}/{job.path.stem}.ipynb"
    return path if (book.project.root / path).is_file() else None


def remove_lost(
    site: Path, docnames: set[str], removed: set[str], notebooks: str
) -> None:
    """Remove the files of documents that are no longer in the book.

    Every chapter of an earlier build is known by the copy of its module, and every other page of Sphinx
    by its root element. Pages at the top, such as the index, may be of no document.
    """
    copies = site / "_sources"
    found = {path.relative_to(copies) for path in copies.rglob("*.py")}
    found |= {
        page.relative_to(site)
        for page in site.glob("[!_]*/**/*.html")
        if "data-content_root=" in page.read_text(encoding="utf-8")[:200]
    }
    earlier = {path.with_suffix("").as_posix() for path in found}
    stems = {Path(docname).name for docname in docnames}
    for docname in (removed | earlier) - docnames:
        name = Path(docname).name
        lost = [site / f"{docname}.html", *copies.glob(f"{docname}.*")]
        lost += (site / FOLDER).glob(f"{docname}-*")
        if name not in stems:
            lost += [site / notebooks / f"{name}{end}.ipynb" for end in ENDS]
        for path in lost:
            path.unlink(missing_ok=True)


def _folder_of(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
