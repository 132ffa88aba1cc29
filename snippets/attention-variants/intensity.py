heads, size, layers, elem = 32, 128, 32, 2  # Llama 3 8B's geometry, bf16
vocab, hidden, ffn = 128256, 4096, 14336


def weights(kv_heads):
    attention = 2 * hidden * size * (heads + kv_heads)
    return 2 * vocab * hidden + layers * (attention + 3 * hidden * ffn + 2 * hidden) + hidden


print(f"Llama 3 8B: {weights(8):,} parameters")
print("attention alone, FLOPs a byte    decode, S = 8192    prefill, L = 8192")
for kv_heads in (32, 8, 1):
    length = 8192
    decode = 4 * heads * length * size / (2 * kv_heads * length * size * elem)
    moved = (2 * heads + 2 * kv_heads) * length * size * elem  # q and output, k and v
    prefill = 4 * heads * length**2 * size / 2 / moved  # causal: half of the scores
    print(f"K = {kv_heads:2} {decode:36.0f} {prefill:20.0f}")

ridge = 989e12 / 3.35e12  # H100 SXM: dense bf16 FLOP/s over bytes/s
print(f"H100 SXM needs {ridge:.0f} FLOPs a byte to be busy")
print("GB read for one decoding step    weights    KV cache    at best, ms at 3.35 TB/s")
for batch in (1, 64):
    for kv_heads in (32, 8, 1):
        kv = 2 * layers * batch * kv_heads * 8192 * size * elem / 1e9
        w = (weights(kv_heads) - vocab * hidden) * elem / 1e9  # the embedding table is looked up, not read
        print(f"batch {batch:2}, K = {kv_heads:2} {w:22.1f} {kv:11.1f} {(w + kv) / 3.35:14.1f}")
