"""One step: its gradient, its chance, its rate, and what it does when a gradient is not finite."""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import Tensor

from regard.checkpoint import average_weights, load_checkpoint
from regard.data.batch import Batch
from regard.data.columns import SOURCE, TARGET
from regard.data.config import DataConfig
from regard.data.feed import Feed
from regard.data.store import FORMAT, META, Layout, Store, StoreWriter
from regard.decode.config import SearchConfig
from regard.errors import CheckpointError, RunError
from regard.metrics_log import MetricsLog, read_metrics
from regard.models import Transformer, TransformerConfig
from regard.nn.dropout import dropout, keep_mask
from regard.nn.loss import Objective, Smoothing
from regard.run import RunDirectory
from regard.tasks import translate
from regard.tasks.interface import Examples, Trained
from regard.tasks.sequence_loss import sequence_loss
from regard.text.codecs import ByteCodec
from regard.text.symbols import RESERVED
from regard.text.tokenizer import END, Tokenizer
from regard.train.config import TrainConfig
from regard.train.console import Reporter
from regard.train.loop import Loop
from regard.train.optimizer import (
    MovingAverage,
    build_optimizer,
    optimizer_tensors,
    rate_at,
    restore_optimizer,
    set_rate,
)
from regard.train.schedule import SCHEDULES, constant_rate, cosine_rate, inverse_sqrt_rate, paper_rate
from regard.train.signals import Interrupted, StopRequest
from regard.train.step import accumulate_gradient, seed_step, train_step
from tests.decodables import collated

WORDS = 43


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(29)


def tiny(**settings: Any) -> Transformer:
    shape: dict[str, Any] = {"width": 22, "heads": 2, "feedforward": 29, "encoder_layers": 2, "decoder_layers": 1}
    return Transformer(TransformerConfig(**(shape | {"dropout": 0.0} | settings)), WORDS, WORDS)


def batch_of(pairs: list[tuple[list[int], list[int]]]) -> Batch:
    return collated([source for source, _ in pairs], [target for _, target in pairs])


def some_pairs(*lengths: int) -> list[tuple[list[int], list[int]]]:
    """Targets of these lengths, their end included; sources of others."""

    def words(count: int) -> list[int]:
        return torch.randint(4, WORDS, (count,)).tolist()

    return [([*words(1 + length * 7 % 13), END], words(length - 1)) for length in lengths]


def gradient(model: Transformer) -> Tensor:
    """The whole of it, in one row."""
    assert all(parameter.grad is not None for parameter in model.parameters())
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None])


def weights_of(model: Transformer) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def break_gradient(model: Transformer, value: float = math.nan) -> Any:
    """From now on one number of one parameter's gradient is not finite."""

    def spoil(found: Tensor) -> Tensor:
        found = found.clone()
        found.view(-1)[3] = value
        return found

    return model.decoder[0].feedforward.inner.weight.register_hook(spoil)


# --- accumulation


