r"""Direct preference optimisation: the loss, and what one watches while it falls."""

from typing import NamedTuple

import torch
from torch import Tensor

from llmcore.checks import check_finite, check_floating
from llmcore.softmax import upcast


class DPOOutput(NamedTuple):
    r"""What `dpo_loss` returns.

    Attributes:
        loss: (), mean over the pairs, in nats; the only one with a gradient.
        chosen_rewards: (B,), implicit rewards $\beta \log \pi_\theta(y_w|x) / \pi_{\mathrm{ref}}(y_w|x)$, in
            nats.
        rejected_rewards: (B,), the same for the rejected answers.
        accuracy: (), share of pairs whose chosen answer has the higher reward.
        margin: (), mean of chosen minus rejected reward.
    """

    loss: Tensor
    chosen_rewards: Tensor
    rejected_rewards: Tensor
    accuracy: Tensor
    margin: Tensor


def dpo_loss(
    policy_chosen_logps: Tensor,
    policy_rejected_logps: Tensor,
    ref_chosen_logps: Tensor,
    ref_rejected_logps: Tensor,
    *,
    beta: float = 0.1,
) -> DPOOutput:
    r"""$-\log \sigma(\hat r(x, y_w) - \hat r(x, y_l))$, averaged over pairs of chosen and rejected answers.

    $\hat r(x, y) = \beta \log \frac{\pi_\theta(y|x)}{\pi_{\mathrm{ref}}(y|x)}$ is the implicit reward.

    $-\log \sigma(z)$ is computed as $\mathrm{softplus}(-z)$: `log(sigmoid(z))` is $-\infty$ for $z$ below
    about -104 in float32.

    Args:
        policy_chosen_logps: (B,), $\log \pi_\theta(y_w|x)$, summed over the answer's tokens, in nats.
        policy_rejected_logps: (B,), $\log \pi_\theta(y_l|x)$.
        ref_chosen_logps: (B,), $\log \pi_{\mathrm{ref}}(y_w|x)$; gets no gradient.
        ref_rejected_logps: (B,), $\log \pi_{\mathrm{ref}}(y_l|x)$; gets no gradient.
        beta: Strength of the pull towards the reference, positive.

    Returns:
        `DPOOutput` in float32 at least.

    Raises:
        ValueError: If the four are not floating-point vectors of one length, dtype and device, or are empty.
        ValueError: If `beta` is not a positive finite number.

    Reference:
        Rafailov et al., Direct Preference Optimization, eq. 7, arXiv:2305.18290. Equal to TRL's `DPOTrainer`
        with `loss_type="sigmoid"`.
    """
    logps = {
        "policy_chosen_logps": policy_chosen_logps,
        "policy_rejected_logps": policy_rejected_logps,
        "ref_chosen_logps": ref_chosen_logps,
        "ref_rejected_logps": ref_rejected_logps,
    }
    check_floating(**logps)
    for name, tensor in logps.items():
        if tensor.dim() != 1 or tensor.numel() == 0 or tensor.shape != policy_chosen_logps.shape:
            raise ValueError(
                f"the four must be non-empty vectors (B,) of one length, got {name} {tuple(tensor.shape)} "
                f"beside policy_chosen_logps {tuple(policy_chosen_logps.shape)}"
            )
    check_finite(beta=beta)
    if beta <= 0:
        raise ValueError(f"{beta=} must be positive")
    chosen_rewards = beta * (upcast(policy_chosen_logps) - upcast(ref_chosen_logps).detach())
    rejected_rewards = beta * (upcast(policy_rejected_logps) - upcast(ref_rejected_logps).detach())
    margins = chosen_rewards - rejected_rewards  # (B,)
    loss = torch.nn.functional.softplus(-margins).mean()
    margins = margins.detach()
    return DPOOutput(
        loss,
        chosen_rewards.detach(),
        rejected_rewards.detach(),
        (margins > 0).to(margins.dtype).mean(),
        margins.mean(),
    )
