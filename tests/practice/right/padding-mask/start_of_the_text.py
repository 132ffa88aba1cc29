r"""Left padding by where the text begins, max_len - length, instead of flipped positions."""

import torch


def padding_mask(lengths, max_len=None, *, side="right"):
    whole = not (lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool)
    if lengths.ndim != 1 or len(lengths) == 0 or not whole:
        raise ValueError(f"integer lengths (B,) are needed, got {lengths.dtype} {tuple(lengths.shape)}")
    n = lengths.max().item() if max_len is None else max_len
    if n < 1:
        raise ValueError(f"the padded length is {n}, at least 1 is needed")
    if lengths.min() < 0 or lengths.max() > n:
        raise ValueError(f"lengths from {lengths.min().item()} to {lengths.max().item()} do not fit 0..{n}")
    lengths = lengths.long()
    j = torch.arange(n, device=lengths.device).expand(len(lengths), n)
    if side == "right":
        real = j < lengths.view(-1, 1)
    elif side == "left":
        real = j >= n - lengths.view(-1, 1)
    else:
        raise ValueError(f"no such side: {side}")
    return real.view(len(lengths), 1, 1, n)
