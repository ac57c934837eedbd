"""The loss where some classes are impossible: −∞ logits get no share of ε, and nothing is NaN."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from regard.nn.loss import PLAIN, Objective, Smoothing, cross_entropy, linear_cross_entropy

POSITIONS, CLASSES = 14, 11


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(29)


def masked_logits(allow: float = 0.5) -> tuple[Tensor, Tensor]:
    """Logits with impossible classes, another set in each row, and truths that are possible."""
    truth = torch.randint(CLASSES, (POSITIONS,))
    possible = torch.rand(POSITIONS, CLASSES) < allow
    possible[torch.arange(POSITIONS), truth] = True
    logits = torch.randn(POSITIONS, CLASSES, dtype=torch.float64).masked_fill(~possible, -math.inf)
    return logits.requires_grad_(), truth


def by_hand(logits: Tensor, truth: Tensor, epsilon: float, form: str) -> Tensor:
    """Row by row, over the classes that are possible alone."""
    total = torch.zeros((), dtype=logits.dtype)
    for row, answer in zip(logits, truth.tolist(), strict=True):
        places = (row > -math.inf).nonzero()[:, 0]
        right = places == answer
        share = epsilon / (len(places) if form == "all" else max(len(places) - 1, 1))
        wanted = torch.full_like(row[places], share)
        wanted[right] = 1 - epsilon + (share if form == "all" else 0.0)
        total = total - (wanted * row[places].log_softmax(0)).sum()
    return total


@pytest.mark.parametrize("form", ["others", "all"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.43])
@pytest.mark.parametrize("allow", [0.0, 0.3, 0.8, 1.0])
def test_only_possible_classes_share_what_is_smoothed(form: str, epsilon: float, allow: float):
    logits, truth = masked_logits(allow)
    loss = cross_entropy(logits, truth, Objective(Smoothing(epsilon, form)))
    expected = by_hand(logits, truth, epsilon, form)
    assert bool(loss.smoothed.isfinite())
    assert torch.allclose(loss.smoothed, expected, rtol=1e-12, atol=1e-12)
    assert loss.truth == pytest.approx(float(by_hand(logits, truth, 0.0, form).detach()), rel=1e-12, abs=1e-12)
    (found,) = torch.autograd.grad(loss.smoothed, logits)
    (wanted,) = torch.autograd.grad(expected, logits)
    assert bool(found.isfinite().all())
    assert torch.allclose(found, wanted, rtol=1e-10, atol=1e-12)
    assert not found[logits == -math.inf].any()


def test_where_every_class_is_possible_it_is_the_usual_loss():
    features, weight = torch.randn(POSITIONS, 5).double(), torch.randn(CLASSES, 5).double()
    truth, objective = torch.randint(CLASSES, (POSITIONS,)), Objective(Smoothing(0.1), 3.0)
    usual = linear_cross_entropy(features, weight, None, truth, objective)
    assert torch.allclose(cross_entropy(features @ weight.T, truth, objective).smoothed, usual.smoothed, rtol=1e-12)


def test_an_impossible_truth_costs_infinitely_much():
    logits, _ = masked_logits(1.0)
    truth = torch.zeros(POSITIONS, dtype=torch.int64)
    spoilt = logits.detach().clone()
    spoilt[3, 0] = -math.inf
    assert cross_entropy(spoilt, truth, PLAIN).truth == math.inf


def test_single_precision_stays_single():
    logits, truth = masked_logits()
    single = cross_entropy(logits.detach().float(), truth, Objective(Smoothing(0.1)))
    assert single.smoothed.dtype == torch.float32
    assert float(single.smoothed) == pytest.approx(float(by_hand(logits, truth, 0.1, "others").detach()), rel=1e-5)


def disagreement_by_hand(logits: Tensor) -> Tensor:
    """(KL(p‖q) + KL(q‖p)) / 2 of each two rows, over the classes that both of them can have."""
    total = torch.zeros((), dtype=logits.dtype)
    for first, second in zip(logits[0::2].log_softmax(-1), logits[1::2].log_softmax(-1), strict=True):
        both = ((first > -math.inf) & (second > -math.inf)).nonzero()[:, 0]
        p, q = first[both], second[both]
        total = total + ((p.exp() * (p - q)).sum() + (q.exp() * (q - p)).sum()) / 2
    return total


@pytest.mark.parametrize("same", [True, False], ids=["the same in both passes", "others in each pass"])
def test_consistency_skips_impossible_classes(same: bool):
    logits, truth = masked_logits()
    if same:  # as with words that a source has or has not
        impossible = (logits == -math.inf)[0::2].repeat_interleave(2, 0)
        truth = truth[0::2].repeat_interleave(2)
        logits = torch.randn(POSITIONS, CLASSES).double().masked_fill(impossible, -math.inf).requires_grad_()
    loss = cross_entropy(logits, truth, Objective(Smoothing(0.1), 5.0))
    expected = by_hand(logits, truth, 0.1, "others") + 5.0 * disagreement_by_hand(logits)
    assert torch.allclose(loss.smoothed, expected, rtol=1e-12)
    (found,) = torch.autograd.grad(loss.smoothed, logits)
    (wanted,) = torch.autograd.grad(expected, logits)
    assert bool(found.isfinite().all())
    assert torch.allclose(found, wanted, rtol=1e-9, atol=1e-12)
