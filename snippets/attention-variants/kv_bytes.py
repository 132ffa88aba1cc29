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

llama3 = kv_cache_bytes(num_layers=32, num_kv_heads=8, head_dim=128, seq_len=8192, batch_size=32)
mha = kv_cache_bytes(num_layers=32, num_kv_heads=32, head_dim=128, seq_len=8192, batch_size=32)
print(f"Llama 3 8B, 32 sequences of 8192: {llama3 / 2**30:.0f} GiB; with 32 kv heads {mha / 2**30:.0f} GiB")
