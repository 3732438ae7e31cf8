r"""
# Speed

The time of a training step and of a generated token: Primer-EZ and the models it was compared with, plain,
faster and compiled, and the same models in other libraries.

A model that learns in fewer steps has gained nothing if each step takes that much longer. How long does a
step of Primer-EZ take, compared with the Transformer's? How much of the difference is the plain code's? And
how do other libraries compare?

Nothing here is measured while the page is built. The numbers were recorded on one machine; their files are in
the book's repository, and `make benchmarks` records them again. Other machines have other numbers.

The two sides of a comparison ran in one process and took turns: one call of each, and again, every other
round in reverse order. The tables show the median of the rounds' ratios. A machine that slows down for a
while slows both sides, and their ratio stays.

Source: the records in `benchmarks/results`; {cite:t}`so2021primer`, Table 4, for the steps of its authors.
"""

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from experiments.chapters.family import FAMILY

# What was recorded, a file for each question. `python -m benchmarks.step` measures what is in `step.json`.
# And, at the end, a table of the paper, from {doc}`/experiments/chapters/paper`.
__data__ = (
    "benchmarks/results/attention.json",
    "benchmarks/results/compared.json",
    "benchmarks/results/compiled.json",
    "benchmarks/results/floor.json",
    "benchmarks/results/generation.json",
    "benchmarks/results/memory.json",
    "benchmarks/results/step.json",
    "experiments/paper_tables/table_4.json",
)


def recorded(question: str) -> dict[str, Any]:
    """
    ## A record

    One question's file: machine, versions, commit, date and settings; and for each place of a grid, such as a
    width and a length, medians and ratios, with their quartiles.
    """
    path = Path("benchmarks/results") / f"{question}.json"
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def ratios(record: dict[str, Any], of: str, over: str, **where: int) -> list[float]:
    """
    ## Its ratios

    The median ratio of one thing over another, at every place of the grid that is as `where` says.
    """
    return [
        ratio["median"]
        for cell in record["cells"]
        if where.items() <= cell["where"].items()
        for ratio in cell["ratios"]
        if (ratio["of"], ratio["over"]) == (of, over)
    ]


if __name__ == "__main__":
    # ## The answer in short
    #
    # A training step is forward, backward and optimizer, for a model of four blocks, of widths from 128 to
    # 512 on sequences from 64 to 512: always 1,024 tokens in all, of 256 symbols.
    step = recorded("step")
    forms = {
        "plain": ("Primer-EZ", "Transformer"),
        "faster": ("Primer-EZ, faster", "Transformer"),
        "compiled": ("Primer-EZ, compiled", "Transformer, compiled"),
    }
    print("A step of Primer-EZ over one of the Transformer")
    for name, pair in forms.items():
        found = ratios(step, *pair)
        print(f"  {name:9s} {min(found):.2f} to {max(found):.2f}")
    print("The same model elsewhere, over ours")
    others = {
        "labml-nn": ("labml-nn", "Primer-EZ, shared kernels"),
        "nn.Conv1d": ("nn.Conv1d", "Primer-EZ"),
        "x-transformers": ("x-transformers", "squared ReLU"),
        "PyTorch": ("PyTorch", "squared ReLU"),
    }
    for name, pair in others.items():
        found = ratios(step, *pair)
        print(f"  {name:15s} {min(found):.2f} to {max(found):.2f}")
    # *Plain* is the code of {doc}`/labml_primer/primer/primer_ez`, *faster* has the hand-written gradients of
    # {doc}`/labml_primer/primer/faster`, and *compiled* is the plain code under `torch.compile`, compared
    # with a compiled Transformer. Each dot is a width and a length.
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(7, 1.9), layout="constrained")
    for name, pair in forms.items():
        found = ratios(step, *pair)
        ax.plot(found, [name] * len(found), "o", color="C0", alpha=0.6, label=name)
    ax.axvline(1, color="C5", lw=1)
    ax.annotate(
        "the Transformer",
        (1, 1),
        xycoords=("data", "axes fraction"),
        ha="center",
        va="bottom",
        color="C5",
    )
    ax.invert_yaxis()
    ax.margins(y=0.3)
    ax.set(xlabel="time of a training step of Primer-EZ, over the Transformer's")
    plt.show()
    # ### On which machine, and when
    #
    # Time is processor time with one thread, and wall-clock time with more. A `+` after a commit means that
    # code was changed since.
    machine, versions = step["machine"], step["versions"]
    print(f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}")
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    for path in __data__[:-1]:
        record = recorded(Path(path).stem)
        threads = record["machine"]["threads"]
        print(
            f"{record['question']:11s} {record['date']}  {record['commit']:9s}"
            f"{threads} thread{'s' * (threads > 1)}"
        )


