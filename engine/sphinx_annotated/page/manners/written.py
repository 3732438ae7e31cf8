"""Prose that ``read/manners/styles.py`` encloses: reStructuredText, NumPy, Google and plain.

Napoleon translates the sections of NumPy and Google docstrings to reStructuredText, which docutils reads
as part of the page, so that roles, directives, footnotes and references are Sphinx's own. Each line knows
where in the module it comes from. What a docstring says of parameters and results becomes a list.
"""

from __future__ import annotations

import re
from textwrap import dedent
from typing import Any, NamedTuple

from docutils import nodes
from docutils.parsers.rst import directives, roles, states
from docutils.statemachine import StringList
from sphinx.locale import _
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from sphinx_annotated.page.build.state import page_of
from sphinx_annotated.page.manners.sections import DIALECTS
from sphinx_annotated.read.manners.plain import is_code
from sphinx_annotated.read.manners.rest import (
    ADORNMENT,
    FENCE,
    code_end,
    indentation,
    titles,
)

MARKDOWN_LINK = re.compile(r"(?<![\w\]`])\[([^\[\]`]+)\]\((https?://[^\s()]+)\)")
EXTERNAL = re.compile(r"`([^`<>]+?)\s*<([^`<>]+)>`_(?!_)")
FOOTNOTE = re.compile(r"\[(\d+)\]_(?!\w)|^(\s*\.\. +)\[(\d+)\](?= )")
OWN = re.compile(r"l\d+-(\d+)")  # a footnote's name for docutils: line and number
DRAWN = re.compile(r"\S {3,}\S|-\+-|([^\w\s.])\1{4,}")  # a table, a rule, an arrow
ITEM = re.compile(r"\s|[-*+•] |\(?\w{1,3}[.)] |\[\d+\]|\|")
LIST = re.compile(r"\s*([-*+]|\d+[.)]) +\S")
MARKED = re.compile(r"\s*([-*+•]|\(?\w{1,3}[.)]|#\.|\[\d+\]) +(?=\S)")
CODE = re.compile(r"(\s*)\.\. (plot|testcode|testsetup|ipython)::.*")
TOPIC = re.compile(r"(\s*)\.\. (topic|sidebar)::")  # which may not be in other text
STARTED = re.compile(r"\s*\.\. [\w:-]+::(\s|$)")
OPTION = re.compile(r"\s+:[\w-]+:")
FIELD = re.compile(r"\s*:\w[^:`]*:(\s|$)")
ROW = re.compile(r"\s*[=+|-]{2,}[ =+|-]*\s*")  # of a table
GLUED = re.compile(
    r"(?<![`\w])(`(?=\S)[^`\n]+(?<=\S)`)(?=[A-Za-z0-9])"
)  # as in `Mapping`s
ONE_COLON = re.compile(r"\s*\.\. ([\w:-]*\w):(?!:)(\s|$)")  # a comment, for docutils
HIDDEN = "The line is a comment and not shown. If it is meant as the directive, write two colons: .. %s::"
SPAN = re.compile(r"(``?)(?=\S)([^`\n]+?)(?<=\S)\1(?!`)")
LOGGER = logging.getLogger(__name__)
# Kinds of fields in docstrings, in words that Sphinx translates, each with the names that Sphinx and
# ``sections.py`` give them.
FIELDS = {
    "Parameters": ("param", "parameter", "arg", "argument"),
    "Keyword Arguments": ("key", "keyword", "kwarg", "kwparam"),
    "Other Parameters": ("otherparam",),
    "Attributes": ("var", "ivar", "cvar"),
    "Methods": ("method",),
    "Returns": ("return", "returns", "rtype"),
    "Yields": ("yield", "yields", "ytype"),
    "Receives": ("receives",),
    "Raises": ("raise", "raises", "except", "exception"),
    "Warns": ("warns",),
}
KINDS = {name: kind for kind, names in FIELDS.items() for name in names}
NAMED = ("Parameters", "Keyword Arguments", "Other Parameters", "Attributes")
TYPES = {  # fields that give the type of another one, and of which kinds that is
    "type": ("Parameters", "Keyword Arguments"),
    "paramtype": ("Parameters",),
    "kwtype": ("Keyword Arguments",),
    "othertype": ("Other Parameters",),
    "vartype": ("Attributes",),
    "rtype": ("Returns",),
    "ytype": ("Yields",),
}


class Line(NamedTuple):
    """A line of prose, with the line of the module that it comes from."""

    text: str
    number: int


