"""Given translations with the model's log-probability of each, whole and token by token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from regard.data.columns import SOURCE, Encoded
from regard.decode.batches import batches_by_length
from regard.decode.forced import force
from regard.decode.preparing import Preparing
from regard.decode.translation import Translation
from regard.decode.unit_search import UnitSearch
from regard.decode.units import Unit
from regard.errors import ConfigError
from regard.models.modes import evaluating


@dataclass(frozen=True, slots=True)
class Pair:
    """A source and its given translation."""

    unit: Unit
    text: str
    """The translation."""
    tokens: list[int]
    """Its ids."""


def encoded_pairs(
    preparing: Preparing, pairs: Sequence[tuple[str, str]], further: Sequence[tuple[Encoded, ...]]
) -> list[Pair]:
    """As the model reads them; `further` is what it reads beside each source."""
    units = [preparing.plain_unit(source, more) for (source, _), more in zip(pairs, further, strict=True)]
    return [Pair(unit, text, unit.codec.encode(text)) for unit, (_, text) in zip(units, pairs, strict=True)]


def refuse_long(
    preparing: Preparing,
    pairs: Sequence[Pair],
    before: int,
    report: Callable[[str], None],
    *,
    max_target: int | None = None,
) -> None:
    """ConfigError for a side longer than the limit of the run; of a source longer than those of training is told.
    `max_target` are the most target tokens that the model gives, end symbol counted."""
    known, most = preparing.whole, {"source": preparing.longest, "target": longest_target(preparing, max_target)}
    for number, pair in enumerate(pairs, start=before + 1):
        sides = {"source": len(pair.unit.ids) - SOURCE.symbols(preparing.job.tag), "target": len(pair.tokens)}
        for side, length in sides.items():
            limit = most[side]
            if limit is not None and length > limit:
                note = preparing.limit_note if side == "source" else ""
                raise ConfigError(
                    f"line {number}: the {side} has {length:,} tokens, more than the limit of {limit:,} tokens{note}. "
                    f"Split the pair into sentences, or leave it out."
                )
        if known.tokens is not None and sides["source"] > known.tokens:
            report(f"line {number} is longer than {known.why}: its score may mean little")


def longest_target(preparing: Preparing, max_target: int | None) -> int | None:
    """The most tokens of a translation: as many as of a source where training says, else what the model can give."""
    trained = None if preparing.by_positions else preparing.longest
    limits = [limit for limit in (trained, None if max_target is None else max_target - 1) if limit is not None]
    return min(limits, default=None)


def scored(search: UnitSearch, pairs: Sequence[Pair]) -> list[Translation]:
    """In the order of the pairs."""
    job, found = search.job, dict[int, Translation]()
    for places in batches_by_length({place: pair.unit.lengths for place, pair in enumerate(pairs)}, job.batch_tokens):
        some = [pairs[place] for place in places]
        rows = search.padded([pair.unit for pair in some])
        with evaluating(search.model):
            answers = force(search.model, rows, [pair.tokens for pair in some], look=job.heads is not None)
        for place, pair, forced in zip(places, some, answers, strict=True):
            found[place] = search.reading.scored(pair.unit, pair.text, pair.tokens, forced, job)
    return [found[place] for place in range(len(pairs))]
