r"""Oracle: `F.scaled_dot_product_attention` with `enable_gqa`, and transformers' `LlamaAttention`."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from transformers import DynamicCache, LlamaConfig
from transformers.models.llama.modeling_llama import LlamaAttention

from llmcore.kv_cache import KVCache
from llmcore.multi_query import MultiQueryAttention

B, L, H, E, D = 2, 5, 3, 12, 4
INF = float("inf")
exact = torch.float64
both = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def make(*shape: int, dtype: torch.dtype = exact, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def randomised(module: nn.Module, dtype: torch.dtype = exact) -> nn.Module:
    r"""Every parameter drawn anew: biases differ from zero and scores are far from uniform."""
    for seed, (_, parameter) in enumerate(sorted(module.named_parameters())):
        parameter.data = make(*parameter.shape, seed=100 + seed) * 0.4
    return module.to(dtype)


def lower_right(q_len: int, k_len: int) -> torch.Tensor:
    return torch.arange(k_len) <= torch.arange(q_len)[:, None] + (k_len - q_len)


class Library(nn.Module):
    r"""The same projections, and PyTorch's attention between them."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.weights = nn.ParameterDict(
            {name.replace(".", "_"): value.clone() for name, value in module.state_dict().items()}
        )

    def forward(self, x, attn_mask=None):
        def project(name, x):
            bias = self.weights.get(f"{name}_proj_bias")
            return F.linear(x, self.weights[f"{name}_proj_weight"], bias)

        q = project("q", x).unflatten(-1, (H, -1)).movedim(2, 1)
        k, v = (project(name, x).unsqueeze(1) for name in "kv")
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask, enable_gqa=True)
        return project("o", mixed.movedim(1, 2).flatten(2))


def compare(same, ours, theirs, tolerance=None):
    r"""Output, gradients of the inputs, gradients of the parameters, which `Library` names its own way."""
    value, grads, weights = ours
    expected, expected_grads, expected_weights = theirs
    expected_weights = {
        name.removeprefix("weights.").replace("_proj_", "_proj."): grad
        for name, grad in expected_weights.items()
    }
    same(value, expected, tolerance)
    same(
        [*grads, *weights.values()],
        [*expected_grads, *(expected_weights[name] for name in weights)],
        tolerance,
    )


@both
@pytest.mark.parametrize("options", [{}, {"bias": True}, {"head_dim": 7}, {"head_dim": 7, "bias": True}])
def test_equals_torch(options, dtype, same, run_module):
    module = randomised(MultiQueryAttention(E, H, **options), dtype)
    x = make(B, L, E, dtype=dtype)
    compare(same, run_module(module, x), run_module(Library(module), x))
    causal = run_module(Library(module), x, attn_mask=lower_right(L, L))
    compare(same, run_module(module, x, is_causal=True), causal)


@both
@pytest.mark.parametrize("shape", [(L,), (L, L), (B, 1, L, L), (B, H, L, L), (B, 1, 1, L)])
def test_masks_equal_torch(shape, dtype, same, run_module):
    module = randomised(MultiQueryAttention(E, H), dtype)
    x = make(B, L, E, dtype=dtype)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(5)) < 0.5
    mask[..., 0] = True
    bias = make(*shape, dtype=dtype, seed=6).masked_fill(~mask, -INF)
    for hide in (mask, bias):
        expected = run_module(Library(module), x, attn_mask=hide.expand(B, H, L, L))
        compare(same, run_module(module, x, attn_mask=hide), expected)
    causal = run_module(Library(module), x, attn_mask=mask.expand(B, H, L, L) & lower_right(L, L))
    compare(same, run_module(module, x, attn_mask=mask, is_causal=True), causal)


def llama(module: nn.Module, implementation: str, dtype: torch.dtype) -> tuple[LlamaAttention, Callable]:
    r"""transformers' attention with our weights and a rotation by no angle."""
    config = LlamaConfig(
        hidden_size=E,
        num_attention_heads=H,
        num_key_value_heads=1,
        head_dim=D,
    )
    config._attn_implementation = implementation
    library = LlamaAttention(config, layer_idx=0).to(dtype)
    library.load_state_dict(module.state_dict())
    return library, lambda x: (
        torch.ones(1, x.size(1), D, dtype=dtype),
        torch.zeros(1, x.size(1), D, dtype=dtype),
    )


@both
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_equals_llama(implementation, dtype, same, run_module):
    module = randomised(MultiQueryAttention(E, H), dtype)
    library, no_rotation = llama(module, implementation, dtype)
    x = make(B, L, E, dtype=dtype)
    mask = torch.zeros(B, 1, L, L, dtype=dtype).masked_fill(~lower_right(L, L), -INF)
    expected = run_module(library, x, position_embeddings=no_rotation(x), attention_mask=mask)
    # transformers' eager attention takes its softmax in float32 whatever the dtype
    compare(
        same, run_module(module, x, is_causal=True), expected, 1e-5 if implementation == "eager" else None
    )


