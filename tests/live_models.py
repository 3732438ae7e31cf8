"""The models of the page "Write with it" as PyTorch computes with them, to compare with the page's."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import live
import torch
from torch import Tensor

from labml_primer.presets import PRESETS, LanguageModel

PLAY = """\
KING HENRY.
Once more unto the breach, dear friends, once more;
Or close the wall up with our English dead.
In peace there's nothing so becomes a man
As modest stillness and humility:
But when the blast of war blows in our ears,
Then imitate the action of the tiger;
"""


def committed(name: str) -> LanguageModel:
    """Return the model of a committed file, as PyTorch computes with it."""
    file, header = (live.FILES / f"{name}.bin").read_bytes(), live.header(name)
    at, weights = 4 + int.from_bytes(file[:4], "little"), {}
    for tensor in header["tensors"]:
        shape = tensor["shape"]
        if tensor["dtype"] == "int8":
            scales, at = taken(file, at, [shape[0], 1], torch.float32)
            numbers, at = taken(file, at, shape, torch.int8)
            weights[tensor["name"]] = numbers * scales
        else:
            weights[tensor["name"]], at = taken(file, at, shape, torch.float32)
    assert at == len(file)
    sizes = {key: header[key] for key in ("d_model", "heads", "d_ff", "layers")}
    vocab_size = len(header["symbols"])
    config = replace(
        PRESETS[name], vocab_size=vocab_size, max_seq=header["context"], **sizes
    )
    model = LanguageModel(config)
    model.load_state_dict(weights)
    return model


def taken(
    file: bytes, at: int, shape: list[int], dtype: torch.dtype
) -> tuple[Tensor, int]:
    size = torch.Size(shape).numel()
    found = torch.frombuffer(bytearray(file), dtype=dtype, count=size, offset=at)
    return found.view(shape), at + size * dtype.itemsize


def window_start(length: int, context: int) -> int:
    """Return the first token that the page's models read of a text."""
    start = 0
    while length - start > context:
        start += context // 2
    return start


@torch.no_grad()
def reference(model: LanguageModel, tokens: Sequence[int]) -> Tensor:
    """Return PyTorch's logits after each token, without a cache, within the page's windows."""
    context, rows = model.config.max_seq, []
    for length in range(1, len(tokens) + 1):
        start = window_start(length, context)
        rows.append(model(torch.tensor([tokens[start:length]]))[0, -1])
    return torch.stack(rows)


def error(found: Any, expected: Tensor) -> float:
    """Return the largest difference relative to the largest logit."""
    difference = torch.tensor(found) - expected
    return (difference.abs().max() / expected.abs().max()).item()
