"""Our search against Hugging Face's `generate`, on the same weights.

Post-norm: `MarianMTModel`, whose position tables stay its own, so that ours are compared with them. Pre-norm:
`PegasusForConditionalGeneration`, whose layers are pre-norm with a last norm; its table is overwritten where the layout
is another. The logits are compared first, so that a difference in search is a difference in search.

What the two searches mean by the same words (transformers 5.22):

- Length. `generate` divides by (tokens generated)^α, where the start symbol is not counted and the end symbol is: our
  `length_form="power"` with the same α. Its scores are compared with ours, so this is tested, not assumed.
- Stopping. `early_stopping="never"` ends where no open hypothesis can reach the worst of the `num_beams` finished ones,
  if all that is to come up to the length limit were certain. Ours holds them against the worst of the `nbest` that are
  asked for. Both are exact, so the best is the same, and with `nbest` = `beam` all of them. (`early_stopping=False`,
  their default, guesses from the length so far and may miss the best.)
- Symbols. Marian and Pegasus may generate padding and start, and force an end symbol at the length limit; we do
  neither. Hence `suppress_tokens` (−∞ behind the log-softmax, as here) and `forced_eos_token_id=None`.
- The limit counts what is generated, the end symbol included: `max_new_tokens`. At it both keep what is cut.

Two sequences may differ where they tie: our own scores of both are then closer than the two libraries' rounding.
"""

from __future__ import annotations

import io
import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import Tensor

from regard import hardware
from regard.bench import twins
from regard.bench.children import PEERS
from regard.config import Config, merged
from regard.data.batch import Source
from regard.decode.config import SearchConfig
from regard.decode.forced import force
from regard.decode.search import search
from regard.decode.translate import source_ids
from regard.demo import SETTINGS
from regard.loading import Opened, load
from regard.models import Shapes, Transformer, TransformerConfig
from regard.models.interface import Compiled
from regard.models.parameters import parameters_of
from regard.nn import sinusoids
from regard.session.order import Order
from regard.session.session import start
from regard.text.codecs import WordCodec
from regard.text.phrasebook import make_phrasebook, write_phrasebook
from regard.text.tokenizer import END, PAD, START, Tokenizer
from tests.decodables import collated

SENTENCES, BEAM, LIMIT = 200, 4, 16
ALPHAS = (0.0, 0.6, 1.0)
TIE = 1e-4
SIZES = (47, 53)
"""Source and target vocabulary, where each side has its own; else both have the target's."""

CASES: dict[str, dict[str, Any]] = {
    "post": {"norm": "post", "positions": "halves", "start": "padding", "share": "all"},
    "post, own source": {"norm": "post", "positions": "halves", "start": "end", "share": "target"},
    "pre": {"norm": "pre", "positions": "interleaved", "start": "start", "share": "all"},
}
END_BIAS = {"post": 6.0, "pre": 4.0}
"""With it some hypotheses end and some are cut."""


# --- the same weights in both

PLACES = {
    "attention.output": "self_attn.out_proj",
    "cross_attention.output": "encoder_attn.out_proj",
    "feedforward.inner": "fc1",
    "feedforward.outer": "fc2",
}
PROJECTED = {"attention": "self_attn", "cross_attention": "encoder_attn"}
NORMS = {
    "encoder": ("self_attn_layer_norm", "final_layer_norm"),
    "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
}


@dataclass(frozen=True)
class Twins:
    """Two models with the same weights."""

    ours: Transformer
    theirs: Any


def in_their_names(ours: Transformer) -> dict[str, Tensor]:
    """Our weights as Marian and Pegasus call them, without the tables of positions."""
    weights = {name: value.detach() for name, value in ours.state_dict().items()}
    named: dict[str, Tensor] = {
        "model.encoder.embed_tokens.weight": weights.pop("source_embedding.weight"),
        "model.decoder.embed_tokens.weight": weights.pop("target_embedding.weight"),
        "lm_head.weight": (output := weights.pop("output_weight")),
        "final_logits_bias": weights.pop("output_bias", output.new_zeros(output.size(0)))[None],
    }
    if ours.config.share == "all":
        named["model.shared.weight"] = output
    for name, value in weights.items():
        named |= layer_weights(name, value)
    return named


