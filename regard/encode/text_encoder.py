"""An encoder with its vocabulary: text in, a vector for each token or for each text out.

`encode` gives what the model makes of one batch, as it is. `embed` gives one vector a text, and is batch-invariant:
each text is padded to a length that depends on its own alone and pooled by itself, so its vector has the same bits
alone, in any batch and in any order.

Axes: B texts, L positions, D width, N heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypedDict, Unpack, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.data.batch import moved
from regard.data.columns import READ
from regard.encode.alone import BATCH_TOKENS, AloneEncoder
from regard.encode.form import Form
from regard.encode.inputs import Inputs, given_inputs, inputs_of
from regard.encode.inspecting import inspect_texts, refuse_search, row_reader
from regard.encode.rows import Place, Row, RowReader, Word, in_texts
from regard.encode.similarity import Similarity, similarity
from regard.errors import ConfigError
from regard.inspect import Inspection
from regard.models.interface import HiddenStates, Limits, Pools
from regard.models.modes import evaluating
from regard.naming import named
from regard.nn.probe import Probe
from regard.text.tokenizer import Tokenizer

WINDOW = 1024
Vectors = NDArray[np.float32]


@runtime_checkable
class Usable(Protocol):
    """A model with what it takes to use it, as a task is given it."""

    @property
    def model(self) -> nn.Module: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    @property
    def limits(self) -> Limits: ...


class EmbedOptions(TypedDict, total=False):
    """Keyword arguments of `TextEncoder.embed`."""

    pooling: str
    """mean (of all tokens, symbols counted), first (that of the start symbol, [CLS]) or max (of each feature)."""
    normalize: bool
    """Vectors of length 1, so that a product of two is their cosine."""
    layer: int
    """Which hidden state: 0 is the embeddings', −1 (as always) the last layer's."""
    truncation: bool | str
    max_length: int | None
    batch_tokens: int
    """Bounds texts × their padded length in the model at once: memory, never the result."""


@dataclass(frozen=True, slots=True)
class EncoderOutput:
    """What an encoder makes of a batch."""

    inputs: Inputs
    hidden_states: tuple[Float[Tensor, "B L D"], ...]
    """The embeddings', and that of each layer."""
    pooler_output: Float[Tensor, "B D"] | None
    """None where the model has no pooler."""
    attentions: tuple[Float[Tensor, "B N L L"], ...]
    """By layer, each by head, query and key; none where they were not asked for."""
    tokens: tuple[tuple[str, ...], ...]
    """Of each text as people see them, without padding."""

    @property
    def last_hidden_state(self) -> Float[Tensor, "B L D"]:
        return self.hidden_states[-1]

    def words(self, row: int, text: int = 0) -> list[Word]:
        """The words of a text, with the positions of their tokens. ConfigError where ids were given."""
        if not self.inputs.rows:
            raise ConfigError("words are known where texts were given, not input_ids")
        return self.inputs.rows[row].words(text)


