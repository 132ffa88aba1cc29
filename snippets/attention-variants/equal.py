import torch
import torch.nn.functional as F

from llmcore.attention import scaled_dot_product_attention
from llmcore.grouped_query import GroupedQueryAttention
from llmcore.heads import repeat_kv
from llmcore.multi_head import MultiHeadAttention
from llmcore.multi_query import MultiQueryAttention

torch.manual_seed(0)
x = torch.randn(2, 5, 48)


def same(a, b):
    return torch.allclose(a, b, atol=1e-6)


mqa, gqa1 = MultiQueryAttention(48, 8), GroupedQueryAttention(48, 8, 1)
gqa1.load_state_dict(mqa.state_dict())
print("MQA == GQA(K=1):", same(mqa(x, is_causal=True), gqa1(x, is_causal=True)))

mha, gqa8 = MultiHeadAttention(48, 8, bias=False), GroupedQueryAttention(48, 8, 8)
gqa8.load_state_dict(mha.state_dict())
print("MHA == GQA(K=H):", same(mha(x, x, x, is_causal=True), gqa8(x, is_causal=True)))

gqa, tied = GroupedQueryAttention(48, 8, 2), MultiHeadAttention(48, 8, bias=False)
state = dict(gqa.state_dict())
for name in ("k_proj.weight", "v_proj.weight"):  # (K*D, E) -> (H*D, E): each kv head written out 4 times
    state[name] = state[name].unflatten(0, (2, 6)).repeat_interleave(4, dim=0).flatten(0, 1)
tied.load_state_dict(state)
print("GQA == MHA with tied kv heads:", same(gqa(x), tied(x, x, x)))

q, k, v = torch.randn(2, 8, 5, 6), torch.randn(2, 2, 5, 6), torch.randn(2, 2, 5, 6)
ours = scaled_dot_product_attention(q, k, v, is_causal=True)
native = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
print("== SDPA(enable_gqa=True):", same(ours, native))
repeated = F.scaled_dot_product_attention(q, repeat_kv(k, 4), repeat_kv(v, 4), is_causal=True)
print("== SDPA on repeat_kv:", same(ours, repeated))
print("repeat_kv == repeat_interleave:", torch.equal(repeat_kv(k, 4), k.repeat_interleave(4, dim=1)))
tiled = F.scaled_dot_product_attention(q, k.repeat(1, 4, 1, 1), v.repeat(1, 4, 1, 1), is_causal=True)
right = [h for h in range(8) if same(tiled[:, h], ours[:, h])]
wrong = [h for h in range(8) if h not in right]
print("repeat (tile) instead: heads wrong", wrong, "heads right", right)
print(f"repeat (tile) instead: largest error {(tiled - ours).abs().max():.2f}")

order = torch.arange(8).view(4, 2).T.flatten()  # sorted by h % 2, the kv head that repeat gives query head h
sorted_heads = scaled_dot_product_attention(q[:, order], k, v, is_causal=True)
print("repeat == neighbouring groups with query heads", order.tolist(), same(sorted_heads, tiled[:, order]))
