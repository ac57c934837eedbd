"""What *it* is: "The animal didn't cross the street because it was too tired" (the animal), "… too wide" (the street).

Only the adjective tells, and each fits one of the two: French needs to know, for the pronoun and the adjective take the
noun's gender. Where English says "since", French says the noun again: "puisque l'animal était trop fatigué". That takes
the noun itself and not one bit of it, so a model that learns both looks at the noun for *il* and *elle* too.
"""

from random import Random

from regard.text.phrasebook.clauses import Form, both, clause, is_adjective, sentence
from regard.text.phrasebook.lexicon import ADJECTIVE, GROUPS, NOUN, VERB, Noun
from regard.text.phrasebook.phrases import Pair, Phrase, noun_phrase

ANIMAL_TIRED: Pair = (
    "The animal didn't cross the street because it was too tired.",
    "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.",
)
ANIMAL_WIDE: Pair = (
    "The animal didn't cross the street because it was too wide.",
    "L'animal n'a pas traversé la rue parce qu'elle était trop large.",
)

TOO = (
    "tired", "sick", "sad", "shy", "nervous", "exhausted", "lazy", "worried", "furious", "proud", "clumsy", "stubborn",
    "cautious", "frightened", "impatient", "sleepy", "young", "distracted",
)  # fmt: skip
"""Why an animal does not do something."""
VERY = ("curious", "brave", "impatient", "nervous", "stubborn", "frightened")
HUNGRY = ("greedy", "impatient", "curious")
"""Why it does; the second for what it eats."""
SCENES = {
    "traverser": {
        "street": "wide dangerous crowded slippery long",
        "road": "wide dangerous slippery muddy long",
        "avenue": "wide dangerous crowded long",
        "river": "wide deep dangerous",
        "footbridge": "narrow fragile slippery long high",
        "forest": "dark dangerous dense damp",
        "meadow": "muddy damp wide",
        "valley": "deep wide long dangerous",
        "courtyard": "muddy slippery wide crowded",
        "bridge": "narrow dangerous long slippery high fragile",
        "field": "muddy wide damp",
        "path": "muddy narrow slippery dangerous",
        "desert": "dry dangerous wide",
        "tunnel": "dark long narrow dangerous",
        "stream": "deep wide",
        "lake": "deep wide dangerous",
        "swamp": "deep dangerous muddy",
        "park": "crowded dark muddy",
    },
    "escalader": {
        "hill": "high steep slippery muddy",
        "mountain": "high steep dangerous",
        "cliff": "high steep slippery dangerous",
        "fence": "high slippery fragile smooth",
        "dune": "high steep",
        "wall": "high smooth slippery steep",
        "rock": "high smooth slippery steep",
        "gate": "high smooth slippery",
    },
    "sauter par-dessus": {
        "fence": "high",
        "hedge": "high wide dense",
        "barrier": "high wide",
        "puddle": "wide deep",
        "wall": "high wide",
        "gate": "high",
        "ditch": "wide deep",
        "stream": "wide deep",
        "hole": "wide deep",
    },
    "entrer dans": {
        "cave": "dark narrow damp dangerous deep",
        "barn": "dark damp crowded",
        "stable": "dark damp crowded",
        "hut": "dark narrow damp",
        "cage": "narrow dark",
        "tunnel": "dark narrow damp",
        "shed": "dark damp crowded",
        "hole": "dark narrow deep",
        "corridor": "dark narrow",
        "garden": "muddy dark",
    },
    "tirer": {"cart": "heavy bulky", "plough": "heavy bulky", "sledge": "heavy bulky", "wagon": "heavy bulky"},
    "pousser": {"crate": "heavy bulky", "stone": "heavy", "barrel": "heavy bulky", "trunk": "heavy bulky"},
    "porter": {
        "suitcase": "heavy bulky",
        "box": "heavy bulky fragile",
        "branch": "heavy long",
        "bag": "heavy bulky",
        "basket": "heavy bulky fragile",
    },
    "manger": {
        "apple": "hard sour rotten",
        "pear": "hard sour rotten",
        "carrot": "hard dry rotten",
        "meat": "salty spicy hard dry",
        "soup": "salty spicy",
        "tart": "dry salty",
        "bread": "hard dry salty",
        "cheese": "hard salty dry",
        "cake": "dry hard",
        "fish": "salty spicy dry",
        "rice": "salty spicy dry",
        "lemon": "bitter sour",
    },
    "boire": {
        "water": "salty bitter muddy",
        "lemonade": "bitter sour",
        "milk": "sour sweet salty",
        "tea": "bitter sweet",
        "coffee": "bitter sweet",
    },
}
"""Verb → thing → why the thing prevents it."""
INVITING = {
    "traverser": {
        "street": "narrow", "road": "narrow", "footbridge": "short", "courtyard": "narrow", "bridge": "short",
        "tunnel": "short", "stream": "narrow", "river": "narrow", "field": "narrow", "meadow": "dry",
    },
    "escalader": {"wall": "low", "fence": "low", "gate": "low", "dune": "low", "hill": "low", "rock": "low"},
    "sauter par-dessus": {"barrier": "low", "hedge": "low", "ditch": "narrow", "puddle": "narrow", "wall": "low"},
    "tirer": {"cart": "light", "sledge": "light", "wagon": "light"},
    "porter": {"branch": "light", "basket": "light", "box": "light", "bag": "light"},
    "manger": {
        "apple": "sweet fresh", "tart": "sweet fresh", "meat": "tender fresh", "cake": "sweet fresh", "cheese": "fresh",
        "fish": "tender fresh", "bread": "fresh", "pear": "sweet fresh", "carrot": "sweet fresh",
    },
    "boire": {"water": "fresh", "milk": "fresh sweet", "lemonade": "fresh sweet", "tea": "sweet"},
}  # fmt: skip
"""Verb → thing → why the thing invites it."""
FORMS = {
    "past": Form("past", "pas"), "never": Form("past", "jamais"), "could": Form("could", "pas"),
    "wanted": Form("wanted", "pas"), "now": Form("now", "pas"), "can": Form("can", "pas"), "want": Form("want", "pas"),
    "did": Form("past"),
}  # fmt: skip
REFUSALS = [name for name in FORMS if name != "did"]
PAST = ("past", "never", "could", "wanted", "did")

