"""A run that was killed anywhere and resumed ends in the same bits as one that was not.

Real processes are killed with SIGKILL, which nothing can catch. To hit the inside of a write or of a validation, a
process is first frozen, then looked at, and let go on if it was elsewhere.
"""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from regard.native.training import TrainingKernels, training_kernels
from tests.e2e.toolbox import (
    TINY,
    Corpus,
    Outcome,
    checkpoints,
    chosen,
    command_line,
    contents,
    environment,
    metrics,
    sentence_pairs,
    weights,
    write_corpus,
)

Call = Callable[..., Outcome]

EVERYTHING_RANDOM = TINY | {
    "model.width": 64,
    "model.heads": 4,
    "model.feedforward": 144,
    "model.dropout": 0.1,
    "train.batch_tokens": 64,
    "train.average": 3,
    "train.validate_output": "true",
}
"""Sixty-odd steps an epoch; what is not restored exactly shows in the next loss. As wide as the compiled kernels of
training take it: of narrower layers torch does the most."""
KERNELS = ("attend", "attend_back", "drop_add", "norm", "norm_back", "cross_entropy")
"""Those of a step, beside the products, which not every processor leaves to them."""


@dataclass(frozen=True)
class Point:
    """Where to kill: after this step, or in the first write of a checkpoint, or the first validation, from it on."""

    step: int
    inside: str = "step"


class Victim:
    """A training process that is watched through what it leaves on disk."""

    def __init__(self, run: Path, order: Sequence[object], *, page: bool = True) -> None:
        self.run, self.began_from = run, checkpoints(run)[-1] if checkpoints(run) else 0
        self._log = run / "metrics.jsonl"
        self._before = (self._inode(), self.logged())
        self._said = run.with_name("stderr")
        command = command_line("train", *order, "--out", run, "--resume", page=page)
        with self._said.open("w") as stderr:
            self.process = subprocess.Popen(command, stderr=stderr, env=environment())

    def _inode(self) -> int:
        return self._log.stat().st_ino if self._log.exists() else 0

    def logged(self) -> int:
        """The last step in the log."""
        try:
            with self._log.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 2000))
                lines = file.read().split(b"\n")
            return int(json.loads(lines[-2])["step"]) if len(lines) > 1 else 0
        except FileNotFoundError:
            return 0

    def trains(self) -> bool:
        """Whether the log is this process's: one beyond the checkpoint is replaced when the run is taken up."""
        inode, step = self._before
        return step <= self.began_from or self._inode() != inode

    def reaches(self, condition: Callable[[], bool]) -> bool:
        """Waits for it; False if the process has ended without."""
        while self.process.poll() is None:
            if self.trains() and condition():
                return True
            time.sleep(0.0005 if (self._inode(), self.logged()) != self._before else 0.02)  # it still starts
        return False

    def freeze(self) -> bool:
        """False if it has ended."""
        self.process.send_signal(signal.SIGSTOP)
        flags = os.WSTOPPED | os.WEXITED | os.WNOWAIT
        state = os.waitid(os.P_PID, self.process.pid, flags)
        return state is not None and state.si_code == os.CLD_STOPPED

    def writes(self) -> bool:
        """A checkpoint of the step that was logged last; old ones that are being removed do not count."""
        folder, prefix = self.run / "checkpoints", f".tmp-{self.logged()}-"
        return folder.is_dir() and any(name.startswith(prefix) for name in os.listdir(folder))

    def kill_at(self, point: Point, validate_every: int) -> bool:
        """False if the process came to its end before."""
        found = {"step": self._after_step, "write": self._in_write, "validation": self._in_validation}[point.inside]
        if not found(point.step, validate_every):
            return False
        self.process.kill()
        self.process.wait()
        return True

    def said(self) -> str:
        return self._said.read_text()

    def _after_step(self, step: int, _: int) -> bool:
        return self.reaches(lambda: self.logged() >= max(step, self.began_from + 1))

    def _in_write(self, step: int, _: int) -> bool:
        while self.reaches(lambda: self.logged() >= step and self.writes()):
            if self.freeze() and self.writes():
                return True
            self.process.send_signal(signal.SIGCONT)
        return False

    def _in_validation(self, step: int, every: int) -> bool:
        """A validation takes many times as long as a step: if the log waits that long for one, it is under way."""
        while self.reaches(lambda: self.logged() >= step - 1 and (self.logged() + 1) % every == 0):
            before = self.logged()
            time.sleep(3 * self._step_seconds())
            if self.freeze() and self.logged() == before and (before + 1) % every == 0:
                return True
            self.process.send_signal(signal.SIGCONT)
        return False

    def _step_seconds(self) -> float:
        seconds = [json.loads(line)["seconds"] for line in self._log.read_text().splitlines()[-3:]]
        return max(seconds[-1] - seconds[-2], 0.005) if len(seconds) > 1 else 0.02


