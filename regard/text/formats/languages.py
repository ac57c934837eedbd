"""Which two of a file's languages are the two sides. Tags are compared without case; a region is a detail."""

import re
from collections.abc import Iterable

from regard.errors import CorpusError
from regard.text.corpus import Reading

TAG = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*")
OTHER_NAMES = frozenset({"key", "tag", "url", "src", "tgt", "trg", "num", "idx", "ctx", "doc", "set"})
"""Names of two or three letters that columns have and languages have not."""
DOUBTFUL_NAMES = frozenset({"id", "no"})
"""Indonesian and Norwegian, or a number: languages only where there are not two others."""


NAMES = (
    "ar=arabic bg=bulgarian ca=catalan cs=czech da=danish de=german el=greek en=english es=spanish et=estonian "
    "fa=persian fi=finnish fr=french he=hebrew hi=hindi hr=croatian hu=hungarian id=indonesian it=italian ja=japanese "
    "ko=korean lt=lithuanian lv=latvian nl=dutch no=norwegian pl=polish pt=portuguese ro=romanian ru=russian sk=slovak "
    "sl=slovenian sr=serbian sv=swedish th=thai tr=turkish uk=ukrainian vi=vietnamese zh=chinese"
)
CODES = {name: code for code, _, name in (each.partition("=") for each in NAMES.split())}
"""The codes of languages that a table may call by their English names."""


def column_name(name: str) -> str:
    """The name of a column in its normal form; that of a language is its code: `English (US)` → `en`."""
    plain = normal(name)
    return CODES.get(re.sub(r"\s*[(\[].*|-.*", "", plain), plain)


def normal(tag: str) -> str:
    """`EN_us` → `en-us`."""
    return tag.strip().replace("_", "-").lower()


def primary(tag: str) -> str:
    """`en-us` → `en`."""
    return normal(tag).partition("-")[0]


def language_names(names: Iterable[str], wanted: tuple[str, str]) -> list[str]:
    """Those names of columns or keys that are languages."""
    tags = [name for name in names if TAG.fullmatch(name.strip()) and normal(name) not in OTHER_NAMES]
    sure = [tag for tag in tags if normal(tag) not in DOUBTFUL_NAMES]
    return sure if len(sure) >= 2 and not all(wanted) else tags


def pick_sides(reading: Reading, present: list[str], place: str, first: str = "") -> tuple[int, int] | None:
    """Where the source and the target stand among a unit's languages; None if one is missing.

    Languages that nobody named are learnt from the first unit that has exactly two (`first` is the source, if it is one
    of them), and then hold for the whole file; a third language is an error, because any choice would be a guess.
    """
    tags = [normal(tag) for tag in present]
    if not all(reading.languages):
        learnt = _learn(reading.languages, tags, place, first)
        if learnt is None:
            return None
        reading.languages = learnt
    source, target = (normal(language) for language in reading.languages)
    source_at, target_at = _find(source, tags, not_this=target), _find(target, tags, not_this=source)
    return None if source_at is None or target_at is None else (source_at, target_at)


def count_variants(reading: Reading, present: list[str]) -> int:
    """How many of a unit's variants are in one of the two languages, whatever their region."""
    wanted = {primary(language) for language in reading.languages}
    return sum(primary(tag) in wanted for tag in present)


def refuse_third(reading: Reading, present: list[str], place: str) -> None:
    """Raises for a language that is neither side, where the sides were learnt and not named."""
    source, target = (normal(language) for language in reading.languages)
    for tag in present:
        if not (_fits(source, normal(tag)) or _fits(target, normal(tag))):
            raise _ambiguous(place, [source, target, normal(tag)])


def _learn(given: tuple[str, str], tags: list[str], place: str, first: str) -> tuple[str, str] | None:
    known = [normal(language) for language in given if language]
    distinct = list(dict.fromkeys(tag for tag in tags if not any(_fits(language, tag) for language in known)))
    if len(distinct) > 2 - len(known):
        raise _ambiguous(place, [*known, *distinct])
    if len(distinct) + len(known) < 2:
        return None
    if known:
        return (given[0], distinct[0]) if given[0] else (distinct[0], given[1])
    if first and _fits(normal(first), distinct[1]) and not _fits(normal(first), distinct[0]):
        distinct.reverse()
    source, target = distinct
    same = primary(source) == primary(target)
    return (source, target) if same else (primary(source), primary(target))


def _find(wanted: str, tags: list[str], not_this: str) -> int | None:
    if wanted in tags:
        return tags.index(wanted)
    return next((at for at, tag in enumerate(tags) if tag != not_this and _fits(wanted, tag)), None)


def _fits(wanted: str, tag: str) -> bool:
    """`en` fits `en-us`, and a file's `en` will do where `en-us` is wanted; `en-gb` will not."""
    return wanted == tag or tag.startswith(wanted + "-") or wanted.startswith(tag + "-")


def _ambiguous(place: str, tags: list[str]) -> CorpusError:
    return CorpusError(
        f"{place} holds more than two languages ({', '.join(tags)}). Say which two are wanted: "
        f"--source-language and --target-language, or data.source_language and data.target_language for training."
    )
