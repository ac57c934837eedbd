"""The failures of a translator: measured on what it wrote, with its own tokens, scores and attention."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.data.config import DataConfig
from regard.decode.config import SearchConfig
from regard.decode.translate import Translator
from regard.errors import ConfigError
from regard.evaluate.findings import Failures
from regard.models import ARCHITECTURES, Shapes
from regard.models.interface import Attentive
from regard.report.compare_failures import cells
from regard.tasks.failures import failures_of
from regard.tasks.interface import Examples, measured
from regard.tasks.pairs import Pairs, translate_pairs
from regard.text.codecs import ByteCodec, WordCodec
from regard.text.tokenizer import Tokenizer
from tests.decodables import SOURCE_WORDS, TARGET_WORDS, tiny_decodables
from tests.toys import TOY_TASKS
from tests.unit.test_alignment import Watching
from tests.unit.test_tasks import CODEC, TASK, examples, trained
from tests.unit.test_translate import Echo, Reading

WORDS = WordCodec(["das", "haus", "ist", "klein", "alt"], tags=["news"])
WHOLE = Tokenizer.pair(WORDS, WORDS)
SIZES = {"source": SOURCE_WORDS, "target": TARGET_WORDS}
SOURCES = ["das haus ist klein", "das haus ist alt", "alt ist das haus und klein"]


class Pointing(Watching):
    """Looks at what it says and nowhere else."""

    def step_and_look(self, tokens: Tensor, state: Any) -> tuple[Tensor, Reading, Tensor]:
        logits, after = self.step(tokens, state)
        looks = torch.zeros(len(tokens), 1, 1, state.tokens.size(1))
        return logits, after, looks.scatter_(3, state.now()[:, None, None], 1.0)


def observed(model: Any, pairs: Pairs, tokenizer: Tokenizer = WHOLE, **settings: Any) -> Failures:
    translator = Translator(model=model, tokenizer=tokenizer, **{"config": SearchConfig(beam=1)} | settings)
    return failures_of(translator, pairs, translate_pairs(translator, pairs, attention=True))


def test_an_echo_that_points_fails_in_nothing_but_what_it_does_not_know() -> None:
    """Of the six words of the last sentence, one is unknown."""
    found = observed(Pointing(size=WORDS.size), Pairs(SOURCES, SOURCES))
    assert found.repetition.rate == 0
    assert found.coverage is not None
    assert (found.coverage.sentences, found.coverage.words, found.coverage_note) == (3, 14, "")
    assert (found.coverage.neglected, found.coverage.covered, found.coverage.excess) == (0, 1, 0)
    assert found.unknown.source == found.unknown.references == found.unknown.translations == 1 / 14
    assert found.content.recall == found.content.carried == 13 / 14
    assert [score.bucket.label for score in found.bleu_by_length] == ["1–5", "6–10"]
    assert found.bleu_by_length[0].bleu == pytest.approx(100)
    assert found.bleu_long == ()


def test_a_tag_is_no_word_of_the_source() -> None:
    """Half of them have one in front, which this model looks at and copies too."""
    found = observed(Pointing(size=WORDS.size), Pairs(SOURCES, SOURCES, ["", "news", "news"]))
    assert found.coverage is not None
    assert (found.coverage.words, found.coverage.neglected, found.coverage.excess) == (14, 0, 0)


def test_a_word_has_the_attention_of_all_its_tokens() -> None:
    codec = ByteCodec()
    pairs = Pairs(["two words", "x"], ["two words", "x"])
    found = observed(Pointing(size=codec.size), pairs, Tokenizer.pair(codec, codec))
    assert found.coverage is not None
    assert found.coverage.words == 3
    assert found.coverage.quantiles["0.5"] == 4, "of 4 bytes with the space behind, 5 and 1"
    assert (found.unknown.source, found.unknown.translations) == (0, 0)


def test_where_there_is_no_attention_it_says_why_and_all_else_is_there() -> None:
    blind = observed(Echo(size=WORDS.size), Pairs(SOURCES, SOURCES))
    assert blind.coverage is None
    assert "does not attend to its source" in blind.coverage_note
    assert blind.content.recall == 13 / 14
    assert blind.coverage_note in blind.summary()
    assert cells(blind).count("–") == 2
    parts = observed(Pointing(size=WORDS.size), Pairs(SOURCES, SOURCES), max_source=5)
    assert parts.coverage is not None
    assert parts.coverage.sentences == 2
    assert parts.coverage_note == "attention without 1 of 3 lines, which were translated in parts"


def test_pairs_beyond_the_limits_are_left_out_of_the_loss() -> None:
    def tokens(**limits: int) -> int:
        found = observed(Echo(size=WORDS.size), Pairs(SOURCES, SOURCES), **limits)
        return sum(each.tokens for each in found.loss_by_position)

    assert tokens() == 4 + 4 + 6 + 3
    assert tokens(max_target=6) == tokens(max_source_positions=6) == 4 + 4 + 2
    assert observed(Echo(size=WORDS.size), Pairs(SOURCES, SOURCES), max_target=2).loss_by_position == ()


def test_the_loss_by_position_is_the_loss_that_is_measured() -> None:
    """With tags, and through steps in place of the whole."""
    plain = measured(TASK, trained(), examples())
    assert "failures" not in plain.values
    found = measured(TASK, trained(), examples(), options={"failures": True})
    failures = json.loads(json.dumps(found.to_json()))["failures"]
    buckets = failures["loss_by_position"]
    tokens = sum(bucket["tokens"] for bucket in buckets)
    assert tokens == sum(len(example["target"]) for example in examples().encoded)
    whole = sum(bucket["tokens"] * bucket["loss"] for bucket in buckets) / tokens
    assert math.isclose(whole, found.values["loss"], rel_tol=1e-4)
    assert {name: value for name, value in found.values.items() if name != "failures"} == plain.values
    assert found.summary.startswith(plain.summary)
    assert sum(bucket["sentences"] for bucket in failures["bleu_by_length"]) == len(examples())
    assert failures["coverage"]["words"] == 5


DECODABLES = tiny_decodables()


@pytest.mark.parametrize("name", DECODABLES)
def test_every_architecture_can_be_asked(name: str) -> None:
    """And has been looked at where it attends, of each source word: what is not spent on the end symbol."""
    model = DECODABLES[name]
    own, usual = (WordCodec([f"{side}{place}" for place in range(size - 4)]) for side, size in SIZES.items())
    sources = [" ".join(own.vocabulary[place : place + length]) for place, length in ((0, 3), (7, 11), (5, 17))]
    targets = [" ".join(usual.vocabulary[place : place + length]) for place, length in ((2, 5), (1, 7), (0, 13))]
    few = SearchConfig(beam=1, max_length=5)
    found = observed(model, Pairs(sources, targets), Tokenizer.pair(own, usual), config=few)
    assert all(math.isfinite(each.loss) for each in found.loss_by_position)
    assert sum(each.tokens for each in found.loss_by_position) == 5 + 7 + 13 + 3
    assert [len(score.bucket.places) for score in found.bleu_long] == [2, 1]
    assert (found.coverage is not None) == isinstance(model, Attentive)
    if found.coverage is not None:
        assert found.coverage.words == 3 + 11 + 17
        assert 0 <= found.coverage.overlap <= 1
        assert 0 < found.coverage.covered <= 1


def test_a_model_of_two_sources_is_scored_with_both() -> None:
    columns = TASK.columns(DataConfig(also=("more",)))
    tokenizer = Tokenizer(dict.fromkeys(("source", "more", "target"), CODEC))
    shapes = Shapes(dict.fromkeys(tokenizer.codecs, CODEC.size), columns=columns)
    torch.manual_seed(3)
    small: dict[str, Any] = {"width": 32, "heads": 2, "feedforward": 29, "encoder_layers": 1, "decoder_layers": 1}
    transformer = ARCHITECTURES["transformer"]
    model = transformer.build(transformer.config(**small), shapes).eval()
    given = examples()
    more = [text[::-1] for text in given.texts["source"]]
    encoded = [
        {"source": one["source"], "more": columns[1].ids(tokenizer, text), "target": one["target"]}
        for one, text in zip(given.encoded, more, strict=True)
    ]
    both = Examples(encoded, {**given.texts, "more": more}, given.tags)
    use = trained(model=model, tokenizer=tokenizer, columns=columns)
    found = measured(TASK, use, both, options={"failures": True}).to_json()
    buckets = found["failures"]["loss_by_position"]
    whole = sum(each["tokens"] * each["loss"] for each in buckets) / sum(each["tokens"] for each in buckets)
    assert math.isclose(whole, found["loss"], rel_tol=1e-4)
    assert found["failures"]["coverage"]["words"] == 5


def test_it_has_no_meaning_for_another_task() -> None:
    with pytest.raises(ConfigError, match="failures has no meaning for this run's task; leave it out"):
        measured(TOY_TASKS["label"], trained(), examples(), options={"failures": True})
