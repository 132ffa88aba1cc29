import torch
from torch import nn

from llmcore.attention import scaled_dot_product_attention
from llmcore.grouped_query import GroupedQueryAttention


def note_split(x, num_heads, head_dim):
    """The view with a free sequence axis, as many notes have it."""
    return x.view(x.size(0), -1, num_heads, head_dim).transpose(1, 2)


def note_repeat(x, num_heads, num_kv_heads):
    """Repeat num_heads // num_kv_heads times, then reshape to num_heads with a free sequence axis."""
    batch, size = x.size(0), x.size(-1)
    n_rep = num_heads // num_kv_heads
    return x[:, :, None].repeat(1, 1, n_rep, 1, 1).reshape(batch, num_heads, -1 if n_rep else 0, size)


torch.manual_seed(0)
x = torch.randn(1, 24, 100)  # 100 does not divide by 8: head_dim = 100 // 8 = 12
q_proj, k_proj, o_proj = nn.Linear(100, 100), nn.Linear(100, 12), nn.Linear(96, 100)  # MQA
query, key = note_split(q_proj(x), 8, 12), note_split(k_proj(x), 1, 12)
mixed = scaled_dot_product_attention(query, key, key).transpose(1, 2).flatten(2)
print(f"100 over 8 heads: queries {tuple(query.shape)}, keys {tuple(key.shape)}")
print(f"MQA: {x.size(1)} tokens in, {o_proj(mixed).size(1)} out")
try:
    nn.Linear(100, 100)(mixed)  # the output projection of the note's MHA
except RuntimeError as error:
    print("MHA:", error)
copied, shared = key.repeat(1, 8, 1, 1), key.expand(1, 8, 24, 12)
print(f"repeat to 8 heads: {copied.untyped_storage().nbytes() // key.nbytes} times the bytes; ", end="")
print(f"expand: {shared.untyped_storage().nbytes() // key.nbytes}")

for heads, kv_heads in ((8, 3), (8, 5), (4, 8)):
    key = torch.arange(16.0).expand(1, kv_heads, 16).unsqueeze(-1) + 100 * torch.arange(kv_heads).view(
        1, -1, 1, 1
    )
    repeated = note_repeat(key, heads, kv_heads)  # an entry 203 means kv head 2, token 3
    print(f"{heads} heads over {kv_heads}: keys {tuple(key.shape)} -> {tuple(repeated.shape)}", end="; ")
    print("head 1 reads", repeated[0, 1, :, 0].int().tolist() or "no key")

for hidden, heads, kv_heads in ((100, 8, 2), (64, 8, 3)):
    try:
        GroupedQueryAttention(hidden, heads, kv_heads)
    except ValueError as error:
        print("llmcore:", error)

names = torch.arange(80).view(8, 10)  # heads-first merging: entry h * 10 + b is head h of sequence b
merged = names.reshape(80, 1, 1).expand(80, 2, 4)  # attention (80, 2, 4)
wrong = merged.reshape(10, 8, 2, 4)
right = merged.reshape(8, 10, 2, 4).transpose(0, 1)  # (B, H, L, S)
print(f"(80, 2, 4) read as (batch, heads, ...): {(wrong != right).float().mean():.1%} of the entries wrong")
