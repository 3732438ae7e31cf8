"""The claims of the Primer paper, as formulas on the entries of its tables and on numbers of its text."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import mul, sub, truediv

from experiments.measured.tables import SourcedTable
from experiments.paper.rounding import VERDICTS, Claim, Rounded, claim, recompute, short
from experiments.paper.tables import Paper

DAY = 24 * 60 * 60  # seconds

# The claims of the chapter's first figure: section, words, and how the figure calls them.
HEADLINES = {
    ("4.3", "hours, original T5 over Primer"): "T5 over Primer, hours",
    ("4.3", "hours, T5++ over Primer"): "T5++ over Primer, hours",
    ("4.1", "least speedup of the Primers"): "search task, at least",
    ("4.2", "least speedup at the end"): "larger data, at least",
    ("4.2", "Switch at 525K, speedup"): "Switch Transformer",
    ("4.2", "Synthesizer at 1M, speedup"): "Synthesizer",
}


def in_text(paper: Paper, *names: str) -> list[str]:
    """Return numbers of the running text, by their names."""
    return [paper["text"].entry("number", name=name) for name in names]


def verdicts(title: str, claims: Iterable[Claim]) -> SourcedTable:
    """Return a table of claims: as printed, as recomputed, and whether the two agree."""
    rows = []
    for each in claims:
        low, value, high = map(short, vars(each.result).values())
        bounds = "-" if low == high else f"{low} to {high}"
        verdict = VERDICTS[each.sign]
        rows.append([each.section, each.words, each.printed, value, bounds, verdict])
    heads = ("section", "claim", "printed", "recomputed", "with rounding", "verdict")
    return SourcedTable(title, "So et al. 2021", dict.fromkeys(heads, ""), rows)


def large_scale(paper: Paper) -> list[Claim]:
    """Section 4.3 and Table 1: the hours to the baselines' final perplexities, at the compute of T5."""
    table = paper["table_1"]
    t5, primer = "Original T5", "Primer"
    # The two targets are where the baselines end; each model has a line for each target that it reached.
    weak = table.entry("perplexity", model=t5)
    strong = table.entry("perplexity", model="T5++", steps="1M")
    last = table.entry("perplexity", model=primer, steps="1M")

    def hours(model: str, target: str) -> str:
        return table.entry("hours", model=model, perplexity=target)

    def steps(target: str) -> str:
        return table.entry("steps", model=primer, perplexity=target)

    saved = (hours(t5, weak), hours(primer, weak))
    saved_of_strong = (hours("T5++", strong), hours(primer, strong))
    whole = (hours(primer, last), hours(t5, weak))
    # From Primer's line to the stronger target, the hours of a step; times the steps of its other line.
    line = (hours(primer, strong), steps(strong), steps(weak))
    return [
        claim("abs.", "training cost, T5 over Primer", "4", truediv, *saved),
        claim("4.3", "hours, original T5 over Primer", "4.2", truediv, *saved),
        claim("4.3", "hours, T5++ over Primer", "2", truediv, *saved_of_strong),
        claim("1", "perplexity gained over T5", "0.9", sub, weak, last),
        claim("1", '... "given the same training cost"', "1.0", truediv, *whole),
        claim(
            "4.3",
            "hours of 207K steps, at one pace",
            saved[1],
            lambda h, n, k: h / n * k,
            *line,
        ),
    ]


def search_task(paper: Paper) -> list[Claim]:
    """Section 4.1 and Table 4: the smallest saving on the search task."""
    table = paper["table_4"]
    speedups = [
        entry
        for model in ("Primer", "Primer-EZ")
        for entry in table.column("speedup", model=model)
    ]
    found = table.entry("speedup", setup="Tensor2Tensor, TPUv2", model="Primer")
    return [
        claim("4.1", "least speedup of the Primers", "≥1.7", min, *speedups),
        # "Less than half the compute", where the search took place. In T5, with 1.72, it is more than half.
        claim("3", "Primer's share of the compute", "<0.5", lambda s: 1 / s, found),
    ]


def a_days_steps(paper: Paper) -> list[Claim]:
    """Table 4: the printed rate of each row, times 24 hours, against its printed steps."""
    names = ("setup", "model", "rate", "steps")
    columns = [paper["table_4"].column(name) for name in names]
    return [
        claim("A.6", f"steps of {model}, {setup[:2]}", steps, lambda r: r * DAY, rate)
        for setup, model, rate, steps in zip(*columns, strict=True)
    ]


