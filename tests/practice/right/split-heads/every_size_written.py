r"""`view` with every size written out, then `permute`."""

from torch import Tensor

from llmcore.checks import check_divisible


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    if x.dim() != 3:
        raise ValueError(f"expected (batch, tokens, width), got {list(x.shape)}")
    batch, tokens, width = x.shape
    check_divisible(width=width, num_heads=num_heads)
    return x.view(batch, tokens, num_heads, width // num_heads).permute(0, 2, 1, 3).contiguous()
