import torch

from llmcore.attention import attention_weights

torch.manual_seed(0)
print("hidden_size 1024             std of scores   mean entropy (nats)")
for heads in (1, 8, 32):
    hidden, size = 1024, 1024 // heads
    q, k = torch.randn(4, heads, 64, size), torch.randn(4, heads, 64, size)
    for name, width in (("head_dim", size), ("hidden_size", hidden)):
        weights = attention_weights(q, k, scale=width**-0.5)
        std = (q @ k.mT).std() * width**-0.5
        entropy = -(weights * weights.log()).sum(-1).mean()
        print(f"{f'{heads} heads / sqrt({name})':29} {std:12.2f} {entropy:14.2f}")
print(f"uniform over 64 keys: {torch.tensor(64.0).log():.2f}")
