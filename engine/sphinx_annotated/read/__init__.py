"""Read modules: text in, rows, cells, names and digests out. Nothing here executes code."""
