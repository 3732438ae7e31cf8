"""
reStructuredText
================

A module whose docstrings have roles, directives and field lists.
"""

__docformat__ = "restructuredtext"


def gcd(a, b):
    """Return the greatest common divisor, as :func:`math.gcd` does.

    :param a: a number
    :type a: int
    :param int b: another
    :returns: the divisor
    :rtype: int

    .. note::

       It is never negative.

    .. versionadded:: 0.1
    """
    while b:
        a, b = b, a % b
    return abs(a)
