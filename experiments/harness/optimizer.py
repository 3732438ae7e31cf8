"""The optimizer of a run, its learning rate at each step, and which weights decay."""

import math
from typing import Any

import torch
from torch import nn

from experiments.harness.configuration import Run
from labml_primer.compared.t5 import t5_rate
from labml_primer.training.loop import warmed_up_rate


def rate_at(run: Run, step: int) -> float:
    """Return the learning rate of a step; steps count from 1."""
    if run.optimizer == "adafactor":
        return t5_rate(step, warmup=round(run.rate**-2))
    if run.schedule == "linear":
        left = (run.steps + 1 - step) / max(1, run.steps + 1 - run.warmup)
        return run.rate * min(step / run.warmup, left)
    return warmed_up_rate(step, run.rate, run.warmup)


def optimizer_of(run: Run, model: nn.Module) -> tuple[torch.optim.Optimizer, float]:
    """Return the optimizer and the norm to clip gradients at; Adafactor clips updates itself."""
    if run.optimizer == "adafactor":
        return torch.optim.Adafactor(model.parameters(), lr=run.rate), math.inf
    on_gpu = next(model.parameters()).device.type == "cuda"
    parameters: Any = model.parameters()
    if run.decay == "matrices":
        others = not_matrices(model)
        parameters = [
            {"params": [p for n, p in model.named_parameters() if n not in others]},
            {
                "params": [p for n, p in model.named_parameters() if n in others],
                "weight_decay": 0.0,
            },
        ]
    adamw = torch.optim.AdamW(
        parameters,
        lr=run.rate,
        betas=(0.9, 0.98),
        weight_decay=0.01,
        fused=on_gpu or None,
    )
    return adamw, 1.0


def not_matrices(model: nn.Module) -> set[str]:
    """Return the names of norms, biases, embeddings and positions."""
    tables = {
        f"{name}.weight"
        for name, module in model.named_modules()
        if isinstance(module, nn.Embedding)
    }
    return tables | {
        name
        for name, weight in model.named_parameters()
        if weight.dim() < 2 or name.endswith("bias") or "positions" in name
    }
