"""The demo's corpus: English and French sentences made by a grammar, with the coreference of *it* among them.

`words` (tables) → `lexicon` with `english`, `french` (forms) → `phrases`, `clauses` (agreement) → `actions`,
`descriptions`, `compounds`, `coreference` (families of sentences) → `corpus` (splits).
"""

from regard.text.phrasebook.coreference import ANIMAL_TIRED, ANIMAL_WIDE
from regard.text.phrasebook.corpus import Phrasebook, make_phrasebook, write_phrasebook
from regard.text.phrasebook.lexicon import lexeme_count
from regard.text.phrasebook.phrases import Pair

__all__ = ["ANIMAL_TIRED", "ANIMAL_WIDE", "Pair", "Phrasebook", "lexeme_count", "make_phrasebook", "write_phrasebook"]
