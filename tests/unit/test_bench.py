"""The benchmark's protocol, its table, and that its torch peer is the model that ours is. No speed is asserted."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from regard.bench import train as bench
from regard.bench.peers.regard_step import Peer as RegardPeer
from regard.bench.peers.torch_loop import Peer as TorchPeer
from regard.bench.train import Child, Contestant, PeerError, bench_training, save_batches, summary, table
from regard.data.batch import Batch
from regard.errors import ConfigError, CorpusError
from regard.text.tokenizer import END, PAD, START, UNKNOWN
from tests.decodables import collated

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


@pytest.mark.parametrize("paper_dropout", [False, True])
def test_torch_peer_has_our_parameters_and_learns(paper_dropout: bool) -> None:
    torch.manual_seed(3)
    peer = TorchPeer(settings(paper_dropout=paper_dropout))
    assert peer.parameters == RegardPeer(settings()).parameters
    losses = losses_of(peer)
    assert all(math.isfinite(loss) for loss in losses)
    assert losses[-1] < losses[0] - 0.5


def test_our_peer_learns_the_same() -> None:
    torch.manual_seed(3)
    losses = losses_of(RegardPeer(settings()))
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
    child = Child(Contestant("torch", "torch_loop", sys.executable), given, tmp_path)
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
        Child(Contestant("peer", module, python), given, tmp_path)
    assert "\n" not in str(caught.value)


def turn(tokens: int, seconds: float) -> dict[str, Any]:
    return {"tokens": tokens, "seconds": seconds, "steps": 2, "loss": 3.5}


def test_ratios_are_taken_within_a_round() -> None:
    """The machine is half as fast in the second round; no ratio shows it."""
    ours, theirs = summary(["ours", "theirs"], [[turn(900, 1.0), turn(900, 2.0)], [turn(600, 1.0), turn(300, 1.0)]])
    assert (ours["ratio"], theirs["ratio"]) == (1.0, 1.5)
    assert theirs["tokens_per_second"] == [600.0, 300.0]
    assert theirs["median"] == 450.0
    assert theirs["spread"] == pytest.approx(300 / 450)


def test_table_is_aligned_and_says_what_it_depends_on() -> None:
    peers = summary(["regard", "another"], [[turn(12_345, 1.0)], [turn(9876, 1.0)]])
    for peer in peers:
        peer |= {"parameters": 2_500_000, "version": "1.2.3"}
    text = table(
        {
            "peers": [*peers, {"name": "eole", "note": bench.INSTALL_EOLE}],
            "machine": {"processor": "A chip", "cores": 2, "threads": 2, "torch": "9.9", "instructions": "AVX2"},
            "model": SHAPE | {"precision": "fp32"},
            "data": {"corpus": "some", "batches": 3, "vocabulary": WORDS},
            "batch_tokens": 4096,
            "seed": 1,
            "seconds": 20.0,
            "rounds": 3,
        }
    )
    head, ours, other, eole, *rest = text.split("\n")
    assert head.index("tokens/s") + len("tokens/s") == ours.index("12,345") + len("12,345")
    assert ours.index("12,345") + 1 == other.index("9,876")
    assert "1.25×" in other
    assert eole.startswith("eole: not installed: pip install")
    for part in ("3 × 20 s", "seed 1", "A chip", "2 threads", "torch 9.9", "4,096", "fp32"):
        assert part in " ".join(rest)


def test_eole_is_sought_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(bench.EOLE_PYTHON, "/elsewhere/python")
    assert bench.contestants()[-1].python == "/elsewhere/python"
    monkeypatch.delenv(bench.EOLE_PYTHON)
    if importlib.util.find_spec("eole") is None:
        assert bench.contestants()[-1].python == ""


def test_what_cannot_be_timed_is_refused_before_it_starts(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to time"):
        bench_training(tmp_path, 0.0, 3, Console(quiet=True))
    with pytest.raises(CorpusError, match=r"train\.en\.gz is not there; give --data"):
        bench_training(tmp_path, 1.0, 1, Console(quiet=True))
