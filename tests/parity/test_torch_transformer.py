"""Ours against torch's: the Transformer with the weights of `torch.nn.Transformer`, and the loss."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.data.batch import Batch
from regard.models import Transformer, TransformerConfig
from regard.nn import MultiHeadAttention, sinusoids
from regard.nn.loss import ROWS, Loss, Objective, Smoothing, cross_entropy, linear_cross_entropy
from regard.text.tokenizer import END, PAD
from tests.decodables import collated

WIDTH, HEADS, HIDDEN, WORDS = 34, 2, 53, 41
DEPTHS = (2, 3)


# --- the model


def named_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> list[tuple[Tensor, Tensor]]:
    """Our parameters beside torch's, which lie in the same order."""
    assert theirs.in_proj_weight is not None
    assert ours.bias is not None
    return [
        (ours.weight, theirs.in_proj_weight),
        (ours.bias, theirs.in_proj_bias),
        (ours.output.weight, theirs.out_proj.weight),
        (ours.output.bias, theirs.out_proj.bias),
    ]


def both_of(ours: nn.Module, theirs: nn.Module) -> list[tuple[Tensor, Tensor]]:
    return [(ours.weight, theirs.weight), (ours.bias, theirs.bias)]  # type: ignore[list-item]


def named_pairs(ours: Transformer, theirs: nn.Transformer) -> list[tuple[Tensor, Tensor]]:
    """Every parameter of ours but the embedding, beside torch's."""
    pairs: list[tuple[Tensor, Tensor]] = []
    for our, their in zip(ours.encoder, theirs.encoder.layers, strict=True):
        pairs += named_attention(our.attention, their.self_attn)
        pairs += both_of(our.residuals[0].norm, their.norm1) + both_of(our.residuals[1].norm, their.norm2)
        pairs += both_of(our.feedforward.inner, their.linear1) + both_of(our.feedforward.outer, their.linear2)
    for our, their in zip(ours.decoder, theirs.decoder.layers, strict=True):
        pairs += named_attention(our.attention, their.self_attn)
        pairs += named_attention(our.cross_attention, their.multihead_attn)
        norms = (their.norm1, their.norm2, their.norm3)
        for residual, norm in zip(our.residuals, norms, strict=True):
            pairs += both_of(residual.norm, norm)
        pairs += both_of(our.feedforward.inner, their.linear1) + both_of(our.feedforward.outer, their.linear2)
    if ours.config.norm == "pre":
        pairs += both_of(ours.encoder_norm, theirs.encoder.norm) + both_of(ours.decoder_norm, theirs.decoder.norm)
    return pairs


def twins(norm: str) -> tuple[Transformer, nn.Transformer]:
    """Two models with the same random weights, norms and biases included."""
    shape = TransformerConfig(
        width=WIDTH,
        heads=HEADS,
        feedforward=HIDDEN,
        encoder_layers=DEPTHS[0],
        decoder_layers=DEPTHS[1],
        dropout=0.0,
        norm=norm,
    )
    ours = Transformer(shape, WORDS, WORDS)
    theirs = nn.Transformer(
        WIDTH, HEADS, *DEPTHS, HIDDEN, dropout=0.0, activation="relu", batch_first=True, norm_first=norm == "pre"
    )
    if norm == "post":  # torch norms once more behind the last layer, which the paper does not
        theirs.encoder.norm = theirs.decoder.norm = None
    for name, parameter in theirs.named_parameters():
        is_gain = "norm" in name and name.endswith("weight")
        nn.init.normal_(parameter, mean=float(is_gain), std=0.2)
    for our, their in named_pairs(ours, theirs):
        assert our.shape == their.shape
        our.data.copy_(their.data)
    return ours, theirs


def some_batch() -> Batch:
    lengths = ((3, 11), (7, 5), (13, 1))
    rows = [[torch.randint(4, WORDS, (length,)).tolist() for length in pair] for pair in lengths]
    return collated([[*source, END] for source, _ in rows], [target for _, target in rows])


