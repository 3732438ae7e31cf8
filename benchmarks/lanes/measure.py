"""How long the build and the lanes of tests take: `python -m benchmarks.lanes.measure book check test`.

Each target of the Makefile runs once, as the book is built now. Its seconds are appended to `lanes.jsonl`,
with those that it prints of its stages or rooms. With `--busy`, another process keeps one core busy.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, commit, processor

RECORDS = Path(__file__).with_name("lanes.jsonl")
PRINTED = re.compile(r"seconds by (?:stage|room): (.*)")
ONE = re.compile(r"([\w.][\w. -]*) (\d+)")


def measure(target: str) -> dict[str, Any]:
    """Run a target, and return its wall and processor seconds and those of its parts."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run = subprocess.run(["make", target], cwd=ROOT, capture_output=True, text=True)
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    if run.returncode:
        sys.exit(f"make {target} failed:\n{(run.stdout + run.stderr)[-2000:]}")
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": round(wall - start), "processor": round(spent), **parts(run.stdout)}


def parts(printed: str) -> dict[str, dict[str, int]]:
    """Return the seconds of stages and rooms in what a target printed."""
    found = [part for line in PRINTED.findall(printed) for part in ONE.findall(line)]
    return {"parts": {name.strip(): int(seconds) for name, seconds in found}}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lanes.measure")
    parser.add_argument("targets", nargs="+", metavar="TARGET")
    parser.add_argument("--busy", action="store_true", help="keep one core busy")
    options = parser.parse_args()
    spinning = [sys.executable, "-c", "while True: pass"]
    other = subprocess.Popen(spinning) if options.busy else None
    try:
        for target in options.targets:
            record = {
                "target": target,
                **measure(target),
                "busy": options.busy,
                "cpu": processor(),
                "cores": os.cpu_count(),
                "commit": commit(),
                "date": datetime.now(UTC).date().isoformat(),
            }
            line = json.dumps(record)
            print(line, flush=True)
            with RECORDS.open("a", encoding="utf-8") as records:
                records.write(line + "\n")
    finally:
        if other:
            other.kill()


if __name__ == "__main__":
    main()
