"""Tables of the recorded searches, from the file that `experiments.search.summary` gathers."""

import json
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from experiments.measured.analysis import Spread
from experiments.measured.tables import SourcedTable
from experiments.records.runs import DECIMALS, RESULTS
from experiments.search.searches import SETTINGS

Search = dict[str, Any]
"""A search as `experiments.search.summary.gathered` returns it."""

Retrained = dict[str, Any]
"""A program trained again. Its loss is the mean of the reported plays, or `None` if it was rejected."""

KNOWN = {"transformer": "Transformer", "primer-ez": "Primer-EZ", "primer": "Primer"}


# A notebook has what these functions returned, not the file that they read.
__recorded__ = (
    "finished_searches",
    "gathered_search",
    "trained_again",
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


def winner(name: str, search: Search) -> str:
    """Return the name of a search's best program among those that were trained again."""
    return f"{name}-{search['lineage'][-1]['number']}"


def evolved_ones(searches: Mapping[str, Search]) -> dict[str, Search]:
    """Return the searches from the Transformer in which the best are chosen as parents."""
    return {
        name: search
        for name, search in searches.items()
        if search["start"] == "transformer" and search["tournament"] > 1
    }


def outcomes(
    searches: Mapping[str, Search], retrained: Sequence[Retrained]
) -> SourcedTable:
    """Return what most programs had at the end of each search, and how good its best program is.

    The losses are those on the reported plays, in each of `SETTINGS`. The gain is that over the Transformer,
    for trainings as long as in the search.
    """
    losses = {each: losses_by_program(retrained, *each) for each in SETTINGS}
    once = losses[1, 1]
    best = {name: winner(name, search) for name, search in searches.items()}
    reference = fmean(once["transformer"])
    gains = {name: reference - fmean(each) for name, each in once.items()}
    whole = fmean(gains[best[name]] for name in evolved_ones(searches))

    def losses_of(program: str) -> list[str]:
        ends = (f"{Spread.of(each[program]):.3f}" for each in losses.values())
        return [*ends, f"{gains[program] / whole:.0%}"]

    rows = []
    for name, search in searches.items():
        shares = [
            f"{search['at_the_end'].get(kind, 0.0):.0%}"
            for kind in ("convolution", "square", "T-MAT MUL")
        ]
        rows.append([title(search), *shares, *losses_of(best[name])])
    rows += [[model, *"---", *losses_of(name)] for name, model in KNOWN.items()]
    kinds = ("convolution", "square", "attention")
    columns = {"search": "", **dict.fromkeys(kinds, "share")}
    columns |= {"loss": "nats", "3 × time": "nats"}
    columns |= {"2 × width": "nats", "of the gain": ""}
    return SourcedTable(
        "What each search found", "Shares of the last population", columns, rows
    )


def chosen_again(looks: Mapping[str, Any]) -> int:
    """Return the place of the program with the lowest mean of its new losses on the play of the search.

    A program that lost a seed is not chosen: its mean is that of the luckier ones.
    """
    again = looks["again"]
    seeds = max(map(len, again))
    whole = [at for at, losses in enumerate(again) if len(losses) == seeds]
    return min(whole, key=lambda at: fmean(again[at]))


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
