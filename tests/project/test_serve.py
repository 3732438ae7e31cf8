"""What `make serve` promises an author: it is quiet, and an open page follows each save, with its errors."""

import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
import quick
import serve
from built_book import ROOT, built

TOOLS = Path(serve.__file__).parent
PAGE = '<p>One</p><script src="/.serve.js"></script>'


@pytest.fixture
def server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[http.client.HTTPConnection]:
    (tmp_path / "_static").mkdir()
    (tmp_path / "index.html").write_text("<p>One</p>")
    (tmp_path / "_static" / "own.css").write_text("p {}")
    (tmp_path / "_static" / "primer.js").write_text("// of the last whole build")
    monkeypatch.setattr(serve.Handler, "state", serve.State())
    handler = partial(serve.Handler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield http.client.HTTPConnection("127.0.0.1", served.server_port)
        served.shutdown()


def got(server: http.client.HTTPConnection, path: str) -> str:
    server.request("GET", path)
    reply = server.getresponse()
    assert reply.status == 200 and reply.headers["Cache-Control"] == "no-cache"
    return reply.read().decode()


def test_a_served_page_has_the_script_that_follows_builds_and_its_file_has_not(
    server: http.client.HTTPConnection, capfd: pytest.CaptureFixture[str]
) -> None:
    for path in ("/", "/index.html", "/index.html?q=1"):
        assert got(server, path) == PAGE
    assert got(server, "/_static/own.css") == "p {}"
    assert "location.reload()" in got(server, "/.serve.js")
    assert capfd.readouterr() == ("", "")  # no request is printed


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8000", 200),
        ("LOCALHOST.", 200),
        ("127.0.0.1", 200),
        ("[::1]:8000", 200),
        ("evil.example:8000", 421),
        ("localhost.evil.example", 421),
        ("[2001:db8::1]:8000", 421),
        ("[::1", 421),
        ("", 421),
    ],
)
def test_a_request_by_another_name_of_this_machine_is_refused(
    server: http.client.HTTPConnection, host: str, status: int
) -> None:
    server.request("GET", "/index.html", headers={"Host": host})
    reply = server.getresponse()
    assert reply.status == status
    assert (reply.read().decode() == PAGE) == (status == 200)


def test_styles_and_scripts_are_served_as_their_sources_are_now(
    server: http.client.HTTPConnection,
) -> None:
    source = serve.BOOK / "theme" / "static" / "primer.js"
    assert got(server, "/_static/primer.js?v=1") == source.read_text()
    assert "--font" in got(server, "/_static/primer.css?v=1")
    for path in ("/_static/../../theme.toml", "/../primer.js"):
        server.request("GET", path)
        reply = server.getresponse()
        reply.read()
        assert reply.status == 404


def test_a_changed_file_asks_for_the_least_that_shows_it() -> None:
    book = serve.BOOK
    style, script = book / "theme/static/page.css", serve.ENGINE / "static/curves.js"
    words, chapter = book / "locale/ja/words.po", serve.ROOT / "labml_primer/x.py"
    assert serve.due([str(style)]) == ({"styles"}, [])
    assert serve.due([str(script)]) == ({"scripts"}, [])
    assert serve.due([str(words)]) == (set(), ["ja"])
    assert serve.due([str(words), str(chapter), str(style)]) == ({"styles"}, ["", "ja"])
    assert serve.due(
        [str(book / "pictures/a.py"), str(book / "theme/layout.html")]
    ) == (
        set(),
        [""],
    )


class Recorded(serve.Builder):
    """A builder that has built."""

    def __init__(self, code: int, wrong: str):
        self.done = code, wrong

    def build(self, language: str) -> tuple[int, str]:
        assert serve.Handler.state.building
        return self.done


def test_a_build_is_said_with_its_cause_and_time_and_the_page_gets_its_errors(
    server: http.client.HTTPConnection, capfd: pytest.CaptureFixture[str]
) -> None:
    page, style = "labml_primer/a.py", "book/theme/static/page.css"

    def state() -> dict[str, object]:
        return json.loads(got(server, "/.state?page=/"))

    before = state()
    serve.react(Recorded(0, ""), [str(serve.ROOT / page)])
    serve.react(Recorded(1, "a.py:3: wrong"), [str(serve.ROOT / page)])
    said = capfd.readouterr().out.splitlines()
    assert said[0] == f"building, because of {page} …" and said[1].startswith(
        "built in "
    )
    assert said[3].startswith("NOT built (see above) in ")
    assert state() == {**before, "wrong": "a.py:3: wrong"}
    serve.react(Recorded(0, ""), [str(serve.ROOT / style)])
    assert capfd.readouterr().out == f"shown, without a build: {style}\n"
    assert state() == {**before, "wrong": "a.py:3: wrong", "styles": 1}
    assert before["page"] and json.loads(got(server, "/.state?page=/no"))["page"] == ""


BUILDS = """
import atexit, os, sys, types
import serve

atexit.register(print, "the builder itself has ended")
build = types.ModuleType("build")
def build_one(code, strict, drafts, quick):
    print("said", quick, flush=True)
    atexit.register(print, "and nothing is left")
    print("wrong", file=sys.stderr)
    return 3
build.build_one = build_one
build.build_edition = lambda code: os.kill(os.getppid(), 9)
sys.modules["build"] = build
serve.PACKAGES, serve.parse_chapters = ("json",), lambda: None
serve.build_on_request()
"""


