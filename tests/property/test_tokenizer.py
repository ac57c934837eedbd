"""Tokenizers: what goes in comes out, ids keep to their ranges, equal input gives equal bytes, and every error."""

import json
import os
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given as hypothesis_given
from hypothesis import settings
from hypothesis import strategies as st

from regard.errors import CheckpointError, ConfigError
from regard.text.bpe import BYTE_SYMBOLS, BpeCodec
from regard.text.tokenizer import (
    END,
    KINDS,
    PAD,
    SPECIALS,
    START,
    UNKNOWN,
    Tokenizer,
    TokenizerConfig,
    fitted_size,
    join_pieces,
    train_tokenizer,
)
from regard.text.vocabulary import LONGEST_FORM, in_pieces

SOURCES = [
    "A man in an orange hat is staring at something .",
    "Two young, white males are outside near many bushes.",
    "The animal didn't cross the street because it was too tired.",
    "the man the men the mandarin, 1,234 times",
] * 3
TARGETS = [
    "Ein Mann mit einem orangefarbenen Hut, der etwas anstarrt.",
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.",
    "der Mann, die Männer, die Mandarine; 1.234 mal",
] * 3
TAGS = ("news", "talks")
LOSSLESS = ("bpe", "character", "byte")
WITH_UNKNOWN = ("wordpiece", "word")
SIZES = {"bpe": 401, "character": 293, "byte": 0, "wordpiece": 151, "word": 31}
AWKWARD = [
    "", " ", "  ", " a", "a ", "a  b", "\t", "a\nb\r\n", "\0", "▁", "▁a ▁b", "Ġa", "<0x41>", "</s>", "<s> <pad> <unk>",
    "[UNK]", "##ing", "@@ a@@", "\u2028\x85\u00a0", "👩‍👩‍👧‍👦 ❤️", "שָׁלוֹם עולם",
    "مَرْحَبًا", "नमस्ते", "e\u0301 é", "\ufffd", "\ufeff", "𝔘", "日本語",
]  # fmt: skip
TEXTS = st.one_of(st.text(), st.sampled_from(AWKWARD), st.lists(st.sampled_from(AWKWARD + SOURCES)).map("".join))


def given(**strategies):  # 60 examples a kind: the awkward texts are also tested one by one
    return lambda test: settings(max_examples=60)(hypothesis_given(**strategies)(test))


def train(kind: str, *, joint: bool = True, size: int | None = None, tags=TAGS, **settings) -> Tokenizer:
    config = TokenizerConfig(kind=kind, size=SIZES.get(kind, 0) if size is None else size, joint=joint, **settings)
    return train_tokenizer(
        config, {"source": lambda: SOURCES, "target": lambda: TARGETS}, tags, num_examples=len(SOURCES)
    )


@cache
def trained(kind: str) -> Tokenizer:
    return train(kind)


def every_kind():
    return pytest.mark.parametrize("kind", KINDS[1:])


# What goes in comes out


@pytest.mark.parametrize("kind", LOSSLESS)
@given(text=TEXTS)
def test_round_trip_is_bit_for_bit(kind, text):
    codec = trained(kind).source
    assert codec.decode(codec.encode(text)) == text


@pytest.mark.parametrize("kind", LOSSLESS)
@pytest.mark.parametrize("text", AWKWARD)
def test_round_trip_of_awkward_texts(kind, text):
    codec = trained(kind).source
    assert codec.decode(codec.encode(text)) == text


@every_kind()
def test_lone_surrogates_become_the_replacement_character(kind):
    codec = trained(kind).source
    assert codec.encode("a \ud800 b") == codec.encode("a \ufffd b") == codec.encode_batch(["a \ud800 b"])[0]


@pytest.mark.parametrize("kind", WITH_UNKNOWN)
def test_known_words_survive(kind):
    codec = train(kind, size=4001).source
    for text in SOURCES + TARGETS:
        assert codec.decode(codec.encode(text)).replace(" ", "") == text.replace(" ", "")
        assert UNKNOWN not in codec.encode(text)


def test_a_first_word_has_the_pieces_of_any_word():
    codec = trained("bpe").source
    assert codec.encode("man man") == codec.encode("man") * 2
    assert codec.encode("") == []


# Ids


@every_kind()
@given(text=TEXTS)
def test_ids_keep_to_their_range(kind, text):
    codec = trained(kind).source
    ids = codec.encode(text)
    entries = range(len(SPECIALS) + len(TAGS), codec.size)
    allowed_unknown = {UNKNOWN} if kind in WITH_UNKNOWN else set()
    assert all(index in entries or index in allowed_unknown for index in ids)
    assert len(codec.pieces(ids)) == len(ids)


