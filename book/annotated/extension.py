"""The Sphinx extension: when a book of modules is built, what happens, and in which order.

1. ``env-get-outdated``: each chapter is parsed and its digest taken; what is not in the store
   is executed, several chapters at a time; pages whose outputs changed are read again.
2. ``source-read``: the module's text gives way to the site's notebook, which MyST-NB reads.
3. transforms (rows.py): outputs move into their rows; for HTML, rows into one sheet.
4. ``html-page-context``: title block, chapter list and links for the theme.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import SphinxError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from annotated import bibtex, downloads, exercises, rows, ties, variants
from annotated.code import Highlighter, code_lines, visit_code_lines
from annotated.digest import digest, versions
from annotated.execute import (
    CURVES,
    FONTS,
    MATPLOTLIBRC,
    RECORDER,
    Job,
    Record,
    Store,
    execute_all,
)
from annotated.fonts import unpacked
from annotated.modules import Project, text_of
from annotated.pages import (
    Entry,
    Page,
    contents,
    lost_pages,
    navigation,
    site_url,
    title_block,
)
from annotated.parse import Chapter, ChapterError
from annotated.shapes import by_line, check, moved, positions
from annotated.site import site_notebook
from annotated.standalone import snippets

logger = logging.getLogger(__name__)


class AnnotatedError(SphinxError):
    """What ends the build: one line or more, each with file, line and mend."""

    category = "The book was not built"


class Build:
    """The chapters of one build."""

    def __init__(self, app: Sphinx):
        self.app = app
        self.root = Path(app.srcdir)
        self.project = Project(self.root)
        self.store = Store(Path(app.outdir).parent / ".executed")
        self.fonts = [self.root / name for name in app.config.annotated_figure_fonts]
        self.jobs: dict[str, Job] = {}
        self.executed: list[str] = []
        self.entries: list[Entry] = []

    def job(self, docname: str) -> Job:
        """The chapter of a page, parsed once."""
        if docname not in self.jobs:
            path = Path(self.app.env.doc2path(docname))
            module = self.project.at(path)
            chapter = module.chapter
            how = "".join(
                hashlib.sha256(path.read_bytes()).hexdigest()
                for path in (MATPLOTLIBRC, RECORDER, CURVES, FONTS, *self.fonts)
            )
            key = digest(chapter, module, self.project, how)
            packages = versions(module, self.project.dependencies(module))
            self.jobs[docname] = Job(
                docname, path, chapter, key, module.package, packages
            )
        return self.jobs[docname]

    @cached_property
    def around(self) -> downloads.Book:
        """What each notebook must know of the others."""
        docnames = [e.docname for e in self.entries if e.docname in self.jobs]
        return downloads.described(self.app, self.project, docnames)

    def record(self, job: Job) -> Record:
        """What the chapter's execution left."""
        record = self.store.load(job.docname, job.digest)
        assert record is not None, f"{job.docname} was not executed"
        return record

    def page(self, docname: str) -> Page:
        job = self.job(docname)
        module = self.project.at(job.path)
        tensors = by_line(job.chapter, self.shapes(job)["names"])
        highlighter = Highlighter(job.chapter, module.name, module.package, tensors)
        record = self.record(job)
        return Page(job.chapter, self.project, module.name, record, highlighter)

    def shapes(self, job: Job) -> dict[str, Any]:
        """What the recorder saw, at the lines of now."""
        record = self.record(job)
        return moved(record.shapes, record.positions, positions(job.chapter))

    def snippets(self, docname: str) -> dict[str, str]:
        """Each definition at the top of a chapter, with all that it needs, ready to paste."""
        job, config = self.job(docname), self.app.config
        page = f"{site_url(config.annotated_repository)}{docname}.html"
        module = self.project.at(job.path)
        return snippets(self.project, module, config.html_title, page)


