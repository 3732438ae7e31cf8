"""Tests of the searches: what is recorded, what is rejected, and that they resume where they were."""

import json
import math
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

import pytest
import torch
from forks import server, start_command
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_ray import InlineRay, WorkerError
from searching import (
    SMALL,
    TINY,
    compute_too_long,
    outcome_of,
    sleep_too_long,
)

from experiments.harness.sweep import alone
from experiments.harness.texts import load_texts
from experiments.records.lines import read_lines, write_lines
from experiments.records.runs import REPORTED_PLAYS, RESULTS
from experiments.search import run as module
from experiments.search import summary, tables
from experiments.search.candidates import (
    SEARCH_PLAY,
    Task,
    build,
    evaluate,
    fitting_width,
    parameters,
)
from experiments.search.log import appending, read_log
from experiments.search.retrain import (
    Retraining,
    best_programs,
    retrain,
    retrain_missing,
    retrainings,
    steps_left,
)
from experiments.search.run import run_search
from experiments.search.searches import (
    PLAN,
    SETTINGS,
    Candidate,
    Search,
    child,
    read_plan,
)
from experiments.search.searches import settings as settings_of
from labml_primer.search import primitives, programs
from labml_primer.search.mutations import mutate
from labml_primer.search.programs import PRIMER, TRANSFORMER, parse

OPEN = (math.inf,) * 4
FEW = (3 + 3) * 3 * 3 + 1 * 3
"""Trainings of three known models and the best four of `TINY`, of which three are trained in all ways."""
ORDERS = ((1, False), (3, False), (3, True))
"""The cores, and whether the youngest of the programs in training ends first."""
BANKS = "constants 0.0 1e30\ndimensions 8 8 8 8 8 64\n"


