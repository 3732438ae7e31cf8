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

# In the Japanese edition. Some words are readers' own, which the book does not use.
JAPANESE: dict[str, tuple[str, ...]] = {
    "セルフアテンション": ("glossary.html#term-self-attention",),
    "自己注意機構": ("glossary.html#term-self-attention",),
    "アテンション": ("attention.html#attention",),
    "注意機構": ("attention.html#attention",),
    "マルチヘッドアテンション": ("transformer/attention.html",),
    "クロスアテンション": ("glossary.html#term-cross-attention",),
    "トランスフォーマー": ("transformer/model.html",),
    "プライマー": ("glossary.html#term-Primer", "primer/primer.html"),
    "プライマーEZ": ("primer/primer_ez.html",),
    "ニューラルアーキテクチャ探索": ("glossary.html#term-evolutionary-search",),
    "エンベディング": ("transformer/embedding.html",),
    "埋め込み": ("transformer/embedding.html",),
    "畳み込み": ("glossary.html#term-convolution",),
    "深さ方向畳み込み": ("primer_ez.html#SpatialDepthWiseConvolution",),
    "デプスワイズ畳み込み": ("primer_ez.html#SpatialDepthWiseConvolution",),
    "因果マスク": ("attention.html#causal_mask",),
    "位置エンコーディング": ("transformer/positional_encoding.html",),
    "回転位置埋め込み": ("glossary.html#term-RoPE",),
    "層正規化": ("normalization.html#LayerNorm",),
    "レイヤー正規化": ("normalization.html#LayerNorm",),
    "残差結合": ("glossary.html#term-residual-connection",),
    "フィードフォワードネットワーク": ("feed_forward.html#PositionwiseFeedForward",),
    "交差エントロピー": ("glossary.html#term-cross-entropy",),
    "KVキャッシュ": ("generation.html#CachedModel",),
    "ビームサーチ": ("generation.html#beam_search",),
    "温度": ("generation.html#sample_token",),
    "二乗ReLU": ("primer_ez.html#SquaredReLU",),
    "学習率": ("loop.html#warmed_up_rate",),
    "トークナイザー": ("tokens.html#Tokenizer",),
    "混合エキスパート": ("switch.html#SwitchFeedForward",),
    "貪欲法": ("model.html#greedy_decode",),
    "突然変異": ("search/mutations.html",),
    "文章生成": ("transformer/generation.html",),
    "インストール": ("use.html#install",),
    "量子コンピュータ": (),
}
