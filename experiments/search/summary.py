"""Numbers of a recorded search: its costs, its population over time, and what it found.

`write_searches` gathers them for all searches in one file, of which `experiments.search.tables` makes tables.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, median
from typing import Any

from experiments.records.lines import read_lines, write_json
from experiments.records.runs import RESULTS
from experiments.search.log import Line, read_log
from labml_primer.search.mutations import graph
from labml_primer.search.primitives import PRIMITIVES
from labml_primer.search.programs import parse
from labml_primer.search.running import expand, live_values


@dataclass(frozen=True)
class Costs:
    """What a search cost so far.

    `seconds` is the time of a whole training, and `saving` how many times cheaper hurdles made the search.
    """

    individuals: int
    rejected: int
    core_hours: float
    training_share: float
    seconds: float
    saving: float


def ends(lines: Sequence[Line]) -> list[Line]:
    """Return the lines of individuals that ended, in this order."""
    return [line for line in lines if "ended" in line]


def task_of(lines: Sequence[Line]) -> dict[str, Any]:
    """Return the settings of the training."""
    task: dict[str, Any] = lines[0]["began"]["task"]
    return task


def costs(lines: Sequence[Line]) -> Costs:
    """Return the costs of a search of which at least one individual has been trained."""
    ended, task = ends(lines), task_of(lines)
    trained = [line for line in ended if line["losses"]]
    whole = sum(line.get("whole", 0.0) for line in ended)
    used = sum(line["used"] for line in trained)
    return Costs(
        len(ended),
        len(ended) - len(trained),
        whole / 3600,
        sum(line.get("seconds", 0.0) for line in ended) / whole,
        task["budget"] * sum(line["seconds"] for line in trained) / used,
        len(trained) * task["budget"] / used,
    )


def populations(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """Yield the living after each individual that ended, as lines that say how they ended."""
    size = lines[0]["began"]["size"]
    living: deque[Line] = deque(maxlen=size)
    for line in ends(lines):
        if line["losses"]:
            living.append(line)
        yield list(living)


def medians(lines: Sequence[Line]) -> list[float | None]:
    """Return the median loss of the living at the first hurdle, after each individual that ended.

    Later losses are of different training times, so they cannot be compared.
    """
    return [
        median(line["losses"][0] for line in living) if living else None
        for living in populations(lines)
    ]


@cache
def operations(dna: str) -> Counter[str]:
    """Return how often each primitive runs in a program."""
    lines = expand(parse(dna))
    names = (lines[value - 2].operation for value in live_values(lines))
    return Counter(name for name in names if name in PRIMITIVES)


def trained(lines: Sequence[Line]) -> dict[int, str]:
    """Return the programs that were trained, by number. Others may be too large to be expanded."""
    numbers = {line["ended"] for line in ends(lines) if line["losses"]}
    return {line["born"]: line["dna"] for line in lines if line.get("born") in numbers}


def spread(lines: Sequence[Line], operation: str) -> list[float]:
    """Return the share of the living in which an operation runs, after each individual that ended."""
    having = {
        number: operations(dna)[operation] > 0 for number, dna in trained(lines).items()
    }
    return [
        sum(having[line["ended"]] for line in living) / len(living) if living else 0.0
        for living in populations(lines)
    ]


SEARCHES = "searches.json"
CONVOLUTIONS = tuple(
    f"{kind} {k}X1" for kind in ("DCONV", "CONV") for k in (3, 7, 15, 31)
)
"""The primitives that read several positions near each other."""

READS_POSITIONS = ("T-MAT MUL", *CONVOLUTIONS)
"""The operations by which a position reads others near or far: attention's comparison, and convolutions."""

EVERY = 10
"""A curve has a point after so many individuals."""


def lineage(lines: Sequence[Line], number: int) -> list[dict[str, Any]]:
    """Return an individual and its ancestors, the first at the front, with what each has changed.

    `gained` and `lost` count the operations that run in a program and not in its parent, and the reverse.
    """
    births = {line["born"]: line for line in lines if "born" in line}
    losses = {line["ended"]: line["losses"] for line in ends(lines)}
    steps: list[dict[str, Any]] = []
    last: int | None = number
    while last is not None:
        child = births[last]
        parent = births.get(child["parent"], child)
        now, before = operations(child["dna"]), operations(parent["dna"])
        steps.append(
            {
                "number": last,
                "mutations": child["mutations"],
                "losses": losses[last],
                "gained": dict(now - before),
                "lost": dict(before - now),
            }
        )
        last = child["parent"]
    return steps[::-1]


