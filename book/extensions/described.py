"""What programs are told of a page: its card, its authors, dates and licence.

All of it needs the address of the site. Dates are those of the last commits. Without the history, as in an
archive, they are the day of the last release.
"""

from __future__ import annotations

import json
from html import escape, unescape
from pathlib import Path
from typing import Any

import cards
import yaml
from babel import Locale
from babel.core import get_global
from markdown_twins import edition, wanted
from online import change_of, of
from plain_math import plain_title
from sphinx.application import Sphinx
from sphinx_annotated.page.build.state import state_of


def released(root: Path) -> str:
    """Return the day of the last release."""
    citation = yaml.safe_load((root / "CITATION.cff").read_text(encoding="utf-8"))
    return str(citation["date-released"])


def dates(app: Sphinx, page: str) -> tuple[str, str]:
    """Return the days on which a page was first and last changed."""
    if change := change_of(app, page):
        return change.first, change.last
    day = released(Path(app.srcdir))
    return day, day


def title_of(app: Sphinx, page: str) -> str:
    """Return the title of a page as plain text."""
    return " ".join(plain_title(app.env.titles[page]).split())


def describe(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give a page its card, and say in its head what it is."""
    if doctree is None or not wanted(app) or not of(app).pages:
        return
    root, book = of(app).pages, app.config.html_title
    title = title_of(app, page)
    drawn = cards.drawing(doctree)
    # The fonts of the cards have no letters of other scripts, so an edition shows the English cards.
    image = card_of(page) if edition(app) else draw(app, page, title, drawn)
    address = root if page == app.config.root_doc else root + place(app, page)
    address = context.get("pageurl") or address
    text = unescape(context.get("description") or "")
    begun, changed = dates(app, page)
    properties = {
        "og:type": "article",
        "og:site_name": book,
        "og:locale": locale(app.config.language),
        "og:title": title,
        "og:description": text,
        "og:url": address,
        "og:image": root + image,
        "og:image:width": str(cards.WIDTH),
        "og:image:height": str(cards.HEIGHT),
        "og:image:alt": cards.label(drawn) or title,
        "article:published_time": begun,
        "article:modified_time": changed,
    }
    article = {
        "@context": "https://schema.org",
        "@type": "TechArticle",
        "headline": title,
        "description": text,
        "url": address,
        "image": root + image,
        "inLanguage": app.config.language.replace("_", "-"),
        "author": {"@type": "Organization", "name": app.config.author},
        "datePublished": begun,
        "dateModified": changed,
        "isPartOf": {"@type": "Book", "name": book, "url": root},
    }
    if terms := of(app).file("LICENSE"):
        article["license"] = terms
    lines = [
        f'<meta property="{name}" content="{escape(value)}">'
        for name, value in properties.items()
    ]
    lines.append('<meta name="twitter:card" content="summary_large_image">')
    words = json.dumps(article, ensure_ascii=False).replace("<", "\\u003c")
    lines.append(f'<script type="application/ld+json">{words}</script>')
    context["metatags"] = "\n".join([context.get("metatags") or "", *lines])


def locale(language: str) -> str:
    """Return a language with the country where most read it: ja_JP, zh_CN."""
    likely = get_global("likely_subtags")
    full = likely.get(language) or likely.get(language.split("_")[0]) or language
    found = Locale.parse("en_GB" if language == "en" else full)
    return f"{found.language}_{found.territory}" if found.territory else language


def place(app: Sphinx, page: str) -> str:
    """Return the address of a page in the site."""
    return str(app.builder.get_target_uri(page))


def draw(app: Sphinx, page: str, title: str, drawn: str) -> str:
    """Draw the card of a page, and return its place in the site."""
    entry = next((e for e in state_of(app.env).contents if e.docname == page), None)
    part = entry.part if entry else ""
    part += f" · Chapter {entry.number}" if entry and entry.number else ""
    name = card_of(page)
    files = cards.fonts(Path(app.outdir).parent / ".fonts-of-cards")
    book = app.config.html_title
    svg = cards.card(title, part, "" if title == book else book, drawn, files)
    cards.write(Path(app.outdir, name), svg, files)
    return name


def card_of(page: str) -> str:
    """Return the place of a page's card in the site."""
    return f"{cards.FOLDER}/{page.replace('/', '.')}.png"


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", describe, priority=960)  # after its description
    return {"parallel_read_safe": True, "parallel_write_safe": True}
