"""A small search to watch: its population over time, and what a mutation changed in a program.

Its log is recorded by `experiments.search.small`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import ndiff
from pathlib import Path
from random import Random

from drawing.canvas import Canvas

__data__ = ("../experiments/results/search/small.jsonl",)
LOG = Path(__file__).parents[2] / __data__[0]
SEARCH, MUTATIONS = (
    "labml_primer.search.evolution.",
    "labml_primer.search.mutations.",
)
SIZE, TOURNAMENT, SEED = 10, 3, 0
LEFT, RIGHT, TOP, BOTTOM = 40, 392, 46, 196  # of the plot
HIGHEST, LOWEST = 1.75, 0.3  # losses at its edges
BIRTH = 8.7  # from one birth to the next
GENERATIONS = ("copies", "1st generation", "2nd", "3rd")
ROW, WIDE, PITCH = 268, 31, 35  # the population: a box for each of the living
CODE = 330

# After which births the search is shown, each with what there is to see.
FRAMES = {
    9: "Ten copies of one program, each trained with its own seed.\nThey differ by chance.",
    10: "The best of three has a child, which lacks an instruction.\nIts loss is no better. The oldest dies.",
    13: "A child reads earlier digits, by a convolution.",
    15: "A child without it is as bad as the first programs.",
    23: "The first with a convolution dies of age. Others have it now.",
    39: "Three generations later: the best, and its ancestors.",
}


@dataclass
class Individual:
    """A program of the search. One whose training failed has no loss."""

    number: int
    parent: int | None
    mutations: list[str]
    program: list[str]
    loss: float | None


@dataclass
class Birth:
    """The state at a birth: the living from the oldest to the youngest, and those drawn from them."""

    living: list[int]
    drawn: list[int]


def read(path: Path = LOG) -> list[Individual]:
    """Return the individuals of the log, in the order of birth."""
    found: dict[int, Individual] = {}
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        if "born" in line:
            number, program = line["born"], line["dna"].splitlines()
            found[number] = Individual(
                number, line["parent"], line["mutations"], program, None
            )
        elif "ended" in line:
            found[line["ended"]].loss = next(iter(line["losses"]), None)
    return list(found.values())


def births(individuals: Sequence[Individual]) -> list[Birth]:
    """Return the state at each birth. The draws follow from the seed, as in the search."""
    living: list[int] = []
    found = []
    for each in individuals:
        drawn = []
        if each.parent is not None:
            drawn = Random(f"{SEED} {each.number}").sample(living, TOURNAMENT)
        found.append(Birth(list(living), drawn))
        if each.loss is not None:
            living = [*living, each.number][-SIZE:]
    return found


def difference(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the lines that are gone (`-`) and new (`+`), each after the name of its subprogram."""
    lines, subprogram = [], ""
    for line in ndiff(old, new):
        mark, text = line[0], line[2:].strip()
        if text.startswith("S") and "=" not in text:
            subprogram = text
        elif mark in "+-":
            lines.append(f"{subprogram} {mark} {text}")
    return lines


def lineage(individuals: Sequence[Individual], last: Individual) -> list[Individual]:
    """Return an individual after its ancestors, the first one at the front."""
    line = [last]
    while (parent := line[0].parent) is not None:
        line.insert(0, individuals[parent])
    return line


def draw() -> str:
    """Return the picture as SVG."""
    individuals = read()
    states = births(individuals)
    best = min(
        (i for i in individuals if i.loss is not None), key=lambda i: i.loss or 0
    )
    line = lineage(individuals, best)
    canvas = Canvas(
        CODE + 108,
        "A small search, birth by birth",
        f"A population of {SIZE} programs, from the first copies to number {individuals[-1].number}. Above, "
        "the loss of each individual by its birth: most stay near that of the copies, and those with a "
        "convolution are far below. In the middle, the living from the oldest to the youngest: "
        f"{TOURNAMENT} are drawn, the best of them has a mutated child, and the oldest dies. Below, the "
        "lines of the program that the mutation removed and added. The best is individual "
        f"{best.number}, with a loss of {best.loss:.3f} nats.",
        steps=len(FRAMES),
    )
    for step, (number, words) in enumerate(FRAMES.items(), 1):
        with canvas.at(step):
            canvas.words(4, 20, words, "caption", side="left")
            last = step == len(FRAMES)
            plot(
                canvas, individuals[: number + 1], states[number], line if last else []
            )
            population(canvas, individuals, states[number], number)
            if last:
                ancestors(canvas, line)
            else:
                change(canvas, individuals, individuals[number])
    return canvas.svg()


def place(each: Individual) -> tuple[float, float]:
    """Return where an individual is in the plot."""
    x = LEFT + 8 + BIRTH * each.number
    loss = HIGHEST if each.loss is None else each.loss
    return x, TOP + (BOTTOM - TOP) * (HIGHEST - loss) / (HIGHEST - LOWEST)


