"""A page that `make serve` shows follows builds: at its place, with its errors, and with changed styles."""

import os
import threading
from collections.abc import Iterator
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
import serve
from playwright.sync_api import Browser, Page, expect

LINES = "".join(
    f'<h2 id="s{n}">Section {n}</h2><p id="L{n}">Text.</p>' for n in range(60)
)
PAGE = f'<!doctype html><link rel="stylesheet" href="a.css?v=1"><main>{LINES}</main>'
SHOWN = "(name) => document.getElementById(name).getBoundingClientRect().top"


@pytest.fixture
def page(
    chromium: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Page, Path]]:
    """A served page that is scrolled to its 30th section, and its file."""
    file = tmp_path / "index.html"
    file.write_text(PAGE)
    (tmp_path / "a.css").write_text("h2 { color: red; line-height: 40px }")
    monkeypatch.setattr(serve.Handler, "state", serve.State())
    handler = partial(serve.Handler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        opened = chromium.new_page()
        opened.goto(f"http://127.0.0.1:{server.server_port}/")
        for _ in range(2):  # then it knows the state before
            opened.wait_for_event("response", lambda reply: ".state" in reply.url)
        opened.evaluate("document.getElementById('s30').scrollIntoView()")
        yield opened, file
        opened.close()
        server.shutdown()


def written(file: Path, text: str) -> None:
    before = file.stat().st_mtime_ns
    file.write_text(text)
    os.utime(file, ns=(before + 10**9, before + 10**9))


def test_a_page_is_loaded_again_at_its_place_and_lists_what_is_wrong(
    page: tuple[Page, Path],
) -> None:
    shown, file = page
    before = shown.evaluate(SHOWN, "s30")
    serve.Handler.state.building = True
    expect(shown.get_by_role("status")).to_have_text("building …")
    serve.Handler.state.wrong = "a.py:3: WARNING: <b>wrong</b>"
    written(file, PAGE.replace("<main>", "<main><p>Ten lines more.</p>" + "<br>" * 10))
    serve.Handler.state.building = False
    expect(shown.get_by_text("Ten lines more.")).to_be_attached()
    expect(shown.get_by_role("status")).to_have_text(serve.Handler.state.wrong)
    shown.wait_for_function("() => document.readyState === 'complete'")
    assert abs(shown.evaluate(SHOWN, "s30") - before) < 2
    serve.Handler.state.wrong = ""
    expect(shown.get_by_role("status")).to_have_count(0)


def test_a_changed_style_is_shown_without_loading_the_page_again(
    page: tuple[Page, Path],
) -> None:
    shown, file = page
    shown.evaluate("window.kept = true")
    file.with_name("a.css").write_text("h2 { color: rgb(0, 0, 255) }")
    serve.Handler.state.styles += 1
    heading = shown.locator("#s30")
    expect(heading).to_have_css("color", "rgb(0, 0, 255)")
    assert shown.evaluate("window.kept")
    assert shown.locator("link[rel=stylesheet]").count() == 1
