"""The translations of a line's parts become one as they come, and little of each is held."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.decode.alignment import Alignment
from regard.decode.joining import is_stopped, merged
from regard.decode.trace import Step
from regard.decode.translation import BLANK, Translation
from regard.decode.units import Line, only
from tests.unit.test_translate import translator

WORDS = st.lists(st.sampled_from(["le", "chat", "noir", "é"]), max_size=3)
STEP = Step("le", (("the", 0.5),), (("chat", 0.25),), "chat")
HELD = 600
"""Bytes of a part of seven characters that are held until its line is done: they are in its source and its translation,
as text, as tokens and as scores."""


@st.composite
def fields(draw: st.DrawFn, most: int = 2) -> dict[str, Any]:
    """Of a translation with up to `most` alternatives, none of which has any."""
    tokens = draw(WORDS)
    return {
        "text": " ".join(tokens),
        "score": draw(st.floats(-9, 0)),
        "tokens": tokens,
        "finished": draw(st.booleans()),
        "alternatives": draw(st.lists(fields(0), max_size=most)) if most else [],
        "token_scores": draw(st.lists(st.floats(-9, 0), min_size=len(tokens), max_size=len(tokens) + 1)),
        "trace": draw(st.sampled_from([(), (STEP,)])),
        "tree": draw(st.sampled_from([None, {"nodes": []}])),
        "warnings": draw(st.sampled_from([(), ("nothing came out",)])),
    }


def built(given: dict[str, Any]) -> Translation:
    lists = {name: tuple(given[name]) for name in ("tokens", "token_scores")}
    return Translation(**{**given, **lists, "alternatives": tuple(built(one) for one in given["alternatives"])})


def summed(parts: Sequence[Translation], text: str) -> Translation:
    trees = [part.tree for part in parts if part.tree is not None]
    return Translation(
        text=text,
        score=sum(part.score for part in parts),
        tokens=tuple(chain.from_iterable(part.tokens for part in parts)),
        finished=all(part.finished for part in parts),
        token_scores=tuple(chain.from_iterable(part.token_scores for part in parts)),
        trace=tuple(chain.from_iterable(part.trace for part in parts)),
        tree={"parts": trees} if trees else None,
        warnings=tuple(chain.from_iterable(part.warnings for part in parts)),
    )


def all_at_once(parts: Sequence[Translation]) -> tuple[Translation, tuple[Translation, ...]]:
    """What `merged` gives, and the alternatives that belong to it, made from all parts together."""
    stops = [place for place, part in enumerate(parts) if is_stopped(part)]
    if stops and stops[0] + 1 < len(parts):
        kept = [*parts[: stops[0] + 1], *[BLANK] * (len(parts) - stops[0] - 1)]
        return summed(kept, " ".join(part.text for part in kept).rstrip()), ()
    ranked = [(part, *part.alternatives) for part in parts]
    wholes: list[Translation] = []
    for rank in range(max(map(len, ranked))):
        own = [each[min(rank, len(each) - 1)] for each in ranked]
        wholes.append(summed(own, " ".join(part.text for part in own)))
    return wholes[0], tuple(wholes[1:])


@given(st.lists(fields(), min_size=2, max_size=7), st.booleans())
def test_parts_that_come_one_by_one_are_joined_as_all_at_once(drawn: list[dict[str, Any]], apart: bool):
    parts = [built(one) for one in drawn]
    line = Line("x" * len(parts), ("x",) * len(parts), " ".join, apart)
    best, alternatives = all_at_once(parts)
    found = merged(line, iter(parts), "")
    assert found.alternatives == (alternatives if apart else ())
    assert found.to_json() | {"nbest": []} == best.to_json() | {"nbest": []}


def test_a_line_of_one_part_is_that_part():
    alone = Translation("noir", -0.5, ("noir",), True, (BLANK,), (-0.25, -0.25), Alignment(((0, 0),), ((0, 0),)))
    assert merged(Line("black", ("black",), only), iter([alone]), "") is alone


def test_of_a_part_little_is_held_until_its_line_is_done():
    """Tokens that come often, warnings and alignments are held once, and numbers as such."""

    def parts(count: int) -> Iterator[Translation]:
        for number in range(count):
            tokens = tuple(f"<{(number + place) % 257}>" for place in range(5))
            yield Translation("noir", -0.5, tokens, True, (), tuple(-n / 7 for n in range(6)), warnings=(f"{tokens}",))

    line = Line("x" * 3001, ("x",) * 3001, " ".join)
    tracemalloc.start()
    merged(line, parts(3001), "")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3001 * HELD


def test_the_memory_of_a_line_grows_little_with_its_parts(monkeypatch: pytest.MonkeyPatch):
    """What is searched at once is bounded, so two lines differ by what is held of a part until the end."""
    monkeypatch.setattr("regard.decode.checking.MOST_UNITS", 61)
    model, peaks = translator(max_source=7), dict[int, int]()
    model.translate("warmed.")
    for count in (131, 731):
        line = " ".join(f"{number:06}" for number in range(count))
        tracemalloc.start()
        (found,) = model.translate([line], keep="none", split="never")
        peaks[count] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found.text == line
    assert (peaks[731] - peaks[131]) / 600 < HELD, peaks
