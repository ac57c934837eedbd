"""The benchmark's protocol, its table, and that its torch peer is the model that ours is. No speed is asserted."""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
import time
import venv
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rich
import torch
from rich.console import Console

from regard.bench import environments, machine, translate, translation_table
from regard.bench.children import Child, Contestant, PeerError
from regard.bench.figures import share_of
from regard.bench.peers import multiplying
from regard.bench.peers.multiplying import rate
from regard.bench.peers.regard_step import Peer as RegardPeer
from regard.bench.peers.torch_loop import Peer as TorchPeer
from regard.bench.train import (
    bench_training,
    contestants,
    operations_a_token,
    plots,
    save_batches,
    shape_of,
    summary,
    table,
    take_turns,
)
from regard.config import Config
from regard.data.batch import Batch
from regard.errors import ConfigError, CorpusError, RunError
from regard.models import ARCHITECTURES, Shapes, TransformerConfig
from regard.models.costs import model_on_paper, multiplications
from regard.nn import fused
from regard.report.drawing import figure_of
from regard.report.picture import write_picture
from regard.session.precision import bf16_works
from regard.text.tokenizer import END, PAD, START, UNKNOWN
from tests.decodables import collated
from tests.unit.test_twins import opened

WORDS = 43
SHAPE = {"width": 22, "heads": 2, "feedforward": 29, "encoder_layers": 2, "decoder_layers": 1, "dropout": 0.1}


def settings(**changed: Any) -> dict[str, Any]:
    fixed = {
        "pad": PAD,
        "start": START,
        "end": END,
        "unknown": UNKNOWN,
        "vocabulary": WORDS,
        "model": SHAPE,
        "smoothing": 0.1,
        "adam": {"rate": 0.01, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-9},
        "threads": 1,
        "seed": 7,
        "warmup": 1,
        "precision": "fp32",
        "paper_dropout": False,
    }
    return fixed | changed


def corpus() -> list[Batch]:
    """The target is the source: easily learnt."""
    generator = torch.Generator().manual_seed(5)
    batches: list[Batch] = []
    for lengths in ((3, 5, 7), (11, 2)):
        rows = [torch.randint(4, WORDS, (length,), generator=generator).tolist() for length in lengths]
        batches.append(collated([[*row, END] for row in rows], rows))
    return batches


PRECISIONS = ["fp32", pytest.param("bf16", marks=pytest.mark.skipif(not bf16_works(), reason="no bf16 here"))]


@pytest.fixture(autouse=True)
def kernels_of_before() -> Generator[None]:
    """A peer has its process to itself, and installs kernels for good; here it has not."""
    with fused.using(None):
        yield


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("paper_dropout", [False, True])
def test_torch_peer_has_our_parameters_and_learns(paper_dropout: bool, precision: str) -> None:
    torch.manual_seed(3)
    peer = TorchPeer(settings(paper_dropout=paper_dropout, precision=precision))
    assert peer.parameters == RegardPeer(settings()).parameters
    losses = losses_of(peer)
    assert all(math.isfinite(loss) for loss in losses)
    assert losses[-1] < losses[0] - 0.5


@pytest.mark.parametrize("precision", PRECISIONS)
def test_our_peer_learns_the_same(precision: str) -> None:
    torch.manual_seed(3)
    losses = losses_of(RegardPeer(settings(precision=precision)))
    assert losses[-1] < losses[0] - 0.5


def losses_of(peer: Any) -> list[float]:
    batches = [peer.batch(batch.source.values, batch.target_in, batch.target_out) for batch in corpus()]
    return [sum(peer.step(batch) for batch in batches) / len(batches) for _ in range(30)]


def test_papers_dropout_leaves_the_residuals_only() -> None:
    """Off in attention and inside the feed-forward network, on elsewhere."""
    peer = TorchPeer(settings(paper_dropout=True))
    layer: Any = peer.model.transformer.decoder.layers[0]
    assert (layer.self_attn.dropout, layer.multihead_attn.dropout, layer.dropout.p) == (0.0, 0.0, 0.0)
    assert {layer.dropout1.p, layer.dropout2.p, layer.dropout3.p, peer.model.dropout.p} == {SHAPE["dropout"]}


