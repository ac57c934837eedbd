"""The compiled kernels of training against torch, forward and backward; a step with them against a step without.

Sizes are odd where the kernels allow it, and reach over the ends of their vectors and tiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from regard.data.batch import Batch, Padded, Source
from regard.errors import RunError
from regard.models import Transformer, TransformerConfig
from regard.native.training import TrainingKernels, training_kernels
from regard.nn import fused
from regard.nn.attention import attend, join_heads, split_heads
from regard.nn.dropout import dropout
from regard.nn.loss import Objective, Smoothing, linear_cross_entropy
from regard.tasks.sequence_loss import sequence_loss
from regard.train.config import TrainConfig
from regard.train.optimizer import build_optimizer
from regard.train.step import precision_context, seed_step, train_step
from tests.native_engine import LIBRARY, SETS, each_set, needs_native

pytestmark = needs_native

SEEDS = st.integers(0, 2**31 - 1)
LENGTHS = st.integers(1, 37)
TOLERANCE = {"rtol": 1e-4, "atol": 2e-6}


def kernels_of(instruction_set: int, precision: str = "fp32") -> TrainingKernels:
    assert training_kernels() is not None  # which also gives the library its threads
    return TrainingKernels(LIBRARY, instruction_set, precision)


def gradients(result: Tensor, inputs: list[Tensor], seed: int) -> list[Tensor]:
    """The result, and the gradient of a random sum of it for each input."""
    direction = torch.randn(result.shape, generator=torch.Generator().manual_seed(seed))
    return [result.detach(), *torch.autograd.grad((result * direction).sum(), inputs)]


def same(found: list[Tensor], wanted: list[Tensor], smallest: float = 1e-3) -> None:
    """Up to rounding, in proportion to the largest number, or to `smallest` where terms of such a size may cancel."""
    for one, other in zip(found, wanted, strict=True):
        scale = other.abs().max().clamp(min=smallest)
        torch.testing.assert_close((one / scale).double(), (other / scale).double(), **TOLERANCE)


def random_mask(shape: tuple[int, ...]) -> Tensor:
    """Some queries may look at nothing."""
    return (torch.rand(shape) > 0.4) & (torch.rand(*shape[:-1], 1) > 0.2)


MULTIPLYING = {
    f"{name}-{precision}": (number, precision)
    for name, number in SETS.items()
    for precision in ("fp32", "bf16")
    if LIBRARY.rg_train_multiplies(number, precision == "bf16")
}
each_way_of_multiplying = pytest.mark.parametrize(
    ("instruction_set", "precision"),
    MULTIPLYING.values() or [pytest.param(0, "", marks=pytest.mark.skip(reason="products are left to torch here"))],
    ids=list(MULTIPLYING) or ["none"],
)
in_bf16 = pytest.mark.skipif(
    training_kernels("bf16") is None, reason="no compiled kernels multiply bf16 on this processor"
)


def rounded(factor: Tensor, precision: str) -> Tensor:
    """As it enters a product, in double precision, in which products of two such numbers are exact."""
    return (factor.bfloat16() if precision == "bf16" else factor).double()


def laid_out(matrix: Tensor, layout: str) -> Tensor:
    """The same numbers: row by row, column by column, as a part of something wider, or every other one."""
    rows, columns = matrix.shape
    if layout == "turned":
        return matrix.t().contiguous().t()
    if layout == "part":
        wider = torch.full((rows, columns + 5), torch.nan)
        wider[:, 3 : columns + 3] = matrix
        return wider[:, 3 : columns + 3]
    if layout == "scattered":
        wider = torch.full((rows, columns, 2), torch.nan)
        wider[:, :, 1] = matrix
        return wider[:, :, 1]
    return matrix


@each_way_of_multiplying
@settings(max_examples=60)
@given(
    size=st.tuples(*(st.integers(1, 90),) * 3),
    layouts=st.tuples(*(st.sampled_from(["plain", "turned", "part", "scattered"]),) * 2),
    has_bias=st.booleans(),
    add=st.booleans(),
    relu=st.booleans(),
    seed=SEEDS,
)
def test_products_are_those_of_torch(
    instruction_set: int,
    precision: str,
    size: tuple[int, int, int],
    layouts: tuple[str, str],
    has_bias: bool,
    add: bool,
    relu: bool,
    seed: int,
):
    kernels = kernels_of(instruction_set, precision)
    torch.manual_seed(seed)
    rows, inner, columns = size
    left, right, before = torch.randn(rows, inner), torch.randn(inner, columns), torch.randn(rows, columns)
    bias = torch.randn(columns) if has_bias else None
    out = laid_out(before.clone(), "part")
    beside = out._base
    assert beside is not None
    kernels.multiply(laid_out(left, layouts[0]), laid_out(right, layouts[1]), out, bias, add=add, relu=relu)
    product = rounded(left, precision) @ rounded(right, precision)
    wanted = product + (before if add else 0.0) + (0.0 if bias is None else bias)
    torch.testing.assert_close(out.double(), wanted.relu() if relu else wanted, rtol=1e-5, atol=1e-5 * inner**0.5)
    assert beside[:, :3].isnan().all()  # nothing is written where nothing belongs
    assert beside[:, columns + 3 :].isnan().all()


@each_way_of_multiplying
@pytest.mark.parametrize("layouts", [("plain", "turned"), ("plain", "plain"), ("turned", "plain")], ids="-".join)
@pytest.mark.parametrize("size", [(1061, 521, 71), (71, 521, 1061)], ids=["high", "wide"])
@pytest.mark.parametrize("add", [False, True], ids=["new", "added"])
def test_products_of_several_blocks_have_the_same_bits_for_any_threads_and_any_other_rows_and_columns(
    instruction_set: int,
    precision: str,
    layouts: tuple[str, str],
    size: tuple[int, int, int],
    add: bool,
    monkeypatch: pytest.MonkeyPatch,
):
    """Forward, to the gradient of the rows, and to that of the weight: more of all three sizes than a block has."""
    kernels, (rows, inner, columns) = kernels_of(instruction_set, precision), size
    torch.manual_seed(11)
    left, right = laid_out(torch.randn(rows, inner), layouts[0]), laid_out(torch.randn(inner, columns), layouts[1])
    bias, before = torch.randn(columns), torch.randn(rows, columns)
    found: list[Tensor] = []
    for threads in (1, 2, 3, 7, 40):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        found.append(before.clone())
        kernels.multiply(left, right, found[-1], bias, add=add, relu=True)
    wanted = rounded(left, precision) @ rounded(right, precision) + bias + (before if add else 0.0)
    torch.testing.assert_close(found[0].double(), wanted.relu(), rtol=1e-4, atol=3e-4)
    assert all(torch.equal(found[0], other) for other in found[1:])
    for own, others in ((slice(0, 1), slice(0, 1)), (slice(3, 20), slice(1, 70)), (slice(30, 61), slice(40, 57))):
        part = before[own, others].clone()
        kernels.multiply(left[own], right[:, others], part, bias[others], add=add, relu=True)
        assert torch.equal(part, found[0][own, others])


class RoundedLinear(torch.autograd.Function):
    """xWᵀ + b as three products of rounded factors, whatever autograd would make of the rounding."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, precision: str) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.precision, ctx.has_bias = precision, bias is not None
        product = rounded(x, precision) @ rounded(weight, precision).t()
        return (product if bias is None else product + bias).float()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (d_out,), (x, weight) = gradients, ctx.saved_tensors
        d_rounded = rounded(d_out, ctx.precision)
        d_weight = d_rounded.flatten(0, -2).t() @ rounded(x, ctx.precision).flatten(0, -2)
        d_bias = d_out.double().flatten(0, -2).sum(0).float() if ctx.has_bias else None
        return (d_rounded @ rounded(weight, ctx.precision)).float(), d_weight.float(), d_bias, None


