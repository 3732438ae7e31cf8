"""Words in figures, tables and values: an edition shows its translation, whatever the numbers are."""

import re

from sphinx_annotated.page.html.words import pattern, said, spoken, texts

GERMAN = {
    "{} to {}": "{} bis {}",
    "offset {}": "Abstand {}",
    "step": "Schritt",
    "PyTorch's weights": 'Gewichte "wie PyTorch"',
}
FIGURE = (
    """<g data-axes='{"x":["step","linear",0,450],"y":["","log",1,2]}'>"""
    """<g data-curve="PyTorch's weights"><text x="1">offset 3</text></g></g>"""
)


def say(text: str) -> str:
    return GERMAN.get(text, text)


def test_a_value_keeps_its_numbers_in_another_language() -> None:
    assert spoken("1.75 to 2.34", say) == "1.75 bis 2.34"
    assert spoken("−3% to +4.5%", say) == "−3% bis +4.5%"
    assert spoken("8 of 9", say) == "8 of 9"


def test_numbers_in_names_are_part_of_the_name() -> None:
    assert pattern("float32, T5 and d_2 at 1,200") == "float32, T5 and d_2 at {}"


def test_a_figure_says_the_same_where_one_reads_and_where_one_points() -> None:
    shown = said(FIGURE, say)
    assert '"x":["Schritt","linear",0,450],"y":["","log",1,2]' in shown
    assert ">Abstand 3</text>" in shown
    assert "data-curve='Gewichte \"wie PyTorch\"'" in shown


def test_a_figure_without_a_translation_stays_as_it_is() -> None:
    assert said(FIGURE, str) == FIGURE


def test_a_figure_as_it_was_drawn_has_the_messages_of_the_page() -> None:
    drawn = FIGURE.replace("data-axes='", "id='axes:").replace(
        'data-curve="', 'id="curve:'
    )
    assert sorted(texts(drawn)) == sorted(texts(FIGURE))
    assert {"step", "PyTorch's weights", "offset 3"} <= set(texts(drawn))


def test_a_unit_in_the_head_of_a_column_is_a_message_of_its_own() -> None:
    head = "<th>step <small>offset 3</small></th>"
    assert list(texts(head)) == ["step", "offset 3"]
    assert said(head, say) == "<th>Schritt <small>Abstand 3</small></th>"
    assert said(head, str) == head


def label(lines: list[tuple[str, float]], step: float = 14.0) -> str:
    """A label of these lines, each with the place of its first letter."""
    style = 'style="font-size: 10px; fill: black"'
    return "\n".join(
        f'<text {style} transform="translate({x} {20 + k * step})">{text}</text>'
        for k, (text, x) in enumerate(lines)
    )


def test_a_label_of_two_lines_is_one_message_and_keeps_its_alignment() -> None:
    middle = label([("nats by which", 100.0), ("it ends lower", 100.0)])
    assert list(texts(middle)) == ["nats by which it ends lower"]
    words = {"nats by which it ends lower": "一\n二", "a long line of two": "短い"}

    def places(markup: str) -> list[tuple[str, ...]]:
        found = said(markup, lambda text: words.get(text, text))
        return re.findall(r"anchor: (\w+).*?translate\((\S+) (\S+)\)\">(\w+)", found)

    assert places(middle) == [
        ("start", "100.00", "20.00", "一"),
        ("start", "100.00", "34.00", "二"),
    ]
    right = label([("a long line", 45.0), ("of two", 70.0)])
    assert places(right) == [("end", "100.00", "27.00", "短い")]
    centred = label([("a long line", 45.0), ("of two", 57.5)])
    assert places(centred) == [("middle", "72.50", "27.00", "短い")]
    assert said(right, str) == right


def test_words_of_two_labels_are_two_messages() -> None:
    apart = label([("up", 10.0)]) + "\n</g>\n<g>\n" + label([("down", 10.0)])
    assert list(texts(apart)) == ["up", "down"]


def test_a_translation_with_lines_is_one_line_where_the_figure_has_one() -> None:
    markup = '<text x="1">loss, nats per character</text>'
    wide = said(markup, lambda _: "損失\n（ナット/文字）")
    assert wide == '<text x="1">損失（ナット/文字）</text>'
    assert "perdo en natoj" in said(markup, lambda _: "perdo\nen natoj")
