"""Hidden words of a line found by a masked language model: `the <mask> sat` in, the likeliest words out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.data.columns import READ
from regard.encode.inspecting import inspect_row, inspect_texts, refuse_search, row_reader
from regard.encode.rows import Word
from regard.errors import ConfigError, CorpusError
from regard.inspect import Inspection
from regard.models.interface import LinearOutput
from regard.naming import named
from regard.nn.linear import linear
from regard.tasks.interface import Progress, Trained, ignore
from regard.tasks.reader import Read, Reader, Reading, numbered
from regard.text.codecs import Codec
from regard.text.tokenizer import Tokenizer

MASKS = re.compile(r"<mask>|\[MASK\]")
"""How a line spells a hidden word: as this package shows it, or as BERT does."""
STAND_IN = "x"
"""Read in place of a hidden word, so that what stands beside it is split as beside any word; then replaced."""
BEST = 5
"""Words that are shown for each mask."""


@dataclass(frozen=True, slots=True)
class Masked:
    """A line with hidden words."""

    read: Read
    places: tuple[int, ...]
    """Of the hidden words, among the ids."""
    around: tuple[str, ...]
    """The text before, between and behind them."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A line with the likeliest word in place of each mask, and the best words for each with their probabilities."""

    text: str
    masks: tuple[tuple[tuple[str, float], ...], ...] = ()

    @property
    def line(self) -> str:
        """The filled line, and behind a tab for each mask its best words."""
        words = (", ".join(f"{word} {chance:.3f}" for word, chance in best) for best in self.masks)
        return "\t".join([self.text, *words])

    def to_json(self) -> dict[str, Any]:
        masks = [[{"word": word, "probability": chance} for word, chance in best] for best in self.masks]
        return {"text": self.text, "masks": masks}


@dataclass(frozen=True, slots=True)
class MaskFiller:
    """What `regard.load` gives for a masked language model."""

    model: nn.Module
    tokenizer: Tokenizer
    reader: Reader
    ordinary: Bool[np.ndarray, " V"]
    options: tuple[str, ...] = ("nbest",)

    @classmethod
    def of(cls, trained: Trained) -> MaskFiller:
        """One text is read, also by a model that was trained on pairs."""
        reader = replace(Reader.of(trained), columns=(READ,))
        return cls(trained.model, trained.tokenizer, reader, ordinary_ids(trained))

    @property
    def codec(self) -> Codec:
        return self.tokenizer.codecs[READ.codec]

    def parse(self, line: str) -> Masked | None:
        """None for a blank line. CorpusError for one without a mask, and for a mask that is only a part of a word."""
        if not line.strip():
            return None
        around = MASKS.split(line)
        if len(around) == 1:
            raise CorpusError("it has no <mask>; write one in place of each word that is to be found")
        ids, offsets = self.codec.encode_with_offsets(STAND_IN.join(around))
        text, begin = STAND_IN.join(around), 0
        places: list[int] = []
        for part in around[:-1]:
            begin += len(part)
            own = [place for place, (first, last) in enumerate(offsets) if first <= begin < last]
            if len(own) != 1 or text[slice(*offsets[own[0]])].strip() != STAND_IN:
                raise CorpusError("its <mask> is a part of a word; put blanks around it")
            places += own
            begin += len(STAND_IN)
        mask = self.reader.symbols.mask
        assert mask is not None  # the tokenizer was made for hidden tokens
        hidden = [mask if place in places else token for place, token in enumerate(ids)]
        read = self.reader.fitting(Read((line,), (READ.around(hidden, self.tokenizer),)))
        before = len(READ.before(self.tokenizer, None))
        return Masked(read, tuple(before + place for place in places), tuple(around))

    def predict(self, rows: Sequence[Any], *, nbest: int | None = None, progress: Progress = ignore) -> list[Filled]:
        """Each line with its masks filled. A prediction does not depend on the other rows."""
        count = BEST if nbest is None else nbest
        if not 1 <= count <= self.ordinary.sum():
            raise ConfigError(f"{named('nbest', count)} must lie between 1 and {self.ordinary.sum():,}, the vocabulary")
        lines = numbered(rows, lambda row: row if isinstance(row, Masked | None) else self.parse(row))

        def filled(place: int, features: Float[Tensor, "T D"]) -> Filled:
            line = lines[place]
            assert line is not None
            best = self._best(features[list(line.places)], count)
            words = [*(words[0][0] for words in best), ""]
            return Filled("".join(part for pair in zip(line.around, words, strict=True) for part in pair), best)

        read = [None if line is None else line.read for line in lines]
        return [row or Filled("") for row in self.reader.asked(self.model, read, features_of, filled, progress)]

    def inspect(self, text: str, second: str | None = None) -> Inspection:
        """What the model did with a text, or with a pair; of a text with masks also what it finds."""
        reader = row_reader(self.tokenizer, self.reader.limits)
        masked = self.parse(text) if second is None and MASKS.search(text) else None
        if masked is None:
            return inspect_texts(self.model, reader, text, second)
        row = reader.rows([STAND_IN.join(masked.around)])[0]
        hidden, said = replace(row, ids=tuple(masked.read.ids[0])), self.predict([masked])[0].line

        def shown(word: Word) -> str:
            return word.text.replace(STAND_IN, "<mask>", 1) if {*word.tokens} & {*masked.places} else word.text

        return replace(inspect_row(self.model, self.codec, hidden, said, shown), text=text)

    def inspect_line(self, line: str, target: str | None = None, **options: Any) -> Inspection:
        """`inspect` for callers who know of no task: `target` is the second text of a pair."""
        refuse_search(options)
        return self.inspect(line, target)

    def _best(self, features: Float[Tensor, "P D"], count: int) -> tuple[tuple[tuple[str, float], ...], ...]:
        output = cast(LinearOutput, self.model)
        chances = linear(features, output.output_weight, output.output_bias).softmax(-1).numpy()
        found: list[tuple[tuple[str, float], ...]] = []
        for row in chances:
            order = np.argsort(-np.where(self.ordinary, row, -1.0), kind="stable")[:count].tolist()
            found.append(tuple((self.word(token), float(row[token])) for token in order))
        return tuple(found)

    def word(self, token: int) -> str:
        """A token as it reads; where it is no text of its own, as it is shown."""
        return self.codec.decode([token]).strip() or self.codec.pieces([token])[0]


def features_of(model: nn.Module, batch: Reading) -> Tensor:
    return cast(LinearOutput, model).features(batch)


def ordinary_ids(trained: Trained) -> Bool[np.ndarray, " V"]:
    """By id: whether it stands for text. Symbols, tags and the unknown word do not."""
    codec, symbols = trained.tokenizer.codecs[READ.codec], trained.symbols
    ordinary = np.ones(codec.size, np.bool_)
    ordinary[: codec.first] = False
    special = (symbols.start, symbols.end, symbols.pad, symbols.unknown, symbols.mask, *symbols.never, *symbols.between)
    ordinary[[one for one in special if one is not None]] = False
    return ordinary