@every_kind()
def test_all_ways_to_encode_agree(kind):
    codec = trained(kind).source
    texts = AWKWARD + SOURCES + TARGETS
    ids = [codec.encode(text) for text in texts]
    assert codec.encode_batch(texts) == ids
    assert [codec.encode_with_offsets(text)[0] for text in texts] == ids


@pytest.mark.parametrize("kind", WITH_UNKNOWN)
def test_unknown_words_are_unknown(kind):
    codec = trained(kind).source
    assert codec.encode("日本語") == [UNKNOWN]
    assert codec.decode([UNKNOWN]) == "<unk>"


@every_kind()
def test_size_is_a_limit(kind):
    codec = trained(kind).source
    assert codec.size <= (SIZES[kind] or codec.size)
    assert codec.size == codec.first + len(codec.vocabulary) + (256 if kind in ("character", "byte") else 0)


def test_more_frequent_entries_stay():
    assert trained("word").source.encode("the orange")[0] != UNKNOWN
    assert trained("word").source.encode("mandarin,") == [UNKNOWN]
    codec = trained("character").source
    assert len(codec.encode("e")) == 1
    assert len(codec.encode("日")) == 3


@every_kind()
@given(data=st.data())
def test_decode_and_pieces_take_any_ids(kind, data):
    codec = trained(kind).source
    ids = data.draw(st.lists(st.one_of(st.integers(0, codec.size - 1), st.integers())))
    text = codec.decode(ids)
    silent = [PAD, START, END, *range(len(SPECIALS), codec.first)]
    assert codec.decode([*silent, *ids, *silent]) == text
    assert len(codec.pieces(ids)) == len(ids)
    assert all(isinstance(piece, str) and piece for piece in codec.pieces(ids))


@pytest.mark.parametrize("kind", LOSSLESS)
def test_ill_formed_bytes_become_the_replacement_character(kind):
    codec = trained(kind).source
    half = codec.encode("日")[:-1]
    assert codec.decode([*half, *codec.encode("x")]).strip() in ("\ufffdx", "\ufffd x")


def test_pieces_for_people():
    codec = trained("bpe").source
    assert "".join(codec.pieces(codec.encode("the man"))) == "▁the▁man"
    assert "".join(codec.pieces(codec.encode("日"))) == "▁<0xE6><0x97><0xA5>"
    assert codec.pieces([0, 1, 2, 3, 4, 5, 10**6]) == [*SPECIALS, "<news>", "<talks>", "<1000000>"]


# Offsets


@pytest.mark.parametrize("kind", LOSSLESS)
@given(text=TEXTS)
def test_offsets_cover_the_text_without_gaps(kind, text):
    ids, offsets = trained(kind).source.encode_with_offsets(text)
    assert len(ids) == len(offsets)
    reached = 0
    for start, end in offsets:
        assert 0 <= start <= reached
        assert start <= end <= len(text)
        reached = max(reached, end)
    assert reached == len(text)


@every_kind()
def test_offsets_name_the_characters_of_a_piece(kind):
    codec = trained(kind).source
    for text in SOURCES + TARGETS:
        ids, offsets = codec.encode_with_offsets(text)
        for index, piece, (start, end) in zip(ids, codec.pieces(ids), offsets, strict=True):
            shown = piece.replace("▁", " ") if kind in LOSSLESS else piece.removeprefix("##")
            if index != UNKNOWN and "<0x" not in piece:
                assert shown.removeprefix(" " if start == 0 and kind == "bpe" else "") == text[start:end]


# BPE and its dropout


def test_byte_symbols_are_those_of_the_library():
    from tokenizers.pre_tokenizers import ByteLevel

    assert sorted(BYTE_SYMBOLS) == sorted(ByteLevel.alphabet())


def bpe() -> BpeCodec:
    codec = trained("bpe").source
    assert isinstance(codec, BpeCodec)
    return codec


@given(text=TEXTS)
def test_segmentation_without_dropout_is_encoding(text):
    codec, rng = bpe(), np.random.default_rng(0)
    assert [index for word in codec.words(text) for index in codec.segment(word, 0.0, rng)] == codec.encode(text)


