"""The recorded searches for the reader: a page to pick any individual, and lineages to walk through.

The directive `individuals` shows the form with which a reader picks an individual. Its data are one file
per search, which the script asks for when the search is chosen. The directive `lineage` shows how the best
individual of a search, or another one, came from the program that the search began with. It needs no
script; with one it is shown step by step. The role `winner` links to the best individual of a search.

A search is a file of JSON lines in the folder `individuals_records`, as `experiments.search.log` writes it.
A search that is not finished is shown as far as it is recorded. The searches are in the order of the file
`individuals_plan`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from drawing.canvas import WIDTH, Canvas
from drawing.instructions import PITCH, Change, changes, difference, read
from quick import is_quick
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.locale import get_translation
from sphinx.util.docutils import SphinxDirective

FOLDER = "_downloads/search"
SUBPROGRAM = re.compile(r"\n(?=S\d+$)", re.MULTILINE)  # the line on which one begins
STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)


def _(text: str) -> str:
    """Return a text in the language of the book."""
    return str(get_translation("sphinx")(text))


@dataclass
class Individual:
    """A program of a search. Without losses and without a reason it has not ended."""

    number: int
    parent: int | None
    mutations: list[str]
    dna: str
    bars: list[float | None]
    losses: list[float] = field(default_factory=list)
    rejected: str = ""
    seconds: float | None = None

    @property
    def finished(self) -> bool:
        """Whether it passed all hurdles and was trained to the end."""
        return len(self.losses) == len(self.bars) + 1

    @property
    def outcome(self) -> str:
        """What became of it, in words."""
        if self.rejected:
            return _("rejected: {}").format(self.rejected)
        if not self.losses:
            return _("not evaluated yet")
        loss = f"{self.losses[-1]:.3f}"
        if self.finished:
            return _("loss {}").format(loss)
        return _("loss {}, stopped at hurdle {}").format(loss, len(self.losses))


def read_search(path: Path) -> list[Individual]:
    """Return the individuals of a search by number. The log may end in the middle of a line."""
    individuals: dict[int, Individual] = {}
    for line in _lines(path):
        if "born" in line:
            given = ("parent", "mutations", "dna", "bars")
            number = line["born"]
            individuals[number] = Individual(number, *map(line.__getitem__, given))
        elif "ended" in line:
            ended = individuals[line["ended"]]
            ended.losses, ended.rejected = line["losses"], line["rejected"]
            ended.seconds = line.get("seconds")
    return [individuals[number] for number in sorted(individuals)]


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a log without an unfinished last one, which is still being written."""
    whole = path.read_bytes().rpartition(b"\n")[0]
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            yield json.loads(line)
        except ValueError as error:
            message = f"{path}, line {number}: no JSON; restore it from Git"
            raise ValueError(message) from error


def best(individuals: list[Individual]) -> Individual | None:
    """Return the individual with the lowest loss among those trained to the end."""
    finished = [individual for individual in individuals if individual.finished]
    return min(finished, key=lambda each: each.losses[-1], default=None)


def lineage(individuals: list[Individual], last: Individual) -> list[Individual]:
    """Return an individual's ancestors, the first one at the front, and itself."""
    by_number = {each.number: each for each in individuals}
    line = [last]
    while line[0].parent is not None:
        line.insert(0, by_number[line[0].parent])
    return line


def data(name: str, individuals: list[Individual]) -> dict[str, Any]:
    """Return a search in the form that the page's script reads.

    A program is a list of numbers of texts, one for the banks and one for each subprogram. A child has all
    but one text in common with its parent, so each is stored once.
    """
    texts: dict[str, int] = {}
    rows = []
    for each in individuals:
        parts = [part.rstrip() for part in SUBPROGRAM.split(each.dna)]
        rows.append(
            {
                "number": each.number,
                "parent": each.parent,
                "mutations": each.mutations,
                "program": [texts.setdefault(part, len(texts)) for part in parts],
                "loss": each.losses[-1] if each.losses else None,
                "finished": each.finished,
                "rejected": each.rejected,
                "hurdle": 0 if each.finished else len(each.losses),
                "seconds": each.seconds,
            }
        )
    winner = best(individuals)
    return {
        "name": name,
        "best": winner.number if winner else None,
        "texts": list(texts),
        "individuals": rows,
    }


def script(name: str, individuals: list[Individual]) -> str:
    """Return the data of a search as a script, which a page opened from a file may load, too."""
    text = json.dumps(data(name, individuals), separators=(",", ":"))
    return f"(window.searches??={{}})[{json.dumps(name)}]={text};\n"


