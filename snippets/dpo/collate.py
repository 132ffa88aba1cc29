"""Chosen and rejected in one batch, laid out as TRL's collator does it."""

import torch

from llmcore.logprobs import sequence_logps

PAD, EOS = 0, 1
pairs = [
    {"prompt": [5, 6, 7], "chosen": [8, 9, EOS], "rejected": [10, EOS]},
    {"prompt": [5, 4], "chosen": [9, EOS], "rejected": [11, 12, 13, EOS]},
]


def collate(pairs):
    rows = [(p["prompt"], p["chosen"]) for p in pairs] + [(p["prompt"], p["rejected"]) for p in pairs]
    width = max(len(prompt) + len(answer) for prompt, answer in rows)
    input_ids = torch.full((len(rows), width), PAD)
    completion_mask = torch.zeros(len(rows), width, dtype=torch.bool)
    for row, (prompt, answer) in enumerate(rows):
        input_ids[row, : len(prompt) + len(answer)] = torch.tensor(prompt + answer)
        completion_mask[row, len(prompt) : len(prompt) + len(answer)] = True
    labels = input_ids.masked_fill(~completion_mask, -100)
    return input_ids, completion_mask, labels


def show(values):
    return " ".join(f"{value:.3f}" for value in values.tolist())


input_ids, completion_mask, labels = collate(pairs)
print("input_ids (2B, T)", tuple(input_ids.shape))
for name, row, mask, label in zip(
    ("chosen 0", "chosen 1", "rejected 0", "rejected 1"), input_ids, completion_mask, labels, strict=True
):
    print(f"{name:<11}", row.tolist(), mask.int().tolist(), label.tolist())

torch.manual_seed(0)
table = torch.randn(16, 16, dtype=torch.float64)  # a bigram model: logits depend on the token itself
logps = sequence_logps(table[input_ids], labels)
chosen_logps, rejected_logps = logps.chunk(2)  # one forward pass, split afterwards
print("chosen  ", show(chosen_logps))
print("rejected", show(rejected_logps))
only_first = torch.tensor([pairs[0]["prompt"] + pairs[0]["rejected"]])  # the same answer without padding
only_labels = only_first.clone()
only_labels[:, :3] = -100
print("alone   ", show(sequence_logps(table[only_first], only_labels)))

lengths = [len(p["prompt"]) + len(p[side]) for side in ("chosen", "rejected") for p in pairs]
is_pad = torch.arange(input_ids.size(1)) >= torch.tensor(lengths).unsqueeze(-1)
with_prompt = sequence_logps(table[input_ids], input_ids.masked_fill(is_pad, -100)).chunk(2)  # prompt scored
for name, (one, other) in (("answer only", (chosen_logps, rejected_logps)), ("with prompt", with_prompt)):
    print(name, " chosen", show(one), " chosen - rejected", show(one - other))
