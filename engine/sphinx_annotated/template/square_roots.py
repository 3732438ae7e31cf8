r"""
# Square roots

Newton's method finds a square root with additions and divisions alone.

If a guess $x$ is above $\sqrt{a}$, then $a / x$ is below it, and the other way around. Their mean is closer:

$$
x_{n+1} = \frac{1}{2} \left( x_n + \frac{a}{x_n} \right)
$$
"""

from collections.abc import Iterator


def guesses(a: float, steps: int) -> Iterator[float]:
    """
    ## The method

    The docstring of a function or class is the prose next to its first line. `## Heading` starts a section of
    the page.
    """
    x = a
    for _ in range(steps):
        # A comment of its own line is prose next to the lines below it.
        x = (x + a / x) / 2  # A comment after code stays there.
        yield x


if __name__ == "__main__":
    # ## It runs
    #
    # This block is a demonstration. It runs when the book is built, and not when the module is imported.
    for x in guesses(2.0, steps=4):
        print(x)

    # Each step about doubles the number of right digits. The fourth guess differs from $\sqrt{2}$ by
    # {value}`f"{abs(x - 2**0.5):.0e}"`, a number that the build computed.
