r"""Attention masks: boolean, True = may attend; or additive, 0 = may attend and -inf = may not.

The dtype tells the two apart.
"""

import torch
from torch import Tensor

from llmcore.checks import check_positive


def causal_mask(q_len: int, k_len: int | None = None, *, device: torch.device | str | None = None) -> Tensor:
    r"""Which keys a query may see when none may look ahead: key $j$ for query $i$ if $j \le i + (S - L)$.

    The mask is aligned bottom-right: the last query is the newest token and sees every key, as decoding with
    a KV cache needs ($L$ new queries over $S$ keys, of which $S - L$ are old). With $L = S$ it is the usual
    lower triangle. With $L > S$ the first $L - S$ queries see nothing.

    Args:
        q_len: Number of queries L, in tokens.
        k_len: Number of keys S, in tokens; L if not given.
        device: Where the mask lives.

    Returns:
        Boolean (L, S), True = may attend.

    Raises:
        ValueError: If a length is not a positive integer.

    Reference:
        Equal to `torch.nn.attention.bias.causal_lower_right`. `is_causal=True` of PyTorch's own
        `scaled_dot_product_attention` is aligned top-left and differs whenever L != S.
    """
    k_len = q_len if k_len is None else k_len
    check_positive(q_len=q_len, k_len=k_len)
    return torch.ones(q_len, k_len, dtype=torch.bool, device=device).tril(diagonal=k_len - q_len)


def padding_mask(lengths: Tensor, max_len: int | None = None, *, side: str = "right") -> Tensor:
    r"""Which keys are real tokens, for sequences of different length padded into one batch.

    Args:
        lengths: Integer (B,), real tokens of each sequence; 0 is allowed.
        max_len: Padded length S, in tokens; the longest of `lengths` if not given.
        side: Where the padding stands: "right" (training) or "left" (batched generation).

    Returns:
        Boolean (B, 1, 1, S), True = may attend, which broadcasts over heads and queries. A (B, S) mask
        would be taken for (L, S).

    Raises:
        ValueError: If `lengths` is not an integer vector, or is empty.
        ValueError: If a length is negative or above `max_len`.
        ValueError: If `side` is neither "right" nor "left".
    """
    if (
        lengths.dim() != 1
        or lengths.numel() == 0
        or lengths.is_floating_point()
        or lengths.is_complex()
        or lengths.dtype == torch.bool
    ):
        raise ValueError(
            f"lengths must be a non-empty integer vector (B,), got {lengths.dtype} {tuple(lengths.shape)}"
        )
    shortest, longest = int(lengths.min()), int(lengths.max())
    max_len = longest if max_len is None else max_len
    check_positive(max_len=max_len)
    if shortest < 0 or longest > max_len:
        raise ValueError(f"lengths must lie in 0..{max_len=}, got {shortest}..{longest}")
    if side not in ("right", "left"):
        raise ValueError(f"{side=} must be 'right' or 'left'")
    positions = torch.arange(max_len, device=lengths.device)
    if side == "left":
        positions = positions.flip(0)  # count from the right end
    return (positions < lengths[:, None])[:, None, None, :]  # (B, 1, 1, S)


def combine_masks(*masks: Tensor) -> Tensor:
    r"""A key may be attended to where every mask allows it.

    Args:
        *masks: Boolean masks of shape (S,), (L, S) or four dimensions that broadcast to (B, H, L, S).

    Returns:
        Boolean mask of the broadcast shape; no larger than the masks need.

    Raises:
        ValueError: If there is none, one is not boolean, one has three dimensions, or the shapes do not
            broadcast.
    """
    if not masks:
        raise ValueError("combine_masks needs at least one mask")
    for mask in masks:
        if mask.dtype != torch.bool:
            raise ValueError(
                f"combine_masks takes boolean masks, got {mask.dtype}; additive masks are added to each other"
            )
        check_mask_dims(mask)
    try:
        shape = torch.broadcast_shapes(*(mask.shape for mask in masks))
    except RuntimeError as error:
        raise ValueError(
            f"masks of shapes {[tuple(mask.shape) for mask in masks]} do not broadcast"
        ) from error
    combined = masks[0].expand(shape)
    for mask in masks[1:]:
        combined = combined & mask
    return combined


def additive_mask(mask: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    r"""Turn a boolean mask into one that is added to the scores.

    $-\infty$ and not a large negative number: -1e9 does not exist in float16, and where a whole row is hidden
    it leaves a uniform distribution over tokens that nobody may see.

    Args:
        mask: Boolean, any shape, True = may attend.
        dtype: Floating-point dtype of the result.

    Returns:
        Tensor of the same shape, 0 where True, -inf where False.

    Raises:
        ValueError: If `mask` is not boolean or `dtype` is not floating point.
    """
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be boolean, got {mask.dtype}")
    if not dtype.is_floating_point:
        raise ValueError(f"{dtype=} must be floating point")
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -torch.inf)


def expand_mask(
    attn_mask: Tensor, shape: tuple[int, int, int, int], device: torch.device | None = None
) -> Tensor:
    r"""Check a mask against the scores and view it in their shape; nothing is copied.

    Args:
        attn_mask: Boolean (True = may attend) or additive, of one, two or four dimensions, each of which is 1
            or that of `shape` (the last must be S). Two dimensions always mean (L, S), never (B, S).
        shape: (B, H, L, S) of the scores.
        device: Device of the scores, where the mask must be as well; not checked if not given.

    Returns:
        View of `attn_mask` of shape (B, H, L, S).

    Raises:
        ValueError: If the dtype is neither boolean nor floating point.
        ValueError: If it has three dimensions, (B, L, S) or (H, L, S), which cannot be told apart.
        ValueError: If a dimension does not fit the scores, or the mask is on another device.
    """
    if attn_mask.dtype != torch.bool and not attn_mask.is_floating_point():
        raise ValueError(
            f"attn_mask must be boolean (True = may attend) or floating point (added), got {attn_mask.dtype}"
        )
    if device is not None and attn_mask.device != device:
        raise ValueError(f"attn_mask is on {attn_mask.device}, the scores are on {device}")
    check_mask_dims(attn_mask)
    wanted = shape[-attn_mask.dim() :]
    fits = all(size in (1, want) for size, want in zip(attn_mask.shape, wanted, strict=True))
    if not fits or attn_mask.size(-1) != shape[-1]:
        raise ValueError(
            f"attn_mask of shape {tuple(attn_mask.shape)} does not broadcast to (B, H, L, S)={tuple(shape)}"
        )
    return attn_mask.expand(shape)


def check_mask_dims(mask: Tensor) -> None:
    r"""Refuse a mask whose number of dimensions leaves its meaning open.

    Args:
        mask: Any tensor.

    Raises:
        ValueError: If it does not have one, two or four dimensions.
    """
    if mask.dim() == 3:
        raise ValueError(
            f"a mask of three dimensions {tuple(mask.shape)} is ambiguous, (B, L, S) or (H, L, S): "
            "write (B, 1, L, S) or (1, H, L, S)"
        )
    if mask.dim() not in (1, 2, 4):
        raise ValueError(f"a mask must have shape (S,), (L, S) or (B, H, L, S), got {tuple(mask.shape)}")
