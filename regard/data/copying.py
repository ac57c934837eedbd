"""Unknown words that can be copied: each gets an id of its own behind the vocabulary, numbered within its example.

A column with `extended` numbers its own unknown words in the order in which they first stand there; one that also names
another column in `of` takes that column's numbers, and a word that neither knows stays unknown. So a model that copies
finds in the ids all that it needs: below the vocabulary's size a word to generate, from there on one to copy.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.data.columns import Column, Encoded
from regard.errors import ConfigError
from regard.text.codecs import WordCodec, split_words
from regard.text.tokenizer import Tokenizer


def with_own_words(
    columns: Sequence[Column], rows: Sequence[Sequence[Any]], ids: Mapping[str, list[Encoded]], tokenizer: Tokenizer
) -> dict[str, list[Encoded]]:
    """The ids of some rows, in which the unknown words of extended columns have ids of their own."""
    found = dict(ids)
    places = {column.name: place for place, column in enumerate(columns)}
    for column in columns:
        if not column.extended:
            continue
        codec = word_codec(column, tokenizer)
        if column.of and tokenizer.codecs[columns[places[column.of]].codec] is not codec:
            raise ConfigError(
                f"{column.name} copies words of {column.of}, so both need one vocabulary; set tokenizer.joint=true"
            )
        found[column.name] = [
            extended(
                list(own), row[places[column.name]], own_words(row[places[column.of or column.name]], codec), codec
            )
            for own, row in zip(ids[column.name], rows, strict=True)
        ]
    return found


def word_codec(column: Column, tokenizer: Tokenizer) -> WordCodec:
    codec = tokenizer.codecs[column.codec]
    if not isinstance(codec, WordCodec):
        raise ConfigError(
            f"tokenizer.kind={codec.kind} has no unknown words, and {column.name} copies them; set tokenizer.kind=word"
        )
    return codec


def own_words(text: str, codec: WordCodec) -> list[str]:
    """The unknown words of a text, each once, in order; the first has the id behind the vocabulary."""
    words = zip(split_words(text), codec.encode(text), strict=True)
    return list(dict.fromkeys(word for word, index in words if not codec.knows_all([index])))


def extended(ids: list[int], text: str, own: Sequence[str], codec: WordCodec) -> list[int]:
    """The ids of a text in which the words of `own` have ids behind the vocabulary."""
    numbers = {word: codec.size + place for place, word in enumerate(own)}
    words = zip(split_words(text), ids, strict=True)
    return [index if codec.knows_all([index]) else numbers.get(word, index) for word, index in words]
