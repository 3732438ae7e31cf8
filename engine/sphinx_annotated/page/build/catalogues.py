"""The translations of a page, from the catalogue that Sphinx translates its text with, and of its outputs."""

from __future__ import annotations

from collections.abc import Callable
from gettext import find, translation
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.locale import get_translator
from sphinx.util.i18n import docname_to_domain

Say = Callable[[str], str]  # a text of the page -> its translation


def say_of(app: Sphinx, docname: str) -> Say | None:
    """Return what translates a page's texts, or nothing in the language that the book is written in.

    Each file is read once in a process: ``gettext`` keeps it.
    """
    domain = docname_to_domain(docname, app.config.gettext_compact)
    folders = [Path(app.srcdir, name) for name in app.config.locale_dirs]
    languages = [app.config.language]
    found = [
        translation(domain, folder, languages)
        for folder in folders
        if find(domain, folder, languages)
    ]
    for other in found[1:]:
        found[0].add_fallback(other)
    # For gettext, the translation of an empty cell of a table is the head of the catalogue.
    return (lambda text: text and found[0].gettext(text)) if found else None


def words_of(docname: str) -> Say:
    """Return what translates the words of a page's figures, tables and values.

    They are in the catalogue ``outputs``, with the page as their context: elsewhere a word can mean another
    thing.
    """

    def say(text: str) -> str:
        return str(get_translator("outputs").pgettext(docname, text))

    return say
