"""Record, in a chapter's kernel, what the functions that modules list in ``__recorded__`` return.

The engine runs this file in the kernel before the chapter's code. The reader's notebook has the
results instead of the functions, so it needs none of the files that they read.
"""

import functools
import importlib
import json
from collections.abc import Callable
from typing import Any


class Returned:
    """Replaces functions, given by module and name, by ones that keep what they return."""

    def __init__(self, functions: dict[str, list[str]]):
        self.calls: dict[str, dict[str, Any]] = {}
        for module, names in functions.items():
            found = importlib.import_module(module)
            for name in names:
                setattr(
                    found, name, self.noted(f"{module}.{name}", getattr(found, name))
                )

    def noted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that does the same, and keeps what it returned for its arguments."""

        calls = self.calls[name] = {}

        @functools.wraps(function)
        def wrapper(*arguments: Any, **named: Any) -> Any:
            if named:
                raise TypeError(
                    f"{name} is recorded, so its arguments have no names: pass {', '.join(named)} by position"
                )
            value = function(*arguments)
            call = [list(arguments), value]
            if (again := as_json(call)) != call:
                raise TypeError(
                    f"{name} is recorded, so its arguments and its result must be JSON: lists, "
                    "dicts with text as keys, text, numbers, true, false, None"
                )
            calls[json.dumps(arguments)] = again
            return value

        return wrapper

    def result(self) -> dict[str, list[Any]]:
        """Return the arguments and the results of the calls of each function."""
        return {name: list(calls.values()) for name, calls in self.calls.items()}


def as_json(value: Any) -> Any:
    """Return what JSON makes of a value, and None if it cannot write it."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return None
