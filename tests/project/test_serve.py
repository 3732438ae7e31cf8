"""What `make serve` promises an author: it is quiet, and an open page loads again after a build."""

import http.client
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

import build
import pytest


@pytest.fixture
def server(tmp_path: Path) -> Iterator[http.client.HTTPConnection]:
    (tmp_path / "index.html").write_text("<p>One</p>")
    (tmp_path / "style.css").write_text("p {}")
    handler = partial(build.Handler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield http.client.HTTPConnection("127.0.0.1", served.server_port)
        served.shutdown()


def got(server: http.client.HTTPConnection, path: str) -> str:
    server.request("GET", path)
    reply = server.getresponse()
    assert reply.status == 200
    return reply.read().decode()


def test_a_served_page_has_the_script_that_loads_it_again_and_its_file_has_not(
    server: http.client.HTTPConnection, capfd: pytest.CaptureFixture[str]
) -> None:
    for path in ("/", "/index.html", "/index.html?q=1"):
        assert got(server, path) == '<p>One</p><script src="/.reload.js"></script>'
    assert got(server, "/style.css") == "p {}"
    assert "location.reload()" in got(server, "/.reload.js")
    assert capfd.readouterr() == ("", "")  # no request is printed


def test_the_end_of_a_build_is_said_with_its_cause_and_time_and_seen_by_pages(
    server: http.client.HTTPConnection, capfd: pytest.CaptureFixture[str]
) -> None:
    before = got(server, "/.built")
    build.rebuild([sys.executable, "-c", ""], ", because of a.py")
    build.rebuild([sys.executable, "-c", "raise SystemExit(1)"])
    assert int(got(server, "/.built")) == int(before) + 2
    said = capfd.readouterr().out.splitlines()
    assert said[0] == "building, because of a.py …" and said[1].startswith("built in ")
    assert said[3].startswith("NOT built (see above) in ")
