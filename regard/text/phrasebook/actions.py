"""Families of what is done: verbs with objects, places, times; likes, languages, timetables, commands.

Present progressive is the French present without an adverb, simple present the one with it; simple past is passé
composé, "was" is imparfait: so a sentence of either language has one of the other.
"""

from itertools import accumulate
from random import Random

from regard.text.phrasebook import english, french, words
from regard.text.phrasebook.clauses import (
    Form,
    at_place,
    both,
    clause,
    french_predicate,
    question,
    sentence,
    to_country,
)
from regard.text.phrasebook.lexicon import ACTIONS, EVENTS, GROUPS, INTRANSITIVES, NOUN, STATES, VERB, Verb
from regard.text.phrasebook.phrases import (
    PRONOUN,
    PRONOUNS,
    WITHOUT_YOU,
    Pair,
    Phrase,
    adjectives_for,
    any_subject,
    is_mass,
    is_several,
    named,
    noun_phrase,
    object_phrase,
)

ACTION_FORMS = (
    ("now", "", 5), ("now", "pas", 4), ("past", "", 7), ("past", "pas", 5), ("future", "", 3), ("future", "pas", 2),
    ("want", "", 3), ("want", "pas", 2), ("can", "", 2), ("can", "pas", 2), ("must", "", 2), ("simple", "jamais", 2),
    ("simple", "plus", 2), ("simple", "always", 1), ("simple", "often", 1), ("simple", "sometimes", 1),
    ("simple", "rarely", 1),
)  # fmt: skip

EVENT_FORMS = (("past", "", 3), ("past", "pas", 2))

STATE_FORMS = (("simple", "", 3), ("simple", "pas", 2), ("simple", "plus", 1))

VERB_WEIGHTS = {
    kind: list(accumulate(20 + len(verb.objects) for verb in verbs))
    for kind, verbs in (("a", ACTIONS), ("e", EVENTS), ("s", STATES))
}
"""A verb that goes with many nouns speaks more often, so that each noun is heard."""
TIMES = {"now": words.PRESENT_TIMES, "past": words.PAST_TIMES, "future": words.FUTURE_TIMES}

GIVING = tuple(VERB[mot] for mot in ("donner", "montrer", "envoyer", "prêter", "vendre", "apporter"))

LIKING = tuple(VERB[mot] for mot in ("aimer", "adorer", "détester", "préférer"))

TRANSPORT = tuple(NOUN[word] for word in ("bus", "train", "plane", "boat"))


def any_form(rng: Random, forms: tuple[tuple[str, str, int], ...]) -> Form:
    tense, negation, _ = rng.choices(forms, [weight for *_, weight in forms])[0]
    return Form(tense, negation)


def any_item(rng: Random, table: dict[str, str]) -> Pair:
    return rng.choice(list(table.items()))


def any_time(rng: Random, form: Form, chance: float = 0.25) -> Pair:
    if form.tense == "simple":
        return any_item(rng, words.HABIT_TIMES) if form.negation == "jamais" and rng.random() < 0.3 else ("", "")
    return any_item(rng, TIMES[form.tense]) if form.tense in TIMES and rng.random() < chance else ("", "")


def _verb_and_form(rng: Random) -> tuple[Verb, Form]:
    kind = rng.choices("aes", (7, 3, 2))[0]
    verbs, forms = {"a": (ACTIONS, ACTION_FORMS), "e": (EVENTS, EVENT_FORMS), "s": (STATES, STATE_FORMS)}[kind]
    return rng.choices(verbs, cum_weights=VERB_WEIGHTS[kind])[0], any_form(rng, forms)


def _subject_for(rng: Random, verb: Verb) -> Phrase:
    return any_subject(rng, WITHOUT_YOU if verb.french in french.WITH_ETRE else PRONOUNS)


