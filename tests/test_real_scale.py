"""Tests of what long runs need at real scale: own texts, less memory, stops that lose nothing."""

import json
import math
import os
import re
import signal
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from test_long_runs import (
    SIZES,
    TINY,
    on_one_core,
    same_bits,
    timeless,
    toml,
    two_workers,
    weights,
)
from torch import nn

from experiments.chapters import method
from experiments.harness import long_run as module
from experiments.harness.configuration import Run
from experiments.harness.long_run import (
    StoppedError,
    Training,
    long_run,
    not_matrices,
    optimizer_of,
)
from experiments.harness.parallel import Workers
from experiments.harness.tasks import whole_loss
from experiments.harness.texts import Files, load_texts
from labml_primer.compared.t5 import T5_PRESETS
from labml_primer.presets import PRESETS
from labml_primer.primer.faster import faster
from labml_primer.training.loop import (
    draw_windows,
    held_out_windows,
    next_character_loss,
)

__all__ = ["on_one_core"]  # a fixture that acts here too


@pytest.fixture(autouse=True)
def nobody_asks_to_stop() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)
    module.ASKED_TO_STOP.clear()


def training(run: Run, folder: Path) -> Training:
    return Training(run, folder, Workers())


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
    texts = load_texts(str(own))
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
    texts = load_texts(str(own))
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
    texts = load_texts(str(own))
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


@pytest.mark.parametrize("steps", [TINY.steps, 2 * TINY.steps])
@pytest.mark.parametrize("changed", ["edited", "renamed", "added"])
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
    load_texts.cache_clear()
    name = "record.json" if steps == TINY.steps else r"checkpoint\.pt"
    message = f"the texts in {own} have changed since .*{name} was written; restore"
    with pytest.raises(ValueError, match=message):
        long_run(replace(run, steps=steps), folder)
    assert {path: path.read_bytes() for path in folder.glob("*.*")} == before
    if changed == "edited":
        path.write_bytes(text)
        load_texts.cache_clear()
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


# Finished runs can be prolonged


def test_finished_run_is_prolonged_as_if_it_had_not_ended(tmp_path: Path) -> None:
    model = SIZES | {"dropout": 0.1}
    long = replace(TINY, model=model, steps=8, evaluations=4)
    whole = long_run(long, tmp_path / "whole")
    half = long_run(replace(long, steps=4, evaluations=2), tmp_path / "run", keep=True)
    assert half["curve"]["steps"] == [2, 4]
    prolonged = long_run(long, tmp_path / "run")
    assert timeless(prolonged) == timeless(whole)
    assert same_bits(weights(tmp_path / "run"), weights(tmp_path / "whole"))
    # Without `keep` the checkpoint goes.
    assert not (tmp_path / "run" / "checkpoint.pt").exists()


def test_run_is_not_prolonged_into_another_or_a_shorter_one(tmp_path: Path) -> None:
    long_run(TINY, tmp_path, keep=True)
    wider = SIZES | {"d_ff": 64, "positions": "rotary"}
    others: dict[str, dict[str, Any]] = {
        "rate 0.004 is now 0.001": {"rate": 1e-3, "steps": 16},
        "steps 8 is now 4": {"steps": 4},
        "model.d_ff 32 is now 64, model.positions unset is now rotary": {
            "model": wider
        },
    }
    for changes, other in others.items():
        message = rf"checkpoint.pt belongs to another run \({changes}\); use another "
        with pytest.raises(ValueError, match=message):
            long_run(replace(TINY, **other), tmp_path)


def command(monkeypatch: pytest.MonkeyPatch, folder: Path, run: Run) -> None:
    """Give the command of a run."""
    folder.mkdir(exist_ok=True)
    (folder / "run.toml").write_text(toml(run))
    words = ["long_run", str(folder / "run.toml"), str(folder / "run")]
    monkeypatch.setattr(sys, "argv", words)
    module.main()


def test_command_keeps_what_it_needs_to_prolong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command(monkeypatch, tmp_path, replace(TINY, steps=4))
    command(monkeypatch, tmp_path, TINY)
    whole = long_run(TINY, tmp_path / "whole")
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    assert record["curve"]["held_out"]["macbeth"][-1] == pytest.approx(
        whole["curve"]["held_out"]["macbeth"][-1], abs=1e-9
    )
    assert record["curve"]["steps"] == [1, 2, 3, 4, 6, 8]


