r"""Looks at cutting into heads, putting them together again and repeating those of keys and values."""

import torch

from practice.probes import See, tensor


def split_heads(see: See, split_heads) -> None:
    r"""Where each number goes, and what is refused."""
    see.gradients("two heads of width 3", lambda x: split_heads(x, 2), tensor(2, 4, 6))
    see("a square", lambda: split_heads(tensor(2, 4, 9), 3))
    see("not contiguous", lambda: split_heads(tensor(2, 6, 4).transpose(1, 2), 3))
    see("integers", lambda: split_heads(torch.arange(12).reshape(1, 2, 6), 2))
    see("100 over 8", lambda: split_heads(tensor(1, 24, 100), 8))
    see("no heads", lambda: split_heads(tensor(1, 2, 6), 0))
    for shape in ((4, 6), (2, 3, 4, 6), (6,)):
        see(f"shape {shape}", lambda shape=shape: split_heads(tensor(*shape), 2))


def merge_heads(see: See, merge_heads) -> None:
    r"""Where each number goes, and what is refused."""
    see.gradients("three heads of width 4", lambda x: merge_heads(x), tensor(2, 3, 5, 4))
    see("contiguous in the end", lambda: merge_heads(tensor(2, 5, 3, 4).transpose(1, 2)))
    see("one head", lambda: merge_heads(tensor(2, 1, 5, 4)))
    see("integers", lambda: merge_heads(torch.arange(24).reshape(1, 2, 3, 4)))
    for shape in ((5, 4), (3, 5, 4), (1, 2, 3, 5, 4)):
        see(f"shape {shape}", lambda shape=shape: merge_heads(tensor(*shape)))


def repeat_kv(see: See, repeat_kv) -> None:
    r"""Order of the heads, gradients, and what is refused."""
    see.gradients("three heads twice", lambda x: repeat_kv(x, 2), tensor(2, 3, 5, 4))
    see("one head", lambda: repeat_kv(tensor(2, 1, 5, 4), 3))
    see("once", lambda: repeat_kv(tensor(2, 3, 5, 4), 1))
    see("not contiguous", lambda: repeat_kv(tensor(2, 5, 3, 4).transpose(1, 2), 2))
    for count in (0, -1, 1.5):
        see(f"{count} times", lambda count=count: repeat_kv(tensor(2, 3, 5, 4), count))
    for shape in ((3, 5, 4), (2, 3, 1, 5, 4), (5, 4)):
        see(f"shape {shape}", lambda shape=shape: repeat_kv(tensor(*shape), 2))