def events(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a log without those that say when a process began."""
    return [line for line in read_log(path) if "began" not in line]


def events_of(log: bytes) -> list[dict[str, Any]]:
    """Return the same of what a log has."""
    return [line for line in map(json.loads, log.splitlines()) if "began" not in line]


@pytest.fixture(scope="module")
def logs(
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[tuple[int, bool], bytes]:
    """The logs of a search that nothing interrupts, for each of `ORDERS`."""
    found = {}
    for order in ORDERS:
        path = tmp_path_factory.mktemp("search") / "log.jsonl"
        run_search(InlineRay(*order), TINY, path, outcome_of)
        found[order] = path.read_bytes()
    return found


@pytest.fixture(scope="module")
def unbroken(
    logs: dict[tuple[int, bool], bytes],
) -> dict[tuple[int, bool], list[dict[str, Any]]]:
    """What happened in these searches."""
    return {order: events_of(log) for order, log in logs.items()}


@pytest.fixture
def tiny(logs: dict[tuple[int, bool], bytes], tmp_path: Path) -> Path:
    """A folder with the log of `TINY`."""
    (tmp_path / "tiny.jsonl").write_bytes(logs[ORDERS[0]])
    return tmp_path


def test_every_individual_is_born_and_ends_once(
    unbroken: dict[tuple[int, bool], list[dict[str, Any]]],
) -> None:
    for lines in unbroken.values():
        for kind in ("born", "ended"):
            numbers = sorted(line[kind] for line in lines if kind in line)
            assert numbers == list(range(TINY.individuals))


def test_log_has_program_parent_mutations_and_bars(
    unbroken: dict[tuple[int, bool], list[dict[str, Any]]],
) -> None:
    lines = unbroken[1, False]
    born = {line["born"]: line for line in lines if "born" in line}
    ended = {line["ended"]: line for line in lines if "ended" in line}
    for line in born.values():
        child = parse(line["dna"])
        if line["parent"] is None:
            assert child == TRANSFORMER
            continue
        assert line["mutations"]
        assert child != parse(born[line["parent"]]["dna"])
        assert ended[line["parent"]]["losses"], "a parent was trained"
        assert line["parent"] < line["born"]


@pytest.mark.parametrize("order", ORDERS)
def test_a_bar_is_the_median_of_the_living_that_reached_its_hurdle(
    order: tuple[int, bool], unbroken: dict[tuple[int, bool], list[dict[str, Any]]]
) -> None:
    losses: list[list[float]] = []
    checked = 0
    for line in unbroken[order]:
        if line.get("losses"):
            losses.append(line["losses"])
        for k, bar in enumerate(line.get("bars", ())):
            living = [each[k] for each in losses[-TINY.size :] if len(each) > k]
            assert bar == (median(living) if living else None)
            checked += bar is not None
    assert checked > TINY.individuals


def test_random_programs_are_born_and_trained_with_seeds_of_no_other_search(
    tmp_path: Path,
) -> None:
    seeds: list[int] = []

    def seen(
        dna: str, seed: int, bars: tuple[float, ...], task: Task
    ) -> dict[str, Any]:
        seeds.append(seed)
        return outcome_of(dna, seed, bars, task)

    path, search = tmp_path / "log.jsonl", replace(TINY, start="random", seed=1)
    run_search(InlineRay(1), search, path, seen)
    assert seeds == list(range(1_000_000, 1_000_000 + TINY.individuals))
    first = [line["dna"] for line in events(path) if line.get("parent", 0) is None]
    assert len(set(first)) == TINY.size
    assert str(TRANSFORMER) not in first


@given(seed=st.integers(0, 10**6), parent=st.sampled_from([TRANSFORMER, PRIMER]))
def test_children_are_those_of_the_chapter_on_mutations(
    seed: int, parent: programs.DNA
) -> None:
    made = child(Candidate(parent), Random(seed))
    assert made.dna == mutate(parent, Random(seed))
    assert made.mutations


CUTS = st.lists(st.floats(0, 1), min_size=1, max_size=4)


def check_killed_search(
    order: tuple[int, bool], cuts: list[float], path: Path, whole: bytes
) -> None:
    """Cut the log of a search, as its kill at any moment does, resume it, and compare its lines."""
    ends: set[int] = set()

    def counted(dna: str, seed: int, *others: Any) -> dict[str, Any]:
        assert seed not in ends, "evaluated twice"
        return outcome_of(dna, seed, *others)

    path.write_bytes(whole)
    for cut in cuts:
        path.write_bytes(path.read_bytes()[: round(cut * len(whole))])
        ends = {line["ended"] for line in events(path) if "ended" in line}
        run_search(InlineRay(*order), TINY, path, counted)
        assert events(path) == events_of(whole)


@settings(max_examples=8)
@given(cuts=CUTS)
@pytest.mark.parametrize("order", ORDERS)
def test_killed_and_resumed_search_equals_the_unbroken_one(
    order: tuple[int, bool],
    cuts: list[float],
    logs: dict[tuple[int, bool], bytes],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("search") / "log.jsonl"
    check_killed_search(order, cuts, path, logs[order])


def test_log_of_another_search_is_an_error(tiny: Path) -> None:
    path = tiny / "tiny.jsonl"
    message = "tiny.jsonl: it is the log of another search: seed was 0, now 1. Restore"
    with pytest.raises(ValueError, match=message):
        run_search(InlineRay(1), replace(TINY, seed=1), path, outcome_of)
    longer = replace(TINY, task=replace(SMALL, budget=63.0))
    message = r"another search: budget was 62\.0, now 63\.0\. Restore"
    with pytest.raises(ValueError, match=message):
        run_search(InlineRay(1), longer, path, outcome_of)
    with pytest.raises(ValueError, match="size was 8, now 9"):
        run_search(InlineRay(1), replace(TINY, size=9), path, outcome_of)


def test_a_line_of_the_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"ended":0}\n<<<<<<< HEAD\n{"ended":1}\n')
    with pytest.raises(ValueError, match=r"log.jsonl, line 2: no JSON; restore"):
        read_log(path)


def test_a_line_cut_short_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"ended":0}\n{"ended":1')
    assert read_log(path) == [{"ended": 0}]
    with appending(path) as log:
        log.write(ended=2)
    assert read_log(path) == [{"ended": 0}, {"ended": 2}]


def test_progress_shows_best_median_and_time_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.jsonl"
    report = module.Report("tiny", TINY)
    run_search(InlineRay(1), TINY, path, outcome_of, report=report)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == TINY.individuals / 10
    losses = [line["losses"] for line in events(path) if line.get("losses")]
    best = min(each[-1] for each in losses if len(each) > TINY.task.hurdles)
    assert f", best {best:.4f} (" in printed[-1]
    middle = median(each[0] for each in losses[-TINY.size :])
    assert f", median {middle:.4f} at the first hurdle" in printed[-1]
    assert "0 min left" in printed[-1]


def test_progress_has_no_best_before_one_is_trained_to_the_end() -> None:
    rejected, stopped = {"losses": []}, {"losses": [2.5]}
    assert module.progress(TINY, {0: rejected}).endswith("all rejected")
    assert module.progress(TINY, {0: stopped}).endswith("2.5000 at the first hurdle")


# ## The plan


def test_plan_has_three_searches_a_control_and_a_random_start() -> None:
    plan = read_plan(PLAN)
    paper = [s for s in plan.values() if s.start == "transformer" and s.tournament > 1]
    assert len({search.seed for search in paper}) == len(paper) >= 3
    assert any(search.tournament == 1 for search in plan.values())
    assert any(search.start == "random" for search in plan.values())
    assert len({(s.individuals, s.task) for s in plan.values()}) == 1, "the same cost"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[task]\nbudget =", "plan.toml: Invalid value"),
        ("[task]\nbudgets = 6", r"plan.toml, \[task\]: .*'budgets'"),
        ("[task]\n[search.a]\nturnament = 5", r"\[search.a\]: .*'turnament'"),
        ("[task]\n[search.a]\nstart = 'rnd'", r"\[search.a\]: unknown start 'rnd'"),
        ("[task]\n[search.a]\ntournament = 0", "tournament must be 1 or more, not 0"),
        ("[search.a]", r"plan.toml, \[task\]: 'task'"),
    ],
)
def test_a_mistake_in_the_plan_is_named_with_its_place(
    text: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_plan(tmp_path / "plan.toml")


def test_expected_time_is_that_of_half_of_the_programs_at_each_hurdle() -> None:
    search = Search(individuals=10, task=Task(budget=31, hurdles=4))
    # Each of the five bands costs as much as the first, of which it is 1/31 of the budget for all.
    assert search.expected_steps() == 50


# ## The command

SEARCHES = {"tiny": TINY, "other": replace(TINY, seed=1)}


def costly_outcome(*arguments: Any) -> dict[str, Any]:
    """Return an outcome with the costs of a training."""
    return outcome_of(*arguments) | {"used": 62.0, "seconds": 1.0, "steps": 62}


def search_all(folder: Path, *only: str, evaluate: Any = costly_outcome) -> None:
    """Run what is missing of these searches, in one process and without training."""
    inline, chosen = nullcontext(InlineRay(1)), {name: SEARCHES[name] for name in only}
    module.run_missing(SEARCHES, chosen, folder, inline, evaluate, not_trained)


@pytest.mark.usefixtures("best_four")
def test_what_is_missing_is_searched_trained_again_and_gathered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    search_all(tmp_path, "tiny")
    logs = tmp_path / "search"
    assert {path.stem for path in logs.glob("*.jsonl")} == {"tiny", "retrained"}
    search_all(tmp_path, *SEARCHES)
    search_all(tmp_path, *SEARCHES)
    printed = capsys.readouterr().out
    assert printed.count("other: 30 of 30") == printed.count("tiny: 30 of 30") == 1
    again, of_known_models = read_lines(logs / "retrained.jsonl"), 3 * 3 * 3
    assert len(again) == FEW + FEW - of_known_models
    gathered = json.loads((tmp_path / "searches.json").read_text())
    assert [*gathered["searches"]] == [*SEARCHES]
    assert printed.splitlines()[-1] == "Missing: 0 min on a core, 0 min on 1"


def test_what_ended_is_gathered_also_if_the_command_is_stopped(tmp_path: Path) -> None:
    def stopped(dna: str, seed: int, *others: Any) -> dict[str, Any]:
        if seed == 20:
            raise KeyboardInterrupt
        return costly_outcome(dna, seed, *others)

    with pytest.raises(KeyboardInterrupt):
        search_all(tmp_path, "tiny", evaluate=stopped)
    gathered = json.loads((tmp_path / "searches.json").read_text())
    assert gathered["searches"]["tiny"]


TOY = "[task]\n[search.tiny]\nsize = 9\n[search.other]\n"


def refusal(folder: Path, plan: str, *words: object) -> str:
    """Return the error with which the command ends."""
    (folder / "plan.toml").write_text(plan)
    words = ("--folder", folder, *words)
    command = start_command(folder, "refused", "experiments.search.run", *words)
    assert command.wait() == 1, command.printed
    return command.printed


@pytest.mark.usefixtures("best_four")
def test_expected_time_contains_that_of_training_again(tmp_path: Path) -> None:
    left = steps_left({"tiny": TINY}, tmp_path, tmp_path / "retrained.jsonl")
    assert left == ((3 + 3) * 3 * (1 + 3 + 3) + 1 * 3) * SMALL.budget


def test_unknown_search_error_lists_known_searches(tmp_path: Path) -> None:
    message = "unknown search 'tny'; known searches: tiny, other"
    assert message in refusal(tmp_path, TOY, "--only", "tny")


def test_second_search_at_the_same_time_is_refused(tmp_path: Path) -> None:
    with alone(tmp_path / "built" / "search"):
        assert "another search is running" in refusal(tmp_path, TOY)


def test_a_mistake_in_the_plan_ends_the_command_with_a_message(tmp_path: Path) -> None:
    message = refusal(tmp_path, "[task]\nbudgets = 6")
    assert "plan.toml, [task]: " in message and "'budgets'" in message


@pytest.fixture
def best_four(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train the best four again, of the few programs of a tiny search."""
    monkeypatch.setattr("experiments.search.retrain.BEST", 4)


def not_trained(run: Retraining) -> dict[str, Any]:
    return {"rejected": "not trained in this test"}


def test_fitness_is_not_measured_on_reported_plays() -> None:
    assert SEARCH_PLAY not in REPORTED_PLAYS


# ## Candidates


def ticking() -> Callable[[], float]:
    """Return a clock that shows one second more every time."""
    seconds = count()
    return lambda: float(next(seconds))


def outcome(dna: programs.DNA, bars: tuple[float, ...] = OPEN) -> dict[str, Any]:
    return evaluate(str(dna), 0, bars, SMALL, ticking())


def program(*lines: str) -> programs.DNA:
    numbered = (f"h{v} = {line}" for v, line in enumerate(lines, start=2))
    return parse(BANKS + "S0\n" + "\n".join(numbered))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_training_ends_after_a_fixed_time_at_hurdles_of_the_papers_shares() -> None:
    found = evaluate(str(TRANSFORMER), 0, OPEN, replace(SMALL, budget=4.0), ticking())
    assert found["rejected"] == "too slow: 4 steps in all"
    found = evaluate(str(TRANSFORMER), 0, OPEN, SMALL, ticking())
    assert (found["steps"], found["seconds"], len(found["losses"])) == (62, 62.0, 5)
    # Each step takes one second of this clock, and the first hurdle is at 1/31.
    closed = (0.0, *OPEN[1:])
    found = evaluate(str(TRANSFORMER), 0, closed, SMALL, ticking())
    assert (found["steps"], len(found["losses"])) == (2, 1)


def test_evaluation_depends_on_program_seed_and_task_alone() -> None:
    closed = (math.inf, 0.0, math.inf, math.inf)
    first, again, other = (
        evaluate(str(PRIMER), seed, closed, SMALL, ticking()) for seed in (0, 0, 1)
    )
    assert len(first["losses"]) == 2
    assert first == again
    assert first["losses"] != other["losses"]


@pytest.mark.parametrize("dna", [TRANSFORMER, PRIMER])
def test_width_is_the_nearest_to_the_budget(dna: programs.DNA) -> None:
    task = replace(SMALL, parameters=100_000)
    width = fitting_width(dna, task, vocab_size=90)
    sizes = [parameters(build(dna, task, width + d, 90)) for d in (-8, 0, 8)]
    distances = [abs(math.log(size / task.parameters)) for size in sizes]
    assert min(distances) == distances[1]


@pytest.mark.parametrize(
    ("dna", "reason"),
    [
        (program("LOG(h0, h0)", "CONV 1X1(h2, h2)", "LOG(h3, h3)"), None),
        (program("CONV 1X1(h0, h0)", "C MUL(h2, h2) c1", "EXP(h3, h3)"), "not finite"),
        (program("ABS(h0, h0)"), "no width"),
        (program("CONV 31X1(h0, h0) @16", "CONV 31X1(h2, h2) @4"), "no width"),
    ],
)
def test_programs_that_cannot_be_trained_are_rejected_with_a_reason(
    dna: programs.DNA, reason: str | None
) -> None:
    # Without weights the embedding remains, which has fewer parameters at any width.
    task = replace(SMALL, budget=155.0, parameters=50_000)
    found = evaluate(str(dna), 0, OPEN, task, ticking())
    if reason is None:
        assert found["losses"] and not found["rejected"]
    else:
        assert found["rejected"].startswith(reason)
        assert found["losses"] == []


def test_programs_with_too_many_values_are_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("experiments.search.candidates.MOST_BYTES", 1000)
    assert outcome(TRANSFORMER)["rejected"].startswith("memory")


def test_programs_beyond_the_limits_are_rejected() -> None:
    calls = "".join(f"h{v} = S{{n}}(h0, h0)\n" for v in range(2, 18))
    text = BANKS + "".join(f"S{n}\n" + calls.format(n=n + 1) for n in range(6))
    dna = parse(text + "S6\nh2 = SIN(h0, h0)")
    assert outcome(dna)["rejected"].startswith("too large")


def test_a_candidate_that_sees_the_future_is_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dna = program("CONV 1X1(h0, h0)", "T-MAT MUL(h2, h0)", "MAT MUL(h3, h0)")
    task = replace(SMALL, budget=155.0)
    found = evaluate(str(dna), 0, OPEN, task, ticking())
    assert found["losses"]
    monkeypatch.setattr(primitives, "lower", lambda x: x)
    found = evaluate(str(dna), 0, OPEN, task, ticking())
    assert (found["rejected"], found["losses"]) == ("sees the future", [])


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (sleep_too_long, signal.SIGALRM),
        pytest.param(compute_too_long, signal.SIGXCPU, marks=pytest.mark.nightly),
    ],
)
def test_a_program_that_takes_far_too_long_ends_its_process(
    act: Callable[[], None], expected: signal.Signals
) -> None:
    process = server().Process(target=act)
    process.start()
    process.join()
    assert process.exitcode == -expected


