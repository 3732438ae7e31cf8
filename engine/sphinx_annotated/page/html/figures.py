"""Make a figure drawn by matplotlib a part of the page, in the theme's colours."""

from __future__ import annotations

import hashlib
import html
import re

from sphinx.locale import _

# Colours of `matplotlibrc`, and the theme's variables that replace them.
COLOURS = {
    "ffffff": "ground",
    "24272d": "ink",
    "5d616a": "muted",
    "d9d4c7": "axis",
    "e9e5dc": "grid",
    "0b6273": "0",
    "b06000": "1",
    "2f6db3": "2",
    "8c3a73": "3",
    "3d7a3f": "4",
    "74787f": "5",
}
NARROW = 'class="plot-narrow" style="display: none" data-pagefind-ignore'
PANEL = re.compile(r'<g id=.axes[^>]*>\s*<g id="patch_\d+">\s*<path d="M ([\d.]+)')
NOTE = re.compile(r"""\bid=(["'])(axes|curve|dots):(.*?)\1""")  # see curves.py
PLACES = re.compile(r'\b(d|x|y)="([^"]*)"')
MOVED = re.compile(r"\b(?:translate|rotate)\([^)]*\)")
COLOUR = re.compile(r"#(" + "|".join(COLOURS) + r")\b", re.IGNORECASE)


LINK = re.compile(r"""\s(?:xlink:)?href\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
SAFE = re.compile(r"(?:https?:|mailto:|data:image/|[^:]*(?:[/?#]|$))", re.IGNORECASE)
HANDLER = re.compile(r"""\son\w+\s*=\s*(?:"[^"]*"|'[^']*')""", re.IGNORECASE)
SCRIPT = re.compile(r"<script\b.*?(?:</script\s*>|/>)", re.IGNORECASE | re.DOTALL)


def themed(svg: str, label: str, narrow: str = "") -> str:
    """Return an SVG file as HTML, and after it the drawing for narrow screens, if there is one.

    A theme shows one of the two. Without one that knows of it, the second is hidden. If panels that are next
    to each other are below each other in it, a line says so, because the prose says "left" and "right".
    """
    drawings = _themed(svg, label, 'class="plot"')
    if narrow:
        drawings += _themed(narrow, label, NARROW)
        if _columns(narrow) < _columns(svg):
            order = _("The panels, from left to right, are here from top to bottom.")
            drawings += f'<p class="plot-order" style="display: none" data-pagefind-ignore>{order}</p>'
    return f'<figure class="out out--plot">{drawings}</figure>'


def _columns(svg: str) -> int:
    """Return how many columns the panels are in."""
    return len({round(float(left)) for left in PANEL.findall(svg)})


def _themed(svg: str, label: str, kind: str) -> str:
    """Return a drawing without prolog and without style that would leak, in theme colours, labelled.

    Coordinates are rounded to 0.01 points, which halves the size.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = _passive(svg)
    svg = NOTE.sub(r"data-\2=\1\3\1", svg)
    svg = PLACES.sub(lambda m: f'{m.group(1)}="{_rounded(m.group(2))}"', svg)
    svg = MOVED.sub(lambda m: _rounded(m.group()), svg)
    svg = re.sub(r"\n\s*", "\n", svg)
    # Drop no-op rotations from text.
    svg = re.sub(r' transform="rotate\(-?0 [^"]*"', "", svg)
    svg = re.sub(r"\s*font-family:[^;\"]*;?|font: ([\d.]+px)[^;\"]*", _font, svg)
    svg = COLOUR.sub(
        lambda m: f"var(--fig-{COLOURS[m.group(1).lower()]}, {m.group()})", svg
    )
    svg = _own_ids(svg)
    role = "group" if "<a " in svg else "img"  # links inside an image cannot be focused
    name = html.escape(label, quote=True)
    svg = re.sub(
        r'<svg [^>]*(viewBox="[^"]*")[^>]*>',
        lambda m: (
            f'<svg {kind} {m.group(1)} role="{role}" aria-label="{name}" '
            'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
        ),
        svg,
        count=1,
    )
    return svg.strip()


def _passive(svg: str) -> str:
    """Drop scripts, and links to anything but a page, an address or an image."""

    def link(match: re.Match[str]) -> str:
        address = html.unescape(match[1] if match[1] is not None else match[2])
        return match[0] if SAFE.match(re.sub(r"[\x00-\x20]", "", address)) else ""

    return LINK.sub(link, HANDLER.sub("", SCRIPT.sub("", svg)))


def _own_ids(svg: str) -> str:
    """Keep only ids that are used, and make them unique: a page has several figures."""
    used = set(re.findall(r"""(?:href="|url\()#([^")]+)""", svg))
    prefix = hashlib.sha256(svg.encode()).hexdigest()[:6]
    svg = re.sub(
        r'\s+id="([^"]*)"',
        lambda m: f' id="f{prefix}-{m.group(1)}"' if m.group(1) in used else "",
        svg,
    )
    return re.sub(r"""(href="|url\()#([^")]+)""", rf"\g<1>#f{prefix}-\g<2>", svg)


def _rounded(places: str) -> str:
    """Return the numbers of a path or of a coordinate in one line, rounded."""
    spaced = " ".join(places.split())
    return re.sub(r"-?\d+\.\d{3,}", lambda m: f"{float(m.group()):.2f}", spaced)


def _font(match: re.Match[str]) -> str:
    return f"font-size: {match.group(1)}" if match.group(1) else ""
