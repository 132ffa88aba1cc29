r"""Cross-attention: queries from one sequence, keys and values from another."""

from torch import Tensor, nn

from llmcore.attention import scaled_dot_product_attention
from llmcore.checks import check_divisible, check_input, check_positive, check_probability
from llmcore.heads import merge_heads, split_heads


class CrossAttention(nn.Module):
    r"""The decoder asks, the encoder answers: $Q$ from `hidden_states`, $K$ and $V$ from `context`.

    Args:
        hidden_size: Width E of a decoder token.
        num_heads: H.
        context_size: Width of a context token; `hidden_size` if not given.
        bias: Give the projections a bias.
        dropout: Share of the attention weights dropped in training.

    Raises:
        ValueError: If a size is not a positive integer, or `hidden_size` is not divisible by `num_heads`.
        ValueError: If `dropout` is outside [0, 1).

    Reference:
        Vaswani et al., Attention Is All You Need, section 3.2.3, arXiv:1706.03762. Equal to
        `torch.nn.MultiheadAttention` called with the context as key and value.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        *,
        context_size: int | None = None,
        bias: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        check_divisible(hidden_size=hidden_size, num_heads=num_heads)
        context_size = hidden_size if context_size is None else context_size
        check_positive(context_size=context_size)
        check_probability(dropout=dropout)
        self.num_heads = num_heads
        self.dropout = dropout
        self.q_proj = nn.Linear(hidden_size, hidden_size, bias=bias)
        self.k_proj = nn.Linear(context_size, hidden_size, bias=bias)
        self.v_proj = nn.Linear(context_size, hidden_size, bias=bias)
        self.o_proj = nn.Linear(hidden_size, hidden_size, bias=bias)

    def forward(self, hidden_states: Tensor, context: Tensor, attn_mask: Tensor | None = None) -> Tensor:
        r"""Let every decoder token gather from the context. There is no causal mask: the context is known in
        full.

        Args:
            hidden_states: (B, L, hidden_size), where the queries come from.
            context: (B, S, context_size), where keys and values come from.
            attn_mask: Boolean (True = may attend) or additive, of shape (S,), (L, S) or broadcastable to (B,
                H, L, S); usually the context's padding mask (B, 1, 1, S).

        Returns:
            (B, L, hidden_size).

        Raises:
            ValueError: If a width, batch size, dtype or device does not fit, or the mask is ambiguous.
        """
        check_input(self.q_proj, hidden_states=hidden_states)
        check_input(self.k_proj, context=context)
        query = split_heads(self.q_proj(hidden_states), self.num_heads)  # (B, H, L, D)
        key = split_heads(self.k_proj(context), self.num_heads)  # (B, H, S, D)
        value = split_heads(self.v_proj(context), self.num_heads)  # (B, H, S, D)
        dropout_p = self.dropout if self.training else 0.0
        mixed = scaled_dot_product_attention(query, key, value, attn_mask, dropout_p=dropout_p)
        return self.o_proj(merge_heads(mixed))  # (B, L, E)
