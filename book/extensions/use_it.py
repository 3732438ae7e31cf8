"""The page "Use it": the presets with their sizes, which are counted here, and where to install from.

``{presets}`` has a line for each preset: its name, a colon, and what it is for. The address of the
repository is in ``_config.yml`` alone, so ``{install}`` and ``{repository}`` write it on the page.
``{named}`` gives a section the names of the package that it explains, so that other books can link to them.
"""

from __future__ import annotations

import inspect
import json
import pydoc
from dataclasses import replace
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.util.docutils import ReferenceRole, SphinxDirective
from sphinx_annotated.page.build.repository import Repository as Address

SUPPORTED = Path(__file__).parents[2] / "benchmarks" / "supported" / "supported.json"
WAYS = {
    "pickle": "`pickle`",
    "compile": "compile",
    "export": "export",
    "export, free length": "free length",
    "ONNX": "ONNX",
}
RECORD = "Write it by `python -m benchmarks.supported.measure`, or restore it from Git."
NAMED = "presets: each line needs the name of a preset, a colon, and what it is for"


def millions(config: Any) -> str:
    """Return the parameters of a model, in millions."""
    import torch

    from labml_primer.presets import LanguageModel

    with torch.device("meta"):
        found = sum(p.numel() for p in LanguageModel(config).parameters()) / 1e6
    return f"{found:.1f}" if found < 10 else f"{found:,.0f}"


class Tabled(SphinxDirective):
    """A directive that shows a table."""

    def _table(self, lines: list[str], name: str) -> nodes.container:
        """Return a table from its lines of Markdown, in a box of this class."""
        box = nodes.container(classes=[name])
        box.document = self.state.document  # cells get their source, and are translated
        self.state.nested_parse(StringList(lines, self.env.docname), 0, box)
        return box


class Presets(Tabled):
    """The table of all presets."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        from labml_primer import presets

        self.env.note_dependency(inspect.getfile(presets))
        purposes: dict[str, str] = {}
        for number, line in enumerate(self.content, start=self.content_offset + 1):
            name, colon, purpose = line.partition(":")
            if not colon or name not in presets.PRESETS:
                raise self.error(f"{NAMED}; line {number} is {line!r}")
            purposes[name] = purpose.strip()
        if missing := [name for name in presets.PRESETS if name not in purposes]:
            raise self.error(f"{NAMED}; there is no line for {', '.join(missing)}")
        rows = [["preset", "for", *presets.SIZES]]
        rows.append(["---", "---", *("--:" for _ in presets.SIZES)])
        for name, purpose in purposes.items():
            config = presets.PRESETS[name]
            sizes = [
                replace(config, vocab_size=256, **size)
                if label == "small"
                else config
                if label == "search"
                else replace(config, **size)
                for label, size in presets.SIZES.items()
            ]
            rows.append([f"`{name}`", purpose, *map(millions, sizes)])
        lines = [f"| {' | '.join(row)} |" for row in rows]
        return [self._table(lines, "presets")]


class Supported(Tabled):
    """The table of what each preset can be, as it was recorded."""

    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(str(SUPPORTED))
        if not SUPPORTED.is_file():
            raise self.error(f"supported: {SUPPORTED} is missing. {RECORD}")
        record = json.loads(SUPPORTED.read_text(encoding="utf-8"))
        lines = [f"| preset | {' | '.join(WAYS.values())} |"]
        lines.append(f"|{' --- |' * (len(WAYS) + 1)}")
        for name, found in record["presets"].items():
            cells = [entry(found[way]) for way in WAYS]
            lines.append(f"| `{name}` | {' | '.join(cells)} |")
        box = self._table(lines, "supported")
        versions = ", ".join(f"{n} {v}" for n, v in record["versions"].items())
        said = _("With {}, on {}.")  # a word, no message: each record has other numbers
        text = said.format(versions.replace("+cpu", ""), record["date"])
        return [box, nodes.paragraph("", text, translatable=False)]


def entry(found: bool | int) -> str:
    """Return a cell: yes, no, or from which length on."""
    if isinstance(found, bool):
        return "yes" if found else "no"
    return f"from {found} token{'s' * (found > 1)} on" if found else "no"


class Install(SphinxDirective):
    """The command that installs the package from its repository."""

    def run(self) -> list[nodes.Node]:
        url = self.config.annotated_repository.get("url")
        command = f"pip install git+{url}" if url else "pip install labml_primer"
        return [nodes.literal_block(command, command, language="sh")]


class Named(SphinxDirective):
    """Names as they are imported, whose links from elsewhere lead to this section."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        python: Any = self.env.get_domain("py")
        section = self.state_machine.node
        for name in self.arguments[0].split():
            found = pydoc.locate(name)
            if found is None:
                raise self.error(f"named: there is no {name}")
            kind = "function" if inspect.isfunction(found) else "data"
            kind = "class" if inspect.isclass(found) else kind
            section["ids"].append(name)
            python.note_object(name, kind, name, location=section)
        return []


class Repository(ReferenceRole):
    """A link to the repository, or with `words <path>` to a file of it."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        repository = Address(**self.config.annotated_repository)
        if not repository.url:
            return [nodes.Text(self.title)], []
        path = self.target if self.has_explicit_title else ""
        address = repository.file(path) if path else repository.url
        return [nodes.reference("", self.title, refuri=address)], []


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("presets", Presets)
    app.add_directive("install", Install)
    app.add_directive("named", Named)
    app.add_directive("supported", Supported)
    app.add_role("repository", Repository())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
