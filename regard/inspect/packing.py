"""An inspection as the page reads it: a description in plain values, and blocks of bytes, one a layer and head.

A head's block holds weights (T×K), queries (T×H) and keys (K×H) as little-endian floats, one behind the other. Beside
the heads an attention has an `overview`, all its heads as small pictures of one byte a cell, and where it has one, a
`mask`, one bit a cell. `web/src/data.js` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.errors import ConfigError
from regard.inspect.likeness import likenesses
from regard.inspect.record import Attention, Inspection, Side

OVERVIEW = 48
"""The most cells of a small picture, down and across."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which layers and heads a page shows; None: all."""

    only_layers: tuple[int, ...] | None = None
    only_heads: tuple[int, ...] | None = None

    def attentions(self, inspection: Inspection) -> list[Attention]:
        """ConfigError where a model that attends would be shown without any attention."""
        layers = sorted({each.layer for each in inspection.attentions})
        heads = max((each.heads for each in inspection.attentions), default=0)
        found = [each for each in inspection.attentions if self.only_layers is None or each.layer in self.only_layers]
        if inspection.attentions and not found:
            raise ConfigError(f"--layers {listed(self.only_layers)}: the layers of this model are {listed(layers)}")
        if found and not any(self.of(each) for each in found):
            raise ConfigError(f"--heads {listed(self.only_heads)}: the heads of this model are {listed(range(heads))}")
        return [each for each in found if self.of(each)]

    def of(self, attention: Attention) -> list[int]:
        """The heads of one attention."""
        return [head for head in range(attention.heads) if self.only_heads is None or head in self.only_heads]


ALL = Chosen()


def listed(numbers: Sequence[int] | None) -> str:
    return ",".join(map(str, numbers or ()))


def described(inspection: Inspection, name: str, chosen: Chosen = ALL) -> dict[str, Any]:
    """Everything but the blocks; `name` is the document's own among those of a page."""
    attentions = chosen.attentions(inspection)
    sides = sides_of(inspection, attentions)
    return {
        "id": name,
        "text": inspection.text,
        "also": [list(each) for each in inspection.also.items()],
        "output": inspection.output,
        "given": inspection.given,
        "score": inspection.score,
        "sides": [side.to_json() for side in sides],
        "attentions": [attention_described(each, sides, chosen) for each in attentions],
        "steps": [step.to_json() for step in inspection.steps],
        "tree": inspection.tree,
        "positions": [{"name": key, "shape": list(table.shape)} for key, table in inspection.positions.items()],
    }


def page_data(inspections: Sequence[Inspection], names: Sequence[str], chosen: Chosen = ALL) -> dict[str, Any]:
    """All documents of a page, and the words that they share."""
    documents = [described(each, name, chosen) for each, name in zip(inspections, names, strict=True)]
    return {"documents": documents, "words": [each.to_json() for each in likenesses(inspections)]}


def sides_of(inspection: Inspection, attentions: Sequence[Attention]) -> list[Side]:
    """Each once: those of the text, and what a model can look at beside them."""
    return list(
        dict.fromkeys([*inspection.sides, *(side for each in attentions for side in (each.queries, each.keys))])
    )


def attention_described(attention: Attention, sides: Sequence[Side], chosen: Chosen) -> dict[str, Any]:
    return {
        "block": attention.block,
        "group": attention.group,
        "layer": attention.layer,
        "queries": len(attention.queries),
        "keys": len(attention.keys),
        "width": attention.q.shape[-1],
        "query_side": sides.index(attention.queries),
        "key_side": sides.index(attention.keys),
        "shown": chosen.of(attention),
        "factor": attention.factor,
        "v": None if attention.v is None else attention.v.tolist(),
        "mask": mask_kind(attention),
        "overview": list(small(attention.weights[0]).shape),
    }


def mask_kind(attention: Attention) -> str | None:
    """Whether there is one mask for `all` heads, one for each of the `heads`, or none."""
    if attention.mask is None:
        return None
    return "all" if (attention.mask == attention.mask[:1]).all() else "heads"


def blocks_of(inspection: Inspection, chosen: Chosen = ALL) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Every block by its name, made when it is called for."""
    for attention in chosen.attentions(inspection):
        for name in block_names(attention, chosen):
            yield f"{attention.block}/{name}", lambda own=attention, name=name: block(own, name, chosen)
    for number, table in enumerate(inspection.positions.values()):
        yield f"positions/{number}", lambda table=table: table.astype("<f4").tobytes()


def block_names(attention: Attention, chosen: Chosen) -> list[str]:
    return [*map(str, chosen.of(attention)), "overview", *(["mask"] if attention.mask is not None else [])]


def block(attention: Attention, name: str, chosen: Chosen = ALL) -> bytes:
    """One block; KeyError for a name that is none."""
    if name not in block_names(attention, chosen):
        raise KeyError(name)
    if name == "mask":
        assert attention.mask is not None
        return np.packbits(attention.mask[0] if mask_kind(attention) == "all" else attention.mask).tobytes()
    if name == "overview":
        pictures = [small(attention.weights[head]) for head in chosen.of(attention)]
        return np.stack(pictures).tobytes()
    head = int(name)
    parts = (attention.weights[head], attention.q[head], attention.k[head])
    return b"".join(np.ascontiguousarray(part, "<f4").tobytes() for part in parts)


def small(weights: np.ndarray) -> np.ndarray:
    """Each cell the largest of those that it stands for, in 255 steps."""
    for axis in (0, 1):
        size = weights.shape[axis]
        starts = np.unique(np.arange(min(size, OVERVIEW)) * size // min(size, OVERVIEW))
        weights = np.maximum.reduceat(weights, starts, axis)
    return np.round(255 * np.clip(weights, 0, 1)).astype(np.uint8)


def block_bytes(inspection: Inspection, chosen: Chosen = ALL) -> int:
    """How large all blocks are."""
    total = sum(table.size * 4 for table in inspection.positions.values())
    for each in chosen.attentions(inspection):
        (_, queries, keys), width = each.weights.shape, each.q.shape[-1]
        total += len(chosen.of(each)) * (4 * (queries * keys + (queries + keys) * width) + OVERVIEW**2)
        total += 0 if each.mask is None else each.mask.size // 8 + 1
    return total
