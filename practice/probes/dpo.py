r"""Looks at the DPO loss, its gradients, what is reported beside it, and what is refused."""

import torch

from practice.probes import See, tensor

NAMES = ("policy chosen", "policy rejected", "reference chosen", "reference rejected")


def dpo_loss(see: See, dpo_loss) -> None:
    r"""One output a label; values, gradients, ties, far margins, low precision, each kind of wrong input."""
    four = [tensor(5, seed=seed, spread=4.0) - 30 for seed in range(4)]
    for name in ("loss", "chosen_rewards", "rejected_rewards", "accuracy", "margin"):
        see(name, lambda name=name: getattr(dpo_loss(*four, beta=0.5), name))
    for name in ("loss", "chosen_rewards", "margin"):
        see(f"{name}, one pair", lambda name=name: getattr(dpo_loss(*(x[:1] for x in four), beta=0.5), name))
        see(f"{name}, beta 1", lambda name=name: getattr(dpo_loss(*four, beta=1.0), name))
    see("loss by default", lambda: dpo_loss(*four).loss)
    for index, name in enumerate(NAMES):

        def gradient(index=index):
            inputs = [x.clone().requires_grad_() for x in four]
            (grad,) = torch.autograd.grad(
                dpo_loss(*inputs, beta=0.5).loss, [inputs[index]], allow_unused=True
            )
            return torch.zeros(5) if grad is None or not grad.any() else grad

        see(f"gradient of {name}", gradient)
    see(
        "what has a gradient",
        lambda: [x.requires_grad for x in dpo_loss(*(x.clone().requires_grad_() for x in four))],
    )
    same = [four[0], four[1], four[0], four[1]]
    see("policy equal to its reference", lambda: dpo_loss(*same).loss)
    see("accuracy of a policy equal to its reference", lambda: dpo_loss(*same).accuracy)
    zeros, far = torch.zeros(2), torch.tensor([-1000.0, 1000.0])
    see("far margins", lambda: dpo_loss(far, -far, zeros, zeros, beta=0.2).loss)
    half = [
        torch.tensor(x).bfloat16() for x in ([-350.0, -7.0], [-351.0, -9.0], [-1.3, -8.0], [-353.0, -0.7])
    ]
    see("bfloat16", lambda: dpo_loss(*half).loss)
    see("dtype of the rewards for bfloat16", lambda: str(dpo_loss(*half).chosen_rewards.dtype))

    def left_alone():
        inputs = [x.clone() for x in four]
        dpo_loss(*inputs)
        return inputs

    see("inputs afterwards", left_alone)
    for beta in (0.0, -0.1, float("nan"), float("inf")):
        see(f"beta {beta}", lambda beta=beta: bool(dpo_loss(*four, beta=beta)))
    see("a column", lambda: dpo_loss(*four[:3], four[3][:, None]))
    see("one reference for all", lambda: dpo_loss(*four[:3], four[3][:1]))
    see("matrices", lambda: dpo_loss(*(x[:, None] for x in four)))
    see("no pairs", lambda: dpo_loss(*(x[:0] for x in four)))
    see("integers", lambda: dpo_loss(*(x.long() for x in four)))
    see("two dtypes", lambda: dpo_loss(*four[:3], four[3].float()))
