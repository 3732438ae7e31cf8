"""Prose of a module as Markdown: what is not meant as markup stays as it was typed.

A docstring is full of code: ``__init__``, ``2*x*y``, ``<pad>``, ``$HOME``, ``>>> f(1)``.
Markdown would make emphasis, tags, formulas and quotations of it. ``as_typed`` puts a backslash
before each sign that was not meant as markup, and encloses a doctest in a block of code:

- HTML is no markup here, neither tags nor entities. A link between angle brackets is, and so is
  ``<a id="here"></a>``.
- An underscore is part of a name. Emphasis is written with stars, and they touch no other word.
- A formula between dollars neither starts nor ends with a blank, unless it has a command of TeX. It is no
  amount.
- A sign at the start of a line in the middle of a sentence starts no list, quotation or heading.
- A box of MkDocs (``!!! note "Title"`` and lines indented by four) is one.
- A backslash escapes the signs of inline markup. Before anything else it is a backslash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from mdit_py_plugins.field_list import fieldlist_plugin
from mdit_py_plugins.footnote import footnote_plugin

LABEL = re.compile(r"\([^()\n]+\)=\s*$")  # a target of cross-references
DIRECTIVE = re.compile(r"\{([\w:.-]+)\} *(.*)$")
OPTION = re.compile(r" *:[\w-]+:( |$)")
PROMPT = re.compile(r" *>>>( |$)")
# The mark of a list's item that starts with a prompt.
ITEM = re.compile(r" *(?:(?:[-*+]|\d+[.)]) +)+(?=>>>( |$))")
FENCE = re.compile(r" *(`{3,}|~{3,}|:{3,})([^`]*)$")
# The head of a box, a folded box or a tab of MkDocs: its kind and its title.
BOX = re.compile(r'(?:!!!|\?{3}\+?|={3}[!+]?) *([\w-]+)?[\w -]*(?:"(.*)")?\s*$')
DEFINITION = re.compile(r"\[([^\]^][^\]]*)\]: *<?([^\s>]+)")
ADDRESS = re.compile(r"[\w.-]*[:/#]|.*\.\w+$")
# Directives whose content is not Markdown, and those whose title is.
CODE = {
    *("code", "code-block", "code-cell", "sourcecode", "parsed-literal", "raw", "math"),
    *("doctest", "testcode", "testoutput", "testsetup", "eval-rst", "csv-table"),
    *("bibliography", "image", "literalinclude", "toctree", "mermaid", "graphviz"),
    *("annotated-prose", "picture", "variant"),
}
TITLED = {"admonition", "card", "deviation", "dropdown", "exercise", "tab-item"}
ANCHOR = r"""<a[ ]+(?:id|name)=["'][^"'<>\s]+["'][ ]*>[ ]*</a>"""  # a place for links
PIECE = re.compile(
    rf"""
      (?P<escape>\\.?)
    | (?P<code>(?<!`)(`+)(?!`).+?(?<!`)\3(?!`))
    | (?P<display>\$\$(?![ \t]|\s*\$)(?:\\.|[^\\$])+?(?:(?<![ \t])|\n[ \t]*)\$\$
      |\$\$[ \t]+(?:\\.|[^\\$])*?\\[A-Za-z](?:\\.|[^\\$])*?\$\$)
    | (?P<dollar>\$)
    | (?P<link><(?:https?|ftp|mailto|project|path|inv|doi):[^\s<>]*>)
    | (?P<anchor>{ANCHOR})
    | (?P<tag><(?=[A-Za-z/!?]))
    | (?P<entity>&(?=\#?\w+;))
    | (?P<target>\]\((?:[^()\s]|\([^()\s]*\))*(?:\s+"[^"]*")?\))
    | (?P<bracket>\[)
    | (?P<stars>\*+)
    | (?P<line>_+)
    """,
    re.DOTALL | re.VERBOSE,
)
FORMULA = re.compile(
    r"\$(?![\s$])((?:\\.|[^\\$`])*?(?:\\.|[^\s\\$]))\$(?!\d)"
    r"|\$[ ]*((?:\\.|[^\\$`])*?\\[A-Za-z](?:\\.|[^\\$`])*?)[ ]\$(?!\d)",  # with a command of TeX
    re.DOTALL,
)
AMOUNT = re.compile(r"\d[\d.,]*\s+[a-zA-Z]{2,}")
# A formula at the start of a line, with words and another formula after it.
GLUED = re.compile(
    r"(?P<before>[\s>]*(?:(?:[-+*]|\d+[.)]) +)?)(?P<formula>\$\$[^$]+\$\$)"
    r"\s*(?P<rest>\S.*\$\$)\s*$"
)
ENDS = (".", ":", ";", "!", "?", ")=")  # of lines after which a list may begin
SIGN = re.compile(
    r"\s*(>+|#{1,6}|[-+*]|\d+[.)]) +(?=\S)"
)  # of a quotation, heading, list
# Below the head of a table, and what is before the first cell of a row.
DELIMITERS = re.compile(r" *\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$")
MARGIN = re.compile(r"[\s>]*(?:(?:[-+*]|\d+[.)]) +)?\|?")
BAR = re.compile(r"(?<!\\)\|")
OF_WORD = re.compile(r"[A-Za-z0-9_)\]}]")
NOTE = re.compile(r"\[\^[^\]\s]+\]")


