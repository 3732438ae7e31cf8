"""The steps of a build, in the order in which Sphinx takes them."""

from __future__ import annotations

import gc
import os
import re
import time
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from filelock import FileLock, Timeout
from myst_parser.sphinx_ext.mathjax import override_mathjax
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.locale import _
from sphinx.util import logging

from sphinx_annotated.ends import AnnotatedError
from sphinx_annotated.page.build.book import title_of
from sphinx_annotated.page.build.catalogues import say_of, words_of
from sphinx_annotated.page.build.chapters import warn_of_patterns
from sphinx_annotated.page.build.contents import Navigation, contents, lost_pages
from sphinx_annotated.page.build.state import Head, State, begin, end, state_of
from sphinx_annotated.page.chapter.site_notebook import site_notebook
from sphinx_annotated.page.chapter.title_block import title_block
from sphinx_annotated.page.directives.values import in_edition
from sphinx_annotated.page.html.limits import with_links
from sphinx_annotated.page.html.outputs import problem
from sphinx_annotated.read.manners.notebooks import is_of_marimo
from sphinx_annotated.read.modules import text_of
from sphinx_annotated.read.syntax import ChapterError
from sphinx_annotated.run.clean import CONTROL
from sphinx_annotated.run.execute import execute_all
from sphinx_annotated.run.fonts import unpacked
from sphinx_annotated.run.job import Job
from sphinx_annotated.run.shapes import check
from sphinx_annotated.take.compare import Chapter, Comparison, Verdict
from sphinx_annotated.take.downloads import (
    Written,
    check_names,
    opened_in_colab,
    write_downloads,
    write_outputs,
)

MISREAD = (
    "Python reads the backslash in %s as another character. The page shows the text as it is "
    'written. Put an r before the quotes of this docstring: r"""'
)
MARIMO = (
    "This is a notebook of marimo, whose texts are shown as code. Make it a notebook of Jupytext: "
    "marimo export ipynb NAME.py -o NAME.ipynb; jupytext --to py:percent NAME.ipynb -o NEW.py"
)
UNEXECUTED = "This module was not executed, so no outputs are shown."
UNEXECUTED_FOR_WANT_OF = (
    "This module needs the package {}, which is not installed, so no outputs are shown."
)
LACKED = (
    "This chapter needs the package %s, which is not installed, and is shown without outputs. %s, "
    "or leave the chapter out of annotated_execute."
)
LACKING = re.compile(
    r"(?P<path>.*?):(?P<line>\d+): ModuleNotFoundError: No module named '(?P<package>[\w.]+)'"
)
# What MyST reads in prose of modules, as `read/prose.py` does.
MARKUP = {"amsmath", "colon_fence", "deflist", "dollarmath", "fieldlist"}
LOGGER = logging.getLogger(__name__)


def wait(app: Sphinx, config: Any) -> None:
    """Let one build at a time write to the folder of the output.

    What an earlier one left that did not end well is removed.
    """
    out = Path(app.outdir)
    message = "Another build writes to the same folder. Waiting for its end."
    lock = _locked(out.with_name(f".building-{out.name}"), message)
    begun = out.with_name(f".begun-{out.name}")
    if begun.is_file():
        _remove_copies(out, begun.stat().st_mtime_ns)
    begun.touch()

    def end(_: Sphinx, exception: Exception | None) -> None:
        if exception is None:
            begun.unlink(missing_ok=True)
        lock.release()

    app.connect("build-finished", end, priority=1000)


def _remove_copies(out: Path, since: int) -> None:
    """Remove what a build has written since then and does not write again if it is there, cut or not.

    That is what Sphinx and extensions copy, and what Sphinx notes. Their names begin with "_" or ".".
    """
    own = [path for sign in "_." for path in out.glob(f"{sign}*")]
    for path in own + [path for folder in own for path in folder.rglob("*")]:
        changed = path.lstat()
        if not path.is_dir() and max(changed.st_mtime_ns, changed.st_ctime_ns) >= since:
            path.unlink()


def _locked(path: Path, message: str) -> FileLock:
    """Return a lock, when it is free. It ends with the process, however that ends."""
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        LOGGER.info(message)
        lock.acquire()
    return lock