def execute_chapters(
    app: Sphinx,
    env: BuildEnvironment,
    added: set[str],
    changed: set[str],
    removed: set[str],
) -> list[str]:
    """Executes what is missing; names the pages whose outputs are no longer those last read."""
    book = app.annotated = Build(app)  # type: ignore[attr-defined]
    lost = list(lost_pages(app))
    if lost:
        raise AnnotatedError("\n" + "\n".join(lost))
    docnames = sorted(d for d in env.found_docs if str(env.doc2path(d)).endswith(".py"))
    try:
        jobs = [book.job(d) for d in docnames]
        missing = [
            job for job in jobs if book.store.load(job.docname, job.digest) is None
        ]
        book.executed = [job.docname for job in missing]
        if missing:
            workers = app.config.annotated_workers or os.cpu_count() or 1
            say = _Progress()
            errors = execute_all(
                missing,
                book.store,
                book.root,
                workers,
                app.config.annotated_timeout,
                say,
                unpacked(book.fonts, book.store.folder.with_name(".fonts")),
            )
            if errors:
                raise AnnotatedError("\n" + "\n".join(str(error) for error in errors))
        for job in jobs:
            check(job.chapter, book.shapes(job)["calls"], str(job.path))
    except ChapterError as error:
        raise AnnotatedError(f"\n{error}") from None
    known: dict[str, str] = getattr(env, "annotated_digests", {})
    env.annotated_digests = {job.docname: job.digest for job in jobs}  # type: ignore[attr-defined]
    return [job.docname for job in jobs if known.get(job.docname) != job.digest]


class _Progress:
    """Says what is going on, with the seconds since the start."""

    def __init__(self) -> None:
        self.start = time.monotonic()

    def __call__(self, message: str) -> None:
        seconds = time.monotonic() - self.start
        sys.stdout.write(
            f"[{seconds:5.0f} s] {message}\n"
        )  # whole lines from several threads
        sys.stdout.flush()


def read_chapter(app: Sphinx, docname: str, source: list[str]) -> None:
    """Gives MyST-NB the site's notebook in place of the module's text."""
    app.env.temp_data.pop("annotated", None)
    if not str(app.env.doc2path(docname)).endswith(".py"):
        return
    page = app.annotated.page(docname)  # type: ignore[attr-defined]
    app.env.temp_data["annotated"] = page
    source[0] = nbformat.writes(site_notebook(page.chapter, page.record))


def read_notebook(text: str) -> nbformat.NotebookNode:
    """MyST-NB's reader of ``.py`` files: by now the text is a notebook."""
    return nbformat.reads(text, as_version=4)


def forget(app: Sphinx, doctree: nodes.document) -> None:
    """The page is read: nothing of it may leak into the next one, or into the pickled environment."""
    app.env.temp_data.pop("annotated", None)


def read_again(app: Sphinx, env: BuildEnvironment) -> None:
    """What was edited while chapters ran shows the module as it was: it is to be read once more."""
    book: Build = app.annotated  # type: ignore[attr-defined]
    for docname, job in book.jobs.items():
        if text_of(job.path) != job.chapter.text:
            env.all_docs[docname] = 0


