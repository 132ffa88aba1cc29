r"""Self-attention by hand in four rungs, each the one before it plus what is named first in its docstring."""

import math

from torch import Tensor, nn

from llmcore.attention import scaled_dot_product_attention
from llmcore.checks import check_divisible, check_input, check_positive, check_probability
from llmcore.heads import merge_heads, split_heads
from llmcore.softmax import softmax, upcast


class BareSelfAttention(nn.Module):
    r"""Rung 1, the formula: $\mathrm{softmax}(Q K^\top / \sqrt{E})\, V$ with three projections and one head.

    Args:
        hidden_size: Width E of a token, and of the only head.

    Raises:
        ValueError: If `hidden_size` is not a positive integer.

    Reference:
        Vaswani et al., Attention Is All You Need, eq. 1, arXiv:1706.03762.
    """

    def __init__(self, hidden_size: int):
        super().__init__()
        check_positive(hidden_size=hidden_size)
        self.hidden_size = hidden_size
        self.q_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.k_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.v_proj = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, hidden_states: Tensor) -> Tensor:
        r"""Mix the tokens of each sequence.

        Args:
            hidden_states: (B, L, E).

        Returns:
            (B, L, E).

        Raises:
            ValueError: If `hidden_states` is not (B, L, hidden_size) of the module's dtype and device.
        """
        check_input(self.q_proj, hidden_states=hidden_states)
        query = self.q_proj(hidden_states)  # (B, L, E)
        key = self.k_proj(hidden_states)  # (B, L, E)
        value = self.v_proj(hidden_states)  # (B, L, E)
        scores = upcast(query) @ upcast(key).mT / math.sqrt(self.hidden_size)  # (B, L, L)
        output = softmax(scores, dim=-1) @ upcast(value)  # (B, L, E)
        return output.to(value.dtype)


class FusedSelfAttention(nn.Module):
    r"""Rung 2, fused QKV: one matrix product makes all three; the result is the same.

    Args:
        hidden_size: Width E of a token, and of the only head.

    Raises:
        ValueError: If `hidden_size` is not a positive integer.
    """

    def __init__(self, hidden_size: int):
        super().__init__()
        check_positive(hidden_size=hidden_size)
        self.hidden_size = hidden_size
        self.qkv_proj = nn.Linear(hidden_size, 3 * hidden_size, bias=False)

    def forward(self, hidden_states: Tensor) -> Tensor:
        r"""Mix the tokens of each sequence.

        Args:
            hidden_states: (B, L, E).

        Returns:
            (B, L, E).

        Raises:
            ValueError: If `hidden_states` is not (B, L, hidden_size) of the module's dtype and device.
        """
        check_input(self.qkv_proj, hidden_states=hidden_states)
        query, key, value = self.qkv_proj(hidden_states).chunk(3, dim=-1)  # (B, L, E)
        scores = upcast(query) @ upcast(key).mT / math.sqrt(self.hidden_size)  # (B, L, L)
        output = softmax(scores, dim=-1) @ upcast(value)  # (B, L, E)
        return output.to(value.dtype)


class SelfAttention(nn.Module):
    r"""Rung 3, mask, dropout and output projection: what one head needs inside a real model.

    Args:
        hidden_size: Width E of a token, and of the only head.
        dropout: Share of the attention weights dropped in training.
        bias: Give the projections a bias.

    Raises:
        ValueError: If `hidden_size` is not a positive integer, or `dropout` is outside [0, 1).
    """

    def __init__(self, hidden_size: int, *, dropout: float = 0.0, bias: bool = False):
        super().__init__()
        check_positive(hidden_size=hidden_size)
        check_probability(dropout=dropout)
        self.dropout = dropout
        self.qkv_proj = nn.Linear(hidden_size, 3 * hidden_size, bias=bias)
        self.o_proj = nn.Linear(hidden_size, hidden_size, bias=bias)

    def forward(
        self, hidden_states: Tensor, attn_mask: Tensor | None = None, *, is_causal: bool = False
    ) -> Tensor:
        r"""Mix the tokens of each sequence.

        Args:
            hidden_states: (B, L, E).
            attn_mask: Boolean (True = may attend) or additive, broadcastable to (B, 1, L, L).
            is_causal: Hide later tokens.

        Returns:
            (B, L, E).

        Raises:
            ValueError: If `hidden_states` is not (B, L, hidden_size) of the module's dtype and device.
            ValueError: If the mask does not fit.
        """
        check_input(self.qkv_proj, hidden_states=hidden_states)
        qkv = self.qkv_proj(hidden_states).unsqueeze(1)  # (B, 1, L, 3*E)
        query, key, value = qkv.chunk(3, dim=-1)  # (B, 1, L, E)
        dropout_p = self.dropout if self.training else 0.0
        mixed = scaled_dot_product_attention(
            query, key, value, attn_mask, is_causal=is_causal, dropout_p=dropout_p
        )
        return self.o_proj(mixed.squeeze(1))  # (B, L, E)


class MultiHeadSelfAttention(nn.Module):
    r"""Rung 4, many heads: the same parameters, cut into H attentions of width E / H that run side by side.

    Args:
        hidden_size: Width E of a token.
        num_heads: H; each head is E / H wide.
        dropout: Share of the attention weights dropped in training.
        bias: Give the projections a bias.

    Raises:
        ValueError: If a size is not a positive integer, or `hidden_size` is not divisible by `num_heads`.
        ValueError: If `dropout` is outside [0, 1).

    Reference:
        Equal to `torch.nn.MultiheadAttention` with `in_proj_weight` copied to `qkv_proj` and `out_proj` to
        `o_proj`.
    """

    def __init__(self, hidden_size: int, num_heads: int, *, dropout: float = 0.0, bias: bool = False):
        super().__init__()
        check_divisible(hidden_size=hidden_size, num_heads=num_heads)
        check_probability(dropout=dropout)
        self.num_heads = num_heads
        self.dropout = dropout
        self.qkv_proj = nn.Linear(hidden_size, 3 * hidden_size, bias=bias)
        self.o_proj = nn.Linear(hidden_size, hidden_size, bias=bias)

    def forward(
        self, hidden_states: Tensor, attn_mask: Tensor | None = None, *, is_causal: bool = False
    ) -> Tensor:
        r"""Mix the tokens of each sequence, in H heads.

        Args:
            hidden_states: (B, L, E).
            attn_mask: Boolean (True = may attend) or additive, of shape (L,), (L, L) or broadcastable to (B,
                H, L, L).
            is_causal: Hide later tokens.

        Returns:
            (B, L, E).

        Raises:
            ValueError: If `hidden_states` is not (B, L, hidden_size) of the module's dtype and device.
            ValueError: If the mask does not fit.
        """
        check_input(self.qkv_proj, hidden_states=hidden_states)
        qkv = self.qkv_proj(hidden_states).chunk(3, dim=-1)
        query, key, value = (split_heads(x, self.num_heads) for x in qkv)  # (B, H, L, D)
        dropout_p = self.dropout if self.training else 0.0
        mixed = scaled_dot_product_attention(
            query, key, value, attn_mask, is_causal=is_causal, dropout_p=dropout_p
        )
        return self.o_proj(merge_heads(mixed))  # (B, L, E)