def model_sizes(paper: Paper) -> list[Claim]:
    """Sections 4.1 and 4.4: parameters that follow from the sizes of the models.

    The vocabulary is not printed. It follows from the largest model of the sweep, with tied embeddings, and
    without biases and norms.
    """
    names = ("layers", "width", "ratio")
    low = [float(n) for n in in_text(paper, *(f"smallest {name}" for name in names))]
    high = [float(n) for n in in_text(paper, *(f"largest {name}" for name in names))]
    layers, width, inner = map(
        float,
        in_text(paper, "one-shot layers", "one-shot width", "one-shot inner width"),
    )
    (largest,) = in_text(paper, "parameters of the largest")

    def blocks(layers: float, width: float, ratio: float) -> float:
        # Four matrices of the attention, two of the feed-forward layer.
        return layers * width**2 * (4 + 2 * ratio)

    def vocabulary(parameters: float) -> float:
        return (parameters - blocks(*high)) / high[1]

    return [
        claim(
            "4.1",
            "parameters of the smallest model",
            "23M",
            lambda n: blocks(*low) + low[1] * vocabulary(n),
            largest,
        ),
        claim(
            "4.4",
            "parameters, with the vocabulary of 4.1",
            "1.9B",
            lambda n: blocks(layers, width, inner / width) + width * vocabulary(n),
            largest,
        ),
    ]


def larger_data(paper: Paper) -> list[Claim]:
    """Section 4.2 and Table 5: T5 on larger data, and two other families of models."""
    ends = [
        entry
        for model in ("Primer", "Primer-EZ")
        for entry in paper["table_5"].column("speedup at 1M", model=model)
    ]
    synthesizer = ("Synthesizer", "Synthesizer + Squared ReLU")
    return [
        claim("4.2", "least speedup at the end", "≥1.8", min, *ends),
        *in_family(paper, "Switch Transformer", "Switch Primer", "525K", "1.5", "0.6"),
        *in_family(paper, *synthesizer, "1M", "2.0", "0.7"),
    ]


def in_family(
    paper: Paper, family: str, model: str, when: str, speedup: str, gain: str
) -> list[Claim]:
    """Return the claims about the changes in another family of models, at one of the two budgets."""
    table = paper["table_5"]
    found = table.entry(f"speedup at {when}", model=model)
    both = [table.entry(f"perplexity at {when}", model=m) for m in (family, model)]
    words = f"{family.split()[0]} at {when}"
    return [
        claim("4.2", f"{words}, speedup", speedup, float, found),
        claim("4.2", f"{words}, perplexity gained", gain, sub, *both),
    ]


def one_shot(paper: Paper) -> list[Claim]:
    """Section 4.4 and Table 6: equal quality at a third of the compute, and the counts of tasks."""
    table = paper["table_6"]
    perplexity = [
        table.entry(name, task="Pretraining")
        for name in ("Transformer full", "Primer 1/3")
    ]
    chips = in_text(paper, "TPUv4 chips of a pretraining", "time of a pretraining")
    return [
        claim(
            "4.4", "perplexity of Primer at 1/3", perplexity[0], float, perplexity[1]
        ),
        claim("4.4", "TPUv4 hours of a pretraining", "71.8K", mul, *chips),
        *counts(paper, by_test),
    ]


def by_test(first: float, second: float) -> float:
    """Return the smallest significant difference, by Student's t with 8 degrees of freedom."""
    return 2.306 * math.sqrt((first**2 + second**2) / 5)


def by_intervals(first: float, second: float) -> float:
    """Return the difference that separates two 95% intervals, of 4 degrees of freedom each."""
    return 2.776 * (first + second) / math.sqrt(5)