def as_typed(text: str) -> str:
    """Return prose as Markdown that shows it as it was typed, except for markup that was meant."""
    lines = _separated(_with_doctests(_with_boxes(text.split("\n"))))
    _escape(lines, 0, len(lines))
    return "\n".join(lines)


# -- boxes ---------------------------------------------------------------------------------


def _with_boxes(lines: list[str]) -> list[str]:
    """Make directives of boxes. The end of one takes the place of a blank line after it, if any."""
    if not any(map(BOX.match, lines)):
        return lines
    out: list[str] = []
    fence, at = "", 0
    while at < len(lines):
        head = None if fence else BOX.match(lines[at])
        fence = _code_after(lines[at], fence)
        at += 1
        if not head or not any(head.groups()):
            out.append(lines[at - 1])
            continue
        start = at
        while at < len(lines) and (not lines[at].strip() or lines[at][:4].isspace()):
            at += 1
        body = "\n".join(line[4:] for line in lines[start:at]).rstrip()
        if not body:
            out += lines[start - 1 : at]
            continue
        inside = _with_boxes(body.split("\n"))
        mark = "`" * max(
            3, 1 + max(map(len, re.findall("`+", "\n".join(inside))), default=0)
        )
        out += [
            f"{mark}{{admonition}} {head[2] or head[1].capitalize()}",
            *inside,
            mark,
        ]
        out += [""] * (at - start - len(body.split("\n")) - 1)
    return out


def _code_after(line: str, fence: str) -> str:
    """Return the mark of the code that is open after this line, if ``fence`` was before it."""
    mark = FENCE.match(line)
    if mark and not mark[1].startswith(":"):
        if not fence and not _is_prose(mark[2]):
            return mark[1]
        if line.strip().startswith(fence) and not mark[2].strip():
            return ""
    return fence


# -- doctests ------------------------------------------------------------------------------


def _with_doctests(lines: list[str]) -> list[str]:
    """Enclose doctests. The fences take the place of the blank lines around them, if any."""
    out: list[str] = []
    lines = list(lines)
    fence, at = "", 0
    while at < len(lines):
        line = lines[at]
        item = None if fence else ITEM.match(line)
        if item and _starts_item(out, item[0]):
            lines[at] = line = " " * len(item[0]) + line[item.end() :]
        else:
            item = None
        fence = _code_after(line, fence)
        if fence or not PROMPT.match(line):
            out.append(line)
            at += 1
            continue
        end = _end_of_doctest(lines, at)
        cut = len(line) - len(line.lstrip())
        margin = " " * (cut if item else _margin(out, cut))
        if out and not out[-1].strip() and not item:
            out.pop()
        out.append(f"{item[0] if item else margin}```pycon")
        out += [margin + each[cut:] if each.strip() else "" for each in lines[at:end]]
        out.append(f"{margin}```")
        at = end + (end < len(lines) and not lines[end].strip())
    return out


def _end_of_doctest(lines: list[str], start: int) -> int:
    """Return where a doctest ends: at a blank line that no further prompt follows."""
    at, indent = start, len(lines[start]) - len(lines[start].lstrip())
    while at < len(lines) and not FENCE.match(lines[at]):
        line = lines[at]
        if line.strip() and len(line) - len(line.lstrip()) < indent:
            break
        if not line.strip():
            after = next((k for k in range(at, len(lines)) if lines[k].strip()), at)
            if not PROMPT.match(lines[after]):
                break
            at = after
        at += 1
    return at


def _starts_item(before: list[str], mark: str) -> bool:
    """Return whether this is the mark of a list's item, and no code, which is indented more."""
    indent = len(mark) - len(mark.lstrip())
    return indent - _margin(before, indent) < 4


