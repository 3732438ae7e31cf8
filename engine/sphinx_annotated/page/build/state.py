"""What the engine keeps while Sphinx builds: one typed state per build, found by ``state_of``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains import Domain
from sphinx.environment import BuildEnvironment
from sphinx.errors import ConfigError

from sphinx_annotated.page.build.book import Book, book_of, is_below
from sphinx_annotated.page.build.contents import Entry
from sphinx_annotated.page.html.code import Highlighter
from sphinx_annotated.read.chapter import Chapter
from sphinx_annotated.read.expressions import of_others, with_others
from sphinx_annotated.read.folds import Folds, folds
from sphinx_annotated.read.manners.styles import STYLES, known
from sphinx_annotated.read.memo import Memo, digest_of
from sphinx_annotated.read.modules import Module, Project
from sphinx_annotated.read.patterns import matches
from sphinx_annotated.run.job import Job, job_of
from sphinx_annotated.run.shapes import by_line, moved, positions
from sphinx_annotated.run.store import Ran, Record, Store, is_current


@dataclass(frozen=True)
class Page:
    """A chapter while Sphinx reads it."""

    chapter: Chapter
    project: Project
    module: Module
    record: Record
    highlighter: Highlighter
    folds: list[Folds]  # of each cell
    values: dict[str, str]  # of the expressions in its prose


@dataclass(frozen=True)
class Head:
    """Paragraphs that move from a page's text into its title block."""

    summary: nodes.Element | None = None
    source: nodes.Element | None = None


@dataclass
class Kept:
    """What is kept from one build to the next: the table of contents, and for each page

    - ``digests``: that of its chapter when it was last read,
    - ``notebooks``: the committed notebook that Colab opens, if there is one,
    - ``uses``: what it shows of modules, with the digests of that when it was last read.
    """

    contents: list[Entry] | None = None
    digests: dict[str, str] = field(default_factory=dict)
    notebooks: dict[str, str] = field(default_factory=dict)
    uses: dict[str, dict[str, str]] = field(default_factory=dict)


class Memory(Domain):
    """Keeps it with Sphinx's environment, which is pickled."""

    name = "annotated"
    label = "Annotated modules"
    initial_data = {"kept": Kept()}  # noqa: RUF012
    data_version = 3

    def clear_doc(self, docname: str) -> None:
        """Forget what a page shows that is read again or gone."""
        self.data["kept"].uses.pop(docname, None)

    def resolve_any_xref(self, *args: Any) -> list[Any]:
        """Return nothing: it is no domain of objects."""
        return []

    def merge_domaindata(self, docnames: Any, otherdata: Any) -> None:
        """Take over what another process has read."""
        uses = otherdata["kept"].uses.items()
        own = self.data["kept"].uses
        own.update((name, used) for name, used in uses if name in docnames)


