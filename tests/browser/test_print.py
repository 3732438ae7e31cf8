"""A chapter on paper: a clean document, whatever the screen showed."""

from built_book import Visitor, settle
from playwright.sync_api import Page

PAPER = {"width": 673, "height": 1000}  # A4 between its margins
SCREEN_ONLY = (
    ".topbar, .chapnav, .skip, .pager, .page-tools, .glance, .headerlink, "
    ".def-actions, .tip, .toast, button:not(th *), input"
)


def on_paper(visit: Visitor, chapter: str) -> Page:
    page = visit(chapter, theme="dark").page
    page.locator("#shapes-toggle").click()
    page.emulate_media(media="print")
    page.set_viewport_size(PAPER)
    settle(page)
    return page


def test_paper_shows_no_part_of_the_screen(visit: Visitor, chapter: str) -> None:
    page = on_paper(visit, chapter)
    shown = page.evaluate(
        """names => [...document.querySelectorAll(names)]
             .filter(e => e.checkVisibility({visibilityProperty: true}))
             .map(e => e.outerHTML.slice(0, 80))""",
        SCREEN_ONLY,
    )
    assert shown == []


def test_nothing_is_cut_on_paper(visit: Visitor, chapter: str) -> None:
    page = on_paper(visit, chapter)
    cut = page.evaluate(
        """() => [...document.querySelectorAll("main *")].filter(e => {
             if (e.closest("svg, .katex-mathml, .visually-hidden, template")) return false;
             const box = e.getBoundingClientRect();
             // KaTeX's vertical lists end in a strut of two pixels, which takes no room.
             return box.right > innerWidth + (e.closest(".vlist-t2") ? 2 : 1)
               || (getComputedStyle(e).overflowX !== "visible" && e.scrollWidth > e.clientWidth + 1);
           }).map(e => e.outerHTML.slice(0, 120))"""
    )
    assert cut == []


def test_paper_is_light(visit: Visitor, chapter: str) -> None:
    page = on_paper(visit, chapter)
    colours = """() => [document.body, ...document.querySelectorAll(
        ".code, .sbs__prose p, svg.plot :is(text, path, use)")].map(e => {
          const style = getComputedStyle(e);
          return [style.color, style.backgroundColor, style.fill, style.stroke];
        })"""
    dark = page.evaluate(colours)
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    assert dark == page.evaluate(colours)
    assert dark[0][1] == "rgb(255, 255, 255)"


def test_no_word_of_a_table_is_broken_on_paper(visit: Visitor) -> None:
    page = on_paper(visit, "experiments/chapters/paper")
    broken = page.evaluate(
        """() => {
          const found = [], range = document.createRange();
          const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
          while (walk.nextNode()) if (walk.currentNode.parentElement.closest(".sortable"))
            for (const word of walk.currentNode.data.matchAll(/[^\\s+-]+/g)) {
              range.setStart(walk.currentNode, word.index);
              range.setEnd(walk.currentNode, word.index + word[0].length);
              if (range.getClientRects().length > 1) found.push(word[0]);
            }
          return found;
        }"""
    )
    assert broken == []
