"""Begin an experiment: a plan that its quick trial runs, to be changed into the one you want.

make new EXPERIMENT=my-question
"""

import re
import sys
from pathlib import Path

from experiments.harness.plan import PLANS, Plan

PLAN = """\
# TODO: the question, and how long it takes (the command says so before it begins).
title = "TODO: {title}"
turn = {turn}  # after all others
seeds = 3
unfinished = true  # remove this line when all of its runs are recorded
timed = false  # its runs are compared in multiply-adds

[tuning]  # a short run for each model and rate selects the rate
rates = [0.001, 0.002, 0.004]
steps = 400

[shared]
data = "characters"
steps = 1200
batch = 16
seq = 128
warmup = 100

[shared.model]
d_model = 128
heads = 4
d_ff = 512
layers = 4

[models.transformer]
preset = "transformer"

[models.primer-ez]
preset = "primer-ez"
"""


def begin(name: str, plans: Path = PLANS) -> Path:
    """Write the plan of a new experiment, and return its file. Raises `ValueError` for an impossible name."""
    path = plans / f"{name}.toml"
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(
            f"EXPERIMENT={name}: give it a name of small letters, digits and hyphens, such as my-question"
        )
    if path.exists():
        raise ValueError(
            f"EXPERIMENT={name}: {path} exists already; choose another name"
        )
    turn = 1 + max((Plan.read(other).turn for other in plans.glob("*.toml")), default=0)
    path.write_text(PLAN.format(title=name.replace("-", " "), turn=turn), "utf-8")
    return path


def main() -> None:
    try:
        path = begin(sys.argv[1])
    except ValueError as error:
        sys.exit(str(error))
    name = path.stem
    print(
        f"""{path}: write your question into it, and your models.
.venv/bin/python -m experiments.harness.run --only {name} --quick
    tries it in two minutes, and records nothing
make experiments ONLY={name}
    says how long it takes, runs it, and records a line per run; commit the plan first
All checks pass while the plan is `unfinished`. After that, they say what it lacks."""
    )


if __name__ == "__main__":
    main()
