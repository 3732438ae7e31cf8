"""Tables of the recorded searches, from the file that `experiments.search.summary` gathers.

    python -m experiments.search.tables

prints them.
"""

import json
import math
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from experiments.measured.analysis import Spread
from experiments.measured.tables import SourcedTable
from experiments.records.runs import DECIMALS, RESULTS
from experiments.search.log import read_log
from experiments.search.searches import HURDLES, SETTINGS
from experiments.search.summary import ends
from labml_primer.search.evolution import shares

Search = dict[str, Any]
"""A search as `experiments.search.summary.gathered` returns it."""

Retrained = dict[str, Any]
"""A program trained again. Its loss is the mean of the reported plays, or `None` if it was rejected."""

BETTER = "better than the Transformer"
KNOWN = {"transformer": "Transformer", "primer-ez": "Primer-EZ", "primer": "Primer"}


# A notebook has what these functions returned, not the file that they read.
__recorded__ = (
    "finished_searches",
    "gathered_search",
    "trained_again",
    "typical_losses",
)


def gathered() -> dict[str, Any]:
    """Return what `experiments.search.summary` gathers, its losses with six decimals."""
    text = (RESULTS / "searches.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(
        text, parse_float=lambda digits: round(float(digits), DECIMALS)
    )
    return found


def finished_searches() -> list[str]:
    """Return the names of the searches of which every individual has ended."""
    return [
        name
        for name, search in gathered()["searches"].items()
        if search["costs"]["individuals"] == search["individuals"]
    ]


def gathered_search(name: str) -> Search:
    """Return the numbers of one search."""
    search: Search = gathered()["searches"][name]
    return search


def typical_losses(name: str, recent: int) -> list[list[list[float]]]:
    """Return how the losses of a search fell: medians of the last losses of `recent` individuals in a row.

    There is a list for each number of passed hurdles, because losses of different training times cannot be
    compared. Each entry has the last individual's number and the median, for every 25th individual.
    """
    lines = ends(read_log(RESULTS / "search" / f"{name}.jsonl"))
    hurdles: int = gathered_search(name)["task"]["hurdles"]
    found: list[list[list[float]]] = []
    for passed in range(hurdles + 1):
        band = [line for line in lines if len(line["losses"]) == passed + 1]
        last = [line["losses"][-1] for line in band]
        ends_at = range(recent, len(band) + 1, 25)
        found.append(
            [
                [band[end - 1]["ended"], round(median(last[end - recent : end]), 3)]
                for end in ends_at
            ]
        )
    return found


def trained_again() -> list[Retrained]:
    """Return the programs that were trained again."""
    programs: list[Retrained] = gathered()["retrained"]
    return programs


def read_searches() -> tuple[dict[str, Search], list[Retrained]]:
    """Return the finished searches by name, and the programs that were trained again."""
    searches = {name: gathered_search(name) for name in finished_searches()}
    return searches, trained_again()


def title(search: Search) -> str:
    """Return in words how a search began."""
    start = {"transformer": "the Transformer", "random": "random programs"}
    words = f"from {start[search['start']]}, seed {search['seed']}"
    return words if search["tournament"] > 1 else f"{words}, no selection"


def model(name: str) -> str:
    """Return the name of a retrained program: `transformer-0-812` is individual 812 of a search."""
    if name in KNOWN:
        return KNOWN[name]
    search, _, number = name.rpartition("-")
    return f"individual {number} of {search}"


def overview(searches: Mapping[str, Search]) -> SourcedTable:
    """Return how large each search was, and its best program."""
    rows = []
    for name, search in searches.items():
        costs = search["costs"]
        best = search["best_so_far"]
        trained, hours = costs["individuals"] - costs["rejected"], costs["core_hours"]
        rows.append(
            {
                "search": name,
                "start": title(search),
                "individuals": f"{costs['individuals']}",
                "rejected": f"{costs['rejected']}",
                "time": f"{hours:.1f}",
                "trained per hour": f"{trained / hours:.0f}",
                "of it training": f"{costs['training_share']:.0%}",
                "saved by hurdles": f"{costs['saving']:.1f}",
                "best loss": f"{best[-1][1]:.3f}" if best else "-",
            }
        )
    units = {"time": "core-hours", "trained per hour": "of a core"}
    units |= {"saved by hurdles": "factor", "best loss": "nats"}
    return SourcedTable.of("The recorded searches", "Our runs", rows, units)


