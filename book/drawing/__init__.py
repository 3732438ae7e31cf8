"""The kit that the pictures are drawn with: a canvas, shared blocks, shared links, and programs."""
