r"""Three projections under other names instead of a fused one, the formula with the mask inside."""

import math

from torch import nn

from llmcore.attention import apply_mask, dropout
from llmcore.checks import check_input, check_positive, check_probability
from llmcore.masks import causal_mask
from llmcore.softmax import softmax, upcast


class SelfAttention(nn.Module):
    def __init__(self, hidden_size, *, dropout=0.0, bias=False):
        super().__init__()
        check_positive(hidden_size=hidden_size)
        check_probability(dropout=dropout)
        self.wq = nn.Linear(hidden_size, hidden_size, bias)
        self.wk = nn.Linear(hidden_size, hidden_size, bias)
        self.wv = nn.Linear(hidden_size, hidden_size, bias)
        self.wo = nn.Linear(hidden_size, hidden_size, bias)
        self.p = dropout

    def forward(self, hidden_states, attn_mask=None, *, is_causal=False):
        check_input(self.wq, hidden_states=hidden_states)
        q, k, v = (upcast(layer(hidden_states)).unsqueeze(1) for layer in (self.wq, self.wk, self.wv))
        scores = q @ k.mT / math.sqrt(q.size(-1))
        if attn_mask is not None:
            scores = apply_mask(scores, attn_mask)
        if is_causal:
            scores = apply_mask(scores, causal_mask(q.size(2), device=q.device))
        weights = softmax(scores)
        if self.training and self.p > 0:
            weights = dropout(weights, self.p)
        return self.wo((weights @ v)[:, 0].to(hidden_states.dtype))