def table(record: dict[str, Any], pairs: dict[str, tuple[str, str]]) -> str:
    """
    ## A table of ratios

    A row for each of `pairs`, a column for each place of the grid. Below it, how far the quartiles lie from
    the medians where they are farthest.
    """
    lines = [
        f"{name:18s}" + "".join(f"{cell['where'][name]:6d}" for cell in record["cells"])
        for name in record["cells"][0]["where"]
    ]
    for label, (of, over) in pairs.items():
        row = "".join(f"{ratio:6.2f}" for ratio in ratios(record, of, over))
        lines.append(f"{label:18s}{row}")
    farthest = spread(record["cells"], pairs.values())
    return "\n".join([*lines, f"half of the rounds lie within {farthest:.2f}"])


def spread(
    cells: Iterable[dict[str, Any]], pairs: Collection[tuple[str, str]]
) -> float:
    """How far the quartiles lie from the medians, where they are farthest."""
    return max(
        max(ratio["high"] - ratio["median"], ratio["median"] - ratio["low"])
        for cell in cells
        for ratio in cell["ratios"]
        if (ratio["of"], ratio["over"]) in pairs
    )


if __name__ == "__main__":
    # ## Primer-EZ over the Transformer
    #
    # The time of a step over the Transformer's, by width and length. In Table 4 of {cite:t}`so2021primer` it
    # is {value}`f"{in_table_4(tensor2tensor, 'Primer-EZ'):.2f}"` and
    # {value}`f"{in_table_4(t5, 'Primer-EZ'):.2f}"` on TPUs, in Tensor2Tensor and in T5, and
    # {value}`f"{in_table_4('Tensor2Tensor, V100', 'Primer-EZ'):.2f}"` on a V100.
    changes = {
        "Primer-EZ": forms["plain"],
        "  faster": forms["faster"],
        "  both compiled": forms["compiled"],
        "squared ReLU alone": ("squared ReLU", "Transformer"),
    }
    print(table(step, changes))
    # And attention alone, forward and backward: with convolutions over without.
    attention = recorded("attention")
    with_and_without = {
        "MDHA": ("MDHA", "plain attention"),
        "  faster": ("MDHA, faster", "plain attention"),
    }
    print(table(attention, with_and_without))
    # Convolutions move much data and compute little. Their cost grows with the width, that of the matrices
    # with its square.


if __name__ == "__main__":
    # ## The models it was compared with
    #
    # Time of a step over the Transformer's, for three widths, on sequences of 64. Each model has three
    # blocks, and the Evolved Transformer two, as the released code gives it four instead of six. So most have
    # about as many parameters (in millions, at the largest width), the Evolved Transformer some more and the
    # Synthesizers some less. The Switch Transformers have about as many multiply-adds instead. The last
    # column is the paper's: a ratio of steps per second in Table 4, on TPUv2s, in T5 or, if it has none
    # there, in Tensor2Tensor. All have the faster versions of {doc}`/labml_primer/primer/faster` swapped in.
    compared = recorded("compared")
    cells = compared["cells"]
    printed = json.loads(Path(__data__[-1]).read_text(encoding="utf-8"))["rows"]
    rates = {(row[0], row[1]): float(row[4]) for row in printed}  # steps per second
    t5, tensor2tensor = "T5, TPUv2", "Tensor2Tensor, TPUv2"

    def in_table_4(setup: str, model: str) -> float:
        return rates[setup, "Vanilla Transformer"] / rates[setup, model]

    told = {
        name: in_table_4(setup, model)
        for name, setup, model in (
            ("transformer-gelu", t5, "Transformer+GELU"),
            ("transformer-pp", t5, "Transformer++"),
            ("transformer-mdha", tensor2tensor, "Transformer+MDHA"),
            ("transformer-sep-conv", tensor2tensor, "Transformer+Sep Conv"),
            ("primer-ez", t5, "Primer-EZ"),
            ("primer", t5, "Primer"),
            ("evolved-transformer", t5, "Evolved Transformer"),
        )
    }
    relatives = [r["of"] for r in cells[0]["ratios"] if r["over"] == "transformer"]
    widths = [cell["where"]["d_model"] for cell in cells]
    print(f"{'d_model':30s}{'':7s}" + "".join(f"{d:6d}" for d in widths) + "   paper")
    for name in relatives:
        size = cells[-1]["parameters"][name] / 1e6
        row = "".join(f"{r:6.2f}" for r in ratios(compared, name, "transformer"))
        paper = f"{told[name]:8.2f}" if name in told else ""
        print(f"{name:30s}{size:6.1f}M{row}{paper}")
    pairs = [(name, "transformer") for name in relatives]
    within = "".join(f"{spread([cell], pairs):6.2f}" for cell in cells)
    print(f"{'half of the rounds lie within':37s}{within}")
    # Each dot is a width, the lightest the narrowest. A cross is the paper's.
    fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
    for line, name in enumerate(relatives):
        color = FAMILY[name].colour
        cells_of = zip(widths, ratios(compared, name, "transformer"), strict=True)
        for nth, (width, ratio) in enumerate(cells_of, start=1):
            alpha, label = nth / len(widths), f"{name}, width {width}"
            ax.plot(ratio, line, "o", color=color, alpha=alpha, ms=5, label=label)
        if name in told:
            ax.plot(told[name], line, "x", color=color, label=f"{name}, the paper's")
    ax.axvline(1, color="C5", lw=1)
    ax.set_yticks(range(len(relatives)), relatives)
    ax.invert_yaxis()
    ax.set(xlabel="time of a training step, over the Transformer's")
    plt.show()
    # And the Switch layer alone, forward and backward, over a dense layer of the same multiply-adds. It has
    # eight times the parameters, sorts the tokens, and computes a quarter more rows than there are tokens.
    print(table(compared, {"Switch layer": ("Switch layer", "dense layer")}))
    # The layer is a part of a Switch Transformer's step. The optimizer, which moves every expert, is another.


