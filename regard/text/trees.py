"""Bracketed trees, one a line as in the Penn Treebank: `(S (NP (DT the) (NN dog)) (VP (VBZ barks)))`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from regard.errors import CorpusError

TOKENS = re.compile(r"[()]|[^\s()]+")
EMPTY = "-NONE-"
"""The tag of what is no word: traces and the like."""
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
"""How a treebank writes brackets that are words."""
DEEPEST = 200


@dataclass(frozen=True, slots=True)
class Tree:
    """A label with a word, in some treebanks with several, or with further trees below it."""

    label: str
    word: str = ""
    below: tuple[Tree, ...] = ()

    @property
    def category(self) -> str:
        """The label without functions and indices: NP of NP-SBJ-1."""
        return re.split(r"[-=|]", self.label, maxsplit=1)[0]

    def words(self) -> list[str]:
        """Those that are spoken."""
        if self.word:
            return [] if self.label == EMPTY else [BRACKETS.get(word, word) for word in self.word.split(" ")]
        return [word for tree in self.below for word in tree.words()]


def read_tree(line: str) -> Tree:
    """CorpusError for a line whose brackets do not make one tree."""
    tokens = TOKENS.findall(line)
    try:
        tree, end = _tree(tokens, 0, DEEPEST)
    except IndexError:
        raise CorpusError("its brackets are not closed. Mend the line.") from None
    if end != len(tokens):
        raise CorpusError("something follows behind its tree. Mend the line.")
    return tree


def _tree(tokens: list[str], place: int, deepest: int) -> tuple[Tree, int]:
    """The tree that begins at a place, and where it ends."""
    if tokens[place] != "(" or not deepest:
        raise CorpusError("it is not a bracketed tree. Mend the line.")
    place += 1
    label = ""
    if tokens[place] not in "()":
        label, place = tokens[place], place + 1
    words: list[str] = []
    while tokens[place] not in "()":
        words.append(tokens[place])
        place += 1
    if words:
        if tokens[place] != ")":
            raise CorpusError(f"the word {words[-1]!r} has brackets behind it. Mend the line.")
        return Tree(label, " ".join(words)), place + 1
    below: list[Tree] = []
    while tokens[place] != ")":
        tree, place = _tree(tokens, place, deepest - 1)
        below.append(tree)
    return Tree(label, below=tuple(below)), place + 1


def noun_chunks(tree: Tree) -> list[tuple[str, str]]:
    """The words of a tree, each with B-NP, I-NP or O: a chunk is a noun phrase that holds no other."""
    return _chunked(tree)[0]


def _chunked(tree: Tree) -> tuple[list[tuple[str, str]], bool]:
    """The same, and whether there is a noun phrase among them."""
    if tree.word:
        return [(word, "O") for word in tree.words()], False
    parts = [_chunked(each) for each in tree.below]
    words, has_phrase = [pair for part, _ in parts for pair in part], any(found for _, found in parts)
    if tree.category != "NP" or has_phrase or not words:
        return words, has_phrase
    return [(word, "I-NP" if place else "B-NP") for place, (word, _) in enumerate(words)], True
