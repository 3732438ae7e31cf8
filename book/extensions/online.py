"""What a site has so that it is found, and so that a reader finds whom to tell.

The foot of each page has the repository, the licence, the version, the date of the last change, and links to
edit the page and to report an error. The root of the site is the welcome page itself. The site has a map,
and a page for addresses that do not exist, which works at any depth.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.locale import _
from sphinx.util import logging
from sphinx_annotated.page.build.repository import Repository

LOGGER = logging.getLogger(__name__)
LINK = re.compile(r'(?<=[\s<])((?:xlink:)?href|src|action|data-content_root)="([^"]*)"')
MISSING = "404"
NOWHERE = (
    "No address of a repository: %d links to it are left out, and the map, the feed and the cards. "
    "Give one as repository.url in _config.yml."
)
ELSEWHERE = (
    "The kind of host at %s is not known: %d links to files and forms there are left out. Name it as "
    "repository.host in _config.yml (github, gitlab or forgejo), and the site's address as repository.site."
)
POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')
HEADING = re.compile(
    r'<a class="headerlink"[^>]*? href="#(?P<anchor>[^"]+)"[^>]*>#</a>(?=</h)'
)
LINE = re.compile(r'<span class="ln[^"]*" id="L(\d+)"')


def of(app: Sphinx) -> Repository:
    """Return the book's repository."""
    return Repository(**app.config.annotated_repository)


def version(root: Path) -> str:
    """Return the version of the project."""
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    return str(tomllib.loads(text)["project"]["version"])


@dataclass(frozen=True)
class Change:
    """The days of a file's first and last change, and the last commit."""

    first: str
    last: str
    commit: str


def changes(root: Path) -> dict[str, Change]:
    """Return the changes of each file, or nothing if the history is not here."""
    command = ["git", "-C", str(root), "-c", "core.quotePath=false"]
    shallow = [*command, "rev-parse", "--is-shallow-repository"]
    form = "--format=%x01%cs %h"  # no file's name begins so
    log = [*command, "log", "--name-only", "--no-renames", "--relative", form]
    try:
        run = {"capture_output": True, "text": True, "check": True}
        if subprocess.run(shallow, **run).stdout.strip() == "true":  # type: ignore[call-overload]
            return {}
        lines = subprocess.run(log, **run).stdout.splitlines()  # type: ignore[call-overload]
    except (OSError, subprocess.CalledProcessError):
        return {}
    found: dict[str, Change] = {}
    day = commit = ""
    for line in filter(None, lines):
        if line.startswith("\1"):
            day, commit = line[1:].split()
        else:
            last = found.get(line, Change("", day, commit))
            found[line] = Change(day, last.last, last.commit)
    return found


def name(app: Sphinx, config: Config) -> None:
    """Name the book and its version in `objects.inv`, by which others link to it."""
    config.project = config.html_title
    config.version = config.release = version(Path(app.srcdir))


def begin(app: Sphinx) -> None:
    """Read what all pages have in common."""
    root = Path(app.srcdir)
    app.online = (version(root), changes(root))  # type: ignore[attr-defined]
    app.left_out = 0  # type: ignore[attr-defined]


def source_of(app: Sphinx, page: str) -> str:
    """Return the path of a page's source below the sources, or "" if it has none."""
    if page not in app.env.found_docs:
        return ""
    return Path(str(app.env.doc2path(page, base=False))).as_posix()


def edition_of(app: Sphinx) -> str:
    """Return the folder of this build's edition in the site, or "" for the English book."""
    code = getattr(app.config, "editions_code", "")
    return f"{code}/" if code else ""


def catalogue_of(app: Sphinx, page: str) -> str:
    """Return the path of the file with an edition's words of a page, or "" if there is none."""
    if not (folder := edition_of(app)):
        return ""
    path = Path(app.config.editions_locale, folder, f"{page}.po")
    return path.as_posix() if Path(app.srcdir, path).is_file() else ""


def change_of(app: Sphinx, page: str) -> Change | None:
    """Return the changes of a page's source, if the history is here."""
    _, changed = app.online  # type: ignore[attr-defined]
    found: Change | None = changed.get(source_of(app, page))
    return found


