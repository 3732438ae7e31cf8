"""`make new CHAPTER=labml_primer/primer/talking_heads`: begin a chapter that passes all checks.

Writes the module with a class, a demonstration and an exercise, its picture, the line in `_toc.yml`, and the
layer in the catalogue of the tests. Nothing that exists is overwritten.
"""

from __future__ import annotations

import re
import subprocess
import sys
from keyword import iskeyword
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "engine"))

from writing import said_if_refused  # noqa: E402

CATALOGUE = "tests/library/catalogue.py"
USED = ("Tensor",)  # what a new module imports
LAST_OF_LAYERS = "    **{name: model(replace(config, layers=1))"
MODULE = '''r"""
# {title}

TODO: one line that says what the chapter shows.

TODO: the question. Then the answer in short, and a picture.

$$y = s \\odot x$$

:::{{picture}} {name}
:::

Source: {{cite:t}}`vaswani2017attention`, TODO: the section, and the source.
"""

import torch
from torch import Tensor, nn


class {kind}(nn.Module):
    r"""
    ## A scale for each feature

    Map `[batch, seq, d_model]` to the same shape. TODO: why the class is as it is.
    """

    def __init__(self, d_model: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        # In the code `scale` and `x` are $s$ and $x$.
        return self.scale * x


if __name__ == "__main__":
    # ## It runs
    #
    # At the start all scales are 1, so the output is the input.
    torch.manual_seed(0)
    x = torch.randn(2, 5, 8)
    layer = {kind}(d_model=8)
    print(f"largest difference {{(layer(x) - x).abs().max():.1f}}")


if __name__ == "__main__":
    # ## In short
    #
    # - TODO: what was learned, in three to five lines.
    #
    # ## Exercise
    #
    # :::{{exercise}} How many parameters?
    # How many parameters does the layer have at $d = 8$?
    # :::
    # :::{{solution}}
    # {{value}}`counted`, one for each feature.
    # :::
    counted = sum(p.numel() for p in layer.parameters())
    print(counted)
    assert counted == 8

    # TODO: the way on, as a link to the next chapter.
'''
PICTURE = '''"""{title}: TODO, what the picture shows."""

from drawing.canvas import Canvas

LAYER = "{module}.{kind}"


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        150,
        "{title}",
        "A box with the layer, from the bottom up. One arrow leads into it from x, and one out of it to y.",
    )
    canvas.words(200, 142, "*x*", "soft")
    canvas.arrow((200, 130), (200, 90))
    canvas.box(130, 62, 140, 28, "{title}", link=LAYER)
    canvas.arrow((200, 62), (200, 24))
    canvas.words(200, 16, "*y*", "soft")
    return canvas.svg()
'''


def problem(root: Path, chapter: str) -> str:
    """Return what is wrong with the place of a new chapter, or nothing."""
    example = "for example CHAPTER=labml_primer/primer/talking_heads"
    if not re.fullmatch(r"labml_primer/[a-z0-9_]+/[^/]+", chapter):
        return (
            f"CHAPTER={chapter}: name a module in a folder of labml_primer, {example}"
        )
    name = Path(chapter).name
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or iskeyword(name):
        return (
            f"CHAPTER={chapter}: {name} cannot be a module of this book; use lower-case letters, "
            f"digits and underscores, {example}"
        )
    if not (root / chapter).parent.is_dir():
        return (
            f"CHAPTER={chapter}: there is no folder {Path(chapter).parent}, {example}"
        )
    if (root / f"{chapter}.py").exists():
        return f"CHAPTER={chapter}: {chapter}.py exists already; choose another name"
    for path in (root / "book" / "pictures").rglob(f"{name}.py"):
        return f"CHAPTER={chapter}: {path.relative_to(root)} exists already; choose another name"
    kind = class_name(name)
    if kind in USED:
        return f"CHAPTER={chapter}: its class would hide torch's {kind}; choose another name"
    if re.search(rf"\b{kind}\b", (root / CATALOGUE).read_text(encoding="utf-8")):
        return (
            f"CHAPTER={chapter}: {CATALOGUE} has a {kind} already; choose another name"
        )
    return ""


def class_name(name: str) -> str:
    """`talking_heads` as the name of a class."""
    return "".join(word.capitalize() for word in name.split("_"))


def begin(root: Path, chapter: str) -> list[str]:
    """Write all files of a new chapter, and return their names."""
    path = Path(chapter)
    words = path.name.replace("_", " ")
    names = {
        "name": path.name,
        "title": words[0].upper() + words[1:],
        "kind": class_name(path.name),
        "module": ".".join(path.parts),
    }
    picture = f"book/pictures/{path.parent.name}/{path.name}.py"
    _write(root / f"{chapter}.py", MODULE.format(**names))
    _write(root / picture, PICTURE.format(**names))

    toc = (root / "_toc.yml").read_text(encoding="utf-8")
    before = re.findall(rf"^.*file: {path.parent}/\w+\n", toc, re.MULTILINE)
    line = f"  - file: {chapter}\n"
    toc = toc.replace(before[-1], before[-1] + line) if before else toc + line
    (root / "_toc.yml").write_text(toc, encoding="utf-8")

    catalogue = (root / CATALOGUE).read_text(encoding="utf-8")
    kind = names["kind"]
    layer = f'    "{kind}": Layer(lambda _: {kind}(D_MODEL), reach=1, drops=False),\n'
    catalogue = catalogue.replace(LAST_OF_LAYERS, layer + LAST_OF_LAYERS, 1)
    first = "from labml_primer.transformer.attention import"
    imported = f"from {names['module']} import {kind}\n"
    catalogue = catalogue.replace(first, imported + first, 1)
    (root / CATALOGUE).write_text(catalogue, encoding="utf-8")
    return [f"{chapter}.py", picture, "_toc.yml", CATALOGUE]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main(chapter: str = "") -> None:
    if wrong := problem(ROOT, chapter):
        sys.exit(wrong)
    files = begin(ROOT, chapter)
    for command in (["check", "-q", "--fix", "--select", "I"], ["format", "-q"]):
        python = [name for name in files if name.endswith(".py")]
        subprocess.run([sys.executable, "-m", "ruff", *command, *python], check=True)
    print("\n".join(files))
    print(
        "Look for TODO in them. `make serve` shows the page, `make notebooks` writes its notebook."
    )


if __name__ == "__main__":
    with said_if_refused(ROOT):
        main(*sys.argv[1:])
