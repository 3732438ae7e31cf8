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

from annotated.page.limits import SCHEME
from annotated.page.state import Head, state_of
from as_markdown import Writer
from docutils import nodes
from online import of, write_changed
from sphinx.application import Sphinx

END = ".md"


def site(app: Sphinx) -> str:
    """Return the address of the site, or where its root is on this machine."""
    return of(app).pages or Path(app.outdir).as_uri() + "/"


def twin(app: Sphinx, page: str, doctree: nodes.document) -> str:
    """Return a page as Markdown."""
    root = site(app)
    here = root + app.builder.get_target_uri(page)

    def address(link: str) -> str:
        whole = link.startswith(SCHEME)
        return urljoin(*(root, link.removeprefix(SCHEME)) if whole else (here, link))

    writer = Writer(address, lambda path: root + quote(path))
    state = state_of(app.env)
    body = writer.blocks(doctree.children)
    if page not in state.jobs:
        title, _, rest = body.partition("\n\n")
        return f"{title}\n\n{rest}\n\nThis page: <{here}>\n"
    title = writer.words(app.env.titles[page])
    head = state.heads.get(page, Head())
    parts = [f"# {title}"]
    parts += [writer.words(head.summary)] if head.summary else []
    source = f"{root}_sources/{page}.py"
    entry = next(entry for entry in state.contents if entry.docname == page)
    number = f" · Chapter {entry.number}" if entry.number else ""
    parts.append(f"{entry.part}{number}: <{here}>. As a module: <{source}>.")
    parts += [f"Source: {writer.words(head.source)}"] if head.source else []
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
        {"text": "As Markdown", "href": file.name},
    ]


def wanted(app: Sphinx) -> bool:
    """Return whether this build has twins: the site has, an edition has none yet."""
    code = getattr(app.config, "editions_code", "")
    return app.builder.name == "html" and not code


def contents(app: Sphinx, exception: Exception | None) -> None:
    """Write `llms.txt`, and remove the twins of pages that are gone."""
    if exception is not None or not wanted(app):
        return
    out, root = Path(app.outdir), site(app)
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
        lines.append(f"- [{entry.title}]({root}{place}): {words}")
    write_changed(out / "llms.txt", "\n".join([*lines, ""]))


def first(out: Path, app: Sphinx, page: str) -> str:
    """Return the first paragraph of a page's twin, on one line and without links."""
    text = (out / (app.builder.get_target_uri(page) + END)).read_text("utf-8")
    paragraphs = text.split("\n\n")[1:]
    plain = (p for p in paragraphs if p[:1] not in ("#", ">", "-", "!", "*", "|", "`"))
    words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", next(plain, ""))
    return " ".join(words.split())


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
