"""The font of figures: matplotlib measures their words with the font that the page shows them in.

The site ships WOFF2, which matplotlib cannot read, so each file is written as TrueType first. ``use`` runs
in a chapter's kernel; it imports nothing of the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def unpacked(fonts: Sequence[Path], folder: Path) -> list[str]:
    """Write fonts as TrueType files into ``folder`` and return their paths.

    A variable font becomes two files, regular and bold.
    """
    from fontTools.ttLib import TTFont
    from fontTools.varLib.instancer import instantiateVariableFont

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for font in fonts:
        for name, weight in (("regular", 400), ("bold", 700)):
            static = TTFont(font)
            if "fvar" in static:  # the nearest weight that there is, as in CSS
                axis = next(a for a in static["fvar"].axes if a.axisTag == "wght")
                nearest = min(max(weight, axis.minValue), axis.maxValue)
                static = instantiateVariableFont(static, {"wght": nearest})
                static["OS/2"].usWeightClass = weight
            elif name == "bold":
                continue
            static.flavor = None
            paths.append(str(folder / f"{font.stem}-{name}.ttf"))
            static.save(paths[-1])
    return paths


def use(fonts: Sequence[str]) -> None:
    """Make the family of the first font the one of all text and formulas in figures."""
    if not fonts:
        return
    from matplotlib import font_manager, rcParams

    manager: Any = font_manager.fontManager
    settings: dict[str, Any] = {}
    known = len(manager.ttflist)
    for path in fonts:
        manager.addfont(path)
    family = manager.ttflist[known].name
    settings["font.family"] = [family]
    settings["mathtext.fontset"] = "custom"
    settings["mathtext.fallback"] = "None"  # a missing character is a warning
    styles = {"it": ":italic", "cal": ":italic", "bf": ":bold", "bfit": ":bold"}
    for kind in ("rm", "sf", "tt", *styles):
        settings[f"mathtext.{kind}"] = family + styles.get(kind, "")
    rcParams.update(settings)  # type: ignore[arg-type]
