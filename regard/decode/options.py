"""What one call may ask for, checked and put together before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypedDict

from regard.decode.alignment import Heads
from regard.decode.config import SAMPLING_DEFAULTS, SearchConfig
from regard.decode.job import Job
from regard.decode.wording import Terms, read_terms
from regard.errors import ConfigError
from regard.text.keep import compiled

LONG = ("split", "window", "refuse")
BATCH_TOKENS = 8192


class SearchOptions(TypedDict, total=False):
    """The fields of `SearchConfig`, which says what they mean. What is None or missing is taken from the run."""

    beam: int | None
    length_penalty: float | None
    length_form: str | None
    coverage_penalty: float | None
    groups: int | None
    diversity: float | None
    nbest: int | None
    max_extra: int | None
    max_length: int | None
    min_length: int | None
    sample: bool | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    typical: float | None
    seed: int | None
    repetition_penalty: float | None
    frequency_penalty: float | None
    presence_penalty: float | None
    no_repeat_ngram: int | None


class Options(SearchOptions, total=False):
    """Keyword arguments of `Translator.translate`."""

    # The wording: as in `Job`.
    prefix: str | None
    banned: Sequence[str]
    required: Sequence[str]
    stop: Sequence[str]
    terms: str | Path | Terms | None
    """A terminology file, or its pairs."""
    keep: Sequence[str]
    """Patterns: what they match in the source comes out unchanged."""
    # What is given beside the text.
    alignment: str | None
    """`mean`, or the layer and head (`4.1`) whose attention says which source word each word came from."""
    attention: bool
    """Where the model looked for each token: `Translation.attention`."""
    trace: int
    """So many best next tokens at each step, and where the model looked."""
    tree: bool
    """The search itself: every hypothesis that was kept or dropped."""
    # How.
    tag: str | None
    """The corpus tag that the model was trained to see in front of the source."""
    long: str
    """What becomes of an input longer than those the model was trained on: split, window or refuse."""
    batch_tokens: int
    """Bounds beam × sentences × padded source of a batch: memory, never the result."""
    batch_size: int
    """At most so many sentences in a batch; 0: as many as `batch_tokens` allows."""
    progress: Callable[[int], None] | None
    """Called with the number of sentences done so far."""
    report: Callable[[str], None] | None
    """Called with what a person should know: lines that had to be split."""


SEARCH = frozenset(each.name for each in fields(SearchConfig))


def job_for(base: SearchConfig, options: Options) -> Job:
    """ConfigError for options that make no sense, or not together."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    unknown = given.keys() - Options.__annotations__.keys()
    if unknown:
        raise TypeError(f"translate() has no option {min(unknown)!r}")
    sampling = given.get("sample", base.sample)
    refuse_contradictions(given, sampling)
    terms = given.get("terms", ())
    return Job(
        config=search_config(base, given, sampling),
        prefix=given.get("prefix", ""),
        banned=several(given.get("banned", ())),
        required=several(given.get("required", ())),
        stop=several(given.get("stop", ())),
        terms=read_terms(Path(terms)) if isinstance(terms, str | Path) else tuple(terms),
        keep=compiled(several(given.get("keep", ()))),
        heads=Heads.parse(given["alignment"]) if "alignment" in given else None,
        attention=given.get("attention", False),
        trace=checked("trace", given.get("trace", 0), 0),
        tree=given.get("tree", False),
        tag=given.get("tag"),
        long=one_of("long", given.get("long", "split"), LONG),
        batch_tokens=checked("batch_tokens", given.get("batch_tokens", BATCH_TOKENS), 1),
        batch_size=checked("batch_size", given.get("batch_size", 0), 0),
        progress=given.get("progress", ignore),
        report=given.get("report", ignore),
    )


def search_config(base: SearchConfig, given: dict[str, Any], sampling: bool) -> SearchConfig:
    """The run's settings with those of the call over them; what belongs to sampling falls away without it."""
    search = {name: value for name, value in given.items() if name in SEARCH}
    if not sampling:
        search = SAMPLING_DEFAULTS | search
        if "nbest" not in search:
            search["nbest"] = min(base.nbest, search.get("beam", base.beam))
    config = replace(base, **search)
    if (given.get("required") or given.get("terms")) and config.width < 2:
        raise ConfigError("--require and --terms need a beam of 2 or more, for example --beam 5")
    return config


def refuse_contradictions(given: dict[str, Any], sampling: bool) -> None:
    """Options that exclude each other, though each alone makes sense."""
    if not sampling:
        for name in SAMPLING_DEFAULTS:
            if name in given and given[name] != SAMPLING_DEFAULTS[name]:
                raise ConfigError(f"{option(name)} has no effect without --sample")
        return
    for name, harmless in {"beam": 1, "groups": 1, "coverage_penalty": 0, "tree": False}.items():
        if given.get(name, harmless) != harmless:
            raise ConfigError(f"{option(name)} searches and --sample draws; give one of the two")
    if given.get("required") or given.get("terms"):
        raise ConfigError("--require and --terms need a beam and --sample draws; leave one of them out")


def several(texts: str | Sequence[str]) -> tuple[str, ...]:
    """One text is one, not its letters."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


def option(name: str) -> str:
    """A keyword as the command line spells it."""
    return f"--{name.replace('_', '-')}"


def checked(name: str, value: int, low: int) -> int:
    if value < low:
        raise ConfigError(f"{option(name)} {value} must be {low} or more")
    return value


def one_of(name: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise ConfigError(f"{option(name)} {value!r} is not one of {', '.join(allowed)}")
    return value


def ignore(_: object) -> None:
    """The default of `progress` and `report`: does nothing."""