def kind_of(mutation: str) -> str:
    """Return the name of a mutation in words, as the script's `KINDS` does."""
    names = {
        "delete": _("delete"),
        "insert": _("insert"),
        "delete_and_insert": _("delete and insert"),
        "mutate_field": _("mutate field"),
        "swap": _("swap"),
        "mutate_bank": _("mutate bank"),
    }
    return names.get(mutation, mutation.replace("_", " "))


def changed(parent: str, child: str) -> dict[int, list[Change]]:
    """Return the subprograms in which two programs differ, with their changes."""
    pairs = zip(read(parent), read(child), strict=True)
    found = {s: changes(old, new) for s, (old, new) in enumerate(pairs)}
    return {
        s: each
        for s, each in found.items()
        if any(change.kind != "same" or change.rerouted for change in each)
    }


def in_words(found: dict[int, list[Change]]) -> str:
    """Return what changed: `S3: new DCONV 3X1; S9: MAX 0 became MAX -0.57`.

    Of instructions that only read other values, it is said if nothing else has changed in their subprogram.
    """
    parts = []
    for s, subprogram in found.items():
        words = [text for change in subprogram if (text := _words(change))]
        what = _(", ").join(words) or _rerouted(subprogram)
        parts.append(_("{}: {}").format(f"S{s}", what))
    return _("; ").join(parts) or _("a part without effect")


def _words(change: Change) -> str:
    old, new = change.old, change.new
    if old is None and new is not None:
        return _("new {}").format(new.label)
    if new is None and old is not None:
        return _("{} removed").format(old.label)
    if old and new and change.kind == "changed":
        return _("{} became {}").format(old.label, new.label)
    return ""


def _rerouted(subprogram: list[Change]) -> str:
    """Return which instructions read other values: `S2 reads the input`."""
    nodes = [change.new for change in subprogram if change.new]
    names = [_("the input"), _("the second input"), *(node.label for node in nodes)]
    return _(", ").join(
        _("{} reads {}").format(
            change.new.label, _(" and ").join(names[v] for v in change.rerouted)
        )
        for change in subprogram
        if change.new and change.rerouted
    )


def drawn(found: dict[int, list[Change]], title: str) -> str:
    """Return the changed subprograms as a picture, three side by side."""
    ends = [0.0, 0.0, 0.0]
    places = []
    for s, subprogram in found.items():
        column = ends.index(min(ends))
        places.append((s, subprogram, column, ends[column]))
        ends[column] += PITCH * (len(subprogram) + 3.5)
    words = _("The subprograms that differ from the parent's. {}.").format(
        in_words(found)
    )
    canvas = Canvas(max(ends), title, words)
    for s, subprogram, column, y in places:
        x = (2, 136, 274)[column] if len(found) > 1 else WIDTH / 2 - 60
        difference(canvas, x, y + 16, f"S{s}", subprogram)
    return STYLE.sub("", canvas.svg())


def lineage_html(name: str, line: list[Individual], page: str = "") -> str:
    """Return a lineage as a list: each step with its mutation, its loss and the difference.

    `page` is the address of the page with all individuals.
    """
    steps = []
    for parent, each in zip([None, *line], line, strict=False):
        number = escape(_("Individual {}").format(each.number))
        link = f'<a href="{page}#{escape(name)}/{each.number}">{number}</a>'
        if parent is None:
            words, picture = _("the program that the search began with"), ""
        else:
            found = changed(parent.dna, each.dna)
            kinds = _(", then ").join(map(kind_of, each.mutations))
            words = _("{}. {}").format(kinds, in_words(found))
            title = _("Individual {} and its parent {}").format(
                each.number, parent.number
            )
            picture = drawn(found, title) if found else ""
            if each.finished and parent.finished:
                change = each.losses[-1] - parent.losses[-1]
                words += _(". Loss {} against its parent").format(f"{change:+.3f}")
        head = _("{}, {}").format(link, escape(each.outcome))
        steps.append(f"<li><p>{head}</p><p>{escape(words)}</p>{picture}</li>")
    label = _("Lineage of individual {} of {}").format(line[-1].number, name)
    return f'<ol class="lineage" aria-label="{escape(label)}">{"".join(steps)}</ol>'


