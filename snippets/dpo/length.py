"""Sum or mean: a long chosen answer against a short rejected one."""

import torch

from llmcore.dpo import dpo_loss

lengths = {"chosen": 200, "rejected": 20}
gain = {"chosen": 0.02, "rejected": 0.10}  # log pi - log pi_ref, per token
total = {name: lengths[name] * gain[name] for name in lengths}
print("sum of log-ratios ", {name: round(value, 2) for name, value in total.items()})
print("mean of log-ratios", gain)

zero = torch.zeros(1)
by_sum = dpo_loss(torch.tensor([total["chosen"]]), torch.tensor([total["rejected"]]), zero, zero, beta=0.1)
by_mean = dpo_loss(torch.tensor([gain["chosen"]]), torch.tensor([gain["rejected"]]), zero, zero, beta=0.1)
print(f"sum:  margin {by_sum.margin:.3f}  accuracy {by_sum.accuracy:.0f}  loss {by_sum.loss:.4f}")
print(f"mean: margin {by_mean.margin:.3f}  accuracy {by_mean.accuracy:.0f}  loss {by_mean.loss:.4f}")
print(f"sum of one token's gain of 0.01 over 200 tokens: {200 * 0.01:.1f} nats, over 20: {20 * 0.01:.1f}")
