"""
NumPy style
===========

A module whose docstrings have NumPy's sections.
"""

__docformat__ = "numpy"


def clip(value, low=0.0, high=1.0):
    r"""
    Return a value, or the nearest end of an interval.

    .. math:: \min(\max(x, a), b)

    Parameters
    ----------
    value : float
        Any number.
    low, high : float, optional
        The ends, ``low <= high``.

    Returns
    -------
    float
        A number of the interval.

    Raises
    ------
    ValueError
        If the interval is empty.

    See Also
    --------
    min, max

    Examples
    --------
    >>> clip(3)
    1.0
    """
    if low > high:
        raise ValueError(f"{low} is above {high}")
    # Comments are plain text: *no* markup here.
    return min(max(value, low), high)
