"""A run is a directory.

    config.json      the resolved settings and a format number
    tokenizer.json
    metrics.jsonl    a JSON object a line, each with its step
    checkpoints/     one directory a checkpoint, named by its step
    store/           the tokenised corpus
    start/           the weights that it took from the model it started from, if it did
    final/           the averaged weights, in the form of a checkpoint
    results.json     the scores at the end
    distilled/       the teacher's translations, of a run that `regard distill` made
    native/          weights packed for the native engine, where one was used
    shortlists/      which target tokens each source token brings, where that was asked for
    report.html      the page to look at, and its plots in plots/
    .lock            held by the process that trains

Nothing here imports torch until weights are read or written.
"""

import fcntl
import json
import math
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.changes import flattened
from regard.errors import CheckpointError, ConfigError, RunError
from regard.files import (
    REPLACED_PREFIX,
    TEMPORARY_PREFIX,
    canonical_json,
    clear_temporaries,
    make_directory,
    read_json_object,
    write_atomically,
    writing,
)

if TYPE_CHECKING:
    from torch import Tensor

CONFIG_FORMAT = 1

CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
METRICS = "metrics.jsonl"
CHECKPOINTS = "checkpoints"
FINAL = "final"
START = "start"
RESULTS = "results.json"
STORE = "store"
TENSORBOARD = "tensorboard"
PHRASEBOOK = "phrasebook"
DISTILLED = "distilled"
REPORT = "report.html"
PLOTS = "plots"
LOCK = ".lock"
NATIVE = "native"
SHORTLISTS = "shortlists"

OWN_NAMES = frozenset(
    {
        CONFIG,
        TOKENIZER,
        METRICS,
        CHECKPOINTS,
        START,
        FINAL,
        RESULTS,
        STORE,
        TENSORBOARD,
        PHRASEBOOK,
        DISTILLED,
        REPORT,
        PLOTS,
        LOCK,
        NATIVE,
        SHORTLISTS,
    }
)
"""What regard itself puts into a run, besides temporaries."""


