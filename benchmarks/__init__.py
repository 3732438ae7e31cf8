"""What the book's code costs beside others: `python -m benchmarks.step` and its neighbours."""
