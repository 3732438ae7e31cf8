"""The archive's search in Chinese and Japanese: the index and the search page split words alike."""

import json
import subprocess

import pytest
from search_index import NODE, RANKING
from spaceless_search import SPLIT, Spaceless

TEXT = (
    "注意機構は、乱数シードごとにMulti-DConv-Head Attentionのd_k個の特徴を使います。層と表。トークン"
    "多头注意力的位置编码，前馈层。"
)
FOUND = [
    "注意機構",
    "機構",
    "乱数シード",
    "シード",
    "d_k",
    "head attention",
    "層",
    "個の特徴",
    "注意力",
    "位置编码",
    "前馈",
]


def asked(queries: list[str]) -> list[list[str]]:
    """What the search page looks up for each query."""
    script = (
        f"{SPLIT}\nconsole.log(JSON.stringify({json.dumps(queries)}.map(splitQuery)));"
    )
    run = subprocess.run(
        [NODE, "-e", script], capture_output=True, check=True, stdin=subprocess.DEVNULL
    )
    found: list[list[str]] = json.loads(run.stdout)
    return found


@pytest.fixture(scope="module")
def index() -> set[str]:
    search = Spaceless({})
    return {part.lower() for part in search.split(TEXT) if search.word_filter(part)}


def test_compounds_and_single_letters_are_found(index: set[str]) -> None:
    for query, parts in zip(FOUND, asked(FOUND), strict=True):
        assert parts and set(parts) <= index, query


def test_what_a_text_does_not_have_is_not_found(index: set[str]) -> None:
    others = ["機構注意", "ーク", "乱数生成", "交叉熵"]
    for query, parts in zip(others, asked(others), strict=True):
        assert not set(parts) <= index, query


def test_excerpts_have_no_space_that_the_text_does_not_have() -> None:
    text = "注意機構は、Primer-EZのKVキャッシュ（d_k個）です。Two words, 3節。“键”和《论文》：第3节。"
    script = (
        f"const {{ split, joined }} = await import({json.dumps(RANKING.as_uri())});"
        f"const found = split({json.dumps(text)});"
        "console.log(JSON.stringify([found, joined(found.replace('機構', '<mark>機構</mark>'))]));"
    )
    command = [NODE, "--input-type=module", "-e", script]
    run = subprocess.run(
        command, capture_output=True, check=True, stdin=subprocess.DEVNULL
    )
    split, shown = json.loads(run.stdout)
    assert "注意 機構 は" in split
    assert shown == text.replace("機構", "<mark>機構</mark>")
