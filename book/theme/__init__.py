"""The site's own theme, `primer`: templates and style on Sphinx's `basic`.

Name this package among the extensions and set `html_theme = "primer"`.
"""

import hashlib
import re
from html import escape, unescape
from pathlib import Path
from typing import Any

from docutils import nodes

FOLDER = Path(__file__).parent
SHEETS = ["tokens", "page", "prose", "sheet", "drawing", "pictures", "tables", "tools"]
COMMENT = re.compile(r"(?m)^ *//.*\n")  # a script's, on a line of its own
SHAPE = re.compile(r"\[(?=.*[a-z])[\w.,·*/+ -]+\]")  # [batch, seq, d_model]
PUNCTUATION = re.compile(r"[.,;:!?)\]”’%、。，．：；！？）」』]+")
# Of a paragraph in Chinese or Japanese.
LAST = re.compile(r"([^<>&\s]{3}[）」”]?[。？])(?=</p>)")
MARKED = re.compile("[¡-¦¨-ª¬-°²-¶¸-º¼-ÖØ-èê-öø-ſȘ-ț]")  # as in tokens.css
ITALIC = re.compile(r'<(em|cite)\b|<tspan class="i"|font-style: italic')
# Text that is not in the book's serif: code, tables, formulas' sources, descriptions for screen readers.
OTHER_LETTERS = re.compile(
    r"<(pre|code|table|annotation|script|title|desc|figcaption)\b.*?</\1>", re.DOTALL
)
COMMAND = re.compile(
    r"\\(?!sin|cos|log|exp)[a-zA-Z]+|[{}^_\s]"
)  # less wide than the names of functions
TEX = re.compile(
    r'<annotation encoding="application/x-tex">(.*?)</annotation>', re.DOTALL
)
SCROLLS = r'<div class="table-scroll">\1</div>'


def describe(context: dict[str, Any], doctree: nodes.document | None) -> str:
    """Return one or two sentences on the page, as plain text."""
    chapter = context.get("chapter") or {}
    text = unescape(re.sub(r"<[^>]+>", "", chapter.get("summary") or ""))
    if not text and doctree is not None:
        text = next((p.astext() for p in doctree.findall(nodes.paragraph)), "")
    text = " ".join((text or context.get("theme_description") or "").split())
    return text if len(text) <= 200 else text[:200].rsplit(" ", 1)[0] + " …"


def code(html: str) -> str:
    """Return inline code with shapes of tensors marked; short code stays on one line."""

    def mark(match: re.Match[str]) -> str:
        text = unescape(re.sub(r"<[^>]+>", "", match[2]))
        kind = " shape" if SHAPE.fullmatch(text) else " nobr" if len(text) <= 20 else ""
        return f'<code class="{match[1]}{kind}">{match[2]}</code>'

    pattern = r'<code class="(docutils literal[^"]*)">(.*?)</code>'
    return re.sub(pattern, mark, html, flags=re.DOTALL)


def glued(html: str) -> str:
    """Return short formulas with their punctuation: no line breaks between the two."""
    done, at = [], 0
    for opening in re.finditer(r'([(\[“（「『]*)<span class="math">', html):
        depth, end = 0, opening.start()
        for tag in re.compile(r"<(/?)span\b").finditer(html, opening.start()):
            depth += -1 if tag[1] else 1
            if depth == 0:
                end = html.index(">", tag.start()) + 1
                break
        behind = PUNCTUATION.match(html, end)
        tex = TEX.search(html, opening.start(), end)
        signs = re.sub(COMMAND, "", unescape(tex[1])) if tex else ""
        short = tex and (len(unescape(tex[1])) <= 30 or len(signs) <= 20)
        if short and opening.start() >= at and (opening[1] or behind):
            stop = behind.end() if behind else end
            formula = html[opening.start() : stop]
            done += [html[at : opening.start()], f'<span class="glue">{formula}</span>']
            at = stop
    return "".join([*done, html[at:]])


def ended(html: str) -> str:
    """Return a text with the end of each paragraph on one line, which so has more than two letters.

    In a language without spaces, a line can begin anywhere.
    """
    return LAST.sub(r'<span class="glue">\1</span>', html)


def fonts(body: str) -> list[str]:
    """Return the fonts that a page's characters need, to be loaded before the text shows."""
    drawn = OTHER_LETTERS.sub("", body)
    wanted = {"serif": True, "serif-i": ITALIC.search(drawn)}
    wanted |= {"serif-ext": MARKED.search(unescape(re.sub(r"<[^>]+>", "", drawn)))}
    for name in ("Main-Regular", "Math-Italic"):
        wanted[f"katex/fonts/KaTeX_{name}"] = 'class="katex"' in body
    return [name for name, found in wanted.items() if found]


def opens_with_picture(body: str) -> bool:
    """Return whether the code of a chapter's first row begins with a picture or an output."""
    before, _, code = body.partition('class="sbs__code')
    row = re.search(r'class="sbs__sheet[^>]*>\s*<div class="sbs__row', before)
    shown = r'[^>]*>\s*<\w+ class="(out out--picture|cell_output)\b'
    return bool(row and re.match(shown, code))


