"""The ``variant`` directive: one class as a difference from another.

``:::{variant} Variant`` with ``:of: package.module.Base`` shows the lines that differ.
``:::{variant} Base`` with ``:with: argument=Value`` shows the lines that change with another
argument. With ``:cost: expression`` the heading shows the cost of the change: the value of the
expression after the chapter's last cell.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import pairwise
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.locale import _
from sphinx.util.docutils import SphinxDirective

from sphinx_annotated.page.build.catalogues import words_of
from sphinx_annotated.page.build.state import Shown, State, page_of, state_of
from sphinx_annotated.page.directives.difference import (
    Stretch,
    changes,
    code_lines,
    marks,
)
from sphinx_annotated.page.html.code import counted, segments_of, visible
from sphinx_annotated.page.html.words import spoken
from sphinx_annotated.read.memo import digest_of

SIGNS = {"-": "ln--del", "+": "ln--add", " ": ""}


class variant(nodes.General, nodes.Element):  # noqa: N801 (docutils names nodes so)
    """A difference: ``lines`` of (sign, module, number, text, marks), ``names`` and ``cost``."""


class Variant(SphinxDirective):
    """Its row moves it to the code column."""

    required_arguments = 1
    option_spec = {  # noqa: RUF012
        "of": directives.unchanged_required,
        "with": directives.unchanged_required,
        "cost": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        if state_of(self.env).page is None:
            raise self.error("variant: only a chapter can show one. Move it there.")
        page = page_of(self.env)
        base, name = self.options.get("of", ""), self.arguments[0]
        given = self.options.get("with", "")
        try:
            found = changes(page.project, page.module, base, name, given)
        except LookupError as error:
            raise self.error(f"variant: {error}. Correct the name.") from None
        for module in {change.line.module for change in found}:
            state_of(self.env).use(self.env.docname, f"lines of {module}")
        was, now = (each.rpartition(".")[2] for each in (base or name, name))
        names = (was, now if base else f"{now}({given})")
        node = variant(names=names)
        cost = page.record.values.get(self.options.get("cost", ""), "")
        node["cost"] = spoken(cost, words_of(self.env.docname))
        node["lines"] = [
            (c.sign, c.line.module, c.line.number, c.line.text, marked)
            for c, marked in zip(found, marks(found), strict=True)
        ]
        return [node]


def _lines_of(state: State, name: str) -> str:
    """Return a digest of a module's code and its place: prose may move the lines."""
    module = state.project.find(name)
    if module is None:
        return ""

    def work() -> str:
        return digest_of(f"{line.number} {line.text}" for line in code_lines(module))

    return state.project.once(module, "lines", work)


Shown.kinds["lines"] = _lines_of


def visit_variant(translator: Any, node: variant) -> None:
    base, name = node["names"]
    cost = (
        f'<span class="vdiff__stat">{escape(node["cost"])}</span>'
        if node["cost"]
        else ""
    )
    parts = [
        f'<figure class="vdiff"><figcaption class="vdiff__head"><span><code>{base}</code> → '
        f'<code>{name}</code></span>{cost}</figcaption><pre class="code">'
    ]
    parts += _lines(translator.builder, node["lines"])
    translator.body.append("".join(parts) + "</pre></figure>")
    raise nodes.SkipNode


def _lines(
    builder: Any, lines: list[tuple[str, str, int, str, list[Stretch]]]
) -> Iterator[str]:
    jumps = counted(line[2] for line in lines)
    line = _("line {}")
    words = {"-": _("removed: "), "+": _("added: "), " ": ""}
    for (sign, module, number, text, marked), jump in zip(lines, jumps, strict=True):
        kind, word = SIGNS[sign], words[sign]
        docname = module.replace(".", "/")
        page = "" if docname == builder.current_docname else None
        if page is None and docname in builder.env.all_docs:
            page = builder.get_relative_uri(builder.current_docname, docname)
        link = f' href="{page}#L{number}"' if page is not None else ""
        hidden = f'<span class="visually-hidden">{word}</span>' if word else ""
        indent = len(text) - len(text.lstrip())
        code = "".join(_code(text, indent, marked))
        yield (
            f'<span class="ln i{indent // 4} {kind}"{jump}><a class="lno"{link} '
            f'data-sign="{sign.strip()}" tabindex="-1" aria-label="{line.format(number)}"></a>'
            f'{hidden}<i class="w">{" " * indent}</i>{code}\n</span>'
        )


def _code(text: str, indent: int, marked: list[Stretch]) -> Iterator[str]:
    """Yield the line's highlighted parts. Words that were added or removed are marked."""
    at = indent
    for kind, part in segments_of(text.strip()):
        cuts = {at, at + len(part)} | {
            cut for stretch in marked for cut in stretch if at < cut < at + len(part)
        }
        ordered = sorted(cuts)
        for start, stop in pairwise(ordered):
            html = visible(text[start:stop])
            html = f'<span class="{kind}">{html}</span>' if kind else html
            inside = any(a <= start and stop <= b for a, b in marked)
            yield f"<mark>{html}</mark>" if inside else html
        at += len(part)
