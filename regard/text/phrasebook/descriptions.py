"""Families of what is: being, having, comparing, counting, belonging."""

from functools import cache
from random import Random

from regard.text.phrasebook import english, french, words
from regard.text.phrasebook.actions import any_item
from regard.text.phrasebook.clauses import (
    Form,
    at_place,
    be,
    both,
    clause,
    contracted,
    is_adjective,
    question,
    sentence,
)
from regard.text.phrasebook.lexicon import ADJECTIVES_OF, GROUPS, JOBS, NOUN, VERB, Noun
from regard.text.phrasebook.phrases import (
    PRONOUN,
    PRONOUNS,
    WITHOUT_YOU,
    Pair,
    Phrase,
    adjectives_for,
    any_adjective,
    any_subject,
    is_mass,
    named,
    negated,
    noun_phrase,
)

SURFACES = tuple(NOUN[word] for word in ("table", "bed", "chair", "sofa", "armchair", "desk", "carpet", "shelf"))

LANDMARKS = tuple(NOUN[word] for word in ("tree", "tower", "house", "wall", "barn", "gate", "car", "church"))
CONTAINERS = tuple(NOUN[word] for word in ("bag", "basket", "suitcase", "box", "drawer", "wardrobe", "kitchen", "car"))

SMALL_GROUPS = ("things", "dishes", "reading", "clothes", "food")


def spot_of(rng: Random, noun: Noun) -> Pair:
    """Where such a thing may be."""
    if noun.group == "animals" and rng.random() < 0.6:
        return at_place(rng.choice(GROUPS["rooms"]))
    if noun.group == "animals":
        before, avant = rng.choice((("behind", "derrière"), ("in front of", "devant")))
        place = noun_phrase(rng.choice(LANDMARKS), "the")
        return f"{before} {place.english}", f"{avant} {place.french}"
    if noun.group in ("food", "stuff", "drinks"):
        surfaces, containers = (NOUN["table"], NOUN["shelf"]), (NOUN["kitchen"], NOUN["basket"], NOUN["bag"])
    else:
        surfaces, containers = SURFACES, CONTAINERS
    if rng.random() < 0.6:
        prepositions = {"on": "sur"} if noun.group in ("food", "stuff", "drinks") else words.PREPOSITIONS
        before, avant = any_item(rng, prepositions)
        place = noun_phrase(rng.choice(surfaces), "the")
    else:
        before, avant = "in", "dans"
        place = noun_phrase(rng.choice(containers), rng.choice(("the", "my", "your")))
    return f"{before} {place.english}", f"{avant} {place.french}"


def existence(rng: Random) -> Pair:
    noun = rng.choice(GROUPS[rng.choice((*SMALL_GROUPS, "stuff", "drinks", "animals"))])
    plural = not is_mass(noun) and rng.random() < 0.5
    past, negative = rng.random() < 0.4, rng.random() < 0.3
    some = "any" if negative else rng.choice(("some", english.UNITS[rng.randint(2, 19)])) if plural else "some"
    thing = noun_phrase(noun, some if plural or is_mass(noun) else "a", plural, adjectives_for(rng, noun, 0.2))
    is_, _ = be(thing, past)
    avait = "avait" if past else "a"
    where = spot_of(rng, noun)
    if negative:
        thing = negated(thing)
        start = f"there {contracted(is_)} {thing.english}", f"il n'y {avait} pas {thing.french}"
    elif rng.random() < 0.2:
        start = f"{is_} there {thing.english.replace('some ', 'any ')}", f"est-ce que il y {avait} {thing.french}"
        return sentence(both(start, where), "?")
    else:
        start = f"there {is_} {thing.english}", f"il y {avait} {thing.french}"
    return sentence(both(start, where))


def location(rng: Random) -> Pair:
    plural, past, negative = rng.random() < 0.4, rng.random() < 0.4, rng.random() < 0.3
    if rng.random() < 0.5:
        subject, where = any_subject(rng), at_place(rng.choice(GROUPS["rooms"] + GROUPS["places"]))
    else:
        noun = rng.choice(GROUPS[rng.choice(SMALL_GROUPS)])
        subject = noun_phrase(noun, rng.choice(("the", "my", "your")), plural, adjectives_for(rng, noun, 0.3))
        where = spot_of(rng, noun)
    is_, est = be(subject, past)
    if negative:
        return sentence(both((f"{subject.english} {contracted(is_)}", f"{subject.french} ne {est} pas"), where))
    if rng.random() < 0.2:
        return sentence(both((f"{is_} {subject.english}", f"est-ce que {subject.french} {est}"), where), "?")
    return sentence(both((f"{subject.english} {is_}", f"{subject.french} {est}"), where))


