"""Read what was recorded: long runs, what is gathered of them, step times, and the paper's tables.

All reading of `results` and `paper_tables` is here; the analysis of what was read is in
`experiments.analysis`.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.tables import Table

RESULTS = Path(__file__).parent / "results"
STEP_TIMES = "step_times.json"

Record = dict[str, Any]
"""A finished run: configuration, digest, versions, machine, and the curve of its losses."""

Gathered = dict[str, Any]
"""What chapters read of a run: its seed, its rate, and a curve as parallel lists. `loss` is the mean
of the reported plays."""

Runs = dict[str, list[Gathered]]
"""The runs of each model of a plan, one per seed."""


def read_runs(gathered: str, plan: str) -> Runs:
    """Return all gathered runs of a plan. `gathered` is the path of the file for all plans."""
    runs: dict[str, Runs] = json.loads(Path(gathered).read_text(encoding="utf-8"))
    return runs[plan]


def read_table(path: str) -> Table:
    """Return a table of the paper."""
    return Table(**json.loads(Path(path).read_text(encoding="utf-8")))


def read_results(folder: Path = RESULTS) -> dict[str, Record]:
    """Return all records of all plans, by the digests of their configurations."""
    records = map(_read, sorted(folder.glob("*/*.json")))
    return {record["digest"]: record for record in records}


def read_step_times(folder: Path = RESULTS) -> dict[str, dict[str, float]]:
    """Return the seconds of a step, by plan and model."""
    path = folder / STEP_TIMES
    if not path.exists():
        return {}
    seconds: dict[str, dict[str, float]]
    seconds = json.loads(path.read_text(encoding="utf-8"))["seconds"]
    return seconds


def read_record(path: Path, digest: str) -> Record | None:
    """Return the record at `path`, or `None` if there is none or it has another digest."""
    if not path.exists():
        return None
    record = _read(path)
    return record if record["digest"] == digest else None


def _read(path: Path) -> Record:
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
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


def loss_on(record: Record, *plays: str) -> float:
    """Return the mean final loss on `plays`; infinity if the run diverged."""
    if record["diverged_at_step"]:
        return math.inf
    held_out = record["curve"]["held_out"]
    return sum(held_out[play][-1] for play in plays) / len(plays)