class Written(SphinxDirective):
    """Prose in the style of its first argument, which starts on the line of its second."""

    required_arguments = 2
    has_content = True

    def run(self) -> list[nodes.Node]:
        style, first = self.arguments[0], int(self.arguments[1])
        lines = [Line(text, n) for n, text in enumerate(self.content, first)]
        if style == "plain":
            return plain(lines)
        found = self._parsed(self._with_code(_rest(lines, style)))
        within = nodes.container("", *found)
        for message in list(within.findall(nodes.system_message)):
            # Docutils cannot read this: it is shown as typed.
            if typed := list(message.findall(nodes.literal_block)):
                message.replace_self(typed)
                typed[0]["language"] = "text"
        for field_list in list(within.findall(nodes.field_list)):
            field_list.replace_self(_listed(field_list))
        self._spans(within.children)
        self._warn_of_comments(within, lines)
        return within.children

    def _parsed(self, lines: list[Line]) -> list[nodes.Node]:
        """Let docutils read lines as part of this document."""
        document = self.state.document
        source = document["source"]
        items = [(source, line.number - 1) for line in lines]
        content = StringList([line.text for line in lines], items=items)
        reporter: Any = document.reporter
        own = reporter.__dict__.pop("get_source_and_line", None)
        blank = roles._roles.get("")  # type: ignore[attr-defined]
        count = len(document.children)
        context = self.env.ref_context
        before = context.get("py:module")
        context["py:module"] = page_of(self.env).module.name
        machine = states.RSTStateMachine(states.state_classes, "Body")
        try:
            machine.run(content, document, match_titles=False)
        finally:
            reporter.__dict__.pop("get_source_and_line", None)
            if own is not None:
                reporter.get_source_and_line = own
            if blank is not None:
                roles._roles[""] = blank  # type: ignore[attr-defined]
            context["py:module"] = before
        found = document.children[count:]
        del document.children[count:]
        self._resolve(found)
        return found

    def _resolve(self, found: list[nodes.Node]) -> None:
        """Number the footnotes of this prose as it does: other prose on the page has others."""
        document = self.state.document
        notes: dict[str, nodes.footnote] = {}
        for note in [n for node in found for n in node.findall(nodes.footnote)]:
            name = note["names"][0] if note["names"] else ""
            if match := OWN.fullmatch(name):
                notes[name] = note
                document.autofootnotes.remove(note)
                del note["auto"]
                note.insert(0, nodes.label("", match[1]))
        refs = [n for node in found for n in node.findall(nodes.footnote_reference)]
        for ref in refs:
            name = ref.get("refname", "")
            if not (match := OWN.fullmatch(name)):
                continue
            document.autofootnote_refs.remove(ref)
            document.footnote_refs[name].remove(ref)
            if name in notes:
                link = nodes.reference("", f"[{match[1]}]", internal=True)
                link["refid"], link["ids"] = notes[name]["ids"][0], ref["ids"]
                notes[name].add_backref(ref["ids"][0])
                ref.replace_self(link)
            else:  # there is no such footnote
                ref["ids"] = []
                ref.replace_self(nodes.Text(f"[{match[1]}]"))

    def _warn_of_comments(self, within: nodes.Element, lines: list[Line]) -> None:
        """Warn of directives that lack a colon: docutils drops them as comments."""
        starts = {
            node.astext().partition(":")[0] for node in within.findall(nodes.comment)
        }
        for line in lines:
            match = ONE_COLON.match(line.text)
            if match and match[1] in starts and self._is_directive(match[1]):
                LOGGER.warning(
                    *(HIDDEN, match[1]),
                    location=f"{page_of(self.env).module.path}:{line.number}",
                    type="annotated",
                    subtype="comment",
                )

    def _with_code(self, lines: list[Line]) -> list[Line]:
        """Return lines with the code of extensions that the book does not have as code."""
        out: list[Line] = []
        options = False
        for line in lines:
            line = line._replace(text=TOPIC.sub(r"\1.. admonition::", line.text))
            match = CODE.fullmatch(line.text)
            if match and not self._is_directive(match[2]):
                line = line._replace(text=f"{match[1]}.. code-block:: python")
                options = True
            elif options and OPTION.match(line.text):
                continue
            else:
                options = False
            out.append(line)
        return out

    def _is_directive(self, name: str) -> bool:
        document = self.state.document
        found, _messages = directives.directive(
            name, self.state.memo.language, document
        )
        return found is not None

    def _spans(self, found: list[nodes.Node]) -> None:
        """Show words between single backticks as code, unless the book gives them a role."""
        if self.config.default_role:
            return
        for node in found:
            for title in list(node.findall(nodes.title_reference)):
                words = re.sub(r"(?<=\S)\s+<[^<>]+>$", "", title.astext()).removeprefix(
                    "~"
                )
                title.replace_self(nodes.literal(title.rawsource, words))