# ## Ray


def ending_here(seed: int, tries: int) -> None:
    """End a worker as Ray reports it: that of program 1 once, those of 2 and 3 always."""
    if seed in (2, 3) or (seed == 1 and tries == 1):
        raise WorkerError


def ending_for_real() -> Callable[[int, int], None]:
    """Return a function that kills the worker of program 1 once and that of 2 always, and lets 3 hang."""

    def end(seed: int, tries: int) -> None:
        import os
        import time

        from experiments.search.candidates import time_limits

        if (seed == 1 and tries == 1) or seed == 2:
            os._exit(1)
        if seed == 3:
            with time_limits(cpu=1000, wall=1):
                time.sleep(10**6)

    return end


def behaving(
    marker: Path, end: Callable[[int, int], None]
) -> Callable[..., dict[str, Any]]:
    """Return an evaluation whose workers `end`, given the program's seed and how often it was tried."""

    def evaluation(
        dna: str, seed: int, bars: tuple[float, ...], task: Task
    ) -> dict[str, Any]:
        with (marker / str(seed)).open("a") as tries:
            tries.write("x")
        end(seed, len((marker / str(seed)).read_text()))
        return {"losses": [1.0], "rejected": "", "whole": 1.0}

    return evaluation


@pytest.mark.parametrize(
    ("workers", "end"),
    [
        (lambda: nullcontext(InlineRay(2)), ending_here),
        pytest.param(
            lambda: module.cluster(2), ending_for_real(), marks=pytest.mark.nightly
        ),
    ],
    ids=["reported", "real"],
)
def test_killed_worker_is_replaced_and_a_crash_or_hang_is_recorded(
    tmp_path: Path, workers: Callable[[], Any], end: Callable[[int, int], None]
) -> None:
    path, search = tmp_path / "log.jsonl", replace(TINY, individuals=6)
    with workers() as ray:
        run_search(ray, search, path, behaving(tmp_path, end))
    ended = {line["ended"]: line for line in events(path) if "ended" in line}
    assert sorted(ended) == list(range(6))
    rejected = {number for number, line in ended.items() if line["rejected"]}
    assert rejected == {2, 3}
    assert all(ended[n]["rejected"].startswith("ended 2 workers") for n in rejected)


