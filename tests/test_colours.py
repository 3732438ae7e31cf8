"""Every colour of the theme can be read on every ground that it meets (WCAG AA), light and dark."""

import re
from pathlib import Path

import pytest

STATIC = Path(__file__).parents[1] / "book" / "theme" / "static"
TOKENS, TOOLS, SHEET = (
    (STATIC / f"{name}.css").read_text() for name in ("tokens", "tools", "sheet")
)
PAIR = r"light-dark\((#\w+|rgb\([^)]*\)), (#\w+|rgb\([^)]*\))\)"
Colour = tuple[float, ...]  # red, green, blue, and how much it covers

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


def luminance(colour: Colour) -> float:
    parts = [v / 255 for v in colour[:3]]
    linear = [
        v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Colour, other: Colour) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


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


def test_the_words_of_a_figure_are_readable(theme: int) -> None:
    """A word has its line's colour, or one near it where that is too pale for letters."""
    c = colours(theme)
    words = [n for n in range(6) if f"word-{n}" in c]
    assert all(f"--fig-{n}: var(--word-{n});" in SHEET for n in words)
    names = [f"word-{n}" if n in words else f"fig-{n}" for n in range(6)]
    assert unreadable(names, {"figure": c["ground"]}, theme) == []
