"""Every kernel of every instruction set against plain arithmetic: integers exactly, floats to a stated tolerance.

Sizes are odd on purpose: a kernel's vectors, groups and panels divide none of them.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.native import library as native
from regard.native.packing import packed_fp32, packed_int8, padded_row, quantised
from tests.native_engine import LIBRARY, each_set, needs_native

pytestmark = needs_native

PLAIN, RELU, ADD = 0, 1, 2
SIZES = st.integers(1, 150)
SEEDS = st.integers(0, 2**32 - 1)


def at(array: np.ndarray) -> int:
    return array.ctypes.data


def integers_of(x: np.ndarray, instruction_set: int) -> tuple[np.ndarray, np.ndarray]:
    """Each row quantised by the library: whole numbers, and what they are multiplied by."""
    q, scales = np.empty(x.shape, np.int16), np.empty(len(x), np.float32)
    assert LIBRARY.rg_test_quantise(instruction_set, at(x), *x.shape, at(q), at(scales)) == 0
    return q, scales


def product(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, instruction_set: int, *, int8: bool, how: int, out: np.ndarray
) -> np.ndarray:
    """What the library makes of xWᵀ + b."""
    outputs, found = len(weight), out.copy()
    if int8:
        whole, scales = quantised(weight)
        arrays = [packed_int8(whole), padded_row(scales, outputs), padded_row(bias, outputs)]
        matrix = native.Matrix(weight.shape[1], outputs, *map(at, arrays))
    else:
        arrays = [packed_fp32(weight), padded_row(bias, outputs)]
        matrix = native.Matrix(weight.shape[1], outputs, at(arrays[0]), None, at(arrays[1]))
    code = LIBRARY.rg_test_multiply(instruction_set, at(x), len(x), ctypes.byref(matrix), how, at(found))
    assert code == 0
    return found


def numbers(generator: np.random.Generator, *shape: int) -> np.ndarray:
    return generator.normal(size=shape).astype(np.float32)


@each_set
@settings(max_examples=20)
@given(rows=st.integers(1, 13), inputs=SIZES, seed=SEEDS)
def test_a_row_becomes_the_nearest_whole_numbers(instruction_set: int, rows: int, inputs: int, seed: int):
    x = numbers(np.random.default_rng(seed), rows, inputs) * np.float32(10.0) ** np.arange(rows)[:, None].astype("f4")
    q, scales = integers_of(x, instruction_set)
    largest = np.abs(x).max(1)
    np.testing.assert_allclose(scales, largest / 127, rtol=1e-6)
    assert (np.abs(q).max(1) == 127).all()
    assert (np.abs(q * scales[:, None] - x) <= 0.5001 * scales[:, None]).all()


@each_set
def test_a_row_of_zeros_stays_zero_and_one_that_is_not_finite_spoils_itself_alone(instruction_set: int):
    x = np.ones((4, 37), np.float32)
    x[0], x[1, 5], x[2, 36] = 0, np.nan, np.inf
    q, scales = integers_of(x, instruction_set)
    assert scales[0] == 0
    assert (q[0] == 0).all()
    assert np.isnan(scales[1])
    assert np.isnan(scales[2])
    assert np.isfinite(scales[3])
    assert (q[3] == 127).all()


@each_set
@settings(max_examples=40)
@given(
    rows=st.integers(1, 70),
    inputs=SIZES | st.sampled_from([64, 128, 192]),  # what fills the tiles of AMX, and what does not
    outputs=SIZES,
    how=st.sampled_from([PLAIN, RELU, ADD]),
    seed=SEEDS,
)
def test_int8_sums_are_those_of_integers(
    instruction_set: int, rows: int, inputs: int, outputs: int, how: int, seed: int
):
    """Exactly: the sums are computed again in 64 bits, and what follows them in the same fp32 operations."""
    generator = np.random.default_rng(seed)
    x, weight, bias = numbers(generator, rows, inputs), numbers(generator, outputs, inputs), numbers(generator, outputs)
    out = numbers(generator, rows, outputs)
    found = product(x, weight, bias, instruction_set, int8=True, how=how, out=out)
    (q, scales), (whole, by_output) = integers_of(x, instruction_set), quantised(weight)
    sums = q.astype(np.int64) @ whole.astype(np.int64).T
    expected = sums.astype(np.float32) * (by_output[None] * scales[:, None])
    if how == ADD:  # a fused multiply-add may round once where this rounds twice
        np.testing.assert_allclose(found, expected + bias + out, rtol=1e-5, atol=1e-5)
        return
    expected = expected.astype(np.float64) + bias
    expected = np.maximum(expected, 0) if how == RELU else expected
    np.testing.assert_allclose(found, expected, rtol=3e-7, atol=1e-6)


@each_set
@pytest.mark.parametrize("inputs", [64, 320])
def test_a_row_has_the_same_bits_among_any_number_of_rows(instruction_set: int, inputs: int):
    """Whether tiles or vectors sum it."""
    generator = np.random.default_rng(inputs)
    x, weight, bias = numbers(generator, 55, inputs), numbers(generator, 97, inputs), numbers(generator, 97)

    def rows(first: int, last: int) -> np.ndarray:
        out = np.zeros((last - first, 97), np.float32)
        return product(x[first:last], weight, bias, instruction_set, int8=True, how=PLAIN, out=out)

    whole = rows(0, 55)
    for first, last in ((0, 1), (3, 16), (3, 19), (16, 48), (20, 55), (54, 55)):
        np.testing.assert_array_equal(rows(first, last), whole[first:last])


@each_set
@pytest.mark.parametrize("inputs", [1031, 1024])
def test_the_largest_sums_do_not_saturate(instruction_set: int, inputs: int):
    """All weights and activations at their limit, of both signs: what 16 bits could not hold."""
    for weight_sign in (1, -1):
        for sign in (1, -1):
            x, weight = np.full((39, inputs), sign, np.float32), np.full((65, inputs), weight_sign, np.float32)
            zeros = np.zeros(65, np.float32)
            found = product(x, weight, zeros, instruction_set, int8=True, how=PLAIN, out=np.zeros((39, 65), np.float32))
            np.testing.assert_allclose(found, sign * weight_sign * inputs, rtol=1e-6)


@each_set
@settings(max_examples=25)
@given(rows=st.integers(1, 13), inputs=SIZES, outputs=SIZES, how=st.sampled_from([PLAIN, RELU, ADD]), seed=SEEDS)
def test_fp32_products_are_those_of_torch(
    instruction_set: int, rows: int, inputs: int, outputs: int, how: int, seed: int
):
    generator = np.random.default_rng(seed)
    x, weight, bias = numbers(generator, rows, inputs), numbers(generator, outputs, inputs), numbers(generator, outputs)
    out = numbers(generator, rows, outputs)
    found = product(x, weight, bias, instruction_set, int8=False, how=how, out=out)
    expected = x.astype(np.float64) @ weight.T.astype(np.float64) + bias
    expected = np.maximum(expected, 0) if how == RELU else expected + out if how == ADD else expected
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-5)


@each_set
@pytest.mark.parametrize("int8", [True, False], ids=["int8", "fp32"])
def test_a_row_has_the_same_bits_alone_and_among_300(instruction_set: int, int8: bool):
    generator = np.random.default_rng(7)
    x, weight, bias = numbers(generator, 300, 83), numbers(generator, 131, 83), numbers(generator, 131)

    def of(rows: np.ndarray) -> np.ndarray:
        out = np.zeros((len(rows), 131), np.float32)
        return product(rows, weight, bias, instruction_set, int8=int8, how=PLAIN, out=out)

    together = of(x)
    for size in (1, 2, 3, 5, 7, 64):
        for begin in range(0, 300, 19):
            assert np.array_equal(of(np.ascontiguousarray(x[begin : begin + size])), together[begin : begin + size])


@each_set
@settings(max_examples=20)
@given(rows=st.integers(1, 5), width=st.integers(1, 200), seed=SEEDS)
def test_layer_norm_is_that_of_torch(instruction_set: int, rows: int, width: int, seed: int):
    generator = np.random.default_rng(seed)
    x, gain, bias = 3 * numbers(generator, rows, width) + 1, numbers(generator, width), numbers(generator, width)
    found, norm = np.empty_like(x), native.Norm(at(gain), at(bias))
    assert LIBRARY.rg_test_norm(instruction_set, at(x), rows, width, ctypes.byref(norm), 1e-5, at(found)) == 0
    tensors = (torch.from_numpy(part).double() for part in (x, gain, bias))
    first, *others = tensors
    expected = torch.nn.functional.layer_norm(first, (width,), *others, eps=1e-5).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)


def shape_of(heads: int, key_width: int, value_width: int) -> native.Shape:
    return native.Shape(heads=heads, key_width=key_width, value_width=value_width)


@each_set
@settings(max_examples=25)
@given(
    heads=st.integers(1, 5), key_width=st.integers(1, 37), value_width=st.integers(1, 67), count=st.integers(0, 41),
    over_source=st.booleans(), seed=SEEDS,
)  # fmt: skip
def test_attention_is_that_of_the_formula(
    instruction_set: int, heads: int, key_width: int, value_width: int, count: int, over_source: bool, seed: int
):
    """Over the decoder's past and over a source; a query with no key gets 0."""
    generator = np.random.default_rng(seed)
    query, keys = numbers(generator, heads, key_width), numbers(generator, count, heads, key_width)
    values = numbers(generator, count, heads, value_width)
    flat = (keys.reshape(count, heads * key_width), values.reshape(count, heads * value_width))
    memory = np.ascontiguousarray(np.concatenate(flat, 1))
    shape, out = shape_of(heads, key_width, value_width), np.full((heads, value_width), np.nan, np.float32)
    weights = np.empty((heads, count), np.float32)
    code = LIBRARY.rg_test_attend(
        instruction_set, over_source, at(query), at(memory), count, ctypes.byref(shape), at(weights), at(out)
    )
    assert code == 0
    scores = torch.einsum("hd,khd->hk", *(torch.from_numpy(one).double() for one in (query, keys)))
    expected = (scores / math.sqrt(key_width)).softmax(-1)
    np.testing.assert_allclose(weights, expected.numpy(), rtol=1e-5, atol=2e-6)
    looked = torch.einsum("hk,khd->hd", expected, torch.from_numpy(values).double()).numpy()
    np.testing.assert_allclose(out, looked, rtol=1e-4, atol=1e-5)


