"""The book's pictures, in the groups of the library's parts. Each module draws one: `draw()` returns SVG.

A chapter shows a picture by its module's name, with the directive `picture`, so names are unique.
Pictures are drawn with the kit in `drawing`.
"""
