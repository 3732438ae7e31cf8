"""Plain text.

Nothing is markup: *stars*, _lines_, [brackets](here) and `ticks` stay.
"""

__docformat__ = "plain"


def area(r):
    """Area of a circle.

    r*r*pi, for any r >= 0
    """
    return r * r * 3.14159265
