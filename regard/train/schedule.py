"""How the learning rate goes (section 5.3). Steps count from 1."""

from __future__ import annotations

import math

SCHEDULES = ("paper", "inverse-sqrt", "cosine", "constant")


def paper_rate(step: int, width: int, warmup: int) -> float:
    """d_model^−0.5 · min(step^−0.5, step · warmup^−1.5): the peak, at step = warmup, follows from the width."""
    return width**-0.5 * min(step**-0.5, step * warmup**-1.5)


def inverse_sqrt_rate(step: int, peak: float, warmup: int) -> float:
    """Up to the peak in a line, then down with the square root of the step."""
    return peak * min(step / max(warmup, 1), math.sqrt(max(warmup, 1) / step))


def cosine_rate(step: int, peak: float, warmup: int, total: int) -> float:
    """Up in a line, then half a cosine down to 0 at the last step."""
    if step < warmup:
        return peak * step / warmup
    progress = min((step - warmup) / max(total - warmup, 1), 1.0)
    return peak * 0.5 * (1.0 + math.cos(math.pi * progress))


def constant_rate(step: int, peak: float, warmup: int) -> float:
    """Up in a line, then level."""
    return peak * min(step / max(warmup, 1), 1.0)


def cooled(rate: float, step: int, total: int, cooldown: int) -> float:
    """Whatever the schedule gives, on a line to 0 in the last steps, in which what large steps have learnt settles."""
    return rate * min(max(total + 1 - step, 0) / (min(cooldown, total) + 1), 1.0)
