"""N lines in are N lines out, in order, whatever the lines hold; documents keep what is not translated."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import regard
from tests.e2e.toolbox import TINY, Corpus, Outcome, chosen, environment
from tests.hostile_lines import Known, hostile_lines, write_hostile
from tests.within import regard_within

Call = Callable[..., Outcome]

SHORT = ("--max-length", "6", "--beam", "1")
"""An untrained model never ends by itself."""
REGARD_THEN_MEMORY = """
import sys
from regard.bench.peers.__main__ import peak_memory
from regard.cli import main
try:
    main()
finally:
    print(peak_memory(), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def lossless_run(tmp_path_factory: pytest.TempPathFactory, small_corpus: Corpus) -> Path:
    """Made in seconds, it translates into noise, but takes any text."""
    run = tmp_path_factory.mktemp("lossless") / "run"
    settings = TINY | {"tokenizer.kind": "bpe", "tokenizer.size": 300, "data.filters.max_length": 64}
    regard_within("train", *small_corpus.options, "--out", run, *chosen(settings)).done()
    return run


def translated(run: Path, source: Path, output: Path, *options: str) -> tuple[str, int]:
    """A process of its own: what it said on stderr, and the most memory it held, in bytes, by its own account: that of
    the system also counts what this process held when it started the other."""
    command = [sys.executable, "-c", REGARD_THEN_MEMORY, "translate", str(run), *SHORT, *options]
    with source.open("rb") as given, output.open("wb") as found:
        done = subprocess.run(
            command, stdin=given, stdout=found, stderr=subprocess.PIPE, env=environment(), check=False, timeout=7200
        )
    said, _, memory = done.stderr.decode().rstrip("\n").rpartition("\n")
    assert done.returncode == 0, said[-2000:]
    return said, int(memory)


def assert_faithful(run: Path, source: Path, output: Path, known: list[Known]) -> None:
    """As many lines, ends and blank lines as they were, and known sentences as if they were alone."""
    before, after = source.read_bytes().split(b"\n"), output.read_bytes().split(b"\n")
    assert len(after) == len(before)
    sentences = sorted({one.sentence for one in known})
    model = regard.load(run)
    alone = {one: model.translate([one], beam=1, max_length=6)[0].text for one in sentences}
    for one in known:
        assert after[one.line - 1].removesuffix(b"\r").decode() == alone[one.sentence], one
    for number, (given, found) in enumerate(zip(before, after, strict=True), start=1):
        assert given.endswith(b"\r") == found.endswith(b"\r"), number
        if not given.decode(errors="replace").strip():
            assert found == given, number
        found.decode()  # well-formed, every line


def test_hostile_lines_neither_shift_nor_stop(lossless_run: Path, tmp_path: Path):
    source, output = tmp_path / "hostile.txt", tmp_path / "out.txt"
    known: list[Known] = []
    with source.open("wb") as file:
        lines = [(raw, sentence) for raw, sentence in hostile_lines(1500, seed=5) if len(raw) < 100_000]
        for number, (raw, sentence) in enumerate(lines, start=1):
            file.write(raw)
            known += [Known(number, sentence)] if sentence else []
    said, _ = translated(lossless_run, source, output)
    assert_faithful(lossless_run, source, output, known)
    assert "not valid UTF-8" in said
    assert "split into" in said


@pytest.mark.verify
def test_a_hundred_thousand_hostile_lines_in_flat_memory(lossless_run: Path, tmp_path: Path):
    source, head, output = tmp_path / "hostile.txt", tmp_path / "head.txt", tmp_path / "out.txt"
    known = write_hostile(source)
    head.write_bytes(b"\n".join(source.read_bytes().split(b"\n")[:1000]) + b"\n")
    _, little = translated(lossless_run, head, output)
    _, much = translated(lossless_run, source, output)
    print(f"peak memory: {little / 2**20:.0f} MiB for 1,000 lines, {much / 2**20:.0f} MiB for 100,000")
    assert_faithful(lossless_run, source, output, known)
    assert much < 1.5 * little


def test_output_comes_while_input_is_still_open(lossless_run: Path):
    command = [sys.executable, "-m", "regard", "translate", str(lossless_run), *SHORT]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"bado figu\n" * 200)
    process.stdin.flush()
    assert process.stdout.readline().endswith(b"\n")  # the input has not ended
    process.stdin.write(b"last\n")
    process.stdin.close()
    assert process.stdout.read().count(b"\n") == 200
    assert process.wait(timeout=120) == 0


def test_a_po_file_is_filled_and_all_else_stays(lossless_run: Path, call: Call, tmp_path: Path):
    source, output = tmp_path / "de.po", tmp_path / "out.po"
    source.write_text(
        '# kept\nmsgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
        'msgid "bado"\nmsgstr "schon da"\n\n#: a.c:3\nmsgid "figu"\nmsgstr ""\n'
    )
    call("translate", lossless_run, *SHORT, "--input", source, "--output", output).done()
    new = output.read_text()
    head, _, tail = source.read_text().partition("#: a.c:3\n")
    assert new.startswith(head)
    assert "#, fuzzy" in new
    assert 'msgstr ""' not in new.split("#: a.c:3")[1]
    assert tail.splitlines()[0] in new


