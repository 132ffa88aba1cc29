"""float16: where a score overflows, and why -1e9 is no mask."""

import torch
import torch.nn.functional as F

from llmcore.attention import attention_weights, scaled_dot_product_attention
from llmcore.masks import additive_mask

half = torch.float16
query = torch.full((1, 1, 1, 128), 30.0, dtype=half)
key = torch.stack([torch.full((128,), 30.0), torch.full((128,), 29.0)])[None, None].to(half)  # (1, 1, 2, 128)
value = torch.eye(2, dtype=half)[None, None]
print(
    "q·k =", (query.float() @ key.float().mT).flatten().tolist(), "but float16 ends at", torch.finfo(half).max
)
scores = query @ key.mT  # float16
print("product first, then / √128:", (scores / 128**0.5).flatten().tolist())
print("    softmax:", torch.softmax(scores / 128**0.5, dim=-1).flatten().tolist())
scaled = (query / 128**0.5) @ key.mT
print("    scale q first:", torch.softmax(scaled, dim=-1).flatten().tolist())
print("    SDPA:         ", F.scaled_dot_product_attention(query, key, value).flatten().tolist())
print("    llmcore:      ", scaled_dot_product_attention(query, key, value).flatten().tolist())

print("\n-1e9 as float16:", torch.tensor(-1e9, dtype=half).item())
try:
    torch.zeros(2, dtype=half).masked_fill(torch.tensor([True, False]), -1e9)
except RuntimeError as error:
    print("masked_fill with -1e9:", type(error).__name__)

hidden = torch.zeros(1, 4, dtype=torch.bool)  # a row that may see nothing
row = torch.tensor([[3.0, 1.0, 0.0, -2.0]])
print("\nfully hidden row, + (-1e9):   ", torch.softmax(row - 1e9, -1).flatten().tolist())
lowest = torch.finfo(torch.float32).min
print("fully hidden row, + finfo.min:", torch.softmax(row + lowest, -1).flatten().tolist())
print("finfo.min added twice:        ", torch.softmax(row + lowest + lowest, -1).flatten().tolist())
q, k = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 4, 8)
print("llmcore:                      ", attention_weights(q, k, additive_mask(hidden)).flatten().tolist())
