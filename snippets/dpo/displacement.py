"""Likelihood displacement by hand: both log-probabilities fall while loss and margin improve."""

import torch

from llmcore.dpo import dpo_loss

# Answers of one token, logits = w * u + b. Chosen and rejected have similar w, "Yes" the opposite.
w = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)  # No (chosen), Never (rejected), Yes
b = torch.tensor([0.80, 0.08, 0.12], dtype=torch.float64).log()
u = torch.zeros((), dtype=torch.float64, requires_grad=True)  # the hidden state; all that is trained
reference = b.log_softmax(-1)
direction, mean = w[0] - w[1], (reference.exp() * w).sum()
slope = (w[0] - mean) * direction  # what chosen changes in proportion to
print(f"W_w - W_l = {direction:.0f}, E[W] = {mean:.2f}, (W_w - E[W]) (W_w - W_l) = {slope:.2f}")

print("step  loss    margin  log P(No)  log P(Never)  log P(Yes)  P(Yes)")
for step in range(201):
    logps = (w * u + b).log_softmax(-1)
    out = dpo_loss(logps[:1], logps[1:2], reference[:1], reference[1:2], beta=0.1)
    if step in (0, 50, 100, 200):
        no, never, yes = logps.tolist()
        print(
            f"{step:>4}  {out.loss:.4f}  {out.margin:.3f}   {no:.2f}      {never:.2f}         {yes:.2f}"
            f"       {logps[2].exp():.2f}"
        )
    (gradient,) = torch.autograd.grad(out.loss, u)
    with torch.no_grad():
        u -= 0.2 * gradient