def layer_weights(name: str, value: Tensor) -> dict[str, Tensor]:
    """One weight of a layer, or of a last norm."""
    if last := re.fullmatch(r"(encoder|decoder)_norm\.(weight|bias)", name):
        return {f"model.{last[1]}.layer_norm.{last[2]}": value}
    found = re.fullmatch(r"(encoder|decoder)\.(\d+)\.(.+)\.(weight|bias)", name)
    assert found is not None, name
    side, number, place, kind = found.groups()
    layer = f"model.{side}.layers.{number}"
    if place in PROJECTED:
        parts = zip("qkv", value.chunk(3), strict=True)
        return {f"{layer}.{PROJECTED[place]}.{letter}_proj.{kind}": part for letter, part in parts}
    if norm := re.fullmatch(r"residuals\.(\d)\.norm", place):
        return {f"{layer}.{NORMS[side][int(norm[1])]}.{kind}": value}
    return {f"{layer}.{PLACES[place]}.{kind}": value}


def their_settings(ours: Transformer) -> dict[str, Any]:
    config = ours.config
    both = {
        "layers": (config.encoder_layers, config.decoder_layers),
        "attention_heads": (config.heads, config.heads),
        "ffn_dim": (config.feedforward, config.feedforward),
    }
    sides = {f"{side}_{key}": pair[place] for key, pair in both.items() for place, side in enumerate(NORMS)}
    return sides | {
        "vocab_size": ours.source_embedding.weight.size(0),
        "d_model": config.width,
        "max_position_embeddings": 128,
        "activation_function": "relu",
        "scale_embedding": True,
        "pad_token_id": PAD,
        "bos_token_id": START,
        "eos_token_id": END,
        "forced_eos_token_id": None,
        "decoder_start_token_id": ours.symbols.start,
    }


def twin_of(ours: Transformer, transformers: Any) -> Twins:
    """Theirs with our weights; a weight without a place, or a place without a weight, is an error."""
    settings = their_settings(ours)
    if ours.config.norm == "post":
        settings["decoder_vocab_size"] = ours.output_weight.size(0)
        settings["share_encoder_decoder_embeddings"] = ours.config.share == "all"
        theirs = transformers.MarianMTModel(transformers.MarianConfig(**settings))
    else:
        theirs = transformers.PegasusForConditionalGeneration(transformers.PegasusConfig(**settings))
    tables = {name: value for name, value in theirs.state_dict().items() if "embed_positions" in name}
    if ours.config.positions == "interleaved":
        tables = {name: sinusoids(value.size(0), value.size(1)) for name, value in tables.items()}
    theirs.load_state_dict(in_their_names(ours) | tables, strict=True)
    return Twins(ours.eval(), theirs.eval())


def random_model(settings: dict[str, Any], seed: int = 3) -> Transformer:
    """Far from a fresh one: peaked, of a mind about its source, and without a taste for repeating the last token.

    The last norm's gains have both signs because a tied matrix would else find its own input again.
    """
    torch.manual_seed(seed)
    shape = TransformerConfig(
        width=32, heads=4, feedforward=48, encoder_layers=2, decoder_layers=2, dropout=0.0, output_bias=True, **settings
    )
    ours = Transformer(shape, SIZES[shape.share == "all"], SIZES[1])
    last = "decoder_norm.weight" if shape.norm == "pre" else "decoder.1.residuals.2.norm.weight"
    with torch.no_grad():
        for name, parameter in ours.named_parameters():
            if name == last:
                parameter.normal_(std=3.0)
            elif parameter.dim() == 1:
                parameter.normal_(mean=float(name.endswith("norm.weight")), std=0.2)
            elif "cross_attention" in name:
                parameter.mul_(3.0)
        assert ours.output_bias is not None
        ours.output_bias[END] = END_BIAS[shape.norm]
    return ours


