"""Unknown words that can be copied: each gets an id of its own behind the vocabulary, numbered within its example.

A column with `extended` numbers its own unknown words in the order in which they first stand there; one that also names
another column in `of` takes that column's numbers, and a word that neither knows stays unknown. So a model that copies
finds in the ids all that it needs: below the vocabulary's size a word to generate, from there on one to copy.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from regard.data.columns import Column, Encoded
from regard.errors import ConfigError
from regard.text.codecs import WordCodec
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
        own, copied = places[column.name], places[column.of or column.name]
        if tokenizer.codecs[columns[copied].codec] is not codec:
            raise ConfigError(
                f"{column.name} copies words of {column.of}, so both need one vocabulary; set tokenizer.joint=true"
            )
        found[column.name] = [codec.extended(codec.unknown_words(row[copied])).encode(row[own]) for row in rows]
    return found


def word_codec(column: Column, tokenizer: Tokenizer) -> WordCodec:
    codec = tokenizer.codecs[column.codec]
    if not isinstance(codec, WordCodec):
        raise ConfigError(
            f"tokenizer.kind={codec.kind} has no unknown words, and {column.name} copies them; set tokenizer.kind=word"
        )
    return codec
