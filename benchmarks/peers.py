"""The same models in other libraries: each function returns the twin of one of ours, with the same weights.

Before anything is timed, `agree` checks that both compute the same.
"""

import sys
from copy import deepcopy
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.measure import PEERS
from labml_primer import LanguageModel
from labml_primer.primer.baselines import GatedFeedForward
from labml_primer.transformer.attention import MultiHeadAttention
from labml_primer.transformer.language_model import Block


def agree(ours: nn.Module, theirs: nn.Module, *inputs: Tensor) -> None:
    """Raises `ValueError` unless both make the same of `inputs`, up to rounding."""
    with torch.no_grad():
        wanted, got = ours(*inputs), theirs(*inputs)
    difference = (wanted - got).abs().max() / wanted.abs().max()
    if not difference < 1e-4:
        name = type(theirs).__name__
        raise ValueError(
            f"{name} is no twin: outputs differ by {difference:.1e} of the largest"
        )


class Causal(nn.Module):
    """One of our attention layers as a language model uses it: one input, and nothing from the future."""

    def __init__(self, attention: MultiHeadAttention):
        super().__init__()
        self.attention: MultiHeadAttention = attention

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, causal=True)


class Blocks(nn.Module):
    """Blocks from elsewhere, in the place of ours."""

    def __init__(self, blocks: nn.Module):
        super().__init__()
        self.blocks = blocks

    def forward(self, x: Tensor) -> Tensor:
        return self.blocks(x)


def blocks(model: LanguageModel) -> list[Block]:
    """Its blocks, as the type checker should know them."""
    return cast("list[Block]", list(model.blocks))


def around(model: LanguageModel, blocks: nn.Module) -> LanguageModel:
    """Our embedding, positions, last norm and logits around blocks from elsewhere."""
    twin = deepcopy(model)
    twin.blocks = nn.ModuleList([Blocks(blocks)])
    return twin


def fill(theirs: nn.Module, *ours: nn.Module) -> None:
    """Copies weights and, where they have them, biases. Several of ours make one of theirs, side by side."""
    with torch.no_grad():
        for name in ("weight", "bias"):
            if getattr(theirs, name, None) is not None:
                getattr(theirs, name).copy_(torch.cat([getattr(o, name) for o in ours]))


# -- nn.Conv1d ---------------------------------------------------------------------------


class PlainConvolution(nn.Module):
    """`[batch, seq, heads, d_k]` to the same: `nn.Conv1d`, a group for each channel, padded and cropped."""

    def __init__(self, weight: Tensor):
        super().__init__()
        kernel_size, heads, d_k = weight.shape
        channels = heads * d_k
        self.conv = nn.Conv1d(
            channels,
            channels,
            kernel_size,
            padding=kernel_size - 1,
            groups=channels,
            bias=False,
        )
        with torch.no_grad():
            self.conv.weight.copy_(weight.flatten(1).T[:, None])

    def forward(self, x: Tensor) -> Tensor:
        channels = x.flatten(2).transpose(1, 2)
        return (
            self.conv(channels)[..., : x.size(1)]
            .transpose(1, 2)
            .unflatten(2, x.shape[2:])
        )


def conv1d_attention(ours: MultiHeadAttention) -> Causal:
    """For an attention with kernels for each head and no bias."""
    twin = deepcopy(ours)
    for name in ("query_conv", "key_conv", "value_conv"):
        setattr(twin, name, PlainConvolution(ours.get_parameter(f"{name}.weight")))
    return Causal(twin)


def conv1d_model(model: LanguageModel) -> LanguageModel:
    """The model with such convolutions."""
    twin = deepcopy(model)
    for block in blocks(twin):
        block.attention = conv1d_attention(block.attention).attention
        block.feed_forward.activation = PlainSquaredReLU()
    return twin


class PlainSquaredReLU(nn.Module):
    """The squared ReLU, as one would write it."""

    def forward(self, x: Tensor) -> Tensor:
        r = F.relu(x)
        return r * r


# -- PyTorch's own layers --------------------------------------------------------------


