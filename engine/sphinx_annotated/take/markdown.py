"""MyST prose as the Markdown that Colab and JupyterLab show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import NamedTuple

from sphinx.locale import _

from sphinx_annotated.page.build.book import Book
from sphinx_annotated.page.directives import pictures
from sphinx_annotated.page.directives.difference import as_markdown, changes
from sphinx_annotated.read.expressions import ROLE, one_line
from sphinx_annotated.read.manners import styles
from sphinx_annotated.read.manners.html import ROLE as HTML
from sphinx_annotated.read.modules import Module
from sphinx_annotated.read.prose import as_typed
from sphinx_annotated.read.syntax import ChapterError
from sphinx_annotated.take import written
from sphinx_annotated.take.translated import Say, translated

DIRECTIVE = re.compile(r"(?P<mark>:{3,}|`{3,})\{(?P<name>[\w:-]+)\} *(?P<title>.*)$")
OPTION = re.compile(r":(\w+):(.*)$")
CODE = re.compile(r" *(`{3,}|~{3,})[^`]*$")
FORMULA = re.compile(r"\$\$.*?\$\$", re.DOTALL)
SPECIAL = re.compile(r"[\\`*_\[\]<>$#|~]")  # characters that Markdown interprets
COMPUTED = "\ue000{}\ue001"  # between two private characters, a value that changes with the results
LABEL = re.compile(r"\([^()\n]+\)=\s*")
NOTES = (
    "note",
    "tip",
    "hint",
    "important",
    "warning",
    "caution",
    "seealso",
    "admonition",
)


class Part(NamedTuple):
    """Lines of prose or code. ``depth``: the notes around them; ``start``: their first line."""

    depth: int
    start: int
    lines: list[str]
    code: str  # the mark that opens and closes it


def _depth(opened: list[tuple[str, str]]) -> int:
    """Return the number of open notes. Some are not quoted."""
    return sum(name not in ("solution", "deeper") for _, name in opened)


class MarkdownWriter:
    """Translates a module's notes to Markdown: no role, directive or label is left."""

    def __init__(
        self,
        module: Module,
        book: Book,
        values: Mapping[str, str],
        say: Say | None = None,
    ):
        self.module, self.path, self.book = module, str(module.path), book
        self.values, self.say = values, say
        self.docname = book.project.docname(module)

    def __call__(self, text: str, line: int) -> str:
        """Translate ``text``, which starts at ``line`` of the module.

        Raises ``ChapterError`` for roles and directives that a notebook cannot show.
        """
        text = as_typed(text)
        out: list[str] = []
        for part in self._parts(self._shown(text.split("\n"), line), line):
            if part.lines:
                say = None if part.code else self.say
                lines = translated(part.lines, say) if say else part.lines
                words = "\n".join(lines)
                words = words if part.code else self._roles(words, part.start)
                if part.depth:  # the marks of a quote must not be inside a formula
                    words = FORMULA.sub(lambda m: " ".join(m[0].split()), words)
                out += [
                    ("> " * part.depth + each).rstrip() for each in words.split("\n")
                ]
        return "\n".join(out)

    def _shown(self, lines: list[str], line: int) -> list[str]:
        """Replace each ``variant`` directive by a block of code, each ``picture`` by an image."""
        out: list[str] = []
        waiting = iter(enumerate(lines, line))
        for number, text in waiting:
            match = DIRECTIVE.match(text)
            if match and match["name"] == styles.DIRECTIVE:
                inside = (inner for _line, inner in waiting)
                prose = list(takewhile(lambda inner: inner != match["mark"], inside))  # noqa: B023
                out += written.as_markdown(prose, match["title"].split()[0])
                continue
            if not match or match["name"] not in ("variant", "picture"):
                out.append(text)
                continue
            options: dict[str, str] = {}
            for _line, inner in waiting:
                if inner.strip() == match["mark"]:
                    break
                option = OPTION.match(inner)
                options |= {option[1]: option[2].strip()} if option else {}
            show = self._picture if match["name"] == "picture" else self._variant
            out += show(match["title"].strip(), options, number)
        return out

    def _variant(self, name: str, options: dict[str, str], line: int) -> list[str]:
        base, given = options.get("of", ""), options.get("with", "")
        try:
            found = changes(self.book.project, self.module, base, name, given)
        except LookupError as error:
            message = f"variant: {error}. Correct the name."
            raise ChapterError(self.path, line, message) from None
        return list(as_markdown(found))

    def _picture(self, name: str, options: dict[str, str], line: int) -> list[str]:
        try:
            svg = pictures.drawn(self.book.pictures, name)
        except LookupError as error:
            raise ChapterError(self.path, line, f"picture {name}: {error}") from None
        return [pictures.as_markdown(svg, self.book)]

    def _parts(self, lines: list[str], line: int) -> Iterator[Part]:
        """Yield notes as quotes with a bold title, and code unchanged; labels are removed."""
        opened: list[tuple[str, str]] = []  # open directives: mark and name
        part = Part(0, line, [], "")
        for k, text in enumerate(lines, line):
            directive, fence = DIRECTIVE.match(text), CODE.match(text)
            if part.code:
                part.lines.append(text)
                if text.strip() == part.code:
                    yield part
                    part = Part(_depth(opened), k + 1, [], "")
            elif directive:
                yield part
                opened.append((directive["mark"], directive["name"]))
                title = self._title(directive["name"], directive["title"], k)
                yield Part(_depth(opened), k, [*title.split("\n"), ""], "")
                part = Part(_depth(opened), k + 1, [], "")
            elif opened and text.strip() == opened[-1][0]:
                yield part
                if opened.pop()[1] == "solution":
                    yield Part(_depth(opened), k, ["", "</details>"], "")
                part = Part(_depth(opened), k + 1, [], "")
            elif fence:
                yield part
                part = Part(_depth(opened), k, [text], fence[1])
            else:
                part.lines.append("" if LABEL.fullmatch(text) else text)
        yield part

    def _title(self, name: str, title: str, line: int) -> str:
        title = self.say(title) if self.say and title else title
        if name == "deviation":
            return f"**{_('Deviation from {}').format(title)}**"
        if name == "exercise":
            return f"**{title}**"
        if name == "deeper":
            words = _("Deeper: a reader in a hurry may pass over this section.")
            return f"*{words}*"
        if name == "solution":
            words = _("Solution, in words")
            return f"\n<details><summary>{words}</summary>"
        if name in NOTES:
            return f"**{title or name.capitalize()}**"
        message = f"the notebook has no form for the directive {{{name}}}. Use a note or plain prose."
        raise ChapterError(self.path, line, message)

    def _roles(self, text: str, line: int) -> str:
        return ROLE.sub(
            lambda m: self._role(m, line + text[: m.start()].count("\n")), text
        )

    def _role(self, match: re.Match[str], line: int) -> str:
        if match["code"]:
            return match["code"]
        role, text = match["role"], match["text"]
        explicit = re.fullmatch(r"(.*?)\s*<([^<>]+)>", text, re.DOTALL)
        label, target = (explicit[1], explicit[2]) if explicit else ("", text)
        if role.startswith("cite"):
            return ", ".join(
                self._cited(key.strip(), line) for key in target.split(",")
            )
        if role.startswith("py:"):
            return self._definition(role, label, target)
        if role == "doc":
            docname = _joined(self.docname, target)
            return f"[{label or self.book.titles.get(docname, docname)}]({self.book.address(docname)})"
        if role == HTML:
            return text
        if role == "math":
            return f"${text}$"
        if role == "value":
            return self._value(one_line(text), line)
        if role == "term" and self.book.terms:
            return self._term(label or text, target, line)
        if role in ("ref", "term", "abbr"):
            return label or target
        message = f"the notebook has no form for the role {{{role}}}. Use a link or plain prose."
        raise ChapterError(self.path, line, message)

    def _term(self, label: str, name: str, line: int) -> str:
        place = self.book.terms.get(" ".join(name.split()).lower())
        if place is None:
            message = f"{name} is not in the glossary. Add it, or correct the term."
            raise ChapterError(self.path, line, message)
        return f"[{label}]({self.book.url}{place})"

    def _value(self, expression: str, line: int) -> str:
        try:
            return COMPUTED.format(SPECIAL.sub(r"\\\g<0>", self.values[expression]))
        except KeyError:
            message = (
                f"`{expression}` has no value yet. Build the book, then the notebooks."
            )
            raise ChapterError(self.path, line, message) from None

    def _cited(self, key: str, line: int) -> str:
        try:
            return self.book.cite(key)
        except KeyError:
            message = f"{key} is not among the references. Add it, or correct the key."
            raise ChapterError(self.path, line, message) from None

    def _definition(self, role: str, label: str, target: str) -> str:
        name = target.lstrip("~")
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            module = self.book.project.find(".".join(parts[:cut]))
            if module:
                docname = self.book.project.docname(module)
                short = parts[-1] if target.startswith("~") else name
                calls = "()" if role in ("py:func", "py:meth") and not label else ""
                return f"[`{label or short}{calls}`]({self.book.address(docname)}#{'.'.join(parts[cut:])})"
        return f"`{label or name}`"


def _joined(docname: str, target: str) -> str:
    """Resolve a document's name: relative to a folder, or from the root with a slash."""
    if target.startswith("/"):
        return target[1:]
    parts = docname.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
