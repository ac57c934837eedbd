"""The explicit softmax, which a probe sees, equals the fused kernel, which nobody sees."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.nn import MultiHeadAttention, Probe, attend

TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5}
sizes = st.sampled_from([1, 2, 3, 5, 7, 11, 13])


@dataclass(frozen=True)
class Case:
    """Queries, keys and values, and who may look where; some queries may look at nothing."""

    inputs: tuple[Tensor, Tensor, Tensor]
    mask: Tensor | None

    def run(self, probe: Probe | None) -> tuple[Tensor, list[Tensor]]:
        """Output and gradients."""
        leaves = [each.clone().requires_grad_() for each in self.inputs]
        output = attend(leaves[0], leaves[1], leaves[2], self.mask, probe=probe)
        direction = torch.linspace(-1, 1, output.numel(), dtype=output.dtype).view(output.shape)
        return output.detach(), list(torch.autograd.grad((output * direction).sum(), leaves))


@st.composite
def cases(draw: st.DrawFn, dtype: torch.dtype) -> Case:
    batch, heads, queries, keys, width, value_width = (draw(sizes) for _ in range(6))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=dtype)

    inputs = (
        normal(batch, heads, queries, width),
        normal(batch, heads, keys, width),
        normal(batch, heads, keys, value_width),
    )
    if draw(st.booleans()):
        return Case(inputs, None)
    # As wide as the batch or shared by it, one row for all queries or one for each.
    shape = (draw(st.sampled_from([1, batch])), 1, draw(st.sampled_from([1, queries])), keys)
    mask = torch.rand(shape, generator=generator) < draw(st.sampled_from([0.2, 0.5, 0.9]))
    mask[draw(st.integers(0, shape[0] - 1)), 0, draw(st.integers(0, shape[2] - 1))] = False
    return Case(inputs, mask)


def check_paths(case: Case, tolerance: float) -> None:
    probe = Probe()
    explicit, explicit_gradients = case.run(probe)
    fused, fused_gradients = case.run(None)
    assert torch.allclose(explicit, fused, rtol=tolerance, atol=tolerance)
    for one, other in zip(explicit_gradients, fused_gradients, strict=True):
        assert bool(one.isfinite().all())
        assert bool(other.isfinite().all())
        assert torch.allclose(one, other, rtol=tolerance, atol=tolerance)
    weights = probe.looks[0].weights
    seen = torch.ones(()) if case.mask is None else case.mask.any(-1).to(weights.dtype)
    assert torch.allclose(weights.sum(-1), seen.to(weights.dtype).expand(weights.shape[:-1]), atol=1e-6)
    if case.mask is None:
        return
    mask = case.mask.expand(weights.size(0), weights.size(1), weights.size(2), -1)
    blind = ~mask.any(-1)
    assert bool(blind.any())
    assert bool((weights[~mask] == 0.0).all())
    for output, gradients in ((explicit, explicit_gradients), (fused, fused_gradients)):
        assert bool((output[blind] == 0.0).all())
        assert bool((gradients[0][blind] == 0.0).all())


@settings(max_examples=60)
@given(case=cases(torch.float64))
def test_explicit_equals_fused_in_double_precision(case: Case):
    check_paths(case, 1e-12)


@settings(max_examples=60)
@given(case=cases(torch.float32))
def test_explicit_equals_fused_in_single_precision(case: Case):
    check_paths(case, 1e-5)


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_explicit_equals_fused_at_the_size_of_a_sentence(dtype: torch.dtype):
    torch.manual_seed(3)
    inputs = (torch.randn(3, 2, 67, 31), torch.randn(3, 2, 71, 31), torch.randn(3, 2, 71, 29))
    mask = torch.rand(3, 1, 67, 71) < 0.5
    mask[1, :, 5] = False
    check_paths(Case(tuple(each.to(dtype) for each in inputs), mask), TOLERANCES[dtype])  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("own_memory", [True, False])
def test_a_layer_gives_the_same_with_and_without_a_probe(dtype: torch.dtype, own_memory: bool):
    torch.manual_seed(5)
    layer = MultiHeadAttention(14, 3, key_width=5, value_width=7).to(dtype)
    x = torch.randn(2, 11, 14, dtype=dtype)
    memory = None if own_memory else torch.randn(2, 13, 14, dtype=dtype)
    keys = 11 if own_memory else 13
    mask = torch.rand(2, 1, 11, keys) < 0.5
    mask[0, 0, 3] = False
    probe = Probe()
    looked_at, alone = layer(x, memory, mask, probe), layer(x, memory, mask)
    assert torch.allclose(looked_at, alone, rtol=TOLERANCES[dtype], atol=TOLERANCES[dtype])
    assert torch.allclose(alone[0, 3], layer.output.bias)  # nothing came through but the bias
    assert [look.weights.shape for look in probe.looks] == [(2, 3, 11, keys)]


def test_a_probe_keeps_what_each_attention_did_and_no_graph():
    torch.manual_seed(7)
    layer, probe = MultiHeadAttention(14, 2), Probe()
    x = torch.randn(3, 5, 14, requires_grad=True)
    layer(layer(x, probe=probe), probe=probe)
    assert len(probe.looks) == 2
    first = probe.looks[0]
    assert torch.equal(first.weights, first.scores.softmax(-1))
    assert torch.allclose(first.scores, first.queries @ first.keys.mT / 7**0.5)
    assert not any(tensor.requires_grad for tensor in (first.queries, first.keys, first.scores, first.weights))
