"""What is measured on a page in one visit. The tests read it, and open no page of their own.

A page that was loaded at 1400 pixels is measured there, then at 390 in the dark theme, and last at 320, so
that by day one visit sees every page as most readers do. Pages of each kind are also measured at 1000 pixels
and on paper, by axe, and as they are loaded on a phone; nightly, every page is, in every look.
"""

from collections.abc import Callable
from typing import Any

import pytest
from built_book import CHAPTERS, PAGES, nightly, short
from playwright.sync_api import Page
from visits import Visit, barriers, in_theme, resized, settle

# One page of each kind: welcome, chapter, figures, tables, links, entries.
KINDS = [
    "book/pages/index",
    "labml_primer/transformer/attention",
    "experiments/chapters/sizes",
    "experiments/chapters/paper",
    "book/pages/individuals",
    "book/pages/references",
]
LOOKS = [(1400, "light"), (390, "dark"), (1400, "dark"), (390, "light")]


def daily(page: str, width: int, theme: str) -> bool:
    """Whether a page is looked at so by day too."""
    return (width, theme) == LOOKS[0] or (page in KINDS and (width, theme) == LOOKS[1])


every_look = pytest.mark.parametrize(
    ("page", "width", "theme"),
    [
        (page, *look) if daily(page, *look) else nightly(page, *look)
        for page in PAGES
        for look in LOOKS
    ],
    ids=lambda value: short(str(value)),
)

Measures = dict[str, Any]
Looker = Callable[[str, int, str], Measures]  # page, width, theme
Reader = Callable[[str], Measures]  # page

PAPER = {"width": 673, "height": 1000}  # A4 between its margins

# Runs before the page: what moves while it loads.
SHIFTS = """
  window.shifts = [];
  window.watched = new PerformanceObserver(list => note(list.getEntries()));
  window.note = entries => { for (const entry of entries) shifts.push([entry.value, entry.sources.map(
      source => (source.node?.outerHTML || source.node?.textContent || "").slice(0, 80))]); };
  watched.observe({type: "layout-shift", buffered: true});
"""

# -- a page as it was loaded: each leaves it as it is -------------------------------------------

