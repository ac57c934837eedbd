"""English word forms and spelling: plurals, verb forms, comparatives, numbers, a/an.

A verb of several words ("look for") bends in its first.
"""

import re
from functools import cache

# What the rules below do not give. Past forms; -ing doubles a last consonant for the words of DOUBLING.
IRREGULAR_PAST = {
    "be": "was", "break": "broke", "bring": "brought", "build": "built", "buy": "bought", "choose": "chose",
    "come": "came", "cut": "cut", "draw": "drew", "drink": "drank", "drive": "drove", "eat": "ate", "fall": "fell",
    "feed": "fed", "find": "found", "forget": "forgot", "give": "gave", "go": "went", "have": "had", "hear": "heard",
    "hide": "hid", "know": "knew", "leave": "left", "lend": "lent", "lose": "lost", "meet": "met", "put": "put",
    "read": "read", "run": "ran", "say": "said", "see": "saw", "sell": "sold", "send": "sent", "sing": "sang",
    "sleep": "slept", "speak": "spoke", "steal": "stole", "swim": "swam", "take": "took", "think": "thought",
    "understand": "understood", "wear": "wore", "write": "wrote",
}  # fmt: skip
DOUBLING = frozenset({"cut", "forget", "put", "run", "swim", "travel", "big", "sad", "hot", "fat", "thin"})
IRREGULAR_COMPARATIVE = {"good": "better", "bad": "worse", "shy": "shyer"}
SHORT_ADJECTIVES = frozenset({
    "big", "small", "old", "young", "tall", "long", "high", "wide", "deep", "dark", "heavy", "light", "strong", "weak",
    "rich", "poor", "happy", "sad", "lazy", "kind", "clean", "dirty", "fast", "slow", "hot", "cold", "pretty", "ugly",
    "narrow", "hard", "clumsy", "sleepy", "proud", "brave", "greedy", "funny", "sick", "bulky", "fresh", "dry",
})  # fmt: skip
"""Those with -er; the others take "more"."""

UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")

_ARTICLE = re.compile(r"\ba (?=(?!uni|use|one|Euro)[aeiouAEIOU]|hour|honest)")


def plural(noun: str) -> str:
    if re.search(r"(s|x|ch|sh)$", noun):
        return noun + "es"
    return noun[:-1] + "ies" if re.search(r"[^aeiou]y$", noun) else noun + "s"


@cache
def third_person(verb: str) -> str:
    head, tail = _split(verb)
    if head in ("have", "go"):
        return {"have": "has", "go": "goes"}[head] + tail
    return plural(head) + tail


@cache
def past(verb: str) -> str:
    head, tail = _split(verb)
    if head in IRREGULAR_PAST:
        return IRREGULAR_PAST[head] + tail
    return _with_ending(head, "ed") + tail


@cache
def gerund(verb: str) -> str:
    head, tail = _split(verb)
    stem = head[:-1] if re.search(r"[^eo]e$", head) else head
    return stem + (stem[-1] if head in DOUBLING else "") + "ing" + tail


def comparative(adjective: str) -> str:
    if adjective in IRREGULAR_COMPARATIVE:
        return IRREGULAR_COMPARATIVE[adjective]
    return _with_ending(adjective, "er") if adjective in SHORT_ADJECTIVES else f"more {adjective}"


def number(value: int) -> str:
    """0 … 1000 in words."""
    if value < 20:
        return UNITS[value]
    if value < 100:
        return TENS[value // 10] + (f"-{UNITS[value % 10]}" if value % 10 else "")
    if value == 1000:
        return "one thousand"
    return f"{UNITS[value // 100]} hundred" + (f" and {number(value % 100)}" if value % 100 else "")


def sentence(text: str, mark: str = ".") -> str:
    """Words with single spaces → a sentence: an before a vowel's sound, a capital, a mark."""
    text = _ARTICLE.sub("an ", " ".join(text.split()))
    return text[0].upper() + text[1:] + mark


def _split(verb: str) -> tuple[str, str]:
    head, space, tail = verb.partition(" ")
    return head, space + tail


def _with_ending(word: str, ending: str) -> str:
    if word in DOUBLING:
        return word + word[-1] + ending
    if re.search(r"[^aeiou]y$", word):
        return word[:-1] + "i" + ending
    return word + (ending[1:] if word.endswith("e") else ending)
