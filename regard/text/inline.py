"""Markup inside a text: taken out before the text is translated, and put back where its words went.

In a text out of a document a tag is one character of Unicode's last private plane: an opening tag, its closing tag, or
one that stands alone. Tags that are written out (`<b>`, `<br/>`) are found by a pattern. What is put back is there
exactly once, and nested as it was.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

OPENING, CLOSING, ALONE = 0x100000, 0x104000, 0x108000
MOST_TAGS = 0x4000
"""Of a kind in one text."""
MARK = re.compile("[\U00100000-\U0010bfff]")
TAG = re.compile(
    r"<!--(?:(?!<!--|-->).)*+-->|<(/?)([A-Za-z][\w:.-]*|\d+)(?:\s[^<>]*?)?(/?)>"
    r"|&lt;(/?)([A-Za-z][\w:.-]*)(?:\s(?:(?!&[lg]t;).)*?)?(/?)&gt;",
    re.DOTALL,
)
"""Also one whose brackets are escaped, as in HTML inside XML."""
DEEPEST = 250
"""Pairs of tags that may lie within each other; those in them stand alone."""
VOID = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"])
WORD = re.compile(r"\S+")
PUNCTUATION = ".,;:!?…。，、！？：；)]}»”’\"'"
BRACKETS = dict(zip("([{«“‘„‹\"'`「『（", ")]}»”’“›\"'`」』）", strict=True))
OPENING_PUNCTUATION = "([{«“‘„¿¡\"'"


@dataclass(slots=True)
class Node:
    """A tag, or a pair of tags with what is inside; `start` and `end` are places in the text without tags."""

    opening: str
    closing: str = ""
    start: int = 0
    end: int = 0
    paired: bool = False
    spaced: bool = False
    """There were blanks on both sides, of which one was taken away with it."""
    led: bool = False
    """There was a blank before it and none behind; it was taken away."""
    glued: bool = False
    """It stood between two words without a blank, and one was put there for it."""
    is_first: bool = True
    is_last: bool = True
    """Of neighbours that stood together: who has the blank before them, and who has the one behind them."""
    inner: list[Node] = field(default_factory=list["Node"])


@dataclass(frozen=True, slots=True)
class Lifted:
    """A text without its tags, and the tags."""

    text: str
    """With its tags."""
    plain: str
    root: Node

    @property
    def is_outside(self) -> bool:
        """Whether all tags stand before or behind all words."""

        def outside(node: Node) -> bool:
            before, behind = self.plain[: node.start].strip(), self.plain[node.end :].strip()
            return (
                not (before and behind) and not (node.paired and (before or behind)) and all(map(outside, node.inner))
            )

        return all(map(outside, self.root.inner))

    def placed(self, translation: str, pairs: Sequence[tuple[int, int]], starts: Sequence[int]) -> str:
        """The translation with the tags in it.

        `pairs` are (source word, target word); source words begin at `starts`, target words lie between blanks. Tags at
        the ends stay there; a pair of tags encloses the run of words that agrees best with the words it enclosed; a tag
        that stands alone goes before the word it stood before, or behind the word it was attached to.
        """
        if translation == self.plain:
            return self.text
        return _Placing(self, translation, pairs, starts).text()


def lifted(text: str, tags: bool, further: Sequence[tuple[int, int]] = ()) -> Lifted | None:
    """The text without marks, without tags that are written out if `tags`, and without `further` stretches, each as if
    it were a tag that stands alone, with the brackets or quotes right around it; None where it has nothing of these."""
    found = [match.span() for match in MARK.finditer(text)]
    if tags:
        found += [match.span() for match in TAG.finditer(text)]
    found = _apart(found)
    ends = [end for _, end in found]
    for start, end in further:
        after = bisect_right(ends, start)  # the first that ends behind its start
        if after == len(ends) or found[after][0] >= end:
            found.append(_with_brackets(text, start, end))
    return _lift(text, _apart(found)) if found else None


def _apart(found: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """In order; of what overlaps, the first."""
    apart: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if not apart or start >= apart[-1][1]:
            apart.append((start, end))
    return apart


def _with_brackets(text: str, start: int, end: int) -> tuple[int, int]:
    while start > 0 and end < len(text) and BRACKETS.get(text[start - 1]) == text[end]:
        start, end = start - 1, end + 1
    return start, end


def without_marks(text: str) -> str:
    return MARK.sub("", text)


def are_whole(text: str, marks: Sequence[str]) -> bool:
    """Whether the text has each of these marks once, no other, and pairs nested in each other."""
    found, opened = MARK.findall(text), list[str]()
    for mark in found:
        if ord(mark) < CLOSING:
            opened.append(chr(ord(mark) + CLOSING - OPENING))
        elif ord(mark) < ALONE and (not opened or opened.pop() != mark):
            return False
    return not opened and sorted(found) == sorted(marks)


def unmatched(text: str) -> set[str]:
    """Marks of pairs of which the other one is missing here, or comes at the wrong place."""
    opened, lonely = list[str](), set[str]()
    for mark in MARK.findall(text):
        if ord(mark) < CLOSING:
            opened.append(mark)
        elif ord(mark) < ALONE:
            if opened and ord(opened[-1]) - OPENING == ord(mark) - CLOSING:
                opened.pop()
            else:
                lonely.add(mark)
    return lonely | set(opened)


def _lift(text: str, found: Sequence[tuple[int, int]]) -> Lifted:
    plain, root = "", Node("", paired=True)
    opened: list[tuple[str, Node]] = []
    partners = _partners([text[start:end] for start, end in found])
    pending: list[Node] = []
    at = 0
    for number, (start, end) in enumerate([*found, (len(text), len(text))]):
        plain = _joined(plain, text[at:start], pending, is_last=start == len(text))
        pending = [] if start > at else pending
        at = end
        if start == end:
            break
        parent = opened[-1][1] if opened else root
        if number in partners.values():
            _, node = opened.pop()
            node.closing, node.end = text[start:end], len(plain)
            if node.start == node.end:  # without a text it is one tag, with whatever is in it
                pending = [*(one for one in pending if not _is_inside(one, node)), node]
            continue
        is_alone = number not in partners
        if is_alone and pending and parent.inner and parent.inner[-1] is pending[-1]:  # neighbours stay neighbours
            pending[-1].opening += text[start:end]
            continue
        node = Node(text[start:end], start=len(plain), end=len(plain), paired=not is_alone)
        parent.inner.append(node)
        if node.paired:
            opened.append((node.opening, node))
        else:
            pending.append(node)
    root.end = len(plain)
    return Lifted(text, plain, root)


def _joined(plain: str, more: str, pending: Sequence[Node], is_last: bool) -> str:
    """The text so far with what follows some tags: blanks on both sides of a tag are one; words stay apart."""
    if not pending or (not more and not is_last):
        return plain + more
    for node in pending:
        node.is_first, node.is_last = node is pending[0], node is pending[-1]
    if plain[-1:].isspace() and (not more or more[0] in PUNCTUATION):
        plain = plain[:-1]
        for node in pending:
            node.led, node.start, node.end = True, min(node.start, len(plain)), min(node.end, len(plain))
        return plain + more
    if not more:
        return plain
    if more[0].isspace() and (not plain or plain[-1].isspace()):
        for node in pending:
            node.spaced = True
        return plain + (more[1:] if plain else more.lstrip())
    if plain and plain[-1].isalnum() and more[0].isalnum():
        for node in pending:
            node.glued = True
        return f"{plain} {more}"
    return plain + more


def _is_inside(node: Node, pair: Node) -> bool:
    return any(each is node or _is_inside(node, each) for each in pair.inner)


def _partners(tags: Sequence[str]) -> dict[int, int]:
    """For each opening tag that has one, its closing tag, by number; no two pairs cross."""
    opened: list[tuple[str, int]] = []
    found: dict[int, int] = {}
    for number, tag in enumerate(tags):
        kind, name = _kind(tag)
        if kind == "open" and len(opened) < DEEPEST:
            opened.append((name, number))
        elif kind == "close" and any(name == other for other, _ in opened):
            while opened[-1][0] != name:  # what is crossed stands alone
                opened.pop()
            found[opened.pop()[1]] = number
    return found


def _kind(tag: str) -> tuple[str, str]:
    if len(tag) == 1:
        code = ord(tag)
        if code >= ALONE:
            return "alone", ""
        return ("open", str(code - OPENING)) if code < CLOSING else ("close", str(code - CLOSING))
    match = TAG.fullmatch(tag)
    first = 1 if tag[0] == "<" else 4  # of the groups of this spelling
    closes, name, is_empty = match.group(first, first + 1, first + 2) if match else ("", None, "")
    if name is None or is_empty or name.lower() in VOID:
        return "alone", ""
    return ("close" if closes else "open"), f"{tag[0]}{name}"


class _Placing:
    """Where the tags of one text go in its translation."""

    def __init__(
        self, lifted: Lifted, translation: str, pairs: Sequence[tuple[int, int]], starts: Sequence[int]
    ) -> None:
        self.plain, self.root = lifted.plain, lifted.root
        self.translation = translation
        self.words = [match.span() for match in WORD.finditer(translation)]
        self.starts = starts or [match.start() for match in WORD.finditer(self.plain)]
        self.source_of = {target: source for source, target in pairs if target < len(self.words)}
        if not self.source_of:  # nothing is known: in proportion
            share = len(self.starts) / max(len(self.words), 1)
            self.source_of = {target: int(target * share) for target in range(len(self.words))}
        self.taken: set[int] = set()
        """Target words of the pairs beside the one that is being placed."""
        self.ends: dict[int, int] = {}
        """For the last word of such a pair where the pair ends, which may be before its punctuation."""

    def text(self) -> str:
        return self._rendered(self.root, (0, len(self.translation)), (0, len(self.words)))

    def _rendered(self, node: Node, place: tuple[int, int], words: tuple[int, int]) -> str:
        """What a pair encloses in the translation, at `place` by characters and `words` by words."""
        self.taken, self.ends = set(), {}
        laid = [(*self._place(node, child, place, words), number) for number, child in enumerate(node.inner)]
        out, at = "", place[0]
        for start, end, inside, number in sorted(laid, key=lambda each: (each[0], each[1], each[3])):
            child = node.inner[number]
            start = min(max(start, at), place[1])
            end = min(max(start, end), place[1])
            out += self.translation[at:start]
            inner = self._rendered(child, (start, end), inside) if child.paired else ""
            out, end = self._with(out, child, f"{child.opening}{inner}{child.closing}", end)
            at = end
        return out + self.translation[at : place[1]]

    def _with(self, before: str, node: Node, new: str, end: int) -> tuple[str, int]:
        """The text with a tag behind it, and the blanks around the tag as they were; and where the rest begins."""
        follower = self.translation[end : end + 1]
        if node.glued and node.is_last:
            if follower.isspace():
                return before + new, end + 1
            return (before[:-1] if before[-1:].isspace() else before) + new, end
        wants_left = node.is_first and (node.led or node.spaced)
        left = " " if wants_left and before and not before[-1].isspace() else ""
        right = " " if node.is_last and node.spaced and follower and not follower.isspace() else ""
        return before + left + new + right, end

    def _place(
        self, parent: Node, child: Node, place: tuple[int, int], words: tuple[int, int]
    ) -> tuple[int, int, tuple[int, int]]:
        """Characters and words of the translation that a tag or a pair goes around."""
        has_before = bool(self.plain[parent.start : child.start].strip())
        has_behind = bool(self.plain[child.end : parent.end].strip())
        encloses = child.paired and bool(self.plain[child.start : child.end].strip())
        if encloses and not has_before and not has_behind:
            return (*place, words)
        if encloses:
            return self._around(parent, child, words)
        if not has_before:
            return place[0], place[0], (words[0], words[0])
        if not has_behind:
            return place[1], place[1], (words[1], words[1])
        spot = self._spot(child, words)
        return (*spot, (words[0], words[0]))

    def _around(self, parent: Node, child: Node, words: tuple[int, int]) -> tuple[int, int, tuple[int, int]]:
        inside = set(range(self._word(child.start), self._word(max(child.end - 1, child.start)) + 1))
        first, last = self._best_run(inside, words)
        if first == last:  # no word of its own is left: nothing at its place, by proportion
            share = (child.start - parent.start) / max(parent.end - parent.start, 1)
            at = min(words[0] + round(share * (words[1] - words[0])), max(words[1] - 1, 0))
            while at < words[1] and at in self.taken:
                at += 1
            spot = self.words[at][0] if at < words[1] else self.words[words[1] - 1][1] if self.words else 0
            return spot, spot, (at, at)
        self.taken |= set(range(first, last))
        start, end = self.words[first][0], self.words[last - 1][1]
        before, behind = self.plain[child.start - 1 : child.start], self.plain[child.end : child.end + 1]
        if behind and self.plain[child.end - 1] not in PUNCTUATION:
            end = max(start + len(self.translation[start:end].rstrip(PUNCTUATION)), start + 1)
        if before and before in OPENING_PUNCTUATION:
            start = min(end - len(self.translation[start:end].lstrip(OPENING_PUNCTUATION)), end - 1)
        self.ends[last - 1] = end
        return start, end, (first, last)

    def _best_run(self, inside: set[int], words: tuple[int, int]) -> tuple[int, int]:
        """The run of free target words that agrees best with these source words; empty where none agrees."""
        best, found, score, start = 0, (words[0], words[0]), 0, words[0]
        for target in range(*words):
            if target in self.taken:
                score, start = 0, target + 1
                continue
            score += 1 if self.source_of.get(target) in inside else -1
            if score <= 0:
                score, start = 0, target + 1
            elif score > best:
                best, found = score, (start, target + 1)
        return found

    def _spot(self, child: Node, words: tuple[int, int]) -> tuple[int, int]:
        """The place of a tag that stands alone, between words, and not inside a pair beside it."""
        is_attached = not child.glued and not child.spaced and not self.plain[child.start - 1 : child.start].isspace()
        for source in self._searched(child.start, behind=is_attached):
            targets = [target for target in range(*words) if self.source_of.get(target) == source]
            if targets:
                target = max(targets) if is_attached else min(targets)
                while target in self.taken and target - 1 in self.taken and target > words[0] and not is_attached:
                    target -= 1
                while target in self.taken and target + 1 in self.taken and target + 1 < words[1] and is_attached:
                    target += 1
                at = self._attached(child, target) if is_attached else self.words[target][0]
                return at, at
        at = self.words[words[1] - 1][1] if words[1] > words[0] else 0
        return at, at

    def _attached(self, child: Node, target: int) -> int:
        """Behind a word, and before the punctuation that it stood before."""
        start, end = self.words[target]
        behind = WORD.match(self.plain, child.start)
        marks = len(behind[0]) - len(behind[0].lstrip(PUNCTUATION)) if behind else 0
        first = self.ends.get(target, end if target in self.taken else start + 1)
        while marks and end > first and self.translation[end - 1] in PUNCTUATION:
            end, marks = end - 1, marks - 1
        return end

    def _searched(self, place: int, behind: bool) -> Iterator[int]:
        """The source words by which a place is found, the nearest first."""
        if behind:
            return iter(range(self._word(place - 1), -1, -1))
        first = bisect_right(self.starts, place - 1)
        return iter(range(first, len(self.starts)))

    def _word(self, place: int) -> int:
        """The source word that a place is in."""
        return max(bisect_right(self.starts, place) - 1, 0)