# -- reStructuredText -----------------------------------------------------------------------


def _rest(lines: list[Line], style: str) -> list[Line]:
    """Return prose as reStructuredText. Its titles start no section of the page."""
    lines = _with_gaps(_with_fences(lines))
    if style in DIALECTS:
        lines = _translated(lines, style)
    lines = _without_titles(_without_rules(_even(lines)))
    text = "\n".join(line.text for line in lines)
    first = lines[0].number if lines else 0

    def anonymous(match: re.Match[str]) -> str:
        used = re.search(rf"`{re.escape(match[1])}`_(?!_)", text)
        return match[0] if used else f"{match[0]}_"

    def footnote(match: re.Match[str]) -> str:
        number = match[1] or match[3]
        return f"{match[2] or ''}[#L{first}-{number}]{'_' if match[1] else ''}"

    def usual(text: str) -> str:
        text = EXTERNAL.sub(anonymous, GLUED.sub(r"\1\\ ", text))
        return FOOTNOTE.sub(footnote, text)

    return [Line(usual(each.text), each.number) for each in lines]


def _without_rules(lines: list[Line]) -> list[Line]:
    """Return lines without rules at their start and their end, where docutils allows none."""
    kept = [i for i, line in enumerate(lines) if not ADORNMENT.fullmatch(line.text)]
    kept = [i for i in kept if lines[i].text.strip()]
    if not kept:
        return []
    under = lines[kept[-1] + 1 : kept[-1] + 2]
    title = under and ADORNMENT.fullmatch(under[0].text)
    return lines[kept[0] : kept[-1] + (2 if title else 1)]


def _with_fences(lines: list[Line]) -> list[Line]:
    """Return lines with Markdown's blocks of code and links, which many write in any style."""
    texts = [line.text for line in lines]
    unders = {title.end - 1 for title in titles(texts)}
    out: list[Line] = []
    at = 0
    while at < len(lines):
        line, fence = lines[at], FENCE.fullmatch(texts[at])
        end = code_end(texts, at)
        if fence and end > at and at not in unders:
            head = f"{fence['indent']}.. code-block:: {fence['language'] or 'text'}"
            out += [Line(text, line.number) for text in ("", head, "")]
            out += [
                Line(f"   {text}".rstrip(), n) for text, n in lines[at + 1 : end - 1]
            ]
            out.append(Line("", lines[end - 1].number))
            at = end
        else:
            text = line.text
            if text.endswith("](") and at + 1 < len(lines):  # the address is below
                at += 1
                text += texts[at].strip()
            out.append(Line(MARKDOWN_LINK.sub(r"`\1 <\2>`__", text), line.number))
            at += 1
    return out


def _with_gaps(lines: list[Line]) -> list[Line]:
    """Return lines with a blank one above a list, a term or a directive, where many leave it out."""
    out: list[Line] = []
    literal: int | None = None  # the indentation above a block of code
    doctest = False
    for line, after in zip(lines, [*lines[1:], Line("", 0)], strict=True):
        text, depth = line.text.rstrip(), indentation(line.text)
        if literal is not None and text and depth <= literal:
            literal = None
        last = out[-1].text if out else ""
        level = bool(last.strip()) and indentation(last) == depth
        session = not doctest and text.lstrip().startswith(">>>")
        doctest = bool(text) and (doctest or session)
        opens = (
            _begins_list(text, last)
            or _is_term(text, after.text)
            or STARTED.match(text) is not None
        )
        if literal is None and level and (session or (opens and not doctest)):
            out.append(Line("", line.number))
        if literal is None and text.endswith("::"):
            literal = depth
        out.append(line)
    return out