class TorchAttention(nn.Module):
    """`nn.MultiheadAttention` with its causal mask."""

    def __init__(self, ours: MultiHeadAttention, seq: int):
        super().__init__()
        d_model = ours.output.in_features
        self.attention = nn.MultiheadAttention(d_model, ours.heads, batch_first=True)
        fill_torch_attention(self.attention, ours)
        self.register_buffer(
            "mask", nn.Transformer.generate_square_subsequent_mask(seq)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(
            x, x, x, attn_mask=self.mask, is_causal=True, need_weights=False
        )[0]


class TorchBlocks(nn.Module):
    """A stack of `nn.TransformerEncoderLayer` with its causal mask."""

    def __init__(self, layer: nn.TransformerEncoderLayer, layers: int, seq: int):
        super().__init__()
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.register_buffer(
            "mask", nn.Transformer.generate_square_subsequent_mask(seq)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x, mask=self.mask, is_causal=True)


def fill_torch_attention(
    theirs: nn.MultiheadAttention, ours: MultiHeadAttention
) -> None:
    """It keeps the three projections in one matrix."""
    packed = SimpleNamespace(weight=theirs.in_proj_weight, bias=theirs.in_proj_bias)
    fill(packed, ours.query, ours.key, ours.value)  # type: ignore[arg-type]
    fill(theirs.out_proj, ours.output)


def torch_model(model: LanguageModel) -> LanguageModel:
    """For a Transformer with the squared ReLU."""
    config = model.config
    layer = nn.TransformerEncoderLayer(
        config.d_model,
        config.heads,
        config.d_ff,
        dropout=0.0,
        activation=PlainSquaredReLU(),
        batch_first=True,
        norm_first=True,
    )
    twin = TorchBlocks(layer, config.layers, config.max_seq)
    for theirs, ours in zip(twin.encoder.layers, blocks(model), strict=True):
        fill_torch_attention(theirs.self_attn, ours.attention)
        fill(theirs.norm1, ours.attention_norm)
        fill(theirs.norm2, ours.feed_forward_norm)
        fill(theirs.linear1, ours.feed_forward.expand)
        fill(theirs.linear2, ours.feed_forward.contract)
    return around(model, twin)


# -- x-transformers --------------------------------------------------------------------


def without_biases_it_lacks(model: nn.Module) -> nn.Module:
    """Sets to zero, in place, the biases that x-transformers has not: those of attention and of norms."""
    for name, parameter in model.named_parameters():
        if name.endswith("bias") and "feed_forward." not in name:
            nn.init.zeros_(parameter)
    return model


def fill_x_attention(theirs: nn.Module, ours: MultiHeadAttention) -> None:
    for part in ("query", "key", "value"):
        fill(theirs.get_submodule(f"to_{part[0]}"), ours.get_submodule(part))
    fill(theirs.get_submodule("to_out"), ours.output)


class XAttention(nn.Module):
    """Its attention, for one of ours without biases."""

    def __init__(self, ours: MultiHeadAttention):
        super().__init__()
        from x_transformers.x_transformers import Attention

        d_model = ours.output.in_features
        self.attention = Attention(
            d_model, dim_head=ours.d_k, heads=ours.heads, causal=True, flash=True
        )
        fill_x_attention(self.attention, ours)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x)


def fill_x_norm(theirs: nn.Module, ours: nn.Module) -> None:
    name = "g" if isinstance(ours, nn.RMSNorm) else "gamma"
    # What it learns is the gain's distance from one.
    offset = float(theirs.unit_offset)  # type: ignore[arg-type]
    with torch.no_grad():
        theirs.get_parameter(name).copy_(ours.get_parameter("weight") - offset)


def x_model(model: LanguageModel, **options: Any) -> nn.Module:
    """Its `TransformerWrapper` with a causal `Decoder`; `options` are the feed-forward layer and the norm."""
    from x_transformers import Decoder, TransformerWrapper

    config = model.config
    width = blocks(model)[0].feed_forward.contract.in_features
    decoder = Decoder(
        dim=config.d_model,
        depth=config.layers,
        heads=config.heads,
        attn_dim_head=config.d_model // config.heads,
        attn_flash=True,
        ff_mult=width / config.d_model,
        **options,
    )
    twin = TransformerWrapper(
        num_tokens=config.vocab_size,
        max_seq_len=config.max_seq,
        attn_layers=decoder,
        tie_embedding=True,
        tie_embedding_scale=1.0,
    ).to(model.embedding.weight)
    layers = list(decoder.layers)
    with torch.no_grad():
        twin.token_emb.emb.weight.copy_(model.embedding.weight)
        # It multiplies positions by one over the root of the width.
        twin.pos_emb.emb.weight.copy_(
            model.get_parameter("positions.encoding") * config.d_model**0.5
        )
    for i, ours in enumerate(blocks(model)):
        (norm, *_), attention, _ = layers[2 * i]
        fill_x_norm(norm, ours.attention_norm)
        fill_x_attention(attention, ours.attention)
        (norm, *_), feed_forward, _ = layers[2 * i + 1]
        fill_x_norm(norm, ours.feed_forward_norm)
        fill_x_feed_forward(feed_forward.ff, ours)
    fill_x_norm(decoder.final_norm, model.norm)
    return twin