def execute_chapters(
    app: Sphinx,
    env: BuildEnvironment,
    added: set[str],
    changed: set[str],
    removed: set[str],
) -> list[str]:
    """Execute chapters that have no record. Return the pages whose outputs have changed."""
    state = begin(app)
    _freeze()
    lost = list(lost_pages(app))
    if lost:
        raise AnnotatedError("\n" + "\n".join(lost))
    docnames = sorted(d for d in env.found_docs if str(env.doc2path(d)).endswith(".py"))
    warn_of_patterns(app, docnames)
    jobs = _read_all(state, docnames)
    _freeze()
    try:
        notebooks = app.config.annotated_repository.get("notebooks", "notebooks")
        check_names(jobs, state.root, notebooks)
        _execute_missing(state, jobs)
        for job in jobs:
            if job.docname not in state.unexecuted:
                _check(state, job)
                state.project.trim()
    except ChapterError as error:
        raise AnnotatedError(f"\n{error}") from None
    known = state.memory.digests
    # Of an output and of a number in prose, also of one that another chapter computed.
    state.memory.digests = {
        job.docname: f"{job.module.key} {job.digest} {sorted(state.values(job).items())} "
        f"{state.unexecuted.get(job.docname, '')}"
        for job in jobs
    }
    shown = [
        docname
        for docname, uses in state.memory.uses.items()
        if any(state.shown[what] != digest for what, digest in uses.items())
    ]
    return shown + [
        job.docname
        for job in jobs
        if known.get(job.docname) != state.memory.digests[job.docname]
        or job.docname in state.executed
    ]


def _read_all(state: State, docnames: list[str]) -> list[Job]:
    """Return the chapters. Raises ``AnnotatedError`` with the errors of all that cannot be read."""
    jobs: list[Job] = []
    errors: dict[str, None] = {}  # those of a module that several import are one
    for docname in docnames:
        try:
            jobs.append(state.job(docname))
            state.others(jobs[-1])  # while it is parsed
            title_of(state.project, jobs[-1].module)
        except ChapterError as error:
            errors[str(error)] = None
        state.project.trim()
    if errors:
        raise AnnotatedError("\n" + "\n".join(errors))
    return jobs


def _check(state: State, job: Job) -> None:
    """Compare the shapes in a chapter's prose with the recorded ones, once for both of them."""

    def work() -> int:
        return check(job.chapter, state.shapes(job)["calls"], str(job.path))

    state.project.once(job.module, "shapes", work, f"{job.digest} {state.ran(job)[0]}")


def _execute_missing(state: State, jobs: list[Job]) -> None:
    left = [job for job in jobs if not state.executes(job.docname)]
    notice = _(UNEXECUTED) if state.app.config.annotated_say_unexecuted else ""
    state.unexecuted = {job.docname: notice for job in left}
    jobs = [job for job in jobs if job.docname not in state.unexecuted]
    if not all(map(state.is_current, jobs)):
        waiting = "Another process executes chapters. Waiting for their outputs."
        with _locked(_lock_of_outputs(state), waiting):
            _execute(state, [job for job in jobs if not state.is_current(job)])


def _lock_of_outputs(state: State) -> Path:
    folder = state.store.folder
    return folder.with_name(f"{folder.name}-lock")


def _execute(state: State, jobs: list[Job]) -> None:
    state.executed = [job.docname for job in jobs]
    if jobs:
        config = state.app.config
        workers = config.annotated_workers or os.cpu_count() or 1
        timeout, say = config.annotated_timeout, _Progress()
        fonts = _fonts(state)
        errors = execute_all(
            jobs, state.store, state.root, workers, timeout, say, fonts
        )
        wrong = [error for error in errors if not _lacks_package(state, jobs, error)]
        if wrong:
            raise AnnotatedError("\n" + "\n".join(str(error) for error in wrong))


def _fonts(state: State) -> list[str]:
    """Return the fonts of figures as files that matplotlib reads."""
    if not state.fonts:
        return []
    try:
        return unpacked(state.fonts, state.store.folder.with_name(".fonts"))
    except ModuleNotFoundError:
        raise AnnotatedError(
            "annotated_figure_fonts needs fontTools: pip install fonttools brotli."
        ) from None


