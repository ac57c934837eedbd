"""The tasks of an encoder: their losses by another formula, what a prediction depends on, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regard.data.columns import Column, Example, word_places, wrapped
from regard.data.config import DataConfig
from regard.data.masking import MaskingConfig
from regard.data.rows import completed, encoded_rows
from regard.decode.config import SearchConfig
from regard.errors import ConfigError, CorpusError
from regard.models.costs import build_model
from regard.models.encoder import EncoderConfig
from regard.models.interface import Limits, Shapes
from regard.nn.loss import Objective, Smoothing
from regard.nn.pooling import POOLINGS
from regard.tasks import TASKS
from regard.tasks.interface import Examples, Predictor, Trained, ignore, measured, validator_of
from regard.tasks.mlm import fixed_rows, unigram_entropy
from regard.tasks.span import best_span
from regard.text.codecs import ByteCodec, WordCodec, WordPieceCodec
from regard.text.symbols import MASK
from regard.text.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer

WORDS = [
    "ein",
    "kleiner",
    "Hund",
    "bellt",
    "sehr",
    "laut",
    "im",
    "Garten",
    "und",
    "eine",
    "Katze",
    "schläft",
    "auf",
    "dem",
    "Dach",
]
LABELS = {"label": ("bad", "good", "so-so"), "labels": ("B-X", "I-X", "O")}
PLAIN, SMOOTHED = Objective(), Objective(Smoothing(0.1))
LIMIT = 61
"""Not one of the lengths that texts are padded to."""


def trained(task: str, codec: Any = None, seed: int = 3, limit: int = LIMIT, **changes: Any) -> Trained:
    """An untrained model whose weights are large enough for its answers to differ."""
    data = DataConfig(**{name: changes.pop(name) for name in ("pairs", "sentences", "masking") if name in changes})
    tokenizer = Tokenizer({"text": codec or ByteCodec([MASK])}, labels=LABELS)
    columns = TASKS[task].columns(data)
    config = EncoderConfig(width=24, heads=3, layers=2, feedforward=40, max_positions=limit, dropout=0.0, **changes)
    sizes = {column.name: tokenizer.codecs["text"].size if column.kind == "text" else 3 for column in columns}
    torch.manual_seed(seed)
    model = build_model(config, Shapes(sizes, tokenizer.symbols, columns)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    limits = Limits({"text": limit}, f"model.max_positions={limit} (they are learned)")
    return Trained(model=model, tokenizer=tokenizer, columns=columns, data=data, decode=SearchConfig(), limits=limits)


def encoded(use: Trained, rows: Sequence[tuple[str, ...]]) -> Examples:
    """Rows of the columns that have files, as they come out of them."""
    full = list(completed(use.columns, iter(rows)))
    ids = encoded_rows(use.columns, full, use.tokenizer, [], use.data, Path())
    around = {column.name: wrapped(column, ids[column.name], use.tokenizer, None) for column in use.columns}
    examples = [{name: values[place] for name, values in around.items()} for place in range(len(full))]
    texts = {column.name: [row[n] for row in full] for n, column in enumerate(use.columns) if column.is_lines}
    return Examples(examples, texts, [""] * len(full))


def some_texts(seed: int, count: int, longest: int = 9) -> list[str]:
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, draw.integers(1, longest))) for _ in range(count)]


def batch_of(use: Trained, task: str, examples: Sequence[Example]) -> Any:
    return TASKS[task].collate(examples, use.symbols)


# --- batches and losses


def test_the_loss_of_labels_is_torchs_cross_entropy() -> None:
    use = trained("classify", pairs=True)
    texts, labels = some_texts(1, 7, 4), ["good", "bad", "so-so", "bad", "bad", "good", "so-so"]
    examples = encoded(use, list(zip(texts, reversed(texts), labels, strict=True)))
    batch = batch_of(use, "classify", examples.encoded)
    found = TASKS["classify"].loss(use.model, batch, SMOOTHED)
    logits = use.model(batch).detach()
    truth = torch.tensor([LABELS["label"].index(label) for label in labels])
    assert found.truth == pytest.approx(float(F.cross_entropy(logits, truth, reduction="sum")), rel=1e-5)
    assert found.tokens == batch.num_tokens == 7
    smooth = F.kl_div(logits.log_softmax(-1), Smoothing(0.1).targets(truth, 3), reduction="none").sum()
    entropy = -(0.9 * np.log(0.9) + 0.1 * np.log(0.05))
    assert float(found.smoothed.detach()) == pytest.approx(float(smooth) + 7 * entropy, rel=1e-5)


def test_a_pair_is_read_in_one_row_with_two_segments() -> None:
    use = trained("classify", pairs=True)
    examples = encoded(use, [("ab", "c", "good"), ("a", "bcd", "bad")])
    tokens = batch_of(use, "classify", examples.encoded).tokens
    byte = {letter: use.tokenizer.codecs["text"].encode(letter)[0] for letter in "abcd"}
    assert tokens.ids.tolist() == [
        [1, byte["a"], byte["b"], 2, byte["c"], 2, 0],
        [1, byte["a"], 2, byte["b"], byte["c"], byte["d"], 2],
    ]
    parts = next(getattr(tokens, name) for name in tokens.__slots__ if name not in ("ids", "mask"))
    assert parts.tolist() == [[0, 0, 0, 0, 1, 1, 0], [0, 0, 0, 1, 1, 1, 1]]
    assert tokens.mask.tolist() == [[True] * 6 + [False], [True] * 7]


def test_the_loss_of_tags_is_that_of_each_words_first_token() -> None:
    use = trained("tag")
    rows = [("ein Hund bellt", "B-X I-X O"), ("laut", "O"), ("auf dem Dach", "O B-X O")]
    examples = encoded(use, rows)
    batch = batch_of(use, "tag", examples.encoded)
    logits = use.model(batch).detach().log_softmax(-1)
    total = 0.0
    for place, (text, labels) in enumerate(rows):
        firsts = [1 + len(" ".join(text.split()[:n]).encode()) + (n > 0) for n in range(len(text.split()))]
        for first, label in zip(firsts, labels.split(), strict=True):
            total -= float(logits[place, first, LABELS["labels"].index(label)])
    found = TASKS["tag"].loss(use.model, batch, PLAIN)
    assert found.truth == pytest.approx(total, rel=1e-5)
    assert found.tokens == batch.num_tokens == 7


def test_the_loss_of_a_span_is_the_mean_of_two_over_the_passage() -> None:
    use = trained("span")
    rows = [("wer bellt ?", "ein Hund bellt laut", "0 1"), ("wo ?", "auf dem Dach", "2 2")]
    batch = batch_of(use, "span", encoded(use, rows).encoded)
    scores = use.model(batch).detach()
    total = 0.0
    for place, (question, passage, span) in enumerate(rows):
        first = 1 + len(question.encode()) + 1
        words = [(first + a, first + b) for a, b in word_places(Column("text"), use.tokenizer, passage)]
        own = scores[place, :, first : first + len(passage.encode())]
        begin, end = (int(word) for word in span.split())
        for side, wanted in ((0, words[begin][0]), (1, words[end][1])):
            total += float(F.cross_entropy(own[side][None], torch.tensor([wanted - first]))) / 2
    found = TASKS["span"].loss(use.model, batch, PLAIN)
    assert found.truth == pytest.approx(total, rel=1e-5)
    assert found.tokens == batch.num_tokens == 2


def masked_batch(use: Trained, lines: Sequence[str]) -> Any:
    return batch_of(use, "mlm", fixed_rows(use, encoded(use, [(line,) for line in lines]).encoded))


def test_the_loss_of_hidden_tokens_is_torchs_cross_entropy_there() -> None:
    use = trained("mlm", limit=200)
    batch = masked_batch(use, some_texts(4, 9))
    logits = use.model(batch).detach().flatten(0, 1)[batch.places]
    found = TASKS["mlm"].loss(use.model, batch, PLAIN)
    assert found.truth == pytest.approx(float(F.cross_entropy(logits, batch.truth, reduction="sum")), rel=1e-5)
    assert found.tokens == batch.num_tokens == len(batch.truth) > 9


def test_the_loss_of_judged_pairs_is_added_as_a_mean_beside_a_mean() -> None:
    use = trained("mlm", sentences="order", limit=200)
    batch = masked_batch(use, some_texts(5, 8, 4))
    assert len(batch.follows) == 4
    model: Any = use.model
    features, judged = (part.detach() for part in model.features_and_judgement(batch))
    hidden = F.linear(features, model.output_weight, model.output_bias).detach().flatten(0, 1)[batch.places]
    wanted = F.cross_entropy(hidden, batch.truth) + F.cross_entropy(judged, batch.follows)
    found = TASKS["mlm"].loss(use.model, batch, PLAIN)
    assert float(found.smoothed.detach()) / found.tokens == pytest.approx(float(wanted), rel=1e-5)
    assert found.truth / found.tokens == pytest.approx(float(F.cross_entropy(hidden, batch.truth)), rel=1e-5)


def test_gradients_reach_every_parameter() -> None:
    rows: dict[str, list[tuple[str, ...]]] = {
        "classify": [("ein Hund", "eine Katze", "good"), ("a", "b", "bad")],
        "tag": [("ein Hund", "B-X O")],
        "span": [("wer ?", "ein Hund", "0 1")],
    }
    for task, given in rows.items():
        use = trained(task, **({"pairs": True} if task == "classify" else {}))
        TASKS[task].loss(use.model, batch_of(use, task, encoded(use, given).encoded), PLAIN).smoothed.backward()
        assert all(parameter.grad is not None for parameter in use.model.parameters()), task
    use = trained("mlm", sentences="next", limit=200)
    TASKS["mlm"].loss(use.model, masked_batch(use, some_texts(6, 6, 4)), PLAIN).smoothed.backward()
    assert all(parameter.grad is not None for parameter in use.model.parameters())


# --- predictions


def given_rows(task: str) -> list[Any]:
    texts = [text[:24] for text in some_texts(8, 40, 7)]
    if task == "mlm":
        return [f"{text} <mask> und <mask>" for text in texts]
    return list(zip(texts, reversed(texts), strict=True)) if task == "span" else texts


@pytest.mark.parametrize(
    ("task", "settings"),
    [
        ("classify", {"pooling": "first"}),
        ("classify", {"pooling": "mean", "pooler": False}),
        ("classify", {"pooling": "max", "pooler": False}),
        ("tag", {}),
        ("span", {}),
        ("mlm", {}),
    ],
)
def test_a_prediction_has_the_same_bits_alone_and_among_others(task: str, settings: dict[str, Any]) -> None:
    predictor: Predictor = TASKS[task].open(trained(task, **settings))
    rows = given_rows(task)
    together = [json.dumps(each.to_json()) for each in predictor.predict(rows)]
    assert together == [json.dumps(predictor.predict([row])[0].to_json()) for row in rows]
    assert together[::-1] == [json.dumps(each.to_json()) for each in predictor.predict(rows[::-1])]
    assert len(set(together)) > 10


@pytest.mark.parametrize("pooling", POOLINGS)
def test_what_stands_at_padding_does_not_change_a_pooled_vector(pooling: str) -> None:
    """Nor does how much of it there is, but for the order in which a mean is summed."""
    torch.manual_seed(5)
    x = torch.randn(3, 7, 13)
    mask = torch.arange(7)[None] < torch.tensor([7, 4, 1])[:, None]
    own = POOLINGS[pooling](x, mask)
    for longer in (8, 16, 33, 64):
        wide = torch.randn(3, longer, 13)
        wide[:, :7] = x
        wider = F.pad(mask, (0, longer - 7))
        found = POOLINGS[pooling](wide, wider)
        assert torch.equal(POOLINGS[pooling](wide.masked_fill(~wider[..., None], 7.0), wider), found)
        assert torch.allclose(found, own, rtol=0, atol=1e-6)


@pytest.mark.parametrize("task", ["classify", "tag", "span", "mlm"])
def test_what_is_opened_predicts_and_has_its_model(task: str) -> None:
    use = trained(task)
    opened = TASKS[task].open(use)
    assert isinstance(opened, Predictor)
    assert (opened.model, opened.tokenizer) == (use.model, use.tokenizer)
    assert opened.parse("  ") is None
    (blank,) = opened.predict([None])
    assert blank.line == ""
    json.dumps(blank.to_json())
    assert opened.predict([]) == []


def test_a_tag_is_that_of_a_words_first_token() -> None:
    use = trained("tag")
    text = "eine Katze schläft"
    (found,) = TASKS["tag"].open(use).predict([text])
    batch = batch_of(use, "tag", encoded(use, [(text, "O O O")]).encoded)
    with torch.inference_mode():
        best = use.model(batch).flatten(0, 1)[batch.places].argmax(-1)
    assert found.labels == tuple(LABELS["labels"][place] for place in best.tolist())
    assert found.words == tuple(text.split())
    assert found.line == " ".join(found.labels)


def test_the_best_span_is_the_best_of_all() -> None:
    """Against every pair of words, one after the other."""
    draw = torch.Generator().manual_seed(2)
    for longest in (1, 2, 4, 30):
        for _ in range(20):
            scores = 3 * torch.randn(2, 19, generator=draw)
            starts = [4, 5, 8, 9, 13]
            words = [(first, after - 1) for first, after in pairwise([*starts, 15])]
            found = best_span(scores, words, slice(4, 15), longest)
            chances = scores[:, 4:15].softmax(-1)
            every = {
                (a, b): float(chances[0, words[a][0] - 4] * chances[1, words[b][1] - 4])
                for a in range(5)
                for b in range(a, min(5, a + longest))
            }
            assert (found.first, found.last) == max(every, key=lambda pair: every[pair])
            assert found.probability == pytest.approx(max(every.values()), rel=1e-4)


def test_an_answer_is_a_part_of_the_passage() -> None:
    use = trained("span")
    passage = "ein  kleiner Hund bellt"
    (found,) = TASKS["span"].open(use).predict([("wer ?", passage)])
    assert found.text.split() == passage.split()[found.first : found.last + 1]
    assert 0 < found.probability <= 1


BPE = train_tokenizer(
    TokenizerConfig(kind="bpe", size=300), {"text": lambda: iter([" ".join(WORDS)] * 9)}, [MASK], num_examples=9
)
PIECES = ["ein", "klein", "##er", "Hund", "bell", "##t", "laut", "!", "x"]


@pytest.mark.parametrize(
    "codec",
    [ByteCodec([MASK]), WordCodec(WORDS, tags=[MASK]), WordPieceCodec(PIECES, [MASK]), BPE.codecs["text"]],
    ids=["byte", "word", "wordpiece", "bpe"],
)
def test_a_mask_is_one_token_and_leaves_the_others_as_they_were(codec: Any) -> None:
    use = trained("mlm", codec)
    filler = TASKS["mlm"].open(use)
    line = filler.parse("ein <mask> bellt laut")
    mask = use.symbols.mask
    (ids,) = line.read.ids
    assert [place for place, token in enumerate(ids) if token == mask] == list(line.places)
    before, behind = codec.encode("ein"), codec.encode("ein x bellt laut")
    assert ids[: len(before) + 1] == [1, *before]
    assert ids[line.places[0] + 1 : -1] == behind[len(behind) - (len(ids) - line.places[0] - 2) :]
    (filled,) = filler.predict([line], nbest=3)
    assert filled.text == f"ein {filled.masks[0][0][0]} bellt laut"
    assert len(filled.masks[0]) == 3
    chances = [chance for _, chance in filled.masks[0]]
    assert chances == sorted(chances, reverse=True)
    assert filler.predict(["ein [MASK] bellt laut"], nbest=3)[0].masks == filled.masks


def test_the_chances_of_a_mask_are_those_of_the_model() -> None:
    use = trained("mlm", WordCodec(WORDS, tags=[MASK]))
    filler = TASKS["mlm"].open(use)
    (filled,) = filler.predict(["ein <mask> bellt"], nbest=len(WORDS))
    tokens = batch_of(use, "mlm", [{"text": [1, *use.tokenizer.codecs["text"].encode("ein"), 4, 5 + 3, 2]}])
    with torch.inference_mode():
        chances = use.model(tokens)[0, 2].softmax(-1)
    expected = {word: float(chances[5 + place]) for place, word in enumerate(WORDS)}
    assert dict(filled.masks[0]) == pytest.approx(expected, rel=1e-5)
    assert filled.masks[0][0][0] == max(expected, key=lambda word: expected[word])


# --- validation and measuring


ROWS: dict[str, list[tuple[str, ...]]] = {
    "classify": [("ein Hund", "good"), ("eine Katze", "bad"), ("laut", "bad")],
    "tag": [("ein Hund bellt", "B-X I-X O"), ("laut", "O")],
    "span": [("wer ?", "ein Hund bellt", "0 1"), ("wo ?", "auf dem Dach", "2 2")],
    "mlm": [("ein kleiner Hund bellt sehr laut",), ("eine Katze schläft auf dem Dach",)],
}


@pytest.mark.parametrize("task", ROWS)
def test_a_validation_is_the_same_each_time_and_what_evaluate_measures(task: str) -> None:
    use = trained(task)
    examples = encoded(use, ROWS[task])
    validate = validator_of(TASKS[task], use, examples)
    first, second = validate(ignore), validate(ignore)
    assert first == second
    assert first.samples
    found = measured(TASKS[task], use, examples)
    for name, value in first.metrics.items():
        assert found.values[name] == pytest.approx(value, rel=1e-5), name
    assert set(first.metrics) <= {metric.name for metric in TASKS[task].metrics}
    json.dumps(found.to_json())


def test_what_is_measured_is_what_is_predicted() -> None:
    for task, truth in (("classify", [row[-1] for row in ROWS["classify"]]), ("tag", [row[-1] for row in ROWS["tag"]])):
        use = trained(task)
        lines = [each.line for each in TASKS[task].open(use).predict([row[0] for row in ROWS[task]])]
        pairs = [
            pair for one, two in zip(truth, lines, strict=True) for pair in zip(one.split(), two.split(), strict=True)
        ]
        right = 100 * sum(one == two for one, two in pairs) / len(pairs)
        assert measured(TASKS[task], use, encoded(use, ROWS[task])).values["accuracy"] == pytest.approx(right)


def test_labels_without_spans_are_scored_by_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LABELS, "labels", ("DET", "NOUN", "O"))
    use = trained("tag")
    found = measured(TASKS["tag"], use, encoded(use, [("ein Hund bellt", "DET NOUN O")])).values
    assert {"macro_f1", "micro_f1", "accuracy", "classes"} <= set(found)
    assert "f1" not in found


def test_the_entropy_of_single_tokens() -> None:
    assert unigram_entropy(np.array([7, 7, 8, 8])) == pytest.approx(np.log(2))
    assert unigram_entropy(np.array([5, 6, 7, 7])) == pytest.approx(1.5 * np.log(2))
    use = trained("mlm", WordCodec(WORDS, tags=[MASK]))
    found = measured(TASKS["mlm"], use, encoded(use, [("ein ein Hund unbekannt Hund",)]))
    assert found.values["unigram_entropy"] == pytest.approx(np.log(2))  # what is unknown does not count
    assert "entropy of single tokens 0.6931" in found.summary


def test_whole_words_are_hidden_in_a_validation_too() -> None:
    use = trained("mlm", masking=MaskingConfig(whole_words=True, share=0.3), limit=200)
    lines = some_texts(9, 12)
    for row, line in zip(fixed_rows(use, encoded(use, [(line,) for line in lines]).encoded), lines, strict=True):
        words = word_places(Column("text"), use.tokenizer, line)
        hidden = {int(place) - 1 for place in row["hidden"]}
        spaces = {place for place, byte in enumerate(line.encode()) if byte == 32}
        for first, last in words:
            own = set(range(first, last + 1))
            assert own <= hidden or not own & hidden
        assert hidden - spaces


# --- refusals


def message(call: Callable[[], object], kind: type[Exception] = CorpusError) -> str:
    with pytest.raises(kind) as refused:
        call()
    return str(refused.value)


def test_what_cannot_be_read_is_refused() -> None:
    pair, single, filler = (
        TASKS[task].open(trained(task, **settings))
        for task, settings in (("classify", {"pairs": True}), ("classify", {}), ("mlm", {}))
    )
    assert "2 texts with a tab between them, text and second, but there is 1" in message(lambda: pair.parse("a"))
    assert "but there are 3" in message(lambda: pair.parse("a\tb\tc"))
    assert "its second is empty" in message(lambda: pair.parse("a\t "))
    assert message(lambda: pair.predict([("a", "b"), "c"])).startswith("rows[1]: it should be 2 texts")
    assert "rows[0]: it is neither a text nor a pair of texts" in message(lambda: single.predict([3]))
    long = message(lambda: single.predict(["a", "b" * 60]))
    assert (
        long
        == "rows[1]: it has 62 tokens, but model.max_positions=61 (they are learned); shorten the line, or split it"
    )
    assert single.predict(["b" * 59])[0].label
    assert "it has 63 tokens" in message(lambda: pair.parse(f"{'a' * 30}\t{'b' * 30}"))
    assert "it has no <mask>" in message(lambda: filler.parse("a b"))
    assert "its <mask> is a part of a word" in message(
        lambda: TASKS["mlm"].open(trained("mlm", WordCodec(WORDS, tags=[MASK]))).parse("Hun<mask>d")
    )
    assert "it has 62 tokens" in message(lambda: filler.parse(f"{'a' * 58} <mask>"))
    assert "nbest=0 must lie between 1 and" in message(lambda: filler.predict([], nbest=0), ConfigError)


def test_text_without_a_line_cannot_be_measured() -> None:
    use = trained("mlm")
    assert "no text to measure on" in message(lambda: measured(TASKS["mlm"], use, encoded(use, [(" ",)])))
    use = trained("mlm", sentences="next")
    assert "has no neighbour" in message(lambda: measured(TASKS["mlm"], use, encoded(use, [("alone",)])))
