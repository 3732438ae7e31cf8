"""From catalogues to what gettext reads, and from an edition's build to its folder in the site."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

from editions.catalogues import CatalogueError, Language, Message, faults

WORDS, SPHINX = "words", "sphinx"  # the frame's words are in Sphinx's own domain


def compile_catalogues(language: Language, target: Path) -> None:
    """Write the translations that pages show, for gettext. Raises `CatalogueError` with all faults."""
    made_of, now = target / language.code / ".made-of", _digest(language)
    if made_of.is_file() and made_of.read_text("utf-8") == now:
        return
    if found := list(faults(language)):
        raise CatalogueError("\n".join(found))
    folder = target / language.code / "LC_MESSAGES"
    kept = set()
    for domain, messages in language.catalogues().items():
        path = folder / f"{SPHINX if domain == WORDS else domain}.mo"
        kept.add(path)
        content = _binary(messages)
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    for path in folder.rglob("*.mo"):
        if path not in kept:
            path.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    made_of.write_text(now, "utf-8")


def _digest(language: Language) -> str:
    """Return a digest of a language's catalogues, and of the code that checks them."""
    found = hashlib.sha256()
    code = Path(__file__).parent.glob("*.py")
    for path in sorted([*language.folder.rglob("*.po"), *code]):
        found.update(str(path).encode() + path.read_bytes())
    return found.hexdigest()


def _binary(messages: Iterable[Message]) -> bytes:
    catalog = Catalog(fuzzy=False)
    for message in messages:
        if message.shown:
            context = message.context or None
            catalog.add(message.english, message.text, context=context)
    out = BytesIO()
    write_mo(out, catalog)
    return out.getvalue()


def publish(built: Path, site: Path, own: Iterable[str]) -> None:
    """Bring an edition's files into its folder of the site, without what exists once for all editions."""
    kept: set[Path] = set()
    for path in sorted(built.rglob("*")):
        name = path.relative_to(built)
        if path.is_dir() or shared(name, own):
            continue
        target = site / name
        kept.add(target)
        if not target.is_file() or target.read_bytes() != path.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    for path in sorted(site.rglob("*"), reverse=True):
        if path.is_file() and path not in kept:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def shared(name: Path, own: Iterable[str]) -> bool:
    """Return whether a file of a site exists once, for all editions."""
    first, *rest = name.parts
    if first == "_static":
        return "/".join(rest) not in own
    hidden = first.startswith(".")
    return (
        hidden
        or first in ("_sources", "_outputs")
        or name.parts[:2] == ("_downloads", "search")
    )
