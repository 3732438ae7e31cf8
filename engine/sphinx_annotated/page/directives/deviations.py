"""The ``deviation`` directive: a note that the code differs from a source; ``deviations`` lists them.

``:::{deviations} the slides`` lists those whose title starts with these words, in the order of the book, and
``:::{deviations}`` lists all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.locale import _
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import docname_join
from sphinx.util.docutils import SphinxDirective

from sphinx_annotated.page.build.contents import in_order
from sphinx_annotated.page.build.state import Shown, State, state_of
from sphinx_annotated.page.directives.values import with_values
from sphinx_annotated.page.html.boxes import between
from sphinx_annotated.read.chapter import Chapter
from sphinx_annotated.read.memo import digest_of
from sphinx_annotated.read.prose import as_typed
from sphinx_annotated.run.job import Job

NOTE = re.compile(r"^(:{3,})\{deviation\} *(.+)\n((?:.*\n)*?)\1$", re.MULTILINE)
PAGE = re.compile(r"\{doc\}`(?:([^`<]*)<)?([^`<>]+)>?`")


class deviation(nodes.Admonition, nodes.Element):  # noqa: N801
    """A note that the code deviates from a source, folded to its title."""


class deviation_title(nodes.TextElement):  # noqa: N801
    """From what it deviates."""


class Deviation(SphinxDirective):
    """``:::{deviation} the paper, section 3``: how the code differs, and why."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.assert_has_content()
        where, messages = self.state.inline_text(self.arguments[0], self.lineno - 1)
        node, title = deviation(), deviation_title(self.arguments[0], "", *where)
        self.set_source_info(title)  # then it can be translated
        node += title
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node, *messages]


class Deviations(SphinxDirective):
    """A list of deviations, each with the chapter and the definition it is in."""

    optional_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        state, source = state_of(self.env), "".join(self.arguments)
        found: list[nodes.Node] = []
        state.use(self.env.docname, f"deviations of {source}")
        for docname, job in state.jobs.items():
            if lines := _lines(state, job, source):
                group = deviations(docname=docname)
                text = StringList("\n".join(lines).split("\n"), source=str(job.path))
                self.state.nested_parse(text, self.content_offset, group)
                found.append(group)
        if not found:
            words = (
                f"no chapter has one from {source}" if source else "no chapter has one"
            )
            raise self.error(f"deviations: {words}. Correct it.")
        whole = nodes.container(classes=["deviations"])
        whole += found
        return [whole]


def _lines(state: State, job: Job, source: str) -> list[str]:
    """Return Markdown: an item for each deviation of a chapter from a source, or from any."""
    values = state.values(job)

    def work() -> list[str]:
        name = job.module.name
        return list(_listed(job.chapter, job.docname, name, source, values))

    given = digest_of(f"{text} {value}" for text, value in values.items())
    return state.project.once(job.module, f"deviations of {source}", work, given)


def _all_lines(state: State, source: str) -> str:
    return digest_of(
        f"{docname} {_lines(state, job, source)}" for docname, job in state.jobs.items()
    )


Shown.kinds["deviations"] = _all_lines


class deviations(nodes.General, nodes.Element):  # noqa: N801
    """The deviations of one chapter, ``docname``, in a list."""


class From(SphinxPostTransform):
    """Puts the words "Deviation from" around each title, in the order of the page's language."""

    default_priority = 10

    def run(self, **kwargs: Any) -> None:
        before, after = _("Deviation from {}").split("{}")
        for title in self.document.findall(deviation_title):
            title.insert(0, nodes.Text(before))
            title.append(nodes.Text(after))


class InOrder(SphinxPostTransform):
    """Brings the chapters of a list of deviations into the order of the book."""

    default_priority = 10

    def run(self, **kwargs: Any) -> None:
        for group in list(self.document.findall(deviations)):
            if group.parent.children[0] is group:
                order = in_order(self.app)
                whole = group.parent
                whole.children.sort(key=lambda n: order.index(n["docname"]))  # type: ignore[index]
        for group in list(self.document.findall(deviations)):
            group.replace_self(group.children)


def _listed(
    chapter: Chapter, docname: str, module: str, source: str, values: Mapping[str, str]
) -> Iterator[str]:
    """Yield Markdown: an item for each deviation of a chapter from a source, or from any."""
    for cell in chapter.cells:
        for row in cell.rows:
            for match in NOTE.finditer(row.prose + "\n"):
                title = " ".join(match[2].split())
                if source and title != source and not title.startswith(f"{source}, "):
                    continue
                around = chapter.around(row.blocks[0].lines[0]) if row.blocks else []
                where = f"{{doc}}`/{docname}`"
                if around:
                    name = around[-1][0].qualname
                    where += f", {{py:obj}}`{name} <{module}.{name}>`"
                words = with_values(match[3].strip(), values)
                words = PAGE.sub(lambda m: _absolute(m, docname), words)
                text = as_typed(" ".join(words.split("\n")))
                part = title.removeprefix(source).removeprefix(", ")
                yield f"- **{where}** ({part}). {text}"


def _absolute(match: re.Match[str], docname: str) -> str:
    """Return a link to a page that leads there from any folder."""
    target = match[2].strip()
    target = target if target.startswith("/") else f"/{docname_join(docname, target)}"
    return f"{{doc}}`{match[1]}<{target}>`" if match[1] else f"{{doc}}`{target}`"


NOTE_HTML = between(lambda node: '<details class="note note--deviation">', "</details>")
TITLE_HTML = between(lambda node: '<summary class="note__title">', "</summary>")
