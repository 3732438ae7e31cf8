"""The measure distinguishes known work, twins are twins, and the page says what the records say."""

import json
import re
import runpy
import shutil
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import (
    compiled_generation,
    floor,
    generation,
    generation_elsewhere,
    measure,
    memory,
    peers,
    speed,
    step,
)
from labml_primer import LanguageModel
from labml_primer.primer.faster import faster
from labml_primer.primer.primer_ez import MultiDConvHeadAttention
from labml_primer.primer.variations import MultiDConvSharedByHeadsAttention
from labml_primer.transformer.attention import MultiHeadAttention

QUESTIONS = (
    "attention",
    "compared",
    "compiled",
    "compiled_generation",
    "floor",
    "forward_pass",
    "generation",
    "generation_elsewhere",
    "memory",
    "step",
)
Record = dict[str, Any]


class Clock:
    """A clock that advances only by the work done before it. `slower` is by how much each call is."""

    def __init__(self, slower: float = 1.0):
        self.now = 0.0
        self.slower = slower
        self.calls: list[str] = []

    def process_time(self) -> float:
        return self.now

    perf_counter = process_time

    def work(self, name: str, seconds: float) -> Callable[[], None]:
        def call() -> None:
            self.calls.append(name)
            self.now += seconds * self.slower ** len(self.calls)

        return call


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(measure, "time", made)
    return made


# -- the measure ---------------------------------------------------------------------


def test_three_times_the_work_is_a_ratio_of_three(clock: Clock) -> None:
    work = {"a": clock.work("a", 1.0), "b": clock.work("b", 3.0)}
    cell = measure.compared({}, measure.in_turns(work, seconds=0), [("b", "a")])
    assert cell["ratios"] == [
        {"of": "b", "over": "a", "median": 3.0, "low": 3.0, "high": 3.0}
    ]
    assert cell["values"] == {"a": 1.0, "b": 3.0}


def test_functions_take_turns_every_other_round_backwards(clock: Clock) -> None:
    work = {name: clock.work(name, 1.0) for name in "abc"}
    taken = measure.in_turns(work, seconds=0, rounds=3)
    assert "".join(clock.calls) == "abc" + "abc" + "cba" + "abc"
    assert {name: len(each) for name, each in taken.items()} == dict.fromkeys("abc", 3)


def test_what_comes_before_a_call_is_not_timed(clock: Clock) -> None:
    work = {"a": clock.work("a", 1.0)}
    before = clock.work("before", 5.0)
    taken = measure.in_turns(work, seconds=0, rounds=2, before=lambda name: before())
    assert taken == {"a": [1.0, 1.0]}


def test_rounds_go_on_until_the_time_is_over(clock: Clock) -> None:
    work = {"a": clock.work("a", 1.0), "b": clock.work("b", 1.0)}
    assert len(measure.in_turns(work, seconds=20, rounds=3)["a"]) == 10


def test_a_machine_that_slows_down_leaves_the_ratio(clock: Clock) -> None:
    clock.slower = 1.02
    work = {"a": clock.work("a", 1.0), "b": clock.work("b", 3.0)}
    taken = measure.in_turns(work, seconds=0, rounds=20)
    assert taken["a"][-1] > 2 * taken["a"][0]
    assert measure.ratio(taken["b"], taken["a"])["median"] == pytest.approx(3, rel=0.03)


def test_the_spread_is_of_the_middle_half(clock: Clock) -> None:
    found = measure.ratio([1.0, 2.0, 3.0, 4.0, 100.0], [1.0] * 5)
    assert found == {"median": 3.0, "low": 2.0, "high": 4.0}


def test_a_part_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["x", "--only", "n=1", "--record"])
    with pytest.raises(SystemExit):
        measure.command("x", "seconds", [{"n": 1}], lambda n: {})


