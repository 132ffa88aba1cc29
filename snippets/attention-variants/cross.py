import torch
from torch import nn

from llmcore.attention import scaled_dot_product_attention
from llmcore.cross_attention import CrossAttention
from llmcore.heads import merge_heads, split_heads
from llmcore.masks import padding_mask

torch.manual_seed(0)
cross = CrossAttention(32, 4, context_size=20)
target, context = torch.randn(2, 3, 32), torch.randn(2, 6, 20)
mask = padding_mask(torch.tensor([6, 4]), 6)  # (B, 1, 1, S): the second context has 4 real tokens
out = cross(target, context, mask)
print("target", tuple(target.shape), "context", tuple(context.shape), "->", tuple(out.shape))

reference = nn.MultiheadAttention(32, 4, bias=False, kdim=20, vdim=20, batch_first=True)
with torch.no_grad():
    for name in ("q", "k", "v"):
        getattr(reference, f"{name}_proj_weight").copy_(getattr(cross, f"{name}_proj").weight)
    reference.out_proj.weight.copy_(cross.o_proj.weight)
hidden = ~mask[:, 0, 0]  # (B, S): nn.MultiheadAttention wants True = hidden
expected, _ = reference(target, context, context, key_padding_mask=hidden, need_weights=False)
print("== nn.MultiheadAttention:", torch.allclose(out, expected, atol=1e-6))

changed = context.clone()
changed[1, 4:] = 100.0
print("padding has no influence:", torch.equal(out, cross(target, changed, mask)))

key, value = split_heads(cross.k_proj(context), 4), split_heads(cross.v_proj(context), 4)  # once per context
steps = []
for t in range(3):  # decoding: only the query is new at each step
    query = split_heads(cross.q_proj(target[:, t : t + 1]), 4)
    steps.append(cross.o_proj(merge_heads(scaled_dot_product_attention(query, key, value, mask))))
print("K and V computed once, 3 steps:", torch.allclose(torch.cat(steps, dim=1), out, atol=1e-6))

equal = nn.MultiheadAttention(32, 4, batch_first=True)  # equal widths: the wrong call has the right shape
source = torch.randn(2, 6, 32)
for name, pick in {"target": lambda s: target, "source": lambda s: s}.items():
    one, two = (equal(target, pick(s), pick(s), need_weights=False)[0] for s in (source, 2 * source))
    print(f"K, V from the {name}: another source changes the output by {(one - two).abs().max():.2f}")
