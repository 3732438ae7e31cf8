"""Catalogues: the translations of a language, one file of messages per page.

`book/locale/ja/labml_primer/primer/primer_ez.po` has the messages of that page: its paragraphs, headings,
list items and table cells. `words.po` has the words of the frame and of the scripts, `pictures.po` those in
pictures, `outputs.po` those in figures and tables: in these two, a message has its picture or its page as its
context (`msgctxt`), because a word such as "full" says another thing elsewhere. `language.toml` names the
language.

A message that was translated from an earlier English is *stale*: it has the flag `fuzzy` and keeps that
earlier English (`#| msgid`). Babel reads and writes the files; what it does not do is here: previous English
is read back, a message that appears twice is an error, and a paragraph that moved is found again.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from io import BytesIO
from pathlib import Path

from babel import Locale, UnknownLocaleError
from babel.messages.pofile import PoFileError, denormalize, normalize, read_po

from editions.checks import differences, signature
from editions.checks import parts as marked

ABOUT = "language.toml"
HEADER = (
    'msgid ""\nmsgstr ""\n"Language: {}\\n"\n'
    '"MIME-Version: 1.0\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Content-Transfer-Encoding: 8bit\\n"\n'
)
SIMILAR = (
    0.6  # of two texts, from which on one counts as an edited version of the other
)
SENTENCE = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`$*\[{])")
ANY_SENTENCE = re.compile(r"(?<=[。！？।؟])|(?<=[.!?])\s+")
QUOTED = r'("(?:.*)"(?:\n".*")*)'
ENTRY = re.compile(rf"^(?:msgctxt {QUOTED}\n)?msgid {QUOTED}", re.MULTILINE)
WIDTH = 100
# Catalogues of words. A word may mean another thing on a page: they share no translation with the pages.
APART = ("words", "pictures", "outputs")
APART_BY = "\4"  # what gettext has between a context and a message


class CatalogueError(Exception):
    """Names the file, the line and the fix."""


def key(english: str, context: str = "") -> str:
    """Return what a message is found by: its English, in a context after it, as gettext writes it."""
    return f"{context}{APART_BY}{english}" if context else english


@dataclass(frozen=True)
class Message:
    """An English message and its translation, if there is one."""

    english: str
    text: str = ""
    previous: str = ""  # the English that `text` translates, if it is an earlier one
    obsolete: bool = False
    line: int = 0  # in the file
    context: str = ""  # where it is said: a page, or the title of a picture

    @property
    def key(self) -> str:
        """What the message is found by."""
        return key(self.english, self.context)

    @property
    def stale(self) -> bool:
        """Whether the translation is older than the English."""
        return bool(self.text and self.previous)

    @property
    def shown(self) -> bool:
        """Whether a page shows the translation: a stale one only with the same formulas, code and numbers."""
        if not self.text or self.obsolete:
            return False
        return not self.previous or signature(self.previous) == signature(self.english)


@dataclass(frozen=True)
class Language:
    """A language of the book: the folder with its catalogues and what `language.toml` says."""

    code: str
    folder: Path
    name: str  # as its readers write it
    draft: bool = False  # built only on demand, and linked from nowhere
    readings: Mapping[str, str] = field(
        default_factory=dict
    )  # of words by which a glossary sorts
    variants: Mapping[str, list[str]] = field(
        default_factory=dict
    )  # what readers call a word of the book when they search
    letters: str = ""  # that a glossary has links to, if not to each first letter

    @property
    def tag(self) -> str:
        """The language as HTML names it: zh-Hans."""
        return self.code.replace("_", "-")

    def catalogues(self) -> dict[str, list[Message]]:
        """Return the messages of all files, by the name of the page."""
        return {
            path.relative_to(self.folder).with_suffix("").as_posix(): read(path)
            for path in sorted(self.folder.rglob("*.po"))
        }

    def path(self, domain: str) -> Path:
        """Return the file of a page."""
        return self.folder / f"{domain}.po"


def languages(locale: Path) -> list[Language]:
    """Return the languages that the folder of translations has. Raises `CatalogueError`."""
    return [
        language(folder)
        for folder in sorted(locale.glob("*"))
        if folder.is_dir() and any(folder.rglob("*.*"))
    ]


def language(folder: Path) -> Language:
    """Return the language of a folder."""
    try:
        Locale.parse(folder.name, sep="-" if "-" in folder.name else "_")
    except (UnknownLocaleError, ValueError):
        message = f"{folder}: {folder.name} is no code of a language. Rename the folder, as in ja or pt_BR."
        raise CatalogueError(message) from None
    path = folder / ABOUT
    if not path.is_file():
        message = f'{path}:1: is missing. Write a line into it: name = "the name of the language, in it"'
        raise CatalogueError(message)
    try:
        about = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CatalogueError(f"{path}: {error}. Correct it.") from None
    if not about.get("name"):
        message = f'{path}:1: does not name the language. Add: name = "the name of the language, in it"'
        raise CatalogueError(message)
    draft = bool(about.get("draft", False))
    return Language(
        folder.name,
        folder,
        about["name"],
        draft=draft,
        readings=about.get("readings", {}),
        variants=about.get("variants", {}),
        letters=about.get("letters", ""),
    )


# -- reading -------------------------------------------------------------------------------


def read(path: Path) -> list[Message]:
    """Return the messages of a file, in its order. Raises `CatalogueError`."""
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise CatalogueError(
            f"{path}:{line}: is not UTF-8. Save it as UTF-8."
        ) from None
    _no_message_twice(path, text)
    try:
        found = read_po(BytesIO(text.encode()), abort_invalid=True)
    except (PoFileError, ValueError) as error:
        line = getattr(error, "lineno", 0) + 1
        raise CatalogueError(f"{path}:{line}: {error}. Correct the line.") from None
    live = [(message, False) for message in found if message.id]
    gone = [(message, True) for message in found.obsolete.values()]
    return [
        Message(
            message.id if isinstance(message.id, str) else message.id[0],
            message.string
            if isinstance(message.string, str)
            else (message.string or ("",))[0],
            _previous(message.user_comments) if message.fuzzy else "",
            obsolete,
            message.lineno or 0,
            message.context or "",
        )
        for message, obsolete in live + gone
    ]


def current(path: Path, keys: Iterable[str]) -> list[Message]:
    """Return these messages with the translations of a file, whether or not it has them all, or is there."""
    known = {m.key: m for m in (read(path) if path.is_file() else [])}
    return [known.get(each) or untranslated(each) for each in keys]


def untranslated(key: str) -> Message:
    """Return the message that is found by a key."""
    context, _, english = key.rpartition(APART_BY)
    return Message(english, context=context)


def _previous(comments: list[str]) -> str:
    """Return the previous English from comments, as Babel reads them: `| msgid "..."`."""
    lines = [comment[1:].strip() for comment in comments if comment.startswith("|")]
    return str(denormalize("\n".join(lines).removeprefix("msgid "))) if lines else ""


def _no_message_twice(path: Path, text: str) -> None:
    """Raise an error for a message that a file has twice, and for a line that is none of a catalogue."""
    seen: dict[str, int] = {}
    for block in ENTRY.finditer(text):
        line = text[: block.start()].count("\n") + 1
        context, english = (str(denormalize(each or '""')) for each in block.groups())
        if (found := key(english, context)) in seen:
            message = (
                f"{path}:{line}: is the same message as line {seen[found]}. Remove one."
            )
            raise CatalogueError(message)
        seen[found] = line
    for number, line_text in enumerate(text.splitlines(), 1):
        if not re.match(
            r'\s*(#|$|"(?:[^"\\]|\\.)*"$|msg\w+(\[\d\])? "(?:[^"\\]|\\.)*"$)', line_text
        ):
            message = f"{path}:{number}: is no line of a catalogue. Close its quotes, or remove it."
            raise CatalogueError(message)


# -- writing -------------------------------------------------------------------------------


def written(messages: Iterable[Message], code: str) -> str:
    """Return a file with these messages. It has no date, so that equal messages are equal files."""
    entries = [entry(m) for m in sorted(messages, key=lambda m: m.obsolete)]
    return "\n".join([HEADER.format(code), *entries])


def entry(message: Message) -> str:
    """Return a message as the lines of a catalogue. (Babel wraps previous English so that it is lost.)"""
    english, shown, previous = (
        normalize(text, width=WIDTH)
        for text in (message.english, message.text, message.previous)
    )
    text = f"msgid {english}\nmsgstr {shown}"
    if message.context:
        text = f"msgctxt {normalize(message.context, width=WIDTH)}\n{text}"
    if message.stale:
        previous = f"msgid {previous}"
        text = f"#, fuzzy\n{_prefixed('#| ', previous)}\n{text}"
    return (_prefixed("#~ ", text) if message.obsolete else text) + "\n"


def _prefixed(sign: str, text: str) -> str:
    return "\n".join(sign + line for line in text.split("\n"))


# -- updating ------------------------------------------------------------------------------


def updated(
    old: Mapping[str, list[Message]], now: Mapping[str, Iterable[str]]
) -> dict[str, list[Message]]:
    """Return the catalogues of a language for the keys of the messages of each page as they are now."""
    here = {domain: {m.key: m for m in found} for domain, found in old.items()}
    every = {untranslated(each).english for keys in now.values() for each in keys}
    of_pages = _known(found for name, found in old.items() if name not in APART)
    orphans = [english for english in of_pages if english not in every]
    sentences = _sentences(of_pages)
    made: dict[str, list[Message]] = {}
    used: set[str] = set()
    for domain, keys in now.items():
        own = here.get(domain, {})
        known, gone = of_pages, orphans
        if domain in APART:
            known, gone = _known([old.get(domain, [])]), []  # `section` is no `second`
        found = [
            _found(untranslated(each), own.get(each), known, gone, sentences)
            for each in dict.fromkeys(keys)
        ]
        used |= {m.previous or m.english for m in found if m.text}
        made[domain] = found
    for domain, before in old.items():
        left = [
            replace(m, obsolete=True, english=m.previous or m.english, previous="")
            for m in before
            if m.text and (m.previous or m.english) not in used | every
        ]
        if left or domain in made:
            made[domain] = made.get(domain, []) + left
    return made


def _known(several: Iterable[Iterable[Message]]) -> dict[str, str]:
    """Return the translations of these catalogues by their English."""
    known: dict[str, str] = {}
    for message in (m for found in several for m in found if m.text):
        known.setdefault(message.previous or message.english, message.text)
    return known


def _found(
    now: Message,
    before: Message | None,
    known: Mapping[str, str],
    orphans: list[str],
    sentences: Mapping[str, str],
) -> Message:
    """Return the message with its translation, or with that of the text that it was."""
    english = now.english
    if before and before.text and not before.previous:
        return replace(now, text=before.text)
    if english in known:
        return replace(now, text=known[english])
    if before and before.text:
        return replace(now, text=before.text, previous=before.previous)
    parts = SENTENCE.split(english)
    if all(part in sentences for part in parts):
        text = "".join(sentences[part] for part in parts)
        return replace(now, text=text, previous=english)
    close = [(_similarity(english, orphan), orphan) for orphan in orphans]
    best = max(close, default=(0.0, ""))
    if best[0] >= SIMILAR:
        return replace(now, text=known[best[1]], previous=best[1])
    return now


def _sentences(known: Mapping[str, str]) -> dict[str, str]:
    """Return translations of sentences, from texts with as many sentences as their translation."""
    found: dict[str, str] = {}
    for english, text in known.items():
        parts = SENTENCE.split(english)
        translated = [part for part in ANY_SENTENCE.split(text) if part]
        if 1 < len(parts) == len(translated) and all(
            marked(a)[1] == marked(b)[1] for a, b in zip(parts, translated, strict=True)
        ):
            found.update(zip(parts, translated, strict=True))
    return found


def _similarity(a: str, b: str) -> float:
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    return matcher.ratio() if matcher.quick_ratio() >= SIMILAR else 0.0


# -- counts --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Count:
    """How far messages are translated."""

    messages: int = 0
    stale: int = 0
    missing: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(
            self.messages + other.messages,
            self.stale + other.stale,
            self.missing + other.missing,
        )

    def __str__(self) -> str:
        return f"{self.stale:,} stale, {self.missing:,} missing, of {self.messages:,} messages"

    @property
    def left(self) -> bool:
        """Whether something is to be translated."""
        return bool(self.stale or self.missing)

    @property
    def half_done(self) -> bool:
        """Whether something is stale, or missing where most is translated: a release has none of these."""
        return bool(self.stale or 0 < self.missing <= self.messages / 2)


def counted(messages: Iterable[Message]) -> Count:
    """Count messages. Obsolete ones do not count."""
    live = [m for m in messages if not m.obsolete]
    missing = sum(not m.text for m in live)
    return Count(len(live), sum(m.stale for m in live), missing)


def faults(language: Language) -> Iterator[str]:
    """Yield an error for each translation whose markup or numbers differ from the English."""
    for domain, messages in language.catalogues().items():
        for message in messages:
            if message.text and not message.obsolete:
                english = message.previous or message.english
                for what in differences(english, message.text, language.code):
                    yield f"{language.path(domain)}:{message.line}: {what}"