def fill_x_feed_forward(theirs: nn.Sequential, ours: Block) -> None:
    layer = ours.feed_forward
    if isinstance(layer, GatedFeedForward):
        fill(theirs.get_submodule("0.proj"), layer.expand, layer.gate)
    else:
        fill(theirs.get_submodule("0.0"), layer.expand)
    fill(theirs[-1], layer.contract)


# -- labml-nn --------------------------------------------------------------------------


def labml_nn() -> Any:
    """Its package `transformers`, which writes tensors to a tracker that no longer takes them."""
    if str(PEERS) not in sys.path:
        sys.path.append(str(PEERS))
    try:
        from labml_nn import transformers
        from labml_nn.transformers import mha, primer_ez, utils  # noqa: F401
    except ModuleNotFoundError as error:
        raise SystemExit(f"{error}. `make benchmarks` puts it into {PEERS}.") from None
    mha.tracker = SimpleNamespace(debug=lambda name, tensor: None)
    return transformers


def fill_labml_attention(theirs: nn.Module, ours: MultiHeadAttention) -> None:
    """Each projection is followed by its convolution, if there is one."""
    for part in ("query", "key", "value"):
        conv = getattr(ours, f"{part}_conv", None)
        if conv is None:
            fill(theirs.get_submodule(f"{part}.linear"), ours.get_submodule(part))
            continue
        fill(theirs.get_submodule(f"{part}.0.linear"), ours.get_submodule(part))
        turned = SimpleNamespace(
            weight=conv.weight.flatten(1).T[:, None], bias=conv.bias[0]
        )
        fill(theirs.get_submodule(f"{part}.1.conv"), turned)  # type: ignore[arg-type]
    fill(theirs.get_submodule("output"), ours.output)


def labml_attention_layer(ours: MultiHeadAttention) -> nn.Module:
    """Its attention, with convolutions where ours has them."""
    labml = labml_nn()
    convolved = hasattr(ours, "query_conv")
    kind = (
        labml.primer_ez.MultiDConvHeadAttention
        if convolved
        else labml.MultiHeadAttention
    )
    layer: nn.Module = kind(ours.heads, ours.output.in_features, dropout_prob=0.0)
    fill_labml_attention(layer, ours)
    return layer


class LabmlAttention(nn.Module):
    """Its attention. It is sequence-first."""

    def __init__(self, ours: MultiHeadAttention, seq: int):
        super().__init__()
        self.attention = labml_attention_layer(ours)
        self.register_buffer("mask", labml_nn().utils.subsequent_mask(seq))

    def forward(self, x: Tensor) -> Tensor:
        x = x.transpose(0, 1).contiguous()
        return self.attention(query=x, key=x, value=x, mask=self.mask).transpose(0, 1)


class LabmlBlocks(nn.Module):
    """A stack of its `TransformerLayer`, sequence-first from its first to its last."""

    def __init__(self, layers: list[nn.Module], seq: int):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.register_buffer("mask", labml_nn().utils.subsequent_mask(seq))

    def forward(self, x: Tensor) -> Tensor:
        x = x.transpose(0, 1).contiguous()
        for layer in self.layers:
            x = layer(x=x, mask=self.mask)
        return x.transpose(0, 1)


def labml_model(model: LanguageModel) -> LanguageModel:
    """For a Primer-EZ with kernels that all heads share, as its own is."""
    labml, config = labml_nn(), model.config
    layers = []
    for ours in blocks(model):
        feed_forward = labml.feed_forward.FeedForward(
            config.d_model, config.d_ff, 0.0, activation=labml.primer_ez.SquaredReLU()
        )
        layer = labml.TransformerLayer(
            d_model=config.d_model,
            self_attn=labml_attention_layer(ours.attention),
            feed_forward=feed_forward,
            dropout_prob=0.0,
        )
        fill(layer.norm_self_attn, ours.attention_norm)
        fill(layer.norm_ff, ours.feed_forward_norm)
        fill(feed_forward.layer1, ours.feed_forward.expand)
        fill(feed_forward.layer2, ours.feed_forward.contract)
        layers.append(layer)
    return around(model, LabmlBlocks(layers, config.max_seq))


# -- transformers ----------------------------------------------------------------------


def hugging_face() -> Any:
    """The library `transformers`."""
    if str(PEERS) not in sys.path:
        sys.path.append(str(PEERS))
    try:
        import transformers
    except ModuleNotFoundError as error:
        raise SystemExit(f"{error}. `make benchmarks` puts it into {PEERS}.") from None
    return transformers


