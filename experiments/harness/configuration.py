"""The configuration of a long run: read from a file, frozen, and identified by its digest."""

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, get_origin

import torch

from experiments.harness.parts import part, rotary_scaled
from experiments.harness.tasks import SENTINELS
from experiments.records.runs import HELD_OUT
from labml_primer.compared.synthesizer import SyntheticAttention
from labml_primer.compared.t5 import T5, T5_PRESETS
from labml_primer.presets import PRESETS, LanguageModel
from labml_primer.since.rotary import POSITIONS, NoPositions
from labml_primer.transformer.language_model import Config

CHOICES = {
    "preset": (*PRESETS, *T5_PRESETS),
    "optimizer": ("adamw", "adafactor"),
    "decay": ("everything", "matrices"),
    "schedule": ("inverse square root", "linear"),
}

KINDS_OF_POSITIONS = {**POSITIONS, "rotary-scaled": rotary_scaled}
"""The positions that a model may have, by name."""

REAL_SCALE = ("bfloat16", "compiled", "sharded", "pieces", "recomputed")
"""The settings of `Run` that `experiments.real_scale` implements."""

ENCODER = "encoder-block"
"""The name of the block that makes an encoder of a language model, with the task of BERT."""

WRITTEN: dict[Any, str] = {
    str: "a text in quotes",
    int: "a whole number, such as 20000",
    float: "a number, such as 0.001",
    bool: "true or false",
    list: "a list, such as [0.001, 0.002]",
    Mapping: "a table, such as [model]",
}
"""How a setting of each type is written in a file."""


