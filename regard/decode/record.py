"""The search as data: every hypothesis that a beam kept or dropped, as a tree with scores, for a page to draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

OPEN, DROPPED, FINISHED, CUT = "open", "dropped", "finished", "cut"


@dataclass(slots=True)
class Node:
    """One token of a hypothesis."""

    parent: int
    """Its place in the tree's nodes; −1 for the root, the start symbol."""
    token: int
    log_prob: float
    """What the step before said of it; for the root 0."""
    total: float
    """The sum from the root."""
    step: int
    fate: str
    """open: it went on; dropped: it fell out of the beam; finished: it ended; cut: the length limit ended it."""


class Child(NamedTuple):
    """A continuation in one step of a search."""

    parent: int
    """The place in the beam of what it continues."""
    token: int
    log_prob: float
    total: float
    fate: str


@dataclass(slots=True)
class Tree:
    """What the search saw of one sentence."""

    nodes: list[Node]
    beam: list[int] = field(default_factory=lambda: [0])
    """The nodes that are open now, in the order of the beam."""

    def to_json(self, pieces: Any) -> dict[str, Any]:
        """Plain values; `pieces` makes text of token ids."""
        shown = pieces([node.token for node in self.nodes])
        return {
            "nodes": [
                {
                    "id": number,
                    "parent": node.parent,
                    "token": text,
                    "log_prob": node.log_prob,
                    "total": node.total,
                    "step": node.step,
                    "fate": node.fate,
                }
                for number, (node, text) in enumerate(zip(self.nodes, shown, strict=True))
            ]
        }


@dataclass(slots=True)
class Recorder:
    """Handed to a search, it keeps one tree per sentence, or per diverse group: number sentence · groups + group."""

    trees: dict[int, Tree] = field(default_factory=dict)

    def begin(self, sentence: int, start_id: int, begun: Sequence[int] = ()) -> None:
        """`begun` are tokens that the model has read before the first step, which are not scored."""
        tokens = enumerate((start_id, *begun))
        self.trees[sentence] = Tree(
            [Node(step - 1, token, 0.0, 0.0, step, OPEN) for step, token in tokens], [len(begun)]
        )

    def extend(self, sentence: int, opened: Sequence[Child], others: Sequence[Child]) -> None:
        """One step: the new beam in its order, and what ended or fell out. A place that nothing fills has −∞."""
        tree = self.trees[sentence]
        parents, tree.beam = tree.beam, []
        for child in opened:
            tree.beam.append(self._add(tree, parents, child) if child.total > -math.inf else -1)
        for child in others:
            if child.total > -math.inf:
                self._add(tree, parents, child)

    @staticmethod
    def _add(tree: Tree, parents: Sequence[int], child: Child) -> int:
        above = parents[child.parent]
        step = tree.nodes[above].step + 1
        tree.nodes.append(Node(above, child.token, child.log_prob, child.total, step, child.fate))
        return len(tree.nodes) - 1

    def cut(self, sentence: int) -> None:
        """What is open has reached the length limit."""
        self._settle(sentence, CUT)

    def leave(self, sentence: int) -> None:
        """What is open can no longer win."""
        self._settle(sentence, DROPPED)

    def finish(self, sentence: int, place: int) -> None:
        """The open hypothesis at this place of the beam is complete as it is."""
        tree = self.trees[sentence]
        tree.nodes[tree.beam[place]].fate, tree.beam[place] = FINISHED, -1

    def _settle(self, sentence: int, fate: str) -> None:
        tree = self.trees[sentence]
        for number in tree.beam:
            if number >= 0:
                tree.nodes[number].fate = fate
        tree.beam = []