LOADED = {
    "shifts": "() => { note(watched.takeRecords()); return shifts; }",
    "preloaded": """() => [...document.querySelectorAll("link[rel=preload]")].map(link => link.href)""",
    "loaded": """() => performance.getEntriesByType("resource").map(each => each.name)""",
    # The files of fonts in which something is drawn. `document.fonts` has them in the order of their rules.
    "fonts": """() => {
      const rules = [...document.styleSheets].flatMap(sheet =>
          [...sheet.cssRules].filter(rule => rule instanceof CSSFontFaceRule));
      return [...document.fonts].flatMap((font, i) => {
        const file = /url\\("?([^")]+)/.exec(rules[i].style.getPropertyValue("src"))?.[1];
        return font.status === "loaded" && file
          ? new URL(file, rules[i].parentStyleSheet.href).href : [];
      });
    }""",
    "cut in prose": """() => [...document.querySelectorAll(".plain pre")]
        .filter(e => e.scrollWidth > e.clientWidth + 1)
        .map(e => e.textContent.slice(0, 80))""",
    "cut": """() => [...document.querySelectorAll(
            ".code, .out, .out pre, .sbs__code .output, .sbs__prose .katex-display")]
        .filter(e => e.scrollWidth > e.clientWidth + 1)
        .map(e => e.textContent.slice(0, 80))""",
    "title": """() => {
      const place = name => document.querySelector(name)?.getBoundingClientRect();
      const [bar, text] = [place(".topbar"), place(".chapter-head__text")];
      return text && text.top - bar.height;
    }""",
    # The parts with which a chapter opens, from top to bottom.
    "opening": """() => ["h1", ".sbs__row:first-child > .sbs__code > :first-child",
        ".sbs__row:first-child > .sbs__prose", ".facts"].map(
          part => document.querySelector(part)?.getBoundingClientRect().top)""",
    # Where the picture or the first result begins and ends with which a page opens.
    "first screen": """() => {
      const opening = ".sbs__row:first-child > .sbs__code > :is(.out--picture, .cell_output)";
      const shown = document.querySelector(".sbs")
        ? document.querySelector(opening)
        : document.querySelector("main .out--picture, .population, .live-text");
      const drawn = [...shown?.querySelectorAll("svg, .out") ?? []].find(e => e.checkVisibility());
      const { top, bottom } = (drawn ?? shown)?.getBoundingClientRect() ?? {};
      return [top, bottom];
    }""",
    "opens with": """() => document.querySelector(".sbs__row > .sbs__code > *")?.matches(
        ".out--picture, .cell_output")""",
    "fonts of figures": """() => [...document.querySelectorAll(
        ":is(.plot, .plot-narrow) :is(text, tspan)")]
        .map(e => getComputedStyle(e).fontFamily.split(",")[0])""",
    "words of figures": """() => [...document.querySelectorAll(":is(.plot, .plot-narrow) text")]
        .map(e => e.textContent)""",
    "colours of figures": """() => [...document.querySelectorAll(".plot, .plot-narrow")].map(figure =>
        [...figure.querySelectorAll("path, text, line, use")].map(
            e => getComputedStyle(e).stroke + getComputedStyle(e).fill))""",
    # Words of a figure that lie on each other.
    "crossed": """() => [...document.querySelectorAll(".plot, .plot-narrow")].flatMap((figure, i) => {
      const words = [...figure.querySelectorAll("text")].filter(t => t.textContent.trim().length > 3);
      const boxes = words.map(t => t.getBoundingClientRect());
      const found = [];
      for (let a = 0; a < words.length; a++) for (let b = a + 1; b < words.length; b++) {
        const x = Math.min(boxes[a].right, boxes[b].right) - Math.max(boxes[a].left, boxes[b].left);
        const y = Math.min(boxes[a].bottom, boxes[b].bottom) - Math.max(boxes[a].top, boxes[b].top);
        if (x > 2 && y > 4) found.push([i, words[a].textContent, words[b].textContent]);
      }
      return found;
    })""",
    # Words of a picture that are outside it, or on each other.
    "cramped": """() => {
      const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1
        && a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
      const shared = (a, b) => [
        Math.min(a.right, b.right) - Math.max(a.left, b.left),
        Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)];
      const wrong = [], stepped = [...document.querySelectorAll(".stepped")];
      for (const picture of stepped) picture.classList.remove("stepped"); // whole
      for (const picture of document.querySelectorAll(".picture")) {
        const frame = picture.getBoundingClientRect();
        const texts = [...picture.querySelectorAll("text")].filter(text => !text.closest(".off"));
        const places = texts.map(text => text.getBoundingClientRect());
        texts.forEach((text, i) => {
          if (!inside(places[i], frame)) wrong.push(`outside: ${text.textContent}`);
          for (let j = 0; j < i; j++) {
            const [wide, high] = shared(places[i], places[j]);
            if (wide >= 1 && high >= 4) wrong.push(`${text.textContent} on ${texts[j].textContent}`);
          }
        });
        const others = [...picture.querySelectorAll(".off")]; // of other steps than the last
        for (const part of others) part.style.display = "inline";
        for (const text of picture.querySelectorAll(".off text"))
          if (!inside(text.getBoundingClientRect(), frame)) wrong.push(`outside: ${text.textContent}`);
        for (const part of others) part.style.display = "";
      }
      for (const picture of stepped) picture.classList.add("stepped");
      return wrong;
    }""",
    "sizes in pictures": """() => [...document.querySelectorAll(".picture text")].map(text => [
        parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getScreenCTM().a,
        text.textContent])""",
    "sizes of indices in pictures": """() => [...document.querySelectorAll(".picture tspan")].map(text => [
        parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getScreenCTM().a,
        text.textContent])""",
    # How far the first sentence of a chapter is below its title block.
    "first sentence": """() => {
      const title = document.querySelector(".chapter-head__text");
      const text = document.querySelector(".sbs__prose p");
      return title && text && text.getBoundingClientRect().top - title.getBoundingClientRect().bottom;
    }""",
    # Of the drawings of figures that this width shows.
    "sizes in figures": """() => [...document.querySelectorAll(":is(.plot, .plot-narrow) text")]
        .filter(text => text.ownerSVGElement.checkVisibility() && text.textContent.trim()).map(text => {
          const { a, b } = text.getScreenCTM();
          return [parseFloat(getComputedStyle(text).fontSize) * Math.hypot(a, b), text.textContent];
        })""",
    # What can be clicked and is not as large as a fingertip, apart from links in a sentence.
    "small": """() => [...document.querySelectorAll(
            "main :is(button, summary, select, input, textarea, .lno, .def-actions a, .letters a)")]
        .filter(e => e.checkVisibility({visibilityProperty: true}))
        .map(e => [e, e.getBoundingClientRect()])
        .filter(([e, box]) => box.width > 1 && (box.width < 23.9 || box.height < 23.9))
        .map(([e, box]) => `${box.width.toFixed()} x ${box.height.toFixed()}: ${e.outerHTML.slice(0, 70)}`)
        .slice(0, 3)""",
    "black in pictures": """() => [...document.querySelectorAll(
            ".picture :is(circle, rect, path)")]
        .filter(shape => getComputedStyle(shape).fill === "rgb(0, 0, 0)").map(e => e.outerHTML)""",
}

