r"""
# Speed

The time of a training step and of a generated token: Primer-EZ and the models it was compared with, and the
same models in other libraries.

A model that learns in fewer steps gains nothing if each step takes that much longer. How long does a step of
Primer-EZ take, compared with the Transformer's? And how do other libraries compare?

In short: on {value}`machines`, a training step of the plain Primer-EZ takes up to {value}`at_most("plain")`
longer than the Transformer's, with hand-written gradients up to {value}`at_most("faster")`, and compiled up
to {value}`at_most("compiled")`. With a learned table of positions, that is little compared with the steps
that it saves. With rotary positions, in short runs on characters, it saves fewer steps, and the slower steps
of the plain code may use up most of that saving ({doc}`/experiments/chapters/results`). Primer-EZ also
generates fewer tokens per second at every size measured.

Other processors give other ratios. The records are in `benchmarks/results`, and `make benchmarks` makes them
again, or adds those of another processor. {doc}`/experiments/chapters/method` explains the timing in turns.

Source: our own measurements; {cite:t}`so2021primer`, Table 4, for the steps of its authors.
"""

import json
from pathlib import Path

from experiments.measured.tables import SourcedTable, grid, ratio_table
from experiments.records.timings import (
    Timings,
    by_processor,
    processors,
    ratios,
    recorded,
    spread,
)

__data__ = (
    "benchmarks/results/attention.json",
    "benchmarks/results/compared.json",
    "benchmarks/results/compiled.json",
    "benchmarks/results/compiled_generation.json",
    "benchmarks/results/floor.json",
    "benchmarks/results/forward_pass.json",
    "benchmarks/results/generation.json",
    "benchmarks/results/generation_elsewhere.json",
    "benchmarks/results/memory.json",
    "benchmarks/results/step.json",
    "experiments/paper/printed/table_4.json",
)

if __name__ == "__main__":
    # The time of a training step (forward, backward and optimizer), over the Transformer's. Each dot is a
    # width from 128 to 512 and a length from 64 to 512, with four blocks and 1,024 tokens per step. On the
    # line, both models take equally long. *Plain* is the code of {doc}`/labml_primer/primer/primer_ez`,
    # *faster* has the hand-written gradients of {doc}`/labml_primer/primer/faster`, and *compiled* is the
    # plain code under `torch.compile`. All three are divided by the time of the plain Transformer.
    steps, machines = by_processor("step"), processors("step")
    first = next(iter(steps))
    forms = {
        "plain": ("Primer-EZ", "Transformer"),
        "faster": ("Primer-EZ, faster", "Transformer"),
        "compiled": ("Primer-EZ, compiled", "Transformer, compiled"),
    }
    others = {
        "labml-nn": ("labml-nn", "Primer-EZ, shared kernels"),
        "nn.Conv1d": ("nn.Conv1d", "Primer-EZ"),
        "x-transformers": ("x-transformers", "squared ReLU"),
        "PyTorch": ("PyTorch", "squared ReLU"),
    }

    def found(name: str, record: Timings) -> list[float]:
        """The ratios of a row at all sizes; of the compiled one, over the plain Transformer."""
        each = ratios(record, *(forms | others)[name])
        if name != "compiled":
            return each
        compiling = ratios(record, "Transformer, compiled", "Transformer")
        return [a * b for a, b in zip(each, compiling, strict=True)]

    def over(name: str, *records: Timings) -> str:
        """The lowest and the highest ratio of a row, on all processors or on some."""
        each = [r for one in records or steps.values() for r in found(name, one)]
        return f"{min(each):.2f} to {max(each):.2f}"

    def at_most(name: str) -> str:
        """How much longer a step takes at most than the Transformer's, on all processors."""
        most = max(r for one in steps.values() for r in found(name, one))
        return f"{100 * (most - 1):.0f}%"

    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(7, 1.9), layout="constrained")
    for name in forms:
        for record, marker in zip(steps.values(), "o^sD", strict=False):
            dots = found(name, record)
            ax.plot(dots, [name] * len(dots), marker, color="C0", alpha=0.6, label=name)
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
    # The table has the same ratios as ranges, for each processor, and the times of other libraries divided by
    # ours: above 1, ours is faster.
    from IPython.display import display

    rows = [
        [name, *(over(name, record) for record in steps.values())]
        for name in forms | others
    ]
    heads = {"compared": ""} | dict.fromkeys(steps, "ratio")
    display(
        SourcedTable(
            "Primer-EZ over Transformer, others over ours", "step.json", heads, rows
        )
    )
    # ## On which machine, and when
    #
    # Time is CPU time with one thread, and wall-clock time with more. A `+` after a commit means that the
    # code had changed since that commit. The sections below are about the {value}`first`.
    for one in steps.values():
        machine, versions = one["machine"], one["versions"]
        print(f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}")
        print(", ".join(f"{name} {version}" for name, version in versions.items()))
    rows = []
    for path in __data__[:-1]:
        for cpu, one in by_processor(Path(path).stem).items():
            threads = str(one["machine"]["threads"])
            rows.append([one["question"], cpu, threads, one["date"], one["commit"]])
    heads = dict.fromkeys(("question", "processor", "threads", "date", "commit"), "")
    display(SourcedTable("When it was recorded", "The records", heads, rows))


