"""A run goes on under its own settings: what differs is named, and only that."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.changes import changed_keys, refuse_changed
from regard.errors import RunError

CONFIG = {"seed": 7, "model": {"width": 512, "name": "é"}, "data": {"files": ["a", "b"]}, "train": {"rate": 0.1}}


def test_changed_keys_are_named_with_both_values() -> None:
    new = {"seed": 7, "model": {"width": 256, "name": "é", "depth": 6}, "data": {"files": ("a", "b")}, "train": {}}
    assert changed_keys(CONFIG, new) == [
        "model.depth: not set → 6",
        "model.width: 512 → 256",
        "train: not set → {}",
        "train.rate: 0.1 → not set",
    ]


def test_null_is_not_the_same_as_absent() -> None:
    assert changed_keys({"a": None}, {}) == ["a: null → not set"]


def test_a_key_or_a_table_can_be_exempt() -> None:
    old = {"train": {"max_minutes": 3, "rate": 1}, "hardware": {"threads": {"inner": 1}}, "hard": 1}
    new = {"train": {"max_minutes": 5, "rate": 1}, "hardware": {"threads": {"inner": 2}}, "hard": 2}
    exempt = frozenset({"train.max_minutes", "hardware"})
    assert changed_keys(old, new, exempt) == ["hard: 1 → 2"]
    refuse_changed(old, {**new, "hard": 1}, exempt)


def test_resuming_with_other_settings_is_refused_by_name() -> None:
    with pytest.raises(RunError) as caught:
        refuse_changed({"seed": 1, "model": {"width": 512}}, {"seed": 2, "model": {"width": 256}})
    message = str(caught.value)
    assert "model.width: 512 → 256; seed: 1 → 2" in message
    assert "\n" not in message
    assert "same" in message
    assert "another --out" in message


values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v, max_size=3))
tables = st.dictionaries(st.sampled_from("abc"), values | st.dictionaries(st.sampled_from("de"), values), max_size=3)


@given(old=tables, new=tables)
def test_only_what_differs_is_changed(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert changed_keys(old, json.loads(json.dumps(old))) == []
    assert bool(changed_keys(old, new)) == (old != new)
