"""A dictionary whose error lists its names."""

from typing import NoReturn, TypeVar

Value = TypeVar("Value")


class Named(dict[str, Value]):
    """A dictionary by name. An unknown name raises a `KeyError` that lists the known ones."""

    def __missing__(self, name: str) -> NoReturn:
        raise KeyError(f"{name!r} is not one of: {', '.join(self)}")
