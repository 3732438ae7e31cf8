"""Editions: the book in a further language, built from the same outputs, with translations from catalogues.

The English build notes the messages of each page, from which `make translations` makes the catalogues. The
build of an edition runs no cell. Sphinx puts the translations into the pages; what it does not do is here: a
paragraph without a translation shows the English, marked and with `lang="en"`; one whose English has changed
shows its translation, marked and with a link to the English; a page says how many paragraphs these are.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

from babel.messages.extract import extract
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.locale import _, get_translator
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import extract_messages

from editions.catalogues import Language, Message, current, languages, read
from editions.checks import has_words

ENGLISH = "English"
MESSAGES = ".messages"  # the folder with the messages of the pages, next to the site
STYLE = "language.css"  # a language's own style: `style.css` of its folder
PANELS = Path(__file__).parents[1] / "live/static/live/panels"
# The files of _static that an edition has of its own. All others exist once, in the English site.
OWN = (
    *("documentation_options.js", "language_data.js", STYLE),
    *("words.js", "more-words.js"),
    *(f"live/panels/{path.stem}.svg" for path in PANELS.glob("*.js")),
)
ONCE = re.compile(  # in an attribute
    r'(?<==")(?:\.\./)*(_static/([^"?\s]+)|(?:_outputs|_sources|_downloads/search)(?=[/"]))'
)
SCRIPTS = (
    *("engine/sphinx_annotated/static/*.js", "book/theme/static/*.js"),
    *("book/live/static/live/*.js", "book/live/static/live/panels/*.js"),
)
# Scripts of single pages that are no chapters, and what a panel loads when it is opened: other pages need not
# load their words.
SINGLE = ("individuals.js", "search-words.js", "page.js", "worker.js", "panel.js")
SHARED = ("pictures", "outputs", "words")  # catalogues that all pages use
CJK = "\u2e80"  # the first character of the Chinese and Japanese scripts
STATUS = "edition"  # attribute of a node: missing or stale


def code_of(app: Sphinx) -> str:
    """Return the language of this build: nothing for the English one."""
    return str(app.config.editions_code)


def language_of(app: Sphinx) -> Language:
    """Return the language of an edition."""
    return next(each for each in all_languages(app) if each.code == code_of(app))


def all_languages(app: Sphinx) -> list[Language]:
    """Return the languages that the book is translated into."""
    name = app.config.editions_locale
    found = languages(Path(app.srcdir, name)) if name else []
    return [each for each in found if app.config.editions_drafts or not each.draft]


# -- the English build notes messages --------------------------------------------------------


def note_messages(app: Sphinx, doctree: nodes.document) -> None:
    """Write the messages of a page that was read, in its order, for `make translations`."""
    if code_of(app) or not app.config.editions_locale:
        return
    found = [text for _node, text in messages_of(doctree)]
    path = messages_path(app, app.env.docname)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(list(dict.fromkeys(found)), ensure_ascii=False, indent=0)
    path.write_text(text, encoding="utf-8")


def messages_path(app: Sphinx, docname: str) -> Path:
    """Return the file in which the English build notes the messages of a page."""
    build = Path(app.outdir).parents[1 if code_of(app) else 0]
    return build / MESSAGES / f"{docname}.json"


def messages_of(doctree: nodes.document) -> list[tuple[nodes.Element, str]]:
    """Return what a page has to translate. Formulas, code and texts without a word are not."""
    return [
        (node, text)
        for node, text in extract_messages(doctree)
        if not isinstance(node, nodes.math_block | nodes.FixedTextElement | nodes.image)
        and not _in_bibliography(node)
        and has_words(text)
    ]


def _in_bibliography(node: nodes.Node | None) -> bool:
    while node is not None:
        if isinstance(node, nodes.citation):
            return True
        node = node.parent
    return False


# -- an edition ------------------------------------------------------------------------------


def outdated(app: Sphinx, env: BuildEnvironment, *changes: set[str]) -> list[str]:
    """Return the pages whose catalogue, or that of all pages, has changed; in English, those not noted."""
    if not app.config.editions_locale:
        return []
    if not code_of(app):
        return [
            name for name in env.found_docs if not messages_path(app, name).exists()
        ]
    folder = language_of(app).folder
    common = [_digest(folder / f"{name}.po") for name in SHARED]
    now = {
        name: " ".join((*common, _digest(folder / f"{name}.po")))
        for name in env.found_docs
    }
    before = getattr(env, "editions_digests", {})
    env.editions_digests = now  # type: ignore[attr-defined]
    return [name for name in now if before.get(name) != now[name]]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


class Status(SphinxTransform):
    """Notes which texts of a page have no translation, or one of an earlier English."""

    default_priority = 15  # before Sphinx translates

    def apply(self, **kwargs: Any) -> None:
        translated = str(self.document["source"]).endswith("<translated>")
        if not code_of(self.app) or translated:
            return
        found = messages_of(self.document)
        path = language_of(self.app).path(self.env.docname)
        counts = {"messages": len(found), "missing": 0, "stale": 0}
        messages = current(path, [text for _node, text in found])
        for (node, _text), message in zip(found, messages, strict=True):
            if not message.shown or message.stale:
                node[STATUS] = "stale" if message.shown else "missing"
                counts[node[STATUS]] += 1
        counts["labels"] = labels_left(self.app, self.env.docname, self.document)
        self.env.metadata[self.env.docname]["edition"] = counts


def labels_left(app: Sphinx, docname: str, document: nodes.document) -> int:
    """Return how many words in a page's pictures, figures and tables are not translated, or stale."""
    from sphinx_annotated.page.directives.pictures import SPOKEN, picture

    drawn, shown = (
        _labels(path, path.stat().st_mtime) if path.is_file() else ()
        for path in map(language_of(app).path, ("pictures", "outputs"))
    )
    titles = {m.text or m.english: m.context for m in drawn if m.english == m.context}
    said = (SPOKEN.search(node["svg"]) for node in document.findall(picture))
    here = {docname, *(titles.get(unescape(each[1]), "") for each in said if each)}
    return sum(
        m.stale or not m.text
        for m in (*drawn, *shown)
        if m.context in here and not m.obsolete
    )


