"""Questions about short passages, answered by words of the passage: who lives where, who bought what, who met whom.

Every name, place and number is invented and belongs to one set, so that a test asks for names that training never saw:
they can be found, not remembered. A question is `question<TAB>passage`; its answer is the first and the last word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from regard.synthetic.generator import Lengths, home
from regard.synthetic.names import name

TAB = "\t"
CHOICES = {
    "KIND": ("Port", "New", "Upper", "Saint"),
    "JOB": ("baker", "teacher", "driver", "singer", "doctor", "painter"),
    "THING": ("books", "chairs", "horses", "lamps", "bottles", "tickets"),
    "DAY": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}
"""What may stand in a slot that is not invented."""
INVENTED = ("FIRST", "LAST", "TOWN", "GIVEN", "FAMILY")
NUMBERS = {"YEAR": (1500, 2000), "NUMBER": (10, 1000)}
PERSON = ("FIRST", "LAST")


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence, a question about it, and the words of the sentence that answer it. A slot is a word in capitals."""

    sentence: tuple[str, ...]
    question: tuple[str, ...]
    answer: tuple[str, ...]

    @property
    def first(self) -> int:
        """The place of the answer's first word in the sentence."""
        return self.sentence.index(self.answer[0])


FACTS = tuple(
    Fact(*(tuple(part.split()) for part in parts))
    for parts in (
        ("FIRST LAST lives in KIND TOWN .", "where does FIRST LAST live ?", "KIND TOWN"),
        ("FIRST LAST was born in YEAR .", "when was FIRST LAST born ?", "YEAR"),
        ("FIRST LAST bought NUMBER THING .", "what did FIRST LAST buy ?", "NUMBER THING"),
        ("FIRST LAST works as a JOB .", "what does FIRST LAST work as ?", "a JOB"),
        ("FIRST LAST met GIVEN FAMILY .", "whom did FIRST LAST meet ?", "GIVEN FAMILY"),
        ("FIRST LAST came on DAY .", "when did FIRST LAST come ?", "on DAY"),
    )
)
PEOPLE = 2
"""Of a passage, where it has as many facts."""


def draw_questions(rng: np.random.Generator, lengths: Lengths, count: int, which: str) -> Iterator[str]:
    """Passages of so many facts, no two alike, whose invented words belong to the set.

    What is asked of one person is told of every person, so that the name decides and not the question's form.
    """
    random = Random(int(rng.integers(1 << 62)))  # faster than numpy's, one draw at a time
    for facts in lengths.draw(rng, count):
        people = [{slot: invented(slot, random, which) for slot in PERSON} for _ in range(min(PEOPLE, facts))]
        asked = random.choice(FACTS)
        others = [(fact, person) for fact in FACTS if fact is not asked for person in people]
        pairs = [*((asked, person) for person in people), *random.sample(others, facts - len(people))]
        random.shuffle(pairs)
        passage = [word for fact, person in pairs for word in filled(fact.sentence, person, random, which)]
        question = filled(asked.question, random.choice(people), random, which)
        yield f"{' '.join(question)}{TAB}{' '.join(passage)}"


def filled(words: Sequence[str], person: dict[str, str], random: Random, which: str) -> list[str]:
    """With something in each slot; any other word as it is."""
    return [person[word] if word in person else invented(word, random, which) for word in words]


def invented(slot: str, random: Random, which: str) -> str:
    if slot in CHOICES:
        return random.choice(CHOICES[slot])
    if slot not in INVENTED and slot not in NUMBERS:
        return slot
    while True:
        word = name(random) if slot in INVENTED else str(random.randrange(*NUMBERS[slot]))
        if home(word) == which and word not in CLOSED:
            return word


def answer_places(lines: Sequence[str]) -> list[str]:
    """For each question the first and the last word of its answer in the passage."""
    return [answer_place(*line.split(TAB)) for line in lines]


def answer_place(question: str, passage: str) -> str:
    """In the sentence that says of this person what is asked."""
    asked = question.split()
    fact = next(fact for fact in FACTS if is_filled(fact.question, asked))
    person = [asked[fact.question.index(slot)] for slot in PERSON]
    words, begin = passage.split(), 0
    while begin < len(words):
        end = words.index(".", begin) + 1
        if is_filled(fact.sentence, words[begin:end]) and words[begin : begin + 2] == person:
            first = begin + fact.first
            return f"{first} {first + len(fact.answer) - 1}"
        begin = end
    raise AssertionError(f"{passage!r} does not say {question!r}")


def is_filled(template: Sequence[str], words: Sequence[str]) -> bool:
    return len(template) == len(words) and all(
        slot == word or slot.isupper() for slot, word in zip(template, words, strict=True)
    )


CLOSED = frozenset(word for words in CHOICES.values() for word in words)
