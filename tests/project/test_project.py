"""What the project promises to whoever clones, builds or installs it."""

import ast
import itertools
import os
import re
import shutil
import subprocess
import sys
import tomllib
from base64 import b64decode
from pathlib import Path

import fork
import pytest
import release
import yaml
from built_book import code_lines
from sphinx_annotated.page.build.repository import Repository

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MODULES = sorted((ROOT / "labml_primer").rglob("*.py"))
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text())
LISTED = [each["file"] for part in TOC["parts"] for each in part["chapters"]]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CHAPTERS = [path for file in LISTED if (path := ROOT / f"{file}.py").is_file()]


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    return subprocess.run(
        ["make", "-C", str(ROOT), "--no-print-directory", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


def imports(path: Path) -> set[str]:
    """Packages that importing the module imports: its demos are left out."""
    tops = {name.partition(".")[0] for name in imported_names(path)}
    return tops - sys.stdlib_module_names


def imported_names(path: Path) -> set[str]:
    """Dotted names that importing the module imports: its demos are left out."""
    body = [n for n in ast.parse(path.read_text()).body if not is_demo(n)]
    found = set()
    for node in ast.walk(ast.Module(body, [])):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the import in full"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def is_demo(node: ast.stmt) -> bool:
    """Whether a statement is a demonstration, which an import does not run."""
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def test_make_alone_lists_every_target() -> None:
    (targets,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)
    listed = re.findall(r"^make (\S+) +\w", make().stdout, re.M)
    assert sorted(listed) == sorted(targets.split())


def test_a_missing_python_gets_one_clear_line(tmp_path: Path) -> None:
    run = make("setup", "PYTHON=python-not-here", f"VENV={tmp_path}/venv")
    assert run.returncode != 0
    assert run.stdout.count("\n") == 1
    assert "Python 3.11 or later is needed" in run.stdout


def test_an_old_python_gets_one_clear_line(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo "Python 3.8.1" || exit 1\n')
    old.chmod(0o755)
    run = make("setup", f"PYTHON={old}", f"VENV={tmp_path}/venv")
    assert run.returncode != 0
    assert run.stdout.count("\n") == 1
    assert "3.11 or later is needed" in run.stdout
    assert "Python 3.8.1" in run.stdout


def test_make_reads_files_as_utf8_whatever_the_machine_says(tmp_path: Path) -> None:
    text = (ROOT / "Makefile").read_text()
    (tmp_path / "Makefile").write_text(f"{text}\nsay:\n\t@echo $$PYTHONUTF8\n")
    command = ["make", "-C", str(tmp_path), "--no-print-directory", "say"]
    machine = os.environ | {"PYTHONUTF8": "0", "LC_ALL": "C"}
    said = subprocess.run(command, env=machine, capture_output=True, text=True)
    assert said.stdout == "1\n"


def test_a_second_call_sets_nothing_up(tmp_path: Path) -> None:
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / ".ready").touch()
    assert make("--question", "setup", f"VENV={tmp_path}/venv").returncode == 0


def test_a_set_up_that_was_interrupted_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("python3", "npm"):  # they note their calls, and pip is interrupted
        (tmp_path / name).write_text(
            "#!/bin/sh\n"
            f'echo "$(basename $0) $*" >> {tmp_path}/calls\n'
            f'[ "$2" = venv ] && mkdir -p "$3/bin" && cp "$0" "$3/bin/python"\n'
            f'[ "$2 $7" = "pip -r" ] && [ -e {tmp_path}/interrupt ] && exit 130\n'
            "exit 0\n"
        )
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (tmp_path / "interrupt").touch()
    asked = ("setup", f"PYTHON={tmp_path}/python3", f"VENV={tmp_path}/venv")
    assert make(*asked).returncode != 0
    assert "npm" not in (tmp_path / "calls").read_text()
    (tmp_path / "interrupt").unlink()
    assert make(*asked).returncode == 0
    assert "npm ci" in (tmp_path / "calls").read_text()
    assert make("--question", *asked).returncode == 0


def test_make_experiments_can_run_one_plan(tmp_path: Path) -> None:
    (tmp_path / ".ready").touch()
    asked = ("--dry-run", "experiments", f"VENV={tmp_path}")
    command = f"{tmp_path}/bin/python -m experiments.harness.run"
    assert make(*asked).stdout.split() == command.split()
    only = make(*asked, "ONLY=mdha").stdout
    assert only.split() == f"{command} --only mdha".split()


def test_make_clean_keeps_checkpoints(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for folder in ("_build/experiments", "_build/html", "_build/.executed", ".venv"):
        (tmp_path / folder).mkdir(parents=True)
    assert make("-C", str(tmp_path), "clean").returncode == 0
    assert [path.name for path in (tmp_path / "_build").iterdir()] == ["experiments"]
    assert not (tmp_path / ".venv").exists()
    shutil.rmtree(tmp_path / "_build")
    assert make("-C", str(tmp_path), "clean").returncode == 0


def test_the_lock_pins_every_version_that_the_project_asks_for_with_hashes() -> None:
    text = (ROOT / "requirements.lock").read_text()
    entries = re.split(r"\n(?=[a-z])", text.partition("requirements.lock\n")[2])
    for entry in entries:
        assert re.match(r"[\w.-]+==[\w.]+", entry), entry
        assert "--hash=sha256:" in entry, f"{entry}: write it by `make lock`"
    names = {entry.partition("==")[0] for entry in entries}
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = whole["dependency-groups"].values()
    extras = PROJECT["optional-dependencies"].values()
    asked = [*PROJECT["dependencies"], *itertools.chain(*extras, *groups)]
    requirements = [each for each in asked if isinstance(each, str)]
    wanted = {re.split(r"[\[<>=]", requirement)[0] for requirement in requirements}
    assert wanted <= names, (
        f"requirements.lock lacks {', '.join(wanted - names)}: write it by `make lock`"
    )


def test_the_extra_of_the_package_lowers_no_version_of_a_user() -> None:
    (extra,) = PROJECT["optional-dependencies"].values()
    assert not [each for each in extra if "<" in each or each.startswith("labml")]


def test_torch_is_all_that_the_package_requires() -> None:
    assert [re.split(r"[<>=]", r)[0] for r in PROJECT["dependencies"]] == ["torch"]


def test_a_module_imports_torch_alone_except_for_labml_in_training() -> None:
    for path in MODULES:
        tracker = {"labml"} if path.parent.name == "training" else set()
        assert imports(path) <= {"torch", "labml_primer"} | tracker, path


ADDRESS = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]
SITE = Repository(ADDRESS).pages
ONLINE = re.compile(
    r"https://(?:github\.com/[\w.-]+/[\w.-]+|raw\.githubusercontent\.com/[\w.-]+/[\w.-]+"
    r"|img\.shields\.io/github/v/tag/[\w.-]+/[\w.-]+|[\w-]+\.github\.io/)"
)
AT_THE_ROOT = (
    *("README.md", "CONTRIBUTING.md", "CITATION.cff", "pyproject.toml"),
    *("engine/README.md", "engine/pyproject.toml"),
)
# The library, the engine and the tests take the address from the configuration.
INSIDE = (
    *("book", "engine/sphinx_annotated", "engine/tests", "labml_primer", "tests"),
    ".ci",
)


def test_every_place_has_the_repositorys_address_of_the_configuration() -> None:
    name = ADDRESS.removeprefix("https://github.com/")
    ours = {
        ADDRESS,
        f"https://raw.githubusercontent.com/{name}",
        f"https://img.shields.io/github/v/tag/{name}",
    }
    example = "https://github.com/you/your-book"
    for file in AT_THE_ROOT:
        for line, text in enumerate((ROOT / file).read_text().splitlines(), start=1):
            others = {
                *ONLINE.findall(text.replace(SITE, "").replace(example, ""))
            } - ours
            assert not others, f"{file}:{line}: {others}; _config.yml has {ADDRESS}"
    for file in ("README.md", "CITATION.cff", "pyproject.toml"):
        text = (ROOT / file).read_text()
        assert ADDRESS in text and SITE in text, file
    for folder in INSIDE:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "node_modules" not in path.parts:
                assert f"github.com/{name}".encode() not in path.read_bytes(), path


def test_a_fork_has_its_own_address_in_every_file_after_one_command(
    tmp_path: Path,
) -> None:
    own, url = ADDRESS.removeprefix("https://github.com/"), "https://github.com/Me/n.b"
    listed = [
        "git",
        "-C",
        str(ROOT),
        "grep",
        "--no-index",
        "--exclude-standard",
        "-lI",
        own,
    ]
    done = subprocess.run(listed, capture_output=True, text=True, check=True)
    names = done.stdout.splitlines()
    assert {*AT_THE_ROOT, "_config.yml"} - {"CONTRIBUTING.md"} <= {*names}
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "other.md").write_text(f"{ADDRESS}-engine {SITE}ja/ {ADDRESS}.\n")
    for command in ("init", "add ."):
        git = ["git", "-C", str(tmp_path), *command.split()]
        subprocess.run(git, capture_output=True, check=True)
    assert fork.move(tmp_path, url) == len(names) + 1
    for name in names:
        text = opened(ROOT / name).replace(SITE, "https://me.github.io/n.b/")
        assert opened(tmp_path / name) == text.replace(own, "Me/n.b"), name
    assert (tmp_path / "other.md").read_text() == (
        f"{ADDRESS}-engine https://me.github.io/n.b/ja/ {url}.\n"
    )
    assert fork.move(tmp_path, ADDRESS) == len(names) + 1  # a fork of the fork
    for name in names:
        assert (tmp_path / name).read_bytes() == (ROOT / name).read_bytes()
    for wrong in ("https://gitlab.com/me/book", f"{url}/tree/main", f"{url}.git/"):
        with pytest.raises(SystemExit, match="make fork URL="):
            fork.move(tmp_path, wrong)
    shutil.rmtree(tmp_path / ".git")
    with pytest.raises(SystemExit, match="Clone the repository"):
        fork.move(tmp_path, url)


def opened(path: Path) -> str:
    """The text of a file, with the text of a notebook's pictures."""
    return fork.PICTURE.sub(
        lambda found: b64decode(found[0]), path.read_bytes()
    ).decode()


def test_package_citation_and_changelog_have_one_version(tmp_path: Path) -> None:
    assert release.disagreements(ROOT) == []
    copy_versions(tmp_path, f"version: {PROJECT['version']}", "version: 7.7.7")
    (problem,) = release.disagreements(tmp_path)
    assert re.match(r"CITATION\.cff:\d+: version 7\.7\.7; pyproject\.toml has", problem)
    assert "the tag is v7.7.7" in release.disagreements(tmp_path, "v7.7.7")[1]


def test_a_tag_is_refused_as_long_as_the_changelog_has_unreleased_changes(
    tmp_path: Path,
) -> None:
    copy_versions(tmp_path, "", "")
    tag, news = f"v{PROJECT['version']}", tmp_path / "CHANGELOG.md"
    text = news.read_text().replace("## Unreleased\n", "")
    news.write_text(text)
    assert release.disagreements(tmp_path, tag) == []
    news.write_text(text.replace("\n## ", "\n## Unreleased\n\n- New.\n\n## ", 1))
    (problem,) = release.disagreements(tmp_path, tag)
    assert re.match(r"CHANGELOG\.md:\d+: Unreleased; the tag is v", problem)


def copy_versions(folder: Path, old: str, new: str) -> None:
    (folder / "engine").mkdir()
    for name in (*release.PLACES, release.ENGINE, "engine/CHANGELOG.md"):
        (folder / name).write_text((ROOT / name).read_text().replace(old, new))


def test_the_engine_and_its_changelog_have_one_version(tmp_path: Path) -> None:
    engine = tomllib.loads((ROOT / release.ENGINE).read_text())["project"]
    copy_versions(tmp_path, f"## {engine['version']} (", "## 7.7.7 (")
    *_, problem = release.disagreements(tmp_path)
    assert re.match(r"engine/CHANGELOG\.md:\d+: version 7\.7\.7; engine/pyp", problem)
    assert len(release.disagreements(tmp_path, "engine-v7.7.7")) >= 2


def test_files_of_the_root_link_to_files_that_exist() -> None:
    for file in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"):
        text = (ROOT / file).read_text()
        named = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
        named += re.findall(rf"{re.escape(ADDRESS)}/blob/main/([\w./-]+)", text)
        named += re.findall(r"githubusercontent\.com/[^/]+/[^/]+/main/([\w./-]+)", text)
        for name in named:
            assert (ROOT / name).exists(), f"{file}: there is no {name}"
        for target in re.findall(r"`make ([a-z-]+)", text):
            made = re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)
            assert made, f"{file}: there is no make {target}"


