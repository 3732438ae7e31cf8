"""Where a formula cannot be drawn, it is plain text: in titles, in the search's places and its excerpts."""

import pytest
from docutils import nodes
from plain_math import plain, plain_title, searchable, without_formulas

KATEX = (
    '<span class="math"><span class="katex"><span class="katex-mathml"><math><semantics><mrow><msqrt>'
    '<mi>d</mi></msqrt></mrow><annotation encoding="application/x-tex">\\sqrt{d}</annotation></semantics>'
    '</math></span><span class="katex-html"><span>d</span></span></span></span>'
)


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\sqrt{d}", "√d"),
        (r"\frac{dy}{dx} = 2 \max(x, 0)", "dy/dx = 2 max(x, 0)"),
        (r"\max(x,0)^2", "max(x,0)²"),
        (r"O(n^2)", "O(n²)"),
        (
            r"y_t = \frac{1}{K} \sum_{i=0}^{K-1} x_{t-i}",
            "y_t = 1/K Σ_(i=0)^(K-1) x_(t−i)",
        ),
        (
            r"\text{softmax}\left(\frac{QK^\top}{\sqrt{d_k}}\right)V",
            "softmax(QKᵀ/√d_k)V",
        ),
        (r"d_{\text{model}} \le 10^{-9}", "d_model ≤ 10⁻⁹"),
        (r"\varepsilon \approx \beta_2", "ε ≈ β_2"),
    ],
)
def test_a_formula_is_read_as_text(tex: str, text: str) -> None:
    assert plain(tex) == text


def test_a_title_has_its_formula_as_text() -> None:
    title = nodes.title("", "Why ", nodes.math("", r"\sqrt{d}"), nodes.Text("?"))
    assert plain_title(title) == "Why √d?"
    assert without_formulas(f"<a>Why {KATEX}?</a>") == "<a>Why √d?</a>"


def test_the_search_reads_a_formula_as_text() -> None:
    assert searchable(f"<p>{KATEX}</p>").startswith(
        '<p><span class="math" data-pagefind-index-attrs="data-tex" data-tex="√d"><span class="katex">'
    )