@pytest.fixture(scope="module")
def transformers() -> Any:
    """The library; imported here, because that takes seconds."""
    return pytest.importorskip("transformers", reason="transformers is not installed (pip install 'regard[dev]')")


def random_sentences(size: int) -> Source:
    generator = random.Random(29)
    lengths = [1 + number % 20 for number in range(SENTENCES)]
    return Source.of([[*generator.choices(range(4, size), k=length), END] for length in lengths])


# --- the two searches


@dataclass(frozen=True)
class Found:
    """One hypothesis, whoever found it."""

    tokens: tuple[int, ...]
    finished: bool
    rank: float = 0.0

    @property
    def length(self) -> int:
        """The end symbol counted."""
        return len(self.tokens) + self.finished


def config_for(alpha: float | None, nbest: int = 1) -> SearchConfig:
    """Greedy for None."""
    if alpha is None:
        return SearchConfig(beam=1)
    return SearchConfig(beam=BEAM, length_penalty=alpha, length_form="power", nbest=nbest)


def options_for(alpha: float | None) -> dict[str, Any]:
    """The same for them; their n best cost nothing more."""
    if alpha is None:
        return {"num_beams": 1}
    return {"num_beams": BEAM, "num_return_sequences": BEAM, "early_stopping": "never", "length_penalty": alpha}


def we_find(twins: Twins, source: Source, config: SearchConfig, limit: int = LIMIT) -> list[list[Found]]:
    hypotheses = search(twins.ours, source, config, [limit] * len(source.values))
    return [[Found(one.tokens, one.finished, one.normalised) for one in ranked] for ranked in hypotheses]


def they_find(twins: Twins, source: Source, alpha: float | None, limit: int = LIMIT) -> list[list[Found]]:
    answer = twins.theirs.generate(
        input_ids=source.values,
        attention_mask=source.mask.long(),
        max_new_tokens=limit,
        do_sample=False,
        suppress_tokens=[PAD, START],
        return_dict_in_generate=True,
        output_scores=True,
        **options_for(alpha),
    )
    rows: list[list[int]] = answer.sequences[:, 1:].tolist()
    scores: list[float] = [0.0] * len(rows) if alpha is None else answer.sequences_scores.tolist()
    found = [without_end(row, score, limit) for row, score in zip(rows, scores, strict=True)]
    several = len(found) // len(source.values)
    return [found[place : place + several] for place in range(0, len(found), several)]


def without_end(row: Sequence[int], rank: float, limit: int) -> Found:
    """Behind the end symbol there is only filling."""
    if END in row:
        return Found(tuple(row[: row.index(END)]), True, rank)
    assert len(row) == limit
    return Found(tuple(row), False, rank)


def best(found: list[list[Found]]) -> list[Found]:
    return [ranked[0] for ranked in found]


def our_ranks(twins: Twins, source: Source, found: Sequence[Found], config: SearchConfig) -> list[float]:
    """What we rank by, of anyone's hypotheses."""
    forced = force(twins.ours, source, [one.tokens for one in found], ended=[one.finished for one in found])
    return [one.score / config.penalty(len(one.token_scores)) for one in forced]


def assert_same_or_tied(
    twins: Twins, source: Source, ours: Sequence[Found], theirs: Sequence[Found], config: SearchConfig
) -> None:
    """The same tokens, or tokens that our model ranks alike."""
    pairs = list(zip(ours, theirs, strict=True))
    assert len(pairs) == len(source.values)
    places = [
        place
        for place, (our, their) in enumerate(pairs)
        if (our.tokens, our.finished) != (their.tokens, their.finished)
    ]
    if not places:
        return
    rows = source.rows(places)
    ranks = (our_ranks(twins, rows, [side[place] for place in places], config) for side in (ours, theirs))
    apart = [(place, *pair) for place, pair in zip(places, zip(*ranks, strict=True), strict=True)]
    assert [one for one in apart if abs(one[1] - one[2]) >= TIE] == []


