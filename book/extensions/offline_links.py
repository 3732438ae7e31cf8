"""Links on the welcome page to the book as a PDF, an EPUB and an archive, if `make offline` has made them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.locale import _

FOLDER = "downloads"  # of the site
KINDS = {
    ".epub": "an EPUB for e-readers",
    ".pdf": "one PDF",
    ".zip": "an archive to read offline",
}


def _kinds() -> list[str]:
    """Name the words that are looked up elsewhere, for those who extract messages."""
    return [
        _("an EPUB for e-readers"),
        _("one PDF"),
        _("an archive to read offline"),
        _("Contents"),
        _("Formulas require MathML. This should be 2 to the power of 3:"),
    ]


def found(site: Path) -> list[dict[str, str]]:
    """Return the existing downloads, for the welcome page."""
    return [
        {
            "href": path.relative_to(site).as_posix(),
            "what": _(KINDS[path.suffix]),
            "size": f"{path.stat().st_size / 1e6:.1f} MB",
        }
        for path in sorted((site / FOLDER).glob("*"))
        if path.suffix in KINDS
    ]


def changed(app: Sphinx, env: BuildEnvironment, *changes: set[str]) -> list[str]:
    """Write the welcome page again if the downloads have changed."""
    before, now = getattr(env, "offline", []), found(Path(app.outdir))
    env.offline = now  # type: ignore[attr-defined]
    return [app.config.root_doc] if now != before else []


def offer(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give the welcome page its links."""
    if pagename == app.config.root_doc:
        up = "../" * pagename.count("/")
        context["take_along"] = [
            each | {"href": up + each["href"]} for each in found(Path(app.outdir))
        ]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("env-get-outdated", changed)
    app.connect("html-page-context", offer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