def trained_to_the_end(lines: Sequence[Line]) -> dict[int, float]:
    """Return the final losses of those that passed all hurdles, by number, the best first."""
    hurdles = task_of(lines)["hurdles"]
    losses = {line["ended"]: line["losses"] for line in ends(lines)}
    final = {n: each[-1] for n, each in losses.items() if len(each) > hurdles}
    return dict(sorted(final.items(), key=lambda item: item[1]))


def best_so_far(lines: Sequence[Line]) -> list[list[float]]:
    """Return the number and the final loss of each individual that was better than all before it."""
    found: list[list[float]] = []
    for number, loss in sorted(trained_to_the_end(lines).items()):
        if not found or loss < found[-1][1]:
            found.append([number, loss])
    return found


def outcomes_of_mutations(lines: Sequence[Line]) -> dict[str, list[int]]:
    """Return for each kind of mutation how many of its children ended, and how many passed all hurdles.

    Of several mutations in a row, all before the last made no difference.
    """
    ended, passed = {line["ended"] for line in ends(lines)}, trained_to_the_end(lines)
    return counted(
        (line["mutations"][-1], line["born"] in passed)
        for line in lines
        if "born" in line and line["mutations"] and line["born"] in ended
    )


def counted(children: Iterable[tuple[str, bool]]) -> dict[str, list[int]]:
    """Count the children of each kind, and those of them that passed."""
    counts: dict[str, list[int]] = {}
    for kind, passed in children:
        count = counts.setdefault(kind, [0, 0])
        count[0] += 1
        count[1] += passed
    return dict(sorted(counts.items()))


@cache
def squares(dna: str) -> bool:
    """Return whether a program squares a value, other than for the mean of squares in a norm."""
    nodes = graph(parse(dna))
    waiting, seen = [len(nodes)], {0}
    while waiting:
        if (number := waiting.pop()) in seen:
            continue
        seen.add(number)
        operation, inputs, *_ = nodes[number - 1]
        if operation == "SQUARE" or (operation == "MULTIPLY" and len(set(inputs)) == 1):
            return True
        if operation != "RED MEAN":
            waiting.extend(inputs)
    return False


def at_the_end(lines: Sequence[Line]) -> dict[str, float]:
    """Return for each primitive the share of the last population in which it runs.

    `convolution` is the share in which any of `CONVOLUTIONS` does, `square` that in which a value is squared.
    """
    programs = trained(lines)
    *_, living = populations(lines)
    counts: Counter[str] = Counter()
    for line in living:
        running = operations(programs[line["ended"]])
        counts.update(running.keys())
        counts["convolution"] += any(name in running for name in CONVOLUTIONS)
        counts["square"] += squares(programs[line["ended"]])
    return {name: counts[name] / len(living) for name in sorted(counts)}


def running(dna: str) -> list[str]:
    """Return what runs in a program, with its inputs: `h1 = CONV 3X1(h0)`, of which `h0` is the block's."""
    nodes = enumerate(graph(parse(dna)), start=1)
    return [
        f"h{number} = {operation}({', '.join(f'h{value}' for value in inputs)})"
        for number, (operation, inputs, *_) in nodes
    ]


def tried(lines: Sequence[Line]) -> dict[str, list[int]]:
    """Return for each primitive how many children gained it, and how many of these passed all hurdles.

    A child that was trained has gained a primitive if it runs it more often than its parent.
    """
    passed, programs = trained_to_the_end(lines), trained(lines)
    return counted(
        (name, line["born"] in passed)
        for line in lines
        if line.get("born") in programs and line["parent"] is not None
        for name in operations(line["dna"]) - operations(programs[line["parent"]])
    )


