"""Shared by the tests of the book's extensions: small books, as the engine's tests build them."""

from fixtures import chapter, kernels_are_forked, project, shelf, write

__all__ = ["chapter", "kernels_are_forked", "project", "shelf", "write"]
