"""Numbers as they are printed: rounded, in tables, and in claims that can be recomputed."""

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

VERDICTS = {"=": "comes out", "≈": "within rounding", "≠": "does not"}


@dataclass(frozen=True)
class Rounded:
    """What a printed number can mean: "3.8K" is anything from 3,750 to 3,850, 3,800 in the middle.

    A bound is taken at its word: "≥1.7" is 1.7 or anything above, "<0.5" anything below.
    """

    low: float
    value: float
    high: float

    @classmethod
    def read(cls, printed: str) -> "Rounded":
        """The number that `printed` starts with: "3.8K", "12,193.5", "2.14E+21", "35.00 ± 0.12"."""
        match = re.match(
            r"([<≥]?)([\d,]*\.?\d+)([eE][+-]?\d+)?([KM]?)(?![\w.])", printed
        )
        if not match:
            raise ValueError(f"{printed!r} does not start with a number")
        bound, digits, exponent, letter = match.groups(default="")
        # The last digit that is printed is off by half of its place at most.
        unit = float(f"1{exponent}") * {"": 1.0, "K": 1e3, "M": 1e6}[letter]
        half = unit / 2 / 10 ** len(digits.partition(".")[2])
        value = unit * float(digits.replace(",", ""))
        if bound:
            return cls(
                *((0.0, value, value) if bound == "<" else (value, value, math.inf))
            )
        # Nothing that is printed here can be negative.
        return cls(max(0.0, value - half), value, value + half)


def recompute(formula: Callable[..., float], *printed: str) -> Rounded:
    """A formula on printed numbers: its value, and the least and the most it can be.

    The formula has to rise or to fall in each of its inputs over the width of the rounding. Then both ends
    lie where all inputs are at an end of theirs.
    """
    inputs = [Rounded.read(each) for each in printed]
    middle = [each.value for each in inputs]
    value = formula(*middle)
    least, most = [], []
    for i, each in enumerate(inputs):
        # Does it rise with this input, the others as they are?
        rises = formula(*middle[:i], each.high, *middle[i + 1 :]) >= value
        least.append(each.low if rises else each.high)
        most.append(each.high if rises else each.low)
    return Rounded(formula(*least), value, formula(*most))


@dataclass(frozen=True)
class Claim:
    """Where it stands, in a few words what it says, the number as printed, and the number recomputed."""

    section: str
    words: str
    printed: str
    result: Rounded

    @property
    def sign(self) -> str:
        """One of `VERDICTS`."""
        claimed = Rounded.read(self.printed)
        if claimed.low <= self.result.value <= claimed.high:
            return "="
        overlap = self.result.low <= claimed.high and claimed.low <= self.result.high
        return "≈" if overlap else "≠"

    def __str__(self) -> str:
        low, value, high = map(short, vars(self.result).values())
        line = f"{self.section:5}{self.printed:>8} {self.sign} {value:10} {self.words}"
        return line if low == high else f"{line:64} {low} to {high}"


def short(number: float) -> str:
    if 1000 <= number < 1e5:
        return f"{number:,.1f}"
    return f"{number / 1e6:.4g}M" if 1e5 <= number < 1e9 else f"{number:.4g}"


def claim(
    section: str, words: str, printed: str, formula: Callable[..., float], *entries: str
) -> Claim:
    """A claim, recomputed from entries of the tables."""
    return Claim(section, words, printed, recompute(formula, *entries))


@dataclass(frozen=True)
class Table:
    """Entries are text, as printed. `columns` has names and units; `source` says where the table stands."""

    title: str
    source: str
    columns: dict[str, str]
    rows: list[list[str]]

    @classmethod
    def read(cls, path: Path) -> "Table":
        """The table in a JSON file."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def column(self, name: str, /, **where: str) -> list[str]:
        """Entries of a column, in the rows that have `where`: `column("hours", model="Primer")`."""
        names = list(self.columns)
        wanted = [(names.index(key), value) for key, value in where.items()]
        at = names.index(name)
        return [
            row[at] for row in self.rows if all(row[i] == value for i, value in wanted)
        ]

    def entry(self, name: str, /, **where: str) -> str:
        """The one entry of a column in the row that has `where`."""
        found = self.column(name, **where)
        if len(found) != 1:
            message = f"{len(found)} rows of {self.source} have {where}, not one"
            raise LookupError(message)
        return found[0]

    def __repr__(self) -> str:
        """For a terminal."""
        lines = [list(self.columns), *self.rows]
        widths = [max(map(len, entries)) for entries in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(f"{entry:{w}}" for entry, w in zip(line, widths, strict=True))
            for line in lines
        )

    def _repr_html_(self) -> str:
        """For a notebook, and for the page, where a click on a column's head sorts by it."""
        columns = [
            _cells(head, unit, entries)
            for (head, unit), entries in zip(
                self.columns.items(), zip(*self.rows, strict=True), strict=True
            )
        ]
        head, *rows = (f"<tr>{''.join(row)}</tr>" for row in zip(*columns, strict=True))
        return (
            f'<table class="sortable"><caption>{escape(self.title)}. '
            f"{escape(self.source)}.</caption><thead>{head}</thead>"
            f"<tbody>{''.join(rows)}</tbody></table>"
        )


def _cells(head: str, unit: str, entries: Sequence[str]) -> list[str]:
    """A column's cells. "1M" must not sort before "207K", so it carries what it means."""
    unit = f" <small>{escape(unit)}</small>" if unit else ""
    head = f'scope="col">{escape(head)}{unit}</th>'
    try:
        values = [_value(entry) for entry in entries]
    except ValueError:
        return [f"<th {head}", *(f"<td>{escape(entry)}</td>" for entry in entries)]
    cells = (
        f'<td class="number"{value}>{escape(entry)}</td>'
        for value, entry in zip(values, entries, strict=True)
    )
    return [f'<th class="number" {head}', *cells]


def _value(entry: str) -> str:
    """The number that an entry means, where its first word is not written like one."""
    if entry.partition(" ")[0].replace(".", "", 1).isdecimal():
        return ""
    number = "" if entry == "-" else f"{Rounded.read(entry).value:.10g}"
    return f' data-value="{number}"'
