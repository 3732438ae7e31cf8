"""How a model is measured: one play chooses its learning rate, two judge it, seed by seed."""

from drawing.canvas import Canvas

LOOP = "labml_primer.training.loop"
OURS, RESULTS = "experiments.chapters.ours", "experiments.chapters.results"
WIDE, TALL = 124, 42
COLUMNS = 8, 138, 268
TEXTS, RATES, SEEDS, RESULT = 34, 130, 226, 322


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        386,
        "How a model is measured",
        "From the top down. The text is split: most plays are for training, one comedy is for the choice of "
        "a learning rate, and a tragedy and a history are for the reported loss. Each model is trained with "
        "several learning rates, and the loss on the comedy decides. With that rate it is trained with three "
        "to five seeds. Their losses on the other two plays give a mean and a standard deviation, and are "
        "compared seed by seed with those of other models.",
    )
    canvas.words(200, 12, "plays", "soft")
    for x, text, kind in zip(
        COLUMNS,
        (
            "the others:\ntraining",
            "comedy: chooses\nthe rate",
            "tragedy, history:\nreported loss",
        ),
        ("", "c2", "c0"),
        strict=True,
    ):
        canvas.box(x, TEXTS, WIDE, TALL, text.replace("\\\n", "\n"), kind)
    training, choice, report = (x + WIDE / 2 for x in COLUMNS)
    _runs(canvas, training, RATES, "3 to 7\nlearning rates")
    canvas.arrow((training, TEXTS + TALL), (training, RATES))
    canvas.box(COLUMNS[1], RATES, WIDE, TALL, "the lowest loss", "c2")
    canvas.arrow((choice, TEXTS + TALL), (choice, RATES), kind="c2")
    canvas.arrow((COLUMNS[0] + WIDE, RATES + TALL / 2), (COLUMNS[1], RATES + TALL / 2))
    _runs(canvas, training, SEEDS, "3 to 5 seeds,\nthat rate")
    canvas.arrow(
        (choice, RATES + TALL),
        (choice, SEEDS - 26),
        (training, SEEDS - 26),
        (training, SEEDS),
        kind="c2",
    )
    canvas.box(COLUMNS[2], SEEDS, WIDE, TALL, "a loss\nfor each seed", "c0")
    canvas.arrow((report, TEXTS + TALL), (report, SEEDS), kind="c0")
    canvas.arrow((COLUMNS[0] + WIDE, SEEDS + TALL / 2), (COLUMNS[2], SEEDS + TALL / 2))
    canvas.arrow((report, SEEDS + TALL), (report, RESULT))
    canvas.box(COLUMNS[2], RESULT, WIDE, TALL, "mean ± standard\ndeviation", "c0", OURS)
    canvas.box(
        COLUMNS[0],
        RESULT,
        WIDE + 60,
        TALL,
        "differences, seed by seed,\nand what noise explains",
        "",
        RESULTS,
    )
    canvas.arrow(
        (COLUMNS[2], RESULT + TALL / 2), (COLUMNS[0] + WIDE + 60, RESULT + TALL / 2)
    )
    return canvas.svg()


def _runs(canvas: Canvas, x: float, y: float, text: str) -> None:
    """Draw several runs of the training loop behind each other."""
    for behind in range(2, -1, -1):
        shift = 3 * behind
        words, link = (text, LOOP) if not behind else ("", "")
        canvas.box(
            x - WIDE / 2 + shift, y + shift, WIDE - 6, TALL - 6, words, link=link
        )
