"""Settings of the book. Sphinx describes its own: https://www.sphinx-doc.org/en/master/usage/configuration.html."""

project = "PROJECT"
extensions = ["sphinx_annotated"]
exclude_patterns = ["_build"]
html_theme = "alabaster"  # any theme works

# The chapters are the modules that the table of contents in index.md lists. To show how a package works, name
# its modules, say how their docstrings are written, and which of them run:
#
#     annotated_chapters = ["mypackage/*.py"]
#     annotated_style = "numpy"  # or google, restructuredtext, plain, markdown
#     annotated_execute = []
