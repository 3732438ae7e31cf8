"""The book around a chapter: its title, address, chapters, versions and references."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sphinx_annotated.page.build.repository import Repository
from sphinx_annotated.read.folds import Folds, folds
from sphinx_annotated.read.modules import Module, Project

LOCK = "requirements.lock"
GLOSSARY = re.compile(r"^`{3,}\{glossary\}\n(.*?)^`{3,}$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Book:
    """The book, as its configuration describes it."""

    title: str
    project: Project
    url: str  # address of the site, with a slash at the end
    install: dict[str, str]  # package -> what pip gets to install it
    repository: Repository = field(default_factory=Repository)
    titles: dict[str, str] = field(default_factory=dict)  # docname -> title
    verified: str = ""  # versions that its notebooks are tested with
    cite: Callable[[str], str] = str  # key -> "Authors (year)" as Markdown
    license_name: str = ""  # of the code, as "MIT"
    pictures: str = ""  # the package whose modules draw pictures
    folded: tuple[str, ...] = ()  # folders of chapters whose code is all folded
    terms: dict[str, str] = field(default_factory=dict)  # name -> page and anchor

    def address(self, docname: str) -> str:
        """The address of a page."""
        return f"{self.url}{docname}.html"

    def folds(self, module: Module) -> list[Folds]:
        """What is folded in each cell of a chapter."""
        everything = is_below(self.project.docname(module), self.folded)
        return folds(module.chapter, everything)


def book_of(
    project: Project,
    title: str,
    repository: Mapping[str, str],
    docnames: Iterable[str],
    install: dict[str, str],
    packages: list[str],
    bibliographies: Iterable[str],
    license_name: str = "",
    pictures: str = "",
    folded: Iterable[str] = (),
    glossary: str = "",
) -> Book:
    """Return the book of these chapters, in order."""
    root = project.root
    online = Repository(**repository)
    titles = {d: title_of(project, project.at(root / f"{d}.py")) for d in docnames}
    return Book(
        title=title,
        project=project,
        url=online.pages,
        install=install,
        repository=online,
        titles=titles,
        verified=verified(root / LOCK, packages),
        cite=_citations([root / name for name in bibliographies]),
        license_name=license_name,
        pictures=pictures,
        folded=tuple(folded),
        terms=_terms(root, glossary) if glossary else {},
    )


def title_of(project: Project, module: Module) -> str:
    """Return the title of a chapter."""
    return project.once(module, "title", lambda: module.chapter.title)


def is_below(docname: str, folders: Iterable[str]) -> bool:
    """Return whether a page is in one of the folders."""
    return any(docname.startswith(f"{folder.rstrip('/')}/") for folder in folders)


def verified(lock: Path, packages: list[str]) -> str:
    """Return Python and these packages with the versions in the lock file."""
    if not packages or not lock.is_file():
        return ""
    text = lock.read_text(encoding="utf-8")
    python = re.search(r"--python-version ([\d.]+)", text)
    found = [f"Python {python[1]}"] if python else []
    for name in packages:
        pinned = re.search(rf"^{name}==([\d.]+)", text, re.MULTILINE | re.IGNORECASE)
        if pinned is None:
            raise LookupError(
                f"{lock}:1: does not pin {name}. Pin it, or remove it from annotated_verified."
            )
        found.append(f"{name} {pinned[1]}")
    return ", ".join(found)


def _citations(paths: list[Path]) -> Callable[[str], str]:
    """Return a function from a key to linked authors and year."""
    if not paths:
        return str
    from pybtex.database import parse_file

    entries = {k: e for path in paths for k, e in parse_file(str(path)).entries.items()}

    def cite(key: str) -> str:
        entry = entries[key]
        names = [str(" ".join(person.last_names)) for person in entry.persons["author"]]
        names = [name.replace("{", "").replace("}", "") for name in names]
        authors = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
        year = entry.fields.get("year")  # slides, for example, may have none
        text = f"{authors} ({year})" if year else authors
        return f"[{text}]({entry.fields['url']})" if "url" in entry.fields else text

    return cite


def _terms(root: Path, name: str) -> dict[str, str]:
    """Return the terms of a glossary, in lower case, with the page and the anchor of each."""
    text = (root / name).read_text(encoding="utf-8")
    page = Path(name).with_suffix("").as_posix()
    found: dict[str, str] = {}
    for block in GLOSSARY.findall(text):
        for term in re.findall(r"^[^\s:].*$", block, re.MULTILINE):
            # As Sphinx names it. A second term of the same name gets a number there.
            anchor = re.sub(r"[^a-zA-Z0-9._]+", "-", f"term-{term}").strip("-")
            place = f"{page}.html#{anchor}"
            found[term.lower()] = f"{page}.html" if place in found.values() else place
    return found