def test_each_dependency_says_why_it_is_there() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    groups = text.partition("[dependency-groups]")[2].partition("\n[tool.")[0]
    lines = [line for line in groups.splitlines() if line.startswith('    "')]
    assert len(lines) > 25
    for line in lines:
        said = line.partition("#")[2].split("; ")
        assert len(said) == 3, (
            f"{line.strip()}: say why; who maintains it; instead of it"
        )


def test_every_action_is_pinned_by_its_commit() -> None:
    for path in WORKFLOWS:
        for line, text in enumerate(path.read_text().splitlines(), start=1):
            if "uses:" in text:
                pinned = re.search(
                    r"uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", text
                )
                assert pinned, (
                    f"{path}:{line}: write the commit, and the version after #"
                )


def test_a_workflow_may_read_and_its_jobs_end() -> None:
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text())
        assert workflow["permissions"] == {"contents": "read"}, path
        for name, job in workflow["jobs"].items():
            assert job["timeout-minutes"] <= 180, f"{path}: {name}"
            for step in job["steps"]:
                # What an outsider may write reaches a shell through the environment alone.
                assert "${{" not in step.get("run", ""), f"{path}: {name}"


def test_the_nightly_shards_hold_every_test() -> None:
    nightly = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text())
    shards = nightly["jobs"]["every-test"]["strategy"]["matrix"]["files"]
    named = sorted(name for shard in shards for name in shard.split())
    folders = {ROOT / name for name in named}
    for room in (ROOT / "tests", ROOT / "engine" / "tests"):
        for test in room.rglob("test_*.py"):
            assert len(folders & {*test.parents}) == 1, f"{test} is in one shard"
    assert len(named) == len(folders)