def counted(operations: Mapping[str, int]) -> str:
    """Write operations with their numbers: `2 SQUARE, DCONV 3X1`."""
    return ", ".join(
        name if count == 1 else f"{count} {name}" for name, count in operations.items()
    )


def winner(name: str, search: Search) -> str:
    """Return the name of a search's best program among those that were trained again."""
    return f"{name}-{search['lineage'][-1]['number']}"


def outcomes(
    searches: Mapping[str, Search], retrained: Sequence[Retrained]
) -> SourcedTable:
    """Return what most programs had at the end of each search, and how good its best program is.

    The loss is that on the reported plays, as the mean of seeds, for a training as long as in the search.
    """
    losses = losses_by_program(retrained, longer=1, scale=1)
    rows = []
    for name, search in searches.items():
        shares = [
            f"{search['at_the_end'].get(kind, 0.0):.0%}"
            for kind in ("convolution", "square", "T-MAT MUL")
        ]
        ours = losses.get(winner(name, search), [])
        better = (
            f"{standard_errors(losses['transformer'], ours):+.0f}"
            if len(ours) > 1
            else "-"
        )
        loss = f"{fmean(ours):.3f}" if ours else "-"
        number = f"{search['lineage'][-1]['number']}"
        rows.append([title(search), *shares, number, loss, better])
    kinds = ("convolution", "square", "attention")
    columns = {"search": "", **dict.fromkeys(kinds, "of the last population")}
    columns |= {"best": "individual", "its loss": "nats", BETTER: "standard errors"}
    return SourcedTable("What each search found", "Our runs", columns, rows)


def chosen_again(looks: Mapping[str, Any]) -> int:
    """Return the place of the program with the lowest mean of its new losses on the play of the search.

    A program that lost a seed is not chosen: its mean is that of the luckier ones.
    """
    again = looks["again"]
    seeds = max(map(len, again))
    whole = [at for at, losses in enumerate(again) if len(losses) == seeds]
    return min(whole, key=lambda at: fmean(again[at]))


def second_looks(searches: Mapping[str, Search]) -> SourcedTable:
    """Return what training the best of each search again says of the search's choice.

    The losses are means of those on the reported plays, by which nothing was chosen.
    """
    rows = []
    for search in searches.values():
        looks = search["second_looks"]
        again = [fmean(each) for each in looks["again"]]
        best = chosen_again(looks)
        rank = 1 + sum(loss < again[0] for loss in again)
        above = fmean(again) - fmean(looks["found"])
        rows.append(
            {
                "search": title(search),
                "programs": f"{len(again)}",
                "loss again": f"{above:+.3f}",
                "best of the search": f"{looks['number'][0]}",
                "its rank again": f"{rank}",
                "its loss": f"{Spread.of(looks['reported'][0]):.3f}",
                "best again": f"{looks['number'][best]}",
                "its loss now": f"{Spread.of(looks['reported'][best]):.3f}",
            }
        )
    units = {"loss again": "nats above the search's"}
    units |= dict.fromkeys(("best of the search", "best again"), "individual")
    units |= dict.fromkeys(("its loss", "its loss now"), "nats")
    return SourcedTable.of("The best of each search, again", "Our runs", rows, units)


def ancestors(search: Search) -> SourcedTable:
    """Return the steps from the first program to the best one."""
    rows = []
    for step in search["lineage"]:
        losses, mutations = step["losses"], step["mutations"]
        named = ", then ".join(name.replace("_", " ") for name in mutations)
        ended = len(losses) > search["task"]["hurdles"]
        rows.append(
            {
                "individual": f"{step['number']}",
                "mutation": named or "none: the start",
                "runs now": counted(step["gained"]) or "-",
                "no longer runs": counted(step["lost"]) or "-",
                "first hurdle": f"{losses[0]:.3f}",
                "end": f"{losses[-1]:.3f}" if ended else "-",
            }
        )
    units = dict.fromkeys(("runs now", "no longer runs"), "operations")
    units |= {"first hurdle": "nats", "end": "nats"}
    name = f"The ancestors of the best program, {title(search)}"
    return SourcedTable.of(name, "Our runs", rows, units)


