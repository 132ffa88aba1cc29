r"""The head is cached once and expanded to a view over the query heads, as a learner reads it in papers."""

from torch import nn

from llmcore.attention import scaled_dot_product_attention
from llmcore.checks import check_divisible, check_input, check_positive, check_probability
from llmcore.masks import expand_mask


class MultiQueryAttention(nn.Module):
    def __init__(self, hidden_size, num_heads, *, head_dim=None, bias=False, dropout=0.0):
        super().__init__()
        check_positive(hidden_size=hidden_size, num_heads=num_heads)
        if head_dim is None:
            check_divisible(hidden_size=hidden_size, num_heads=num_heads)
        self.d = hidden_size // num_heads if head_dim is None else head_dim
        check_positive(head_dim=self.d)
        check_probability(dropout=dropout)
        self.n_heads, self.rate = num_heads, dropout
        self.W_query = nn.Linear(hidden_size, num_heads * self.d, bias=bias)
        self.W_key = nn.Linear(hidden_size, self.d, bias=bias)
        self.W_value = nn.Linear(hidden_size, self.d, bias=bias)
        self.out_proj = nn.Linear(num_heads * self.d, hidden_size, bias=bias)

    def forward(self, x, attn_mask=None, *, is_causal=False, past_key_values=None):
        check_input(self.W_query, hidden_states=x)
        batch, tokens, _ = x.shape
        queries = self.W_query(x).reshape(batch, tokens, self.n_heads, self.d).permute(0, 2, 1, 3)
        keys, values = self.W_key(x).unsqueeze(1), self.W_value(x).unsqueeze(1)
        if past_key_values is not None:
            if attn_mask is not None:
                shape = (batch, self.n_heads, tokens, past_key_values.seq_len + tokens)
                expand_mask(attn_mask, shape, x.device)
            keys, values = past_key_values.update(keys, values)
        mixed = scaled_dot_product_attention(
            queries,
            keys.expand(-1, self.n_heads, -1, -1),
            values.expand(-1, self.n_heads, -1, -1),
            attn_mask,
            is_causal=is_causal,
            dropout_p=self.rate if self.training else 0.0,
        )
        return self.out_proj(mixed.permute(0, 2, 1, 3).flatten(2))
