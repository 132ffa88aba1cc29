"""The sum of 512 log-probabilities over 32000 words, in the dtype of the logits and upcast."""

import torch

from llmcore.dpo import dpo_loss
from llmcore.logprobs import sequence_logps

torch.manual_seed(5)
beta = 0.1
labels = torch.randint(0, 32000, (1, 513))
full = torch.randn(1, 513, 32000)
full[:, :-1].scatter_add_(-1, labels[:, 1:, None], torch.full((1, 512, 1), 6.0))  # often right

for dtype in (torch.bfloat16, torch.float16):
    logits = full.to(dtype)  # what a low-precision model hands over
    exact = sequence_logps(logits.double(), labels).item()
    own = logits[:, :-1].log_softmax(-1).gather(-1, labels[:, 1:, None]).sum().item()
    upcast = sequence_logps(logits, labels).item()
    eps = torch.finfo(dtype).eps
    off = abs(own - exact)
    print(f"{dtype}: exact {exact:.1f}, in its own dtype {own:.0f}, off by {off:.1f} nats")
    print(f"  times beta {beta * off:.2f}; steps: {4 * eps:.4f} near -5, {2048 * eps:.0f} near {own:.0f}")
    print(f"  upcast first: off by less than 0.01: {abs(upcast - exact) < 0.01}")

chosen, rejected, zero = torch.tensor([-350.0]), torch.tensor([-351.0]), torch.zeros(1)
print(f"bf16 holds {chosen.item():.0f} and {rejected.item():.0f} as", end=" ")
print(f"{chosen.bfloat16().item():.0f} and {rejected.bfloat16().item():.0f}")
for dtype in (torch.float32, torch.bfloat16):
    out = dpo_loss(chosen.to(dtype), rejected.to(dtype), zero.to(dtype), zero.to(dtype), beta=beta)
    print(f"sums kept in {dtype}: margin {out.margin:.2f}, loss {out.loss:.3f}")
