"""One number to fit, the log-ratio gap h: where DPO, cDPO and IPO stop when a pair's label never changes."""

import torch
from torch.nn.functional import logsigmoid

beta, epsilon = 0.1, 0.1
losses = {
    "DPO": lambda h: -logsigmoid(beta * h),
    "cDPO": lambda h: -(1 - epsilon) * logsigmoid(beta * h) - epsilon * logsigmoid(-beta * h),
    "IPO": lambda h: (h - 1 / (2 * beta)) ** 2,
}
print("steps     " + "".join(f"{steps:>9}" for steps in (0, 10, 100, 1000)))
for name, loss in losses.items():
    rate = 0.1 if name == "IPO" else 10.0
    h = torch.zeros((), dtype=torch.float64, requires_grad=True)
    row = []
    for step in range(1001):
        if step in (0, 10, 100, 1000):
            row.append(h.item())
        (gradient,) = torch.autograd.grad(loss(h), h)
        with torch.no_grad():
            h -= rate * gradient
    print(f"h of {name:<5}" + "".join(f"{value:>9.2f}" for value in row))
print(f"cDPO stops at log((1 - eps) / eps) / beta = {torch.logit(torch.tensor(1 - epsilon)) / beta:.2f}")
print(f"IPO stops at 1 / (2 beta) = {1 / (2 * beta):.2f}")
