r"""The text of a docstring as its author wrote it.

Without an ``r`` before its quotes, Python reads ``\theta`` as a tab and ``heta``. The text in the
source is what was meant, so only the escapes that have no other meaning in prose are read:
``\\``, ``\"``, a backslash at a line's end, and a visible character by its number or name.
``\n`` ends a line at the start or the end of a string, and next to another one. In a string with
``\theta`` in it, ``\\`` is no escape either, but the end of a row of a formula, unless it begins a word.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import unicodedata

LITERAL = re.compile(r"(?s)([a-zA-Z]*)('{3}|\"{3}|'|\")(.*)\2")
LINE_ENDS = r"(?P<ends>\A(?:\\n)+|(?:\\n){2,}|(?:\\n)+\Z)"
NUMBERED = r"N\{[^}]*\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}"
ESCAPE = re.compile(
    rf"{LINE_ENDS}|\\(?P<number>{NUMBERED})|\\(?P<octal>[0-7]{{1,3}})|\\(?P<sign>.)",
    re.DOTALL,
)
CONTROLS = "abfnrtv"
# A backslash and a word, where backslashes are not escaped, and two of them that end a row of a formula.
BARE = re.compile(r"(?<!\\)(?:\\\\)*\\(?![NuUx])[A-Za-z]{2}")
ROW = re.compile(r"(?<!\\)\\\\(?!\\|[A-Za-z]{2})")


def as_written(source: str) -> tuple[str, str]:
    r"""Return the text of a docstring, and the first word that Python reads as another one.

    ``source`` is the expression with its quotes. The word is empty if Python reads the text.
    """
    texts, misread = [], ""
    for token in tokenize.generate_tokens(io.StringIO(f"({source})").readline):
        literal = LITERAL.fullmatch(token.string)
        if token.type != tokenize.STRING or literal is None:
            continue
        prefix, _, body = literal.groups()
        if "r" in prefix.lower():
            texts.append(body)
            continue
        word = _misread(body)
        if word or BARE.search(body):
            rows = ROW.search(body)
            word = word or (rows[0] if rows else "")
            body = ROW.sub(r"\\\\\\\\", body)
        texts.append(ESCAPE.sub(_read, body))
        misread = misread or word
    return "".join(texts), misread


def _misread(body: str) -> str:
    """Return the first word of which Python makes other characters, if there is one."""
    for match in ESCAPE.finditer(body):
        if _read(match) == match[0] and _is_control(match):
            word = re.match(r"\\\w+", body[match.start() :])
            return word[0] if word else match[0]
    return ""


def _is_control(match: re.Match[str]) -> bool:
    """Return whether Python makes another character of this escape."""
    return bool(match["number"] or match["octal"] or match["sign"] in CONTROLS)


def _read(match: re.Match[str]) -> str:
    """Return what an escape means, or the escape itself."""
    if match["ends"]:
        return "\n" * match["ends"].count("n")
    if match["sign"] in ("\\", "'", '"'):
        return match["sign"]
    if match["sign"] == "\n":
        return ""
    if match["number"]:
        character: str = ast.literal_eval(f'"{match[0]}"')
        if not unicodedata.category(character).startswith("C"):
            return character
    return match[0]