@pytest.mark.slow
def test_search_joins_a_cluster_and_uses_all_of_its_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ray.cluster_utils import Cluster

    def where(
        dna: str, seed: int, bars: tuple[float, ...], task: Task
    ) -> dict[str, Any]:

        import time

        import ray

        (tmp_path / f"here-{seed}").touch()
        # The two wait for each other, so they run at the same time, on a core of each node.
        while not all((tmp_path / f"here-{n}").exists() for n in (0, 1)):
            time.sleep(0.1)
        node = ray.get_runtime_context().get_node_id()
        return {"losses": [1.0], "rejected": "", "whole": 1.0, "node": node}

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    head = {"num_cpus": 1, "include_dashboard": False}
    nodes = Cluster(initialize_head=True, head_node_args=head)
    try:
        nodes.add_node(num_cpus=1)
        nodes.wait_for_nodes()
        monkeypatch.setenv("RAY_ADDRESS", nodes.address)
        path, search = tmp_path / "log.jsonl", replace(TINY, individuals=2)
        with module.cluster(7) as ray:
            assert module.core_count(ray) == 2
            run_search(ray, search, path, where)
    finally:
        nodes.shutdown()
    used = [line["node"] for line in events(path) if "ended" in line]
    assert len(used) == len(set(used)) == 2


