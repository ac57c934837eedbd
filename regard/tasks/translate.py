"""Translation: a source text and a target text; any task that reads one text and writes another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, cast

from regard.data.batch import Batch, Source, pair_batch
from regard.data.columns import SOURCE, TARGET, Column, Example
from regard.data.config import DataConfig
from regard.decode.config import SearchConfig
from regard.decode.options import Options
from regard.decode.translate import Translator
from regard.decode.translation import Translation
from regard.decode.units import Prepared
from regard.evaluate.metrics import bleu_with, evaluate_texts
from regard.models.interface import Decodable
from regard.naming import counted
from regard.tasks.failures import failures_of, further_of
from regard.tasks.interface import (
    LOSS,
    PERPLEXITY,
    Examples,
    Measured,
    Metric,
    Progress,
    Sample,
    Task,
    Trained,
    Validation,
    Validator,
    example_batches,
    mean_loss,
    perplexity,
)
from regard.tasks.pairs import Pairs, score_texts, usual_tokenizer
from regard.tasks.sequence_loss import sequence_loss
from regard.text.formats.writing import writing_files
from regard.text.symbols import Symbols
from regard.text.tokenizer import join_pieces

DECODING = ("beam", "length_penalty", "shortlist")
"""Options of translation that `measure` takes."""
SAMPLES = 4
LONGEST_SAMPLE = 300
"""Characters of a sentence that is still pleasant to look at."""


def columns(data: DataConfig) -> tuple[Column, ...]:
    """The source, further ones, and the target, which may copy from the first."""
    source = replace(SOURCE, extended=data.copy)
    target = replace(TARGET, extended=data.copy, of=SOURCE.name if data.copy else "")
    texts, vectors = (Column(name, end=True) for name in data.also), (Column(name, "vectors") for name in data.vectors)
    return source, *texts, *vectors, target


def collate(examples: Sequence[Example], symbols: Symbols) -> Batch:
    """Everything but the target is read."""
    names = [name for name in examples[0] if name != TARGET.name]
    source = Source.of(*([example[name] for example in examples] for name in names), fill=symbols.pad)
    return pair_batch(source, [example["target"] for example in examples], symbols)


def open_translator(trained: Trained) -> Translator:
    """With the run's search settings, and with the lengths that the model was trained on and can take."""
    limit = trained.limits.source
    most = [trained.data.filters.max_length or None, None if limit is None else limit - SOURCE.symbols()]
    return Translator(
        model=trained.engine or cast(Decodable, trained.model),
        tokenizer=trained.tokenizer,
        config=trained.decode,
        source_language=trained.data.source_language or None,
        target_language=trained.data.target_language or None,
        max_source=min((one for one in most if one is not None), default=None),
        max_source_positions=limit,
        limited_by=trained.limits.setting,
        max_target=trained.limits.target,
        columns=trained.columns,
        max_further=further_limits(trained),
        seen=trained.seen,
        shortlists=trained.shortlists,
    )


def further_limits(trained: Trained) -> dict[str, int]:
    """The most positions of each further source that the model was trained on and can take; none without a limit."""
    filtered, found = trained.data.filters.max_length, dict[str, int]()
    for column in trained.columns[1:-1]:
        bounds = [trained.limits.columns.get(column.name), filtered + column.symbols() if filtered else None]
        known = [bound for bound in bounds if bound is not None]
        if known:
            found[column.name] = min(known)
    return found


def pairs_of(examples: Examples) -> Pairs:
    return Pairs(examples.texts["source"], examples.texts["target"], examples.tags)


# Validation: the loss, and BLEU of greedy translations


def validator(trained: Trained, examples: Examples) -> Validator:
    """The pairs come encoded, and are put into batches and made ready for the search once."""
    pairs, batches = pairs_of(examples), example_batches(TASK, trained, examples.encoded)
    translator = replace(open_translator(trained), config=SearchConfig(beam=1))
    shown = sample_places(pairs)
    asked = range(len(pairs.sources)) if trained.generates else shown
    prepared = prepared_by_tag(translator, examples, pairs, asked)
    joiner = trained.tokenizer.joiner
    tokenize = usual_tokenizer(joiner, trained.data.target_language, pairs.targets)

    def samples(translations: Mapping[int, str]) -> tuple[Sample, ...]:
        return tuple(
            Sample(join_pieces(pairs.sources[at], joiner), join_pieces(pairs.targets[at], joiner), translations[at])
            for at in shown
        )

    def validate(progress: Progress) -> Validation:
        loss = mean_loss(TASK, trained.model, batches, progress)
        metrics = {"loss": loss, "perplexity": perplexity(loss)}
        if not math.isfinite(loss):  # there is no search without probabilities
            return Validation(metrics)
        texts = {place: one.text for place, one in translated(translator, prepared, progress).items()}
        if trained.generates:
            scores = score_texts([texts[place] for place in asked], pairs, joiner, tokenize)
            metrics |= {"bleu": scores.bleu, "chrf": scores.chrf}
        return Validation(metrics, samples(texts))

    return validate


