"""The page of all numbers: the sentences of the chapters that have one."""

from all_numbers import sentences
from docutils import nodes
from docutils.utils import new_document


def test_a_sentence_ends_as_in_its_language() -> None:
    for before, after, end in (
        ("It is short. Its loss is ", " nats. It ends.", " nats."),
        ("短いものです。損失は", "ナットです。終わります。", "ナットです。"),
    ):
        value = nodes.inline("", "1.9", classes=["value"])
        page = new_document("page")
        page += nodes.paragraph("", "", nodes.Text(before), value, nodes.Text(after))
        (found,) = sentences(page)
        assert "".join(each.astext() for each in found).endswith(f"1.9{end}")
        assert "short" not in found[0].astext() and "短" not in found[0].astext()
