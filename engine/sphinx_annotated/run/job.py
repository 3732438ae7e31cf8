"""A chapter to execute, with the digest of all that its outputs depend on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sphinx_annotated.read.chapter import Chapter
from sphinx_annotated.read.digest import content, digest, recorded, versions
from sphinx_annotated.read.modules import Module, Project

MATPLOTLIBRC = Path(__file__).parent / "matplotlibrc"
RECORDER = Path(__file__).parent / "recorder.py"
CURVES = Path(__file__).parent / "curves.py"
NARROW = Path(__file__).parent / "narrow.py"
FONTS = Path(__file__).parent / "fonts.py"
PROGRAM = Path(__file__).parent / "program.py"
READS = Path(__file__).parent / "reads.py"
RETURNED = Path(__file__).parent / "returned.py"
KERNEL_FILES = (
    *(MATPLOTLIBRC, RECORDER, CURVES, NARROW),
    *(FONTS, PROGRAM, READS, RETURNED),
)


@dataclass(frozen=True)
class Job:
    """A chapter to execute."""

    docname: str
    path: Path
    module: Module
    digest: str
    package: str
    versions: dict[str, str]
    recorded: dict[str, list[str]] = field(default_factory=dict)  # functions, by module

    @property
    def chapter(self) -> Chapter:
        """The module's cells and rows."""
        return self.module.chapter


def job_of(project: Project, path: Path, fonts: Sequence[Path] = ()) -> Job:
    """Return the job of executing the chapter in a file, with figures set in ``fonts``."""
    module = project.at(path)
    others = project.dependencies(module)
    names = {m.name: recorded(m, project) for m in others}
    return Job(
        docname=project.docname(module),
        path=path,
        module=module,
        digest=digest(module, project, kernel_files(fonts, project)),
        package=module.package,
        versions=versions(module, others, project),
        recorded={name: found for name, found in names.items() if found},
    )


def kernel_files(fonts: Sequence[Path], project: Project) -> str:
    """Return the digests of the files that every kernel uses: outputs depend on them."""
    return "".join(project.seen(path, content) for path in (*KERNEL_FILES, *fonts))
