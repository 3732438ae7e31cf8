"""Definitions that several pictures lead to."""

TRANSFORMER = "labml_primer.transformer"
TOKENS = f"{TRANSFORMER}.tokens.Tokenizer"
EMBEDDING = f"{TRANSFORMER}.embedding.Embedding"
WEIGHTS = f"{TRANSFORMER}.attention.attention_weights"
ATTENTION = f"{TRANSFORMER}.attention.attention"
MULTI_HEAD = f"{TRANSFORMER}.attention.MultiHeadAttention"
PROJECT = f"{MULTI_HEAD}.project"
FEED_FORWARD = f"{TRANSFORMER}.feed_forward.PositionwiseFeedForward"
NORM = f"{TRANSFORMER}.normalization.LayerNorm"
GENERATION = f"{TRANSFORMER}.generation"

EZ = "labml_primer.primer.primer_ez"
CONVOLUTION = f"{EZ}.SpatialDepthWiseConvolution"
SQUARED_RELU = f"{EZ}.SquaredReLU"
MDHA = f"{EZ}.MultiDConvHeadAttention"
BASELINES = "labml_primer.primer.baselines"
PRIMER = "labml_primer.primer.primer"
SEPARABLE_ATTENTION = f"{PRIMER}.SeparableConvolutionAttention"

EVOLVED = "labml_primer.compared.evolved_transformer"
SYNTHESIZER = "labml_primer.compared.synthesizer"
SWITCH = "labml_primer.compared.switch"
T5 = "labml_primer.compared.t5"

PRIMITIVES = "labml_primer.search.primitives"
# Primitives that are computed by a function of their own.
COMPUTED = {
    "DIVIDE": "divide",
    "RECIP": "reciprocal",
    "MASK": "lower",
    "MAT MUL": "matmul",
    "T-MAT MUL": "transposed_matmul",
}


def primitive(name: str) -> str:
    """Return the definition that computes a primitive, or its line in the table of all."""
    return f"{PRIMITIVES}.{COMPUTED.get(name, f'PRIMITIVES[{name}]')}"
