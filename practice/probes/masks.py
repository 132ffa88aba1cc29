r"""Looks at the masks: alignment, polarity, shapes, dtypes, devices, input that means two things."""

import torch

from practice.probes import See, tensor


def causal_mask(see: See, causal_mask) -> None:
    r"""Square, with a cache, with more queries than keys; lengths that are none."""
    for sizes in ((4,), (2, 5), (1, 6), (5, 3)):
        see(f"sizes {sizes}", lambda sizes=sizes: causal_mask(*sizes))
        see(f"dtype for {sizes}", lambda sizes=sizes: str(causal_mask(*sizes).dtype))
        see(f"what is seen of {sizes}", lambda sizes=sizes: causal_mask(*sizes) > 0)
    see("device", lambda: causal_mask(3, device="meta").device.type)
    for sizes in ((0, 4), (4, 0), (-2, 4), (4, 2.5)):
        see(f"lengths {sizes}", lambda sizes=sizes: causal_mask(*sizes))


def padding_mask(see: See, padding_mask) -> None:
    r"""Both sides, an empty sequence, a longer batch, lengths that cannot be."""
    lengths = torch.tensor([2, 1, 4])
    see("right", lambda: padding_mask(lengths, 5, side="right"))
    see("left", lambda: padding_mask(lengths, 5, side="left"))
    see("the side by default", lambda: padding_mask(lengths, 5))
    see("the longest by default", lambda: padding_mask(lengths))
    see("flags", lambda: (padding_mask(lengths, 5) > 0).flatten())
    see("dtype", lambda: str(padding_mask(lengths, 5).dtype))
    see("shape", lambda: list(padding_mask(lengths, 5).shape))
    see("an empty sequence", lambda: padding_mask(torch.tensor([0, 3]), 3).shape)
    see("too long", lambda: padding_mask(torch.tensor([3, 5]), 4).shape)
    see("negative", lambda: padding_mask(torch.tensor([3, -1]), 4).shape)
    see("no tokens", lambda: padding_mask(torch.tensor([0, 0])).shape)
    see("a matrix", lambda: padding_mask(torch.zeros(2, 3, dtype=torch.long), 4).shape)
    see("floating point", lambda: padding_mask(torch.tensor([1.0, 2.0]), 4).shape)
    see("no such side", lambda: padding_mask(lengths, 5, side="middle").shape)

    def elsewhere():
        with torch.device("meta"):
            return padding_mask(lengths, 5).device.type

    see("device", elsewhere)


def combine_masks(see: See, combine_masks) -> None:
    r"""Two and three masks, broadcasting, the masks afterwards, what is none."""

    def masks() -> list[torch.Tensor]:
        return [torch.ones(2, 4).tril(1).bool(), (tensor(3, 1, 1, 4) < 0.5), (tensor(4, seed=1) < 0.7)]

    see("one", lambda: combine_masks(masks()[0]))
    see("two", lambda: combine_masks(*masks()[:2]))
    see("two of one shape", lambda: combine_masks(masks()[0], tensor(2, 4, seed=2) < 0))
    see("three", lambda: combine_masks(*masks()))
    see("three of one shape", lambda: combine_masks(*(tensor(2, 4, seed=seed) < 0.5 for seed in (2, 3, 4))))
    see("dtype", lambda: str(combine_masks(*masks()[:2]).dtype))

    def left_alone():
        first, second = masks()[0], tensor(2, 4, seed=2) < 0
        combine_masks(first, second)
        return torch.equal(first, masks()[0])

    see("masks left alone", left_alone)
    see("none", lambda: combine_masks())
    see("additive", lambda: combine_masks(masks()[0], torch.zeros(2, 4)))
    see("integers", lambda: combine_masks(torch.ones(2, 4, dtype=torch.long)))
    see("three dimensions", lambda: combine_masks(masks()[0], torch.ones(3, 2, 4, dtype=torch.bool)))
    see("shapes that do not fit", lambda: combine_masks(masks()[0], torch.ones(3, 4, dtype=torch.bool)))


def additive_mask(see: See, additive_mask) -> None:
    r"""Visible and hidden entries, dtypes, devices, what is no mask."""
    mask = torch.tensor([[True, False, True], [False, False, False]])
    see("float32", lambda: additive_mask(mask))
    see("visible", lambda: additive_mask(mask)[0, ::2].double())
    see("hidden", lambda: additive_mask(mask)[0, 1].double())
    for dtype in (torch.float64, torch.float16, torch.bfloat16):
        see(f"dtype {dtype}", lambda dtype=dtype: str(additive_mask(mask, dtype).dtype))
    see("flags", lambda: additive_mask(torch.tensor([1, 0])))
    see("additive already", lambda: additive_mask(torch.tensor([0.0, -torch.inf])))
    see("integers asked for", lambda: additive_mask(mask, torch.int64))

    def elsewhere():
        with torch.device("meta"):
            return additive_mask(mask).device.type

    see("device", elsewhere)


def expand_mask(see: See, expand_mask, check_mask_dims) -> None:
    r"""Every shape that fits, some that do not, dtypes and devices."""
    shape = 2, 3, 5, 7  # (B, H, L, S)
    for sizes in ((7,), (5, 7), (2, 1, 1, 7), (1, 3, 5, 7), (2, 3, 5, 7)):
        see(f"boolean {sizes}", lambda sizes=sizes: expand_mask(tensor(*sizes) < 0, shape))
        see(f"additive {sizes}", lambda sizes=sizes: expand_mask(tensor(*sizes), shape))
    for sizes in (
        (5,),
        (1,),
        (2, 7),
        (5, 1),
        (7, 5),
        (2, 5, 7),
        (3, 5, 7),
        (1, 5, 7),
        (3, 1, 5, 7),
        (2, 1, 5, 1),
    ):
        see(f"no fit {sizes}", lambda sizes=sizes: expand_mask(tensor(*sizes) < 0, shape).shape)
    see("a batch of as many as queries", lambda: expand_mask(tensor(5, 7) < 0, (5, 3, 5, 7)))
    see("no axis", lambda: expand_mask(torch.tensor(True), shape).shape)
    see("five axes", lambda: expand_mask(torch.ones(1, *shape, dtype=torch.bool), shape).shape)
    see("integers", lambda: expand_mask(torch.ones(5, 7, dtype=torch.long), shape))
    see("another device", lambda: expand_mask(torch.ones(5, 7).bool(), shape, torch.device("meta")).shape)
    see("its device", lambda: expand_mask(torch.ones(5, 7).bool(), shape, torch.device("cpu")).shape)
    for sizes in ((), (4,), (3, 4), (2, 3, 4), (1, 2, 3, 4), (1, 1, 2, 3, 4)):
        see(f"the check of {len(sizes)} axes", lambda sizes=sizes: check_mask_dims(torch.ones(sizes).bool()))