def prepared_by_tag(
    translator: Translator, examples: Examples, pairs: Pairs, asked: Sequence[int], **options: Unpack[Options]
) -> list[tuple[list[int], Prepared]]:
    """The places of the sources that are asked for, tag by tag, each ready to be translated again and again."""
    wanted = set(asked)
    ready: list[tuple[list[int], Prepared]] = []
    for tag, all_places in pairs.by_tag().items():
        places = [place for place in all_places if place in wanted]
        ids = [[int(token) for token in examples.encoded[place]["source"]] for place in places]
        sources = [pairs.sources[place] for place in places]
        names = [column.name for column in translator.columns[1:-1]]
        further = [tuple(examples.encoded[place][name] for name in names) for place in places]
        ready.append((places, translator.prepare(sources, ids, further, **cast(Options, {**options, "tag": tag}))))
    return ready


def translated(
    translator: Translator, prepared: Sequence[tuple[list[int], Prepared]], progress: Progress
) -> dict[int, Translation]:
    """By place."""
    found: dict[int, Translation] = {}
    for places, ready in prepared:
        found |= zip(places, translator.run(ready, progress=progress), strict=True)
    return found


def sample_places(pairs: Pairs, count: int = SAMPLES) -> list[int]:
    """Places of a few pairs to look at, from short to long; equal pairs give equal places."""
    lengths = [max(len(source), len(target)) for source, target in zip(pairs.sources, pairs.targets, strict=True)]
    fit = [
        place
        for place, length in enumerate(lengths)
        if length <= LONGEST_SAMPLE and pairs.sources[place].strip() and pairs.targets[place].strip()
    ]
    fit.sort(key=lambda place: (lengths[place], place))
    return fit if len(fit) <= count else [fit[(2 * n + 1) * len(fit) // (2 * count)] for n in range(count)]


# Measuring: BLEU and chrF with their signatures, as the run decodes, and the loss


def measure(trained: Trained, examples: Examples, progress: Progress, options: Mapping[str, Any]) -> Measured:
    """`references` are further ones, each with a text for every source; `output` is a file for the translations;
    `failures` asks for what recurrent translators suffer from, `ter` for the translation edit rate."""
    translator, pairs, joiner = open_translator(trained), pairs_of(examples), trained.tokenizer.joiner
    usual = usual_tokenizer(joiner, trained.data.target_language, pairs.targets)
    tokenize, lowercase = options.get("tokenize") or usual, bool(options.get("lowercase"))
    bleu_with(tokenize, lowercase)  # that it cannot be had is said before anything is translated
    output: Path | None = options.get("output")
    with writing_files((output,) if output else ()) as files:
        decoding = cast(Options, {name: options[name] for name in DECODING if name in options})
        if options.get("failures"):
            decoding["attention"] = True
        everything = range(len(pairs.sources))
        found = translated(translator, prepared_by_tag(translator, examples, pairs, everything, **decoding), progress)
        translations = [found[place] for place in everything]
        texts = [translation.text for translation in translations]
        for file in files:
            file.write("".join(f"{text}\n" for text in texts).encode())
    further = options.get("references", ())
    joined = [[join_pieces(line, joiner) for line in lines] for lines in (pairs.targets, *further)]
    scores = evaluate_texts(texts, joined, tokenize=tokenize, lowercase=lowercase, ter=bool(options.get("ter")))
    losses = losses_of(trained, examples)
    values = scores.to_json() | losses
    summary = f"{scores.summary()}\n{losses_line(losses, len(examples))}"
    if not options.get("failures"):
        return Measured(values, summary)
    failures = failures_of(
        translator,
        pairs,
        translations,
        also=further_of(trained.columns, examples),
        further_references=further,
        tokenize=tokenize,
        lowercase=lowercase,
    )
    return Measured(values | {"failures": failures.to_json()}, f"{summary}\n\n{failures.summary()}")


def losses_of(trained: Trained, examples: Examples) -> dict[str, Any]:
    """The loss a token and its perplexity, of the pairs that the model can take as a whole, both None where it can take
    none of them; and the number of the others."""
    fitting = [example for example in examples.encoded if fits(trained, example)]
    loss = mean_loss(TASK, trained.model, example_batches(TASK, trained, fitting)) if fitting else None
    return {
        "loss": loss,
        "perplexity": None if loss is None else perplexity(loss),
        "pairs_without_loss": len(examples) - len(fitting),
    }


def losses_line(losses: Mapping[str, Any], count: int) -> str:
    """For people, of `count` pairs."""
    left_out = losses["pairs_without_loss"]
    if losses["loss"] is None:
        return f"no loss: {'the pair is' if count == 1 else f'all {count:,} pairs are'} longer than the model can take"
    note = f" (without {left_out:,} of {counted(count, 'pairs')}, which are longer than the model can take)"
    return f"loss {losses['loss']:.4f} a token, perplexity {losses['perplexity']:.2f}{note if left_out else ''}"


def fits(trained: Trained, example: Example) -> bool:
    """Whether the model can take the pair as a whole; a longer source is translated in parts."""
    return all(len(example[name]) <= limit for name, limit in trained.limits.columns.items())


TASK = Task(
    columns=columns,
    collate=collate,
    loss=sequence_loss,
    metrics=(
        LOSS,
        PERPLEXITY,
        Metric("bleu", "BLEU", higher=True, note="greedy", generated=True),
        Metric("chrf", "chrF", higher=True, note="greedy", generated=True),
    ),
    validator=validator,
    measure=measure,
    options=(*DECODING, "tokenize", "lowercase", "ter", "references", "output", "failures", "plot"),
    open=open_translator,
    pairs_passes=True,
    noun="pairs",
)
