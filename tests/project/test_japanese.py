"""The Japanese translation of the book uses its fixed terms."""

import re
from pathlib import Path

import theme
from editions.catalogues import Message, languages

LOCALE = Path(__file__).resolve().parents[2] / "book" / "locale"
JAPANESE = next(each for each in languages(LOCALE) if each.code == "ja")
# What the first translation of one page had wrong, or what would be a second word for a fixed term.
FORBIDDEN = {
    "変圧器": "Transformer",
    "トランスフォーマー": "Transformer",
    "入門": "Primer",
    "プライマー": "Primer",
    "探求": "探索",
    "検索空間": "探索空間",
    "リル": "ReLU",
    "正方形": "二乗",
    "2乗ReLU": "二乗ReLU",
    "コンバーチング": "Multi-DConv-Head Attention",
    "トレーニング": "学習",
    "訓練": "学習",
    "バニラ": "通常の",
    "プロジェクション": "射影",
    "深さ方向に": "深さ方向畳み込み",
    "残留接続": "残差接続",
    "レイヤー": "層",
    "パラメーター": "パラメータ",
    "エンコーダー": "エンコーダ",
    "デコーダー": "デコーダ",
    "オプティマイザー": "オプティマイザ",
    "ブラウザで": "ブラウザー",
    "お読みください": "です・ます in running text",
    "数え上げ": "n-gramモデル, 出現回数",  # it means enumeration
    "要約すると": "まとめると, or nothing",
}


def messages() -> list[tuple[str, Message]]:
    every = JAPANESE.catalogues().items()
    return [
        (domain, m)
        for domain, found in every
        for m in found
        if m.text and not m.obsolete
    ]


def test_forbidden_renderings_of_terms_do_not_occur() -> None:
    found = [
        f"{JAPANESE.path(domain)}:{m.line}: {word}; write {right}"
        for domain, m in messages()
        for word, right in FORBIDDEN.items()
        if word in m.text
    ]
    assert found == []


def test_no_space_is_typed_between_japanese_and_latin_letters() -> None:
    letter = "[ぁ-んァ-ヶ一-龠々ー]"
    gap = re.compile(f"{letter} [A-Za-z0-9`$]|[A-Za-z0-9`$] {letter}")
    left = [
        f"{JAPANESE.path(domain)}:{m.line}: {match[0]}"
        for domain, m in messages()
        if domain not in ("pictures", "words") and (match := gap.search(m.text))
    ]
    assert left == []


def test_a_line_does_not_begin_with_the_punctuation_after_a_formula() -> None:
    tex = '<annotation encoding="application/x-tex">x</annotation>'
    formula = f'<span class="math">{tex}</span>'
    shown = theme.glued(f"値は（{formula}）。")
    assert shown == f'値は<span class="glue">（{formula}）。</span>'