@given(text=TEXTS, seed=st.integers(0, 2**32), dropout=st.floats(0, 1, exclude_max=True))
def test_dropout_changes_the_pieces_and_not_the_text(text, seed, dropout):
    codec = bpe()
    segments = codec.segment_all(codec.words(text), dropout, np.random.default_rng(seed))
    ids = [index for segment in segments for index in segment]
    assert codec.decode(ids) == text
    assert len(ids) >= len(codec.encode(text))


def test_dropout_is_a_function_of_the_generator(monkeypatch):
    words = [word for text in SOURCES + TARGETS for word in bpe().words(text)]
    fresh = Tokenizer.from_json(trained("bpe").to_json()).source
    assert isinstance(fresh, BpeCodec)
    first = bpe().segment_all(words, 0.3, np.random.default_rng(7))
    assert bpe().segment_all(words, 0.3, np.random.default_rng(7)) == first
    assert bpe().segment_all(words, 0.3, np.random.default_rng(11)) != first
    monkeypatch.setattr("regard.text.bpe.MAX_STATES", 5)  # what is remembered must not matter
    assert fresh.segment_all(words, 0.3, np.random.default_rng(7)) == first


@pytest.mark.parametrize(
    ("word", "merges", "shares"),
    [
        ("ab", ["ab"], {"ab": 0.6, "a b": 0.4}),
        # The first learnt of the surviving merges is made.
        ("abc", ["bc", "ab"], {"a bc": 0.6, "ab c": 0.4 * 0.6, "a b c": 0.4**2}),
        # A merge that was left out has another chance at the next step.
        ("abcd", ["ab", "cd"], {"ab cd": 0.6 * 0.6 + 0.4 * 0.6 * 0.6, "a b c d": 0.4**2}),
    ],
)
def test_merges_are_left_out_as_often_as_asked(word, merges, shares):
    codec = BpeCodec([*BYTE_SYMBOLS, *merges], [(merge[0], merge[1]) for merge in merges])
    segments = codec.segment_all([word] * 5_000, 0.4, np.random.default_rng(3))
    pieces = [" ".join(codec.pieces(segment)) for segment in segments]
    for expected, share in shares.items():
        assert abs(pieces.count(expected) / len(pieces) - share) < 0.035  # five standard deviations


@given(text=TEXTS, dropout=st.sampled_from([0.0, 0.1, 0.5]), seed=st.integers(0, 2**32))
def test_long_words_are_merged_like_short_ones(text, dropout, seed):
    codec = bpe()
    words = [*codec.words(text * 3), "".join(codec.words(text + SOURCES[3] + TARGETS[1]))]
    results: list[list[list[int]]] = []
    for limit in (0, 10**6):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("regard.text.bpe.MAX_REMEMBERED", limit)
            results.append(codec.segment_all(words, dropout, np.random.default_rng(seed)))
    assert results[0] == results[1]


def test_returned_segments_are_the_callers():
    codec, word = bpe(), bpe().words("street")[0]
    codec.segment(word, 0.0, np.random.default_rng(0)).clear()
    assert codec.segment(word, 0.0, np.random.default_rng(0)) == codec.encode("street")


# Training


@every_kind()
@pytest.mark.parametrize("joint", [True, False])
def test_equal_input_gives_equal_bytes(kind, joint):
    assert train(kind, joint=joint).to_json() == train(kind, joint=joint).to_json()


def test_another_process_gives_equal_bytes():
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_tokenizer import train\n"
        "sys.stdout.buffer.write(''.join(train(kind).to_json() for kind in ('bpe', 'wordpiece', 'word')).encode())"
    )
    environment = os.environ | {"PYTHONHASHSEED": "4242"}
    here = os.path.dirname(os.path.abspath(__file__))
    out = subprocess.run([sys.executable, "-c", program, here], env=environment, capture_output=True, check=True).stdout
    assert out.decode() == "".join(train(kind).to_json() for kind in ("bpe", "wordpiece", "word"))


