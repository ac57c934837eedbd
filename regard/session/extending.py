"""A run that goes on under other limits than it began with: what `--resume --set` may change, and what that means.

A learning rate that depends on the end of the run is another one for a run that ends elsewhere; that is said, and
nothing else: every other setting here decides when training ends, validates or saves, and not what a step does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from regard.changes import changed_keys, flattened
from regard.config import Config, architecture_of
from regard.errors import RunError
from regard.run import RunDirectory
from regard.session.order import plain
from regard.session.resuming import MAY_CHANGE
from regard.train.config import TrainConfig
from regard.train.optimizer import rate_at

LIMITS = frozenset(
    f"train.{key}"
    for key in ("max_steps", "max_epochs", "max_minutes", "patience", "validate_every", "checkpoint_every")
)
"""What `--set` may change when a run is resumed."""
HISTORY = "resumed_with"
"""Key of config.json: at which step what was changed."""


def refuse_other_settings(
    old: Mapping[str, Any], new: Mapping[str, Any], set_now: frozenset[str], run: RunDirectory
) -> None:
    """RunError where the run began with other settings; limits may be others if `--set` asks for them by name.

    A recipe that says another limit than the run has is no such request: it may be older than the last one.
    """
    changed = changed_keys(old, new, MAY_CHANGE | (LIMITS & set_now))
    if not changed:
        return
    again = f"`regard train --out {run.path} --resume` goes on with the run's own"
    limits = [line.partition(":")[0] for line in changed if line.partition(":")[0] in LIMITS]
    if len(limits) == len(changed):
        raise RunError(
            f"The run began with other settings ({'; '.join(changed)}). {again}; to change it, add --set "
            f"{limits[0]}={flattened(new)[limits[0]]}."
        )
    raise RunError(
        f"The run began with other settings ({'; '.join(changed)}). Resume it with the same ones ({again}), or choose "
        f"another --out."
    )


def refuse_end_behind(config: TrainConfig, step: int, run: RunDirectory) -> None:
    """A run cannot end before where it is."""
    if config.max_steps < step:
        raise RunError(
            f"train.max_steps={config.max_steps} lies behind {run.path}, which has trained {step:,} steps. Set it to "
            f"{step} or more, or leave it out and `regard train --out {run.path} --resume` goes on with the run's own."
        )


def changed_limits(old: Config, new: Config) -> list[str]:
    """A line for each: `train.max_steps: 100 → 200`."""
    return [line for line in changed_keys(plain(old), plain(new)) if line.partition(":")[0] in LIMITS]


def noted(document: dict[str, Any], changed: list[str], step: int) -> dict[str, Any]:
    """The document of config.json, with what was changed at this step."""
    history: list[Any] = document.get(HISTORY, [])
    return document | {HISTORY: [*history, {"step": step, "changed": changed}]} if changed else document


def said_of(before: Config, config: Config, step: int) -> list[str]:
    """What is changed, and where the result will not be that of a run begun with the new limits."""
    notes = [f"{line}, from step {step:,} on" for line in changed_limits(before, config)]
    return [*notes, *departures(before.train, config.train, architecture_of(config).width(config.model) or 0, step)]


def departures(old: TrainConfig, new: TrainConfig, width: int, step: int) -> list[str]:
    """Why the result is another than that of a run begun with the new limits; none where it is the same to the bit."""
    notes: list[str] = []
    if step and any(rate_at(at, old, width) != rate_at(at, new, width) for at in range(1, step + 1)):
        what = f"train.cooldown={new.cooldown}" if new.schedule != "cosine" else "train.schedule='cosine'"
        notes.append(
            f"note: {what} depends on train.max_steps, so some of the {step:,} steps so far had another learning rate "
            f"than in a run begun with {new.max_steps:,}; the result is not that of such a run"
        )
    if step and old.validate_every != new.validate_every and (new.patience or new.average_of == "best"):
        what = f"train.patience={new.patience}" if new.patience else "train.average_of='best'"
        notes.append(
            f"note: {what} counts validations, and up to step {step:,} there was one every {old.validate_every:,} "
            f"steps; the result may not be that of a run begun with train.validate_every={new.validate_every}"
        )
    if step and old.checkpoint_every != new.checkpoint_every and new.average > 1 and not new.ema:
        notes.append(
            f"note: the average at the end is of the last checkpoints, and up to step {step:,} there is one every "
            f"{old.checkpoint_every:,} steps; the result may not be that of a run begun with "
            f"train.checkpoint_every={new.checkpoint_every}"
        )
    return notes
