"""Texts as an encoder reads them, and the vectors that it gives."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from regard.data.batch import Tokens
from regard.data.columns import READ, SECOND, Column
from regard.encode import TextEncoder
from regard.encode.rows import Limit, Span, in_texts, refuse_no_text
from regard.encode.truncation import kept
from regard.errors import ConfigError, CorpusError, RegardError
from regard.loading import trained_for
from regard.models import ARCHITECTURES
from regard.models.interface import Shapes
from regard.nn.loss import PLAIN
from regard.nn.pooling import POOLINGS
from regard.nn.probe import Probe
from regard.tasks import TASKS
from regard.text.codecs import WordCodec
from regard.text.symbols import RESERVED
from regard.text.tokenizer import Tokenizer
from tests.encoders import SHAPE, WORDS, config_of, model_of, pieces, text_encoder, words

TEXTS = ["w1 w2 w3", "w4", "w5 w6 w7 w8 w9", ""]
START, END, PAD = RESERVED.start, RESERVED.end, RESERVED.pad


@cache
def encoder() -> TextEncoder:
    return text_encoder()


def ids(text: str) -> list[int]:
    return words().codecs["text"].encode(text)


# --- inputs


def test_a_text_is_read_between_its_symbols() -> None:
    inputs = encoder().inputs("w1 w2 w3")
    assert inputs.input_ids.tolist() == [[START, *ids("w1 w2 w3"), END]]
    assert inputs.attention_mask.tolist() == [[1] * 5]
    assert inputs.token_type_ids.tolist() == [[0] * 5]


def test_a_pair_has_two_kinds_of_segments() -> None:
    inputs = encoder().inputs(["w1 w2", "w3"], ["w4", "w5 w6"])
    assert inputs.input_ids.tolist() == [
        [START, *ids("w1 w2"), END, *ids("w4"), END],
        [START, *ids("w3"), END, *ids("w5 w6"), END],
    ]
    assert inputs.token_type_ids.tolist() == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1]]


def test_what_stands_between_two_texts_is_the_vocabularys() -> None:
    """RoBERTa: `<s> a </s></s> b </s>`, and one kind of segment for both."""
    codec = WordCodec(WORDS)
    codec.symbols = replace(RESERVED, between=(END,))
    model = text_encoder(Tokenizer({"text": codec}), segments=1)
    inputs = model.inputs("w1", "w2")
    assert inputs.input_ids.tolist() == [[START, *ids("w1"), END, END, *ids("w2"), END]]
    assert inputs.token_type_ids.tolist() == [[0] * 6]
    assert model("w1", "w2").last_hidden_state.shape == (1, 6, SHAPE["width"])


@pytest.mark.parametrize(
    ("padding", "max_length", "length"),
    [(True, None, 7), ("longest", None, 7), ("max_length", 11, 11), ("max_length", None, SHAPE["max_positions"])],
)
def test_padding_on_request(padding: Any, max_length: int | None, length: int) -> None:
    inputs = encoder().inputs(TEXTS, padding=padding, max_length=max_length)
    assert inputs.input_ids.shape == inputs.attention_mask.shape == inputs.token_type_ids.shape == (4, length)
    assert inputs.attention_mask.sum(1).tolist() == [5, 3, 7, 2]
    assert (inputs.input_ids[inputs.attention_mask == 0] == PAD).all()
    assert not inputs.token_type_ids.any()


def test_texts_of_one_length_need_no_padding() -> None:
    assert encoder().inputs(["w1 w2", "w3 w4"]).input_ids.shape == (2, 4)


@pytest.mark.parametrize("way", ["longest_first", "only_first", "only_second"])
def test_pairs_are_cut_as_by_hugging_face(way: str) -> None:
    """Their tokenizers library, on the same words: each length, and each room that it can do."""
    from tokenizers import Tokenizer as Rust
    from tokenizers import models, pre_tokenizers, processors

    codec = words().codecs["text"]
    rust = Rust(models.WordLevel({"<s>": START, "</s>": END, **{word: codec.encode(word)[0] for word in WORDS}}, "w0"))
    rust.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    rust.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", START), ("</s>", END)]
    )
    for first in range(5):
        for second in range(5):
            pair = " ".join(WORDS[:first]), " ".join(WORDS[10 : 10 + second])
            for most in range(4, 12):
                expected = truncated_by(rust, pair, most, way)
                if expected is None:
                    with pytest.raises(CorpusError, match=f"texts\\[0\\] has texts of {first} and {second} tokens"):
                        encoder().inputs(*pair, truncation=way, max_length=most)
                else:
                    inputs = encoder().inputs(*pair, truncation=way, max_length=most)
                    assert (inputs.input_ids[0].tolist(), inputs.token_type_ids[0].tolist()) == expected


def truncated_by(rust: Any, pair: tuple[str, str], most: int, way: str) -> tuple[list[int], list[int]] | None:
    """None where they refuse it."""
    rust.enable_truncation(most, strategy=way)
    try:
        encoding = rust.encode(*pair)
    except Exception:
        return None
    return encoding.ids, encoding.type_ids


def test_what_fits_is_not_cut() -> None:
    assert kept((3, 4), 7, "only_first") == (3, 4)
    assert kept((3,), 7, "longest_first") == (3,)
    assert kept((9,), 7, "only_first") == (7,)


def test_one_text_is_cut_to_what_the_model_reads() -> None:
    model, long = encoder(), " ".join(["w1"] * 60)
    assert model.inputs(long, truncation=True).input_ids.shape == (1, SHAPE["max_positions"])
    assert model.inputs(long, truncation="only_first", max_length=5).input_ids.tolist() == [
        [START, *ids("w1 w1 w1"), END]
    ]


def test_a_model_without_a_limit_reads_any_length() -> None:
    model = text_encoder(positions="interleaved")
    assert model.inputs(" ".join(["w1"] * 400)).input_ids.shape == (1, 402)
    assert model.embed([" ".join(["w1"] * 400)]).shape == (1, SHAPE["width"])


LONG = " ".join(["w1"] * 36)


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (lambda e: e.inputs(["w1", LONG], padding=True), "texts[1] has 38 tokens, symbols counted, but model.max_pos"),
        (
            lambda e: e.inputs(["w1", "w1 w2 w3"], padding=True, max_length=4),
            "texts[1] has 5 tokens, symbols counted, but max_length=4; shorten it, or let it be cut: tr",
        ),
        (lambda e: e.embed(["w1", LONG]), "texts[1] has 38 tokens"),
        (lambda e: list(e.embed_lines(iter(["w1", "w2", LONG]), window=2)), "line 3 has 38 tokens"),
        (lambda e: e.inputs("w1 w2", "w3 " * 40), "texts[0] has 45 tokens"),
        (lambda e: e.inputs(["w1", "w1 w2"]), "texts of 3 and 4 tokens cannot be one tensor; ask for padding=True"),
        (lambda e: e.inputs([]), "there are no texts to encode"),
        (lambda e: e.inputs(["w1"], ["w2", "w3"]), "there are 1 texts, but 2 second ones"),
        (lambda e: e.inputs("w1", ["w2"]), "should both be one text, or both be lists"),
        (
            lambda e: e.inputs("w1", padding="shortest"),
            "padding='shortest' is neither True, False nor one of longest, max_length",
        ),
        (
            lambda e: e.inputs("w1", truncation="most"),
            "truncation='most' is neither True, False nor one of longest_first",
        ),
        (lambda e: e.inputs("w1", truncation="only_second"), "truncation='only_second' needs pairs"),
        (lambda e: e.inputs("w1", max_length=0), "max_length=0 must be at least 1"),
        (lambda e: e.inputs("w1", max_length=38), "max_length=38 is more than the model reads: model.max_positions=37"),
        (lambda e: e.inputs("w1", truncation=True, max_length=1), "max_length=1 has no room for the 2 symbols"),
        (lambda e: e.encode(), "give texts, or input_ids, and not both"),
        (lambda e: e.encode("w1", input_ids=[[1]]), "give texts, or input_ids, and not both"),
        (lambda e: e.encode("w1", attention_mask=[[1]]), "attention_mask and token_type_ids belong to input_ids"),
        (lambda e: e.embed_lines(iter([]), window=0), "window=0 must be 1 line or more"),
        (lambda e: e.encode(input_ids=[[1]], padding=True), "padding is about texts, and input_ids are given"),
        (lambda e: e.encode(input_ids=[[1]], second="w1"), "second is about texts, and input_ids are given"),
        (lambda e: e.encode(input_ids=[1, 2]), "input_ids has shape (2,); it should be (batch, length)"),
        (lambda e: e.encode(input_ids=[[1, 2], [3]]), "input_ids is no tensor"),
        (lambda e: e.encode(input_ids=[[1.5]]), "input_ids holds torch.float32; give whole numbers"),
        (lambda e: e.encode(input_ids=[[1, 57]]), "input_ids[0][1] is 57, but this model's vocabulary has 57 ids"),
        (lambda e: e.encode(input_ids=[[1, -1]]), "input_ids[0][1] is -1"),
        (lambda e: e.encode(input_ids=[[1] * 38]), "input_ids has 38 positions a text, but model.max_positions=37"),
        (
            lambda e: e.encode(input_ids=[[1, 2]], attention_mask=[[1]]),
            "attention_mask has shape (1, 1), but input_ids has (1, 2)",
        ),
        (
            lambda e: e.encode(input_ids=[[1, 2]], attention_mask=[[1, 3]]),
            "attention_mask[0][1] is 3, but it is 1 where",
        ),
        (lambda e: e.encode(input_ids=[[1], [2]], attention_mask=[[1], [0]]), "attention_mask[1] is 0 everywhere"),
        (
            lambda e: e.encode(input_ids=[[1, 2]], token_type_ids=[[0, 2]]),
            "token_type_ids[0][1] is 2, but this model knows 2 kinds of segments",
        ),
        (lambda e: e.encode(input_ids=[[1, 2]]).words(0), "words are known where texts were given"),
        (lambda e: e.embed(["w1"], pooling="sum"), "pooling='sum' is not one of first, mean, max"),
        (lambda e: e.embed(["w1"], layer=4), "layer=4 is not there: this model has 3 layers (0 is the emb"),
        (lambda e: e.embed(["w1"], layer=-5), "layer=-5 is not there"),
        (lambda e: e.embed(["w1"], batch_tokens=0), "batch_tokens=0 must be at least 1"),
        (lambda e: e.embed_lines(iter([]), pooling="sum"), "pooling='sum' is not one of"),
    ],
)
def test_what_cannot_be_read_is_refused(refused: Callable[[TextEncoder], object], message: str) -> None:
    with pytest.raises(RegardError) as error:
        refused(encoder())
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_no_text_is_refused_by_its_place() -> None:
    with pytest.raises(
        ConfigError, match=r"texts\[1\] is a tuple, not a text; give the second texts of pairs as second"
    ):
        refuse_no_text(["w1", ("w1", "w2")], in_texts)


@pytest.mark.parametrize("option", [{"truncation": True}, {"padding": "max_length"}])
def test_without_a_limit_max_length_must_be_said(option: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="needs max_length: this model has no limit of its own"):
        text_encoder(positions="interleaved").inputs("w1", **option)


def test_a_model_of_one_segment_takes_no_other() -> None:
    with pytest.raises(ConfigError, match="this model knows 1 kind of segments"):
        text_encoder(segments=0).encode(input_ids=[[1, 2]], token_type_ids=[[0, 1]])


def test_a_limit_is_lowered_and_never_raised() -> None:
    limit = Limit(most=7, reason="seven")
    assert limit.lowered(None) is limit
    assert limit.lowered(5) == Limit(most=5, reason="max_length=5")
    assert Limit(most=None).lowered(9).most == 9


# --- what the model makes of them


def test_outputs_are_the_models_own() -> None:
    model = encoder()
    output, width = model(TEXTS, padding=True), SHAPE["width"]
    with torch.inference_mode():
        states = model.encoder.states(output.inputs.tokens)
    assert [state.shape for state in output.hidden_states] == [(4, 7, width)] * (SHAPE["layers"] + 1)
    for own, state in zip(output.hidden_states, states, strict=True):
        assert torch.equal(own, state)
    assert output.last_hidden_state is output.hidden_states[-1]
    assert output.attentions == ()
    head: Any = model.model.head
    assert output.pooler_output is not None
    dense = head.pooler.dense
    by_hand = torch.tanh(output.last_hidden_state[:, 0] @ dense.weight.T + dense.bias)
    torch.testing.assert_close(output.pooler_output, by_hand)


def test_there_is_no_pooled_output_without_a_pooler() -> None:
    assert text_encoder(pooler=False)("w1").pooler_output is None


def test_autograd_takes_the_outputs() -> None:
    output = encoder()("w1 w2")
    weight = torch.ones(SHAPE["width"], requires_grad=True)
    (output.last_hidden_state @ weight).sum().backward()
    assert weight.grad is not None


def test_attention_weights_are_those_of_every_layer_and_head() -> None:
    model = encoder()
    output, probe = model(TEXTS, padding=True, attention=True), Probe()
    with torch.inference_mode():
        model.encoder.states(output.inputs.tokens, probe)
    assert [weights.shape for weights in output.attentions] == [(4, SHAPE["heads"], 7, 7)] * SHAPE["layers"]
    for layer, weights in enumerate(output.attentions):
        assert torch.equal(weights, next(look.weights for look in probe.looks if look.layer == layer))
        torch.testing.assert_close(weights.sum(-1), torch.ones(4, SHAPE["heads"], 7))
        assert not weights[output.inputs.attention_mask[:, None, None].expand_as(weights) == 0].any()


def test_given_ids_are_read_as_the_text_is() -> None:
    model = encoder()
    inputs = model.inputs(TEXTS, ["w1"] * 4, padding=True)
    expected, found = model(TEXTS, ["w1"] * 4, padding=True), model(**inputs)
    assert torch.equal(found.last_hidden_state, expected.last_hidden_state)
    assert found.tokens == expected.tokens
    mask, kinds = inputs.attention_mask.bool().numpy(), inputs.token_type_ids.tolist()
    by_lists = model(input_ids=inputs.input_ids.tolist(), attention_mask=mask, token_type_ids=kinds)
    assert torch.equal(by_lists.last_hidden_state, expected.last_hidden_state)
    with pytest.raises(KeyError):
        inputs["rows"]


def test_padding_does_not_change_a_token() -> None:
    """In double precision, so that rounding hides nothing."""
    model = text_encoder()
    model.model.double()
    batch = model(TEXTS, padding="max_length")
    for number, text in enumerate(TEXTS):
        alone = model(text)
        length = len(alone.tokens[0])
        for own, padded in zip(alone.hidden_states, batch.hidden_states, strict=True):
            torch.testing.assert_close(padded[number, :length], own[0], rtol=0, atol=1e-12)


def test_the_second_text_of_a_pair_is_read_as_another_segment() -> None:
    model = encoder()
    pair, one = model("w1", "w2"), model(input_ids=[[START, *ids("w1"), END, *ids("w2"), END]])
    assert not torch.allclose(pair.last_hidden_state, one.last_hidden_state)
    single = text_encoder(segments=1)
    found = single("w1", "w2").last_hidden_state
    assert torch.equal(found, single(input_ids=[[START, *ids("w1"), END, *ids("w2"), END]]).last_hidden_state)


def test_tokens_and_words_know_their_places() -> None:
    output = text_encoder(pieces())(["the apple, is red.", "a fruit"], ["my  apple", "red"], padding=True)
    assert output.tokens[0] == ("<s>", "the", "app", "##le", ",", "is", "red", ".", "</s>", "my", "app", "##le", "</s>")
    found = [(word.text, word.tokens) for word in output.words(0)]
    assert found == [("the", (1,)), ("apple,", (2, 3, 4)), ("is", (5,)), ("red.", (6, 7))]
    second = output.words(0, 1)
    assert [(word.text, word.tokens) for word in second] == [("my", (9,)), ("apple", (10, 11))]
    assert second[1].span == Span(1, 4, 9)
    row = output.inputs.rows[0]
    assert [span and row.texts[span.text][span.start : span.end] for span in row.spans][:4] == [
        None,
        "the",
        "app",
        "le",
    ]
    assert output.words(1)[1].tokens == (2,)


def test_a_word_that_was_cut_has_no_tokens() -> None:
    output = encoder()("w1 w2 w3", truncation=True, max_length=4)
    assert [word.tokens for word in output.words(0)] == [(1,), (2,), ()]


# --- a vector for each text


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("layer", [0, 2, -1, 3, -2])
def test_a_text_is_pooled_over_its_own_tokens(pooling: str, layer: int) -> None:
    model = encoder()
    found = model.embed(TEXTS, pooling=pooling, layer=layer)
    assert found.dtype == np.float32
    for vector, text in zip(found, TEXTS, strict=True):
        state = model(text).hidden_states[layer][0]
        by_hand = {"first": state[0], "mean": state.mean(0), "max": state.amax(0)}[pooling]
        np.testing.assert_allclose(vector, by_hand.numpy(), rtol=0, atol=1e-5)


def test_normalised_vectors_have_length_1_and_keep_their_direction() -> None:
    model = encoder()
    plain, units = model.embed(TEXTS), model.embed(TEXTS, normalize=True)
    np.testing.assert_allclose(np.linalg.norm(units, axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(units * np.linalg.norm(plain, axis=1, keepdims=True), plain, rtol=1e-5)


def test_one_text_no_text_an_empty_text_and_pairs() -> None:
    model, width = encoder(), SHAPE["width"]
    assert model.embed("w1").shape == (1, width)
    assert model.embed([]).shape == (0, width)
    symbols = model(input_ids=[[START, END]]).last_hidden_state[0].mean(0)
    np.testing.assert_allclose(model.embed([""])[0], symbols.numpy(), atol=1e-5)
    pair = model("w1", "w2").last_hidden_state[0].mean(0)
    np.testing.assert_allclose(model.embed("w1", "w2")[0], pair.numpy(), atol=1e-5)
    cut = model.embed([LONG + " w2"], truncation=True, max_length=9)
    np.testing.assert_array_equal(cut, model.embed([" ".join(["w1"] * 7)]))


def test_a_stream_is_embedded_as_a_list_is() -> None:
    model, told = encoder(), list[int]()
    lines = [" ".join(random.Random(number).choices(WORDS, k=number)) for number in range(13)]
    chunks = list(model.embed_lines(iter(lines), window=5, progress=told.append, normalize=True))
    assert [len(texts) for texts, _ in chunks] == [5, 5, 3]
    assert [text for texts, _ in chunks for text in texts] == lines
    np.testing.assert_array_equal(
        np.concatenate([vectors for _, vectors in chunks]), model.embed(lines, normalize=True)
    )
    assert told == sorted(told)
    assert told[-1] == 13


# --- the task


HEADS = {
    "nothing": ((READ,), True),
    "a label": ((READ, Column("label", "label", counts=False)), True),
    "a label of pairs": ((READ, SECOND, Column("label", "label", counts=False)), True),
    "a label for each token": ((READ, Column("labels", "labels", of="text", per_token=True, counts=False)), False),
    "a span": ((READ, Column("answer", "positions", of="text", counts=False)), False),
    "hidden tokens": ((replace(READ, masked=True),), False),
}


@pytest.mark.parametrize("head", HEADS)
def test_whatever_an_encoder_was_trained_for_it_gives_vectors(head: str) -> None:
    """A model is asked for what it has, not for what it is; one with a pooler also gives what that makes."""
    columns, pools = HEADS[head]
    config, shapes = config_of().model, Shapes({column.name: 57 for column in columns}, RESERVED, columns)
    model = ARCHITECTURES["encoder"].build(config, shapes).eval()
    opened = TextEncoder.of(replace(encoder_of("embed"), model=model))
    output = opened("w1 w2")
    assert opened.embed(TEXTS).shape == (4, SHAPE["width"])
    assert (output.pooler_output is not None) == pools
    expected: Any = model
    with torch.inference_mode():
        assert torch.equal(expected.encoder(output.inputs.tokens), output.last_hidden_state)


def test_load_opens_the_task_as_an_encoder_of_texts() -> None:
    assert isinstance(TASKS["embed"].open(encoder_of("embed")), TextEncoder)


def encoder_of(task: str) -> Any:
    config = config_of(task)
    return trained_for(model_of(config, words()), words(), config)


def test_a_model_without_an_encoder_is_refused() -> None:
    trained = replace(encoder_of("embed"), model=torch.nn.Linear(2, 3))
    with pytest.raises(ConfigError, match=r"no encoder that gives a vector for each token; take a run of an encoder"):
        TextEncoder.of(trained)


def test_there_is_nothing_to_train() -> None:
    task = TASKS["embed"]
    batch = task.collate([{"text": [1, 5, 2]}, {"text": [1, 2]}], RESERVED)
    assert isinstance(batch.tokens, Tokens)
    assert (batch.num_tokens, batch.tokens.ids.tolist()) == (5, [[1, 5, 2], [1, 2, PAD]])
    with pytest.raises(ConfigError, match="task='embed' has no loss; an encoder is trained, and measured, by task mlm"):
        task.loss(torch.nn.Identity(), batch, PLAIN)


def test_the_columns_of_a_pair_share_a_vocabulary() -> None:
    assert READ.codec == SECOND.codec
    assert TASKS["embed"].columns(config_of().data) == (READ,)


# --- one word in several sentences

SENTENCES = ["my favourite fruit is a ripe apple.", "Apple is my favourite brand", "the red Apple, a fruit"]


def test_the_cosines_are_those_of_the_words_vectors() -> None:
    model = text_encoder(pieces())
    found = model.similar("apple", SENTENCES)
    assert [each.tokens for each in found.occurrences] == [("app", "##le"), ("Apple",), ("Apple",)]
    assert [each.marked for each in found.occurrences][1:] == [
        "[Apple] is my favourite brand",
        "the red [Apple], a fruit",
    ]
    assert found.cosines.shape == (SHAPE["layers"] + 1, 3, 3)
    outputs = [model(sentence) for sentence in SENTENCES]
    for layer in range(SHAPE["layers"] + 1):
        first, second, third = (output.hidden_states[layer][0] for output in outputs)
        vectors = [first[7:9].mean(0), second[1], third[3]]
        by_hand = torch.nn.functional.normalize(torch.stack(vectors).double(), dim=1)
        np.testing.assert_allclose(found.cosines[layer], (by_hand @ by_hand.T).numpy(), atol=1e-5)


def test_cosines_are_symmetric_and_1_of_the_word_with_itself() -> None:
    found = text_encoder(pieces()).similar("is", [SENTENCES[0], SENTENCES[1], SENTENCES[0]])
    np.testing.assert_allclose(found.cosines, found.cosines.transpose(0, 2, 1))
    np.testing.assert_allclose(np.diagonal(found.cosines, axis1=1, axis2=2), 1.0)
    np.testing.assert_allclose(found.cosines[:, 0, 2], 1.0)


def test_the_table_and_the_json_say_the_same() -> None:
    found = text_encoder(pieces()).similar("apple", SENTENCES)
    assert found.last == SHAPE["layers"]
    title, head, *lines = found.table(0).splitlines()
    assert title == "cosines of 'apple' at the embeddings"
    assert head.split() == ["1", "2", "3"]
    for row, line in zip(found.cosines[0], lines, strict=True):
        np.testing.assert_allclose([float(number) for number in line.split()[1:4]], row, atol=0.005)
    assert lines[1].endswith("   [Apple] is my favourite brand")
    assert found.table(2).startswith("cosines of 'apple' at layer 2 of 3\n")
    told = json.loads(json.dumps(found.to_json([1, 3])))
    assert [each["layer"] for each in told["layers"]] == [1, 3]
    np.testing.assert_array_equal(told["layers"][1]["cosines"], found.cosines[3])
    assert told["sentences"][0] == {"text": SENTENCES[0], "start": 29, "end": 34, "tokens": ["app", "##le"]}


@pytest.mark.parametrize(
    ("word", "sentences", "message"),
    [
        (
            "apple",
            ["the apple", "a pineapple", "an appletree"],
            "sentence 2 ('a pineapple') does not hold the word 'apple' (nor do 3)",
        ),
        ("apple", ["the apple", ""], "sentence 2 ('') does not hold the word 'apple'; give sentences that have it"),
        (" ", ["the apple", "an apple"], "the word is empty"),
        ("apple", ["the apple"], "cosines are between sentences; give two or more"),
        ("apple", "the apple", "cosines are between sentences; give two or more"),
        ("apple", ["the apple", "the apple " * 20], "sentence 2 has 62 tokens, symbols counted"),
    ],
)
def test_a_sentence_without_the_word_is_named(word: str, sentences: Any, message: str) -> None:
    with pytest.raises(RegardError) as error:
        text_encoder(pieces()).similar(word, sentences)
    assert message in str(error.value)


def test_a_word_that_truncation_cut_is_said_so() -> None:
    with pytest.raises(CorpusError, match="sentence 1 was cut before its word"):
        text_encoder(pieces()).similar("apple", SENTENCES, truncation=True, max_length=6)


def test_a_word_may_be_several_and_is_taken_where_it_first_stands() -> None:
    found = text_encoder(pieces()).similar("red apple", ["a Red  apple, a red apple", "the red apple"])
    assert [each.span for each in found.occurrences] == [Span(0, 16, 25), Span(0, 4, 13)]
