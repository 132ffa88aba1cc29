"""Bytes: the logits of one DPO batch, what autograd keeps, and the models that must fit."""

import torch

from llmcore.logprobs import per_token_logps

GIB = 2**30


def kept_bytes(function, logits, labels):
    """Bytes autograd keeps for the backward pass, without the logits themselves."""
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() != logits.untyped_storage().data_ptr():
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = function(logits, labels)
    del output
    return sum(kept.values())


def naive(logits, labels):
    return logits[:, :-1].float().log_softmax(-1).gather(-1, labels[:, 1:, None]).squeeze(-1)


print("logits of 4 pairs x 1024 tokens x 32000 words")
for name, size in (("bf16", 2), ("fp32", 4)):
    print(f"  {name} {2 * 4 * 1024 * 32000 * size / GIB:.2f} GiB")
print(f"  8B model, 128256 words, fp32: {2 * 4 * 1024 * 128256 * 4 / GIB:.1f} GiB")

torch.manual_seed(0)
logits = torch.randn(2, 65, 4000, dtype=torch.bfloat16, requires_grad=True)
labels = torch.randint(0, 4000, (2, 65))
for name, function in (("log_softmax + gather", naive), ("per_token_logps", per_token_logps)):
    ratio = kept_bytes(function, logits, labels) / (logits.numel() * logits.element_size())
    print(f"kept by {name:<21} {ratio:.2f} x the bf16 logits")

params = 8e9  # mixed precision, AdamW: 2 + 2 + 4 + 4 + 4 = 16 bytes a trained parameter, 2 a frozen one
for name, trained, frozen in (
    ("DPO", 1, 1),
    ("DPO, reference precomputed", 1, 0),
    ("PPO: policy + value, reference + reward", 2, 2),
):
    print(f"{name:<40} {(trained * 16 + frozen * 2) * params / GIB:.0f} GiB")