def accumulated_and_at_once(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The gradient of 4 × 1,024 tokens, in batches and in one."""
    model = tiny().to(dtype)
    parts = [some_pairs(*lengths) for lengths in ([16] * 64, [32] * 32, [8] * 127 + [5, 3], [64, 2, 62] * 8)]
    batches = [batch_of(pairs) for pairs in parts]
    assert [batch.num_tokens for batch in batches] == [1024] * 4
    objective = Objective(Smoothing(0.1))
    sums = accumulate_gradient(model, batches, sequence_loss, objective)
    accumulated = gradient(model).clone()
    model.zero_grad()
    together = batch_of([pair for pairs in parts for pair in pairs])
    sums_at_once = accumulate_gradient(model, [together], sequence_loss, objective)
    assert sums == pytest.approx(sums_at_once, rel=1e-5)
    assert sums[2] == 4096
    return accumulated, gradient(model)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_four_batches_give_the_gradient_of_all_their_tokens_at_once(dtype: torch.dtype):
    accumulated, at_once = accumulated_and_at_once(dtype)
    assert float((accumulated - at_once).norm() / at_once.norm()) <= 1e-6
    assert float(at_once.norm()) > 1e-2


def test_unequal_batches_weigh_by_their_tokens():
    model = tiny().double()
    long, short = some_pairs(31, 17, 23), some_pairs(2)
    accumulate_gradient(model, [batch_of(long), batch_of(short)], sequence_loss, Objective(Smoothing(0.0)))
    accumulated = gradient(model).clone()
    means: list[Tensor] = []
    for pairs in (long, short):
        model.zero_grad()
        accumulate_gradient(model, [batch_of(pairs)], sequence_loss, Objective(Smoothing(0.0)))
        means.append(gradient(model).clone())
    assert torch.allclose(accumulated, (71 * means[0] + 2 * means[1]) / 73, rtol=1e-9, atol=1e-12)


def test_the_loss_is_a_mean_over_real_tokens_and_perplexity_knows_no_smoothing():
    model, pairs = tiny().double(), some_pairs(5, 11, 2)
    found = train_step(
        model,
        torch.optim.SGD(model.parameters(), lr=0.0),
        [batch_of(pairs)],
        loss_of=sequence_loss,
        objective=Objective(Smoothing(0.3)),
        clip=0.0,
    )
    surprise = 0.0
    for pair in pairs:  # each alone, without padding
        batch = batch_of([pair])
        chosen = model(batch).detach().log_softmax(-1).gather(2, batch.target_out[:, :, None])
        surprise -= float(chosen.sum())
    assert found.tokens == 18
    assert found.truth == pytest.approx(surprise / 18, rel=1e-9)
    assert abs(found.loss - found.truth) > 1e-3


# --- two passes


def test_without_dropout_two_passes_agree_and_count_as_one():
    model, batch = tiny().double(), batch_of(some_pairs(31, 17, 2))
    once = accumulate_gradient(model, [batch], sequence_loss, Objective(Smoothing()))
    expected = gradient(model).clone()
    model.zero_grad()
    assert accumulate_gradient(model, [batch], sequence_loss, Objective(Smoothing(), 5.0)) == pytest.approx(
        once, rel=1e-12
    )
    assert torch.allclose(gradient(model), expected, rtol=1e-9, atol=1e-12)


class Logits(torch.nn.Module):
    """A model that shows its logits only."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch) -> Tensor:
        return self.model(batch)


def test_a_step_pairs_each_position_with_itself_under_another_dropout():
    model, batch = tiny(dropout=0.3).double(), batch_of(some_pairs(5, 2, 11))
    seed_step(1, 1)
    found = sequence_loss(model, batch, Objective(Smoothing(0.0), 4.0))
    seed_step(1, 1)
    logits = model(batch.twice())
    first, second = (rows.log_softmax(-1) for rows in logits.chunk(2))
    expected = torch.zeros((), dtype=torch.float64)
    for row, truth in enumerate(batch.target_out):
        for place, word in enumerate(truth[truth != 0]):
            p, q = first[row, place], second[row, place]
            expected -= (p[word] + q[word]) / 2
            expected += 4.0 / 2 * ((p.exp() * (p - q)).sum() + (q.exp() * (q - p)).sum()) / 2
    assert not torch.allclose(first, second)
    assert torch.allclose(found.smoothed, expected, rtol=1e-10)
    assert found.tokens == 18
    seed_step(1, 1)
    by_logits = sequence_loss(Logits(model), batch, Objective(Smoothing(0.0), 4.0))
    assert torch.allclose(by_logits.smoothed, expected, rtol=1e-10)


def test_a_model_held_to_agree_with_itself_does_so_more():
    batch = batch_of(some_pairs(5, 11, 7, 13))
    apart: list[float] = []
    for consistency in (0.0, 5.0):
        torch.manual_seed(31)
        model = tiny(dropout=0.2)
        optimizer = build_optimizer(model, TrainConfig())
        set_rate(optimizer, 3e-3)
        for step in range(60):
            seed_step(1, step)
            train_step(
                model,
                optimizer,
                [batch],
                loss_of=sequence_loss,
                objective=Objective(Smoothing(), consistency),
                clip=1.0,
            )
        losses: list[float] = []
        for strength in (1e-9, 1.0):  # of the same two passes
            seed_step(1, 99)
            with torch.no_grad():
                losses.append(float(sequence_loss(model, batch, Objective(Smoothing(), strength)).smoothed))
        apart.append(losses[1] - losses[0])
    assert apart[1] < 0.5 * apart[0]


# --- clipping


def test_clipping_shortens_a_gradient_and_reports_its_own_norm():
    batch = batch_of(some_pairs(5, 11))
    moved: list[Tensor] = []
    norms: list[float] = []
    for clip in (0.0, 1e-2, 1e6):
        torch.manual_seed(31)
        model = tiny().double()
        before = weights_of(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        norms.append(
            train_step(
                model, optimizer, [batch], loss_of=sequence_loss, objective=Objective(Smoothing()), clip=clip
            ).norm
        )
        after = weights_of(model)
        moved.append(torch.cat([(after[name] - before[name]).flatten() for name in before]))
    assert len(set(norms)) == 1
    assert float(moved[0].norm()) == pytest.approx(norms[0], rel=1e-6)
    assert float(moved[1].norm()) == pytest.approx(1e-2, rel=1e-3)
    assert torch.allclose(moved[1] / moved[1].norm(), moved[0] / moved[0].norm(), atol=1e-9)
    assert torch.equal(moved[2], moved[0])


# --- gradients that are not finite


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("clip", [0.0, 1.0])
def test_a_gradient_that_is_not_finite_moves_nothing(value: float, clip: float):
    model, batch = tiny(), batch_of(some_pairs(5, 11))
    optimizer = build_optimizer(model, TrainConfig())
    assert train_step(
        model, optimizer, [batch], loss_of=sequence_loss, objective=Objective(Smoothing()), clip=clip
    ).taken
    before = weights_of(model)
    moments = {name: tensor.clone() for name, tensor in optimizer_tensors(optimizer, model).items()}
    hook = break_gradient(model, value)
    result = train_step(model, optimizer, [batch], loss_of=sequence_loss, objective=Objective(Smoothing()), clip=clip)
    assert not result.taken
    assert not math.isfinite(result.norm)
    assert math.isfinite(result.loss)
    assert equal(weights_of(model), before)
    assert equal(optimizer_tensors(optimizer, model), moments)
    hook.remove()
    # The bad gradient is thrown away, and is not in the next one.
    again = train_step(model, optimizer, [batch], loss_of=sequence_loss, objective=Objective(Smoothing()), clip=clip)
    assert again.taken
    assert math.isfinite(again.norm)
    assert not equal(weights_of(model), before)
    assert all(bool(tensor.isfinite().all()) for tensor in weights_of(model).values())


def loop_in(folder: Path, model: Transformer, **settings: Any) -> Loop:
    """Two pairs, one batch an epoch, in a run of its own."""
    codec = ByteCodec()
    (folder / "store").mkdir(parents=True, exist_ok=True)
    layouts = {column.name: Layout("uint16") for column in (SOURCE, TARGET)}
    writer = StoreWriter(folder / "store", layouts)
    writer.append(0, {"source": [[5, 6, END], [7, END]], "target": [[8, 9, 10, END], [11, END]]})
    writer.close()
    meta = {
        "format": FORMAT,
        "columns": [asdict(column) for column in (SOURCE, TARGET)],
        "layouts": {name: asdict(layout) for name, layout in layouts.items()},
        "shards": 1,
    }
    (folder / "store" / META).write_text(json.dumps(meta))
    tokenizer = Tokenizer.pair(codec, codec)
    base: dict[str, Any] = {"max_steps": 7, "checkpoint_every": 2, "validate_every": 1000, "validate_output": False}
    config = TrainConfig(**(base | settings))
    run = RunDirectory.create(folder / "run", resume=True)
    run.write_config({})
    feed = Feed(
        Store.open(folder / "store"),
        tokenizer,
        lambda rows: translate.collate(rows, RESERVED),
        corpus_weights=[1.0],
        budget=4096,
        seed=1,
    )
    trained = Trained(
        model=model,
        tokenizer=tokenizer,
        columns=(SOURCE, TARGET),
        data=DataConfig(),
        decode=SearchConfig(),
        generates=False,
    )
    text = {"source": "\x01", "target": "\x02"}
    encoded = {column.name: column.ids(tokenizer, text[column.name]) for column in (SOURCE, TARGET)}
    valid = Examples([encoded], {name: [line] for name, line in text.items()})
    return Loop(
        model=model,
        task=translate.TASK,
        feed=feed,
        validator=translate.validator(trained, valid),
        run=run,
        config=config,
        width=22,
        seed=1,
        precision="fp32",
        reporter=Reporter(Console(quiet=True), 7, translate.TASK.metrics),
    )


@pytest.mark.parametrize(
    ("every", "average_of", "bad"),
    [(3, "last", False), (4, "best", False), (3, "last", True)],
    ids=["between checkpoints", "at a checkpoint", "in a step that was skipped"],
)
def test_a_stop_does_not_wait_for_a_validation_which_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int, average_of: str, bad: bool
):
    """And the run ends in the same bits and the same log, though it is killed once more before a next checkpoint."""
    settings: dict[str, Any] = {"validate_every": every, "average": 3, "average_of": average_of, "patience": 9}
    start = tiny().state_dict()

    def loop_of(name: str) -> Loop:
        model = tiny()
        model.load_state_dict(start)
        loop = loop_in(tmp_path / name, model, **settings)
        loop.restore()
        return loop

    whole, loop = loop_of("whole"), loop_of("stopped")
    for model in (whole.model, loop.model) if bad else ():
        backward = itertools.count(1)
        model.get_parameter("output_weight").register_hook(
            lambda gradient, backward=backward: gradient * (math.nan if next(backward) == every else 1.0)
        )
    whole.run_to_end()
    mean_loss = translate.mean_loss

    def stopped(*arguments: Any) -> float:
        os.kill(os.getpid(), signal.SIGTERM)
        return mean_loss(*arguments)

    monkeypatch.setattr(translate, "mean_loss", stopped)
    with pytest.raises(Interrupted, match=f"saved at step {every},"):
        loop.run_to_end()
    monkeypatch.undo()
    assert [record["step"] for record in read_metrics(loop.run.metrics)] == list(range(1, every))
    killed = loop_of("stopped")
    monkeypatch.setattr(killed, "_save_if_due", lambda _: next(iter(())))  # StopIteration, with the step in the log
    with pytest.raises(StopIteration):
        killed.run_to_end()
    assert read_metrics(killed.run.metrics)[-1]["step"] == every
    again = loop_of("stopped")
    again.run_to_end()
    timeless = [[record | {"seconds": 0} for record in read_metrics(one.run.metrics)] for one in (again, whole)]
    assert timeless[0] == timeless[1]
    assert again.progress == whole.progress
    assert equal(again.final_weights(), whole.final_weights())


def test_a_limit_that_ends_a_run_on_resumption_keeps_what_a_signal_saved(tmp_path: Path):
    """Its last steps are in the average, not only in its step number."""
    loop = loop_in(tmp_path, tiny(), average=1)
    loop.restore()
    with MetricsLog(loop.run.metrics) as log:
        for _ in range(3):
            loop._finish_step(loop._one_step(), log, StopRequest())  # pyright: ignore
        loop._save(log)  # pyright: ignore
    limited = loop_in(tmp_path, tiny(), average=1, max_minutes=1e-9)
    limited.restore()
    assert limited.run_to_end().ended == "train.max_minutes=1e-09"
    assert limited.progress.saved == (2, 3)
    assert equal(limited.final_weights(), weights_of(loop.model))


def test_the_best_of_no_validated_checkpoint_is_said_to_be_the_last(tmp_path: Path):
    loop = loop_in(tmp_path, tiny(), average_of="best", average=2)
    said: list[str] = []
    loop.reporter.say = said.append
    loop.run_to_end()
    expected = average_weights([loop.run.checkpoints / step for step in ("6", "7")])
    assert equal(loop.final_weights(), expected)
    assert said == ["the run ended before a checkpoint was validated: its last ones are averaged"]


def test_skipped_steps_are_counted_and_the_run_goes_on(tmp_path: Path):
    model = tiny()
    backward, bad = itertools.count(1), {3, 4, 6}
    model.decoder[0].feedforward.inner.weight.register_hook(
        lambda found: found * math.nan if next(backward) in bad else found
    )
    loop = loop_in(tmp_path, model)
    progress = loop.run_to_end()
    assert (progress.step, progress.skipped, progress.skipped_in_a_row) == (7, 3, 0)
    records = read_metrics(loop.run.metrics)
    assert [record["step"] for record in records] == [1, 2, 3, 4, 5, 6, 7]
    assert [record["skipped"] for record in records] == [0, 0, 1, 2, 2, 3, 3]
    assert all(bool(tensor.isfinite().all()) for tensor in weights_of(model).values())


def test_too_many_in_a_row_end_the_run_and_leave_the_last_good_checkpoint(tmp_path: Path):
    model = tiny()
    backward = itertools.count(1)
    model.decoder[0].feedforward.inner.weight.register_hook(
        lambda found: found * math.nan if next(backward) > 2 else found
    )
    loop = loop_in(tmp_path, model, max_skipped=2)
    with pytest.raises(RunError) as caught:
        loop.run_to_end()
    message = str(caught.value)
    assert "step 4: the gradient was not finite 2 times in a row" in message
    assert str(loop.run.checkpoints) in message
    assert "train.clip" in message
    folder = loop.run.last_checkpoint()
    assert folder == loop.run.checkpoints / "2"
    assert equal(load_checkpoint(folder).weights, weights_of(model))


def test_a_long_sentence_looked_at_without_gradients_does_not_disturb_the_next_step():
    model, batch = tiny(), batch_of(some_pairs(5, 11))
    with torch.inference_mode():  # the table of positions grows here
        model(batch_of(some_pairs(701)))
    optimizer = build_optimizer(model, TrainConfig())
    assert train_step(
        model,
        optimizer,
        [batch, batch_of(some_pairs(601))],
        loss_of=sequence_loss,
        objective=Objective(Smoothing()),
        clip=1.0,
    ).taken


# --- dropout


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5, 0.9])
def test_dropout_keeps_its_share_and_scales_to_an_exact_expectation(probability: float):
    count = 1_000_003
    mask = keep_mask(torch.Size([count]), probability, torch.empty(0, dtype=torch.float64))
    kept = float((mask != 0).double().mean())
    deviation = math.sqrt(probability * (1 - probability) / count)
    assert abs(kept - (1 - probability)) < 6 * deviation + 1 / 65536
    (scale,) = mask[mask != 0].unique().tolist()
    # The share that is really kept is a whole number of 65536ths; it times the scale is 1 to the last bit.
    real = round((1 - probability) * 65536)
    assert real / 65536 * scale == 1.0