def test_a_child_takes_turns_over_the_shared_batches(tmp_path: Path) -> None:
    batches = corpus()
    save_batches(tmp_path / "batches.npz", batches)
    given = settings(batches=str(tmp_path / "batches.npz"), num_batches=len(batches))
    child = Child("training", Contestant("torch", "torch_loop", sys.executable), given, tmp_path)
    try:
        assert child.about["threads"] == 1
        assert child.about["parameters"] == TorchPeer(settings()).parameters
        first, second = child.turn(1e-6), child.turn(1e-6)
    finally:
        child.close()
    # One warm step before all, one before each turn: the first turn times batch 0, the second again.
    assert [first["steps"], second["steps"]] == [1, 1]
    assert [first["tokens"], second["tokens"]] == [batches[0].num_tokens] * 2
    assert first["seconds"] > 0
    assert math.isfinite(first["loss"])
    assert second["peak_memory"] >= first["peak_memory"] > 1 << 20
    assert child.process.returncode == 0


@pytest.mark.parametrize(
    ("module", "python", "words"),
    [
        ("torch_loop", sys.executable, "No such file"),
        ("no_such_peer", sys.executable, "No module named 'no_such_peer'"),
        ("torch_loop", "/no/such/python", "cannot be started"),
    ],
)
def test_a_child_that_fails_says_why_in_one_line(tmp_path: Path, module: str, python: str, words: str) -> None:
    given = settings(batches=str(tmp_path / "absent.npz"), num_batches=1)
    with pytest.raises(PeerError, match=words) as caught:
        Child("training", Contestant("peer", module, python), given, tmp_path)
    assert "\n" not in str(caught.value)


def turn(tokens: int, seconds: float) -> dict[str, Any]:
    return {"tokens": tokens, "seconds": seconds, "steps": 2, "loss": 3.5}


def test_ratios_are_taken_within_a_round() -> None:
    """The machine is half as fast in the second round; no ratio shows it."""
    ours, theirs = summary(["ours", "theirs"], [[turn(900, 1.0), turn(900, 2.0)], [turn(600, 1.0), turn(300, 1.0)]])
    assert (ours["ratio"], theirs["ratio"]) == (1.0, 1.5)
    assert theirs["measurements"] == [600.0, 300.0]
    assert theirs["median"] == 450.0
    assert theirs["spread"] == pytest.approx(300 / 450)


class Played:
    """A child that answers as it is told; a message in place of a number ends it."""

    def __init__(self, name: str, *answers: int | str) -> None:
        self.name, self.answers, self.closed = name, list(answers), False

    def turn(self, seconds: float) -> dict[str, Any]:
        answer = self.answers.pop(0)
        if isinstance(answer, str):
            raise PeerError(answer)
        return turn(answer, seconds)

    def close(self) -> None:
        self.closed = True


def test_a_share_of_a_peak_that_could_not_be_measured_costs_no_results() -> None:
    assert (share_of(3.0, 4.0), share_of(3.0, 0.0)) == (0.75, 0.0)


def test_a_peer_that_fails_on_the_way_costs_the_others_nothing() -> None:
    ours, dies, goes_on = Played("regard", 9, 8, 7), Played("eole", 5, "ended with code -9"), Played("torch", 4, 3, 2)
    peers: Any = [ours, dies, goes_on]
    children, turns, failed = take_turns(peers, 1.0, 3, Console(quiet=True))
    assert [child.name for child in children] == ["regard", "torch"]
    assert [[each["tokens"] for each in own] for own in turns] == [[9, 8, 7], [4, 3, 2]]
    assert failed == [{"name": "eole", "note": "ended with code -9"}]
    assert dies.closed
    alone: Any = [Played("regard", "out of memory")]
    with pytest.raises(PeerError, match="out of memory"):
        take_turns(alone, 1.0, 1, Console(quiet=True))


