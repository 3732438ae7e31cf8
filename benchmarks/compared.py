"""The time of a training step of each compared model, over the Transformer's; and the Switch layer alone."""

from dataclasses import replace

from torch import nn

from benchmarks import attention
from benchmarks.measure import command, compared, in_turns
from benchmarks.step import TOKENS, VOCAB_SIZE, sized, training_step
from labml_primer import PRESETS, LanguageModel
from labml_primer.compared.switch import SwitchFeedForward
from labml_primer.primer.faster import faster
from labml_primer.transformer.feed_forward import PositionwiseFeedForward

# Three blocks, and two of the Evolved Transformer's: the paper's six and four, halved.
LAYERS, EVOLVED_LAYERS = 3, 2
DENSE, SWITCH = "dense layer", "Switch layer"
PAIRS = (
    *((name, "transformer") for name in PRESETS if name != "transformer"),
    (SWITCH, DENSE),
)


def models(d_model: int, seq: int) -> dict[str, nn.Module]:
    """Every preset at one size, with the faster versions swapped in."""
    found: dict[str, nn.Module] = {}
    for name in PRESETS:
        layers = EVOLVED_LAYERS if name == "evolved-transformer" else LAYERS
        model = LanguageModel(replace(sized(name, d_model, seq), layers=layers))
        found[name] = faster(model)
    return found


def measure(d_model: int, seq: int) -> dict[str, object]:
    trained = models(d_model, seq)
    functions = {name: training_step(model, seq) for name, model in trained.items()}
    # A token meets one expert of eight, so both layers do as many multiply-adds per token. The experts' free
    # places come on top, a quarter more rows.
    layers = {
        DENSE: PositionwiseFeedForward(d_model, 4 * d_model),
        SWITCH: SwitchFeedForward(d_model, 4 * d_model),
    }
    for name, layer in layers.items():
        functions[name] = attention.forward_and_backward(layer, d_model, seq)
    cell = compared(
        {"d_model": d_model, "seq": seq}, in_turns(functions, seconds=10), PAIRS
    )
    parameters = {
        name: sum(parameter.numel() for parameter in module.parameters())
        for name, module in (trained | layers).items()
    }
    return cell | {"parameters": parameters}


if __name__ == "__main__":
    command(
        "compared",
        "seconds",
        [{"d_model": d, "seq": 64} for d in (128, 256, 512)],
        measure,
        tokens=TOKENS,
        tokens_of_a_layer=attention.TOKENS,
        layers=LAYERS,
        d_k=64,
        vocab_size=VOCAB_SIZE,
        optimizer="AdamW, fused",
    )
