"""What the corpus does not fit is said column by column, and what only moved is found again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.config import Config, build_config, limits_of
from regard.errors import ConfigError
from regard.models import ARCHITECTURES
from regard.models.interface import Limits
from regard.session.checks import check_lengths
from regard.session.resuming import relocated
from regard.tasks import TASKS
from regard.text.corpus import file_sha256
from tests.toys import TOY_ARCHITECTURES, TOY_TASKS


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


def test_a_further_source_has_the_limit_of_learned_positions():
    table: dict[str, Any] = {"model": {"positions": "learned", "max_positions": 30}, "data": {"also": ["german"]}}
    config = build_config(table)
    assert limits_of(config).columns == {"source": 30, "target": 30, "german": 30}
    lengths = meta(30, 30, 30, 30)
    lengths["longest_by_column"]["german"], lengths["valid_longest_by_column"]["german"] = 31, 5
    with pytest.raises(ConfigError, match=r"has 31 tokens, but model\.max_positions=30 \(they are learned\)"):
        check_lengths(config, lengths)


def test_vectors_that_moved_take_their_lengths_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(TASKS, "frames", TOY_TASKS["frames"])
    monkeypatch.setitem(ARCHITECTURES, "listener", TOY_ARCHITECTURES["listener"])
    (tmp_path / "new").mkdir()
    np.save(tmp_path / "new/b.npy", np.zeros((2, 3, 5)))
    for name in ("new/b.lengths", "new/b.target"):
        (tmp_path / name).write_text(f"1\n{len(name)}\n")
    hashes = {f"a.{end}": file_sha256(tmp_path / f"new/b.{end}") for end in ("npy", "lengths", "target")}
    table: dict[str, Any] = {"task": "frames", "preset": "none", "model": {"architecture": "listener"}}
    asked = build_config(table | {"data": {"train": [{"frames": "new/b.npy", "target": "new/b.target"}]}})
    began = {"data": {"train": [{"frames": "a.npy", "target": "a.target"}], "valid": []}}
    found = relocated({"config": began, "data": {"hashes": hashes, "base": "/"}}, asked, tmp_path)
    assert found["data"]["hashes"] == {name.replace("a.", "new/b."): value for name, value in hashes.items()}
    (tmp_path / "new/b.lengths").write_text("2\n2\n")  # other lengths are another corpus
    found = relocated({"config": began, "data": {"hashes": hashes, "base": "/"}}, asked, tmp_path)
    assert "a.lengths" in found["data"]["hashes"]
