"""The worked examples that every explanation of the Transformer computes by hand, and the small parts they rest on."""

from __future__ import annotations

import itertools
import logging
import math

import pytest
import torch
from torch import Tensor

from regard.data.batch import Batch, Padded, Source
from regard.decode.search import SearchConfig, search
from regard.errors import ConfigError, RegardError
from regard.models import Transformer, TransformerConfig
from regard.nn import (
    MultiHeadAttention,
    Probe,
    attend,
    basic_self_attention,
    causal_mask,
    encoder_decoder_attention,
    padding_mask,
    sinusoids,
)
from regard.nn.loss import PLAIN, Smoothing
from regard.nn.masks import (
    from_additive,
    from_hidden_zero,
    from_padding_flags,
    lengths_mask,
    to_additive,
    to_hidden_zero,
    to_padding_flags,
)
from regard.nn.positions import LearnedPositions, build_positions
from regard.tasks.sequence_loss import sequence_loss
from regard.text.tokenizer import END, PAD, START
from regard.train.config import TrainConfig
from regard.train.optimizer import build_optimizer, rate_at
from regard.train.schedule import paper_rate
from regard.train.step import train_step
from tests.decodables import collated, starting_with


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(7)


def heads_of(rows: list[list[float]]) -> Tensor:
    """One sentence, one head."""
    return torch.tensor(rows, dtype=torch.float64)[None, None]


