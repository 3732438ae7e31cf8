"""The panels "Your own sentence": they compute what PyTorch computes, and stand where they say."""

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import live
import pytest
import torch
from built_book import ROOT
from docutils import nodes
from docutils.utils import new_document
from live import panels
from live_models import committed
from torch import Tensor, nn
from torch.nn import functional as F

from labml_primer.presets import LanguageModel
from labml_primer.primer.primer_ez import SpatialDepthWiseConvolution
from labml_primer.transformer.attention import attention_weights, causal_mask
from labml_primer.transformer.generation import keep_top_k, keep_top_p
from labml_primer.transformer.positional_encoding import positional_encoding

SENTENCE = "Now is the winter of our"
CHOICE = {"position": 13, "layer": 2, "head": 1, "feature": -1, "shift": 3}
CHOICE |= {"temperature": 2, "topK": 5, "topP": 0.9}  # both cuts cut
PLACE, LAYER, HEAD = CHOICE["position"], CHOICE["layer"], CHOICE["head"]

COMPUTE = f"""
import {{ readFileSync }} from "node:fs";
const files = "{live.FILES.as_uri()}/";
const {{ Model, parseModel }} = await import(files + "model.js");
const {{ LINES }} = await import(files + "panels/passages.js");
const {{ panels, sentence, choice }} = JSON.parse(readFileSync(0, "utf8"));
const found = {{ lines: LINES }};
for (const [name, model] of Object.entries(panels)) {{
  const file = readFileSync(new URL(files + model + ".bin"));
  const {{ config, weights }} = parseModel(new Uint8Array(file).buffer);
  const {{ compute, draw }} = await import(files + `panels/${{name}}.js`);
  found[name] = compute(new Model(config, weights), sentence, choice);
  found[name].drawn = draw(found[name]);
}}
console.log(JSON.stringify(found));
"""


