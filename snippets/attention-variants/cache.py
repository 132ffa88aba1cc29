import torch

from llmcore.grouped_query import GroupedQueryAttention
from llmcore.heads import repeat_kv, split_heads
from llmcore.kv_cache import KVCache

torch.manual_seed(0)
gqa = GroupedQueryAttention(64, num_heads=8, num_kv_heads=2)
x = torch.randn(3, 10, 64)
full = gqa(x, is_causal=True)

cache = KVCache()
steps = [gqa(x[:, :4], is_causal=True, past_key_values=cache)]  # prefill: 4 tokens at once
steps.append(gqa(x[:, 4:7], is_causal=True, past_key_values=cache))  # a chunk of 3 over 7 keys
steps += [gqa(x[:, t : t + 1], is_causal=True, past_key_values=cache) for t in range(7, 10)]  # one by one
print("prefill + chunk + 3 steps == full pass:", torch.allclose(torch.cat(steps, dim=1), full, atol=1e-6))
print("cached keys:", tuple(cache.key.shape), "seq_len", cache.seq_len, "bytes", cache.num_bytes)

late = KVCache()  # the wrong order: repeat first, then cache
key = split_heads(gqa.k_proj(x), 2)
late.update(repeat_kv(key, 4), repeat_kv(key, 4))
times = late.num_bytes // cache.num_bytes
print(f"cached after repeat_kv: {tuple(late.key.shape)}, {late.num_bytes} bytes, {times} times as much")
