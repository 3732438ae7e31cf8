"""The book's pictures. Each module draws one: `draw()` returns it as SVG.

A chapter shows a picture by its module's name, with the directive `picture`.
"""
