"""The pointer network (Vinyals et al., 2015): what it generates are positions of its input.

Class 0 ends an output and class p + 1 is position p, so a sentence has one class more than positions.

Axes: B sentences, S input positions, C classes (1 + S), T outputs, R rows of a search, D width.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.data.batch import Batch, Source
from regard.errors import ConfigError, CorpusError
from regard.models.interface import Architecture, Shapes
from regard.models.pointer_reader import NO_POSITIONS, POSITIONS, LstmReader, TransformerReader
from regard.models.pointer_state import Memory, PointerState
from regard.models.transformer import TransformerConfig
from regard.nn.attention import FEWEST_SCORES, padded_keys
from regard.nn.dropout import dropout
from regard.nn.layers import MOST_LAYERS
from regard.nn.linear import Linear
from regard.nn.probe import Probe
from regard.nn.recurrent import Parts, Recurrent
from regard.nn.scores import Additive, ScoreShape
from regard.text.symbols import Symbols

READERS = ("lstm", "transformer")
END = 0
"""The class that ends an output."""
BLOCK = "decoder.0.pointer"


@dataclass(frozen=True, kw_only=True)
class PointerConfig:
    """A reader, an LSTM decoder, and additive pointing: u_i = v·tanh(W₁e_i + W₂d)."""

    architecture: str = "pointer"
    """The model architecture."""
    reader: str = "lstm"
    """What reads the input: lstm (the paper), from left to right, or transformer, every position at once."""
    width: int = 128
    """Width of every vector: inputs, encodings, the decoder's state, queries and keys."""
    layers: int = 1
    """Number of layers of the reader; the decoder has one."""
    heads: int = 4
    """Attention heads of a Transformer reader; must divide width."""
    feedforward: int = 512
    """Inner width of a Transformer reader's feed-forward networks."""
    positions: str = NO_POSITIONS
    """Position encodings of a Transformer reader: none (the input is a set), interleaved, halves or tensor2tensor."""
    glimpses: int = 0
    """Times that the decoder attends to the input before it points (Vinyals et al., 2016); 0 as in the first paper."""
    dropout: float = 0.0
    """Dropout on the inputs, inside the reader, and on the decoder's output."""
    once: bool = True
    """A position can be used once in an output: those already used are masked."""
    all: bool = False
    """An output cannot end before every position is used, as in a tour."""

    def __post_init__(self) -> None:
        if self.reader not in READERS:
            raise ConfigError(f"model.reader={self.reader!r} is not one of {', '.join(READERS)}")
        if self.positions not in POSITIONS:
            raise ConfigError(f"model.positions={self.positions!r} is not one of {', '.join(POSITIONS)}")
        if self.reader == "lstm" and self.positions != NO_POSITIONS:
            raise ConfigError(
                f"model.positions={self.positions!r} has no meaning for model.reader='lstm', which reads in order; "
                f"leave it out, or set model.reader='transformer'"
            )
        for key, least in (("width", 1), ("layers", 1), ("heads", 1), ("feedforward", 1), ("glimpses", 0)):
            if getattr(self, key) < least:
                raise ConfigError(f"model.{key}={getattr(self, key)} must be at least {least}")
        for key in ("layers", "glimpses"):
            if getattr(self, key) > MOST_LAYERS:
                raise ConfigError(f"model.{key}={getattr(self, key)} is more than {MOST_LAYERS}")
        if self.reader == "transformer" and self.width % self.heads:
            raise ConfigError(
                f"model.width={self.width} is not divisible by model.heads={self.heads}; choose heads that divide it"
            )
        if not 0.0 <= self.dropout < 1.0:
            raise ConfigError(f"model.dropout={self.dropout} must be at least 0 and below 1")


def weights_of(logits: Float[Tensor, "B T C"]) -> Float[Tensor, "B T C"]:
    """Softmax, of which at least one is finite; over so many columns that further ones of −∞ change no bit."""
    classes = logits.size(-1)
    return F.pad(logits, (0, max(FEWEST_SCORES - classes, 0)), value=-torch.inf).softmax(-1)[..., :classes]


