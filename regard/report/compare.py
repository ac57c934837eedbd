"""Runs beside each other, on the same sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.about import run_facts
from regard.changes import changed_keys
from regard.config import task_of
from regard.data.columns import Column
from regard.decode.further import how_many, remedy
from regard.errors import ConfigError, RegardError
from regard.evaluate.by_length import Bucket, length_buckets, long_and_short, word_counts
from regard.evaluate.findings import Failures
from regard.evaluate.metrics import Scores
from regard.loading import load_translator, read_run
from regard.naming import counted
from regard.report.history import History
from regard.report.sentences import Sentences, choose_sentences
from regard.report.significance import Verdict, paired_bootstrap
from regard.tasks.failures import failures_of
from regard.tasks.pairs import score_texts, translate_pairs, usual_tokenizer
from regard.text.tokenizer import Tokenizer, join_pieces

Say = Callable[[str], None]
Verdicts = dict[str, Verdict]
"""By metric: bleu, chrf."""


@dataclass(frozen=True, slots=True)
class Runner:
    """A run that takes part."""

    path: Path
    facts: dict[str, Any]
    data: dict[str, Any]
    """What it was trained on: file → SHA-256."""
    tokenizer: Tokenizer
    history: History
    further: tuple[Column, ...]
    """What it reads besides the source."""

    @property
    def name(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run did."""

    runner: Runner
    scores: Scores
    verdicts: Verdicts
    by_length: tuple[Verdicts, ...]
    by_side: tuple[Verdicts, ...]
    failures: Failures
    changes: tuple[str, ...]
    """Settings in which it differs from the first run: `model.width: 512 → 256`."""

    def to_json(self) -> dict[str, Any]:
        facts, history = self.runner.facts, self.runner.history
        best = history.series("valid_loss").lowest()
        return {
            "run": self.runner.name,
            "parameters": facts["parameters"],
            "steps": history.step,
            "seconds": history.seconds,
            "tokens_per_second": history.speed(),
            "valid_loss": None if best is None else {"step": best[0], "loss": best[1]},
            "scores": self.scores.to_json(),
            "by_length": [bucket_json(each) for each in self.by_length],
            "by_side": [bucket_json(each) for each in self.by_side],
            "against_first": verdicts_json(self.verdicts),
            "failures": self.failures.to_json(),
            "changes": list(self.changes),
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """All of it; the first run is the one that the others are held against."""

    sentences: Sentences
    buckets: tuple[Bucket, ...]
    """By source length."""
    sides: tuple[Bucket, ...]
    """What is not long, and what is."""
    outcomes: tuple[Outcome, ...]
    signatures: dict[str, str]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values for `json.dumps`, nothing rounded."""
        return {
            "set": {"name": self.sentences.name, "sentences": len(self.sentences.pairs.sources)},
            "source_lengths": [bucket.to_json() for bucket in self.buckets],
            "sides": [bucket.to_json() for bucket in self.sides],
            "runs": [outcome.to_json() for outcome in self.outcomes],
            "signatures": self.signatures,
            "notes": list(self.notes),
        }


def verdicts_json(verdicts: Verdicts) -> dict[str, Any]:
    return {
        metric: {"score": verdict.score, "interval": verdict.interval, "p_value": verdict.p_value}
        for metric, verdict in verdicts.items()
    }


def bucket_json(verdicts: Verdicts) -> dict[str, Any]:
    return {metric: verdict.score for metric, verdict in verdicts.items()} | {"against_first": verdicts_json(verdicts)}


def compare_runs(
    paths: Sequence[Path],
    *,
    source: Path | None = None,
    reference: Path | None = None,
    also: Sequence[Path] = (),
    tag: str | None = None,
    precision: str | None = None,
    say: Say | None = None,
) -> Comparison:
    """Translates the same sentences with each run, as its recipe says, and measures. Refuses before it translates.

    `also` are files of further sources, aligned with `source`: a run that reads several has all of them, one that reads
    one has none. Without files, the sentences are those of the first run that reads all sources. `precision` is that of
    all runs; None leaves it to each.
    """
    refuse_paths(paths)
    runners = [read_runner(path) for path in paths]
    refuse_unlike(runners)
    further = further_columns(runners)
    refuse_further(further, also, source)
    if source is None:
        complete = next(runner.path for runner in runners if runner.further == further)
        sentences = choose_sentences(complete, source, reference, tag, further)
    else:
        sentences = choose_sentences(paths[0], source, reference, tag).beside(further, also)
    for runner in runners:
        read_run(runner.path)[0].weights_folder()
    pairs, joiner = sentences.pairs, joiner_of(runners[0])
    language = next((runner.facts["languages"][1] for runner in runners if runner.facts["languages"][1]), "")
    tokenize = usual_tokenizer(joiner, language, pairs.targets)
    found = [observed(runner, sentences, tokenize, precision, say) for runner in runners]
    texts = [own for own, _ in found]
    references = [join_pieces(text, joiner) for text in pairs.targets]
    signatures, verdicts = paired_bootstrap(texts, references, tokenize)
    lengths = word_counts([join_pieces(text, joiner) for text in pairs.sources])
    buckets, sides = length_buckets(lengths), long_and_short(lengths)
    by_bucket, by_side = (
        [bucket_verdicts(bucket, texts, references, tokenize) for bucket in some] for some in (buckets, sides)
    )
    outcomes = [
        Outcome(
            runner,
            score_texts(own, pairs, joiner, tokenize),
            verdicts[place],
            tuple(each[place] for each in by_bucket),
            tuple(each[place] for each in by_side),
            failures,
            tuple(changed_keys(runners[0].facts["config"], runner.facts["config"])),
        )
        for place, (runner, (own, failures)) in enumerate(zip(runners, found, strict=True))
    ]
    return Comparison(sentences, tuple(buckets), tuple(sides), tuple(outcomes), signatures, tuple(notes_on(runners)))


def bucket_verdicts(
    bucket: Bucket, texts: Sequence[Sequence[str]], references: Sequence[str], tokenize: str
) -> list[Verdicts]:
    """Of each run on the sentences in the bucket alone."""
    own = [[lines[place] for place in bucket.places] for lines in texts]
    return paired_bootstrap(own, [references[place] for place in bucket.places], tokenize)[1]


def refuse_paths(paths: Sequence[Path]) -> None:
    if len(paths) < 2:
        raise ConfigError("compare needs two runs or more, for example `regard compare runs/one runs/other`")
    seen: dict[Path, Path] = {}
    for path in paths:
        if path.resolve() in seen:
            raise ConfigError(f"{path} is the same run as {seen[path.resolve()]}; name each run once")
        seen[path.resolve()] = path


def read_runner(path: Path) -> Runner:
    run, config, document = read_run(path)
    if not {"source", "target"} <= {column.name for column in task_of(config).columns(config.data)}:
        raise ConfigError(f"{path} is a run of another task than translation, and only translations are compared")
    hashes = document["data"].get("hashes", {})
    further = tuple(column for column in task_of(config).columns(config.data) if column.name in config.data.further)
    return Runner(path, run_facts(path), hashes, Tokenizer.load(run.tokenizer), History.read(run.metrics), further)


def refuse_unlike(runners: Sequence[Runner]) -> None:
    """Runs that cannot be given the same sentences. A language that was never named agrees with any."""
    first = runners[0]
    for runner in runners[1:]:
        mine, its = first.facts["languages"], runner.facts["languages"]
        if any(one and other and one != other for one, other in zip(mine, its, strict=True)):
            raise ConfigError(
                f"{first.name} translates {' → '.join(mine)} and {runner.name} {' → '.join(its)}; "
                "compare runs of the same languages"
            )
        if joiner_of(first) != joiner_of(runner):
            raise ConfigError(
                f"{first.name} reads {form_of(first)} and {runner.name} {form_of(runner)}, so the same sentences "
                "cannot be given to both; compare runs on text of one form"
            )


def further_columns(runners: Sequence[Runner]) -> tuple[Column, ...]:
    """What those runs read that read several sources; ConfigError where they read different ones."""
    several = [runner for runner in runners if runner.further]
    for runner in several[1:]:
        if runner.further != several[0].further:
            raise ConfigError(
                f"{several[0].name} also reads {names_of(several[0].further)} and {runner.name} "
                f"{names_of(runner.further)}; compare runs with the same further sources"
            )
    return several[0].further if several else ()


def refuse_further(further: Sequence[Column], also: Sequence[Path], source: Path | None) -> None:
    """ConfigError where `--also` does not give what the runs read beside `source`."""
    if source is None and also:
        raise ConfigError("--also is aligned with --source; give --source and --reference too, or leave --also out")
    if source is not None and len(also) != len(further):
        reads = f"a run also reads {names_of(further)}" if further else "every run reads one source"
        raise ConfigError(f"{reads}, but {how_many(also)}; {remedy(further)}")


def names_of(columns: Sequence[Column]) -> str:
    return ", ".join(column.name for column in columns)


def joiner_of(runner: Runner) -> str:
    return runner.tokenizer.joiner


def form_of(runner: Runner) -> str:
    return f"text that is split with {joiner_of(runner)!r}" if joiner_of(runner) else "plain text"


def observed(
    runner: Runner, sentences: Sentences, tokenize: str, precision: str | None, say: Say | None
) -> tuple[list[str], Failures]:
    """The translations, with the run's own beam and penalties, and what is wrong with them."""
    pairs, also = sentences.pairs, sentences.also if runner.further else ()
    if say is not None:
        say(f"translating {counted(len(pairs.sources), 'sentences')} with {runner.name}")
    try:
        translator = load_translator(runner.path, precision=precision)
        found = translate_pairs(translator, pairs, also, attention=True, split="never")
        failures = failures_of(translator, pairs, found, also=also, tokenize=tokenize)
        return [translation.text for translation in found], failures
    except RegardError as error:
        raise type(error)(f"{runner.name}: {error}") from None


def notes_on(runners: Sequence[Runner]) -> list[str]:
    """What to bear in mind."""
    first, notes = runners[0], list[str]()
    for runner in runners[1:]:
        if sorted(runner.data.values()) != sorted(first.data.values()):
            notes.append(
                f"{runner.name} was trained on other files than {first.name}: "
                "see that none of them holds the sentences compared here"
            )
        if runner.tokenizer.to_json() != first.tokenizer.to_json():
            notes.append(
                f"{runner.name} has another vocabulary than {first.name}: their losses are a token of each one's own, "
                "and do not compare"
            )
    unfinished = [runner.name for runner in runners if not read_run(runner.path)[0].final.is_dir()]
    notes += [f"{name} has not ended; its last checkpoint is compared" for name in unfinished]
    return notes