def described(rng: Random) -> tuple[Phrase, Noun | None]:
    """Something or someone that an adjective can be said of."""
    if rng.random() < 0.35:
        return any_subject(rng, WITHOUT_YOU), None
    group = rng.choice([group for group, choices in ADJECTIVES_OF.items() if choices])
    noun = rng.choice(GROUPS[group])
    plural = not is_mass(noun) and rng.random() < 0.35
    determiner = rng.choice(("my", "your", "our") if group == "kin" else ("the", "the", "this", "your"))
    return noun_phrase(noun, determiner if group not in ("people", "jobs") else "the", plural), noun


def description(rng: Random) -> Pair:
    subject, noun = described(rng)
    adjective = any_adjective(rng, noun.group if noun else "people")
    degree = "" if adjective.english in words.UNGRADED else rng.choice(("", "", *words.DEGREES))
    past = rng.random() < 0.4
    if degree in ("", "very", "too") and rng.random() < 0.2:
        is_, _ = be(subject, past)
        said = is_adjective(subject, adjective, past=past, degree=degree)
        asked = f"{is_} {subject.english} {degree} {adjective.english}"
        return sentence((asked, f"est-ce que {said[1]}"), "?")
    negative = degree in ("", "very", "too") and rng.random() < 0.3
    return sentence(is_adjective(subject, adjective, past=past, negative=negative, degree=degree))


def comparison(rng: Random) -> Pair:
    if rng.random() < 0.5:
        one, two = any_subject(rng, WITHOUT_YOU), _someone(rng)
        if two.english in one.english:
            one = PRONOUN["she"]
        group = "kin"
    else:
        group = rng.choice(("animals", "vehicles", "clothes", "furniture", "things", "food", "bags", "reading"))
        nouns = rng.sample(GROUPS[group], 2)
        one, two = (noun_phrase(noun, rng.choice(("the", "the", "this", "my", "your"))) for noun in nouns)
    adjective = any_adjective(rng, group, graded=True)
    past = rng.random() < 0.3
    is_, est = be(one, past)
    mot = adjective.form(one.is_feminine, one.is_plural)
    kind = rng.choice(("more", "more", "as", "less"))
    if kind == "as":
        said, dit = f"as {adjective.english} as", f"aussi {mot} que"
    elif kind == "less":
        said, dit = f"less {adjective.english} than", f"moins {mot} que"
    else:
        better = {"good": "meilleur", "bad": "pire"}.get(adjective.english)
        said = f"{english.comparative(adjective.english)} than"
        dit = f"{_irregular(better, one) if better else f'plus {mot}'} que"
    return sentence((f"{one.english} {is_} {said} {two.english}", f"{one.french} {est} {dit} {two.french}"))


def _someone(rng: Random) -> Phrase:
    return named(rng.choice(list(words.NAMES))) if rng.random() < 0.5 else rng.choice(family())


def _irregular(comparative: str, subject: Phrase) -> str:
    if comparative == "pire":
        return "pire" + "s" * subject.is_plural
    return french.agree(comparative, subject.is_feminine, subject.is_plural)


def possession(rng: Random) -> Pair:
    subject = any_subject(rng)
    form = Form("simple", rng.choice(("", "", "", "pas", "plus")))
    group = rng.choice(("animals", "clothes", "things", "bags", "vehicles", "instruments", "kin", "furniture", "stuff"))
    noun = rng.choice(GROUPS[group])
    if group == "kin":
        noun = rng.choice([noun for noun in GROUPS["kin"] if noun.english not in ("father", "mother")])
        thing = noun_phrase(noun, *(("a", False) if form.negation else (english.UNITS[rng.randint(2, 9)], True)))
    elif is_mass(noun):
        thing = noun_phrase(noun, "any" if form.negation else "some")
    elif rng.random() < 0.4:
        some = {"pas": "any", "plus": "any"}.get(form.negation, english.UNITS[rng.randint(2, 19)])
        thing = noun_phrase(noun, some, True, adjectives_for(rng, noun, 0.4))
    else:
        thing = noun_phrase(noun, "a", False, adjectives_for(rng, noun, 0.5))
    thing = negated(thing) if form.is_negative else thing
    rest = thing.english, thing.french
    if not form.negation and rng.random() < 0.3:
        return sentence(both(question(subject, VERB["avoir"], form), rest), "?")
    return sentence(both(clause(subject, VERB["avoir"], form), rest))


