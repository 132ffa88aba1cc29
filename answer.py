import torch
from torch import Tensor, nn

from llmcore.attention import scaled_dot_product_attention
from llmcore.checks import check_divisible, check_input, check_positive, check_probability
from llmcore.heads import merge_heads, split_heads


class MultiHeadAttention(nn.Module):
    r"""$\mathrm{Concat}(\mathrm{head}_1, \dots, \mathrm{head}_H)\, W^O$, H attentions side by side.

    $\mathrm{head}_i = \mathrm{Attention}(Q W_i^Q, K W_i^K, V W_i^V)$.

    Args:
        hidden_size: Width of a query token.
        num_heads: H.
        kdim: Width of a key token; `hidden_size` if not given.
        vdim: Width of a value token; `hidden_size` if not given.
        head_dim: Width D of a query and key head; `hidden_size // num_heads` if not given.
        v_head_dim: Width Dv of a value head; `head_dim` if not given.
        out_dim: Width of an output token; `hidden_size` if not given.
        bias: Give the projections a bias.
        dropout: Share of the attention weights dropped in training.

    Raises:
        ValueError: If a size is not a positive integer, or `dropout` is outside [0, 1).
        ValueError: If `hidden_size` is not divisible by `num_heads` and `head_dim` is not given.

    Reference:
        Vaswani et al., Attention Is All You Need, section 3.2.2, arXiv:1706.03762. Equal to
        `torch.nn.MultiheadAttention` (with `kdim` and `vdim`) where that has the same widths.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        *,
        kdim: int | None = None,
        vdim: int | None = None,
        head_dim: int | None = None,
        v_head_dim: int | None = None,
        out_dim: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__()
        if head_dim is None:
            check_divisible(hidden_size=hidden_size, num_heads=num_heads)
            head_dim = hidden_size // num_heads
        kdim = hidden_size if kdim is None else kdim
        vdim = hidden_size if vdim is None else vdim
        v_head_dim = head_dim if v_head_dim is None else v_head_dim
        out_dim = hidden_size if out_dim is None else out_dim
        check_positive(hidden_size=hidden_size, num_heads=num_heads, kdim=kdim, vdim=vdim)
        check_positive(head_dim=head_dim, v_head_dim=v_head_dim, out_dim=out_dim)
        check_probability(dropout=dropout)
        self.num_heads = num_heads
        self.dropout = dropout
        self.q_proj = nn.Linear(hidden_size, num_heads * head_dim, bias=bias)
        self.k_proj = nn.Linear(kdim, num_heads * head_dim, bias=bias)
        self.v_proj = nn.Linear(vdim, num_heads * v_head_dim, bias=bias)
        self.o_proj = nn.Linear(num_heads * v_head_dim, out_dim, bias=bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
    ) -> Tensor:
        r"""Let every query token gather from the value tokens. For self-attention pass the same tensor three
        times.

        Args:
            query: (B, L, hidden_size).
            key: (B, S, kdim).
            value: (B, S, vdim).
            attn_mask: Boolean (True = may attend) or additive, of shape (S,), (L, S) or broadcastable to (B,
                H, L, S).
            is_causal: Hide later keys, aligned bottom-right.

        Returns:
            (B, L, out_dim).

        Raises:
            ValueError: If a width, batch size, length, dtype or device does not fit, or the mask is
                ambiguous.
        """
        check_input(self.q_proj, query=query)
        check_input(self.k_proj, key=key)
        check_input(self.v_proj, value=value)
        q = split_heads(self.q_proj(query), self.num_heads)  # (B, H, L, D)
        k = split_heads(self.k_proj(key), self.num_heads)  # (B, H, S, D)
        v = split_heads(self.v_proj(value), self.num_heads)  # (B, H, S, Dv)
        dropout_p = self.dropout if self.training else 0.0
        mixed = scaled_dot_product_attention(q, k, v, attn_mask, is_causal=is_causal, dropout_p=dropout_p)
        return self.o_proj(merge_heads(mixed))  # (B, L, out_dim)
