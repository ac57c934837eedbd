"""The RNN encoder–decoder: what enters its decoder, what it looks at, what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.config import build_config, read_recipe
from regard.data.batch import Batch, Source
from regard.decode.forced import force
from regard.errors import ConfigError, RegardError
from regard.models import ARCHITECTURES, Shapes
from regard.models.costs import model_on_paper, multiplications, parameter_count
from regard.models.interface import Attentive, Corpus, LinearOutput
from regard.models.rnn import RnnEncoderDecoder, built
from regard.models.rnn_parts import Reader, RnnConfig
from regard.nn import Probe
from regard.nn.loss import Objective
from regard.nn.recurrent import Parts
from regard.nn.scores import SCORES
from regard.tasks.sequence_loss import sequence_loss
from regard.text.symbols import RESERVED
from tests.decodables import SOURCE_WORDS, TARGET_WORDS, collated

SHAPES = Shapes({"source": SOURCE_WORDS, "target": TARGET_WORDS})
WIDTH = 13
CELLS = ("rnn", "lstm", "gru")


def model_of(**settings: Any) -> RnnEncoderDecoder:
    """In double precision, with no parameter at rest."""
    torch.manual_seed(11)
    model = built(RnnConfig(**{"width": WIDTH, "dropout": 0.0} | settings), SHAPES)
    assert isinstance(model, RnnEncoderDecoder)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return model.double().eval()


def reader_of(model: RnnEncoderDecoder) -> Reader:
    (reader,) = model.readers
    assert isinstance(reader, Reader)
    return reader


def last_states(model: RnnEncoderDecoder, source: Source) -> Parts:
    """Of the encoder, behind each sentence."""
    reader = reader_of(model)
    return reader.layers(reader.embedding(source.values), source.mask)[1]


def embeddings_of(model: RnnEncoderDecoder) -> Tensor:
    """The source's."""
    return reader_of(model).get_parameter("embedding.weight")


def pairs(lengths: list[int], steps: list[int]) -> Batch:
    sources = [[*torch.randint(4, SOURCE_WORDS, (length,)).tolist(), RESERVED.end] for length in lengths]
    return collated(sources, [torch.randint(4, TARGET_WORDS, (step,)).tolist() for step in steps])


@pytest.mark.parametrize("score", ["none", *SCORES])
def test_only_a_model_that_attends_says_where_it_looked(score: str):
    model = model_of(score=score)
    assert isinstance(model, Attentive) == (score != "none")
    assert isinstance(model, LinearOutput)
    source = Source.of([[5, 6, RESERVED.end]])
    if score == "none":
        with pytest.raises(ConfigError, match="does not attend to its source"):
            force(model, source, [[7]], look=True)
    else:
        (forced,) = force(model, source, [[7, 8]], look=True)
        assert [look.shape for look in forced.attention] == [(1, 1, 3)] * 3


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("input_feeding", [False, True])
def test_a_probe_sees_in_steps_what_it_sees_in_the_whole_pass(score: str, input_feeding: bool):
    model, batch = model_of(score=score, input_feeding=input_feeding), pairs([7, 3], [3, 3])
    whole = Probe()
    with torch.no_grad():
        assert torch.allclose(model(batch, whole), model(batch))
        state = model.start(batch.source)
        seen = torch.cat([look.weights for look in whole.looks], 2)
        assert {look.block for look in whole.looks} == {"decoder.0.cross"}
        for place in range(4):
            probe = Probe()
            _, state = model.step(batch.target_in[:, place], state, probe)
            (look,) = probe.looks
            assert torch.allclose(look.weights, seen[:, :, place : place + 1], atol=1e-12)
            assert look.weights.shape == (2, 1, 1, 8)


@pytest.mark.parametrize("cell", CELLS)
def test_the_last_state_of_a_forward_encoder_is_the_first_of_the_decoder(cell: str):
    model, batch = (
        model_of(cell=cell, bidirectional=False, score="none", encoder_layers=3, decoder_layers=2),
        pairs([5, 2], [1, 1]),
    )
    last = last_states(model, batch.source)
    for own, other in zip(model.start(batch.source).hidden, last, strict=True):
        assert torch.equal(own, other[:, 1:])


def test_a_deeper_decoder_shares_the_first_state_of_the_encoder():
    model, source = model_of(bidirectional=False, decoder_layers=3), Source.of([[5, 6, 7]])
    (hidden,) = model.start(source).hidden
    assert hidden.shape == (1, 3, WIDTH)
    assert torch.equal(hidden[:, 0], hidden[:, 2])


