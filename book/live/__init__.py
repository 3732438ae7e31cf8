"""The page "Write with it": the `live` directive shows the recorded example and the controls.

`static/live` has the scripts, and the weights that `experiments.harness.export` wrote. `example.json` has the
models' texts. The build fails if these do not belong together, or not to the recorded runs.
"""

from __future__ import annotations

import json
import math
from hashlib import sha256
from pathlib import Path
from typing import Any

from docutils import nodes
from jinja2 import Environment
from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.locale import _
from sphinx.util.docutils import SphinxDirective

from experiments.records.lines import read_lines

FOLDER = Path(__file__).parent
FILES = FOLDER / "static" / "live"
EXAMPLE = FOLDER / "example.json"
RESULTS = FOLDER.parents[1] / "experiments" / "results"
NAMES = ("transformer", "primer-ez")
GAP = 4  # pixels between the squares of two heads, as in page.js
VISIBLE = {"\n": "↵", " ": "␣"}
AGAIN = (
    "Train and export again: make experiments ONLY=live, then "
    ".venv/bin/python -m experiments.harness.export."
)

Json = dict[str, Any]


class LiveError(SphinxError):
    """Ends the build: weights, example and records disagree."""

    category = "The page with live models was not built"


def header(name: str) -> Json:
    """Return what a file of weights says of itself. Raises `LiveError` if it is broken."""
    path = FILES / f"{name}.bin"
    file = path.read_bytes() if path.is_file() else b""
    length = int.from_bytes(file[:4], "little")
    try:
        found: Json = json.loads(file[4 : 4 + length])
    except ValueError:
        raise LiveError(f"{path} is missing or has no header. {AGAIN}") from None
    if sha256(file[4 + length :]).hexdigest() != found["digest"]:
        raise LiveError(f"{path} does not have the digest in its header. {AGAIN}")
    return found | {"bytes": len(file)}


def check(headers: dict[str, Json], example: Json, records: dict[str, Json]) -> None:
    """Raise `LiveError` unless weights, example and recorded runs belong together."""
    digests = {model["name"]: model["digest"] for model in example["models"]}
    for name, found in headers.items():
        if digests.get(name) != found["digest"]:
            raise LiveError(
                f"{EXAMPLE} was written by other weights of {name}. {AGAIN}"
            )
        record = records.get(name)
        if record is None:
            # A run that has not ended has no record, and its weights must say so.
            if found["steps"] >= found["planned_steps"]:
                raise LiveError(f"the run of {name} ended without a record. {AGAIN}")
            continue
        if record["digest"] != found["run"]:
            raise LiveError(f"the weights of {name} are of another run. {AGAIN}")
        if not math.isclose(reported(record), found["loss"], abs_tol=1e-3):
            raise LiveError(
                f"the weights of {name} do not have the recorded loss. {AGAIN}"
            )


def reported(record: Json) -> float:
    """Return a run's final loss, the mean of the two reported plays."""
    plays = list(record["curve"]["held_out"].values())[1:]  # the first selects rates
    return float(sum(play[-1] for play in plays) / len(plays))


def read() -> tuple[dict[str, Json], Json, dict[str, Json]]:
    """Return the headers, the example and the records, checked."""
    headers = {name: header(name) for name in NAMES}
    example: Json = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    runs = read_lines(RESULTS / "live.jsonl")
    records = {name: runs[f"{name}-0"] for name in NAMES if f"{name}-0" in runs}
    check(headers, example, records)
    return headers, example, records


# -- the directives ------------------------------------------------------------------------


class Live(SphinxDirective):
    """Shows the recorded example, and what turns it into a live one."""

    def run(self) -> list[nodes.Node]:
        headers, example, _records = read()
        _depend(self)
        return [nodes.raw("", page(headers, example), format="html")]