def _margin(before: list[str], indent: int) -> int:
    """Return the indentation of the list item that lines indented so far belong to."""
    for line in reversed(before):
        own = len(line) - len(line.lstrip())
        item = re.match(r" *(?:[-*+]|\d+[.)]) +", line)
        if item and len(item[0]) <= indent:
            return len(item[0])
        if line.strip() and own < 2:
            return 0
    return 0


# -- formulas ------------------------------------------------------------------------------


def _separated(lines: list[str]) -> list[str]:
    """Put a formula on a line of its own if another ends the line: Markdown would make one of both."""
    if not any(map(GLUED.match, lines)):
        return lines
    out: list[str] = []
    formulas = _glued(lines, 0, len(lines))
    for at, line in enumerate(lines):
        while at in formulas and (match := GLUED.match(line)):
            out.append(match["before"] + match["formula"])
            rest = match["rest"]
            if sign := SIGN.match(rest):
                rest = f"{rest[: sign.end(1) - 1]}\\{rest[sign.end(1) - 1 :]}"
            line = re.sub(r"[^\s>]", " ", match["before"]) + rest
        out.append(line)
    return out


def _glued(lines: list[str], start: int, end: int) -> set[int]:
    """Return the lines that Markdown reads as one formula and that are several."""
    found: set[int] = set()
    for token in blocks(lines[start:end]):
        if token.map is None:
            continue
        first, last = (start + each for each in token.map)
        if token.type == "math_block" and GLUED.match(lines[first]):
            found.add(first)
        elif token.type in ("fence", "colon_fence") and _is_prose(token.info):
            found |= _glued(lines, first + 1, last)
    return found


# -- blocks --------------------------------------------------------------------------------


@cache
def _markdown() -> MarkdownIt:
    """Return a parser that knows the blocks of MyST, but no HTML and no link definitions."""
    parser = MarkdownIt("commonmark").enable("table")
    for plugin in (
        amsmath_plugin,
        colon_fence_plugin,
        deflist_plugin,
        dollarmath_plugin,
        fieldlist_plugin,
        footnote_plugin,
    ):
        parser.use(plugin)
    parser.disable(["html_block", "reference"])
    return parser.disable("inline")


def blocks(lines: list[str]) -> list[Token]:
    """Return the blocks of Markdown. The texts in them are not parsed."""
    parser = _markdown()
    return parser.parse("\n".join(lines))


def _escape(lines: list[str], start: int, end: int) -> None:
    """Escape what is not markup in these lines."""
    tokens = blocks(lines[start:end])
    while _interrupted(lines, tokens, start):
        tokens = blocks(lines[start:end])
    if _barred(lines, tokens, start):
        tokens = blocks(lines[start:end])
    done: set[int] = set()
    for token in tokens:
        if token.map is None:
            continue
        first, last = (start + each for each in token.map)
        last = max(last, first + 1)
        if token.type in ("fence", "colon_fence"):
            _escape_directive(lines, token, first, last)
        elif token.type == "inline" and first not in done:
            done.update(range(first, last))
            _escape_lines(lines, first, last)


def _interrupted(lines: list[str], tokens: list[Token], start: int) -> bool:
    """Escape signs that start a block in the middle of a sentence. Return if a line has changed.

    A sign with words after it moves to the end of the line above. The next sign of a sum may start a
    block only then, so this is repeated. It ends, because signs only move up.
    """
    found: set[int] = set()
    typed = list(lines)
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.map is None:
            continue
        at, end = (start + each for each in token.map)
        above = lines[at - 1].strip() if at else ""
        inside = bool(above) and not above.endswith(ENDS)
        if token.type == "heading_open" and token.markup in ("-", "="):
            if len(lines[end - 1].strip()) < 3:  # no underline, but a sign
                found.add(end - 1)
        elif token.type == "fence":
            if inside and token.markup[0] == "~" and not _closed(lines, token, end):
                found.add(at)  # the underline of a heading, in another language
        elif (
            inside
            and before
            and before.type == "paragraph_close"
            and _alone(tokens, token)
        ):
            found.add(at)
    for at in found:
        if sign := SIGN.match(lines[at]):  # a backslash would be wrong in a formula
            lines[at - 1] = f"{lines[at - 1].rstrip()} {sign[1]}"
            lines[at] = lines[at][sign.end() :]
        else:
            lines[at] = re.sub(r"^(\s*)([>=~-])", r"\1\\\2", lines[at])
    return lines != typed