def transitive(rng: Random) -> Pair:
    verb, form = _verb_and_form(rng)
    subject = any_subject(rng)
    habit = form.tense == "simple" and form.negation != "pas" and verb in ACTIONS
    noun = rng.choice(verb.objects)
    if verb.english in ("understand", "finish"):  # with "de" behind ne … pas, these would mean something else
        determiner = rng.choice(("the", "this", subject.possessive))
        thing = noun_phrase(noun, determiner, rng.random() < 0.35, adjectives_for(rng, noun, 0.3))
    else:
        thing = object_phrase(rng, noun, subject, negative=form.is_negative, habit=habit)
    rest = (thing.english, thing.french), any_time(rng, form)
    if not form.negation and rng.random() < 0.2:
        return sentence(both(question(subject, verb, form), *rest), "?")
    return sentence(both(clause(subject, verb, form), *rest))


def intransitive(rng: Random) -> Pair:
    verb, form = rng.choice(INTRANSITIVES), any_form(rng, ACTION_FORMS)
    subject = _subject_for(rng, verb)
    rest = _circumstance(rng, verb, subject)
    if form.tense == "simple" and not form.is_negative and rng.random() < 0.5:
        form, rest = Form("simple"), both(rest, any_item(rng, words.HABIT_TIMES))
    if not form.negation and rng.random() < 0.2:
        return sentence(both(question(subject, verb, form), rest), "?")
    return sentence(both(clause(subject, verb, form), rest, any_time(rng, form)))


def _circumstance(rng: Random, verb: Verb, subject: Phrase) -> Pair:
    if not verb.objects:
        friends = noun_phrase(NOUN["friend"], subject.possessive, True)
        with_friends = f"with {friends.english}", f"avec {friends.french}"
        return rng.choice((*words.HOURS_OF_DAY.items(), with_friends))
    if rng.random() < 0.3:
        moves = verb.english in ("walk", "run", "swim")
        return any_item(rng, words.MANNERS if moves else words.WHEREABOUTS)
    return at_place(rng.choice(verb.objects))


def motion(rng: Random) -> Pair:
    """To go to, to come back from, to stay at, to live in."""
    verb = VERB[rng.choice(("aller", "revenir", "rester", "habiter", "voyager"))]
    name = rng.choice([*words.COUNTRIES, *(words.CITIES if verb.french != "voyager" else ())])
    noun = rng.choice(GROUPS["places"])
    place = noun_phrase(noun, "the")
    origin = verb.french == "revenir"
    if verb.french in ("habiter", "voyager") or rng.random() < 0.4:
        preposition = {"aller": "to", "revenir": "from"}.get(verb.french, "in")
        rest = f"{preposition} {name}", to_country(name, origin=origin)
    else:
        preposition = {"aller": "to", "revenir": "from"}.get(verb.french, "at")
        rest = f"{preposition} {place.english}", f"{'de' if origin else 'à'} {place.french}"
    living = (("simple", "", 3), ("simple", "pas", 2), ("simple", "plus", 2), ("want", "", 2), ("want", "pas", 1))
    form = any_form(rng, living if verb.french == "habiter" else ACTION_FORMS)
    subject = _subject_for(rng, verb)
    if not form.negation and rng.random() < 0.2:
        return sentence(both(question(subject, verb, form), rest), "?")
    return sentence(both(clause(subject, verb, form), rest, any_time(rng, form)))


def giving(rng: Random) -> Pair:
    """To give something to someone: au, à la, à l', aux."""
    verb, form = rng.choice(GIVING), any_form(rng, ACTION_FORMS[:13])
    subject = any_subject(rng)
    groups = ("writing", "things") if verb.french == "envoyer" else ("things", "reading", "clothes", "food")
    noun = rng.choice(GROUPS[rng.choice(groups if verb.french != "prêter" else groups[:3])])
    habit = form.tense == "simple"
    thing = object_phrase(rng, noun, subject, negative=form.is_negative, habit=habit)
    whose = rng.choice(("kin", "people", "jobs", "names"))
    if whose == "names":
        other = named(rng.choice([name for name in words.NAMES if name not in subject.english]))
    else:
        determiner = subject.possessive if whose == "kin" else "the"
        someone = rng.choice(GROUPS[whose])
        other = noun_phrase(someone, determiner, is_several(rng, someone))
    rest = f"{thing.english} to {other.english}", f"{thing.french} à {other.french}"
    return sentence(both(clause(subject, verb, form), rest))


