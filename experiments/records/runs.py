"""The records of long runs: a file for each plan in `results`, and a line for each of the plan's runs.

A plan's run may already be recorded by another plan. Then its line only says where: `recorded_in` has the
plan, `recorded_as` the name there, and `digest` what that run must be.

`experiments.records.query` has what chapters read of them.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.records.lines import (
    Line,
    read_lines,
    replace_text,
    write_line,
    write_lines,
)
from labml_primer.training.corpus import VALIDATION_PLAYS

RESULTS = Path(__file__).parents[1] / "results"
STEP_TIMES = "step_times.json"

HELD_OUT = {
    "characters": VALIDATION_PLAYS,
    "subwords": VALIDATION_PLAYS,
    "code": ("geometry", "logic", "stats"),
}
"""The texts that no run learns from, of each data. The first selects rates; the others are reported."""

TUNING_PLAY, *REPORTED_PLAYS = VALIDATION_PLAYS
"""The comedy selects learning rates; the tragedy and the history are reported. Whole plays have no
scene in common, so the text that selected a rate is not part of what is reported."""

TUNING = "tuning-"
"""The names of the short runs that select a rate begin with it."""

DECIMALS = 6
"""Of a loss that a chapter reads. The losses of two seeds differ by hundredths."""

RunRecord = dict[str, Any]
"""A finished run: configuration, digest, versions, machine, and the curve of its losses."""


# -- the records of a plan -------------------------------------------------------------------


def file_of(plan: str, folder: Path) -> Path:
    """Return the file of a plan's records."""
    return folder / f"{plan}.jsonl"


def read_records(folder: Path) -> dict[str, dict[str, RunRecord]]:
    """Return what each plan has recorded itself, by the names of its runs."""
    return {
        path.stem: {
            name: line
            for name, line in read_lines(path).items()
            if "recorded_in" not in line
        }
        for path in sorted(folder.glob("*.jsonl"))
    }


def read_results(folder: Path = RESULTS) -> dict[str, RunRecord]:
    """Return all records of all plans, by the digests of their configurations."""
    plans = read_records(folder).values()
    return {record["digest"]: record for runs in plans for record in runs.values()}


def read_plan(plan: str, folder: Path = RESULTS) -> dict[str, RunRecord]:
    """Return the records of all runs of a plan by name, those of other plans among them.

    Raises `ValueError` if another plan has not recorded what a line says.
    """
    found: dict[str, RunRecord] = {}
    files: dict[str, dict[str, Line]] = {}
    for name, line in read_lines(file_of(plan, folder)).items():
        if "recorded_in" in line:
            other, own = line["recorded_in"], line["recorded_as"]
            if other not in files:
                files[other] = read_lines(file_of(other, folder))
            record = files[other].get(own)
            if record is None or record["digest"] != line["digest"]:
                raise ValueError(
                    f"{file_of(plan, folder)}: {name} is not recorded as {own} in {other}.jsonl any more; "
                    f"run make experiments ONLY={plan}"
                )
            line = record
        found[name] = line
    return found


def write_run(plan: str, name: str, record: RunRecord, folder: Path) -> None:
    """Record a run of a plan."""
    write_line(file_of(plan, folder), name, record)


def arrange(plan: str, names: Mapping[str, str], folder: Path) -> None:
    """Put a plan's lines in the order of `names`, and add those of runs that other plans have recorded.

    `names` has the digest of each of the plan's runs. Lines that it does not name are last.
    """
    places = {
        record["digest"]: (other, own)
        for other, runs in read_records(folder).items()
        for own, record in runs.items()
    }
    before = read_lines(file_of(plan, folder))
    lines: dict[str, Line] = {}
    for name, digest in names.items():
        other, own = places.get(digest, (plan, name))
        if other != plan:
            elsewhere = {"recorded_in": other, "recorded_as": own, "digest": digest}
            lines[name] = {"run": name, **elsewhere}
        elif name in before:
            lines[name] = before[name]
    lines |= {name: line for name, line in before.items() if name not in lines}
    if list(lines.items()) != list(before.items()):
        write_lines(file_of(plan, folder), lines)


# -- the record of one run, in a folder of its own -------------------------------------------


def read_record(path: Path, digest: str) -> RunRecord | None:
    """Return the record at `path`, or `None` if there is none or it has another digest."""
    if not path.exists():
        return None
    record = _read(path)
    return record if record["digest"] == digest else None


def _read(path: Path) -> RunRecord:
    """Return a record. Raises `ValueError` if the file is not one, as when it was cut short."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(record, dict) and "digest" in record:
            return record
    except ValueError:
        pass
    raise ValueError(
        f"{path} is no whole record. Restore it from Git, or delete it and repeat the run."
    )


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record as JSON. `path` never holds a partly written file."""
    replace_text(path, json.dumps(record, indent=1) + "\n")


def of_modified_code(record: RunRecord) -> bool:
    """Return whether code that was not committed, or that nothing is known of, took part in a run."""
    parts = (record, *record.get("earlier", []))
    return any(
        part["commit"].endswith("+") or part["commit"] == "unknown" for part in parts
    )


def loss_on(record: RunRecord, *plays: str) -> float:
    """Return the mean final loss on `plays`; infinity if the run diverged."""
    if record["diverged_at_step"]:
        return math.inf
    held_out = record["curve"]["held_out"]
    return sum(held_out[play][-1] for play in plays) / len(plays)


def tuning_loss(record: RunRecord) -> float:
    """Return the final loss on the text that selects rates."""
    return loss_on(record, HELD_OUT[record["configuration"]["data"]][0])


def reported_loss(record: RunRecord) -> float:
    """Return the final loss on the reported texts."""
    return loss_on(record, *HELD_OUT[record["configuration"]["data"]][1:])


def read_step_times(folder: Path = RESULTS) -> dict[str, dict[str, float]]:
    """Return the seconds of a step, by plan and model."""
    path = folder / STEP_TIMES
    if not path.exists():
        return {}
    seconds: dict[str, dict[str, float]]
    seconds = json.loads(path.read_text(encoding="utf-8"))["seconds"]
    return seconds


def evaluated(steps: int, evaluations: int) -> list[int]:
    """Return the steps at which a run is evaluated."""
    return [steps * i // evaluations for i in range(1, evaluations + 1)]
