"""What a language model costs: parameters and multiply-adds, part by part."""

from typing import Any

from torch import nn


def costs(model: nn.Module) -> dict[str, tuple[int, int]]:
    """Return for each part of a language model its parameters and its multiply-adds per token.

    `model` is a `LanguageModel` of this book. The layers of all blocks count together.
    Multiply-adds are averaged over a text of `max_seq` tokens. Operations on single
    features, such as norms and activation functions, are left out.
    """
    config: Any = model.config
    parts: dict[str, tuple[int, int]] = {}
    for name, weight in model.named_parameters():
        # The weights of `blocks.3.feed_forward.expand.weight` belong to `feed_forward`.
        part = name.split(".")[2 if name.startswith("blocks") else 0]
        part = "norms" if part.endswith("norm") else part
        products = weight.numel() if weight.dim() > 1 else 0
        if "positions" in name or name.endswith("bias"):
            products = 0  # looked up, or added
        elif "_conv." in name and weight.dim() == 3:
            # Heads may share kernels, and a kernel's features may be fewer or more than `d_model`.
            features = weight[0].numel()
            shared = weight.size(1) == 1 and features < config.d_model
            products = weight.size(0) * (config.d_model if shared else features)
        elif part == "feed_forward" and weight.dim() == 3:
            products = weight[0].numel()  # a token meets one of the experts
        parameters, before = parts.get(part, (0, 0))
        parts[part] = parameters + weight.numel(), before + products
    # Two products with each key, for the score and for the weighted sum; one if scores are
    # not computed from keys. On average a query attends to half of all keys.
    keys = sum(
        1 + hasattr(module, "key")
        for name, module in model.named_modules()
        if name.endswith("attention")
    )
    return parts | {
        "scores and sums": (0, keys * config.d_model * (config.max_seq + 1) // 2)
    }