BECAUSE, SINCE = ("because", "parce que"), ("since", "puisque")

Frame = tuple[Noun, str, Noun, str]
"""Animal, French verb, thing, form."""


def animate_adjectives() -> frozenset[str]:
    return frozenset((*TOO, *VERY, *HUNGRY))


def thing_adjectives() -> frozenset[str]:
    tables = (*SCENES.values(), *INVITING.values())
    return frozenset(word for table in tables for adjectives in table.values() for word in adjectives.split())


def any_frame(rng: Random) -> Frame:
    form = rng.choices([*REFUSALS, "did"], (4, 1, 2, 2, 2, 2, 2, 3))[0]
    scenes = INVITING if form == "did" else SCENES
    verb = rng.choices(list(scenes), [len(things) + 2 for things in scenes.values()])[0]
    return rng.choice(GROUPS["animals"]), verb, NOUN[rng.choice(list(scenes[verb]))], form


def about_animal(rng: Random, frame: Frame, because: Pair = BECAUSE) -> Pair:
    willing = HUNGRY if frame[1] == "manger" else VERY
    adjectives = willing if frame[3] == "did" else TOO
    return tell(frame, rng.choice(adjectives), is_thing=False, because=because)


def about_thing(rng: Random, frame: Frame, because: Pair = BECAUSE) -> Pair:
    _, verb, thing, form = frame
    adjectives = (INVITING if form == "did" else SCENES)[verb][thing.english]
    return tell(frame, rng.choice(adjectives.split()), is_thing=True, because=because)


def coreference(rng: Random, because: Pair = BECAUSE) -> Pair:
    frame = any_frame(rng)
    return (about_thing if rng.random() < 0.5 else about_animal)(rng, frame, because)


def named_again(rng: Random) -> Pair:
    """The same with "since", for which French says the noun again."""
    return coreference(rng, because=SINCE)


def tell(frame: Frame, adjective: str, *, is_thing: bool, because: Pair = BECAUSE) -> Pair:
    """The sentence of a frame; `is_thing`: the adjective is said of the thing, not of the animal."""
    animal, verb, thing, form = frame
    subject, obstacle = noun_phrase(animal, "the"), noun_phrase(thing, "the")
    meant, again = (thing, obstacle) if is_thing else (animal, subject)
    pronoun = "elle" if meant.is_feminine else "il"
    it = Phrase("it", again.french if because == SINCE else pronoun, meant.is_feminine)
    degree = "very" if form == "did" else "too"
    why = is_adjective(it, ADJECTIVE[adjective], past=form in PAST, degree=degree)
    action = both(clause(subject, VERB[verb], FORMS[form]), (obstacle.english, obstacle.french))
    return sentence(both(action, because, why))
