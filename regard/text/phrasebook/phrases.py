"""Noun phrases in both languages at once, agreement included; subjects and objects drawn from the lexicon.

French is put together with every "le", "de", "que" in full; `french.sentence` elides and contracts at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from regard.text.phrasebook import english, french, words
from regard.text.phrasebook.lexicon import ADJECTIVES_OF, GROUPS, Adjective, Noun

Pair = tuple[str, str]

I, HE, WE, YOU, THEY = range(5)
"""The five subjects of a verb's forms; HE is every third person singular."""

POSSESSIVES = {  # masculine, feminine, plural
    "my": ("mon", "ma", "mes"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "your": ("votre", "votre", "vos"),
    "their": ("leur", "leur", "leurs"),
}

QUANTITIES = {"a lot of": "beaucoup de", "several": "plusieurs", "a few": "quelques"}


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase or pronoun."""

    english: str
    french: str
    is_feminine: bool = False
    is_plural: bool = False
    slot: int = HE
    possessive: str = "his"
    """The English possessive that means it: a French son/sa is only unambiguous beside its owner."""


PRONOUNS = (
    Phrase("I", "je", False, False, I, "my"),
    Phrase("he", "il", False, False, HE, "his"),
    Phrase("she", "elle", True, False, HE, "her"),
    Phrase("we", "nous", False, True, WE, "our"),
    Phrase("you", "vous", False, False, YOU, "your"),
    Phrase("they", "ils", False, True, THEY, "their"),
)

PRONOUN = {pronoun.english: pronoun for pronoun in PRONOUNS}

WITHOUT_YOU = tuple(pronoun for pronoun in PRONOUNS if pronoun.slot != YOU)
"""For what agrees: "you are tired" has four translations."""


def noun_phrase(noun: Noun, determiner: str, plural: bool = False, adjectives: Sequence[Adjective] = ()) -> Phrase:
    """`determiner`: "the", "a", "some", "any", "this", a possessive, a quantity, a number in English words;
    "bare" ("She eats bread", du pain), "none" ("She never eats bread", de pain) and "all" ("She likes bread", le pain)
    write nothing in English."""
    front = [adjective for adjective in adjectives if adjective.is_prenominal]
    behind = [adjective.form(noun.is_feminine, plural) for adjective in adjectives if not adjective.is_prenominal]
    head = noun.french_plural if plural else noun.french
    following = head
    ahead: list[str] = []
    for adjective in reversed(front):
        elides = not plural and not noun.is_feminine and french.starts_with_vowel(following)
        following = adjective.before_vowel if elides else adjective.form(noun.is_feminine, plural)
        ahead.insert(0, following)
    word = noun.english_plural if plural else noun.english
    before, avant = _determine(determiner, noun, plural, following, bool(front))
    return Phrase(
        " ".join((before, *(adjective.english for adjective in adjectives), word)).strip(),
        " ".join((avant, *ahead, head, *behind)).strip(),
        noun.is_feminine,
        plural,
        THEY if plural else HE,
        "their" if plural else "her" if noun.is_feminine else "his",
    )


def _determine(determiner: str, noun: Noun, plural: bool, following: str, has_front: bool) -> Pair:
    """The determiner in both languages; `following` is the French word behind it."""
    definite = "les" if plural else "la" if noun.is_feminine else "le"
    if determiner in ("the", "all"):
        return ("the" if determiner == "the" else ""), definite
    if determiner == "a":
        return "a", "une" if noun.is_feminine else "un"
    if determiner in ("some", "bare"):
        french_some = f"de {definite}" if not plural else "de" if has_front else "des"
        return ("some" if determiner == "some" else ""), french_some
    if determiner in ("any", "none"):
        return ("any" if determiner == "any" else ""), "de"
    if determiner == "this":
        masculine = "cet" if french.starts_with_vowel(following) else "ce"
        return ("these", "ces") if plural else ("this", "cette" if noun.is_feminine else masculine)
    if determiner in POSSESSIVES:
        masculine, feminine, several = POSSESSIVES[determiner]
        if plural:
            return determiner, several
        return determiner, feminine if noun.is_feminine and not french.starts_with_vowel(following) else masculine
    if determiner in QUANTITIES:
        return determiner, QUANTITIES[determiner]
    value = english.UNITS.index(determiner)
    return determiner, french.number(value, noun.is_feminine)


def adjectives_for(rng: Random, noun: Noun, chance: float) -> list[Adjective]:
    """No adjective, one that goes with the noun, or one before it and a colour behind it in French."""
    choices = [adjective for adjective in ADJECTIVES_OF[noun.group] if adjective.english not in words.PREDICATIVE]
    if not choices or rng.random() >= chance:
        return []
    first = rng.choice(choices)
    if first.is_prenominal and rng.random() < 0.2:
        behind = [adjective for adjective in choices if adjective.english in words.CLASSIFYING]
        return [first, rng.choice(behind)] if behind else [first]
    return [first]


SINGLE_GROUPS = ("people", "jobs", "rooms", "places", "ways", "heights", "others")
"""What one has, sees or does something to one by one: no "some"."""


def any_adjective(rng: Random, group: str, *, graded: bool = False) -> Adjective:
    """One that can be said of such a noun with être; `graded`: one that has more and less."""
    unfit = words.ATTRIBUTIVE | (words.UNGRADED if graded else frozenset())
    return rng.choice([adjective for adjective in ADJECTIVES_OF[group] if adjective.english not in unfit])


def is_several(rng: Random, noun: Noun) -> bool:
    """Sometimes true, for those of whom one has several."""
    return noun.english not in ("father", "mother") and rng.random() < 0.25


def is_mass(noun: Noun) -> bool:
    return noun.group in ("stuff", "drinks")


def any_subject(rng: Random, pronouns: Sequence[Phrase] = PRONOUNS) -> Phrase:
    """A pronoun, a name or two, someone of the family, a person. "They" is ils, "I" and "we" are masculine."""
    kind = rng.choices("pntfj", (45, 20, 5, 15, 15))[0]
    if kind == "p":
        return rng.choice(pronouns)
    if kind == "n":
        return named(rng.choice(list(words.NAMES)))
    if kind == "t":
        one, two = rng.sample(list(words.NAMES), 2)
        feminine = words.NAMES[one] and words.NAMES[two]
        return Phrase(f"{one} and {two}", f"{one} et {two}", feminine, True, THEY, "their")
    if kind == "f":
        relative = rng.choice(GROUPS["kin"])
        return noun_phrase(relative, rng.choice(("my", "your", "our")), is_several(rng, relative))
    noun = rng.choice(GROUPS[rng.choice(("people", "people", "jobs"))])
    return noun_phrase(noun, "the", rng.random() < 0.3, adjectives_for(rng, noun, 0.2))


def named(name: str) -> Phrase:
    return Phrase(name, name, words.NAMES[name], possessive="her" if words.NAMES[name] else "his")


def object_phrase(rng: Random, noun: Noun, owner: Phrase, *, negative: bool = False, habit: bool = False) -> Phrase:
    """A direct object; under negation un, une, du, des become de."""
    adjectives = adjectives_for(rng, noun, 0.3)
    some = ("none" if negative else "bare") if habit else "any" if negative else "some"
    if is_mass(noun):
        others = () if habit else ("the", "this") if negative else ("the", "this", "a lot of")
        return noun_phrase(noun, rng.choice((some, some, *others)), False, adjectives)
    if noun.group == "kin":
        return noun_phrase(noun, owner.possessive, is_several(rng, noun), adjectives)
    if habit and noun.group not in SINGLE_GROUPS:
        owned = noun.group in ("clothes", "things", "bags", "reading") and rng.random() < 0.3
        return noun_phrase(noun, owner.possessive if owned else some, not owned, adjectives)
    plural = rng.random() < 0.35
    if noun.group in SINGLE_GROUPS:
        determiner = rng.choice(("the", "the", "the" if plural or habit or negative else "a", "this"))
    elif plural:
        determiner = rng.choice(("the", "the", "these", owner.possessive, "some", "some", "count", "few"))
    else:
        determiner = rng.choice(("the", "the", "this", owner.possessive, "a", "a", "a"))
    phrase = noun_phrase(noun, _settled(rng, determiner, negative), plural, adjectives)
    return negated(phrase) if negative else phrase


def _settled(rng: Random, determiner: str, negative: bool) -> str:
    if determiner in ("some", "count", "few") and negative:
        return "any"
    if determiner == "count":
        return english.UNITS[rng.randint(2, 12)]
    if determiner == "few":
        return rng.choice(list(QUANTITIES))
    return "this" if determiner == "these" else determiner


def negated(phrase: Phrase) -> Phrase:
    """The object "a cat" behind ne … pas: de chat."""
    for article in ("un ", "une "):
        if phrase.french.startswith(article):
            return replace(phrase, french="de " + phrase.french.removeprefix(article))
    return phrase