def write_again(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Every page names every chapter. Where these are others than they were, all pages are written."""
    book: Build = app.annotated  # type: ignore[attr-defined]
    book.entries = contents(app)
    before = getattr(env, "annotated_contents", book.entries)
    env.annotated_contents = book.entries  # type: ignore[attr-defined]
    return [] if book.entries == before else sorted(env.found_docs)


def configure(app: Sphinx, config: Any) -> None:
    config.nb_custom_formats = {
        **config.nb_custom_formats,
        ".py": "annotated.extension.read_notebook",
    }
    config.nb_execution_mode = "off"
    config.nb_merge_streams = (
        False  # site.py joins prints, and keeps figures in their place
    )
    static = str(Path(__file__).parent / "static")
    config.html_static_path = [*config.html_static_path, static]


def page_context(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    book: Build = app.annotated  # type: ignore[attr-defined]
    context["book_nav"] = navigation(app, book.entries, pagename)
    entry = next((e for e in book.entries if e.docname == pagename), None)
    if (
        entry
        and doctree is not None
        and pagename in getattr(app.env, "annotated_digests", {})
    ):
        job = book.job(pagename)
        context["chapter"] = title_block(
            app, entry, _facts(job.chapter, book.record(job)), doctree
        )
        try:
            context["chapter"] |= downloads.write(
                app, job, book.record(job), book.around
            )
        except ChapterError as error:
            raise AnnotatedError(f"\n{error}") from None


def _facts(chapter: Chapter, record: Record) -> dict[str, Any]:
    seconds = max(1, round(record.seconds))
    torch = record.versions.get("torch", "").partition("+")[0]
    date = time.strptime(record.date, "%Y-%m-%d")
    day = f'<time datetime="{record.date}">{date.tm_mday} {time.strftime("%b %Y", date)}</time>'
    return {
        "runs": f"{seconds} s on a CPU core",
        "last": f"torch {torch}, {day}" if torch else day,
        "glance": [
            {"title": name.qualname, "href": f"#{name.qualname}", "line": line}
            for name, line in chapter.names()
            if name.level == 1
        ],
    }


def report(app: Sphinx, exception: Exception | None) -> None:
    """The last lines of a build: where the site is, and what it took."""
    if exception is not None:
        return
    book: Build = app.annotated  # type: ignore[attr-defined]
    if book.jobs:
        cached = len(book.jobs) - len(book.executed)
        counts = f"{len(book.executed)} chapters executed, {cached} from the cache"
        print(f"{counts}. The book: {app.outdir}/index.html")


def setup(app: Sphinx) -> dict[str, Any]:
    app.setup_extension("myst_nb")
    app.add_config_value(
        "annotated_workers", 0, ""
    )  # chapters executed at a time; 0: one a core
    app.add_config_value("annotated_timeout", 600, "")  # seconds that one cell may run
    app.add_config_value(
        "annotated_figure_fonts", [], ""
    )  # the theme's files of the font in which figures are set
    app.add_config_value(
        "annotated_repository", "", "html"
    )  # https://github.com/owner/name
    app.add_config_value(
        "annotated_install", {}, ""
    )  # package: what a notebook tells pip
    app.add_config_value(
        "annotated_verified", [], ""
    )  # packages whose pinned versions a notebook names
    app.add_node(code_lines, html=(visit_code_lines, None))
    app.add_node(rows.snippets, html=(rows.visit_snippets, None))
    app.add_node(
        variants.variant,
        html=(variants.visit_variant, None),
        latex=(variants.skip_variant, None),
        text=(variants.skip_variant, None),
    )
    app.add_node(rows.heading, html=(rows.visit_heading, rows.depart_heading))
    for node, visit, depart in (
        (rows.deviation, rows.visit_deviation, rows.depart_deviation),
        (exercises.exercise, exercises.visit_exercise, exercises.depart_exercise),
        (exercises.solution, exercises.visit_solution, exercises.depart_solution),
        (ties.tie, ties.visit_tie, ties.depart_tie),
    ):
        plain = (_plain, _plain)
        app.add_node(node, html=(visit, depart), latex=plain, text=plain)
    app.add_node(bibtex.bibtex, html=(bibtex.visit_bibtex, None))
    directives: dict[str, type[SphinxDirective]] = {
        "annotated-row": rows.AnnotatedRow,
        "deviation": rows.Deviation,
        "exercise": exercises.Exercise,
        "solution": exercises.Solution,
        "variant": variants.Variant,
    }
    for name, directive in directives.items():
        app.add_directive(name, directive)
    app.add_transform(rows.OutputsInRows)
    app.add_post_transform(rows.Sheet)
    app.add_post_transform(bibtex.OfferBibtex)
    app.add_js_file("annotated.js", loading_method="defer")
    app.connect("config-inited", configure, priority=400)
    app.connect("env-get-outdated", execute_chapters)
    app.connect("source-read", read_chapter)
    app.connect("doctree-read", forget)
    app.connect("env-updated", read_again)
    app.connect("env-updated", write_again)
    app.connect("html-page-context", page_context, priority=400)
    app.connect("build-finished", report)
    return {
        "env_version": _version(),
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }


def _version() -> int:
    """A number of the engine's own text: pages that another engine has read are read again."""
    paths = [
        path
        for kind in ("py", "js", "css")
        for path in sorted(Path(__file__).parent.rglob(f"*.{kind}"))
    ]
    texts = [path.read_bytes() for path in paths]
    return int(hashlib.sha256(b"".join(texts)).hexdigest()[:12], 16)


def _plain(translator: Any, node: nodes.Element) -> None:
    """Builders other than HTML show what is inside."""
