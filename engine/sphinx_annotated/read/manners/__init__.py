"""Modules in other people's manners: styles of docstrings, galleries, and notebooks as text."""
