"""The tokenizer that published weights bring, whatever its kind: text ↔ ids by the `tokenizers` library, from its JSON.

Of a stranger's tokenizer.json only what makes ids of text is kept. Padding, truncation and the post-processor are left
out: batches pad, inputs that are too long are refused, and the columns of a task put the symbols around the ids.
"""

import base64
import json
import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from functools import cached_property
from typing import Any, cast

from regard.text.bpe import SYMBOL_BYTES
from regard.text.codecs import Codec, Offsets, show_piece, without_surrogates
from regard.text.symbols import Symbols

KIND = "published"
MODELS = ("WordPiece", "BPE", "Unigram", "WordLevel")
LEFT_OUT = ("truncation", "padding", "post_processor")
PROBE = "A probe: naïve 東京 \U0001f642 x1."
"""Encoded once when a tokenizer is opened, so that one that cannot encode is refused then."""


class BadTokenizerError(ValueError):
    """What is wrong with a tokenizer's JSON, to follow the name of its file."""


class PublishedCodec(Codec):
    """Text ↔ ids as the publisher's library makes them: a symbol that text spells out, such as `[MASK]`, is one."""

    kind = KIND

    def __init__(self, document: Mapping[str, Any], size: int, symbols: Symbols) -> None:
        """`document` is the content of a tokenizer.json, `size` the number of ids that the model has.

        BadTokenizerError for one that is none, or that does not fit.
        """
        super().__init__((), 0)
        self.first, self.size, self.symbols = 0, size, symbols
        self._document = checked_document(document, size)
        check_symbols(symbols, size)
        self._rust = rust_tokenizer(self._document, size)
        model = self._document["model"]
        self._splits_words = model["type"] != "WordLevel"
        self._is_bytes = '"ByteLevel"' in json.dumps([self._document.get("pre_tokenizer"), self._document["decoder"]])
        special = (token["id"] for token in self._document["added_tokens"] if token.get("special"))
        own = (symbols.start, symbols.end, symbols.pad, symbols.mask, *symbols.between)
        self._silent = {*own, *special} - {symbols.unknown}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "PublishedCodec":
        """The inverse of `to_data`."""
        size, document = data.get("size"), data.get("tokenizer")
        require(type(size) is int and isinstance(document, dict), "has no size, or no tokenizer")
        return cls(cast(dict[str, Any], document), cast(int, size), symbols_from(data.get("symbols")))

    def to_data(self) -> dict[str, Any]:
        return {"tokenizer": self._document, "size": self.size, "symbols": asdict(self.symbols)}

    @cached_property
    def vocabulary(self) -> list[str]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The spelling of each id, empty where it has none."""
        return [self._rust.id_to_token(index) or "" for index in range(self.size)]

    def id_of(self, token: str) -> int | None:
        """The id of a spelling."""
        return self._rust.token_to_id(token)

    def encode(self, text: str) -> list[int]:
        return self._rust.encode(without_surrogates(text), add_special_tokens=False).ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        lines = [without_surrogates(text) for text in texts]
        return [encoding.ids for encoding in self._rust.encode_batch_fast(lines, add_special_tokens=False)]

    def encode_with_offsets(self, text: str) -> tuple[list[int], Offsets]:
        encoding = self._rust.encode(without_surrogates(text), add_special_tokens=False)
        return encoding.ids, encoding.offsets

    def decode(self, ids: Iterable[int]) -> str:
        """As promised by `Codec`; an unknown word as the publisher spells it."""
        said = [index for index in ids if 0 <= index < self.size and index not in self._silent]
        return self._rust.decode(said, skip_special_tokens=False)

    def knows_all(self, ids: Iterable[int]) -> bool:
        return self.symbols.unknown is None or self.symbols.unknown not in ids

    def is_unknown(self, piece: str) -> bool:
        return self.symbols.unknown is not None and piece == self._show(self.symbols.unknown)

    def may_grow(self, ids: Sequence[int]) -> bool:
        return self._splits_words

    def show_entry(self, entry: int) -> str:
        piece = self._rust.id_to_token(entry)
        if piece is None:
            return f"<{entry}>"
        if self._is_bytes and all(character in SYMBOL_BYTES for character in piece):
            return show_piece(bytes(SYMBOL_BYTES[character] for character in piece))
        return piece

    def _show(self, index: int) -> str:
        return self.show_entry(index) if 0 <= index < self.size else f"<{index}>"


# What a stranger's JSON may hold


def checked_document(document: Any, size: int) -> dict[str, Any]:
    """What makes ids of text, once its types are right and every id lies below `size`."""
    require(isinstance(document, dict), "is not an object")
    kept = {key: value for key, value in document.items() if key not in LEFT_OUT} | dict.fromkeys(LEFT_OUT)
    model = kept.get("model")
    require(isinstance(model, dict) and "vocab" in model, "has no model with a vocabulary")
    model = cast(dict[str, Any], model)
    # Files of early versions leave the type out where there are merges.
    model = {"type": "BPE" if "merges" in model else "", **model}
    require(model["type"] in MODELS, f"has a model of type {model['type']!r}, which is not one of {', '.join(MODELS)}")
    if "dropout" in model:
        model["dropout"] = None  # at random in training alone, if at all
    check_vocabulary(model, size)
    added: Any = kept.get("added_tokens") or []
    require(isinstance(added, list) and all(map(is_added_token, added)), "has added tokens that are none")
    for token in cast(list[dict[str, Any]], added):
        require_id(token["id"], size, token["content"])
    check_charsmaps(kept.get("normalizer"))
    return kept | {"model": model, "added_tokens": added, "decoder": kept.get("decoder")}


def check_vocabulary(model: Mapping[str, Any], size: int) -> None:
    vocabulary: Any = model["vocab"]
    if model["type"] == "Unigram":
        entries = cast(list[Any], vocabulary) if isinstance(vocabulary, list) else []
        require(
            bool(entries) and all(map(is_unigram, entries)), "has a vocabulary that is no list of pieces and scores"
        )
        require(len(entries) <= size, f"has {len(entries):,} pieces, but the model has {size:,} ids")
        unknown: Any = model.get("unk_id")
        require(type(unknown) is int and 0 <= unknown < len(entries), "names no unknown piece of its vocabulary")
        return
    require(isinstance(vocabulary, dict) and bool(vocabulary), "has a vocabulary that is no table of pieces and ids")
    ids = cast(dict[str, Any], vocabulary)
    for piece, index in ids.items():
        require_id(index, size, piece)
    require(len(set(ids.values())) == len(ids), "gives one id to two pieces")
    unknown = model.get("unk_token")
    needs_unknown = model["type"] != "BPE"
    require(
        (unknown is None and not needs_unknown) or unknown in ids, f"names the unknown piece {unknown!r}, but has none"
    )
    if model["type"] == "BPE":
        check_merges(model.get("merges"), model, ids)


def check_merges(merges: Any, model: Mapping[str, Any], ids: Mapping[str, int]) -> None:
    """What the library takes for granted, and ends in a panic without."""
    prefix = model.get("continuing_subword_prefix") or ""
    require(isinstance(merges, list) and isinstance(prefix, str), "has no list of merges")
    for merge in cast(list[Any], merges):
        pair = merge.split(" ") if isinstance(merge, str) else merge
        right = isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)
        require(right, "has a merge that is no pair of pieces")
        left, second = cast(list[str], pair)
        known = left in ids and second in ids and left + second.removeprefix(prefix) in ids
        require(known, "has a merge of pieces that are not in its vocabulary")


def check_charsmaps(normalizer: Any) -> None:
    """SentencePiece's compiled normalisation: a trie whose size stands before it."""
    for part in parts_of(normalizer):
        if part.get("type") != "Precompiled":
            continue
        try:
            data = base64.b64decode(part.get("precompiled_charsmap", ""), validate=True)
        except (ValueError, TypeError):
            data = b""
        trie = int.from_bytes(data[:4], "little")
        require(len(data) > 4 and trie % 4 == 0 and trie <= len(data) - 4, "has a broken table of characters")