def committed(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Return the pages to write again: those last changed by another commit than they say."""
    said = getattr(env, "commits", {})
    commits = {page: change_of(app, page) for page in env.found_docs}
    env.commits = commits  # type: ignore[attr-defined]
    return [page for page, commit in commits.items() if said.get(page) != commit]


def foot(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Give a page its foot and its canonical address."""
    repository = of(app)
    number, _changes = app.online  # type: ignore[attr-defined]
    path, change = source_of(app, pagename), change_of(app, pagename)
    if pagename == app.config.root_doc and repository.pages:
        context["pageurl"] = repository.pages
    if pagename == MISSING:
        context["pageurl"] = None
    links = [
        (_("Repository"), repository.url.rstrip("/")),
        (_("MIT license"), repository.file("LICENSE")),
    ]
    if path:
        words = catalogue_of(app, pagename) or path
        links.append((_("Edit this page"), repository.edit(words)))
        place = edition_of(app) + str(app.builder.get_target_uri(pagename))
        about = f"{number}, commit {change.commit}" if change else number

        def report(where: dict[str, str]) -> str:
            return repository.issue("words.yml", {"versions": about, **where})

        whole = report({"page": repository.pages + place})
        links.append((_("Something wrong here?"), whole))
        if whole:
            body = context.get("body") or ""
            context["body"] = with_reports(body, place, report)
    foot = [{"text": text, "href": address} for text, address in links if address]
    app.left_out += len(links) - len(foot)  # type: ignore[attr-defined]
    context["foot"] = foot
    facts = [_("Version {}").format(number), *([change.last] if change else [])]
    context["foot_facts"] = " · ".join(facts)


def with_reports(
    body: str, address: str, report: Callable[[dict[str, str]], str]
) -> str:
    """Return a page with a link at each heading to a form that names the section and its first line.

    The ``address`` is the page's in the site: a whole one at each heading would weigh more than it says.

    The link is for those who point at the heading. All others have the one at the foot of the page.
    """

    def link(match: re.Match[str]) -> str:
        section = {"page": f"{address}#{match['anchor']}"}
        line = LINE.search(body, match.end())
        after = HEADING.search(body, match.end())
        if line and (after is None or line.start() < after.start()):
            section["line"] = line[1]
        address_of_form = escape(report(section))
        words = escape(_("Something wrong here?"))
        return (
            f'{match[0]}<a class="headerlink wrong" data-pagefind-ignore href="{address_of_form}" '
            f'title="{words}" aria-hidden="true" tabindex="-1"></a>'
        )

    return HEADING.sub(link, body)


def missing_page(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the page for addresses that do not exist."""
    title = _("There is no such page")
    home = escape(app.builder.get_relative_uri(MISSING, app.config.root_doc))
    begin = _("begin at the welcome page")  # Babel finds no word within an f-string
    body = (
        f"<h1>{title}</h1><p>"
        + _(
            "It may have moved. Search for it above, choose a chapter from the list, or {}."
        ).format(f'<a href="{home}">{begin}</a>')
        + "</p>"
    )
    yield MISSING, {"title": title, "body": body}, "page.html"


def moved(page: str, here: str, to: str) -> str:
    """Return a page of the address `here` with links that are right at the address `to`.

    Both are relative to the root of the site. If `to` is the path of the root itself, links begin with it.
    """

    def link(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        if urlsplit(value).scheme or value.startswith(("#", "/")):
            return match[0]
        target = urljoin(f"http://x/{here}", value).removeprefix("http://x/")
        return f'{name}="{to}{target}"'

    return LINK.sub(link, page)


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write the root, the page for missing addresses, the map, and the file for robots."""
    if exception is not None or app.builder.name != "html":
        return
    site, repository = Path(app.outdir), of(app)
    if left_out := app.left_out:  # type: ignore[attr-defined]
        if repository.url:
            LOGGER.info(ELSEWHERE, repository.url, left_out)
        else:
            LOGGER.info(NOWHERE, left_out)
    root = app.builder.get_target_uri(app.config.root_doc)
    welcome = (site / root).read_text(encoding="utf-8")
    once = welcome.replace(" data-pagefind-body", "")  # the search finds it once
    folder = edition_of(app)
    up = "../" if folder else "./"
    write_changed(site / "index.html", moved(once, folder + root, up))
    base = urlsplit(repository.pages).path or "/"
    absent = site / f"{MISSING}.html"
    text = absent.read_text(encoding="utf-8")
    write_changed(absent, moved(text, folder + absent.name, base))
    if repository.pages and not folder:
        write_changed(site / "sitemap.xml", sitemap(app, repository))
        robots = f"User-agent: *\nAllow: /\nSitemap: {repository.pages}sitemap.xml\n"
        write_changed(site / "robots.txt", robots)
    if not folder:
        write_changed(site / "_headers", headers(welcome))


def headers(page: str) -> str:
    """Return the file of headers that some hosts read: the pages' policy, and what no page can say."""
    found = POLICY.search(page)  # none where formulas are set by a script of others
    policy = f"{unescape(found[1])}; " if found else ""
    return (
        "/*\n"
        f"  Content-Security-Policy: {policy}frame-ancestors 'none'\n"
        "  X-Content-Type-Options: nosniff\n"
        "  Referrer-Policy: strict-origin-when-cross-origin\n"
        "/*.md\n"
        "  Content-Type: text/markdown; charset=utf-8\n"
    )


def sitemap(app: Sphinx, repository: Repository) -> str:
    """Return the site's map: every page in each language, with the day of its last change if it is known."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
        ' xmlns:xhtml="http://www.w3.org/1999/xhtml">'
    )
    for name in sorted(app.env.found_docs):
        change = change_of(app, name)
        day = f"<lastmod>{change.last}</lastmod>" if change else ""
        pages = places(app, repository.pages, name)
        links = "".join(
            f'<xhtml:link rel="alternate" hreflang="{code}" href="{escape(address)}"/>'
            for code, address in pages
            if len(pages) > 1
        )
        for _code, address in pages:
            lines.append(f"<url><loc>{escape(address)}</loc>{day}{links}</url>")
    return "\n".join([*lines, "</urlset>", ""])


def places(app: Sphinx, site: str, page: str) -> list[tuple[str, str]]:
    """Return the languages that a page can be read in, each with its canonical address."""
    uri = app.builder.get_target_uri(page)
    root = "" if page == app.config.root_doc else uri
    found = [("en", f"{site}{root}")]
    if getattr(app.config, "editions_locale", ""):
        from editions import all_languages, is_mostly_english

        found += [
            (each.tag, f"{site}{each.code}/{uri}")
            for each in all_languages(app)
            if not is_mostly_english(app, each, page)
        ]
    return found


def write_changed(path: Path, text: str) -> None:
    """Write a file if its text is another: an unchanged one keeps its time."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("config-inited", name)
    app.connect("builder-inited", begin)
    app.connect("env-updated", committed)
    app.connect("html-collect-pages", missing_page)
    app.connect("html-page-context", foot)
    app.connect("build-finished", write, priority=450)  # before the search is indexed
    return {"parallel_read_safe": True, "parallel_write_safe": True}