def profession(rng: Random) -> Pair:
    """No article in French, and the gender of the one who has the job."""
    subject = rng.choice((*PRONOUNS[:3], *(named(name) for name in words.NAMES), *family()))
    job = rng.choice(JOBS)[subject.is_feminine]
    is_, est = be(subject)
    kind = rng.randrange(5)
    if kind == 0:
        pair = f"{subject.english} {contracted(is_)} a {job.english}", f"{subject.french} ne {est} pas {job.french}"
    elif kind == 1:
        pair = both(clause(subject, VERB["devenir"], Form("want")), (f"a {job.english}", job.french))
    elif kind == 2:
        pair = f"{is_} {subject.english} a {job.english}", f"est-ce que {subject.french} {est} {job.french}"
        return sentence(pair, "?")
    else:
        pair = f"{subject.english} {is_} a {job.english}", f"{subject.french} {est} {job.french}"
    return sentence(pair)


@cache
def family() -> list[Phrase]:
    return [noun_phrase(noun, owner) for noun in GROUPS["kin"] for owner in ("my", "your", "our")]


def numbers(rng: Random) -> Pair:
    """Ages, prices and counts."""
    value = rng.choice((rng.randint(2, 20), rng.randint(2, 99), rng.randint(2, 99), 100 * rng.randint(1, 10)))
    count, compte = english.number(value), french.number(value)
    kind = rng.choice(("age", "price", "count"))
    if kind == "age" and value < 100:
        subject = any_subject(rng)
        a = french.present("avoir")[subject.slot]
        return sentence((f"{subject.english} {be(subject)[0]} {count} years old", f"{subject.french} {a} {compte} ans"))
    if kind == "count":
        verb, noun = VERB[rng.choice(("acheter", "vendre", "compter"))], rng.choice(GROUPS[rng.choice(SMALL_GROUPS)])
        number = french.number(value, noun.is_feminine)
        rest = f"{count} {noun.english_plural}", f"{number} {noun.french_plural}"
        return sentence(both(clause(any_subject(rng), verb, Form("past")), rest))
    noun = rng.choice(GROUPS[rng.choice(("clothes", "things", "bags", "vehicles", "furniture"))])
    thing = noun_phrase(noun, rng.choice(("the", "this")), rng.random() < 0.3, adjectives_for(rng, noun, 0.3))
    return sentence(both(clause(thing, VERB["coûter"], Form("simple")), (f"{count} euros", f"{compte} euros")))


def belonging(rng: Random) -> Pair:
    """Paul's car is red."""
    group = rng.choice(("clothes", "things", "bags", "reading", "vehicles", "instruments", "animals"))
    noun, plural = rng.choice(GROUPS[group]), rng.random() < 0.3
    if rng.random() < 0.4:
        owner = named(rng.choice(list(words.NAMES)))
    else:
        whose = rng.choice(("kin", "people", "jobs"))
        owner = noun_phrase(rng.choice(GROUPS[whose]), rng.choice(("my", "your", "our")) if whose == "kin" else "the")
    thing = noun_phrase(noun, "the", plural)
    bare = thing.english.removeprefix("the ")
    subject = Phrase(
        f"{owner.english}'s {bare}", f"{thing.french} de {owner.french}", thing.is_feminine, plural, thing.slot
    )
    if rng.random() < 0.5:
        adjective = any_adjective(rng, noun.group)
        return sentence(is_adjective(subject, adjective, past=rng.random() < 0.3, negative=rng.random() < 0.3))
    who, verb = any_subject(rng), VERB[rng.choice(("chercher", "voir", "trouver", "vouloir"))]
    form = Form("past" if verb.french in ("voir", "trouver") else "now" if verb.french == "chercher" else "simple",
                rng.choice(("", "pas")))  # fmt: skip
    return sentence(both(clause(who, verb, form), (subject.english, subject.french)))


def presenting(rng: Random) -> Pair:
    """This is my sister; these are new shoes."""
    noun = rng.choice(
        GROUPS[rng.choice(("things", "clothes", "reading", "kin", "bags", "vehicles", "rooms", "food", "furniture"))]
    )
    plural, negative = rng.random() < 0.35, rng.random() < 0.25
    owned = noun.group == "kin" or rng.random() < 0.5
    determiner = rng.choice(("my", "your", "our")) if owned else ("some" if plural else "a")
    if determiner == "some":
        thing = noun_phrase(noun, "bare", True, adjectives_for(rng, noun, 1.0))
    else:
        thing = noun_phrase(noun, determiner, plural, adjectives_for(rng, noun, 0.3 if owned else 1.0))
    this, (is_, est) = "these" if plural else "this", be(thing)
    if negative:
        return sentence((f"{this} {contracted(is_)} {thing.english}", f"ce ne {est} pas {thing.french}"))
    return sentence((f"{this} {is_} {thing.english}", f"ce {est} {thing.french}"))