def test_command_prints_the_last_losses_and_whether_the_run_was_already_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed() -> list[str]:
        command(monkeypatch, tmp_path, TINY)
        return capsys.readouterr().out.splitlines()

    path = tmp_path / "run" / "record.json"
    first = printed()
    record = json.loads(path.read_text())
    curve = record["curve"]
    losses = {"training, per token": curve["train_loss"]} | curve["held_out"]
    assert first == [
        "losses after step 8, in nats per character:",
        *(f"  {each[-1]:.4f}  {name}" for name, each in losses.items()),
        f"recorded in {path}",
    ]
    assert printed() == [*first[:-1], f"already recorded in {path}"]
    # A record that is out of date is replaced.
    path.write_text(json.dumps(record | {"fingerprint": [1.0, 1.0]}))
    (tmp_path / "run" / "checkpoint.pt").unlink()
    assert printed() == first


def test_command_fails_each_time_for_a_run_that_diverged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diverging = replace(TINY, rate=1e9)
    with pytest.raises(SystemExit, match=r"run: at step 2 the loss is .*diverged\.pt"):
        command(monkeypatch, tmp_path, diverging)
    message = r"run: diverged at step 2, as recorded in .*record\.json"
    for _ in range(2):
        with pytest.raises(SystemExit, match=message):
            command(monkeypatch, tmp_path, diverging)


def test_command_refuses_to_save_every_zero_steps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["long_run", "run.toml", "run", "--save-every", "0"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit):
        module.main()
    message = "argument --save-every: '0' is not a whole number above 0"
    assert message in capsys.readouterr().err


def test_second_run_in_the_same_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, refused = Training.step, []

    def start_another(training: Training) -> None:
        if training.done == 2:
            with pytest.raises(SystemExit) as error:
                command(monkeypatch, tmp_path, TINY)
            refused.append(str(error.value))
        step(training)

    with monkeypatch.context() as patched:
        patched.setattr(Training, "step", start_another)
        record = long_run(TINY, tmp_path / "run")
    assert refused == [f"another process trains in {tmp_path / 'run'}"]
    assert timeless(record) == timeless(long_run(TINY, tmp_path / "alone"))


# SIGTERM


def test_run_that_gets_sigterm_saves_its_last_step_and_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, taken = Training.step, []

    def noted(training: Training) -> None:
        if training.folder == tmp_path / "run":  # not a step of the fingerprint
            taken.append(training.done + 1)
            if taken == [1, 2, 3]:
                os.kill(os.getpid(), signal.SIGTERM)
        step(training)

    monkeypatch.setattr(Training, "step", noted)
    with pytest.raises(SystemExit, match=r"stopped after step 3; the same command"):
        command(monkeypatch, tmp_path, TINY)
    assert not (tmp_path / "run" / "record.json").exists()
    module.ASKED_TO_STOP.clear()
    command(monkeypatch, tmp_path, TINY)
    assert taken == [1, 2, 3, 4, 5, 6, 7, 8]
    long_run(TINY, tmp_path / "whole")
    assert same_bits(weights(tmp_path / "run"), weights(tmp_path / "whole"))


@pytest.mark.parametrize("step", [4, TINY.steps])
def test_run_that_is_stopped_at_an_evaluation_saves_first_and_evaluates_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    take, evaluate = Training.step, Training.evaluate

    def asked(training: Training) -> None:
        if training.done == step - 1:
            module.ASKED_TO_STOP.set()
        take(training)

    def killed(training: Training) -> None:
        if training.done == step:
            raise KeyboardInterrupt
        evaluate(training)

    with monkeypatch.context() as patched:
        patched.setattr(Training, "step", asked)
        patched.setattr(Training, "evaluate", killed)
        with pytest.raises((StoppedError, KeyboardInterrupt)):
            long_run(TINY, tmp_path / "run")
    module.ASKED_TO_STOP.clear()
    saved = torch.load(tmp_path / "run" / "checkpoint.pt", weights_only=True)
    assert saved["done"] == step and saved["curve"]["steps"][-1] == step - 2
    resumed = long_run(TINY, tmp_path / "run")
    assert timeless(resumed) == timeless(long_run(TINY, tmp_path / "whole"))
    assert same_bits(weights(tmp_path / "run"), weights(tmp_path / "whole"))


def test_sigterm_at_the_last_step_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Training.step

    def noted(training: Training) -> None:
        if training.done == TINY.steps - 1:
            module.ASKED_TO_STOP.set()
        step(training)

    monkeypatch.setattr(Training, "step", noted)
    assert long_run(TINY, tmp_path)["curve"]["steps"][-1] == TINY.steps


