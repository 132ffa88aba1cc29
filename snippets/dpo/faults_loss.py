"""What goes wrong between four log-probabilities and the loss."""

import torch
from torch.nn.functional import logsigmoid

from llmcore.dpo import dpo_loss

margin = torch.tensor(-200.0, requires_grad=True)
naive = torch.sigmoid(margin).log()
(naive_grad,) = torch.autograd.grad(naive, margin)
safe = logsigmoid(margin)
(safe_grad,) = torch.autograd.grad(safe, margin)
print(f"log(sigmoid(-200)) = {naive.item()}  gradient {naive_grad.item()}")
print(f"logsigmoid(-200)   = {safe.item()}  gradient {safe_grad.item()}")


def four():
    values = ([-10.0, -27.0, -20.0], [-18.0, -20.0, -40.0], [-14.0, -28.0, -18.0], [-14.0, -25.0, -36.0])
    return [torch.tensor(value, requires_grad=True) for value in values]


def naive_loss(chosen, rejected, ref_chosen, ref_rejected, beta=0.1):
    return -logsigmoid(beta * ((chosen - ref_chosen) - (rejected - ref_rejected))).mean()


logps = four()
naive_loss(*logps).backward()
print("naive:    gradient of ref_chosen", *(f"{g:.4f}" for g in logps[2].grad.tolist()))
logps = four()
dpo_loss(*logps).loss.backward()
print("dpo_loss: gradient of ref_chosen", logps[2].grad)

for name, function in (("naive", naive_loss), ("dpo_loss", lambda *logps: dpo_loss(*logps).loss)):
    chosen, rejected = four()[:2]  # the reference is the same module: the copy was forgotten
    loss = function(chosen, rejected, chosen, rejected)
    loss.backward()
    print(f"one module, {name}: loss {loss:.4f}, gradient", *(f"{g:.4f}" for g in chosen.grad.tolist()))

with torch.no_grad():
    chosen, rejected, ref_chosen, ref_rejected = logps
    cases = {
        "right": dpo_loss(chosen, rejected, ref_chosen, ref_rejected),
        "pair swapped": dpo_loss(rejected, chosen, ref_rejected, ref_chosen),
        "references crossed": dpo_loss(chosen, rejected, ref_rejected, ref_chosen),
        "policy = reference": dpo_loss(ref_chosen, ref_rejected, ref_chosen, ref_rejected),
    }
    for name, out in cases.items():
        print(f"{name:<19} loss {out.loss:.4f}  accuracy {out.accuracy:.2f}  margin {out.margin:.2f}")
    print(f"no reference        loss {naive_loss(chosen, rejected, 0.0, 0.0):.4f}")
