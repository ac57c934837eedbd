"""Translation of the same sentences, given as ids. Needs nothing but its peer.

A turn is asked {"what": "bulk", "beam": b} or {"what": "alone", "beam": b}. Bulk: all sentences at once, in batches of
the peer's choice; alone: the first `alone` sentences one by one. It answers {"seconds": [one for each call], "tokens":
generated tokens, end symbols counted}, and where "outputs" is asked for also what came out, as ids (`rows`) or texts.
"""

from __future__ import annotations

import importlib
import json
import time
from pathlib import Path
from typing import Any

Turn = dict[str, Any]


class Runner:
    """A peer has `prepare(sentences, beam)`, which is not timed, `run(prepared)`, which is, `lengths(found)` and
    `outputs(found)`."""

    def __init__(self, module: str, settings: dict[str, Any]) -> None:
        sentences = json.loads(Path(settings["sentences"]).read_text())
        self.peer = importlib.import_module(module).Peer(settings | {"probe": sentences[: settings["warmup"]]})
        self.bulk: dict[int, Any] = {}
        self.alone: dict[int, list[Any]] = {}
        for beam in settings["beams"]:
            self.bulk[beam] = self.peer.prepare(sentences, beam)
            self.alone[beam] = [self.peer.prepare([each], beam) for each in sentences[: settings["alone"]]]
            self.peer.run(self.peer.prepare(sentences[: settings["warmup"]], beam))
            self.peer.run(self.alone[beam][0])

    def turn(self, asked: Turn) -> Turn:
        beam = asked["beam"]
        works = [self.bulk[beam]] if asked["what"] == "bulk" else self.alone[beam]
        self.peer.run(self.alone[beam][0])  # awake again, and the caches ours
        seconds: list[float] = []
        found: list[Any] = []
        for work in works:
            started = time.perf_counter()
            found.append(self.peer.run(work))
            seconds.append(time.perf_counter() - started)
        tokens = sum(sum(self.peer.lengths(each)) for each in found)
        answer = {"seconds": seconds, "tokens": tokens}
        return answer | self.peer.outputs(found[0]) if asked.get("outputs") else answer

    def about(self) -> Turn:
        return {"version": self.peer.version, "note_on_batches": self.peer.batches}
