r"""
# The family tree

Every model of this book: which other model it changes, how, and at what cost.

In short: most models have about as many parameters and multiply-adds as the Transformer. They differ in the
loss and in the time of a training step.

:::{picture} family
:::

Each name links to its chapter. A model has the same colour in every figure of this book.

Source: {cite:t}`so2021primer`, sections 3 and 4, and the papers that each chapter cites.
"""

if __name__ == "__main__":
    # ## All language models in one table
    #
    # Costs are those of the paper's size, times and losses those of our recorded runs of small models.
    # {doc}`ours` has the savings that follow. Click on a head to sort.
    import torch
    from IPython.display import display

    from experiments.measured.analysis import extent, final_loss
    from experiments.measured.tables import SourcedTable
    from experiments.records.query import read_runs
    from labml_primer.presets import PRESETS, LanguageModel
    from labml_primer.training.costs import costs

    recorded = {  # the plan and the name in it
        "transformer": ("speedup", "transformer"),
        "transformer-gelu": ("speedup", "gelu"),
        "transformer-pp": ("speedup", "pp"),
        "transformer-squared-relu": ("speedup", "squared-relu"),
        "transformer-mdha": ("speedup", "mdha"),
        "primer-ez": ("speedup", "primer-ez"),
        "primer": ("speedup", "primer"),
        "evolved-transformer": ("speedup", "evolved-transformer"),
        "synthesizer-dense": ("transfer", "synthesizer-dense"),
        "synthesizer-random": ("transfer", "synthesizer-random"),
        "switch-transformer": ("transfer", "switch"),
        "switch-primer": ("transfer", "switch-primer"),
    }
    ends = {
        name: read_runs(plan=plan, model=model, ends=True)[model]
        for name, (plan, model) in recorded.items()
    }
    seconds = {name: runs[0]["seconds"][-1] for name, runs in ends.items()}
    times = {
        name: f"{each / seconds['transformer']:.2f}" for name, each in seconds.items()
    }

    millions, of_switch = (
        extent(
            [
                runs[0]["parameters"] / 1e6
                for name, runs in ends.items()
                if ("switch" in name) == switch
            ],
            ".1f",
        )
        for switch in (False, True)
    )
    rows = []
    for name, config in PRESETS.items():
        with torch.device("meta"):
            parts = costs(LanguageModel(config)).values()
        parameters, products = (sum(column) for column in zip(*parts, strict=True))
        rows.append(
            [
                name,
                f"{parameters / 1e6:.2f}",
                f"{products / 1e6:.2f}",
                times.get(name, "-"),
                f"{final_loss(ends[name]):.3f}" if name in ends else "-",
            ]
        )
    columns = {"model": "", "parameters": "millions"}
    columns |= {"multiply-adds": "millions per token", "time": "x Transformer"}
    columns |= {"loss": "nats per character"}
    source = "Times and losses from our records"
    display(SourcedTable("All language models", source, columns, rows))
    # ### What the columns are
    #
    # :::{deeper}
    # Sizes, seeds and positions of the models in the table.
    # :::
    #
    # Parameters and multiply-adds are those of 32,000 tokens, width 512 and sequences of 64. Time and loss
    # are those of models with four blocks of width 128, or three blocks for the Evolved Transformer
    # ({doc}`method`): the time of a training step, relative to the Transformer's, and the final loss over
    # three to five seeds. Models without timed runs on characters have none. The recorded models have
    # {value}`millions` million parameters, except the Switch Transformers with {value}`of_switch` million.
    # T5's four models are encoder-decoders, and {doc}`their chapter </labml_primer/compared/t5>` has their
    # costs.
    #
    # The two modern baselines share keys and values among heads, and the random Synthesizer computes neither
    # queries nor keys, so they have fewer parameters. The losses are those with a learned table of positions;
    # with rotary positions the order differs ({doc}`ours`). The Evolved Transformer has fewer blocks than the
    # others. At other sizes or on other hardware, the order may differ.

    # ## In short
    #
    # Every model is the Transformer with a part exchanged or added; Primer-EZ exchanges two. Except for the
    # Switch Transformers, all have about as many parameters and multiply-adds as the Transformer, so they
    # differ in the loss and in the time of a step.
    #
    # A different order of the losses at another size, with other positions or on other hardware would change
    # our mind on which of them to prefer, not on what they cost; {doc}`ours` and {doc}`positions` compare
    # them.
    #
    # ## Exercise
    #
    # :::{exercise} Write it: count the parameters
    # The second column of the table counts the numbers that training changes, each of them once. Write the
    # function that counts them for any model.
    # :::
    from torch import nn

    from labml_primer.training.exercises import Case, check_answer
    from labml_primer.transformer.positional_encoding import PositionalEncoding

    def count_parameters(model: nn.Module) -> int:
        raise NotImplementedError  # your code instead of this line

    linear, tied = nn.Linear(2, 3), nn.Linear(2, 3)
    tied.weight = linear.weight
    cases: list[Case] = [
        ((linear,), 9, "the weights are a matrix of 2 x 3, and there are 3 biases"),
        ((nn.Sequential(linear, tied),), 12, "one matrix, used twice, and two biases"),
        ((PositionalEncoding(8, 16),), 0, "training does not change a fixed table"),
    ]
    check_answer(count_parameters, cases)

    # :::{solution}
    # A module's `parameters()` are the tensors that training changes. A tensor that is used twice is among
    # them once, and a fixed table is a buffer, which is not among them.
    # :::
    def solved(model: nn.Module) -> int:
        return sum(parameter.numel() for parameter in model.parameters())

    assert check_answer(solved, cases)
