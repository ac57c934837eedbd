"""Our translation, as `regard translate` does it, of sentences that are encoded already."""

from __future__ import annotations

from typing import Any

import regard
from regard import hardware
from regard.decode.translation import Translation
from regard.decode.units import Prepared
from regard.loading import load_translator
from regard.native.engine import NativeTransformer
from regard.native.library import best_set


def engine_of(model: object) -> str:
    """What translates: where the native engine is not built, or does not run this model, fp32 is the Python path."""
    return f"native ({best_set()})" if isinstance(model, NativeTransformer) else "Python"


class Peer:
    def __init__(self, settings: dict[str, Any]) -> None:
        hardware.set_threads(settings["threads"])
        self.translator = load_translator(settings["run"], **settings["loading"])
        hardware.keep_objects()
        self.options = settings["options"]
        self.version = f"{regard.__version__}, {engine_of(self.translator.model)}"
        self.batches = "as `regard translate` makes them"

    def prepare(self, sentences: list[list[int]], beam: int) -> Prepared:
        """A text in place of each: what is encoded is not read again."""
        penalty: dict[str, Any] = {"beam": beam} | self.options
        return self.translator.prepare(["encoded"] * len(sentences), ids=sentences, **penalty)

    def run(self, prepared: Prepared) -> list[Translation]:
        return self.translator.run(prepared)

    def lengths(self, found: list[Translation]) -> list[int]:
        return [len(each.token_scores) for each in found]

    def outputs(self, found: list[Translation]) -> dict[str, Any]:
        return {"texts": [each.text for each in found]}