def test_the_builder_stays_says_what_is_wrong_and_is_started_again_if_it_ends(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    popen = serve.subprocess.Popen
    command = [sys.executable, "-c", BUILDS]
    folder = serve.ROOT / "book" / "tools"
    monkeypatch.setattr(
        serve.subprocess, "Popen", lambda _, **how: popen(command, cwd=folder, **how)
    )
    builder = serve.Builder()
    assert builder.build("") == (3, "wrong\n")
    first = builder.process
    assert builder.build("") == (3, "wrong\n") and builder.process is first
    said = "said own\nand nothing is left\nwrong\n"
    assert capfd.readouterr().out == said * 2
    code, wrong = builder.build("ja")
    assert code == 1 and "has ended" in wrong
    first.wait()
    assert builder.build("") == (3, "wrong\n") and builder.process is not first
    builder.process.communicate()


def test_the_edited_page_is_built_first_and_then_those_that_show_parts_of_it(
    server: http.client.HTTPConnection, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = []

    class Leaving(serve.Builder):
        def build(self, language: str) -> tuple[int, str]:
            asked.append((language, serve.Handler.state.building))
            return (serve.LEFT, "a:1: one\n") if len(asked) == 1 else (0, "b:2: two\n")

    serve.react(Leaving(), [str(serve.ROOT / "labml_primer/a.py")])
    assert asked == [("", True), (serve.REST, True)]
    assert "building the pages that show parts of it" in capfd.readouterr().out
    assert serve.Handler.state.wrong == "a:1: one\nb:2: two\n"


def test_the_page_that_lists_the_sources_is_built_with_the_page_that_cites_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "left", set())
    for name in ("cites.md", "lists.md", "shows.md", "all.bib", "shown.py"):
        (tmp_path / name).touch()
    then = 2 * (tmp_path / "all.bib").stat().st_mtime_ns // 1000
    env = SimpleNamespace(
        srcdir=tmp_path,
        doc2path=lambda name: tmp_path / f"{name}.md",
        dependencies={"lists": {"all.bib"}, "shows": {"shown.py"}},
        all_docs={"cites": 0, "lists": then, "shows": then},
    )
    app = SimpleNamespace(config=SimpleNamespace(quick="own"))

    def first() -> set[str]:
        changed = {"cites", "lists", "shows"}
        quick.own_first(app, env, set(), changed, set())
        return changed

    assert first() == {"cites"} and quick.left == {"lists", "shows"}
    env.all_docs["lists"] = 0
    (tmp_path / "lists.md").unlink()  # not its own file is newer
    assert first() == {"cites", "lists"}


EDITS = {
    # More lines, so that the numbers change that other pages show of this one.
    "labml_primer/transformer/attention.py": (
        "\n\n",
        "\n\nA line more, with $x^2$ and {term}`token`.\n\n",
    ),
    "book/pictures/transformer/attention.py": ('"""', '"""Edited. '),
    "book/pages/notation.md": ("\n## ", "\nA *line* more.\n\n## "),
}


@pytest.mark.slow
@pytest.mark.nightly
def test_a_quick_build_writes_the_pages_that_a_whole_build_writes(
    tmp_path: Path,
) -> None:
    built()
    copy = tmp_path / "copy"
    subprocess.run(["git", "clone", "-q", ROOT, copy], check=True)
    changed = ["git", "ls-files", "-m", "-o", "--exclude-standard"]
    names = subprocess.run(
        changed, cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in names.stdout.splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    shutil.rmtree(copy / "book/locale/ja")  # for the time that it takes
    (copy / "_build").mkdir()
    shutil.copytree(ROOT / "_build" / ".executed", copy / "_build" / ".executed")
    (copy / "book/node_modules").symlink_to((ROOT / "book/node_modules").resolve())

    def whole() -> None:
        command = [sys.executable, "book/tools/build.py", "--strict"]
        subprocess.run(command, cwd=copy, check=True, stdin=subprocess.DEVNULL)

    def pages() -> dict[str, str]:
        files = sorted((copy / "_build" / "html").rglob("*.html"))
        return {str(f.relative_to(copy)): f.read_text("utf-8") for f in files}

    whole()
    before = pages()
    for name, (old, new) in EDITS.items():
        text = (copy / name).read_text("utf-8")
        assert old in text
        (copy / name).write_text(text.replace(old, new, 1), "utf-8")
        builder = [sys.executable, "book/tools/serve.py", "--builder"]
        asked = f"\n{serve.REST}\n"
        done = subprocess.run(
            builder, cwd=copy, input=asked, check=True, capture_output=True, text=True
        )
        assert done.stdout.count(serve.END) == 2 and f"{serve.END}1" not in done.stdout
    quick = pages()
    assert quick != before
    shutil.rmtree(copy / "_build" / ".doctrees")
    whole()
    now = pages()
    assert quick.keys() == now.keys()
    assert [name for name in now if quick[name] != now[name]] == []


SERVE = """
import sys, time
import serve

serve.subprocess.run = lambda *_, **__: print("ready", flush=True) or time.sleep(600)
sys.argv = ["serve.py", "0"]
serve.main()
"""


def test_an_interrupted_server_ends_without_a_traceback() -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", SERVE],
        cwd=TOOLS,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # What runs in the background of a shell ignores SIGINT, and its children with it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert server.stdout
    assert "ready\n" in iter(server.stdout.readline, "")
    server.send_signal(signal.SIGINT)
    assert server.communicate(timeout=120)[1] == ""
    assert server.returncode == 130


@pytest.mark.parametrize("port", [0, 70000], ids=["busy", "none"])
def test_a_port_that_cannot_be_used_gets_one_line(port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = port or busy.getsockname()[1]
        command = [sys.executable, "serve.py", str(port)]
        served = subprocess.run(command, cwd=TOOLS, stderr=subprocess.PIPE, text=True)
    assert served.returncode == 1
    assert served.stderr.startswith(f"port {port} cannot be used (")
    assert served.stderr.endswith("; try any free one: make serve PORT=0\n")
    assert served.stderr.count("\n") == 1
