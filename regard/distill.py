"""Sequence-level distillation (Kim and Rush, 2016): a teacher translates its training sources with its beam, and a
student is trained on what it wrote.

The translations are files in the run, `distilled/0.source` and `0.target` for the first corpus: line by line, written
as they come. What is there is not translated again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console

from regard.checkpoint import MANIFEST
from regard.config import Config, build_config, merged, task_of
from regard.data.config import CorpusConfig
from regard.data.rows import read_rows
from regard.decode.translate import Translator
from regard.decode.translation import Translation
from regard.errors import ConfigError, RunError
from regard.files import canonical_json, make_directory, read_json_object, write_atomically
from regard.loading import load_translator, read_run
from regard.models import ARCHITECTURES
from regard.models.interface import Compiled
from regard.naming import counted
from regard.native.packing import PRECISIONS
from regard.progress import counting
from regard.run import DISTILLED, RunDirectory
from regard.session.order import Order
from regard.session.session import start
from regard.text.documents.part import one_line
from regard.train.signals import Interrupted

WINDOW = 1024
"""Sentences that are translated at once, and written then: what an interruption can lose."""
ORDER = "order.json"


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is asked for."""

    teacher: Path
    student: Mapping[str, Any]
    """A preset's name, or a recipe's settings; its data are replaced."""
    out: Path
    beam: int | None = None
    """None: the teacher's own."""
    resume: bool = False


@dataclass(frozen=True, slots=True)
class Teacher:
    """A run, with what it was trained on."""

    path: Path
    config: Config
    base: Path
    translator: Translator
    weights: str
    """The hash of its checkpoint's manifest, which holds the hashes of its files."""

    @classmethod
    def open(cls, path: Path, precision: str | None = None) -> Teacher:
        """`precision` is that of its translations; None: its own."""
        run, config, document = read_run(path)
        refuse_teacher(path, config)
        weights = hashlib.sha256((run.weights_folder() / MANIFEST).read_bytes()).hexdigest()
        return cls(path, config, Path(document["data"]["base"]), load_translator(path, precision=precision), weights)

    @property
    def precision(self) -> str:
        model = self.translator.model
        return model.precision if isinstance(model, Compiled) else "fp32"

    def rows(self, corpus: CorpusConfig) -> Iterator[tuple[str, str]]:
        """Its pairs, each text in one line; without those whose source is blank."""
        columns = task_of(self.config).columns(self.config.data)
        for source, target in read_rows(columns, corpus, self.config.data, self.base):
            if source.strip():
                yield one_line(source), one_line(target)


def refuse_teacher(path: Path, config: Config) -> None:
    """ConfigError for a run that does not translate one text, or whose translations a student could not write."""
    if config.task != "translate":
        what, wanted = f"it is of task={config.task}, and a student learns from translations", "of task=translate"
    elif config.data.copy:
        what = "it copies unknown words of its source, which a student does not do"
        wanted = "that was trained with data.copy=false"
    elif further := config.data.further:
        what = f"it reads {', '.join(further)} beside its source, and a student reads one source"
        wanted = "that was trained without data.also and data.vectors"
    else:
        return
    raise ConfigError(f"{path} cannot be a teacher, because {what}; give a run {wanted}")


def refuse_student(settings: Mapping[str, Any]) -> None:
    """ConfigError for settings of another task, before its keys are held against the teacher's data."""
    task = settings.get("task", Config.task)
    if task != "translate":
        raise ConfigError(
            f"task={task}: a student must be a translator, for it learns from translations; choose a preset, such as "
            f"--to tiny, or a recipe of task=translate"
        )


def distill(lesson: Lesson, console: Console) -> dict[str, Any]:
    """Translates what is not translated yet, trains the student, and gives its results."""
    refuse_student(lesson.student)
    teacher = Teacher.open(lesson.teacher, noted_precision(lesson))
    table = student_table(teacher, lesson)
    build_config(table)  # a setting that is wrong is better known now than after the night
    run = RunDirectory.create(lesson.out, resume=lesson.resume)
    with run.lock():
        folder = run.path / DISTILLED
        make_directory(folder)
        note_order(folder, teacher, lesson)
        translate_all(teacher, folder, lesson.beam, console)
    try:
        return start(Order(table, lesson.out, Path(), resume=True), console)
    except Interrupted as interruption:
        raise Interrupted(interruption.step, how="the same command with --resume") from None


def student_named(name: str) -> Mapping[str, Any] | None:
    """A preset of the Transformer, or of another architecture as ARCHITECTURE/PRESET; None where there is none."""
    architecture, slash, preset = name.rpartition("/")
    presets = ARCHITECTURES[architecture].presets if slash and architecture in ARCHITECTURES else {}
    if slash:
        return {"preset": preset, "model": {"architecture": architecture}} if preset in presets else None
    return {"preset": name} if name in ARCHITECTURES["transformer"].presets else None


def student_names() -> list[str]:
    """The presets that `student_named` knows, as it knows them."""
    own = ((kind, name) for kind, architecture in ARCHITECTURES.items() for name in architecture.presets)
    return [name if kind == "transformer" else f"{kind}/{name}" for kind, name in own]


