heads, size, layers, elem = 32, 128, 32, 2  # Llama 3 8B's geometry, bf16
vocab, hidden, ffn = 128256, 4096, 14336
peak, bandwidth = 989, 3.35  # H100 SXM: TFLOP/s of dense bf16, TB/s
length = 8192


def weights(kv_heads):
    attention = 2 * hidden * size * (heads + kv_heads)
    return 2 * vocab * hidden + layers * (attention + 3 * hidden * ffn + 2 * hidden) + hidden


print(f"Llama 3 8B: {weights(8):,} parameters, {weights(8) * elem / 1e9:.1f} GB in bf16")
print(f"attention alone, FLOPs a byte    decode, S = {length}    prefill, L = {length}")
for kv_heads in (32, 8, 1):
    decode = 4 * heads * length * size / (2 * kv_heads * length * size * elem)
    moved = (2 * heads + 2 * kv_heads) * length * size * elem  # q and output, k and v
    prefill = 4 * heads * length**2 * size / 2 / moved  # causal: half of the scores
    print(f"K = {kv_heads:<2} {decode:36.0f} {prefill:20.0f}")

unfused = 4 * size / (4 * elem)  # scores written and read, weights written and read: 4 H L² numbers
print(f"prefill with the scores in memory: at most {unfused:.0f}")

ridge = peak / bandwidth
print(f"H100 SXM needs {ridge:.0f} FLOPs a byte to be busy; prefill of MHA has them from L = {4 * ridge:.0f}")
print(f"GB read for one decoding step    weights    KV cache    at best, ms at {bandwidth} TB/s")
for batch in (1, 64):
    for kv_heads in (32, 8, 1):
        kv = 2 * layers * batch * kv_heads * length * size * elem / 1e9
        w = (weights(kv_heads) - vocab * hidden) * elem / 1e9  # the embedding table is looked up, not read
        row = f"batch {batch}, K = {kv_heads}"
        print(f"{row:16} {w:22.1f} {kv:11.1f} {(w + kv) / bandwidth:14.1f}")