@pytest.mark.parametrize("form", ["number", "words", "code"])
def test_a_form_asks_for_page_line_and_versions(form: str) -> None:
    path = ROOT / ".github" / "ISSUE_TEMPLATE" / f"{form}.yml"
    fields = yaml.safe_load(path.read_text())["body"]
    asked = {f["id"] for f in fields if f["validations"]["required"]}
    assert {"page", "line", "versions"} <= asked


def test_the_contents_list_every_chapter_and_no_missing_file() -> None:
    for file in [TOC["root"], *LISTED]:
        assert (ROOT / f"{file}.py").is_file() or (ROOT / f"{file}.md").is_file(), file
    have_a_page = {
        path
        for path in MODULES
        if path.name
        not in ("__init__.py", "presets.py", "cache_check.py", "look_up.py")
        and path.parent.name != "labml_primer"
        and path.parent.name != "training"
    }
    assert have_a_page <= set(CHAPTERS)


def test_no_line_of_code_is_wider_than_the_page_shows_in_any_font() -> None:
    """The formatter breaks no string."""
    long = []
    for path in CHAPTERS:
        text = path.read_text()
        lines, code = text.split("\n"), code_lines(text)
        long += [f"{path}:{n}: break it" for n in code if len(lines[n - 1]) > 88]
    assert long == []


def test_a_demonstration_shows_tables_in_a_terminal_too() -> None:
    for path in CHAPTERS:
        for demo in filter(is_demo, ast.parse(path.read_text()).body):
            for node in ast.walk(demo):
                if isinstance(node, ast.Expr):
                    code = ast.unparse(node.value)
                    bare = isinstance(node.value, ast.Name) or "Table(" in code[:6]
                    where = f"{path}:{node.lineno}"
                    assert not bare, f"{where}: write display({code[:20]}...)"
