"""The KL-constrained optimum on four answers, and the reward read back from the policy."""

import torch

torch.manual_seed(0)
beta = 0.5
reward = torch.tensor([1.0, 0.0, -1.0, 2.0], dtype=torch.float64)  # r(x, y) of four answers to one prompt
ref = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)  # pi_ref(y|x)


def kl(p, q):
    return (p * (p / q).log()).sum()


def objective(policy):
    return (policy * reward).sum() - beta * kl(policy, ref)


weights = ref * (reward / beta).exp()
partition = weights.sum()  # Z(x)
optimum = weights / partition
print("Z(x)         ", f"{partition:.2f}")
print("pi*          ", [f"{p:.3f}" for p in optimum.tolist()])
print("J(pi*)       ", f"{objective(optimum):.4f}", " beta log Z", f"{beta * partition.log():.4f}")

print("J(pi*) - J(pi) and beta KL(pi || pi*) of three other policies")
for _ in range(3):
    policy = torch.randn(4, dtype=torch.float64).softmax(-1)
    gap = objective(optimum) - objective(policy)
    print("             ", f"{gap:.4f}", f"{beta * kl(policy, optimum):.4f}")

implicit = beta * (optimum / ref).log()  # r(x, y) - beta log Z(x)
print("r            ", [f"{r:.2f}" for r in reward.tolist()])
print("beta log pi*/ref", [f"{r:.2f}" for r in implicit.tolist()])
print("r_1 - r_3    ", f"{reward[0] - reward[2]:.2f}", " implicit", f"{implicit[0] - implicit[2]:.2f}")