def assert_not_trivial(found: Sequence[Found]) -> None:
    """Equal outputs, or none that ended by itself, would agree whatever the search."""
    ended = {one.length for one in found if one.finished}
    assert len({one.tokens for one in found}) >= SENTENCES // 4
    assert len(ended) >= 3, ended
    assert sum(one.finished for one in found) >= SENTENCES // 20


# --- random weights


@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
def test_the_logits_are_theirs(transformers: Any, settings: dict[str, Any]):
    twins = twin_of(random_model(settings), transformers)
    sentences = random_sentences(twins.ours.source_embedding.weight.size(0))
    generator = random.Random(31)
    targets = [generator.choices(range(4, SIZES[1]), k=1 + place % 17) for place in range(SENTENCES)]
    batch = collated([row[row != PAD].tolist() for row in sentences.values], targets, twins.ours.symbols)
    real = batch.target_out != PAD
    with torch.inference_mode():
        found = twins.ours(batch)[real]
        expected = twins.theirs(
            input_ids=sentences.values,
            attention_mask=sentences.mask.long(),
            decoder_input_ids=batch.target_in,
        ).logits[real]
    assert float(expected.std()) > 1.0
    assert float((found - expected).abs().max()) < 1e-4


@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
def test_the_benchmark_gives_them_the_same_weights(settings: dict[str, Any]):
    """`bench/twins.py` names them by itself."""
    ours = random_model(settings)
    expected, found = in_their_names(ours), twins.in_their_names(ours.config, parameters_of(ours))
    for side in NORMS:
        table = found.pop(f"model.{side}.embed_positions.weight")
        assert torch.equal(table, sinusoids(len(table), ours.config.width, settings["positions"]))
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize("case", ["post", "pre"])
def test_the_benchmarks_peer_writes_what_we_write(
    transformers: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, case: str
):
    """Greedily, from the file and the settings that `bench/twins.py` gives it."""
    monkeypatch.syspath_prepend(PEERS)  # as where it runs: in a process of its own, beside the other peers
    from regard.bench.peers.huggingface_translate import Peer

    ours, size = random_model(CASES[case]).eval(), SIZES[1]
    words = WordCodec([f"word{number}" for number in range(4, size)])
    opened = Opened(
        tmp_path,
        Config(preset="none", model=ours.config),
        Tokenizer.pair(words, words),
        Shapes({"source": size, "target": size}),
        lambda _: parameters_of(ours),
    )
    generator = random.Random(7)
    sentences = [[*generator.choices(range(4, size), k=6), END] for _ in range(20)]  # equally long: one limit for all
    peer = Peer(
        {
            "threads": 1,
            "norm": case,
            "config": twins.write_for_huggingface(opened, tmp_path / "model"),
            "folder": str(tmp_path / "model"),
            "symbols": {"pad": PAD, "end": END, "never": [PAD, START]},
            "extra": 9,
            "options": {"length_penalty": 0.6},
            "probe": sentences[:2],
        }
    )
    found = search(ours, Source.of(sentences), config_for(None), [7 + 9] * len(sentences))
    assert peer.run(peer.prepare(sentences, 1)) == [list(ranked[0].tokens) for ranked in found]


@dataclass(frozen=True)
class Searched:
    """The same sentences through both, greedily (None) and for each α."""

    twins: Twins
    source: Source
    ours: dict[float | None, list[list[Found]]]
    theirs: dict[float | None, list[list[Found]]]


@pytest.fixture(scope="module", params=["post", "pre"])
def searched(request: pytest.FixtureRequest, transformers: Any) -> Searched:
    twins, source = twin_of(random_model(CASES[request.param]), transformers), random_sentences(SIZES[1])
    return Searched(
        twins,
        source,
        ours={alpha: we_find(twins, source, config_for(alpha)) for alpha in (None, *ALPHAS)},
        theirs={alpha: they_find(twins, source, alpha) for alpha in (None, *ALPHAS)},
    )