rounded_linear: Any = RoundedLinear.apply


@each_way_of_multiplying
@settings(max_examples=20)
@given(rows=st.integers(1, 40), inputs=st.integers(1, 40), outputs=st.integers(1, 40), seed=SEEDS)
@pytest.mark.parametrize("has_bias", [False, True])
def test_a_projection_is_that_of_torch(
    instruction_set: int, precision: str, has_bias: bool, rows: int, inputs: int, outputs: int, seed: int
):
    kernels = kernels_of(instruction_set, precision)
    torch.manual_seed(seed)
    x = torch.randn(2, rows, inputs, requires_grad=True)
    weight = torch.randn(outputs + 3, inputs, requires_grad=True)
    bias = torch.randn(outputs, requires_grad=True) if has_bias else None
    given = [x, weight, *([bias] if bias is not None else [])]
    found = fused.projected(kernels, x, weight[:outputs], bias)  # some rows of a larger matrix
    positive = fused.projected(kernels, x, weight[:outputs], bias).relu_()  # changed in place, as a layer may do
    same(gradients(found, given, seed), gradients(rounded_linear(x, weight[:outputs], bias, precision), given, seed))
    wanted = rounded_linear(x, weight[:outputs], bias, precision).relu()
    same(gradients(positive, given, seed), gradients(wanted, given, seed))