def changed_shares(
    lines: Sequence[Line], points: Sequence[int]
) -> dict[str, list[float]]:
    """Return the shares of the living over time, of operations that most have at times, and few at others.

    Only attention and convolutions over positions are counted: the chapter draws no others.
    """
    curves = {name: spread(lines, name) for name in sorted(READS_POSITIONS)}
    return {
        name: [round(curve[k], 3) for k in points]
        for name, curve in curves.items()
        if min(curve) < 0.5 < max(curve)
    }


def gathered(lines: Sequence[Line]) -> dict[str, Any]:
    """Return what the chapter reads of a search, finished or not."""
    began = lines[0]["began"]
    ended, passed = ends(lines), trained_to_the_end(lines)
    points = range(EVERY - 1, len(ended), EVERY)
    typical, best = medians(lines), next(iter(passed), None)
    reasons = Counter(
        line["rejected"].partition(":")[0] for line in ended if line["rejected"]
    )
    return {
        **began,
        "costs": asdict(costs(lines)),
        "rejected": dict(reasons.most_common()),
        "after": [k + 1 for k in points],
        "median": [each and round(each, 4) for each in (typical[k] for k in points)],
        "best_so_far": best_so_far(lines),
        "spread": changed_shares(lines, points),
        "mutations": outcomes_of_mutations(lines),
        "tried": tried(lines),
        "at_the_end": at_the_end(lines),
        "lineage": [] if best is None else lineage(lines, best),
        "best": [] if best is None else running(trained(lines)[best]),
    }


def retrained(path: Path) -> list[dict[str, Any]]:
    """Return what the chapter reads of the programs that were trained again in all ways.

    Of a training as long as in the search these are also the losses on the play of the search.
    """
    found, lines = [], read_lines(path)
    in_all_ways = {record["name"] for record in lines.values() if record["longer"] > 1}
    for _, record in sorted(lines.items()):
        if record["name"] not in in_all_ways:
            continue
        names = ["name", "longer", "scale"]
        if record["longer"] == record["scale"] == 1:
            names.append("losses")
        found.append(
            {name: record.get(name) for name in names}
            | {"loss": fmean(record["reported"]) if "reported" in record else None}
        )
    return found


def second_looks(path: Path, name: str, lines: Sequence[Line]) -> dict[str, list[Any]]:
    """Return what training the best of a search again found, for training as long as in the search.

    The lists have an entry for each program, the best of the search first: its number, its loss in the
    search, for each seed that was not rejected its losses on the play of the search and on the reported
    plays, and the mean of these trainings' steps divided by the steps in the search.
    """
    runs: dict[str, list[Line]] = {}
    for _, record in sorted(read_lines(path).items()):
        if record["longer"] == record["scale"] == 1 and "reported" in record:
            runs.setdefault(record["name"], []).append(record)
    looks: dict[str, list[Any]] = {
        each: [] for each in ("number", "found", "again", "reported", "steps")
    }
    steps = {line["ended"]: line["steps"] for line in ends(lines) if line["losses"]}
    for number, loss in trained_to_the_end(lines).items():
        if again := runs.get(f"{name}-{number}"):
            looks["number"].append(number)
            looks["found"].append(loss)
            looks["again"].append([run["losses"][-1] for run in again])
            looks["reported"].append([fmean(run["reported"]) for run in again])
            looks["steps"].append(fmean(run["steps"] for run in again) / steps[number])
    return looks


def write_searches(names: Iterable[str], results: Path = RESULTS) -> None:
    """Write what the chapter reads of these searches to one file, in this order."""
    write_json(results / SEARCHES, all_gathered(names, results))


def all_gathered(names: Iterable[str], results: Path = RESULTS) -> dict[str, Any]:
    """Return what the chapter reads of these searches, from their logs.

    Those of which no individual has been trained are left out.
    """
    logs = {name: read_log(results / "search" / f"{name}.jsonl") for name in names}
    again = results / "search" / "retrained.jsonl"
    searches = {
        name: gathered(lines) | {"second_looks": second_looks(again, name, lines)}
        for name, lines in logs.items()
        if any(line["losses"] for line in ends(lines))
    }
    return {"searches": searches, "retrained": retrained(again)}