@dataclass
class State:
    """The chapters of one build."""

    app: Sphinx
    jobs: dict[str, Job] = field(default_factory=dict)
    executed: list[str] = field(default_factory=list)
    unexecuted: dict[str, str] = field(default_factory=dict)  # and why, by chapter
    contents: list[Entry] = field(default_factory=list)
    heads: dict[str, Head] = field(default_factory=dict)
    page: Page | None = None  # of the document that Sphinx is reading
    verdicts: dict[str, Any] = field(default_factory=dict)  # see take/compare.py
    _ran: dict[str, tuple[str, Ran]] = field(default_factory=dict)
    _record: tuple[str, Record] | None = None  # the last one that was asked for

    @cached_property
    def root(self) -> Path:
        """The folder of the sources."""
        return Path(self.app.srcdir)

    @cached_property
    def project(self) -> Project:
        """The modules below the root."""
        styles = styles_of(self.app.config.annotated_style)
        # Two books may have their sites in one folder, and each keeps what it has read.
        name = f".read-{digest_of([str(self.root)])[:8]}.json"
        memo = Memo(self.store.folder.with_name(name))
        return Project(self.root, styles, memo, before.project)

    @cached_property
    def fonts(self) -> list[Path]:
        """The files of the font in which figures are set."""
        return [self.root / name for name in self.app.config.annotated_figure_fonts]

    @cached_property
    def store(self) -> Store:
        """The records of earlier executions."""
        folder = self.app.config.annotated_outputs
        where = self.root / folder if folder else Path(self.app.outdir).parent
        return Store(where / ".executed")

    @cached_property
    def memory(self) -> Kept:
        """What the last build left."""
        kept: Kept = self.app.env.get_domain("annotated").data["kept"]
        return kept

    @cached_property
    def book(self) -> Book:
        """The book around the chapters. The table of contents must be known."""
        config: Any = self.app.config
        return book_of(
            self.project,
            title=config.html_title,
            repository=config.annotated_repository,
            docnames=[e.docname for e in self.contents if e.docname in self.jobs],
            install=config.annotated_install,
            packages=config.annotated_verified,
            bibliographies=getattr(config, "bibtex_bibfiles", []),
            license_name=config.annotated_license,
            pictures=config.annotated_pictures,
            folded=config.annotated_folded,
            glossary=config.annotated_glossary,
        )

    def job(self, docname: str) -> Job:
        """Return the chapter of a page. It is parsed once."""
        if docname not in self.jobs:
            path = Path(self.app.env.doc2path(docname))
            self.jobs[docname] = job_of(self.project, path, self.fonts)
        return self.jobs[docname]

    def use(self, docname: str, what: str) -> None:
        """Note what a page shows of modules: it is read again when that changes, and only then."""
        self.memory.uses.setdefault(docname, {})[what] = self.shown[what]

    @cached_property
    def shown(self) -> Shown:
        """The digests of what pages show of modules."""
        return Shown(self)

    def executes(self, docname: str) -> bool:
        """Return whether the book's settings let this chapter run."""
        config = self.app.config
        return config.nb_execution_mode != "off" and any(
            matches(pattern, docname) for pattern in config.annotated_execute
        )

    def record(self, job: Job) -> Record:
        """Return what the chapter's execution left, which is nothing if it was not executed."""
        if job.docname in self.unexecuted:
            return Record(shapes={"names": [], "calls": []})
        if self._record is None or self._record[0] != job.docname:
            record = self.store.load(job.docname, job.digest)
            assert record is not None, f"{job.docname} was not executed"
            self._record = job.docname, record
        return self._record[1]

    def values(self, job: Job) -> dict[str, str]:
        """Return the values of the expressions in a chapter's prose. All chapters must have run."""

        def of(docname: str) -> Mapping[str, str]:
            other = self.jobs.get(docname)
            return self.ran(other)[1].values if other else {}

        return with_others(self.others(job), self.ran(job)[1].values, of)

    def others(self, job: Job) -> dict[str, list[str]]:
        """Return what a chapter's prose asks of others, see ``of_others``."""

        def work() -> dict[str, list[str]]:
            asked = of_others(job.chapter).items()
            return {text: list(places) for text, places in asked}

        return self.project.once(job.module, "others", work)

    def ran(self, job: Job) -> tuple[str, Ran]:
        """Return a digest of the chapter's record, and a part of it. All chapters must have run."""
        if job.docname in self.unexecuted:
            return "", Ran()
        if job.docname not in self._ran:
            found = self.store.ran(job, self.project)
            assert found is not None, f"{job.docname} was not executed"
            self._ran[job.docname] = found
        return self._ran[job.docname]

    def is_current(self, job: Job) -> bool:
        """Return whether the chapter's outputs are those of its code as it is now."""
        found = self.store.ran(job, self.project)
        if found is None or not is_current(found[1], job, self.project):
            return False
        self._ran[job.docname] = found
        return True

    def shapes(self, job: Job) -> dict[str, Any]:
        """Return the recorded shapes, with the line numbers of the module as it is now."""
        record = self.record(job)
        if job.docname in self.unexecuted:
            return record.shapes
        return moved(record.shapes, record.positions, positions(job.chapter))

    def page_of(self, docname: str) -> Page:
        """Return what directives need to know of a chapter."""
        job = self.job(docname)
        module = self.project.at(job.path)
        tensors = by_line(job.chapter, self.shapes(job)["names"])
        highlighter = Highlighter(job.chapter, module.name, module.package, tensors)
        everything = is_below(docname, self.app.config.annotated_folded)
        return Page(
            job.chapter,
            self.project,
            module,
            self.record(job),
            highlighter,
            folds(job.chapter, everything),
            self.values(job),
        )


class Shown(dict[str, str]):
    """The digests of what pages show of modules: ``lines of <module>`` and others' kinds."""

    kinds: ClassVar[dict[str, Callable[[State, str], str]]] = {}

    def __init__(self, state: State):
        self.state = state

    def __missing__(self, what: str) -> str:
        kind, _, of = what.partition(" of ")
        self[what] = self.kinds[kind](self.state, of)
        return self[what]


def styles_of(setting: str | Mapping[str, str]) -> dict[str, str]:
    """Return the styles of prose by pattern. Raises ``ConfigError`` for one that is not known."""
    named = {"**": setting} if isinstance(setting, str) else dict(setting)
    for pattern, name in named.items():
        if not isinstance(name, str) or not known(name):
            message = f"annotated_style: {pattern} has the style {name!r}. "
            message += f"Name one of {', '.join(STYLES)}."
            raise ConfigError(message)
    return {pattern: known(name) for pattern, name in named.items()}


@dataclass
class Before:
    """The modules that a process which stays has read, for the builds in its forks."""

    project: Project | None = None


before = Before()
_states: dict[BuildEnvironment, State] = {}


def begin(app: Sphinx) -> State:
    """Start the state of a build."""
    state = _states[app.env] = State(app)
    return state


def end(env: BuildEnvironment) -> None:
    """Forget the state of a build that has ended, and keep what it has found out."""
    if state := _states.pop(env, None):
        state.project.memo.save()


def state_of(env: BuildEnvironment) -> State:
    """Return the state of the build that this environment belongs to."""
    return _states[env]


def page_of(env: BuildEnvironment) -> Page:
    """Return the chapter that Sphinx is reading."""
    page = state_of(env).page
    assert page is not None, "this document is not a chapter"
    return page