def is_of_type(value: Any, kind: Any) -> bool:
    """Return whether a value is of a setting's type. A whole number is a number, too; `true` is none."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def settings_of(preset: str) -> dict[str, Any]:
    """Return the settings that a model of this preset has, with the type of each."""
    config = PRESETS[preset] if preset in PRESETS else T5_PRESETS[preset]
    values = {each.name: getattr(config, each.name) for each in fields(config)}
    # A part is a class, and a file has its name. Data and `seq` determine two sizes.
    return {
        name: str if isinstance(value, type) else type(value)
        for name, value in values.items()
        if isinstance(value, (int, float, type))
        and name not in ("vocab_size", "max_seq")
    }


def check_model(preset: str, model: Mapping[str, Any]) -> None:
    """Raise `ValueError` for an unknown setting of a model, one of another type, or an impossible number."""
    known = settings_of(preset)
    for name, value in model.items():
        if name not in known:
            listed = ", ".join(known)
            raise ValueError(f"unknown setting {name}; known for {preset}: {listed}")
        if not is_of_type(value, known[name]):
            raise ValueError(f"{name} {value!r} is not {WRITTEN[known[name]]}")
        if known[name] is int and value <= 0:
            raise ValueError(f"{name} {value} is not positive")
        if known[name] is float and not 0 <= value < 1:
            raise ValueError(f"{name} {value} is not at least 0 and below 1")


@dataclass(frozen=True)
class Run:
    """Everything that a run's numbers depend on, except the code.

    `model` replaces fields of the preset's configuration; strings are names of
    `experiments.harness.parts.PARTS`. With `block` "encoder-block" a language model becomes an encoder, and
    predicts masked tokens. Its `positions` is a name of `KINDS_OF_POSITIONS`. The learning rate rises to
    `rate` over `warmup` steps, then falls with the inverse square root of the step, or with the `schedule`
    "linear" on a straight line that reaches zero one step after the last.
    With Adafactor there is no warm-up: the rate is the smaller of `rate` and the inverse square root, which
    for 0.01 is the paper's schedule.

    `data` is "characters" or "subwords" of the plays, "code", or a folder with a text of your own. `decay`
    says whether AdamW's weight decay acts on every parameter, or only on matrices: not on norms, biases,
    embeddings and positions. Kernels of convolutions, MDHA's too, count as matrices.

    No plan uses `bfloat16`, `compiled`, `sharded`, `pieces`, `recomputed` and texts of your own:
    `experiments/real_scale/README.md` says what they do.

    With `whole`, a language model also reads every held-out play from beginning to end after its last step.

    Never change a default: a digest covers only what differs from the defaults. Raises `ValueError`
    for settings that cannot be run.
    """

    preset: str = "transformer"
    model: Mapping[str, Any] = field(default_factory=dict, hash=False)
    data: str = "characters"
    steps: int = 1200
    batch: int = 16
    seq: int = 128
    optimizer: str = "adamw"
    rate: float = 4e-3
    warmup: int = 100
    seed: int = 0
    evaluations: int = 24
    bfloat16: bool = False
    compiled: bool = False
    sharded: bool = False
    whole: bool = False
    decay: str = "everything"
    pieces: int = 1
    recomputed: bool = False
    schedule: str = "inverse square root"

    def __post_init__(self) -> None:
        for each in fields(self):
            kind: Any = get_origin(each.type) or each.type
            if not is_of_type(value := getattr(self, each.name), kind):
                raise ValueError(f"{each.name} {value!r} is not {WRITTEN[kind]}")
        for name, choices in CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise ValueError(f"{name} {value!r} is not one of {', '.join(choices)}")
        if self.data not in HELD_OUT and not Path(self.data).is_dir():
            raise ValueError(
                f"data {self.data!r} is not one of {', '.join(HELD_OUT)}, and not a folder"
            )
        for name in ("steps", "batch", "seq", "rate", "warmup", "pieces"):
            if not 0 < (value := getattr(self, name)) < math.inf:
                raise ValueError(f"{name} {value} is not positive and finite")
        if not 1 <= self.evaluations <= self.steps:
            raise ValueError(
                f"{self.evaluations} evaluations do not fit {self.steps} steps; give evaluations, from 1 to "
                f"{self.steps}"
            )
        for name, own in (
            ("decay", "no weight decay"),
            ("schedule", "its own schedule"),
        ):
            if (
                self.optimizer == "adafactor"
                and getattr(self, name) != CHOICES[name][0]
            ):
                raise ValueError(
                    f"Adafactor has {own} here: leave {name} out, or use adamw"
                )
        if self.whole and not self.predicts_next:
            raise ValueError("only a language model reads whole plays")
        try:
            check_model(self.preset, self.model)
        except ValueError as error:
            raise ValueError(f"model: {error}") from error

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "Run":
        """Return the run with these settings. Raises `ValueError` for unknown settings."""
        known = [each.name for each in fields(cls)]
        if unknown := settings.keys() - set(known):
            names = ", ".join(sorted(unknown))
            raise ValueError(f"unknown settings: {names}; known: {', '.join(known)}")
        return cls(**settings)

    @classmethod
    def read(cls, path: Path) -> "Run":
        """Read a run from a TOML file. Errors name the path.

        Raises `ValueError`, also if the run cannot be built, and `FileNotFoundError`.
        """
        try:
            run = cls.of(tomllib.loads(path.read_text(encoding="utf-8")))
            try_to_build(run)
            return run
        except FileNotFoundError:
            raise FileNotFoundError(f"{path}: there is no such file") from None
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    @property
    def digest(self) -> str:
        """A hash of the configuration. It stays the same when fields are added to `Run`."""
        default = asdict(Run())
        chosen = {k: v for k, v in asdict(self).items() if v != default[k]}
        return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()

    @property
    def predicts_next(self) -> bool:
        """Whether the model predicts the next token. T5 and an encoder fill gaps instead."""
        return self.preset not in T5_PRESETS and self.model.get("block") != ENCODER

    def plain(self) -> "Run":
        """Return the run without its settings of real scale: its steps are the same up to rounding."""
        return replace(self, **{name: getattr(Run(), name) for name in REAL_SCALE})

    def build(self, vocab_size: int) -> LanguageModel | T5:
        """Return the model before the first step, initialized with `seed`.

        Raises `ValueError` for an unknown part, or one in another's place.
        """
        try:
            changes: dict[str, Any] = {
                name: part(value) if isinstance(value, str) else value
                for name, value in self.model.items()
                if name != "positions"
            }
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.seed)
                if self.preset in T5_PRESETS:
                    changes["vocab_size"] = vocab_size + SENTINELS
                    return T5(replace(T5_PRESETS[self.preset], **changes))
                # An encoder has one token more, which masks others.
                tokens = vocab_size if self.predicts_next else vocab_size + 1
                changes |= {"vocab_size": tokens, "max_seq": self.seq}
                config = replace(PRESETS[self.preset], **changes)
                if "positions" in self.model:
                    config = with_positions(config, self.model["positions"])
                return LanguageModel(config)
        except (TypeError, ValueError) as error:
            raise ValueError(f"model: {error}") from error


def with_positions(config: Config, name: str) -> Config:
    """Return `config` with these positions. Raises `ValueError` if there are none, or none that fit."""
    if name not in KINDS_OF_POSITIONS:
        raise ValueError(
            f"positions {name!r} is not one of {', '.join(KINDS_OF_POSITIONS)}"
        )
    if config.positions is NoPositions and not name.startswith("rotary"):
        raise ValueError("the attention of this preset is rotary: leave positions out")
    compared = name not in ("learned", "sinusoidal")
    if compared and issubclass(config.attention, SyntheticAttention):
        raise ValueError(
            f"positions {name!r} are for scores of queries and keys, and a Synthesizer has none"
        )
    return KINDS_OF_POSITIONS[name](config)


@cache
def try_to_build(run: Run) -> None:
    """Raise `ValueError` if a run's model cannot be built. Its weights are not allocated."""
    with torch.device("meta"):
        run.build(vocab_size=256)


def changes(before: Run, now: Run) -> str:
    """Say which settings of two runs differ, such as "rate 0.004 is now 0.001"."""
    old, new = (
        {**asdict(run), "model": "", **{f"model.{k}": v for k, v in run.model.items()}}
        for run in (before, now)
    )
    return ", ".join(
        f"{name} {old.get(name, 'unset')} is now {new.get(name, 'unset')}"
        for name in old | new
        if old.get(name) != new.get(name)
    )