@each_set
@settings(max_examples=25)
@given(batch=st.integers(1, 5), queries=LENGTHS, keys=LENGTHS, heads=st.integers(1, 3), wide=st.booleans(), seed=SEEDS)
@pytest.mark.parametrize("kind", ["self", "self-masked", "cross", "cross-masked", "keys-masked"])
def test_attention_is_that_of_torch(
    instruction_set: int, kind: str, batch: int, queries: int, keys: int, heads: int, wide: bool, seed: int
):
    torch.manual_seed(seed)
    width = heads * (48 if wide else 16)
    keys = queries if kind.startswith("self") else keys
    q, k, v = (torch.randn(batch, length, width) for length in (queries, keys, keys))
    mask = {
        "self": None,
        "cross": None,
        "self-masked": random_mask((batch, 1, queries, keys)),
        "cross-masked": random_mask((1, 1, queries, keys)),
        "keys-masked": random_mask((batch, 1, 1, keys)),
    }[kind]
    given = [torch.cat([q, k, v], -1)] if kind.startswith("self") else [q, torch.cat([k, v], -1)]
    inputs = [each.requires_grad_() for each in given]
    doubles = [each.detach().double().requires_grad_() for each in inputs]
    parts = doubles[0].split(width, -1) if len(inputs) == 1 else (doubles[0], *doubles[1].split(width, -1))
    wanted = join_heads(attend(*(split_heads(part, heads) for part in parts), mask))
    memory = inputs[1] if len(inputs) > 1 else None
    found = fused.attention(kernels_of(instruction_set), inputs[0], memory, mask, heads)
    same(gradients(found, inputs, seed), gradients(wanted, doubles, seed))
    if mask is not None:
        blind = ~mask.any(-1).expand(batch, 1, queries)[:, 0]
        assert (found[blind] == 0).all()


def hashed(places: np.ndarray, seed: int) -> np.ndarray:
    """Of each place of a tensor, as training.c writes it."""
    low, high = np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32)
    h = (places.astype(np.uint32) * np.uint32(0x9E3779B1)) ^ low
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x7FEB352D)
    h ^= h >> np.uint32(15)
    h += high
    h *= np.uint32(0x846CA68B)
    return h ^ (h >> np.uint32(16))


@each_set
@settings(max_examples=20)
@given(count=st.integers(1, 20_000), probability=st.floats(0.0, 0.95), seed=st.integers(0, 2**63 - 1))
def test_what_is_dropped_is_decided_by_place_and_seed_alone(
    instruction_set: int, count: int, probability: float, seed: int
):
    x, y, out = torch.randn(count), torch.randn(count), torch.empty(count)
    kernels_of(instruction_set).drop_add(x, y, probability, seed, out)
    keep = torch.from_numpy(hashed(np.arange(count), seed) >= np.uint32(int(probability * 2**32)))
    torch.testing.assert_close(out, x + torch.where(keep, y / (1 - probability), 0.0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5])
