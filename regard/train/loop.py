"""The training loop: step, log, validate, save, stop; and go on where it was left.

What a step does depends on (config, data, step) alone, so a run that was killed anywhere and resumed ends in the same
bits as one that was not.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NoReturn

from torch import Tensor, nn

from regard.checkpoint import (
    Checkpoint,
    average_weights,
    committed_steps,
    load_checkpoint,
    remove_checkpoint,
    save_checkpoint,
)
from regard.data.batching import Position
from regard.data.feed import Feed
from regard.errors import CheckpointError, RunError
from regard.metrics_log import VALID, MetricsLog, finite, read_metrics
from regard.models.parameters import load_parameters, parameters_of
from regard.nn.loss import Objective, Smoothing
from regard.run import RunDirectory
from regard.tasks.interface import Metric, Task, Validation, Validator
from regard.train.config import TrainConfig
from regard.train.console import Reporter
from regard.train.optimizer import (
    MovingAverage,
    build_optimizer,
    optimizer_tensors,
    rate_at,
    restore_optimizer,
    set_rate,
)
from regard.train.signals import Abandoned, Interrupted, StopRequest
from regard.train.step import StepResult, seed_step, train_step


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands, and what it has seen of its own quality. Plain JSON, in every checkpoint."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    tokens: int = 0
    skipped: int = 0
    skipped_in_a_row: int = 0
    best: float | None = None
    """Of what has to improve; lower is better (a metric of which more is better is negated)."""
    since_best: int = 0
    scores: dict[str, float] = field(default_factory=dict)
    """step → the same measure at each checkpoint that is kept."""
    saved: tuple[int, ...] = ()
    """The checkpoints of the schedule; one that a signal asked for is not among them."""
    ended: str = ""
    """Why the run is over."""
    unfinished: dict[str, Any] | None = None
    """The record of a step whose validation was left in the middle, for a stop was asked for."""

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "saved": list(self.saved)}

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> Progress:
        values: dict[str, Any] = {**state, "saved": tuple(state["saved"])}
        return cls(**values)


class Loop:
    """Trains a model in a run directory."""

    def __init__(
        self,
        *,
        model: nn.Module,
        task: Task,
        feed: Feed,
        validator: Validator | None,
        run: RunDirectory,
        config: TrainConfig,
        width: int,
        seed: int,
        precision: str,
        reporter: Reporter,
    ) -> None:
        self.model, self.task, self.feed, self.validator, self.run = model, task, feed, validator, run
        self.config, self.width, self.seed, self.precision = config, width, seed, precision
        self.reporter = reporter
        self.objective = Objective(Smoothing(config.label_smoothing, config.smoothing_form), config.consistency)
        self.optimizer = build_optimizer(model, config)
        self.average = MovingAverage(model, config.ema) if config.ema else None
        self.progress = Progress()
        self.seconds = 0.0

    # Going on

    def restore(self) -> None:
        """From the last committed checkpoint, if there is one; the log is cut back to it."""
        folder = self.run.last_checkpoint()
        if folder is not None:
            checkpoint = load_checkpoint(folder)
            self.progress = Progress.from_json(checkpoint.state)
            load_parameters(self.model, checkpoint.weights)
            restore_optimizer(self.optimizer, self.model, checkpoint.optimizer)
            if self.average is not None:
                self.average.restore(checkpoint.optimizer)
            self._miss_checkpoints()
        unfinished = self.progress.unfinished
        with MetricsLog(self.run.metrics) as log:
            log.cut_back(self.progress.step - (unfinished is not None))
        last = unfinished or next(reversed(read_metrics(self.run.metrics)), {"seconds": 0.0})
        self.seconds = float(last["seconds"])
        if unfinished is None:
            self._decide_end()  # a limit may have been lifted, or set
            self._forget_earlier_end()

    def _forget_earlier_end(self) -> None:
        """A checkpoint that was there only because the run ended takes no part in the average of one that goes on."""
        now = self.progress
        if not now.ended and now.step % self.config.checkpoint_every:
            self.progress = replace(now, saved=tuple(step for step in now.saved if step != now.step))

    def _miss_checkpoints(self) -> None:
        """Those that were removed take no part in the average; that is said now, not after the last step."""
        there = committed_steps(self.run.checkpoints)
        gone = [step for step in self.progress.saved if step not in there]
        if gone:
            self.progress = replace(self.progress, saved=tuple(step for step in self.progress.saved if step in there))
            names = ", ".join(f"{self.run.checkpoints / str(step)}" for step in gone)
            self.reporter.say(f"note: {names} gone since it was saved; an average at the end goes without")

    # Running

    def run_to_end(self) -> Progress:
        """Trains until a limit, early stopping or a signal; Interrupted for the last, with everything saved."""
        self.model.train()
        with MetricsLog(self.run.metrics) as log, StopRequest() as stop:
            if self.progress.unfinished is not None:
                self._finish_step(self.progress.unfinished, log, stop)
            elif self.progress.ended and self.progress.step not in self.progress.saved:
                self._save_if_due(log)  # a checkpoint that a signal asked for is the last one after all
            while not self.progress.ended:
                self._finish_step(self._one_step(), log, stop)
                if stop.requested:
                    self._leave(log)
        return self.progress

    def _leave(self, log: MetricsLog) -> NoReturn:
        self._save(log)
        raise Interrupted(self.progress.step)

    def _one_step(self) -> dict[str, Any]:
        """Takes a step and gives its record."""
        started = time.monotonic()
        step = self.progress.step + 1
        position = Position(self.progress.epoch, self.progress.batch)
        batches, behind = self.feed.take(position, self.config.accumulate)
        rate = rate_at(step, self.config, self.width)
        set_rate(self.optimizer, rate)
        seed_step(self.seed, step)
        result = train_step(
            self.model,
            self.optimizer,
            batches,
            loss_of=self.task.loss,
            objective=self.objective,
            clip=self.config.clip,
            precision=self.precision,
        )
        if self.average is not None and result.taken:
            self.average.update(self.model, step)
        self._advance(step, behind, result)
        self.seconds += time.monotonic() - started
        return self._record(result, rate)

    def _finish_step(self, record: dict[str, Any], log: MetricsLog, stop: StopRequest) -> None:
        """Validates where it is due, and puts the step on record; a stop that is asked for does not wait for it."""
        started = time.monotonic()
        if record["step"] % self.config.validate_every == 0 and self.validator is not None:
            try:
                record = record | self._validate(self.validator, stop)
            except Abandoned:
                self.progress = replace(self.progress, unfinished=finite(record))
                self._leave(log)
        self.progress = replace(self.progress, unfinished=None)
        self.seconds += time.monotonic() - started
        record["seconds"] = round(self.seconds, 3)
        self._decide_end()
        log.append(record)
        self.reporter.step(record, leaving=stop.requested)
        self._save_if_due(log)
        self._refuse_endless_skipping()

    def _advance(self, step: int, behind: Position, result: StepResult) -> None:
        before = self.progress
        self.progress = replace(
            before,
            step=step,
            epoch=behind.epoch,
            batch=behind.batch,
            tokens=before.tokens + result.tokens,
            skipped=before.skipped + (not result.taken),
            skipped_in_a_row=0 if result.taken else before.skipped_in_a_row + 1,
        )

    def _record(self, result: StepResult, rate: float) -> dict[str, Any]:
        return {
            "step": self.progress.step,
            "epoch": self.progress.epoch,
            "loss": result.loss,
            "truth_loss": result.truth,
            "rate": rate,
            "norm": result.norm,
            "tokens": result.tokens,
            "skipped": self.progress.skipped,
            "seconds": round(self.seconds, 3),
        }

    def _refuse_endless_skipping(self) -> None:
        if self.progress.skipped_in_a_row < self.config.max_skipped:
            return
        last = self.run.last_checkpoint()
        remedy = "a longer train.warmup" if self.config.schedule == "paper" else "a lower train.peak_rate"
        raise RunError(
            f"step {self.progress.step}: the gradient was not finite {self.config.max_skipped} times in a row; "
            + (f"the last good checkpoint is {last}. " if last else "no checkpoint had been saved. ")
            + f"Train anew with {remedy} or with train.clip=1.0, in another --out."
        )

    # Validation

    def _validate(self, validate: Validator, stop: StopRequest) -> dict[str, Any]:
        with self._averaged():
            validation = validate(stop.abandon_if_requested)
        self._note_quality(validation)
        self.reporter.validation(self.progress.step, validation)
        found = {f"{VALID}{name}": value for name, value in validation.metrics.items()}
        return found | {"samples": [sample.to_json() for sample in validation.samples]}

    def _note_quality(self, validation: Validation) -> None:
        measure = self._stop_on.badness(validation.metrics.get(self._stop_on.name, math.nan))
        before = self.progress
        better = math.isfinite(measure) and (before.best is None or measure < before.best)
        self.progress = replace(
            before,
            best=measure if better else before.best,
            since_best=0 if better else before.since_best + 1,
            scores=before.scores | ({str(before.step): measure} if math.isfinite(measure) else {}),
        )

    @property
    def _stop_on(self) -> Metric:
        metric = self.task.metric(self.config.stop_on)
        assert metric is not None  # the config has been checked
        return metric

    def _averaged(self) -> Swapped:
        """The model with its moving average, where there is one."""
        return Swapped(self.model, {} if self.average is None else self.average.tensors)

    # Ending and saving

    def _decide_end(self) -> None:
        config, now = self.config, self.progress
        ended = ""
        if now.step >= config.max_steps:
            ended = f"train.max_steps={config.max_steps}"
        elif config.max_epochs and now.epoch >= config.max_epochs:
            ended = f"train.max_epochs={config.max_epochs}"
        elif config.patience and now.since_best >= config.patience:
            ended = f"{config.patience} validations without a better {config.stop_on}"
        elif config.max_minutes and self.seconds >= 60 * config.max_minutes:
            ended = f"train.max_minutes={config.max_minutes:g}"
        self.progress = replace(now, ended=ended)

    def _save_if_due(self, log: MetricsLog) -> None:
        now = self.progress
        if now.skipped_in_a_row >= self.config.max_skipped:
            return
        # While steps are skipped nothing is new, and what would be saved might push out the last good ones.
        if now.ended or (now.step % self.config.checkpoint_every == 0 and not now.skipped_in_a_row):
            self.progress = replace(now, saved=self._kept((*now.saved, now.step)))
            self._save(log)

    def _save(self, log: MetricsLog) -> None:
        keep = {str(step) for step in self.progress.saved}
        scores = {step: score for step, score in self.progress.scores.items() if step in keep}
        self.progress = replace(self.progress, scores=scores)
        log.sync()
        save_checkpoint(
            self.run.checkpoints,
            Checkpoint(self.progress.step, parameters_of(self.model), self._optimizer_state(), self.progress.to_json()),
        )
        self._remove_old()

    def _optimizer_state(self) -> dict[str, Tensor]:
        ema = {} if self.average is None else self.average.to_tensors()
        return optimizer_tensors(self.optimizer, self.model) | ema

    def _kept(self, steps: tuple[int, ...]) -> tuple[int, ...]:
        """The last ones, and the best where these are to be averaged."""
        last_wanted = max(self.config.keep, self.config.average if self.config.average_of == "last" else 1)
        return tuple(sorted({*steps[-last_wanted:], *self._best(steps)}))

    def _best(self, steps: tuple[int, ...]) -> list[int]:
        if self.config.average_of == "last":
            return []
        scored = [step for step in steps if str(step) in self.progress.scores]
        return sorted(scored, key=lambda step: (self.progress.scores[str(step)], -step))[: self.config.average]

    def _remove_old(self) -> None:
        keep = {*self.progress.saved, self.progress.step}
        for step in committed_steps(self.run.checkpoints):
            if step not in keep:
                remove_checkpoint(self.run.checkpoints / str(step))

    def final_weights(self) -> dict[str, Tensor]:
        """The moving average, or the mean of the checkpoints that `train.average` names."""
        if self.average is not None:
            return self.average.tensors
        saved = self.progress.saved
        best = self._best(saved)
        steps = best or list(saved[-self.config.average :])
        if self.config.average_of == "best" and not best:
            self.reporter.say("the run ended before a checkpoint was validated: its last ones are averaged")
        if not steps:
            return parameters_of(self.model)
        try:
            return average_weights([self.run.checkpoints / str(step) for step in steps])
        except CheckpointError as error:
            raise CheckpointError(
                f"{error} To train that stretch again, remove it and every later one from {self.run.checkpoints}."
            ) from None


class Swapped:
    """Other weights in a model, for the length of a block."""

    def __init__(self, model: nn.Module, weights: dict[str, Tensor]) -> None:
        self.model, self.weights = model, weights

    def __enter__(self) -> None:
        self.before = {name: tensor.clone() for name, tensor in parameters_of(self.model).items() if self.weights}
        if self.weights:
            load_parameters(self.model, self.weights)

    def __exit__(self, *_: object) -> None:
        if self.weights:
            load_parameters(self.model, self.before)
