r"""Looks at the log-probabilities of tokens and of sequences."""

import torch

from practice.probes import See, tensor

INF = float("inf")


def words() -> torch.Tensor:
    r"""Labels that are all scored; no 0 among them, which often stands in for what is ignored."""
    return torch.tensor([[1, 2, 4, 3], [4, 3, 2, 1]])


def answer(ignore_index: int = -100) -> torch.Tensor:
    r"""Labels with a prompt and padding."""
    hidden = ignore_index
    return torch.tensor([[1, hidden, 4, 3], [hidden, hidden, 2, hidden]])


def per_token_logps(see: See, per_token_logps) -> None:
    r"""Shift, mask, sums, dtypes, gradients, and what is refused."""
    logits = tensor(2, 4, 5)
    see("two tokens", lambda: per_token_logps(logits[:, :2], words()[:, :2]))
    see.gradients("every token", lambda x: per_token_logps(x, words()), logits)
    see.gradients("prompt and padding", lambda x: per_token_logps(x, answer()), logits)
    see("token 0", lambda: per_token_logps(logits, torch.zeros(2, 4, dtype=torch.long)))
    see("nothing to score", lambda: per_token_logps(logits, torch.full((2, 4), -100)))
    see("a single token", lambda: per_token_logps(logits[:, :1], words()[:, :1]))
    for index in (0, -1, 8):
        see(f"ignore_index {index}", lambda i=index: per_token_logps(logits, answer(i), ignore_index=i))
    see("large logits", lambda: per_token_logps(logits + 1e4, words()))
    far = torch.zeros(1, 2, 3, dtype=torch.float64)
    far[0, 0, 1] = -1000.0
    see.gradients("a very unlikely word", lambda x: per_token_logps(x, torch.tensor([[0, 1]])), far)
    hidden = logits.clone()
    hidden[0, 0, 0] = -INF
    see.gradients("-inf where nothing is scored", lambda x: per_token_logps(x, answer()), hidden)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        see(f"{dtype}", lambda dtype=dtype: per_token_logps((logits * 4).to(dtype), words()))
    see("dtype for bfloat16", lambda: str(per_token_logps(logits.bfloat16(), words()).dtype))

    def again():
        labels = answer()
        per_token_logps(logits, labels)
        return labels

    see("labels afterwards", again)
    for wrong in (5, -1, -99):
        see(
            f"label {wrong}",
            lambda wrong=wrong: per_token_logps(logits, words().masked_fill(words() == 2, wrong)),
        )
    see("labels that are no integers", lambda: per_token_logps(logits, words().double()))
    see("fewer labels", lambda: per_token_logps(logits, words()[:, 1:]))
    see("integer logits", lambda: per_token_logps(logits.long(), words()))


def sequence_logps(see: See, sequence_logps) -> None:
    r"""What is summed, over which axis, in which dtype."""
    logits = tensor(2, 4, 5)
    see("two tokens", lambda: sequence_logps(logits[:, :2], words()[:, :2]))
    see("one sequence", lambda: sequence_logps(logits[:1], words()[:1]))
    see.gradients("every token", lambda x: sequence_logps(x, words()), logits)
    see.gradients("prompt and padding", lambda x: sequence_logps(x, answer()), logits)
    see("nothing to score", lambda: sequence_logps(logits, torch.full((2, 4), -100)))
    for index in (0, -1, 8):
        see(f"ignore_index {index}", lambda i=index: sequence_logps(logits, answer(i), ignore_index=i))
    see(
        "300 tokens",
        lambda: sequence_logps(tensor(1, 300, 5, spread=9.0), torch.ones(1, 300, dtype=torch.long)),
    )
    see("bfloat16", lambda: sequence_logps((logits * 4).bfloat16(), words()))
    see("label 5", lambda: sequence_logps(logits, words() + 1))
    see("fewer labels", lambda: sequence_logps(logits, words()[:, 1:]))
