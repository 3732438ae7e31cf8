"""A reader's searches lead to the right places."""

from playwright.sync_api import Page, expect
from visits import Visitor

SEARCHES = {
    "squared relu": "primer/primer_ez.html#SquaredReLU",
    "KV cache": "transformer/generation.html#kv_cache",
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


def answers(page: Page, words: str) -> list[str]:
    """The addresses that the search field offers for these words, best first."""
    field, hits = page.locator(".search input"), page.locator("#hits [role=option]")
    field.focus()  # which loads the search
    page.locator("#hits").wait_for(state="attached")
    field.fill("")
    expect(page.locator("#hits")).to_be_hidden()
    field.fill(words)
    expect(hits.first).to_be_visible(timeout=30_000)
    return [hit.get_attribute("href") or "" for hit in hits.all()]


def test_searches_find_the_right_place_among_the_first_three(visit: Visitor) -> None:
    page = visit("book/pages/index").page
    first = {words: answers(page, words)[:3] for words in SEARCHES}
    missed = {
        words: first[words]
        for words, place in SEARCHES.items()
        if not any(place in url for url in first[words])
    }
    assert missed == {}


def test_a_definition_comes_before_its_methods_and_variants(visit: Visitor) -> None:
    page = visit("book/pages/index").page
    found = answers(page, "squared relu")
    assert found[0].endswith("primer_ez.html#SquaredReLU")
    assert not any(url.endswith("#SquaredReLU.forward") for url in found)


def test_a_term_shows_its_definition_among_the_results(visit: Visitor) -> None:
    page = visit("book/pages/index").page
    page.locator(".search input").fill("nucleus sampling")
    term = page.locator("#hits [href$='#term-top-p-sampling']")
    expect(term).to_contain_text("smallest set", timeout=30_000)
