"""The search page's index of an edition in Chinese or Japanese, which is also that of the archive.

Sphinx splits these by a dictionary while building, and not at all while searching, so that it finds no
compound. Here, both take the same parts: of katakana and of other letters each run, of Chinese characters and
hiragana each pair of neighbours. 注意機構 is found where 注意, 意機 and 機構 are. Each Chinese character by
itself is found, too.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from sphinx.application import Sphinx
from sphinx.search import SearchLanguage

KATAKANA, OTHERS = "ァ-ヺー", "ぁ-ゖ々〆一-鿿"
RUN = re.compile(f"([{KATAKANA}]+)|([{OTHERS}]+)|((?:(?![{KATAKANA}{OTHERS}])\\w)+)")
HAN = re.compile("[々〆一-鿿]")
SPLIT = f"""
var splitQuery = query => {{
  const runs = /([{KATAKANA}]+)|([{OTHERS}]+)|((?:(?![{KATAKANA}{OTHERS}])[\\p{{L}}\\p{{N}}_])+)/gu;
  const parts = run => run.length < 2 ? [run] : [...run.slice(1)].map((letter, i) => run[i] + letter);
  return [...query.matchAll(runs)].flatMap(([run, , others]) => others ? parts(run) : [run]);
}};
"""


class Spaceless(SearchLanguage):
    """Splits texts as its script does."""

    js_splitter_code = SPLIT

    def split(self, input: str) -> list[str]:
        """Return the parts of a text that are found."""
        found: list[str] = []
        for match in RUN.finditer(input):
            run, others = match[0], match[2]
            if others:
                found += HAN.findall(run)
                found += [a + b for a, b in pairwise(run)]
            else:
                found.append(run)
        return found

    def word_filter(self, word: str) -> bool:
        """Keep short words, too: most parts are short."""
        return bool(word)


class Chinese(Spaceless):
    lang = "zh"


class Japanese(Spaceless):
    lang = "ja"


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_search_language(Chinese)
    app.add_search_language(Japanese)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