def test_dropout_drops_as_many_as_it_should_and_independently(probability: float):
    count = 1_000_000
    torch.manual_seed(5)
    with fused.using(training_kernels()):
        x = torch.ones(count, requires_grad=True)
        first, second = dropout(x, probability, training=True), dropout(x, probability, training=True)
    masks = [(each == 0).double() for each in (first.detach(), second.detach())]
    deviation = (probability * (1 - probability) / count) ** 0.5
    for mask in masks:
        assert abs(float(mask.mean()) - probability) < 5 * deviation
        for apart in (1, 2, 16, 128):
            both = float((mask[:-apart] * mask[apart:]).mean())
            assert abs(both - probability**2) < 5 * (probability**2 * (1 - probability**2) / count) ** 0.5
    assert abs(float((masks[0] * masks[1]).mean()) - probability**2) < 5 * deviation
    (gradient,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(gradient, first.detach())


@each_set
@settings(max_examples=15)
@given(
    rows=st.integers(1, 150), width=st.sampled_from([16, 48, 112]), probability=st.sampled_from([0.0, 0.3]), seed=SEEDS
)
@pytest.mark.parametrize("has_sublayer", [False, True])
def test_sum_and_norm_are_those_of_torch(
    instruction_set: int, has_sublayer: bool, rows: int, width: int, probability: float, seed: int
):
    torch.manual_seed(seed)
    kernels, norm = kernels_of(instruction_set), nn.LayerNorm(width)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x, y = torch.randn(rows, width, requires_grad=True), torch.randn(rows, width, requires_grad=True)
    inputs = [x, *([y] if has_sublayer else []), norm.weight, norm.bias]
    torch.manual_seed(seed)
    found = fused.add_norm(kernels, norm, x, y if has_sublayer else None, probability)
    torch.manual_seed(seed)
    added = x if not has_sublayer else x + (fused.drop_add(kernels, None, y, probability) if probability else y)
    same(gradients(found, inputs, seed), gradients(norm(added), inputs, seed))


@each_set
@settings(max_examples=15)
@given(rows=st.integers(1, 150), inputs=st.integers(1, 30), outputs=st.sampled_from([16, 80]), seed=SEEDS)
def test_the_inner_layer_is_that_of_torch(instruction_set: int, rows: int, inputs: int, outputs: int, seed: int):
    torch.manual_seed(seed)
    layer, x = nn.Linear(inputs, outputs), torch.randn(rows, inputs, requires_grad=True)
    given = [x, layer.weight, layer.bias]
    found = fused.rectified(kernels_of(instruction_set), x, layer)
    same(gradients(found, given, seed), gradients(layer(x).relu(), given, seed))


@each_set
@settings(max_examples=15)
@given(rows=st.integers(1, 20), classes=st.integers(1, 100), epsilon=st.sampled_from([0.0, 0.1]), seed=SEEDS)
@pytest.mark.parametrize("form", ["others", "all"])
def test_the_loss_is_that_of_torch(instruction_set: int, form: str, rows: int, classes: int, epsilon: float, seed: int):
    torch.manual_seed(seed)
    features, weight = torch.randn(rows, 7, requires_grad=True), torch.randn(classes, 7, requires_grad=True)
    truth, objective = torch.randint(classes, (rows,)), Objective(Smoothing(epsilon, form))
    plain = linear_cross_entropy(features, weight, None, truth, objective)
    with fused.using(kernels_of(instruction_set)):
        found = linear_cross_entropy(features, weight, None, truth, objective)
    inputs = [features, weight]
    same(gradients(found.smoothed, inputs, seed), gradients(plain.smoothed, inputs, seed), smallest=0.1)
    assert found.truth == pytest.approx(plain.truth, rel=1e-5, abs=1e-5)


def test_what_is_not_finite_is_not_hidden():
    """A step whose gradient is not finite is thrown away, so it must be seen."""
    kernels = training_kernels()
    assert kernels is not None
    packed = torch.randn(2, 5, 48, requires_grad=True)
    with torch.no_grad():
        packed[1, 3, 20] = torch.nan  # a key
    found = fused.attention(kernels, packed, None, None, 1)
    assert found[0].isfinite().all()
    assert found[1].isnan().all()
    layer, x = nn.Linear(7, 16), torch.randn(3, 7, requires_grad=True)
    with torch.no_grad():
        x[1, 2] = torch.nan
    assert fused.rectified(kernels, x, layer)[1].isnan().all()
    for number, precision in MULTIPLYING.values():
        left, out = torch.randn(40, 50), torch.empty(40, 60)
        left[3, 7], left[5, 49] = torch.nan, torch.inf
        kernels_of(number, precision).multiply(left, torch.ones(50, 60), out)
        assert (~out.isfinite()).all(1).nonzero().flatten().tolist() == [3, 5]
    logits, results = torch.randn(3, 37), [torch.empty(3), torch.empty(3)]
    logits[1, 36] = torch.nan
    kernels.cross_entropy(logits, torch.zeros(3, dtype=torch.int64), 0.9, *results)
    assert results[0].isnan().tolist() == [False, True, False]
    assert logits[1].isnan().all()


def test_the_library_refuses_what_it_cannot_do():
    kernels = training_kernels()
    assert kernels is not None
    with pytest.raises(RunError, match="an argument is out of range"):
        kernels.attend(torch.zeros(1, 2, 9), None, None, 1, torch.zeros(16 * 2), torch.zeros(1, 2, 3))
    left, right, out = torch.zeros(2, 3), torch.zeros(3, 5), torch.zeros(2, 5)
    for arguments in (
        (left, right.t(), out),
        (left, right, out.t()),
        (left, right, torch.zeros(5, 2).t()),
        (left, right, out, torch.zeros(1)),
        (left, right.double(), out),
    ):
        with pytest.raises(RunError, match="its sizes, its types or its layout do not fit"):
            kernels.multiply(*arguments)
    with pytest.raises(RunError, match="an argument is out of range"):
        kernels_of(max(SETS.values())).multiply(torch.zeros(2, 3), torch.zeros(3, 5), torch.zeros(2, 5))  # plain C
    with pytest.raises(RunError, match="an argument is out of range"):
        kernels.cross_entropy(torch.zeros(1, 5), torch.tensor([5]), 0.9, torch.zeros(1), torch.zeros(1))


def a_batch(seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(4, 29, (7, 11), generator=generator)
    target = torch.randint(4, 29, (7, 13), generator=generator)
    lengths = torch.tensor([11, 3, 1, 7, 5, 11, 2])[:, None] >= torch.arange(1, 12)
    mask = torch.tensor([13, 2, 5, 1, 9, 4, 6])[:, None] >= torch.arange(1, 14)
    return Batch(Source((Padded(source * lengths, lengths),)), target, target.flip(1), mask, int(mask.sum()))


def model_of(words: int = 29, **settings: Any) -> Transformer:
    torch.manual_seed(3)
    config = TransformerConfig(
        **{
            "width": 32,
            "heads": 2,
            "feedforward": 48,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "dropout": 0.0,
            **settings,
        }
    )
    return Transformer(config, words, words)


def step_of(model: Transformer, kernels: fused.Kernels | None, step: int = 1) -> dict[str, Tensor]:
    """The gradients of a step."""
    model.zero_grad()
    seed_step(1, step)
    with fused.using(kernels):
        sequence_loss(model, a_batch(step), Objective(Smoothing(0.1))).smoothed.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"norm": "pre"},
        {"share": "none", "positions": "learned", "max_positions": 20},
        {"attention_dropout": 0.1, "activation_dropout": 0.1},
        {"key_width": 16, "value_width": 32},
        {"heads": 1, "width": 24},
        {"bias": False},
    ],
    ids=str,
)
def test_a_step_has_the_gradients_of_one_by_torch(settings: dict[str, Any]):
    """Also where some of it, or all, is none of the kernels' business."""
    model = model_of(**settings).train()
    if settings.get("attention_dropout"):
        model = model.eval()  # two streams of random numbers cannot be compared
    plain, found = step_of(model, None), step_of(model, training_kernels())
    assert plain.keys() == found.keys()
    same(list(found.values()), list(plain.values()))