def names(app: Any) -> list[Any]:
    """Return the index: every definition by its first letter, with its chapter and its address.

    Definitions that Sphinx is not to list, such as helpers of demonstrations, are left out.
    """
    letters: dict[str, list[tuple[str, str, str]]] = {}
    objects = app.env.get_domain("py").objects
    by_name = sorted(objects.items(), key=lambda item: item[1].node_id.lower())
    for full, entry in by_name:
        name = entry.node_id
        if full.endswith(f".{name}") and not full.endswith("__") and not entry.aliased:
            page = app.builder.get_relative_uri("genindex", entry.docname)
            chapter = app.env.titles[entry.docname].astext()
            of_letter = letters.setdefault(name[0].upper(), [])
            of_letter.append((name, chapter, f"{page}#{name}"))
    return list(letters.items())


def polished(body: str) -> str:
    """Return a page's text as the theme shows it, with markup that screen readers accept."""
    tables = r'(<table class="[^"]*docutils.*?</table>)'
    body = re.sub(tables, SCROLLS, body, flags=re.DOTALL)
    # Replace a role that ARIA has dropped, a heading without a level, and blank lines of files.
    body = body.replace('role="doc-biblioentry"', 'role="listitem"')
    body = body.replace('role="heading">', 'role="heading" aria-level="2">')
    body = re.sub(r"\s+</pre></div>", "\n</pre></div>", body)
    # The search counts a word less in code and outputs, and more where the prose stresses it or names a term.
    for tag in ("<em>", '<span class="xref std std-term">'):
        body = body.replace(tag, f'{tag[:-1]} data-pagefind-weight="4">')
    weighted = '<div data-pagefind-weight="0.2" class="sbs__code'
    body = body.replace('<div class="sbs__code', weighted)
    return glued(code(body))


def complete(
    app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any
) -> None:
    """Set a page's text, description, scripts and fonts, and the names of the index."""
    if app.config.html_theme != "primer":
        return
    if 'name="description"' not in (context.get("metatags") or "") and (
        text := describe(context, doctree)
    ):
        context["description"] = escape(text)
    body = context["body"] = polished(context.get("body") or "")
    if app.config.language != "en":
        body = context["body"] = ended(body)
        if chapter := context.get("chapter"):
            chapter["summary"] = ended(chapter.get("summary") or "")
    if 'class="sortable"' in body:  # for this page alone
        app.add_js_file("sortable.js", loading_method="defer")
    if "std-term" in body + str(context.get("chapter")):
        app.add_js_file("terms.js", loading_method="defer")
    context["fonts"] = fonts(body)
    context["mathjax"] = getattr(app.builder, "math_renderer_name", "") == "mathjax"
    context["own_search"] = "search_index" in app.extensions
    context["opens_with_picture"] = opens_with_picture(body)
    if pagename == "genindex":
        context["genindexentries"] = names(app)


def style() -> str:
    """Return all style sheets as one, which takes one request, without comments."""
    sheets = [FOLDER / "static" / f"{name}.css" for name in SHEETS]
    return short("".join(sheet.read_text("utf-8") for sheet in sheets))


def short(style: str) -> str:
    """Return a style without comments and margins."""
    style = re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)
    return re.sub(r"\s*\n\s*", "\n", style).lstrip()


def restyled(app: Any, env: Any) -> list[str]:
    """Write the style. If it or a script changed, write every page again, because links
    contain a digest."""
    if app.config.html_theme != "primer":
        return []
    out = Path(app.outdir) / "_static"
    out.mkdir(parents=True, exist_ok=True)
    (out / "primer.css").write_text(style(), "utf-8")
    if getattr(app.config, "quick", False):
        return []
    scripts = sorted((FOLDER / "static").glob("*.js"))
    texts = [style(), *(COMMENT.sub("", file.read_text("utf-8")) for file in scripts)]
    now = hashlib.sha256("\0".join(texts).encode()).hexdigest()
    before, env.primer_style = getattr(env, "primer_style", ""), now
    return [] if before == now else list(env.found_docs)


def sweep(app: Any, exception: Exception | None) -> None:
    """Remove styles, scripts and pictures that no page uses, and the comments in scripts."""
    if exception is not None or app.config.html_theme != "primer":
        return
    if getattr(app.config, "quick", False):
        return
    out = Path(app.outdir)
    for script in (out / "_static").glob("*.js"):
        script.write_text(COMMENT.sub("", script.read_text("utf-8")), "utf-8")
    sheet = out / "_static" / "language.css"
    if sheet.is_file():
        sheet.write_text(short(sheet.read_text("utf-8")), "utf-8")
    for kinds in ({".css", ".js"}, {".gif", ".png", ".svg"}):
        asking = {
            file: file.read_text("utf-8")
            for kind in ("html", "css", "js")
            for file in out.rglob(f"*.{kind}")
        }
        for file in (out / "_static").rglob("*"):
            if file.suffix in kinds and not any(
                file.name in text for other, text in asking.items() if other != file
            ):
                file.unlink()


def add_script(app: Any) -> None:
    if app.config.html_theme == "primer":
        app.add_js_file("primer.js", loading_method="defer")


def setup(app: Any) -> dict[str, Any]:
    app.add_html_theme("primer", str(FOLDER))
    app.connect("builder-inited", add_script)
    app.connect("env-updated", restyled)
    app.connect("build-finished", sweep, priority=900)
    app.connect("html-page-context", complete, priority=900)  # after all other handlers
    # With other code of the theme, Sphinx reads and writes all pages again.
    texts = [path.read_bytes() for path in sorted(FOLDER.glob("*.py"))]
    digest = int(hashlib.sha256(b"".join(texts)).hexdigest()[:12], 16)
    return {
        "version": "1",
        "env_version": digest,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
