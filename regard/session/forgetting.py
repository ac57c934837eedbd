"""What a run forgets of the one that it started from: that one's test set, measured with the weights before and after.

A model that is trained on new text alone gets worse on the old. `--old-data` trains on some of the old as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.config import Config, task_of
from regard.data.store import Store
from regard.errors import RegardError
from regard.interchange.huggingface import is_published
from regard.loading import read_examples, read_run
from regard.tasks.interface import Examples, Measured
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class OldSet:
    """Examples of the run that another one starts from."""

    name: str
    """To speak of it."""
    examples: Examples
    note: str = ""
    """What to bear in mind."""


def old_set(origin: Path | None, config: Config, tokenizer: Tokenizer, hashes: Mapping[str, str]) -> OldSet | None:
    """The test set of the run at `origin`, or else its validation set; None where there is nothing to measure on: no
    such run, another task or other columns. `hashes` are those of the files that are trained on now.

    What cannot be read any more is an empty set, with a note: a run that goes on does not need it.
    """
    if origin is None or is_published(origin):
        return None
    try:
        run, other, document = read_run(origin)
        if other.task != config.task or task_of(other).columns(other.data) != task_of(config).columns(config.data):
            return None
        base = Path(document["data"]["base"])
        if other.data.test:
            found = read_examples(other.data.test, other, tokenizer, base)
            return OldSet(f"the test set of {origin}", found)
        store = Store.open(run.store)
        texts = store.valid_texts()
        found = Examples(store.valid_examples(), texts, texts.pop("tag"))
        held_out = not other.data.valid and set(hashes.values()) & set(document["data"]["hashes"].values())
        return OldSet(f"the validation set of {origin}", found, SEEN if held_out else "")
    except (RegardError, OSError) as error:
        return OldSet("", Examples([], {}), f"what is forgotten is not measured: {error}")


SEEN = (
    "it was held out from files that this run trains on as a whole, so it may have seen some of these pairs; data.test "
    "in the recipe of the old run would be a set that it has not"
)


def results_of(old: OldSet, before: Measured, after: Measured) -> dict[str, Any]:
    """As `results.json` holds it."""
    return {"set": old.name, "before": before.to_json(), "after": after.to_json()}