def _barred(lines: list[str], tokens: list[Token], start: int) -> bool:
    """Escape bars in code and formulas of tables, which would be ends of cells. Return if there are any.

    Without that, a head with more cells than delimiters below it begins no table, and of another row the
    last cells are left out. A row that has cells enough stays as it is.
    """
    found = False
    for token in tokens:
        if token.map is None or token.type not in ("table_open", "paragraph_open"):
            continue
        first, last = (start + each for each in token.map)
        for at in range(first + 1, last):
            if not DELIMITERS.match(_row(lines[at])) or "|" not in lines[at - 1]:
                continue
            columns = _cells(lines[at])
            for row in (at - 1, *range(at + 1, last)):
                escaped = _without_bars(lines[row])
                if _cells(lines[row]) > columns and _cells(escaped) >= columns:
                    found |= escaped != lines[row]
                    lines[row] = escaped
            break
    return found


def _row(line: str) -> str:
    """Return a line without the marks of the quotations and items around it."""
    return MARGIN.sub("", line, count=1)


def _cells(line: str) -> int:
    """Return the number of a row's cells."""
    return len(BAR.findall(re.sub(r"(?<!\\)\|$", "", _row(line).rstrip()))) + 1


def _without_bars(row: str) -> str:
    """Return a row with no bar in its code and formulas. In a notebook, formulas keep backslashes."""
    out, at = "", 0
    while match := PIECE.search(row, at):
        kind, start, end = match.lastgroup, match.start(), match.end()
        if kind == "dollar" and (formula := FORMULA.match(row, start)):
            kind, end = "display", formula.end()
        piece = row[start:end]
        if kind == "code":
            piece = BAR.sub(r"\\|", piece)
        elif kind == "display":
            piece = BAR.sub(
                r"\\vert", re.sub(r"(?<!\\)\|(?=[A-Za-z])", r"\\vert ", piece)
            )
        out += row[at:start] + piece
        at = end
    return out + row[at:]


def _alone(tokens: list[Token], token: Token) -> bool:
    """Return whether this starts a quotation, a heading, or a list of a single item."""
    if token.type in ("bullet_list_open", "ordered_list_open"):
        within = tokens[tokens.index(token) :]
        items = [
            t for t in within if t.type == "list_item_open" and t.map and token.map
        ]
        own = [t for t in items if t.level == token.level + 1]
        count = sum(t.map[0] < token.map[1] for t in own)  # type: ignore[index]
        return token.level == 0 and count == 1
    return token.type in ("blockquote_open", "heading_open")


def _closed(lines: list[str], token: Token, end: int) -> bool:
    """Return whether a fence has a last line of its own."""
    return lines[end - 1].strip().startswith(token.markup) and bool(token.content)


def _is_prose(words: str) -> bool:
    """Return whether a fence with these words after it is a directive with prose inside."""
    directive = DIRECTIVE.match(words.strip())
    return directive is not None and directive[1] not in CODE


def _escape_directive(lines: list[str], token: Token, first: int, last: int) -> None:
    directive = DIRECTIVE.match(token.info.strip())
    if directive is None or not _is_prose(token.info):
        return
    if directive[1] in TITLED:
        head, title = lines[first].split("}", 1)
        lines[first] = f"{head}}}{_inline(title, lines)}"
    first += 1
    while first < last and OPTION.match(lines[first]):
        first += 1
    mark = token.markup
    closed = last > first and lines[last - 1].strip().startswith(mark)
    _escape(lines, first, last - closed)


# -- inline --------------------------------------------------------------------------------


def _escape_lines(lines: list[str], first: int, last: int) -> None:
    """Escape the inline content in these lines, except for the targets of links."""
    own = lines[first:last]
    if LABEL.match(own[0]) and len(own) == 1:
        return
    if not any(DEFINITION.match(line) for line in own):
        lines[first:last] = _inline("\n".join(own), lines).split("\n")
        return
    for at, line in enumerate(own, first):
        if not _defines(line, lines):
            line = _inline(line, lines)
            lines[at] = f"\\{line}" if DEFINITION.match(line) else line


def _defines(line: str, lines: list[str]) -> bool:
    """Return whether a line is the target of a link, and the link is there."""
    match = DEFINITION.match(line)
    if not match or not ADDRESS.match(match[2]):
        return False
    return sum(f"[{match[1]}]".lower() in each.lower() for each in lines) > 1


