"""Text out of a model, a character at a time."""

import torch
from torch import Tensor, nn

from labml_primer.training.corpus import Corpus


@torch.no_grad()
def sample(
    model: nn.Module,
    corpus: Corpus,
    prompt: str,
    length: int = 300,
    temperature: float = 0.8,
    seed: int = 0,
) -> str:
    """`prompt`, and `length` more characters as `model` would go on.

    `model` takes tokens `[1, seq]` to logits `[1, seq, vocab_size]`, with `seq` at most its
    `config.max_seq`; what lies further back is forgotten. `temperature` below one makes
    likely characters likelier. The draws have a generator of their own: the same `seed`
    gives the same text, and no one else's random numbers change.

    Raises `ValueError` for an empty prompt, for a character that the corpus does not know,
    and for a temperature that is not above zero.
    """
    if not prompt:
        raise ValueError("the prompt is empty: a model needs a character to go on from")
    if temperature <= 0:
        raise ValueError(f"temperature {temperature} is not above zero")
    window: int = model.config.max_seq  # type: ignore[union-attr, assignment]
    device = next(model.parameters()).device
    generator = torch.Generator().manual_seed(seed)
    tokens = corpus.encode(prompt)
    was_training = model.training
    model.eval()
    for _ in range(length):
        logits: Tensor = model(tokens[None, -window:].to(device))[0, -1]
        odds = (logits.float().cpu() / temperature).softmax(dim=-1)
        tokens = torch.cat((tokens, torch.multinomial(odds, 1, generator=generator)))
    model.train(was_training)
    return corpus.decode(tokens)