def test_a_part_is_measured_alone_and_the_whole_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[int] = []

    def at(n: int) -> Record:
        asked.append(n)
        return measure.compared({"n": n}, {"a": [1.0]}, [])

    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    for arguments in (["--only", "n=2"], ["--record"]):
        monkeypatch.setattr("sys.argv", ["x", *arguments])
        measure.command("x", "seconds", [{"n": 1}, {"n": 2}], at, tokens=7)
    assert asked == [2, 1, 2]
    (record,) = json.loads((tmp_path / "x.json").read_text()).values()
    assert record["settings"] == {"tokens": 7}
    assert [cell["where"] for cell in record["cells"]] == [{"n": 1}, {"n": 2}]


def test_a_record_replaces_that_of_its_processor_and_leaves_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(measure, "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["x", "--record"])
    for cpu, taken in (("an abacus", 1.0), ("a loom", 2.0), ("an abacus", 3.0)):
        monkeypatch.setattr(measure, "processor", lambda cpu=cpu: cpu)
        cell = measure.compared({"n": 1}, {"a": [taken]}, [])
        measure.command("x", "seconds", [{"n": 1}], lambda n, cell=cell: cell)
    records = json.loads((tmp_path / "x.json").read_text())
    assert {
        cpu: (record["machine"]["cpu"], record["cells"][0]["values"]["a"])
        for cpu, record in records.items()
    } == {"an abacus": ("an abacus", 3.0), "a loom": ("a loom", 2.0)}


# -- twins -----------------------------------------------------------------------------


def attention_twins() -> dict[str, tuple[nn.Module, nn.Module]]:
    plain = peers.without_biases_it_lacks(MultiHeadAttention(128, 2))
    assert isinstance(plain, MultiHeadAttention)
    mdha = MultiDConvHeadAttention(128, 2)
    return {
        "PyTorch": (peers.Causal(plain), peers.TorchAttention(plain, 9)),
        "x-transformers": (peers.Causal(plain), peers.XAttention(plain)),
        "nn.Conv1d": (peers.Causal(mdha), peers.conv1d_attention(mdha)),
        "faster": (peers.Causal(mdha), peers.Causal(faster(deepcopy(mdha)))),
    }


def model_twins() -> dict[str, tuple[nn.Module, nn.Module]]:
    squared = LanguageModel(step.sized("transformer-squared-relu", 128, 9))
    primer_ez = LanguageModel(step.sized("primer-ez", 128, 9))
    return {
        "PyTorch": (squared, peers.torch_model(squared)),
        "nn.Conv1d": (primer_ez, peers.conv1d_model(primer_ez)),
    }


@pytest.mark.parametrize("name", ["PyTorch", "x-transformers", "nn.Conv1d", "faster"])
def test_an_attention_elsewhere_is_its_twin(name: str) -> None:
    peers.agree(*attention_twins()[name], torch.randn(2, 9, 128))


@pytest.mark.parametrize("name", ["PyTorch", "nn.Conv1d"])
def test_a_model_elsewhere_is_its_twin(name: str) -> None:
    ours, theirs = model_twins()[name]
    peers.agree(ours, theirs, torch.randint(step.VOCAB_SIZE, (2, 9)))
    sizes = [sum(p.numel() for p in each.parameters()) for each in (ours, theirs)]
    assert sizes[0] == sizes[1]


installed = pytest.mark.skipif(
    not measure.PEERS.is_dir(), reason="`make benchmarks` installs it"
)


@installed
def test_models_elsewhere_write_the_texts_of_ours() -> None:
    found = generation_elsewhere.writers(128, torch.randint(step.VOCAB_SIZE, (1, 40)))
    with torch.no_grad():
        generation_elsewhere.check_texts(found)
        for theirs, ours in generation_elsewhere.TWINS.items():
            expected = found[ours].remembering(found[ours].model)(found[ours].text)
            logits = found[theirs].remembering(found[theirs].model)(found[theirs].text)
            torch.testing.assert_close(logits, expected, rtol=1e-3, atol=1e-3)


def test_a_model_that_writes_another_text_is_not_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = torch.randint(step.VOCAB_SIZE, (1, 40))
    models = [
        LanguageModel(step.sized("transformer", 128, 64)).eval() for _ in range(2)
    ]
    found = {
        name: generation.Writer(m, text) for name, m in zip("ab", models, strict=True)
    }
    monkeypatch.setattr(generation_elsewhere, "TWINS", {"a": "b"})
    with pytest.raises(ValueError, match="a is no twin"), torch.no_grad():
        generation_elsewhere.check_texts(found)


@installed
def test_labml_nn_is_a_twin() -> None:
    layer = MultiDConvSharedByHeadsAttention(128, 2)
    theirs = peers.LabmlAttention(layer, 9)
    peers.agree(peers.Causal(layer), theirs, torch.randn(2, 9, 128))


def test_what_is_no_twin_is_not_timed() -> None:
    ours, theirs = attention_twins()["PyTorch"]
    with torch.no_grad():
        theirs.get_parameter("attention.out_proj.bias").add_(0.1)
    with pytest.raises(ValueError, match="TorchAttention is no twin"):
        peers.agree(ours, theirs, torch.randn(2, 9, 128))


# -- what is counted -------------------------------------------------------------------


def test_a_training_step_trains_and_leaves_no_gradients() -> None:
    model = nn.Sequential(
        nn.Embedding(step.VOCAB_SIZE, 4), nn.Linear(4, step.VOCAB_SIZE)
    )
    before = [parameter.clone() for parameter in model.parameters()]
    step.training_step(model, 64)()
    for old, new in zip(before, model.parameters(), strict=True):
        assert not torch.equal(old, new)
        assert new.grad is None


@pytest.mark.parametrize("preset", ["transformer", "transformer-squared-relu"])
def test_operations_on_paper_are_those_that_torch_counts(preset: str) -> None:
    # With one token attention has little to compute; most of it is products with matrices.
    model = LanguageModel(step.sized(preset, 128, 1))
    tokens = torch.zeros(8, 1, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        model(tokens).sum().backward()
    counted = counter.get_total_flops()
    assert floor.operations(model, 8) == pytest.approx(counted, rel=0.01)


def test_the_products_of_a_block_are_those_of_its_matrices() -> None:
    _, counted = floor.product(*floor.sizes_of_a_block(128, 512))
    assert counted == 3 * 2 * step.TOKENS * 12 * 128**2


@pytest.mark.parametrize("name", ["Transformer", "Primer-EZ"])
def test_a_writer_reads_its_last_tokens_with_a_cache(name: str) -> None:
    model = LanguageModel(step.sized(generation.NAMES[name], 128, 64)).eval()
    text = torch.randint(step.VOCAB_SIZE, (1, 40))
    writer, seen = generation.Writer(model, text), []
    model.norm.register_forward_hook(lambda *arguments: seen.append(arguments[2]))
    with torch.no_grad():
        for _ in range(2):
            writer.begin()
            seen.clear()
            writer.write()
            assert [tuple(each.shape) for each in seen] == [
                (1, 1, 128)
            ] * generation.IN_A_ROW
        last = seen[-1]
        seen.clear()
        model(text)
    torch.testing.assert_close(last, seen[0][:, -1:])


@pytest.mark.parametrize("name", ["Transformer", "Primer-EZ"])
def test_a_compiled_writer_computes_what_the_other_does(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = LanguageModel(step.sized(generation.NAMES[name], 128, 64)).eval()
    text = torch.randint(step.VOCAB_SIZE, (1, 40))
    seen: list[Tensor] = []

    def eager(model: nn.Module, token: Tensor) -> Tensor:
        seen.append(compiled_generation.last_logits(model, token))
        return seen[-1]

    monkeypatch.setattr(compiled_generation, "compiled", lambda: eager)
    writer = compiled_generation.CompiledWriter(model, text)
    with torch.no_grad():
        for _ in range(2):
            writer.begin()
            writer.write()
        assert len(seen) == 2 * generation.IN_A_ROW
        torch.testing.assert_close(seen[-1], model(text)[:, -1])


def test_the_peak_is_what_was_held_at_once() -> None:
    def hold() -> Tensor:
        first = torch.ones(1 << 20)  # 4 MiB
        second = first + 1
        del first
        return second + 1

    assert memory.peak(hold) == pytest.approx(8 << 20, rel=0.01)


# -- the records -----------------------------------------------------------------------


def test_the_page_declares_every_record() -> None:
    recorded = {f"benchmarks/results/{path.name}" for path in measure.RESULTS.iterdir()}
    assert recorded == set(speed.__data__[:-1])  # the last is the paper's
    assert [Path(path).stem for path in speed.__data__[:-1]] == list(QUESTIONS)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_record_says_where_when_and_what(question: str) -> None:
    records = json.loads((measure.RESULTS / f"{question}.json").read_text())
    for cpu, record in records.items():
        assert record["question"] == question
        assert set(record["machine"]) == {"cpu", "cores", "threads", "system"}
        assert record["machine"]["cpu"] == cpu
        assert {"python", "torch"} <= set(record["versions"])
        assert re.fullmatch(r"[0-9a-f]{7,}\+?", record["commit"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", record["date"])
        for cell in record["cells"]:
            assert cell["rounds"] >= 1
            assert all(value > 0 for value in cell["values"].values())
            for ratio in cell["ratios"]:
                assert {ratio["of"], ratio["over"]} <= set(cell["values"])
                assert ratio["low"] <= ratio["median"] <= ratio["high"]


# -- the page --------------------------------------------------------------------------

Page = Callable[..., str]


@pytest.fixture
def page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Page:
    """What the page prints where each record was changed so."""

    def printed(
        change: Callable[[str, Record], None],
        added: Callable[[Record], Record] = lambda records: {},
    ) -> str:
        results = tmp_path / "benchmarks" / "results"
        for name in speed.__data__:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(measure.RESULTS.parents[1] / name, tmp_path / name)
        for question in QUESTIONS:
            path = results / f"{question}.json"
            records = json.loads(path.read_text())
            for record in records.values():
                change(question, record)
            named = {record["machine"]["cpu"]: record for record in records.values()}
            path.write_text(json.dumps(named | added(records)))
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("MPLBACKEND", "Agg")
        runpy.run_path(str(Path(speed.__file__)), run_name="__main__")
        plt.close("all")
        return capsys.readouterr().out

    return printed


def of_every(record: Record, of: str, over: str, median: float) -> None:
    """Sets a ratio at every place of a record."""
    for cell in record["cells"]:
        for ratio in cell["ratios"]:
            if (ratio["of"], ratio["over"]) == (of, over):
                ratio["median"] = median


def test_the_page_states_the_range_of_recorded_ratios(page: Page) -> None:
    def change(question: str, record: Record) -> None:
        if question == "step":
            of_every(record, "Primer-EZ, faster", "Transformer", 1.23)

    assert re.search(r"faster +1\.23 to 1\.23 *\n", page(change))


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_page_has_its_numbers_from_the_records(page: Page, question: str) -> None:
    def change(changed: str, record: Record) -> None:
        for cell in record["cells"] if changed == question else []:
            cell["values"] = dict.fromkeys(cell["values"], 777.0)
            for ratio in cell["ratios"]:
                ratio["median"] = ratio["low"] = ratio["high"] = 7.77

    changed = page(change)
    assert changed != page(lambda *_: None)
    assert "7.77" in changed or "777" in changed


def test_the_page_names_the_machine_of_the_records(page: Page) -> None:
    def change(question: str, record: Record) -> None:
        record["machine"]["cpu"] = "An abacus"
        record["commit"] = "abcdef0"
        record["date"] = "1843-10-01"

    printed = page(change)
    assert "An abacus" in printed
    assert printed.count("1843-10-01  abcdef0") == len(QUESTIONS)


def test_the_page_has_the_ratios_of_each_processor_side_by_side(page: Page) -> None:
    def another(records: Record) -> Record:
        record = deepcopy(next(iter(records.values())))
        of_every(record, "Primer-EZ, faster", "Transformer", 1.23)
        return {"A loom": record}

    printed = page(lambda *_: None, another)
    assert re.search(r"faster +\d\.\d\d to \d\.\d\d +1\.23 to 1\.23 *\n", printed)
    assert "A loom" in printed