def test_dropout_drops_independently_of_place():
    mask = keep_mask(torch.Size([400_000]), 0.5, torch.empty(0)) != 0
    for apart in (1, 2, 3, 4, 5, 1000):  # four neighbours come from one draw
        both = float((mask[apart:] & mask[:-apart]).double().mean())
        assert abs(both - 0.25) < 6 * math.sqrt(0.25 * 0.75 / len(mask)) * 2


def test_dropout_repeats_under_a_seed_and_not_otherwise():
    x = torch.ones(7, 11, 13)
    torch.manual_seed(5)
    first, second = dropout(x, 0.3, True), dropout(x, 0.3, True)
    torch.manual_seed(5)
    assert torch.equal(dropout(x, 0.3, True), first)
    assert not torch.equal(first, second)


def test_dropout_in_evaluation_changes_nothing_and_draws_nothing():
    x = torch.randn(7, 11)
    before = torch.get_rng_state()
    assert torch.equal(dropout(x, 0.5, False), x)
    assert torch.equal(dropout(x, 0.0, True), x)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(dropout(x, 0.5, True), x)


def test_dropout_passes_the_gradient_where_it_passed_the_value():
    x = torch.randn(11, 13, requires_grad=True)
    out = dropout(x, 0.4, True)
    out.sum().backward()
    assert x.grad is not None
    assert torch.allclose(x.grad, (out / x).detach())


