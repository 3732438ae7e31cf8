"""Compare how long functions take."""

import statistics
import time
from collections.abc import Callable, Mapping


def median_seconds(
    functions: Mapping[str, Callable[[], object]], rounds: int = 15
) -> dict[str, float]:
    """Return the median CPU time of each of `functions` over `rounds` calls.

    They take turns, so a machine that slows down slows all of them. A first call of each is
    not counted.
    """
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(rounds + 1):
        for name, function in functions.items():
            start = time.process_time()
            function()
            if turn:
                taken[name].append(time.process_time() - start)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}
