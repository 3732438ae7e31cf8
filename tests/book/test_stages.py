"""A build and a lane of tests say what their parts took, and the benchmark reads what they say."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.lanes.measure import parts

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_build_prints_the_seconds_of_each_stage(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text("# A book\n")
    command = [sys.executable, "-m", "sphinx", "-C", "-b", "html"]
    command += [
        "-D",
        "extensions=myst_parser,stages",
        str(tmp_path),
        str(tmp_path / "out"),
    ]
    printed = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        stdin=subprocess.DEVNULL,
        env={"PYTHONPATH": str(ROOT / "book" / "extensions"), "PATH": ""},
    ).stdout
    names = ["set-up", "execution", "reading", "writing", "search and downloads"]
    assert list(parts(printed)["parts"]) == names


def test_the_benchmark_reads_what_a_lane_of_tests_prints() -> None:
    printed = "9 passed\nseconds by room: library 61, engine 120, browser 7\n"
    assert parts(printed)["parts"] == {"library": 61, "engine": 120, "browser": 7}
