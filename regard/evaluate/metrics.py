"""BLEU, chrF and TER by sacreBLEU: the numbers of its command line, with the signatures that make them comparable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from regard.errors import ConfigError, CorpusError
from regard.naming import counted, named

RESAMPLES = 1000
"""Of a bootstrap."""


@dataclass(frozen=True, kw_only=True)
class Scores:
    """A corpus, measured. A signature names everything that a score depends on beside the texts."""

    bleu: float
    """0 to 100."""
    bleu_signature: str
    precisions: tuple[float, ...]
    """Of 1-grams to 4-grams, in per cent; BLEU is their geometric mean times the brevity penalty."""
    brevity_penalty: float
    hypothesis_tokens: int
    """As BLEU's tokenizer counts them."""
    reference_tokens: int
    """Of the references closest in length."""
    chrf: float
    """chrF2, 0 to 100; cased, whatever BLEU's case is."""
    chrf_signature: str
    sentences: int
    ter: float | None = None
    """Translation edit rate in per cent of the reference's words, lower is better; None where it was not asked for."""
    ter_signature: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values for `json.dumps`, nothing rounded; without TER where it was not asked for."""
        left_out = ("ter", "ter_signature") if self.ter is None else ()
        return {name: value for name, value in asdict(self).items() if name not in left_out}

    def summary(self) -> str:
        """A line for each metric, for people."""
        precisions = "/".join(f"{precision:.1f}" for precision in self.precisions)
        length = f"length {self.hypothesis_tokens}/{self.reference_tokens}"
        count = counted(self.sentences, "sentences")
        detail = f"{precisions}, brevity penalty {self.brevity_penalty:.3f}, {length}, {count}"
        lines = [
            f"BLEU {self.bleu:.2f} ({detail}) {self.bleu_signature}",
            f"chrF {self.chrf:.2f} {self.chrf_signature}",
        ]
        if self.ter is not None:
            lines.append(f"TER {self.ter:.2f} {self.ter_signature}")
        return "\n".join(lines)


def evaluate_texts(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
    ter: bool = False,
) -> Scores:
    """What `sacrebleu REFERENCE … -i HYPOTHESES -m bleu chrf` (and with `ter` also `ter`) prints, to the last digit.

    Each of `references` is a whole list, as long as `hypotheses`. `tokenize` and `lowercase` are sacrebleu's
    `--tokenize` and `--lowercase`; as there, they concern BLEU alone. Where BLEU counts Chinese or Japanese characters,
    TER does so too (`--ter-normalized --ter-asian-support`); otherwise its settings are sacrebleu's.
    """
    check_counts(hypotheses, references)
    hypotheses = without_trailing_space(hypotheses)
    references = [without_trailing_space(reference) for reference in references]
    bleu_metric, chrf_metric = bleu_with(tokenize, lowercase), CHRF()
    bleu = bleu_metric.corpus_score(hypotheses, references)
    chrf = chrf_metric.corpus_score(hypotheses, references)
    ter_metric = ter_beside(tokenize) if ter else None
    return Scores(
        bleu=bleu.score,
        bleu_signature=str(bleu_metric.get_signature()),
        precisions=tuple(bleu.precisions),
        brevity_penalty=bleu.bp,
        hypothesis_tokens=bleu.sys_len,
        reference_tokens=bleu.ref_len,
        chrf=chrf.score,
        chrf_signature=str(chrf_metric.get_signature()),
        sentences=len(hypotheses),
        ter=None if ter_metric is None else ter_metric.corpus_score(hypotheses, references).score,
        ter_signature="" if ter_metric is None else str(ter_metric.get_signature()),
    )


def check_counts(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Refuse what cannot be compared line by line."""
    if not hypotheses:
        raise CorpusError("there are no translations to evaluate: the source is empty")
    if not references:
        raise ConfigError("there is no reference to evaluate against: give at least one")
    for number, reference in enumerate(references, start=1):
        if len(reference) != len(hypotheses):
            raise CorpusError(
                f"reference {number} has {counted(len(reference), 'lines')}, but there are {len(hypotheses)} "
                "translations. Give a reference with one line for each line of the source."
            )


def bleu_with(tokenize: str, lowercase: bool) -> BLEU:
    """sacreBLEU's BLEU, or one line that says why not."""
    known = list(BLEU.TOKENIZERS)
    if tokenize not in known:
        nearest = get_close_matches(tokenize, known, n=1)
        hint = f" Did you mean {nearest[0]!r}?" if nearest else ""
        raise ConfigError(f"{named('tokenize', tokenize)} is not one of {', '.join(known)}.{hint}")
    try:
        # Text meant for `none` is tokenised on purpose; sacreBLEU need not warn of it.
        return BLEU(tokenize=tokenize, lowercase=lowercase, force=tokenize == "none")
    except Exception as error:  # each tokenizer complains in its own way of a package or a download that it lacks
        reason = " ".join(str(error).split())
        raise ConfigError(f"sacreBLEU's tokenizer {tokenize!r} cannot be used here: {reason}") from error


def ter_beside(tokenize: str) -> TER:
    """sacreBLEU's TER; by characters of Chinese and Japanese where BLEU's tokenizer takes these apart."""
    apart = tokenize in ("zh", "char", "ja-mecab")
    return TER(normalized=apart, asian_support=apart)


def without_trailing_space(texts: Sequence[str]) -> list[str]:
    """As sacrebleu's command line reads its files."""
    return [text.rstrip() for text in texts]
