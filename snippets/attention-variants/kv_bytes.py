from functools import partial

from llmcore.kv_cache import kv_cache_bytes

models = {  # layers, heads, kv heads, head_dim, context
    "Llama 2 7B": (32, 32, 32, 128, 4096),
    "Llama 3 8B": (32, 32, 8, 128, 8192),
    "Llama 3 70B": (80, 64, 8, 128, 8192),
    "Falcon-7B": (32, 71, 1, 64, 2048),
    "SmolLM2-135M": (30, 9, 3, 64, 8192),
}
print("bf16               H  K   KiB a token   if MHA   context   MiB a sequence")
for name, (layers, heads, kv_heads, size, context) in models.items():
    token = kv_cache_bytes(num_layers=layers, num_kv_heads=kv_heads, head_dim=size, seq_len=1)
    mha = kv_cache_bytes(num_layers=layers, num_kv_heads=heads, head_dim=size, seq_len=1)
    full = kv_cache_bytes(num_layers=layers, num_kv_heads=kv_heads, head_dim=size, seq_len=context)
    print(
        f"{name:14} {heads:5} {kv_heads:2} {token / 2**10:13.1f} {mha / 2**10:8.1f}"
        f" {context:9} {full / 2**20:16.0f}"
    )

layers, heads, kv_heads, size, context = models["Llama 3 8B"]
llama3 = partial(kv_cache_bytes, num_layers=layers, head_dim=size)
token, full = (llama3(num_kv_heads=kv_heads, seq_len=tokens) for tokens in (1, context))
print(f"Llama 3 8B: {token} bytes = {token / 2**10:.0f} KiB a token, {full / 2**30:.0f} GiB for {context}")
gqa, mha = (llama3(num_kv_heads=k, seq_len=context, batch_size=32) for k in (kv_heads, heads))
print(f"32 such sequences: {gqa / 2**30:.0f} GiB; with {heads} kv heads {mha / 2**30:.0f} GiB")

heads, size = 128, 128  # DeepSeek-V2, whose MLA caches one latent and one key with RoPE for all heads
latent, rope = 4 * size, size // 2
cached = latent + rope
print(f"MLA: {latent} + {rope} = {cached} numbers a layer, MHA {2 * heads * size}: ", end="")
print(f"as many as GQA with {cached / (2 * size)} groups")
intensity = 2 * heads * (cached + latent) / (2 * cached)
print(f"MLA reads them as {2 * cached} bytes, FLOPs a byte: {intensity / heads:.1f} H = {intensity:.0f}")
