"""Words of code in prose: typography leaves them as they were typed.

Sphinx makes ``--`` a dash and straight quotes curly, which is right between words and wrong
inside of ``--flag`` and ``d["key"]``.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.transforms import SphinxTransform

from sphinx_annotated.page.build.state import state_of

# An option, dashes at a word, an index or a call with a text or an ellipsis, a value in quotes, a word with a
# backslash that would be taken for an escape.
CODE = re.compile(
    r"""
      (?<![\w-])--+\w[\w-]*(?:=\S*\w)?
    | \w+--(?!\w)
    | \w[\w.]*(?:[\[(](?:[^\[\]()\n]*(?:["']|\.\.\.)[^\[\]()\n]*)[\])])+
    | \w+=(?:"[^"\n]*"|'[^'\n]*')
    | \S*\\[\\"'.`-]\S*
    """,
    re.VERBOSE,
)


class AsTyped(SphinxTransform):
    """Marks words of code in a chapter's text, so that Sphinx leaves them alone."""

    default_priority = 740  # before Sphinx's smart quotes

    def apply(self, **kwargs: Any) -> None:
        if state_of(self.env).page is None:
            return
        for text in list(self.document.findall(nodes.Text)):
            fixed = (nodes.literal, nodes.FixedTextElement, nodes.math, nodes.raw)
            if isinstance(text.parent, fixed) or not CODE.search(text):
                continue
            parts: list[nodes.Node] = []
            at = 0
            for match in CODE.finditer(text):
                parts.append(nodes.Text(text[at : match.start()]))
                parts.append(nodes.inline("", match[0], support_smartquotes=False))
                at = match.end()
            parts.append(nodes.Text(text[at:]))
            text.parent.replace(text, [part for part in parts if part.astext()])
