"""What an English message and its translation must have in common: formulas, code, roles, links, numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

from editions.numbers import numbers, readings

ROLE = r"\{(?P<role>[\w:-]+)\}(?P<ticks>`+)(?P<inside>.+?)(?P=ticks)(?!`)"
CODE = r"(?<![`\\])(?P<around>`+)(?!`)(?P<code>.+?)(?<!`)(?P=around)(?!`)"
SPAN = re.compile(f"{ROLE}|{CODE}", re.DOTALL)  # from the left: `S{s}` is no role
MATH = re.compile(r"(?<![\\$])(\$\$?)(?!\s)(.+?)(?<![\\\s])\1", re.DOTALL)
LINK = re.compile(
    r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]*(?:\([^()]*\)[^()\s]*)*)\)"
)
TARGET = re.compile(r"<([^<>]+)>\s*$", re.DOTALL)
TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
WORD = re.compile(r"[^\W\d_][^\W_]*(?:[-'’][^\W_]+)*")
PLACED = re.compile(r"\{\w*\}(?!`)")  # of a text into which Python puts a value
# Roles with words: a translation writes its own.
TERMS = {"term", "index", "abbr", "repository"}
SMALL_LETTERS = re.compile(r"[a-z]{2}")
HALF_WIDTH = re.compile(r"[\uff65-\uff9f]")


def parts(text: str) -> tuple[str, dict[str, Counter[str]]]:
    """Return a message without its markup, and the markup by kind."""
    found: dict[str, Counter[str]] = {
        kind: Counter() for kind in ("role", "formula", "code", "link", "tag")
    }

    def span(match: re.Match[str]) -> str:
        name, inside, code = match["role"], match["inside"], match["code"]
        if code is not None:
            found["code"][" ".join(code.split())] += 1
            return " "
        target = TARGET.search(inside)
        shown = inside[: target.start()].strip() if target else ""
        aim = target[1] if target else inside
        if name == "term":  # the glossary's own name, whatever its case
            found["role"][f"{{term}} {' '.join(aim.lower().split())}"] += 1
        else:
            found["role"][f"{{{name}}}" if name in TERMS else f"{{{name}}} {aim}"] += 1
        if name == "value":  # what is before its target is code
            return " "
        return shown if target else (inside if name in TERMS else " ")

    def link(match: re.Match[str]) -> str:
        found["link"][match[3]] += 1
        return match[2]

    def kept(kind: str, group: int) -> Callable[[re.Match[str]], str]:
        def of(match: re.Match[str]) -> str:
            found[kind][" ".join(match[group].split())] += 1
            return " "

        return of

    text = SPAN.sub(span, text)
    text = MATH.sub(kept("formula", 2), text)
    text = LINK.sub(link, text)
    text = TAG.sub(kept("tag", 0), text)
    return text, found


def has_words(text: str) -> int:
    """Return how many words a message has outside code, formulas and roles."""
    plain, _ = parts(PLACED.sub(" ", text))
    return len(WORD.findall(plain))


def has_label(text: str) -> bool:
    """Return whether a text of a picture, a figure or a table is more than symbols, names and numbers.

    `x`, `'e'`, `MAX` and `T5` are the same in every language that we know.
    """
    plain, _ = parts(PLACED.sub(" ", text))
    return bool(SMALL_LETTERS.search(plain))


def signature(text: str) -> tuple[object, ...]:
    """Return what must be equal for the translation of an earlier English to be shown."""
    plain, found = parts(text)
    return (
        *(tuple(sorted(found[kind].items())) for kind in found),
        tuple(sorted(numbers(plain).items())),
        tuple(sorted(PLACED.findall(text))),
    )


def differences(english: str, text: str, code: str) -> Iterator[str]:
    """Yield what a translation has that its English has not, and the reverse, each with the fix."""
    plain, wanted = parts(english)
    own, found = parts(text)
    for kind in wanted:
        a, b = wanted[kind], found[kind]
        if kind == "code":  # a name may be repeated, or be said by a pronoun
            a, b = Counter(a.keys()), Counter(b.keys())
        if a != b:
            lost, more = a - b, b - a
            said = [f"has no {kind} {x!r}, which the English has" for x in lost]
            said += [f"has a {kind} {x!r} that the English has not" for x in more]
            yield f"the translation {' and '.join(said)}. Correct it."
    places = [sorted(PLACED.findall(SPAN.sub(_code, each))) for each in (english, text)]
    if places[0] != places[1]:
        yield f"the translation must have {places[0]} in braces, as the English has. Correct it."
    missing = numbers(plain) - readings(own, code)
    if missing:
        yield f"the translation has no number {', '.join(missing)}, which the English has. Add it."
    if match := HALF_WIDTH.search(own):
        yield f"the translation has the half-width letter {match[0]}. Write it full-width."
    if not any(unclosed(english)):
        yield from unclosed(text)


def _code(match: re.Match[str]) -> str:
    """Return the code of a span, or nothing for a role."""
    return match["code"] or ""


def unclosed(text: str) -> Iterator[str]:
    """Yield an error for emphasis that Markdown would show as asterisks."""
    from markdown_it import MarkdownIt

    plain = MATH.sub("x", SPAN.sub("`x`", text))
    for token in MarkdownIt().parseInline(plain)[0].children or ():
        if token.type == "text" and re.search(
            r"\*\*|(?<!\w)\*\S|\S\*(?!\w)", token.content
        ):
            yield (
                f"Markdown shows the asterisks in {token.content.strip()!r}: emphasis cannot begin or "
                "end at a bracket, a sign, code or a formula next to a letter. Move the bracket out of it."
            )
            return
