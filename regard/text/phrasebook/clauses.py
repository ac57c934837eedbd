"""Clauses in both languages at once: a subject with its verb in every form, with an adjective, with a place."""

from dataclasses import dataclass

from regard.text.phrasebook import english, french, words
from regard.text.phrasebook.lexicon import Adjective, Noun, Verb
from regard.text.phrasebook.phrases import HE, Pair, Phrase, noun_phrase

_BE = ("am", "is", "are", "are", "are")

_WERE = ("was", "was", "were", "were", "were")


@dataclass(frozen=True, slots=True)
class Form:
    """What is said of the verb: time or modal, and polarity."""

    tense: str
    """now, past, simple, future, want, can, must."""
    negation: str = ""
    """"", pas, jamais, plus, or an adverb of frequency in English."""

    @property
    def is_negative(self) -> bool:
        return self.negation in ("pas", "jamais", "plus")


def clause(subject: Phrase, verb: Verb, form: Form) -> Pair:
    """Subject and verb in both languages; objects follow."""
    return (
        f"{subject.english} {_english_predicate(subject, verb.english, form)}",
        f"{subject.french} {french_predicate(subject, verb, form)}",
    )


def question(subject: Phrase, verb: Verb, form: Form) -> Pair:
    """The same as a yes/no question with "est-ce que"; affirmative forms only."""
    operator, rest = _operator(subject, verb.english, form.tense)
    finite = f"{subject.french} {french_predicate(subject, verb, form)}"
    return f"{operator} {subject.english} {rest}", f"est-ce que {finite}"


def _operator(subject: Phrase, verb: str, tense: str) -> Pair:
    """The auxiliary that takes n't and goes before the subject, and what stays behind."""
    do = "does" if subject.slot == HE else "do"
    return {
        "now": (be(subject)[0], english.gerund(verb)),
        "future": (be(subject)[0], f"going to {verb}"),
        "past": ("did", verb),
        "simple": (do, verb),
        "want": (do, f"want to {verb}"),
        "can": ("can", verb),
        "must": ("must", verb),
        "could": ("could", verb),
        "wanted": ("did", f"want to {verb}"),
    }[tense]


def _english_predicate(subject: Phrase, verb: str, form: Form) -> str:
    operator, rest = _operator(subject, verb, form.tense)
    if form.negation == "pas":
        return f"{contracted(operator)} {rest}"
    adverb = {"jamais": "never ", "plus": "no longer "}.get(form.negation, f"{form.negation} " if form.negation else "")
    if operator in ("do", "does"):
        return adverb + (english.third_person(rest) if subject.slot == HE else rest)
    if form.tense == "past":
        return adverb + english.past(verb)
    return f"{operator} {adverb}{rest}"


def contracted(operator: str) -> str:
    return {"am": "am not", "can": "can't"}.get(operator, f"{operator}n't")


def french_predicate(subject: Phrase, verb: Verb, form: Form, agreement: Phrase | None = None) -> str:
    """Finite verb, ne … pas around it, the rest. With `agreement`, an object before avoir, the participle agrees."""
    infinitive, _, preposition = verb.french.partition(" ")
    finite, rest = _finite(subject, infinitive, form.tense, agreement)
    adverb = words.FREQUENCIES.get(form.negation, form.negation)
    return " ".join(("ne" * form.is_negative, finite, adverb, rest, preposition))


MODALS = {"want": "vouloir", "can": "pouvoir", "must": "devoir", "future": "aller"}

PAST_MODALS = {"could": "pouvoir", "wanted": "vouloir"}


def _finite(subject: Phrase, infinitive: str, tense: str, agreement: Phrase | None) -> Pair:
    if tense in MODALS:
        return french.present(MODALS[tense])[subject.slot], infinitive
    if tense in PAST_MODALS:
        return french.present("avoir")[subject.slot], f"{french.participle(PAST_MODALS[tense])} {infinitive}"
    if tense != "past":
        return french.present(infinitive)[subject.slot], ""
    with_etre = infinitive in french.WITH_ETRE
    participle = french.participle(infinitive)
    owner = subject if with_etre else agreement
    if owner is not None:
        participle = french.agree(participle, owner.is_feminine, owner.is_plural)
    return french.present("être" if with_etre else "avoir")[subject.slot], participle


def be(subject: Phrase, past: bool = False) -> Pair:
    """To be, être: present or imparfait."""
    return (_WERE if past else _BE)[subject.slot], (french.WAS if past else french.present("être"))[subject.slot]


def is_adjective(subject: Phrase, adjective: Adjective, *, past: bool = False, negative: bool = False,
                 degree: str = "") -> Pair:  # fmt: skip
    """Subject, to be, adjective."""
    is_, est = be(subject, past)
    mot = adjective.form(subject.is_feminine, subject.is_plural)
    ne, pas = ("ne", "pas") if negative else ("", "")
    return (
        f"{subject.english} {contracted(is_) if negative else is_} {degree} {adjective.english}",
        f"{subject.french} {ne} {est} {pas} {words.DEGREES.get(degree, '')} {mot}",
    )


def at_place(noun: Noun) -> Pair:
    """Where: "in the kitchen", dans la cuisine; "at the market", au marché."""
    place = noun_phrase(noun, "the")
    if noun.group == "places":
        return f"at {place.english}", f"à {place.french}"
    return f"in {place.english}", f"dans {place.french}"


def to_country(country: str, *, origin: bool = False) -> str:
    """French for to or in a country or city; with `origin`, for from it."""
    if country in words.CITIES:
        return f"{'de' if origin else 'à'} {words.CITIES[country]}"
    name = words.COUNTRIES[country]
    if name.startswith("la "):
        return f"{'de' if origin else 'en'} {name.removeprefix('la ')}"
    return f"{'de' if origin else 'à'} {name}"


def both(*parts: Pair) -> Pair:
    """The English parts in a row, and the French parts in a row."""
    return " ".join(part[0] for part in parts), " ".join(part[1] for part in parts)


def sentence(pair: Pair, mark: str = ".") -> Pair:
    return english.sentence(pair[0], mark), french.sentence(pair[1], mark)
