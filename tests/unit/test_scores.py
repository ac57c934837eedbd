"""Each attention score against its formula, position by position; and what every attention over them holds."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cosine_similarity

from regard.errors import ConfigError, RegardError
from regard.nn.attention import KEY_STRIDE, padded_keys
from regard.nn.probe import Probe
from regard.nn.scores import SCORES, Score, ScoreShape, attend_by_score, masked_softmax

PRIMES = (1, 2, 3, 5, 7, 11, 13)
LIMIT = 17

# As the papers write them: of one state s and one position i of the memory h.
FORMULAS: dict[str, Callable[..., Tensor]] = {
    "content": lambda w, s, h, i: w["log_sharpness"].exp() * (s @ h[i]) / (s.norm() * h[i].norm()),
    "additive": lambda w, s, h, i: w["v"] @ torch.tanh(concatenated(w) @ torch.cat([s, h[i]])),
    "location": lambda w, s, h, i: (w["weight"] @ s)[i],
    "general": lambda w, s, h, i: s @ w["of_memory.weight"] @ h[i],
    "dot": lambda w, s, h, i: (s * h[i]).sum(),
    "scaled-dot": lambda w, s, h, i: (s * h[i]).sum() / math.sqrt(len(s)),
}


def concatenated(weights: dict[str, Tensor]) -> Tensor:
    """Bahdanau's W, which reads the state and the position behind each other."""
    return torch.cat([weights["of_query.weight"], weights["of_memory.weight"]], 1)


def built(name: str, query: int, memory: int, *, sharpness: float = 3.0) -> Score:
    """In double precision, with no parameter at rest."""
    width = query if SCORES[name].needs_equal_widths else memory
    score = SCORES[name](ScoreShape(query=query, memory=width, positions=LIMIT, sharpness=sharpness)).double()
    for parameter in score.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return score


def drawn(score: Score, name: str, rows: int, targets: int, positions: int, widths: tuple[int, int]) -> list[Tensor]:
    """Queries and a memory, of which gradients can be asked."""
    width = widths[0] if score.needs_equal_widths else widths[1]
    shapes = [(rows, targets, widths[0]), (rows, positions, width)]
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def everything(memory: Tensor) -> Tensor:
    return torch.ones(memory.shape[:2], dtype=torch.bool)


@pytest.mark.parametrize("name", SCORES)
@settings(max_examples=8)
@given(sizes=st.permutations(PRIMES), seed=st.integers(0, 99))
def test_a_score_is_its_formula_and_so_is_its_gradient(name: str, sizes: list[int], seed: int):
    torch.manual_seed(seed)
    rows, targets, positions, query, memory_width = min(sizes[0], 5), min(sizes[1], 5), *sizes[2:5]
    score = built(name, query, memory_width)
    queries, memory = drawn(score, name, rows, targets, positions, (query, memory_width))
    weights, asked = dict(score.named_parameters()), [queries, memory, *score.parameters()]
    found = score(queries, score.keys(memory, everything(memory)))
    expected = torch.stack(
        [
            torch.stack([FORMULAS[name](weights, s, h, i) for s in own for i in range(positions)])
            for own, h in zip(queries, memory, strict=True)
        ]
    ).view(rows, targets, positions)
    assert torch.allclose(found, expected, rtol=1e-9, atol=1e-9)
    mixture = torch.randn_like(found)
    for ours, theirs in zip(
        *(torch.autograd.grad((x * mixture).sum(), asked, materialize_grads=True) for x in (found, expected)),
        strict=True,
    ):
        assert torch.allclose(ours, theirs, rtol=1e-8, atol=1e-8)


def test_scaled_dot_is_dot_over_the_root_of_the_width():
    dot, scaled = built("dot", 11, 11), built("scaled-dot", 11, 11)
    queries, memory = drawn(dot, "dot", 3, 5, 7, (11, 11))
    assert torch.allclose(scaled(queries, memory), dot(queries, memory) / math.sqrt(11))


@pytest.mark.parametrize("factor", [1e-3, 7.0, 1e4])
def test_content_does_not_depend_on_the_length_of_vectors(factor: float):
    score = built("content", 11, 11, sharpness=0.0)
    queries, memory = drawn(score, "content", 3, 5, 7, (11, 11))
    mask = everything(memory)
    found = score(queries, score.keys(memory, mask))
    assert not list(score.parameters())
    assert torch.allclose(found, cosine_similarity(queries[:, :, None], memory[:, None], dim=-1))
    assert torch.allclose(score(queries * factor, score.keys(memory / factor, mask)), found, atol=1e-6)


def test_content_starts_with_the_sharpness_that_was_asked_for():
    score = SCORES["content"](ScoreShape(query=7, memory=7, sharpness=5.0))
    vectors = torch.randn(2, 3, 7)
    keys = score.keys(vectors, everything(vectors))
    assert torch.allclose(score(vectors, keys).diagonal(dim1=1, dim2=2), torch.tensor(5.0), atol=1e-5)