def ranked(logits: np.ndarray, never: np.ndarray, most: int, instruction_set: int) -> tuple[Any, Any, float]:
    log_probs, tokens = np.empty(most, np.float32), np.empty(most, np.int32)
    log_sum = np.empty(1, np.float32)
    count = LIBRARY.rg_test_rank(
        instruction_set, at(logits), len(logits), at(never), most, at(log_probs), at(tokens), at(log_sum)
    )
    return log_probs[:count].tolist(), tokens[:count].tolist(), float(log_sum[0])


@each_set
@settings(max_examples=25)
@given(vocabulary=st.integers(1, 300), most=st.integers(1, 21), spread=st.sampled_from([0.01, 1, 40]), seed=SEEDS)
def test_one_pass_finds_the_likeliest_tokens_and_the_log_sum(
    instruction_set: int, vocabulary: int, most: int, spread: float, seed: int
):
    generator = np.random.default_rng(seed)
    logits = (spread * numbers(generator, vocabulary)).round(1).astype(np.float32)  # so that some are equal
    never = np.zeros(vocabulary + 64, np.uint8)
    never[generator.integers(0, vocabulary, 2)] = 1
    found, tokens, log_sum = ranked(logits, never, most, instruction_set)
    expected = torch.from_numpy(logits).double().log_softmax(-1).numpy()
    assert log_sum == pytest.approx(float(torch.from_numpy(logits).double().logsumexp(-1)), rel=1e-6, abs=2e-6)
    allowed = [token for token in range(vocabulary) if not never[token]]
    best = sorted(allowed, key=lambda token: (-logits[token], token))[:most]
    assert tokens == best
    np.testing.assert_allclose(found, expected[best], rtol=1e-6, atol=3e-6)


@each_set
def test_logits_that_are_not_numbers_leave_no_probability(instruction_set: int):
    logits, never = np.zeros(70, np.float32), np.zeros(134, np.uint8)
    logits[67] = np.nan
    found, _, log_sum = ranked(logits, never, 3, instruction_set)
    assert math.isnan(log_sum)
    assert all(math.isnan(one) for one in found)


@each_set
def test_the_self_check_passes(instruction_set: int):
    assert LIBRARY.rg_self_check(instruction_set) == 0