@pytest.mark.parametrize("alpha", [None, *ALPHAS])
def test_the_best_is_theirs(searched: Searched, alpha: float | None):
    ours, theirs = best(searched.ours[alpha]), best(searched.theirs[alpha])
    assert_same_or_tied(searched.twins, searched.source, ours, theirs, config_for(alpha))
    assert_not_trivial(ours)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_length_counts_in_the_score_as_theirs_does(searched: Searched, alpha: float):
    ours, theirs = ([one.rank for one in best(found[alpha])] for found in (searched.ours, searched.theirs))
    assert ours == pytest.approx(theirs, rel=0, abs=TIE)


def test_the_n_best_are_theirs(searched: Searched):
    config = config_for(0.6, nbest=BEAM)
    found = we_find(searched.twins, searched.source, config)
    assert {len(ranked) for ranked in found} == {BEAM}
    for place in range(BEAM):
        ours, theirs = ([ranked[place] for ranked in side] for side in (found, searched.theirs[0.6]))
        assert_same_or_tied(searched.twins, searched.source, ours, theirs, config)


def test_what_is_compared_depends_on_the_search(searched: Searched):
    """Else a search that ignored its settings would pass."""
    for one, other in itertools.combinations(searched.ours.values(), 2):
        assert sum(first != second for first, second in zip(best(one), best(other), strict=True)) >= SENTENCES // 20


# --- trained weights


@pytest.fixture(scope="module")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small pre-norm model, stopped soon: it translates, and is far from certain."""
    folder = tmp_path_factory.mktemp("phrasebook")
    write_phrasebook(folder, seed=1, size=8000)
    changes = {
        "seed": 1,
        "tokenizer": {"kind": "word", "size": 0, "joint": True},
        "model": {"width": 64, "feedforward": 128, "share": "all"},
        "train": {
            "threads": 1,
            "max_steps": 300,
            "peak_rate": 5e-3,
            "warmup": 50,
            "batch_tokens": 1024,
            "validate_every": 300,
            "validate_output": False,
            "checkpoint_every": 300,
        },
        "decode": {"beam": 1},
    }
    run = folder / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hardware, "keep_memory", lambda: None)  # it would hold for the tests that follow
        start(Order(merged(SETTINGS, changes), run, folder), Console(file=io.StringIO()))
    return run


@dataclass(frozen=True)
class Trained:
    """The trained model beside its twin, and what it is asked to translate."""

    twins: Twins
    sources: list[list[int]]
    targets: list[list[int]]

    @property
    def source(self) -> Source:
        return Source.of(self.sources)


@pytest.fixture(scope="module")
def trained(trained_run: Path, transformers: Any) -> Trained:
    translator = load(trained_run)
    model = translator.model.plain if isinstance(translator.model, Compiled) else translator.model
    assert isinstance(model, Transformer)
    assert model.config.norm == "pre"
    pairs = make_phrasebook(seed=1, size=1).test[:SENTENCES]  # what is held out depends on the seed alone
    return Trained(
        twin_of(model, transformers),
        [source_ids(translator.tokenizer, source, None) for source, _ in pairs],
        [translator.tokenizer.target.encode(target) for _, target in pairs],
    )


@pytest.mark.verify
def test_the_trained_model_has_learnt_to_translate(trained: Trained):
    """A reference is far likelier behind its own source than behind its neighbour's."""
    wrong = Source.of([*trained.sources[1:], trained.sources[0]])
    right, other = (force(trained.twins.ours, source, trained.targets) for source in (trained.source, wrong))
    gain = sum(one.score for one in right) - sum(one.score for one in other)
    assert gain / sum(len(one.token_scores) for one in right) > 1.0


@pytest.mark.verify
@pytest.mark.parametrize("alpha", [None, *ALPHAS])
def test_a_trained_model_translates_as_theirs_does(trained: Trained, alpha: float | None):
    twins, source, config = trained.twins, trained.source, config_for(alpha)
    ours, theirs = best(we_find(twins, source, config, 40)), best(they_find(twins, source, alpha, 40))
    different = sum(our.tokens != their.tokens for our, their in zip(ours, theirs, strict=True))
    print(f"\nα {alpha}: {different} of {SENTENCES} differ")
    assert_same_or_tied(twins, source, ours, theirs, config)
    assert_not_trivial(ours)