class LiveModels(SphinxDirective):
    """A table: the loss of both models, next to that of the book's other runs."""

    def run(self) -> list[nodes.Node]:
        headers, _example, _records = read()
        _depend(self)
        # PyTorch is imported for this page alone.
        from experiments.records.query import read_runs

        in_short_runs = read_runs(plan="speedup", model=headers, ends=True)
        rows = []
        for name, found in headers.items():
            short = [run["loss"][-1] for run in in_short_runs[name]]
            steps, planned = found["steps"], found["planned_steps"]
            rows.append(
                [
                    found["title"],
                    f"{found['parameters']:,}",
                    _("{} of {}").format(f"{steps:,}", f"{planned:,}")
                    if steps < planned
                    else f"{steps:,}",
                    f"{found['loss']:.3f}",
                    f"{sum(short) / len(short):.3f}",
                    f"{found['rounding']:+.5f}".replace("-", "−"),
                    f"{found['bytes'] / 1000:,.0f} kB",
                ]
            )
        from experiments.records.counts import best_counts

        order, loss = best_counts("characters", headers[NAMES[0]]["planned_steps"])
        _order, short_loss = best_counts(
            "characters", in_short_runs[NAMES[0]][0]["steps"][-1]
        )
        title = _("counts of the same text, {}-gram").format(order)
        rows.append([title, "", "", f"{loss:.3f}", f"{short_loss:.3f}", "", ""])
        caption = _("Losses in nats per character, the mean of the two reported plays")
        names = [
            _("model"),
            _("parameters"),
            _("steps"),
            _("loss"),
            _("loss in the short runs"),
            _("added by rounding"),
            _("file"),
        ]
        return [
            nodes.raw(
                "",
                render(TABLE, caption=caption, names=names, rows=rows),
                format="html",
            )
        ]


def _depend(directive: SphinxDirective) -> None:
    for path in (
        EXAMPLE,
        FOLDER / "live.html",
        *FILES.iterdir(),
        RESULTS / "speedup.jsonl",
        RESULTS / "live.jsonl",
        RESULTS / "counts.json",
    ):
        directive.env.note_dependency(str(path))


TABLE = """
<table class="docutils"><caption>{{ caption }}</caption>
<thead><tr>{% for name in names %}<th scope="col" class="{{ "text-right" if loop.index > 1 }}">{{ name }}</th>
{%- endfor %}</tr></thead>
<tbody>{% for row in rows %}<tr><th scope="row">{{ row[0] }}</th>
{%- for cell in row[1:] %}<td class="text-right">{{ cell }}</td>{% endfor %}</tr>{% endfor %}</tbody></table>
"""


def sources(headers: dict[str, Json]) -> list[Json]:
    """Return what scripts need to load models. An address is relative to the scripts' own."""
    return [
        {
            "name": name,
            "title": found["title"],
            "url": f"{name}.bin?v={found['digest'][:8]}",
            "bytes": found["bytes"],
            "digest": found["digest"],
        }
        for name, found in headers.items()
    ]


def page(headers: dict[str, Json], example: Json) -> str:
    """Return the part of the page that the script takes over."""
    first = headers[NAMES[0]]
    return render(
        (FOLDER / "live.html").read_text(encoding="utf-8"),
        data={"sources": sources(headers), "context": first["context"]},
        megabytes=sum(found["bytes"] for found in headers.values()) / 1e6,
        example=example,
        vocab_size=len(first["symbols"]),
        layers=first["layers"],
        heads=first["heads"],
        models=[column(headers[m["name"]], example, m) for m in example["models"]],
    )


def column(found: Json, example: Json, written: Json) -> Json:
    """Return what a model's column shows: its text, its attention, the next character."""
    whole, weights = example["prompt"] + written["text"], written["attention"]
    start = len(whole) - len(weights)  # the model's window
    symbols = []
    for at, weight in enumerate(weights, start):
        own = "live-written " if at >= len(example["prompt"]) else ""
        kinds = own + ("live-newline" if whole[at] == "\n" else "")
        symbols.append({"text": whole[at], "kinds": kinds, "shade": math.sqrt(weight)})
    most = max(range(len(weights)), key=weights.__getitem__)
    return {
        "name": written["name"],
        "title": found["title"],
        "earlier": whole[:start],
        "symbols": symbols,
        "back": len(weights) - 1 - most,
        "most": f"{weights[most]:.0%}",
        "next": [
            {
                "symbol": VISIBLE.get(symbol, symbol),
                "before": before,
                "after": after,
                "words": f"{before:.0%} → {after:.0%}",
            }
            for symbol, before, after in written["next"]
        ],
        "width": found["heads"] * (found["context"] + GAP),
        "height": found["layers"] * (found["context"] + GAP),
    }


def render(template: str, **values: Any) -> str:
    return Environment(autoescape=True).from_string(template).render(_=_, **values)


# -- Sphinx --------------------------------------------------------------------------------


def add_static(app: Sphinx, config: Any) -> None:
    config.html_static_path = [*config.html_static_path, str(FOLDER / "static")]


def add_files(
    app: Sphinx, pagename: str, templatename: str, context: Json, doctree: Any
) -> None:
    """Give the style and the script to the page that has the directive, and to no other."""
    if 'class="live"' in (context.get("body") or ""):
        app.add_css_file("live/live.css")
        app.add_js_file("live/page.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    from live import panels

    panels.setup(app)
    app.add_directive("live", Live)
    app.add_directive("live-models", LiveModels)
    app.connect("config-inited", add_static)
    app.connect("html-page-context", add_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
