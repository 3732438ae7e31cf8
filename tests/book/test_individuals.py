"""The page of recorded individuals: what it makes of a log, here of a small search made in the test."""

import json
import re
from itertools import pairwise
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import individuals
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sphinx.cmd.build import build_main

from labml_primer.search.mutations import MUTATIONS, mutate
from labml_primer.search.programs import DNA, PRIMER, TRANSFORMER, parse

ROOT = Path(__file__).resolve().parents[2]


def small_search() -> list[dict[str, object]]:
    """Return the log of a search of 30: three are copies of the Transformer, one has no outcome yet."""
    random = Random(0)
    programs: list[DNA] = []
    log: list[dict[str, object]] = [{"began": {}}]
    for number in range(30):
        parent = None if number < 3 else random.randrange(number)
        dna = TRANSFORMER if parent is None else mutate(programs[parent], random)
        programs.append(dna)
        log.append(
            {
                "born": number,
                "parent": parent,
                "mutations": [] if parent is None else ["insert", "mutate_field"],
                "bars": [None, 2.5],
                "dna": str(dna),
            }
        )
        if number == 29:
            continue
        rejected = "a loss is not finite" if number == 5 else ""
        losses = [] if rejected else [3.0, 2.5, 2.0 - number / 100][: 1 + number % 3]
        log.append(
            {"ended": number, "losses": losses, "rejected": rejected, "seconds": 1.5}
        )
    return log


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "small.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in small_search()))
    return path


def test_every_individual_of_a_log_is_read_with_its_outcome(log: Path) -> None:
    found = individuals.read_search(log)
    assert [each.number for each in found] == list(range(30))
    assert found[5].outcome == "rejected: a loss is not finite"
    assert found[6].outcome == "loss 3.000, stopped at hurdle 1"
    assert found[7].outcome == "loss 2.500, stopped at hurdle 2"
    assert found[8].outcome == "loss 1.920"
    assert found[29].outcome == "not evaluated yet"


def test_a_log_may_end_at_any_byte(log: Path) -> None:
    text = log.read_text()
    for end in range(0, len(text), 997):
        log.write_text(text[:end])
        found = individuals.read_search(log)
        data = individuals.data("small", found)
        assert len(data["individuals"]) == len(found)