@pytest.mark.parametrize("cell", CELLS)
def test_both_directions_of_an_encoder_are_projected_to_the_first_state(cell: str):
    model, source = model_of(cell=cell), Source.of([[5, 6, 7]])
    project = reader_of(model).bridge.projections[0]
    expected = torch.tanh(project(last_states(model, source)[0][:, 0]))
    assert torch.allclose(model.start(source).hidden[0][:, 0], expected)


def influence(model: RnnEncoderDecoder, batch: Batch, of: Tensor) -> Tensor:
    """How much the logits at each target position depend on `of`."""
    logits = model(batch)
    return torch.stack([torch.autograd.grad(one.sum(), [of], retain_graph=True)[0].norm() for one in logits.unbind(1)])


def forget(model: RnnEncoderDecoder) -> None:
    """A plain decoder whose next state does not depend on the one before."""
    with torch.no_grad():
        model.decoder.layers.weight_hh_l0.zero_()


def test_a_state_that_is_fed_enters_every_step():
    """With a decoder that forgets its states, the source reaches a position by what is fed, or not at all."""
    batch = pairs([5], [4])
    for feed_state in (False, True):
        model = model_of(cell="rnn", score="none", feed_state=feed_state)
        forget(model)
        reached = influence(model, batch, embeddings_of(model)) > 0
        assert reached.tolist() == [feed_state] * 5


def test_input_feeding_hands_on_what_was_found():
    """With a decoder that forgets its states, a token reaches a later position through h̃ alone."""
    batch = pairs([5], [4])
    other = batch.target_in.clone()
    other[:, 0] = 7
    for input_feeding in (False, True):
        model = model_of(cell="rnn", score="general", input_feeding=input_feeding)
        forget(model)
        apart = (model(batch) - model(replace(batch, target_in=other))).abs().amax(-1)[0] > 1e-9
        assert apart.tolist() == [True] + [input_feeding] * 4


@pytest.mark.parametrize("score", ["none", *SCORES])
@pytest.mark.parametrize("cell", CELLS)
def test_every_parameter_is_trained(cell: str, score: str):
    model = model_of(cell=cell, score=score, max_positions=7, sharpness=2.0 if score == "content" else 0.0)
    sequence_loss(model.train(), pairs([5, 6, 2], [3, 5, 4]), Objective()).smoothed.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_bfloat16_comes_near():
    model, batch = model_of(cell="lstm", encoder_layers=2).float(), pairs([7, 3], [4, 5])
    expected = model(batch)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.allclose(model(batch).float(), expected, atol=0.3)


# --- the state


def test_the_source_is_kept_once_a_sentence_and_leaves_with_its_last_row():
    model = model_of(score="additive")
    sources = [[5, 6], [5] * 30, [7, 8, 9]]
    state = model.start(Source.of(sources))

    def size() -> tuple[int, ...]:
        (source,) = state.sources
        return tuple(source.memory.mask.shape)

    assert size() == (3, 32)
    state = state.reorder(torch.arange(3).repeat_interleave(5))
    assert state.hidden[0].shape[0] == 15
    assert size() == (3, 32)
    state = state.reorder(torch.tensor([0, 0, 12, 13]))
    assert size() == (2, 4)
    state = state.join(model.start(Source.of([[5] * 9])))
    assert size() == (3, 12)


def test_a_step_does_not_change_its_state():
    model = model_of(cell="lstm", score="dot", input_feeding=True)
    state = model.start(Source.of([[5, 6, 7], [8, 9, 10]])).reorder(torch.tensor([1, 0, 0]))
    tokens = torch.tensor([4, 5, 6])
    first, after = model.step(tokens, state)
    model.step(tokens, after)
    assert torch.equal(model.step(tokens, state)[0], first)