@in_bf16
@pytest.mark.parametrize("words", [29, 5003])
@pytest.mark.parametrize("seed", range(3))
def test_a_step_in_bf16_is_closer_to_one_in_fp32_than_torchs_is(seed: int, words: int):
    """Sums, and all between the products, stay fp32; torch's autocast rounds results too."""
    torch.manual_seed(seed)
    model = model_of(words, width=64, heads=4, feedforward=128).train()
    wanted, found = step_of(model, None), step_of(model, training_kernels("bf16"))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        by_torch = step_of(model, None)
    distance = [sum(float((step[name] - wanted[name]).square().sum()) for name in wanted) for step in (found, by_torch)]
    size = sum(float(each.square().sum()) for each in wanted.values())
    assert 0 < distance[0] < distance[1] < 0.01 * size


@in_bf16
def test_training_in_bf16_needs_nothing_of_torch():
    with fused.using(training_kernels("bf16")), precision_context("bf16"):
        assert not torch.is_autocast_enabled("cpu")
    with fused.using(training_kernels()), precision_context("bf16"):
        assert torch.is_autocast_enabled("cpu")


def test_under_autocast_torch_does_the_layers():
    """Autocast gives some tensors of a layer in bf16 and others in fp32; the kernels are made for fp32 alone."""
    model, batch = model_of().train(), a_batch(1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        plain = model.features(batch)
        with fused.using(training_kernels()):
            found = model.features(batch)
    assert torch.equal(plain, found)


def trained(steps: int, kernels: TrainingKernels | None) -> dict[str, Tensor]:
    model = model_of(dropout=0.3, width=64, feedforward=128).train()
    optimizer = build_optimizer(model, replace(TrainConfig(), peak_rate=1e-3))
    with fused.using(kernels):
        for step in range(1, steps + 1):
            seed_step(1, step)
            batches = [a_batch(step)]
            train_step(
                model,
                optimizer,
                batches,
                loss_of=sequence_loss,
                objective=Objective(Smoothing(0.1)),
                clip=1.0,
                precision="fp32" if kernels is None else kernels.precision,
            )
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("precision", ["fp32", pytest.param("bf16", marks=in_bf16)])
def test_the_bits_are_the_same_again_and_for_any_number_of_threads(precision: str, monkeypatch: pytest.MonkeyPatch):
    kernels = training_kernels(precision)
    once = trained(4, kernels)
    again = trained(4, kernels)
    with_threads: Callable[[int], None] = lambda count: monkeypatch.setattr(torch, "get_num_threads", lambda: count)  # noqa: E731
    with_threads(3)
    threaded = trained(4, kernels)
    assert all(torch.equal(once[name], again[name]) for name in once)
    assert all(torch.equal(once[name], threaded[name]) for name in once)
    assert any(not torch.equal(once[name], other) for name, other in trained(4, None).items())  # another dropout


def test_what_is_no_product_of_matrices_is_left_to_torch():
    """Which broadcasts, or says what is wrong."""
    x, weight = torch.randn(4000, 7, requires_grad=True), torch.randn(32, 7)
    kernels = training_kernels()
    assert kernels is not None
    with fused.using(kernels):
        assert fused.takes_product(x, weight, torch.ones(32)) is (kernels if kernels.multiplies else None)
        assert fused.takes_product(x, weight, torch.ones(1)) is None
        assert fused.takes_product(x, torch.randn(32, 8), None) is None
        assert fused.takes_product(x[:5], weight, None) is None  # small


def test_tensors_in_any_layout_have_the_loss_and_gradients_of_torch():
    torch.manual_seed(5)
    features, weight = torch.randn(7, 300).t().requires_grad_(), torch.randn(7, 29).t().requires_grad_()
    bias, truth = torch.randn(58)[::2].requires_grad_(), torch.randint(29, (300,))
    given, objective = [features, weight, bias], Objective(Smoothing(0.1))
    plain = linear_cross_entropy(*given, truth, objective)
    with fused.using(training_kernels()):
        found = linear_cross_entropy(*given, truth, objective)
    same(gradients(found.smoothed, given, 1), gradients(plain.smoothed, given, 1))


def test_two_passes_that_are_held_to_agree_have_the_gradients_of_torch():
    model = model_of().eval()  # without dropout, whose random numbers are others
    objective = Objective(Smoothing(0.1), consistency=0.5)
    truth = torch.randint(29, (26,))
    features = torch.randn(26, 32, requires_grad=True)
    given = [features, model.output_weight]
    plain = linear_cross_entropy(*given, None, truth, objective)
    with fused.using(training_kernels()):
        found = linear_cross_entropy(*given, None, truth, objective)
    same(gradients(found.smoothed, given, 1), gradients(plain.smoothed, given, 1))


def test_a_gradient_of_a_gradient_is_refused_and_not_dropped():
    x, weight = torch.randn(4000, 7, requires_grad=True), torch.randn(32, 7)
    kernels = training_kernels()
    assert kernels is not None
    (once,) = torch.autograd.grad(fused.projected(kernels, x, weight, None).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        once.sum().backward()


def test_nothing_changes_where_no_gradient_is_asked_for():
    model, batch = model_of(dropout=0.3).eval(), a_batch(1)
    with torch.no_grad():
        plain = model(batch)
        with fused.using(training_kernels()):
            assert torch.equal(model(batch), plain)