def torch_logits(theirs: nn.Transformer, matrix: Tensor, batch: Batch) -> Tensor:
    """torch's stack between our embedding and our output, written out."""

    def embed(tokens: Tensor) -> Tensor:
        return matrix[tokens] * WIDTH**0.5 + sinusoids(tokens.size(1), WIDTH).to(matrix)

    source, length = batch.source.values, batch.target_in.size(1)
    decoded = theirs(
        embed(source),
        embed(batch.target_in),
        tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
        src_key_padding_mask=source == PAD,
        tgt_key_padding_mask=batch.target_out == PAD,
        memory_key_padding_mask=source == PAD,
    )
    return decoded @ matrix.T


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_outputs_and_gradients_are_those_of_torch(norm: str, dtype: torch.dtype, tolerance: float):
    torch.manual_seed(13)
    ours, theirs = (model.to(dtype) for model in twins(norm))
    assert isinstance(ours, Transformer)
    assert isinstance(theirs, nn.Transformer)
    batch = some_batch()
    real = batch.target_out != PAD
    assert not bool(real.all())
    assert not bool(batch.source.mask.all())
    matrix = ours.output_weight.detach().clone().requires_grad_()
    found, expected = ours(batch)[real], torch_logits(theirs, matrix, batch)[real]
    assert torch.allclose(found, expected, rtol=tolerance, atol=tolerance)
    direction = torch.randn_like(found) / found.numel() ** 0.5
    (found * direction).sum().backward()
    (expected * direction).sum().backward()
    pairs = [*named_pairs(ours, theirs), (ours.output_weight, matrix)]
    assert len(pairs) == len(list(ours.parameters()))
    for our, their in pairs:
        assert our.grad is not None
        assert their.grad is not None
        assert torch.allclose(our.grad, their.grad, rtol=tolerance, atol=tolerance)
    assert all(float(our.grad.abs().max()) > 1e-2 for our, _ in pairs if our.dim() == 2 and our.grad is not None)


# --- the loss

CLASSES, FEATURES, POSITIONS = 23, 17, 2 * ROWS + 101  # three blocks of rows, the last one shorter

Compute = Callable[[Tensor, Tensor, Tensor | None, Tensor, Objective], Loss]


def by_logits(x: Tensor, weight: Tensor, bias: Tensor | None, truth: Tensor, objective: Objective) -> Loss:
    return cross_entropy(F.linear(x, weight, bias), truth, objective)


def torch_loss(logits: Tensor, truth: Tensor, smoothing: Smoothing) -> Tensor:
    """torch's own for "all"; for "others" the divergence from the smoothed truth, and its entropy to make it a cross
    entropy."""
    if smoothing.form == "all":
        return F.cross_entropy(logits, truth, label_smoothing=smoothing.epsilon, reduction="sum")
    wanted = torch.full_like(logits, smoothing.epsilon / (CLASSES - 1))
    wanted[torch.arange(len(truth)), truth] = 1 - smoothing.epsilon
    entropy = -torch.special.xlogy(wanted, wanted).sum()
    return F.kl_div(logits.log_softmax(-1), wanted, reduction="sum") + entropy


@pytest.mark.parametrize("compute", [by_logits, linear_cross_entropy])
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.43])
@pytest.mark.parametrize("form", ["others", "all"])
def test_the_loss_and_its_gradients_are_those_of_torch(compute: Compute, with_bias: bool, epsilon: float, form: str):
    torch.manual_seed(17)
    x, weight = torch.randn(POSITIONS, FEATURES).double(), torch.randn(CLASSES, FEATURES).double()
    bias = torch.randn(CLASSES).double() if with_bias else None
    inputs = [each.requires_grad_() for each in (x, weight, bias) if each is not None]
    truth, smoothing = torch.randint(CLASSES, (POSITIONS,)), Smoothing(epsilon, form)
    loss = compute(x, weight, bias, truth, Objective(smoothing))
    logits = F.linear(x, weight, bias)
    expected = torch_loss(logits, truth, smoothing)
    plain = F.cross_entropy(logits, truth, reduction="sum").detach()
    assert loss.tokens == POSITIONS
    assert loss.truth == pytest.approx(float(plain), rel=1e-12)
    assert torch.allclose(loss.smoothed, expected, rtol=1e-12, atol=0)
    # A factor of its own, as a step divides by its tokens.
    found = torch.autograd.grad(loss.smoothed / 7, inputs)
    wanted = torch.autograd.grad(expected / 7, inputs)
    for our, their in zip(found, wanted, strict=True):
        assert torch.allclose(our, their, rtol=1e-10, atol=1e-10)


