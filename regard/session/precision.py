"""In which precision a run trains: fp32, or bf16. Compiled kernels then round the factors of linear layers and of the
vocabulary's product, and all else, the sums too, stays fp32; without such kernels it is torch's autocast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard import hardware
from regard.config import Config
from regard.errors import ConfigError, RunError
from regard.native.training import training_kernels

BY_NOTHING = "neither compiled kernels nor torch multiply"


def choose_precision(wanted: str, name: str = "train.precision") -> str:
    """fp32 or bf16; `auto` is bf16 where compiled kernels multiply it, because torch's own way of it (autocast) takes
    more time over casts than it saves in products, unless a model is large."""
    if wanted == "bf16" and not bf16_works():
        raise ConfigError(f"{name}: {BY_NOTHING} bf16 on this processor; choose auto or fp32")
    if wanted != "auto":
        return wanted
    return "fp32" if training_kernels("bf16") is None else "bf16"


def bf16_works() -> bool:
    """By compiled kernels, or by torch."""
    return training_kernels("bf16") is not None or hardware.bf16_works()


def precision_for(config: Config, saved: Mapping[str, Any] | None) -> str:
    """A run goes on with what it began with, or not at all."""
    began = saved["platform"].get("precision") if saved is not None else None
    if began is None:
        return choose_precision(config.train.precision)
    if began == "bf16" and not bf16_works():
        raise RunError(
            f"The run began in bf16, and {BY_NOTHING} bf16 on this processor. Resume it on one where they do, "
            "or train anew with train.precision=fp32 in another --out."
        )
    return began