def kill_and_resume(run: Path, order: Sequence[object], points: Sequence[Point], validate_every: int) -> list[int]:
    """Kills at each point, then lets the run end; gives the epochs in which it died."""
    epochs: list[int] = []
    for point in [*points, None]:
        victim = Victim(run, order)
        if point is None:
            assert victim.process.wait() == 0, victim.said()
        else:
            assert victim.kill_at(point, validate_every), f"{point} was not met: {victim.said()}"
            epochs.append(metrics_so_far(run)[-1]["epoch"] if victim.logged() else 0)
        from_zero = "going on from step" not in victim.said()
        assert from_zero == (victim.began_from == 0), victim.said()
        assert from_zero or f"going on from step {victim.began_from:,}\n" in victim.said()
    return epochs


def metrics_so_far(run: Path) -> list[dict[str, Any]]:
    """A kill may leave half a line."""
    return [json.loads(line) for line in (run / "metrics.jsonl").read_bytes().split(b"\n")[:-1]]


def assert_same(run: Path, whole: Path, steps: int) -> None:
    """Weights, every logged number, every checkpoint that is kept, and the scores."""
    assert [record["step"] for record in metrics(run)] == list(range(1, steps + 1))
    assert metrics(run) == metrics(whole)
    assert weights(run) == weights(whole)
    assert contents(run / "checkpoints") == contents(whole / "checkpoints")
    results = [json.loads((folder / "results.json").read_text()) | {"seconds": 0} for folder in (run, whole)]
    assert results[0] == results[1]
    assert not [path for path in run.rglob("*") if path.name.startswith((".tmp-", ".old-"))]


