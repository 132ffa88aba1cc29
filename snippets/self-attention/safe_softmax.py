"""Where exp overflows, and what subtracting the maximum changes: no value, only the range."""

import math

import torch

from llmcore.softmax import log_softmax, softmax


def naive_softmax(x):
    exp = x.exp()
    return exp / exp.sum(-1, keepdim=True)


for dtype in (torch.float16, torch.bfloat16, torch.float32):
    largest = torch.finfo(dtype).max
    print(f"{dtype!s:<15} largest number {largest:.3g}, exp overflows beyond {math.log(largest):.1f}")

small, large = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([101.0, 102.0, 103.0])
print("\nnaive softmax of [1, 2, 3]:      ", [round(v, 4) for v in naive_softmax(small).tolist()])
print("naive softmax of [101, 102, 103]:", naive_softmax(large).tolist())
print("softmax of [101, 102, 103]:      ", [round(v, 4) for v in softmax(large).tolist()])

far = torch.tensor([0.0, -200.0])
print("\nlog(softmax([0, -200])):", softmax(far).log().tolist())
print("log_softmax([0, -200]): ", log_softmax(far).tolist())

hidden = torch.full((3,), -math.inf)
print("\nall -inf, torch.softmax: ", torch.softmax(hidden, -1).tolist())
print("all -inf, ours:          ", softmax(hidden).tolist())