@cache
def _labels(path: Path, _changed: float) -> tuple[Message, ...]:
    """Return the messages of a catalogue of words, which every page asks for."""
    return tuple(read(path))


class Marks(SphinxPostTransform):
    """HTML only: marks what Status found."""

    default_priority = 880  # before the rows are made a sheet, which moves headings
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        if not code_of(self.app):
            return
        # A page that is mostly English says so once.
        counts = self.env.metadata[self.env.docname]["edition"]
        english = ["language-en", *([] if is_english(counts) else ["untranslated"])]
        for node in list(self.document.findall(nodes.Element)):
            status = node.attributes.pop(STATUS, None)
            node.attributes.pop("translated", None)
            if status == "missing" and isinstance(node, nodes.paragraph):
                node["classes"] += english
            elif status == "missing":
                inside = nodes.inline(classes=english)
                inside += node.children
                node.children = []
                node += inside
            elif status == "stale":
                node += self._link_to_english(node)
        for node in self.document.findall(nodes.citation):  # as it was published
            node["classes"] += ["language-en"]
        for node in self.document.findall(nodes.emphasis):
            if max(node.astext(), default="") < CJK:  # a name or a variable
                node["classes"] += ["slanted"]

    def _link_to_english(self, node: nodes.Element) -> nodes.Node:
        anchor = ""
        for other in self.document.findall(nodes.Element):
            if other is node:
                break
            anchor = next(iter(other.get("ids", [])), anchor)
        docname = self.env.docname
        up = "../" * (docname.count("/") + 1)
        uri = up + self.app.builder.get_target_uri(docname)
        link = nodes.reference("", "EN", refuri=f"{uri}#{anchor}", classes=["older"])
        link["reftitle"] = _("The English text has changed since it was translated.")
        return link


def alternates(site: str, uri: str, others: list[Language]) -> list[tuple[str, str]]:
    """Return the languages that a page exists in, each with its address, and that for all others."""
    return [
        ("en", f"{site}{uri}"),
        *((each.tag, f"{site}{each.code}/{uri}") for each in others),
        ("x-default", f"{site}{uri}"),
    ]


def is_english(counts: dict[str, int]) -> bool:
    """Return whether most of an edition's page is not translated, by its counts."""
    return bool(counts) and counts["missing"] * 2 > counts["messages"]


def is_mostly_english(app: Sphinx, language: Language, docname: str) -> bool:
    """Return whether an edition's page shows more English than translations, as the English build knows."""
    path = messages_path(app, docname)
    english = json.loads(path.read_text("utf-8")) if path.is_file() else []
    shown = sum(m.shown for m in current(language.path(docname), english))
    return shown * 2 < len(english)