# ## Retraining


@pytest.mark.usefixtures("best_four")
def test_winners_are_the_best_that_were_trained_to_the_end(tiny: Path) -> None:
    path = tiny / "tiny.jsonl"
    lines = events(path)
    ended = {line["ended"]: line["losses"] for line in lines if "ended" in line}
    whole = [n for n, losses in ended.items() if len(losses) == 5]
    best = best_programs(path, TINY)
    assert list(best) == sorted(whole, key=lambda n: ended[n][-1])[:4]
    born = {line["born"]: line["dna"] for line in lines if "born" in line}
    assert all(str(dna) == born[number] for number, dna in best.items())
    assert best_programs(path, replace(TINY, individuals=31)) == {}, "not finished"


def train_again(folder: Path, train: Callable[[Retraining], dict[str, Any]]) -> Path:
    """Train again what is missing, and return the file of the records."""
    records = folder / "retrained.jsonl"
    retrain_missing(InlineRay(1), {"tiny": TINY}, folder, records, train)
    return records


@pytest.mark.usefixtures("best_four")
def test_winners_and_known_models_are_retrained_once_with_each_seed_time_and_width(
    tiny: Path,
) -> None:
    runs: list[Retraining] = []

    def noted(run: Retraining) -> dict[str, Any]:
        runs.append(run)
        return not_trained(run)

    for _ in range(2):
        train_again(tiny, noted)
    assert len(runs) == len(set(runs)) == FEW
    assert all(run.task.budget == run.longer * SMALL.budget for run in runs)
    assert all(run.task.hurdles == 4 for run in runs), "recorded at the paper's"
    assert {(run.longer, run.scale) for run in runs} == {(1, 1), (3, 1), (3, 2)}
    assert {run.dna for run in runs} > {str(TRANSFORMER), str(PRIMER)}
    best = [f"tiny-{n}" for n in best_programs(tiny / "tiny.jsonl", TINY)]
    long = {run.name for run in runs if run.longer == 3}
    assert long == {*best[:3], "transformer", "primer-ez", "primer"}


def test_a_record_of_another_training_with_the_same_name_does_not_count(
    tiny: Path,
) -> None:
    known = read_lines(train_again(tiny, not_trained))
    assert all(run.is_recorded(known) for run in retrainings({"tiny": TINY}, tiny))
    longer = replace(TINY, task=replace(SMALL, budget=100.0))
    again = list(retrainings({"tiny": longer}, tiny))
    assert again and not any(run.is_recorded(known) for run in again)


def test_a_worker_that_ends_in_retraining_is_recorded_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    def ending(run: Retraining) -> dict[str, Any]:
        if run.name == "primer" and run.scale == 2:
            raise WorkerError
        return not_trained(run)

    records = list(read_lines(train_again(tmp_path, ending)).values())
    ended = [r for r in records if r["rejected"] == "ended its workers: WorkerError"]
    assert len(records) == 27 and len(ended) == 3
    assert {(record["name"], record["scale"]) for record in ended} == {("primer", 2)}


