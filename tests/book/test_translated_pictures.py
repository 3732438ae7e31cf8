"""Translated words of pictures have their places, measured with estimated widths of their letters."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import combinations
from pathlib import Path

import pytest
from drawing import canvas
from drawing.canvas import Canvas
from editions.catalogues import Language, languages, read

BOOK = Path(__file__).resolve().parents[2] / "book"
LANGUAGES = languages(BOOK / "locale")
PICTURES = [
    ".".join(path.relative_to(BOOK).with_suffix("").parts)
    for path in sorted((BOOK / "pictures").rglob("[!_]*.py"))
]
SIZES = {"title": 15, "s": 11}  # of letters, otherwise 13
CODE = re.compile(r"`([^`]+)`")
NARROW = 0.48  # the width of a Latin letter, in heights
Box = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass
class Label:
    """What one call of `words` writes, with the steps that show it and the box that it is in."""

    text: str
    place: Box
    steps: set[int] | None  # all, if none is named
    box: Box | None


def width(line: str, size: float) -> float:
    """The width of a line, its code as wide as it is set."""
    code = "".join(CODE.findall(line))
    plain = re.sub(r"[*_^{}]", "", CODE.sub("", line))
    letters = sum(1.0 if each >= canvas.CJK else NARROW for each in plain)
    return canvas.CODE * len(code) + size * letters


def labels(picture: str, say: Callable[[str, str], str]) -> list[Label]:
    """The labels of a picture with these words, in the order in which it writes them."""
    found: list[Label] = []
    steps: list[set[int]] = []
    boxes: list[Box | None] = [None]
    at, box = Canvas.at, Canvas.box

    @contextmanager
    def noted_at(self: Canvas, *shown: int) -> Iterator[None]:
        steps.append(set(shown) & steps[-1] if steps else set(shown))
        with at(self, *shown):
            yield
        steps.pop()

    def noted_box(
        self: Canvas, x: float, y: float, width: float, height: float, *a: str, **b: str
    ) -> None:
        boxes.append((x, y, x + width, y + height))
        box(self, x, y, width, height, *a, **b)  # type: ignore[arg-type]
        boxes.pop()

    def words(
        self: Canvas,
        x: float,
        y: float,
        text: str,
        kind: str = "",
        *,
        side: str = "",
        upward: bool = False,
    ) -> None:
        kinds, lines = f"{kind} {side}".split(), self.say(text).split("\n")
        size = next((SIZES[each] for each in kinds if each in SIZES), 13)
        wide, high = max(width(line, size) for line in lines), 16 * len(lines) - 4
        left = x - wide * (1 if "right" in kinds else 0 if "left" in kinds else 0.5)
        place = left, y - high / 2, left + wide, y + high / 2
        if upward:
            place = x - high / 2, y - wide / 2, x + high / 2, y + wide / 2
        shown = steps[-1] if steps else None
        found.append(Label("\n".join(lines), place, shown, boxes[-1]))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(canvas, "say", say)
        for name, method in {"at": noted_at, "box": noted_box, "words": words}.items():
            patched.setattr(Canvas, name, method)
        import_module(picture).draw()
    return found


def overlapping(found: list[Label]) -> set[tuple[int, int]]:
    """The pairs of labels that overlap at some step."""
    pairs = set()
    for (i, a), (j, b) in combinations(enumerate(found), 2):
        at_once = a.steps is None or b.steps is None or a.steps & b.steps
        (left, top, right, bottom), other = a.place, b.place
        wide = min(right, other[2]) - max(left, other[0])
        high = min(bottom, other[3]) - max(top, other[1])
        if at_once and wide > 1 and high > 1:
            pairs.add((i, j))
    return pairs


def beyond(place: Box, within: Box) -> float:
    """How far a label leaves an area."""
    left, top, right, bottom = within
    return max(left - place[0], top - place[1], place[2] - right, place[3] - bottom)


def problems(english: list[Label], other: list[Label]) -> Iterator[str]:
    """Yield what is wrong with the labels in another language, unless it is in English, too."""
    for i, j in overlapping(other) - overlapping(english):
        yield f"{other[i].text!r} and {other[j].text!r} overlap"
    for own, label in zip(english, other, strict=True):
        picture = (0.0, -1e9, float(canvas.WIDTH), 1e9)
        for within in (picture, label.box):
            if within and beyond(label.place, within) > max(
                1, beyond(own.place, within)
            ):
                yield f"{label.text!r} leaves the {'picture' if within == picture else 'box'}"


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.code)
def test_translated_words_of_pictures_have_the_room_that_the_english_have(
    language: Language,
) -> None:
    known = read(language.path("pictures"))
    text = {(m.english, m.context): m.text for m in known if m.shown}
    found = {}
    for picture in PICTURES:
        english = labels(picture, lambda words, _: words)
        other = labels(picture, lambda words, title: text.get((words, title), words))
        found[picture] = list(problems(english, other))
    assert {picture: said for picture, said in found.items() if said} == {}