def counts(paper: Paper, needed: Callable[[float, float], float]) -> list[Claim]:
    """Section 4.4: on how many tasks Primer is better, worse, or the same, at either budget.

    `needed` gives the smallest significant difference for two standard deviations.
    """

    def lead(m0: float, s0: float, m1: float, s1: float) -> float:
        return m1 - m0 - needed(s0, s1)

    def lag(m0: float, s0: float, m1: float, s1: float) -> float:
        return m0 - m1 - needed(s0, s1)

    # A count jumps, so the rounding is taken account of in each task, before they are counted.
    def positive(numbers: list[Rounded]) -> Rounded:
        return Rounded(
            sum(each.low > 0 for each in numbers),
            sum(each.value > 0 for each in numbers),
            sum(each.high > 0 for each in numbers),
        )

    table, claims = paper["table_6"], []
    for model, printed in (
        ("Primer 1/3", ("5", "1", "21")),
        ("Primer full", ("15", "2", "10")),
    ):
        columns = [table.column(name) for name in ("Transformer full", model)]
        tasks = [
            (*base.split(" ± "), *ours.split(" ± "))
            for base, ours in zip(*columns, strict=True)
            if "±" in base
        ]
        better, worse = (
            positive([recompute(formula, *task) for task in tasks])
            for formula in (lead, lag)
        )
        same = Rounded(
            len(tasks) - better.high - worse.high,
            len(tasks) - better.value - worse.value,
            len(tasks) - better.low - worse.low,
        )
        claims += [
            Claim("4.4", f"tasks, {model}: {words}", number, result)
            for words, number, result in zip(
                ("better", "worse", "the same"),
                printed,
                (better, worse, same),
                strict=True,
            )
        ]
    return claims


def averages(paper: Paper, group: str, without: str = "") -> list[Claim]:
    """Table 6: the averages over the tasks of a group, for each column."""

    def mean(*numbers: float) -> float:
        return sum(numbers) / len(numbers)

    table, claims = paper["table_6"], []
    for model in list(table.columns)[3:]:
        names = ("task", "metric", model)
        columns = [table.column(name, group=group) for name in names]
        entries = [
            entry
            for task, metric, entry in zip(*columns, strict=True)
            if metric != "avg" and task != without
        ]
        average = table.entry(model, group=group, metric="avg")
        claims.append(claim("A.11", f"{model}, {group}", average, mean, *entries))
    return claims


def hurdle_marks(longest: float, hurdles: int) -> list[float]:
    """Return the marks of the hurdles and the longest training; every band between them costs the same."""
    bands = 2 ** (hurdles + 1) - 1
    return [longest * (2**i - 1) / bands for i in range(1, hurdles + 2)]


def average_time(*marks: float) -> float:
    """Return the average time of a training, if half of all stop at each hurdle."""
    bands = zip((0, *marks), marks, strict=False)
    return sum((end - start) / 2**i for i, (start, end) in enumerate(bands))


def search_costs(paper: Paper) -> list[Claim]:
    """Section 2 and appendices A.3 and A.13: what the hurdles save."""
    printed = in_text(paper, "hurdle 1", "hurdle 2", "hurdle 3", "hurdle 4")
    (longest,) = in_text(paper, "longest training")
    marks = [*printed, longest]
    of_all = in_text(paper, "individuals", "time of an individual")

    def hours(*marks: float) -> float:
        return average_time(*marks) / 3600

    def minutes(*marks: float) -> float:
        return average_time(*marks) / 60

    def saved(*marks: float) -> float:
        return marks[-1] / average_time(*marks)

    return [
        *(
            claim(
                "A.3",
                f"hurdle {i + 1}, s",
                mark,
                lambda t, i=i: hurdle_marks(t, 4)[i],
                longest,
            )
            for i, mark in enumerate(printed)
        ),
        claim("A.3", "time of an individual, s", "4064", average_time, *marks),
        claim("A.3", "... as 1 hour 8, in minutes", "68", minutes, *marks),
        claim("2", "time of an individual, hours", "1.1", hours, *marks),
        claim("A.3", "saved by hurdles", "6.2", saved, *marks),
        claim("2", "saved by hurdles", "6.25", saved, *marks),
        claim("2", "saved by 7 hours for a day", "3.43", lambda t: DAY / t, longest),
        claim("2", "saved by both", "21.43", lambda *m: DAY / average_time(*m), *marks),
        claim("A.13", "days of the search", "1145.8", lambda n, h: n * h / 24, *of_all),
    ]


