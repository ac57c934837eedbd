"""A published encoder tells the senses of a word apart, as docs/contextual.md says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import regard
from benchmarks.contextual import WORDS, Separation, picture, separation, tables
from regard.figures.heat_maps import rendered
from tests.encoders import PIECES, published_weights, text_encoder

pytestmark = pytest.mark.usefixtures("shapes_unchecked")

PAGE = Path(__file__).parents[2] / "docs" / "contextual.md"


@pytest.fixture(scope="module")
def every() -> list[Separation]:
    model = regard.load(published_weights())
    return [separation(model, senses) for senses in WORDS]


def test_five_words_in_six_sentences() -> None:
    assert len({senses.word for senses in WORDS}) == 5
    assert all(len(set(senses.sentences)) == 6 for senses in WORDS)


def test_a_word_is_closer_to_itself_within_a_sense_than_across(every: list[Separation]) -> None:
    for one in every:
        assert one.across[-1] < one.within[-1] - 0.05, one.senses.word
        # What tells them apart is the context: before the first layer there is none.
        assert abs(one.across[0] - one.within[0]) < 0.03, one.senses.word


def test_the_page_has_these_numbers(every: list[Separation]) -> None:
    """To a unit of the last digit, for machines round differently."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    for line in filter(None, tables(every).splitlines()):
        words, numbers = parted(line)
        assert any(
            words == theirs and np.allclose(numbers, others, rtol=0, atol=0.0015)
            for theirs, others in map(parted, rows)
            if len(others) == len(numbers)
        ), f"docs/contextual.md does not have {line}"


def parted(line: str) -> tuple[str, list[float]]:
    """What is not a number, and what is."""
    decimal = r"[+-]?\d\.\d{3}"
    return re.sub(decimal, "", line), [float(number) for number in re.findall(decimal, line)]


def test_the_means_are_those_of_the_pairs_and_can_be_drawn() -> None:
    """On an encoder that was never trained."""
    from regard.text.codecs import WordPieceCodec
    from regard.text.tokenizer import Tokenizer

    letters = [
        mark + letter for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" for mark in ("", "##")
    ]
    model = text_encoder(Tokenizer({"text": WordPieceCodec([*PIECES, *letters])}), max_positions=90)
    one = separation(model, WORDS[0])
    cosines = one.found.cosines[2]
    alike = [cosines[0, 1], cosines[0, 2], cosines[1, 2], cosines[3, 4], cosines[3, 5], cosines[4, 5]]
    np.testing.assert_allclose(one.within[2], np.mean(alike))
    np.testing.assert_allclose(one.across[2], cosines[:3, 3:].mean())
    assert rendered(picture([one]), "png").startswith(b"\x89PNG")
