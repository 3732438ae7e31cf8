"""Tokens per second of the same models in other libraries, each with its own KV cache, compared with ours."""

import os

import torch
from torch import Tensor, nn

from benchmarks import peers
from benchmarks.generation import IN_A_ROW, Writer
from benchmarks.measure import command, compared, in_turns
from benchmarks.step import LAYERS, VOCAB_SIZE, sized
from labml_primer import LanguageModel
from labml_primer.transformer.generation import cached

TWINS = {
    "x-transformers": "Transformer, squared ReLU",
    "GPT-2": "Transformer",
    "Llama": "modern",
}
PAIRS = tuple((theirs, ours) for theirs, ours in TWINS.items())


def writers(d_model: int, text: Tensor) -> dict[str, Writer]:
    """Ours, and each twin under the name of where it comes from."""
    presets = {
        "Transformer": "transformer",
        "Transformer, squared ReLU": "transformer-squared-relu",
        "modern": "modern",
    }
    ours: dict[str, LanguageModel] = {}
    for name, preset in presets.items():
        model = LanguageModel(sized(preset, d_model, text.size(1))).eval()
        for (
            parameter
        ) in model.parameters():  # the twins differ in no weight that is zero
            nn.init.normal_(parameter, std=0.1)
        ours[name] = model
    peers.without_biases_it_lacks(ours["Transformer, squared ReLU"])
    found = {name: Writer(model, text, cached) for name, model in ours.items()}
    squared = peers.x_model(ours["Transformer, squared ReLU"], ff_relu_squared=True)
    found["x-transformers"] = Writer(squared.eval(), text, peers.XReader)
    gpt2, llama = (
        peers.gpt2_model(ours["Transformer"]),
        peers.llama_model(ours["modern"]),
    )
    found["GPT-2"] = Writer(gpt2, text, peers.HuggingFaceReader)
    found["Llama"] = Writer(llama, text, peers.HuggingFaceReader)
    return found


def written(writer: Writer, tokens: int) -> list[int]:
    """The text that a model continues with, by the best token after each."""
    reader, new = writer.remembering(writer.model), writer.text[:, :8]
    text = []
    for _ in range(tokens):
        new = reader(new)[:, -1:].argmax(dim=-1)
        text.append(new.item())
    return text


def check_texts(found: dict[str, Writer]) -> None:
    """Raises `ValueError` unless each twin writes the text of ours."""
    for theirs, ours in TWINS.items():
        texts = [written(found[name], IN_A_ROW) for name in (theirs, ours)]
        if texts[0] != texts[1]:
            raise ValueError(
                f"{theirs} is no twin: it writes {texts[0]}, ours {texts[1]}"
            )


@torch.no_grad()
def measure(d_model: int, length: int) -> dict[str, object]:
    found = writers(d_model, torch.randint(VOCAB_SIZE, (1, length)))
    check_texts(found)
    taken = in_turns(
        {name: writer.write for name, writer in found.items()},
        seconds=10,
        rounds=15,
        before=lambda name: found[name].begin(),
    )
    speeds = {name: [IN_A_ROW / each for each in taken[name]] for name in taken}
    return compared({"d_model": d_model, "length": length}, speeds, PAIRS)


if __name__ == "__main__":
    torch.set_num_threads(1)
    command(
        "generation_elsewhere",
        "tokens/s",
        [{"d_model": d, "length": 256} for d in (128, 256)],
        measure,
        ("x-transformers", "transformers"),
        layers=LAYERS,
        vocab_size=VOCAB_SIZE,
        batch=1,
        tokens_in_a_row=IN_A_ROW,
        load=round(os.getloadavg()[0]),
    )
