r"""
# Every device once

A chapter whose prose is Markdown, with each directive and role of the extension.

The mean of $n$ values is

$$
\bar x = \frac{1}{n} \sum_{i=1}^n x_i
$$

:::{picture} mean
:::
"""

import math
from collections.abc import Sequence


def mean(values: Sequence[float]) -> float:
    """
    ## The mean

    The docstring of a function is next to its first line. It may have lists, tables and notes:

    :::{note}
    An empty sequence has no mean.
    :::
    """
    # :::{deviation} the textbook
    # It adds from left to right. `fsum` loses nothing when it adds.
    # :::
    return math.fsum(values) / len(values)


class Plain:
    """A smoother that returns its values."""

    def smooth(self, values: list[float]) -> list[float]:
        width = 1
        return [mean(values[i : i + width]) for i in range(len(values) - width + 1)]


class Moving(Plain):
    """
    ## As a change of another

    It takes the mean of three neighbours. Only one line differs.

    :::{variant} Moving
    :of: Plain
    :cost: f"{len(Moving().smooth([1, 2, 3, 4]))} of 4 values"
    :::
    """

    def smooth(self, values: list[float]) -> list[float]:
        width = 3
        return [mean(values[i : i + width]) for i in range(len(values) - width + 1)]


if __name__ == "__main__":
    # ## It runs
    #
    # This block runs when the book is built. Its output is below its code.
    print(Plain().smooth([1.0, 2.0, 6.0]))
    print(Moving().smooth([1.0, 2.0, 6.0]))

    # The last mean is {value}`mean([1, 2, 6])`, which the build computed.

    # ## For another time
    #
    # :::{deeper}
    # Why the order of additions matters.
    # :::
    #
    # A sum loses digits if a large number comes first.
    print(sum([1e16, 1.0, -1e16]), math.fsum([1e16, 1.0, -1e16]))

    # ## An exercise
    #
    # :::{exercise} A mean of means
    # Is the mean of two means the mean of all values?
    # :::
    # :::{solution}
    # Only if both have equally many values.
    # :::
    assert mean([mean([1, 2]), mean([3])]) != mean([1, 2, 3])

    # ## All deviations
    #
    # :::{deviations}
    # :::
