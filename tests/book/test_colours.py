"""Every colour of the theme can be read on every ground that it meets (WCAG AA), light and dark."""

import math
import re
from collections.abc import Sequence
from itertools import combinations
from operator import mul
from pathlib import Path

import pytest

STATIC = Path(__file__).parents[2] / "book" / "theme" / "static"
TOKENS, TOOLS, SHEET = (
    (STATIC / f"{name}.css").read_text() for name in ("tokens", "tools", "sheet")
)
PAIR = r"light-dark\((#\w+|rgb\([^)]*\)), (#\w+|rgb\([^)]*\))\)"
Colour = tuple[float, ...]  # red, green, blue, and how much it covers
Matrix = Sequence[Sequence[float]]

pytestmark = pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])


def parsed(text: str) -> Colour:
    if text[0] == "#":
        digits = text[1:] if len(text) == 7 else "".join(2 * c for c in text[1:])
        return (*(int(digits[i : i + 2], 16) for i in (0, 2, 4)), 1)
    numbers = [float(n) for n in re.findall(r"[\d.]+", text)]
    return (*numbers, 1)[:4]


def colours(theme: int) -> dict[str, Colour]:
    """The theme's colours by their names."""
    found = re.findall(rf"--([\w-]+): {PAIR}", TOKENS)
    assert len(found) > 20
    return {name: parsed(pair[theme]) for name, *pair in found}


def tint(selector: str, theme: int) -> Colour:
    """The ground that a rule of the tools lays over a line."""
    rule = re.search(rf"^{re.escape(selector)} {{ background: {PAIR}", TOOLS, re.M)
    assert rule, selector
    return parsed(rule[theme + 1])


def over(*layers: Colour) -> Colour:
    """What is seen of layers, the lowest first."""
    seen = layers[0]
    for layer in layers[1:]:
        share = layer[3]
        seen = (*(layer[i] * share + seen[i] * (1 - share) for i in range(3)), 1)
    return seen


def linear(colour: Colour) -> list[float]:
    parts = [v / 255 for v in colour[:3]]
    return [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]


def luminance(colour: Colour) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Colour, other: Colour) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


# What an eye without one kind of cone makes of linear red, green and blue (Machado et al., 2009).
SIGHT = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no long": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "no medium": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "no short": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
# From linear red, green and blue to CIE's XYZ, each over that of white.
XYZ = (
    (0.433953, 0.376219, 0.189828),
    (0.212673, 0.715152, 0.072175),
    (0.017758, 0.109477, 0.872765),
)


def product(matrix: Matrix, vector: Sequence[float]) -> list[float]:
    return [sum(map(mul, row, vector)) for row in matrix]


def lab(colour: Colour, sight: str) -> tuple[float, ...]:
    """CIE's L*a*b*, where distances are about as large as they look."""
    seen = [min(max(v, 0), 1) for v in product(SIGHT[sight], linear(colour))]
    x, y, z = (
        v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116
        for v in product(XYZ, seen)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def unreadable(
    names: list[str], grounds: dict[str, Colour], theme: int, least: float = 4.5
) -> list[str]:
    seen = colours(theme)
    return [
        f"{name} on {where}: {contrast(seen[name], ground):.2f}"
        for name in names
        for where, ground in grounds.items()
        if contrast(seen[name], ground) < least
    ]


def test_prose_is_readable(theme: int) -> None:
    c = colours(theme)
    grounds = {name: c[name] for name in ("ground", "bar", "panel", "target")}
    grounds["row"] = over(c["ground"], c["tie"])
    grounds["note"] = over(grounds["row"], c["warning-tint"])
    names = ["text", "heading", "muted", "accent", "warning"]
    assert unreadable(names, grounds, theme) == []


def test_code_is_readable(theme: int) -> None:
    c = colours(theme)
    row = over(c["panel"], c["tie"])
    lit = (*c["accent"][:3], 0.14)
    grounds = {
        "panel": c["panel"],
        "output": c["ground"],
        "row": row,
        "target": c["target"],
        "deviation": over(row, c["warning-tint"]),
        "tensor": over(row, lit),
        "added": over(row, tint(".ln--add", theme)),
        "removed": over(row, tint(".ln--del", theme)),
    }
    names = ["text", *(name for name in c if name.startswith("syn-"))]
    assert unreadable(names, grounds, theme) == []
    del grounds["tensor"]  # no number of a line is one
    assert unreadable(["lno"], grounds, theme) == []


def test_the_signs_of_a_difference_are_readable(theme: int) -> None:
    row = over(colours(theme)["panel"], colours(theme)["tie"])
    for name, rule in (("success", ".ln--add"), ("danger", ".ln--del")):
        assert unreadable([name], {rule: over(row, tint(rule, theme))}, theme) == []


def test_what_floats_is_readable(theme: int) -> None:
    """A tip and a toast turn the colours round."""
    assert unreadable(["ground"], {"tip": colours(theme)["heading"]}, theme) == []


def test_the_lines_of_a_figure_are_seen(theme: int) -> None:
    grounds = {"figure": colours(theme)["ground"]}
    names = [f"fig-{number}" for number in range(6)]
    assert unreadable(names, grounds, theme, least=3) == []
    assert contrast(colours(theme)["accent"], colours(theme)["panel"]) >= 3  # focus


@pytest.mark.parametrize("sight", SIGHT)
def test_any_two_lines_of_a_figure_differ_to_every_kind_of_sight(
    sight: str, theme: int
) -> None:
    c = colours(theme)
    lines = {f"fig-{number}": lab(c[f"fig-{number}"], sight) for number in range(6)}
    alike = [
        f"{one} and {other}: {apart:.1f}"
        for one, other in combinations(lines, 2)
        if (apart := math.dist(lines[one], lines[other])) < 15
    ]
    assert alike == []


def test_the_words_of_a_figure_are_readable(theme: int) -> None:
    """A word has its line's colour, or one near it where that is too pale for letters."""
    c = colours(theme)
    words = [n for n in range(6) if f"word-{n}" in c]
    assert all(f"--fig-{n}: var(--word-{n});" in SHEET for n in words)
    names = [f"word-{n}" if n in words else f"fig-{n}" for n in range(6)]
    assert unreadable(names, {"figure": c["ground"]}, theme) == []