# -- each puts something in, and takes it out again ------------------------------------------------

PROBED = {
    # How far the first baselines of the two halves of a row are apart. All probes are put in before any is
    # measured, so that the page is laid out once.
    "baselines": """() => {
      const probed = (box, skip) => {
        const walk = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) {
          const node = walk.currentNode;
          if (!node.data.trim() || node.parentElement.closest(skip)) continue;
          if (node.parentElement.closest(".katex-display, table, .shape, .picture")) return null;
          const probe = document.createElement("span");
          probe.style.cssText = "display: inline-block; width: 0; height: 0";
          node.before(probe);
          return probe;
        }
        return null;
      };
      const rows = [];
      for (const row of document.querySelectorAll(".sbs__row")) {
        const [prose, code] = row.children;
        const line = code.querySelector(".ln, summary, .out");
        if (!line || line.matches(".out") || !prose.textContent.trim()) continue; // a figure has no baseline
        rows.push([line.id || line.textContent, probed(prose, ".katex-mathml"), probed(line, ".lno")]);
      }
      const bottom = probe => probe.getBoundingClientRect().bottom;
      const apart = rows.filter(row => row[1] && row[2])
          .map(([name, prose, code]) => [name, bottom(prose) - bottom(code)]);
      for (const probe of rows.flatMap(row => row.slice(1))) probe?.remove();
      return apart;
    }""",
    # Words that the browser's search on the page never finds: hidden, and not in a fold, which that search
    # opens. The live models' tools and the steps of a lineage come with a script, and the order of panels is
    # said on narrow screens.
    "out of reach": """() => {
      const closed = [...document.querySelectorAll("details:not([open])")];
      for (const fold of closed) fold.open = true;
      const places = "main :is(p, li, dt, dd, h2, h3, h4, td, th, .ln, .out pre)";
      const found = [...document.querySelectorAll(places)]
        .filter(e => e.textContent.trim())
        .filter(e => !e.closest(".live, .lineage, form, .visually-hidden, .plot-order"))
        .filter(e => !e.checkVisibility({ visibilityProperty: true }));
      for (const fold of closed) fold.open = false;
      return found.map(e => e.outerHTML.slice(0, 120));
    }""",
    # Whether there are blocks of code that are not folded.
    "open code": """() => document.querySelectorAll(".sbs__code > .sbs__block").length""",
    # How many characters the column of prose is wide.
    "characters": """() => {
      const prose = document.querySelector(".sbs__prose"), text = prose?.querySelector("p");
      if (!text) return null;
      const ruler = document.createElement("span");
      ruler.textContent = "The weights are computed from the words themselves, anew, ";
      ruler.style.whiteSpace = "pre";
      text.append(ruler);
      const one = ruler.getBoundingClientRect().width / ruler.textContent.length;
      ruler.remove();
      return prose.getBoundingClientRect().width / one;
    }""",
    # Whether a line of code of 88 characters is seen whole.
    "88 fit": """() => {
      const code = document.querySelector(".code:has(.ln)");
      if (!code) return null;
      const line = code.querySelector(".ln").cloneNode(true);
      line.removeAttribute("id");
      line.lastChild.before("m".repeat(88 - line.textContent.trimEnd().length));
      code.append(line);
      const fits = code.scrollWidth <= code.clientWidth;
      line.remove();
      return fits;
    }""",
}

# What is measured again after a page became as narrow as a phone.
PHONE = {
    name: LOADED[name]
    for name in (
        "opening",
        "first screen",
        "opens with",
        "colours of figures",
        "cramped",
        "sizes in pictures",
        "sizes of indices in pictures",
        "sizes in figures",
        "small",
        "black in pictures",
    )
}

