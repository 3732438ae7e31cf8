"""What the commands of the experiments share: numbers in arguments, durations in words, the environment."""

import argparse
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


def positive_integer(text: str) -> int:
    """Return the number that a command was given as an argument. argparse prints the error."""
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")


def hours(seconds: float) -> str:
    """Return a duration as a text, such as "2.5 h" or "12 min"."""
    return f"{seconds / 3600:.1f} h" if seconds > 3600 else f"{seconds / 60:.0f} min"


@contextmanager
def environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment, and restore the whole environment at the end."""
    before = dict(os.environ)
    os.environ.update(settings)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