if __name__ == "__main__":
    # ## Other libraries over ours
    #
    # The same model in another library, with the same weights; both must give the same outputs before they
    # are timed. Ours is the plain code. Above one, ours is faster.
    #
    # - **labml-nn** has Primer-EZ itself, with kernels that all heads share; ours has them here too. Its
    #   call to a tracker, which no longer accepts tensors, is removed.
    # - **nn.Conv1d** is ours with PyTorch's convolution: a group for each channel, both ends padded, the end
    #   cropped. And with the square as `r * r`.
    # - **x-transformers** is its own `TransformerWrapper`, with `ff_relu_squared` and flash attention. It
    #   has no convolutions, nor biases in attention and norms. Ours are zero here.
    # - **PyTorch** is `nn.TransformerEncoderLayer`, pre-norm, with a causal mask and the squared ReLU.
    print(table(step, others))
    # And attention alone, forward and backward:
    layers = {
        "labml-nn": ("labml-nn", "plain attention"),
        "labml-nn, MDHA": ("labml-nn MDHA", "MDHA, shared kernels"),
        "nn.Conv1d, MDHA": ("nn.Conv1d", "MDHA"),
        "x-transformers": ("x-transformers", "plain attention"),
        "PyTorch": ("PyTorch", "plain attention"),
    }
    print(table(attention, layers))
    # Are they of the same size? The last model of the table:
    counts = step["cells"][-1]["parameters"]
    for name, (of, over) in others.items():
        print(f"{name:15s}{counts[of]:11,} parameters, ours {counts[over]:11,}")


if __name__ == "__main__":
    # ## How much faster could it be?
    #
    # A step consists mostly of matrix products. Its multiplications and additions, counted on paper, divided
    # by its time are a speed, and no step can be faster than the machine multiplies matrices: large square
    # ones, and ones of the sizes that the blocks have. Both models have the faster versions swapped in.
    floor = recorded("floor")
    for name in floor["cells"][0]["where"]:
        places = "".join(f"{cell['where'][name]:7d}" for cell in floor["cells"])
        print(f"{name:28s}{places}")
    print("GFLOP/s")
    for name in floor["cells"][0]["values"]:
        speeds = [cell["values"][name] for cell in floor["cells"]]
        print(f"  {name:26s}" + "".join(f"{speed:7.0f}" for speed in speeds))
    for over in ("square product", "products of its own sizes"):
        print(f"as a share of the {over}")
        for name in ("Transformer", "Primer-EZ"):
            shares = ratios(floor, name, over)
            print(f"  {name:26s}" + "".join(f"{share:7.0%}" for share in shares))
    # The rest of the time goes into elementwise operations: norms, activations, convolutions, softmax, the
    # optimizer. They wait for memory, not for multiplications. Two threads also wait for each other after
    # every operation, and a narrow model has many small ones.