def gpt2_model(model: LanguageModel) -> nn.Module:
    """Its `GPT2LMHeadModel` with the ReLU, for a Transformer."""
    config, first = model.config, blocks(model)[0]
    made = hugging_face().GPT2Config(
        vocab_size=config.vocab_size,
        n_positions=config.max_seq,
        n_embd=config.d_model,
        n_layer=config.layers,
        n_head=config.heads,
        n_inner=first.feed_forward.expand.out_features,
        activation_function="relu",
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        layer_norm_epsilon=model.norm.eps,
        bos_token_id=None,
        eos_token_id=None,
    )
    twin: nn.Module = hugging_face().GPT2LMHeadModel(made)
    body = twin.get_submodule("transformer")
    fill(body.get_submodule("wte"), model.embedding)
    with torch.no_grad():
        positions = model.get_parameter("positions.encoding")
        body.get_parameter("wpe.weight").copy_(positions)
    fill(body.get_submodule("ln_f"), model.norm)
    for i, ours in enumerate(blocks(model)):
        theirs = body.get_submodule(f"h.{i}")
        attention, feed_forward = ours.attention, ours.feed_forward
        fill(theirs.get_submodule("ln_1"), ours.attention_norm)
        fill(theirs.get_submodule("ln_2"), ours.feed_forward_norm)
        for name, layers in {
            "attn.c_attn": (attention.query, attention.key, attention.value),
            "attn.c_proj": (attention.output,),
            "mlp.c_fc": (feed_forward.expand,),
            "mlp.c_proj": (feed_forward.contract,),
        }.items():
            matrix = theirs.get_submodule(name)  # inputs by outputs, ours turned
            fill(turned(matrix), *layers)
    return twin.eval()


def turned(layer: nn.Module) -> Any:
    """The parameters of a linear layer that keeps its matrix the other way round."""
    return SimpleNamespace(weight=layer.weight.T, bias=layer.bias)


def llama_model(model: LanguageModel) -> nn.Module:
    """Its `LlamaForCausalLM`, for a modern baseline."""
    config, first = model.config, blocks(model)[0]
    made = hugging_face().LlamaConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.d_model,
        intermediate_size=first.feed_forward.expand.out_features,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=first.attention.groups,
        max_position_embeddings=config.max_seq,
        rms_norm_eps=torch.finfo(model.embedding.weight.dtype).eps,
        tie_word_embeddings=True,
    )
    twin: nn.Module = hugging_face().LlamaForCausalLM(made)
    body = twin.get_submodule("model")
    fill(body.get_submodule("embed_tokens"), model.embedding)
    fill(body.get_submodule("norm"), model.norm)
    for i, ours in enumerate(blocks(model)):
        theirs = body.get_submodule(f"layers.{i}")
        fill(theirs.get_submodule("input_layernorm"), ours.attention_norm)
        fill(theirs.get_submodule("post_attention_layernorm"), ours.feed_forward_norm)
        attention, feed_forward = ours.attention, ours.feed_forward
        for name, layer in {
            "self_attn.q_proj": in_halves(attention.query, attention.d_k),
            "self_attn.k_proj": in_halves(attention.key, attention.d_k),
            "self_attn.v_proj": attention.value,
            "self_attn.o_proj": attention.output,
            "mlp.gate_proj": feed_forward.gate,
            "mlp.up_proj": feed_forward.expand,
            "mlp.down_proj": feed_forward.contract,
        }.items():
            fill(theirs.get_submodule(name), layer)
    return twin.eval()


def in_halves(layer: nn.Linear, d_k: int) -> Any:
    """A projection whose pairs for the rotation are features $k$ and $k + d_k/2$ instead of neighbours."""
    pairs = layer.weight.unflatten(0, (-1, d_k // 2, 2))
    return SimpleNamespace(weight=pairs.transpose(1, 2).flatten(0, 2))


# -- their caches ----------------------------------------------------------------------


class HuggingFaceReader:
    """A text that a model of `transformers` reads with its KV cache, as ours do with `cached`."""

    def __init__(self, model: nn.Module):
        self.model, self.past = model, None

    def __call__(self, tokens: Tensor) -> Tensor:
        found = self.model(tokens, cache=self.past, use_cache=True)
        self.past = found.cache
        logits: Tensor = found.logits
        return logits


class XReader:
    """The same for x-transformers, which is given the whole text each time, and reads the new part."""

    def __init__(self, model: nn.Module):
        self.model, self.cache = model, None
        self.text = torch.empty(1, 0, dtype=torch.long)

    def __call__(self, tokens: Tensor) -> Tensor:
        self.text = torch.cat([self.text, tokens], dim=1)
        logits, self.cache = self.model(
            self.text, cache=self.cache, return_intermediates=True
        )
        found: Tensor = logits
        return found
