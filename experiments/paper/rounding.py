"""Printed numbers: what a rounded number can mean, and claims recomputed from other numbers."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

VERDICTS = {"=": "agrees", "≈": "within rounding", "≠": "disagrees"}


@dataclass(frozen=True)
class Rounded:
    """The range of values that a printed number can mean: "3.8K" is 3,800, and any value from 3,750 to 3,850.

    A bound is read literally: "≥1.7" is 1.7 or anything above, "<0.5" anything below.
    """

    low: float
    value: float
    high: float

    @classmethod
    def read(cls, printed: str) -> "Rounded":
        """Return the number that `printed` starts with: "3.8K", "12,193.5", "2.14E+21", "35.00 ± 0.12"."""
        match = re.match(
            r"([<≥]?)([\d,]*\.?\d+)([eE][+-]?\d+)?([KMB]?)(?![\w.])", printed
        )
        if not match:
            raise ValueError(f"{printed!r} does not start with a number")
        bound, digits, exponent, letter = match.groups(default="")
        # The rounding error is at most half a unit of the last printed digit.
        unit = float(f"1{exponent}") * {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9}[letter]
        half = unit / 2 / 10 ** len(digits.partition(".")[2])
        value = unit * float(digits.replace(",", ""))
        if bound:
            return cls(
                *((0.0, value, value) if bound == "<" else (value, value, math.inf))
            )
        # None of the printed numbers is negative.
        return cls(max(0.0, value - half), value, value + half)


def recompute(formula: Callable[..., float], *printed: str) -> Rounded:
    """Return the value of a formula of printed numbers, with its minimum and maximum.

    The formula must be monotonic in each input within the input's rounding. Both extremes are then at
    extremes of the inputs.
    """
    inputs = [Rounded.read(each) for each in printed]
    middle = [each.value for each in inputs]
    value = formula(*middle)
    least, most = [], []
    for i, each in enumerate(inputs):
        # Does the formula rise with this input, with the others fixed?
        rises = formula(*middle[:i], each.high, *middle[i + 1 :]) >= value
        least.append(each.low if rises else each.high)
        most.append(each.high if rises else each.low)
    return Rounded(formula(*least), value, formula(*most))


@dataclass(frozen=True)
class Claim:
    """A claim of a paper: its section, a short description, the number as printed, and as recomputed."""

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


def short(number: float) -> str:
    """Return a number with about four digits."""
    if 1000 <= number < 1e5:
        return f"{number:,.1f}"
    if 1e9 <= number < 1e12:
        return f"{number / 1e9:.4g}B"
    return f"{number / 1e6:.4g}M" if 1e5 <= number < 1e9 else f"{number:.4g}"


def claim(
    section: str, words: str, printed: str, formula: Callable[..., float], *entries: str
) -> Claim:
    """Return a claim, recomputed from entries of the tables."""
    return Claim(section, words, printed, recompute(formula, *entries))
