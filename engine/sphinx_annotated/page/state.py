"""What the engine keeps while Sphinx builds: one typed state per build, found by ``state_of``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains import Domain
from sphinx.environment import BuildEnvironment
from sphinx.errors import ConfigError

from sphinx_annotated.page.book import Book, book_of, is_below
from sphinx_annotated.page.code import Highlighter
from sphinx_annotated.page.contents import Entry
from sphinx_annotated.read.expressions import with_others
from sphinx_annotated.read.folds import Folds, folds
from sphinx_annotated.read.modules import Module, Project
from sphinx_annotated.read.parse import Chapter
from sphinx_annotated.read.patterns import matches
from sphinx_annotated.read.styles import STYLES, known
from sphinx_annotated.run.execute import Job, Record, Store, is_current, job_of
from sphinx_annotated.run.shapes import by_line, moved, positions


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


class Memory(Domain):
    """What is kept from one build to the next. Sphinx pickles it with its environment."""

    name = "annotated"
    label = "Annotated modules"
    initial_data = {"digests": {}, "contents": None, "notebooks": set()}  # noqa: RUF012

    @property
    def digests(self) -> dict[str, str]:
        """The digest of each chapter when its page was last read."""
        found: dict[str, str] = self.data["digests"]
        return found

    @digests.setter
    def digests(self, digests: dict[str, str]) -> None:
        self.data["digests"] = digests

    @property
    def contents(self) -> list[Entry] | None:
        """The table of contents of the last build."""
        found: list[Entry] | None = self.data["contents"]
        return found

    @contents.setter
    def contents(self, entries: list[Entry]) -> None:
        self.data["contents"] = entries

    @property
    def notebooks(self) -> set[str]:
        """The chapters that had a committed notebook in the last build."""
        found: set[str] = self.data["notebooks"]
        return found

    @notebooks.setter
    def notebooks(self, docnames: set[str]) -> None:
        self.data["notebooks"] = docnames

    def resolve_any_xref(self, *args: Any) -> list[Any]:
        """Return nothing: it is no domain of objects."""
        return []

    def merge_domaindata(self, docnames: Any, otherdata: Any) -> None:
        """Reading in parallel changes nothing here."""


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

    @cached_property
    def root(self) -> Path:
        """The folder of the sources."""
        return Path(self.app.srcdir)

    @cached_property
    def project(self) -> Project:
        """The modules below the root."""
        return Project(self.root, styles_of(self.app.config.annotated_style))

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
    def memory(self) -> Memory:
        """What the last build left."""
        memory = self.app.env.get_domain("annotated")
        assert isinstance(memory, Memory)
        return memory

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
        record = self.store.load(job.docname, job.digest)
        assert record is not None, f"{job.docname} was not executed"
        return record

    def values(self, job: Job) -> dict[str, str]:
        """Return the values of the expressions in a chapter's prose. All chapters must have run."""

        def of(docname: str) -> Mapping[str, str]:
            other = self.jobs.get(docname)
            return self.record(other).values if other else {}

        return with_others(job.chapter, self.record(job).values, of)

    def is_current(self, job: Job) -> bool:
        """Return whether the chapter's outputs are those of its code as it is now."""
        record = self.store.load(job.docname, job.digest)
        return record is not None and is_current(record, job, self.project)

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


def styles_of(setting: str | Mapping[str, str]) -> dict[str, str]:
    """Return the styles of prose by pattern. Raises ``ConfigError`` for one that is not known."""
    named = {"**": setting} if isinstance(setting, str) else dict(setting)
    for pattern, name in named.items():
        if not isinstance(name, str) or not known(name):
            message = f"annotated_style: {pattern} has the style {name!r}. "
            message += f"Name one of {', '.join(STYLES)}."
            raise ConfigError(message)
    return {pattern: known(name) for pattern, name in named.items()}


_states: dict[BuildEnvironment, State] = {}


def begin(app: Sphinx) -> State:
    """Start the state of a build."""
    state = _states[app.env] = State(app)
    return state


def end(env: BuildEnvironment) -> None:
    """Forget the state of a build that has ended."""
    _states.pop(env, None)


def state_of(env: BuildEnvironment) -> State:
    """Return the state of the build that this environment belongs to."""
    return _states[env]


def page_of(env: BuildEnvironment) -> Page:
    """Return the chapter that Sphinx is reading."""
    page = state_of(env).page
    assert page is not None, "this document is not a chapter"
    return page
