r"""
# How it was measured

The setting, the statistics and the limits of all measurements in this part, for readers who check them.

In short: every model is trained on the same batches with a learning rate of its own, with three to five
seeds, and is judged on two plays that are not used to choose learning rates. Differences are compared with
the noise between seeds. All records are in the repository, and `make experiments` makes them again.

:::{picture} measurement
:::

Source: our own measurements; {cite:t}`so2021primer`, sections 3 and 4.1, appendices A.7 and A.9;
{cite:t}`nist2012tukey`; {cite:t}`kaplan2020scaling`.
"""

import torch

from experiments.measured.analysis import (
    critical_difference,
    final_loss,
    final_losses,
    fitted,
    noise,
    widest,
)
from experiments.measured.figures import WHOLE_MODELS
from experiments.measured.settings import mean_factor, savings, written
from experiments.measured.tables import SourcedTable
from experiments.paper.tables import theirs
from experiments.records.counts import LENGTHS, best_counts, tokens_read
from experiments.records.query import read_runs, tried_of

__data__ = ("experiments/paper/printed/table_4.json",)

if __name__ == "__main__":
    # ## The text
    #
    # Shakespeare's plays, by character unless a page says {term}`subwords <subword>`. Three plays are held
    # out: a comedy chooses learning rates, and a tragedy and a history give the reported loss, so the text
    # that chose a rate is not part of a reported number. The reported loss is the mean of the two plays, in
    # nats per character.
    #
    # *Subwords* are those of a byte-level BPE with a vocabulary of 2,048, trained on the training plays.
    # There one has {value}`f"{per_subword:.1f}"` characters on average. The loss of a subword is divided by
    # the average of its play, so losses on characters and on subwords have the same unit.
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

    # ## Seeds, and the meaning of ±
    #
    # A seed sets the initial weights and the order of the batches. Models are compared seed by seed: on the
    # same text in the same order. A number like 1.91 ± 0.04 is the mean over the seeds, and their sample
    # standard deviation $s$. The mean of $n$ seeds is itself uncertain by its *standard error*,
    # $s / \sqrt n$.
    #
    # With three seeds, "better with every seed" is weak evidence: of two equal models, one is ahead with all
    # three seeds in 25% of cases. With five seeds it is 6%.
    #
    # ## The speed-up factor
    #
    # {py:func}`~labml_primer.primer.primer_ez.speedup_factor` is defined as in the paper: the cost of the
    # whole run of the Transformer, divided by the cost at which the other model first reached the
    # Transformer's final loss. The two runs have the same seed. The cost is counted in {term}`multiply-adds`
    # or in seconds. If a model never reaches that loss, the roles are exchanged, and the factor is the
    # inverse, below 1. Between two evaluations, mostly 50 or 100 steps apart, the loss is interpolated
    # linearly.
    #
    # A factor amplifies noise, because on a flat curve a small difference in loss is many steps. It is also
    # slightly too large, because a noisy curve first reaches a loss earlier than its mean does: a model's
    # factor over itself would be {value}`itself("speedup")` in the runs of {doc}`ours`, for the Transformer
    # and for Primer-EZ, and {value}`itself("today-longer")` in the long runs of {doc}`positions`. If each
    # curve is replaced by the falling one that fits it best in least squares (isotonic regression),
    # Primer-EZ's factor over the Transformer is {value}`if_fitted("speedup")` instead of
    # {value}`as_measured("speedup")` in the former, and {value}`if_fitted("today-longer")` instead of
    # {value}`as_measured("today-longer")` in the latter. The curves are losses on 64 windows of each play,
    # also where a final loss is that on the whole plays.
    #
    # The mean of several seeds' factors is the geometric mean, because factors multiply: of 2 and $1/2$ the
    # mean is 1. In brackets or as a band is the 95% {term}`confidence interval` of that mean, computed from
    # the logarithms $x$ of $n$ seeds, with Student's $t$ for $n - 1$ degrees of freedom:
    #
    # $$\exp\left(\bar x \pm t\, \frac{s}{\sqrt n}\right)$$
    #
    # For three seeds $t = 4.303$, for five $t = 2.776$.
    pairs = {
        plan: read_runs(plan=plan, model=["transformer", "primer-ez"])
        for plan in ("speedup", "today-longer")
    }

    def itself(plan: str) -> str:
        """The factors of both models over themselves, as the means of the seeds."""
        means = [
            mean_factor(pairs[plan], model, over=model).mean for model in pairs[plan]
        ]
        return " and ".join(f"{mean:.2f}" for mean in means)

    def as_measured(plan: str) -> str:
        """Primer-EZ's factor over the Transformer."""
        return f"{mean_factor(pairs[plan], 'primer-ez').mean:.2f}"

    def if_fitted(plan: str) -> str:
        """The same with the decreasing fits of the curves."""
        return written(savings(fitted(pairs[plan]), "primer-ez"))

    # ## Relative perplexity
    #
    # The perplexity $e^l$ at the end of a run, in percent of the baseline's with the same seed:
    #
    # $$100\, e^{\,l - l_\text{baseline}}$$
    #
    # Its difference from 100 is the paper's *normalized PPLX delta* (appendix A.7) in percent, up to the
    # sign. The baseline's noise is part of every model's number; the losses in the tables do not contain it.

    # ## The critical difference
    #
    # With sixteen models there are 120 pairs, and some differ much by chance. To find how large a difference
    # noise alone can explain, suppose that the loss of a run is the sum of an effect of its model, an effect
    # of its seed, and noise, $l_{ms} = a_m + b_s + e_{ms}$. With $M$ models and $S$ seeds, the variance of
    # the noise is estimated from the residuals:
    #
    # $$\sigma^2 = \frac{1}{(M - 1)(S - 1)} \sum_{m,s}
    #   (l_{ms} - \bar l_{m \cdot} - \bar l_{\cdot s} + \bar l_{\cdot \cdot})^2$$
    #
    # The range of the means in units of the noise, times $\sqrt S$, is the *studentized range* of Tukey's
    # test {cite:p}`nist2012tukey`:
    #
    # $$\frac{\max_m \bar l_{m \cdot} - \min_m \bar l_{m \cdot}}{\sigma}$$
    #
    # The *critical difference* is the 95% quantile of this range in 20,000 simulated tables of pure noise,
    # times the $\sigma$ of our own table. If all models were equal, only 5% of such tables would have any two
    # models farther apart. For the sixteen models of {doc}`mdha`:
    losses = final_losses(read_runs(plan="mdha", ends=True))
    critical = critical_difference(losses)
    print(f"noise               {noise(losses):.3f} nats")
    print(f"critical difference {critical:.3f} nats")
    print(f"as perplexity       {100 * critical.expm1():.0f}%")
    # The test assumes the same noise for all models. For pairs of a model whose seeds vary more, the critical
    # difference is too small. For pairs of models whose seeds vary less, it is too large.

    # ## The best width, and power laws
    #
    # {doc}`sizes` compares architectures at the best of five widths for each budget. The *frontier* of an
    # architecture is, for each seed, its loss at each budget with the width that is best there on average
    # over the seeds. Between two evaluations, the loss is interpolated linearly. The widths are chosen on the
    # reported plays and seeds, so each frontier is a little too low.
    #
    # The power law $l = a\, c^{-k}$, with $c$ in trillions of multiply-adds, is a line in logarithms. It is
    # fitted by least squares. The *shift* $b$ assumes parallel lines, with $k$ the mean of both exponents:
    #
    # $$b = \exp\frac{\overline{\log l_1} - \overline{\log l_0}}{k}$$
    #
    # With $b$ times less compute, the better architecture, 0, is as good as the other, 1 (appendix A.9). The
    # saving without any law reads the same factor from the frontiers themselves.
    #
    # The 95% confidence intervals of that chapter, too, are those of three seeds. The points of one curve are
    # not independent, so only seeds are counted.

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
    # *Data.* Unless a page says subwords, our models read characters. In a short run, such a model mostly
    # learns which characters follow which, and a convolution over three positions helps with just that. This
    # may overstate the gain from MDHA. {doc}`positions` and {doc}`ours` report subwords too, and
    # {doc}`positions` Python code. Every other measurement is on Shakespeare's plays.
    #
    # *Counts.* A table of counts of the same text ({doc}`/labml_primer/training/counting`) predicts the plays
    # better than nearly all of our models with a learned table on characters; in {doc}`sizes` two of them end
    # at the counts. Figures of losses have the counts as a thin line: those of the text that the runs read
    # with seed 0, each place of it once. The best order is shown. The counts see exactly the windows that the
    # models are evaluated on; without the windows' borders they are {value}`f"{borders:.3f}"` nats lower, for
    # the characters of a run of 1,200 steps. `python -m experiments.harness.counts` records them.
    #
    # *Positions.* Unless a page says rotary, our models have a learned table of absolute positions.
    # {doc}`ours`, {doc}`sizes`, {doc}`parts` and {doc}`mdha` report both on characters, and {doc}`positions`
    # on subwords too. {doc}`search` and the comparison of activation functions have the table only. So have
    # the Switch Transformers and Synthesizers of {doc}`transfer`; its encoders have rotary positions, and its
    # T5 has relative attention. A table must be learned before attention can find the previous token, while a
    # convolution reads that token from the first step on. The paper's models in Tensor2Tensor, in its search
    # and in two of Table 4's three set-ups, have positional embeddings too. Those in T5 and Lingvo have
    # relative attention (appendix A.8; the released `gin/models/defaults.gin` for T5 says the same). With the
    # former, Primer-EZ saves factors of {value}`printed["Tensor2Tensor, TPUv2"]` and
    # {value}`printed["Tensor2Tensor, V100"]` in Table 4; with the latter, {value}`printed["T5, TPUv2"]`.
    # Library and text differ too, so this agrees with our result, but does not prove it.
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
    # Suppose that sixteen models are equally good, and that two are called different if they are farther
    # apart than 95% of equal pairs. In what share of such tables is at least one pair called different? How
    # many of the 120 pairs of {doc}`mdha` are, and how many by the critical difference?
    # :::
    # :::{solution}
    # If any pair is that far apart, so are the best and the worst model, and it is enough to look at those.
    # {value}`f"{wrong['each pair by itself']:.0%}"` of the tables would report a difference where there is
    # none, and {value}`f"{wrong['critical difference']:.0%}"` by the critical difference.
    # :::
    torch.manual_seed(0)
    chance, others = torch.randn(2, 20_000, *losses.shape)
    pair = (chance[:, 0] - chance[:, 1]).mean(-1).abs() / noise(chance)
    thresholds = {
        "each pair by itself": pair.quantile(0.95),
        "critical difference": critical / noise(losses),
    }
    distances = torch.pdist(losses.mean(-1, keepdim=True))
    wrong, rows = {}, []
    for judged, beyond in thresholds.items():
        wrong[judged] = float((widest(others) > beyond).double().mean())
        found = int((distances > beyond * noise(losses)).sum())
        rows.append([judged, f"{wrong[judged]:.0%}", str(found)])
    heads = {"test": "", "false alarms": "", "our pairs": f"of {len(distances)}"}
    display(SourcedTable("Two ways to test", "20,000 simulated tables", heads, rows))
    assert wrong["critical difference"] < 0.06
