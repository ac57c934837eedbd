"""What is counted on the meta device is what the formulas say, and it costs no memory."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from regard.config import Config, build_config, task_of
from regard.data.columns import SOURCE, TARGET
from regard.describe import multiplications_per_token
from regard.errors import ConfigError
from regard.models import ARCHITECTURES, Architecture, Shapes, TransformerConfig
from regard.models.costs import build_model, kept_by_a_pass, model_on_paper, multiplications, parameter_count
from regard.models.interface import Limits
from regard.session.costs import kept_per_token, memory_needed, operations_per_token
from regard.tasks.trial import trial_batch
from tests import transformer_costs

sizes = st.integers(1, 60)
configs = st.builds(
    TransformerConfig,
    width=st.integers(1, 20).map(lambda half: 2 * half),
    heads=st.integers(1, 4),
    key_width=st.integers(1, 9),
    value_width=st.integers(1, 9),
    feedforward=st.integers(1, 30),
    encoder_layers=st.integers(1, 3),
    decoder_layers=st.integers(1, 3),
    norm=st.sampled_from(["post", "pre"]),
    positions=st.sampled_from(["interleaved", "halves", "tensor2tensor", "learned"]),
    max_positions=st.integers(20, 40),
    bias=st.booleans(),
    output_bias=st.booleans(),
    share=st.sampled_from(["all", "target", "none"]),
)


def shapes_for(config: TransformerConfig, source: int, target: int) -> Shapes:
    """Vocabularies of these sizes; one, where the model wants one."""
    return Shapes({"source": target if config.share == "all" else source, "target": target})


def batch_of(shapes: Shapes, rows: int, **lengths: int) -> Any:
    return trial_batch(task_of(Config()), (SOURCE, TARGET), shapes, lengths, rows=rows)


@settings(max_examples=60)
@given(config=configs, source=sizes, target=sizes)
def test_parameters_are_those_of_the_formula(config: TransformerConfig, source: int, target: int):
    shapes = shapes_for(config, source, target)
    assert parameter_count(config, shapes) == transformer_costs.parameters(config, shapes["source"], target)


@settings(max_examples=10)
@given(config=configs, source=sizes, target=sizes)
def test_multiplications_are_those_of_the_formula(config: TransformerConfig, source: int, target: int):
    shapes = shapes_for(config, source, target)
    expected = transformer_costs.multiplications(config, target)
    model = model_on_paper(config, shapes)
    assert multiplications_per_token(Config(model=config), shapes, model) == expected
    found = multiplications(model, batch_of(shapes, 3, source=5, target=7))
    assert found == 3 * (5 * expected["source"] + 7 * expected["target"])
    # forward once and backward twice, each multiplication with an addition
    assert operations_per_token(Config(model=config), shapes, model) == 6 * sum(expected.values())


def test_a_model_on_paper_takes_no_memory_and_no_chance():
    before = torch.get_rng_state()
    config = build_config({"preset": "big"}).model
    model = model_on_paper(config, Shapes({"source": 10**9, "target": 10**9}))
    assert {parameter.device.type for parameter in model.parameters()} == {"meta"}
    assert torch.equal(torch.get_rng_state(), before)


PAPER = """
import sys
import regard.cli, regard.report, regard.session.session
import torch
from regard.config import build_config
from regard.models import Shapes
from regard.models.costs import model_on_paper
for table in ({}, {"architecture": "rnn"}):
    model_on_paper(build_config({"model": table}).model, Shapes({"source": 50, "target": 50}))
