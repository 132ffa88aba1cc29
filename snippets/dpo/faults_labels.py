"""What goes wrong between logits and a sequence's log-probability."""

import torch

from llmcore.logprobs import sequence_logps

torch.manual_seed(0)
logits = torch.randn(1, 10, 50) * 2
input_ids = torch.randint(0, 50, (1, 10))
labels = input_ids.clone()
labels[:, :4] = -100  # prompt
labels[:, 9:] = -100  # padding
keep = labels != -100
logps = logits.log_softmax(-1)


def score(logps, ids):
    return logps.gather(-1, ids.unsqueeze(-1)).squeeze(-1)


print(f"right                       {sequence_logps(logits, labels).item():.2f}")
print(f"labels not shifted          {(score(logps, input_ids) * keep).sum():.2f}")
shifted = score(logps[:, :-1], input_ids[:, 1:])  # (1, 9), the shift is right from here on
print(f"prompt and padding included {shifted.sum():.2f}")
print(f"padding included            {shifted[:, 3:].sum():.2f}")
print(f"mean instead of sum         {sequence_logps(logits, labels).item() / keep.sum().item():.2f}")

try:
    logps[:, :-1].gather(-1, labels[:, 1:].unsqueeze(-1))
except (RuntimeError, IndexError) as error:
    print("gather with -100:", str(error).split(" for ")[0])

logits[0, 1, input_ids[0, 2]] = -torch.inf  # a forbidden word, at a position of the prompt
logits.requires_grad_()
shifted = score(logits.log_softmax(-1)[:, :-1], input_ids[:, 1:])
print("-inf in the prompt")
for name, total in (
    ("times 0", (shifted * keep[:, 1:]).sum()),
    ("masked_fill", shifted.masked_fill(~keep[:, 1:], 0.0).sum()),
    ("llmcore", sequence_logps(logits, labels).sum()),
):
    (gradient,) = torch.autograd.grad(torch.nn.functional.softplus(-0.1 * total), logits, retain_graph=True)
    print(f"  {name:<11} {total.item():.2f}  gradient has nan: {gradient.isnan().any()}")
