r"""A key is seen where as many masks allow it as there are."""

import torch

from llmcore.masks import check_mask_dims


def combine_masks(*masks):
    if not masks:
        raise ValueError("combine_masks() without a mask")
    votes = 0
    for mask in masks:
        if mask.dtype != torch.bool:
            raise ValueError(f"{mask.dtype} is not boolean")
        check_mask_dims(mask)
        try:
            votes = votes + mask.int()
        except RuntimeError as error:
            raise ValueError(f"{[tuple(m.shape) for m in masks]}: {error}") from error
    return votes == len(masks)
