import torch
from torch import Tensor, nn

from llmcore.attention import scaled_dot_product_attention
from llmcore.checks import check_divisible, check_input, check_positive, check_probability
from llmcore.heads import merge_heads, split_heads
from llmcore.kv_cache import KVCache
from llmcore.masks import expand_mask


class GroupedQueryAttention(nn.Module):
    r"""H query heads in K groups; the heads of a group share one key head and one value head.

    K = H is multi-head attention, K = 1 is multi-query attention. The KV cache is H / K times smaller than
    with K = H.

    Args:
        hidden_size: Width E of a token.
        num_heads: H query heads.
        num_kv_heads: K key/value heads; H must be a multiple of it.
        head_dim: Width D of a head; `hidden_size // num_heads` if not given.
        bias: Give the projections a bias.
        dropout: Share of the attention weights dropped in training.

    Raises:
        ValueError: If a size is not a positive integer, or `dropout` is outside [0, 1).
        ValueError: If `num_heads` is not divisible by `num_kv_heads`.
        ValueError: If `hidden_size` is not divisible by `num_heads` and `head_dim` is not given.

    Reference:
        Ainslie et al., GQA, arXiv:2305.13245. Equal to transformers' `LlamaAttention` without its rotation.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        num_kv_heads: int,
        *,
        head_dim: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__()
        if head_dim is None:
            check_divisible(hidden_size=hidden_size, num_heads=num_heads)
            head_dim = hidden_size // num_heads
        check_divisible(num_heads=num_heads, num_kv_heads=num_kv_heads)
        check_positive(hidden_size=hidden_size, head_dim=head_dim)
        check_probability(dropout=dropout)
        self.num_heads, self.num_kv_heads = num_heads, num_kv_heads
        self.dropout = dropout
        self.q_proj = nn.Linear(hidden_size, num_heads * head_dim, bias=bias)
        self.k_proj = nn.Linear(hidden_size, num_kv_heads * head_dim, bias=bias)
        self.v_proj = nn.Linear(hidden_size, num_kv_heads * head_dim, bias=bias)
        self.o_proj = nn.Linear(num_heads * head_dim, hidden_size, bias=bias)

    def forward(
        self,
        hidden_states: Tensor,
        attn_mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        past_key_values: KVCache | None = None,
    ) -> Tensor:
        r"""Mix the tokens of each sequence; with a cache, the new tokens also see those before them.

        Args:
            hidden_states: (B, L, E), the new tokens.
            attn_mask: Boolean (True = may attend) or additive, of shape (S,), (L, S) or broadcastable to (B,
                H, L, S), where S counts the cached tokens and the new ones.
            is_causal: Hide later keys, aligned bottom-right.
            past_key_values: Cache of the K heads' keys and values; the new ones are appended to it, K heads
                and not H.

        Returns:
            (B, L, E).

        Raises:
            ValueError: If `hidden_states` is not (B, L, hidden_size), or the mask or the cache does not fit.
        """
        check_input(self.q_proj, hidden_states=hidden_states)
        query = split_heads(self.q_proj(hidden_states), self.num_heads)  # (B, H, L, D)
        key = split_heads(self.k_proj(hidden_states), self.num_kv_heads)  # (B, K, L, D)
        value = split_heads(self.v_proj(hidden_states), self.num_kv_heads)  # (B, K, L, D)
        if past_key_values is not None:
            if attn_mask is not None:  # a mask that does not fit is refused before the cache takes the tokens
                (batch, num_heads, q_len), seen = query.shape[:3], past_key_values.seq_len + key.size(2)
                expand_mask(attn_mask, (batch, num_heads, q_len, seen), query.device)
            key, value = past_key_values.update(key, value)  # (B, K, S, D)
        dropout_p = self.dropout if self.training else 0.0
        mixed = scaled_dot_product_attention(
            query, key, value, attn_mask, is_causal=is_causal, dropout_p=dropout_p
        )
        return self.o_proj(merge_heads(mixed))  # (B, L, E)
