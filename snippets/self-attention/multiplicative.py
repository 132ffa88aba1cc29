"""A mask multiplied after softmax and renormalised equals an additive one, until a hidden score is large."""

import torch

from llmcore.masks import causal_mask
from llmcore.softmax import softmax

torch.manual_seed(0)
scores, seen = torch.randn(5, 5), causal_mask(5)


def additive(scores):
    return softmax(scores.masked_fill(~seen, -torch.inf))


def multiplicative(scores, renormalise):
    kept = softmax(scores) * seen
    return kept / kept.sum(-1, keepdim=True) if renormalise else kept


print("not renormalised, row sums:", [round(s, 2) for s in multiplicative(scores, False).sum(-1).tolist()])
same = (multiplicative(scores, True) - additive(scores)).abs().max() < 1e-6
print("renormalised, equal to additive:", bool(same))

scores[0, 4] = 120.0  # one large score at a position that row 0 may not see
print("\nwith a hidden score of 120, row 0")
print("additive:                ", additive(scores)[0].tolist())
print("multiplied, renormalised:", multiplicative(scores, True)[0].tolist())

print("\ngradient that a hidden score receives (row 0, loss = weight of key 0)")
for name, function in (
    ("additive", additive),
    ("multiplied, not renormalised", lambda s: multiplicative(s, False)),
):
    leaf = torch.zeros(5, 5, requires_grad=True)
    function(leaf)[0, 0].backward()
    print(f"    {name}: {[round(v, 2) + 0.0 for v in leaf.grad[0].tolist()]}")
