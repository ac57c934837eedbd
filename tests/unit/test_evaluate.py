"""Scores equal those of the sacrebleu command line, and what cannot be scored is refused in one line."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from regard.errors import ConfigError, CorpusError, RegardError
from regard.evaluate import Scores, evaluate_texts, tokenizers
from regard.evaluate.tokenizers import tokenizer_for

TEXT = "The the Cat dog's sat on a mat, mats; über Straße 3.14 1,000 (maybe) “quoted” don't 北京 . ! x@@ y"
WORDS = TEXT.split()


def made_up(seed: int, lines: int = 37) -> tuple[list[str], list[str], list[str]]:
    """Hypotheses and two references that share some of their words, with a blank line and stray spaces."""
    generator = random.Random(seed)
    reference = [" ".join(generator.choices(WORDS, k=generator.randint(4, 19))) for _ in range(lines)]

    def disturbed(line: str) -> str:
        return " ".join(word if generator.random() < 0.8 else generator.choice(WORDS) for word in line.split(" "))

    hypotheses, second = [disturbed(line) for line in reference], [disturbed(line) for line in reference]
    hypotheses[3], hypotheses[5] = "", hypotheses[5] + " \t"
    return hypotheses, reference, second


def command_line(folder: Path, hypotheses: list[str], references: list[list[str]], *options: str) -> Any:
    """What `sacrebleu -m bleu chrf` says of the same texts, with every digit it can print."""
    names = [f"reference{number}" for number in range(len(references))]
    for name, lines in zip(["hypotheses", *names], [hypotheses, *references], strict=True):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        *names,
        "-i",
        "hypotheses",
        "-m",
        "bleu",
        "chrf",
        "-w",
        "17",
        *options,
    ]
    return json.loads(subprocess.run(command, cwd=folder, check=True, capture_output=True, encoding="utf-8").stdout)


@pytest.mark.parametrize(
    ("seed", "num_references", "settings", "options"),
    [
        (1, 1, {}, []),
        (2, 2, {}, []),
        (3, 1, {"tokenize": "none", "lowercase": True}, ["--tokenize", "none", "--lowercase"]),
        (4, 2, {"tokenize": "intl", "lowercase": True}, ["--tokenize", "intl", "--lowercase"]),
    ],
)
def test_scores_are_those_of_the_command_line_to_the_last_digit(
    tmp_path: Path, seed: int, num_references: int, settings: dict[str, Any], options: list[str]
):
    hypotheses, *references = made_up(seed)
    references = references[:num_references]
    bleu, chrf = command_line(tmp_path, hypotheses, references, *options)
    scores = evaluate_texts(hypotheses, references, **settings)
    assert 5 < scores.bleu < 95
    assert round(scores.bleu, 17) == bleu["score"]
    assert round(scores.chrf, 17) == chrf["score"]
    assert scores.bleu_signature == bleu["signature"]
    assert scores.chrf_signature == chrf["signature"]


CHINESE = (["我喜欢黑色的猫。", "他在北京买了3本书。"], ["我喜欢黑猫。", "他在北京买了三本新书。"])


@pytest.mark.parametrize(
    ("tokenize", "texts", "options"),
    [("13a", (made_up(7)[0], made_up(7)[1]), []), ("zh", CHINESE, ["--ter-normalized", "--ter-asian-support"])],
)
def test_ter_is_that_of_the_command_line(
    tmp_path: Path, tokenize: str, texts: tuple[list[str], list[str]], options: list[str]
):
    hypotheses, reference = texts
    *_, ter = command_line(tmp_path, hypotheses, [reference], "-m", "bleu", "chrf", "ter", *options)
    scores = evaluate_texts(hypotheses, [reference], tokenize=tokenize, ter=True)
    assert scores.ter is not None
    assert 5 < scores.ter < 95
    assert round(scores.ter, 17) == ter["score"]
    assert scores.ter_signature == ter["signature"]
    assert scores.summary().splitlines()[2] == f"TER {scores.ter:.2f} {scores.ter_signature}"
    assert "ter" in scores.to_json()
    assert "ter" not in evaluate_texts(hypotheses, [reference]).to_json()


def test_the_tokenizer_follows_the_target_language(monkeypatch: pytest.MonkeyPatch):
    installed = {"zh", "char", "13a"}
    monkeypatch.setattr(tokenizers, "is_installed", lambda name: name in installed)
    for code in ("zh", "zh-CN", "ZH_hant", "cmn"):
        assert tokenizer_for(code) == "zh"
    assert [tokenizer_for(code) for code in ("ja", "ko-KR", "th", "de", "", "zha")] == [
        *("char", "char", "char", "13a", "13a", "13a")
    ]
    installed |= {"ja-mecab", "ko-mecab"}
    assert (tokenizer_for("jpn"), tokenizer_for("kor")) == ("ja-mecab", "ko-mecab")


def test_a_language_that_is_not_named_is_told_by_its_script(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tokenizers, "is_installed", lambda name: "mecab" not in name)
    assert tokenizer_for("", CHINESE[1]) == "zh"
    assert tokenizer_for("trg", ["猫は黒いです。", "東京タワー"]) == "char"
    assert tokenizer_for("", ["แมวสีดำ"]) == "char"
    assert tokenizer_for("", ["Das Wort 北京 steht in einem deutschen Satz."]) == "13a"
    assert tokenizer_for("", ["1 2 3", ""]) == "13a"
    assert tokenizer_for("de", ["Das ist 1 Satz."] * 1000 + ["猫" * 1000]) == "13a"


def test_a_package_that_is_missing_is_no_error():
    for name in ("zh", "char", "13a"):
        assert tokenizers.is_installed(name)
    expected = "ja-mecab" if tokenizers.is_installed("ja-mecab") else "char"
    assert tokenizer_for("ja") == expected
    assert evaluate_texts(["猫は黒いです。"], [["猫は白いです。"]], tokenize=expected).bleu > 10


def test_the_truth_scores_a_hundred():
    _, reference, second = made_up(5)
    scores = evaluate_texts(reference, [second, reference])
    assert scores.bleu == pytest.approx(100)
    assert scores.chrf == pytest.approx(100)
    assert scores.sentences == len(reference)
    assert scores.hypothesis_tokens == scores.reference_tokens


def test_case_matters_unless_told_otherwise():
    assert evaluate_texts(["A B C D E"], [["a b c d e"]]).bleu < 1
    assert evaluate_texts(["A B C D E"], [["a b c d e"]], lowercase=True).bleu == pytest.approx(100)


def test_translations_that_are_all_blank_score_nothing():
    scores = evaluate_texts(["", " "], [["a b", "c d"]])
    assert (scores.bleu, scores.chrf) == (0, 0)


def test_scores_go_through_json_and_read_well():
    hypotheses, *references = made_up(6)
    scores = evaluate_texts(hypotheses, references)
    data = json.loads(json.dumps(scores.to_json()))
    assert Scores(**data | {"precisions": tuple(data["precisions"])}) == scores
    bleu, chrf = scores.summary().splitlines()
    assert bleu.startswith(f"BLEU {scores.bleu:.2f} (")
    assert bleu.endswith(f"37 sentences) {scores.bleu_signature}")
    assert chrf == f"chrF {scores.chrf:.2f} {scores.chrf_signature}"


@pytest.mark.parametrize(
    ("hypotheses", "references", "settings", "kind", "message"),
    [
        ([], [[]], {}, CorpusError, "there are no translations to evaluate"),
        (["a"], [], {}, ConfigError, "there is no reference"),
        (["a", "b"], [["a", "b"], ["a"]], {}, CorpusError, "reference 2 has 1 line, but there are 2 translations"),
        (["a"], [["a"]], {"tokenize": "13b"}, ConfigError, "tokenize='13b' is not one of none, .* mean '13a'?"),
    ],
)
def test_what_cannot_be_scored_is_refused(
    hypotheses: list[str], references: list[list[str]], settings: dict[str, Any], kind: type[RegardError], message: str
):
    with pytest.raises(kind, match=message) as caught:
        evaluate_texts(hypotheses, references, **settings)
    assert "\n" not in str(caught.value)


def test_a_tokenizer_that_lacks_its_packages_says_which(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "MeCab", None)
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    with pytest.raises(ConfigError, match=r"tokenizer 'ja-mecab' cannot be used here: .*sacrebleu\[ja\]") as caught:
        evaluate_texts(["a"], [["a"]], tokenize="ja-mecab")
    assert "\n" not in str(caught.value)


def test_measuring_does_not_import_torch(pytestconfig: pytest.Config):
    code = "import sys, regard.evaluate; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=pytestconfig.rootpath)
