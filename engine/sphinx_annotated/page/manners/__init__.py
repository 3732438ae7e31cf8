"""Prose in other people's manners: reStructuredText, NumPy, Google and plain text."""
