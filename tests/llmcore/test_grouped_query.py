r"""Oracle: transformers' `LlamaAttention` with copied weights (eager and sdpa, with and without its cache),
`F.scaled_dot_product_attention` on repeated heads, and group means written out by hand."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from transformers import DynamicCache, LlamaConfig
from transformers.models.llama.modeling_llama import LlamaAttention

from llmcore.grouped_query import GroupedQueryAttention, mha_to_gqa, pool_kv_heads
from llmcore.kv_cache import KVCache
from llmcore.multi_head import MultiHeadAttention

B, L, H, K, D = 3, 5, 8, 2, 6
E = H * D
INF = float("inf")
exact = torch.float64
both = pytest.mark.parametrize("dtype", [torch.float64, torch.float32])


def make(*shape: int, dtype: torch.dtype = exact, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def randomised(module, dtype: torch.dtype = exact):
    r"""Every parameter drawn anew: biases differ from zero and scores are far from uniform."""
    for seed, (_, parameter) in enumerate(sorted(module.named_parameters())):
        parameter.data = make(*parameter.shape, seed=100 + seed) * 0.2
    return module.to(dtype)


def lower_right(q_len: int, k_len: int) -> torch.Tensor:
    return torch.arange(k_len) <= torch.arange(q_len)[:, None] + (k_len - q_len)


class Library(nn.Module):
    r"""The same projections, and PyTorch's attention between them, K and V repeated."""

    def __init__(self, module: nn.Module, kv_heads: int = K):
        super().__init__()
        self.kv_heads = kv_heads
        self.weights = nn.ParameterDict(
            {name.replace(".", "_"): value.clone() for name, value in module.state_dict().items()}
        )

    def forward(self, x, attn_mask=None):
        def project(name, x):
            bias = self.weights.get(f"{name}_proj_bias")
            return F.linear(x, self.weights[f"{name}_proj_weight"], bias)

        q = project("q", x).unflatten(-1, (H, -1)).movedim(2, 1)
        k, v = (
            project(name, x)
            .unflatten(-1, (self.kv_heads, -1))
            .movedim(2, 1)
            .repeat_interleave(H // self.kv_heads, 1)
            for name in "kv"
        )
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask)
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


def llama(
    module: nn.Module, kv_heads: int, implementation: str, dtype: torch.dtype, head_dim: int = D, bias=False
):
    r"""transformers' attention with our weights, and a rotation by no angle for it."""
    config = LlamaConfig(
        hidden_size=E,
        num_attention_heads=H,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        attention_bias=bias,
    )
    config._attn_implementation = implementation
    library = LlamaAttention(config, layer_idx=0).to(dtype)
    library.load_state_dict(module.state_dict())

    def no_rotation(x):
        shape = (1, x.size(1), head_dim)
        return torch.ones(shape, dtype=dtype), torch.zeros(shape, dtype=dtype)

    return library, no_rotation


def additive(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, -INF)


# against the field's own


@both
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("kv_heads", [1, 2, 4, 8])
def test_equals_llama(kv_heads, implementation, dtype, same, run_module):
    module = randomised(GroupedQueryAttention(E, H, kv_heads), dtype)
    library, no_rotation = llama(module, kv_heads, implementation, dtype)
    x = make(B, L, E, dtype=dtype)
    mask = additive(lower_right(L, L), dtype).expand(B, 1, L, L)
    expected = run_module(library, x, position_embeddings=no_rotation(x), attention_mask=mask)
    # transformers' eager attention takes its softmax in float32 whatever the dtype
    compare(
        same, run_module(module, x, is_causal=True), expected, 1e-5 if implementation == "eager" else None
    )


@both
@pytest.mark.parametrize("options", [{"bias": True}, {"head_dim": 4}, {"head_dim": 10, "bias": True}])
def test_equals_llama_with_bias_and_own_head_dim(options, dtype, same, run_module):
    module = randomised(GroupedQueryAttention(E, H, K, **options), dtype)
    library, no_rotation = llama(module, K, "sdpa", dtype, **{"head_dim": D} | options)
    x = make(B, L, E, dtype=dtype)
    mask = additive(lower_right(L, L), dtype).expand(B, 1, L, L)
    expected = run_module(library, x, position_embeddings=no_rotation(x), attention_mask=mask)
    compare(same, run_module(module, x, is_causal=True), expected)