# --- what it refuses, and what it answers for itself

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"width": 0}, r"model\.width=0 must be at least 1"),
    ({"decoder_layers": 129}, r"model\.decoder_layers=129 is more than 128"),
    ({"embedding": -1}, r"model\.embedding=-1 must not be negative; 0 means model\.width"),
    ({"dropout": 1.0}, r"model\.dropout=1\.0 must be at least 0 and below 1"),
    ({"cell": "mgu"}, r"model\.cell='mgu' is not one of rnn, lstm, gru"),
    ({"score": "cosine"}, r"model\.score='cosine' is not one of none, content, additive, location, general, dot"),
    ({"share": "source"}, r"model\.share='source' is not one of all, target, none"),
    ({"embedding": 7, "width": 11}, r"model\.embedding=7 differs from model\.width=11; set model\.embedding=0 or"),
    ({"input_feeding": True, "score": "none"}, r"model\.score='none'; choose a score, or set model\.feed_state=true"),
    ({"sharpness": 2.0}, r"model\.sharpness=2\.0 belongs to model\.score='content', not to 'additive'; set it to 0"),
    ({"sharpness": -1.0, "score": "content"}, r"model\.sharpness=-1\.0 must not be negative"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_settings_that_cannot_be_are_refused_by_name(settings: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        build_config({"model": {"architecture": "rnn"} | settings})


def test_one_matrix_for_all_needs_one_vocabulary():
    config = RnnConfig(share="all", width=WIDTH)
    with pytest.raises(ConfigError, match=r"source has 37 entries and the target 41; set tokenizer\.joint=true"):
        built(config, SHAPES)
    with pytest.raises(ConfigError, match=r"tokenizer\.joint=false asks for two"):
        ARCHITECTURES["rnn"].refuse_misfit(config, joint=False)
    model = built(config, Shapes({"source": 41, "target": 41}))
    assert isinstance(model, RnnEncoderDecoder)
    assert embeddings_of(model) is model.target_embedding.weight is model.output_weight


def test_a_matrix_is_tied_to_the_output_or_not():
    tied, apart = model_of(), model_of(share="none", embedding=7)
    assert tied.output_weight is tied.target_embedding.weight
    assert apart.output_weight.shape == (TARGET_WORDS, WIDTH)
    assert apart.target_embedding.weight.shape == (TARGET_WORDS, 7)


def test_location_based_attention_has_a_limit_and_says_so():
    limits = ARCHITECTURES["rnn"].limits(RnnConfig(score="location", max_positions=19))
    assert (limits.source, limits.target) == (19, None)
    assert "model.max_positions=19" in limits.setting
    assert ARCHITECTURES["rnn"].limits(RnnConfig()).least is None
    model = model_of(score="location", max_positions=19)
    model.start(Source.of([[5] * 19], length=24))
    with pytest.raises(RegardError, match=r"has 20 positions, .* only 19 \(model\.max_positions=19\)"):
        model.start(Source.of([[5] * 20], length=24))


def test_a_preset_fits_a_small_corpus_and_another_a_larger_one():
    fitted = ARCHITECTURES["rnn"].fitted
    assert fitted(Corpus(29_000, 2, 8 << 30))[0] == "rnn-tiny"
    assert fitted(Corpus(150_000, 2, 8 << 30))[0] == "rnn-small"
    for name, preset in ARCHITECTURES["rnn"].presets.items():
        config = build_config({"preset": name, "model": {"architecture": "rnn"}})
        assert preset.purpose
        assert config.train.clip == 1.0
        assert config.train.max_steps > config.train.warmup


@pytest.mark.parametrize(("cell", "score"), [("rnn", "none"), ("lstm", "additive"), ("gru", "dot")])
def test_costs_are_counted_on_paper(cell: str, score: str):
    """Parameters, and the multiplications of one source token more."""
    width, gates = 32, {"rnn": 1, "lstm": 4, "gru": 3}[cell]
    config = build_config({"model": {"architecture": "rnn", "cell": cell, "score": score, "width": width}})
    shapes, parts = Shapes({"source": 101, "target": 103}), 2 if cell == "lstm" else 1
    one = gates * width * (2 * width + 2)
    over = {"none": 0, "additive": 3 * width**2 + width, "dot": 2 * width**2}[score]
    combined = {"none": 1, "additive": 3, "dot": 2}[score] * width**2 + width
    bridge = parts * (2 * width + 1) * width
    assert parameter_count(config.model, shapes) == (101 + 103) * width + 103 + 3 * one + bridge + over + combined
    paper = model_on_paper(config.model, shapes)
    count = [multiplications(paper, collated([[5] * length], [[6] * 3])) for length in (4, 5)]
    read = 2 * 2 * gates * width**2  # in both directions, of the input and of the state
    assert count[1] - count[0] == read + (0 if score == "none" else 2 * width**2)


# --- the recipes

RELATIVES = Path(__file__).parents[2] / "recipes" / "relatives"
MEMBERS = [*(f"gru-{score}" for score in ("none", *SCORES)), "lstm-additive", "rnn-additive", "transformer"]
FAMILY = {member: read_recipe(RELATIVES / f"multi30k-{member}.toml") for member in MEMBERS}


def test_the_recipes_of_the_family_differ_in_the_model_alone():
    first = FAMILY["gru-additive"]
    for member, table in FAMILY.items():
        assert table | {"model": {}} == first | {"model": {}}, member
        assert build_config(table).train.max_minutes == 30


def test_a_recipe_is_named_after_its_cell_and_its_score():
    for member, table in FAMILY.items():
        model = build_config(table).model
        if isinstance(model, RnnConfig):
            assert member == f"{model.cell}-{model.score}"
            assert (model.width, model.dropout) == (256, 0.3)
