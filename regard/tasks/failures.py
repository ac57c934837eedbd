"""The failures of a translator on given pairs: what it wrote is measured, and what it says of the references.

`evaluate/failures.py` says what is measured, and how; here are its ingredients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regard.data.columns import SOURCE, TARGET, Column
from regard.decode.alignment import source_words
from regard.decode.further import Also
from regard.decode.translate import Translator
from regard.decode.translation import Translation
from regard.evaluate.by_length import bleu_of_buckets, length_buckets, long_and_short, word_counts
from regard.evaluate.failures import (
    Coverage,
    Look,
    Unknown,
    content,
    coverage,
    loss_by_position,
    repetition,
    share,
    words_of,
)
from regard.evaluate.findings import Failures
from regard.models.interface import Attentive
from regard.tasks.interface import Examples
from regard.tasks.pairs import Pairs
from regard.text.tokenizer import Codec, join_pieces


def failures_of(
    translator: Translator,
    pairs: Pairs,
    translations: Sequence[Translation],
    *,
    also: Also = (),
    further_references: Sequence[Sequence[str]] = (),
    tokenize: str = "13a",
    lowercase: bool = False,
) -> Failures:
    """Of translations made with `attention=True`. `also` are the further sources of a model that reads several; further
    references count for BLEU alone."""
    joiner = translator.tokenizer.joiner
    sources = [join_pieces(text, joiner) for text in pairs.sources]
    references = [[join_pieces(text, joiner) for text in lines] for lines in (pairs.targets, *further_references)]
    texts = [translation.text for translation in translations]
    source_split, own_split, usual_split = (words_of(side, tokenize) for side in (sources, texts, references[0]))
    looked, note = looks_of(translator, pairs, translations)
    lengths = word_counts(sources)
    by_length, long = (
        bleu_of_buckets(buckets, texts, references, tokenize=tokenize, lowercase=lowercase)
        for buckets in (length_buckets(lengths), long_and_short(lengths))
    )
    return Failures(
        repetition=repetition(own_split, usual_split),
        content=content(source_split, own_split, usual_split),
        coverage=looked,
        coverage_note=note,
        unknown=unknown(translator, pairs, translations),
        loss_by_position=loss_by_position(reference_scores(translator, pairs, also)),
        bleu_by_length=by_length,
        bleu_long=long,
    )


def looks_of(translator: Translator, pairs: Pairs, translations: Sequence[Translation]) -> tuple[Coverage | None, str]:
    """How the attention covers the sources, and what to know about it, or why there is none."""
    looks: list[Look] = []
    for place, translation in enumerate(translations):
        if translation.attention is None:
            continue
        words = source_words(translator.tokenizer, pairs.sources[place])
        before = len(SOURCE.before(translator.tokenizer, pairs.tag_of(place)))
        looks.append(Look(translation.attention[:, before : before + len(words)].numpy(), words))
    if not isinstance(translator.model, Attentive):
        return None, "this model does not attend to its source, so how much attention its words get is not measured"
    missing = sum(bool(text.strip()) for text in pairs.sources) - len(looks)
    left_out = f"attention without {missing:,} of {len(translations):,} lines, which were translated in parts"
    return coverage(looks), left_out if missing else ""


def unknown(translator: Translator, pairs: Pairs, translations: Sequence[Translation]) -> Unknown:
    tokenizer = translator.tokenizer
    written = [token for translation in translations for token in translation.tokens]
    return Unknown(
        source=unknown_share(tokenizer.source, pairs.sources),
        references=unknown_share(tokenizer.target, pairs.targets),
        translations=share(sum(map(tokenizer.target.is_unknown, written)), len(written)),
    )


def unknown_share(codec: Codec, texts: Sequence[str]) -> float:
    """Of the tokens of given texts."""
    ids = [index for one in codec.encode_batch(list(texts)) for index in one]
    return share(sum(not codec.knows_all([index]) for index in ids), len(ids))


def reference_scores(translator: Translator, pairs: Pairs, also: Also = ()) -> list[tuple[float, ...]]:
    """The log-probabilities of each reference's tokens, of the pairs that the model can take as a whole."""
    found: list[tuple[float, ...]] = []
    for tag, places in pairs.by_tag().items():
        fitting = [place for place in places if fits(translator, pairs, place, also)]
        some = [(pairs.sources[place], pairs.targets[place]) for place in fitting]
        beside = [[values[place] for place in fitting] for values in also]
        found += [
            translation.token_scores for translation in translator.score(some, tag=tag, also=beside, long="whole")
        ]
    return found


def fits(translator: Translator, pairs: Pairs, place: int, also: Also = ()) -> bool:
    """Whether the model can take the pair, and what is read beside it, as a whole, the symbols around it counted."""
    tokenizer = translator.tokenizer
    for column, values in zip(translator.columns[1:-1], also, strict=True):
        own = column.ids(tokenizer, values[place]) if column.is_lines else values[place]
        if len(own) > translator.max_further.get(column.name, len(own)):
            return False
    source = SOURCE.ids(tokenizer, pairs.sources[place], pairs.tag_of(place))
    sides = [
        (source, translator.max_source_positions),
        (TARGET.ids(tokenizer, pairs.targets[place]), translator.max_target),
    ]
    return all(limit is None or len(ids) <= limit for ids, limit in sides)


def further_of(columns: Sequence[Column], examples: Examples) -> list[Sequence[Any]]:
    """The further sources of some examples, as `Translator.score` takes them: texts, or vectors."""
    return [
        examples.texts[column.name] if column.is_lines else [example[column.name] for example in examples.encoded]
        for column in columns[1:-1]
    ]
