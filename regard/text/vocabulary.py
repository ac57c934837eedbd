"""Vocabularies from a corpus: which entries a codec gets. Equal texts give equal vocabularies, ties included.

Each function reads the texts as a stream, from the start each time it needs to.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from zlib import crc32

from regard.errors import ConfigError
from regard.text.bpe import BYTE_SYMBOLS, BpeCodec, with_leading_space, word_splitter
from regard.text.codecs import (
    CharacterCodec,
    WordCodec,
    WordPieceCodec,
    first_entry,
    join_pieces,
    split_words,
    without_surrogates,
)

Texts = Callable[[], Iterable[str]]
"""Gives the texts from the start, each time it is called."""

# A merge seen once tells nothing about the language, and would fill a small corpus' vocabulary with its sentences.
MIN_MERGE_COUNT = 2


LEAST = {
    "bpe": (len(BYTE_SYMBOLS), "a byte each"),
    "character": (256, "a byte each"),
    "wordpiece": (4, "to spell anything"),
    "word": (1, "for a word"),
}
"""Entries that a kind cannot do without, and what they are for."""

MOST_FORMS = 150_000
"""Word forms that a subword vocabulary is learnt from."""
MOST_REPEATS = 1000
LONGEST_FORM = 500
ENDLESS = re.compile(rf"\S{{{LONGEST_FORM},}}")


def fitted_size(num_pairs: int) -> int:
    """Entries of a subword vocabulary that this many pairs can train; the paper's 37,000 is set by hand."""
    for limit, size in ((10_000, 4_000), (100_000, 8_000), (1_000_000, 16_000)):
        if num_pairs < limit:
            return size
    return 32_000


def fit_bpe(texts: Texts, size: int, tags: Sequence[str], joiner: str = "") -> BpeCodec:
    """Merges learnt from the texts, until the codec has `size` ids or no pair of pieces is left that occurs twice."""
    from tokenizers import Tokenizer, models, trainers

    entries = entries_left("bpe", size, tags)
    rust = Tokenizer(models.BPE())
    rust.pre_tokenizer = word_splitter()
    trainer = trainers.BpeTrainer(
        vocab_size=entries,
        min_frequency=MIN_MERGE_COUNT,
        initial_alphabet=BYTE_SYMBOLS,
        show_progress=False,
    )
    whole = learnable(lambda: (join_pieces(text, joiner) for text in texts()))
    rust.train_from_iterator((with_leading_space(text) for text in whole), trainer)
    return BpeCodec(_by_id(rust), _model_state(rust)["merges"], tags, joiner)


def fit_wordpiece(texts: Texts, size: int, tags: Sequence[str]) -> WordPieceCodec:
    """Pieces learnt from the texts; at most half of the entries are single characters."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    entries = entries_left("wordpiece", size, tags)
    splitter = pre_tokenizers.BertPreTokenizer()
    characters = _most_frequent(_characters(texts, keep_spaces=False), entries // 4)
    # Left to itself the Rust trainer numbers the ##characters in the order of a hash map, which differs from process
    # to process and decides ties; named as special tokens they are numbered in the order given.
    inner = [f"##{character}" for character in characters if len(splitter.pre_tokenize_str("a" + character)) == 1]
    rust = Tokenizer(models.WordPiece())
    rust.pre_tokenizer = splitter
    trainer = trainers.WordPieceTrainer(
        vocab_size=entries,
        min_frequency=MIN_MERGE_COUNT,
        special_tokens=inner,
        initial_alphabet=characters,
        limit_alphabet=len(characters),
        show_progress=False,
    )
    rust.train_from_iterator((without_surrogates(text) for text in learnable(texts)), trainer)
    return WordPieceCodec(_by_id(rust), tags)


def learnable(texts: Texts) -> Iterable[str]:
    """The texts, or for a corpus of very many word forms its `MOST_FORMS` most frequent ones, as often as they occur.

    The Rust trainers keep every form and where each pair of symbols stands in it: about a kilobyte a form. What is rare
    decides no merge.
    """
    counts: Counter[str] = Counter()
    cut = False
    for text in (in_pieces(text) for text in texts()):
        counts.update(text.split())
        if len(counts) > 3 * MOST_FORMS:
            counts, cut = Counter({form: counts[form] for form in _most_frequent(counts, 2 * MOST_FORMS)}), True
    if not cut and len(counts) <= MOST_FORMS:
        return (in_pieces(text) for text in texts())
    # Among equals by hash, not by code point: in a script without spaces every form is a sentence that stands once.
    forms = sorted(counts, key=lambda form: (-counts[form], crc32(form.encode("utf-8", "replace")), form))[:MOST_FORMS]
    return (" ".join([form] * number) for form in forms for number in _portions(counts[form]))


def in_pieces(text: str) -> str:
    """The text, with words that have no end (a picture in base64 …) cut: to learn from one takes the square of its
    length."""
    if len(text) <= LONGEST_FORM:
        return text
    return ENDLESS.sub(lambda word: " ".join(re.findall(f".{{1,{LONGEST_FORM}}}", word[0], re.DOTALL)), text)


def _portions(count: int) -> Iterator[int]:
    """`count` in parts, so that no text is endless."""
    yield from [MOST_REPEATS] * (count // MOST_REPEATS)
    if count % MOST_REPEATS:
        yield count % MOST_REPEATS


def fit_character(texts: Texts, size: int, tags: Sequence[str]) -> CharacterCodec:
    """The most frequent characters; all of them if size is 0."""
    limit = entries_left("character", size, tags) - 256 if size else None
    return CharacterCodec(_most_frequent(_characters(texts, keep_spaces=True), limit), tags)


def fit_word(texts: Texts, size: int, tags: Sequence[str], joiner: str) -> WordCodec:
    """The most frequent words; all of them if size is 0."""
    limit = entries_left("word", size, tags) if size else None
    counts: Counter[str] = Counter()
    for text in texts():
        counts.update(split_words(text))
    return WordCodec(_most_frequent(counts, limit), joiner, tags)


def entries_left(kind: str, size: int, tags: Sequence[str]) -> int:
    """Entries of a vocabulary with `size` ids, or ConfigError if they are fewer than this kind needs."""
    needed, why = LEAST[kind]
    entries = size - first_entry(tags)
    if entries < needed:
        raise ConfigError(
            f"tokenizer.size={size} is too small: {first_entry(tags)} ids are reserved (tags included) and {needed} "
            f"needed {why}; set at least {first_entry(tags) + needed}, or 0 to fit it to the corpus"
        )
    return entries


def _characters(texts: Texts, *, keep_spaces: bool) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts():
        counts.update(without_surrogates(text))
    return counts if keep_spaces else Counter({c: count for c, count in counts.items() if not c.isspace()})


def _most_frequent(counts: Counter[str], limit: int | None) -> list[str]:
    """By falling count, then by code point: `Counter.most_common` orders ties by who came first."""
    ordered = sorted(counts, key=lambda entry: (-counts[entry], entry))
    return ordered if limit is None else ordered[:limit]


def _by_id(rust: Any) -> list[str]:
    vocabulary: dict[str, int] = _model_state(rust)["vocab"]
    return sorted(vocabulary, key=vocabulary.__getitem__)


def _model_state(rust: Any) -> dict[str, Any]:
    state = json.loads(rust.to_str())["model"]
    if "merges" in state:
        state["merges"] = [(left, right) for left, right in state["merges"]]
    return state


def chained(*parts: Texts) -> Texts:
    """All of them, one behind the other."""

    def texts() -> Iterator[str]:
        for part in parts:
            yield from part()

    return texts