def test_columns_fields_and_subtitles(lossless_run: Path, call: Call, tmp_path: Path):
    table = tmp_path / "a.tsv"
    table.write_text("id\ttext\n1\tbado figu\n2\t\n")
    found = call("translate", lossless_run, *SHORT, "--input", table, "--field", "text", "--into", "new").done().out
    said = call("translate", lossless_run, *SHORT, given="bado figu\n").done().out.rstrip("\n")
    assert said.strip()
    assert [line.split("\t") for line in found.splitlines()] == [
        ["id", "text", "new"],
        ["1", "bado figu", said],
        ["2", "", ""],
    ]
    lines = tmp_path / "a.jsonl.gz"
    lines.write_bytes(gzip.compress(b'{"id": 7, "source": "bado"}\n'))
    found = call("translate", lossless_run, *SHORT, "--input", lines, "--into", "target").done().out
    assert json.loads(found)["id"] == 7
    assert set(json.loads(found)) == {"id", "source", "target"}
    assert json.loads(found)["target"] == call("translate", lossless_run, *SHORT, given="bado\n").done().out[:-1]
    subtitles = tmp_path / "a.srt"
    subtitles.write_text("1\n00:00:01,000 --> 00:00:02,000\nbado figu\n\n")
    found = call("translate", lossless_run, *SHORT, "--input", subtitles).done().out
    assert found == f"1\n00:00:01,000 --> 00:00:02,000\n{said}\n\n"


def test_what_is_shown_beside_the_text(lossless_run: Path, call: Call, tmp_path: Path):
    given, pairs = "bado figu\n\nkeba\n", tmp_path / "pairs.txt"
    out = call("translate", lossless_run, *SHORT, "--json", "--alignment", "1.2", "--tree", given=given).done().out
    first, blank, last = (json.loads(line) for line in out.splitlines())
    assert blank["text"] == ""
    for one in (first, last):
        assert len(one["token_scores"]) == len(one["tokens"]) + one["finished"]
        assert sum(one["token_scores"]) == pytest.approx(one["score"])
        assert [pair[1] for pair in one["token_alignment"]] == list(range(len(one["tokens"])))
        assert one["tree"]["nodes"][0]["parent"] == -1
    shown = call("translate", lossless_run, *SHORT, "--pharaoh", pairs, given=given).done().out
    assert shown.splitlines() == [first["text"], "", last["text"]]
    assert len(pairs.read_text().splitlines()) == 3
    steps = call("translate", lossless_run, *SHORT, "--trace", "3", given="bado\n").done().out.splitlines()
    assert len(steps) > 3
    assert all(line.startswith("  ") and "looks at" in line for line in steps[:-1])


def test_scores_are_those_of_the_search(tiny_run: Path, call: Call, tmp_path: Path):
    """Token by token, and of the end symbol, which an untrained model never reaches by itself, besides."""
    source, target = tmp_path / "s", tmp_path / "t"
    given = "bado figu\nkeba gudo\n"
    out = call("translate", tiny_run, "--beam", "3", "--max-length", "5", "--json", given=given).done().out
    found = [json.loads(line) for line in out.splitlines()]
    source.write_text(given)
    target.write_text("".join(f"{one['text']}\n" for one in found))
    scores = call("score", tiny_run, "--source", source, "--target", target).done().out.splitlines()
    details = call("score", tiny_run, "--source", source, "--target", target, "--json").done().out.splitlines()
    for one, score, detail in zip(found, scores, details, strict=True):
        again = json.loads(detail)
        assert float(score) == pytest.approx(again["score"], abs=1e-6)
        assert again["score"] == pytest.approx(sum(again["token_scores"]))
        assert again["tokens"] == one["tokens"]
        assert len(one["tokens"]) == 5
        assert again["token_scores"][:5] == pytest.approx(one["token_scores"][:5], abs=1e-5)
        assert len(again["token_scores"]) == 6


def test_an_ensemble_needs_one_vocabulary(lossless_run: Path, tiny_run: Path, call: Call):
    alone = call("translate", lossless_run, *SHORT, given="bado\n").done().out
    assert call("translate", lossless_run, *SHORT, "--with", lossless_run, given="bado\n").done().out == alone
    refused = call("translate", lossless_run, "--with", tiny_run, given="bado\n")
    refused.refusal(str(tiny_run), "another vocabulary", "same tokenizer settings")


def test_kept_and_wanted_words(lossless_run: Path, call: Call, tmp_path: Path):
    given = "bado 12 figu https://a.b/c?d=1\n"
    options = ("--beam", "4", "--max-extra", "20", "--keep", r"https?://\S+", "--keep", r"\d+")
    out = call("translate", lossless_run, *options, given=given).done().out
    assert "https://a.b/c?d=1" in out
    assert "12" in out
    terms = tmp_path / "terms.tsv"
    terms.write_text("figu\tGUFI\nkeba\tBAKE\n")
    out = call("translate", lossless_run, "--beam", "4", "--terms", terms, "--require", "DOBA", given="bado figu\n")
    assert "GUFI" in out.done().out
    assert "DOBA" in out.out


def test_a_banned_word_is_gone(tiny_run: Path, call: Call):
    order = ["translate", tiny_run, "--max-length", "6", "--beam", "4"]
    said = call(*order, given="keba\n").done().out.split()
    assert said
    banned = call(*order, "--ban", said[0], given="keba\n").done().out.split()
    assert banned
    assert said[0] not in banned
