"""Three pairs by hand: rewards, margin, loss and gradient weight, then the same from llmcore."""

import torch
from torch.nn.functional import softplus

from llmcore.dpo import dpo_loss


def show(name, values):
    print(f"{name:<20}", "  ".join(f"{value:8.4f}" for value in values.tolist()))


beta = 0.1
policy_chosen = torch.tensor([-10.0, -27.0, -20.0], requires_grad=True)
policy_rejected = torch.tensor([-18.0, -20.0, -40.0], requires_grad=True)
ref_chosen = torch.tensor([-14.0, -28.0, -18.0])
ref_rejected = torch.tensor([-14.0, -25.0, -36.0])

chosen_reward = beta * (policy_chosen - ref_chosen)
rejected_reward = beta * (policy_rejected - ref_rejected)
margin = chosen_reward - rejected_reward
show("chosen reward", chosen_reward)
show("rejected reward", rejected_reward)
show("margin", margin)
show("loss -log sigmoid(m)", softplus(-margin))
show("weight sigmoid(-m)", torch.sigmoid(-margin))

out = dpo_loss(policy_chosen, policy_rejected, ref_chosen, ref_rejected, beta=beta)
print(f"dpo_loss: loss {out.loss:.4f}  accuracy {out.accuracy:.3f}  margin {out.margin:.3f}")
out.loss.backward()
show("d loss / d chosen", policy_chosen.grad)
show("-beta * weight / B", -beta * torch.sigmoid(-margin.detach()) / 3)
show("d loss / d rejected", policy_rejected.grad)

margins = torch.tensor([-8.0, -4.0, -2.0, 0.0, 2.0, 4.0, 8.0])
show("margin", margins)
weights = torch.sigmoid(-margins)
show("weight", weights)
print(f"weight at {margins[1]:.0f} / weight at {margins[5]:.0f}: {weights[1] / weights[5]:.1f}")
