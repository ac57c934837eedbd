"""What came of `regard bench translate`: speeds and latencies by beam, BLEU, and shares of what the machine can do."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from regard.bench.figures import measured, share_of, within_rounds
from regard.bench.machine import Peaks
from regard.bench.translators import SHORTLIST, counterpart
from regard.decode.translate import target_text
from regard.loading import Opened
from regard.tasks.pairs import Pairs, score_texts, usual_tokenizer
from regard.text.tokenizer import Tokenizer


def summaries(names: Sequence[str], turns: Sequence[Sequence[dict[str, Any]]], sentences: int) -> list[dict[str, Any]]:
    """The summary of each engine beside ours that it is compared with."""
    by_name = dict(zip(names, turns, strict=True))
    found: list[dict[str, Any]] = []
    for name, own in by_name.items():
        beams = list(dict.fromkeys(turn["beam"] for turn in own))
        found.append(summary(own, {beam: counterpart(name, beam, by_name) for beam in beams}, by_name, sentences))
    return found


def summary(
    turns: Sequence[dict[str, Any]],
    compared: Mapping[int, str],
    by_name: Mapping[str, Sequence[dict[str, Any]]],
    sentences: int,
) -> dict[str, Any]:
    """Speeds and latencies by beam, each beside the engine of ours that is named for it. `ratio` is ours over theirs in
    speed, `latency_ratio` ours over theirs in time."""
    found: list[dict[str, Any]] = []
    for beam, name in compared.items():
        bulk, alone = (picked(turns, what, beam) for what in ("bulk", "alone"))
        our_bulk, our_alone = (picked(by_name[name], what, beam) for what in ("bulk", "alone"))
        speeds = [sentences / turn["seconds"][0] for turn in bulk]
        waits = [second for turn in alone for second in turn["seconds"]]
        found.append(
            {
                "beam": beam,
                "compared_with": name,
                "sentences_per_second": measured(speeds),
                "tokens_per_second": measured([turn["tokens"] / turn["seconds"][0] for turn in bulk]),
                "tokens_per_second_alone": measured([turn["tokens"] / sum(turn["seconds"]) for turn in alone]),
                "ratio": within_rounds([sentences / turn["seconds"][0] for turn in our_bulk], speeds),
                "p50": quantile(waits, 0.5),
                "p95": quantile(waits, 0.95),
                "latency_ratio": within_rounds(middles(our_alone), middles(alone)),
            }
        )
    return {"beams": found, "peak_memory": turns[-1]["peak_memory"]}


def picked(turns: Sequence[dict[str, Any]], what: str, beam: int) -> list[dict[str, Any]]:
    return [turn for turn in turns if turn["what"] == what and turn["beam"] == beam]


def middles(turns: Sequence[dict[str, Any]]) -> list[float]:
    return [statistics.median(turn["seconds"]) for turn in turns]


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that so many others do not exceed."""
    ranked = sorted(values)
    return ranked[min(int(share * len(ranked)), len(ranked) - 1)]


def judge(
    engines: Sequence[dict[str, Any]],
    turns: Sequence[Sequence[dict[str, Any]]],
    texts: Pairs,
    opened: Opened,
    beams: Sequence[int],
) -> None:
    """BLEU of what each wrote, and on how many sentences it is what we wrote in fp32."""
    joiner = opened.tokenizer.joiner
    tokenize = usual_tokenizer(joiner, opened.config.data.target_language, texts.targets)
    for beam in beams:
        ours = texts_of(picked(turns[0], "bulk", beam)[0], opened.tokenizer)
        for engine, own in zip(engines, turns, strict=True):
            for measured_at in with_beam(engine, beam):
                written = texts_of(picked(own, "bulk", beam)[0], opened.tokenizer)
                scores = score_texts(written, texts, joiner, tokenize)
                same = sum(one == other for one, other in zip(written, ours, strict=True))
                measured_at |= {"bleu": scores.bleu, "signature": scores.bleu_signature, "same": same}


def with_beam(engine: dict[str, Any], beam: int) -> list[dict[str, Any]]:
    """What was measured of an engine with a beam; nothing of one that was not asked, or failed."""
    return [own for own in engine.get("beams", ()) if own["beam"] == beam]


def texts_of(turn: dict[str, Any], tokenizer: Tokenizer) -> list[str]:
    if "texts" in turn:
        return turn["texts"]
    return [target_text(tokenizer, row) for row in turn["rows"]]


def add_shares(engines: Sequence[dict[str, Any]], opened: Opened, settings: dict[str, Any], peaks: Peaks) -> None:
    """Of the measured peak of products in the engine's precision, and, one sentence at a time, of the bandwidth that
    reading the decoder's weights once for each token takes."""
    model: Any = opened.config.model
    if model.architecture != "transformer":
        return
    width, inner = model.width, 2 * model.width * model.feedforward
    sizes = opened.shapes
    source = model.encoder_layers * (4 * width**2 + inner) + model.decoder_layers * 2 * width**2
    target = model.decoder_layers * (6 * width**2 + inner) + width * sizes["target"]
    for engine in engines:
        if SHORTLIST in engine["name"]:  # how many products that takes differs from sentence to sentence
            continue
        whole = "int8" in engine["name"]
        peak, size = (peaks.int8, 1) if whole else (peaks.fp32, 4)
        for beam in engine["beams"]:
            tokens, sentences = beam["tokens_per_second"]["median"], beam["sentences_per_second"]["median"]
            of_source = source * settings["source_tokens"] / settings["count"] * sentences
            operations = 2 * (of_source + target * tokens * beam["beam"])
            beam["share_of_peak"] = share_of(operations, peak)
            alone = beam["tokens_per_second_alone"]["median"]
            beam["share_of_bandwidth"] = target * size * alone / peaks.bandwidth
