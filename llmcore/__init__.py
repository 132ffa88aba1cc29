r"""The building blocks of large language models, written by hand and held to the systems the field uses.

Every module is one concept and needs torch and the standard library alone. Dimension letters mean the same
everywhere: `B` batch, `L` query length, `S` key length, `H` query heads, `K` key/value heads, `D` head_dim,
`E` hidden_size, `T` tokens of a sequence, `V` vocabulary.

Conventions, stated once:

- tensors of heads are laid out `(B, H, L, D)`;
- a boolean `attn_mask` means True = may attend, a floating-point one is added to the scores;
- causal masks are aligned bottom-right: the newest query sees every key;
- a fully masked row gives zeros and finite gradients;
- bfloat16 and float16 are computed in float32 and cast back, float64 stays float64; inside `torch.autocast`
  the dtype of a matrix product is autocast's choice;
- wrong input raises `ValueError` that names the values and the rule.
"""

__version__ = "0.1.0"
