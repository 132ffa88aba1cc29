r"""One head after the other with llmcore's attention, each from its rows of the projections; fc_ names."""

import torch
from torch import nn

from llmcore.attention import scaled_dot_product_attention
from llmcore.checks import check_divisible, check_input, check_positive, check_probability


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
        check_probability(dropout=dropout)
        check_positive(hidden_size=hidden_size, num_heads=num_heads)
        if head_dim is None:
            check_divisible(hidden_size=hidden_size, num_heads=num_heads)
        self.d = hidden_size // num_heads if head_dim is None else head_dim
        self.dv = self.d if v_head_dim is None else v_head_dim
        kdim = kdim if kdim is not None else hidden_size
        vdim = vdim if vdim is not None else hidden_size
        out_dim = out_dim if out_dim is not None else hidden_size
        check_positive(head_dim=self.d, v_head_dim=self.dv, kdim=kdim, vdim=vdim, out_dim=out_dim)
        self.n, self.p = num_heads, dropout
        self.fc_o = nn.Linear(num_heads * self.dv, out_dim, bias=bias)
        self.fc_v = nn.Linear(vdim, num_heads * self.dv, bias=bias)
        self.fc_k = nn.Linear(kdim, num_heads * self.d, bias=bias)
        self.fc_q = nn.Linear(hidden_size, num_heads * self.d, bias=bias)

    def forward(self, query, key, value, attn_mask=None, *, is_causal=False):
        check_input(self.fc_q, query=query)
        check_input(self.fc_k, key=key)
        check_input(self.fc_v, value=value)
        if attn_mask is not None and attn_mask.dim() == 4 and attn_mask.size(1) not in (1, self.n):
            raise ValueError(f"mask of shape {tuple(attn_mask.shape)} does not fit {self.n} heads")
        q = self.fc_q(query).split(self.d, dim=-1)
        k = self.fc_k(key).split(self.d, dim=-1)
        v = self.fc_v(value).split(self.dv, dim=-1)
        outputs = []
        for head in range(self.n):
            mask = attn_mask
            if mask is not None and mask.dim() == 4 and mask.size(1) > 1:
                mask = mask[:, head : head + 1]
            outputs.append(
                scaled_dot_product_attention(
                    q[head][:, None],
                    k[head][:, None],
                    v[head][:, None],
                    mask,
                    is_causal=is_causal,
                    dropout_p=self.p if self.training else 0.0,
                )[:, 0]
            )
        return self.fc_o(torch.cat(outputs, dim=-1))