def form_html(names: list[str], folder: str) -> str:
    """Return the form that the script fills. Without a script it says what is missing."""
    options = "".join(f"<option>{escape(name)}</option>" for name in names)
    scripts_off = _(
        "Picking an individual needs a script, and scripts are off. The lineages below are shown without one."
    )
    # Babel finds no word within an f-string.
    search, individual, best = _("Recorded search"), _("Individual"), _("Best")
    return (
        f'<div class="individuals" data-folder="{escape(folder)}">'
        f"<noscript><p>{escape(scripts_off)}</p></noscript>"
        f'<form hidden><label>{search} <select name="search">{options}</select></label> '
        f'<label>{individual} <input name="number" type="number" min="0" value="0"></label> '
        f'<button type="button" name="best">{best}</button></form>'
        '<svg class="population" viewBox="0 0 400 160" aria-hidden="true" hidden></svg>'
        '<div class="individual" aria-live="polite"></div></div>'
    )


def recorded(app: Sphinx) -> dict[str, Path]:
    """Return the recorded searches by name, in the order of the plan."""
    source = Path(app.srcdir)
    plan = tomllib.loads((source / app.config.individuals_plan).read_text("utf-8"))
    logs = {
        name: source / app.config.individuals_records / f"{name}.jsonl"
        for name in plan["search"]
    }
    return {name: path for name, path in logs.items() if path.is_file()}


def shown_searches(env: BuildEnvironment) -> dict[str, Path]:
    """Return the recorded searches by name, and note them as known to the page that is being read."""
    searches = recorded(env.app)
    env.metadata[env.docname]["searches"] = list(searches)
    return searches


def outdated(app: Sphinx, env: BuildEnvironment, *changes: set[str]) -> list[str]:
    """Read a page again if there are other searches than those that it knows."""
    now = list(recorded(app))
    return [
        page
        for page, noted in env.metadata.items()
        if noted.get("searches", now) != now
    ]


def nothing() -> nodes.paragraph:
    text = _("No search has been recorded yet. `make search` records one.")
    return nodes.paragraph("", text)


class Individuals(SphinxDirective):
    """Show the form that picks an individual."""

    def run(self) -> list[nodes.Node]:
        searches = shown_searches(self.env)
        for path in searches.values():
            self.env.note_dependency(str(path))
        if not searches:
            return [nothing()]
        folder = "../" * self.env.docname.count("/") + FOLDER
        return [nodes.raw("", form_html(list(searches), folder), format="html")]


class Lineage(SphinxDirective):
    """Show the lineage of the best individual of a search: `lineage transformer-0`, or of all searches."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        searches = shown_searches(self.env)
        wanted = self.arguments or list(searches)
        shown: list[nodes.Node] = []
        for name in wanted:
            if name not in searches:
                raise self.error(
                    f"there is no recorded search {name!r}; there are {list(searches)}"
                )
            self.env.note_dependency(str(searches[name]))
            individuals = read_search(searches[name])
            winner = best(individuals)
            if winner is None:
                continue
            shown.append(nodes.rubric("", name))
            steps = lineage(individuals, winner)
            shown.append(
                nodes.raw("", lineage_html(name, steps, self._page()), format="html")
            )
        return shown or [nothing()]

    def _page(self) -> str:
        """Return the address of the page with all individuals, from this one."""
        page: str = self.config.individuals_page
        if page == self.env.docname:
            return ""
        return str(self.env.app.builder.get_relative_uri(self.env.docname, page))


def winner_role(
    role: str, source: str, name: str, line: int, inliner: Any, *_more: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Link to the best individual of a search, which the form then shows: {winner}`transformer-0`."""
    env: BuildEnvironment = inliner.document.settings.env
    path = shown_searches(env).get(name)
    found = best(read_search(path)) if path else None
    if path is None or found is None:
        return [nodes.Text(name)], []
    env.note_dependency(str(path))
    words = _("individual {}").format(found.number)
    return [nodes.reference(source, words, refuri=f"#{name}/{found.number}")], []


def add_script(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give the script and the style to the pages that need them."""
    body = context.get("body") or ""
    if 'class="individuals"' in body or 'class="lineage"' in body:
        app.add_js_file("individuals.js", loading_method="defer")
        app.add_css_file("individuals.css")


def write_data(app: Sphinx, exception: Exception | None) -> None:
    """Write the data of each search into the site."""
    if exception is not None or app.builder.format != "html" or is_quick(app):
        return
    for name, path in recorded(app).items():
        file = Path(app.outdir, FOLDER, f"{name}.js")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(script(name, read_search(path)), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("individuals_records", "", "env", types=[str])
    app.add_config_value("individuals_plan", "", "env", types=[str])
    app.add_config_value("individuals_page", "", "env", types=[str])
    app.add_directive("individuals", Individuals)
    app.add_directive("lineage", Lineage)
    app.add_role("winner", winner_role)
    app.connect("env-get-outdated", outdated)
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write_data)
    return {
        "version": "1",
        "env_version": 1,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
