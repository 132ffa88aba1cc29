r"""log(1 + e^-z) as logaddexp(0, -z), on stacked inputs, with the library's own output."""

import torch

from llmcore.checks import check_finite, check_floating
from llmcore.dpo import DPOOutput


def dpo_loss(policy_chosen_logps, policy_rejected_logps, ref_chosen_logps, ref_rejected_logps, *, beta=0.1):
    policy, reference = [policy_chosen_logps, policy_rejected_logps], [ref_chosen_logps, ref_rejected_logps]
    check_floating(
        policy_chosen_logps=policy[0],
        policy_rejected_logps=policy[1],
        ref_chosen_logps=reference[0],
        ref_rejected_logps=reference[1],
    )
    shapes = [tuple(x.shape) for x in policy + reference]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1 or shapes[0][0] < 1:
        raise ValueError(f"four vectors of one length wanted, got {shapes}")
    check_finite(beta=beta)
    if not beta > 0:
        raise ValueError(f"beta={beta}")
    dtype = torch.float64 if policy[0].dtype == torch.float64 else torch.float32
    rewards = beta * (torch.stack(policy).to(dtype) - torch.stack(reference).to(dtype).detach())
    z = rewards[0] - rewards[1]
    loss = torch.logaddexp(torch.zeros_like(z), -z).sum() / len(z)
    seen, z = rewards.detach(), z.detach()
    return DPOOutput(loss, seen[0], seen[1], z.gt(0).to(dtype).mean(), z.mean())