def student_table(teacher: Teacher, lesson: Lesson) -> dict[str, Any]:
    """The student's settings with the teacher's data, its targets replaced, and the settings of its tokenizer."""
    config, folder = teacher.config, (lesson.out / DISTILLED).absolute()
    train = [
        {"source": str(folder / f"{number}.source"), "target": str(folder / f"{number}.target")}
        | {"weight": corpus.weight, "tag": corpus.tag}
        for number, corpus in enumerate(config.data.train)
    ]
    data = {
        "source_language": config.data.source_language,
        "target_language": config.data.target_language,
        "train": train,
        "valid": absolute(config.data.valid, teacher.base),
        "test": absolute(config.data.test, teacher.base),
    }
    own = config.tokenizer
    tokenizer = {"kind": own.kind, "size": own.size, "joint": own.joint, "joiner": own.joiner}
    decode = {"length_penalty": config.decode.length_penalty, "length_form": config.decode.length_form}
    below = {"seed": config.seed, "tokenizer": tokenizer, "decode": decode}
    return merged(merged(below, {key: value for key, value in lesson.student.items() if key != "data"}), {"data": data})


def absolute(corpora: Sequence[CorpusConfig], base: Path) -> list[dict[str, Any]]:
    return [
        {column: str((base / file).absolute()) for column, file in corpus.files.items()}
        | {"weight": corpus.weight, "tag": corpus.tag}
        for corpus in corpora
    ]


def noted_precision(lesson: Lesson) -> str | None:
    """That of the translations which are there, to which the rest keep: the teacher's own may be another by now
    (`regard quantise`). None where there are none, or no such precision, which `note_order` refuses."""
    path = lesson.out / DISTILLED / ORDER
    if not lesson.resume or not path.is_file():
        return None
    found = read_json_object(path, "Choose another --out.").get("precision")
    return found if found in PRECISIONS else None


def note_order(folder: Path, teacher: Teacher, lesson: Lesson) -> None:
    """What the translations come from; RunError where those that are there come from something else."""
    beam = teacher.config.decode.beam if lesson.beam is None else lesson.beam
    order = {
        "teacher": str(teacher.path.resolve()),
        "weights": teacher.weights,
        "beam": beam,
        "precision": teacher.precision,
        "corpora": [corpus.to_table() for corpus in teacher.config.data.train],
    }
    path = folder / ORDER
    if not path.is_file():
        write_atomically(path, canonical_json(order))
        return
    before = read_json_object(path, "Choose another --out.")
    for key, value in order.items():
        if before.get(key) != value:
            raise RunError(
                f"{folder} holds translations of another order: {key} was {before.get(key)!r} and is now {value!r}. "
                f"Choose another --out."
            )


def translate_all(teacher: Teacher, folder: Path, beam: int | None, console: Console) -> None:
    for number, corpus in enumerate(teacher.config.data.train):
        done = translated_lines(folder, number)
        with counting(console, f"translating {corpus.name}", "sentences") as count:
            total = translate_corpus(teacher, corpus, folder / str(number), beam, done, count)
        if total > done:
            again = f" ({done:,} of them before)" if done else ""
            console.print(f"{corpus.name}: {counted(total, 'sentences')} translated{again}", highlight=False)


def translated_lines(folder: Path, number: int) -> int:
    """Whole lines that both files of a corpus have; what is behind them, and half a line, is cut off."""
    paths = [folder / f"{number}.{side}" for side in ("source", "target")]
    counts = [count_lines(path) for path in paths]
    for path in paths:
        cut_to_lines(path, min(counts))
    return min(counts)


def count_lines(path: Path) -> int:
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        return sum(line.endswith(b"\n") for line in file)


def cut_to_lines(path: Path, lines: int) -> None:
    if not path.is_file():
        return
    with path.open("r+b") as file:
        size = sum(len(line) for line in islice(file, lines))
        file.truncate(size)


def translate_corpus(
    teacher: Teacher, corpus: CorpusConfig, path: Path, beam: int | None, done: int, count: Any
) -> int:
    """Appends the translations of what is behind the first `done` rows; gives how many there are now."""
    rows = islice(teacher.rows(corpus), done, None)
    with path.with_suffix(".source").open("ab") as sources, path.with_suffix(".target").open("ab") as targets:
        while window := list(islice(rows, WINDOW)):
            texts = [source for source, _ in window]
            found = teacher.translator.translate(texts, beam=beam, tag=corpus.tag or None, nbest=1)
            joiner = teacher.translator.tokenizer.joiner
            append(sources, texts)
            append(targets, [as_training_text(each, joiner) for each in found])
            done += len(window)
            if count is not None:
                count(done)
    return done


def as_training_text(translation: Translation, joiner: str) -> str:
    """Whole words, or the pieces that the teacher was trained on."""
    return " ".join(translation.tokens) if joiner else translation.text


def append(file: BinaryIO, lines: Sequence[str]) -> None:
    """On the disk when it returns."""
    file.write("".join(f"{line}\n" for line in lines).encode())
    file.flush()
    os.fsync(file.fileno())
