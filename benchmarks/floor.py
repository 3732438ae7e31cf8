"""How close a training step comes to the speed of the matrix products of which it mostly consists."""

from collections.abc import Callable

import torch

from benchmarks.measure import command, compared, in_turns
from benchmarks.step import LAYERS, TOKENS, VOCAB_SIZE, sized, training_step
from labml_primer import LanguageModel
from labml_primer.primer.faster import faster
from labml_primer.training.costs import costs

SQUARE = 2048
NAMES = {"Transformer": "transformer", "Primer-EZ": "primer-ez"}
PAIRS = tuple(
    (name, product)
    for name in NAMES
    for product in ("square product", "products of its own sizes")
)


def operations(model: LanguageModel, tokens: int) -> int:
    """Operations of a step: each product of the forward pass has two in the backward pass."""
    products = sum(per_token for _, per_token in costs(model).values())
    return 2 * 3 * products * tokens


def product(*sizes: tuple[int, int, int]) -> tuple[Callable[[], None], int]:
    """Products of matrices of these sizes, one after another, and their operations."""
    matrices = [
        (torch.randn(n, k), torch.randn(k, m), torch.empty(n, m)) for n, k, m in sizes
    ]

    def call() -> None:
        for a, b, c in matrices:
            torch.mm(a, b, out=c)

    return call, sum(2 * n * k * m for n, k, m in sizes)


def sizes_of_a_block(d_model: int, d_ff: int) -> list[tuple[int, int, int]]:
    """The products of one block with its matrices: forward, for the input's gradient, for the weights'."""
    matrices = [*4 * [(d_model, d_model)], (d_model, d_ff), (d_ff, d_model)]
    return [
        sizes
        for into, out in matrices
        for sizes in ((TOKENS, into, out), (TOKENS, out, into), (out, TOKENS, into))
    ]


def measure(threads: int, d_model: int, seq: int) -> dict[str, object]:
    torch.set_num_threads(threads)
    timed = {
        "square product": product((SQUARE, SQUARE, SQUARE)),
        "products of its own sizes": product(*sizes_of_a_block(d_model, 4 * d_model)),
    }
    for name, preset in NAMES.items():
        model = LanguageModel(sized(preset, d_model, seq))
        timed[name] = training_step(faster(model), seq), operations(model, TOKENS)
    taken = in_turns({name: call for name, (call, _) in timed.items()}, seconds=15)
    speeds = {
        name: [count / 1e9 / each for each in taken[name]]
        for name, (_, count) in timed.items()
    }
    where = {"threads": threads, "d_model": d_model, "seq": seq}
    return compared(where, speeds, PAIRS)


if __name__ == "__main__":
    most = torch.get_num_threads()
    command(
        "floor",
        "GFLOP/s",
        [
            {"threads": threads, "d_model": d, "seq": 256}
            for threads in sorted({1, most})
            for d in (128, 256, 512)
        ],
        measure,
        tokens=TOKENS,
        layers=LAYERS,
        vocab_size=VOCAB_SIZE,
        square=SQUARE,
    )
