"""A picture of a mean, which leads to its function."""


def draw() -> str:
    """Return the picture as SVG."""
    boxes = "".join(
        f'<rect x="{10 + 50 * i}" y="10" width="40" height="30" fill="none" stroke="currentColor"/>'
        for i in range(3)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 260 50" width="260" role="group"'
        ' aria-label="Three values and their mean"><desc>Three boxes, and a box with a word.</desc>'
        f'{boxes}<a href="examples.devices.mean"><rect x="200" y="10" width="50" height="30" '
        'fill="none" stroke="currentColor"/><text x="225" y="30" text-anchor="middle" '
        'font-size="14" fill="currentColor">mean</text></a></svg>'
    )