def _even(lines: list[Line]) -> list[Line]:
    """Return lines in which what goes on with a paragraph, an item or a field is indented as these are.

    Many indent it more, or less, than docutils allows.
    """
    out: list[Line] = []
    skipped: int | None = None  # the indentation above what is no paragraph
    field: int | None = None  # the column of the field that the paragraph is in
    left, count = 0, 0  # of the paragraph: its column and its lines
    session = False
    for line in lines:
        text, depth = line.text.rstrip(), indentation(line.text)
        session = bool(text) and (session or text.lstrip().startswith(">>>"))
        if session or (skipped is not None and (depth > skipped or not text)):
            out.append(line)
            continue
        last = out[-1].text.rstrip() if out else ""
        item = MARKED.match(text)
        other = text.lstrip().startswith(("..", "|")) or ROW.fullmatch(text)
        skipped = depth if other or text.endswith("::") else None
        if not text or other:
            count, field = 0, None
        elif FIELD.match(text):
            left, count, field = depth, 1, depth
        elif item:
            if LIST.match(text) and count and depth >= left and last.endswith(":"):
                out.append(Line("", line.number))
            left, count, field = item.end(), 2 if len(text.split()) > 4 else 1, None
        elif count and depth == field:
            column = left if left > depth else depth + 4
            line = line._replace(text=" " * column + text.lstrip())
        elif count > 1 and depth > left and not last.endswith(":"):
            line = line._replace(text=" " * left + text.lstrip())
        elif count and field is not None and depth > field:
            left, count = depth, 2
        else:
            count = count + 1 if count and depth == left else 1
            left, field = depth, None
        out.append(line)
    return out


def _begins_list(text: str, last: str) -> bool:
    begins = LIST.match(text) and last.rstrip().endswith(":")
    return bool(begins) and not LIST.match(last)


def _is_term(text: str, after: str) -> bool:
    """Return whether a line is a word with a colon, and the next one, further in, is about it."""
    if not text.endswith(":") or text.endswith("::"):
        return False
    return bool(after.strip()) and indentation(after) > indentation(text)


def _translated(lines: list[Line], style: str) -> list[Line]:
    """Return what Napoleon makes of a docstring, each line with the number of one that it contains."""
    texts = [line.text for line in lines]
    made = "\n".join(DIALECTS[style](texts).lines()).split("\n")
    out, at = [], 0
    for text in made:
        words = text.strip()
        for k in range(at, len(texts)):
            own = texts[k].strip()
            if own and (own in words or (words and words in own)):
                at = k
                break
        out.append(Line(text, lines[min(at, len(lines) - 1)].number))
    return out


def _without_titles(lines: list[Line]) -> list[Line]:
    """Return lines in which each underlined title is a bold line: docutils allows no section here."""
    out, at = [], 0
    for title in titles([line.text for line in lines]):
        out += lines[at : title.at]
        number, at = lines[title.end - 2].number, title.end
        rubric = f"{' ' * title.indent}.. rubric:: {title.text}"
        out += [Line(text, number) for text in ("", rubric, "")]
    return out + lines[at:]


# -- parameters and results -----------------------------------------------------------------


class _Field(NamedTuple):
    name: str
    type: list[nodes.Node]
    body: list[nodes.Node]


def _listed(field_list: nodes.field_list) -> list[nodes.Node]:
    """Return the fields of a docstring as lists by kind, and other fields as they are."""
    kinds: dict[str, list[_Field]] = {}
    types: list[tuple[tuple[str, ...], str, list[nodes.Node]]] = []
    others = nodes.field_list()
    for node in list(field_list.children):
        word, _gap, rest = node[0].astext().strip().partition(" ")
        word, rest, body = word.lower(), rest.strip(), list(node[1].children)
        if word == "meta":  # a note for Sphinx
            continue
        if word in TYPES:
            types.append((TYPES[word], rest, body))
        elif word in KINDS:
            kind, type_ = KINDS[word], ""
            if kind in NAMED:
                type_, _gap, rest = rest.rpartition(" ")
            own: list[nodes.Node] = [nodes.Text(type_)] if type_ else []
            kinds.setdefault(kind, []).append(_Field(rest, own, body))
        elif isinstance(body[0] if body else None, nodes.bullet_list):
            kinds[node[0].astext()] = [_Field("", [], body)]
        else:
            others.append(node)
    for named, name, body in types:
        _add_type(kinds, named, name, body)
    made: list[nodes.Node] = [others] if len(others) else []
    for kind, fields in kinds.items():
        title = _(kind) if kind in FIELDS else kind
        made.append(nodes.rubric("", title, classes=["fields"]))
        items = [_item(each) for each in fields]
        if len(items) == 1 and not fields[0].name:
            made += items[0].children
        else:
            made.append(nodes.bullet_list("", *items, classes=["fields"]))
    return made


def _add_type(
    kinds: dict[str, list[_Field]],
    named: tuple[str, ...],
    name: str,
    body: list[nodes.Node],
) -> None:
    """Add what a field says of a type to the field that it belongs to, or as a field of its own."""
    simple = len(body) == 1 and isinstance(body[0], nodes.paragraph)
    words = list(body[0].children) if simple else []
    for kind in named:
        fields = kinds.get(kind, [])
        for i, field in enumerate(fields):
            if simple and not field.type and name in ("", field.name):
                fields[i] = field._replace(type=words)
                return
    body = [] if simple else body
    kinds.setdefault(named[0], []).append(_Field(name, words, body))