def frame(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give the theme the links to the other editions, the counts, and the one place of scripts and styles."""
    others = all_languages(app)
    if not others:
        return
    here = code_of(app)
    root = "../" * page.count("/") + ("../" if here else "")
    uri = app.builder.get_target_uri(page)
    site = _site(app)
    context["editions"] = [
        {"tag": tag, "name": name, "href": f"{root}{folder}{uri}"}
        for code, tag, name, folder in (
            ("", "en", ENGLISH, ""),
            *((each.code, each.tag, each.name, f"{each.code}/") for each in others),
        )
        if code != here
    ]
    counts = app.env.metadata.get(page, {}).get("edition", {})
    left = sum(counts.get(name, 0) for name in ("missing", "stale", "labels"))
    mostly_english = is_english(counts)
    if site and context.get("pageurl"):  # the page for missing addresses has none
        told = [each for each in others if not is_mostly_english(app, each, page)]
        context["alternates"] = alternates(site, uri, told)
        own = f"{here}/" if here and not mostly_english else ""
        root_page = page == app.config.root_doc and not own
        context["pageurl"] = site if root_page else f"{site}{own}{uri}"
    if here:
        if not context.get("chapter"):
            app.add_js_file("more-words.js", priority=101, loading_method="defer")
        context["edition_counts"] = counts if left else None
        context["in_english"] = context["noindex"] = mostly_english
        context["english"] = f"{root}{uri}"
        share(context, root)


def share(context: dict[str, Any], root: str) -> None:
    """Let a page take from the English site what exists once: scripts, styles and code."""

    def own(match: re.Match[str]) -> str:
        return match[0] if match[2] in OWN else f"{root}{match[1]}"

    def there(markup: str) -> str:
        return ONCE.sub(own, markup)

    def own_or_shared(found: str) -> str:
        """Return an address, or a tag with one."""
        return there(found) if "<" in found else there(f'="{found}"')[2:-1]

    def through(function: Callable[..., str]) -> Callable[..., str]:
        return lambda *given, **named: own_or_shared(str(function(*given, **named)))

    for name in ("pathto", "css_tag", "js_tag"):
        context[name] = through(context[name])
    context["body"] = there(context.get("body") or "")
    chapter = context.get("chapter") or {}
    if "source" in chapter:
        chapter["source"] = own_or_shared(chapter["source"])


def _site(app: Sphinx) -> str:
    from sphinx_annotated.page.build.repository import Repository

    return Repository(**app.config.annotated_repository).pages


# -- words in pictures -----------------------------------------------------------------------


def speak(app: Sphinx) -> None:
    """Let pictures be drawn with this edition's words."""
    from drawing import canvas

    def translated(text: str, picture: str) -> str:
        if not code_of(app) or not text.strip():
            return text
        return str(get_translator("pictures").pgettext(picture, text))

    canvas.say = translated


def add_style(app: Sphinx) -> None:
    """Add a language's own style to its edition."""
    if not code_of(app) or app.builder.format != "html":
        return
    own = language_of(app).folder / "style.css"
    if own.is_file():
        folder = Path(app.outdir, "_static")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(own, folder / STYLE)
        app.add_css_file(STYLE)


def write_words(app: Sphinx) -> None:
    """Write the words that scripts say, for their own function `_`."""
    if not code_of(app) or app.builder.format != "html":
        return
    said: dict[bool, dict[str, str]] = {True: {}, False: {}}  # on single pages or all
    for path, text in _script_words(Path(__file__).parents[2]):
        if (other := _(text)) != text:
            said[path.name in SINGLE or path.parent == PANELS][text] = other
    folder = Path(app.outdir, "_static")
    folder.mkdir(parents=True, exist_ok=True)
    for single, name, form in (
        (False, "words.js", "window.words = {};\n"),
        (True, "more-words.js", "Object.assign(window.words, {});\n"),
    ):
        text = json.dumps(said[single], ensure_ascii=False, separators=(",", ":"))
        (folder / name).write_text(form.replace("{}", text), encoding="utf-8")
    app.add_js_file("words.js", priority=100, loading_method="defer")


def words_of_scripts(root: Path) -> list[str]:
    """Return what the scripts of the engine and of the theme say, in the order of their files."""
    return list(dict.fromkeys(text for _path, text in _script_words(root)))


def _script_words(root: Path) -> Iterator[tuple[Path, str]]:
    for pattern in SCRIPTS:
        for path in sorted(root.glob(pattern)):
            with path.open("rb") as file:
                for _line, text, _comments, _context in extract(
                    "javascript",
                    file,
                    keywords={"_": None, "Said": None},
                    options={"parse_template_string": True},
                ):
                    yield path, text if isinstance(text, str) else text[0]


def name_catalogues(app: Sphinx, config: Any) -> None:
    """Let Sphinx look for a catalogue per page, not per folder, and name those of pictures and outputs."""
    config.gettext_compact = False
    for folder in config.locale_dirs if config.editions_code else []:
        for name in ("pictures", "outputs"):
            app.add_message_catalog(name, str(Path(app.srcdir, folder)))


def begin_others(app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
    """Let the other editions begin: they use what the chapters of this one have shown."""
    if app.config.editions_executed:
        app.config.editions_executed()


def setup(app: Sphinx) -> dict[str, Any]:
    # The folder of translations, the language of this build, and whether drafts are built.
    app.add_config_value("editions_locale", "", "env", types=[str])
    app.add_config_value("editions_code", "", "env", types=[str])
    app.add_config_value("editions_drafts", False, "env", types=[bool])
    # What to call when the chapters have been executed.
    app.add_config_value("editions_executed", None, "")
    app.add_transform(Status)
    app.add_post_transform(Marks)
    app.connect("config-inited", name_catalogues)
    app.connect("builder-inited", speak)
    app.connect("builder-inited", write_words)
    app.connect("builder-inited", add_style)
    app.connect("env-get-outdated", outdated)
    app.connect("env-before-read-docs", begin_others)
    app.connect("doctree-read", note_messages)
    app.connect("html-page-context", frame, priority=850)  # before the theme
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
