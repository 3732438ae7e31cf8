"""Pieces of HTML: lines of code, outputs, figures and tables, and the boxes around them."""