@dataclass(frozen=True)
class RunDirectory:
    """The place of a run; the methods read and write what lies there."""

    path: Path

    @classmethod
    def create(cls, path: Path, *, resume: bool) -> "RunDirectory":
        """The directory to train in, made if it is not there; RunError if it holds what must not be overwritten.

        Without `resume` it must be new or empty. With it, a run is taken up; a directory that is new, empty or was
        left before the run had a config starts from the beginning.
        """
        if path.exists() and not path.is_dir():
            raise RunError(f"{path} is a file, and a run is a directory. Choose another --out.")
        names = _names(path)
        if names == [STORE] and (path / LOCK).is_file():
            resume = True  # an attempt that ended before it had a config, for the corpus or the memory
        if names and not resume:
            raise RunError(f"{path} is not empty. Add --resume to go on with the run in it, or choose another --out.")
        run = cls(path)
        if CONFIG not in names:
            run._refuse_strange(names)
        make_directory(path)
        return run

    @classmethod
    def open(cls, path: Path) -> "RunDirectory":
        """An existing run, to be read; CheckpointError if `path` is none."""
        if not (path / CONFIG).is_file():
            raise CheckpointError(f"{path} is not a run: it has no {CONFIG}. Give the --out of a `regard train`.")
        return cls(path)

    @property
    def config(self) -> Path:
        return self.path / CONFIG

    @property
    def tokenizer(self) -> Path:
        return self.path / TOKENIZER

    @property
    def metrics(self) -> Path:
        return self.path / METRICS

    @property
    def checkpoints(self) -> Path:
        return self.path / CHECKPOINTS

    @property
    def results(self) -> Path:
        return self.path / RESULTS

    @property
    def store(self) -> Path:
        return self.path / STORE

    @property
    def tensorboard(self) -> Path:
        return self.path / TENSORBOARD

    @property
    def report(self) -> Path:
        return self.path / REPORT

    @property
    def plots(self) -> Path:
        return self.path / PLOTS

    @property
    def start(self) -> Path:
        return self.path / START

    @property
    def final(self) -> Path:
        return self.path / FINAL

    @contextmanager
    def lock(self) -> Generator[None, None, None]:
        """Keeps other processes out of the run; RunError, naming the process, if one is in it.

        The system lets go of the lock when the process is gone, however it ended. The file stays: to remove it would
        let a third process lock another file of the same name.
        """
        path = self.path / LOCK
        with writing(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            self._take(descriptor)
            yield
        finally:
            os.close(descriptor)

    def clear_temporaries(self) -> list[str]:
        """Removes what a killed process left, in the run, its checkpoints and its plots; hold the lock."""
        return [name for folder in (self.path, self.checkpoints, self.plots) for name in clear_temporaries(folder)]

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Saves the settings, plain JSON values, and the format number; ConfigError for a number that is not finite."""
        if "format" in config:
            raise ValueError('"format" is added by write_config')
        for key, value in flattened(config).items():
            if isinstance(value, float) and not math.isfinite(value):
                raise ConfigError(f"{key}={value} is not a finite number. Leave it out, or give it a number.")
        write_atomically(self.config, canonical_json({**config, "format": CONFIG_FORMAT}))

    def read_config(self) -> dict[str, Any]:
        """The settings as `write_config` got them; CheckpointError if they are damaged or of another version."""
        config = read_json_object(self.config, "Copy the run again from where it came from.")
        found = config.pop("format", None)
        if found is None and "model_type" in config:
            raise CheckpointError(
                f"{self.path} holds published weights, and this needs a run. Start one from them: `regard train RECIPE "
                f"--from {self.path} --out RUN`."
            )
        if found != CONFIG_FORMAT:
            raise CheckpointError(
                f"{self.config} has format {found!r}, this version of regard reads {CONFIG_FORMAT}. "
                "Use the version of regard that wrote it."
            )
        return config

    def last_checkpoint(self) -> Path | None:
        """The committed checkpoint with the highest step."""
        from regard.checkpoint import committed_steps

        steps = committed_steps(self.checkpoints)
        return self.checkpoints / str(steps[-1]) if steps else None

    def last_step(self) -> int:
        """Of the last checkpoint; 0 where there is none."""
        last = self.last_checkpoint()
        return 0 if last is None else int(last.name)

    def weights_folder(self) -> Path:
        """Where the weights to translate with lie: `final/`, or in a run that has not ended the last checkpoint."""
        from regard.checkpoint import is_committed

        if self.final.is_dir() and not is_committed(self.final):
            raise CheckpointError(
                f"{self.final} is not whole: it has no manifest.json. Copy it again from where it came from, or remove "
                f"it and `regard train --out {self.path} --resume` makes it anew."
            )
        folder = self.final if is_committed(self.final) else self.last_checkpoint()
        if folder is None:
            raise CheckpointError(f"{self.path} has no weights yet. Train it with `regard train … --resume`.")
        return folder

    def write_final(self, step: int, weights: "dict[str, Tensor]", state: dict[str, Any]) -> Path:
        """Writes `final/`, in the form of a checkpoint without an optimizer."""
        from regard.checkpoint import Checkpoint, save_folder

        return save_folder(self.final, Checkpoint(step, weights, {}, state))

    def write_results(self, results: Mapping[str, Any]) -> None:
        """Saves the scores at the end."""
        write_atomically(self.results, (json.dumps(results, indent=1, sort_keys=True) + "\n").encode())

    def write_start(self, weights: "dict[str, Tensor]") -> None:
        """Keeps what was taken from another model, so that this run can go on whatever becomes of that one."""
        from regard.checkpoint import Checkpoint, save_folder

        save_folder(self.start, Checkpoint(0, weights, {}, {}))

    def _refuse_strange(self, names: list[str]) -> None:
        strange = [name for name in names if name not in OWN_NAMES]
        if strange:
            raise RunError(f"{self.path} is not a run: it holds {strange[0]!r} and no {CONFIG}. Choose another --out.")
        # The config is written before the first checkpoint: one without it has lost it.
        if _names(self.checkpoints) or FINAL in names:
            raise RunError(
                f"{self.path} has lost its {CONFIG}, without which its checkpoints cannot be used. "
                "Put it back, or choose another --out."
            )

    def _take(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
            raise RunError(
                f"{self.path} is in use by process {owner}. Wait until it ends, or choose another --out."
            ) from error
        except OSError as error:
            raise RunError(
                f"{self.path} cannot be locked ({error.strerror}). Choose an --out on a local disk."
            ) from error
        with writing(self.path / LOCK):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def _names(folder: Path) -> list[str]:
    """What lies in a directory; a lock and temporaries, which outlive a run that never began, do not count."""
    if not folder.is_dir():
        return []
    passing = (TEMPORARY_PREFIX, REPLACED_PREFIX)
    return sorted(name for name in os.listdir(folder) if name != LOCK and not name.startswith(passing))
