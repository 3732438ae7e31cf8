"""Tests of what long runs need at real scale: own texts, less memory, stops that lose nothing."""

import json
import re
import resource
import tomllib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from pairs import (
    Ended,
    torchrun,
    train,
    train_apart,
    train_half,
    train_until_one_is_asked_to_stop,
    two_workers,
)
from runs import SIZES, TINY, on_one_core, same_bits, toml, weights
from torch import nn

from experiments.chapters import method
from experiments.harness.configuration import Run
from experiments.harness.long_run import long_run
from experiments.harness.tasks import whole_loss
from experiments.real_scale.texts import Files, texts_of
from experiments.real_scale.training import ScaledTraining
from labml_primer.training.loop import draw_windows, held_out_windows

__all__ = ["on_one_core"]  # a fixture that acts here too


plain_run, long_run = long_run, partial(long_run, kind=ScaledTraining)
"""The harness's own way of training, and that at real scale."""


def training(run: Run, folder: Path) -> ScaledTraining:
    return ScaledTraining(run, folder).begin()


class OneOfTwo(ScaledTraining):
    """The second of two workers, alone."""

    def __init__(self, run: Run, folder: Path):
        super().__init__(run, folder)
        self.rank, self.count = 1, 2


# Own texts


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with a text in three files, one of them empty and one in a subfolder."""
    texts = {
        "train/a.txt": b"To be, or not to be: " * 20,
        "train/b/c.txt": "Être ou ne pas être. ".encode() * 30,
        "train/empty.txt": b"",
        "train/notes.md": b"not a text to learn from",
        "held-out/last.txt": "Der Rest ist Schweigen für alle. ".encode() * 20,
    }
    for name, text in texts.items():
        (tmp_path / "own" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "own" / name).write_bytes(text)
    return tmp_path / "own"


def test_files_read_as_one_text_across_their_borders(own: Path) -> None:
    paths = [own / "train/a.txt", own / "train/b/c.txt"]
    whole = b"".join(path.read_bytes() for path in paths)
    joined, files = torch.tensor(list(whole)), Files(paths)
    assert len(files) == len(whole)
    places = torch.arange(len(whole)).flip(0).view(-1, 2)
    assert torch.equal(files[places], joined[places])
    for step in range(20):
        windows = draw_windows(files, 8, 100, 0, step)  # type: ignore[arg-type]
        assert torch.equal(windows, draw_windows(joined, 8, 100, 0, step))


def test_training_files_stay_on_disk(own: Path) -> None:
    path = own / "train/a.txt"
    files = Files([path])
    before = files[torch.tensor([0])]
    # A mapped file changes with the file, and a copy in memory would not.
    with path.open("r+b") as file:
        file.write(b"X")
    assert before == ord("T") and files[torch.tensor([0])] == ord("X")


def test_files_are_mapped_only_while_they_are_read(own: Path) -> None:
    """Linux allows a process 65,530 mappings, and a text can have more files."""

    def mapped() -> bool:
        return str(own) in Path("/proc/self/maps").read_text()

    files = Files([own / "train/a.txt", own / "train/b/c.txt"])
    assert not mapped()
    assert files[torch.arange(len(files))].sum() > 0
    assert not mapped()


def test_held_out_texts_stay_on_disk_and_whole_ones_are_read_batch_by_batch(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = own / "held-out/last.txt"
    text = (
        path.read_bytes().replace(b" ", b"\r\n") + b"\xff\xc3"
    )  # not UTF-8 at the end
    path.write_bytes(text)
    texts = texts_of(str(own))
    files = texts.held_out["last"]
    assert isinstance(files, Files)
    assert texts.characters["last"] == len(text.decode(errors="replace")) / len(text)
    read, getitem = [], Files.__getitem__

    def noted(files: Files, places: torch.Tensor) -> torch.Tensor:
        read.append(len(places))
        return getitem(files, places)

    monkeypatch.setattr(Files, "__getitem__", noted)
    model = TINY.build(256).train()
    loss = whole_loss(model, files, batch=8, seq=16)  # type: ignore[arg-type]
    assert sum(read) == (len(text) - 1) // 16 and max(read) == 8
    joined = torch.tensor(list(text))
    assert loss == whole_loss(model, joined, batch=8, seq=16)


def test_run_learns_a_text_of_ones_own_by_byte(own: Path, tmp_path: Path) -> None:
    run = replace(TINY, data=str(own), steps=60, rate=1e-2, whole=True)
    record = long_run(run, tmp_path / "run")
    texts = texts_of(str(own))
    text = (own / "held-out/last.txt").read_text(encoding="utf-8")
    bytes_each = len(text.encode()) / len(text)
    assert texts.vocab_size == 256
    assert texts.characters["last"] == pytest.approx(1 / bytes_each)
    curve = record["curve"]
    assert curve["train_loss"][0] > 4 > 3 > curve["train_loss"][-1]
    # In nats per character, not per byte.
    model = run.build(256)
    model.load_state_dict(weights(tmp_path / "run"))
    with torch.no_grad():
        held_out = torch.tensor(list(text.encode()))
        windows = held_out.unfold(0, run.seq + 1, run.seq)
        logits = model(windows[:, :-1])
    nats = nn.functional.cross_entropy(logits.mT, windows[:, 1:]).item()
    assert record["whole"]["last"] == pytest.approx(nats * bytes_each, rel=1e-4)


def test_folder_without_texts_is_refused(own: Path, tmp_path: Path) -> None:
    (own / "held-out/last.txt").unlink()
    with pytest.raises(ValueError, match=r"held-out has no text"):
        long_run(replace(TINY, data=str(own)), tmp_path / "run")
    with pytest.raises(ValueError, match=r"'nowhere' is not one of .* not a folder"):
        replace(TINY, data="nowhere")


def test_held_out_texts_of_the_same_name_in_two_folders_are_both_read(
    own: Path,
) -> None:
    for folder, text in (("a", b"first"), ("b", b"second one")):
        (own / "held-out" / folder).mkdir()
        (own / "held-out" / folder / "part.1.txt").write_bytes(text)
    texts = texts_of(str(own))
    lengths = {name: len(text) for name, text in texts.held_out.items()}
    assert lengths == {"a/part.1": 5, "b/part.1": 10, "last": lengths["last"]}
    assert texts.characters.keys() == lengths.keys()


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("train/a.txt", "text to learn from"),
        ("held-out/last.txt", "held-out text 'last'"),
    ],
)
def test_text_shorter_than_a_window_is_refused_before_the_first_step(
    own: Path, tmp_path: Path, path: str, name: str
) -> None:
    (own / "train/b/c.txt").unlink()
    (own / path).write_bytes(b"x" * 17)
    # A window has the 16 tokens of `seq`, and the one after them.
    assert long_run(replace(TINY, data=str(own)), tmp_path / "run")["curve"]["steps"]
    message = f"own: the {name} has 17 tokens, .* = 18; lower seq, or take a longer"
    with pytest.raises(ValueError, match=message):
        training(replace(TINY, data=str(own), seq=17), tmp_path)


@pytest.mark.parametrize(
    ("changed", "steps"),
    [
        ("edited", TINY.steps),
        ("renamed", 2 * TINY.steps),
        *(
            pytest.param(changed, TINY.steps * times, marks=pytest.mark.nightly)
            for changed, times in (
                ("edited", 2),
                ("renamed", 1),
                ("added", 1),
                ("added", 2),
            )
        ),
    ],
)
def test_run_does_not_continue_on_texts_that_have_changed(
    own: Path, tmp_path: Path, changed: str, steps: int
) -> None:
    """Neither a finished run is returned, nor a run that is prolonged."""
    run, folder = replace(TINY, data=str(own)), tmp_path / "run"
    record = long_run(run, folder, keep=True)
    before = {path: path.read_bytes() for path in folder.glob("*.*")}
    path = own / "train/b/c.txt"
    text = path.read_bytes()
    if changed == "edited":
        path.write_bytes(text.swapcase())
    elif changed == "renamed":
        path.rename(own / "train/b/d.txt")
    else:
        (own / "train/new.txt").write_bytes(b"one more text to learn from")
    texts_of.cache_clear()
    name = "record.json" if steps == TINY.steps else r"checkpoint\.pt"
    message = f"the texts in {own} have changed since .*{name} was written; restore"
    with pytest.raises(ValueError, match=message):
        long_run(replace(run, steps=steps), folder)
    assert {path: path.read_bytes() for path in folder.glob("*.*")} == before
    if changed == "edited":
        path.write_bytes(text)
        texts_of.cache_clear()
        assert long_run(run, folder) == record


def test_record_has_a_digest_of_texts_of_ones_own_only(
    own: Path, tmp_path: Path
) -> None:
    record = long_run(replace(TINY, data=str(own)), tmp_path / "own run")
    assert len(record["texts"]) == 64
    assert "texts" not in long_run(TINY, tmp_path / "plays")


def test_last_held_out_window_of_a_long_text_is_its_end() -> None:
    # The last start is 2 ** 24 + 3, which single precision rounds up to 2 ** 24 + 4.
    text = torch.zeros(2**24 + 20, dtype=torch.uint8)
    text[-17:] = torch.arange(17)
    assert held_out_windows(text, seq=16)[-1].tolist() == list(range(17))


# Several workers


WAYS = {
    "ddp": TINY,
    "fsdp": replace(TINY, sharded=True),
    "ddp, adafactor, t5": replace(TINY, preset="t5", optimizer="adafactor", rate=0.01),
    "fsdp, t5": replace(TINY, preset="t5", sharded=True),
}


def started(folder: Path, run: Run) -> Path:
    """Write the file of a run into a folder, and return the folder."""
    folder.mkdir(exist_ok=True)
    (folder / "run.toml").write_text(toml(run))
    return folder


def assert_same_weights(folder: Path, other: Path) -> None:
    torch.testing.assert_close(weights(folder), weights(other), rtol=0, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "start"),
    [
        ("fsdp", two_workers),
        *(pytest.param(way, torchrun, marks=pytest.mark.nightly) for way in WAYS),
    ],
)
def test_two_workers_match_one(
    tmp_path: Path, way: str, start: Callable[[Path, Callable[[], None]], Ended]
) -> None:
    """Losses agree within 1e-5 and weights within 1e-4, as the page on real scale says."""
    alone = plain_run(replace(WAYS[way], sharded=False), tmp_path / "alone")
    ran = start(started(tmp_path, WAYS[way]), train)
    assert ran.returncode == 0, ran.stdout
    two = json.loads((tmp_path / "two" / "record.json").read_text())
    assert two["machine"]["workers"] == 2
    for name in ("steps", "multiply_adds"):
        assert two["curve"][name] == alone["curve"][name]
    together, single = two["curve"], alone["curve"]
    assert together["train_loss"] == pytest.approx(single["train_loss"], abs=1e-5)
    for play, losses in single["held_out"].items():
        assert together["held_out"][play] == pytest.approx(losses, abs=1e-5)
    assert_same_weights(tmp_path / "two", tmp_path / "alone")


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("way", ["fsdp", "ddp"])
def test_two_workers_that_resume_match_one(tmp_path: Path, way: str) -> None:
    stopped = two_workers(started(tmp_path, WAYS[way]), train_half)
    # A sharded weight is a DTensor.
    held = "DTensor" if way == "fsdp" else "Parameter"
    assert stopped.stdout.split("\n").count(held) == 2, stopped.stdout
    assert (tmp_path / "two" / "checkpoint.pt").exists()
    ran = two_workers(tmp_path, train)
    assert ran.returncode == 0, ran.stdout
    plain_run(TINY, tmp_path / "alone")
    assert_same_weights(tmp_path / "two", tmp_path / "alone")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one_has", "start", "times"),
    [
        ("checkpoint.pt", two_workers, 10),
        pytest.param("record.json", two_workers, 10, marks=pytest.mark.nightly),
        pytest.param("record.json", torchrun, 1, marks=pytest.mark.nightly),
    ],
)
def test_workers_that_find_different_files_are_refused_without_deadlock(
    tmp_path: Path,
    one_has: str,
    start: Callable[[Path, Callable[[], None]], Ended],
    times: int,
) -> None:
    long_run(TINY, tmp_path, keep=True)
    (tmp_path / "0").mkdir()
    (tmp_path / one_has).rename(tmp_path / "0" / one_has)
    for _ in range(times):
        ran = start(started(tmp_path, TINY), train_apart)
        assert ran.returncode != 0
        assert f"{one_has} is not the same for all workers: put it on a" in ran.stdout


@pytest.mark.slow
def test_two_workers_do_not_repeat_a_recorded_run(tmp_path: Path) -> None:
    long_run(TINY, tmp_path / "two")
    before = (tmp_path / "two" / "record.json").read_text()
    ran = two_workers(started(tmp_path, TINY), train)
    assert ran.returncode == 0, ran.stdout
    assert (tmp_path / "two" / "record.json").read_text() == before


def test_workers_have_different_dropout_masks(tmp_path: Path) -> None:
    class SameRows(ScaledTraining):
        def part(self, batch: torch.Tensor) -> torch.Tensor:
            return batch

    run = replace(TINY, model=SIZES | {"dropout": 0.5})
    losses = []
    for rank in range(2):
        worker = SameRows(run, tmp_path)
        worker.rank = rank
        losses.append(worker.begin().step()["loss"])
    assert losses[0] != losses[1]


def test_batch_that_cannot_be_split_equally_is_refused(tmp_path: Path) -> None:
    odd = replace(TINY, batch=3)
    with pytest.raises(ValueError, match="batch 3 cannot be split between 2 workers"):
        OneOfTwo(odd, tmp_path).begin()


def test_sharded_run_needs_torchrun(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="with torchrun"):
        long_run(replace(TINY, sharded=True), tmp_path)


def test_sharded_adafactor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Adafactor needs whole matrices"):
        long_run(replace(TINY, sharded=True, optimizer="adafactor"), tmp_path)


def test_compiling_on_a_cpu_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="compiled needs a GPU"):
        long_run(replace(TINY, compiled=True), tmp_path)


@pytest.mark.parametrize(
    "preset",
    [
        "primer",
        pytest.param("t5", marks=pytest.mark.nightly),
        pytest.param("switch-primer", marks=pytest.mark.nightly),
    ],
)
def test_bfloat16_run_uses_bfloat16_and_learns_as_well(
    tmp_path: Path, preset: str
) -> None:
    run = replace(TINY, preset=preset, steps=40, rate=1e-2)
    wide = plain_run(run, tmp_path / "wide")
    seen = set[torch.dtype]()

    def see(layer: nn.Module, _: Any, out: torch.Tensor) -> None:
        if isinstance(layer, nn.Linear):
            seen.add(out.dtype)

    hook = nn.modules.module.register_module_forward_hook(see)
    half = long_run(replace(run, bfloat16=True), tmp_path / "half")
    hook.remove()
    assert torch.bfloat16 in seen
    assert half["curve"]["train_loss"] == pytest.approx(
        wide["curve"]["train_loss"], rel=0.02
    )
    # Weights and evaluations stay in float32.
    assert all(w.dtype == torch.float32 for w in weights(tmp_path / "half").values())


def test_compiling_a_model_with_auxiliary_losses_is_refused(tmp_path: Path) -> None:
    run = replace(TINY, preset="switch-primer", compiled=True)
    with pytest.raises(ValueError, match="switch-primer has auxiliary losses"):
        long_run(run, tmp_path)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpu_run_in_bfloat16_and_compiled_learns_as_well(tmp_path: Path) -> None:
    run = replace(TINY, steps=60, rate=1e-2)
    wide = long_run(run, tmp_path / "wide")
    fast = long_run(replace(run, bfloat16=True, compiled=True), tmp_path / "fast")
    assert fast["curve"]["train_loss"] == pytest.approx(
        wide["curve"]["train_loss"], rel=0.02
    )


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
def test_error_of_a_sharded_checkpoint_that_cannot_be_written_says_why(
    tmp_path: Path,
) -> None:
    half = training(TINY, tmp_path)
    half.save_parts(tmp_path / "checkpoint-1")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        message = r"checkpoint-2 cannot be written \(.* File too large\)\. If the disk"
        with pytest.raises(OSError, match=message):
            half.save_parts(tmp_path / "checkpoint-2")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-1"]


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("sharded", [True, False])
def test_workers_stop_together_and_a_sharded_checkpoint_is_in_parts(
    tmp_path: Path, sharded: bool
) -> None:
    started(tmp_path, replace(TINY, sharded=sharded))
    stopped = two_workers(tmp_path, train_until_one_is_asked_to_stop)
    assert stopped.returncode != 0
    assert stopped.stdout.count("stopped after step 5") >= 2
    saved = torch.load(tmp_path / "two" / "checkpoint.pt", weights_only=True)
    assert saved["done"] == 5
    parts = sorted(path.name for path in (tmp_path / "two").glob("checkpoint-5/*"))
    expected = [".metadata", "__0_0.distcp", "__1_0.distcp"] if sharded else []
    assert parts == expected
    assert ("model" in saved) is not sharded
    ran = two_workers(tmp_path, train)
    assert ran.returncode == 0, ran.stdout
    # Of several checkpoints the last one stays, from which the run can be prolonged.
    kept = [path.name for path in (tmp_path / "two").glob("checkpoint-*")]
    assert kept == (["checkpoint-8"] if sharded else [])
    plain_run(TINY, tmp_path / "alone")
    assert_same_weights(tmp_path / "two", tmp_path / "alone")


@pytest.mark.parametrize("sharded", [False, True])
def test_only_older_parts_of_a_sharded_checkpoint_are_removed(
    tmp_path: Path, sharded: bool
) -> None:
    names = {f"checkpoint-{what}" for what in ("2", "4", "best", "4-copy", "-1")}
    for name in names:
        (tmp_path / name).mkdir()
    stopped = ScaledTraining(replace(TINY, sharded=sharded), tmp_path)
    stopped.forget_parts(but="checkpoint-4")
    left = {path.name for path in tmp_path.glob("checkpoint-*")}
    assert left == (names - {"checkpoint-2"} if sharded else names)


# Less memory


PIECES = {
    "language model": replace(TINY, pieces=4),
    "encoder-decoder": replace(TINY, preset="t5", pieces=2),
}


@pytest.mark.parametrize("name", PIECES)
def test_batch_in_pieces_takes_the_same_steps(name: str, tmp_path: Path) -> None:
    run = PIECES[name]
    long_run(run, tmp_path / "pieces")
    plain_run(replace(run, pieces=1), tmp_path / "whole")
    torch.testing.assert_close(
        weights(tmp_path / "pieces"), weights(tmp_path / "whole"), rtol=0, atol=1e-4
    )


def test_pieces_of_a_batch_are_read_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = []
    in_pieces = training(replace(TINY, pieces=4), tmp_path)
    in_pieces.model.register_forward_hook(lambda _, x, y: rows.append(len(x[0])))
    in_pieces.step()
    assert rows == [1, 1, 1, 1]


def test_auxiliary_losses_of_pieces_are_averaged(tmp_path: Path) -> None:
    torch.manual_seed(0)
    run = training(replace(TINY, preset="switch-transformer", pieces=4), tmp_path)
    windows = draw_windows(run.texts.train, 4, 16, 0, 1)
    inputs = run.task.inputs(windows, torch.Generator())
    run.gradients(inputs)
    found = [weight.grad.clone() for weight in run.model.parameters()]
    run.optimizer.zero_grad()
    for piece in zip(*(each.chunk(4) for each in inputs), strict=True):
        run.task.loss(run.model, *piece).backward()  # each adds its layers' losses
    for got, weight in zip(found, run.model.parameters(), strict=True):
        torch.testing.assert_close(got, weight.grad / 4)


def test_pieces_that_are_not_equal_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="between 1 workers in 3 pieces"):
        long_run(replace(TINY, pieces=3), tmp_path)
    with pytest.raises(ValueError, match="4 cannot be split between 2 workers in 4"):
        OneOfTwo(replace(TINY, pieces=4), tmp_path).begin()


@pytest.mark.slow
@pytest.mark.parametrize(
    "sharded", [False, pytest.param(True, marks=pytest.mark.nightly)]
)
def test_two_workers_match_one_in_pieces_and_recomputed(
    tmp_path: Path, sharded: bool
) -> None:
    run = replace(TINY, pieces=2, recomputed=True, sharded=sharded)
    ran = two_workers(started(tmp_path, run), train)
    assert ran.returncode == 0, ran.stdout
    plain_run(TINY, tmp_path / "alone")
    assert_same_weights(tmp_path / "two", tmp_path / "alone")


@pytest.mark.parametrize(
    "preset",
    [
        "primer-ez",
        pytest.param("evolved-transformer", marks=pytest.mark.nightly),
        pytest.param("t5", marks=pytest.mark.nightly),
    ],
)
def test_recomputed_blocks_take_the_same_steps(preset: str, tmp_path: Path) -> None:
    run = replace(TINY, preset=preset, model=SIZES | {"layers": 2})
    if preset != "t5":
        run = replace(run, model=run.model | {"dropout": 0.1})
    plain_run(run, tmp_path / "kept")
    long_run(replace(run, recomputed=True), tmp_path / "recomputed")
    assert same_bits(weights(tmp_path / "kept"), weights(tmp_path / "recomputed"))


def test_recomputed_blocks_keep_less_for_the_backward_pass(tmp_path: Path) -> None:
    def kept(run: Run) -> int:
        numbers: dict[int, int] = {}

        def note(tensor: torch.Tensor) -> torch.Tensor:
            if not isinstance(tensor, nn.Parameter):
                numbers[tensor.data_ptr()] = tensor.numel()
            return tensor

        model = training(run, tmp_path).model
        tokens = torch.zeros(4, 16, dtype=torch.long)
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            model(tokens)
        return sum(numbers.values())

    run = replace(TINY, model=SIZES | {"layers": 4})
    assert kept(replace(run, recomputed=True)) < kept(run) / 4


def test_recomputing_a_model_with_auxiliary_losses_is_refused(tmp_path: Path) -> None:
    run = replace(TINY, preset="switch-primer", recomputed=True)
    with pytest.raises(ValueError, match="auxiliary losses and cannot be recomputed"):
        long_run(run, tmp_path)


# On a GPU


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_gpu_step_waits_once_uses_tf32_and_fused_adamw(tmp_path: Path) -> None:
    stepped = training(TINY, tmp_path)
    stepped.step()
    assert stepped.optimizer.defaults["fused"]
    assert torch.get_float32_matmul_precision() == "high"
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with pytest.warns(UserWarning, match="synchron") as waits:
            stepped.step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(waits) == 1


def test_settings_that_the_chapter_shows_can_be_run(own: Path) -> None:
    chapter = Path(method.__file__).read_text(encoding="utf-8")
    shown = re.findall(r"^    #     (\w+ = .*|\[\w+\].*)$", chapter, re.M)
    settings = tomllib.loads("\n".join(shown)) | {"data": str(own)}
    run = Run.of(settings)
    assert (
        run.build(256) and {"pieces", "recomputed", "decay", "model"} <= settings.keys()
    )