@cache
def computed() -> dict[str, Any]:
    """Return what all panels compute of the sentence, in Node."""
    models = {name: panel["model"] for name, panel in panels.read_panels().items()}
    run = subprocess.run(
        [panels.NODE, "--input-type=module", "-e", COMPUTE],
        input=json.dumps({"panels": models, "sentence": SENTENCE, "choice": CHOICE}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return dict(json.loads(run.stdout))


# -- PyTorch's side ------------------------------------------------------------------------


def tokens_of(text: str) -> Tensor:
    symbols = live.header("transformer")["symbols"]
    return torch.tensor([[symbols.index(symbol) for symbol in text]])


@torch.no_grad()
def passed(model: LanguageModel, names: list[str], text: str) -> list[Any]:
    """Return the inputs and outputs of these layers, without the batch, while the model reads a text."""
    seen: dict[str, tuple[Tensor, Tensor]] = {}

    def note(name: str) -> Any:
        def hook(layer: nn.Module, given: tuple[Tensor, ...], result: Tensor) -> None:
            seen[name] = given[0][0], result[0]

        return hook

    hooks = [model.get_submodule(n).register_forward_hook(note(n)) for n in names]
    model(tokens_of(text))
    for hook in hooks:
        hook.remove()
    return [seen[name] for name in names]


@torch.no_grad()
def queries_and_keys(model: LanguageModel) -> tuple[Tensor, Tensor]:
    """Return those of the chosen head, `[seq, d_k]` each."""
    name = f"blocks.{LAYER}.attention"
    [(entered, _left)] = passed(model, [name], SENTENCE)
    query, key, _value = model.get_submodule(name).project(entered[None], entered[None])
    return query[0, :, HEAD], key[0, :, HEAD]


def weights_of(model: LanguageModel) -> Tensor:
    """Return the weights of the chosen head and character."""
    query, key = queries_and_keys(model)
    length = len(SENTENCE)
    found = attention_weights(query, key, causal_mask(length, length))
    return found[PLACE, : PLACE + 1]


def same(found: Any, expected: Tensor) -> None:
    numbers = torch.tensor(found, dtype=torch.float32)
    torch.testing.assert_close(numbers, expected, atol=2e-4, rtol=1e-3)


# -- a test for each panel -------------------------------------------------------------------


def test_the_row_and_its_neighbours_are_those_of_the_table() -> None:
    found, table = (
        computed()["embedding"],
        committed("transformer").embedding.weight.detach(),
    )
    token = int(tokens_of(SENTENCE)[0, PLACE])
    same(found["row"], table[token])
    cosines = F.cosine_similarity(table[token], table, dim=-1)
    best = cosines.topk(len(found["near"]) + 1)
    symbols = live.header("transformer")["symbols"]
    near = [each["symbol"] for each in found["near"]]
    assert near == [symbols[i] for i in best.indices[1:]]
    same([each["cosine"] for each in found["near"]], best.values[1:])


def test_attention_and_the_scores_in_both_directions_are_pytorchs() -> None:
    found, model = computed()["attention"], committed("transformer")
    same(found["weights"], weights_of(model))
    query, key = queries_and_keys(model)
    scores = (query @ key.T / query.size(-1) ** 0.5)[: PLACE + 1, : PLACE + 1]
    same(found["asks"], scores[PLACE])
    same(found["asked"], scores[:, PLACE])


def test_a_shift_moves_positions_and_predictions_as_in_pytorch() -> None:
    found, model = computed()["positions"], committed("transformer")
    seq, shift = len(SENTENCE), CHOICE["shift"]
    for name, rows in (
        ("sines", positional_encoding(seq + shift, model.config.d_model)),
        ("trained", model.positions.encoding.detach()),
    ):
        same(found[name], (rows[shift : shift + seq] - rows[:seq]).norm(dim=-1))
    symbols = live.header("transformer")["symbols"]
    for name in ("before", "after"):
        with torch.no_grad():
            best = model(tokens_of(SENTENCE))[0, -1].softmax(dim=-1).topk(5)
        assert [symbol for symbol, _ in found[name]] == [
            symbols[i] for i in best.indices
        ]
        same([share for _, share in found[name]], best.values)
        model.positions.encoding.data = model.positions.encoding.data[shift:]


def test_features_and_the_lines_on_which_one_fires_are_pytorchs() -> None:
    found, model = computed()["feed-forward"], committed("transformer")
    name = f"blocks.{LAYER}.feed_forward.activation"

    def features(text: str) -> Tensor:
        return passed(model, [name], text)[0][1]

    values = features(SENTENCE)[PLACE]
    best = values.topk(len(found["features"]))
    assert found["features"] == best.indices.tolist()
    same(found["values"], best.values)
    assert found["fires"] == (values > 0).sum()
    same(found["share"]["relu"], best.values.sum() / values.sum())
    squares = best.values.square().sum() / values.square().sum()
    same(found["share"]["square"], squares)
    places = [
        (text, at, value)
        for text in (SENTENCE, *computed()["lines"])
        for at, value in enumerate(features(text)[:, found["feature"]].tolist())
    ]
    places.sort(key=lambda place: -place[2])
    shown = [(each["text"], each["at"]) for each in found["texts"]]
    assert shown == [(text, at) for text, at, _ in places[: len(shown)]]
    same(
        [each["value"] for each in found["texts"]],
        torch.tensor([value for *_, value in places[: len(shown)]]),
    )


def test_lengths_of_the_stream_and_after_each_norm_are_pytorchs() -> None:
    found, model = computed()["normalization"], committed("transformer")
    names = [
        f"blocks.{layer}.{part}_norm"
        for layer in range(model.config.layers)
        for part in ("attention", "feed_forward")
    ]
    seen = passed(model, [*names, "norm"], SENTENCE)
    for name, side in (("lengths", 0), ("normed", 1)):
        same(found[name], torch.stack([pair[side][PLACE].norm() for pair in seen]))


def test_the_prediction_after_each_block_is_pytorchs() -> None:
    found, model = computed()["language-model"], committed("transformer")
    blocks = [f"blocks.{layer}" for layer in range(model.config.layers)]
    seen = passed(model, blocks, SENTENCE)
    stream = torch.stack([seen[0][0][PLACE], *(left[PLACE] for _, left in seen)])
    with torch.no_grad():
        logits = F.linear(model.norm(stream), model.embedding.weight)
    symbols = live.header("transformer")["symbols"]
    assert len(found["stages"]) == model.config.layers + 1
    for stage, odds in zip(found["stages"], logits.softmax(dim=-1), strict=True):
        best = odds.topk(len(stage["next"]))
        same([share for _, share in stage["next"]], best.values)
        assert stage["next"][0][0] == symbols[best.indices[0]]
        same(stage["actual"], odds[symbols.index(SENTENCE[PLACE + 1])])


def test_a_head_with_and_without_its_convolutions_is_pytorchs() -> None:
    found, model = computed()["primer-ez"], committed("primer-ez")
    same(found["with"], weights_of(model))
    attention = model.get_submodule(f"blocks.{LAYER}.attention")
    kernels = [attention.get_submodule(f"{k}_conv") for k in ("query", "key", "value")]
    for kernel, shown in zip(kernels, found["kernels"], strict=True):
        assert isinstance(kernel, SpatialDepthWiseConvolution)
        same(shown, kernel.weight[:, HEAD].detach())
        kernel.weight.data[:-1, HEAD] = 0
    same(found["without"], weights_of(model))


def test_cuts_of_the_next_character_are_the_chapters() -> None:
    found, model = computed()["generation"], committed("transformer")
    with torch.no_grad():
        logits = model(tokens_of(SENTENCE))[0, -1]
    scores = keep_top_k(logits / CHOICE["temperature"], int(CHOICE["topK"]))
    after = keep_top_p(scores, CHOICE["topP"]).softmax(dim=-1)
    best = logits.softmax(dim=-1).topk(len(found["next"]))
    same([each["before"] for each in found["next"]], best.values)
    same([each["after"] for each in found["next"]], after[best.indices])
    assert found["kept"] == (after > 0).sum()


# -- where panels stand, and what they name ----------------------------------------------------


@pytest.mark.parametrize("name", panels.read_panels())
def test_a_panel_names_lines_of_its_chapter_and_draws_its_numbers_as_a_table(
    name: str,
) -> None:
    panel = panels.read_panels()[name]
    module = (ROOT / f"{panel['page']}.py").read_text("utf-8")
    html = panels.panel_html(name, panel, module)
    for number, text in (panels.line_of(module, each) for each in panel["lines"]):
        assert module.split("\n")[number - 1].strip() == text
        assert f'href="#L{number}"' in html
    drawn = computed()[name]["drawn"]
    assert drawn["picture"].startswith("<svg") and drawn["words"]
    assert {len(row) for row in drawn["rows"]} == {len(drawn["head"])}


MODULE = "class A:\n    def f(self):\n        x = 1\n        return x\n\ndef g():\n    x = 2\n    x = 3\n"


@pytest.mark.parametrize(
    "named, number",
    [("A.f: x =", 3), ("A: x =", 3), ("A.f: y =", 0), ("B.f: x", 0), ("g: x =", 0)],
)
def test_a_named_line_that_is_gone_or_not_the_only_one_ends_the_build(
    named: str, number: int
) -> None:
    if number:
        assert panels.line_of(MODULE, named)[0] == number
        return
    with pytest.raises(live.LiveError, match="one is named"):
        panels.line_of(MODULE, named)


def row(*kinds: str, name: str = "") -> nodes.container:
    """Return a row of a page, as the engine makes it."""
    block = nodes.container(ids=[name] if name else [], classes=["sbs__block"])
    prose, code = nodes.container(), nodes.container("", block)
    classes = ["sbs__row", *(f"sbs__row--{kind}" for kind in kinds)]
    return nodes.container("", prose, code, classes=classes)


def test_a_panel_stands_after_all_code_of_its_definition() -> None:
    doctree = new_document("page")
    rows = [
        row("def1", "definition", name="A"),
        row("def2", "definition", name="A.f"),
        row("definition"),
        row("def1", "definition", name="B"),
        row("demo"),
    ]
    doctree += nodes.section("", *rows)
    assert panels.last_row(doctree, "A") is rows[2].children[1]
    assert panels.last_row(doctree, "B") is rows[3].children[1]
    with pytest.raises(live.LiveError, match="no code of C"):
        panels.last_row(doctree, "C")


def test_a_page_without_scripts_has_each_panels_picture_in_a_file_of_its_own(
    tmp_path: Path,
) -> None:
    panels.write_examples(tmp_path, str)
    for name in panels.read_panels():
        svg = (tmp_path / f"{name}.svg").read_text("utf-8")
        assert svg.startswith("<svg") and "<style>" in svg and "prefers-color" in svg
