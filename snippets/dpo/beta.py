"""What beta does: the optimum for several beta, and how far it is from the reference."""

import torch

reward = torch.tensor([1.0, 0.0, -1.0, 2.0], dtype=torch.float64)
ref = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)

print("beta     pi*                               KL(pi*||ref)  E[r]")
for beta in (100.0, 2.0, 0.5, 0.1, 0.05):
    optimum = (ref.log() + reward / beta).softmax(-1)
    kl = (optimum * (optimum / ref).log()).sum()
    row = "  ".join(f"{p:.4f}" for p in optimum.tolist())
    print(f"{beta:<8} {row}    {kl:.4f}        {(optimum * reward).sum():.3f}")