def mutations(searches: Mapping[str, Search]) -> SourcedTable:
    """Return how many children of each kind of mutation ended, and how many passed all hurdles."""
    names = {name for search in searches.values() for name in search["mutations"]}
    rows = []
    for name in sorted(names):
        counts = [search["mutations"].get(name, (0, 0)) for search in searches.values()]
        children, whole = map(sum, zip(*counts, strict=True))
        share = f"{whole / children:.0%}"
        rows.append([name.replace("_", " "), f"{children}", f"{whole}", share])
    columns = {"mutation": "", "children": "", "passed all hurdles": "", "share": ""}
    return SourcedTable("The children of each mutation", "Our runs", columns, rows)


def trials(searches: Mapping[str, Search], operations: Sequence[str]) -> SourcedTable:
    """Return how often each of these operations was tried, and what became of it."""
    found = searches.values()
    rows = []
    for name in operations:
        counts = [search["tried"].get(name, (0, 0)) for search in found]
        children, whole = map(sum, zip(*counts, strict=True))
        shares = (f"{search['at_the_end'].get(name, 0.0):.0%}" for search in found)
        rows.append([name, f"{children}", f"{whole}", ", ".join(shares)])
    columns = {
        "operation": "",
        "new in": "children",
        "of them to the end": "children",
        "in the last population": "of each search",
    }
    return SourcedTable("What the searches tried", "Our runs", columns, rows)


def runs_by_program(
    retrained: Sequence[Retrained], longer: int, scale: int
) -> dict[str, list[Retrained]]:
    """Return each program's runs in a setting, one per seed that was not rejected."""
    found: dict[str, list[Retrained]] = {}
    for run in retrained:
        if run["loss"] is not None and (run["longer"], run["scale"]) == (longer, scale):
            found.setdefault(run["name"], []).append(run)
    return found


def losses_by_program(
    retrained: Sequence[Retrained], longer: int, scale: int
) -> dict[str, list[float]]:
    """Return the losses of each program's runs in a setting."""
    found = runs_by_program(retrained, longer, scale)
    return {name: [run["loss"] for run in runs] for name, runs in found.items()}


def standard_errors(baseline: Sequence[float], losses: Sequence[float]) -> float:
    """Return by how many standard errors of the difference the mean loss is below the baseline's.

    Both need two values at least. The variances of the two may differ (Welch).
    """
    ours, theirs = Spread.of(losses), Spread.of(baseline)
    error = math.sqrt(
        ours.deviation**2 / ours.count + theirs.deviation**2 / theirs.count
    )
    return (theirs.mean - ours.mean) / error


def transfer(retrained: Sequence[Retrained], longer: int, scale: int) -> SourcedTable:
    """Return the programs that were trained again in a setting, the best on the reported plays first."""
    found = runs_by_program(retrained, longer, scale)
    losses = losses_by_program(retrained, longer, scale)
    baseline = losses.get("transformer", [])
    rows = [
        {
            "program": model(name),
            "parameters": f"{found[name][0]['parameters']:,}",
            "seeds": f"{len(each)}",
            "loss": f"{Spread.of(each):.3f}",
            BETTER: "-"
            if name == "transformer" or min(len(each), len(baseline)) < 2
            else f"{standard_errors(baseline, each):+.1f}",
        }
        for name, each in sorted(losses.items(), key=lambda item: fmean(item[1]))
    ]
    units = {"loss": "nats", BETTER: "standard errors"}
    time = "as long as in the search" if longer == 1 else f"{longer} times as long"
    width = "" if scale == 1 else f", {scale} times as wide"
    return SourcedTable.of(f"Trained again, {time}{width}", "Our runs", rows, units)


def curves(retrained: Sequence[Retrained], budget: float) -> SourcedTable:
    """Return the losses on the play of the search at the paper's hurdles and the end, as means of seeds."""
    found = runs_by_program(retrained, 1, 1)
    rows = [
        [
            model(name),
            *(
                f"{fmean(each):.3f}"
                for each in zip(*(run["losses"] for run in runs), strict=True)
            ),
        ]
        for name, runs in found.items()
    ]
    times = [f"{share * budget:.0f}" for share in shares(HURDLES)]
    columns = {"program": "", **dict.fromkeys(times, "nats")}
    return SourcedTable("The loss after so many steps' time", "Our runs", columns, rows)


def main() -> None:
    searches, retrained = read_searches()
    shown = [
        overview(searches),
        mutations(searches),
        *map(ancestors, searches.values()),
    ]
    shown += [transfer(retrained, *setting) for setting in SETTINGS]
    shown.append(curves(retrained, next(iter(searches.values()))["task"]["budget"]))
    print(*shown, sep="\n\n")


if __name__ == "__main__":
    main()
