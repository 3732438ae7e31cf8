"""The Sphinx extension: the steps of a build, in order.

1. ``env-get-outdated``: every chapter is parsed. Those without a stored record are executed,
   several at a time. Pages whose outputs changed are read again.
2. ``source-read``: the site's notebook replaces the module's text, and MyST-NB reads it.
3. Transforms (``page/rows.py``): outputs move into their rows, and for HTML rows into a sheet.
4. ``html-page-context``: the theme gets the title block, the list of chapters and the links.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import SphinxError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from annotated.page import (
    exercises,
    folding,
    pictures,
    rows,
    ties,
    values,
    variants,
)
from annotated.page.again import Again
from annotated.page.code import code_lines, visit_code_lines
from annotated.page.contents import contents, lost_pages, navigation
from annotated.page.site_notebook import site_notebook
from annotated.page.state import Head, Memory, State, begin, end, state_of
from annotated.page.title_block import title_block
from annotated.read.modules import text_of
from annotated.read.parse import ChapterError
from annotated.run.clean import CONTROL
from annotated.run.execute import Job, execute_all
from annotated.run.fonts import unpacked
from annotated.run.shapes import check
from annotated.take import bibtex, snippets
from annotated.take.downloads import (
    committed_notebook,
    remove_lost,
    write_downloads,
)

LOGGER = logging.getLogger(__name__)
# Name in ``conf.py``, default, and what Sphinx builds again when it changes.
CONFIGURATION: list[tuple[str, Any, Any]] = [
    ("annotated_workers", 0, ""),  # chapters executed at a time; 0: one per core
    ("annotated_timeout", 600, ""),  # seconds that one statement may run
    ("annotated_figure_fonts", [], ""),  # files of the font in which figures are set
    ("annotated_pictures", "", "env"),  # the package whose modules draw pictures
    ("annotated_repository", {}, "html"),  # its url, branch, folder of notebooks
    ("annotated_glossary", "", "html"),  # the file with the glossary, for notebooks
    ("annotated_license", "", "html"),  # of the code that readers copy, as "MIT"
    ("annotated_folded", [], "env"),  # folders of chapters whose code is all folded
    ("annotated_install", {}, ""),  # package: what a notebook passes to pip install
    ("annotated_verified", [], "html"),  # packages whose versions are shown
]
DIRECTIVES: dict[str, type[SphinxDirective]] = {
    "annotated-row": rows.AnnotatedRow,
    "deviation": rows.Deviation,
    "annotated-remark": folding.Remark,
    "exercise": exercises.Exercise,
    "picture": pictures.Picture,
    "solution": exercises.Solution,
    "variant": variants.Variant,
}


class AnnotatedError(SphinxError):
    """Ends the build. Each line of the message has a file, a line and the fix."""

    category = "The book was not built"


def wait(app: Sphinx, config: Any) -> None:
    """Let one build at a time write to the folder of the output."""
    path = Path(app.outdir).parent / ".building"
    lock = path.open("w")  # it ends with the process, however that ends
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        LOGGER.info("Another build writes to the same folder. Waiting for its end.")
        fcntl.flock(lock, fcntl.LOCK_EX)
    app.connect("build-finished", lambda *_: lock.close(), priority=1000)


def execute_chapters(
    app: Sphinx,
    env: BuildEnvironment,
    added: set[str],
    changed: set[str],
    removed: set[str],
) -> list[str]:
    """Execute chapters that have no record. Return the pages whose outputs have changed."""
    state = begin(app)
    state.removed = removed
    lost = list(lost_pages(app))
    if lost:
        raise AnnotatedError("\n" + "\n".join(lost))
    docnames = sorted(d for d in env.found_docs if str(env.doc2path(d)).endswith(".py"))
    try:
        jobs = [state.job(docname) for docname in docnames]
        _execute_missing(state, jobs)
        for job in jobs:
            check(job.chapter, state.shapes(job)["calls"], str(job.path))
    except ChapterError as error:
        raise AnnotatedError(f"\n{error}") from None
    known = state.memory.digests
    state.memory.digests = {job.docname: job.digest for job in jobs}
    return [
        job.docname
        for job in jobs
        if known.get(job.docname) != job.digest or job.docname in state.executed
    ]


def _execute_missing(state: State, jobs: list[Job]) -> None:
    missing = [job for job in jobs if not state.is_current(job)]
    state.executed = [job.docname for job in missing]
    if missing:
        config = state.app.config
        workers = config.annotated_workers or os.cpu_count() or 1
        timeout, say = config.annotated_timeout, _Progress()
        fonts = unpacked(state.fonts, state.store.folder.with_name(".fonts"))
        errors = execute_all(
            missing, state.store, state.root, workers, timeout, say, fonts
        )
        if errors:
            raise AnnotatedError("\n" + "\n".join(str(error) for error in errors))


class _Progress:
    """Reports progress, with the seconds since the start."""

    def __init__(self) -> None:
        self.start = time.monotonic()

    def __call__(self, message: str) -> None:
        seconds = time.monotonic() - self.start
        LOGGER.info("[%5.0f s] %s", seconds, message)


def read_chapter(app: Sphinx, docname: str, source: list[str]) -> None:
    """Give MyST-NB the site's notebook in place of the module's text."""
    state = state_of(app.env)
    state.page = None
    if str(app.env.doc2path(docname)).endswith(".py"):
        state.page = state.page_of(docname)
        page = state.page
        notebook = site_notebook(page.chapter, page.record, page.folds, docname)
        source[0] = nbformat.writes(notebook)


def read_notebook(text: str) -> nbformat.NotebookNode:
    """Read a ``.py`` document for MyST-NB: ``read_chapter`` has made it a notebook."""
    return nbformat.reads(text, as_version=4)


def forget_page(app: Sphinx, doctree: nodes.document) -> None:
    """Forget the chapter that was read, so that the next document does not see it."""
    state_of(app.env).page = None


def read_again(app: Sphinx, env: BuildEnvironment) -> None:
    """Let the next build read modules again that were edited while chapters ran."""
    for docname, job in state_of(env).jobs.items():
        if text_of(job.path) != job.chapter.text:
            env.all_docs[docname] = 0


def write_again(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Write pages again whose frame changed.

    These are all pages if the table of contents changed, which every page shows, and otherwise the chapters
    whose notebook is new or gone.
    """
    state = state_of(env)
    state.contents = contents(app)
    before, had = state.memory.contents, state.memory.notebooks
    state.memory.contents = state.contents
    has = {
        name for name, job in state.jobs.items() if committed_notebook(job, state.book)
    }
    state.memory.notebooks = has
    return sorted(env.found_docs if before not in (None, state.contents) else had ^ has)