def test_the_text_package_imports_no_torch():
    program = (
        "import sys, regard.text.tokenizer, regard.text.filters, regard.text.corpus; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_separate_vocabularies():
    tokenizer = train("word", joint=False, size=0)
    assert not tokenizer.joint
    assert tokenizer.source is not tokenizer.target
    assert tokenizer.source.encode("Männer") == [UNKNOWN] != tokenizer.target.encode("Männer")
    assert tokenizer.target.encode("hat") == [UNKNOWN] != tokenizer.source.encode("hat")
    assert trained("word").joint
    assert trained("word").source is trained("word").target


def test_size_zero_takes_all_there_is():
    assert set(train("word", size=0).source.vocabulary) == {word for text in SOURCES + TARGETS for word in text.split()}
    assert set(train("character", size=0).source.vocabulary) == set("".join(SOURCES + TARGETS))


def test_fitted_size_grows_with_the_corpus():
    sizes = [fitted_size(pairs) for pairs in (0, 29_000, 500_000, 4_500_000)]
    assert sizes == sorted(set(sizes))
    assert train("bpe", size=0).source.size <= fitted_size(len(SOURCES))


def test_auto_is_bpe_unless_the_text_is_split():
    def kind_of(marked: int, total: int, **settings) -> tuple[str, str]:
        lines = ["ein an@@ trieb"] * marked + ["ein Wort"] * (total - marked)
        config = TokenizerConfig(**settings)
        tokenizer = train_tokenizer(config, {"source": lambda: lines, "target": lambda: lines}, num_examples=total)
        return tokenizer.kind, tokenizer.joiner

    assert kind_of(0, 100) == kind_of(1, 100) == ("bpe", "")
    assert kind_of(2, 100) == ("word", "@@")
    assert kind_of(0, 100, joiner="￭") == ("word", "￭")
    assert kind_of(100, 100, kind="byte") == ("byte", "")
    with pytest.raises(ConfigError, match=r"tokenizer.dropout=0.1 .*'@@'.* tokenizer.dropout=0, or tokenizer.kind=bpe"):
        kind_of(2, 100, dropout=0.1)


SPLIT = train_tokenizer(
    TokenizerConfig(kind="bpe", size=300, joiner="@@"),
    {"source": lambda: ["der an@@ trieb", "der a@@ n@@ trieb"] * 9, "target": lambda: ["der antrieb"]},
    num_examples=18,
).source


@given(text=st.lists(st.sampled_from(["an@@", "@@", "trieb", "@@x", " ", "", "é@@", "🙂"]), max_size=12).map(" ".join))
def test_bpe_splits_split_words_anew(text):
    """The pieces are those of the joined words, whatever the given split; each stands for the text's own characters."""
    ids, offsets = SPLIT.encode_with_offsets(text)
    joined = join_pieces(text, "@@")
    assert ids == SPLIT.encode(text) == SPLIT.encode_batch([text])[0] == SPLIT.encode(joined)
    assert SPLIT.decode(ids) == joined
    rng = np.random.default_rng(0)
    assert [piece for word in SPLIT.words(text) for piece in SPLIT.segment(word, 0.0, rng)] == ids
    for place, (start, end) in enumerate(offsets):
        assert 0 <= start <= end <= len(text)
        shown = SPLIT.decode([*ids[: place + 1]]).removeprefix(SPLIT.decode(ids[:place])).strip()
        if "\ufffd" not in SPLIT.decode(ids[: place + 1]) + SPLIT.decode(ids[:place]):
            assert shown in join_pieces(text[start:end], "@@")


def test_bpe_learns_from_joined_words():
    assert any("antrieb" in entry for entry in SPLIT.vocabulary)
    assert not any("@@" in entry for entry in SPLIT.vocabulary)


def test_split_text_is_decoded_joined():
    lines = ["an@@ trie@@ b ist gut"]
    tokenizer = train_tokenizer(TokenizerConfig(), {"source": lambda: lines, "target": lambda: lines}, num_examples=1)
    codec = tokenizer.target
    assert codec.decode(codec.encode("an@@ trie@@ b ist")) == "antrieb ist"
    assert codec.decode(codec.encode("gut an@@")) == "gut an"


@pytest.mark.parametrize(
    ("text", "joiner", "joined"),
    [
        ("an@@ trie@@ b", "@@", "antrieb"),
        ("a@@", "@@", "a"),
        ("a@@ ", "@@", "a"),
        ("a@@b c", "@@", "a@@b c"),
        ("a@@ b", "", "a@@ b"),
        ("a.* b", ".*", "ab"),
        ("", "@@", ""),
    ],
)
def test_join_pieces(text, joiner, joined):
    assert join_pieces(text, joiner) == joined


# Tags


def test_tags_have_the_ids_behind_the_reserved_ones():
    tokenizer = trained("bpe")
    assert tokenizer.tags == TAGS
    assert [tokenizer.tag_id(tag) for tag in TAGS] == [4, 5]
    with pytest.raises(ConfigError, match="'sport' is not known; known tags: news, talks"):
        tokenizer.tag_id("sport")
    with pytest.raises(ConfigError, match="made without tags"):
        train("byte", tags=()).tag_id("news")


@pytest.mark.parametrize("tags", [("a", "a"), ("",)])
def test_tags_need_names_of_their_own(tags):
    with pytest.raises(ConfigError, match="empty or given twice"):
        train("byte", tags=tags)


# Settings


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"kind": "bep"}, ["tokenizer.kind=bep", "did you mean bpe?"]),
        ({"kind": "zzz"}, ["tokenizer.kind=zzz", "choose from auto, bpe"]),
        ({"size": -1}, ["tokenizer.size=-1"]),
        ({"dropout": 1.0}, ["tokenizer.dropout=1.0"]),
        ({"dropout": -0.1}, ["tokenizer.dropout=-0.1"]),
        ({"dropout": float("nan")}, ["tokenizer.dropout=nan"]),
        ({"dropout": 0.1, "kind": "word"}, ["tokenizer.dropout=0.1", "tokenizer.kind=bpe", "word"]),
        ({"joiner": "@@", "kind": "byte"}, ["tokenizer.joiner=@@", "tokenizer.kind=word or bpe", "not byte"]),
        ({"joiner": "@ @"}, ["tokenizer.joiner='@ @'", "space"]),
    ],
)
def test_settings_check_themselves(settings, parts):
    with pytest.raises(ConfigError) as caught:
        TokenizerConfig(**settings)
    assert all(part in str(caught.value) for part in parts)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("kind", "least"), [("bpe", 262), ("character", 262), ("wordpiece", 10), ("word", 7)])
