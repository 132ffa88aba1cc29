r"""torch's own `scaled_dot_product_attention` between the projections, with the causal mask made explicit."""

import torch
import torch.nn.functional as F
from torch import nn

from llmcore.checks import check_divisible, check_heads, check_input, check_positive, check_probability
from llmcore.heads import merge_heads, split_heads
from llmcore.masks import causal_mask, expand_mask


class MultiHeadAttention(nn.Module):
    def __init__(
        self,
        hidden_size,
        num_heads,
        *,
        kdim=None,
        vdim=None,
        head_dim=None,
        v_head_dim=None,
        out_dim=None,
        bias=True,
        dropout=0.0,
    ):
        super().__init__()
        if head_dim is None:
            check_divisible(hidden_size=hidden_size, num_heads=num_heads)
            head_dim = hidden_size // num_heads
        sizes = {"hidden_size": hidden_size, "num_heads": num_heads, "head_dim": head_dim}
        sizes["v_head_dim"] = head_dim if v_head_dim is None else v_head_dim
        for name, size in (("kdim", kdim), ("vdim", vdim), ("out_dim", out_dim)):
            sizes[name] = hidden_size if size is None else size
        check_positive(**sizes)
        check_probability(dropout=dropout)
        self.num_heads, self.dropout = num_heads, dropout
        self.to_q = nn.Linear(hidden_size, num_heads * head_dim, bias)
        self.to_k = nn.Linear(sizes["kdim"], num_heads * head_dim, bias)
        self.to_v = nn.Linear(sizes["vdim"], num_heads * sizes["v_head_dim"], bias)
        self.to_out = nn.Linear(num_heads * sizes["v_head_dim"], sizes["out_dim"], bias)

    def forward(self, query, key, value, attn_mask=None, *, is_causal=False):
        for layer, tensor in ((self.to_q, query), (self.to_k, key), (self.to_v, value)):
            check_input(layer, input=tensor)
        q = split_heads(self.to_q(query), self.num_heads)
        k = split_heads(self.to_k(key), self.num_heads)
        v = split_heads(self.to_v(value), self.num_heads)
        check_heads(q, k, v)
        mask = None
        if attn_mask is not None:
            mask = expand_mask(attn_mask, (*q.shape[:3], k.size(2)), q.device)
            if mask.dtype != torch.bool:
                mask = mask.to(q.dtype)
        if is_causal:
            lower = causal_mask(q.size(2), k.size(2), device=q.device)
            if mask is None:
                mask = lower
            else:
                mask = mask & lower if mask.dtype == torch.bool else mask.masked_fill(~lower, float("-inf"))
        p = self.dropout if self.training else 0.0
        return self.to_out(merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)))
