"""Prose in reStructuredText, NumPy, Google or plain style as the Markdown that notebooks show.

A notebook knows no roles and no directives: of a reference it has the name, of a formula the formula, and
of parameters a list. What has no form in Markdown stays as it was typed, as code.
"""

from __future__ import annotations

import re
from textwrap import dedent

from annotated.read.parse import is_code
from annotated.read.prose import as_typed

ROLE = re.compile(r":(?P<role>[\w:+.-]+):`(?P<text>[^`]+)`")
EXPLICIT = re.compile(r"(.*?)\s*<[^<>]+>", re.DOTALL)
LINK = re.compile(r"`([^`<]+?)\s*<([^`<>]+)>`__?")
LABEL = re.compile(
    r"\.\. (?:_[^`]*:$|(?=\[))"
)  # a target, or what is before a footnote
NOTE = re.compile(r"\[(\d+)\]_(?!\w)")
SECTION = re.compile(r"(?P<title>[A-Z][\w ]*)(?P<colon>:?)\s*")
UNDERLINE = re.compile(r"\s*([-=~^])\1{2,}\s*")
FENCE = re.compile(r" *(`{3,})")
ENTRY = re.compile(r"\*{0,2}\w[^`]*$")  # a parameter, above what is indented
FIELD = re.compile(r":(?P<kind>\w+)(?: +(?P<name>[^:]+))?:(?P<text>.*)")
HEAD = re.compile(r"(?P<indent> *)\.\. (?P<name>[\w:-]+):: *(?P<title>.*)")
SPECIAL = re.compile(r"([\\*_\[\]<>$#|~])")
BOXES = ("note", "warning", "tip", "hint", "important", "caution", "seealso")


def as_markdown(lines: list[str], style: str) -> list[str]:
    """Return prose as Markdown."""
    if style == "plain":
        return _plain(lines)
    out: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        below = lines[at + 1] if at + 1 < len(lines) else ""
        if code := _code(lines, at):
            out += code
            at += len(code)
            continue
        directive, field = HEAD.fullmatch(line), FIELD.fullmatch(line.strip())
        section = SECTION.fullmatch(line.strip())
        block, end = _below(lines, at)
        if directive or line.rstrip().endswith("::"):
            out += _directive(line, directive, block)
            at = end
        elif line.strip() and UNDERLINE.fullmatch(below) and not line.startswith("  "):
            out += ["", f"**{_inline(line.strip())}**", ""]
            block, end = _below(lines, at + 1)
            at += 2
        elif style == "google" and section and section["colon"] and below[:1] == " ":
            out += ["", f"**{section['title']}**", "", *_entries(block, style)]
            at = end
        elif field:
            name = f" `{field['name'].strip()}`" if field["name"] else ""
            text = " ".join([field["text"], *block]).split()
            out.append(f"- *{field['kind']}*{name}: {_inline(' '.join(text))}")
            at = end
        elif style == "numpy" and ENTRY.match(line) and below.startswith(" "):
            out.append(_entry(line, block))
            at = end
        else:
            out.append(_inline(line))
            at += 1
    return as_typed("\n".join(out)).split("\n")


def _code(lines: list[str], at: int) -> list[str]:
    """Return the lines of the block of code that starts here: a fenced one, or a session of Python."""
    fence, session = FENCE.match(lines[at]), lines[at].lstrip().startswith(">>>")
    if not fence and not session:
        return []
    end = at + 1
    while end < len(lines) and lines[end].strip() != (fence[1] if fence else ""):
        end += 1
    return lines[at : end + 1 if fence else end]


def _below(lines: list[str], at: int) -> tuple[list[str], int]:
    """Return the lines below one that are indented more, and the line after them."""
    own = len(lines[at]) - len(lines[at].lstrip())
    end = at + 1
    while end < len(lines) and (
        not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > own
    ):
        end += 1
    block = dedent("\n".join(lines[at + 1 : end])).strip("\n")
    return block.split("\n") if block.strip() else [], end


def _directive(
    line: str, directive: re.Match[str] | None, block: list[str]
) -> list[str]:
    if directive is None:  # "Example::"
        above = line.rstrip().removesuffix("::").strip()
        head = [f"{_inline(above)}:"] if above else []
        return [*head, "", "```python", *block, "```", ""]
    name, title = directive["name"], directive["title"]
    content = [each for each in block if not re.match(r":[\w-]+:", each)]
    if name == "math":
        return ["", "$$", *filter(str.strip, [title, *content]), "$$", ""]
    if name in BOXES:
        body = as_markdown([title, *content], "restructuredtext")
        return ["", f"**{name.capitalize()}**", "", *body, ""]
    if name in ("code-block", "code", "sourcecode"):
        return ["", f"```{title or 'python'}", *content, "```", ""]
    return ["", "```text", line.strip(), *(f"   {each}" for each in block), "```", ""]


def _entries(block: list[str], style: str) -> list[str]:
    """Return the entries of a section, each of which starts at the margin."""
    out: list[str] = []
    at = 0
    while at < len(block):
        below, end = _below(block, at)
        match = re.match(r"(\*{0,2}\w+)(?: \(([^)]*)\))?: +(.*)", block[at])
        if match:
            kind = f" ({match[2]})" if match[2] else ""
            text = " ".join([match[3], *below]).split()
            out.append(f"- `{match[1]}`{kind}: {_inline(' '.join(text))}")
            at = end
        else:
            out.append(_inline(block[at]))
            at += 1
    return out


def _entry(line: str, block: list[str]) -> str:
    name, _gap, kind = line.partition(" : ")
    text = " ".join(" ".join(block).split())
    return f"- `{name.strip()}`{f' ({kind.strip()})' if kind else ''}: {_inline(text)}"


def _inline(line: str) -> str:
    """Return a line without roles: references as code, formulas as formulas."""

    def role(match: re.Match[str]) -> str:
        explicit = EXPLICIT.fullmatch(match["text"])
        text = explicit[1] if explicit else match["text"]
        if match["role"] == "math":
            return f"${text}$"
        short = text.rpartition(".")[2] if text.startswith("~") else text
        return f"`{short}`"

    line = NOTE.sub(r"[\1]", LABEL.sub("", line))
    line = LINK.sub(r"[\1](\2)", ROLE.sub(role, line))
    return re.sub(r"``([^`]+)``", r"`\1`", line)


def _plain(lines: list[str]) -> list[str]:
    out: list[str] = []
    for paragraph in re.split(r"\n(?:\s*\n)+", "\n".join(lines)):
        text = dedent(paragraph)
        if is_code(text):
            out += ["```python", text, "```", ""]
        else:
            words = [SPECIAL.sub(r"\\\1", line.strip()) for line in text.split("\n")]
            out += [*words, ""]
    return "\n".join(out).rstrip("\n").split("\n")
