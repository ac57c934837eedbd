"""Accuracy, F1 and spans of labelled words, on cases worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.evaluate.answers import exact_match, f1_of, word_f1
from regard.evaluate.chunks import all_spans, is_chunked, span_scores, spans_of
from regard.evaluate.labels import accuracy, class_scores, confusion, confusion_table, label_values, macro_f1, micro_f1

# --- labels


def test_a_worked_matrix() -> None:
    """Of class a two of three are found, of b one of two, of c none of one; c is never said and d never occurs."""
    counts = confusion([0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 0, 0], 4)
    assert counts.tolist() == [[2, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert accuracy(counts) == pytest.approx(50.0)
    scores = class_scores(counts, "abcd")
    assert scores["a"] == {
        "precision": pytest.approx(50.0),
        "recall": pytest.approx(200 / 3),
        "f1": pytest.approx(400 / 7),
        "examples": 3,
    }
    assert scores["b"]["f1"] == pytest.approx(50.0)
    assert scores["c"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "examples": 1}
    assert macro_f1(counts) == pytest.approx((400 / 7 + 50 + 0) / 3)  # d does not occur
    assert micro_f1(counts) == pytest.approx(50.0)
    assert micro_f1(counts, [0]) == pytest.approx(100 * 2 * 1 / (2 + 3))  # one right, two said, three true


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_the_micro_f1_of_all_classes_is_the_accuracy(pairs: list[tuple[int, int]]) -> None:
    counts = confusion(*zip(*pairs, strict=True), 4)
    assert counts.sum() == len(pairs)
    assert micro_f1(counts) == pytest.approx(accuracy(counts))


def test_a_table_for_few_classes() -> None:
    counts = np.array([[5, 1], [0, 4]])
    lines = confusion_table(counts, ["yes", "a very long name of a class"]).splitlines()
    assert lines[0].split() == ["true", "\\", "predicted", "yes", "a", "very", "long", "nam…", "recall", "%", "F1", "%"]
    assert lines[1].split() == ["yes", "5", "1", "83.3", "90.9"]
    assert confusion_table(np.zeros((13, 13), np.int64), list("abcdefghijklm")) == ""
    assert label_values(counts, ["a", "b"])["confusion"] == {"labels": ["a", "b"], "counts": [[5, 1], [0, 4]]}


# --- spans


@pytest.mark.parametrize(
    ("labels", "spans"),
    [
        ("O O", []),
        ("B-NP I-NP O", [(0, 1, "NP")]),
        ("B-NP B-NP", [(0, 0, "NP"), (1, 1, "NP")]),
        ("I-NP I-NP O I-NP", [(0, 1, "NP"), (3, 3, "NP")]),  # an I- without a B- begins a span
        ("B-NP I-VP", [(0, 0, "NP"), (1, 1, "VP")]),  # so does one of another type
        ("B-NP I-NP B-NP I-NP", [(0, 1, "NP"), (2, 3, "NP")]),
        ("B-NP O I-NP", [(0, 0, "NP"), (2, 2, "NP")]),
        ("B I O I", [(0, 1, ""), (3, 3, "")]),
        ("B-A-B I-A-B", [(0, 1, "A-B")]),
    ],
)
def test_the_spans_of_labels(labels: str, spans: list[tuple[int, int, str]]) -> None:
    assert spans_of(labels.split()) == spans


def test_spans_that_are_found() -> None:
    """As conlleval counts: five true spans, five found, of which the two of the first sentence are exact. In the second
    a span is too long and one has another type, and in the third one is too short."""
    truth = ["B-NP I-NP O B-VP", "B-NP O B-NP", "B-VP I-VP"]
    found = ["B-NP I-NP O I-VP", "B-NP I-NP B-VP", "B-VP O"]
    given = [[line.split() for line in side] for side in (truth, found)]
    scores = all_spans(*given)
    assert scores == {
        "precision": pytest.approx(40.0),
        "recall": pytest.approx(40.0),
        "f1": pytest.approx(40.0),
        "spans": 5,
    }
    by_type = span_scores(*given)
    assert by_type["NP"] == {"precision": 50.0, "recall": pytest.approx(100 / 3), "f1": pytest.approx(40.0), "spans": 3}
    assert by_type["VP"] == {"precision": pytest.approx(100 / 3), "recall": 50.0, "f1": pytest.approx(40.0), "spans": 2}


def test_without_spans_nothing_is_right() -> None:
    assert all_spans([["O", "O"]], [["O", "B-X"]]) == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "spans": 0}
    assert span_scores([["O"]], [["O"]]) == {}


def test_which_labels_mark_spans() -> None:
    assert is_chunked(["B-NP", "I-NP", "O"])
    assert is_chunked(["B", "I", "O"])
    assert not is_chunked(["O"])
    assert not is_chunked(["NN", "B-NP"])
    assert not is_chunked(["DET", "NOUN"])


# --- answers


def test_answers_by_their_words() -> None:
    truth, found = [["the", "red", "fox"], ["a"], ["b"]], [["red", "fox", "cub"], ["a"], []]
    assert exact_match(truth, found) == pytest.approx(100 / 3)
    assert word_f1(truth, found) == pytest.approx((200 / 3 + 100 + 0) / 3)
    assert f1_of(["a", "a", "b"], ["a"]) == pytest.approx(50.0)  # precision 1, recall 1/3
    assert exact_match([], []) == word_f1([], []) == 0.0
