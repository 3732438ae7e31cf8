"""The card of each page, which other sites show where it is linked: its picture beside its title.

A card is an SVG of 1200 x 630 that resvg draws while the page is written; no browser is needed. resvg reads
neither variables nor `:is()` in style sheets, so both are resolved first. Fonts are the book's own, and those
that matplotlib has for what these lack, so a card is the same on every machine.
"""

from __future__ import annotations

import hashlib
import io
import re
from html import escape, unescape
from pathlib import Path

import resvg_py
from docutils import nodes
from drawing.canvas import STYLE
from fontTools.ttLib import TTFont
from PIL import Image, ImageFont, PngImagePlugin
from sphinx_annotated.page.directives.pictures import picture
from sphinx_annotated.run.fonts import unpacked

FOLDER = "_cards"
SIZE = WIDTH, HEIGHT = 1200, 630
SMALLEST = 24  # letters of a title
THEME = Path(__file__).parents[1] / "theme" / "static"
MARK = (THEME / "favicon.svg").read_text(encoding="utf-8")
MEDIA = re.compile(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*\s*\}")
VARIABLE = re.compile(r"var\((--[\w-]+)(?:,([^()]*))?\)")
SET = re.compile(r"(--[\w-]+):([^;}]*)")
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
EITHER = re.compile(r":is\(([^)]*)\)")
VIEW = re.compile(r'viewBox="\S+ \S+ (\S+) ([^"\s]+)"')
LABEL = re.compile(r'aria-label="([^"]*)"')
FAMILIES = '"Source Serif 4", "DejaVu Sans"'
FONTS = ("serif-regular", "serif-bold", "serif-i-regular")
CODE = '"DejaVu Sans Mono"'


def plain_style(css: str) -> str:
    """Return a style sheet without variables, lists of selectors, and states that a card has not."""
    css = MEDIA.sub("", re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL))
    css = without_variables(css, dict(SET.findall(css)))
    rules = []
    for selector, body in RULE.findall(css):
        if not re.search(r":(root|hover|focus)", selector):
            either = EITHER.search(selector)
            names = either[1].split(",") if either else [""]
            for name in names:
                one = EITHER.sub(name.strip(), selector, count=1)
                rules.append(f"{one.strip()} {{{body}}}")
    return "\n".join(rules)


def without_variables(text: str, known: dict[str, str]) -> str:
    """Return text with the values of CSS variables, or what is given in case there is none."""
    known = {"--font-drawn": FAMILIES, "--font-code": CODE} | known
    while VARIABLE.search(text):
        text = VARIABLE.sub(lambda m: known.get(m[1], m[2] or "").strip(), text)
    return text


def drawing(doctree: nodes.document) -> str:
    """Return the first picture of a page, or else its first figure, as SVG; or nothing."""
    for node in doctree.findall(picture):
        return str(node["svg"])
    for raw in doctree.findall(nodes.raw):
        if found := re.search(r'<svg class="plot".*?</svg>', raw.astext(), re.DOTALL):
            return found[0]
    return ""


def label(svg: str) -> str:
    """Return what a drawing is called."""
    found = LABEL.search(svg)
    return unescape(found[1]) if found else ""


def card(title: str, part: str, book: str, svg: str, files: list[str]) -> str:
    """Return the card of a page as SVG, its title in as many lines as it needs."""
    bold = files[1]
    size, wide = (62, 440) if svg else (84, 1060)
    lines = wrapped(title, wide, ImageFont.truetype(bold, size))
    while size > SMALLEST and (
        len(lines) > 5 or widest(lines, ImageFont.truetype(bold, size)) > wide
    ):
        size -= 4
        lines = wrapped(title, wide, ImageFont.truetype(bold, size))
    step = size * 1.15
    top = HEIGHT / 2 - step * (len(lines) - 1) / 2
    words = [
        f'<text class="title" x="64" y="{top + step * i:.0f}" '
        f'font-size="{size}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    ]
    style = f"text {{ font-family: {FAMILIES}; fill: #24272c; }} {plain_style(STYLE)}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{WIDTH}" height="{HEIGHT}"><style>{style} .title {{ font-weight: 700 }}</style>'
        f'<rect width="100%" height="100%" fill="#fdfcf9"/>'
        f'<rect width="12" height="100%" fill="#0b6272"/>'
        f'<text x="64" y="104" font-size="28" style="fill: #0b6272">{escape(part)}</text>'
        f'{"".join(words)}<svg x="64" y="528" width="40" height="40" viewBox="0 0 32 32">{MARK}</svg>'
        f'<text x="120" y="558" font-size="28" style="fill: #5d6169">{escape(book)}</text>'
        f"{_placed(svg)}</svg>"
    )


def _placed(svg: str) -> str:
    """Return a drawing inside the right half of a card."""
    view = VIEW.search(svg)
    if not view:
        return ""
    wide, high = float(view[1]), float(view[2])
    scale = min(620 / wide, 530 / high)
    x = 540 + (620 - wide * scale) / 2
    y = (HEIGHT - high * scale) / 2
    inner = re.sub(r"<style>.*?</style>", "", svg, flags=re.DOTALL)
    place = f'x="{x:.0f}" y="{y:.0f}" width="{wide * scale:.0f}" height="{high * scale:.0f}"'
    return without_variables(inner.replace("<svg", f"<svg {place}", 1), {})


def widest(lines: list[str], font: ImageFont.FreeTypeFont) -> float:
    return max(map(font.getlength, lines))


def wrapped(text: str, wide: float, font: ImageFont.FreeTypeFont) -> list[str]:
    """Return words as lines of a width. A word that is wider has a line of its own."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and font.getlength(longer) <= wide:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines or [""]


def fonts(folder: Path) -> list[str]:
    """Return the files of the fonts: regular, bold and italic, then those for what they lack.

    The book's own are written into `folder` once, in the format that resvg reads.
    """
    from matplotlib import get_data_path

    serif = [THEME / "serif.woff2", THEME / "serif-i.woff2"]
    own = [folder / f"{name}.ttf" for name in FONTS]
    newest = max(path.stat().st_mtime for path in serif)
    if not all(path.is_file() and path.stat().st_mtime > newest for path in own):
        for path in unpacked(serif, folder):
            _name(path)
    others = Path(get_data_path(), "fonts", "ttf")
    names = ("DejaVuSans.ttf", "DejaVuSansMono.ttf")
    return [*map(str, own), *(str(others / name) for name in names)]


def _name(file: str) -> None:
    """Give a font the PostScript name without which resvg passes over it."""
    with TTFont(file) as font:
        for platform, encoding, language in ((3, 1, 0x409), (1, 0, 0)):
            font["name"].setName(Path(file).stem, 6, platform, encoding, language)
        font.save(file)


def write(path: Path, svg: str, files: list[str]) -> None:
    """Draw a card with these fonts, unless it is there already."""
    digest = hashlib.sha256(svg.encode()).hexdigest()
    if path.is_file():
        with Image.open(path) as there:
            if there.info.get("digest") == digest:
                return
    drawn = resvg_py.svg_to_bytes(
        svg_string=svg,
        skip_system_fonts=True,
        font_files=files,
        serif_family="Source Serif 4",
        monospace_family="DejaVu Sans Mono",
    )
    note = PngImagePlugin.PngInfo()
    note.add_text("digest", digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    flat = (
        Image.open(io.BytesIO(bytes(drawn)))
        .convert("RGB")
        .quantize(128, method=Image.Quantize.FASTOCTREE)
    )
    flat.save(path, pnginfo=note)