def test_a_cache_holds_keys_as_keys_and_lets_gradients_through(same, run_module):
    module, x, cache = randomised(GroupedQueryAttention(E, H, K)), make(B, L, E), KVCache()
    cached = run_module(module, x, is_causal=True, past_key_values=cache)
    plain = run_module(module, x, is_causal=True)
    same(cached[0], plain[0])
    same([*cached[1], *cached[2].values()], [*plain[1], *plain[2].values()])
    for name, kept in (("k", cache.key), ("v", cache.value)):
        weight = module.state_dict()[f"{name}_proj.weight"]
        same(kept, F.linear(x, weight).unflatten(-1, (K, -1)).transpose(1, 2))


@both
@pytest.mark.parametrize("chunks", [[L], [1] * L, [2, 1, 2], [3, 2]])
def test_decoding_with_a_cache_equals_llama_and_the_whole(chunks, dtype, same):
    module = randomised(GroupedQueryAttention(E, H, K), dtype)
    library, no_rotation = llama(module, K, "sdpa", dtype)
    x = make(B, L, E, dtype=dtype)
    whole = module(x, is_causal=True)
    cache, theirs, seen = KVCache(), DynamicCache(), 0
    for part in x.split(chunks, dim=1):
        seen += part.size(1)
        output = module(part, is_causal=True, past_key_values=cache)
        same(output, whole[:, seen - part.size(1) : seen])
        mask = additive(lower_right(part.size(1), seen), dtype).expand(B, 1, -1, -1)
        same(output, library(part, no_rotation(part), mask, theirs)[0])
        assert cache.seq_len == seen


@both
@pytest.mark.parametrize("kv_heads", [1, 2, 8])
def test_equals_torch(kv_heads, dtype, same, run_module):
    module = randomised(GroupedQueryAttention(E, H, kv_heads, bias=True), dtype)
    x = make(B, L, E, dtype=dtype)
    compare(same, run_module(module, x), run_module(Library(module, kv_heads), x))


@both
@pytest.mark.parametrize("shape", [(L,), (L, L), (B, 1, L, L), (B, H, L, L), (B, 1, 1, L)])
def test_masks_equal_torch(shape, dtype, same, run_module):
    module = randomised(GroupedQueryAttention(E, H, K), dtype)
    x = make(B, L, E, dtype=dtype)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(5)) < 0.5
    mask[..., 0] = True
    bias = make(*shape, dtype=dtype, seed=6).masked_fill(~mask, -INF)
    for hide in (mask, bias):
        expected = run_module(Library(module), x, attn_mask=hide.expand(B, H, L, L))
        compare(same, run_module(module, x, attn_mask=hide), expected)
    causal = run_module(Library(module), x, attn_mask=mask.expand(B, H, L, L) & lower_right(L, L))
    compare(same, run_module(module, x, attn_mask=mask, is_causal=True), causal)


def test_parameters():
    def count(module: nn.Module) -> int:
        return sum(parameter.numel() for parameter in module.parameters())

    assert count(GroupedQueryAttention(E, H, K)) == 2 * E * E + 2 * E * K * D
    assert count(GroupedQueryAttention(E, H, K, bias=True)) == 2 * E * E + 2 * E * K * D + 2 * E + 2 * K * D
    assert count(GroupedQueryAttention(E, H, K, head_dim=9)) == 2 * E * H * 9 + 2 * E * K * 9


def test_as_many_kv_heads_as_heads_is_multi_head_attention(same):
    grouped = randomised(GroupedQueryAttention(E, H, H))
    multi = MultiHeadAttention(E, H, bias=False).to(exact)
    multi.load_state_dict(grouped.state_dict())
    x = make(B, L, E)
    same(grouped(x, is_causal=True), multi(x, x, x, is_causal=True))


# the cache