def torch_divergences(logits: Tensor) -> Tensor:
    """Both ways between the rows 2i and 2i+1, summed."""
    p, q = logits.log_softmax(-1).unflatten(0, (-1, 2)).unbind(1)
    return F.kl_div(p, q, reduction="sum", log_target=True) + F.kl_div(q, p, reduction="sum", log_target=True)


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("with_bias", [True, False])
@pytest.mark.parametrize("strength", [0.3, 5.0])
def test_what_two_passes_disagree_by_and_its_gradients_are_those_of_torch(
    linear: bool, with_bias: bool, strength: float
):
    torch.manual_seed(23)
    x, weight = torch.randn(POSITIONS - 1, FEATURES).double(), torch.randn(CLASSES, FEATURES).double()
    bias = torch.randn(CLASSES).double() if with_bias else None
    inputs = [each.requires_grad_() for each in (x, weight, bias) if each is not None]
    truth, smoothing = torch.randint(CLASSES, (POSITIONS - 1,)), Smoothing()
    logits = F.linear(x, weight, bias)
    if linear:
        loss = linear_cross_entropy(x, weight, bias, truth, Objective(smoothing, strength))
    else:
        loss = cross_entropy(logits, truth, Objective(smoothing, strength))
    apart = torch_divergences(logits)
    expected = torch_loss(logits, truth, smoothing) + strength * apart / 2
    assert float(apart.detach()) > 1.0
    assert torch.allclose(loss.smoothed, expected, rtol=1e-12, atol=0)
    found = torch.autograd.grad(loss.smoothed / 7, inputs, retain_graph=True)
    wanted = torch.autograd.grad(expected / 7, inputs)
    for our, their in zip(found, wanted, strict=True):
        assert torch.allclose(our, their, rtol=1e-10, atol=1e-10)


def test_passes_that_are_sure_of_different_words_disagree_finitely():
    x = torch.tensor([[1e3, -1e3, 0.0], [-1e3, 1e3, 0.0]], requires_grad=True)
    truth, smoothing = torch.tensor([0, 0]), Smoothing(0.1, "all")
    expected = torch_loss(x.double(), truth, smoothing) + 5 * torch_divergences(x.double()) / 2
    wanted = torch.autograd.grad(expected, x)[0]
    for loss in (
        cross_entropy(x, truth, Objective(smoothing, 5.0)),
        linear_cross_entropy(x, torch.eye(3), None, truth, Objective(smoothing, 5.0)),
    ):
        assert torch.allclose(loss.smoothed.double(), expected, rtol=1e-6, atol=0)
        assert torch.allclose(torch.autograd.grad(loss.smoothed, x)[0], wanted, atol=1e-3)  # of terms of 2,000 in fp32


def test_large_logits_overflow_neither_loss():
    x = torch.tensor([[1e4, -1e4, 0.0], [300.0, 900.0, -70.0]])
    truth, smoothing = torch.tensor([1, 0]), Smoothing(0.1, "all")
    expected = torch_loss(x.double(), truth, smoothing)
    for loss in (
        cross_entropy(x, truth, Objective(smoothing)),
        linear_cross_entropy(x, torch.eye(3), None, truth, Objective(smoothing)),
    ):
        assert float(loss.smoothed) == pytest.approx(float(expected), rel=1e-6)


def test_without_gradients_the_linear_loss_is_the_same():
    torch.manual_seed(19)
    x, weight = torch.randn(POSITIONS, FEATURES).double(), torch.randn(CLASSES, FEATURES).double()
    truth, smoothing = torch.randint(CLASSES, (POSITIONS,)), Smoothing()
    loss = linear_cross_entropy(x, weight, None, truth, Objective(smoothing))
    assert torch.allclose(loss.smoothed, torch_loss(x @ weight.T, truth, smoothing), rtol=1e-12, atol=0)