def test_parameters():
    # one key head and one value head, whatever the number of query heads
    def count(module: nn.Module) -> int:
        return sum(parameter.numel() for parameter in module.parameters())

    assert count(MultiQueryAttention(E, H)) == 2 * E * E + 2 * E * D
    assert count(MultiQueryAttention(E, H, bias=True)) == 2 * E * E + 2 * E * D + 2 * E + 2 * D
    assert count(MultiQueryAttention(E, H, head_dim=7)) == 2 * E * H * 7 + 2 * E * 7


# the cache


def test_a_cache_holds_keys_as_keys_and_lets_gradients_through(same, run_module):
    module, x, cache = randomised(MultiQueryAttention(E, H)), make(B, L, E), KVCache()
    cached = run_module(module, x, is_causal=True, past_key_values=cache)
    plain = run_module(module, x, is_causal=True)
    same(cached[0], plain[0])
    same([*cached[1], *cached[2].values()], [*plain[1], *plain[2].values()])
    for name, kept in (("k", cache.key), ("v", cache.value)):
        weight = module.state_dict()[f"{name}_proj.weight"]
        same(kept, F.linear(x, weight).unflatten(-1, (1, -1)).transpose(1, 2))


@both
@pytest.mark.parametrize("chunks", [[L], [1] * L, [2, 1, 2], [4, 1]])
def test_decoding_with_a_cache_gives_what_the_whole_gives(chunks, dtype, same):
    module = randomised(MultiQueryAttention(E, H), dtype)
    library, no_rotation = llama(module, "sdpa", dtype)
    x = make(B, L, E, dtype=dtype)
    whole = module(x, is_causal=True)
    cache, theirs, seen = KVCache(), DynamicCache(), 0
    for part in x.split(chunks, dim=1):
        seen += part.size(1)
        output = module(part, is_causal=True, past_key_values=cache)
        same(output, whole[:, seen - part.size(1) : seen])
        mask = torch.zeros(B, 1, part.size(1), seen, dtype=dtype).masked_fill(
            ~lower_right(part.size(1), seen), -INF
        )
        same(output, library(part, no_rotation(part), mask, theirs)[0])
        assert cache.seq_len == seen


def test_the_cache_holds_one_head():
    module, cache = randomised(MultiQueryAttention(E, H)), KVCache()
    module(make(B, 3, E), past_key_values=cache)
    module(make(B, 2, E), past_key_values=cache)
    assert cache.seq_len == 5
    assert cache.num_bytes == 2 * B * 1 * 5 * D * 8


def test_a_mask_over_cached_and_new_tokens(same):
    module, cache, x = randomised(MultiQueryAttention(E, H)), KVCache(), make(B, L, E)
    keys = torch.tensor([[True] * L, [False, False] + [True] * (L - 2)])[:, None, None]
    whole = module(x, keys, is_causal=True)
    module(x[:, :3], keys[..., :3], is_causal=True, past_key_values=cache)
    same(module(x[:, 3:], keys, is_causal=True, past_key_values=cache), whole[:, 3:])


# properties


@given(
    batch=st.integers(1, 3),
    length=st.integers(1, 5),
    heads=st.integers(1, 4),
    head_dim=st.integers(1, 4),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
    is_causal=st.booleans(),
)
def test_shapes_and_dtypes(batch, length, heads, head_dim, dtype, is_causal):
    module = MultiQueryAttention(heads * head_dim, heads).to(dtype)
    output = module(make(batch, length, heads * head_dim, dtype=dtype), is_causal=is_causal)
    assert output.shape == (batch, length, heads * head_dim)
    assert output.dtype == dtype


@given(order=st.permutations(range(L)))
def test_without_a_mask_the_order_of_the_tokens_only_moves_the_outputs(order):
    module, x = randomised(MultiQueryAttention(E, H)), make(B, L, E)
    torch.testing.assert_close(module(x[:, order]), module(x)[:, order], rtol=1e-10, atol=1e-10)


