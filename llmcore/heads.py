r"""Between one wide vector a token and several heads."""

from torch import Tensor

from llmcore.checks import check_divisible, check_positive


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    r"""Cut each token's vector into heads and move the heads in front of the tokens.

    Args:
        x: (B, L, H * D), head 0 first.
        num_heads: H.

    Returns:
        (B, H, L, D), a view of `x`. `view` cuts the last axis, `transpose` swaps tokens and heads. A `view`
        straight to (B, H, L, D) has the same shape and mixes tokens.

    Raises:
        ValueError: If `x` does not have three dimensions, or its width is not divisible by `num_heads`.
    """
    if x.dim() != 3:
        raise ValueError(f"x must have shape (batch, tokens, width), got {tuple(x.shape)}")
    check_divisible(width=x.size(-1), num_heads=num_heads)
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)  # (B, H, L, D)


def merge_heads(x: Tensor) -> Tensor:
    r"""Undo `split_heads`: put the heads of each token side by side again.

    Args:
        x: (B, H, L, D).

    Returns:
        (B, L, H * D). The transposed tensor is not contiguous, so `view` refuses it and `flatten` copies.

    Raises:
        ValueError: If `x` does not have four dimensions.
    """
    if x.dim() != 4:
        raise ValueError(f"x must have shape (batch, heads, tokens, head_dim), got {tuple(x.shape)}")
    return x.transpose(1, 2).flatten(2)  # (B, L, H*D)


def repeat_kv(x: Tensor, n_rep: int) -> Tensor:
    r"""Give each key/value head to `n_rep` neighbouring query heads: kv heads 0 1 become 0 0 1 1.

    It shows which head reads which, and it is how transformers feeds kernels that know no groups. It copies
    the keys and values `n_rep` times (`expand` copies nothing, the `reshape` after it does), so the attention
    in this library groups the queries instead.

    Args:
        x: (B, K, S, D).
        n_rep: Query heads a kv head, H / K.

    Returns:
        (B, K * n_rep, S, D); `x` itself if `n_rep` is 1.

    Raises:
        ValueError: If `x` does not have four dimensions, or `n_rep` is not a positive integer.

    Reference:
        Equal to `torch.repeat_interleave(x, n_rep, dim=1)` and to `repeat_kv` in transformers'
        `modeling_llama.py`.
    """
    if x.dim() != 4:
        raise ValueError(f"x must have shape (batch, kv heads, tokens, head_dim), got {tuple(x.shape)}")
    check_positive(n_rep=n_rep)
    if n_rep == 1:
        return x
    batch, kv_heads, k_len, head_dim = x.shape
    repeated = x[:, :, None].expand(batch, kv_heads, n_rep, k_len, head_dim)  # still no copy
    return repeated.reshape(batch, kv_heads * n_rep, k_len, head_dim)  # (B, K*n_rep, S, D), copied
