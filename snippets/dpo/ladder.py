"""From the formula to llmcore.logprobs: five rungs, one number."""

import torch

from llmcore.logprobs import per_token_logps, sequence_logps

torch.manual_seed(0)
B, T, V = 2, 6, 11
logits = torch.randn(B, T, V, dtype=torch.float64)
input_ids = torch.randint(0, V, (B, T))
labels = input_ids.clone()
labels[:, :3] = -100  # the prompt: three tokens
labels[1, 5:] = -100  # one padding token at the end of the second row


def loops(logits, labels):  # rung 1: the definition
    total = torch.zeros(B, dtype=logits.dtype)
    for b in range(B):
        for t in range(1, T):
            if labels[b, t] != -100:
                probs = logits[b, t - 1].exp() / logits[b, t - 1].exp().sum()  # position t-1 predicts token t
                total[b] += probs[labels[b, t]].log()
    return total


def gathered(logits, labels):  # rung 2: all positions at once; rung 3: shift; rung 4: mask
    logits, labels = logits[:, :-1], labels[:, 1:]
    keep = labels != -100
    safe = labels.masked_fill(~keep, 0)  # any valid index: gather must not see -100
    picked = logits.log_softmax(-1).gather(-1, safe.unsqueeze(-1)).squeeze(-1)
    return picked.masked_fill(~keep, 0.0).sum(-1)


def lean(logits, labels):  # rung 5: pick the logit, subtract the log-sum-exp: no second (B, T, V) is kept
    logits, labels = logits[:, :-1], labels[:, 1:]
    keep = labels != -100
    picked = logits.gather(-1, labels.masked_fill(~keep, 0).unsqueeze(-1)).squeeze(-1)
    return (picked - logits.logsumexp(-1)).masked_fill(~keep, 0.0).sum(-1)


for function in (loops, gathered, lean, sequence_logps):
    print(f"{function.__name__:<15}", [f"{v:.4f}" for v in function(logits, labels).tolist()])
print("per_token_logps", [f"{v:.2f}" for v in per_token_logps(logits, labels)[1].tolist()])
