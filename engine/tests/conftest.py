"""Shared by the engine's tests: small books made of a few modules."""

from fixtures import chapter, kernels_are_forked, project, shelf, write
from hypothesis import settings

__all__ = ["chapter", "kernels_are_forked", "project", "shelf", "write"]

settings.register_profile("engine", deadline=None)  # a machine may be busy
settings.load_profile("engine")
