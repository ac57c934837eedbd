"""Which precision a run trains in: what is asked for, what the machine can do, and what the run began with."""

from __future__ import annotations

import pytest

from regard import hardware
from regard.config import Config
from regard.errors import ConfigError, RunError
from regard.session import precision
from regard.session.precision import choose_precision, precision_for


def machine(monkeypatch: pytest.MonkeyPatch, *, compiled: bool, torch: bool) -> None:
    """One on which bf16 is multiplied by compiled kernels, by torch, by both or not at all."""
    monkeypatch.setattr(precision, "training_kernels", lambda _: object() if compiled else None)
    monkeypatch.setattr(hardware, "bf16_works", lambda: torch)


@pytest.mark.parametrize("torch", [False, True])
def test_auto_is_bf16_where_compiled_kernels_multiply_it(monkeypatch: pytest.MonkeyPatch, torch: bool):
    machine(monkeypatch, compiled=True, torch=torch)
    assert [choose_precision(wanted) for wanted in ("auto", "bf16", "fp32")] == ["bf16", "bf16", "fp32"]
    machine(monkeypatch, compiled=False, torch=torch)
    assert [choose_precision(wanted) for wanted in ("auto", "fp32")] == ["fp32", "fp32"]


def test_bf16_that_is_asked_for_is_refused_only_where_nothing_does_it(monkeypatch: pytest.MonkeyPatch):
    machine(monkeypatch, compiled=False, torch=True)
    assert choose_precision("bf16") == "bf16"
    machine(monkeypatch, compiled=False, torch=False)
    with pytest.raises(
        ConfigError, match=r"^--precision: neither .* multiply bf16 on this processor; choose auto or fp32"
    ):
        choose_precision("bf16", "--precision")


def test_a_run_goes_on_in_the_precision_that_it_began_with(monkeypatch: pytest.MonkeyPatch):
    machine(monkeypatch, compiled=True, torch=True)
    assert precision_for(Config(), {"platform": {"precision": "fp32"}}) == "fp32"
    assert precision_for(Config(), {"platform": {}}) == "bf16"  # an earlier version noted none
    machine(monkeypatch, compiled=False, torch=False)
    with pytest.raises(RunError, match=r"began in bf16, and neither .* train\.precision=fp32"):
        precision_for(Config(), {"platform": {"precision": "bf16"}})
