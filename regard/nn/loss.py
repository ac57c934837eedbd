"""Cross entropy against smoothed labels (section 5.4), on real tokens only; and how far two dropout passes disagree.

Axes: P real target positions, D width, V classes. With consistency, rows 2i and 2i+1 are one position in two passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.errors import ConfigError
from regard.nn import fused

FORMS = ("others", "all")
ROWS = 512
"""Rows of logits at a time: few enough to stay in the cache, many enough for a fast product; even, so that two
passes of a position stay together."""


@dataclass(frozen=True, slots=True)
class Smoothing:
    """ε and where it goes: "others", ε/(V−1) on each wrong class (the paper's code); "all", ε/V on every class."""

    epsilon: float = 0.1
    form: str = "others"

    def __post_init__(self) -> None:
        if not 0.0 <= self.epsilon < 1.0:
            raise ConfigError(f"train.label_smoothing={self.epsilon} must be at least 0 and below 1")
        if self.form not in FORMS:
            raise ConfigError(f"train.smoothing_form={self.form!r} is not one of {', '.join(FORMS)}")

    def masses(self, classes: int) -> tuple[float, float]:
        """Probability on each class, and what the true class has on top of it."""
        if self.form == "all":
            return self.epsilon / classes, 1.0 - self.epsilon
        wrong = self.epsilon / max(classes - 1, 1)
        return wrong, 1.0 - self.epsilon - wrong

    def masses_of_each(self, possible: Float[Tensor, " P"]) -> tuple[Float[Tensor, " P"], Float[Tensor, " P"]]:
        """The same, in the precision of `possible`: how many classes of each position are possible at all."""
        if self.form == "all":
            base = self.epsilon / possible
            return base, torch.full_like(base, 1.0 - self.epsilon)
        wrong = self.epsilon / (possible - 1).clamp(min=1)
        return wrong, 1.0 - self.epsilon - wrong

    def targets(self, truth: Int[Tensor, " P"], classes: int) -> Float[Tensor, "P V"]:
        """The smoothed distributions, written out."""
        base, extra = self.masses(classes)
        return torch.full((truth.numel(), classes), base).scatter_add_(
            1, truth[:, None], torch.full((truth.numel(), 1), extra)
        )


@dataclass(frozen=True, slots=True)
class Objective:
    """What training makes small: cross entropy against smoothed labels, and the disagreement of two dropout passes."""

    smoothing: Smoothing = Smoothing(0.0)
    consistency: float = 0.0
    """Weight of the disagreement; 0: one pass."""


PLAIN = Objective()


@dataclass(frozen=True, slots=True)
class Loss:
    """Sums over real tokens: what is trained on, and −log p of the truth, from which perplexity comes."""

    smoothed: Float[Tensor, ""]
    truth: float
    tokens: int


def cross_entropy(logits: Float[Tensor, "P V"], truth: Int[Tensor, " P"], objective: Objective = PLAIN) -> Loss:
    """For a model that gives logits, of whatever width. A class of logit −∞ is impossible and gets no share of ε."""
    log_probabilities = logits.log_softmax(-1)
    possible = log_probabilities > -torch.inf
    base, extra = objective.smoothing.masses_of_each(possible.sum(-1).to(log_probabilities.dtype))
    chosen = log_probabilities.gather(1, truth[:, None])[:, 0]
    smoothed = -(base * log_probabilities.masked_fill(~possible, 0.0).sum(-1) + extra * chosen).sum()
    if objective.consistency:
        smoothed = smoothed + objective.consistency * disagreement(log_probabilities).sum()
    return Loss(smoothed, -float(chosen.detach().sum()), truth.numel())


def disagreement(log_probabilities: Float[Tensor, "P V"]) -> Float[Tensor, " P//2"]:
    """Of the two passes of each position, (KL(p‖q) + KL(q‖p)) / 2 (R-Drop, Liang 2021), over the possible classes."""
    first, second = pairs(log_probabilities)
    impossible = (first == -torch.inf) | (second == -torch.inf)
    gap = first.masked_fill(impossible, 0.0) - second.masked_fill(impossible, 0.0)
    return 0.5 * ((first.exp() - second.exp()) * gap).sum(-1)


def pairs(rows: Float[Tensor, "P *shape"]) -> tuple[Float[Tensor, "P//2 *shape"], Float[Tensor, "P//2 *shape"]]:
    """The rows of the first pass, and those of the second."""
    return rows[0::2], rows[1::2]


def linear_cross_entropy(
    features: Float[Tensor, "P D"],
    weight: Float[Tensor, "V D"],
    bias: Float[Tensor, " V"] | None,
    truth: Int[Tensor, " P"],
    objective: Objective = PLAIN,
) -> Loss:
    """The same for logits = features Wᵀ + b, without ever holding all logits: a third of a small model's step.

    Loss and gradient are computed together, some rows at a time, while their logits are in the cache.
    """
    with torch.autocast(weight.device.type, enabled=False):  # it would round logits and gradients, not factors alone
        features = features.to(weight.dtype)
        smoothed, chosen = LinearCrossEntropy.apply(
            features, weight, bias, truth, objective.smoothing, objective.consistency
        )
    return Loss(smoothed, float(chosen), truth.numel())


class LinearCrossEntropy(torch.autograd.Function):
    """With q the smoothed truth, dL/dlogits = softmax − q; q = base + extra·onehot enters by its rank-one form."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        truth: Tensor,
        smoothing: Smoothing,
        consistency: float,
    ) -> tuple[Tensor, Tensor]:
        base, extra = smoothing.masses(weight.size(0))
        wants_gradient = any(ctx.needs_input_grad)
        d_features = features.new_empty(features.shape) if wants_gradient else None
        d_weight = weight.new_zeros(weight.shape) if ctx.needs_input_grad[1] else None  # word vectors may be frozen
        d_bias = torch.zeros_like(bias) if wants_gradient and bias is not None else None
        column_sum = weight.sum(0)
        bias_sum = 0.0 if bias is None else bias.sum()
        log_sum, chosen = features.new_empty(truth.numel()), features.new_empty(truth.numel())
        apart = features.new_zeros(())
        buffer = features.new_empty(min(ROWS, len(truth)), weight.size(0))
        kernels = fused.for_gradient(features, weight, *([] if bias is None else [bias])) if wants_gradient else None
        for begin in range(0, len(truth), ROWS):
            rows = slice(begin, begin + ROWS)
            x, answers = features[rows], truth[rows]
            logits = buffer[: len(x)]
            fused.multiply(kernels, x, weight.t(), logits, bias)
            if kernels is not None and not consistency:
                kernels.cross_entropy(logits, answers, extra, log_sum[rows], chosen[rows])
            else:
                apart += to_errors(logits, answers, extra, consistency, log_sum[rows], chosen[rows])
            if d_features is None:
                continue
            fused.multiply(kernels, logits, weight, d_features[rows])
            if d_weight is not None:
                fused.multiply(kernels, logits.t(), x, d_weight, add=True)
            if d_bias is not None:
                d_bias += logits.sum(0)
        if d_features is not None:
            d_features -= base * column_sum
            if d_weight is not None:
                d_weight -= base * features.sum(0)
            if d_bias is not None:
                d_bias -= base * len(truth)
            ctx.save_for_backward(d_features, d_weight, d_bias)
        all_logits = features @ column_sum + bias_sum
        smoothed = (log_sum - base * all_logits - extra * chosen).sum() + consistency * apart
        truth_sum = (log_sum - chosen).sum()
        ctx.mark_non_differentiable(truth_sum)
        return smoothed, truth_sum

    @staticmethod
    @fused.once
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        scale = gradients[0]
        d_features, d_weight, d_bias = ctx.saved_tensors
        scaled = (None if each is None else each * scale for each in (d_features, d_weight, d_bias))
        return *scaled, None, None, None


def to_errors(
    logits: Float[Tensor, "P V"],
    truth: Int[Tensor, " P"],
    extra: float,
    consistency: float,
    log_sum: Float[Tensor, " P"],
    chosen: Float[Tensor, " P"],
) -> Float[Tensor, ""]:
    """Logits become softmax(logits) − extra · onehot(truth), in place, and with consistency the gradient of the
    disagreement is added, which is given; `log_sum` and `chosen` are filled."""
    answers = truth[:, None]
    chosen.copy_(logits.gather(1, answers)[:, 0])
    gap = torch.sub(*pairs(logits)) if consistency else None
    highest = logits.amax(1)
    probabilities = torch.softmax(logits, -1, out=logits)
    log_sum.copy_(highest - probabilities.amax(1).log())  # log Σ exp from the largest, which cannot underflow
    apart = logits.new_zeros(())
    if gap is not None:
        gap -= torch.sub(*pairs(log_sum))[:, None]
        apart = pull_together(probabilities, gap, consistency)
    probabilities.scatter_add_(1, answers, probabilities.new_full(answers.shape, -extra))
    return apart


def pull_together(
    probabilities: Float[Tensor, "P V"], gap: Float[Tensor, "P//2 V"], strength: float
) -> Float[Tensor, ""]:
    """Adds the gradient of strength · disagreement to each row, in place, and gives the disagreement.

    With gap = log p − log q of the two passes, d/dlogits KL(p‖q) = p·(gap − KL(p‖q)) and d/dlogits KL(q‖p) = p − q for
    the pass of p, and the same with the parts exchanged for that of q.
    """
    half = 0.5 * strength
    p, q = pairs(probabilities)
    p_from_q, q_from_p = torch.linalg.vecdot(p, gap), -torch.linalg.vecdot(q, gap)
    gap *= half
    pulled = (gap + (1 + half * (1 - p_from_q))[:, None]).mul_(p).sub_(q, alpha=half)
    q.mul_(gap.neg_().add_((1 + half * (1 - q_from_p))[:, None])).sub_(p, alpha=half)
    p.copy_(pulled)
    return 0.5 * (p_from_q + q_from_p).sum()
