"""What one call may ask for, checked and put together before anything is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypedDict, cast

from regard.decode.alignment import Heads
from regard.decode.config import SAMPLING_DEFAULTS, SETTINGS, SearchConfig
from regard.decode.job import Job
from regard.decode.wording import Terms, read_terms
from regard.errors import ConfigError
from regard.naming import named
from regard.text.memory import Memory
from regard.text.placeholders import Keeping

LONG = ("split", "window", "refuse")
SPLIT = ("auto", "always", "never")
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
    early_stopping: bool | None
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
    ban: Sequence[str]
    require: Sequence[str]
    stop: Sequence[str]
    terms: str | Path | Terms | None
    """A terminology file, or its pairs."""
    keep: Sequence[str]
    """Regular expressions: what they match in the source comes out unchanged, as placeholders, tags, entities and
    addresses do anyway. `numbers` keeps numbers too, `none` nothing but what is asked for."""
    memory: str | Path | Memory | None
    """A translation memory, such as a TMX file: texts that are in it are not translated again."""
    memory_threshold: int
    """Texts of the memory that are like a text to so many per cent, 1 to 100, are reported."""
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
    split: str
    """Whether the sentences of a line are translated one by one: auto, where training knew fewer of them in a line or
    shorter lines; always; never."""
    long: str
    """What becomes of a sentence that is still longer than those the model was trained on: split, window or refuse."""
    batch_tokens: int
    """Bounds beam × sentences × padded source of a batch: memory, never the result."""
    batch_size: int
    """At most so many sentences in a batch; 0: as many as `batch_tokens` allows."""
    shortlist: int
    """Each source token brings so many target tokens; with the most frequent ones they are all that a translation may
    hold: faster, and not always the same. 0: the whole vocabulary."""
    progress: Callable[[int], None] | None
    """Called with the number of sentences done so far."""
    report: Callable[[str], None] | None
    """Called with what a person should know: lines that had to be split."""


SEARCH = frozenset(each.name for each in fields(SearchConfig))


class UnknownOptionError(ConfigError, TypeError):
    """A keyword that is none: a TypeError too, as Python has it."""


def nearest(name: str) -> str:
    """The one that was probably meant."""
    close = get_close_matches(name, Options.__annotations__, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def job_for(base: SearchConfig, options: Options, languages: tuple[str, str] = ("", "")) -> Job:
    """ConfigError for options that make no sense, or not together; `languages` are those of the model."""
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    unknown = given.keys() - Options.__annotations__.keys()
    if unknown:
        raise UnknownOptionError(f"there is no option {min(unknown)!r}{nearest(min(unknown))}")
    sampling = given.get("sample", base.sample)
    refuse_contradictions(given, sampling)
    terms, memory = given.get("terms", ()), memory_of(given.get("memory"), languages)
    if memory is not None and not len(memory):
        given.get("report", ignore)("the translation memory is empty: it has no translated pairs of these languages")
    return Job(
        config=search_config(base, given, sampling),
        prefix=text("prefix", given.get("prefix", "")),
        banned=several("ban", given.get("ban", ())),
        required=several("require", given.get("require", ())),
        stop=several("stop", given.get("stop", ())),
        terms=read_terms(Path(terms)) if isinstance(terms, str | Path) else term_pairs(terms),
        keep=Keeping.of(several("keep", given.get("keep", ()))),
        heads=Heads.parse(text("alignment", given["alignment"])) if "alignment" in given else None,
        attention=given.get("attention", False),
        trace=checked("trace", given.get("trace", 0), 0),
        tree=given.get("tree", False),
        tag=given.get("tag"),
        split=one_of("split", given.get("split", "auto"), SPLIT),
        long=one_of("long", given.get("long", "split"), LONG),
        batch_tokens=checked("batch_tokens", given.get("batch_tokens", BATCH_TOKENS), 1),
        batch_size=checked("batch_size", given.get("batch_size", 0), 0),
        shortlist=checked("shortlist", given.get("shortlist", 0), 0),
        progress=function("progress", given.get("progress", ignore)),
        report=function("report", given.get("report", ignore)),
        memory=memory,
        memory_threshold=percent("memory_threshold", given.get("memory_threshold", 75)),
    )


def search_config(base: SearchConfig, given: dict[str, Any], sampling: bool) -> SearchConfig:
    """The run's settings with those of the call over them; what belongs to sampling falls away without it."""
    search = {name: value for name, value in given.items() if name in SEARCH}
    for name, value in search.items():
        if isinstance(getattr(base, name), bool) and not isinstance(value, bool):
            raise ConfigError(f"{named(name, value)} should be True or False")
        SETTINGS[name].check(name, value)
    if not sampling:
        search = SAMPLING_DEFAULTS | search
        if "nbest" not in search:
            search["nbest"] = min(base.nbest, search.get("beam", base.beam))
    config = replace(base, **search)
    if (given.get("require") or given.get("terms")) and config.width < 2:
        raise ConfigError(
            f"{named('require')} and {named('terms')} need a beam of 2 or more, for example {named('beam', 5)}"
        )
    return config