# One worker gets the signal; both must stop after the same step.
ONE_IS_ASKED = """
import os, sys
from unittest.mock import patch
from experiments.chapters import method
from experiments.harness import long_run as module

step = module.Training.step
def asked(training):
    if training.done == 4 and os.environ["RANK"] == "1":
        module.ASKED_TO_STOP.set()
    step(training)
with patch.object(module.Training, "step", asked):
    with patch.object(sys, "argv", ["long_run", "run.toml", "two"]):
        module.main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("sharded", [False, True])
def test_workers_stop_together_and_a_sharded_checkpoint_is_in_parts(
    tmp_path: Path, sharded: bool
) -> None:
    run = replace(TINY, sharded=sharded)
    (tmp_path / "run.toml").write_text(toml(run))
    (tmp_path / "asked.py").write_text(ONE_IS_ASKED)
    stopped = two_workers(tmp_path, "asked.py")
    assert stopped.returncode != 0
    assert stopped.stderr.count("stopped after step 5") >= 2
    saved = torch.load(tmp_path / "two" / "checkpoint.pt", weights_only=True)
    assert saved["done"] == 5
    parts = sorted(path.name for path in (tmp_path / "two").glob("checkpoint-5/*"))
    expected = [".metadata", "__0_0.distcp", "__1_0.distcp"] if sharded else []
    assert parts == expected
    assert ("model" in saved) is not sharded
    ran = two_workers(tmp_path, "-m", "experiments.harness.long_run", "run.toml", "two")
    assert ran.returncode == 0, ran.stderr
    # Of several checkpoints the last one stays, from which the run can be prolonged.
    kept = [path.name for path in (tmp_path / "two").glob("checkpoint-*")]
    assert kept == (["checkpoint-8"] if sharded else [])
    long_run(TINY, tmp_path / "alone")
    torch.testing.assert_close(
        weights(tmp_path / "two"), weights(tmp_path / "alone"), rtol=0, atol=1e-4
    )


def test_weights_are_written_without_the_optimizer_and_before_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gathered = module.whole_state
    calls = []

    def noted(*both: Any) -> dict[str, Any]:
        calls.append(both)
        return gathered(*both)

    def interrupted(training: Training, _: None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "whole_state", noted)
    monkeypatch.setattr(Training, "record", interrupted)
    with pytest.raises(KeyboardInterrupt):
        long_run(TINY, tmp_path)
    assert len(calls) == 1  # for the checkpoint
    saved = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert same_bits(weights(tmp_path), saved["model"])


@pytest.mark.parametrize("sharded", [False, True])
def test_only_older_parts_of_a_sharded_checkpoint_are_removed(
    tmp_path: Path, sharded: bool
) -> None:
    names = {f"checkpoint-{what}" for what in ("2", "4", "best", "4-copy", "-1")}
    for name in names:
        (tmp_path / name).mkdir()
    stopped = training(TINY, tmp_path)
    stopped.run = replace(TINY, sharded=sharded)  # without torchrun
    stopped.forget_shards(but="checkpoint-4")
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
    long_run(replace(run, pieces=1), tmp_path / "whole")
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


def test_pieces_that_are_not_equal_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="batch 4 cannot be read in 3 equal pieces"):
        replace(TINY, pieces=3)
    workers = Workers()
    workers.count = 2
    with pytest.raises(ValueError, match="4 cannot be split between 2 workers in 4"):
        Training(replace(TINY, pieces=4), tmp_path, workers)


@pytest.mark.slow
def test_two_workers_match_one_in_pieces_and_recomputed(tmp_path: Path) -> None:
    for sharded in (False, True):
        folder = tmp_path / str(sharded)
        folder.mkdir()
        run = replace(TINY, pieces=2, recomputed=True, sharded=sharded)
        (folder / "run.toml").write_text(toml(run))
        ran = two_workers(
            folder, "-m", "experiments.harness.long_run", "run.toml", "two"
        )
        assert ran.returncode == 0, ran.stderr
        long_run(TINY, folder / "alone")
        torch.testing.assert_close(
            weights(folder / "two"), weights(folder / "alone"), rtol=0, atol=1e-4
        )


@pytest.mark.parametrize("preset", ["primer-ez", "evolved-transformer", "t5"])
def test_recomputed_blocks_take_the_same_steps(preset: str, tmp_path: Path) -> None:
    run = replace(TINY, preset=preset, model=SIZES | {"layers": 2})
    if preset != "t5":
        run = replace(run, model=run.model | {"dropout": 0.1})
    long_run(run, tmp_path / "kept")
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


# Weight decay


PLAIN = "query key value output expand contract"
KERNELS = "query_conv key_conv value_conv"
DECAYED = {
    "transformer": PLAIN,
    "transformer-gelu": PLAIN,
    "transformer-pp": f"{PLAIN} gate",
    "transformer-squared-relu": PLAIN,
    "transformer-mdha": f"{PLAIN} {KERNELS}",
    "transformer-sep-conv": f"{PLAIN} {KERNELS}",
    "primer-ez": f"{PLAIN} {KERNELS}",
    "primer": f"{PLAIN} key_conv value_conv",
    "evolved-transformer": f"{PLAIN} depthwise pointwise",
    "synthesizer-dense": "query targets value output expand contract",
    "synthesizer-factorized-dense": "query rows columns value output expand contract",
    "synthesizer-random": "value output expand contract",
    "synthesizer-factorized-random": "value output expand contract",
    "switch-transformer": f"{PLAIN} router",
    "switch-primer": f"{PLAIN} {KERNELS} router",
    "modern": f"{PLAIN} gate",
    "modern-primer-ez": f"{PLAIN} {KERNELS}",
    "t5": PLAIN,
    "t5-gelu": PLAIN,
    "t5-pp": f"{PLAIN} gate",
    "t5-primer-ez-decoder": f"{PLAIN} {KERNELS} gate",
}
"""The weights that decay with `decay = "matrices"`. Their biases, and all else, do not."""


@pytest.mark.parametrize("preset", [*PRESETS, *T5_PRESETS])
def test_weight_decay_on_matrices_spares_norms_biases_embeddings(preset: str) -> None:
    sizes = SIZES | ({"layers": 2} if preset == "evolved-transformer" else {})
    model = Run(preset, sizes, decay="matrices").build(83)
    spared = not_matrices(model)
    short = {
        name: name.removesuffix(".weight").rpartition(".")[2]
        for name, _ in model.named_parameters()
    }
    expected = set(DECAYED[preset].split())
    assert {part for name, part in short.items() if name not in spared} == expected
    assert not {short[name] for name in spared} & expected


def test_weight_decay_shrinks_matrices_only_if_asked() -> None:
    for decay in ("everything", "matrices"):
        run = replace(TINY, decay=decay)
        model = run.build(83)
        before = {name: w.detach().clone() for name, w in model.named_parameters()}
        optimizer, _ = optimizer_of(run, model)
        for weight in model.parameters():
            weight.grad = torch.zeros_like(weight)
        optimizer.step()
        spared = not_matrices(model) if decay == "matrices" else set[str]()
        for name, weight in model.named_parameters():
            factor = 1.0 if name in spared else 1 - 0.01 * run.rate
            torch.testing.assert_close(weight, factor * before[name])


def test_weight_decay_on_matrices_with_adafactor_which_has_none_is_refused() -> None:
    with pytest.raises(ValueError, match="leave decay out, or use adamw"):
        replace(TINY, decay="matrices", optimizer="adafactor")


# What is logged, and speed on a GPU


def test_log_has_the_norm_of_the_gradient_and_the_speed(tmp_path: Path) -> None:
    stepped = training(TINY, tmp_path)
    norms: list[float] = []
    clip = nn.utils.clip_grad_norm_

    def noted(*arguments: Any) -> torch.Tensor:
        norms.append(clip(*arguments).item())
        return torch.tensor(norms[-1])

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(nn.utils, "clip_grad_norm_", noted)
        stepped.step()
    measured = stepped.measured()
    assert measured["gradient.norm"] == pytest.approx(norms[0]) and norms[0] > 0
    long_run(TINY, tmp_path / "run")
    (log,) = (tmp_path / "run" / "labml").rglob("log.jsonl")
    tracked = json.loads(log.read_text().splitlines()[0])["track"]
    assert {"loss", "gradient.norm", "tokens.per.second"} <= tracked.keys()


def test_speed_is_per_second_of_the_clock_however_many_threads_compute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = {"now": 0.0}

    def two_seconds(*batch: Any) -> torch.Tensor:
        clock["now"] += 2
        return draw_windows(*batch)

    monkeypatch.setattr(module, "draw_windows", two_seconds)
    monkeypatch.setattr(time, "perf_counter", lambda: clock["now"])
    monkeypatch.setattr(time, "process_time", lambda: 8 * clock["now"])
    stepped = training(TINY, tmp_path)
    stepped.step()
    assert stepped.measured()["tokens.per.second"] == 4 * 16 / 2
    assert stepped.seconds == 8 * 2


def test_steps_of_a_plain_run_are_those_of_a_plain_loop_to_the_bit(
    tmp_path: Path,
) -> None:
    """So no setting that has a default changes a step."""
    plain, texts = training(TINY, tmp_path), load_texts("characters")
    model = faster(TINY.build(texts.vocab_size))
    optimizer = torch.optim.AdamW(
        model.parameters(), betas=(0.9, 0.98), weight_decay=0.01
    )
    for step in range(1, 9):
        plain.step()
        rate = 4e-3 * min(step / 4, math.sqrt(4 / step))
        optimizer.param_groups[0]["lr"] = rate
        windows = draw_windows(texts.train, 4, 16, 1, step)
        optimizer.zero_grad()
        next_character_loss(model, windows).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    assert same_bits(plain.model.state_dict(), model.state_dict())


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
