"""`regard distill`: the student learns from what the teacher writes, and nothing is translated twice."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import regard
from regard import distill
from regard.cli_distill import EXAMPLES
from regard.config import Config
from regard.data.config import DataConfig
from regard.decode.translate import Translator
from regard.errors import ConfigError, RunError
from regard.loading import load_trained
from regard.models import ARCHITECTURES
from regard.native.precision import weights_key
from regard.text.tokenizer import TokenizerConfig
from tests.e2e.conftest import Corpus
from tests.e2e.toolbox import TINY, Outcome, chosen
from tests.native_engine import needs_native

Call = Callable[..., Outcome]
STUDENT = [*chosen({key: value for key, value in TINY.items() if not key.startswith("tokenizer.")}), "--quiet"]


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many sentences the teacher was given, call by call, in windows of 32."""
    found: list[int] = []
    translate = Translator.translate

    def spy(self: Translator, sentences: Sequence[str], **options: Any) -> Any:
        found.append(len(sentences))
        return translate(self, sentences, **options)

    monkeypatch.setattr(distill, "WINDOW", 32)
    monkeypatch.setattr(Translator, "translate", spy)
    return found


def test_a_student_is_trained_on_the_teachers_translations(
    call: Call, tiny_run: Path, small_corpus: Corpus, tmp_path: Path, asked: list[int]
) -> None:
    run = tmp_path / "student"
    call("distill", tiny_run, "--to", "tiny", "--out", run, *STUDENT, "--set", "model.width=12").done()
    sources = lines(small_corpus.source)
    assert sum(asked) == len(sources)
    assert lines(run / "distilled" / "0.source") == sources
    translated = [each.text for each in regard.load(tiny_run).translate(sources)]
    assert lines(run / "distilled" / "0.target") == translated
    config = json.loads((run / "config.json").read_text())["config"]
    assert config["data"]["train"][0]["target"] == str(run / "distilled" / "0.target")
    assert (config["preset"], config["model"]["width"], config["tokenizer"]["kind"]) == ("tiny", 12, "word")
    assert (run / "results.json").is_file()
    assert regard.load(run).translate(sources[:1])


def test_an_interrupted_lesson_goes_on_where_it_was(
    call: Call, tiny_run: Path, small_corpus: Corpus, tmp_path: Path, asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, count = tmp_path / "student", len(lines(small_corpus.source))
    append = distill.append

    def broken(file: Any, texts: Sequence[str]) -> None:
        if len(asked) == 2 and file.name.endswith(".target"):
            file.write(b"half a l")
            file.flush()
            raise KeyboardInterrupt
        append(file, texts)

    monkeypatch.setattr(distill, "append", broken)
    order = ["distill", tiny_run, "--to", "tiny", "--out", run, *STUDENT]
    assert call(*order).code == 130
    assert (asked, len(lines(run / "distilled" / "0.source"))) == ([32, 32], 64)
    monkeypatch.setattr(distill, "append", append)
    asked.clear()
    call(*order).refusal("is not empty", "--resume")
    call(*order, "--beam", "3", "--resume").refusal("beam was 1 and is now 3", "another --out")
    call(*order, "--resume").done()
    assert sum(asked) == count - 32
    assert lines(run / "distilled" / "0.source") == lines(small_corpus.source)
    again = [each.text for each in regard.load(tiny_run).translate(lines(small_corpus.source))]
    assert lines(run / "distilled" / "0.target") == again
    asked.clear()
    call(*order, "--resume").done()
    assert asked == []


@needs_native
def test_translations_keep_the_precision_that_they_began_with(
    tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The teacher's default changes between the two sessions, as `regard quantise` changes it."""
    teacher, quiet = tmp_path / "teacher", Console(quiet=True)
    shutil.copytree(tiny_run, teacher)
    used: list[str] = []
    monkeypatch.setattr(distill, "translate_all", lambda opened, *_: used.append(opened.precision))
    monkeypatch.setattr(distill, "start", lambda *_, **__: {})

    def teach(out: str, resume: bool = False) -> None:
        distill.distill(distill.Lesson(teacher, {"preset": "tiny"}, tmp_path / out, resume=resume), quiet)

    teach("first")
    noted = {"bleu": 30.0, "fp32_bleu": 30.0, "weights": weights_key(load_trained(tiny_run)[0].model)}
    results = json.loads((teacher / "results.json").read_text())
    (teacher / "results.json").write_text(json.dumps(results | {"int8": noted}))
    teach("second")
    teach("first", resume=True)
    (teacher / "results.json").write_text(json.dumps(results))
    teach("second", resume=True)
    assert used == ["fp32", "int8", "fp32", "int8"]
    order = tmp_path / "second" / "distilled" / "order.json"
    order.write_text(json.dumps(json.loads(order.read_text()) | {"precision": "int4"}))
    with pytest.raises(RunError, match=r"precision was 'int4' and is now 'fp32'\. Choose another --out"):
        teach("second", resume=True)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ([], ["--to is missing"]),
        (["--to", "tiny"], ["--out is missing"]),
        (["--to", "tinny", "--out", "run"], ["--to tinny is neither a preset nor a recipe; did you mean tiny?"]),
        (["--to", "rnn/rnn-tin", "--out", "run"], ["did you mean rnn/rnn-tiny or rnn/rnn-small?"]),
        (["--to", "rnn-tiny", "--out", "run"], ["did you mean rnn/rnn-tiny"]),
        (["--to", "mine/strings-rn.toml", "--out", "run"], ["did you mean strings-rnn"]),
        (["--to", "zzz", "--out", "run"], ["choose a preset, such as tiny or rnn/rnn-tiny, or a TOML file"]),
        (["--to", "sort-pointer", "--out", "run"], ["task=point: a student must be a translator", "--to tiny"]),
        (["--to", "tiny", "--out", "run", "--set", "task=lm"], ["task=lm: a student must be a translator"]),
        (["--to", "tiny", "--out", "run", "--set", "model.widht=3"], ["widht", "width"]),
    ],
)
def test_what_is_missing_or_wrong_is_said_first(
    call: Call, tiny_run: Path, options: list[str], parts: list[str]
) -> None:
    call("distill", tiny_run, *options).refusal(*parts)