def built_reader(config: PointerConfig) -> LstmReader | TransformerReader:
    if config.reader == "lstm":
        return LstmReader(config.width, config.layers, config.dropout)
    layers = TransformerConfig(
        width=config.width,
        heads=config.heads,
        feedforward=config.feedforward,
        encoder_layers=config.layers,
        dropout=config.dropout,
        norm="pre",
    )
    return TransformerReader(layers, config.positions)


class PointerNetwork(nn.Module):
    """Decodable and Attentive, and trainable on a `Batch` whose source holds numbers and whose targets are classes."""

    def __init__(self, config: PointerConfig, numbers: int, symbols: Symbols) -> None:
        super().__init__()
        width = config.width
        self.config, self.symbols = config, symbols
        self.project = Linear(numbers, width)
        self.reader = built_reader(config)
        self.decoder = Recurrent("lstm", width, width)
        shape = ScoreShape(query=width, memory=width)
        self.glimpses = nn.ModuleList(Additive(shape) for _ in range(config.glimpses))
        self.pointer = Additive(shape)
        self.start_input, self.end_encoding = (nn.Parameter(torch.randn(width) * width**-0.5) for _ in range(2))

    def read(self, source: Source, probe: Probe | None = None) -> tuple[Memory, Parts]:
        """What there is to point at, and the decoder's first state."""
        inputs = self.project(source.values)
        dropped = dropout(inputs, self.config.dropout, self.training)
        encodings, first = self.reader(dropped, source.mask, probe)
        mask, by_class = F.pad(source.mask, (1, 0), value=True), behind(self.end_encoding, encodings)
        keys = tuple(each.keys(by_class, mask) for each in self.scores)
        return Memory(behind(self.start_input, inputs), keys, mask), first

    @property
    def scores(self) -> list[Additive]:
        """One for each glimpse; the last is the pointer."""
        return [*(each for each in self.glimpses if isinstance(each, Additive)), self.pointer]

    def allowed(self, used: Bool[Tensor, "B T C"], mask: Bool[Tensor, "B C"]) -> Bool[Tensor, "B T C"]:
        """What may come next where `used` has come."""
        allowed = mask[:, None].expand_as(used)
        if self.config.once:
            allowed = allowed & ~used
        if self.config.all:
            every = (used | ~mask[:, None])[..., 1:].all(-1, keepdim=True)
            allowed = torch.cat([every, allowed[..., 1:]], -1)
        return allowed

    def point(
        self,
        d_BTD: Float[Tensor, "B T D"],
        keys: tuple[Float[Tensor, "B C D"], ...],
        allowed: Bool[Tensor, "B T C"],
        probe: Probe | None,
    ) -> Float[Tensor, "B T C"]:
        """u_i = v·tanh(W₁e_i + W₂d) for each state d of the decoder, to which a glimpse adds what it saw."""
        d_BTD = dropout(d_BTD, self.config.dropout, self.training)
        *glimpses, pointer = self.scores
        for glimpse, k_BCD in zip(glimpses, keys[:-1], strict=True):
            weights = weights_of(glimpse(d_BTD, k_BCD).masked_fill(~allowed, -torch.inf))
            d_BTD = d_BTD + (weights[..., None] * k_BCD[:, None]).sum(-2)
        logits = pointer(d_BTD, keys[-1]).masked_fill(~allowed, -torch.inf)
        if probe is not None:
            asked, form = pointer.compared(d_BTD)
            looked = (asked, keys[-1], logits, weights_of(logits))
            probe.record(BLOCK, *(each[:, None] for each in looked), form=form, mask=allowed[:, None])
        return logits

    def forward(self, batch: Batch, probe: Probe | None = None) -> Float[Tensor, "B T C"]:
        memory, first = self.read(batch.source, probe)
        read = batch.target_in[..., None].expand(-1, -1, memory.inputs.size(-1))
        d_BTD, _ = self.decoder(memory.inputs.gather(1, read), batch.target_mask, first)
        used = F.one_hot(batch.target_in, memory.size).cumsum(1) > 0
        allowed = self.allowed(without_end(used), memory.mask)
        if not allowed.is_meta:
            refuse_impossible(self.config, batch, allowed)
        return self.point(d_BTD, memory.keys, allowed, probe)

    def forbids(self, positions: Sequence[int], count: int) -> str:
        """Why the finished model can never give this answer to `count` positions; empty where it can."""
        what, setting, instead = forbidden(self.config, positions, count)
        return what and f"{shown(positions)} {what}, but this model {instead} (model.{setting}=true)."

    def start(self, source: Source, probe: Probe | None = None) -> PointerState:
        memory, first = self.read(source, probe)
        memory = memory.sized(padded_keys(memory.size))
        owners = torch.arange(len(source), device=memory.mask.device)
        return PointerState(memory, owners, first, torch.zeros_like(memory.mask))

    def step(
        self, tokens: Int[Tensor, " R"], state: PointerState, probe: Probe | None = None
    ) -> tuple[Float[Tensor, "R C"], PointerState]:
        memory, owners = state.memory, state.owners
        d_RD, decoder = self.decoder.step(memory.inputs[owners, tokens], state.decoder)
        used = without_end(state.used.scatter(1, tokens[:, None], True))
        allowed = self.allowed(used[:, None], memory.mask[owners])
        logits = self.point(d_RD[:, None], tuple(keys[owners] for keys in memory.keys), allowed, probe)[:, 0]
        return logits, PointerState(memory, owners, decoder, used)

    def step_and_look(
        self, tokens: Int[Tensor, " R"], state: PointerState
    ) -> tuple[Float[Tensor, "R C"], PointerState, Float[Tensor, "R 1 1 S"]]:
        """As `step`, and the probability of each position."""
        logits, after = self.step(tokens, state)
        return logits, after, weights_of(logits[:, None])[:, None, :, 1:]