def test_a_damaged_line_of_a_log_is_named(log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    for damaged in (b"<<<<<<< HEAD\n", b"\xff\n"):
        log.write_bytes(b"".join([*lines[:2], damaged, *lines[2:]]))
        with pytest.raises(ValueError) as raised:
            individuals.read_search(log)
        message = f"{log}, line 3: no JSON; restore it from Git"
        assert str(raised.value) == message


def test_the_best_was_trained_to_the_end_and_its_lineage_begins_the_search(
    log: Path,
) -> None:
    found = individuals.read_search(log)
    best = individuals.best(found)
    assert best is not None and best.number == 26
    line = individuals.lineage(found, best)
    assert line[0].parent is None and line[-1] is best
    for parent, child in pairwise(line):
        assert child.parent == parent.number


def test_the_data_have_each_program_in_pieces_that_are_stored_once(log: Path) -> None:
    found = individuals.read_search(log)
    data = individuals.data("small", found)
    assert len(set(data["texts"])) == len(data["texts"])
    for each, row in zip(found, data["individuals"], strict=True):
        text = "\n".join(data["texts"][piece] for piece in row["program"])
        assert parse(text) == parse(each.dna)


@given(st.sampled_from([TRANSFORMER, PRIMER]), st.integers(0, 10_000).map(Random))
def test_what_any_mutation_changes_is_said_and_drawn(dna: DNA, random: Random) -> None:
    for mutation in MUTATIONS:
        child = mutation(dna, random)
        found = individuals.changed(str(dna), str(child))
        assert individuals.in_words(found)
        for s, (old, new) in enumerate(
            zip(dna.subprograms, child.subprograms, strict=True)
        ):
            same = [i.operation for i in old] == [i.operation for i in new]
            assert same or s in found
        assert bool(found) or len(child) == len(dna)
        if found:
            root = ElementTree.fromstring(individuals.drawn(found, "Two programs"))
            assert len(root.findall(".//{*}rect")) > len(found)


def test_an_inserted_instruction_is_named_with_its_subprogram() -> None:
    text = str(TRANSFORMER)
    squared = text.replace(
        "h2 = MAX(h0, h0)", "h2 = MAX(h0, h0)\n  h3 = SQUARE(h2, h2)"
    )
    found = individuals.changed(text, squared)
    assert individuals.in_words(found) == "S9: new SQUARE"


def test_an_instruction_with_other_inputs_is_named_with_what_it_reads() -> None:
    text = str(TRANSFORMER)
    for old, new, words in (
        ("S2(h6, h6)", "S2(h0, h6)", "S0: S2 reads the input"),
        ("S8(h5, h7)", "S8(h7, h7)", "S0: S8 reads S2"),
        ("S8(h5, h7)", "S8(h7, h5)", "S0: S8 reads S2 and S8"),
        ("DIFFERENCE(h0, h2)", "DIFFERENCE(h2, h0)", "S6: DIFFERENCE reads"),
        ("ADD(h0, h1)", "ADD(h1, h0)", "a part without effect"),
    ):
        assert text.count(old) == 1
        found = individuals.changed(text, text.replace(old, new))
        assert individuals.in_words(found).startswith(words)


def test_a_lineage_has_a_step_for_each_individual_with_a_link_and_its_loss(
    log: Path,
) -> None:
    found = individuals.read_search(log)
    line = individuals.lineage(found, found[26])
    html = individuals.lineage_html("small", line, "individuals.html")
    links = re.findall(r'href="individuals.html#small/(\d+)"', html)
    assert list(map(int, links)) == [each.number for each in line]
    assert html.count("<li>") == len(line)
    assert "loss 1.740" in html


def test_a_step_has_the_change_of_the_loss_from_parent_to_child(log: Path) -> None:
    parent, child = individuals.read_search(log)[:2]
    child.parent, child.losses, parent.losses = 0, [3.0, 2.5, 1.9], [3.0, 2.5, 2.15]
    assert "Loss -0.250 against its parent" in individuals.lineage_html(
        "small", [parent, child]
    )


def test_reasons_and_names_are_escaped_in_html() -> None:
    each = individuals.Individual(0, None, [], str(TRANSFORMER), [], rejected="<b>&")
    html = individuals.lineage_html("<i>", [each])
    assert "<b>" not in html and "<i>" not in html


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The folder of a small book's site: a page with the form, one with the lineages, one with neither."""
    (tmp_path / "records").mkdir()
    (tmp_path / "conf.py").write_text(
        'extensions = ["individuals"]\nhtml_theme = "basic"\n'
        'individuals_records, individuals_page = "records", "index"\n'
        'individuals_plan = "plan.toml"\n'
    )
    (tmp_path / "plan.toml").write_text("[search.b]\n[search.a]\n[search.c]\n")
    for name, text in {
        "index": "The best: :winner:`a`.\n\n.. individuals::\n\n.. toctree::\n\n   lines\n   other\n",
        "lines": ".. lineage::\n",
        "other": "Text.\n",
    }.items():
        (tmp_path / f"{name}.rst").write_text(f"{name}\n=====\n\n{text}")
    return tmp_path / "site"


def built(site: Path) -> list[str]:
    """Build the small book. Returns the pages that were read for it."""
    doctrees = site.parent / "doctrees"

    def written() -> dict[str, int]:
        files = doctrees.glob("*.doctree")
        return {path.stem: path.stat().st_mtime_ns for path in files}

    before = written()
    command = ["-W", "-q", "-d", str(doctrees), str(site.parent), str(site)]
    assert build_main(command) == 0
    return sorted(dict(written().items() - before.items()))


def test_a_search_is_on_the_pages_as_soon_as_it_is_recorded_in_the_order_of_the_plan(
    site: Path, log: Path
) -> None:
    assert built(site) == ["index", "lines", "other"]
    for page in ("index", "lines"):
        assert "No search has been recorded yet." in (site / f"{page}.html").read_text()
    first, second = (log.parent / "records" / f"{name}.jsonl" for name in "ab")
    first.write_text(log.read_text())
    assert built(site) == ["index", "lines"]
    assert "<option>a</option></select>" in (site / "index.html").read_text()
    assert 'href="index.html#a/26"' in (site / "lines.html").read_text()
    second.write_text(log.read_text())
    assert built(site) == ["index", "lines"]
    options = "<option>b</option><option>a</option></select>"
    assert options in (site / "index.html").read_text()
    assert 'href="index.html#b/26"' in (site / "lines.html").read_text()
    assert built(site) == []
    first.unlink()
    assert built(site) == ["index", "lines"]
    assert "#a/26" not in (site / "lines.html").read_text()


def test_a_page_links_to_the_best_individual_of_a_search(site: Path, log: Path) -> None:
    (log.parent / "records" / "a.jsonl").write_text(log.read_text())
    built(site)
    assert re.search(
        r'The best: <a[^>]* href="#a/26">individual 26</a>',
        (site / "index.html").read_text(),
    )


def test_the_page_says_of_each_search_what_its_best_program_computes() -> None:
    page = (ROOT / "book/pages/individuals.md").read_text(encoding="utf-8")
    records = json.loads((ROOT / "experiments/results/searches.json").read_text())
    said = dict(re.findall(r"\{winner\}`([\w-]+)`\n: ((?:.+\n)+)", page))
    assert list(said) == list(records["searches"])
    for name, search in records["searches"].items():
        runs = [line.split(" = ")[1].partition("(")[0] for line in search["best"]]
        assert "MAT MUL" not in str(runs), "attention is gone"
        (convolution,) = (
            each
            for each in runs
            if re.match(r"D?CONV \d+X", each[:-1]) and each[-4:] != " 1X1"
        )
        width = re.findall(r"\d+", convolution)[0]
        assert f"convolution of width {width}" in said[name]
        assert ("depthwise" in said[name]) == convolution.startswith("D")
        assert ("sine" in said[name]) == ("SIN" in runs)
        squares = re.findall(
            r"(h\d+) = MULTIPLY\((h\d+), \2\)", "\n".join(search["best"])
        )
        outside = [v for v, _ in squares if f"RED MEAN({v})" not in str(search["best"])]
        assert ("square" in said[name]) == bool(outside), "one that is not in a norm"
        assert ("norm" in said[name].replace("no norm", "")) == ("DIVIDE" in runs)


def test_the_site_has_the_data_of_each_search(site: Path, log: Path) -> None:
    (log.parent / "records" / "a.jsonl").write_text(log.read_text())
    built(site)
    script = (site / "_downloads" / "search" / "a.js").read_text()
    assert script == individuals.script("a", individuals.read_search(log))
    assert 'data-folder="_downloads/search"' in (site / "index.html").read_text()
