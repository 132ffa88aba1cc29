"""Never the whole (L, S) matrix: blocks of queries (plain softmax), or blocks of keys (online softmax)."""

import torch

from llmcore.attention import scaled_dot_product_attention
from llmcore.masks import causal_mask
from llmcore.softmax import softmax


def by_queries(query, key, value, block):
    """A block of rows at a time. Each row is whole, so the ordinary softmax does."""
    q_len, k_len = query.size(-2), key.size(-2)
    seen = causal_mask(q_len, k_len)
    out = []
    for start in range(0, q_len, block):
        rows = slice(start, start + block)
        scores = query[..., rows, :] @ key.mT / query.size(-1) ** 0.5  # (..., block, S)
        out.append(softmax(scores.masked_fill(~seen[rows], -torch.inf)) @ value)
    return torch.cat(out, dim=-2)


def by_keys(query, key, value, block):
    """A block of columns at a time. The maximum so far changes, so what is summed so far is rescaled."""
    q_len, k_len = query.size(-2), key.size(-2)
    seen = causal_mask(q_len, k_len)
    row_max = query.new_full((*query.shape[:-1], 1), -torch.inf)
    total, acc = torch.zeros_like(row_max), query.new_zeros(*query.shape[:-1], value.size(-1))
    for start in range(0, k_len, block):
        columns = slice(start, start + block)
        scores = query @ key[..., columns, :].mT / query.size(-1) ** 0.5  # (..., L, block)
        scores = scores.masked_fill(~seen[:, columns], -torch.inf)
        new_max = torch.maximum(row_max, scores.amax(-1, keepdim=True))
        shift = new_max.masked_fill(new_max == -torch.inf, 0.0)  # nothing seen yet: -inf - (-inf) is NaN
        exp, shrink = (scores - shift).exp(), (row_max - shift).exp()
        total = total * shrink + exp.sum(-1, keepdim=True)
        acc = acc * shrink + exp @ value[..., columns, :]
        row_max = new_max
    return acc / total.masked_fill(total == 0.0, 1.0)  # a row that sees no key at all: 0


torch.manual_seed(0)
for q_len, k_len in ((40, 50), (50, 40)):  # with 50 queries over 40 keys the first 10 see nothing
    query = torch.randn(2, 3, q_len, 16)
    key, value = torch.randn(2, 2, 3, k_len, 16)
    whole = scaled_dot_product_attention(query, key, value, is_causal=True)
    for name, function in (("blocks of queries", by_queries), ("blocks of keys", by_keys)):
        error = (function(query, key, value, 16) - whole).abs().max()
        print(f"L = {q_len}, S = {k_len}, {name}: equal to the whole matrix: {bool(error < 1e-5)}")
print("scores of L = 40, S = 50 held at once: whole", 40 * 50, "| by queries", 16 * 50, "| by keys", 40 * 16)
