"""A language that can be learnt in seconds, settings for it, and what a call of the command line left."""

import fcntl
import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]

SYLLABLES = ("ba", "do", "fi", "gu", "ke")
LEXICON = {first + second: (second + first).upper() for first in SYLLABLES for second in SYLLABLES}
"""Word for word, in the same order."""

SMALL: dict[str, Any] = {
    "tokenizer.kind": "word",
    "model.width": 32,
    "model.heads": 4,
    "model.feedforward": 64,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.dropout": 0.0,
    "model.norm": "pre",
    "train.schedule": "inverse-sqrt",
    "train.peak_rate": 0.01,
    "train.warmup": 40,
    "train.batch_tokens": 512,
    "train.accumulate": 1,
    "train.clip": 1.0,
    "train.max_steps": 350,
    "train.validate_every": 100,
    "train.checkpoint_every": 50,
    "train.average": 2,
    "train.precision": "fp32",
    "decode.max_extra": 8,
}
"""Enough for the lexicon."""

TINY = SMALL | {
    "model.width": 8,
    "model.heads": 2,
    "model.feedforward": 11,
    "train.batch_tokens": 128,
    "train.max_steps": 4,
    "train.validate_every": 2,
    "train.validate_output": "false",
    "train.checkpoint_every": 2,
    "decode.beam": 1,
    "decode.max_extra": 2,
}
"""Learns nothing, in no time; an untrained model would talk on to the limit."""


def chosen(settings: Mapping[str, Any]) -> list[str]:
    """As options of the command line."""
    return [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]


def sentence_pairs(seed: int, count: int) -> list[tuple[str, str]]:
    generator = random.Random(seed)
    sources = [generator.choices(list(LEXICON), k=generator.randint(4, 7)) for _ in range(count)]
    return [(" ".join(words), " ".join(LEXICON[word] for word in words)) for words in sources]


@dataclass(frozen=True)
class Corpus:
    """Two line-aligned files."""

    source: Path
    target: Path

    @property
    def options(self) -> list[str]:
        return ["--source", str(self.source), "--target", str(self.target)]


def write_corpus(folder: Path, pairs: list[tuple[str, str]], name: str = "train") -> Corpus:
    folder.mkdir(parents=True, exist_ok=True)
    corpus = Corpus(folder / f"{name}.xx", folder / f"{name}.yy")
    for file, lines in zip((corpus.source, corpus.target), zip(*pairs, strict=True), strict=True):
        file.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return corpus


@dataclass(frozen=True)
class Outcome:
    """What a call of the command line left."""

    code: int
    out: str
    err: str

    def done(self) -> "Outcome":
        """Without a complaint."""
        assert self.code == 0, self.err
        return self

    def refusal(self, *parts: str) -> str:
        """The line of an error that a user can mend: the only one of its kind, the last, and it holds these parts."""
        assert self.code == 1, self
        assert self.out == ""
        assert "Traceback" not in self.err, self.err
        lines = self.err.splitlines()
        assert [line.startswith("regard: ") for line in lines] == [False] * (len(lines) - 1) + [True], self.err
        for part in parts:
            assert part in lines[-1], f"{part!r} is not in: {lines[-1]}"
        return lines[-1]


WITHOUT_PAGE = """
from regard.cli import main
from regard.report.live import LiveReport
LiveReport.draw = lambda _: None
main()
"""


def command_line(*arguments: object, page: bool = True) -> list[str]:
    """`regard …` as a process of its own. Drawing takes longer than a tiny training: not where nobody looks."""
    start = ["-m", "regard"] if page or arguments[0] != "train" else ["-c", WITHOUT_PAGE]
    return [sys.executable, *start, *map(str, arguments)]


def made_once(root: Path, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the processes of pytest-xdist share: the first that needs it makes it, another waits."""
    folder, whole = root / name, root / f"{name}.made"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            whole.touch()
    return folder


def environment(**more: str) -> dict[str, str]:
    """That of the tests, one thread included; this regard comes first."""
    return os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"} | more


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a run by its path; the lock, which any process may touch, is none of it."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def weights(run: Path) -> bytes:
    return (run / "final" / "weights.safetensors").read_bytes()


def metrics(run: Path) -> list[dict[str, Any]]:
    """Without the times, the one thing in which two equal runs differ."""
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


def checkpoints(run: Path) -> list[int]:
    """The steps that were committed."""
    folder = run / "checkpoints"
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(int(path.name) for path in found if path.name.isdigit() and (path / "manifest.json").is_file())
