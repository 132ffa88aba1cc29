def fits(heads, kv_heads, gpus):
    return heads % gpus == 0 and max(kv_heads, gpus) % min(kv_heads, gpus) == 0


def per_gpu(heads, kv_heads, gpus):
    """What vLLM's QKVParallelLinear does: cut the kv heads while there are enough, then copy them."""
    if not fits(heads, kv_heads, gpus):
        raise ValueError(f"{heads} heads and {kv_heads} kv heads do not split over {gpus} GPUs")
    return heads // gpus, max(1, kv_heads // gpus), max(1, gpus // kv_heads)


print("         64 heads, K = 64          K = 8          K = 1   (kv heads a GPU x copies of each)")
for gpus in (1, 2, 4, 8, 16):
    cells = [per_gpu(64, kv_heads, gpus) for kv_heads in (64, 8, 1)]
    print(f"TP = {gpus:<4}" + "".join(f"{f'{kv} x {copies}':>15}" for _, kv, copies in cells))
print("SmolLM2-135M, TP that fit:", [gpus for gpus in range(1, 65) if fits(9, 3, gpus)])
try:
    per_gpu(9, 3, 2)
except ValueError as error:
    print("SmolLM2-135M:", error)