@given(seen=st.integers(1, L))
def test_causality_and_prefix(seen):
    module, x = randomised(MultiQueryAttention(E, H)), make(B, L, E)
    changed = x.clone()
    changed[:, seen:] = 5.0
    whole = module(x, is_causal=True)[:, :seen]
    torch.testing.assert_close(module(changed, is_causal=True)[:, :seen], whole, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(module(x[:, :seen], is_causal=True), whole, rtol=1e-10, atol=1e-10)


def test_fully_masked_rows_give_zeros_and_finite_gradients(run_module):
    mask = torch.ones(B, 1, L, L, dtype=torch.bool)
    mask[0, :, 2] = False
    mask[1] = False
    value, grads, weights = run_module(randomised(MultiQueryAttention(E, H)), make(B, L, E), attn_mask=mask)
    assert (value[0, 2] == 0).all()
    assert (value[1] == 0).all()
    assert (value[0, 0] != 0).all()
    for grad in (*grads, *weights.values()):
        assert grad.isfinite().all()


def test_dropout_acts_in_training_alone(same):
    module = randomised(MultiQueryAttention(E, H, dropout=0.5))
    plain, x = randomised(MultiQueryAttention(E, H)), make(B, L, E)
    module.eval()
    same(module(x), plain(x))
    module.train()
    torch.manual_seed(1)
    first, second = module(x), module(x)
    torch.manual_seed(1)
    assert torch.equal(module(x), first)
    assert not torch.allclose(first, second)
    assert not torch.allclose(first, plain(x))


def test_dropout_is_on_the_weights():
    # one head and equal tokens: dropped weights change the length of an output and not its direction
    module = randomised(MultiQueryAttention(E, 1, dropout=0.5))
    x = make(B, 1, E).expand(B, L, E)
    with torch.no_grad():
        expected = module.eval()(x)
        output = module.train()(x)
    factor = (output * expected).sum(-1, keepdim=True) / expected.square().sum(-1, keepdim=True)
    assert not torch.allclose(factor, torch.ones_like(factor))
    torch.testing.assert_close(output, factor * expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_as_close_as_torch(dtype, as_close):
    module, x = randomised(MultiQueryAttention(E, H), dtype), make(B, L, E, dtype=dtype)
    library = Library(module)
    with torch.no_grad():
        theirs = library(x)
        as_close(module(x), theirs, library.double()(x.double()))


@pytest.mark.memory
def test_the_head_is_not_copied(largest_tensor):
    heads, head_dim, k_len = 8, 64, 60
    module = MultiQueryAttention(16, heads, head_dim=head_dim)
    cache = KVCache()
    module(make(2, k_len - 1, 16, dtype=torch.float32), past_key_values=cache)
    with largest_tensor() as seen:
        module(make(2, 1, 16, dtype=torch.float32), is_causal=True, past_key_values=cache)
    assert seen.numel < 2 * heads * k_len * head_dim
    assert cache.num_bytes == 2 * 2 * k_len * head_dim * 4


def test_input_need_not_be_contiguous_and_is_not_changed(same):
    module, x = randomised(MultiQueryAttention(E, H)), make(B, E, L).transpose(1, 2)
    before = x.clone()
    same(module(x), module(x.contiguous()))
    assert torch.equal(x, before)


# errors


def test_refuses_heads_that_do_not_divide(refuses):
    with refuses(100, 8):
        MultiQueryAttention(100, 8)
    MultiQueryAttention(100, 8, head_dim=16)


@pytest.mark.parametrize("bad", [0, -4, 2.5])
def test_refuses_sizes(bad, refuses):
    for sizes in ((bad, 3), (12, bad)):
        with refuses(bad):
            MultiQueryAttention(*sizes)
        with refuses(bad):
            MultiQueryAttention(*sizes, head_dim=4)
    with refuses(bad):
        MultiQueryAttention(12, 3, head_dim=bad)


@pytest.mark.parametrize("bad", [-0.1, 1.0, float("nan")])
def test_refuses_dropout_rates(bad, refuses):
    with refuses(bad):
        MultiQueryAttention(E, H, dropout=bad)


@pytest.mark.parametrize("shape", [(B, L, E + 1), (L, E), (B, 1, L, E)])
def test_refuses_shapes(shape, refuses):
    with refuses(E, shape):
        MultiQueryAttention(E, H)(torch.zeros(shape))


def test_a_sequence_is_never_regrouped(refuses):
    # 24 tokens of 100 would fit 25 tokens of 96
    with refuses(96, (1, 24, 100)):
        MultiQueryAttention(96, 8)(torch.zeros(1, 24, 100))


@pytest.mark.parametrize("shape", [(L + 1,), (B, L), (B, L, L), (H, L, L), (B, 2, L, L)])
def test_refuses_masks(shape, refuses):
    with refuses(shape):
        MultiQueryAttention(E, H)(torch.zeros(B, L, E), torch.ones(shape, dtype=torch.bool))


def test_refuses_caches(refuses):
    module, cache = MultiQueryAttention(E, H), KVCache()
    module(torch.zeros(B, L, E), past_key_values=cache)
    with refuses(B, 3):
        module(torch.zeros(3, 1, E), past_key_values=cache)
    with refuses(torch.float32, torch.float64):
        module.double()(torch.zeros(B, 1, E, dtype=exact), past_key_values=cache)


def test_a_refused_call_leaves_the_cache_alone(refuses):
    module, cache = MultiQueryAttention(12, 6), KVCache()
    module(torch.zeros(2, 4, 12), past_key_values=cache)
    with refuses((1, 6), 5):
        module(torch.zeros(2, 1, 12), torch.ones(1, 6, dtype=torch.bool), past_key_values=cache)
    with refuses("meta", "cpu"):
        mask = torch.ones(1, 5, dtype=torch.bool, device="meta")
        module(torch.zeros(2, 1, 12), mask, past_key_values=cache)
    assert cache.seq_len == 4
