"""Ties: a sentence connects a name in the code with its symbol in the formulas."""

import re

import pytest
from docutils import nodes
from sphinx_annotated.page.chapter.ties import tie, tied


def sentence(text: str) -> nodes.container:
    """Prose as a page has it: code between backticks, formulas between dollar signs."""
    paragraph = nodes.paragraph()
    for part in re.split(r"(`[^`]*`|\$[^$]*\$)", text):
        kind = {"`": nodes.literal, "$": nodes.math}.get(part[:1])
        inner = part[1:-1]
        paragraph += kind(inner, inner) if kind else nodes.Text(part)
    return nodes.container("", paragraph)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("Here `x` is $X$.", ["x X"]),
        ("`q`, `k` and `v` are $Q$, $K$ and $V$.", ["q Q", "k K", "v V"]),
        ("`a`, `b`, and `c` stand for $A$, $B$, and $C$", ["a A", "b B", "c C"]),
        ("`omega`\nstands for\n$\\omega_k$.", ["omega \\omega_k"]),
        ("`w` is $W_1$, `b` is $b_\\text{out}$.", ["w W_1", "b b_\\text{out}"]),
        ("As `y` and $y$ say, `z` is $Z$.", ["z Z"]),
        ("`x` is `[batch, seq]`.", []),
        ("`x` is large, and $X$ is not.", []),
        ("`a` and `b` are $A$.", []),
        ("`x` is $X + 1$.", []),
        ("`nn.Linear` is $W$.", []),
    ],
)
def test_a_sentence_ties_names_to_symbols(text: str, pairs: list[str]) -> None:
    prose = sentence(text)
    tied(prose)
    found: dict[str, list[str]] = {}
    for node in prose.findall(tie):
        found.setdefault(node["name"], []).append(node[0].astext())
    assert [" ".join(each) for each in found.values()] == pairs
    assert prose.astext() == sentence(text).astext()
