r"""
# How it was measured

The setting, the statistics and the limits of all measurements in this part, for readers who check them.

Every model is trained on the same batches with a learning rate of its own, and judged on texts that chose
none. A difference counts if it is more than the noise between seeds explains.

:::{picture} measurement
:::

Source: our own measurements; {cite:t}`so2021primer`, sections 3 and 4.1, appendices A.7 and A.9;
{cite:t}`nist2012tukey`; {cite:t}`kaplan2020scaling`.
"""

from statistics import geometric_mean

import torch

from experiments.measured.analysis import (
    final_loss,
    final_losses,
    gain,
    limit,
    noise,
    student,
    times_less,
)
from experiments.measured.figures import WHOLE_MODELS
from experiments.measured.tables import SourcedTable
from experiments.paper.tables import theirs
from experiments.records.counts import LENGTHS, best_counts, tokens_read
from experiments.records.query import read_runs, tried_of
from labml_primer.primer.primer_ez import speedup_factor

__data__ = ("experiments/paper/printed/table_4.json",)

if __name__ == "__main__":
    # ## The text
    #
    # Shakespeare's plays, by character unless a page says {term}`subwords <subword>`. Three plays are held
    # out: a comedy chooses learning rates, and a tragedy and a history give the reported loss, so the text
    # that chose a rate is not part of a reported number. The reported loss is the mean of the two plays, in
    # nats per character.
    #
    # *Subwords* are those of a byte-level BPE with a vocabulary of 2,048, trained on the training plays
    # ({doc}`/labml_primer/transformer/tokens`). There one has {value}`f"{per_subword:.1f}"` characters on
    # average. The loss of a subword is divided by the average of its play, so losses on characters and on
    # subwords have the same unit.
    #
    # One comparison is on another text, *code*: that of SymPy 1.14.0, a Python package which PyTorch
    # requires, without its tests. It has {value}`f"{LENGTHS['code'] / 1e6:.1f}"` million characters to learn
    # from. Of its subpackages, `geometry` chooses the rates, and `logic` and `stats` give the reported loss.
    from IPython.display import display

    from labml_primer.training import load_corpus
    from labml_primer.training.corpus import load_plays

    corpus, plays = load_corpus(), load_plays()
    per_subword = LENGTHS["characters"] / LENGTHS["subwords"]
    held_out = {
        "a-midsummer-night-s-dream": "chooses the learning rates",
        "macbeth": "reported",
        "richard-ii": "reported",
    }
    rows = [
        [f"{len(plays) - len(held_out)} plays", f"{len(corpus.train):,}", "training"],
        *([play, f"{len(plays[play]):,}", use] for play, use in held_out.items()),
    ]
    heads = {"text": "", "length": "characters", "use": ""}
    source = f"{corpus.vocab_size} different characters"
    display(SourcedTable("The text and its split", source, heads, rows))

    # ## The models and their training
    #
    # Unless a chapter says otherwise, a model has four blocks of width 128, four heads and a feed-forward
    # layer of 512, and all models of a comparison have the same number of parameters within 1%. A step reads
    # 16 sequences of 128 characters or subwords, from random places of the training text. So a run reads some
    # places several times and others never: in 1,200 steps {value}`read["characters", 1200]` of the
    # characters or {value}`read["subwords", 1200]` of the subwords, in 4,800 steps
    # {value}`read["characters", 4800]` of the characters. The optimizer is AdamW, with $\beta_1 = 0.9$,
    # $\beta_2 = 0.98$ and a weight decay of 0.01 on every parameter, without dropout, with gradients clipped
    # at norm 1. The learning rate rises over 100 steps and then falls with the inverse square root of the
    # step. It does not depend on the length of the run, so each point of a learning curve is the end of a
    # shorter run. Most models today are trained with a rate that falls to zero at the end, which lowers the
    # loss; here, only the runs of *With a rate that falls to zero* in {doc}`positions` are. The models have
    # the hand-written gradients of {doc}`/labml_primer/primer/faster`.
    #
    # ## Learning rates
    #
    # Each model has its own learning rate. Three to seven rates are tried, each twice the one before, in runs
    # of 300 to 1,860 steps with one seed, and the loss on the comedy decides. No chosen rate is the lowest or
    # the highest tried. Two models are also trained with a rate that was not chosen: the Transformer with a
    # squared ReLU, and MDHA in the modern baseline ({doc}`positions`). For the models of {doc}`ours`, five
    # rates from 0.001 to 0.016 were tried. The table has the chosen ones.
    #
    # :::{deviation} the paper, appendix A.8
    # It trains all models with Adafactor and the hyperparameters of a Transformer. Here each model has a rate
    # of its own, and AdamW.
    # :::
    read = {
        (data, steps): f"{tokens_read(data, steps) / LENGTHS[data]:.0%}"
        for data, steps in (
            ("characters", 1200),
            ("subwords", 1200),
            ("characters", 4800),
        )
    }
    recorded = read_runs(plan="speedup", model=WHOLE_MODELS, ends=True)
    cut, whole = (best_counts("characters", 1200, how) for how in ("whole", "text"))
    borders = cut[1] - whole[1]
    rows = [
        [
            name,
            f"{recorded[model][0]['rate']:.3f}",
            f"{recorded[model][0]['parameters']:,}",
        ]
        for model, (name, _, _) in WHOLE_MODELS.items()
    ]
    heads = {"model": "", "learning rate": "", "parameters": "count"}
    display(SourcedTable("Chosen rates", "Our runs", heads, rows))
    close = 0  # so many models whose two best rates are within the noise
    for model, seeds in recorded.items():
        lowest, second = (loss for _, loss in tried_of("speedup", model))
        close += second - lowest < final_loss(seeds).deviation
    assert close == len(recorded) / 2, "for half of the models"
    printed = theirs("primer-ez", __data__[0])  # factors, for the limits below
    # These tuning runs are 1/3 as long as the full ones. For half of these models, the losses of the two best
    # rates differ by less than the standard deviation of the seeds. The choice between them is then noise.
    # All seeds share it, so the ± in this book does not include this source of error.

    # ## One rule
    #
    # A seed sets the initial weights and the order of the batches, and models are compared seed by seed: on
    # the same text in the same order. A loss like 1.91 ± 0.04 is the mean over the seeds, and their sample
    # standard deviation.
    #
    # Does one model end below another? The statistic is the mean over $S$ seeds of the difference of their
    # final losses. Suppose that a loss is the sum of an effect of its model, an effect of its seed, and
    # noise, $l_{ms} = a_m + b_s + e_{ms}$. The differences of $M$ models that are trained in the same way
    # have the same noise, so its variance is estimated from all of their residuals:
    #
    # $$\sigma^2 = \frac{1}{(M - 1)(S - 1)} \sum_{m,s}
    #   (l_{ms} - \bar l_{m \cdot} - \bar l_{\cdot s} + \bar l_{\cdot \cdot})^2$$
    #
    # A difference counts if it is larger than the limit that noise explains. On a page that makes $k$
    # comparisons, each has a chance of $0.05 / k$ to exceed it if the models are equal (Bonferroni), so that
    # on 95% of such pages none does:
    #
    # $$t\, \sigma \sqrt{2 / S}$$
    #
    # with $t$ of Student's distribution for $(M - 1)(S - 1)$ degrees of freedom, computed exactly. A page
    # writes it after the difference: 0.043 ± 0.012. "With every seed" is no second rule; of two equal models,
    # one is ahead with all three seeds in 25% of cases.
    #
    # For the {value}`len(losses)` models of {doc}`mdha`:
    losses = final_losses(read_runs(plan="mdha", ends=True))
    many, of_each = losses.shape
    one, all_of_them = limit(losses), limit(losses, many - 1)
    print(f"noise                     {float(noise(losses)):.3f} nats")
    print(f"limit, one comparison     {one:.3f} nats")
    print(f"limit, {many - 1} comparisons     {all_of_them:.3f} nats")

    # ### What the rule assumes
    #
    # :::{deeper}
    # Equal noise, and nothing about other texts.
    # :::
    #
    # The rule assumes the same noise for all models of a table. For a model whose seeds vary more than the
    # others', the limit is too small. Intervals cover seeds alone. They say nothing of other texts, of other
    # learning rates, or of the two plays on which a loss is measured.

    # ## The speed-up factor
    #
    # A {term}`speed-up factor` translates a difference into compute: how many times less of it a model needs
    # to end where the other does. It decides nothing. In the paper it is the cost of the Transformer's whole
    # run, divided by the cost at which the other model first reaches its final loss
    # ({py:func}`~labml_primer.primer.primer_ez.speedup_factor`). A noisy curve first reaches a loss earlier
    # than its mean does, so that is too large: read so, a model's factor over itself would be
    # {value}`itself[0]` in the long runs of {doc}`positions`. Here, a cubic in the logarithm of the cost is
    # fitted to the mean curve without its first eighth, and the factor is read where that is the measured
    # difference above its own end. Over itself it is 1 by construction. For Primer-EZ over the Transformer in
    # those runs it is {value}`itself[1]`, and at the first passage {value}`itself[2]`.
    #
    # If the rate falls to zero, a point of a curve is not the end of a shorter run. Then the factor is
    # $2^{d/h}$ for a difference $d$, if half as many steps end $h$ higher. It assumes that losses fall in
    # proportion to the logarithm of the steps, and is an extrapolation above 2.
    long = read_runs(plan="today-longer", model=["transformer", "primer-ez"])

    def first_passage(model: str, over: str) -> float:
        """The paper's factor of a model over another, as the geometric mean of the seeds."""
        pairs = zip(long[over], long[model], strict=True)
        return geometric_mean(
            speedup_factor(a["multiply_adds"], a["loss"], b["multiply_adds"], b["loss"])
            for a, b in pairs
        )

    smooth = times_less(
        long,
        "primer-ez",
        "transformer",
        gain(long, "primer-ez", "transformer"),
        "multiply_adds",
    )
    itself = [
        f"{each:.2f}"
        for each in (
            first_passage("primer-ez", "primer-ez"),
            smooth,
            first_passage("primer-ez", "transformer"),
        )
    ]
    assert first_passage("primer-ez", "primer-ez") > 1
    assert first_passage("primer-ez", "transformer") > smooth

    # ## The best width
    #
    # {doc}`sizes` compares architectures at the best of five widths for each budget. The *frontier* of an
    # architecture is, for each seed, its loss at each budget with the width that is best there on average
    # over the seeds. The widths are chosen on the reported plays and seeds, so each frontier is a little too
    # low.

    # ## Time
    #
    # The seconds of a run are its number of steps times the time of a step. That time is measured separately,
    # for all models in one process and in turns, because the time of a run depends on what else the machine
    # does. It is CPU time on one core. Its own uncertainty is not part of ±; {doc}`/benchmarks/speed` shows
    # how far apart the rounds of such a measurement are.
    #
    # {doc}`/benchmarks/speed` also measures in turns: one call of each function, again and again, every other
    # round in reverse order. Its tables show the median of the rounds' ratios, and how far the quartiles are
    # from it. A machine that slows down slows both sides, and does not change the ratio.
    #
    # ## Records
    #
    # Every plan has a file in `experiments/results`, with a line of JSON for each run: its configuration, the
    # versions of the software, the machine, and the curve of its losses. Plans share runs of the same
    # configuration, and a stopped plan continues where it was. `make experiments` runs all that is missing,
    # after saying how long it takes.
    # With `ONLY` it runs one plan:
    #
    #     make experiments ONLY=speedup
    #     make experiments ONLY=ablation
    #     make experiments ONLY=activations
    #     make experiments ONLY=mdha
    #     make experiments ONLY=scaling
    #     make experiments ONLY=transfer
    #     make experiments ONLY=filling
    #     make experiments ONLY=masked
    #     make experiments ONLY=today
    #
    # The last is a family of plans, and each of them, such as `today-characters`, can be run alone. They
    # repeat the comparisons with {doc}`rotary positions </labml_primer/since/rotary>`, on characters, on
    # subwords and on code. {doc}`positions`, {doc}`ours`, {doc}`parts` and {doc}`mdha` report them. The runs
    # of this family are compared in multiply-adds, not in time. Their rates are tuned in runs of a quarter of
    # the length or more, with a seed that is not reported. Their final losses are those on the whole reported
    # plays, always in nats per character. Their records contain the losses of four small steps, and after
    # these on a held-out text. If the code computes other losses later, the run is repeated.
    #
    # A record names the commit of its code. Modified code is not run for the records; with `--trial` it is,
    # and its records stay out of all pages. Tests check that each commit is in the history, and that the code
    # of today computes what it recorded, as far as the losses of four small steps show it.
    #
    # Tests check that every record matches its plan, and that no run diverged and no seed is missing. The
    # statements of a chapter are assertions in its code: if one does not hold for the records, the chapter
    # does not run. The measured numbers in the text are computed from the records when the page is built; a
    # test finds a number that is typed. One command computes all of them again from the records, prints them
    # next to those of the built pages, and fails if one differs:
    #
    #     .venv/bin/python book/tools/recompute.py
    #
    # ## Other texts and larger models
    #
    # One run needs a file with its settings. This one trains a modern baseline with Primer-EZ's changes on
    # texts of your own, `my-texts/train/*.txt`. The files stay on disk, and every byte is a token. Each file
    # of `my-texts/held-out` is evaluated separately.
    #
    #     preset = "modern-primer-ez"
    #     data = "my-texts"
    #     steps = 20000
    #     batch = 64
    #     seq = 512
    #     rate = 0.001
    #     warmup = 1000
    #     decay = "matrices"   # no weight decay on norms, biases, embeddings
    #     pieces = 4           # gradient accumulation
    #     recomputed = true    # activation checkpointing
    #     bfloat16 = true
    #     evaluations = 40     # of the held-out texts, during the run
    #
    #     [model]              # the size; without this table, it is that of the paper's Table 4
    #     d_model = 256
    #     heads = 8
    #     d_ff = 1024
    #     layers = 6
    #
    # Start it from the repository's root. The second command splits each batch between two GPUs (DDP). With
    # `sharded = true` in the first part of the file, it splits weights and checkpoints too (FSDP). With
    # `compiled = true`, a GPU runs the model compiled. The class `Run`, in
    # `experiments/harness/configuration.py`, has every setting.
    #
    #     .venv/bin/python -m experiments.real_scale.run run.toml folder
    #     .venv/bin/torchrun --nproc-per-node 2 -m experiments.real_scale.run run.toml folder
    #
    # A checkpoint is written every 100 steps, or `--save-every` so many. The same command continues a run
    # that was stopped. After SIGTERM no step is lost, unless torchrun, which waits 30 seconds, kills the
    # processes first. A finished run can be prolonged, by more `steps` in the file. Each start writes a log
    # of its own, `folder/labml/runs/<id>/log.jsonl`. It has the loss, the norm of the gradient and the tokens
    # per second at each step.
    #
    # ## Limits of all measurements
    #
    # *Scale.* The models of the paper's Table 4 have 40 times as many parameters, and read 3,000 times as
    # many tokens.
    #
    # *Data.* Most models read characters of Shakespeare's plays. In a short run, such a model mostly learns
    # which characters follow which, and a convolution over three positions helps with just that.
    #
    # *Counts.* Figures of losses have the counts of the text that seed 0 read as a thin line, each place of
    # it once. The counts see exactly the windows that the models are evaluated on; without the windows'
    # borders they are {value}`f"{borders:.3f}"` nats lower, for the characters of a run of 1,200 steps.
    # `python -m experiments.harness.counts` records them.
    #
    # *Positions.* The Switch Transformers and Synthesizers of {doc}`transfer`, the search and the comparison
    # of activation functions have a learned table of positions, from which attention must first learn where
    # the previous token is. Two of the paper's set-ups have one, too, and one has relative attention
    # (appendix A.8): with the former, Primer-EZ saves factors of {value}`printed["Tensor2Tensor, TPUv2"]` and
    # {value}`printed["Tensor2Tensor, V100"]` in Table 4, with the latter {value}`printed["T5, TPUv2"]`.
    #
    # *Tuning.* Rates were chosen with one seed, mostly in shorter runs. Models with similar losses could
    # change places with other rates.
    #
    # *Hardware.* All times were measured on {value}`machines </benchmarks/speed>`. On an accelerator, the
    # relative cost of a convolution is different.


