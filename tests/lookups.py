"""What readers look up, and where they should find it: the end of an address, or of one of several.

An empty place means that nothing is found.
"""

LOOKUPS: dict[str, tuple[str, ...]] = {
    # Words of a name, in any order, with others.
    "squared relu formula": ("primer_ez.html#SquaredReLU",),
    "extra parameters MDHA": ("primer_ez.html#the-extra-parameters-of-mdha",),
    "learning rate warmup": ("loop.html#warmed_up_rate",),
    "number of parameters language model": ("language_model.html#how-many-parameters",),
    "train on my own text": ("use.html#train-on-your-own-text",),
    "install": ("use.html#install",),
    "presets": ("use.html#the-presets",),
    # Names that only the glossary has.
    "kernel size": ("glossary.html#term-kernel",),
    "flops": ("glossary.html#term-FLOPs",),
    "head dimension": ("glossary.html#term-head-dimension",),
    "d_k": ("glossary.html#term-head-dimension",),
    "autoregressive model": ("glossary.html#term-autoregressive",),
    "tied weights": ("language_model.html#LanguageModel",),
    "width of the convolution": ("glossary.html#term-kernel",),
    "rotary embeddings": ("glossary.html#term-RoPE", "positional_encoding.html#rotate"),
    "BPE": ("tokens.html#learn_merges", "glossary.html#term-byte-pair-encoding"),
    "byte pair encoding": ("tokens.html", "glossary.html#term-byte-pair-encoding"),
    "tokenizer": ("tokens.html#Tokenizer", "glossary.html#term-tokenizer"),
    # Formulas.
    "max(x,0)^2": ("primer_ez.html#SquaredReLU",),
    "O(n²)": ("attention.html#attention_weights",),
    # Definitions with the title of their page.
    "MultiHeadAttention": ("attention.html#MultiHeadAttention",),
    "Encoder": ("encoder.html#Encoder",),
    # Typing errors.
    "transfomer": ("model.html", "model.html#Transformer"),
    "atention": ("attention.html#attention",),
    "beam serach": ("generation.html#beam_search",),
    # Another language.
    "Aufmerksamkeit": (),
    "自己注意機構": (),
}