@pytest.fixture
def ticking_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the CPU time of retraining be that of a clock that ticks."""
    monkeypatch.setattr(
        "experiments.search.retrain.time_limits", lambda *_: nullcontext()
    )
    monkeypatch.setattr("time.process_time", ticking())


@pytest.mark.usefixtures("ticking_workers")
def test_retraining_rejects_a_loss_that_is_not_finite_on_a_reported_play(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def loss_on(model: Any, play: str, task: Task) -> float:
        return math.nan if play == REPORTED_PLAYS[1] else 2.0

    monkeypatch.setattr("experiments.search.candidates.loss_on", loss_on)
    task = replace(SMALL, budget=12.0, hurdles=0)
    found = retrain(Retraining("x", str(TRANSFORMER), task, 0, 1, 1))
    assert found["rejected"] == "not finite: after step 12"
    assert "losses" not in found and "reported" not in found


@pytest.mark.usefixtures("ticking_workers")
def test_retraining_keeps_a_program_that_takes_few_steps_to_the_first_hurdle() -> None:
    task = replace(SMALL, budget=93.0)  # the first hurdle is after three steps
    found = retrain(Retraining("x", str(TRANSFORMER), task, 0, 1, 1))
    assert len(found["losses"]) == 5


@pytest.mark.usefixtures("ticking_workers")
def test_retraining_reports_the_plays_that_no_search_has_seen() -> None:
    task = replace(SMALL, budget=12.0, hurdles=0)
    narrow, wide = (
        retrain(Retraining("x", str(TRANSFORMER), task, 0, 1, scale))
        for scale in (1, 2)
    )
    assert len(narrow["reported"]) == len(REPORTED_PLAYS)
    assert len(narrow["losses"]) == 1
    assert wide["d_model"] == 2 * narrow["d_model"]
    assert narrow["steps"] == wide["steps"] == 12


# ## Summary


def test_costs_of_a_search_are_those_of_its_lines() -> None:
    task = {"budget": 310.0, "hurdles": 4}
    began = {"size": 2, "task": task}
    lines = [
        {"began": began},
        {"born": 0, "dna": str(TRANSFORMER)},
        {
            "ended": 0,
            "losses": [5, 4, 3, 2, 1],
            "seconds": 31,
            "used": 310,
            "whole": 35,
        },
        {"born": 1, "dna": str(PRIMER)},
        {"ended": 1, "losses": [6], "seconds": 1, "used": 10, "whole": 3},
        {"born": 2, "dna": str(PRIMER)},
        {"ended": 2, "losses": [], "rejected": "not finite", "whole": 2},
        {"born": 3, "dna": str(PRIMER)},
        {"ended": 3, "losses": [4, 3], "seconds": 3, "used": 30, "whole": 5},
    ]
    found = summary.costs(lines)
    assert (found.individuals, found.rejected) == (4, 1)
    assert found.core_hours == pytest.approx(45 / 3600)
    assert found.training_share == pytest.approx(35 / 45)
    assert found.saving == pytest.approx(3 * 310 / (310 + 10 + 30))
    assert found.seconds == pytest.approx(35 / 350 * 310)
    assert summary.medians(lines) == [5, 5.5, 5.5, 5]
    assert summary.spread(lines, "SQUARE") == [0.0, 0.5, 0.5, 1.0]
    # Both programs compare queries with keys. The first one alone has no convolution.
    assert summary.changed_shares(lines, (0, 3)) == {"DCONV 3X1": [0.0, 1.0]}


def small_search() -> list[dict[str, Any]]:
    """A log in which individual 2 descends from the Transformer by a swap and an inserted square."""
    task = {"budget": 310.0, "hurdles": 1}
    began = {
        "start": "transformer",
        "seed": 5,
        "tournament": 3,
        "individuals": 4,
        "size": 2,
        "task": task,
    }
    square = str(TRANSFORMER).replace(
        "MAX(h0, h0)\n", "MAX(h0, h0)\n  h3 = SQUARE(h2, h2)\n"
    )
    assert square != str(TRANSFORMER)
    born = [
        (0, None, [], str(TRANSFORMER)),
        (1, 0, ["swap"], str(TRANSFORMER)),
        (2, 1, ["swap", "insert"], square),
        (3, 2, ["insert"], "too large to be expanded"),
    ]
    ended = [[4.0, 3.0], [3.5, 2.5], [3.0, 2.0], []]
    lines: list[dict[str, Any]] = [{"began": began}]
    for (number, parent, mutations, dna), losses in zip(born, ended, strict=True):
        line = {"born": number, "parent": parent, "mutations": mutations, "dna": dna}
        lines.append(line)
        costs = {"used": 310, "seconds": 9, "whole": 10, "steps": 5}
        if not losses:
            costs = {"whole": 1}
        rejected = "" if losses else "too large: 9,999 lines"
        lines.append({"ended": number, "losses": losses, "rejected": rejected, **costs})
    return lines


def test_lineage_leads_from_the_first_program_to_the_best_with_what_each_step_changed() -> (
    None
):
    steps = summary.gathered(small_search())["lineage"]
    assert [step["number"] for step in steps] == [0, 1, 2]
    assert steps[0]["gained"] == steps[0]["lost"] == steps[1]["gained"] == {}
    assert steps[2]["gained"] == {"SQUARE": 1} and steps[2]["lost"] == {}
    assert [step["losses"][-1] for step in steps] == [3.0, 2.5, 2.0]


def test_gathered_search_lists_what_runs_in_its_best_program() -> None:
    best = summary.gathered(small_search())["best"]
    assert best[:2] == ["h1 = RED MEAN(h0)", "h2 = DIFFERENCE(h0, h1)"]
    assert sum("SQUARE" in line for line in best) == 1


def test_gathered_search_counts_what_each_mutation_led_to_and_why_programs_were_rejected() -> (
    None
):
    found = summary.gathered(small_search())
    assert found["mutations"] == {"insert": [2, 1], "swap": [1, 1]}
    assert found["rejected"] == {"too large": 1}
    assert found["best_so_far"] == [[0, 3.0], [1, 2.5], [2, 2.0]]


def test_gathered_search_says_how_often_an_operation_was_tried_and_whether_it_stayed() -> (
    None
):
    lines = small_search()
    lines[0]["began"]["size"] = 2
    found = summary.gathered(lines)
    assert found["tried"] == {"SQUARE": [1, 1]}
    assert (found["at_the_end"]["MAX"], found["at_the_end"]["SQUARE"]) == (1.0, 0.5)
    assert found["at_the_end"]["convolution"] == 0.0
    assert found["at_the_end"]["square"] == 0.5
    table = tables.trials({"x": found, "y": found}, ("DCONV 3X1", "SQUARE"))
    assert table.rows == [
        ["DCONV 3X1", "0", "0", "0%, 0%"],
        ["SQUARE", "2", "2", "50%, 50%"],
    ]


def test_a_square_of_a_norm_does_not_count_as_a_square() -> None:
    assert any("MULTIPLY(h2, h2)" in line for line in summary.running(str(TRANSFORMER)))
    assert not summary.squares(str(TRANSFORMER))
    for old, new in (
        ("MAX(h0, h0)", "MAX(h0, h0)\n  h3 = SQUARE(h2, h2)"),
        ("MAX(h0, h0)", "MULTIPLY(h0, h0)"),
    ):
        assert summary.squares(str(TRANSFORMER).replace(old, new))
    of_two_values = str(TRANSFORMER).replace("ADD(h0, h1)", "MULTIPLY(h0, h1)")
    assert not summary.squares(of_two_values)


def test_gathered_curves_have_a_point_after_every_tenth_individual(
    tmp_path: Path,
) -> None:
    began, *rest = small_search()
    rest = [line for line in rest if 2 in (line.get("born"), line.get("ended"))]
    more = [
        {**line, **{kind: number for kind in ("born", "ended") if kind in line}}
        for number in range(25)
        for line in rest
    ]
    for line in more:
        line["parent"] = None
    found = summary.gathered([began, *more])
    assert found["after"] == [10, 20]
    assert found["median"] == [3.0, 3.0]
    assert found["spread"] == {}, "all have the same operations"


def test_only_searches_with_a_trained_individual_are_gathered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = small_search()
    for name, part in (("begun", lines[:2]), ("whole", lines)):
        with appending(tmp_path / "search" / f"{name}.jsonl") as log:
            for line in part:
                log.write(**line)
    again = {"name": "primer", "longer": 3, "scale": 2, "seed": 0, "parameters": 9}
    ended = {"a": {"reported": [1.0, 2.0]}, "b": {"rejected": "not finite"}}
    written = {name: {"run": name, **again, **each} for name, each in ended.items()}
    looks = {
        "first": {"losses": [3.0, 2.25], "reported": [2.0, 3.0], "steps": 8},
        "second": {"losses": [3.0, 2.75], "reported": [3.0, 4.0], "steps": 7},
        "third": {"rejected": "not finite"},
    }
    short = {"name": "whole-2", "longer": 1, "scale": 1}
    written |= {name: {"run": name, **short, **each} for name, each in looks.items()}
    write_lines(tmp_path / "search" / "retrained.jsonl", written)
    summary.write_searches(["whole", "begun", "missing"], tmp_path)
    path = tmp_path / "searches.json"
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    searches, retrained = tables.read_searches()
    second = {"number": [2], "found": [2.0], "again": [[2.25, 2.75]]}
    second |= {"reported": [[2.5, 3.5]], "steps": [7.5 / 5]}
    whole = json.dumps({"whole": summary.gathered(lines) | {"second_looks": second}})
    assert searches == json.loads(whole, parse_float=lambda each: round(float(each), 6))
    assert [each["loss"] for each in retrained] == [1.5, None]
    path.write_text(path.read_text().replace('"individuals": 4', '"individuals": 3', 1))
    assert tables.read_searches()[0] == {}, "of 4 individuals, 3 have ended"


def test_gathered_searches_are_in_the_order_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["transformer-0", "no-selection"]
    for name in names:
        with appending(tmp_path / "search" / f"{name}.jsonl") as log:
            for line in small_search():
                log.write(**line)
    summary.write_searches(names, tmp_path)
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    assert list(tables.read_searches()[0]) == names


@pytest.mark.parametrize(
    "name",
    [
        name
        if name == "no-selection"
        else pytest.param(name, marks=pytest.mark.nightly)
        for name in read_plan()
    ],
)
def test_gathered_searches_are_those_of_the_recorded_logs(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "search").mkdir()
    for log in (name, "retrained"):
        shutil.copy(RESULTS / "search" / f"{log}.jsonl", tmp_path / "search")
    summary.write_searches([name], tmp_path)
    again, gathered = (
        json.loads((folder / "searches.json").read_text())
        for folder in (tmp_path, RESULTS)
    )
    assert again["searches"] == {name: gathered["searches"][name]}, "make search"
    assert again["retrained"] == gathered["retrained"], "make search"


# ## The records


def test_recorded_searches_are_those_of_the_plan() -> None:
    plan = read_plan()
    logs = {path.stem: path for path in (RESULTS / "search").glob("*.jsonl")}
    del logs["retrained"], logs["small"]  # that of a picture
    assert logs
    for path in logs.values():
        began = [line["began"] for line in read_log(path) if "began" in line]
        assert began and all(each == settings_of(plan[path.stem]) for each in began)


def test_recorded_retrainings_are_those_of_the_plan() -> None:
    logs = RESULTS / "search"
    recorded = read_lines(logs / "retrained.jsonl")
    planned = list(retrainings(read_plan(), logs))
    assert recorded.keys() == {run.line for run in planned if run.is_recorded(recorded)}


def recorded_models() -> Iterator[tuple[str, dict[str, Any], Task]]:
    """Yield the program of each model that was trained again, with its record and the search's task."""
    task = next(iter(read_plan().values())).task
    for name, record in read_lines(RESULTS / "search" / "retrained.jsonl").items():
        first = "-time1-" in name and name.endswith("-seed0")
        if first and "rejected" not in record:
            yield record["dna"], record, task


