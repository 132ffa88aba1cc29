import torch

from llmcore.attention import scaled_dot_product_attention
from llmcore.heads import merge_heads, split_heads

x = torch.arange(12).view(1, 3, 4)  # (B, L, E): 3 tokens, 2 heads of 2; token t holds 4t .. 4t+3
print("token 0:", x[0, 0].tolist(), " token 1:", x[0, 1].tolist(), " token 2:", x[0, 2].tolist())
right = split_heads(x, 2)  # view (1, 3, 2, 2), then transpose
wrong = x.view(1, 2, 3, 2)  # straight to the same shape
print("head 0, view + transpose:", right[0, 0].tolist())
print("head 0, straight view:   ", wrong[0, 0].tolist())
print("merge, transposed back:  ", merge_heads(right)[0, 0].tolist())
print("merge, not transposed:   ", right.reshape(1, 3, 4)[0, 0].tolist())

viewed = x.view(1, 3, 2, 2)
print("stride of view:     ", viewed.stride(), " contiguous:", viewed.is_contiguous())
print("stride of transpose:", right.stride(), " contiguous:", right.is_contiguous())
back = right.transpose(1, 2)
print("and transposed back:", back.stride(), " contiguous:", back.is_contiguous())
output = (right * 1.0).contiguous()  # what attention returns: a fresh (B, H, L, D)
back = output.transpose(1, 2)
print("a fresh output:     ", tuple(output.shape))
print("and its transpose:  ", back.stride(), " contiguous:", back.is_contiguous())
try:
    back.view(1, 3, 4)
except RuntimeError as error:
    print("view fails:", str(error).split(" (")[0])
merged = back.reshape(1, 3, 4)
print("reshape copies:", merged.data_ptr() != output.data_ptr())
print("split_heads copies:", split_heads(x, 2).data_ptr() != x.data_ptr())

torch.manual_seed(0)
x = torch.randn(1, 3, 4)
changed = x.clone()
changed[:, -1] += 1.0  # the last token; under a causal mask earlier outputs must not move
splits = {"view + transpose": lambda x: split_heads(x, 2), "straight view": lambda x: x.view(1, 2, 3, 2)}
for name, split in splits.items():
    heads = [split(t) for t in (x, changed)]  # q = k = v
    one, two = (merge_heads(scaled_dot_product_attention(h, h, h, is_causal=True)) for h in heads)
    print(f"{name}: earlier outputs move by {(one - two)[:, :-1].abs().max():.2f}")