if __name__ == "__main__":
    # ## Primer-EZ over the Transformer
    #
    # The time of a step over the Transformer's, by width and length. In Table 4 of {cite:t}`so2021primer` it
    # is {value}`f"{in_table_4(tensor2tensor, 'Primer-EZ'):.2f}"` and
    # {value}`f"{in_table_4(t5, 'Primer-EZ'):.2f}"` on TPUs, in Tensor2Tensor and in T5, and
    # {value}`f"{in_table_4('Tensor2Tensor, V100', 'Primer-EZ'):.2f}"` on a V100.
    #
    # If the ratio of the two compiled models is below 1, that is because compiling made the Transformer's
    # step longer; it is not a gain over the plain Transformer.
    step = recorded("step")
    changes = {
        "Primer-EZ": forms["plain"],
        "... faster": forms["faster"],
        "... both compiled": forms["compiled"],
    }
    entries = {
        name: [f"{ratio:.2f}" for ratio in ratios(step, *pair)]
        for name, pair in changes.items()
    }
    to_plain = found("compiled", step)
    entries["... compiled, over the plain Transformer"] = [f"{r:.2f}" for r in to_plain]
    alone = ratios(step, "squared ReLU", "Transformer")
    entries["squared ReLU alone"] = [f"{ratio:.2f}" for ratio in alone]
    within = f"half of the rounds within {spread(step['cells'], changes.values()):.2f}"
    display(grid(step, f"A step over the Transformer's ({within})", entries))
    # Attention alone, forward and backward: the time with convolutions, divided by the time without.
    attention = recorded("attention")
    with_and_without = {
        "MDHA": ("MDHA", "plain attention"),
        "... faster": ("MDHA, faster", "plain attention"),
    }
    display(ratio_table(attention, "MDHA over plain attention", with_and_without))
    # A forward pass without gradients, for the small models of {doc}`/experiments/chapters/sizes`:
    forward = {name: (name, "Transformer") for name in ("Primer-EZ", "Primer")}
    heading = "A forward pass over the Transformer's"
    display(ratio_table(recorded("forward_pass"), heading, forward))
    # Convolutions move much data and compute little. Their cost grows with the width, while that of the
    # matrix products grows with its square. So their share of a whole step should fall with the width. In
    # plain code, the narrowest models have the highest ratios.


