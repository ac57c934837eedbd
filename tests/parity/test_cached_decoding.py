"""Decoding step by step, with a cache, gives what the whole forward pass gives, whatever happens to the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.data.batch import Source
from regard.models import Decodable, State, Transformer, TransformerConfig
from regard.models.transformer_state import TransformerState
from regard.nn import Probe
from regard.text.tokenizer import END, PAD, START
from tests.decodables import collated

SOURCE_WORDS, TARGET_WORDS, FIRST_WORD = 37, 41, 3
TOLERANCES = [(torch.float64, 1e-9), (torch.float32, 1e-4)]

VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "pre-norm": {"norm": "pre"},
    "halves": {"positions": "halves"},
    "tensor2tensor": {"positions": "tensor2tensor", "norm": "pre"},
    "learned": {"positions": "learned", "max_positions": 19},
    "starts with the end": {"start": "end"},
    "starts with padding": {"start": "padding", "norm": "pre"},
    "widths apart": {"heads": 3, "key_width": 5, "value_width": 7},
    "no biases": {"bias": False},
    "output bias": {"output_bias": True},
    "deep encoder": {"encoder_layers": 3, "decoder_layers": 1},
    "deep decoder": {"encoder_layers": 1, "decoder_layers": 3, "norm": "pre"},
    "shared by target and output": {"share": "target"},
    "one matrix": {"share": "all"},
}


def build(settings: dict[str, Any], dtype: torch.dtype = torch.float64) -> Transformer:
    """A model in which no parameter is at rest: biases are not 0, gains not 1."""
    shape = {"width": 22, "heads": 2, "feedforward": 29, "encoder_layers": 2, "decoder_layers": 2, "share": "none"}
    config = TransformerConfig(**(shape | settings))
    torch.manual_seed(23)
    model = Transformer(config, TARGET_WORDS if config.share == "all" else SOURCE_WORDS, TARGET_WORDS)
    for name, parameter in model.named_parameters():
        is_gain = "norm" in name and name.endswith("weight")
        torch.nn.init.normal_(parameter, mean=float(is_gain), std=0.2)
    return model.to(dtype).eval()


def sentences(*lengths: int) -> list[list[int]]:
    return [[*torch.randint(FIRST_WORD, SOURCE_WORDS, (length,)).tolist(), END] for length in lengths]


def whole(model: Transformer, sources: list[list[int]], prefixes: list[list[int]]) -> Tensor:
    """Logits behind the start symbol and behind each token of the prefixes, which are equally long."""
    with torch.no_grad():
        return model(collated(sources, prefixes, model.symbols))


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_cached_steps_are_the_whole_forward_pass(variant: str, dtype: torch.dtype, tolerance: float):
    model = build(VARIANTS[variant], dtype)
    sources = sentences(3, 11, 7, 1, 5)
    targets = torch.randint(FIRST_WORD, TARGET_WORDS, (5, 13))
    expected = whole(model, sources, targets.tolist())
    assert float(expected.std()) > 0.1
    with torch.no_grad():
        state = model.start(Source.of(sources))
        tokens = torch.full((5,), model.symbols.start)
        for place in range(14):
            logits, state = model.step(tokens, state)
            assert torch.allclose(logits, expected[:, place], rtol=tolerance, atol=tolerance)
            tokens = targets[:, min(place, 12)]


def test_a_model_and_its_state_keep_the_interface():
    model = build({})
    assert isinstance(model, Decodable)
    assert isinstance(model.start(Source.of(sentences(3))), State)


@pytest.mark.parametrize(("start", "symbol"), [("start", START), ("end", END), ("padding", PAD)])
def test_the_start_symbol_is_what_the_config_says(start: str, symbol: int):
    assert build({"start": start}).symbols.start == symbol


@dataclass
class Rows:
    """Rows of a search, beside what each stands for: a sentence and the tokens it has read."""

    model: Transformer
    sources: list[list[int]]
    state: TransformerState
    owners: list[int]
    prefixes: list[list[int]]

    @classmethod
    def first(cls, model: Transformer, sources: list[list[int]]) -> Rows:
        with torch.no_grad():
            state = model.start(Source.of(sources))
        return cls(model, sources, state, list(range(len(sources))), [[] for _ in sources])

    def step(self, tolerance: float) -> None:
        """Each row reads a token of its own; its logits are those of its sentence and prefix."""
        for prefix in self.prefixes:
            prefix.append(int(torch.randint(FIRST_WORD, TARGET_WORDS, ())))
        tokens = [prefix[-2] if len(prefix) > 1 else self.model.symbols.start for prefix in self.prefixes]
        with torch.no_grad():
            logits, self.state = self.model.step(torch.tensor(tokens), self.state)
        for age in {len(prefix) for prefix in self.prefixes}:
            rows = [row for row, prefix in enumerate(self.prefixes) if len(prefix) == age]
            read = [self.prefixes[row][:-1] for row in rows]
            expected = whole(self.model, [self.sources[self.owners[row]] for row in rows], read)[:, -1]
            assert logits[rows].shape == expected.shape
            assert torch.allclose(logits[rows], expected, rtol=tolerance, atol=tolerance)

    def reorder(self, parents: list[int]) -> None:
        self.state = self.state.reorder(torch.tensor(parents))
        self.owners = [self.owners[parent] for parent in parents]
        self.prefixes = [list(self.prefixes[parent]) for parent in parents]

    def join(self, other: Rows) -> None:
        self.state = self.state.join(other.state)
        self.owners = self.owners + [len(self.sources) + owner for owner in other.owners]
        self.sources, self.prefixes = self.sources + other.sources, self.prefixes + other.prefixes


REORDERS = {
    "beams widen": [[0, 0, 0, 1, 1, 1, 2, 2, 2]],
    "widened beams change places inside": [[0, 0, 1, 1, 2, 2], [1, 0, 3, 3, 4, 5]],
    "a sentence leaves": [[0, 0, 1, 1, 2, 2], [0, 1, 5, 4]],
    "the first sentence leaves": [[0, 0, 1, 1, 2, 2], [2, 3, 4, 4], [0, 0]],
    "permuted": [[2, 0, 1], [1, 2, 0]],
    "interleaved": [[0, 1, 2, 0, 1, 2], [3, 1, 5]],
    "ragged": [[0, 0, 0, 1, 2, 2], [5, 5, 1, 0, 3]],
    "ragged, then even again": [[0, 0, 1], [0, 1, 2, 2], [3, 2, 1, 0]],
    "one row": [[1], [0, 0, 0, 0, 0], [4]],
    "the same": [[0, 1, 2], [0, 1, 2]],
}


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
@pytest.mark.parametrize("history", REORDERS)
def test_reordered_rows_keep_their_sentence_and_past(history: str, dtype: torch.dtype, tolerance: float):
    rows = Rows.first(build({}, dtype), sentences(7, 3, 11))
    rows.step(tolerance)
    for parents in REORDERS[history]:
        rows.reorder(parents)
        rows.step(tolerance)
        rows.step(tolerance)


def test_rows_may_be_reordered_before_the_first_step():
    rows = Rows.first(build({"norm": "pre"}), sentences(7, 3, 11))
    rows.reorder([2, 2, 0, 0])
    rows.step(1e-9)
    rows.step(1e-9)


@settings(max_examples=40)
@given(variant=st.sampled_from(sorted(VARIANTS)), data=st.data())
def test_any_history_of_rows_keeps_sentence_and_past(variant: str, data: st.DataObject):
    rows = Rows.first(build(VARIANTS[variant]), sentences(5, 2, 7))
    rows.step(1e-9)
    for _ in range(data.draw(st.integers(1, 4))):
        parent = st.integers(0, len(rows.owners) - 1)
        rows.reorder(data.draw(st.lists(parent, min_size=1, max_size=7)))
        rows.step(1e-9)


def aged(model: Transformer, sources: list[list[int]], steps: int, parents: list[int] | None = None) -> Rows:
    """Rows that have taken so many steps, reordered in the middle."""
    rows = Rows.first(model, sources)
    for step in range(steps):
        if parents is not None and step == steps // 2:
            rows.reorder(parents)
        rows.step(1e-3)
    return rows


JOINS: dict[str, tuple[tuple[int, list[int] | None], ...]] = {
    "newcomers": ((5, None), (0, None)),
    "before any step": ((0, None), (0, None)),
    "older ones": ((2, None), (19, None)),
    "of one age": ((3, None), (3, None)),
    "three ages": ((17, None), (1, None), (8, None)),
    "beams": ((4, [0, 0, 0, 1, 1, 1]), (1, [1, 1, 1, 0, 0, 0]), (9, [0, 0, 0])),
    "beams of different width": ((4, [0, 0, 1, 1]), (2, [0, 0, 0, 1, 1, 1])),
    "ragged rows": ((4, [0, 0, 1]), (2, [1, 0, 1])),
}


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
@pytest.mark.parametrize("history", JOINS)
def test_joined_rows_keep_their_age_sentence_and_past(history: str, dtype: torch.dtype, tolerance: float):
    """Sources of different lengths, too; and the old rows may leave, or the young."""
    model, lengths = build({}, dtype), [(7, 3), (17, 1), (2, 11)]
    rows, *others = [
        aged(model, sentences(*lengths[number]), steps, parents)
        for number, (steps, parents) in enumerate(JOINS[history])
    ]
    for other in others:
        rows.join(other)
    rows.step(tolerance)
    rows.step(tolerance)
    size = len(rows.owners)
    rows.reorder([*range(size // 2, size), 0, 0])
    rows.step(tolerance)
    rows.reorder(list(range(size // 2)))
    rows.step(tolerance)


def test_a_state_that_joins_or_steps_is_not_changed():
    model = build({})
    old, young = aged(model, sentences(7, 3), 5), aged(model, sentences(17), 1)
    with torch.no_grad():
        joined = old.state.join(young.state)
        turned = joined.reorder(torch.tensor([2, 0, 1]))
        first, _ = model.step(torch.tensor([5, 6, 7]), joined)
        second, _ = model.step(torch.tensor([7, 5, 6]), turned)
        again, _ = model.step(torch.tensor([5, 6, 7]), joined)
    assert torch.equal(first, again)
    assert torch.allclose(first[[2, 0, 1]], second, rtol=1e-9, atol=1e-9)
    for rows in (old, young):
        before = rows.state
        rows.step(1e-9)  # may write behind what the state before it sees …
        rows.prefixes, rows.state = [prefix[:-1] for prefix in rows.prefixes], before
        rows.step(1e-9)  # … and another step from that one must not
        rows.step(1e-9)


def test_room_for_the_past_and_the_source_shrinks_when_those_who_need_it_leave():
    model = build({})
    rows = aged(model, sentences(30), 20)
    rows.join(aged(model, sentences(3), 1))
    rows.step(1e-9)

    def room() -> tuple[int, int]:
        (wave,) = rows.state.waves  # one row and one row are merged
        return wave.pasts[0].size, wave.memories[0].size

    assert room() == (24, 32)
    rows.reorder([1])
    rows.step(1e-9)
    assert room() == (4, 4)


def test_rows_of_about_one_age_are_one_wave_and_young_rows_do_not_pay_for_old_ones():
    model = build({})
    rows, many = aged(model, sentences(*[5] * 3), 18), sentences(*[3] * 37)
    rows.join(Rows.first(model, many))  # 37 rows would have 16 keys more
    assert rows.state.sizes == [3, 37]
    rows.step(1e-9)
    rows.join(Rows.first(model, many))
    assert rows.state.sizes == [3, 74]
    rows.step(1e-9)
    rows.reorder([0, 1, 2, 5, 76])
    rows.join(Rows.first(model, sentences(3)))  # so few that a call would cost more
    assert rows.state.sizes == [6]
    rows.step(1e-9)


@settings(max_examples=30)
@given(variant=st.sampled_from(sorted(VARIANTS)), data=st.data())
def test_any_history_of_joins_keeps_age_sentence_and_past(variant: str, data: st.DataObject):
    model = build(VARIANTS[variant])
    rows = Rows.first(model, sentences(5, 2))
    for _ in range(data.draw(st.integers(1, 5))):
        rows.step(1e-9)
        if data.draw(st.booleans()):
            rows.join(Rows.first(model, sentences(*data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=3)))))
        if data.draw(st.booleans()):
            parent = st.integers(0, len(rows.owners) - 1)
            rows.reorder(data.draw(st.lists(parent, min_size=1, max_size=7)))
    rows.step(1e-9)


def test_a_probe_sees_in_steps_what_it_sees_in_the_whole_pass():
    model, sources = build({}), sentences(7, 3)
    prefixes = [[5, 7, 11], [13, 17, 19]]
    probe, stepped = Probe(), Probe()
    with torch.no_grad():
        model(collated(sources, prefixes, model.symbols), probe)
        state = model.start(Source.of(sources))
        tokens = torch.tensor([[model.symbols.start, *prefix] for prefix in prefixes])
        for place in range(4):
            stepped.looks.clear()
            _, state = model.step(tokens[:, place], state, stepped)
    seen_by, last_by = ({look.block: look for look in one.looks if look.side == "decoder"} for one in (probe, stepped))
    assert (
        seen_by.keys()
        == last_by.keys()
        == {f"decoder.{layer}.{kind}" for layer in (0, 1) for kind in ("self", "cross")}
    )
    for block, last in last_by.items():
        seen = seen_by[block]
        assert torch.allclose(seen.weights[:, :, -1:], last.weights, rtol=0, atol=1e-12)
