"""Each page once more as Markdown, for programs that read: `attention.html.md` beside `attention.html`.

A twin is written from what Sphinx has read of the page, whenever the page is written. `llms.txt` lists the
twins in the order of the book, each with its first paragraph.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote, urljoin

from as_markdown import Writer
from docutils import nodes
from html_as_markdown import SPECIAL
from online import of, write_changed
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx_annotated.page.build.state import Head, state_of
from sphinx_annotated.page.html.limits import SCHEME

END = ".md"


def roots(app: Sphinx, page: str) -> tuple[str, str]:
    """Return where a page's edition begins, and the site, as its links name them.

    Without an address of the site these are relative to the page.
    """
    code = edition(app)
    if root := of(app).pages:
        return root + f"{code}/" * bool(code), root
    up = "../" * page.count("/")
    return up, up + "../" * bool(code)


def edition(app: Sphinx) -> str:
    """Return the language of this build, or nothing for the English one."""
    return str(getattr(app.config, "editions_code", ""))


def twin(app: Sphinx, page: str, doctree: nodes.document) -> str:
    """Return a page as Markdown."""
    own, root = roots(app, page)
    here = own + app.builder.get_target_uri(page)

    def address(link: str) -> str:
        if link.startswith(SCHEME):
            return root + link.removeprefix(SCHEME)
        return urljoin(here, link) if of(app).pages else link

    writer = Writer(address, lambda path: own + quote(path))
    state = state_of(app.env)
    body = writer.blocks(doctree.children)
    if page not in state.jobs:
        return f"{body}\n\n<{here}>\n"
    head = state.heads.get(page, Head())
    parts = [f"# {writer.words(app.env.titles[page])}"]
    parts += [writer.words(head.summary)] if head.summary else []
    entry = next((each for each in state.contents if each.docname == page), None)
    place = [entry.part] if entry and entry.part else []
    if entry and entry.number:
        place.append(_("Chapter {}").format(entry.number))
    module = f"[{page}.py]({root}_sources/{quote(page)}.py)"
    parts.append(" · ".join([*place, f"<{here}>", module]))
    parts += [f"{_('Source')}: {writer.words(head.source)}"] if head.source else []
    return "\n\n".join([*parts, body, ""])


def write(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Write the twin of a page, and let the page link to it."""
    if doctree is None or not wanted(app):
        return
    file = Path(app.outdir, app.builder.get_target_uri(page) + END)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_changed(file, twin(app, page, doctree))
    context["twin"] = file.name
    context["foot"] = [
        *context.get("foot", []),
        {"text": _("As Markdown"), "href": file.name},
    ]


def wanted(app: Sphinx) -> bool:
    """Return whether this build has twins: that of a site has."""
    return bool(app.builder.name == "html")


def contents(app: Sphinx, exception: Exception | None) -> None:
    """Write `llms.txt`, and remove the twins of pages that are gone."""
    if exception is not None or not wanted(app):
        return
    out, root = Path(app.outdir), roots(app, "")[0]
    for file in out.rglob(f"*.html{END}"):
        if not file.with_suffix("").is_file():
            file.unlink()
    entries = state_of(app.env).contents
    welcome = app.config.root_doc
    lines = [f"# {app.config.html_title}", "", f"> {first(out, app, welcome)}"]
    part = None
    for entry in entries:
        if entry.docname == welcome:
            continue
        if entry.part != part:
            part = entry.part
            lines += ["", f"## {part}", ""]
        place = app.builder.get_target_uri(entry.docname) + END
        words = first(out, app, entry.docname)
        title = SPECIAL.sub(r"\\\g<0>", entry.title)
        lines.append(f"- [{title}]({root}{place}): {words}")
    write_changed(out / "llms.txt", "\n".join([*lines, ""]))


def first(out: Path, app: Sphinx, page: str) -> str:
    """Return the first paragraph of a page's twin as plain text on one line, without links."""
    text = (out / (app.builder.get_target_uri(page) + END)).read_text("utf-8")
    plain = (p for p in text.split("\n\n") if p[:1] not in (*"#>-!*|`<", ""))
    words = re.sub(r"\[((?:[^]\\]|\\.)*)\]\([^)]*\)", r"\1", next(plain, ""))
    return re.sub(r"\\([^\w\s])", r"\1", " ".join(words.split()))


def version() -> int:
    """Return a number that changes with the writers: then Sphinx reads and writes all pages again."""
    names = ("as_markdown", "cards", "described", "html_as_markdown", "markdown_twins")
    files = [Path(__file__).with_name(f"{name}.py") for name in names]
    content = b"".join(file.read_bytes() for file in files)
    return int(hashlib.sha256(content).hexdigest()[:12], 16)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", write, priority=600)  # after the foot of the page
    app.connect(
        "build-finished", contents, priority=390
    )  # before the pages are forgotten
    return {
        "env_version": version(),
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