TRANSLATOR = Config(preset="none", model=ARCHITECTURES["rnn"].config())
COPYING = DataConfig(copy=True)
JOINT = TokenizerConfig(kind="word", joint=True)
NO_TEACHERS: dict[str, tuple[Config, str]] = {
    "pointing": (
        Config(task="point", preset="none", model=ARCHITECTURES["pointer"].config()),
        "it is of task=point, and a student learns from translations; give a run of task=translate",
    ),
    "copying": (
        replace(TRANSLATOR, data=COPYING, tokenizer=JOINT),
        "it copies unknown words of its source, which a student does not do; give a run that was trained with "
        "data.copy=false",
    ),
    "several sources": (
        replace(TRANSLATOR, data=DataConfig(also=("counts",), vectors=("image",))),
        "it reads counts, image beside its source, and a student reads one source; give a run that was trained without "
        "data.also and data.vectors",
    ),
}


@pytest.mark.parametrize(("config", "said"), NO_TEACHERS.values(), ids=NO_TEACHERS)
def test_a_run_that_cannot_be_a_teacher_is_refused_with_the_reason(
    config: Config, said: str, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told before anything is made."""
    run, _, document = distill.read_run(tiny_run)
    monkeypatch.setattr(distill, "read_run", lambda _: (run, config, document))
    with pytest.raises(ConfigError) as caught:
        distill.distill(distill.Lesson(tiny_run, {"preset": "tiny"}, tmp_path / "student"), Console(quiet=True))
    assert str(caught.value) == f"{tiny_run} cannot be a teacher, because {said}"
    assert not (tmp_path / "student").exists()


def test_a_student_may_be_a_preset_of_any_architecture() -> None:
    assert distill.student_named("tiny") == {"preset": "tiny"}
    name = next(iter(ARCHITECTURES["rnn"].presets))
    assert distill.student_named(f"rnn/{name}") == {"preset": name, "model": {"architecture": "rnn"}}
    assert distill.student_named("rnn/none") is None
    assert all(distill.student_named(each) for each in distill.student_names())
    assert {"tiny", f"rnn/{name}", *EXAMPLES.split(" or ")} <= set(distill.student_names())


def test_pieces_stay_pieces() -> None:
    """A teacher of text that came split writes it split, for the student reads it with the same settings."""
    found = regard.decode.translation.Translation(text="lower", score=0.0, tokens=("low@@", "er"), finished=True)
    assert distill.as_training_text(found, "@@") == "low@@ er"
    assert distill.as_training_text(found, "") == "lower"