@pytest.mark.parametrize("kv_heads", [1, 2, 8])
def test_the_cache_holds_kv_heads_and_not_heads(kv_heads):
    module, cache = randomised(GroupedQueryAttention(E, H, kv_heads)), KVCache()
    module(make(B, 3, E), past_key_values=cache)
    module(make(B, 2, E), past_key_values=cache)
    assert cache.seq_len == 5
    assert cache.num_bytes == 2 * B * kv_heads * 5 * D * 8


def test_a_mask_over_cached_and_new_tokens(same):
    module, cache, x = randomised(GroupedQueryAttention(E, H, K)), KVCache(), make(B, L, E)
    keys = torch.ones(B, 1, 1, L, dtype=torch.bool)
    keys[1, ..., :2] = False
    whole = module(x, keys, is_causal=True)
    module(x[:, :3], keys[..., :3], is_causal=True, past_key_values=cache)
    same(module(x[:, 3:], keys, is_causal=True, past_key_values=cache), whole[:, 3:])


def test_without_a_cache_nothing_is_kept(same):
    module, x = randomised(GroupedQueryAttention(E, H, K)), make(B, L, E)
    first = module(x, is_causal=True)
    module(make(B, L, E, seed=9))
    same(module(x, is_causal=True), first)


# properties


@given(
    batch=st.integers(1, 3),
    length=st.integers(1, 5),
    kv_heads=st.integers(1, 3),
    groups=st.integers(1, 3),
    head_dim=st.integers(1, 4),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
    is_causal=st.booleans(),
)
def test_shapes_and_dtypes(batch, length, kv_heads, groups, head_dim, dtype, is_causal):
    heads = kv_heads * groups
    module = GroupedQueryAttention(heads * head_dim, heads, kv_heads).to(dtype)
    output = module(make(batch, length, heads * head_dim, dtype=dtype), is_causal=is_causal)
    assert output.shape == (batch, length, heads * head_dim)
    assert output.dtype == dtype


@given(order=st.permutations(range(L)))
def test_without_a_mask_the_order_of_the_tokens_only_moves_the_outputs(order):
    module, x = randomised(GroupedQueryAttention(E, H, K)), make(B, L, E)
    torch.testing.assert_close(module(x[:, order]), module(x)[:, order], rtol=1e-10, atol=1e-10)