def results() -> dict[str, Any]:
    peers = summary(["regard", "another"], [[turn(12_345, 1.0)], [turn(9876, 1.0)]])
    for peer in peers:
        peer |= {"parameters": 2_500_000, "version": "1.2.3", "peak_memory": 345_000_000, "share_of_peak": 0.21}
    absent = {"name": "eole", "note": environments.missing("eole")}
    return {
        "shapes": [{"shape": "tiny", "model": SHAPE, "peers": [*peers, absent]}],
        "machine": {"processor": "A chip", "cores": 2, "threads": 2, "torch": "9.9", "instructions": "AVX2"},
        "peak": 130e9,
        "precision": "fp32",
        "data": {"corpus": "some", "num_batches": 3, "vocabulary": WORDS},
        "label_smoothing": 0.1,
        "batch_tokens": 4096,
        "seed": 1,
        "seconds": 20.0,
        "rounds": 3,
    }


def test_table_is_aligned_and_says_what_it_depends_on() -> None:
    shape, head, ours, other, eole, *rest = table(results()).split("\n")
    assert shape.startswith("tiny: 2+1 layers, width 22")
    assert head.index("tokens/s") + len("tokens/s") == ours.index("12,345") + len("12,345")
    assert ours.index("12,345") + 1 == other.index("9,876")
    assert "1.25×" in other
    assert "345 MB" in other
    assert "21%" in other
    assert eole == "eole: not installed: run `regard bench peers DIR --only eole` and set REGARD_BENCH_PEERS=DIR"
    for part in ("3 × 20 s", "seed 1", "A chip", "2 threads", "torch 9.9", "4,096", "fp32", "130 GFLOP/s"):
        assert part in " ".join(rest)


def test_the_speeds_are_drawn(tmp_path: Path) -> None:
    """A bar for each peer that ran, with its value, and none for one that did not."""
    write_picture(tmp_path / "speed.svg", plots(results()))
    drawn = (tmp_path / "speed.svg").read_text()
    assert "12,345" in drawn
    assert "another" in drawn
    assert "eole" not in drawn


def test_peers_are_sought_in_their_folder_and_then_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = tmp_path / "eole" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.touch()
    monkeypatch.setenv(environments.FOLDER, str(tmp_path))
    found = {each.name: each for each in contestants()}
    assert found["eole"].python == str(own)
    expected = sys.executable if importlib.util.find_spec("joeynmt") else ""
    assert found["Joey NMT"].python == expected
    monkeypatch.delenv(environments.FOLDER)
    assert environments.interpreter("eole") == (sys.executable if importlib.util.find_spec("eole") else "")


def test_an_unknown_peer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--only opennmt is not one of eole, joeynmt, transformers, ctranslate2"):
        environments.make_environments(tmp_path, ["opennmt"], Console(quiet=True))
    assert list(tmp_path.iterdir()) == []


def test_a_place_where_no_environment_can_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match=r"file/eole cannot be made into a virtual environment"):
        environments.make_environment(tmp_path / "file" / "eole", environments.PACKAGES["eole"])


def test_an_environment_sees_our_packages_behind_its_own_and_what_cannot_be_installed_is_said(tmp_path: Path) -> None:
    python = tmp_path / "peer" / "bin" / "python"
    venv.create(tmp_path / "peer", with_pip=False, symlinks=True)
    environments.share_packages(python)
    question = "import rich, sys; print(rich.__file__, sys.prefix)"
    asked = subprocess.run([str(python), "-c", question], capture_output=True, text=True)
    assert asked.stdout.split() == [rich.__file__, str(tmp_path / "peer")]
    assert "No module named 'no_such_module'" in environments.ran([str(python), "-c", "import no_such_module"])
    assert environments.ran([str(python), "-c", "pass"]) == ""


@pytest.mark.parametrize("name", ["tiny", "small", "base"])
def test_operations_of_a_step_are_those_of_its_products(name: str) -> None:
    """Counted by hand and by torch's counter on a batch without padding: forward, times three."""
    shape, vocabulary, size = shape_of(name), 97, (2, 5, 7)
    rows, sources, targets = size
    model = model_on_paper(TransformerConfig(**shape), Shapes({"source": vocabulary, "target": vocabulary}))
    batch = collated([[5] * sources] * rows, [[6] * (targets - 1)] * rows)
    expected = 2 * 3 * multiplications(model, batch) / (rows * targets)
    counts = {"vocabulary": vocabulary, "source_tokens": rows * sources, "target_tokens": rows * targets}
    assert operations_a_token(shape, counts) == pytest.approx(expected)