def test_programs_that_were_trained_again_still_have_the_recorded_size() -> None:
    vocab_size = load_texts("characters").vocab_size
    models = list(recorded_models())
    assert len(models) > 3
    for text, record, task in models:
        dna = parse(text)
        width = record["scale"] * fitting_width(dna, task, vocab_size)
        assert width == record["d_model"]
        size = parameters(build(dna, task, width, vocab_size))
        assert size == record["parameters"]


# ## Tables of the chapter


def trained_again(
    name: str, losses: list[float | None], longer: int, scale: int
) -> list[dict[str, Any]]:
    run = {"name": name, "longer": longer, "scale": scale}
    return [run | {"loss": loss and loss / longer} for loss in losses]


def test_what_a_search_found_is_its_last_population_and_its_best_program_again() -> (
    None
):
    lines = small_search()
    convolved = lines[5]["dna"].replace("SQUARE(h2, h2)", "DCONV 3X1(h2, h2)")
    lines[5]["dna"] = convolved
    search = summary.gathered(lines)
    ends = {"transformer": [2.0, 2.2], "primer-ez": [1.7], "primer": [1.9, None]}
    ends |= {"x-2": [1.0, 1.2], "x-1": [0.5]}
    retrained = [
        run
        for setting in SETTINGS
        for name, losses in ends.items()
        for run in trained_again(name, losses, *setting)
    ]
    best, *known = tables.outcomes({"x": search}, retrained).rows
    # The last population is individuals 1 and 2, and 2 is the best one.
    assert best[1:4] == ["50%", "0%", "100%"]
    assert best[4:] == ["1.100 ± 0.141", "0.367 ± 0.047", "0.367 ± 0.047", "100%"]
    assert [row[0] for row in known] == ["Transformer", "Primer-EZ", "Primer"]
    assert [row[4] for row in known] == ["2.100 ± 0.141", "1.700", "1.900"]
    assert [row[-1] for row in known] == ["0%", "40%", "20%"]


