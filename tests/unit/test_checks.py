"""What the corpus does not fit is said column by column."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from regard.config import Config
from regard.errors import ConfigError
from regard.models import ARCHITECTURES
from regard.models.interface import Limits
from regard.session.checks import check_lengths


def meta(source: int, target: int, valid_source: int = 1, valid_target: int = 1) -> dict[str, Any]:
    return {
        "longest": max(source, target),
        "longest_by_column": {"source": source, "target": target},
        "valid_longest": max(valid_source, valid_target),
        "valid_longest_by_column": {"source": valid_source, "target": valid_target},
    }


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Config:
    """A long source and a short target."""
    limits = Limits({"source": 500, "target": 20}, "model.most=20 (for the target)")
    own = replace(ARCHITECTURES["transformer"], limits=lambda _: limits)
    monkeypatch.setitem(ARCHITECTURES, "transformer", own)
    return Config()


def test_each_column_has_its_own_limit(limited: Config):
    check_lengths(limited, meta(500, 20, 500, 20))
    with pytest.raises(ConfigError, match=r"the longest sentence has 21 tokens, but model\.most=20 .*max_length=19"):
        check_lengths(limited, meta(500, 21))
    with pytest.raises(ConfigError, match="the longest sentence has 501 tokens"):
        check_lengths(limited, meta(501, 20))
    with pytest.raises(ConfigError, match=r"the longest sentence of the held-out pairs has 22 tokens, .*max_length=19"):
        check_lengths(limited, meta(500, 20, 500, 22))


def test_a_column_that_is_not_named_has_no_limit(monkeypatch: pytest.MonkeyPatch):
    own = replace(ARCHITECTURES["transformer"], limits=lambda _: Limits({"target": 20}, "x"))
    monkeypatch.setitem(ARCHITECTURES, "transformer", own)
    check_lengths(Config(), meta(10**6, 20, 10**6, 20))
    assert Limits({"target": 20}).source is None
    assert Limits({"target": 20, "source": 30}).least == 20
    assert Limits().least is None
