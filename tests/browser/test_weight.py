"""What a page weighs, and whether it stands still while it comes."""

import gzip
import re

from built_book import Site, Visitor
from playwright.sync_api import Browser, Response

FIGURE = re.compile(rb'<svg class="plot".*?</svg>', re.DOTALL)
PACKED = (".woff2", ".png", ".wasm")  # served as they are


def weight(response: Response) -> int:
    """Bytes of an answer as GitHub Pages would send it; a page's figures do not count."""
    path = response.url.split("?")[0]
    body = response.body()
    if path.endswith(PACKED):
        return len(body)
    return len(gzip.compress(FIGURE.sub(b"", body), 6))


def test_the_first_view_of_a_chapter_weighs_at_most_120_kilobytes(
    chromium: Browser, site: Site, chapter: str
) -> None:
    context = chromium.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))
    page.goto(site.url(chapter), wait_until="networkidle")
    parts = {
        answer.url.removeprefix(site.address): weight(answer) for answer in answers
    }
    context.close()
    assert any(name.endswith(".woff2") for name in parts)
    assert sum(parts.values()) <= 120_000, parts


SHIFTS = """
  window.shifts = [];
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) shifts.push([entry.value, entry.sources.map(
      source => (source.node?.outerHTML || source.node?.textContent || "").slice(0, 80))]);
  }).observe({type: "layout-shift", buffered: true});
"""


def test_nothing_shifts_while_a_page_loads(
    chromium: Browser, site: Site, page: str
) -> None:
    for width in (1400, 390):
        context = chromium.new_context(viewport={"width": width, "height": 900})
        context.add_init_script(SHIFTS)
        opened = context.new_page()
        opened.goto(site.url(page), wait_until="networkidle")
        opened.evaluate("document.fonts.ready.then(() => true)")
        shifts = opened.evaluate("shifts")
        context.close()
        assert sum(value for value, _ in shifts) < 0.02, (width, shifts)


def test_a_page_loads_at_once_the_fonts_that_it_needs(
    visit: Visitor, page: str
) -> None:
    opened = visit(page)
    opened.page.wait_for_load_state("networkidle")
    preloaded = opened.page.eval_on_selector_all(
        "link[rel=preload]", "links => links.map(link => link.href)"
    )
    used = {url for url in opened.asked if url.endswith(".woff2")}
    assert set(preloaded) <= used
    assert all(
        opened.page.evaluate("url => performance.getEntriesByName(url).length", url)
        == 1
        for url in used
    )


def test_the_site_holds_no_file_that_no_page_asks_for(site: Site) -> None:
    texts = {
        path: path.read_text(encoding="utf-8")
        for kind in ("html", "css", "js", "json")
        for path in site.folder.rglob(f"*.{kind}")
    }
    idle = [
        path.relative_to(site.folder).as_posix()
        for folder in ("_static", "_pagefind")
        for path in (site.folder / folder).glob("*.*")
        if path.suffix in (".css", ".js", ".png", ".svg", ".woff2")
        and not any(path.name in text for other, text in texts.items() if other != path)
    ]
    assert [path for path in idle if not path.endswith("pagefind.js")] == []
    assert not list(site.folder.glob("_pagefind/*ui*"))
