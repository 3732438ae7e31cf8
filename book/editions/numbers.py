"""Numbers as languages write them: 110 million is 1.1億, 1.1亿 and 110 Millionen, and 1.75 is 1,75.

Signs and words of scale are those of the Unicode Consortium's data (CLDR), as Babel has them.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import pairwise

from babel import Locale

ENGLISH = "en"
BEFORE = r"(?<![A-Za-z0-9_.])"  # `conv2` and 2.5.0 have one number less
SPACES = " \u00a0\u2009\u202f"
NUMBER = re.compile(rf"{BEFORE}\d[\d,]*(?:\.\d+)?")
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
SCALE = re.compile(  # also that of the second number, as in "34 and 35 million"
    r"(?: (?:and|to|or|instead of) [\d.,]+)?[ -]*(thousand|million|billion)"
)
NEAR = (
    20  # letters between two numbers of which the second's scale may be meant for both
)


def numbers(english: str) -> Counter[str]:
    """Return the numbers of an English text as plain digits."""
    found: Counter[str] = Counter()
    for match in NUMBER.finditer(english):
        scale = SCALE.match(english, match.end())
        value = float(match[0].replace(",", ""))
        found[_plain(value * SCALES[scale[1]] if scale else value)] += 1
    return found


def readings(text: str, code: str) -> Counter[str]:
    """Return all numbers that a text of a language may mean, and what an English reader would see there.

    3400万 is one number, 1億1000万 is three, and of "34 und 35 Millionen" the first may be 34 or 34 million.
    """
    pattern, scales, group, decimal = _written(code)
    found: list[tuple[re.Match[str], float]] = []
    for match in pattern.finditer(text):
        digits = re.sub(f"[{group}]", "", match["number"]).replace(decimal, ".")
        found.append((match, float(digits) * scales.get(match["scale"] or "", 1)))
    values = Counter(_plain(value) for _match, value in found)
    whole = 0.0
    for (a, first), (b, second) in pairwise(found):
        whole = (whole or first) + second if a.end() == b.start() else 0.0
        if whole:
            values[_plain(whole)] += 1
        if b["scale"] and not a["scale"] and b.start() - a.end() < NEAR:
            values[_plain(first * scales[b["scale"]])] += 1
    return values | numbers(text)


@cache
def _written(code: str) -> tuple[re.Pattern[str], dict[str, float], str, str]:
    """Return the pattern of a language's numbers, its words of scale, and its signs in a number."""
    locale = Locale.parse(code, sep="-" if "-" in code else "_")
    signs = locale.number_symbols["latn"]
    decimal, group = signs["decimal"], signs["group"]
    group = SPACES if group in SPACES else re.escape(group)
    scales: dict[str, float] = {}
    for formats in locale.compact_decimal_formats.values():
        for of_plural in formats.values():
            for power, form in of_plural.items():
                if word := form.pattern.strip("0" + SPACES).strip("'"):
                    scales[word] = int(power) / 10 ** (form.pattern.count("0") - 1)
    words = "|".join(map(re.escape, sorted(scales, key=len, reverse=True)))
    number = rf"\d{{1,3}}(?:[{group}]\d{{3}})+(?!\d)|\d+"
    part = rf"(?P<number>(?:{number})(?:{re.escape(decimal)}\d+)?)"
    pattern = rf"{BEFORE}{part}(?:[{SPACES}-]?(?P<scale>{words}))?"
    return re.compile(pattern), scales, group, decimal


def _plain(number: float) -> str:
    return f"{number:.12g}"