def _inline(text: str, lines: list[str]) -> str:
    """Escape what is not markup in a paragraph, a heading or a cell of a table, one of these lines."""
    pieces = list(_pieces(text))
    meant = _emphasis(text, [p for p in pieces if p[0] == "stars"])
    out, at = "", 0
    for kind, start, end in pieces:
        out += text[at:start]
        piece = text[start:end]
        if kind == "stars" and start not in meant:
            inert = _blank(text, start - 1) and _blank(text, end)
            piece = piece if inert else piece.replace("*", r"\*")
        elif kind == "line":
            inside = _word(text, start - 1) and _word(text, end)
            piece = piece if inside else piece.replace("_", r"\_")
        elif kind == "sign" or (kind == "note" and not _noted(piece, lines)):
            piece = f"\\{piece}"
        out += piece
        at = end
    out += text[at:]
    # MyST leaves out lines of comments and breaks.
    return re.sub(r"^( {0,3})(%|\+\+\+|~ )", r"\1\\\2", out, flags=re.MULTILINE)


def _pieces(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield what may have to be escaped: runs of ``stars`` and underscores (``line``), signs."""
    at = 0
    while match := PIECE.search(text, at):
        kind, start, at = match.lastgroup, match.start(), match.end()
        if kind in ("stars", "line"):
            yield kind, start, at
        elif kind in ("tag", "entity"):
            yield "sign", start, at
        elif kind == "escape" and not _escapes(text, match):
            at = start + 1
            yield "sign", start, at
        elif kind == "dollar":
            formula = FORMULA.match(text, start)
            if formula and not _amount(text, formula):
                at = formula.end()
            else:
                yield "sign", start, at
        elif kind == "bracket" and (note := NOTE.match(text, start)):
            at = note.end()
            yield "note", start, at
        elif kind == "bracket" and _called(text, start):
            yield "sign", start, at
            at = text.index("](", start) + 2


def _noted(reference: str, lines: list[str]) -> bool:
    """Return whether one of the lines is the footnote of this reference, or its beginning."""
    return any(line.lstrip(" >").startswith(f"{reference}:") for line in lines)


def _escapes(text: str, match: re.Match[str]) -> bool:
    """Return whether a backslash escapes a sign of inline markup, or of a block at its start."""
    sign, before = match[0][1:], text[: match.start()].rpartition("\n")[2]
    if sign in (".", ")"):
        return before.strip().isdigit()
    return bool(sign) and (
        sign in "`*_[]<>$#|" or (sign in "%+~=-" and not before.strip())
    )


def _amount(text: str, formula: re.Match[str]) -> bool:
    """Return whether dollars are amounts or variables of a shell, and no formula."""
    inside = formula[1] or formula[2]
    follows = _word(text, formula.end())
    return bool(
        AMOUNT.match(inside) or (follows and inside[-1] in "/:,.;-" and inside != "-")
    )


def _called(text: str, start: int) -> bool:
    """Return whether this bracket is an index whose value is called: ``f[0](x)``."""
    link = re.compile(r"\[[^\[\]\n]*\]\(").match(text, start)
    before = text[start - 1] if start else ""
    return bool(link and OF_WORD.match(before))


def _emphasis(text: str, runs: list[tuple[str, int, int]]) -> set[int]:
    """Return the starts of the runs of stars that were meant as emphasis, in pairs."""
    meant: set[int] = set()
    opened: list[tuple[int, int]] = []
    for _, start, end in runs:
        partner = next(
            (o for o in reversed(opened) if o[1] - o[0] == end - start), None
        )
        if partner and _closes(text, partner[1], start, end):
            meant |= {partner[0], start}
            opened = opened[: opened.index(partner)]
        elif _opens(text, start, end):
            opened.append((start, end))
    return meant


def _opens(text: str, start: int, end: int) -> bool:
    before, after = text[max(start - 1, 0) : start], text[end : end + 1]
    if not after or after.isspace() or after in ".,;:/=)":
        return False
    if re.match(r"(args|kwargs|kwds|kw)\b(?!\*)", text[end:]):
        return False
    return not OF_WORD.match(before)


def _closes(text: str, opened: int, start: int, end: int) -> bool:
    before, rest = text[start - 1], text[end:]
    if before.isspace():
        return False
    if not re.match(r"[A-Za-z0-9_(\[]", rest):
        return True
    word = re.fullmatch(r"[\w$\\{}^]+", text[opened:start])
    return bool(word and re.match(r"(th|st|nd|rd|s)\b", rest))


def _blank(text: str, at: int) -> bool:
    return not 0 <= at < len(text) or text[at].isspace()


def _word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and text[at].isalnum()
