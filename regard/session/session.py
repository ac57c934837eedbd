"""A run from the recipe to the scores: prepare, fit, check, train, average, evaluate.

`start` is what `regard train` calls. The order matters: settings are checked before corpora are read, memory before
anything is built, and the resolved config is on disk before the first step.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import nn

from regard import hardware
from regard.about import forgotten
from regard.checkpoint import committed_step, is_committed, load_weights
from regard.config import architecture_of, build_config, task_of
from regard.data.feed import Feed
from regard.data.store import Store
from regard.data.word_matrix import lines_about
from regard.errors import ConfigError, RunError
from regard.files import discard
from regard.loading import packed_rows, read_examples, trained_for
from regard.models.costs import build_model, parameters_in, trainable_in
from regard.models.interface import Shapes
from regard.models.parameters import load_parameters, parameters_of
from regard.naming import counted
from regard.native.training import training_kernels
from regard.nn import fused
from regard.progress import duration
from regard.report import LiveReport
from regard.run import CONFIG, RunDirectory
from regard.session.checks import refuse_contradictions
from regard.session.costs import longest_pass, memory_needed, seconds_needed, shapes_for
from regard.session.extending import said_of
from regard.session.forgetting import OldSet, old_set, results_of
from regard.session.order import Order, with_other_run
from regard.session.plan import Plan, check_files, resolve
from regard.tasks.interface import Examples, Measured, measured, validator_of
from regard.text.tokenizer import Tokenizer
from regard.train.console import Reporter
from regard.train.loop import Loop, Progress, Swapped


def start(order: Order, console: Console) -> dict[str, Any]:
    """Trains to the end and gives the results, which are also in `results.json`."""
    hardware.keep_memory()
    asked = build_config(with_other_run(order))
    if not asked.data.train:
        raise ConfigError("there is nothing to train on; give --source and --target, or a recipe with data.train")
    if order.start_from is None and not (order.out / CONFIG).is_file():
        refuse_contradictions(asked)  # what goes on, or starts from another run, has passed
    check_files(asked, order)
    run = RunDirectory.create(order.out, resume=order.resume)
    with run.lock():
        run.clear_temporaries()
        return Session(order, resolve(order, asked, run, console), run, console).execute()


class Session:
    """The run itself, once everything is decided."""

    def __init__(self, order: Order, plan: Plan, run: RunDirectory, console: Console) -> None:
        self.order, self.run, self.console = order, run, console
        self.config, self.meta, self.precision = plan.config, plan.meta, plan.precision
        self.paper, self.before = plan.paper, plan.before
        self.task, self.store = task_of(plan.config), Store.open(run.store)
        self.columns = self.store.columns
        self.tokenizer = Tokenizer.load(run.tokenizer)
        if self.tokenizer.to_json() != Tokenizer.load(run.store / "tokenizer.json").to_json():
            raise RunError(
                f"{run.tokenizer} is not the tokenizer that these corpora and settings give now, so the run cannot go "
                f"on. Put back what it began with (the run of --from, the version of tokenizers), or choose another "
                f"--out."
            )

    @property
    def shapes(self) -> Shapes:
        return self._shapes()

    def _shapes(self, store: Path | None = None) -> Shapes:
        return replace(shapes_for(self.config, self.meta, store), symbols=self.tokenizer.symbols)

    def execute(self) -> dict[str, Any]:
        test = self._read_test()  # now: a fault in it is better known before the night than after it
        old = old_set(self.order.start_from, self.config, self.tokenizer, self.meta["hashes"])
        self._say_plan()
        model = self._new_model()
        tensorboard = self.run.tensorboard if self.config.train.tensorboard else None
        with Reporter(self.console, self.config.train.max_steps, self.task.metrics, tensorboard) as reporter:
            loop = self._loop(model, reporter)
            loop.restore()
            if loop.progress.step:
                reporter.say(f"going on from step {loop.progress.step:,}")
            for note in [] if self.before is None else said_of(self.before, self.config, loop.progress.step):
                reporter.say(note)
            if not loop.progress.ended:  # what an earlier end left is no longer the run's best
                self._refuse_going_back(loop.progress.step)
                discard(self.run.final)
                discard(self.run.results)
            page = LiveReport(self.run, self.console, self.config.train.checkpoint_every)
            reporter.watchers.append(page.step)
            with fused.using(training_kernels(self.precision)):
                progress = loop.run_to_end()
        self.console.print(f"ended at step {progress.step:,}: {progress.ended}", highlight=False)
        load_parameters(model, loop.final_weights())
        self.run.write_final(progress.step, parameters_of(model), {"ended": progress.ended})
        results, scores = self._results(model, progress, loop.seconds, test, old)
        page.draw()
        for name, score in scores.items():  # last: whoever listens may have left
            print(f"{name}: {score.summary}")
        if "old" in results:
            print(f"{results['old']['set']}, before and after: {forgotten(self.task, results['old'])}")
        return results

    def _refuse_going_back(self, step: int) -> None:
        """A run that has ended, but whose last checkpoints were removed, is not lightly trained again."""
        ended = committed_step(self.run.final) if is_committed(self.run.final) else 0
        if ended > step:
            raise RunError(
                f"{self.run.path} has ended at step {ended:,}, and its checkpoints after step {step:,} are gone. It "
                f"translates as it is; to train that stretch again, remove {self.run.final}."
            )

    def _say_plan(self) -> None:
        meta, train = self.meta, self.config.train
        tokens = " + ".join(f"{meta['tokens'][column.name]:,}" for column in self.columns)
        sizes = " / ".join(f"{meta['sizes'][column.name]:,}" for column in self.columns if column.kind == "text")
        vocabulary = f"; vocabulary {sizes} ({meta['tokenizer']['kind']})" if sizes else ""
        self._say(
            f"{counted(meta['examples'], self.task.noun)} ({tokens} tokens), {meta['valid_examples']:,} for validation"
            f"{vocabulary}"
        )
        dropped = {name: n for name, n in meta["filters"].items() if n and name not in ("read", "kept")}
        if dropped:
            said = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in dropped.items())
            self._say(f"dropped: {said}")
        if meta["word_vectors"] and self.order.start_from is not None:
            self._say(f"word vectors: those of {self.order.start_from}")
        else:
            for line in lines_about(meta["word_vectors"], asdict(self.config.word_vectors)):
                self._say(f"word vectors of {line}")
        longest = longest_pass(self.config, meta["longest"])
        needed = memory_needed(self.config, self.shapes, self.paper, longest=longest)
        step_tokens = train.batch_tokens * train.accumulate
        epochs = train.max_steps * step_tokens / max(max(meta["tokens"].values()), 1)
        passes = counted(round(epochs), "epochs") if epochs >= 1 else "less than an epoch"
        speeds = {
            each: hardware.matrix_speed(partial(fused.multiply, training_kernels(each)))
            for each in {self.precision, "fp32"}
        }
        speed = speeds[self.precision]
        seconds = seconds_needed(self.config, self.shapes, self.paper, speed, speeds["fp32"])
        parameters, frozen = parameters_in(self.paper), parameters_in(self.paper) - trainable_in(self.paper)
        of_them = f" ({frozen:,} frozen)" if frozen else ""
        self._say(
            f"{parameters:,} parameters{of_them}; up to {counted(train.max_steps, 'steps')} of about "
            f"{step_tokens:,} tokens ({passes}), about {duration(seconds)} at {speed / 1e9:.0f} GFLOP/s if "
            f"not ended earlier; about {needed / 2**30:.1f} GiB of memory; {self.precision}"
        )

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True)

    def _new_model(self) -> nn.Module:
        starts_from_run = self.order.start_from is not None
        torch.manual_seed(self.config.seed)
        model = build_model(self.config.model, self._shapes(None if starts_from_run else self.run.store))
        if starts_from_run:
            load_parameters(model, parameters_of(model) | load_weights(self.run.start))  # a head may be new
        return model

    def _loop(self, model: nn.Module, reporter: Reporter) -> Loop:
        config, task = self.config, self.task
        trained = trained_for(model, self.tokenizer, config)
        feed = Feed(
            self.store,
            self.tokenizer,
            lambda examples: task.collate(examples, trained.symbols),
            corpus_weights=[corpus.weight for corpus in config.data.train],
            budget=config.train.batch_tokens,
            seed=config.seed,
            dropout=config.tokenizer.dropout,
            max_length=trained.limits.least,
            packed=packed_rows(config),
            arrange=None if task.arrange is None else task.arrange(trained),
        )
        valid = self._valid()
        return Loop(
            model=model,
            task=task,
            feed=feed,
            validator=validator_of(task, trained, valid) if len(valid) else None,
            run=self.run,
            config=config.train,
            width=architecture_of(config).width(config.model) or 0,
            seed=config.seed,
            precision=self.precision,
            reporter=reporter,
        )

    def _results(
        self, model: nn.Module, progress: Progress, seconds: float, test: Examples, old: OldSet | None
    ) -> tuple[dict[str, Any], dict[str, Measured]]:
        """What `results.json` holds, and the scores among it."""
        trained = trained_for(model, self.tokenizer, self.config)
        results: dict[str, Any] = {
            "steps": progress.step,
            "ended": progress.ended,
            "seconds": round(seconds, 1),
            "skipped": progress.skipped,
        }
        sets = {"valid": self._valid(), "test": test}
        scores = {name: measured(self.task, trained, examples) for name, examples in sets.items() if len(examples)}
        results |= {name: found.to_json() for name, found in scores.items()}
        if old is not None and old.note:
            self._say(f"note: {old.note}")
        if old is not None and len(old.examples):
            after = measured(self.task, trained, old.examples)
            with Swapped(model, load_weights(self.run.start)):
                before = measured(self.task, trained, old.examples)
            results["old"] = results_of(old, before, after)
        self.run.write_results(results)
        return results, scores

    def _valid(self) -> Examples:
        texts = self.store.valid_texts()
        return Examples(self.store.valid_examples(), texts, texts.pop("tag"))

    def _read_test(self) -> Examples:
        return read_examples(self.config.data.test, self.config, self.tokenizer, self.order.base)