def with_scores(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys whose scaled products are the square matrix `scores`."""
    size = scores.size(-1)
    return scores[None, None] * math.sqrt(size), torch.eye(size, dtype=scores.dtype)[None, None]


# --- the examples


def test_example_01_scores_are_divided_by_the_root_of_the_key_width():
    queries = heads_of([[1.0] * 64])
    keys = heads_of([[112 / 64] * 64, [96 / 64] * 64])
    probe = Probe()
    attend(queries, keys, keys, probe=probe)
    assert probe.looks[0].scores.flatten().tolist() == pytest.approx([14.0, 12.0])
    assert [round(weight, 2) for weight in probe.looks[0].weights.flatten().tolist()] == [0.88, 0.12]


def test_example_02_nobody_looks_ahead():
    rows = [[0.7, 9.0, 9.0, 9.0], [0.1, 0.6, 9.0, 9.0], [0.1, 0.3, 0.6, 9.0], [0.1, 0.3, 0.3, 0.3]]
    queries, keys = with_scores(torch.tensor(rows, dtype=torch.float64))
    probe = Probe()
    attend(queries, keys, keys, causal_mask(4, 4), probe=probe)
    weights = probe.looks[0].weights[0, 0]
    expected = [[1.0, 0, 0, 0], [0.378, 0.622, 0, 0], [0.258, 0.316, 0.426, 0], [0.214, 0.262, 0.262, 0.262]]
    assert weights.tolist() == [pytest.approx(row, abs=5e-4) for row in expected]
    assert bool((weights.triu(1) == 0.0).all())
    hidden = -math.inf
    assert to_additive(causal_mask(5, 5))[0, 0].tolist() == [
        [0, hidden, hidden, hidden, hidden],
        [0, 0, hidden, hidden, hidden],
        [0, 0, 0, hidden, hidden],
        [0, 0, 0, 0, hidden],
        [0, 0, 0, 0, 0],
    ]


def test_example_03_positions_of_width_4():
    for place, row in enumerate(sinusoids(11, 4).tolist()):
        slow = place / 100
        expected = [math.sin(place), math.cos(place), math.sin(slow), math.cos(slow)]
        assert row == pytest.approx(expected, abs=1e-6)


def test_example_04_nobody_looks_at_padding_forward_or_backward():
    tokens = torch.tensor([[5, 7, END, PAD, PAD, PAD], [5, 11, 7, END, PAD, PAD]])
    mask = padding_mask(tokens, PAD)
    flags = [[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1]]
    assert to_padding_flags(mask)[:, 0, 0].tolist() == flags
    assert to_padding_flags(lengths_mask(torch.tensor([3, 4]), 6))[:, 0, 0].tolist() == flags
    padding = torch.tensor(flags, dtype=torch.bool)
    layer, probe = MultiHeadAttention(14, 2), Probe()
    for look in (probe, None):  # the explicit path, then the fused one
        x = torch.randn(2, 6, 14, requires_grad=True)
        layer(x, mask=mask, probe=look)[~padding].square().sum().backward()
        assert x.grad is not None
        assert bool((x.grad[padding] == 0.0).all())
        assert bool((x.grad[~padding] != 0.0).all())
    weights = probe.looks[0].weights
    assert bool((weights.masked_select(padding[:, None, None]) == 0.0).all())
    assert torch.allclose(weights.sum(-1), torch.ones(2, 2, 6))


@pytest.mark.parametrize(("start", "symbol"), [(START, "<s>"), (END, "</s>"), (PAD, "<pad>")])
def test_example_05_the_decoder_reads_the_target_shifted_right(start: int, symbol: str):
    names = {PAD: "<pad>", START: "<s>", END: "</s>", 5: "I", 6: "love", 7: "China", 8: "yes"}
    batch = collated([[9, END], [9, 10, END]], [[5, 6, 7], [8]], starting_with(start))
    read = [[names[token] for token in row] for row in batch.target_in.tolist()]
    said = [[names[token] for token in row] for row in batch.target_out.tolist()]
    assert read[0] == [symbol, "I", "love", "China"]
    assert said[0] == ["I", "love", "China", "</s>"]
    assert read[1] == [symbol, "yes", "<pad>", "<pad>"]
    assert said[1] == ["yes", "</s>", "<pad>", "<pad>"]
    assert batch.num_tokens == 6


@pytest.mark.parametrize(
    ("neighbour", "similarity", "weights", "expected"),
    [((0.0, 8.0), 0.25, (0.8, 0.2), (4.0, 7.2)), ((6.0, 0.0), 0.11, (0.9, 0.1), (5.1, 6.3))],
)
def test_example_06_a_word_moves_towards_its_neighbour(
    neighbour: tuple[float, float], similarity: float, weights: tuple[float, float], expected: tuple[float, float]
):
    meanings = torch.tensor([(5.0, 7.0), neighbour])
    # Two vectors with these similarities; in their basis, the output of attention is the weights themselves.
    basis = torch.linalg.cholesky(torch.tensor([[1.0, similarity], [similarity, 1.0]]))
    found = basic_self_attention(basis, normalise="sum")[0] @ torch.linalg.inv(basis)
    assert [round(weight, 1) for weight in found.tolist()] == list(weights)
    assert (torch.tensor(weights) @ meanings).tolist() == pytest.approx(expected)
    assert [round(value, 1) for value in (found @ meanings).tolist()] == list(expected)


def test_example_06_by_softmax():
    basis = torch.linalg.cholesky(torch.tensor([[1.0, 0.25], [0.25, 1.0]]))
    found = basic_self_attention(basis)[0] @ torch.linalg.inv(basis)
    assert [round(weight, 2) for weight in found.tolist()] == [0.68, 0.32]


@pytest.mark.parametrize(("heads", "key_width", "count"), [(1, 2, 150), (3, 2, 418), (3, 5, 1021)])
def test_example_07_the_shapes_of_a_multi_head_layer(heads: int, key_width: int, count: int):
    layer, probe = MultiHeadAttention(16, heads, key_width=key_width, value_width=key_width), Probe()
    assert {name: tuple(kernel.shape) for name, kernel in layer.kernels().items()} == {
        "query.kernel": (16, heads, key_width),
        "key.kernel": (16, heads, key_width),
        "value.kernel": (16, heads, key_width),
        "output.kernel": (heads, key_width, 16),
        "query.bias": (heads, key_width),
        "key.bias": (heads, key_width),
        "value.bias": (heads, key_width),
        "output.bias": (16,),
    }
    assert sum(parameter.numel() for parameter in layer.parameters()) == count
    assert sum(kernel.numel() for kernel in layer.kernels().values()) == count
    assert layer(torch.randn(7, 6, 16), probe=probe).shape == (7, 6, 16)
    assert probe.looks[0].weights.shape == (7, heads, 6, 6)


def test_example_07_the_named_view_is_what_the_layer_computes():
    layer = MultiHeadAttention(13, 3, key_width=5, value_width=7).double()
    torch.nn.init.normal_(layer.bias)
    torch.nn.init.normal_(layer.output.bias)
    x, memory = torch.randn(2, 11, 13).double(), torch.randn(2, 17, 13).double()
    named = layer.kernels()
    q = torch.einsum("btd,dnh->bnth", x, named["query.kernel"]) + named["query.bias"][:, None]
    k = torch.einsum("btd,dnh->bnth", memory, named["key.kernel"]) + named["key.bias"][:, None]
    v = torch.einsum("btd,dnh->bnth", memory, named["value.kernel"]) + named["value.bias"][:, None]
    weights = torch.einsum("bnth,bnkh->bntk", q, k).div(math.sqrt(5)).softmax(-1)
    expected = torch.einsum("bntk,bnkh,nhd->btd", weights, v, named["output.kernel"]) + named["output.bias"]
    assert torch.allclose(layer(x, memory), expected, rtol=0, atol=1e-12)


def test_example_08_cross_attention_mixes_what_it_looks_at():
    je, suis, etudiant = torch.randn(3, 11, dtype=torch.float64)
    weights = [0.15, 0.05, 0.80]
    keys = heads_of([[math.log(weight)] for weight in weights])
    values = torch.stack([je, suis, etudiant])[None, None]
    found = attend(heads_of([[1.0]]), keys, values)[0, 0, 0]
    assert torch.allclose(found, 0.15 * je + 0.05 * suis + 0.80 * etudiant, rtol=0, atol=1e-12)


TARGETS = {"a": 3, "am": 4, "I": 5, "thanks": 6, "student": 7}
SOURCES = {"je": 3, "suis": 4, "étudiant": 5, "merci": 6}
PAIRS = (("je suis étudiant", "I am a student"), ("merci", "thanks"))


def ids(text: str, words: dict[str, int]) -> list[int]:
    return [words[word] for word in text.split()]


@pytest.fixture(scope="module")
def six_words() -> tuple[Transformer, Batch]:
    """A Transformer trained on the two pairs. Six words, of which `<eos>` is one, stand behind padding and start."""
    torch.manual_seed(11)
    shape = TransformerConfig(
        width=16, heads=2, feedforward=29, encoder_layers=1, decoder_layers=1, dropout=0.0, share="none"
    )
    model = Transformer(shape, len(SOURCES) + 3, len(TARGETS) + 3)
    sources = [[*ids(source, SOURCES), END] for source, _ in PAIRS]
    batch = collated(sources, [ids(target, TARGETS) for _, target in PAIRS], model.symbols)
    train = TrainConfig(schedule="constant", peak_rate=1e-2, warmup=10, label_smoothing=0.0)
    optimizer = build_optimizer(model, train)
    for _ in range(150):
        assert train_step(model, optimizer, [batch], loss_of=sequence_loss, objective=PLAIN, clip=1.0).taken
    return model.eval(), batch


def test_example_09_every_right_word_is_likely(six_words: tuple[Transformer, Batch]):
    model, batch = six_words
    probabilities = model(batch).detach().softmax(-1).gather(2, batch.target_out[:, :, None])[:, :, 0]
    real = batch.target_out != PAD
    assert int(real.sum()) == 4 + 1 + 1 + 1  # the words of both, and their ends
    assert float(probabilities[real].min()) >= 0.8


def test_example_09_two_hypotheses_best_first_with_forced_scores(six_words: tuple[Transformer, Batch]):
    model, batch = six_words
    config = SearchConfig(beam=2, nbest=2)
    for row, found in enumerate(search(model, batch.source, config)):
        assert len(found) == 2
        assert list(found[0].tokens) == ids(PAIRS[row][1], TARGETS)
        assert found[0].tokens != found[1].tokens
        assert found[0].normalised >= found[1].normalised
        sentence = batch.source.values[row].tolist()
        for one in found:
            forced = collated([[token for token in sentence if token != PAD]], [list(one.tokens)], model.symbols)
            chosen = model(forced).log_softmax(-1).gather(2, forced.target_out[:, :, None])[0, :, 0]
            length = len(one.tokens) + one.finished
            assert one.score == pytest.approx(float(chosen[:length].detach().sum()), abs=1e-4)
            assert one.normalised == pytest.approx(one.score / ((5 + length) / 6) ** 0.6, rel=1e-5)


def test_example_10_label_smoothing_over_six_classes():
    truth = torch.tensor([4])
    assert Smoothing(0.1, "others").targets(truth, 6)[0].tolist() == pytest.approx([0.02] * 4 + [0.9] + [0.02])
    by_all = Smoothing(0.1, "all").targets(truth, 6)[0].tolist()
    assert [round(value, 4) for value in by_all] == [0.0167] * 4 + [0.9167] + [0.0167]


def test_example_12_order_is_known_by_positions_only():
    layer = MultiHeadAttention(14, 2).double()
    x, order = torch.randn(3, 11, 14).double(), torch.randperm(11)
    positions = sinusoids(11, 14).double()
    assert not torch.equal(order, torch.arange(11))
    assert torch.allclose(layer(x[:, order]), layer(x)[:, order], rtol=0, atol=1e-12)
    placed, moved = layer(x + positions), layer(x[:, order] + positions)
    assert float((moved - placed[:, order]).detach().abs().max()) > 1e-2


def test_example_13_the_rate_peaks_when_the_warm_up_ends():
    assert f"{paper_rate(4000, 512, 4000):.2e}" == "6.99e-04"
    config = TrainConfig(schedule="paper", warmup=4000)
    rates = [rate_at(step, config, 512) for step in range(1, 12_001)]
    assert max(rates) == rates[4000 - 1] == paper_rate(4000, 512, 4000)
    assert all(low < high for low, high in itertools.pairwise(rates[:4000]))
    assert all(high > low for high, low in itertools.pairwise(rates[3999:]))


def test_example_14_positions_know_their_distance():
    table = sinusoids(50, 128).double()
    apart = torch.cdist(table, table) + 1e9 * torch.eye(50)
    assert float(apart.min()) > 0.1
    products = table @ table.T
    means: list[float] = []
    for distance in range(50):
        same = products.diagonal(distance)
        assert float(same.max() - same.min()) < 1e-5  # the table is in single precision
        means.append(float(same.mean()))
    assert means[0] == pytest.approx(64.0, abs=1e-5)
    assert max(means[1:]) < means[0]
    decades = [sum(means[first : first + 10]) / 10 for first in (1, 11, 21, 31)]
    assert decades == sorted(decades, reverse=True)
    assert len(set(decades)) == 4


# --- masks


def test_masks_of_other_forms_become_ours_and_go_back():
    mask = torch.rand(3, 1, 5, 7) < 0.5
    assert torch.equal(from_padding_flags(to_padding_flags(mask)), mask)
    assert torch.equal(from_additive(to_additive(mask)), mask)
    assert torch.equal(from_hidden_zero(to_hidden_zero(mask)), mask)


def test_each_form_of_mask_means_what_people_mean_by_it():
    sees = [True, True, False]
    assert from_padding_flags(torch.tensor([0, 0, 1])).tolist() == sees
    assert from_padding_flags(torch.tensor([False, False, True])).tolist() == sees
    assert from_additive(torch.tensor([0.0, 0.0, -math.inf])).tolist() == sees
    assert from_additive(torch.tensor([0.0, 0.0, -1e9])).tolist() == sees
    assert from_additive(torch.tensor([0.0, 0.0, torch.finfo(torch.float16).min])).tolist() == sees
    assert from_hidden_zero(torch.tensor([1, 1, 0])).tolist() == sees
    assert from_hidden_zero(torch.tensor([1.0, 1.0, 0.0])).tolist() == sees
    mask = torch.tensor(sees)
    assert to_padding_flags(mask).tolist() == [0, 0, 1]
    assert to_additive(mask, torch.float64).tolist() == [0.0, 0.0, -math.inf]
    assert to_hidden_zero(mask).tolist() == [1, 1, 0]


def test_the_look_ahead_mask_is_aligned_to_the_last_key():
    assert causal_mask(2, 5)[0, 0].tolist() == [[True] * 4 + [False], [True] * 5]


# --- positions


def paper_sinusoids(positions: int, width: int) -> list[list[float]]:
    """PE(pos, 2i) = sin(pos/10000^(2i/d)), PE(pos, 2i+1) = cos(the same)."""
    return [
        [(math.cos if j % 2 else math.sin)(p / 10000 ** (2 * (j // 2) / width)) for j in range(width)]
        for p in range(positions)
    ]


def halved_sinusoids(positions: int, width: int, speed: list[float]) -> list[list[float]]:
    """All sines, then all cosines."""
    return [[math.sin(p * w) for w in speed] + [math.cos(p * w) for w in speed] for p in range(positions)]


@pytest.mark.parametrize("width", [4, 14, 62])
def test_the_three_sinusoid_layouts(width: int):
    half = width // 2
    marian = halved_sinusoids(53, width, [10000 ** (-2 * i / width) for i in range(half)])
    fairseq = halved_sinusoids(53, width, [10000 ** (-i / (half - 1)) for i in range(half)])
    for layout, expected in (
        ("interleaved", paper_sinusoids(53, width)),
        ("halves", marian),
        ("tensor2tensor", fairseq),
    ):
        found = sinusoids(53, width, layout)
        assert torch.allclose(found.double(), torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-6)


def test_interleaved_sinusoids_of_an_odd_width():
    expected = torch.tensor(paper_sinusoids(11, 7), dtype=torch.float64)
    assert torch.allclose(sinusoids(11, 7).double(), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["interleaved", "halves", "tensor2tensor", "learned"])
def test_positions_may_start_behind_others(kind: str):
    table = build_positions(kind, 14, 997)
    assert torch.equal(table(5, start=13), table(18)[13:])


@pytest.mark.parametrize("kind", ["interleaved", "halves", "tensor2tensor"])
def test_sinusoids_have_no_limit(kind: str):
    grown, fresh = build_positions(kind, 14, 3), sinusoids(1009, 14, kind)  # type: ignore[arg-type]
    assert torch.equal(grown(1009), fresh)
    assert torch.equal(grown(7), fresh[:7])


def test_learned_positions_refuse_beyond_their_table_naming_the_limit():
    table = LearnedPositions(5, limit=13)
    assert table(13).shape == (13, 5)
    with pytest.raises(RegardError, match=r"14 positions.*only 13 .*model\.max_positions=13"):
        table(14)
    with pytest.raises(RegardError, match=r"only 13 "):
        table(1, start=13)


def test_a_model_with_learned_positions_names_the_limit_on_either_side():
    shape = TransformerConfig(
        width=6, heads=2, feedforward=5, encoder_layers=1, decoder_layers=1, positions="learned", max_positions=7
    )
    model = Transformer(shape, 11, 11).eval()
    model(collated([[5] * 6 + [END]], [[5] * 6]))
    for source, target in (([5] * 7 + [END], [5]), ([5, END], [5] * 7)):
        with pytest.raises(RegardError, match="only 7 "):
            model(collated([source], [target]))


def test_an_unknown_kind_of_positions_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"model\.positions='rotating' .*interleaved, halves, tensor2tensor, learned"):
        build_positions("rotating", 8, 8)


# --- attention as plain functions


def test_basic_self_attention_is_a_mean_weighed_by_likeness():
    x = torch.rand(3, 5, 7, dtype=torch.float64)
    for batch, rows in enumerate(x.tolist()):
        for i, query in enumerate(rows):
            likeness = [sum(a * b for a, b in zip(query, key, strict=True)) for key in rows]
            for normalise, raw in (("softmax", [math.exp(value) for value in likeness]), ("sum", likeness)):
                share = [value / sum(raw) for value in raw]
                expected = [sum(a * row[d] for a, row in zip(share, rows, strict=True)) for d in range(7)]
                found = basic_self_attention(x, normalise=normalise)[batch, i]
                assert found.tolist() == pytest.approx(expected, abs=1e-12)


def test_basic_self_attention_refuses_another_normalisation():
    with pytest.raises(ConfigError, match="'mean' is neither 'softmax' nor 'sum'"):
        basic_self_attention(torch.ones(3, 5), normalise="mean")


def test_encoder_decoder_attention_with_given_weights_is_the_layer_over_memory():
    layer = MultiHeadAttention(14, 2).double()
    query, memory = torch.randn(3, 5, 14).double(), torch.randn(3, 11, 14).double()
    seen = (torch.rand(3, 1, 1, 11) < 0.6).long()
    seen[..., 0] = 1
    found = encoder_decoder_attention(query, memory, memory, seen, weights=layer)
    assert torch.allclose(found, layer(query, memory, seen.bool()), rtol=0, atol=1e-12)
    everything = encoder_decoder_attention(query, memory, memory, weights=layer)
    assert torch.allclose(everything, layer(query, memory), rtol=0, atol=1e-12)
    assert not torch.allclose(found, everything)


def test_encoder_decoder_attention_takes_keys_and_values_apart():
    layer = MultiHeadAttention(14, 2).double()
    query, key, value = (torch.randn(3, length, 14).double() for length in (5, 11, 11))
    probe = Probe()
    layer(query, key, probe=probe)
    values = torch.einsum("bkd,dnh->bnkh", value, layer.kernels()["value.kernel"])
    expected = torch.einsum("bntk,bnkh,nhd->btd", probe.looks[0].weights, values, layer.kernels()["output.kernel"])
    found = encoder_decoder_attention(query, key, value, weights=layer)
    assert torch.allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(11,), (1, 11), (1, 1, 11), (1, 1, 1, 11), (3, 1, 1, 11), (3, 1, 1, 1)])
def test_encoder_decoder_attention_takes_any_mask_that_broadcasts(shape: tuple[int, ...]):
    layer = MultiHeadAttention(14, 2).double()
    query, memory = torch.randn(3, 5, 14).double(), torch.randn(3, 11, 14).double()
    seen = (torch.rand(shape) < 0.5).long()
    whole = seen.broadcast_to(3, 1, 1, 11)
    found = encoder_decoder_attention(query, memory, memory, seen, weights=layer)
    assert torch.allclose(found, layer(query, memory, whole.bool()), rtol=0, atol=1e-12)


def test_encoder_decoder_attention_says_when_its_projections_are_fresh(caplog: pytest.LogCaptureFixture):
    query, memory = torch.randn(3, 5, 14), torch.randn(3, 11, 14)
    with caplog.at_level(logging.WARNING):
        found = encoder_decoder_attention(query, memory, memory, num_heads=7)
    assert found.shape == (3, 5, 14)
    assert "fresh and random" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        encoder_decoder_attention(query, memory, memory, weights=MultiHeadAttention(14, 7))
    assert not caplog.records


def test_heads_that_do_not_divide_the_width_are_refused_unless_both_widths_are_given():
    for given in ({}, {"key_width": 3}, {"value_width": 3}):
        with pytest.raises(ConfigError, match=r"model\.width=14 is not divisible by model\.heads=3.*key_width"):
            MultiHeadAttention(14, 3, **given)
    assert MultiHeadAttention(14, 3, key_width=5, value_width=2)(torch.ones(1, 2, 14)).shape == (1, 2, 14)


def test_padding_fills_rows_on_the_right():
    assert Padded.of([[5], [6, 7, 8]], fill=PAD).values.tolist() == [[5, PAD, PAD], [6, 7, 8]]
    assert Source.of([[5], [6, 7, 8]]).mask.tolist() == [[True, False, False], [True, True, True]]