def test_too_small_a_size_names_the_least(kind, least):
    assert train(kind, size=least).source.size <= least
    with pytest.raises(ConfigError, match=f"tokenizer.size={least - 1} is too small.* at least {least}"):
        train(kind, size=least - 1)


# Files


@every_kind()
@pytest.mark.parametrize("joint", [True, False])
def test_a_saved_tokenizer_is_the_same(kind, joint, tmp_path):
    tokenizer = train(kind, joint=joint)
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    tokenizer.save(first)
    loaded = Tokenizer.load(first)
    loaded.save(second)
    assert first.read_bytes() == second.read_bytes()
    assert (loaded.kind, loaded.joint, loaded.joiner, loaded.tags) == (kind, joint, "", TAGS)
    for text in AWKWARD + TARGETS:
        assert loaded.source.encode(text) == tokenizer.source.encode(text)
        assert loaded.target.encode(text) == tokenizer.target.encode(text)


def test_the_joiner_is_saved():
    word, bpe = (Tokenizer.from_json(train(kind, joiner="@@").to_json()) for kind in ("word", "bpe"))
    assert word.joiner == bpe.joiner == "@@"
    assert bpe.target.encode("ei@@ n") == bpe.target.encode("ein")


def change(**changes):
    def apply(data):
        data.update(changes)

    return apply


def change_source(key, function):
    def apply(data):
        source = data["codecs"]["source"]
        source[key] = function(source[key])

    return apply


@pytest.mark.parametrize(
    ("kind", "damage", "part"),
    [
        ("byte", change(format=99), "has format 99; this version of regard reads up to 2"),
        ("byte", change(format=True), "has format True"),
        ("byte", lambda data: data.pop("format"), "no format number"),
        ("byte", change(kind=7), "no valid 'kind'"),
        ("byte", change(kind="auto"), "unknown kind 'auto'"),
        ("byte", change(joint=1), "no valid 'joint'"),
        ("byte", change(joint=False), "no valid 'target'"),
        ("byte", change(tags="news"), "no valid 'tags'"),
        ("byte", change(tags=["a", "a"]), "twice in 'tags'"),
        ("byte", change(vocabularies={}), "no valid 'vocabularies'"),
        ("byte", change(vocabularies=["source", "source"]), "twice in 'vocabularies'"),
        ("byte", change(vocabularies=["text"]), "no valid 'text'"),
        ("byte", change(labels=[]), "no valid 'labels'"),
        ("byte", change(labels={"class": "yes"}), "no valid 'class'"),
        ("byte", change(labels={"class": ["yes", "yes"]}), "twice in 'class'"),
        ("byte", change(codecs=[]), "no valid 'codecs'"),
        ("word", change(codecs={"source": []}), "no valid 'source'"),
        ("word", change_source("vocabulary", lambda words: [*words, 3]), "something else than text in 'vocabulary'"),
        ("word", change_source("vocabulary", lambda words: [*words, ""]), "something else than text in 'vocabulary'"),
        ("word", change_source("vocabulary", lambda words: [*words, words[0]]), "twice in 'vocabulary'"),
        ("word", change_source("vocabulary", lambda words: [*words, "\ud800"]), "lone surrogate"),
        ("character", change_source("vocabulary", lambda words: [*words, "ab"]), "not one character"),
        ("wordpiece", change_source("vocabulary", lambda words: [*words, "<unk>"]), "reserved entry"),
        ("bpe", change_source("vocabulary", lambda pieces: pieces[1:]), "256 bytes"),
        ("bpe", change_source("vocabulary", lambda pieces: [*pieces, "日"]), "no bytes"),
        ("bpe", change_source("vocabulary", lambda pieces: pieces[:-1]), "not in its vocabulary"),
        ("bpe", change_source("merges", lambda merges: [*merges, "ab"]), "not in its vocabulary"),
        ("bpe", change_source("merges", lambda _: None), "no valid 'merges'"),
    ],
)
def test_a_changed_file_says_what_is_wrong(kind, damage, part, tmp_path):
    data = json.loads(trained(kind).to_json())
    damage(data)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    assert part in load_error(path)


