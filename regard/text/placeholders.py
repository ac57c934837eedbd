"""What must survive a translation without anyone asking: placeholders of programs, entities, addresses, tags.

Found by pattern, and in PO by the flags of an entry, which say more exactly what a `%` or a `{` means there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from regard.text.inline import TAG
from regard.text.keep import Span, compiled, missing, spans_of

PRINTF = r"(?:hh|h|ll|l|j|z|t|L|q)?[diouxXeEfFgGaAcCsSpnm@]"
PERCENT = rf"%(?:\(\w+\)|<\w+>)?(?:\d+\$)?[-+ #0']*+(?:\d+|\*)?(?:\.(?:\d+|\*))?{PRINTF}|%%"
"""As programs read it: `100% de` has a directive."""
CAREFUL_PERCENT = (
    rf"(?<![\w%])%(?:\d+\$)?[-+#0]*+\d*(?:\.\d+)?{PRINTF}(?![A-Za-z])|%\(\w+\)[-+#0]*+\d*(?:\.\d+)?{PRINTF}|%%"
)
"""As people write it where nothing says what a percent sign is."""
QT = r"%L?[1-9]\d?(?![\w%])|%n(?![A-Za-z])"
CAREFUL_QT = r"(?<![\w%])%L?[1-9]\d?(?![\w.%,])"
NESTED = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
ICU = (
    rf"\{{\s*\w+\s*,\s*(?:plural|select|selectordinal)\s*,(?:[^{{}}]|{NESTED})*\}}"
    r"|\{\s*\w+\s*,\s*(?:number|date|time|spellout|ordinal|duration)\s*(?:,[^{}]*)?\}"
)
BRACE = r"\{\{\{?\s*[#/^&]?[\w.|:'\" -]+\s*\}?\}\}|[#$%]?\{[\w.\[\]\$-]*(?:![rsa])?(?::[^{}\s]*)?\}"
SHELL = r"\$\{?\w+\}?"
ENTITY = r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});"
ADDRESS = r"(?:\b(?:https?|ftp|file)://|\bmailto:|\bwww\.)[^\s<>\"{}|\\^`]*[^\s<>\"{}|\\^`.,;:!?)\]'»”’]"
MAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
NUMBER = r"\d+(?:[.,]\d+)*"

NEXT_ARGUMENT = re.compile(rf"%[-+ #0']*+(?:\d+|\*)?(?:\.(?:\d+|\*))?{PRINTF}|\{{(?:![rsa])?(?::[^{{}}]*)?\}}")
"""Placeholders without a number or a name: which argument they take depends on their order."""

EVERYWHERE = (ICU, BRACE, ENTITY, ADDRESS, MAIL)
BY_FLAG = {
    "c": PERCENT, "objc": PERCENT, "php": PERCENT, "python": PERCENT, "perl": PERCENT, "ruby": PERCENT, "lua": PERCENT,
    "awk": PERCENT, "javascript": PERCENT, "java-printf": PERCENT, "tcl": PERCENT, "gcc-internal": PERCENT,
    "qt": QT, "qt-plural": QT, "kde": QT, "kde-kuit": QT, "boost": rf"%\|?\d+[$%]?[^%\s]*?%|{PERCENT}", "sh": SHELL,
    "perl-brace": r"\{\w+\}", "python-brace": NESTED, "csharp": NESTED, "java": NESTED,
}  # fmt: skip
"""gettext's flags `c-format` … without their last part."""
SIGNS = re.compile(r"[%{&@$]|://|www\.|mailto:")
"""Without one of these a text has no placeholder, whatever the patterns."""
DIGITS = re.compile(r"\d+(?:[.,'\u00a0\u202f\u2009 ]\d+)*")


@dataclass(frozen=True, slots=True)
class Keeping:
    """What comes out of a translation unchanged."""

    asked: tuple[re.Pattern[str], ...] = ()
    """By `--keep REGEX` or `--keep numbers`."""
    placeholders: bool = True
    """Also what is found everywhere, and tags, which are put where their words went."""
    flags: tuple[str, ...] = ()
    """gettext's, of this text."""

    @classmethod
    def of(cls, values: Sequence[str]) -> Keeping:
        """From names and regular expressions; ConfigError for what is neither."""
        named = {"numbers": NUMBER}
        patterns = [named.get(value, value) for value in values if value not in ("none", "placeholders")]
        return cls(compiled(patterns), "none" not in values)

    def __bool__(self) -> bool:
        return bool(self.asked) or self.placeholders

    def flagged(self, flags: Sequence[str]) -> Keeping:
        return replace(self, flags=tuple(flags)) if flags else self

    def spans(self, text: str) -> list[Span]:
        """What is kept of a text, in order; tags are not among it."""
        patterns = self.asked
        if self.placeholders and SIGNS.search(text):
            patterns = (*patterns, pattern_for(self.flags))
        return spans_of(text, patterns) if patterns else []

    def kept(self, text: str) -> list[str]:
        return [span.text for span in self.spans(text)]

    def outside(self, text: str) -> str:
        """The text without what is kept, and without tags."""
        out, at = list[str](), 0
        for span in self.spans(text):
            out.append(text[at : span.start])
            at = span.end
        plain = " ".join([*out, text[at:]])
        return TAG.sub(" ", plain) if self.placeholders else plain

    def differences(self, source: str, translation: str) -> tuple[list[str], list[str]]:
        """What a translation lacks of what is to be kept, and the placeholders that it has too much."""
        lacking = missing(self.kept(source), translation)
        own = replace(self, asked=()) if self.asked else self
        return lacking, sorted((Counter(own.kept(translation)) - Counter(own.kept(source))).elements())

    def in_order(self, source: str, translation: str) -> str:
        """The translation with those placeholders that take the next argument in the order of the source: `%s … %d`
        that became `%d … %s` would give a program a text for a number. They change places with each other."""
        wanted = [text for text in self.kept(source) if NEXT_ARGUMENT.fullmatch(text)]
        if len(wanted) < 2:  # nothing to change places with
            return translation
        found = [span for span in self.spans(translation) if NEXT_ARGUMENT.fullmatch(span.text)]
        told = [span.text for span in found]
        if told == wanted or sorted(told) != sorted(wanted):
            return translation
        out, at = "", 0
        for span, text in zip(found, wanted, strict=True):
            out, at = out + translation[at : span.start] + text, span.end
        return out + translation[at:]


NOTHING = Keeping(placeholders=False)


@cache
def pattern_for(flags: tuple[str, ...]) -> re.Pattern[str]:
    """What is kept in a text with these flags."""
    return re.compile("|".join(_sources(flags)))


def _sources(flags: Sequence[str]) -> list[str]:
    names = [flag.removesuffix("-format") for flag in flags if flag.endswith("-format")]
    told = [BY_FLAG[name] for name in names if name in BY_FLAG]
    denied = any(name.startswith("no-") for name in names)
    if told:
        return [*told, *EVERYWHERE]
    return list(EVERYWHERE) if denied else [*EVERYWHERE, CAREFUL_PERCENT, CAREFUL_QT]


def changed_numbers(source: str, translation: str) -> list[str]:
    """Numbers of the source that the translation has not, however their digits are grouped."""
    numbers = DIGITS.findall(source)
    if not numbers:
        return []
    wanted = Counter(re.sub(r"\D", "", number) for number in numbers)
    found = Counter(re.sub(r"\D", "", number) for number in DIGITS.findall(translation))
    return sorted((wanted - found).elements())
