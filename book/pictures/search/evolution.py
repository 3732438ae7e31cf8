"""One step of regularized evolution, and the hurdles that most programs do not pass."""

from drawing.canvas import Canvas

SEARCH = "labml_primer.search.evolution."
AGES, PITCH, LEFT, TOP = 10, 33, 52, 58
DRAWN, BEST = (2, 5, 7), 5
HURDLES = 4
START, LENGTH, TRACKS, STEP = 24, 352, 268, 11


def draw() -> str:
    """Return the picture as SVG."""
    canvas = Canvas(
        490,
        "Regularized evolution with halving hurdles",
        "Above, a population from the oldest program on the left to the youngest on the right. Three are "
        "drawn at random, and the best of them is the parent. Its mutated child joins on the right, and the "
        "oldest is removed. Below, 16 programs in training. Half of them stop at each of four hurdles, which "
        "are 1, 3, 7 and 15 thirty-firsts of the time from the start. One is trained to the end.",
    )
    population(canvas)
    hurdles(canvas)
    return canvas.svg()


def population(canvas: Canvas) -> None:
    """Draw the living, the tournament, the child and the oldest."""
    canvas.words(200, 16, "population", "title")
    canvas.words(LEFT - 10, TOP - 24, "oldest", "soft", side="left")
    canvas.words(
        LEFT + (AGES - 1) * PITCH + 10, TOP - 24, "youngest", "soft", side="right"
    )
    with canvas.link(SEARCH + "Individual"):
        for age in range(AGES):
            x = LEFT + age * PITCH
            if age in DRAWN:
                canvas.circle(x, TOP, 14, "ring c1" if age == BEST else "ring")
            canvas.circle(x, TOP, 7, "dot c1" if age == BEST else "dot")
    # The oldest is crossed out.
    canvas.line((LEFT - 9, TOP - 9), (LEFT + 9, TOP + 9), kind="thick")
    canvas.line((LEFT - 9, TOP + 9), (LEFT + 9, TOP - 9), kind="thick")
    middle, below = LEFT + BEST * PITCH, TOP + 112
    for age in DRAWN:
        x = LEFT + age * PITCH
        canvas.arrow(
            (x, TOP + 15), (x, TOP + 50), (middle, TOP + 50), (middle, TOP + 66)
        )
    canvas.words(
        LEFT + 2 * PITCH - 8,
        TOP + 58,
        "tournament:\nthe best wins",
        "soft",
        side="right",
    )
    canvas.box(middle - 42, TOP + 67, 84, 26, "parent", "c1", SEARCH + "Evolution.ask")
    canvas.arrow((middle, TOP + 94), (middle, below + 10))
    canvas.box(
        middle - 42,
        below + 11,
        84,
        26,
        "mutate",
        link="labml_primer.search.mutations.mutate",
    )
    right = LEFT + AGES * PITCH
    canvas.arrow(
        (middle + 43, below + 24), (right, below + 24), (right, TOP + 12), kind="c0"
    )
    canvas.circle(right, TOP, 7, "dot c0")
    canvas.words(right - 8, below + 8, "child, trained", "c0", side="right")


def hurdles(canvas: Canvas) -> None:
    """Draw the training of 16 programs, of which half stop at each hurdle."""
    whole = 2 ** (HURDLES + 1) - 1
    marks = [LENGTH * (2**k - 1) / whole for k in range(1, HURDLES + 2)]
    tracks = 2**HURDLES
    bottom = TRACKS + STEP * tracks
    canvas.words(200, TRACKS - 34, "training, with hurdles", "title")
    for track in range(tracks):
        # Tracks 8 to 15 stop at the first hurdle, 4 to 7 at the second, and track 0 nowhere.
        end = marks[HURDLES - track.bit_length()]
        y = TRACKS + STEP * track
        canvas.bar(START, y, end, STEP - 4, "c0" if track == 0 else "c5")
    with canvas.link(SEARCH + "shares"):
        for number, mark in enumerate(marks[:-1], start=1):
            x = START + mark
            canvas.line((x, TRACKS - 8), (x, bottom), kind="dashed")
            canvas.words(x, TRACKS - 16, str(number), "soft")
    canvas.words(START + LENGTH, TRACKS - 16, "end", "soft", side="right")
    canvas.arrow((START, bottom + 14), (START + LENGTH, bottom + 14))
    canvas.words(200, bottom + 28, "time", "soft")
