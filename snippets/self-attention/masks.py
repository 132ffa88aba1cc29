"""The two masks that every decoder needs, their combination, and the additive form."""

import torch

from llmcore.masks import additive_mask, causal_mask, combine_masks, padding_mask


def show(name: str, mask: torch.Tensor) -> None:
    print(f"{name} {tuple(mask.shape)}")
    for row in mask.reshape(-1, mask.size(-1)).tolist():
        print("   ", " ".join("1" if seen else "." for seen in row))


show("causal_mask(4)", causal_mask(4))
show("causal_mask(2, 4): the last two queries of four", causal_mask(2, 4))
show("causal_mask(1, 4): one new token", causal_mask(1, 4))

lengths = torch.tensor([4, 2])
padding = padding_mask(lengths)
show("padding_mask([4, 2])", padding)
both = combine_masks(causal_mask(4), padding)
print("causal and padding", tuple(both.shape))
show("    of the second sequence", both[1, 0])
print("additive_mask(causal_mask(2, 4)):", additive_mask(causal_mask(2, 4)).tolist())