if __name__ == "__main__":
    # ## The models it was compared with
    #
    # The time of a step on sequences of 64, divided by the Transformer's, for three widths (darker is wider).
    # A cross and the last column are the paper's: the ratio of steps per second in Table 4, on TPUv2s, in
    # T5 or, if it has none there, in Tensor2Tensor. Each model has three blocks; the Evolved Transformer has
    # two, as the released code gives it four instead of six. So most have about as many parameters, the
    # Evolved Transformer some more and the Synthesizers some less. The Switch Transformers have about as many
    # {term}`multiply-adds` instead. All use the faster versions of {doc}`/labml_primer/primer/faster`.
    compared = recorded("compared")
    cells = compared["cells"]
    printed = json.loads(Path(__data__[-1]).read_text(encoding="utf-8"))["rows"]
    rates = {(row[0], row[1]): float(row[4]) for row in printed}  # steps per second
    t5, tensor2tensor = "T5, TPUv2", "Tensor2Tensor, TPUv2"

    def in_table_4(setup: str, model: str) -> float:
        return rates[setup, "Vanilla Transformer"] / rates[setup, model]

    in_paper = {
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
    colours = {
        "transformer-gelu": "C5",
        "transformer-pp": "C2",
        "transformer-squared-relu": "C0",
        "transformer-mdha": "C0",
        "transformer-sep-conv": "C0",
        "primer-ez": "C0",
        "primer": "C3",
        "evolved-transformer": "C4",
        "switch-primer": "C0",
    }
    relatives = [r["of"] for r in cells[0]["ratios"] if r["over"] == "transformer"]
    widths = [cell["where"]["d_model"] for cell in cells]
    fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for line, name in enumerate(relatives):
        color = colours.get(name, "C5")
        cells_of = zip(widths, ratios(compared, name, "transformer"), strict=True)
        for nth, (width, ratio) in enumerate(cells_of, start=1):
            alpha, label = nth / len(widths), f"{name}, width {width}"
            ax.plot(ratio, line, "o", color=color, alpha=alpha, ms=5, label=label)
        if name in in_paper:
            ax.plot(
                in_paper[name], line, "x", color=color, label=f"{name}, the paper's"
            )
    ax.axvline(1, color="C5", lw=1)
    ax.set_yticks(range(len(relatives)), relatives)
    ax.invert_yaxis()
    ax.set(xlabel="time of a training step, over the Transformer's")
    plt.show()
    rows = []
    for name in relatives:
        size = f"{cells[-1]['parameters'][name] / 1e6:.1f}"
        each = [f"{ratio:.2f}" for ratio in ratios(compared, name, "transformer")]
        in_print = f"{in_paper[name]:.2f}" if name in in_paper else "-"
        rows.append([name, size, *each, in_print])
    pairs = [(name, "transformer") for name in relatives]
    within = ", ".join(f"{spread([cell], pairs):.2f}" for cell in cells)
    heads = {"model": "", "parameters": "millions"}
    heads |= dict.fromkeys([f"width {d}" for d in widths], "") | {"the paper": ""}
    note = f"Half of the rounds are within {within} of the median"
    display(SourcedTable("A step over the Transformer's", note, heads, rows))
    # The time of the Switch layer alone, forward and backward, divided by that of a dense layer with the same
    # multiply-adds. The Switch layer has eight times the parameters, sorts the tokens, and computes a quarter
    # more rows than there are tokens.
    layer = {"Switch layer": ("Switch layer", "dense layer")}
    display(ratio_table(compared, "Switch layer over dense layer", layer))
    # A Switch Transformer's step also has an optimizer that updates every expert.


if __name__ == "__main__":
    # ## Other libraries over ours
    #
    # The time of the same model in another library, divided by ours. Both have the same weights, and must
    # give the same outputs before they are timed. Ours is the plain code. Above 1, ours is faster.
    #
    # - **labml-nn** has Primer-EZ itself, with kernels that all heads share; ours has them here too. Its
    #   call to a tracker, which no longer accepts tensors, is removed.
    # - **nn.Conv1d** is ours with PyTorch's convolution: a group for each channel, both ends padded, the end
    #   cropped, and with the square written as `r * r`.
    # - **x-transformers** is its own `TransformerWrapper`, with `ff_relu_squared` and flash attention. It
    #   has no convolutions, nor biases in attention and norms. Ours are zero here.
    # - **PyTorch** is `nn.TransformerEncoderLayer`, pre-norm, with a causal mask and the squared ReLU.
    display(ratio_table(step, "A step in other libraries, over ours", others))
    # The same for attention alone, forward and backward:
    layers = {
        "labml-nn": ("labml-nn", "plain attention"),
        "labml-nn, MDHA": ("labml-nn MDHA", "MDHA, shared kernels"),
        "nn.Conv1d, MDHA": ("nn.Conv1d", "MDHA"),
        "x-transformers": ("x-transformers", "plain attention"),
        "PyTorch": ("PyTorch", "plain attention"),
    }
    display(ratio_table(attention, "Attention in other libraries, over ours", layers))
    # Are they of the same size? The last model of the table:
    counts = step["cells"][-1]["parameters"]
    rows = [
        [name, f"{counts[a]:,}", f"{counts[b]:,}"] for name, (a, b) in others.items()
    ]
    heads = dict.fromkeys(("library", "parameters", "ours"), "")
    display(SourcedTable("Sizes of the models", "step.json", heads, rows))


if __name__ == "__main__":
    # ## How much faster could it be?
    #
    # A step consists mostly of matrix products, so it cannot be faster than the machine multiplies matrices.
    # The first table has the speeds of steps and of two kinds of products, large square ones and those of the
    # blocks' sizes, in GFLOP per second. The second has the shares of these limits that the models reach.
    # Both models have the hand-written gradients.
    floor = recorded("floor")
    speeds = {
        name: [f"{cell['values'][name]:.0f}" for cell in floor["cells"]]
        for name in floor["cells"][0]["values"]
    }
    display(grid(floor, "GFLOP per second", speeds))
    shares = {
        f"{name}, of the {limit}": [
            f"{share:.0%}" for share in ratios(floor, name, limit)
        ]
        for limit in ("square product", "products of its own sizes")
        for name in ("Transformer", "Primer-EZ")
    }
    display(grid(floor, "Share of that speed", shares))
    # The rest of the time goes into elementwise operations: norms, activation functions, convolutions,
    # softmax, the optimizer. They are limited by memory, not by multiplications. With two threads, each
    # operation also ends with a wait, and a narrow model has many short operations.


if __name__ == "__main__":
    # ## Compiled, and in half precision
    #
    # `torch.compile`, and bfloat16 under `torch.autocast`. The time, divided by that of the uncompiled
    # Transformer in `float32`.
    compiled = recorded("compiled")
    ways = {
        "Transformer": ("Transformer, compiled, bf16", "Transformer"),
        "Primer-EZ": ("Primer-EZ, compiled, bf16", "Transformer"),
        "both compiled": ("Primer-EZ, compiled, bf16", "Transformer, compiled, bf16"),
    }
    display(ratio_table(compiled, "Compiled in bfloat16", ways))
    # The last row is Primer-EZ over the Transformer, each compiled.


if __name__ == "__main__":
    # ## Generation
    #
    # Tokens per second for one text on one thread, by the length that the text has reached. Solid lines have
    # a KV cache; dashed ones compute everything again for each token
    # ({doc}`/labml_primer/transformer/generation`).
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
    # Tokens per second with the cache, divided by those without:
    gains = {name: (f"{name}, cached", f"{name}, uncached") for name in models}
    display(
        ratio_table(
            generation, "Tokens per second with the cache, over those without", gains
        )
    )
    # And with the cache, compared with the Transformer. Below 1, the Transformer generates faster. One token
    # is so little work that the number of calls matters, which is why {doc}`/labml_primer/primer/faster`
    # merges three convolutions into one. At most sizes, its effect is smaller than the noise.
    to_transformer = {
        "Primer-EZ": ("Primer-EZ, cached", "Transformer, cached"),
        "... faster": ("Primer-EZ, faster, cached", "Transformer, cached"),
        "Primer": ("Primer, cached", "Transformer, cached"),
    }
    display(
        ratio_table(
            generation, "Tokens per second, over the Transformer's", to_transformer
        )
    )
    # ### Other libraries
    #
    # Tokens per second of the same models in other libraries, each with the KV cache of its own, divided by
    # ours: below 1, ours is faster. Their weights are ours, and they write the same texts. *GPT-2* and
    # *Llama* are those of the library `transformers`: the first is the Transformer of this book, the second
    # its {doc}`modern baseline </labml_primer/since/modern>`. x-transformers has no biases in attention and
    # norms, and the squared ReLU. Recorded at a load of {value}`elsewhere["settings"]["load"]`, the number of
    # programs that wanted a core; the models ran in turns.
    elsewhere = recorded("generation_elsewhere")
    twins = {
        "x-transformers": ("x-transformers", "Transformer, squared ReLU"),
        "GPT-2": ("GPT-2", "Transformer"),
        "Llama": ("Llama", "modern"),
    }
    heading = "Tokens per second in other libraries, over ours"
    display(ratio_table(elsewhere, heading, twins))
    # ### Compiled
    #
    # With a cache of fixed length, all steps are the same computation, so one compilation serves all of them
    # ({doc}`/labml_primer/primer/compiled_generation`). Tokens per second at 512 tokens, eager and compiled:
    both_ways = recorded("compiled_generation")
    load = both_ways["settings"]["load"]
    speeds = {
        f"{name}, {way}": [
            f"{cell['values'][f'{name}, {of}']:.0f}" for cell in both_ways["cells"]
        ]
        for name in ("Transformer", "Primer-EZ")
        for way, of in (("eager", "cached"), ("compiled", "compiled"))
    }
    display(grid(both_ways, f"Tokens per second, at a load of {load}", speeds))
    gains_of_compiling = {
        name: (f"{name}, compiled", f"{name}, cached")
        for name in ("Transformer", "Primer-EZ")
    }
    display(ratio_table(both_ways, "Compiled over eager", gains_of_compiling))
    # The load is the number of programs that wanted one of {value}`both_ways["machine"]["cores"]` cores. The
    # models ran in turns, so it slowed all of them down, and the ratios say more than the speeds. Compiled,
    # Primer-EZ generates {value}`compiled_ratio` times as many tokens per second as the Transformer, compared
    # with {value}`eager_ratio` in eager mode, because its many short operations are fused.
    compiled_ratio, eager_ratio = (
        " and ".join(
            f"{each:.2f}"
            for each in ratios(both_ways, f"Primer-EZ, {way}", f"Transformer, {way}")
        )
        for way in ("compiled", "cached")
    )


if __name__ == "__main__":
    # ## Memory
    #
    # The peak memory of tensors during a step, besides the weights and the optimizer's state: activations
    # kept for the backward pass, and gradients. In MiB, with the same 1,024 tokens at every length, by
    # PyTorch's profiler. Primer-EZ needs more than the Transformer at every size; hand-written gradients
    # reduce its need a little.
    memory = recorded("memory")
    peaks = {
        name: [f"{cell['values'][name]:.0f}" for cell in memory["cells"]]
        for name in memory["cells"][0]["values"]
    }
    display(grid(memory, "Peak memory, MiB", peaks))


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} When does a slow step pay?
    # A step of a model takes $r$ times as long as the Transformer's. What share of the Transformer's steps
    # may it take to the same loss and still be ahead? And what share did Primer-EZ and the Evolved
    # Transformer need in the paper, with their speed-ups of 1.75 and 1.23 on T5 (Table 4)?
    # :::
    # :::{solution}
    # Less than $1/r$. The speed-up $f$ compares times, so the share was $1/(f r)$. Both learned more per
    # step. The Evolved Transformer lost half of its saving to slower steps, and Primer-EZ little.
    # :::
    rows = []
    for name, factor in (("primer-ez", 1.75), ("evolved-transformer", 1.23)):
        may, did = 1 / in_paper[name], 1 / (factor * in_paper[name])
        here = 1 / ratios(compared, name, "transformer")[-1]
        rows.append([name, f"{may:.0%}", f"{did:.0%}", f"{here:.0%}"])
        assert did < may < 1
    columns = ("model", "may need, paper", "needed, paper", "may need, here")
    display(
        SourcedTable(
            "Share of the Transformer's steps",
            "Table 4",
            dict.fromkeys(columns, ""),
            rows,
        )
    )

    # ## In short
    #
    # - On {value}`machines`, a step of Primer-EZ costs up to {value}`at_most("plain")` more than the
    #   Transformer's in plain code, and at most {value}`at_most("faster")` more with hand-written gradients.
    # - In plain code, the convolutions cost most in narrow models.
    # - The KV cache makes generation faster, and more so for longer texts. With it, Primer-EZ generates fewer
    #   tokens per second than the Transformer.