def plot(
    canvas: Canvas, born: Sequence[Individual], state: Birth, line: Sequence[Individual]
) -> None:
    """Draw the loss of each individual so far. The dead are rings, the best lineage is orange."""
    canvas.line((LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM), round=0)
    for loss in (0.5, 1.0, 1.5):
        y = TOP + (BOTTOM - TOP) * (HIGHEST - loss) / (HIGHEST - LOWEST)
        canvas.words(LEFT - 6, y, f"{loss:.1f}", "soft", side="right")
    canvas.words(10, (TOP + BOTTOM) / 2, "loss, nats", "soft", upward=True)
    for number, words in enumerate(GENERATIONS):
        start, end = (LEFT + 8 + BIRTH * (SIZE * (number + k) - 0.5) for k in (0, 1))
        canvas.words((start + end) / 2, BOTTOM + 12, words, "soft")
        if number:
            canvas.line((start, TOP), (start, BOTTOM), kind="dashed")
    newest = born[-1]
    if newest.parent is not None and not line:
        canvas.line(place(born[newest.parent]), place(newest), kind="c0", round=0)
    if line:
        canvas.curve(map(place, line), "c1")
    with canvas.link(f"{SEARCH}Individual"):
        for each in born:
            alive = each.number in state.living or each is newest
            child = each is newest and each.parent is not None and not line
            kind = "c1" if each in line else "c0" if child else ""
            shape = "dot" if alive or each in line else "ring"
            canvas.circle(*place(each), 3.4, f"{shape} {kind}")


def population(
    canvas: Canvas, individuals: Sequence[Individual], state: Birth, number: int
) -> None:
    """Draw the living with their losses, those that are drawn, the child, and the oldest crossed out."""
    child = individuals[number]
    shown = [*state.living, number]
    start = 4 if len(shown) > SIZE else 4 + PITCH / 2
    canvas.words(4, ROW - 32, "the living, oldest first", "soft", side="left")
    for at, each in enumerate(shown):
        x, one = start + PITCH * at, individuals[each]
        kind = "c1" if each == child.parent else ""
        if each == number and child.parent is not None:
            kind = "c0"
        loss = "" if one.loss is None else f"{one.loss:.2f}"
        canvas.box(x, ROW - 18, WIDE, 36, f"*{each}*\n{loss}", kind)
        if each in state.drawn:
            canvas.frame(x - 1, ROW - 19, WIDE + 2, 38, "c1")
    if len(shown) > SIZE:
        canvas.words(396, ROW - 32, "child", "c0", side="right")
        canvas.line((start, ROW - 18), (start + WIDE, ROW + 18), kind="thick", round=0)
        canvas.line((start, ROW + 18), (start + WIDE, ROW - 18), kind="thick", round=0)
        middle = start + PITCH * shown.index(child.parent or 0) + WIDE / 2
        end = start + PITCH * SIZE + WIDE / 2
        below = ROW + 32
        canvas.arrow(
            (middle, ROW + 20),
            (middle, below),
            (end, below),
            (end, ROW + 19),
            kind="c0",
        )


def change(
    canvas: Canvas, individuals: Sequence[Individual], child: Individual
) -> None:
    """Write the mutation and the lines that it changed, or the whole first program."""
    if child.parent is None:
        canvas.words(4, CODE, "the program, the same in all ten:", "soft", side="left")
        lines = [text.strip() for text in child.program if "=" in text]
        first = child.program.index("S1") - child.program.index("S0") - 1
        for at, text in enumerate(lines):
            x, row = (4, at) if at < first else (190, at - first)
            canvas.words(x + 24, CODE + 24 + 18 * row, f"`{text}`", side="left")
            if row == 0:
                canvas.words(x, CODE + 24, "`S0`" if at == 0 else "`S1`", side="left")
        return
    parent = individuals[child.parent]
    others = len(child.mutations) - 1
    with canvas.link(f"{MUTATIONS}{child.mutations[-1]}"):
        after = f", after {others} others" if others else ""
        canvas.words(4, CODE, f"{named(child)}{after}", "strong", side="left")
    words = f"{child.number}, child of {parent.number}: loss {parent.loss:.3f} to {child.loss:.3f}"
    canvas.words(4, CODE + 20, words, side="left")
    if others:
        words = "The others changed nothing that runs."
        canvas.words(4, CODE + 44, words, "soft", side="left")
        return
    for row, text in enumerate(difference(parent.program, child.program)):
        kind = "c1" if " + " in text else "soft"
        canvas.words(4, CODE + 44 + 18 * row, f"`{text}`", kind, side="left")


def named(each: Individual) -> str:
    """Return the last mutation, which is the one with an effect."""
    return each.mutations[-1].replace("_", " ") if each.mutations else "a copy"


def ancestors(canvas: Canvas, line: Sequence[Individual]) -> None:
    """Write the losses from the first ancestor to the best, with the mutations of each."""
    for at, each in enumerate(line):
        x, y = (4, 206)[at >= 5], CODE + 4 + 20 * (at % 5)
        canvas.words(x + 22, y, str(each.number), "strong", side="right")
        canvas.words(x + 30, y, f"{each.loss:.3f}", side="left")
        canvas.words(x + 70, y, named(each), "soft", side="left")