def parts_of(normalizer: Any) -> Generator[dict[str, Any]]:
    """A normaliser, or those of a sequence."""
    waiting = [normalizer]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield cast(dict[str, Any], part)
            inner: Any = part.get("normalizers")
            waiting += cast(list[Any], inner) if isinstance(inner, list) else []


def is_added_token(token: Any) -> bool:
    return (
        isinstance(token, dict) and isinstance(token.get("content"), str) and bool(token["content"]) and "id" in token
    )


def is_unigram(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) and type(entry[1]) in (float, int)


SEVERAL, NEEDED = ("never", "between"), ("start", "end", "pad")
"""Symbols that are lists of ids, and those that no vocabulary is without."""


def symbols_from(data: Any) -> Symbols:
    """From JSON; whether the ids are in range is not asked here."""
    names = {each.name for each in fields(Symbols)}
    require(isinstance(data, dict) and set(data) == names, "names no symbols, or others")
    given = cast(dict[str, Any], data)
    for name, value in given.items():
        ids: Any = value if name in SEVERAL else [] if value is None and name not in NEEDED else [value]
        whole = isinstance(ids, list) and all(type(index) is int for index in ids)
        require(whole, f"has no id for the symbol {name!r}")
    lists: dict[str, Any] = {name: tuple(given[name]) for name in SEVERAL}
    return Symbols(**{**given, **lists})


def check_symbols(symbols: Symbols, size: int) -> None:
    for name, value in asdict(symbols).items():
        for index in value if name in SEVERAL else () if value is None else (value,):
            require_id(index, size, name)


def require_id(index: Any, size: int, name: str) -> None:
    whole = type(index) is int
    require(
        whole and 0 <= index < size, f"gives {name[:40]!r} the id {str(index)[:40]}, but the model has {size:,} ids"
    )


def require(condition: bool, what: str) -> None:
    if not condition:
        raise BadTokenizerError(what)


def rust_tokenizer(document: Mapping[str, Any], size: int) -> Any:
    """The library's object, which has encoded something once."""
    from tokenizers import Tokenizer

    try:
        with silent_panics():
            rust = Tokenizer.from_str(json.dumps(document))
            rust.encode(PROBE, add_special_tokens=False)
            ids = rust.get_vocab(with_added_tokens=True).values()
    except Exception as error:  # the library has no kind of its own
        raise BadTokenizerError(f"is not a tokenizer ({' '.join(str(error).split())[:200]})") from None
    except BaseException as error:  # its panics are no Exception
        if type(error).__name__ != "PanicException":
            raise
        raise BadTokenizerError("is not a tokenizer: the library that reads it gave up") from None
    require_id(max(ids, default=0), size, "an added token")
    return rust


@contextmanager
def silent_panics() -> Generator[None]:
    """A panic of the library is written to standard error, stack and all, before it becomes an exception."""
    try:
        kept = os.dup(2)
    except OSError:  # there is no standard error
        yield
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)
