"""Programs of the search as pictures: subprograms as columns of instructions, and what a change did to them.

A program is given in the text form of the chapter on programs. Only strings are handled here, no tensors.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from operator import ne
from pathlib import Path

from drawing.canvas import Canvas
from drawing.links import primitive

CHAPTER = Path(__file__).parents[2] / "labml_primer" / "search" / "programs.py"
WIDE, TALL, PITCH, LANE = 104, 20, 27, 7
BINARY = {"ADD", "DIFFERENCE", "DIVIDE", "MULTIPLY", "MAT MUL", "T-MAT MUL"}
COMMUTATIVE = {"ADD", "MULTIPLY"}
WITH_CONSTANT = {"C MUL", "MAX", "MIN"}
INSTRUCTION = re.compile(
    r"h\d+ = (.*)\(h(\d+), h(\d+)\)(?: c(\d+))?(?: d(\d+))?(?: @(\d+))?"
)


@dataclass(frozen=True)
class Node:
    """An instruction with what it uses: its operation, the values it names, and its inputs."""

    operation: str
    detail: str
    inputs: tuple[int, ...]

    @property
    def label(self) -> str:
        return f"{self.operation} {self.detail}".strip()


@dataclass(frozen=True)
class Change:
    """An instruction of the new subprogram next to that of the old one. Either may be missing."""

    old: Node | None
    new: Node | None
    # Inputs of the new one in whose place the old one had another.
    rerouted: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        if self.new is None:
            return "removed"
        if self.old is None:
            return "added"
        return "same" if self.old.label == self.new.label else "changed"


def chapter_text(name: str) -> str:
    """Return the text of a program of the chapter, such as TRANSFORMER."""
    chapter = CHAPTER.read_text(encoding="utf-8")
    match = re.search(
        rf'^{name} = parse\(\s*"""(.*?)"""', chapter, re.DOTALL | re.MULTILINE
    )
    if match is None:
        raise LookupError(f"{CHAPTER} has no program {name}")
    return match[1]


def read(text: str) -> list[list[Node]]:
    """Return the subprograms of a program in text form."""
    constants = _bank(text, "constants")
    dimensions = _bank(text, "dimensions")
    subprograms: list[list[Node]] = []
    for line in map(str.strip, text.splitlines()):
        if re.fullmatch(r"S\d+", line):
            subprograms.append([])
        elif match := INSTRUCTION.fullmatch(line):
            operation, first, second, constant, dimension, branches = match.groups()
            inputs = [int(first)]
            if operation in BINARY or re.fullmatch(r"S\d+", operation):
                inputs.append(int(second))
            details = []
            if operation in WITH_CONSTANT:
                details.append(f"{float(constants[int(constant or 0)]):.3g}")
            if operation.startswith("CONV"):
                details.append(dimensions[int(dimension or 0)])
            times = f"@{branches}" if branches else ""
            detail = " ".join(details) + times
            subprograms[-1].append(Node(operation, detail, tuple(inputs)))
    return [
        [_without_ignored_inputs(node, subprograms) for node in nodes]
        for nodes in subprograms
    ]


def _bank(text: str, name: str) -> list[str]:
    match = re.search(rf"^\s*{name} (.*)$", text, re.MULTILINE)
    return match[1].split() if match else []


def _without_ignored_inputs(node: Node, subprograms: list[list[Node]]) -> Node:
    """Return a call without the inputs that the called subprogram does not read."""
    if not re.fullmatch(r"S\d+", node.operation) or len(node.inputs) == 1:
        return node
    read = needed(subprograms[int(node.operation[1:])])
    inputs = tuple(node.inputs[i] for i in (0, 1) if i in read)
    return Node(node.operation, node.detail, inputs)


def needed(nodes: Sequence[Node]) -> set[int]:
    """Return the values that the last instruction needs, itself and the subprogram's inputs included."""
    values = {len(nodes) + 1}
    for value in reversed(range(2, len(nodes) + 2)):
        if value in values:
            values.update(nodes[value - 2].inputs)
    return values


def changes(old: Sequence[Node], new: Sequence[Node]) -> list[Change]:
    """Return the instructions of two subprograms side by side, in the order of the new one."""
    pairs = list(_pairs(old, new))
    moved = {0: 0, 1: 1} | {
        i + 2: j + 2 for i, j in pairs if i is not None and j is not None
    }
    found = []
    for i, j in pairs:
        one = old[i] if i is not None else None
        other = new[j] if j is not None else None
        known = [moved.get(value) for value in one.inputs] if one else []
        found.append(Change(one, other, _rerouted(known, other) if other else ()))
    return found


