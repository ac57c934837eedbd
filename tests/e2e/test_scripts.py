"""Languages that write without spaces: a Japanese that can be learnt in seconds, trained, validated, measured."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.toolbox import SMALL, Corpus, Outcome, chosen, made_once, metrics
from tests.within import regard_within

Call = Callable[..., Outcome]

NOUNS = {"cat": "猫", "dog": "犬", "child": "子供", "teacher": "先生", "bird": "鳥", "fish": "魚"}
ADJECTIVES = {"black": "黒い", "white": "白い", "big": "大きい", "small": "小さい", "old": "古い", "new": "新しい"}
VERBS = {"sees": "見ます", "buys": "買います", "likes": "好みます", "finds": "見つけます"}


def japanese_pairs(seed: int, count: int) -> list[tuple[str, str]]:
    """ "the black cat sees a dog ." → 黒い猫が犬を見ます。: another order of words, and no spaces."""
    generator = random.Random(seed)
    pairs: list[tuple[str, str]] = []
    for _ in range(count):
        adjective, verb = generator.choice(list(ADJECTIVES)), generator.choice(list(VERBS))
        who, what = generator.choices(list(NOUNS), k=2)
        source = f"the {adjective} {who} {verb} a {what} ."
        pairs.append((source, f"{ADJECTIVES[adjective]}{NOUNS[who]}が{NOUNS[what]}を{VERBS[verb]}。"))
    return pairs


def write_sides(folder: Path, name: str, pairs: list[tuple[str, str]]) -> tuple[Path, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = folder / f"{name}.en", folder / f"{name}.ja"
    for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths


SETTINGS = SMALL | {
    "tokenizer.kind": "bpe",
    "tokenizer.size": 500,
    "train.max_steps": 120,
    "train.validate_every": 60,
    "decode.beam": 2,
}


@pytest.fixture(scope="module")
def japanese(shared: Path) -> Path:
    """A run that stops on chrF."""

    def make(folder: Path) -> None:
        source, target = write_sides(folder, "train", japanese_pairs(1, 400))
        stop = {"train.stop_on": "chrf", "train.patience": 5}
        files = ("--source", source, "--target", target)
        regard_within("train", *files, "--out", folder / "run", *chosen(SETTINGS | stop)).done()

    return made_once(shared, "japanese", make) / "run"


def test_japanese_trains_and_is_validated_by_a_bleu_above_nought(japanese: Path) -> None:
    last = [record for record in metrics(japanese) if "valid_bleu" in record][-1]
    assert last["valid_bleu"] > 20
    assert last["valid_chrf"] > 20
    results = json.loads((japanese / "results.json").read_text())["valid"]
    assert results["bleu"] > 20
    assert "|tok:char|" in results["bleu_signature"] or "|tok:ja-mecab" in results["bleu_signature"]


def test_japanese_is_evaluated_with_ter_beside_bleu_and_chrf(japanese: Path, tmp_path: Path, call: Call) -> None:
    source, reference = write_sides(tmp_path, "test", japanese_pairs(2, 20))
    asked = ("evaluate", japanese, "--source", source, "--reference", reference, "--beam", "1")
    bleu, chrf, ter, loss = call(*asked, "--ter").done().out.splitlines()
    assert bleu.startswith("BLEU ")
    assert float(bleu.split()[1]) > 20
    assert "|tok:ja-mecab" in bleu or "|tok:char|" in bleu
    assert chrf.startswith("chrF ")
    assert ter.startswith("TER ")
    assert "|asian:yes|" in ter
    assert loss.startswith("loss ")
    assert "|tok:13a|" in call(*asked, "--tokenize", "13a").done().out


def test_japanese_obeys_terms_and_bans(japanese: Path, tmp_path: Path, call: Call) -> None:
    """No blank tells where a word ends: a term and a ban hold anywhere in the text."""
    (tmp_path / "terms.tsv").write_text("cat\t小鳥\n", encoding="utf-8")
    lines = "the black cat sees a dog .\nthe old dog finds a fish .\n"
    with_term, without = call("translate", japanese, "--terms", tmp_path / "terms.tsv", given=lines).done().out.split()
    assert "小鳥" in with_term
    assert "小鳥" not in without  # its source has no such term
    usual = call("translate", japanese, given=lines).done().out
    banned = next(word for word in NOUNS.values() if word in usual.splitlines()[1])
    assert banned not in call("translate", japanese, "--ban", banned, given=lines).done().out.splitlines()[1]
    kept = call("translate", japanese, "--keep", "fish", given=lines).done().out.splitlines()[1]
    assert "fish" in kept


def test_runs_are_compared_by_the_tokenizer_of_the_language(japanese: Path, tmp_path: Path, call: Call) -> None:
    from shutil import copytree

    copytree(japanese, tmp_path / "other")
    found = json.loads(call("compare", japanese, tmp_path / "other", "--json").done().out)
    assert "|tok:char|" in found["signatures"]["bleu"] or "|tok:ja-mecab" in found["signatures"]["bleu"]
    assert found["runs"][0]["scores"]["bleu"] > 20


# Other encodings than UTF-8


def test_what_comes_as_utf16_is_read_like_utf8_and_written_as_it_came(
    tiny_run: Path, small_corpus: Corpus, tmp_path: Path, call: Call
) -> None:
    lines = "".join(small_corpus.source.read_text().splitlines(keepends=True)[:2])
    usual = call("translate", tiny_run, given=lines).done().out
    as_utf16 = ("\ufeff" + lines).encode("utf-16-le")
    (tmp_path / "in.txt").write_bytes(as_utf16)
    call("translate", tiny_run, "--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt").done()
    assert (tmp_path / "out.txt").read_bytes() == ("\ufeff" + usual).encode("utf-16-le")
    as_json = call("translate", tiny_run, "--json", given=as_utf16).done().out.splitlines()
    assert [json.loads(line)["text"] for line in as_json] == usual.splitlines()
    call("translate", tiny_run, "--json", given=as_utf16[:-1]).refusal("the input is marked as UTF-16-LE")


def test_documents_in_utf16_keep_their_bytes(tiny_run: Path, small_corpus: Corpus, tmp_path: Path, call: Call) -> None:
    word = small_corpus.source.read_text().split()[0]
    document = f'\ufeff# naïve 猫\r\nmsgid "{word}"\r\nmsgstr ""\r\n'
    (tmp_path / "in.po").write_bytes(document.encode("utf-16-be"))
    call("translate", tiny_run, "--input", tmp_path / "in.po", "--output", tmp_path / "out.po").done()
    out = (tmp_path / "out.po").read_bytes().decode("utf-16-be")
    assert out.startswith("\ufeff# naïve 猫\r\n")
    assert f'msgid "{word}"\r\nmsgstr "' in out
    assert 'msgstr ""' not in out


def test_a_console_that_is_not_utf8_shows_what_it_can(tiny_run: Path, process: Call, call: Call) -> None:
    told = process("info", tiny_run, PYTHONIOENCODING="cp1252").done().out
    assert told.startswith(f"{tiny_run}: xx ? yy, preset ")
    assert "xx → yy" in call("info", tiny_run).done().out
