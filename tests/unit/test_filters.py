"""Filters: which pair is dropped for which reason, and that the counts add up."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ConfigError
from regard.text.filters import FilterConfig, FilterReport, drop_reason, first_occurrences, row_hash


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"max_length": -1}, "data.filters.max_length=-1"),
        ({"max_ratio": 0.5}, "data.filters.max_ratio=0.5"),
        ({"max_ratio": -2.0}, "data.filters.max_ratio=-2.0"),
        ({"max_ratio": float("nan")}, "data.filters.max_ratio=nan"),
        ({"max_ratio": float("inf")}, "data.filters.max_ratio=inf"),
    ],
)
def test_settings_check_themselves(settings, named):
    with pytest.raises(ConfigError) as caught:
        FilterConfig(**settings)
    assert named in str(caught.value)
    assert "0 switches the filter off" in str(caught.value)


@pytest.mark.parametrize(("source", "target"), [("", "b"), ("a", ""), (" \t", "b"), ("a", "\u2028\u00a0")])
def test_an_empty_side_is_always_dropped(source, target):
    everything_off = FilterConfig(max_length=0)
    assert drop_reason(everything_off, (source, target), (1, 1)) == "empty"


def test_no_tokens_count_as_empty():
    assert drop_reason(FilterConfig(), ("a", "b"), (0, 3)) == "empty"
    assert drop_reason(FilterConfig(), ("a", "b"), (3, 0)) == "empty"


@pytest.mark.parametrize("lengths", [(13, 14), (14, 13)])
def test_length_is_a_limit_that_is_kept(lengths):
    assert drop_reason(FilterConfig(max_length=14), ("a", "b"), lengths) is None
    assert drop_reason(FilterConfig(max_length=13), ("a", "b"), lengths) == "too_long"
    assert drop_reason(FilterConfig(max_length=0), ("a", "b"), (10**6, 1)) is None


@pytest.mark.parametrize(
    ("lengths", "reason"),
    [((20, 10), None), ((21, 10), "ratio"), ((10, 21), "ratio"), ((9, 1), None), ((10, 1), "ratio"), ((1, 9), None)],
)
def test_ratio_spares_short_pairs(lengths, reason):
    assert drop_reason(FilterConfig(max_ratio=2.0), ("a", "b"), lengths) == reason
    assert drop_reason(FilterConfig(), ("a", "b"), lengths) is None


def test_vectors_have_no_ratio_to_words():
    row, config = ("a", [[0.5]] * 90, "b"), FilterConfig(max_ratio=2.0, max_length=100)
    assert drop_reason(config, row, (10, 90, 11), (10, 11)) is None
    assert drop_reason(config, row, (10, 90, 21), (10, 21)) == "ratio"
    assert drop_reason(config, row, (10, 101, 11), (10, 11)) == "too_long"


def test_identical_sides_only_on_request():
    assert drop_reason(FilterConfig(), ("same", "same"), (1, 1)) is None
    assert drop_reason(FilterConfig(drop_identical=True), ("same", "same "), (1, 1)) == "identical"
    assert drop_reason(FilterConfig(drop_identical=True), ("same", "Same"), (1, 1)) is None


@given(st.lists(st.integers(0, 7)))
def test_first_occurrences(values):
    expected = [value not in values[:position] for position, value in enumerate(values)]
    assert first_occurrences(np.array(values, dtype=np.uint64)).tolist() == expected


@given(st.text(), st.text(), st.integers(0, 11))
def test_row_hash_knows_where_the_source_ends(source, target, cut):
    both = source + target
    other = (both[:cut], both[cut:])
    assert (row_hash(other) == row_hash((source, target))) == (other == (source, target))
    assert 0 <= row_hash((source, target)) < 2**64
    assert np.array([row_hash((source, target))], dtype=np.uint64)[0] == row_hash((source, target))


def test_row_hash_of_a_lone_surrogate():
    assert row_hash(("\ud800", "a")) != row_hash(("a", "\ud800"))


@given(st.lists(st.sampled_from([None, "empty", "too_long", "ratio", "identical"])), st.integers(0, 5))
def test_counts_add_up(reasons, duplicates):
    report = FilterReport()
    for reason in reasons:
        report.count(reason)
    report.count("duplicate", duplicates)
    counts = json.loads(json.dumps(report.to_json()))
    assert counts.pop("read") == len(reasons) + duplicates == sum(counts.values())
    assert counts["kept"] == reasons.count(None)
    assert counts["duplicate"] == duplicates
    assert counts["ratio"] == reasons.count("ratio")


def test_summary_names_what_was_dropped_and_nothing_else():
    report = FilterReport(config=FilterConfig(max_length=256, max_ratio=2.5))
    report.count(None, 28_950)
    assert report.summary() == "28,950 pairs read, 28,950 kept"
    report.count("empty", 3)
    report.count("too_long", 47)
    assert report.summary() == "29,000 pairs read, 28,950 kept; dropped 3 with an empty side, 47 longer than 256 tokens"
    report.count("ratio", 5)
    report.count("identical", 2)
    report.count("duplicate", 1)
    for part in ("28,950 kept", "5 with one side more than 2.5 times the other", "2 with equal sides", "1 seen before"):
        assert part in report.summary()


def test_one_text_beside_vectors_is_no_copy_of_anything():
    """Of three columns, two texts that are equal and vectors are a copy; a text, vectors and vectors are none."""
    vectors, strict = np.zeros((3, 2), np.float32), FilterConfig(drop_identical=True)
    assert drop_reason(strict, ("same", vectors), (1, 3)) is None
    assert drop_reason(strict, ("same", vectors, vectors), (1, 3, 3)) is None
    assert drop_reason(strict, ("same", "same", vectors), (1, 1, 3)) == "identical"
    assert drop_reason(strict, ("same", "same", "other"), (1, 1, 1)) is None
