"""What the book's code costs beside what else one could take: `python -m benchmarks.step` and its neighbours."""
