"""Recurrent layers against torch's: the same outputs and states, whatever the lengths, in training and by steps."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.errors import ConfigError
from regard.nn.elementwise import CALL, by_row
from regard.nn.recurrent import CELLS, Parts, Recurrent

READ, WIDTH = 7, 11
TORCH: dict[str, Any] = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}

cells = pytest.mark.parametrize("cell", CELLS)
depths = pytest.mark.parametrize(("layers", "bidirectional"), [(1, False), (2, False), (1, True), (2, True)])
lengths = st.lists(st.integers(1, 13), min_size=1, max_size=5)


def built(cell: str, layers: int, bidirectional: bool) -> tuple[Recurrent, nn.RNNBase]:
    """Ours, and torch's with the same weights."""
    torch.manual_seed(3)
    ours = Recurrent(cell, READ, WIDTH, layers=layers, bidirectional=bidirectional)
    theirs = TORCH[cell](READ, WIDTH, layers, bidirectional=bidirectional, batch_first=True)
    theirs.load_state_dict(ours.layers.state_dict())
    return ours, theirs


def rows_of(lengths: list[int], more: int = 0) -> tuple[Tensor, Tensor]:
    """Vectors with noise on the padding, and the mask."""
    size = max(lengths) + more
    return torch.randn(len(lengths), size, READ), torch.arange(size)[None] < torch.tensor(lengths)[:, None]


def of_torch(theirs: nn.RNNBase, x: Tensor, lengths: list[int], first: Any = None) -> tuple[Tensor, Parts]:
    packed = pack_padded_sequence(x, torch.tensor(lengths), batch_first=True, enforce_sorted=False)
    outputs, last = theirs(packed, first)
    padded, _ = pad_packed_sequence(outputs, batch_first=True, total_length=x.size(1))
    return padded, last if isinstance(last, tuple) else (last,)


def is_close(ours: tuple[Tensor, Parts], theirs: tuple[Tensor, Parts], directions: int) -> bool:
    """Outputs, and the states of every layer and direction."""
    states = zip(ours[1], theirs[1], strict=True)
    turned = [(own.unflatten(2, (directions, WIDTH)).permute(1, 2, 0, 3).flatten(0, 1), other) for own, other in states]
    return all(torch.allclose(own, other, rtol=0, atol=1e-6) for own, other in [(ours[0], theirs[0]), *turned])


@cells
@depths
@settings(max_examples=4)
@given(lengths=lengths, more=st.integers(0, 5))
def test_layers_are_those_of_torch_in_training_and_by_steps(
    cell: str, layers: int, bidirectional: bool, lengths: list[int], more: int
):
    ours, theirs = built(cell, layers, bidirectional)
    x, mask = rows_of(lengths, more)
    with torch.no_grad():
        expected = of_torch(theirs, x, lengths)
        assert is_close(ours(x, mask), expected, 1 + bidirectional)
    with torch.inference_mode():
        assert is_close(ours(x, mask), expected, 1 + bidirectional)


@cells
def test_a_given_state_comes_first(cell: str):
    ours, theirs = built(cell, 2, False)
    x, mask = rows_of([5, 3, 2])
    state = tuple(torch.randn(3, 2, WIDTH) for _ in range(CELLS[cell].parts))
    turned = tuple(part.transpose(0, 1).contiguous() for part in state)
    expected = of_torch(theirs, x, [5, 3, 2], turned if cell == "lstm" else turned[0])
    assert is_close(ours(x, mask, state), expected, 1)
    with torch.inference_mode():
        assert is_close(ours(x, mask, state), expected, 1)


@cells
def test_single_steps_are_the_whole(cell: str):
    ours, _ = built(cell, 2, False)
    x, mask = rows_of([5, 5, 5])
    state = tuple(torch.randn(3, 2, WIDTH) for _ in range(CELLS[cell].parts))
    outputs, last = ours(x, mask, state)
    for place in range(5):
        top, state = ours.step(x[:, place], state)
        assert torch.allclose(top, outputs[:, place], atol=1e-6)
    for own, other in zip(state, last, strict=True):
        assert torch.allclose(own, other, atol=1e-6)


@cells
@depths
def test_padding_gets_no_state_and_no_gradient(cell: str, layers: int, bidirectional: bool):
    ours, _ = built(cell, layers, bidirectional)
    x, mask = rows_of([2, 7, 5], more=3)
    x.requires_grad_()
    outputs, last = ours(x, mask)
    assert torch.equal(outputs * ~mask[..., None], torch.zeros_like(outputs))
    total = outputs.square().sum() + sum(part.square().sum() for part in last)
    (gradient,) = torch.autograd.grad(total, [x])
    assert torch.equal(gradient * ~mask[..., None], torch.zeros_like(gradient))
    assert (gradient.abs().sum(-1) > 0)[mask].all()


@cells
@pytest.mark.parametrize("width", [11, 32])
def test_in_inference_a_row_has_the_same_bits_in_any_company(cell: str, width: int):
    torch.manual_seed(5)
    ours = Recurrent(cell, READ, width, layers=2, bidirectional=True)
    lengths = [1, 13, 4, 9, 2, 7, 11]
    x, mask = rows_of(lengths, more=3)
    with torch.inference_mode():
        outputs, last = ours(x, mask)
        for row, length in enumerate(lengths):
            alone, own = ours(x[row : row + 1, :length], mask[row : row + 1, :length])
            assert torch.equal(outputs[row, :length], alone[0])
            assert all(torch.equal(part[row], single[0]) for part, single in zip(last, own, strict=True))


def test_dropout_falls_between_the_layers_only():
    torch.manual_seed(1)
    one = Recurrent("gru", READ, WIDTH, dropout=0.5)
    two = Recurrent("gru", READ, WIDTH, layers=2, dropout=0.5)
    x, mask = rows_of([5])
    zeros = (torch.zeros(1, 2, WIDTH),)
    assert torch.equal(one(x, mask)[0], one(x, mask)[0])
    assert not torch.equal(two(x, mask)[0], two(x, mask)[0])
    assert not torch.equal(two.step(x[:, 0], zeros)[0], two.step(x[:, 0], zeros)[0])
    two.eval()
    assert torch.equal(two(x, mask)[0], two(x, mask)[0])


def test_a_cell_that_is_not_known_is_refused():
    with pytest.raises(ConfigError, match=r"model\.cell='mgu' is not one of rnn, lstm, gru"):
        Recurrent("mgu", READ, WIDTH)


# --- elementwise functions


@pytest.mark.parametrize("function", [torch.tanh, torch.sigmoid, torch.exp])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_number_has_the_same_bits_wherever_it_stands(function: Any, threads: int):
    """In the tail of a tensor, at the border of two threads and alone."""
    torch.set_num_threads(threads)
    x = 3 * torch.randn(2 * CALL + 77)
    with torch.inference_mode():
        expected = by_row(function, x)
        assert torch.allclose(expected, function(x))
        for size in (1, 2, 7, 15, 17, 33, 63, 65, 1000, CALL - 1, CALL + 1):
            begin = int(torch.randint(0, len(x) - size, ()))
            assert torch.equal(by_row(function, x[begin : begin + size]), expected[begin : begin + size])
        turned = x[: 7 * 11].view(7, 11).t()
        assert torch.equal(by_row(function, turned), expected[: 7 * 11].view(7, 11).t())