def behind(first: Float[Tensor, " D"], others: Float[Tensor, "B S D"]) -> Float[Tensor, "B C D"]:
    """What class 0 has, and then what the positions have."""
    return torch.cat([first.expand(others.size(0), 1, -1), others], 1)


def without_end(used: Bool[Tensor, "*B C"]) -> Bool[Tensor, "*B C"]:
    """The start is written as class 0, which is no position."""
    return F.pad(used[..., 1:], (1, 0))


def refuse_impossible(config: PointerConfig, batch: Batch, allowed: Bool[Tensor, "B T C"]) -> None:
    """CorpusError for a target to which masks leave no probability."""
    wrong = ~allowed.gather(-1, batch.target_out[..., None])[..., 0] & batch.target_mask
    if not bool(wrong.any()):
        return
    row = int(wrong.any(1).nonzero()[0])
    positions = (batch.target_out[row][batch.target_mask[row]][:-1] - 1).tolist()
    what, setting, _ = forbidden(config, positions, int(batch.source.mask[row].sum()))
    raise CorpusError(
        f"{shown(positions)} {what}, but model.{setting}=true; set model.{setting}=false, or mend the line."
    )


def forbidden(config: PointerConfig, positions: Sequence[int], count: int) -> tuple[str, str, str]:
    """What an answer to `count` positions does that its masks forbid, the setting that does, and what the model does
    instead; empty where they do not."""
    again = next((place for place, times in Counter(positions).items() if times > 1), None)
    if config.once and again is not None:
        return f"use {again} twice", "once", "uses each position at most once"
    if config.all and len(set(positions)) < count:
        return "leave a position out", "all", "uses every position"
    return "", "", ""


def shown(positions: Sequence[int]) -> str:
    return f"the positions '{' '.join(map(str, positions[:20]))}{' …' * (len(positions) > 20)}'"


# What the pointer network answers for itself


def built(config: PointerConfig, shapes: Shapes) -> PointerNetwork:
    return PointerNetwork(config, shapes["numbers"], shapes.symbols)


def own_symbols(_: PointerConfig, symbols: Symbols) -> Symbols:
    """Class 0 ends, and is read first."""
    return Symbols(start=END, end=END, pad=END)


def summary(config: PointerConfig) -> str:
    layers = "1 layer" if config.layers == 1 else f"{config.layers} layers"
    return f"{config.reader} reader of {layers}, width {config.width}"


ARCHITECTURE = Architecture(config=PointerConfig, build=built, tasks=("point",), symbols=own_symbols, summary=summary)
