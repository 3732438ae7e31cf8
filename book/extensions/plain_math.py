r"""Formulas as plain text: `\sqrt{d_k}` is √d_k in titles, in the search's places and in its excerpts."""

import re
import unicodedata
from html import escape, unescape
from typing import Any

from docutils import nodes

TOKEN = re.compile(r"\\[a-zA-Z]+\*?|\\.|[{}^_]|\d+(?:[.,]\d+)*|\s+|.", re.DOTALL)
NAMED = {
    "cdot": "·",
    "times": "×",
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "ne": "≠",
    "neq": "≠",
    "approx": "≈",
    "sim": "~",
    "pm": "±",
    "infty": "∞",
    "to": "→",
    "mapsto": "↦",
    "in": "∈",
    "odot": "⊙",
    "sum": " Σ",
    "prod": " Π",
    "dots": "…",
    "ldots": "…",
    "cdots": "…",
    "mid": "|",
    "top": "T",
    "partial": "∂",
    "nabla": "∇",
    "ll": "≪",
    "gg": "≫",
    "quad": " ",
    "qquad": " ",
    "lfloor": "⌊",
    "rfloor": "⌋",
    "lceil": "⌈",
    "rceil": "⌉",
}
# They change the look of what follows.
DROPPED = {"left", "right", "text", "mathrm", "operatorname", "mathbf", "mathit"}
DROPPED |= {"textit", "displaystyle", "boldsymbol", "mathcal", "big", "bigl", "bigr"}
DROPPED |= {"limits"}
RAISED = str.maketrans("0123456789+-nTi", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿᵀⁱ")
FORMULA = re.compile(
    r'<(?:span|div) class="math[^"]*"[^>]*>'
    r'(?:(?!</annotation>).)*<annotation encoding="application/x-tex">(.*?)</annotation>',
    re.DOTALL,
)


def plain(tex: str) -> str:
    """Return a formula as one line of text."""
    text = _row(TOKEN.findall(tex))
    text = re.sub(r"\b(max|min|log|exp|sin|cos|tanh|softmax) \(", r"\1(", text)
    return re.sub(r"\s+", " ", text).strip()


def _row(tokens: list[str]) -> str:
    """Return the text of tokens up to the end of their group, and take them."""
    text = ""
    while tokens and tokens[0] != "}":
        text += _next(tokens)
    return text


def _next(tokens: list[str]) -> str:
    """Return the text of the next symbol or group, and take it."""
    token = tokens.pop(0)
    if token == "{":
        text = _row(tokens)
        del tokens[:1]
        return text
    if token == "^":
        power = _argument(tokens).replace("−", "-")
        raised = power.translate(RAISED)
        return raised if set(raised).isdisjoint(power) else f"^{_grouped(power)}"
    if token == "_":
        return f"_{_grouped(_argument(tokens))}"
    if not token.startswith("\\"):
        return {"-": "−", "~": " ", "&": " "}.get(token, token)
    name = token[1:].rstrip("*")
    if name in ("frac", "dfrac", "tfrac"):
        return f"{_grouped(_argument(tokens))}/{_grouped(_argument(tokens))}"
    if name == "sqrt":
        return f"√{_grouped(_argument(tokens))}"
    if name in ("begin", "end"):
        _argument(tokens)
        return " "
    if name in DROPPED:
        return ""
    return _symbol(name)


def _argument(tokens: list[str]) -> str:
    while tokens and tokens[0].isspace():
        tokens.pop(0)
    return _next(tokens).strip() if tokens else ""


def _grouped(text: str) -> str:
    """Return a text in parentheses, if it is more than one symbol."""
    return text if re.fullmatch(r"[\w.…√]+", text) else f"({text})"


def _symbol(name: str) -> str:
    if not name.isalpha():  # a space, a line break or a brace
        return name if name in "{}%#_&$|" else " "
    case = "CAPITAL" if name[0].isupper() else "SMALL"
    try:
        greek = unicodedata.lookup(
            f"GREEK {case} LETTER {name.removeprefix('var').upper()}"
        )
    except KeyError:
        greek = f" {name} "
    return NAMED.get(name, greek)


def plain_title(node: nodes.Node) -> str:
    """Return a title's words, its formulas as plain text."""
    if isinstance(node, nodes.math):
        return plain(node.astext())
    if isinstance(node, nodes.Text) or not isinstance(node, nodes.Element):
        return node.astext()
    return "".join(map(plain_title, node.children))


def without_formulas(html: str) -> str:
    """Return HTML with the formulas of KaTeX as plain text."""
    done, at = [], 0
    for match in FORMULA.finditer(html):
        if match.start() >= at:
            done += [html[at : match.start()], escape(plain(unescape(match[1])))]
            at = _end(html, match.start())
    return "".join([*done, html[at:]])


def _end(html: str, start: int) -> int:
    """Return where the element ends that starts there."""
    tag = "span" if html.startswith("<span", start) else "div"
    depth = 0
    for match in re.compile(rf"<(/?){tag}\b").finditer(html, start):
        depth += -1 if match[1] else 1
        if depth == 0:
            return html.index(">", match.start()) + 1
    return len(html)


def searchable(body: str) -> str:
    """Return a page's text whose formulas the search reads as plain text."""

    def told(match: re.Match[str]) -> str:
        text = escape(plain(unescape(match[1])), quote=True)
        start, _, rest = match[0].partition(">")
        words = f'data-pagefind-index-attrs="data-tex" data-tex="{text}"'
        return f"{start} {words}>{rest}"

    return FORMULA.sub(told, body)


def in_plain_words(
    app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Write the formulas of titles as text: of the page, of its contents and of its neighbours."""
    for name in ("title", "toc"):
        if context.get(name):
            context[name] = without_formulas(context[name])
    for name in ("prev", "next"):
        if context.get(name):
            title = without_formulas(context[name]["title"])
            context[name] = {**context[name], "title": title}
    if context.get("body"):
        context["body"] = searchable(context["body"])