def _lacks_package(state: State, jobs: list[Job], error: ChapterError) -> bool:
    """Warn of a chapter that needs a package which is not there, and return whether it is that."""
    found = LACKING.match(str(error))
    job = next((job for job in jobs if found and str(job.path) == found["path"]), None)
    if found is None or job is None or state.project.owns(found["package"]):
        return False
    package = found["package"].partition(".")[0]
    place = f"{job.path}:{found['line']}"
    fix = "Install what has it (its name may be another)"
    if folders := sorted(state.root.glob(f"*/{package}")):
        folder = folders[0].parent.name
        fix = f"It is in the folder {folder}, where no module is looked for: add {folder} to PYTHONPATH"
    LOGGER.warning(
        LACKED, package, fix, location=place, type="annotated", subtype="package"
    )
    state.executed.remove(job.docname)
    state.unexecuted[job.docname] = _(UNEXECUTED_FOR_WANT_OF).format(package)
    return True


class _Progress:
    """Reports progress, with the seconds since the start. Several threads call it."""

    def __init__(self) -> None:
        self.start = time.monotonic()

    def __call__(self, message: str) -> None:
        LOGGER.info("[%5.0f s] %s", time.monotonic() - self.start, message)


def read_chapter(app: Sphinx, docname: str, source: list[str]) -> None:
    """Give MyST-NB the site's notebook in place of the module's text."""
    state = state_of(app.env)
    state.page = None
    state.project.trim()
    _forget_documents(app.env)
    if str(app.env.doc2path(docname)).endswith(".py"):
        state.page = state.page_of(docname)
        page = state.page
        for other in state.project.dependencies(page.module):
            state.use(docname, f"copies of {other.name}")
        for line, word in page.chapter.misread.items():
            place, kind = f"{page.module.path}:{line}", "docstring"
            LOGGER.warning(
                MISREAD, word, location=place, type="annotated", subtype=kind
            )
        if is_of_marimo(page.chapter.text):
            place = f"{page.module.path}:1"
            LOGGER.warning(MARIMO, location=place, type="annotated", subtype="marimo")
        notebook = site_notebook(
            page.chapter,
            page.record,
            page.folds,
            docname,
            in_edition(page.values, docname),
            say=words_of(docname),
            note=say_of(app, docname) or str,
            notice=state.unexecuted.get(docname, ""),
        )
        notebook.metadata.update(_markup(app))
        source[0] = nbformat.writes(notebook)
        for _, line, output in page.record.placed(page.chapter):
            if what := problem(output):
                place = f"{page.module.path}:{line}"
                LOGGER.warning(what, location=place, type="annotated", subtype="output")


def _freeze() -> None:
    """Let Python look no more, until the build ends, through what is in memory now for garbage.

    That is what is imported and parsed, and what Sphinx knows of all pages. It took a third of a build.
    """
    gc.collect()
    gc.freeze()


def _forget_documents(env: BuildEnvironment) -> None:
    """Let Sphinx write pages from the documents that it has stored: in memory all of them are too large."""
    getattr(env, "_write_doc_doctree_cache", {}).clear()


def _markup(app: Sphinx) -> dict[str, Any]:
    """Return the metadata with which MyST reads formulas and notes in a chapter, whatever the book sets."""
    config: Any = app.env.myst_config  # type: ignore[attr-defined]
    if config.enable_extensions >= MARKUP:
        return {}
    extensions = sorted(config.enable_extensions | MARKUP)
    return {"myst": {"enable_extensions": extensions, "dmath_double_inline": True}}


def show_formulas(app: Sphinx) -> None:
    """Let MathJax show the formulas of chapters, also if the other pages have none between dollars."""
    given = app.config.myst_enable_extensions
    app.config.myst_enable_extensions = {*given, *MARKUP}
    override_mathjax(app)
    app.config.myst_enable_extensions = given


