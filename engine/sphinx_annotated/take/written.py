"""Prose in reStructuredText, NumPy, Google or plain style as the Markdown that notebooks show.

A notebook knows no roles and no directives: of a reference it has the name, of a formula the formula, and
of parameters a list. What has no form in Markdown stays as it was typed, as code.
"""

from __future__ import annotations

import re
from itertools import dropwhile
from textwrap import dedent

from sphinx_annotated.read.manners.plain import is_code
from sphinx_annotated.read.manners.rest import (
    LINK,
    ROLE,
    block_end,
    code_end,
    named,
    titles,
)
from sphinx_annotated.read.prose import as_typed

LABEL = re.compile(
    r"\.\. (?:_[^`]*:$|(?=\[))"
)  # a target, or what is before a footnote
NOTE = re.compile(r"\[(\d+)\]_(?!\w)")
SECTION = re.compile(r"(?P<title>[A-Z][\w ]*):\s*")
# A parameter, above what is indented.
ENTRY = re.compile(
    r"(?P<name>\*{0,2}\w[^`:(]*?)(?: ?: (?P<type>.*))?|(?P<whole>\w[^`]*)"
)
DESCRIBED = re.compile(
    r"(?P<name>\*{0,2}\w+)(?: \((?P<type>.*?)\))?:(?P<text>(?: .*)?)(?P<whole>)"
)
FIELD = re.compile(r":(?P<kind>\w+)(?: +(?P<name>[^:]+))?:(?P<text>(?: .*)?)")
HEAD = re.compile(r"(?P<indent> *)\.\. (?P<name>[\w:-]+):: *(?P<title>.*)")
OPTION = re.compile(r":[\w-]+:")  # of a directive, above its content
SPECIAL = re.compile(r"([\\*_\[\]<>$#|~])")
STARTS = re.compile(
    r"[-*+] |\d+[.)] |`{3}|~{3}|\$\$|>>> |\s*$"
)  # of what is no paragraph
BOXES = ("note", "warning", "tip", "hint", "important", "caution", "seealso")


def as_markdown(lines: list[str], style: str) -> list[str]:
    """Return prose as Markdown."""
    if style == "plain":
        return _plain(lines)
    return as_typed("\n".join(_blocks(lines, style))).split("\n")


def _blocks(lines: list[str], style: str) -> list[str]:
    """Return titles, directives, fields and entries as Markdown, and the lines between them."""
    found = {title.at: title for title in titles(lines) if title.indent < 2}
    out: list[str] = []
    names = False  # in a section that lists names
    at = 0
    while at < len(lines):
        line = lines[at]
        block, end = _below(lines, at)
        if (last := code_end(lines, at)) > at and at not in found:
            out, at = out + lines[at:last], last
            continue
        directive, field = HEAD.fullmatch(line), FIELD.fullmatch(line.strip())
        deeper = lines[at + 1 : at + 2] and lines[at + 1].startswith(" ")
        section = style == "google" and deeper and SECTION.fullmatch(line.strip())
        entry = style == "numpy" and deeper and ENTRY.fullmatch(line)
        if at in found:
            out += ["", f"**{_inline(found[at].text)}**", ""]
            names = style == "numpy" and found[at].text.lower() == "see also"
            at = found[at].end
            continue
        if directive or line.rstrip().endswith("::"):
            out += _directive(line, directive, block, style)
        elif section and block:
            out += ["", f"**{section['title']}**", "", *_entries(block, style)]
        elif field:
            name = f" `{field['name'].strip()}`" if field["name"] else ""
            out += _apart(out)
            out += _item(f"*{field['kind']}*{name}", field["text"], block, style)
        elif entry and block:
            out += _apart(out)
            out += _item(_named(entry), "", block, style)
        else:
            out.append(
                f"- {_inline(line)}" if names and line.strip() else _inline(line)
            )
            end = at + 1
        if end > at + 1 and not lines[end - 1].strip():
            out.append("")
        at = end
    return out