class InProcess(Child):
    """A child that is none: the same runner, called."""

    def __init__(self, contestant: Contestant, settings: dict[str, Any]) -> None:
        self.name, self.runner = contestant.name, multiplying.Runner(contestant.module, settings)

    def turn(self, seconds: float) -> dict[str, Any]:
        return self.runner.turn({"seconds": seconds})


def test_the_machine_is_measured_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products: what is stated is the arithmetic of rates and medians, not a speed."""

    def started(kind: str, wanted: list[Contestant], settings: dict[str, Any], *_: Any) -> Any:
        assert kind == "multiplying"
        able = [each for each in wanted if each.name != "bf16" and each.python]
        absent = [{"name": each.name, "note": each.absent or machine.NO_BF16} for each in wanted if each not in able]
        return [InProcess(each, settings) for each in able], absent

    monkeypatch.setattr(machine, "start_all", started)
    found = machine.bench_machine(1e-3, 2, Console(quiet=True), shapes=[[3, 5, 7], [11, 13, 17]], size=1 << 16)
    kinds = {kind["name"]: kind for kind in found["kinds"]}
    assert set(kinds) == {"fp32", machine.OURS, "int8", "memory", "bf16", machine.ROUNDED}
    fp32 = [kinds[name] for name in ("fp32", machine.OURS) if "peak" in kinds[name]]
    for name in ("fp32", "int8"):
        assert set(kinds[name]["rates"]) == {"3 × 5 × 7", "11 × 13 × 17"}
        assert kinds[name]["peak"]["median"] == max(figure["median"] for figure in kinds[name]["rates"].values()) > 0
    peaks = machine.Peaks.of(found)
    assert peaks.fp32 == max(kind["peak"]["median"] for kind in fp32)  # whoever computes it
    assert peaks.bandwidth == kinds["memory"]["rates"]["read"]["median"]
    text = machine.table(found)
    assert "GFLOP/s" in text
    assert "← peak" in text
    assert f"bf16: {machine.NO_BF16}" in text
    write_picture(tmp_path / "machine.png", machine.plots(found))
    assert (tmp_path / "machine.png").read_bytes().startswith(b"\x89PNG")


def test_int8_products_are_those_of_fp32_but_for_rounding() -> None:
    """What is timed is a product, and not nothing."""
    torch.manual_seed(3)
    product = multiplying.whole(7, 64, 11)()
    assert isinstance(product, torch.Tensor)
    torch.manual_seed(3)
    weight, rows = torch.randn(11, 64), torch.randn(7, 64)
    assert float((product - rows @ weight.T).abs().max()) < 0.05 * float((rows @ weight.T).abs().max())


def test_a_rate_is_work_over_time() -> None:
    """Of a work that takes ten milliseconds, and is done once before the clock starts."""
    calls: list[float] = []

    def work() -> None:
        calls.append(time.perf_counter())
        time.sleep(0.01)

    found = rate(work, 500.0, 0.025)
    assert found <= 500.0 / 0.01
    assert found == pytest.approx(500.0 * (len(calls) - 1) / (time.perf_counter() - calls[1]), rel=0.2)


def test_what_cannot_be_timed_is_refused_before_it_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to time"):
        bench_training(tmp_path, 0.0, 3, Console(quiet=True))
    with pytest.raises(ConfigError, match="nothing to time"):
        machine.bench_machine(1.0, 0, Console(quiet=True))
    with pytest.raises(ConfigError, match="--shape huge is not one of tiny, small, base"):
        bench_training(tmp_path, 1.0, 1, Console(quiet=True), ["huge"])
    with pytest.raises(CorpusError, match=r"train\.en\.gz is not there; give --data"):
        bench_training(tmp_path, 1.0, 1, Console(quiet=True))


class Spoken(Played):
    """A child that is asked for translations; a message in place of the seconds ends it."""

    def __init__(self, name: str, *answers: int | str, **own: Any) -> None:
        super().__init__(name, *answers)
        self.contestant = Contestant(name, "", "", own)

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        return {"seconds": [float(self.turn(1.0)["tokens"])]}


def test_a_translator_that_fails_on_the_way_costs_the_others_nothing() -> None:
    """Also one that dies between its two turns, and one that takes part with one beam alone."""
    ours, dies = Spoken("regard fp32", *range(8)), Spoken("eole", 5, "ended with code -9")
    wide, late = Spoken("early", *range(4), beams=[5]), Spoken("regard int8", 1, 2, 3, 4, 5, "no memory left")
    peers: Any = [ours, dies, wide, late]
    order = translate.Order(Path("a"), Path("b"), beams=(1, 5), rounds=2)
    children, turns, failed = translate.take_turns(peers, order, Console(quiet=True))
    assert [child.name for child in children] == ["regard fp32", "early"]
    assert [[(each["beam"], each["what"]) for each in own] for own in turns] == [
        [(1, "bulk"), (1, "alone"), (5, "bulk"), (5, "alone")] * 2,
        [(5, "bulk"), (5, "alone")] * 2,
    ]
    assert [each["outputs"] for each in turns[0]] == [True, False, True, False, *[False] * 4]
    assert failed == [
        {"name": "eole", "note": "ended with code -9"},
        {"name": "regard int8", "note": "no memory left"},
    ]
    assert (ours.closed, dies.closed, late.closed) == (False, True, True)
    alone: Any = [Spoken("regard fp32", "out of memory"), Spoken("eole", 5, 5)]
    with pytest.raises(PeerError, match="out of memory"):
        translate.take_turns(alone, order, Console(quiet=True))


def measured_at(beam: int, speed: float) -> dict[str, Any]:
    return {"beam": beam, "bleu": 30.0, "sentences_per_second": {"median": speed, "measurements": [speed]}}


def test_an_engine_looks_the_same_in_every_panel() -> None:
    """One that takes part with a beam alone moves no other to its colour; of more names than there are colours, no two
    look alike."""
    names = ["regard fp32", "regard, early stopping", *(f"peer {number}" for number in range(8))]
    engines = [
        {"name": name, "beams": [measured_at(beam, 5.0) for beam in (1, 5) if beam > 1 or "early" not in name]}
        for name in names
    ]
    run = {"run": "run", "beams": [1, 5], "engines": engines}
    panels = figure_of(translation_table.plots({"runs": [run, run]})).axes
    looks = [{line.get_label(): (line.get_color(), line.get_marker()) for line in panel.lines} for panel in panels]
    assert [len(panel) for panel in looks] == [9, 10]
    assert all(looks[1][name] == look for name, look in looks[0].items())
    assert len(set(looks[1].values())) == 10
    bars: list[dict[str, Any]] = []
    for panel in figure_of(translation_table.plots({"runs": [run]})).axes:
        labels = [label.get_text() for label in panel.get_yticklabels()]
        bars.append(dict(zip(labels, [bar.get_facecolor() for bar in panel.patches], strict=True)))
    assert all(bars[1][name] == colour for name, colour in bars[0].items())


def test_every_run_is_opened_before_anything_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lm = Config(task="lm", preset="none", model=ARCHITECTURES["rnn-lm"].config())
    runs = {Path("good"): opened(), Path("lm"): replace(opened(), config=lm)}
    monkeypatch.setattr(translate, "open_to_start", runs.__getitem__)
    for name in ("measure_peaks", "bench_run"):
        monkeypatch.setattr(translate, name, lambda *_: pytest.fail("something was measured"))
    (tmp_path / "text").write_text("a\n")
    order = translate.Order(tmp_path / "text", tmp_path / "text")
    with pytest.raises(ConfigError, match="lm does not translate from one source; `regard info lm`"):
        translate.bench_translation(list(runs), order, Console(quiet=True))