if __name__ == "__main__":
    # ## Compiled, and in half precision
    #
    # `torch.compile`, and bfloat16 under `torch.autocast`. Time over that of the Transformer in `float32`,
    # not compiled.
    compiled = recorded("compiled")
    ways = {
        "Transformer": ("Transformer, compiled, bf16", "Transformer"),
        "Primer-EZ": ("Primer-EZ, compiled, bf16", "Transformer"),
        "both compiled": ("Primer-EZ, compiled, bf16", "Transformer, compiled, bf16"),
    }
    print(table(compiled, ways))
    # The last row is Primer-EZ over the Transformer, each compiled.


if __name__ == "__main__":
    # ## Generation
    #
    # Tokens per second for one text, on one thread, when the text has reached a length. Solid lines have a KV
    # cache; dashed ones compute everything again for each token, see
    # {doc}`/labml_primer/transformer/generation`.
    generation = recorded("generation")
    models = {"Transformer": "C5", "Primer-EZ": "C0", "Primer": "C3"}
    sizes = sorted({cell["where"]["d_model"] for cell in generation["cells"]})
    fig, axes = plt.subplots(
        1, len(sizes), figsize=(7, 2.8), layout="constrained", sharey=True
    )
    for ax, d_model in zip(axes, sizes, strict=True):
        cells = [c for c in generation["cells"] if c["where"]["d_model"] == d_model]
        lengths = [cell["where"]["length"] for cell in cells]
        for name, color in models.items():
            cached = [cell["values"][f"{name}, cached"] for cell in cells]
            uncached = [cell["values"][f"{name}, uncached"] for cell in cells]
            ax.loglog(lengths, cached, color=color, label=name)
            ax.loglog(lengths, uncached, "--", color=color)
        ax.set(xlabel=f"tokens in the text, d_model {d_model}")
        ax.set_xticks(lengths, [str(length) for length in lengths])
        ax.minorticks_off()
    axes[0].set_ylabel("tokens per second")
    axes[0].legend(frameon=False)
    plt.show()
    # How many times as many tokens per second with the cache as without:
    gains = {name: (f"{name}, cached", f"{name}, uncached") for name in models}
    print(table(generation, gains))
    # And with the cache, compared with the Transformer. A token is so little work that the number of calls
    # counts, which is why {doc}`/labml_primer/primer/faster` merges three convolutions into one.
    to_transformer = {
        "Primer-EZ": ("Primer-EZ, cached", "Transformer, cached"),
        "  faster": ("Primer-EZ, faster, cached", "Transformer, cached"),
        "Primer": ("Primer, cached", "Transformer, cached"),
    }
    print(table(generation, to_transformer))


if __name__ == "__main__":
    # ## Memory
    #
    # The peak memory of tensors during a step, besides the weights and the optimizer's state: activations
    # kept for the backward pass, and gradients. In MiB, with the same 1,024 tokens at every length. PyTorch's
    # profiler records every allocation.
    memory = recorded("memory")
    for name in memory["cells"][0]["where"]:
        row = "".join(f"{cell['where'][name]:6d}" for cell in memory["cells"])
        print(f"{name:26s}" + row)
    for name in memory["cells"][0]["values"]:
        row = "".join(f"{cell['values'][name]:6.0f}" for cell in memory["cells"])
        print(f"{name:26s}" + row)


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} When does a slow step pay?
    # A step of a model takes $r$ times as long as the Transformer's. What share of the Transformer's steps
    # may it need for the same loss, and still be ahead? And what share did Primer-EZ and the Evolved
    # Transformer need in the paper, with their speed-ups of 1.75 and 1.23 on T5 (Table 4)?
    # :::
    # :::{solution}
    # Less than $1/r$. The speed-up $f$ compares times, so the share was $1/(f r)$. Both learned much from
    # each step. The Evolved Transformer lost half of its savings to slower steps, and Primer-EZ little.
    # :::
    for name, factor in (("primer-ez", 1.75), ("evolved-transformer", 1.23)):
        may, did = 1 / told[name], 1 / (factor * told[name])
        here = 1 / ratios(compared, name, "transformer")[-1]
        print(
            f"{name:20s} might need {may:4.0%}, did {did:4.0%}; here it might {here:4.0%}"
        )
        assert did < may < 1
