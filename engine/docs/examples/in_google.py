"""Google style.

A module whose docstrings have Google's sections.
"""

__docformat__ = "google"


def lerp(start, end, share=0.5):
    """Return a point between two others.

    Args:
        start (float): Where the way begins.
        end (float): Where it ends.
        share: Which part of the way.

    Returns:
        The point.

    Example:
        >>> lerp(0, 10)
        5.0

    Note:
        It is :math:`a + t (b - a)`.
    """
    return start + share * (end - start)
