"""Settings of this documentation, which is a book of the extension that it describes."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [
    str(HERE.parent),
    str(HERE),
]  # the extension of this checkout, and the package of pictures

project = "sphinx-annotated"
author = "The authors of Primer, annotated"
extensions = ["sphinx_annotated"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3
html_theme = "alabaster"
annotated_style = {"examples/in_*": "plain"}
annotated_pictures = "pictures"
