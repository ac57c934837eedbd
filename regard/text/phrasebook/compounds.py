"""Families of two clauses, and questions: who, that, if, because, where, how many."""

from random import Random

from regard.text.phrasebook import french, words
from regard.text.phrasebook.actions import any_item, any_time
from regard.text.phrasebook.clauses import (
    Form,
    at_place,
    be,
    both,
    clause,
    french_predicate,
    is_adjective,
    question,
    sentence,
)
from regard.text.phrasebook.coreference import TOO
from regard.text.phrasebook.descriptions import SMALL_GROUPS, spot_of
from regard.text.phrasebook.lexicon import ACTIONS, ADJECTIVE, ADJECTIVES_OF, EVENTS, GROUPS, INTRANSITIVES, VERB, Noun
from regard.text.phrasebook.phrases import (
    HE,
    PRONOUN,
    PRONOUNS,
    THEY,
    WITHOUT_YOU,
    Pair,
    Phrase,
    adjectives_for,
    any_adjective,
    any_subject,
    is_mass,
    is_several,
    noun_phrase,
    object_phrase,
)


def relative_subject(rng: Random) -> Pair:
    """The boy who is eating an apple is my brother."""
    group = rng.choice(("people", "jobs", "animals"))
    noun, plural = rng.choice(GROUPS[group]), rng.random() < 0.3
    head = noun_phrase(noun, "the", plural)
    form = Form(rng.choice(("now", "past")))
    if group == "animals" or rng.random() < 0.4:
        verb = VERB[
            rng.choice(("dormir", "courir") if group == "animals" else ("chanter", "danser", "travailler", "pleurer"))
        ]
        rest = at_place(rng.choice(GROUPS["rooms"]))
    else:
        verb = rng.choice(ACTIONS)
        thing = object_phrase(rng, rng.choice(verb.objects), head)
        rest = thing.english, thing.french
    _, predicate = clause(head, verb, form)[0].split(head.english, 1)
    which = "that" if group == "animals" else "who"
    inner = f"{head.english} {which} {predicate}", f"{head.french} qui {french_predicate(head, verb, form)}"
    return sentence(_completed(rng, head, noun, both(inner, rest), form.tense == "past" and rng.random() < 0.6))


def _completed(rng: Random, head: Phrase, noun: Noun, inner: Pair, past: bool) -> Pair:
    """The main clause around a relative one."""
    adjective = any_adjective(rng, noun.group)
    degree = "" if adjective.english in words.UNGRADED else rng.choice(("", "very", "too"))
    whole = Phrase(*inner, head.is_feminine, head.is_plural, head.slot)
    return is_adjective(whole, adjective, past=past, degree=degree)


def relative_object(rng: Random) -> Pair:
    """The letter that Paul wrote was long; French's participle agrees with the letter."""
    verb = rng.choice((*ACTIONS, *EVENTS))
    noun = rng.choice([noun for noun in verb.objects if ADJECTIVES_OF[noun.group] and noun.group != "kin"])
    head = noun_phrase(noun, "the", not is_mass(noun) and rng.random() < 0.3)
    subject = any_subject(rng)
    form = Form("past" if verb in EVENTS else rng.choice(("now", "past", "past")))
    said, _ = clause(subject, verb, form)
    dit = f"{subject.french} {french_predicate(subject, verb, form, head)}"
    which = "whom" if noun.group in ("people", "jobs") else "that"
    inner = f"{head.english} {which} {said}", f"{head.french} que {dit}"
    return sentence(_completed(rng, head, noun, inner, form.tense == "past"))


def report(rng: Random) -> Pair:
    """I think that …, I don't know if …: que and si before a clause."""
    teller = any_subject(rng)
    kind = rng.choice(("penser", "croire", "espérer", "dire", "savoir", "si", "si"))
    about = any_subject(rng, WITHOUT_YOU)
    if about.english in teller.english:
        about = PRONOUN["he"]
    if rng.random() < 0.5:
        verb, form = rng.choice(INTRANSITIVES), Form(rng.choice(("now", "past", "future")))
        inner = both(clause(about, verb, form), any_time(rng, form, 0.6))
    else:
        adjective = any_adjective(rng, "kin")
        degree = "" if adjective.english in words.UNGRADED else rng.choice(("", "", "very", "too"))
        inner = is_adjective(about, adjective, past=rng.random() < 0.3, degree=degree)
    if kind == "si":
        outer = both(clause(teller, VERB["savoir"], Form("simple", "pas")), ("if", "si"))
    else:
        outer = both(clause(teller, VERB[kind], Form("simple")), ("that", "que"))
    return sentence(both(outer, inner))


