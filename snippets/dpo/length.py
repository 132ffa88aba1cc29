"""Sum or mean: a long chosen answer against a short rejected one."""

import torch

from llmcore.dpo import dpo_loss

lengths = {"chosen": 200, "rejected": 20}
gain = {"chosen": 0.02, "rejected": 0.10}  # log pi - log pi_ref, per token
total = {name: lengths[name] * gain[name] for name in lengths}
print(f"sum of log-ratios:  chosen {total['chosen']:.1f}, rejected {total['rejected']:.1f}")
print(f"mean of log-ratios: chosen {gain['chosen']:.2f}, rejected {gain['rejected']:.2f}")

zero = torch.zeros(1)
by_sum = dpo_loss(torch.tensor([total["chosen"]]), torch.tensor([total["rejected"]]), zero, zero, beta=0.1)
by_mean = dpo_loss(torch.tensor([gain["chosen"]]), torch.tensor([gain["rejected"]]), zero, zero, beta=0.1)
print(f"sum:  margin {by_sum.margin:.3f}  accuracy {by_sum.accuracy:.0f}  loss {by_sum.loss:.4f}")
print(f"mean: margin {by_mean.margin:.3f}  accuracy {by_mean.accuracy:.0f}  loss {by_mean.loss:.4f}")
small = 0.01
grown = [f"{small * length:.1f} nats over {length} tokens" for length in lengths.values()]
print(f"a gain of {small} a token: {', '.join(grown)}")
