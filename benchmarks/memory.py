"""The peak memory of a training step, besides the weights and the optimizer's state."""

from collections.abc import Callable
from itertools import accumulate

from torch.profiler import profile

from benchmarks.measure import command, compared
from benchmarks.step import LAYERS, PAIRS, TOKENS, VOCAB_SIZE, models, training_step


def peak(step: Callable[[], None]) -> int:
    """The most bytes that tensors held at once during `step`, above what they held before.

    PyTorch's profiler records each allocation and release of its allocator. Memory that the
    libraries below it (oneDNN) allocate themselves is not included.
    """
    step()  # the optimizer makes its state in its first step
    with profile(profile_memory=True) as watched:
        step()
    events = [
        e for e in watched.profiler.kineto_results.events() if e.name() == "[memory]"
    ]
    events.sort(key=lambda event: event.start_ns())
    return max(accumulate((event.nbytes() for event in events), initial=0))


def measure(d_model: int, seq: int) -> dict[str, object]:
    peaks = {
        name: [peak(training_step(model, seq)) / 2**20]
        for name, model in models(d_model, seq).items()
    }
    pairs = [(of, over) for of, over in PAIRS if {of, over} <= peaks.keys()]
    return compared({"d_model": d_model, "seq": seq}, peaks, pairs)


if __name__ == "__main__":
    command(
        "memory",
        "MiB",
        [{"d_model": d, "seq": s} for d in (128, 256, 512) for s in (64, 512)],
        measure,
        ("labml-nn", "x-transformers"),
        tokens=TOKENS,
        layers=LAYERS,
        vocab_size=VOCAB_SIZE,
    )
