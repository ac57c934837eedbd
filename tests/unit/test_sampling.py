"""Draws follow the distribution that the rules describe, and belong to their sentence alone.

The expected distribution is written here a second time, token by token, from the definitions of the filters.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from regard.decode import sample as sampling
from regard.decode.config import SearchConfig
from regard.decode.sample import filtered, gumbel
from regard.decode.search import sample, search
from regard.errors import RunError
from regard.models.interface import Source
from regard.text.symbols import RESERVED
from regard.text.tokenizer import END, PAD, START
from tests.decodables import source_of
from tests.property.test_search import Hashed, padded
from tests.unit.test_rules import A, B, C, Nothing, Steady, only, source

DRAWS, ROWS = 50_000, 250
SIGNIFICANCE = 1e-3
WORDS = {3: 1.3, 4: 0.2, 5: -0.4, 6: 2.1, 7: 1.9, 8: -1.0, 9: 0.9, 10: 0.0, 11: -2.2, 12: 1.1}
"""Logits of a distribution without ties; between the likeliest and the rarest lies a factor of 74."""


class Given:
    """Says `WORDS`, whatever it reads; padding and start are likelier than all of them, and it never ends."""

    symbols = RESERVED

    def start(self, source: Source) -> Nothing:
        return Nothing()

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Nothing]:
        logits = torch.full((len(tokens), 13), -math.inf)
        logits[:, [PAD, START]] = 4.0
        for word, logit in WORDS.items():
            logits[:, word] = logit
        return logits, state


# --- the distribution, from the definitions

Probabilities = dict[int, float]


def normalised(weights: Probabilities) -> Probabilities:
    total = math.fsum(weights.values())
    return {word: weight / total for word, weight in weights.items()}


def until(order: list[int], share: float, probabilities: Probabilities) -> Probabilities:
    """The first of `order` whose probabilities reach `share`."""
    kept: Probabilities = {}
    for word in order:
        if math.fsum(kept.values()) >= share:
            break
        kept[word] = probabilities[word]
    return normalised(kept)


def top_k(now: Probabilities, count: int) -> Probabilities:
    return normalised({word: now[word] for word in sorted(now, key=lambda word: -now[word])[:count]})


def top_p(now: Probabilities, share: float) -> Probabilities:
    return until(sorted(now, key=lambda word: -now[word]), share, now)


def min_p(now: Probabilities, share: float) -> Probabilities:
    return normalised({word: value for word, value in now.items() if value >= share * max(now.values())})


def typical(now: Probabilities, share: float) -> Probabilities:
    entropy = -math.fsum(value * math.log(value) for value in now.values())
    return until(sorted(now, key=lambda word: abs(-math.log(now[word]) - entropy)), share, now)


FILTERS = {"top_k": top_k, "top_p": top_p, "min_p": min_p, "typical": typical}
"""In the order in which they are applied."""


def expected(settings: dict[str, Any]) -> Probabilities:
    now = normalised({word: math.exp(logit / settings.get("temperature", 1.0)) for word, logit in WORDS.items()})
    for name, keep in FILTERS.items():
        if name in settings:
            now = keep(now, settings[name])
    return now


def chance(counts: Counter[int], probabilities: Probabilities) -> float:
    """Of a chi-square at least this high, were the draws from `probabilities`."""
    total = counts.total()
    square = math.fsum((counts[word] - total * share) ** 2 / (total * share) for word, share in probabilities.items())
    freedom = torch.tensor((len(probabilities) - 1) / 2, dtype=torch.float64)
    return float(torch.special.gammaincc(freedom, torch.tensor(square / 2, dtype=torch.float64)))


def test_the_chi_square_is_that_of_the_tables():
    """3.84 at 5 % and one degree of freedom; 27.88 at 1e-3 and nine."""
    fair = {3: 0.5, 4: 0.5}
    assert chance(Counter({3: 500 + 31, 4: 500 - 31}), fair) == pytest.approx(0.05, abs=1e-3)
    square = 27.877
    freedom = torch.tensor(4.5, dtype=torch.float64)
    assert float(torch.special.gammaincc(freedom, torch.tensor(square / 2).double())) == pytest.approx(1e-3, rel=1e-3)


@pytest.fixture(scope="module", autouse=True)
def noise_is_drawn_once() -> Any:
    """The same noise for every filter: it is the filters that differ."""
    before, sampling.gumbel = sampling.gumbel, functools.cache(gumbel)
    yield
    sampling.gumbel = before


def drawn(settings: dict[str, Any]) -> Counter[int]:
    """How often each word came in draws over many sentences and positions."""
    length = DRAWS // ROWS
    config = SearchConfig(sample=True, **settings)
    rows = source_of(torch.full((ROWS, 1), A))
    found = sample(Given(), rows, config, list(range(ROWS)), [length] * ROWS)
    return Counter(itertools.chain.from_iterable(one.tokens for (one,) in found))


SETTINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.6},
    {"temperature": 2.5},
    {"top_k": 6},
    {"top_p": 0.7},
    {"min_p": 0.25},
    {"typical": 0.4},
    {"temperature": 1.7, "top_k": 7},
    {"temperature": 0.8, "top_p": 0.9, "min_p": 0.1},
    {"top_k": 3, "typical": 0.5},
    {"temperature": 1.4, "top_k": 8, "top_p": 0.93, "min_p": 0.12, "typical": 0.85},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_draws_follow_the_distribution(settings: dict[str, Any]):
    counts, probabilities = drawn(settings), expected(settings)
    assert counts.total() == DRAWS
    assert set(counts) == set(probabilities)
    assert chance(counts, probabilities) > SIGNIFICANCE


def test_the_settings_differ_so_much_that_fifty_thousand_draws_tell_them_apart():
    """The test above can fail: draws of one are refused by the others."""
    for one, other in itertools.permutations(map(expected, SETTINGS), 2):
        counts = Counter({word: round(DRAWS * share) for word, share in one.items()})
        assert set(one) != set(other) or chance(counts, other) < SIGNIFICANCE


@pytest.mark.parametrize("settings", [{"top_k": 3}, {"top_p": 0.5}, {"min_p": 0.5}, {"typical": 0.4}], ids=str)
def test_each_row_is_filtered_by_itself(settings: dict[str, Any]):
    """Words at 0 and at 100 times their logits: what stays in one row has nothing to do with the next."""
    row = torch.tensor([WORDS[word] for word in sorted(WORDS)])
    config = SearchConfig(sample=True, **settings)
    rows = torch.stack([row, row.flip(0), row * 100, row + 7])
    together = filtered(rows, config)
    assert torch.equal(together, torch.cat([filtered(one[None], config) for one in rows]))
    stays = together.isfinite()
    assert torch.equal(stays[0], stays[1].flip(0))
    assert torch.equal(stays[0], stays[3])
    assert int(stays[2].sum()) == min(settings.get("top_k", 1), 3)


def test_the_order_is_top_k_then_top_p_then_min_p_then_typical():
    """0.4, 0.3, 0.2, 0.1: three are left by top-k, and of 0.9 the first two hold 77 %."""
    logits = torch.tensor([[0.4, 0.3, 0.2, 0.1]]).log()

    def left(**settings: Any) -> int:
        return int(filtered(logits, SearchConfig(sample=True, **settings)).isfinite().sum())

    assert left(top_k=3) == 3
    assert left(top_p=0.75) == 3
    assert left(top_k=3, top_p=0.75) == 2
    assert left(min_p=0.6) == 2
    assert left(typical=0.85) == 3


def test_filters_that_reach_far_leave_everything():
    logits = torch.tensor([[WORDS[word] for word in sorted(WORDS)]])
    assert torch.equal(filtered(logits, SearchConfig(sample=True, top_k=999)), logits)
    assert torch.equal(filtered(logits, SearchConfig(sample=True, top_p=0.999999)), logits)


# --- cold


@pytest.mark.parametrize(
    "settings", [{"temperature": 0.0}, {"top_k": 1}, {"top_p": 1e-9}, {"min_p": 1.0}, {"temperature": 1e-3}], ids=str
)
def test_without_choice_sampling_is_greedy(settings: dict[str, Any]):
    sentences = [[3 + number, 5, 4][: 1 + number % 3] for number in range(8)]
    model, config = Hashed(11, size=13), SearchConfig(sample=True, seed=3, max_extra=7, **settings)
    cold = sample(model, padded(sentences), config, list(range(8)))
    best = search(model, padded(sentences), SearchConfig(beam=1, max_extra=7))
    assert [one[0].tokens for one in cold] == [one[0].tokens for one in best]
    assert [one[0].score for one in cold] == [one[0].score for one in best]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_without_heat_sampling_is_greedy_also_where_words_are_equally_likely(count: int):
    class Tied(Given):
        def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Nothing]:
            logits = torch.zeros(len(tokens), 23)
            logits[:, 7 : 7 + count] = 1.0
            return logits, state

    cold = only(sample(Tied(), source([A]), SearchConfig(sample=True, temperature=0.0), [1], [3]))
    assert cold.tokens == only(search(Tied(), source([A]), SearchConfig(beam=1), [3])).tokens


@pytest.mark.parametrize("temperature", [1e-30, 1e-38, 1e-45])
def test_the_coldest_temperatures_above_zero_are_greedy_too(temperature: float):
    config = SearchConfig(sample=True, temperature=temperature, top_p=0.9)
    assert only(sample(Steady({A: 5.0, B: 9.0, C: 7.0}), source([A]), config, [1], [2])).tokens == (B, B)


def test_the_hottest_temperature_draws_from_all():
    config = SearchConfig(sample=True, temperature=1000.0, nbest=200)
    assert {one.tokens for one in sample(Given(), source([A]), config, [1], [1])[0]} == {(word,) for word in WORDS}


def test_nothing_to_draw_is_an_error_not_a_token():
    class Broken(Given):
        def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Nothing]:
            return torch.full((len(tokens), 13), math.nan), state

    with pytest.raises(RunError, match="nothing to draw"):
        sample(Broken(), source([A]), SearchConfig(sample=True), [1], [2])


# --- the noise


def test_noise_depends_on_seed_sentence_draw_and_position_and_on_each_of_them():
    """Not one number comes twice in 3⁴ streams of 50: streams that overlapped would share their numbers."""
    values = [0, 1, 2**40 + 1]
    streams = {key: gumbel(50, *key) for key in itertools.product(values, values, (0, 1, 1000), (1, 2, 1000))}
    assert len({float(number) for stream in streams.values() for number in stream}) == 81 * 50
    for key, stream in streams.items():
        assert np.array_equal(stream, gumbel(50, *key))


def test_noise_is_gumbel():
    """P(noise ≤ x) = exp(−exp(−x)), at the deciles."""
    noise = np.concatenate([gumbel(500, 1, key, 0, 1) for key in range(100)])
    edges = [-math.log(-math.log(share / 10)) for share in range(1, 10)]
    counts = Counter(np.searchsorted(edges, noise).tolist())
    assert chance(counts, dict.fromkeys(range(10), 0.1)) > SIGNIFICANCE
    assert np.isfinite(noise).all()


def test_the_largest_seeds_and_names_are_names():
    assert not np.array_equal(gumbel(5, 2**63 - 1, 2**64 - 1, 0, 1), gumbel(5, 2**63 - 1, 2**64 - 2, 0, 1))


SENTENCES = [[3 + number % 7, 4, 5 + number % 4, 6][: 1 + number % 4] for number in range(30)]
HOT: dict[str, Any] = {"sample": True, "max_extra": 6, "temperature": 1.3, "top_p": 0.97}


def test_a_draw_is_the_same_in_any_batch_and_order():
    model, config = Hashed(5, size=17), SearchConfig(nbest=3, **HOT)
    names = [1000 + number for number in range(30)]
    together = sample(model, padded(SENTENCES), config, names)
    alone = [
        sample(model, padded([sentence]), config, [name])[0] for sentence, name in zip(SENTENCES, names, strict=True)
    ]
    assert together == alone
    order = torch.randperm(30, generator=torch.Generator().manual_seed(1)).tolist()
    shuffled = sample(model, padded([SENTENCES[n] for n in order]), config, [names[n] for n in order])
    assert shuffled == [together[number] for number in order]


def test_another_seed_another_name_another_draw_are_other_draws():
    model, rows = Hashed(5, size=17), padded([[4, 5, 6]] * 30)
    config = SearchConfig(**HOT)
    first = [one[0].tokens for one in sample(model, rows, config, range(30))]
    assert len(set(first)) > 20
    reseeded = [one[0].tokens for one in sample(model, rows, SearchConfig(seed=2, **HOT), range(30))]
    assert sum(one == other for one, other in zip(first, reseeded, strict=True)) < 10
    renamed = [one[0].tokens for one in sample(model, rows, config, range(100, 130))]
    assert sum(one == other for one, other in zip(first, renamed, strict=True)) < 10
    draws = sample(model, padded([[4, 5, 6]]), SearchConfig(nbest=30, **HOT), [0])[0]
    assert len({one.tokens for one in draws}) > 20
    assert draws[0].tokens == first[0]  # however many follow


def test_equal_names_get_equal_noise():
    model, config = Hashed(5, size=17), SearchConfig(**HOT)
    found = sample(model, padded([[4, 5, 6]] * 5), config, [8] * 5)
    assert all(one == found[0] for one in found)


def test_an_end_ends_and_a_cut_is_said():
    found = sample(Hashed(5, size=6), padded([[4, 5]] * 200), SearchConfig(**HOT), range(200), [3] * 200)
    for (one,) in found:
        ended = len(one.token_scores) == len(one.tokens) + 1
        assert END not in one.tokens
        assert one.finished == ended
        assert len(one.token_scores) <= 3
        assert ended or len(one.tokens) == 3
    assert {one.finished for (one,) in found} == {True, False}