@pytest.fixture
def used_kernels(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Which of the compiled kernels were called in this process."""
    found: set[str] = set()

    def spied(name: str) -> Callable[..., None]:
        kernel = getattr(TrainingKernels, name)

        def spy(*arguments: Any, **options: Any) -> None:
            found.add(name)
            kernel(*arguments, **options)

        return spy

    for name in (*KERNELS, "multiply"):
        monkeypatch.setattr(TrainingKernels, name, spied(name))
    return found


def assert_by_kernels(run: Path, whole: Path, used: set[str]) -> None:
    """Where there are compiled kernels, both runs note them, and they did the steps of the whole one."""
    noted = {json.loads((each / "config.json").read_text())["platform"]["kernels"] for each in (run, whole)}
    there = training_kernels()
    assert noted == {"torch" if there is None else there.name}
    if there is not None:
        assert used == {*KERNELS, *(["multiply"] if there.multiplies else [])}


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return write_corpus(tmp_path, sentence_pairs(5, 600))


def test_killed_twice_and_stopped_once(call: Call, corpus: Corpus, tmp_path: Path, used_kernels: set[str]) -> None:
    settings = EVERYTHING_RANDOM | {
        "train.max_steps": 60,
        "train.checkpoint_every": 7,
        "train.validate_every": 11,
    }
    order, run = [*corpus.options, *chosen(settings)], tmp_path / "killed" / "run"
    run.parent.mkdir()
    call("train", *order, "--out", tmp_path / "whole").done()
    for point in (Point(random.randint(9, 20)), Point(20, "write")):
        assert Victim(run, order, page=False).kill_at(point, 11), point
    assert_stops_within_one_step(Victim(run, order, page=False), call)
    assert kill_and_resume(run, order, [], 11) == []
    assert_same(run, tmp_path / "whole", 60)
    assert_by_kernels(run, tmp_path / "whole", used_kernels)


def assert_stops_within_one_step(victim: Victim, call: Call) -> None:
    """SIGTERM: exit 130 and one line, with everything saved. Meanwhile nobody else gets into the run."""
    assert victim.reaches(lambda: victim.logged() >= 37)
    assert victim.freeze()
    step = victim.logged()
    call("train", "--out", victim.run, "--resume").refusal(f"is in use by process {victim.process.pid}")
    victim.process.terminate()
    victim.process.send_signal(signal.SIGCONT)
    assert victim.process.wait(timeout=60) == 130
    saved = checkpoints(victim.run)[-1]
    assert saved - step in (0, 1)
    assert victim.logged() == saved
    lines = [line for line in victim.said().splitlines() if line.startswith("regard: ")]
    assert lines == [f"regard: interrupted; saved at step {saved}, --resume resumes from there"]
    assert victim.said().splitlines()[-1] == lines[0]


# --- the long proofs


@pytest.fixture
def order(corpus: Corpus, tmp_path: Path) -> list[str]:
    """With so much to validate on that it takes many times as long as a step."""
    valid = write_corpus(tmp_path, sentence_pairs(6, 200), "valid")
    return [*corpus.options, "--valid-source", str(valid.source), "--valid-target", str(valid.target)]


def random_points(steps: int, at_random: int, writes: int, validations: int, every: tuple[int, int]) -> list[Point]:
    """Those inside a write or a validation lie early enough for a second chance."""
    checkpoint_every, validate_every = every
    late = steps * 3 // 4
    return sorted(
        [
            *(Point(step) for step in random.sample(range(3, steps * 9 // 10), at_random)),
            *(Point(step, "write") for step in random.sample(range(checkpoint_every, late, checkpoint_every), writes)),
            *(
                Point(step, "validation")
                for step in random.sample(range(validate_every, late, validate_every), validations)
            ),
        ],
        key=lambda point: point.step,
    )


@pytest.mark.verify
def test_twenty_kills_in_four_hundred_steps_change_no_bit(order: list[str], process: Call, tmp_path: Path) -> None:
    """Several in one epoch, some inside a checkpoint write, some during validation."""
    settings = EVERYTHING_RANDOM | {
        "train.max_steps": 400,
        "train.checkpoint_every": 20,
        "train.validate_every": 35,
        "decode.max_extra": 50,  # a validation takes many times as long as a step
    }
    order, run = [*order, *chosen(settings)], tmp_path / "killed" / "run"
    run.parent.mkdir()
    process("train", *order, "--out", tmp_path / "whole").done()
    points = random_points(400, at_random=9, writes=6, validations=5, every=(20, 35))
    print(*points, sep="\n")
    epochs = kill_and_resume(run, order, points, 35)
    assert len(epochs) == 20
    assert max(Counter(epochs).values()) >= 3
    assert_same(run, tmp_path / "whole", 400)


@pytest.mark.verify
def test_kills_change_no_bit_of_subword_dropout_two_passes_and_a_moving_average(
    order: list[str], process: Call, tmp_path: Path
) -> None:
    settings = EVERYTHING_RANDOM | {
        "tokenizer.kind": "bpe",
        "tokenizer.size": 300,
        "tokenizer.dropout": 0.1,
        "train.batch_tokens": 256,
        "train.accumulate": 2,
        "train.ema": 0.9,
        "train.consistency": 2.0,
        "train.average_of": "best",
        "train.max_steps": 120,
        "train.checkpoint_every": 10,
        "train.validate_every": 20,
        "decode.max_extra": 50,
    }
    order, run = [*order, *chosen(settings)], tmp_path / "killed" / "run"
    run.parent.mkdir()
    process("train", *order, "--out", tmp_path / "whole").done()
    points = random_points(120, at_random=3, writes=2, validations=1, every=(10, 20))
    print(*points, sep="\n")
    assert len(kill_and_resume(run, order, points, 20)) == 6
    assert_same(run, tmp_path / "whole", 120)
