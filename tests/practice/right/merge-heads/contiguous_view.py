r"""The usual line: transpose, contiguous, view."""


def merge_heads(x):
    if len(x.shape) != 4:
        raise ValueError(f"(B, H, L, D) expected, got {tuple(x.shape)}")
    b, h, n, d = x.shape
    return x.transpose(1, 2).contiguous().view(b, n, h * d)
