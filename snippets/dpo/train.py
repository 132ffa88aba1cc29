"""A few DPO steps on a tiny causal language model built from llmcore's attention."""

import copy
import math

import torch
from torch import nn

from llmcore.dpo import dpo_loss
from llmcore.logprobs import sequence_logps
from llmcore.self_attention import MultiHeadSelfAttention

torch.manual_seed(0)
YES, NO = "yes it is <eos>", "no it is not <eos>"
PAIRS = [  # prompt, chosen, rejected: which answer is right depends on the prompt
    ("is snow white ?", YES, NO),
    ("is coal white ?", NO, YES),
    ("is snow black ?", NO, YES),
    ("is coal black ?", YES, NO),
]
WORDS = ["<pad>", *sorted({word for pair in PAIRS for text in pair for word in text.split()})]


class TinyLM(nn.Module):
    def __init__(self, hidden_size=32):
        super().__init__()
        self.embed = nn.Embedding(len(WORDS), hidden_size)
        self.position = nn.Embedding(16, hidden_size)
        self.attention = MultiHeadSelfAttention(hidden_size, num_heads=4)
        self.mlp = nn.Sequential(
            nn.Linear(hidden_size, 4 * hidden_size), nn.GELU(), nn.Linear(4 * hidden_size, hidden_size)
        )
        self.lm_head = nn.Linear(hidden_size, len(WORDS))

    def forward(self, input_ids):
        hidden = self.embed(input_ids) + self.position.weight[: input_ids.size(1)]  # (B, T, E)
        hidden = hidden + self.attention(hidden, is_causal=True)
        return self.lm_head(hidden + self.mlp(hidden))  # (B, T, V)


def encode(answers):
    """Right-padded ids and labels; only the answer, with its <eos>, is scored."""
    ids = torch.zeros(len(answers), 9, dtype=torch.long)
    labels = torch.full_like(ids, -100)
    for row, (prompt, answer) in enumerate(answers):
        tokens = [WORDS.index(word) for word in f"{prompt} {answer}".split()]
        ids[row, : len(tokens)] = torch.tensor(tokens)
        labels[row, 4 : len(tokens)] = ids[row, 4 : len(tokens)]
    return ids, labels


ids, labels = encode([(p, chosen) for p, chosen, _ in PAIRS] + [(p, rejected) for p, _, rejected in PAIRS])
policy = TinyLM().double()

sft = torch.optim.AdamW(policy.parameters(), lr=1e-2)  # learns the two answers, not which one is right
for _ in range(60):
    sft.zero_grad()
    (-sequence_logps(policy(ids), labels).mean()).backward()
    sft.step()

reference = copy.deepcopy(policy).requires_grad_(False)
with torch.no_grad():
    ref_chosen, ref_rejected = sequence_logps(reference(ids), labels).chunk(2)  # once, before training
print(f"log 2 = {math.log(2):.4f}")


def train(nll_weight):
    policy = copy.deepcopy(reference).requires_grad_(True)
    optimizer = torch.optim.AdamW(policy.parameters(), lr=1e-3)
    print(f"DPO + {nll_weight} NLL")
    print("step  loss    accuracy  margin  logps/chosen  logps/rejected  P(anything else)")
    for step in range(31):
        chosen, rejected = sequence_logps(policy(ids), labels).chunk(2)  # one forward pass for both
        out = dpo_loss(chosen, rejected, ref_chosen, ref_rejected, beta=0.1)
        if step % 6 == 0:
            other = (1 - chosen.exp() - rejected.exp()).mean()
            print(
                f"{step:>4}  {out.loss:.3f}   {out.accuracy:.2f}      {out.margin:.2f}    "
                f"{chosen.mean():6.2f}        {rejected.mean():6.2f}          {other:.2f}"
            )
        optimizer.zero_grad()
        (out.loss - nll_weight * chosen.mean()).backward()
        optimizer.step()


train(nll_weight=0.0)
train(nll_weight=0.2)
print("reference received gradient:", any(p.grad is not None for p in reference.parameters()))