def _item(field: _Field) -> nodes.list_item:
    """Return a parameter or result: its name, its type, and what it is."""
    head, type_ = nodes.paragraph(), field.type
    first = field.body[0] if field.body else None
    if first is not None:  # for messages about what is in it
        head.source, head.line = first.source, first.line
    if not field.name and type_ and isinstance(first, nodes.paragraph):
        # A result with a name, as NumPy's have: the name, its type, and what it is.
        name, *words = first.children
        if isinstance(name, nodes.strong):
            kind = [node.deepcopy() for node in type_]
            said = "".join(node.astext() for node in type_).endswith(".")
            if said and not words:  # it is no type
                head += [name, nodes.Text(" – "), *kind]
            else:
                emphasis = nodes.emphasis("", "", *kind)
                head += [name, nodes.Text(" ("), emphasis, nodes.Text(")"), *words]
            return nodes.list_item("", head, *field.body[1:])
    if field.name:
        head += nodes.strong("", "", nodes.literal("", field.name.replace("\\", "")))
    if type_:
        head += nodes.Text(" (" if field.name else "")
        head += nodes.emphasis("", "", *[node.deepcopy() for node in type_])
        head += nodes.Text(")" if field.name else "")
    item = nodes.list_item("", head)
    rest = list(field.body)
    if rest and isinstance(rest[0], nodes.paragraph):
        head += [nodes.Text(" – " if len(head) else ""), *rest.pop(0).children]
    if not len(head):
        item.remove(head)
    item += rest
    return item


# -- plain text -----------------------------------------------------------------------------


def plain(lines: list[Line]) -> list[nodes.Node]:
    """Return plain text: paragraphs, lists and tables line by line, and code as code."""
    made: list[nodes.Node] = []
    paragraph: list[str] = []
    texts = [line.text for line in lines]
    fenced = 0  # the line after a block of code
    for at, text in enumerate([*texts, ""]):
        if at < fenced:
            continue
        fence = FENCE.fullmatch(text)
        fenced = code_end(texts, at) if fence else 0
        session = text.lstrip().startswith(">>>")
        session = session and not any(
            each.lstrip().startswith(">>>") for each in paragraph
        )
        if paragraph and (fenced > at or session or not text.strip()):
            made.append(_plain_paragraph(paragraph))
            paragraph = []
        if fence and fenced > at:
            code = dedent("\n".join(texts[at + 1 : fenced - 1]))
            language = fence["language"] or "text"
            made.append(nodes.literal_block(code, code, language=language))
        elif text.strip():
            paragraph.append(text)
    return made


def _plain_paragraph(lines: list[str]) -> nodes.Node:
    text = dedent("\n".join(lines))
    if text.startswith(">>>"):
        return nodes.literal_block(text, text, language="pycon")
    if is_code(text):
        return nodes.literal_block(text, text, language="python")
    if len(lines) > 1 and any(map(DRAWN.search, lines)):
        return nodes.literal_block(text, text, language="text")
    if any(map(ITEM.match, lines)):
        lines = _joined(lines)
        typed = ("\u00a0" * indentation(line) + line.strip() for line in lines)
        return nodes.line_block(text, *(_words(nodes.line, line) for line in typed))
    return _words(nodes.paragraph, " ".join(line.strip() for line in lines))


def _joined(lines: list[str]) -> list[str]:
    """Return the lines of a list with those that continue an item in one."""
    out: list[str] = []
    for line in lines:
        last = MARKED.match(out[-1]) if out else None
        if last and not MARKED.match(line) and indentation(line) == last.end():
            out[-1] += f" {line.strip()}"
        else:
            out.append(line)
    return out


def _words(kind: type[nodes.Element], text: str) -> nodes.Element:
    """Return text in which hyphens and quotes stay what they are."""
    return kind("", "", *_spans(text), support_smartquotes=False)


def _spans(text: str) -> list[nodes.Node]:
    """Return text with what is between backticks as code."""
    made: list[nodes.Node] = []
    at = 0
    for match in SPAN.finditer(text):
        made += [nodes.Text(text[at : match.start()]), nodes.literal("", match[2])]
        at = match.end()
    made.append(nodes.Text(text[at:]))
    return [node for node in made if node.astext()]
