r"""einsum for projections, scores and output; matrices multiplied from the right; an additive mask."""

import math

import torch
from torch import nn

from llmcore.checks import check_divisible, check_positive, check_probability
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
        kdim, vdim, out_dim = (hidden_size if n is None else n for n in (kdim, vdim, out_dim))
        check_positive(hidden_size=hidden_size, num_heads=num_heads, kdim=kdim, vdim=vdim, out_dim=out_dim)
        if head_dim is None:
            check_divisible(hidden_size=hidden_size, num_heads=num_heads)
            head_dim = hidden_size // num_heads
        if v_head_dim is None:
            v_head_dim = head_dim
        check_positive(head_dim=head_dim, v_head_dim=v_head_dim)
        check_probability(dropout=dropout)
        self.heads, self.drop = num_heads, nn.Dropout(dropout)
        self.Wq, self.bq = self._matrix(hidden_size, num_heads * head_dim, bias)
        self.Wk, self.bk = self._matrix(kdim, num_heads * head_dim, bias)
        self.Wv, self.bv = self._matrix(vdim, num_heads * v_head_dim, bias)
        self.Wo, self.bo = self._matrix(num_heads * v_head_dim, out_dim, bias)

    @staticmethod
    def _matrix(rows, columns, bias):
        weight = nn.Parameter(torch.empty(rows, columns))
        nn.init.xavier_uniform_(weight)
        return weight, nn.Parameter(torch.zeros(columns)) if bias else None

    def _project(self, x, weight, bias, name):
        if x.dim() != 3 or x.size(-1) != weight.size(0):
            raise ValueError(f"{name} must be (batch, tokens, {weight.size(0)}), got {tuple(x.shape)}")
        x = torch.einsum("bte,ef->btf", x, weight)
        return x if bias is None else x + bias

    def forward(self, query, key, value, attn_mask=None, *, is_causal=False):
        q = self._project(query, self.Wq, self.bq, "query").unflatten(-1, (self.heads, -1))
        k = self._project(key, self.Wk, self.bk, "key").unflatten(-1, (self.heads, -1))
        v = self._project(value, self.Wv, self.bv, "value").unflatten(-1, (self.heads, -1))
        if not q.size(0) == k.size(0) == v.size(0):
            raise ValueError(f"batch sizes differ: {q.size(0)}, {k.size(0)}, {v.size(0)}")
        if k.size(1) != v.size(1):
            raise ValueError(f"{k.size(1)} keys and {v.size(1)} values")
        dtype = q.dtype
        if dtype != torch.float64:
            q, k, v = q.float(), k.float(), v.float()
        scores = torch.einsum("blhd,bshd->bhls", q, k) / math.sqrt(q.size(-1))
        add = torch.zeros_like(scores)
        if attn_mask is not None:
            mask = expand_mask(attn_mask, tuple(scores.shape), scores.device)
            add = add.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else add + mask
        if is_causal:
            add = add.masked_fill(~causal_mask(q.size(1), k.size(1)), -math.inf)
        empty = (add == -math.inf).all(-1, keepdim=True)
        weights = torch.softmax(scores + add.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)
        mixed = torch.einsum("bhls,bshd->blhd", self.drop(weights), v).flatten(2).to(dtype)
        output = torch.einsum("btf,fe->bte", mixed, self.Wo)
        return output if self.bo is None else output + self.bo
