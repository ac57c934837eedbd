"""The ids that every text vocabulary reserves, and what a model and its task need to know of them.

The constants stay in this package. Everything beyond it is handed a `Symbols`, because published weights bring ids of
their own and the classes of a pointer network are positions.
"""

from dataclasses import dataclass

PAD, START, END, UNKNOWN = 0, 1, 2, 3
SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")
"""How the reserved ids are shown; never looked up."""
MASK = "mask"
"""The tag whose id stands for a hidden token, in vocabularies that are made for a masked language model."""


@dataclass(frozen=True, slots=True)
class Symbols:
    """The ids with a meaning of their own among the classes that a model generates."""

    start: int
    """What the decoder reads first."""
    end: int
    """What ends an output."""
    pad: int = 0
    """What fills up short rows; masks say where, so its value never matters."""
    never: tuple[int, ...] = ()
    """Classes that are never generated."""
    unknown: int | None = None
    """What stands for a word outside the vocabulary; None: there is none."""
    mask: int | None = None
    """What stands for a hidden token, which a masked language model is to find; None: there is none."""
    between: tuple[int, ...] = ()
    """What stands between the two texts of a pair, beside the end symbol of the first."""


RESERVED = Symbols(start=START, end=END, pad=PAD, never=(PAD, START), unknown=UNKNOWN)
"""Those of this package's own vocabularies."""
