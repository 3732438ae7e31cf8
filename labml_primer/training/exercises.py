"""Exercises in which the reader writes a function: is it right, and if not, what is wrong?"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

# The arguments, the expected result, and the reason for it.
Case = tuple[tuple[Any, ...], Any, str]


def check_answer(function: Callable[..., Any], cases: Sequence[Case]) -> bool | None:
    """Print whether `function` gives the expected results, or what is wrong in the first case that fails.

    Results are numbers or tensors, and are right to within rounding. Arguments are copied, so that a
    function that changes them does not spoil the next case. Returns true if all are right and otherwise
    nothing, because a notebook would print a `False` below the reason.
    """
    name = function.__name__
    for number, (arguments, expected, reason) in enumerate(cases, 1):
        copies = [a.clone() if isinstance(a, Tensor) else a for a in arguments]
        try:
            found = function(*copies)
        except Exception as error:  # the reader's own, so show it in a line
            # PyTorch raises the same error, with a message, for what it cannot do.
            if isinstance(error, NotImplementedError) and not error.args:
                print(f"{name} is not yet written")
                return None
            found, fault = None, f"raises {type(error).__name__}: {error}"
        else:
            fault = fault_of(found, expected)
        if fault:
            print(f"{name} is wrong in case {number} of {len(cases)}: it {fault}")
            print(f"The reason for the expected result: {reason}")
            return None
    print(f"{name} is right in all {len(cases)} cases")
    return True


def fault_of(found: Any, expected: Any) -> str:
    """Return what is wrong with a result, or nothing."""
    if found is None:
        return "returns nothing, so a `return` is missing"
    try:
        found = torch.as_tensor(found, dtype=torch.float64, device="cpu").detach()
    except (TypeError, ValueError, RuntimeError):
        return f"returns a {type(found).__name__}, not a number or a tensor"
    wanted = torch.as_tensor(expected, dtype=torch.float64).detach()
    if found.shape != wanted.shape:
        return f"returns the shape {list(found.shape)}, not {list(wanted.shape)}"
    wrong = ~torch.isclose(found, wanted, rtol=1e-4, atol=1e-5, equal_nan=True)
    if not wrong.any():
        return ""
    at = tuple(wrong.nonzero()[0].tolist())
    place = f" at {list(at)}" if at else ""
    return f"returns {found[at]:.4g}{place}, not {wanted[at]:.4g}"
