r"""F.logsigmoid and log-ratios, the form of the paper's appendix; a named tuple of one's own."""

from collections import namedtuple

import torch
import torch.nn.functional as F

DPO = namedtuple("DPO", "loss chosen_rewards rejected_rewards accuracy margin")


def dpo_loss(policy_chosen_logps, policy_rejected_logps, ref_chosen_logps, ref_rejected_logps, *, beta=0.1):
    given = dict(
        policy_chosen_logps=policy_chosen_logps,
        policy_rejected_logps=policy_rejected_logps,
        ref_chosen_logps=ref_chosen_logps,
        ref_rejected_logps=ref_rejected_logps,
    )
    for name, x in given.items():
        if not x.is_floating_point():
            raise ValueError(f"{name} has dtype {x.dtype}")
        if x.ndim != 1 or len(x) == 0 or x.shape != policy_chosen_logps.shape:
            raise ValueError(
                f"{name} has shape {tuple(x.shape)}, the first {tuple(policy_chosen_logps.shape)}"
            )
        if x.dtype != policy_chosen_logps.dtype:
            raise ValueError(f"{name} is {x.dtype}, the first {policy_chosen_logps.dtype}")
        if x.device != policy_chosen_logps.device:
            raise ValueError(f"{name} is on {x.device}, the first on {policy_chosen_logps.device}")
    if not 0 < beta < float("inf"):
        raise ValueError(f"beta must be positive and finite, got {beta}")
    wide = torch.promote_types(policy_chosen_logps.dtype, torch.float32)
    pi_w, pi_l, ref_w, ref_l = (x.to(wide) for x in given.values())
    ref_w, ref_l = ref_w.detach(), ref_l.detach()
    pi_logratios = pi_w - pi_l
    ref_logratios = ref_w - ref_l
    logits = pi_logratios - ref_logratios
    loss = -F.logsigmoid(beta * logits).mean()
    with torch.no_grad():
        chosen = beta * (pi_w - ref_w)
        rejected = beta * (pi_l - ref_l)
        return DPO(loss, chosen, rejected, (chosen > rejected).to(wide).mean(), (chosen - rejected).mean())
