"""The question of the family of plans "today": does it still help, if positions are rotary?

    python -m experiments.today

prints the answer from the runs recorded so far. Factors are in multiply-adds, and averaged as logarithms.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.analysis import factor, of_factors
from experiments.records import RESULTS, Gathered, Runs, read_runs
from experiments.tables import Table

FOUR = {
    "transformer": "Transformer",
    "squared-relu": "squared ReLU alone",
    "mdha": "MDHA alone",
    "primer-ez": "Primer-EZ",
}
GATHERED = str(RESULTS / "gathered.json")


@dataclass(frozen=True)
class Setting:
    """A text and positions. `plans` have its runs, the most complete first; `suffix` ends their models."""

    text: str
    positions: str
    plans: Sequence[str]
    suffix: str = ""

    def runs(self, path: str = GATHERED) -> Runs:
        """Return the runs of the four models, from the first plan that has any."""
        for plan in self.plans:
            try:
                found = read_runs(path, plan)
            except KeyError:
                continue
            return {
                model: found[model + self.suffix]
                for model in FOUR
                if found.get(model + self.suffix)
            }
        return {}


SETTINGS = (
    Setting("characters", "learned", ["speedup"]),
    Setting("characters", "rotary", ["today-characters", "today-first"]),
    Setting("subwords", "learned", ["today-subwords-positions"], "-learned"),
    Setting("subwords", "rotary", ["today-subwords", "today-first-subwords"]),
)


def final(run: Gathered) -> float:
    """Return the final loss: on the whole reported plays, where it was measured."""
    loss: float = run.get("whole", run["loss"][-1])
    return loss


def seed_factors(runs: Runs, model: str) -> list[float]:
    """Return the factors of a model over the Transformer, for the seeds that both have."""
    vanilla = {run["seed"]: run for run in runs.get("transformer", [])}
    return [
        factor(vanilla[run["seed"]], run, "multiply_adds")
        for run in runs.get(model, [])
        if run["seed"] in vanilla
    ]


def written(factors: Sequence[float]) -> str:
    """Write the mean of factors, its 95% confidence interval, and the number of seeds."""
    if not factors:
        return "no run yet"
    if len(factors) == 1:
        return f"{factors[0]:.2f} (1 seed)"
    mean, low, high = of_factors(factors)
    return f"{mean:.2f} ({low:.2f} to {high:.2f}, {len(factors)} seeds)"


def share_of_positions(learned: Sequence[float], rotary: Sequence[float]) -> float:
    """Return the share of a gain, in logarithms, that is gone with rotary positions."""
    before, after = (
        statistics.fmean(map(math.log, each)) for each in (learned, rotary)
    )
    return 1 - after / before


def losses() -> Table:
    """Return the final losses of the four models in each setting, in nats per character."""
    rows = []
    for setting in SETTINGS:
        runs = setting.runs()
        means = [
            f"{statistics.fmean(map(final, runs[model])):.3f} ({len(runs[model])})"
            if model in runs
            else ""
            for model in FOUR
        ]
        rows.append([setting.text, setting.positions, *means])
    heads = {"text": "", "positions": ""} | dict.fromkeys(FOUR.values(), "mean (seeds)")
    return Table("Final losses, nats per character", "Our runs", heads, rows)


def gains() -> Table:
    """Return the speed-up factors over the Transformer with the same positions."""
    rows = []
    for setting in SETTINGS:
        runs = setting.runs()
        found = [written(seed_factors(runs, m)) for m in FOUR if m != "transformer"]
        rows.append([setting.text, setting.positions, *found])
    names = [name for name in FOUR.values() if name != FOUR["transformer"]]
    heads = {"text": "", "positions": ""} | dict.fromkeys(names, "factor")
    return Table("Speed-up factors, in multiply-adds", "Our runs", heads, rows)


def main() -> None:
    print(losses(), gains(), sep="\n\n")


if __name__ == "__main__":
    main()
