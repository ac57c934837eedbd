"""A task as everything else sees it: its validator, its metrics by name, what it measures and opens."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from regard.data.columns import SOURCE, TARGET, Column
from regard.data.config import DataConfig
from regard.decode.config import SearchConfig
from regard.decode.translate import Translator
from regard.errors import ConfigError
from regard.models import ARCHITECTURES, Shapes, Transformer, TransformerConfig
from regard.models.interface import Limits
from regard.models.modes import evaluating
from regard.nn.loss import Objective
from regard.tasks import TASKS
from regard.tasks.interface import (
    LOSS,
    Examples,
    Metric,
    Trained,
    Validation,
    example_batches,
    ignore,
    measured,
    validator_of,
)
from regard.text.codecs import ByteCodec
from regard.text.symbols import RESERVED
from regard.text.tokenizer import Tokenizer
from regard.train.step import train_step
from tests.toys import stream

TASK = TASKS["translate"]
CODEC = ByteCodec(["news"])
TOKENIZER = Tokenizer.pair(CODEC, CODEC)
PAIRS = [("hello", "HELLO", ""), ("one two", "ONE TWO", "news"), ("three", "THREE", ""), ("x", "X", "news")]


def trained(**changes: Any) -> Trained:
    torch.manual_seed(3)
    config = TransformerConfig(width=32, heads=2, feedforward=29, encoder_layers=1, decoder_layers=1)
    return Trained(
        **{
            "model": Transformer(config, CODEC.size, CODEC.size).eval(),
            "tokenizer": TOKENIZER,
            "columns": (SOURCE, TARGET),
            "data": DataConfig(),
            "decode": SearchConfig(beam=2, max_extra=3),
        }
        | changes
    )


def examples(*more: tuple[str, str, str]) -> Examples:
    pairs = [*PAIRS, *more]
    encoded = [
        {"source": SOURCE.ids(TOKENIZER, source, tag or None), "target": TARGET.ids(TOKENIZER, target)}
        for source, target, tag in pairs
    ]
    sources, targets, tags = zip(*pairs, strict=True)
    return Examples(encoded, {"source": sources, "target": targets}, tags)


def test_validation_encodes_nothing(monkeypatch: pytest.MonkeyPatch):
    """The store has the pairs encoded; a validator is made once and asked again and again."""
    given = examples()
    for name in ("encode", "encode_batch", "encode_with_offsets"):
        monkeypatch.setattr(ByteCodec, name, lambda *_: pytest.fail("the validation text is encoded again"))
    validate = validator_of(TASK, trained(), given)
    first, second = validate(ignore), validate(ignore)
    assert first == second
    assert set(first.metrics) == {"loss", "perplexity", "bleu", "chrf"}
    assert first.metrics["perplexity"] == pytest.approx(math.exp(first.metrics["loss"]))
    assert [sample.reference for sample in first.samples] == ["X", "HELLO", "THREE", "ONE TWO"]


def test_validation_translates_as_the_translator_does():
    use = trained(decode=SearchConfig(beam=1))
    found = {sample.given: sample.output for sample in validator_of(TASK, use, examples())(ignore).samples}
    translator: Translator = TASK.open(use)
    for source, _, tag in PAIRS:
        assert found[source] == translator.translate(source, beam=1, tag=tag or None, max_extra=50)[0].text


def test_without_outputs_there_are_samples_and_no_scores():
    validation = validator_of(TASK, trained(generates=False), examples())(ignore)
    assert set(validation.metrics) == {"loss", "perplexity"}
    assert len(validation.samples) == 4


def test_what_progress_raises_ends_a_validation():
    class EnoughError(Exception):
        pass

    def stop(_: int) -> None:
        raise EnoughError

    with pytest.raises(EnoughError):
        validator_of(TASK, trained(), examples())(stop)


def test_a_metric_knows_its_direction_and_how_it_is_shown():
    bleu = TASK.metric("bleu")
    assert bleu is not None
    assert bleu.badness(30.0) < bleu.badness(20.0)
    assert bleu.shown(12.25) == "BLEU 12.25 (greedy)"
    assert LOSS.badness(1.0) < LOSS.badness(2.0)
    assert Metric("accuracy", "accuracy", digits=0).shown(99.0) == "accuracy 99"
    assert TASK.metric("rouge") is None


def test_measuring_gives_scores_with_signatures_and_the_loss():
    found = measured(TASK, trained(), examples())
    assert {"bleu", "bleu_signature", "chrf", "loss", "perplexity"} <= set(found.to_json())
    assert found.summary.splitlines()[-1].startswith("loss ")
    assert [label.split()[0] for label, _ in TASK.rows(found.to_json())] == ["BLEU", "chrF", "loss", "perplexity"]


def test_an_option_without_a_meaning_for_the_task_is_refused():
    with pytest.raises(ConfigError, match="stride has no meaning for this run's task; leave it out"):
        measured(TASK, trained(), examples(), options={"stride": 4})


def limited() -> Trained:
    """A model of at most 16 positions."""
    torch.manual_seed(3)
    shape: dict[str, Any] = {"width": 32, "heads": 2, "feedforward": 29, "encoder_layers": 1, "decoder_layers": 1}
    config = TransformerConfig(**shape, positions="learned", max_positions=16)
    model = Transformer(config, CODEC.size, CODEC.size).eval()
    return trained(model=model, limits=ARCHITECTURES["transformer"].limits(config))


LONG = ("a sentence of many words", "MANY WORDS", "")


def test_a_pair_longer_than_the_model_is_left_out_of_the_loss_and_counted():
    """A source is translated in parts; that a test set holds one must not end a run after its last step."""
    found = measured(TASK, limited(), examples(LONG))
    assert "without 1 of 5 pairs, which are longer than the model can take" in found.summary
    assert math.isfinite(found.values["loss"])
    assert found.to_json()["pairs_without_loss"] == 1
    assert measured(TASK, limited(), examples()).to_json()["pairs_without_loss"] == 0


@pytest.mark.parametrize(("count", "said"), [(1, "the pair is"), (2, "all 2 pairs are")])
def test_there_is_no_loss_where_every_pair_is_longer_than_the_model(count: int, said: str):
    every = examples(*[LONG] * count)
    texts = {name: values[-count:] for name, values in every.texts.items()}
    found = measured(TASK, limited(), Examples(every.encoded[-count:], texts, every.tags[-count:]))
    assert found.summary.splitlines()[-1] == f"no loss: {said} longer than the model can take"
    assert json.loads(json.dumps(found.to_json())).items() >= {"loss": None, "perplexity": None}.items()
    assert found.to_json()["pairs_without_loss"] == count
    assert [label.split()[0] for label, _ in TASK.rows(found.to_json())] == ["BLEU", "chrF"]


def test_validation_runs_without_dropout_and_without_gradients():
    """Whatever a task's validator does: the loop hands it a model that is being trained."""
    use = trained()
    seen: list[tuple[bool, bool]] = []

    def validator(given: Trained, _: Examples):
        def validate(_: object) -> Validation:
            seen.append((given.model.training, torch.is_grad_enabled()))
            return Validation({"loss": 1.0})

        return validate

    use.model.train()
    validator_of(replace(TASK, validator=validator), use, examples())(ignore)
    assert seen == [(False, False)]
    assert use.model.training


