"""Outputs that could harm or leave the page: shown well, or a warning that says what to do instead."""

import re
from collections.abc import Callable

import pytest
from small_books import Built, Shelf
from sphinx_annotated.page.html.outputs import Fragment, problem, without_headings

SHOWN = '''
    """# Outputs

    A summary.
    """

    from IPython.display import HTML, IFrame, Image, Markdown, YouTubeVideo, display

    if __name__ == "__main__":
        # Shown.
        display(Markdown("# Results\\n\\n| a | b |\\n|---|---|\\n| 1 | 2 |"))
        display(IFrame("https://example.org/", 300, 200))
        display(YouTubeVideo("abc"))
        display(HTML("<h1>Big</h1><style>p {display: none}</style><p>styled</p>"))
        display(HTML("</div></div><select><option>one"))
        display(Image(data=b"GIF89a", format="gif"))
'''
DEAD = '''
    """# Moves

    A summary.
    """

    import matplotlib.pyplot as plt
    from IPython.display import HTML
    from matplotlib.animation import FuncAnimation

    fig, ax = plt.subplots()
    (line,) = ax.plot([0, 1], [0, 1])
    moving = FuncAnimation(fig, lambda i: line.set_ydata([0, i]), frames=3)
    plt.close(fig)
    HTML(moving.to_jshtml())
'''


@pytest.fixture(scope="module")
def built(shelf: Callable[[dict[str, str]], Shelf]) -> Built:
    return shelf({"shown.py": SHOWN, "dead.py": DEAD}).well_built("--keep-going")


def test_an_animation_is_a_warning_at_its_line_that_says_what_to_do(
    built: Built,
) -> None:
    (warning,) = [line for line in built.log.splitlines() if "WARNING" in line]
    assert "dead.py:14: WARNING: an output" in warning
    assert "Show" in warning
    page = built.page("dead")
    assert "shown in the notebook only" in page
    assert "bootstrapcdn" not in page and "new Animation" not in page


def test_a_page_has_one_title_whatever_its_outputs_are(built: Built) -> None:
    page = built.page("shown")
    titles = re.findall(r"<h1>.*?</h1>", page)
    assert len(titles) == 1 and "Outputs" in titles[0]
    assert "<strong>Results</strong>" in page and "<strong>Big</strong>" in page
    assert re.search(r"<td[^>]*>(<p>)?2", page)


def test_a_frame_of_another_site_is_a_link(built: Built) -> None:
    page = built.page("shown")
    assert "<iframe" not in page
    assert '<a href="https://example.org/">https://example.org/</a>' in page
    assert 'href="https://www.youtube.com/embed/abc"' in page


def test_the_style_of_an_output_reaches_only_the_output(built: Built) -> None:
    page = built.page("shown")
    (name, inside) = re.findall(r'<div id="(o-\w+)">(.*?)</div>', page, re.DOTALL)[0]
    assert f"<style>#{name} {{p {{display: none}}}}</style>" in inside
    assert "styled" in inside
    assert page.count("<style>") == inside.count("<style>")


def test_an_output_ends_where_its_page_continues(built: Built) -> None:
    page = built.page("shown")
    assert re.search(r"<select><option>one\s*</select>", page)


def test_an_animated_gif_is_an_image(built: Built) -> None:
    assert 'src="data:image/gif;base64,R0lGODlh"' in built.page("shown")


@pytest.mark.parametrize(
    ("html", "what"),
    [
        ("<script>x()</script>", "needs a script"),
        ('<b onclick="x()">b</b>', "needs a script"),
        ('<a href="javascript:x()">b</a>', "needs a script"),
        ('<img src="https://a.org/b.png">', "loads from a.org"),
        ('<img src="//a.org/b.png">', "loads from a.org"),
        ('<img src="plot.png">', "loads from a file that the page does not have"),
        ('<link rel="stylesheet" href="https://a.org/b.css">', "loads from a.org"),
        ("<style>@import 'a.css';</style>", "loads a file by its style"),
        ("<style>b {background: url(https://a.org)}</style>", "loads a file"),
        ("<style>b {} } p {}</style>", "has a style whose braces do not match"),
        ('<iframe src="plot.html"></iframe>', "is a frame with a document of its own"),
        ('<iframe srcdoc="a"></iframe>', "is a frame with a document of its own"),
    ],
)
def test_what_a_page_cannot_show_is_named(html: str, what: str) -> None:
    assert what in problem({"data": {"text/html": html}})
    assert what in problem({"data": {"text/markdown": f"Words.\n\n{html}"}})


@pytest.mark.parametrize(
    "html",
    [
        "<table><thead><tr><th>a &lt; b</th></tr></thead><tbody></tbody></table>",
        '<img alt="a" src="data:image/png;base64,AA">',
        '<video controls><source src="data:video/mp4;base64,AA"></video>',
        "<p>One<p>Two<br/>&#955; and &amp;",
        '<svg viewBox="0 0 1 1"><path d="M0 0"/></svg>',
        "<pre>a\n  b</pre>",
    ],
)
def test_other_html_stays_as_it_is(html: str) -> None:
    assert Fragment(html).text == html
    assert not problem({"data": {"text/html": html}})


def test_headings_of_markdown_become_bold_lines_except_in_code() -> None:
    text = "# A\n\nB\n===\n\n```\n# c\n```\n\n- d\n\n#e"
    plain = without_headings(text)
    assert "**A**" in plain and "**B**" in plain and "===" not in plain
    assert "```\n# c\n```" in plain and "#e" in plain
