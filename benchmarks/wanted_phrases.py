"""What it brings to ask for words: python benchmarks/wanted_phrases.py RUN SOURCE REFERENCE [LINES].

Of each reference two neighbouring words are asked for. Prints how often they came, and BLEU without and with asking.
"""

from __future__ import annotations

import random
import sys
from itertools import islice
from pathlib import Path

import regard
from regard.errors import ConfigError
from regard.evaluate import evaluate_texts
from regard.tasks.pairs import usual_tokenizer
from regard.text.corpus import read_lines
from regard.text.tokenizer import join_pieces


def two_words(reference: str, joiner: str, seed: int) -> str:
    """Not the last one, which is mostly a full stop; the pieces of a split word stay together."""
    words: list[str] = []
    for piece in reference.split():
        goes_on = bool(joiner) and bool(words) and words[-1].endswith(joiner)
        words[-1:] = [f"{words[-1]} {piece}"] if goes_on else [*words[-1:], piece]
    first = random.Random(seed).randrange(max(len(words) - 2, 1))
    return " ".join(words[first : first + 2])


def main(run: str, source: str, reference: str, lines: str = "500") -> None:
    sources, references = (list(islice(read_lines(Path(name)), int(lines))) for name in (source, reference))
    model = regard.load(run)
    joiner = model.tokenizer.joiner
    free = [one.text for one in model.translate(sources, beam=5)]
    asked: list[str] = []
    came = unknown = 0
    for number, (text, answer) in enumerate(zip(sources, references, strict=True)):
        phrase = two_words(answer, joiner, number)
        try:
            found = model.translate(text, beam=5, require=[phrase])[0].text
        except ConfigError:  # the model cannot write it
            found, unknown = free[number], unknown + 1
        came += join_pieces(phrase, joiner) in found
        asked.append(found)
    whole = [[join_pieces(answer, joiner) for answer in references]]
    before, after = (evaluate_texts(texts, whole, tokenize=usual_tokenizer(joiner)).bleu for texts in (free, asked))
    print(
        f"{came} of {len(sources)} came ({unknown} outside the vocabulary); BLEU {before:.2f} without, {after:.2f} with"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