def liking(rng: Random) -> Pair:
    """What one likes has the definite article in French; what one likes to do has none."""
    subject, verb = any_subject(rng), rng.choice(LIKING)
    form = Form("simple", rng.choice(("", "", "pas")) if verb.english in ("like", "hate") else "")
    if rng.random() < 0.35:
        action = rng.choice([action for action in INTRANSITIVES if action.objects])
        rest = both((f"to {action.english}", action.french), at_place(rng.choice(action.objects)))
    else:
        noun = rng.choice(GROUPS[rng.choice(("food", "stuff", "drinks", "animals", "clothes", "vehicles", "things"))])
        thing = noun_phrase(noun, "all", not is_mass(noun), adjectives_for(rng, noun, 0.3))
        rest = thing.english, thing.french
    if not form.negation and rng.random() < 0.3:
        return sentence(both(question(subject, verb, form), rest), "?")
    return sentence(both(clause(subject, verb, form), rest))


def speaking(rng: Random) -> Pair:
    """Languages, games and instruments, each with its own preposition."""
    subject, form = any_subject(rng), any_form(rng, ACTION_FORMS)
    kind = rng.choice(("speak", "learn", "game", "instrument"))
    if kind in ("speak", "learn"):
        language, langue = any_item(rng, words.LANGUAGES)
        verb, rest = VERB["parler"], (language, langue)
        if kind == "learn":
            verb, rest = VERB["apprendre"], (language, f"le {langue}")
    elif kind == "game":
        game, jeu = any_item(rng, words.GAMES)
        verb, rest = VERB["jouer"], (game, f"à {jeu}")
    else:
        instrument = noun_phrase(rng.choice(GROUPS["instruments"]), "the")
        verb, rest = VERB["jouer"], (instrument.english, f"de {instrument.french}")
    if not form.negation and rng.random() < 0.3:
        return sentence(both(question(subject, verb, form), rest, any_time(rng, form)), "?")
    return sentence(both(clause(subject, verb, form), rest, any_time(rng, form)))


def timetable(rng: Random) -> Pair:
    """The train leaves at half past eight on Monday."""
    hour = rng.randint(2, 11)
    count, compte = english.number(hour), french.number(hour)
    hours = {
        f"{count} o'clock": f"{compte} heures",
        f"half past {count}": f"{compte} heures et demie",
        f"a quarter past {count}": f"{compte} heures et quart",
        f"a quarter to {count}": f"{compte} heures moins le quart",
    }
    time, heure = any_item(rng, hours)
    if rng.random() < 0.5:
        subject, verb = (
            noun_phrase(rng.choice(TRANSPORT), rng.choice(("the", "your", "our"))),
            rng.choice(("arriver", "partir")),
        )
    else:
        subject, verb = noun_phrase(rng.choice(GROUPS["places"]), "the"), rng.choice(("ouvrir", "fermer"))
    day = any_item(rng, words.HABIT_TIMES) if rng.random() < 0.7 else ("", "")
    return sentence(both(clause(subject, VERB[verb], Form("simple")), (f"at {time}", f"à {heure}"), day))


def command(rng: Random) -> Pair:
    verb = rng.choice([verb for verb in ACTIONS if verb.english not in ("wear", "drive")])
    you, negative = PRONOUN["you"], rng.random() < 0.4
    noun = rng.choice(verb.objects)
    adjectives = adjectives_for(rng, noun, 0.3)
    determiner = "your" if noun.group == "kin" else rng.choice(("the", "the", "this"))
    thing = noun_phrase(noun, determiner, not is_mass(noun) and rng.random() < 0.3, adjectives)
    tail = french_predicate(you, verb, Form("simple", "pas" if negative else ""))
    please, svp = ("please", ", s'il vous plaît") if rng.random() < 0.4 else ("", "")
    do = "don't" if negative else ""
    said, dit = sentence((f"{please} {do} {verb.english} {thing.english}", f"{tail} {thing.french}{svp}"))
    return said, dit