def configure(app: Sphinx, config: Any) -> None:
    """Let MyST-NB read ``.py`` files, and add the engine's script to the site."""
    config.nb_custom_formats = {
        **config.nb_custom_formats,
        ".py": "annotated.sphinx_extension.read_notebook",
    }
    config.nb_execution_mode = "off"
    config.nb_merge_streams = False  # site_notebook.py does, around figures
    static = str(Path(__file__).parent / "static")
    config.html_static_path = [*config.html_static_path, static]


def page_context(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Give the theme the list of chapters, the title block and the downloads."""
    state = state_of(app.env)
    if "body" in context:
        context["body"] = CONTROL.sub("", context["body"])
    context["book_nav"] = navigation(app, state.contents, pagename)
    entry = next((e for e in state.contents if e.docname == pagename), None)
    if entry is None or doctree is None or pagename not in state.jobs:
        return
    job = state.job(pagename)
    record, head = state.record(job), state.heads.get(pagename, Head())
    packages = app.config.annotated_verified
    block = title_block(app.builder, entry, head, job.chapter, record, packages)
    try:
        links = write_downloads(app, job, record, state.book)
    except ChapterError as error:
        raise AnnotatedError(f"\n{error}") from None
    context["chapter"] = block | links


def remove_pages(app: Sphinx, exception: Exception | None) -> None:
    """Remove what the site has of documents that are no longer there."""
    if exception is None and app.builder.format == "html":
        state = state_of(app.env)
        notebooks = state.book.repository.notebooks
        remove_lost(Path(app.outdir), app.env.found_docs, state.removed, notebooks)


def report(app: Sphinx, exception: Exception | None) -> None:
    """Report where the site is and how many chapters were executed, and end the build's state."""
    if exception is None:
        state = state_of(app.env)
        if state.jobs:
            cached = len(state.jobs) - len(state.executed)
            counts = f"{len(state.executed)} chapters executed, {cached} from the cache"
            LOGGER.info("%s. The book: %s/index.html", counts, app.outdir)
    end(app.env)


def setup(app: Sphinx) -> dict[str, Any]:
    app.setup_extension("myst_nb")
    for name, default, rebuild in CONFIGURATION:
        app.add_config_value(name, default, rebuild)
    app.add_domain(Memory)
    _add_nodes(app)
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    app.add_role("value", values.Value())
    app.add_transform(rows.Rules)
    app.add_transform(rows.OutputsInRows)
    app.add_post_transform(rows.Sheet)
    app.add_post_transform(snippets.OfferSnippets)
    app.add_post_transform(bibtex.OfferBibtex)
    app.add_js_file("annotated.js", loading_method="defer")
    app.connect("config-inited", wait, priority=100)
    app.connect("config-inited", configure, priority=400)
    app.connect("env-get-outdated", execute_chapters)
    app.connect("source-read", read_chapter)
    app.connect("doctree-read", forget_page)
    app.connect("env-updated", read_again)
    app.connect("env-updated", write_again)
    app.connect("html-page-context", page_context, priority=400)
    Again(app)
    app.connect(
        "build-finished", remove_pages, priority=400
    )  # then the site is indexed
    app.connect("build-finished", report)
    return {
        "env_version": _version(),
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }


def _add_nodes(app: Sphinx) -> None:
    app.add_node(code_lines, html=(visit_code_lines, None))
    app.add_node(rows.heading, html=(rows.visit_heading, rows.depart_heading))
    app.add_node(bibtex.bibtex, html=(bibtex.visit_bibtex, None))
    html = (snippets.visit_standalone_code, None)
    app.add_node(snippets.standalone_code, html=html)
    skip = (variants.skip_variant, None)
    html = (variants.visit_variant, None)
    app.add_node(variants.variant, html=html, latex=skip, text=skip)
    skip = (pictures.skip_picture, None)
    html = (pictures.visit_picture, None)
    app.add_node(pictures.picture, html=html, latex=skip, text=skip)
    for node, visit, depart in (
        (rows.deviation, rows.visit_deviation, rows.depart_deviation),
        (folding.fold, folding.visit_fold, folding.depart_fold),
        (exercises.exercise, exercises.visit_exercise, exercises.depart_exercise),
        (exercises.solution, exercises.visit_solution, exercises.depart_solution),
        (ties.tie, ties.visit_tie, ties.depart_tie),
    ):
        plain = (_plain, _plain)
        app.add_node(node, html=(visit, depart), latex=plain, text=plain)


def _version() -> int:
    """Return a number that changes with the engine's files, so that pages are read again."""
    paths = [
        path
        for kind in ("py", "js", "css")
        for path in sorted(Path(__file__).parent.rglob(f"*.{kind}"))
    ]
    texts = [path.read_bytes() for path in paths]
    return int(hashlib.sha256(b"".join(texts)).hexdigest()[:12], 16)


def _plain(translator: Any, node: nodes.Element) -> None:
    """Builders other than HTML show the content."""