def test_location_does_not_depend_on_what_stands_there():
    score = built("location", 5, 11)
    queries, memory = drawn(score, "location", 3, 2, 7, (5, 11))
    found = score(queries, score.keys(memory, everything(memory)))
    others = torch.randn_like(memory)
    assert torch.equal(found, score(queries, score.keys(others, everything(others))))
    assert found.std(-1).min() > 0.01


def test_location_refuses_what_is_longer_than_its_limit_and_names_it():
    score = built("location", 5, 7)
    memory = torch.randn(2, 24, 7, dtype=torch.float64)
    padded = everything(memory)
    padded[:, LIMIT:] = False
    queries = torch.randn(2, 3, 5, dtype=torch.float64)
    assert score(queries, score.keys(memory, padded)).shape == (2, 3, 24)  # padding may go beyond
    padded[1, LIMIT] = True
    with pytest.raises(RegardError, match=rf"has 18 positions, .* only {LIMIT} \(model\.max_positions={LIMIT}\)"):
        score.keys(memory, padded)


@pytest.mark.parametrize("name", ["content", "dot", "scaled-dot"])
def test_widths_that_differ_are_refused_with_both(name: str):
    with pytest.raises(ConfigError, match=f"'{name}' needs .* one width, but they have 7 and 14"):
        SCORES[name](ScoreShape(query=7, memory=14))


# --- the attention over any of them


def ragged(rows: int, positions: int) -> Tensor:
    """Masks of rows of 0, 1, 2 … positions."""
    return torch.arange(positions)[None] < torch.arange(rows)[:, None]


@pytest.mark.parametrize("name", SCORES)
def test_padding_never_gets_weight_nor_a_gradient(name: str):
    score, mask = built(name, 5, 11), ragged(8, 7)
    queries, memory = drawn(score, name, 8, 3, 7, (5, 11))
    probe = Probe()

    def attended(memory: Tensor) -> Tensor:
        keys = score.keys(memory, mask)
        return attend_by_score(score, queries, keys, memory, mask, probe=probe, block="decoder.0.cross")

    contexts = attended(memory)
    (look,) = probe.looks
    assert (look.side, look.layer, look.kind) == ("decoder", 0, "cross")
    weights = look.weights[:, 0]
    assert torch.equal(weights * ~mask[:, None], torch.zeros_like(weights))
    assert torch.allclose(weights.sum(-1), mask.any(-1, keepdim=True).double().expand(-1, 3))
    assert torch.allclose(contexts, weights @ memory)
    noise = torch.where(mask[..., None], memory, torch.randn_like(memory))
    assert torch.equal(attended(noise), contexts)
    (gradient,) = torch.autograd.grad(contexts.square().sum(), [memory])
    assert torch.isfinite(gradient).all()
    assert torch.equal(gradient * ~mask[..., None], torch.zeros_like(gradient))
    assert gradient[1:, 0].abs().min() > 0


@pytest.mark.parametrize("name", SCORES)
def test_a_query_that_may_look_at_nothing_gets_zero_and_finite_gradients(name: str):
    score = built(name, 5, 11)
    queries, memory = drawn(score, name, 2, 3, 7, (5, 11))
    mask = torch.tensor([[False] * 7, [True] * 7])
    contexts = attend_by_score(score, queries, score.keys(memory, mask), memory, mask)
    assert torch.equal(contexts[0], torch.zeros_like(contexts[0]))
    asked = [queries, memory, *score.parameters()]
    for gradient in torch.autograd.grad(contexts.sum() + contexts.square().sum(), asked, allow_unused=True):
        assert gradient is None or torch.isfinite(gradient).all()


def test_the_softmax_is_over_the_positions_of_a_row_alone():
    scores, mask = torch.randn(8, 3, 7), ragged(8, 7)
    found = masked_softmax(scores, mask[:, None])
    for row in range(1, 8):
        assert torch.allclose(found[row, :, :row], scores[row, :, :row].softmax(-1))


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("widths", [(32, 64), (29, 37)])
def test_in_inference_a_row_has_the_same_bits_in_any_company(name: str, widths: tuple[int, int]):
    """Alone and among others, one query or several, and with more padding; equal to the products of training."""
    torch.manual_seed(7)
    score = built(name, *widths).float()
    queries, memory = (each.detach().float() for each in drawn(score, name, 9, 3, LIMIT, widths))
    mask = torch.arange(LIMIT)[None] < torch.arange(1, 2 * 9, 2)[:, None]

    def attended(rows: Tensor, size: int) -> Tensor:
        room = torch.randn(len(rows), size, memory.size(2))
        held = min(size, LIMIT)
        room[:, :held] = memory[rows, :held]
        seen = torch.nn.functional.pad(mask[rows], (0, size - LIMIT))
        return attend_by_score(score, queries[rows], score.keys(room, seen), room, seen)

    every = torch.arange(9)
    expected = attended(every, LIMIT)
    with torch.inference_mode():
        together = attended(every, padded_keys(LIMIT))
        assert torch.allclose(together, expected, atol=1e-5)
        assert torch.equal(attended(every, padded_keys(LIMIT) + 3 * KEY_STRIDE), together)
        for row in every.split(1):
            size = padded_keys(int(mask[row].sum()))
            assert torch.equal(attended(row, size), together[row])
