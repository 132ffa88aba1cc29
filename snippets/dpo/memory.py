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


pairs, tokens, words, llama_words = 4, 1024, 32000, 128256
rows = 2 * pairs
print(f"logits of {pairs} pairs x {tokens} tokens x {words} words: {rows} rows")
for name, size in (("bf16", 2), ("fp32", 4)):
    print(f"  {name} {rows * tokens * words * size / GIB:.2f} GiB")
print(f"  8B model, {llama_words} words, fp32: {rows * tokens * llama_words * 4 / GIB:.1f} GiB")

torch.manual_seed(0)
logits = torch.randn(2, 65, 4000, dtype=torch.bfloat16, requires_grad=True)
labels = torch.randint(0, 4000, (2, 65))
for name, function in (("log_softmax + gather", naive), ("per_token_logps", per_token_logps)):
    ratio = kept_bytes(function, logits, labels) / (logits.numel() * logits.element_size())
    print(f"kept by {name:<21} {ratio:.2f} x the bf16 logits")

billions = 8
trained_bytes = 2 + 2 + 4 + 4 + 4  # bf16 weight and gradient; fp32 master weight and AdamW's two moments
frozen_bytes = 2
print(f"{billions} billion parameters, {trained_bytes} bytes a trained one, {frozen_bytes} a frozen one")
for name, trained, frozen in (
    ("DPO: policy, reference", 1, 1),
    ("DPO, reference precomputed", 1, 0),
    ("PPO: policy + value, reference + reward", 2, 2),
):
    size = (trained * trained_bytes + frozen * frozen_bytes) * billions * 1e9
    print(f"{name:<40} {size / GIB:.0f} GiB")
