"""`make fork URL=…`: give the repository another address, in every file that names the old one."""

from __future__ import annotations

import re
import subprocess
import sys
from base64 import b64decode, b64encode
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "engine"))

from sphinx_annotated.page.build.repository import Repository  # noqa: E402
from writing import said_if_refused  # noqa: E402

ON_GITHUB = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+")
PICTURE = re.compile(rb"(?<=data:image/svg\+xml;base64,)[\w+/=]+")  # of a notebook
GIVE = "Give the address of a repository on GitHub: make fork URL=https://github.com/you/your-book"


def move(root: Path, url: str) -> int:
    """Write the new address over the old one in all files that Git knows. Return the number of files."""
    if not ON_GITHUB.fullmatch(url):
        sys.exit(GIVE)
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    old, new = Repository(config["repository"]["url"]), Repository(url)
    # The addresses of files and badges have the owner and the name, too.
    pairs = [(old.pages, new.pages), (_name(old), _name(new))]
    listed = ["git", "-C", str(root), "ls-files", "-z"]
    try:
        names = subprocess.run(
            listed, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        sys.exit(f"Git does not know the files in {root}. Clone the repository.")
    changed = 0
    for name in filter(None, names.split("\0")):
        before = (root / name).read_bytes()
        if (content := _moved(before, pairs)) != before:
            (root / name).write_bytes(content)
            changed += 1
    return changed


def _moved(content: bytes, pairs: list[tuple[str, str]]) -> bytes:
    """Return a file with other addresses, also in its pictures, which name where they are from."""
    content = PICTURE.sub(
        lambda picture: b64encode(_moved(b64decode(picture[0]), pairs)), content
    )
    for found, other in pairs:
        whole = re.escape(found.encode()) + rb"(?![\w-])" * found[-1].isalnum()
        content = re.sub(whole, other.encode(), content)
    return content


def _name(repository: Repository) -> str:
    """Return the owner and the name of a repository, as `owner/name`."""
    return repository.url.removeprefix("https://github.com/").removesuffix("/")


if __name__ == "__main__":
    url = sys.argv[1] if len(sys.argv) > 1 else ""
    with said_if_refused(ROOT):
        count = move(ROOT, url.removesuffix("/").removesuffix(".git"))
    print(f"{count} files name {url}")
