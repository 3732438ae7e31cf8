"""The workflows are right before they run: by GitHub's schema, and in the names that they refer to."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CONTEXTS = {
    *("env", "github", "inputs", "job", "jobs", "matrix", "needs", "runner"),
    *("secrets", "steps", "strategy", "vars"),
}
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}", re.DOTALL)
NAME = re.compile(r"(?<![\w.'-])([a-z]+)\.([\w-]+)")


def lint(*files: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "check_jsonschema"]
    command += ["--builtin-schema", "vendor.github-workflows"]
    return subprocess.run(
        [*command, *map(str, files)], capture_output=True, text=True, check=False
    )


def expressions(value: Any) -> Iterator[str]:
    """Yield the expressions inside a part of a workflow. An `if` is one as a whole."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from [str(inner)] if key == "if" else expressions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from expressions(inner)
    else:
        yield from EXPRESSION.findall(str(value))


def problems(text: str) -> list[str]:
    """Return the names in a workflow that nothing has: contexts, jobs, steps, entries of a matrix."""
    jobs, found = yaml.safe_load(text)["jobs"], []
    for name, job in jobs.items():
        needs = job.get("needs", [])
        needs = [needs] if isinstance(needs, str) else needs
        matrix = job.get("strategy", {}).get("matrix", {})
        known = {
            "needs": needs,
            "steps": [step.get("id") for step in job.get("steps", [])],
            "matrix": [
                *matrix,
                *(key for row in matrix.get("include", []) for key in row),
            ],
        }
        found += [f"{name}: no job {each}" for each in needs if each not in jobs]
        for expression in expressions(job):
            for context, entry in NAME.findall(expression):
                if context not in CONTEXTS:
                    found.append(f"{name}: no context {context}")
                elif entry not in known.get(context, [entry]):
                    found.append(f"{name}: no {context}.{entry}")
    return found


def test_the_workflows_follow_the_schema_of_github(tmp_path: Path) -> None:
    assert (done := lint(*WORKFLOWS)).returncode == 0, done.stdout
    wrong = tmp_path / "wrong.yml"
    text = (ROOT / ".github/workflows/book.yml").read_text()
    wrong.write_text(text.replace("runs-on:", "run-on:", 1))
    done = lint(wrong)
    assert done.returncode == 1 and "run-on" in done.stdout


def test_the_names_in_the_workflows_are_those_of_their_jobs_steps_and_matrices() -> (
    None
):
    for path in WORKFLOWS:
        assert problems(path.read_text()) == [], path
    text = (ROOT / ".github/workflows/book.yml").read_text()
    for right, wrong, said in (
        ("matrix.torch", "matrix.torhc", "library: no matrix.torhc"),
        ("steps.deployment.", "steps.deploy.", "publish: no steps.deploy"),
        ("needs: [style", "needs: [stile", "publish: no job stile"),
        ("if: github.", "if: gihtub.", "check: no context gihtub"),
    ):
        assert right in text
        assert problems(text.replace(right, wrong, 1)) == [said]


def test_only_a_push_publishes_so_a_run_by_hand_is_a_rehearsal() -> None:
    publishing = [
        job
        for path in WORKFLOWS
        for job in yaml.safe_load(path.read_text())["jobs"].values()
        if "id-token" in job.get("permissions", {})
    ]
    assert len(publishing) == 3
    for job in publishing:
        assert job["if"].startswith("github.event_name == 'push' && ")