PHONE |= {
    # Where the links are to run a chapter and to take it along.
    "tools": """() => {
      const links = document.querySelector(".page-tools .btn")?.getBoundingClientRect();
      return links && [links.top, links.bottom];
    }""",
    "figures that scroll": """() => [...document.querySelectorAll(".out--plot")]
        .filter(e => e.scrollWidth > e.clientWidth + 1)
        .map(e => e.querySelector("svg").getAttribute("aria-label"))""",
}

SIDEWAYS = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
    [...document.querySelectorAll("main *")].filter(
        e => e.getBoundingClientRect().right > innerWidth + 1
    ).slice(0, 3).map(e => e.outerHTML.slice(0, 120))"""

# Names that are tied to a symbol, and the code has no such name or no formula the symbol.
LOOSE = """() => {
  const code = document.querySelector(".sbs__code"); // focused, its names have elements
  code?.dispatchEvent(new Event("focusin", { bubbles: true }));
  const letters = e => e.textContent.replace(/[\\u200b\\s]/g, "");
  const names = new Set([...document.querySelectorAll(".sbs__code .n")].map(letters));
  const symbols = [...document.querySelectorAll(".mord")].filter(e => !e.closest(".tie"));
  const spelled = new Set(symbols.map(letters));
  return [...document.querySelectorAll("[data-tie] .katex-html")].filter(symbol =>
    !names.has(symbol.closest("[data-tie]").dataset.tie) || !spelled.has(letters(symbol))
  ).map(symbol => symbol.closest("[data-tie]").dataset.tie);
}"""

# Parts of a picture that are shown though its last step has them not, or hidden though it has.
NOT_WHOLE = """() => [...document.querySelectorAll(".picture[data-steps]")]
   .flatMap(picture => [...picture.querySelectorAll("[data-at]")].filter(part =>
     (getComputedStyle(part).display === "none")
       === part.dataset.at.split(" ").includes(picture.dataset.steps)))
   .map(part => part.outerHTML.slice(0, 120))"""

# -- on paper ----------------------------------------------------------------------------------

PRINTED = {
    "not of the last step": NOT_WHOLE,
    # What is read below each picture.
    "below pictures": """() => [...document.querySelectorAll(".out--picture")]
        .map(e => e.querySelector("figcaption").innerText)""",
    # The titles of exercises and of solutions, from top to bottom.
    "exercises": """() => [...document.querySelectorAll(
            ".note--exercise > .note__title, .solution > summary")]
        .map(e => [e.getBoundingClientRect().top, e.innerText]).sort((a, b) => a[0] - b[0])
        .map(([top, words]) => words)""",
    "fonts": LOADED["fonts"],
    "of the screen": """() => [...document.querySelectorAll(
        ".topbar, .chapnav, .skip, .pager, .page-tools, .glance, .headerlink, "
        + ".def-actions, .tip, .toast, button:not(th *), input")]
        .filter(e => e.checkVisibility({visibilityProperty: true}))
        .map(e => e.outerHTML.slice(0, 80))""",
    "cut": """() => [...document.querySelectorAll("main *")].filter(e => {
        if (e.closest("svg, .katex-mathml, .visually-hidden, template")) return false;
        const box = e.getBoundingClientRect();
        // KaTeX's vertical lists end in a strut of two pixels, which takes no room.
        return box.right > innerWidth + (e.closest(".vlist-t2") ? 2 : 1)
          || (getComputedStyle(e).overflowX !== "visible" && e.scrollWidth > e.clientWidth + 1);
      }).map(e => e.outerHTML.slice(0, 120))""",
    # Words of a table that are broken.
    "broken": """() => {
      const found = [], range = document.createRange();
      const walk = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
      while (walk.nextNode()) if (walk.currentNode.parentElement.closest(".sortable"))
        for (const word of walk.currentNode.data.matchAll(/[^\\s+-]+/g)) {
          range.setStart(walk.currentNode, word.index);
          range.setEnd(walk.currentNode, word.index + word[0].length);
          if (range.getClientRects().length > 1) found.push(word[0]);
        }
      return found;
    }""",
}

COLOURS = """() => [document.body, ...document.querySelectorAll(
    ".code, .sbs__prose p, svg.plot :is(text, path, use)")].map(e => {
      const style = getComputedStyle(e);
      return [style.color, style.backgroundColor, style.fill, style.stroke];
    })"""


def together(scripts: dict[str, str]) -> str:
    """One script of many. Each question of its own to the browser costs more than most answers."""
    each = ", ".join(f'"{name}": ({script})()' for name, script in scripts.items())
    return f"() => ({{ {each} }})"


def measured(opened: Visit, name: str, full: bool) -> Measures:
    """All that is measured on a page as it is read, and last what changes it.

    Only ``full``, it includes what takes as long as all else: barriers, widths between, and paper.
    """
    page = opened.page
    opened.quiet()
    found: Measures = {"asked": list(opened.asked)}
    found |= page.evaluate(together(LOADED | PROBED))
    width = page.evaluate("innerWidth")
    found["sideways"] = {width: page.evaluate(SIDEWAYS)}
    if full:
        found["barriers"] = barriers(page)
    if width > 1000:
        found["loose"] = page.evaluate(LOOSE)
        if full:
            resized(page, 1000)
            found["sideways"][1000] = page.evaluate(SIDEWAYS)
        in_theme(page, "dark")
        resized(page, 390)
        found["phone"] = page.evaluate(together(PHONE))
        found["sideways"][390] = page.evaluate(SIDEWAYS)
    for smaller in (360, 320) if full else (320,):  # the smallest phones
        resized(page, smaller)
        found["sideways"][smaller] = page.evaluate(SIDEWAYS)
    if full and width > 1000 and name in CHAPTERS:
        found["paper"] = printed(page)
    return found | {"said": opened.said, "failed": opened.failed}


def printed(page: Page) -> Measures:
    """What is measured of an open page on paper, whatever the screen shows."""
    in_theme(page, "dark")
    page.keyboard.press("s")  # shapes at the ends of lines
    page.emulate_media(media="print")
    page.set_viewport_size(PAPER)
    settle(page)
    found: Measures = page.evaluate(together(PRINTED))
    dark = page.evaluate(COLOURS)
    in_theme(page, "light")
    light = page.evaluate(COLOURS)
    changed = [pair for pair in zip(dark, light, strict=True) if pair[0] != pair[1]]
    return found | {"ground": dark[0][1], "changed by the theme": changed}


# -- without scripts ---------------------------------------------------------------------------

BARE = {
    "hidden": """() => [...document.querySelectorAll(
         ".sbs__prose > *, .code .ln, .out, svg.plot, .katex-html, .chapter-head h1")]
       .filter(e => !e.closest("details:not([open])"))
       .filter(e => !e.checkVisibility({visibilityProperty: true, opacityProperty: true}))
       .map(e => e.outerHTML.slice(0, 120))""",
    "dead": """() => [...document.querySelectorAll(
         "button, form.search, .def-actions a[data-link], .picture-steps")]
       .filter(e => e.checkVisibility()).map(e => e.outerHTML.slice(0, 120))""",
    "not of the last step": NOT_WHOLE,
}


def without_scripts(opened: Visit) -> Measures:
    found: Measures = opened.page.evaluate(together(BARE))
    return found


# -- in use ------------------------------------------------------------------------------------

# What each button of a kind puts on the clipboard.
COPY = """async name => {
  const copied = {};
  for (const button of document.querySelectorAll(`[data-${name}]`)) {
    await navigator.clipboard.writeText("nothing yet");
    button.click();
    let text = "nothing yet";
    while (text === "nothing yet") {
      await new Promise(requestAnimationFrame);
      text = await navigator.clipboard.readText();
    }
    copied[button.dataset[name]] = text;
  }
  return copied;
}"""

# Unfolds all, selects the longest block of code, and says with which line it begins.
SELECT = """() => {
  for (const fold of document.querySelectorAll("main details")) fold.open = true;
  const all = [...document.querySelectorAll(":not(.vdiff) > .code")];
  const code = all.reduce((a, b) => b.children.length > a.children.length ? b : a);
  getSelection().selectAllChildren(code);
  return Number(code.firstElementChild.id.slice(1));
}"""


def used(opened: Visit) -> Measures:
    """What a chapter gives whoever copies from it."""
    page = opened.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    found = {name: page.evaluate(COPY, name) for name in ("copy", "standalone")}
    found["first line"] = page.evaluate(SELECT)
    page.keyboard.press("Control+c")
    found["selected"] = page.evaluate("navigator.clipboard.readText()")
    return found
