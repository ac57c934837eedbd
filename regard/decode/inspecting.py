"""A translation or a text with everything that the model did for it: what `inspect` of a translator and a generator do.

The output is found by the usual search, then read once more in one pass (teacher forcing), so that what is recorded is
right for the hypothesis that won, whatever the beam.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.data.batch import Source, pair_batch
from regard.data.columns import Column, Encoded
from regard.data.texts import text_batch
from regard.decode.alignment import target_words, word_starts
from regard.decode.units import Unit
from regard.decode.wording import text_of
from regard.inspect.looking import DECODER, ENCODER, OUTPUT, Pass, look_at, position_tables, steps_of
from regard.inspect.record import NO_WORD, Inspection, Side, of_words
from regard.models.interface import Decodable
from regard.naming import counted
from regard.text.codecs import Codec
from regard.text.documents.part import one_line
from regard.text.tokenizer import Tokenizer


def read_side(name: str, codec: Codec, ids: Sequence[int], text: str, before: int, joiner: str) -> Side:
    """What an encoder reads: `before` symbols, the tokens of `text`, an end symbol. Words lie between spaces."""
    offsets = codec.encode_with_offsets(text)[1]
    starts = word_starts(text, joiner)
    words = [text[start:stop].strip() for start, stop in zip(starts, [*starts[1:], len(text)], strict=True)]
    own = [max(sum(start <= max(end - 1, begin) for start in starts) - 1, 0) for begin, end in offsets]
    after = len(ids) - before - len(own)
    word_of = (*[NO_WORD] * before, *own, *[NO_WORD] * after)
    return Side(name, tuple(codec.pieces(ids)), tuple(words), word_of)


def written_sides(codec: Codec, start: int, written: Sequence[int], text: str, *, ended: bool) -> tuple[Side, Side]:
    """What the decoder reads (the output shifted right behind the start symbol), and what it writes."""
    own = written[:-1] if ended else written
    words = text.split()
    word_of = [word if word < len(words) else NO_WORD for word in target_words(codec, own)]
    pieces = codec.pieces([start, *written])
    read = Side("target", tuple(pieces[:-1]), tuple(words), (NO_WORD, *word_of)[: len(written)])
    output = Side(OUTPUT, tuple(pieces[1:]), tuple(words), (*word_of, *[NO_WORD] * ended))
    return read, output


def vector_side(name: str, rows: Any) -> Side:
    """Vectors, or numbers, one a position."""
    return of_words(name, [" ".join(f"{value:.3g}" for value in row[:3]) for row in np.asarray(rows, np.float32)])


@dataclass(frozen=True, slots=True)
class PairReader:
    """How the ids of a sentence and its translation become the sides of an inspection."""

    tokenizer: Tokenizer
    columns: tuple[Column, ...]
    tag: str | None = None

    def inspect(
        self,
        model: Decodable,
        unit: Unit,
        tokens: Sequence[int],
        *,
        ended: bool,
        given: str | None = None,
        tree: dict[str, Any] | None = None,
        also: Sequence[Any] = (),
    ) -> Inspection:
        """`tokens` are those of the translation; `given` is its text, where it was not the model that found it; `also`
        are the further sources as they were given, texts or vectors."""
        written = [*tokens, *[model.symbols.end] * ended]
        wording = text_of(unit.codec, self.tokenizer.joiner, tokens) if given is None else given
        read, output = written_sides(unit.codec, model.symbols.start, written, wording, ended=ended)
        sides = {**self.read_sides(unit, also), DECODER: read, OUTPUT: output}
        source = Source.of([unit.ids], *([encoded] for encoded in unit.further))
        seen = look_at(model, pair_batch(source, [written], model.symbols), sides)
        further = zip(self.columns[1:-1], unit.further, also, strict=True)
        beside = {column.name: described(column, encoded, value) for column, encoded, value in further}
        about = {"text": unit.text, "output": one_line(wording), "given": given is not None, "tree": tree}
        about["also"] = beside
        return inspection_of(model, seen, sides, written, unit.codec.pieces, **about)

    def read_sides(self, unit: Unit, also: Sequence[Any]) -> dict[str, Side]:
        """What each encoder reads."""
        first, *others = self.columns[:-1]
        codec = unit.codec if first.extended else self.tokenizer.codecs[first.codec]
        before = len(first.before(self.tokenizer, self.tag))
        sides = {ENCODER: read_side(first.name, codec, unit.ids, unit.text, before, self.tokenizer.joiner)}
        for column, encoded, value in zip(others, unit.further, also, strict=True):
            sides[f"{ENCODER}-{column.name}"] = self.further_side(column, encoded, value)
        return sides

    def further_side(self, column: Column, encoded: Encoded, value: Any) -> Side:
        """What the encoder of a further source reads; `value` is what was given for it."""
        if column.kind == "vectors":
            return vector_side(column.name, encoded)
        before, ids = len(column.before(self.tokenizer, None)), [int(token) for token in encoded]
        return read_side(column.name, self.tokenizer.codecs[column.codec], ids, value, before, self.tokenizer.joiner)


def described(column: Column, encoded: Encoded, value: Any) -> str:
    """A further source for people: a text as it is; of vectors how many there are, and how wide."""
    if column.kind != "vectors":
        return one_line(value)
    positions, width = np.shape(encoded)
    return f"{counted(positions, 'vectors')} of width {width}"


def inspect_text(
    model: Decodable, codec: Codec, written: Sequence[int], output: str, *, text: str, given: bool = False
) -> Inspection:
    """A language model's pass over `output`, which begins with the prompt `text`; `written` are its ids, with an end or
    not, and `given` says whether it was given as a whole."""
    ended = bool(written) and written[-1] == model.symbols.end
    read, own = written_sides(codec, model.symbols.start, written, output, ended=ended)
    sides = {DECODER: read, OUTPUT: own}
    seen = look_at(model, text_batch([{"text": list(written)}], model.symbols), sides)
    return inspection_of(model, seen, sides, written, codec.pieces, text=text, output=one_line(output), given=given)


def inspect_pointing(model: Decodable, numbers: Any, positions: Sequence[int], *, given: bool = False) -> Inspection:
    """A pointer network's pass: class 0 starts and ends, position p is class p + 1."""
    points = vector_side("numbers", numbers)
    written = [*(place + 1 for place in positions), model.symbols.end]

    def pieces(classes: Sequence[int]) -> list[str]:
        return [f"{each - 1}: {points.tokens[each - 1]}" if each else "<end>" for each in classes]

    shown = pieces(written)
    own = (*range(len(positions)), NO_WORD)
    output = Side(OUTPUT, tuple(shown), tuple(shown[:-1]), own)
    read = Side("target", ("<start>", *shown[:-1]), tuple(shown[:-1]), (NO_WORD, *range(len(positions))))
    sides = {ENCODER: points, DECODER: read, OUTPUT: output}
    seen = look_at(model, pair_batch(Source.of([numbers]), [written], model.symbols), sides)
    line = " ".join(map(str, positions))
    return inspection_of(model, seen, sides, written, pieces, text="  ".join(points.tokens), output=line, given=given)


def inspection_of(
    model: Any, seen: Pass, sides: dict[str, Side], written: Sequence[int], pieces: Any, **about: Any
) -> Inspection:
    steps = steps_of(seen.output, written, pieces)
    return Inspection(
        score=float(sum(np.log(max(step.probability, 1e-45)) for step in steps)),
        sides=tuple(sides.values()),
        attentions=seen.attentions,
        steps=steps,
        positions=position_tables(model, max(map(len, sides.values()))),
        states=seen.states,
        **about,
    )
