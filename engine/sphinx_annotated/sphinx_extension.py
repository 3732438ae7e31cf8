"""The Sphinx extension: what it adds to Sphinx, and which step of a build comes when.

1. ``env-get-outdated``: every chapter is parsed. Those without a stored record are executed,
   several at a time. Pages whose outputs changed are read again.
2. ``source-read``: the site's notebook replaces the module's text, and MyST-NB reads it.
3. Transforms: outputs move into their rows (``page/chapter/transforms.py``), and for HTML rows into a
   sheet (``page/chapter/sheet.py``).
4. ``html-page-context``: the theme gets the title block, the list of chapters and the links.

The steps themselves are in ``steps.py``.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from sphinx_annotated import RELEASE, steps
from sphinx_annotated.ends import name_places, say_and_end, say_early_ends
from sphinx_annotated.page.build import chapters
from sphinx_annotated.page.build.again import Again
from sphinx_annotated.page.build.state import Memory
from sphinx_annotated.page.chapter import (
    places,
    remote,
    rows,
    sheet,
    ties,
    transforms,
    typed,
)
from sphinx_annotated.page.directives import (
    deeper,
    deviations,
    exercises,
    folding,
    pictures,
    values,
    variants,
)
from sphinx_annotated.page.html.boxes import skip
from sphinx_annotated.page.html.code import code_lines, visit_code_lines
from sphinx_annotated.page.manners import written
from sphinx_annotated.read.manners import html
from sphinx_annotated.settings import CONFIGURATION, check
from sphinx_annotated.take import bibtex, snippets

DIRECTIVES: dict[str, type[SphinxDirective]] = {
    "annotated-prose": written.Written,
    "annotated-row": rows.AnnotatedRow,
    "deeper": deeper.Deeper,
    "deviation": deviations.Deviation,
    "deviations": deviations.Deviations,
    "annotated-remark": folding.Remark,
    "exercise": exercises.Exercise,
    "picture": pictures.Picture,
    "solution": exercises.Solution,
    "variant": variants.Variant,
}


def configure(app: Sphinx, config: Any) -> None:
    """Let MyST-NB read ``.py`` files."""
    config.nb_custom_formats = {
        **config.nb_custom_formats,
        ".py": "sphinx_annotated.steps.read_notebook",
    }
    config.nb_render_markdown_format = "myst"  # in outputs, as in prose
    config.nb_merge_streams = False  # site_notebook.py does, around figures


def style(app: Sphinx) -> None:
    """Bring the engine's files into the site, and add the base style if the theme does not style chapters.

    ``html_static_path`` is subject to the book's ``exclude_patterns``, and ``".*/**"`` means all of it.
    """
    if app.builder.format == "html":
        target = Path(app.outdir, "_static")
        target.mkdir(parents=True, exist_ok=True)
        for file in (Path(__file__).parent / "static").iterdir():
            shutil.copyfile(file, target / file.name)
    theme = getattr(app.builder, "theme", None)
    if theme and not theme.get_options({}).get("title_block"):
        app.add_css_file("annotated.css")


def setup(app: Sphinx) -> dict[str, Any]:
    say_early_ends(app)
    app.setup_extension("myst_nb")
    for value in CONFIGURATION:
        app.add_config_value(*value)
    app.add_domain(Memory)
    _add_nodes(app)
    for name, directive in DIRECTIVES.items():
        app.add_directive(name, directive)
    app.add_role("value", values.Value())
    app.add_role(html.ROLE, places.Html())
    app.add_transform(transforms.Rules)
    app.add_transform(transforms.OutputsInRows)
    app.add_transform(transforms.Sizes)
    app.add_transform(typed.AsTyped)
    app.add_transform(places.Places)
    app.add_transform(ties.TiesOfTranslations)
    app.add_post_transform(places.LinksByAddress)
    app.add_post_transform(places.DeadLinks)
    app.add_post_transform(sheet.Sheet)
    app.add_post_transform(remote.RemoteImages)
    app.add_post_transform(deviations.From)
    app.add_post_transform(deviations.InOrder)
    app.add_post_transform(snippets.OfferSnippets)
    app.add_post_transform(bibtex.OfferBibtex)
    app.add_js_file("annotated.js", loading_method="defer")
    app.connect("config-inited", check, priority=50)
    app.connect("config-inited", steps.wait, priority=100)
    app.connect("config-inited", configure, priority=400)
    app.connect("config-inited", chapters.choose, priority=950)  # all suffixes known
    app.connect("builder-inited", name_places)
    app.connect("builder-inited", style)
    app.connect("builder-inited", steps.show_formulas, priority=600)  # after MyST
    app.connect("env-get-outdated", steps.execute_chapters)
    app.connect("source-read", steps.read_chapter)
    app.connect("doctree-read", steps.forget_page)
    app.connect("env-updated", steps.read_again)
    app.connect("env-updated", steps.write_again)
    app.connect("env-updated", steps.compare_copies)
    app.connect("html-page-context", steps.page_context, priority=400)
    Again(app)
    app.connect(
        "build-finished", steps.remove_pages, priority=400
    )  # then the site is indexed
    app.connect("build-finished", steps.report)
    app.connect("build-finished", say_and_end, priority=2000)  # after all others
    return {
        "version": RELEASE,
        "env_version": _version(),
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }


def _add_nodes(app: Sphinx) -> None:
    app.add_node(code_lines, html=(visit_code_lines, None))
    app.add_node(sheet.heading, html=(sheet.visit_heading, sheet.depart_heading))
    app.add_node(remote.remote_image, html=(remote.visit_remote_image, None))
    app.add_node(bibtex.bibtex, html=(bibtex.visit_bibtex, None))
    html = (snippets.visit_standalone_code, None)
    app.add_node(snippets.standalone_code, html=html)
    left_out = (skip, None)
    html = (variants.visit_variant, None)
    app.add_node(variants.variant, html=html, latex=left_out, text=left_out)
    html = (pictures.visit_picture, None)
    app.add_node(pictures.picture, html=html, latex=left_out, text=left_out)
    paragraph = (
        lambda translator, node: translator.visit_paragraph(node),
        lambda translator, node: translator.depart_paragraph(node),
    )
    title = deviations.deviation_title
    tags = deviations.TITLE_HTML
    app.add_node(title, html=tags, latex=paragraph, text=paragraph)
    plain = (_plain, _plain)
    for node, tags in (
        (deviations.deviation, deviations.NOTE_HTML),
        (deviations.deviations, plain),
        (deeper.deeper, deeper.ABOUT),
        (deeper.deeper_section, deeper.SECTION),
        (folding.fold, folding.FOLD),
        (exercises.exercise, exercises.QUESTION),
        (exercises.solution, exercises.ANSWER),
        (ties.tie, ties.TIE_HTML),
    ):
        app.add_node(node, html=tags, latex=plain, text=plain)


def _version() -> int:
    """Return a number that changes with the engine's files, so that pages are read again."""
    paths = [
        path
        for kind in ("py", "js", "css")
        for path in sorted(Path(__file__).parent.rglob(f"*.{kind}"))
    ]
    texts = [path.read_bytes() for path in paths]
    return int(hashlib.sha256(b"".join(texts)).hexdigest()[:12], 16)


def _plain(translator: Any, node: nodes.Element) -> None:
    """Builders other than HTML show the content."""