def read_notebook(text: str) -> nbformat.NotebookNode:
    """Read a ``.py`` document for MyST-NB: ``read_chapter`` has made it a notebook."""
    return nbformat.reads(text, as_version=4)


def forget_page(app: Sphinx, doctree: nodes.document) -> None:
    """Forget the chapter that was read, so that the next document does not see it."""
    state_of(app.env).page = None


def read_again(app: Sphinx, env: BuildEnvironment) -> None:
    """Let the next build read modules again that were edited while chapters ran."""
    for docname, job in state_of(env).jobs.items():
        if text_of(job.path) != job.module.text:
            env.all_docs[docname] = 0


def write_again(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Write pages again whose frame changed.

    These are all pages if the table of contents changed, which every page shows, and otherwise the chapters
    whose notebook for Colab is another, new or gone.
    """
    state = state_of(env)
    _freeze()
    state.contents = contents(app)
    before, had = state.memory.contents, state.memory.notebooks
    state.memory.contents = state.contents
    has = {
        name: opened_in_colab(app, job, state.book) for name, job in state.jobs.items()
    }
    state.memory.notebooks = has
    if before not in (None, state.contents):
        return sorted(env.found_docs)
    return sorted(name for name in has if had.get(name, "") != has[name])


def compare_copies(app: Sphinx, env: BuildEnvironment) -> None:
    """Run the copies and notebooks of executed chapters, and compare them with their modules."""
    state = state_of(env)
    if app.builder.format != "html":
        return
    chapters = {
        name: Chapter(
            job.module,
            f"{job.digest} {state.ran(job)[0]}",
            partial(_returned, state, job) if name in state.memory.notebooks else None,
        )
        for name, job in state.jobs.items()
        if name not in state.unexecuted
    }
    timeout = app.config.annotated_timeout
    compared = Comparison(state.book, state.store.folder, timeout)
    state.verdicts = compared.kept(chapters)
    if len(state.verdicts) < len(chapters):
        waiting = (
            "Another process compares copies with their modules. Waiting for its end."
        )
        with _locked(_lock_of_outputs(state), waiting):
            state.verdicts = compared.verdicts(chapters)


def _returned(state: State, job: Job) -> dict[str, list[Any]]:
    return state.record(job).returned


def page_context(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Give the theme the list of chapters, the title block and the downloads."""
    state = state_of(app.env)
    state.project.trim()
    if "body" in context:
        address = app.builder.get_target_uri(pagename)
        html = CONTROL.sub("", context["body"])
        context["body"], chapters = with_links(html, address)
        for docname in chapters & set(state.jobs):
            job = state.job(docname)
            write_outputs(Path(app.outdir), job, state.record(job))
    context["book_nav"] = Navigation(app, state.contents, pagename)
    entry = next((e for e in state.contents if e.docname == pagename), None)
    if entry is None or doctree is None or pagename not in state.jobs:
        return
    job = state.job(pagename)
    record, head = state.record(job), state.heads.get(pagename, Head())
    packages = app.config.annotated_verified
    block = title_block(app.builder, entry, head, job.chapter, record, packages)
    try:
        verdict = state.verdicts.get(pagename, Verdict())
        links = write_downloads(
            app, job, record, state.values(job), state.book, verdict
        )
    except ChapterError as error:
        raise AnnotatedError(f"\n{error}") from None
    context["chapter"] = block | links


def remove_pages(app: Sphinx, exception: Exception | None) -> None:
    """Remove what the site has of documents that are no longer there."""
    if exception is None and app.builder.format == "html":
        state = state_of(app.env)
        notebooks = state.book.repository.notebooks
        Written(app).update(notebooks)


def report(app: Sphinx, exception: Exception | None) -> None:
    """Report where the site is and how many chapters were executed, and end the build's state."""
    if exception is None:
        state = state_of(app.env)
        if state.jobs:
            cached = len(state.jobs) - len(state.executed) - len(state.unexecuted)
            ran = len(state.executed)
            chapters = "chapter" if ran == 1 else "chapters"
            counts = f"{ran} {chapters} executed, {cached} from the cache"
            LOGGER.info("%s. The book: %s/index.html", counts, app.outdir)
    end(app.env)
    gc.unfreeze()