def condition(rng: Random) -> Pair:
    """If he is tired, he must sleep."""
    who = rng.choice(WITHOUT_YOU)
    adjective, verb = any_adjective(rng, "kin"), rng.choice([verb for verb in INTRANSITIVES if verb.objects])
    degree = "" if adjective.english in words.UNGRADED else rng.choice(("", "very", "too"))
    first = is_adjective(who, adjective, negative=rng.random() < 0.3, degree=degree)
    form = Form(rng.choice(("can", "must", "future")), rng.choice(("", "pas")))
    then, alors = both(clause(who, verb, form), any_time(rng, form))
    return sentence((f"if {first[0]}, {then}", f"si {first[1]}, {alors}"))


def reason(rng: Random) -> Pair:
    """The girls aren't singing because they are tired: elles."""
    noun = rng.choice(GROUPS[rng.choice(("people", "people", "kin", "jobs"))])
    plural = is_several(rng, noun) or is_several(rng, noun)
    subject = noun_phrase(noun, rng.choice(("my", "your", "our")) if noun.group == "kin" else "the", plural)
    if rng.random() < 0.3:
        subject = rng.choice(WITHOUT_YOU)
    if subject in PRONOUNS:
        again = subject
    elif subject.is_plural:
        again = Phrase("they", "elles" if subject.is_feminine else "ils", subject.is_feminine, True, THEY)
    else:
        again = PRONOUN["she" if subject.is_feminine else "he"]
    form = Form(rng.choice(("now", "past", "past", "can", "want")), "pas")
    verb = rng.choice([verb for verb in INTRANSITIVES if verb.english != "arrive"])
    adjective = ADJECTIVE[rng.choice(TOO)]
    why = is_adjective(again, adjective, past=form.tense == "past", degree="too")
    return sentence(both(clause(subject, verb, form), ("because", "parce que"), why))


WH = {"where": "où", "when": "quand", "why": "pourquoi"}


def wh_question(rng: Random) -> Pair:
    kind = rng.choice(("adverb", "adverb", "what", "who", "many", "be"))
    subject = any_subject(rng)
    if kind == "adverb":
        verb, form = rng.choice(ACTIONS), Form(rng.choice(("now", "past", "past", "future", "can")))
        word, mot = any_item(rng, WH)
        thing = object_phrase(rng, rng.choice(verb.objects), subject)
        asked = both((word, mot), question(subject, verb, form), (thing.english, thing.french))
    elif kind == "what":
        verb = rng.choice(
            [verb for verb in (*ACTIONS, *EVENTS) if verb.objects[0].group not in ("kin", "people", "animals")]
        )
        form = Form(rng.choice(("past", "now", "want", "future", "can", "must")) if verb in ACTIONS else "past")
        said, dit = question(subject, verb, form)
        asked = both((f"what {said}", f"que {dit}"), any_time(rng, form, 0.6))
    elif kind == "who":
        verb, form = rng.choice(ACTIONS), Form(rng.choice(("now", "past", "want", "can")))
        thing = object_phrase(rng, rng.choice(verb.objects), Phrase("who", "qui", possessive="my"))
        asked = both(clause(Phrase("who", "qui"), verb, form), (thing.english, thing.french), any_time(rng, form))
    elif kind == "many":
        asked = _how_many(rng)
    else:
        noun = rng.choice(GROUPS[rng.choice(("things", "clothes", "reading", "kin", "bags"))])
        owner = rng.choice(("my", "your", "our"))
        thing = noun_phrase(
            noun, owner, rng.random() < 0.4, [] if noun.group == "kin" else adjectives_for(rng, noun, 0.4)
        )
        past = rng.random() < 0.4
        is_, est = be(thing, past)
        asked = f"where {is_} {thing.english}", f"où {est} {thing.french}"
    return sentence(asked, "?")


def _how_many(rng: Random) -> Pair:
    """Inversion, with its -t- between vowels."""
    noun = rng.choice(GROUPS[rng.choice((*SMALL_GROUPS, "animals", "kin"))])
    which = f"how many {noun.english_plural}", f"combien de {noun.french_plural}"
    if noun.group != "kin" and rng.random() < 0.4:
        where = spot_of(rng, noun)
        return both(which, ("are there", "y a-t-il"), where)
    who = rng.choice(PRONOUNS)
    do = "does" if who.slot == HE else "do"
    join = "-t-" if who.slot == HE else "-"
    return both(which, (f"{do} {who.english} have", f"{french.present('avoir')[who.slot]}{join}{who.french}"))
