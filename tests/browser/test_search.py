"""A reader's searches lead to the right places."""

import re

import pytest
from lookups import LOOKUPS
from playwright.sync_api import Page, expect
from visits import Reading, answers, missed

SEARCHES = {
    "squared relu": "primer/primer_ez.html#SquaredReLU",
    "KV cache": "transformer/generation.html#CachedModel",
    "RoPE": "book/pages/glossary.html#term-RoPE",
    "cross-entropy": "training/counting.html",
    "MDHA": "primer/primer_ez.html#MultiDConvHeadAttention",
    "causal mask": "transformer/attention.html#causal_mask",
    "layer norm": "transformer/normalization.html#LayerNorm",
    "RMSNorm": "transformer/normalization.html#RMSNorm",
    "SwiGLU": "primer/baselines.html#GatedFeedForward",
    "mixture of experts": "compared/switch.html#SwitchFeedForward",
    "beam search": "transformer/generation.html#beam_search",
    "perplexity": "training/counting.html",
    "softmax": "training/loop.html",
    "relative position": "compared/t5.html#RelativePositionBias",
    "depthwise convolution": "primer/primer_ez.html#SpatialDepthWiseConvolution",
    "teacher forcing": "transformer/decoder.html#teacher-forcing",
    "top-p": "transformer/generation.html#keep_top_p",
    "speed-up factor": "primer/primer_ez.html#speedup_factor",
    "residual stream": "transformer/normalization.html",
    "multi-query attention": "transformer/attention.html",
}


@pytest.fixture
def page(reading: Reading) -> Page:
    """The welcome page with the search loaded, one visit for all look-ups."""
    opened = reading("book/pages/index")
    opened.locator(".search input").focus()  # which loads the search
    opened.locator("#hits").wait_for(state="attached")
    return opened


def test_searches_find_the_right_place_among_the_first_three(page: Page) -> None:
    first = {words: answers(page, words)[:3] for words in SEARCHES}
    wrong = {
        words: first[words]
        for words, place in SEARCHES.items()
        if not any(place in url for url in first[words])
    }
    assert wrong == {}


def test_look_ups_are_found_in_two_actions_or_said_not_to_be_there(page: Page) -> None:
    # Type, and choose one of the first three.
    assert missed(page, LOOKUPS) == {}


def test_a_query_without_an_answer_says_so(page: Page) -> None:
    assert answers(page, "Aufmerksamkeit") == []
    expect(page.locator("#hits")).to_have_text("Nothing is found for “Aufmerksamkeit”.")


def test_a_typing_error_finds_texts_too(page: Page) -> None:
    answers(page, "Shakespere")
    expect(page.locator("#hits mark").first).to_have_text(re.compile("^Shakespeare"))


def test_a_definition_comes_before_its_methods_and_variants(page: Page) -> None:
    found = answers(page, "squared relu")
    assert found[0].endswith("primer_ez.html#SquaredReLU")
    assert not any(url.endswith("#SquaredReLU.forward") for url in found)


def test_a_term_shows_its_definition_among_the_results(page: Page) -> None:
    answers(page, "nucleus sampling")
    term = page.locator("#hits [href$='#term-top-p-sampling']")
    expect(term).to_contain_text("smallest set", timeout=30_000)
