import torch

from llmcore.attention import attention_weights

torch.manual_seed(0)
print(" H  hidden  head_dim   std of scores   mean entropy (nats)")
for heads in (1, 8, 32):
    hidden, size = 1024, 1024 // heads
    q, k = torch.randn(4, heads, 64, size), torch.randn(4, heads, 64, size)
    for name, width in (("head_dim", size), ("hidden  ", hidden)):
        weights = attention_weights(q, k, scale=width**-0.5)
        std = (q @ k.mT).std() * width**-0.5
        entropy = -(weights * weights.log()).sum(-1).mean()
        print(f"{heads:2} {hidden:7} {size:9}   /sqrt({name}) {std:5.2f} {entropy:14.2f}")
print(f"uniform over 64 keys: {torch.tensor(64.0).log():.2f}")