if __name__ == "__main__":
    # ## Exercise
    #
    # :::{exercise} Why not test each pair by itself?
    # Suppose that sixteen models are equally good, and that one is called different from the first if the two
    # are farther apart than 95% of equal pairs. In what share of such tables is at least one called
    # different?
    # :::
    # :::{solution}
    # In {value}`wrong[1]` of 20,000 simulated tables, and with the limit for all
    # {value}`f"{many - 1}"` comparisons in {value}`wrong[many - 1]`. The latter is below 5%, because all
    # comparisons share the first model.
    # :::
    torch.manual_seed(0)
    chance = torch.randn(20_000, many, of_each)
    apart = (chance[:, 1:].mean(-1) - chance[:, :1].mean(-1)).abs().amax(-1)
    freedom = (many - 1) * (of_each - 1)
    unit = noise(chance) * (2 / of_each) ** 0.5
    wrong = {
        made: f"{(apart > t * unit).double().mean():.0%}"
        for made in (1, many - 1)
        for t in [student(1 - 0.05 / made, freedom)]
    }
    rows = [["one", wrong[1]], [f"{many - 1}", wrong[many - 1]]]
    assert float(wrong[many - 1].rstrip("%")) < 5
    heads = {"limit for": "comparisons", "false alarms": "of tables"}
    display(SourcedTable("Two limits", "20,000 simulated tables", heads, rows))
