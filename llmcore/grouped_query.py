r"""Grouped-query attention, and how a multi-head checkpoint becomes one."""

import torch
from torch import Tensor, nn

from llmcore.attention import scaled_dot_product_attention
from llmcore.checks import check_divisible, check_floating, check_input, check_positive, check_probability
from llmcore.heads import merge_heads, split_heads
from llmcore.kv_cache import KVCache
from llmcore.masks import expand_mask
from llmcore.multi_head import MultiHeadAttention
from llmcore.softmax import upcast


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
        bias: bool = False,
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


def pool_kv_heads(weight: Tensor, num_heads: int, num_kv_heads: int) -> Tensor:
    r"""Average the key or value heads of each group, in a projection's weight or bias.

    Args:
        weight: (H * D, E), the weight of `k_proj` or `v_proj`; or (H * D,), its bias.
        num_heads: H.
        num_kv_heads: K; neighbouring heads $k H/K, \dots, (k + 1) H/K - 1$ become head $k$.

    Returns:
        (K * D, E) or (K * D,), in the dtype of `weight`; averaged in float32 at least.

    Raises:
        ValueError: If `weight` is not floating point, or has neither one nor two dimensions.
        ValueError: If the rows are not divisible by `num_heads`, or `num_heads` by `num_kv_heads`.

    Reference:
        Ainslie et al., GQA, section 2.1 (mean pooling of a multi-head checkpoint), arXiv:2305.13245.
    """
    check_floating(weight=weight)
    if weight.dim() not in (1, 2):
        raise ValueError(f"weight must have shape (H*D, E) or (H*D,), got {tuple(weight.shape)}")
    check_divisible(rows=weight.size(0), num_heads=num_heads)
    check_divisible(num_heads=num_heads, num_kv_heads=num_kv_heads)
    groups = num_kv_heads, num_heads // num_kv_heads, -1
    heads = upcast(weight).unflatten(0, groups)  # (K, H/K, D, E) or (K, H/K, D)
    return heads.mean(dim=1).flatten(0, 1).to(weight.dtype)


@torch.no_grad()
def mha_to_gqa(mha: MultiHeadAttention, num_kv_heads: int) -> GroupedQueryAttention:
    r"""Convert multi-head attention to grouped-query attention; the result is a start for further training,
    not an equal.

    Query and output projections are copied, key and value heads averaged within each group.

    Args:
        mha: Attention whose query, key, value and output widths are all `hidden_size`, and its value heads as
            wide as its key heads.
        num_kv_heads: K, a divisor of the number of heads.

    Returns:
        New `GroupedQueryAttention` with the dtype, device and mode (train or eval) of `mha`.

    Raises:
        ValueError: If the widths differ, or `num_heads` is not divisible by `num_kv_heads`.

    Reference:
        Ainslie et al., GQA, section 2.1, arXiv:2305.13245.
    """
    hidden_size, out_dim = mha.q_proj.in_features, mha.o_proj.out_features
    widths = {"kdim": mha.k_proj.in_features, "vdim": mha.v_proj.in_features, "out_dim": out_dim}
    for name, width in widths.items():
        if width != hidden_size:
            raise ValueError(f"{name}={width} must equal {hidden_size=} for self-attention")
    if mha.v_proj.out_features != mha.q_proj.out_features:
        raise ValueError(
            f"value heads must be as wide as query heads, got {mha.v_proj.out_features} and "
            f"{mha.q_proj.out_features} over all heads"
        )
    gqa = GroupedQueryAttention(
        hidden_size,
        mha.num_heads,
        num_kv_heads,
        head_dim=mha.q_proj.out_features // mha.num_heads,
        bias=mha.q_proj.bias is not None,
        dropout=mha.dropout,
    ).to(mha.q_proj.weight)
    state = mha.state_dict()
    pooled = {
        name: pool_kv_heads(weight, mha.num_heads, num_kv_heads)
        if name.startswith(("k_proj", "v_proj"))
        else weight
        for name, weight in state.items()
    }
    gqa.load_state_dict(pooled)
    return gqa.train(mha.training)
