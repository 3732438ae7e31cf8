"""What a page has as Markdown, kind by kind."""

from urllib.parse import urljoin

from as_markdown import Writer
from docutils import nodes
from html_as_markdown import code, fenced, markdown_of


def address(link: str) -> str:
    return urljoin("https://a.org/x/y.html", link)


def written(*found: nodes.Node) -> str:
    return Writer(address, lambda path: f"https://a.org/{path}").blocks(found)


def test_html_becomes_text_with_tables_links_and_the_names_of_figures() -> None:
    html = (
        '<p>One <a href="z.html#b">link</a>, <code>code</code></p>'
        '<svg aria-label="A curve"><text>0.1</text></svg>'
        '<svg style="display: none" aria-label="The same"></svg><form hidden>No</form>'
        "<table><caption>Losses</caption><tr><th>model</th><th>loss</th></tr>"
        "<tr><td>a|b</td><td>1.2</td></tr></table><ul><li><p>item</p></li></ul>"
    )
    text = markdown_of(html, address)
    assert "One [link](https://a.org/x/z.html#b), `code`" in text
    assert "*Figure: A curve*" in text and "0.1" not in text
    assert "The same" not in text and "No" not in text
    table = "**Losses**\n\n| model | loss |\n| --- | --- |\n| a\\|b | 1.2 |"
    assert table in text and text.endswith("- item")


def test_code_in_html_keeps_its_lines_and_marks_in_words_stay_as_they_are_read() -> (
    None
):
    html = "<p>a*b*c &lt;b&gt; <code>a`*</code></p><pre>if x:\n    ```y\n<b>z</b></pre>"
    expected = "a\\*b\\*c \\<b> `` a`* ``\n\n````text\nif x:\n    ```y\nz\n````"
    assert markdown_of(html, address) == expected
    html = "<table><tr><td><pre>a\n b</pre></td></tr></table>"
    assert markdown_of(html, address) == "| `a b` |\n| --- |"


def test_marks_in_a_text_stay_as_they_are_read() -> None:
    text = nodes.paragraph("", "2 * 3 < 7, d_model, [1] and $5")
    assert written(text) == r"2 \* 3 \< 7, d_model, \[1\] and \$5"
    for opening, read in (("1. May", r"1\. May"), ("# 2", r"\# 2"), ("- x", r"\- x")):
        assert written(nodes.paragraph("", opening)) == read
    assert written(nodes.paragraph("", "&lt; 1.5")) == r"\&lt; 1.5"
    assert code("a `b`") == "`` a `b` ``"
    assert fenced("```\nx\n```", "text") == "````text\n```\nx\n```\n````"


def test_an_unknown_kind_of_node_loses_no_text() -> None:
    class unheard(nodes.General, nodes.Element):  # noqa: N801
        pass

    node = unheard("", nodes.paragraph("", "inside"))
    link = nodes.reference("", "there", refid="b")
    formula = nodes.math_block("", "y = x")
    found = written(node, nodes.paragraph("", "", link), formula)
    expected = "inside\n\n[there](https://a.org/x/y.html#b)\n\n$$\ny = x\n$$"
    assert found == expected


def test_lists_inside_lists_are_indented() -> None:
    inner = nodes.bullet_list("", nodes.list_item("", nodes.paragraph("", "b")))
    outer = nodes.list_item("", nodes.paragraph("", "a"), inner)
    assert written(nodes.enumerated_list("", outer)) == "1. a\n\n   - b"