def _apart(above: list[str]) -> list[str]:
    """Return the blank line between text and a list."""
    return (
        [""]
        if above and above[-1].strip() and above[-1][:2] not in ("- ", "  ")
        else []
    )


def _below(lines: list[str], at: int) -> tuple[list[str], int]:
    """Return the lines below one that are indented more, and the line after them."""
    end = block_end(lines, at)
    block = dedent("\n".join(lines[at + 1 : end])).strip("\n")
    return block.split("\n") if block.strip() else [], end


def _item(head: str, text: str, block: list[str], style: str) -> list[str]:
    """Return an item of a list: its first paragraph is on one line, what follows is indented below it."""
    lines = _blocks([*([text.strip()] if text.strip() else []), *block], style)
    end = next((k for k, line in enumerate(lines) if STARTS.match(line)), len(lines))
    first = " ".join(" ".join(lines[:end]).split())
    rest = [f"  {line}".rstrip() for line in lines[end:]]
    apart = [""] if rest and rest[0] else []
    return [f"- {head}: {first}".rstrip(), *apart, *rest]


def _named(entry: re.Match[str]) -> str:
    kind = f" ({_inline(entry['type'].strip())})" if entry["type"] else ""
    return f"`{(entry['name'] or entry['whole']).strip()}`{kind}"


def _directive(
    line: str, directive: re.Match[str] | None, block: list[str], style: str
) -> list[str]:
    if directive is None:  # "Example::"
        above = line.rstrip().removesuffix("::").strip()
        head = [f"{_inline(above)}:"] if above else []
        return [*head, "", "```python", *block, "```", ""]
    name, title = directive["name"], directive["title"]
    content = list(dropwhile(OPTION.match, block))
    if name == "math":
        return ["", "$$", *filter(str.strip, [title, *content]), "$$", ""]
    if name in BOXES:
        body = _blocks([title, *content], style)
        return ["", f"**{name.capitalize()}**", "", *body, ""]
    if name in ("code-block", "code", "sourcecode"):
        return ["", f"```{title or 'python'}", *content, "```", ""]
    return ["", "```text", line.strip(), *(f"   {each}" for each in block), "```", ""]


def _entries(block: list[str], style: str) -> list[str]:
    """Return the content of a section in Google style, whose entries start at the margin."""
    out: list[str] = []
    at = 0
    while at < len(block):
        entry = DESCRIBED.fullmatch(block[at])
        end = code_end(block, at)
        if entry:
            below, end = _below(block, at)
            out += _apart(out)
            out += _item(_named(entry), entry["text"], below, style)
            if not block[end - 1].strip():
                out.append("")
        else:  # up to the next entry
            end = max(end, at + 1)
            while end < len(block) and not DESCRIBED.fullmatch(block[end]):
                end += 1
            out += _blocks(block[at:end], style)
        at = end
    return out


def _inline(line: str) -> str:
    """Return a line without roles: references as code, formulas as formulas."""

    def role(match: re.Match[str]) -> str:
        if match["role"] == "value":  # which the notebook's writer knows
            return f"{{value}}`{match['text']}`"
        return f"${match['text']}$" if match["role"] == "math" else f"`{named(match)}`"

    line = NOTE.sub(r"[\1]", LABEL.sub("", line))
    line = LINK.sub(r"[\g<text>](\g<target>)", ROLE.sub(role, line))
    return re.sub(r"``([^`]+)``", r"`\1`", line)


def _plain(lines: list[str]) -> list[str]:
    out: list[str] = []
    for paragraph in re.split(r"\n(?:\s*\n)+", "\n".join(lines)):
        text = dedent(paragraph)
        if is_code(text):
            out += ["```python", text, "```", ""]
        else:
            words = [SPECIAL.sub(r"\\\1", line.strip()) for line in text.split("\n")]
            words = [line.replace("}`", "}\\`") for line in words]  # no role
            out += [*words, ""]
    return "\n".join(out).rstrip("\n").split("\n")
