"""The LSTMN's layer against the paper's formulas, written out in loops, and against an LSTM."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from regard.data.batch import Source
from regard.errors import ConfigError
from regard.models import ARCHITECTURES, Shapes
from regard.models.lstmn import LstmnConfig
from regard.models.lstmn_lm import LstmnLmConfig
from regard.models.lstmn_state import Tapes
from regard.nn.lstmn import LstmnLayer
from regard.nn.probe import Probe
from tests.decodables import collated, tiny_decodables, tiny_language_models

READ, WIDTH = 5, 3


def layer_in_doubles(seed: int = 3) -> LstmnLayer:
    torch.manual_seed(seed)
    layer = LstmnLayer(READ, WIDTH, "decoder.0.self").double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter, std=0.7)
    return layer


def by_formula(layer: LstmnLayer, x: Tensor) -> Tensor:
    """Cheng, Dong and Lapata 2016, section 3.2, step by step and entry by entry, for one row."""
    of_x, bias, of_summary = layer.of_input.weight, layer.of_input.bias, layer.of_summary.weight
    hidden_tape, memory_tape, summary = list[Tensor](), list[Tensor](), torch.zeros(WIDTH).double()
    for now in x:
        scores = [
            layer.v
            @ torch.tanh(layer.of_hidden.weight @ h + of_x[:WIDTH] @ now + bias[:WIDTH] + of_summary[:WIDTH] @ summary)
            for h in hidden_tape
        ]
        shares = [score.exp() / sum(other.exp() for other in scores) for score in scores]
        zero = torch.zeros(WIDTH).double()
        summary = sum((share * h for share, h in zip(shares, hidden_tape, strict=True)), zero)
        memory = sum((share * c for share, c in zip(shares, memory_tape, strict=True)), zero)
        gates = of_x[WIDTH:] @ now + bias[WIDTH:] + of_summary[WIDTH:] @ summary
        i, f, new, o = gates[:WIDTH], gates[WIDTH : 2 * WIDTH], gates[2 * WIDTH : 3 * WIDTH], gates[3 * WIDTH :]
        memory_tape.append(f.sigmoid() * memory + i.sigmoid() * new.tanh())
        hidden_tape.append(o.sigmoid() * memory_tape[-1].tanh())
    return torch.stack(hidden_tape)


def test_a_layer_is_the_papers_formula_forward_and_backward():
    layer = layer_in_doubles()
    x = torch.randn(7, READ, dtype=torch.float64, requires_grad=True)
    found, expected = layer.hidden(layer.unroll(x, [1] * 7)), by_formula(layer, x)
    assert torch.allclose(found, expected, atol=1e-12, rtol=0)
    weigh = torch.randn_like(expected)
    wanted = [x, *layer.parameters()]
    ours = torch.autograd.grad((found * weigh).sum(), wanted)
    theirs = torch.autograd.grad((expected * weigh).sum(), wanted)
    for one, other in zip(ours, theirs, strict=True):
        assert torch.allclose(one, other, atol=1e-11, rtol=0)


def test_rows_of_unequal_length_are_the_rows_alone():
    """Laid out step by step, the longest first."""
    layer, lengths = layer_in_doubles(), [7, 5, 5, 2]
    rows = [torch.randn(length, READ, dtype=torch.float64) for length in lengths]
    sizes = [sum(length > step for length in lengths) for step in range(lengths[0])]
    x = torch.cat([torch.stack([row[step] for row in rows[:size]]) for step, size in enumerate(sizes)])
    steps = layer.hidden(layer.unroll(x, sizes)).split(sizes)
    for number, row in enumerate(rows):
        found = torch.stack([step[number] for step in steps[: len(row)]])
        assert torch.allclose(found, by_formula(layer, row), atol=1e-12, rtol=0)


def test_a_layer_that_looks_at_the_last_entry_alone_is_an_lstm():
    """The first unit is a clock: it forgets nothing and adds as much in each step, and the scores grow with it."""
    layer, cell = layer_in_doubles(), nn.LSTMCell(READ, WIDTH).double()
    clock = [WIDTH * (1 + gate) for gate in range(4)]
    with torch.no_grad():
        for parameter in (layer.of_input.weight, layer.of_summary.weight):
            parameter[:WIDTH] = 0.0
            parameter[clock] = 0.0
        layer.of_input.bias[:WIDTH] = 0.0
        layer.of_input.bias[clock] = torch.tensor([50.0, 50.0, 0.1, 50.0]).double()
        layer.of_hidden.weight.zero_()[0, 0] = 1.0
        layer.v.zero_()[0] = 1e5
        cell.weight_ih.copy_(layer.of_input.weight[WIDTH:])
        cell.bias_ih.copy_(layer.of_input.bias[WIDTH:])
        cell.weight_hh.copy_(layer.of_summary.weight[WIDTH:])
        cell.bias_hh.zero_()
        x = torch.randn(11, READ, dtype=torch.float64)
        found, state = layer.hidden(layer.unroll(x, [1] * 11)), (torch.zeros(1, WIDTH).double(),) * 2
        for step in range(11):
            state = cell(x[step : step + 1], state)
            assert torch.allclose(found[step], state[0][0], atol=1e-9, rtol=0)


def test_the_forget_gate_is_open_at_first():
    bias = LstmnLayer(READ, WIDTH).of_input.bias
    assert bias[2 * WIDTH : 3 * WIDTH].tolist() == [1.0] * WIDTH


def test_a_training_in_bf16_keeps_the_tape_in_full_precision():
    layer = LstmnLayer(READ, WIDTH)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = layer.unroll(torch.randn(6, READ), [2, 2, 2])
    assert found.dtype == torch.float32
    memory = found[:, 2 * WIDTH :]
    assert not torch.equal(memory, memory.bfloat16().float())


# --- what a probe sees


def test_a_probe_sees_every_attention_by_its_name():
    model = tiny_decodables()["lstmn"]
    batch = collated([[5, 6, 7, 2], [8, 2]], [[9, 10], [11, 12]])
    probe = Probe()
    with torch.no_grad():
        model(batch, probe)
    assert [look.block for look in probe.looks] == ["encoder.0.self", "decoder.0.self", "decoder.0.cross"]
    encoder, decoder, across = (look.weights[:, 0] for look in probe.looks)
    assert torch.equal(encoder, encoder.tril(-1))  # a step has read what came before it
    assert torch.allclose(encoder.sum(-1)[:, 1:], torch.ones(2, 3))
    assert torch.equal(decoder, decoder.tril())  # and the decoder's tape begins with the encoder's last state
    assert torch.allclose(decoder.sum(-1), torch.ones(2, 3))
    assert across.shape == (2, 3, 4)
    assert across[1, :, 2:].eq(0).all()


def test_a_probe_sees_in_steps_what_it_sees_at_once():
    model, tokens = tiny_language_models()["lstmn-lm"], [1, 7, 9, 5]
    whole, probe = Probe(), Probe()
    with torch.no_grad():
        model.decoder.unroll(model.embedding(torch.tensor(tokens)), [1] * 4, None, whole)
        state = model.start(Source.of([[1]]))
        for token in tokens:
            _, state = model.step(torch.tensor([token]), state, probe)
    assert [look.block for look in probe.looks] == ["decoder.0.self", "decoder.1.self"] * 4
    for at_once in whole.of("decoder", "self"):
        steps = [look for look in probe.looks if look.layer == at_once.layer]
        for step, look in enumerate(steps):
            assert look.weights.shape == (1, 1, 1, step)
            assert torch.allclose(look.weights[0, 0, 0], at_once.weights[0, 0, step, :step], atol=1e-6)
            assert torch.allclose(look.keys[0, 0], at_once.keys[0, 0, :step], atol=1e-5)


# --- tapes


def test_tapes_of_different_age_join_and_shrink():
    torch.manual_seed(1)
    old = Tapes.empty(2, torch.zeros(2, 3))
    for _ in range(6):
        old = old.extended([torch.randn(2, 9)] * 2, [torch.randn(2, 3)] * 2)
    young = Tapes.empty(2, torch.zeros(1, 3)).extended([torch.ones(1, 9)] * 2, [torch.zeros(1, 3)] * 2)
    both = old.join(young)
    assert (both.ages.tolist(), both.entries[0].shape) == ([6, 6, 1], (3, 8, 9))
    assert both.mask.sum(1).tolist() == [6, 6, 1]
    alone = both.reorder(torch.tensor([2, 2]))
    assert alone.entries[0].shape == (2, 4, 9)
    assert torch.equal(alone.entries[1][:, 0], torch.ones(2, 9))


def test_two_steps_from_one_state_do_not_disturb_each_other():
    model = tiny_language_models()["lstmn-lm"]
    with torch.inference_mode():
        _, state = model.step(torch.tensor([1]), model.start(Source.of([[1]])))
        first, _ = model.step(torch.tensor([7]), state)
        model.step(torch.tensor([9]), state)
        again, _ = model.step(torch.tensor([7]), state)
    assert torch.equal(first, again)


# --- settings


@pytest.mark.parametrize("config", [LstmnConfig, LstmnLmConfig])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, r"model\.width=0 must be at least 1"),
        ({"layers": 0}, r"model\.layers=0 must be at least 1"),
        ({"layers": 129}, r"model\.layers=129 is more than 128"),
        ({"dropout": 1.0}, r"model\.dropout=1\.0 must be at least 0 and below 1"),
    ],
)
def test_settings_that_no_model_can_have(config: type, settings: dict[str, float], message: str):
    with pytest.raises(ConfigError, match=message):
        config(**settings)


def test_matrices_are_tied_where_the_settings_say_so():
    with pytest.raises(ConfigError, match=r"model\.share='all' is not one of target, none"):
        LstmnConfig(share="all")
    for name, shared, apart in (("lstmn", {"share": "target"}, {"share": "none"}), ("lstmn-lm", {}, {"tied": False})):
        architecture, sizes = ARCHITECTURES[name], Shapes({"source": 37, "target": 41, "text": 41})
        one, two = (architecture.build(architecture.config(width=8, **own), sizes) for own in (shared, apart))
        assert sum(p.numel() for p in two.parameters()) - sum(p.numel() for p in one.parameters()) == 8 * 41
