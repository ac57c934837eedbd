"""Our search against CTranslate2's, on the same weights, which `interchange/ctranslate2.py` writes for it.

What the two mean by the same words (CTranslate2 4.8): its length penalty is our `length_form="power"`, its limit counts
the end symbol as ours does, and by default it refuses an empty translation (`min_decoding_length`). A greedy search
takes the same decisions. A beam ends there as soon as it has finished as many hypotheses as it is wide; ours ends where
no open hypothesis can overtake, and so finds the same, or something that it ranks higher. With `early_stopping` ours
ends as theirs does, but for α = 0, where theirs ends as soon as the best candidate of a step ends. A beam there may
also hold padding and the start symbol; of a model that gives them no probability, both write the same.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from regard.config import Config
from regard.decode.config import SearchConfig
from regard.decode.forced import force
from regard.decode.search import search
from regard.errors import ConfigError, RunError
from regard.interchange.ctranslate2 import vocabulary_of, write_ctranslate2
from regard.models import ARCHITECTURES, Transformer
from regard.models.parameters import parameters_of
from regard.text.codecs import ByteCodec, WordCodec
from regard.text.tokenizer import Tokenizer, TokenizerConfig
from regard.text.word_vectors import WordVectorsConfig
from tests.parity.test_huggingface_generate import LIMIT, SENTENCES, TIE, random_model, random_sentences

BEAM = 5
CASES: dict[str, dict[str, Any]] = {
    "post": {"norm": "post", "positions": "halves", "start": "padding", "share": "all"},
    "post, own source": {"norm": "post", "positions": "tensor2tensor", "start": "end", "share": "target"},
    "pre": {"norm": "pre", "positions": "interleaved", "start": "start", "share": "all"},
    "pre, nothing shared": {"norm": "pre", "positions": "learned", "start": "start", "share": "none", "bias": False},
}
Tokens = Sequence[tuple[int, ...]]


@pytest.fixture(scope="module")
def ctranslate2() -> Any:
    return pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed (pip install 'regard[dev]')")


def words(model: Transformer) -> Tokenizer:
    sizes = (model.source_embedding.weight.size(0), model.output_weight.size(0))
    return Tokenizer.pair(*(WordCodec([f"word{number}" for number in range(4, size)]) for size in sizes))


def config_for(beam: int, length_penalty: float = 0.6) -> SearchConfig:
    return SearchConfig(beam=beam, length_penalty=length_penalty, length_form="power")


def they_find(translator: Any, tokenizer: Tokenizer, sources: Sequence[Sequence[int]], config: SearchConfig) -> Tokens:
    """`sources` with their end symbols, which CTranslate2 puts there itself."""
    names = vocabulary_of(tokenizer.source)
    ids = {name: number for number, name in enumerate(vocabulary_of(tokenizer.target))}
    answers = translator.translate_batch(
        [[names[index] for index in source[:-1]] for source in sources],
        beam_size=config.beam,
        length_penalty=config.length_penalty,
        max_decoding_length=LIMIT,
        min_decoding_length=0,
        max_batch_size=37,
    )
    return [tuple(ids[name] for name in answer.hypotheses[0]) for answer in answers]


@pytest.mark.parametrize("beam", [1, BEAM])
@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
def test_they_translate_as_we_do(ctranslate2: Any, tmp_path: Path, settings: dict[str, Any], beam: int) -> None:
    model = random_model(settings).eval()
    tokenizer, source = words(model), random_sentences(model.source_embedding.weight.size(0))
    write_ctranslate2(tmp_path / "model", Config(preset="none", model=model.config), parameters_of(model), tokenizer)
    translator = ctranslate2.Translator(str(tmp_path / "model"), compute_type="float32", intra_threads=1)
    sources = [row[mask].tolist() for row, mask in zip(source.values, source.mask, strict=True)]
    theirs = they_find(translator, tokenizer, sources, config_for(beam))
    found = [ranked[0] for ranked in search(model, source, config_for(beam), [LIMIT] * SENTENCES)]
    ours = [one.tokens for one in found]
    assert len(set(ours)) >= SENTENCES // 20
    apart = [place for place in range(SENTENCES) if ours[place] != theirs[place]]
    assert len(apart) <= (0 if beam == 1 else SENTENCES // 10)
    if apart:
        finished = [len(theirs[place]) < LIMIT for place in apart]
        forced = force(model, source.rows(torch.tensor(apart)), [theirs[place] for place in apart], ended=finished)
        ranks = [one.score / config_for(beam).penalty(len(one.token_scores)) for one in forced]
        assert all(found[place].normalised > rank - TIE for place, rank in zip(apart, ranks, strict=True))


@pytest.mark.parametrize(("beam", "length_penalty"), [(2, 0.6), (BEAM, 0.6), (BEAM, 1.0)])
@pytest.mark.parametrize("settings", CASES.values(), ids=CASES)
def test_a_beam_that_stops_early_writes_what_theirs_writes(
    ctranslate2: Any, tmp_path: Path, settings: dict[str, Any], beam: int, length_penalty: float
) -> None:
    model = random_model(settings).eval()
    with torch.no_grad():
        cast(Tensor, model.output_bias)[list(model.symbols.never)] = -40.0
    tokenizer, source = words(model), random_sentences(model.source_embedding.weight.size(0))
    write_ctranslate2(tmp_path / "model", Config(preset="none", model=model.config), parameters_of(model), tokenizer)
    translator = ctranslate2.Translator(str(tmp_path / "model"), compute_type="float32", intra_threads=1)
    sources = [row[mask].tolist() for row, mask in zip(source.values, source.mask, strict=True)]
    config = config_for(beam, length_penalty)
    theirs = they_find(translator, tokenizer, sources, config)
    exact, early = (
        [ranked[0].tokens for ranked in search(model, source, own, [LIMIT] * SENTENCES)]
        for own in (config, replace(config, early_stopping=True))
    )
    assert early == theirs
    assert exact != theirs  # so that the rule makes a difference


def test_ids_that_are_shown_alike_have_names_of_their_own() -> None:
    """The byte 0x3C is shown as "<", and four bytes in a row could be spelt as the end symbol is."""
    twice = WordCodec(["</s>", "one", "<unk>"])
    assert vocabulary_of(twice) == ["<pad>", "<s>", "</s>", "<unk>", "</s><4>", "one", "<unk><6>"]
    assert len(set(vocabulary_of(ByteCodec()))) == ByteCodec().size


@pytest.mark.parametrize(
    ("changes", "words_of_it"),
    [
        ({"key_width": 5, "value_width": 8}, "model.key_width=5"),
        ({"value_width": 3}, "model.value_width=3"),
    ],
)
def test_what_ctranslate2_has_no_layer_for_is_refused(
    tmp_path: Path, changes: dict[str, Any], words_of_it: str
) -> None:
    model = random_model(CASES["pre"] | changes)
    with pytest.raises(ConfigError, match=f"CTranslate2 cannot run {words_of_it}; it needs width / heads"):
        write_ctranslate2(
            tmp_path / "model", Config(preset="none", model=model.config), parameters_of(model), words(model)
        )
    assert not (tmp_path / "model").exists()


def test_other_models_and_a_directory_that_is_there_are_refused(ctranslate2: Any, tmp_path: Path) -> None:
    model = random_model(CASES["pre"])
    config, weights, tokenizer = Config(preset="none", model=model.config), parameters_of(model), words(model)
    refusals = [
        (replace(config, model=ARCHITECTURES["rnn"].config()), weights, "model.architecture='rnn'"),
        (config, {f"inner.{name}": value for name, value in weights.items()}, "copies words of its source"),
        (config, weights | {"further.0.embedding.weight": weights["output_weight"]}, "several sources"),
    ]
    for wrong, own, message in refusals:
        with pytest.raises(ConfigError, match=message):
            write_ctranslate2(tmp_path / "model", wrong, own, tokenizer)
    (tmp_path / "model").mkdir()
    with pytest.raises(ConfigError, match="is there already"):
        write_ctranslate2(tmp_path / "model", config, weights, tokenizer)


def test_word_vectors_and_a_missing_library_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = random_model(CASES["pre"])
    config, weights, tokenizer = Config(preset="none", model=model.config), parameters_of(model), words(model)
    vectors = replace(config, tokenizer=TokenizerConfig(kind="word"), word_vectors=WordVectorsConfig(file="glove.txt"))
    with pytest.raises(ConfigError, match=r"word vectors of another scale \(glove\.txt\)"):
        write_ctranslate2(tmp_path / "model", vectors, weights, tokenizer)
    monkeypatch.setitem(sys.modules, "ctranslate2.specs", None)
    with pytest.raises(RunError, match="CTranslate2 is not installed: pip install ctranslate2"):
        write_ctranslate2(tmp_path / "model", config, weights, tokenizer)
