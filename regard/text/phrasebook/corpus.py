"""The phrasebook: sentences drawn from the families, distinct on both sides, and split."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from random import Random

from regard.errors import ConfigError
from regard.files import make_directory, write_atomically
from regard.text.phrasebook.actions import (
    command,
    giving,
    intransitive,
    liking,
    motion,
    speaking,
    timetable,
    transitive,
)
from regard.text.phrasebook.compounds import condition, reason, relative_object, relative_subject, report, wh_question
from regard.text.phrasebook.coreference import (
    ANIMAL_TIRED,
    ANIMAL_WIDE,
    about_animal,
    about_thing,
    any_frame,
    coreference,
    named_again,
)
from regard.text.phrasebook.descriptions import (
    belonging,
    comparison,
    description,
    existence,
    location,
    numbers,
    possession,
    presenting,
    profession,
)
from regard.text.phrasebook.phrases import Pair

Family = Callable[[Random], Pair]
"""Makes sentences of one kind."""

FAMILIES: dict[Family, int] = {
    coreference: 25,
    named_again: 275,
    transitive: 260,
    intransitive: 50,
    motion: 40,
    existence: 40,
    location: 35,
    description: 60,
    comparison: 35,
    possession: 35,
    profession: 15,
    relative_subject: 35,
    relative_object: 50,
    liking: 35,
    speaking: 20,
    numbers: 40,
    timetable: 12,
    command: 30,
    report: 35,
    condition: 15,
    belonging: 35,
    giving: 45,
    reason: 25,
    wh_question: 45,
    presenting: 20,
}
"""How often each family speaks."""
PRACTICE: dict[Family, int] = {
    relative_object: 3,
    relative_subject: 2,
    report: 2,
    wh_question: 2,
    profession: 2,
    command: 2,
    giving: 2,
}
"""How many times as often some are practised: what takes longest to learn. Held-out sentences know nothing of it."""

TRAIN_SIZE, VALID_SIZE, TEST_SIZE, COREFERENCE_SIZE = 70_000, 500, 1_000, 400
CHOICES = 3
"""Sentences from which a practised pair is chosen: drawn freely, américaines would come twelve times as rarely as
américain, and hardly be learnt."""
MAX_WORDS = 14
"""Of an English sentence."""
MAX_SIZE = 200_000
"""Beyond, small families are used up and the corpus would lose its balance."""


@dataclass(frozen=True, slots=True)
class Phrasebook:
    """No sentence, of either language, stands twice anywhere in it."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]
    coreference: list[Pair]
    """Held out as well: twins that differ in one adjective, and so in what *it* is."""


class _Drawn:
    """The pairs drawn so far, each new on both sides and not too long."""

    def __init__(self) -> None:
        self.translation = dict([ANIMAL_TIRED, ANIMAL_WIDE])
        self.french = set(self.translation.values())

    def add(self, pair: Pair) -> bool:
        source, target = pair
        if len(source.split()) > MAX_WORDS:
            return False
        assert self.translation.get(source, target) == target, f"two translations of {source!r}"
        if source in self.translation or target in self.french:
            return False
        self.translation[source] = target
        self.french.add(target)
        return True


def make_phrasebook(seed: int = 1, size: int = TRAIN_SIZE, *, practised: bool = False) -> Phrasebook:
    """`size` training pairs and the held-out ones; the same seed, the same book. ANIMAL_TIRED and ANIMAL_WIDE are in
    none of its parts.

    Practised: the training pairs are chosen as a teacher would, with more of what is rare or hard. What is held out
    depends on the seed alone.
    """
    if not 1 <= size <= MAX_SIZE:
        raise ConfigError(f"a phrasebook of {size} pairs cannot be made; choose a size from 1 to {MAX_SIZE}")
    rng, drawn = Random(seed), _Drawn()
    twins = _twins(rng, drawn)
    held_out = _draw(rng, drawn, VALID_SIZE + TEST_SIZE, FAMILIES)
    exercises = {family: weight * PRACTICE.get(family, 1) for family, weight in FAMILIES.items()}
    train = _draw(rng, drawn, size, exercises, CHOICES) if practised else _draw(rng, drawn, size, FAMILIES)
    return Phrasebook(train, held_out[:VALID_SIZE], held_out[VALID_SIZE:], twins)


def _draw(rng: Random, drawn: _Drawn, count: int, often: Mapping[Family, int], choices: int = 1) -> list[Pair]:
    """Each time of so many sentences of a family the one with the rarest French form, rare by what was taken so far."""
    families, weights = list(often), list(accumulate(often.values()))
    taken: Counter[str] = Counter()
    pairs: list[Pair] = []
    while len(pairs) < count:
        family = rng.choices(families, cum_weights=weights)[0]
        options = [family(rng) for _ in range(choices)]
        pair = min(options, key=lambda option: min(taken[form] for form in forms(option[1])))
        if drawn.add(pair):
            pairs.append(pair)
            taken.update(forms(pair[1]))
    return pairs


def forms(sentence: str) -> list[str]:
    """Its words as they stand, elided ones with what follows."""
    return sentence.rstrip(" .?!").split()


def _twins(rng: Random, drawn: _Drawn) -> list[Pair]:
    pairs: list[Pair] = []
    while len(pairs) < COREFERENCE_SIZE:
        frame = any_frame(rng)
        animal, thing = about_animal(rng, frame), about_thing(rng, frame)
        if drawn.add(animal) and drawn.add(thing):
            pairs += animal, thing
    return pairs


def write_phrasebook(folder: Path, seed: int = 1, size: int = TRAIN_SIZE, *, practised: bool = False) -> Phrasebook:
    """Writes train, valid, test and coreference, each as .en and .fr, one sentence a line; returns the book."""
    book = make_phrasebook(seed, size, practised=practised)
    make_directory(folder)
    for part in ("train", "valid", "test", "coreference"):
        pairs: list[Pair] = getattr(book, part)
        for language, side in (("en", 0), ("fr", 1)):
            text = "".join(f"{pair[side]}\n" for pair in pairs)
            write_atomically(folder / f"{part}.{language}", text.encode("utf-8"))
    return book