@pytest.mark.parametrize("kind", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_of_the_model_acts_in_training_only(kind: str):
    model, batch = tiny(**{kind: 0.5}), batch_of(some_pairs(5, 11))
    assert not torch.allclose(model(batch), model(batch))
    model.eval()
    assert torch.equal(model(batch), model(batch))
    plain = tiny()
    plain.load_state_dict(model.state_dict())
    assert torch.allclose(model(batch), plain(batch), rtol=0, atol=1e-6)


def test_a_step_is_a_pure_function_of_seed_and_number():
    model, batch = tiny(dropout=0.3), batch_of(some_pairs(5, 11))

    def logits(seed: int, step: int) -> Tensor:
        seed_step(seed, step)
        return model(batch).detach()

    first = logits(1, 7)
    others = [logits(1, 8), logits(2, 7), logits(17, 0)]
    assert torch.equal(logits(1, 7), first)
    assert not any(torch.equal(first, other) for other in others)


# --- schedules


def test_the_papers_rate():
    for step, width, warmup in itertools.product((1, 7, 3999, 4000, 4001, 100_000), (128, 512, 1024), (2000, 4000)):
        expected = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
        assert paper_rate(step, width, warmup) == pytest.approx(expected, rel=1e-12)
    assert paper_rate(4000, 512, 4000) == pytest.approx(6.99e-4, abs=5e-7)
    assert paper_rate(1, 512, 4000) == pytest.approx(6.99e-4 / 4000, rel=1e-3)
    assert paper_rate(16_000, 512, 4000) == pytest.approx(paper_rate(4000, 512, 4000) / 2, rel=1e-12)


def test_the_inverse_square_root_with_a_peak():
    assert [inverse_sqrt_rate(step, 5e-3, 2000) for step in (1, 1000, 2000, 8000, 32_000)] == pytest.approx(
        [5e-3 / 2000, 2.5e-3, 5e-3, 2.5e-3, 1.25e-3]
    )


def test_the_cosine_ends_at_zero():
    rates = [cosine_rate(step, 3e-3, 100, 1100) for step in (1, 50, 100, 350, 600, 1100, 5000)]
    half_root = math.sqrt(0.5)
    assert rates == pytest.approx([3e-5, 1.5e-3, 3e-3, 1.5e-3 * (1 + half_root), 1.5e-3, 0.0, 0.0], abs=1e-12)


def test_the_constant_rate_warms_up_too():
    assert [constant_rate(step, 1e-3, 10) for step in (1, 5, 10, 11, 10_000)] == pytest.approx(
        [1e-4, 5e-4, 1e-3, 1e-3, 1e-3]
    )


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_each_schedule_is_reached_by_its_name(schedule: str):
    config = TrainConfig(schedule=schedule, peak_rate=2e-3, warmup=70, max_steps=700)
    expected = {
        "paper": paper_rate(350, 64, 70),
        "inverse-sqrt": inverse_sqrt_rate(350, 2e-3, 70),
        "cosine": cosine_rate(350, 2e-3, 70, 700),
        "constant": 2e-3,
    }
    assert len(set(expected.values())) == len(SCHEDULES)
    assert rate_at(350, config, 64) == expected[schedule]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_last_steps_cool_any_schedule_down(schedule: str):
    """On a line from the schedule's own rate; before them, nothing knows that they will come."""
    config = TrainConfig(schedule=schedule, peak_rate=2e-3, warmup=70, max_steps=700)
    cooling = replace(config, cooldown=99)
    for step, share in ((1, 1.0), (350, 1.0), (601, 1.0), (602, 0.99), (651, 0.5), (700, 0.01)):
        assert rate_at(step, cooling, 64) == pytest.approx(share * rate_at(step, config, 64), rel=1e-12)


def test_a_run_shorter_than_its_cooldown_cools_from_the_start():
    config = TrainConfig(schedule="constant", peak_rate=1.0, warmup=1, max_steps=9, cooldown=500)
    assert [rate_at(step, config, 64) for step in range(1, 10)] == pytest.approx([n / 10 for n in range(9, 0, -1)])


def test_a_rate_is_set_on_every_group():
    optimizer = build_optimizer(tiny(), TrainConfig())
    set_rate(optimizer, 0.125)
    assert {group["lr"] for group in optimizer.param_groups} == {0.125}


# --- the optimizer


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_the_optimizer_is_the_papers_adam(kind: str, decay: float):
    model, batch = tiny().double(), batch_of(some_pairs(5, 11))
    config = TrainConfig(optimizer=kind, weight_decay=decay)
    optimizer = build_optimizer(model, config)
    set_rate(optimizer, 1e-2)
    expected = weights_of(model)
    first = {name: torch.zeros_like(weight) for name, weight in expected.items()}
    second = {name: torch.zeros_like(weight) for name, weight in expected.items()}
    for step in (1, 2, 3):
        model.zero_grad()
        accumulate_gradient(model, [batch], sequence_loss, Objective(Smoothing()))
        gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}  # type: ignore[union-attr]
        model.zero_grad()
        train_step(model, optimizer, [batch], loss_of=sequence_loss, objective=Objective(Smoothing()), clip=0.0)
        for name, weight in expected.items():
            found = gradients[name] + (decay * weight if kind == "adam" else 0.0)
            first[name] = 0.9 * first[name] + 0.1 * found
            second[name] = 0.98 * second[name] + 0.02 * found**2
            ahead = first[name] / (1 - 0.9**step)
            spread = (second[name] / (1 - 0.98**step)).sqrt() + 1e-9
            shrunk = weight * (1 - 1e-2 * decay) if kind == "adamw" else weight
            expected[name] = shrunk - 1e-2 * ahead / spread
    assert all(torch.allclose(weights_of(model)[name], expected[name], rtol=1e-9, atol=1e-9) for name in expected)