@given(seen=st.integers(1, L))
def test_causality_and_prefix(seen):
    module, x = randomised(GroupedQueryAttention(E, H, K)), make(B, L, E)
    changed = x.clone()
    changed[:, seen:] = 5.0
    whole = module(x, is_causal=True)[:, :seen]
    torch.testing.assert_close(module(changed, is_causal=True)[:, :seen], whole, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(module(x[:, :seen], is_causal=True), whole, rtol=1e-10, atol=1e-10)


def test_fully_masked_rows_give_zeros_and_finite_gradients(run_module):
    mask = torch.ones(B, 1, L, L, dtype=torch.bool)
    mask[0, :, 2] = False
    mask[1] = False
    module = randomised(GroupedQueryAttention(E, H, K))
    for hide in (mask, additive(mask, exact)):
        value, grads, weights = run_module(module, make(B, L, E), attn_mask=hide)
        assert (value[0, 2] == 0).all()
        assert (value[1] == 0).all()
        assert (value[0, 0] != 0).all()
        for grad in (*grads, *weights.values()):
            assert grad.isfinite().all()


def test_left_padding_with_a_causal_mask_spreads_no_nan(run_module):
    # the first tokens of a left-padded sequence see nothing; two layers, as NaN would spread at the second
    layers = nn.ModuleList([randomised(GroupedQueryAttention(E, H, K)) for _ in range(2)])
    keys = torch.ones(B, 1, 1, L, dtype=torch.bool)
    keys[0, ..., :3] = False

    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = layers

        def forward(self, x):
            for layer in self.layers:
                x = x + layer(x, keys, is_causal=True)
            return x

    value, grads, weights = run_module(Two(), make(B, L, E))
    for tensor in (value, *grads, *weights.values()):
        assert tensor.isfinite().all()


def test_dropout_acts_in_training_alone(same):
    module = randomised(GroupedQueryAttention(E, H, K, dropout=0.5))
    plain, x = randomised(GroupedQueryAttention(E, H, K)), make(B, L, E)
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
    module = randomised(GroupedQueryAttention(E, 1, 1, dropout=0.5))
    x = make(B, 1, E).expand(B, L, E)
    with torch.no_grad():
        expected = module.eval()(x)
        output = module.train()(x)
    factor = (output * expected).sum(-1, keepdim=True) / expected.square().sum(-1, keepdim=True)
    assert not torch.allclose(factor, torch.ones_like(factor))
    torch.testing.assert_close(output, factor * expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_as_close_as_torch(dtype, as_close):
    module, x = randomised(GroupedQueryAttention(E, H, K), dtype), make(B, L, E, dtype=dtype)
    library = Library(module)
    with torch.no_grad():
        theirs = library(x)
        as_close(module(x), theirs, library.double()(x.double()))


def test_float16_scores_beyond_its_end():
    # q and k are 16 · 60 = 960 throughout: q·k = 4 · 960² = 3686400 > 65504, and all keys weigh the same
    module = GroupedQueryAttention(16, 4, 2).half()
    for parameter in module.parameters():
        parameter.data.fill_(1.0)
    output = module(torch.full((1, 4, 16), 60.0, dtype=torch.float16))
    assert torch.equal(output, torch.full((1, 4, 16), 16 * 960.0, dtype=torch.float16))


@pytest.mark.memory
@pytest.mark.parametrize("kv_heads", [1, 2])
def test_kv_heads_are_not_copied(kv_heads, largest_tensor):
    heads, head_dim, k_len = 8, 64, 60
    module, cache = GroupedQueryAttention(16, heads, kv_heads, head_dim=head_dim), KVCache()
    module(make(2, k_len - 1, 16, dtype=torch.float32), past_key_values=cache)
    with largest_tensor() as seen:
        module(make(2, 1, 16, dtype=torch.float32), is_causal=True, past_key_values=cache).sum().backward()
    assert seen.numel < 2 * heads * k_len * head_dim
    assert cache.num_bytes == 2 * 2 * kv_heads * k_len * head_dim * 4


def test_input_need_not_be_contiguous_and_is_not_changed(same):
    module, x = randomised(GroupedQueryAttention(E, H, K)), make(B, E, L).transpose(1, 2)
    before = x.clone()
    same(module(x), module(x.contiguous()))
    assert torch.equal(x, before)


# errors


@pytest.mark.parametrize("kv_heads", [3, 5, 16])
def test_refuses_kv_heads_that_do_not_divide(kv_heads, refuses):
    with refuses(8, kv_heads):
        GroupedQueryAttention(48, 8, kv_heads)
    with refuses(8, kv_heads):
        GroupedQueryAttention(48, 8, kv_heads, head_dim=4)


def test_refuses_heads_that_do_not_divide(refuses):
    with refuses(100, 8):
        GroupedQueryAttention(100, 8, 4)
    GroupedQueryAttention(100, 8, 4, head_dim=16)


@pytest.mark.parametrize("bad", [0, -4, 2.5])
def test_refuses_sizes(bad, refuses):
    for sizes in ((bad, 8, 2), (48, bad, 2), (48, 8, bad)):
        with refuses(bad):
            GroupedQueryAttention(*sizes)
        with refuses(bad):
            GroupedQueryAttention(*sizes, head_dim=4)
    with refuses(bad):
        GroupedQueryAttention(48, 8, 2, head_dim=bad)


@pytest.mark.parametrize("bad", [-0.1, 1.0, float("nan")])
def test_refuses_dropout_rates(bad, refuses):
    with refuses(bad):
        GroupedQueryAttention(E, H, K, dropout=bad)


@pytest.mark.parametrize("shape", [(B, L, E + 1), (L, E), (B, 1, L, E)])
def test_refuses_shapes(shape, refuses):
    with refuses(E, shape):
        GroupedQueryAttention(E, H, K)(torch.zeros(shape))


def test_a_sequence_is_never_regrouped(refuses):
    # 24 tokens of 100 would fit 25 tokens of 96
    with refuses(96, (1, 24, 100)):
        GroupedQueryAttention(96, 8, 4)(torch.zeros(1, 24, 100))


@pytest.mark.parametrize("shape", [(L + 1,), (B, L), (B, L, L), (H, L, L), (B, 2, L, L)])
def test_refuses_masks(shape, refuses):
    with refuses(shape):
        GroupedQueryAttention(E, H, K)(torch.zeros(B, L, E), torch.ones(shape, dtype=torch.bool))


def test_refuses_caches(refuses):
    module, cache = GroupedQueryAttention(E, H, K), KVCache()
    module(torch.zeros(B, L, E), past_key_values=cache)
    with refuses(B, 4):
        module(torch.zeros(4, 1, E), past_key_values=cache)
    with refuses(K, 4):
        GroupedQueryAttention(E, H, 4)(torch.zeros(B, 1, E), past_key_values=cache)
    with refuses(torch.float32, torch.float64):
        module.double()(torch.zeros(B, 1, E, dtype=exact), past_key_values=cache)


# from a multi-head checkpoint


def test_pool_kv_heads_by_hand(same):
    # four heads of width 2 over one input: rows 0 1 | 10 11 | 20 21 | 30 31, pooled in neighbouring pairs
    weight = torch.tensor([0.0, 1.0, 10.0, 11.0, 20.0, 21.0, 30.0, 31.0], dtype=exact)
    same(pool_kv_heads(weight[:, None], 4, 2), torch.tensor([[5.0], [6.0], [25.0], [26.0]], dtype=exact))
    same(pool_kv_heads(weight, 4, 2), torch.tensor([5.0, 6.0, 25.0, 26.0], dtype=exact))
    same(pool_kv_heads(weight, 4, 1), torch.tensor([15.0, 16.0], dtype=exact))
    same(pool_kv_heads(weight, 4, 4), weight)


@given(
    groups=st.integers(1, 3),
    kv_heads=st.integers(1, 3),
    head_dim=st.integers(1, 4),
    width=st.integers(1, 5),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
)
def test_pool_kv_heads_by_loops(groups, kv_heads, head_dim, width, dtype):
    heads = groups * kv_heads
    weight = make(heads * head_dim, width, dtype=dtype)
    before = weight.clone()
    pooled = pool_kv_heads(weight, heads, kv_heads)
    assert pooled.dtype == dtype
    assert pooled.shape == (kv_heads * head_dim, width)
    for k in range(kv_heads):
        for d in range(head_dim):
            rows = [weight[(k * groups + g) * head_dim + d].double() for g in range(groups)]
            loose = {torch.float64: 1e-12, torch.float32: 1e-6, torch.bfloat16: 4e-3}[dtype]
            torch.testing.assert_close(
                pooled[k * head_dim + d].double(), sum(rows) / groups, rtol=loose, atol=loose
            )
    assert torch.equal(weight, before)


def test_pool_kv_heads_averages_in_float32():
    # 256 + 1 is 256 in bfloat16: summed there, the mean of 256, 1, 1, 1, 1, 1, 1, 1 would be 32
    weight = torch.tensor([256.0, 1, 1, 1, 1, 1, 1, 1], dtype=torch.bfloat16)
    assert pool_kv_heads(weight, 8, 1).item() == torch.tensor(263 / 8).bfloat16().item()


def test_pool_kv_heads_gradient_is_shared_evenly(same, run):
    # three heads a group: each row of a group gets a third of what its mean gets
    weight, heads, kv_heads = make(2 * 3 * 4, 5), 6, 2
    _, grad = run(lambda w: pool_kv_heads(w, heads, kv_heads), weight)
    expected = run(lambda w: w.unflatten(0, (kv_heads, 3, 4)).sum(1).div(3).flatten(0, 1), weight)[1]
    same(grad, expected)
    same(grad.unflatten(0, (kv_heads, 3, 4))[:, 0], grad.unflatten(0, (kv_heads, 3, 4))[:, 2])


def test_pool_kv_heads_refuses(refuses):
    with refuses(10, 4):
        pool_kv_heads(torch.zeros(10, 3), 4, 2)
    with refuses(4, 3):
        pool_kv_heads(torch.zeros(8, 3), 4, 3)
    for bad in (0, -2):
        with refuses(bad):
            pool_kv_heads(torch.zeros(8, 3), bad, 2)
        with refuses(bad):
            pool_kv_heads(torch.zeros(8, 3), 4, bad)
    with refuses(torch.int64):
        pool_kv_heads(torch.zeros(8, 3, dtype=torch.int64), 4, 2)
    for shape in ((), (8, 3, 5)):
        with refuses(shape):
            pool_kv_heads(torch.zeros(shape), 4, 2)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("head_dim", [None, 9])
def test_converting_to_as_many_kv_heads_changes_nothing(head_dim, bias, same):
    mha = randomised(MultiHeadAttention(E, H, bias=bias, head_dim=head_dim))
    x = make(B, L, E)
    gqa = mha_to_gqa(mha, H)
    same(gqa(x, is_causal=True), mha(x, x, x, is_causal=True))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_converting_equal_heads_changes_nothing(kv_heads, bias, same):
    # where the heads of a group are equal already, their mean is themselves
    mha = randomised(MultiHeadAttention(E, H, bias=bias))
    for name, parameter in mha.named_parameters():
        if name.startswith(("k_proj", "v_proj")):
            heads = parameter.data.unflatten(0, (kv_heads, H // kv_heads, D))
            parameter.data = heads[:, :1].expand_as(heads).flatten(0, 2).clone()
    x = make(B, L, E)
    same(mha_to_gqa(mha, kv_heads)(x, is_causal=True), mha(x, x, x, is_causal=True))


def test_converting_pools_keys_and_values_and_copies_the_rest(same):
    mha = randomised(MultiHeadAttention(E, H))
    before = {name: value.clone() for name, value in mha.state_dict().items()}
    state = mha_to_gqa(mha, K).state_dict()
    assert state.keys() == before.keys()
    for name, value in state.items():
        if name.startswith(("k_proj", "v_proj")):
            same(value, before[name].unflatten(0, (K, H // K, D)).mean(1).flatten(0, 1))
        else:
            same(value, before[name])
    for name, value in mha.state_dict().items():
        assert torch.equal(value, before[name])
        assert state[name].data_ptr() != value.data_ptr()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("training", [True, False])
def test_converting_keeps_dtype_mode_dropout_and_gradients(training, dtype):
    mha = MultiHeadAttention(E, H, dropout=0.25).to(dtype).train(training)
    gqa = mha_to_gqa(mha, K)
    assert gqa.training is training
    assert all(parameter.dtype == dtype and parameter.requires_grad for parameter in gqa.parameters())
    x = make(B, L, E, dtype=dtype)
    assert torch.equal(gqa(x), gqa(x)) is not training


def test_converting_keeps_the_device():
    gqa = mha_to_gqa(MultiHeadAttention(E, H).to("meta"), K)
    assert {parameter.device.type for parameter in gqa.parameters()} == {"meta"}


def test_converting_refuses(refuses):
    with refuses(8, 3):
        mha_to_gqa(MultiHeadAttention(E, H), 3)
    with refuses(0):
        mha_to_gqa(MultiHeadAttention(E, H), 0)
    layers = {
        "kdim": MultiHeadAttention(E, H, kdim=40),
        "vdim": MultiHeadAttention(E, H, vdim=40),
        "out_dim": MultiHeadAttention(E, H, out_dim=40),
    }
    for width, layer in layers.items():
        with refuses(width, 40, E):
            mha_to_gqa(layer, K)
    with refuses(H * 4, H * D):
        mha_to_gqa(MultiHeadAttention(E, H, v_head_dim=4), K)


def test_a_refused_call_leaves_the_cache_alone(refuses):
    module, cache = GroupedQueryAttention(12, 6, 3), KVCache()
    module(torch.zeros(2, 4, 12), past_key_values=cache)
    with refuses((1, 6), 5):
        module(torch.zeros(2, 1, 12), torch.ones(1, 6, dtype=torch.bool), past_key_values=cache)
    with refuses("meta", "cpu"):
        mask = torch.ones(1, 5, dtype=torch.bool, device="meta")
        module(torch.zeros(2, 1, 12), mask, past_key_values=cache)
    assert cache.seq_len == 4