def test_evaluation_mode_reaches_the_whole_model_whatever_its_parts_are_called():
    model = torch.nn.Module()
    model.models = torch.nn.ModuleList([torch.nn.Dropout()])
    ensemble = SimpleNamespace(models=[torch.nn.Dropout(), torch.nn.Dropout()])
    for whole, parts in ((model, [model, model.models[0]]), (ensemble, ensemble.models)):
        with evaluating(whole):
            assert not any(part.training for part in parts)
        assert all(part.training for part in parts)


def test_a_packed_task_is_validated_on_packed_rows():
    lengths: list[int] = []

    def collate(rows: Any, symbols: Any) -> Any:
        lengths.extend(len(row["text"]) for row in rows)
        return stream.collate(rows, symbols)

    column = Column("text", end=True)
    rows = [{"text": column.ids(Tokenizer({"text": CODEC}), text)} for text in ("a long text of many bytes", "b", "cc")]
    use = trained(columns=(column,), limits=Limits({"text": 7}))
    batches = example_batches(replace(stream.TASK, collate=collate), use, rows)
    assert sorted(lengths) == [3, 7, 7, 7, 7]
    assert sum(batch.num_tokens for batch in batches) < sum(len(row["text"]) for row in rows)


def test_a_step_on_nothing_to_predict_moves_nothing():
    """A packed row of one token may be alone in its batch."""
    torch.manual_seed(1)
    model = stream.Bigram(stream.BigramConfig(), Shapes({"text": 11}))
    before = model.next.weight.detach().clone()
    batch = stream.collate([{"text": [5], "segment": [0]}], RESERVED)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    found = train_step(model, optimizer, [batch], loss_of=stream.loss, objective=Objective(), clip=1.0)
    assert (found.tokens, found.loss) == (1, 0.0)
    assert torch.equal(model.next.weight, before)


def test_padding_stays_within_the_learned_positions():
    """A source of 17 tokens is padded to 24 where nothing stands against it; this model has 19 positions."""
    torch.manual_seed(3)
    shape: dict[str, Any] = {"width": 32, "heads": 2, "feedforward": 29, "encoder_layers": 1, "decoder_layers": 1}
    config = TransformerConfig(**shape, positions="learned", max_positions=19)
    model = Transformer(config, CODEC.size, CODEC.size).eval()
    translator: Translator = TASK.open(trained(model=model, limits=ARCHITECTURES["transformer"].limits(config)))
    lines = ["a" * length for length in range(1, 19)]
    together = translator.translate(lines)
    assert [translator.translate(line)[0] for line in lines] == together
    assert len(translator.score([(line, "b") for line in lines])) == 18
