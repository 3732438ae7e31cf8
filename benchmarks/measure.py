"""Both sides in one process, in turns: how many times as long does one take as the other?

`attention`, `step`, `compared`, `floor`, `compiled`, `generation`, `generation_elsewhere`,
`compiled_generation`, `forward_pass` and `memory` each ask one question with it. All of them are commands:
`python -m benchmarks.step` measures and prints, `--only d_model=256 seq=64` a part of it, and `--record`
writes the whole into `benchmarks/results/`, from where the page Speed has its numbers. A file there has a
record for each kind of processor; `--record` replaces that of its own, and leaves the others.
"""

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PEERS = ROOT / "_build" / "peers"
"""Where `make benchmarks` puts what only the benchmarks need."""

Pair = tuple[str, str]
Where = dict[str, int]


def in_turns(
    functions: Mapping[str, Callable[[], object]],
    seconds: float,
    rounds: int = 5,
    before: Callable[[str], object] = lambda name: None,
) -> dict[str, list[float]]:
    """Seconds of each call of each function, one per round; `before(name)` runs untimed before each.

    On one thread it is CPU time, which other programs hardly affect; with several, where one may wait for
    another, it is wall-clock time.

    Every round calls each of them once, and every other round in reverse order, so that a machine that slows
    down slows all of them, and none always finds the caches of the same neighbour. There are at least
    `rounds`, and more until `seconds` are over. Each has one call beforehand that does not count.
    """
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    taken: dict[str, list[float]] = {name: [] for name in functions}
    order = list(functions)
    for name in order:
        before(name)
        functions[name]()
    end = clock() + seconds
    while len(taken[order[0]]) < rounds or clock() < end:
        for name in order:
            before(name)
            start = clock()
            functions[name]()
            taken[name].append(clock() - start)
        order.reverse()
    return taken


def ratio(of: list[float], over: list[float]) -> dict[str, float]:
    """The median of the rounds' ratios, between the quartiles that half of the rounds lie in."""
    ratios = [a / b for a, b in zip(of, over, strict=True)]
    quartiles = torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)
    low, median, high = (
        torch.tensor(ratios, dtype=torch.float64).quantile(quartiles).tolist()
    )
    return {"median": median, "low": low, "high": high}


def compared(
    where: Where, values: Mapping[str, list[float]], pairs: Iterable[Pair]
) -> dict[str, Any]:
    """What was measured at one place of the grid, as a record holds it."""
    return {
        "where": where,
        "rounds": len(next(iter(values.values()))),
        "values": {name: statistics.median(each) for name, each in values.items()},
        "ratios": [
            {"of": a, "over": b, **ratio(values[a], values[b])} for a, b in pairs
        ],
    }


def command(
    question: str,
    unit: str,
    grid: Iterable[Where],
    measure: Callable[..., dict[str, Any]],
    packages: tuple[str, ...] = (),
    **settings: object,
) -> None:
    """What `python -m benchmarks.<question>` does: `measure(**where)` for each place of the grid."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{question}")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME=NUMBER")
    parser.add_argument("--record", action="store_true", help="write the results down")
    options = parser.parse_args()
    if options.record and options.only:
        parser.error("a record is of the whole: leave out --only, or --record")
    only = {name: int(number) for name, number in (o.split("=") for o in options.only)}
    cells = []
    for where in grid:
        if only.items() <= where.items():
            torch.manual_seed(0)
            cells.append(measure(**where))
            print(shown(cells[-1], unit), flush=True)
    if options.record:
        record = {
            "question": question,
            "unit": unit,
            "settings": settings,
            **surroundings(packages),
        }
        path = RESULTS / f"{question}.json"
        records = json.loads(path.read_text()) if path.exists() else {}
        records[processor()] = rounded(record | {"cells": cells})
        path.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")


def shown(cell: dict[str, Any], unit: str) -> str:
    """A cell as the command prints it."""
    where = ", ".join(f"{name} {number}" for name, number in cell["where"].items())
    lines = [f"{where} ({cell['rounds']} rounds)"]
    lines += [
        f"  {value:10.5g} {unit}  {name}" for name, value in cell["values"].items()
    ]
    lines += [
        f"  {r['median']:6.3f} ({r['low']:.3f} to {r['high']:.3f})  {r['of']} over {r['over']}"
        for r in cell["ratios"]
    ]
    return "\n".join(lines)


def rounded(value: Any) -> Any:
    """Five digits: more would be noise, and every line of a record would change each time."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def surroundings(packages: tuple[str, ...]) -> dict[str, Any]:
    """Where, when and with what it was measured."""
    return {
        "machine": {
            "cpu": processor(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "system": platform.system(),
        },
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("torch", *packages)},
        "commit": commit(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def processor() -> str:
    """The CPU's name."""
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def commit() -> str:
    """The commit that is measured; `+` behind it where code is not as committed."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "labml_primer/*.py", "benchmarks/*.py")
    return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