def refuse_contradictions(given: dict[str, Any], sampling: bool) -> None:
    """Options that exclude each other, though each alone makes sense."""
    if not sampling:
        for name in SAMPLING_DEFAULTS:
            if name in given and given[name] != SAMPLING_DEFAULTS[name]:
                raise ConfigError(f"{named(name)} has no effect without {named('sample', True)}")
        return
    for name, harmless in {
        "beam": 1,
        "groups": 1,
        "coverage_penalty": 0,
        "early_stopping": False,
        "tree": False,
    }.items():
        if given.get(name, harmless) != harmless:
            raise ConfigError(f"{named(name)} searches and {named('sample', True)} draws; give one of the two")
    if given.get("require") or given.get("terms"):
        raise ConfigError(
            f"{named('require')} and {named('terms')} need a beam and {named('sample', True)} draws; leave one of them "
            f"out"
        )


def several(name: str, texts: Any) -> tuple[str, ...]:
    """One text is one, not its letters."""
    if isinstance(texts, str):
        return (texts,)
    if not isinstance(texts, Iterable):
        raise ConfigError(f"{named(name, texts)} should be a text, or several")
    return tuple(text(name, each) for each in texts)


def term_pairs(terms: Any) -> Terms:
    """Pairs of a source term and its translation, given as they are."""
    wanted = "should be a file, or pairs of a term and its translation"
    if not isinstance(terms, Iterable):
        raise ConfigError(f"{named('terms', terms)} {wanted}")
    for number, pair in enumerate(found := tuple(terms)):
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(isinstance(side, str) for side in pair):
            raise ConfigError(f"terms[{number}] is {pair!r}; {named('terms')} {wanted}")
    return tuple((source, target) for source, target in found)


def memory_of(memory: Any, languages: tuple[str, str]) -> Memory | None:
    if isinstance(memory, str | Path):
        return Memory.read(Path(memory), languages)
    if memory is not None and not isinstance(memory, Memory):
        raise ConfigError(f"{named('memory', memory)} should be a file of sentence pairs, such as TMX")
    return memory


def function(name: str, value: Any) -> Any:
    if not callable(value):
        raise ConfigError(f"{named(name, value)} should be a function")
    return cast(Any, value)


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{named(name)} should be text, not {value!r}")
    return value


def checked(name: str, value: Any, low: int) -> int:
    if not isinstance(value, int):
        raise ConfigError(f"{named(name, value)} should be a whole number")
    if value < low:
        raise ConfigError(f"{named(name, value)} must be {low} or more")
    return value


def percent(name: str, value: Any) -> int:
    if checked(name, value, 1) > 100:
        raise ConfigError(f"{named(name, value)} must lie between 1 and 100, in per cent")
    return value


def one_of(name: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise ConfigError(f"{named(name, value)} is not one of {', '.join(allowed)}")
    return value


def ignore(_: object) -> None:
    """The default of `progress` and `report`: does nothing."""
