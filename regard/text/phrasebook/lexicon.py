"""The words of `words.py` with their forms: nouns, adjectives, verbs."""

from dataclasses import dataclass, field
from functools import cache

from regard.text.phrasebook import english, french, words


@dataclass(frozen=True, slots=True)
class Noun:
    english: str
    english_plural: str
    french: str
    french_plural: str
    is_feminine: bool
    group: str


@dataclass(frozen=True, slots=True)
class Adjective:
    english: str
    french: str
    feminine: str
    plural: str
    before_vowel: str
    """The masculine before a vowel: bel, vieil, nouvel; mostly the same as `french`."""
    is_prenominal: bool

    def form(self, is_feminine: bool, is_plural: bool) -> str:
        if self.french == "marron":
            return self.french
        if is_feminine:
            return self.feminine + "s" * is_plural
        return self.plural if is_plural else self.french


@dataclass(frozen=True, slots=True)
class Verb:
    """`french` may carry a preposition that stays behind it: "entrer dans"."""

    english: str
    french: str
    objects: tuple[Noun, ...] = field(default=(), repr=False)


def _entries(table: str) -> list[tuple[str, str, str, str]]:
    """`a/b=c/d` … → (a, b, c, d), empty where nothing is written; no `=` is the same word in both languages."""
    entries: list[tuple[str, str, str, str]] = []
    for item in table.split():
        left, _, right = item.replace("_", " ").partition("=")
        lemma, _, second = left.partition("/")
        translation, _, other = (right or lemma).partition("/")
        entries.append((lemma, second, translation, other))
    return entries


def _nouns(group: str, masculine: str, feminine: str) -> list[Noun]:
    return [
        Noun(word, many or english.plural(word), mot, plusieurs or french.plural(mot), is_feminine, group)
        for table, is_feminine in ((masculine, False), (feminine, True))
        for word, many, mot, plusieurs in _entries(table)
    ]


def _jobs() -> list[tuple[Noun, Noun]]:
    """A job of a man and of a woman; "the baker" alone is translated by the first."""
    return [
        (
            Noun(word, english.plural(word), man, french.plural(man), False, "jobs"),
            Noun(word, english.plural(word), woman or man, french.plural(woman or man), True, "jobs"),
        )
        for word, _, man, woman in _entries(words.JOB_TABLE)
    ]


def _adjective(word: str, masculine: str, feminine: str) -> Adjective:
    plural = french.plural(masculine)
    before = words.BEFORE_VOWEL.get(masculine, masculine)
    return Adjective(
        word, masculine, feminine or french.feminine(masculine), plural, before, word in words.PRENOMINAL
    )  # fmt: skip


def _verbs(table: str) -> tuple[Verb, ...]:
    verbs: list[Verb] = []
    for line in table.strip().splitlines():
        name, *objects = line.split()
        ((word, _, verbe, _),) = _entries(name)
        nouns = (NOUN[item[1:]] if item[0] == "+" else item for item in objects)
        flat = tuple(noun for item in nouns for noun in (GROUPS[item] if isinstance(item, str) else (item,)))
        verbs.append(Verb(word, verbe, flat))
    return tuple(verbs)


ADVERB_TABLES = (
    words.FREQUENCIES, words.MANNERS, words.HOURS_OF_DAY, words.WHEREABOUTS, words.DEGREES, words.PREPOSITIONS,
)  # fmt: skip
JOBS = _jobs()
GROUPS: dict[str, list[Noun]] = {
    **{group: _nouns(group, *tables) for group, tables in words.NOUN_TABLE.items()},
    "jobs": [man for man, _ in JOBS],
}
NOUN = {noun.english.replace(" ", "_"): noun for nouns in GROUPS.values() for noun in nouns}

ADJECTIVE: dict[str, Adjective] = {
    word: _adjective(word, mot, other) for _, table in words.ADJECTIVE_TABLE for word, _, mot, other in _entries(table)
}
ADJECTIVES_OF: dict[str, list[Adjective]] = {
    group: [
        ADJECTIVE[word]
        for groups, table in words.ADJECTIVE_TABLE
        if group in groups.split()
        for word, *_ in _entries(table)
    ]
    for group in GROUPS
}

ACTIONS = _verbs(words.ACTION_TABLE)
EVENTS = _verbs(words.EVENT_TABLE)
STATES = _verbs(words.STATE_TABLE)
INTRANSITIVES = _verbs(words.INTRANSITIVE_TABLE)
VERB = {verb.french: verb for verb in (*ACTIONS, *EVENTS, *STATES, *INTRANSITIVES)} | {
    mot: Verb(word, mot) for word, _, mot, _ in _entries(words.OTHER_VERBS)
}


@cache
def lexemes() -> frozenset[tuple[str, str]]:
    """(kind, French lemma) of every content word; a job counts once for both genders."""
    found = {("noun", noun.french) for noun in NOUN.values()}
    found |= {("adjective", adjective.french) for adjective in ADJECTIVE.values()}
    found |= {("verb", mot) for mot in VERB}
    found |= {("number", mot) for mot in (*french.UNITS[1:], *french.TENS[2:], "cent", "mille")}
    found |= {("name", mot.split()[-1]) for mot in (*words.COUNTRIES.values(), *words.CITIES.values())}
    found |= {("noun", mot.split()[-1]) for mot in (*words.DAYS.values(), *words.GAMES.values())}
    found |= {("adverb", mot) for table in ADVERB_TABLES for mot in table.values()}
    return frozenset(found)


def lexeme_count() -> int:
    return len(lexemes())