@dataclass(frozen=True, kw_only=True)
class TextEncoder:
    """An encoder, whatever it was trained for, and what it takes to read text with it."""

    model: nn.Module
    encoder: HiddenStates
    row_reader: RowReader
    device: torch.device | str = "cpu"

    @classmethod
    def of(cls, trained: Usable) -> TextEncoder:
        """For any model that has an encoder with hidden states; ConfigError for another."""
        encoder: object = getattr(trained.model, "encoder", None)
        if not isinstance(encoder, HiddenStates):
            raise ConfigError(
                "this model has no encoder that gives a vector for each token; take a run of an encoder (task mlm, "
                "classify, tag or span), or published encoder weights"
            )
        reader = row_reader(trained.tokenizer, trained.limits)
        return cls(model=trained.model, encoder=encoder, row_reader=reader)

    # A batch as it is

    def inputs(
        self,
        texts: str | Sequence[str],
        second: str | Sequence[str] | None = None,
        *,
        padding: bool | str = False,
        truncation: bool | str = False,
        max_length: int | None = None,
    ) -> Inputs:
        """Texts, or with `second` pairs, as tensors.

        `padding`: True or "longest" (of these), "max_length" (that, or what the model can read). `truncation`: True or
        "longest_first", "only_first", "only_second". Without them a text that is too long, and texts of different
        lengths, are refused.
        """
        rows = self.row_reader.rows(
            listed(texts), listed_pair(texts, second), truncation=truncation, max_length=max_length
        )
        return inputs_of(
            rows, self.encoder, self._pad, padding=padding, limit=self.row_reader.limit, max_length=max_length
        )

    def encode(
        self,
        texts: str | Sequence[str] | None = None,
        second: str | Sequence[str] | None = None,
        *,
        input_ids: Any = None,
        attention_mask: Any = None,
        token_type_ids: Any = None,
        attention: bool = False,
        **options: Any,
    ) -> EncoderOutput:
        """Of texts, read as `inputs` reads them with the same options, or of given ids. `attention` asks for the
        weights of every layer and head."""
        if (texts is None) == (input_ids is None):
            raise ConfigError("give texts, or input_ids, and not both")
        if texts is not None:
            if attention_mask is not None or token_type_ids is not None:
                raise ConfigError("attention_mask and token_type_ids belong to input_ids; of texts they are made here")
            inputs = self.inputs(texts, second, **options)
        elif options or second is not None:
            raise ConfigError(f"{', '.join(options) or 'second'} is about texts, and input_ids are given; leave it out")
        else:
            inputs = given_inputs(self.encoder, self.row_reader.limit, input_ids, attention_mask, token_type_ids)
        return self._output(inputs, Probe() if attention else None)

    __call__ = encode

    def _output(self, inputs: Inputs, probe: Probe | None) -> EncoderOutput:
        tokens, head = moved(inputs.tokens, self.device), getattr(self.model, "head", None)
        with evaluating(self.model), torch.inference_mode():
            states = self.encoder.states(tokens, probe)
            pooled = head.pooled(states[-1], tokens) if isinstance(head, Pools) else None
        looks = [] if probe is None else probe.of("encoder", "self")
        # Copies: autograd, which a caller may want to use behind them, refuses tensors of inference mode.
        return EncoderOutput(
            inputs,
            tuple(state.clone() for state in states),
            None if pooled is None else pooled.clone(),
            tuple(look.weights.clone() for look in looks),
            self._tokens(inputs),
        )

    def _tokens(self, inputs: Inputs) -> tuple[tuple[str, ...], ...]:
        codec = self.row_reader.tokenizer.codecs[READ.codec]
        mask = inputs.attention_mask.bool()
        return tuple(tuple(codec.pieces(ids[real].tolist())) for ids, real in zip(inputs.input_ids, mask, strict=True))

    @property
    def _pad(self) -> int:
        return self.row_reader.tokenizer.symbols.pad

    @property
    def alone(self) -> AloneEncoder:
        """For vectors that do not depend on the batch."""
        most = self.row_reader.limit.most
        return AloneEncoder(model=self.model, encoder=self.encoder, most=most, pad=self._pad, device=self.device)

    # A vector for each text

    def embed(
        self,
        texts: str | Sequence[str],
        second: str | Sequence[str] | None = None,
        *,
        progress: Callable[[int], None] | None = None,
        **options: Unpack[EmbedOptions],
    ) -> Vectors:
        """One vector for each text, or for each pair, in order: (texts, width). An empty text has one too, that of its
        symbols. A vector does not depend on the other texts, not in a bit."""
        return self._embedded(listed(texts), listed_pair(texts, second), in_texts, progress, options)

    def embed_lines(
        self,
        lines: Iterable[str],
        *,
        window: int = WINDOW,
        progress: Callable[[int], None] | None = None,
        **options: Unpack[EmbedOptions],
    ) -> Iterator[tuple[list[str], Vectors]]:
        """As `embed`, for a stream: reads `window` lines, gives them with their vectors, and reads on."""
        if window < 1:
            raise ConfigError(f"window={window} must be 1 line or more")
        self._embedded([], None, in_texts, None, options)  # options that make no sense are refused before reading
        return self._stream(iter(lines), window, progress, options)

    def _stream(
        self, lines: Iterator[str], window: int, progress: Callable[[int], None] | None, options: EmbedOptions
    ) -> Iterator[tuple[list[str], Vectors]]:
        before = 0
        while some := list(islice(lines, window)):
            yield some, self._embedded(some, None, line_after(before), told(progress, before), options)
            before += len(some)

    def _embedded(
        self,
        texts: Sequence[str],
        second: Sequence[str] | None,
        place: Place,
        progress: Callable[[int], None] | None,
        options: EmbedOptions,
    ) -> Vectors:
        given: dict[str, Any] = {**options}
        reading = {name: given.pop(name) for name in ("truncation", "max_length") if name in given}
        budget = given.pop("batch_tokens", BATCH_TOKENS)
        if budget < 1:
            raise ConfigError(f"{named('batch_tokens', budget)} must be at least 1")
        form = Form.of(self.encoder.depth, **given)
        rows = self.row_reader.rows(texts, second, place=place, **reading)
        found = np.empty((len(rows), self.encoder.width), np.float32)
        done = 0
        for group in self.alone.groups(rows, budget):
            found[group] = self._vectors([rows[place] for place in group], form)
            done += len(group)
            if progress is not None:
                progress(done)
        return found

    def _vectors(self, rows: Sequence[Row], form: Form) -> Vectors:
        with torch.inference_mode():
            found = self.alone.states(rows)
            chosen, mask = found.states[form.layer].float(), found.mask
            # Row by row: a sum over a batch may run in another order than that of a row alone.
            return torch.cat([form.vector(chosen[n : n + 1], mask[n : n + 1]) for n in range(len(rows))]).cpu().numpy()

    # What the model did

    def inspect(self, text: str, second: str | None = None) -> Inspection:
        """Tokens, every attention and every state, of a text or of a pair."""
        return inspect_texts(self.model, self.row_reader, text, second)

    def inspect_line(self, line: str, target: str | None = None, **options: Any) -> Inspection:
        """`inspect` for callers who know of no task: `target` is the second text of a pair."""
        refuse_search(options)
        return self.inspect(line, target)

    # One word in several sentences

    def similar(self, word: str, sentences: Sequence[str], **reading: Any) -> Similarity:
        """The cosines between the vectors that a word has in several sentences, at every layer."""
        return similarity(self.alone, self.row_reader, word, sentences, **reading)


def listed(texts: str | Sequence[str]) -> Sequence[str]:
    return [texts] if isinstance(texts, str) else texts


def listed_pair(texts: str | Sequence[str], second: str | Sequence[str] | None) -> Sequence[str] | None:
    """Text beside text, or texts beside texts."""
    if second is not None and isinstance(texts, str) != isinstance(second, str):
        raise ConfigError("texts and second should both be one text, or both be lists of texts")
    return None if second is None else listed(second)


def line_after(before: int) -> Place:
    return lambda number: f"line {before + number + 1}"


def told(progress: Callable[[int], None] | None, before: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda done: progress(before + done)
