"""Numbers for the words of a corpus, which BPE-dropout splits anew in each epoch."""

FIRST_TYPE = 4
"""Word numbers below it, and the tags' behind it, are token ids of their own."""


class WordTypes:
    """Numbers for words, in the order in which they come."""

    def __init__(self, tags: int) -> None:
        self.first = FIRST_TYPE + tags
        self.known: dict[str, int] = {}

    def numbers(self, words: list[str]) -> list[int]:
        known, first = self.known, self.first
        return [known.setdefault(word, first + len(known)) for word in words]

    @property
    def words(self) -> list[str]:
        return list(self.known)
