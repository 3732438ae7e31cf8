"""What became of Primer's two changes: a timeline of those who adopted them, and of findings against them."""

from drawing.canvas import Canvas
from drawing.links import EZ, MDHA, SQUARED_RELU

SINCE = "labml_primer.since.short_convolutions"
# Year, and the entries of each column: a name, a note, and the definition in this book, if there is one.
YEARS: dict[int, tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]]] = {
    2021: (
        [("Primer", "squared ReLU", SQUARED_RELU)],
        [("Primer", "MDHA, width 3", MDHA)],
    ),
    2023: (
        [("RWKV-4", "in channel mixing", "")],
        [("RWKV-4", "token shift", f"{SINCE}.TokenShift")],
    ),
    2024: (
        [
            ("Nemotron-4", "no gate", ""),
            ("ReLU² Wins", "for sparsity", ""),
            ("modded-nanogpt", "record 5", ""),
        ],
        [("Gated DeltaNet", "width 4", "")],
    ),
    2025: (
        [
            ("BitNet 2B4T", "with a gate", ""),
            ("Arcee AFM-4.5B", "no gate", ""),
        ],
        [
            ("Canon layers", "width 4", f"{SINCE}.CanonLayer"),
            ("LFM2", "width 3", ""),
            ("modded-nanogpt", "smear", f"{SINCE}.Smear"),
            ("Qwen3-Next", "width 4", ""),
        ],
    ),
    2026: (
        [("nanochat", "kept over SwiGLU", "")],
        [("nanochat", "smear, disputed", "")],
    ),
}
LEFT, RIGHT, WIDE, TALL, PITCH = 56, 232, 162, 40, 48


def draw() -> str:
    """Return the picture as SVG."""
    rows = [max(len(side) for side in sides) for sides in YEARS.values()]
    told = "; ".join(
        f"{year}: " + ", ".join(f"{name} ({note})" for name, note, _ in (*one, *two))
        for year, (one, two) in YEARS.items()
    )
    canvas = Canvas(
        44 + PITCH * sum(rows) + 14 * len(rows),
        "Squared ReLUs and short convolutions since Primer",
        f"A timeline with two columns, squared ReLU and short convolutions. By year: {told}.",
    )
    canvas.words(LEFT + WIDE / 2, 16, "Squared ReLU", "title")
    canvas.words(RIGHT + WIDE / 2, 16, "Short convolutions", "title")
    top = 44.0
    canvas.line((44, top - 8), (44, top + PITCH * sum(rows) + 14 * len(rows) - 14))
    for (year, sides), count in zip(YEARS.items(), rows, strict=True):
        canvas.circle(44, top + TALL / 2, 4, "dot")
        canvas.words(6, top + TALL / 2, str(year), "strong left")
        for x, entries in zip((LEFT, RIGHT), sides, strict=True):
            for i, (name, note, link) in enumerate(entries):
                y = top + PITCH * i
                kind = "c1" if link.startswith(EZ) else ""
                canvas.box(x, y, WIDE, TALL, f"{name}\n*{note}*", kind, link)
        top += PITCH * count + 14
    return canvas.svg()