assert not {"matplotlib", "torch._dynamo"} & set(sys.modules)
"""


def test_neither_the_compiler_nor_matplotlib_is_loaded_for_a_model_on_paper():
    """The one takes as long to load as torch, in every command that opens a model; the other waits until something is
    drawn."""
    subprocess.run([sys.executable, "-c", PAPER], check=True)


def test_a_size_that_no_machine_can_hold_is_refused_in_a_line():
    config = TransformerConfig(width=1 << 40, heads=1)
    with pytest.raises(ConfigError, match="a model of these settings cannot be built: ") as caught:
        parameter_count(config, Shapes({"source": 1 << 40, "target": 1 << 40}))
    assert "\n" not in str(caught.value)


class Deep(nn.Module):
    """As many layers as its config says, each of nothing."""

    def __init__(self, config: DeepConfig, _: Shapes) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(config.layers))
        self.table = nn.Parameter(torch.empty(config.width, config.width))


@dataclass(frozen=True, kw_only=True)
class DeepConfig:
    architecture: str = "deep"
    layers: int = 1
    width: int = 3


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"layers": (1 << 31) - 1}, "it has more than 10,000 modules and parameters"),
        ({"layers": 7_000}, "it has more than 10,000 modules and parameters"),
        ({"width": 10**30}, ""),
        ({"width": -(10**30)}, ""),
        ({"width": -1}, ""),
        ({"width": 1 << 40}, ""),
    ],
)
def test_whatever_torch_raises_and_however_many_modules(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, int], why: str
):
    monkeypatch.setitem(ARCHITECTURES, "deep", Architecture(config=DeepConfig, build=Deep))
    with pytest.raises(ConfigError, match=f"a model of these settings cannot be built: {why}") as caught:
        parameter_count(DeepConfig(**settings), FEW)
    assert "\n" not in str(caught.value)
    assert parameter_count(DeepConfig(layers=5), FEW) == 5 * 12 + 9  # and nothing is left behind


def test_whole_numbers_of_every_model_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(ARCHITECTURES, "deep", Architecture(config=DeepConfig, build=Deep))
    model = {"architecture": "deep", "width": 1 << 31}
    with pytest.raises(
        ConfigError, match=r"model\.width=2147483648 is larger than any model; give a number of at most"
    ):
        build_config({"preset": "none", "model": model})
    assert build_config({"preset": "none", "model": model | {"width": (1 << 31) - 1}}).model.width == (1 << 31) - 1


# --- what a pass keeps

SMALL = TransformerConfig(width=12, heads=2, feedforward=20, encoder_layers=2, decoder_layers=2)
FEW = Shapes({"source": 31, "target": 31})


def kept(config: TransformerConfig = SMALL, rows: int = 2, length: int = 8) -> int:
    return kept_by_a_pass(model_on_paper(config, FEW), batch_of(FEW, rows, source=length, target=length))


def test_what_a_pass_keeps_grows_with_the_batch():
    two, four, six = (kept(rows=rows) for rows in (2, 4, 6))
    assert 0 < two < four
    assert six - four == four - two  # each row as much as the one before
    assert kept(length=16) > 1.9 * two
    assert kept(replace(SMALL, encoder_layers=4)) > two
    assert kept(replace(SMALL, feedforward=40)) >= two + 2 * 8 * 4 * 20


def test_parameters_are_not_among_it():
    """A linear map keeps its input and nothing else, however wide it is."""

    class Wide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.map = nn.Linear(3, 1009)

        def forward(self, batch: torch.Tensor) -> torch.Tensor:
            return self.map(batch)

    with torch.device("meta"):
        model = Wide()
    assert kept_by_a_pass(model, torch.zeros(7, 3)) == 7 * 3


def test_on_paper_as_in_memory():
    """What is counted is what autograd really saves of the same pass."""
    saved: dict[int, tuple[torch.Tensor, int]] = {}
    model = build_model(SMALL, FEW).train()
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            saved[storage.data_ptr()] = tensor, storage.nbytes() // max(tensor.element_size(), 4)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(batch_of(FEW, 2, source=8, target=8))
    real = sum(count for _, count in saved.values())
    assert real == pytest.approx(kept(), rel=0.25)  # the fused attention of a device keeps what it likes


def test_an_architecture_without_an_estimate_of_its_own_is_tried_on_paper(monkeypatch: pytest.MonkeyPatch):
    config = Config(model=SMALL)
    own = kept_per_token(config, FEW, model_on_paper(SMALL, FEW), 16)
    monkeypatch.setitem(ARCHITECTURES, "transformer", replace(ARCHITECTURES["transformer"], activations=None))
    tried = kept_per_token(config, FEW, model_on_paper(SMALL, FEW), 16)
    assert tried == kept(rows=2, length=16) // 32
    assert tried == pytest.approx(own, rel=0.5)


class Quadratic(nn.Module):
    """Keeps a matrix of length × length for each sentence."""

    def __init__(self, *_: Any) -> None:
        super().__init__()
        self.table = nn.Embedding(31, 7)

    def forward(self, batch: Any) -> torch.Tensor:
        states = self.table(batch.target_in)
        return (states @ states.mT).softmax(-1) @ states


class Curious(Quadratic):
    """Asks what is in its tensors."""

    def forward(self, batch: Any) -> torch.Tensor:
        return super().forward(batch) * float(batch.target_mask.sum())


def costly(monkeypatch: pytest.MonkeyPatch, build: type[nn.Module], **own: Any) -> tuple[Config, Shapes, nn.Module]:
    architecture = Architecture(config=DeepConfig, build=lambda config, shapes: build(config, shapes), **own)
    monkeypatch.setitem(ARCHITECTURES, "deep", architecture)
    config = Config(model=DeepConfig(), preset="none")
    return config, FEW, model_on_paper(config.model, FEW)


def test_what_grows_with_the_square_of_the_length_is_extrapolated(monkeypatch: pytest.MonkeyPatch):
    config, shapes, model = costly(monkeypatch, Quadratic)
    at = {n: kept_by_a_pass(model, batch_of(shapes, 2, source=n, target=n)) // (2 * n) for n in (16, 512)}
    assert at[512] > 10 * at[16]
    assert kept_per_token(config, shapes, model, 16) == at[16]
    assert kept_per_token(config, shapes, model, 512) == pytest.approx(at[512], rel=0.02)
    assert memory_needed(config, shapes, model, longest=512) > memory_needed(config, shapes, model, longest=16)


def test_a_trial_is_no_longer_than_the_model_can_take(monkeypatch: pytest.MonkeyPatch):
    for most in (1, 5, 16, 20):
        config, shapes, model = costly(monkeypatch, Quadratic, limits=lambda _, most=most: Limits({"target": most}))
        lengths: list[int] = []
        model.register_forward_pre_hook(lambda _, given, lengths=lengths: lengths.append(given[0].target_in.size(1)))
        assert kept_per_token(config, shapes, model, most) > 0
        assert max(lengths) <= most


def test_a_model_that_asks_for_values_is_told_what_to_give(monkeypatch: pytest.MonkeyPatch):
    config, shapes, model = costly(monkeypatch, Curious)
    with pytest.raises(
        ConfigError, match=r"model\.architecture='deep' cannot be tried on paper .*`activations`"
    ) as caught:
        memory_needed(config, shapes, model)
    assert "\n" not in str(caught.value)
    config, shapes, model = costly(monkeypatch, Curious, activations=lambda config, longest: 11 * longest)
    assert kept_per_token(config, shapes, model, 5) == 55
    assert operations_per_token(config, shapes, model) == 6 * parameter_count(config.model, shapes)
    assert multiplications_per_token(config, shapes, model) == {}
