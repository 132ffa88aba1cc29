"""Picking one log-probability per position: why gather needs labels.unsqueeze(-1)."""

import torch


def show(name, values):
    print(f"{name:<22}", "  ".join(f"{value:.2f}" for value in values.flatten().tolist()))


logps = torch.tensor(
    [[[-2.1, -0.5, -1.0, -3.0, -2.5], [-1.2, -2.3, -0.8, -4.0, -1.5], [-3.0, -1.0, -0.3, -2.0, -2.2]]]
)  # (B, T, V) = (1, 3, 5)
labels = torch.tensor([[2, 0, 4]])  # (B, T)

try:
    logps.gather(-1, labels)
except RuntimeError as error:
    print("RuntimeError:", error)

index = labels.unsqueeze(-1)  # (B, T, 1)
picked = logps.gather(-1, index)  # (B, T, 1): picked[b, t, 0] = logps[b, t, index[b, t, 0]]
print("index", tuple(index.shape), "picked", tuple(picked.shape), "squeezed", tuple(picked.squeeze(-1).shape))
show("picked", picked)
show("each row sums to", logps.exp().sum(-1))

proper = logps.log_softmax(-1)  # subtracts the row's log-sum-exp: now they are distributions
show("after log_softmax", proper.exp().sum(-1))
show("picked", proper.gather(-1, index))
show("log pi(y|x), the sum", proper.gather(-1, index).sum())