def _rerouted(known: Sequence[int | None], node: Node) -> tuple[int, ...]:
    """Return the inputs of an instruction that are not the `known` ones, in their places."""
    if node.operation in COMMUTATIVE and Counter(node.inputs) == Counter(known):
        return ()

    def is_other(place: int, value: int) -> bool:
        return value != known[place] if place < len(known) else value not in known

    return tuple(v for place, v in enumerate(node.inputs) if is_other(place, v))


def _pairs(
    old: Sequence[Node], new: Sequence[Node]
) -> Iterator[tuple[int | None, int | None]]:
    """Return places in the two lists that belong together."""
    one, other = ([node.operation for node in nodes] for nodes in (old, new))
    if len(one) == len(other) and sum(map(ne, one, other)) <= 2:  # a swap, for example
        yield from zip(range(len(one)), range(len(other)), strict=True)
        return
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    for _, i, i_end, j, j_end in matcher.get_opcodes():
        for k in range(max(i_end - i, j_end - j)):
            yield (
                i + k if i + k < i_end else None,
                j + k if j + k < j_end else None,
            )


KINDS = {"same": "", "added": "c1", "changed": "c2", "removed": "dashed"}


def difference(
    canvas: Canvas,
    x: float,
    y: float,
    title: str,
    found: Sequence[Change],
    links: bool = False,
) -> float:
    """Draw a subprogram from the top down, with its changes coloured. Return the lower end.

    An arrow on the right leads from a value to an instruction that is not the next one. With `links`, an
    instruction leads to its primitive.
    """
    new = [change.new for change in found if change.new]
    live = needed(new)
    canvas.words(x + WIDE / 2, y, title, "strong")
    rows: dict[int, float] = {}
    for value in (0, 1):
        if any(value in node.inputs for node in new):
            rows[value] = y + PITCH * (len(rows) + 1) - 4
            name = "input" if value == 0 else "second input"
            canvas.words(x + WIDE / 2, rows[value], name, "soft")
    top = y + PITCH * (len(rows) + 1) - 2
    middles = [top + PITCH * k for k in range(len(found))]
    value = 2
    lanes: list[tuple[float, float, int]] = []
    for change, middle in zip(found, middles, strict=True):
        if change.new is None:
            label = change.old.label if change.old else ""
            canvas.box(x, middle - TALL / 2, WIDE, TALL, kind="dashed")
            canvas.words(x + WIDE / 2, middle, label, "soft")
            continue
        rows[value] = middle
        if value in live:
            _node(canvas, x, rows, value, change, lanes, links)
        else:
            with canvas.faint():
                _node(canvas, x, rows, value, change, lanes, links)
        value += 1
    return top + PITCH * len(found)


def _node(
    canvas: Canvas,
    x: float,
    rows: dict[int, float],
    value: int,
    change: Change,
    lanes: list[tuple[float, float, int]],
    links: bool,
) -> None:
    """Draw an instruction and the arrows that lead to it."""
    assert change.new
    called = re.fullmatch(r"S\d+", change.new.operation)
    link = primitive(change.new.operation) if links and not called else ""
    middle = rows[value]
    kind = KINDS[change.kind]
    canvas.box(x, middle - TALL / 2, WIDE, TALL, change.new.label, kind, link)
    end = middle - 5
    for source in dict.fromkeys(change.new.inputs):
        colour = "c1" if source in change.rerouted else ""
        start = rows[source]
        if middle - start < 1.5 * PITCH:
            gap = 9 if source < 2 else TALL / 2
            centre = x + WIDE / 2
            canvas.arrow(
                (centre, start + gap), (centre, middle - TALL / 2), kind=colour
            )
            continue
        right = x + WIDE
        side = right + 9 + LANE * _lane(lanes, start, middle)
        name = (
            x + WIDE / 2 + 17 + 22 * source,
            start,
        )  # an input is words, without a box
        corner = name if source < 2 else (right, start + 6)
        canvas.arrow(corner, (side, corner[1]), (side, end), (right, end), kind=colour)
        end += 5


def _lane(lanes: list[tuple[float, float, int]], start: float, end: float) -> int:
    """Return the first lane in which no other arrow runs between two heights, and take it."""
    taken = {lane for a, b, lane in lanes if a < end and start < b}
    lane = next(n for n in range(99) if n not in taken)
    lanes.append((start, end, lane))
    return lane