@every_kind()
@pytest.mark.parametrize("joint", [True, False])
def test_a_tokenizer_of_version_01_is_still_read(kind, joint, tmp_path):
    """Format 1: the two sides beside each other, one of them where they are joint."""
    tokenizer = train(kind, joint=joint)
    sides = {name: tokenizer.codecs[name].to_data() for name in (["source"] if joint else ["source", "target"])}
    old = {"format": 1, "kind": kind, "joint": joint, "joiner": "", "tags": list(TAGS)} | sides
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(old), encoding="utf-8")
    loaded = Tokenizer.load(path)
    assert loaded.to_json() == tokenizer.to_json()
    assert (loaded.kind, loaded.joint, loaded.joiner, loaded.tags) == (kind, joint, "", TAGS)
    for text in AWKWARD + TARGETS:
        assert loaded.source.encode(text) == tokenizer.source.encode(text)
        assert loaded.target.encode(text) == tokenizer.target.encode(text)


def test_a_tokenizer_of_version_01_written_by_hand(tmp_path):
    words = {"source": {"vocabulary": ["the", "dog"]}, "target": {"vocabulary": ["der", "Hund", "@@"]}}
    old = {"format": 1, "kind": "word", "joint": False, "joiner": "@@", "tags": ["news"]} | words
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(old))
    loaded = Tokenizer.load(path)
    assert loaded.source.encode("the dog barks") == [5, 6, UNKNOWN]
    assert loaded.target.encode("der Hund") == [5, 6]
    assert loaded.tag_id("news") == 4
    assert (loaded.kind, loaded.joint, loaded.joiner, loaded.labels) == ("word", False, "@@", {})
    del old["target"]
    path.write_text(json.dumps(old))
    assert "no valid 'target'" in load_error(path)


def test_a_tokenizer_of_labels_alone_is_read_again():
    """A task whose columns hold no text has labels and no codec."""
    labels = Tokenizer({}, labels={"class": ("no", "yes")})
    loaded = Tokenizer.from_json(labels.to_json())
    assert loaded == labels
    assert (loaded.kind, loaded.tags) == ("", ())


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b"1", b'{"format": 1}'])
def test_what_is_no_tokenizer(content, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    load_error(path)


def test_a_cut_file_and_no_file(tmp_path):
    path = tmp_path / "tokenizer.json"
    content = trained("bpe").to_json().encode()
    for length in (1, 100, len(content) // 2, len(content) - 3):
        path.write_bytes(content[:length])
        load_error(path)
    assert "is missing" in load_error(tmp_path / "nowhere.json")


def load_error(path) -> str:
    with pytest.raises(CheckpointError) as caught:
        Tokenizer.load(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


@given(text=st.text("ab \n\u3000", max_size=9), length=st.integers(0, 1200))
def test_words_without_an_end_are_learnt_from_in_pieces(text: str, length: int):
    """Nothing is lost but the word's length, and other text stays as it is."""
    long = text + "x" * length
    cut = in_pieces(long)
    assert "".join(cut.split()) == "".join(long.split())
    assert max(map(len, cut.split()), default=0) <= LONGEST_FORM
    assert cut == long or length + len(text) > LONGEST_FORM