def steps(model: Transformer, optimizer: torch.optim.Optimizer, batch: Batch, count: int) -> None:
    for _ in range(count):
        assert train_step(
            model, optimizer, [batch], loss_of=sequence_loss, objective=Objective(Smoothing()), clip=1.0
        ).taken


def copied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}


def test_the_optimizers_state_goes_out_and_in_by_names():
    batch, model = batch_of(some_pairs(5, 11)), tiny()
    optimizer = build_optimizer(model, TrainConfig())
    steps(model, optimizer, batch, 3)
    saved, weights = copied(optimizer_tensors(optimizer, model)), copied(model.state_dict())
    moments = ("exp_avg", "exp_avg_sq", "step")
    assert set(saved) == {f"{moment}:{name}" for moment in moments for name, _ in model.named_parameters()}
    steps(model, optimizer, batch, 2)

    other = tiny()
    other.load_state_dict(weights)
    fresh = build_optimizer(other, TrainConfig())
    restore_optimizer(fresh, other, copied(saved))
    assert equal(optimizer_tensors(fresh, other), saved)
    steps(other, fresh, batch, 2)
    assert equal(weights_of(other), weights_of(model))  # to the last bit
    assert equal(optimizer_tensors(fresh, other), optimizer_tensors(optimizer, model))


