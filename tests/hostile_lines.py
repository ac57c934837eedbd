"""Lines as nobody should send them, for proofs that translating neither stops, nor shifts, nor grows.

    python tests/hostile_lines.py OUT [LINES [SEED]]

The same arguments give the same bytes. Between the hostile lines stand known clean sentences, whose places are told.
"""

import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

LINES = 100_000
LONG_LINES = 3
LONG_BYTES = 10**6
KNOWN_SHARE = 0.05

CLEAN = [
    f"{who} {does} {where}."
    for who in ("A man", "Two dogs", "The little girl", "Nobody")
    for does in ("is standing", "can be seen", "waits")
    for where in ("in the snow", "on a bench", "by the sea")
]
INVALID = [
    b"\xff", b"\xfe\xff", b"\xc3", b"\xc3\x28", b"\xe2\x82", b"\xe2\x28\xa1", b"\xf0\x9f\x98", b"\xf0\x28\x8c\xbc",
    b"\xc0\x80", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80",
    b"\x80", "Grüße".encode("latin-1"), "слово".encode("cp1251"), "日本".encode("shift-jis"),
    "naïve".encode("utf-16-le"),
]  # fmt: skip
ODD = [
    "</s>", "<s>", "<pad>", "<unk>", "<0x41>", "<0xFF>", "▁", "▁▁a▁", "@@", "a@@ b@@", "##ing", "[CLS]", "<b>bold</b>",
    "&amp;&lt;", "<!-- -->", "{0} %s %(name)d", "http://a.b/c?d=é&e=%20", "\ufeffmark", "a\ufeffb", "\\n\\t\\0",
    "'; DROP TABLE x; --", '{"a": "b', "\u2028a\u2029b\u0085c", "a\x0bb\x0cc\x1cd\x1de\x1ef\x1fg", "a\rb\rc", "\r",
    "null\0byte", "\0", "\x01\x02\x1b[31mred\x1b[0m\x7f", "\u200b\u200c\u200d\u2060", "a\u00adb", "\u202eabc\u202c",
    "שלום עולם", "مرحبا \u200fبالعالم\u200e!", "\u2067אב\u2069 1", "🙂", "🇩🇪🇫🇷", "🏴\U000e0067\U000e007f", "\u0301",
    "👩\u200d👩\u200d👧\u200d👦 👍🏽", "Z\u0351\u036b\u0343a\u0325l\u0334g\u0310o" * 9, "e\u0301 é ﬁ ǆ ẞ İ ı",
    "ไทยภาษา", "日本語の文。次の文！", "\ufffd\ufffe\uffff", "\U0010ffff", "𝕬𝖇𝖈", "½ ² № ℃", "…", "....", "?!?!",
    '"', "'", "- – — −", "\t", "a\tb\tc",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Known:
    """A clean sentence and its line, from 1."""

    line: int
    sentence: str


def write_hostile(path: Path, lines: int = LINES, seed: int = 1) -> list[Known]:
    """Writes the file, whose first line is clean and whose last has no end, and tells the clean sentences."""
    known: list[Known] = []
    with path.open("wb") as file:
        for number, (raw, sentence) in enumerate(hostile_lines(lines, seed), start=1):
            file.write(raw)
            if sentence:
                known.append(Known(number, sentence))
    return known


def hostile_lines(lines: int = LINES, seed: int = 1) -> Iterator[tuple[bytes, str]]:
    """Lines with their ends, and the clean sentence where a line is one, else nothing."""
    generator = random.Random(seed)
    makers = _makers(generator)
    long = set(generator.sample(range(2, lines), min(LONG_LINES, lines // 50)))
    for number in range(1, lines + 1):
        end = b"" if number == lines else b"\r\n" if generator.random() < 0.1 else b"\n"
        is_clean = number == 1 or generator.random() < KNOWN_SHARE
        sentence = generator.choice(CLEAN) if is_clean and number not in long else ""
        raw = sentence.encode() or (_long(generator) if number in long else generator.choice(makers)())
        if number == lines:
            raw = raw or b"last"  # an empty last line without an end would be no line
        yield raw.replace(b"\n", b" ") + end, sentence


def _makers(generator: random.Random) -> list[Callable[[], bytes]]:
    def words() -> bytes:
        return " ".join(generator.choice(ODD) for _ in range(generator.randrange(1, 6))).encode()

    def invalid() -> bytes:
        return b"clean " + b"".join(generator.choice(INVALID) for _ in range(generator.randrange(1, 4))) + b" text"

    def noise() -> bytes:
        return generator.randbytes(generator.randrange(1, 40))

    def code_points() -> bytes:
        characters = (chr(generator.randrange(0x110000)) for _ in range(generator.randrange(1, 20)))
        return "".join(characters).encode("utf-8", "replace")

    def long_word() -> bytes:
        return generator.choice("aé日🙂").encode() * generator.randrange(50, 400)

    def blank() -> bytes:
        return generator.choice(["", " ", "   ", "\t", "\u00a0", "\u3000", "\u2028"]).encode()

    def many_sentences() -> bytes:
        return " ".join(generator.choice(CLEAN) for _ in range(generator.randrange(2, 30))).encode()

    return [words, words, words, invalid, noise, code_points, long_word, blank, blank, many_sentences]


def _long(generator: random.Random) -> bytes:
    """1 MB: prose, one word, or bytes without sense."""
    match generator.randrange(3):
        case 0:
            return b" ".join(generator.choice(CLEAN).encode() for _ in range(LONG_BYTES // 20))[:LONG_BYTES]
        case 1:
            return "é".encode() * (LONG_BYTES // 2)
        case _:
            return generator.randbytes(LONG_BYTES)


if __name__ == "__main__":
    write_hostile(Path(sys.argv[1]), *(int(argument) for argument in sys.argv[2:]))