def emissions(paper: Paper) -> list[Claim]:
    """Appendix A.13: the emissions of the search and of the trainings, in the order of the text."""
    search = in_text(
        paper,
        "search of Patterson et al.",
        "TPUv2 days of this search",
        "TPUv2 days of theirs",
        "overhead (PUE), Georgia",
        "overhead (PUE), theirs for the search",
        "carbon intensity, Georgia",
        "carbon intensity, theirs for the search",
    )
    t5 = in_text(
        paper,
        "T5 of 11B parameters, Patterson et al.",
        "TPUv3 days of three T5 trainings",
        "TPUv3 days of theirs",
        "overhead (PUE), Taipei",
        "overhead (PUE), theirs for T5",
        "carbon intensity, Taipei",
        "carbon intensity, theirs for T5",
    )
    pretraining = in_text(
        paper,
        "power of a TPUv4 chip",
        "hours of one pretraining",
        "overhead (PUE), Oklahoma",
        "carbon intensity, Oklahoma",
    )
    flops = in_text(paper, "compute of one pretraining", "compute of the search")
    (flight,) = in_text(paper, "a passenger's return flight")
    table = paper["table_1"]
    trainings = [
        table.entry("hours", model="Original T5"),
        *(table.entry("hours", model=m, steps="1M") for m in ("T5++", "Primer")),
    ]

    def pair(watts: float, hours: float, overhead: float, carbon: float) -> float:
        """Two pretrainings. A watt is a millionth of a megawatt."""
        return 2 * watts * hours * overhead * carbon / 1e6

    def flights(*numbers: float) -> float:
        return scaled(*numbers[:-1]) / numbers[-1]

    # Primer needs a third, so of one of the two trainings it saves two thirds: a third of both.
    return [
        claim("A.13", "search, t", "2.06", scaled, *search),
        claim("A.13", "search, in flights", "1.72", flights, *search, flight),
        claim(
            "A.13",
            "days of a T5 training",
            "687.5",
            lambda *h: sum(h) / len(h) / 24,
            *trainings,
        ),
        claim(
            "A.13",
            "days of the T5 trainings",
            t5[1],
            lambda *h: sum(h) / 24,
            *trainings,
        ),
        claim("A.13", "T5 trainings, t", "8.54", scaled, *t5),
        claim("A.13", "pretrainings, t", "29.26", pair, *pretraining),
        claim(
            "A.13", "saved by Primer, t", "9.75", lambda *p: pair(*p) / 3, *pretraining
        ),
        claim(
            "A.13",
            "saved, over the search",
            "4.7",
            lambda *p: pair(*p[:4]) / 3 / scaled(*p[4:]),
            *pretraining,
            *search,
        ),
        claim("A.13", "FLOPs saved", "1.98E+22", lambda f: 2 / 3 * f, flops[0]),
        claim(
            "A.13", "FLOPs, over the search", "9.24", lambda f, s: 2 / 3 * f / s, *flops
        ),
    ]


def scaled(
    tonnes: float,
    days: float,
    their_days: float,
    overhead: float,
    their_overhead: float,
    carbon: float,
    their_carbon: float,
) -> float:
    """Return emissions in tonnes, in proportion to a training that was measured."""
    ratio = days / their_days * overhead / their_overhead * carbon / their_carbon
    return tonnes * ratio


def by_topic(paper: Paper) -> dict[str, list[Claim]]:
    """Return all claims; of Table 4's days only those that fail, or there would be 17 more."""
    days = [each for each in a_days_steps(paper) if each.sign == "≠"]
    return {
        "Table 1": large_scale(paper),
        "Table 4": [*search_task(paper), *days],
        "Table 5": larger_data(paper),
        "Table 6": one_shot(paper),
        "Table 6, averages": [
            *averages(paper, "answering"),
            *averages(paper, "choice"),
        ],
        "Sizes of the models": model_sizes(paper),
        "The search": search_costs(paper),
        "Emissions": emissions(paper),
    }


def counted(topics: Mapping[str, Sequence[Claim]]) -> SourcedTable:
    """Return a table of the number of claims with each verdict, for each topic and for all."""
    every = [each for claims in topics.values() for each in claims]
    rows = [
        {"claims on": topic, "in all": f"{len(claims)}"}
        | {
            word: f"{sum(each.sign == sign for each in claims)}"
            for sign, word in VERDICTS.items()
        }
        for topic, claims in [*topics.items(), ("all", every)]
    ]
    return SourcedTable.of("Claims that were recomputed", "So et al. 2021", rows, {})