def test_before_the_first_step_there_is_no_state():
    model = tiny()
    optimizer = build_optimizer(model, TrainConfig())
    assert optimizer_tensors(optimizer, model) == {}
    restore_optimizer(optimizer, model, {})
    steps(model, optimizer, batch_of(some_pairs(5)), 1)


@pytest.mark.parametrize("damage", ["missing", "shape"])
def test_a_state_that_does_not_fit_is_refused_by_name(damage: str):
    model = tiny()
    optimizer = build_optimizer(model, TrainConfig())
    steps(model, optimizer, batch_of(some_pairs(5)), 1)
    saved, name = optimizer_tensors(optimizer, model), "decoder.0.feedforward.inner.weight"
    if damage == "missing":
        del saved[f"exp_avg_sq:{name}"]
    else:
        saved[f"exp_avg:{name}"] = torch.zeros(2, 3)
    with pytest.raises(CheckpointError, match=r"state of decoder\.0\.feedforward\.inner\.weight does not fit"):
        restore_optimizer(build_optimizer(model, TrainConfig()), model, saved)


# --- the moving average


def test_the_moving_average_forgets_its_beginning_and_then_decays():
    model = tiny().double()
    average = MovingAverage(model, decay=0.9)
    expected = weights_of(model)
    for step in range(1, 120):
        for parameter in model.parameters():
            parameter.data.normal_()
        average.update(model, step)
        decay = min(0.9, (1 + step) / (10 + step))
        for name, weight in weights_of(model).items():
            expected[name] = decay * expected[name] + (1 - decay) * weight
    assert all(torch.allclose(average.tensors[name], expected[name], rtol=1e-9, atol=1e-12) for name in expected)


def test_the_average_of_equal_weights_is_those_weights():
    model = tiny()
    average = MovingAverage(model, decay=0.99)
    for step in (1, 2, 3):
        average.update(model, step)
    assert equal(average.tensors, weights_of(model))


def test_the_average_neither_follows_nor_moves_the_weights():
    model = tiny()
    average, before = MovingAverage(model, decay=0.99), weights_of(model)
    for parameter in model.parameters():
        parameter.data.add_(1.0)
    assert equal(average.tensors, before)
    average.update(model, 1)
    assert all(torch.equal(after, before[name] + 1.0) for name, after in weights_of(model).items())


def test_the_average_goes_out_and_in_by_names():
    model = tiny()
    average = MovingAverage(model, decay=0.5)
    for parameter in model.parameters():
        parameter.data.add_(1.0)
    average.update(model, 1)
    saved = copied(average.to_tensors())
    assert set(saved) == {f"ema:{name}" for name, _ in model.named_parameters()}
    other = MovingAverage(tiny(), decay=0.5)
    other.restore(saved)
    assert equal(other.tensors, average.tensors)