def test_second_look_chooses_no_program_that_lost_a_seed() -> None:
    again = [[2.3, 2.5], [2.2, 2.2], [2.3, 2.3], [2.1]]
    assert tables.chosen_again({"again": again}) == 1


def test_overview_says_how_the_search_went() -> None:
    search = summary.gathered(small_search())
    table = tables.overview({"x": search})
    assert table.entry("start", search="x") == "from the Transformer, seed 5"
    assert table.entry("best loss", search="x") == "2.000"
    assert table.entry("rejected", search="x") == "1"
    assert table.entry("trained per hour", search="x") == "348"  # 3 of 4 in 31 seconds
    assert table.entry("of it training", search="x") == "87%"  # 27 of 31 seconds
    shares = tables.mutations({"x": search, "y": search})
    assert shares.entry("children", mutation="insert") == "4"
    assert shares.entry("share", mutation="insert") == "50%"
    control = {**search, "tournament": 1, "start": "random"}
    assert tables.title(control) == "from random programs, seed 5, no selection"


# ## What the chapter says, and only the logs know


def test_search_from_random_programs_descends_from_a_convolution_alone() -> None:
    origin = tables.gathered_search("random-start")["lineage"][0]["number"]
    log = read_log(RESULTS / "search" / "random-start.jsonl")
    (born,) = (line for line in log if line.get("born") == origin)
    assert summary.operations(born["dna"]) == {"CONV 3X1": 1}


def test_transformer_of_twice_the_width_takes_about_half_as_many_steps() -> None:
    taken: dict[int, list[int]] = {1: [], 2: []}
    for record in read_lines(RESULTS / "search" / "retrained.jsonl").values():
        if record["longer"] == 3 and record["name"] == "transformer":
            taken[record["scale"]].append(record["steps"])
    assert 0.4 < fmean(taken[2]) / fmean(taken[1]) < 0.6
