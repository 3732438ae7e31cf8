"""Look up tokens, with errors that say what is wrong with them."""

from torch import Tensor, nn


def look_up(table: nn.Embedding, tokens: Tensor) -> Tensor:
    """Return the rows of `table` for `tokens` `[batch, seq]`, as `[batch, seq, d_model]`.

    Raises `ValueError` if `tokens` have another number of dimensions, and `IndexError` on a CPU if one is
    not in the table. A GPU reports that by itself, because a check would make it wait for every batch.
    """
    if tokens.dim() != 2:
        shape = list(tokens.shape)
        fix = "; for a single text use tokens[None]" if tokens.dim() == 1 else ""
        raise ValueError(f"tokens have the shape {shape}, not [batch, seq]{fix}")
    try:
        rows: Tensor = table(tokens)
    except IndexError:
        least, most = int(tokens.min()), int(tokens.max())
        raise IndexError(
            f"tokens of shape {list(tokens.shape)} range from {least} to {most}; "
            f"vocab_size {table.num_embeddings} allows 0 to {table.num_embeddings - 1}"
        ) from None
    return rows
