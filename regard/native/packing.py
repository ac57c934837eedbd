"""Weights as the kernels read them: in panels of 64 outputs, fp32 or quantised to int8 by output.

Axes: O outputs, I inputs, P panels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from regard.errors import ConfigError
from regard.models.interface import Mixing
from regard.models.transformer import DecoderLayer, Transformer
from regard.native import library as native
from regard.nn.attention import MultiHeadAttention
from regard.nn.feedforward import FeedForward
from regard.nn.layers import Layer, Residual

PANEL, GROUP = 64, 4
PRECISIONS = ("fp32", "int8")
WIDEST = 1 << 16
"""Inputs of a matrix whose sums of products of 8-bit numbers cannot leave 32 bits: 255 · 127 · 2¹⁶ < 2³¹. Outputs but
those of the vocabulary have the same bound, so that no size of a stranger's config overflows."""

Arrays = Mapping[str, np.ndarray]


def rounded_up(number: int, to: int) -> int:
    return -(-number // to) * to


def packed_fp32(weight: np.ndarray) -> np.ndarray:
    """(O, I) → (P, I, 64); outputs that there are not have zeros."""
    outputs, inputs = weight.shape
    padded = np.zeros((rounded_up(outputs, PANEL), inputs), np.float32)
    padded[:outputs] = weight
    return np.ascontiguousarray(padded.reshape(-1, PANEL, inputs).transpose(0, 2, 1))


def quantised(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(O, I) as integers −127 … 127, and what each output's are multiplied by; NaN where a weight is not finite."""
    most = np.abs(weight).max(axis=1, initial=0.0)
    scales = (most / np.float32(127)).astype(np.float32)
    usable = np.isfinite(scales) & (scales > 0)
    inverse = np.where(usable, np.float32(127) / np.where(usable, most, 1), 0).astype(np.float32)
    whole = np.rint(np.where(usable[:, None], weight, 0) * inverse[:, None]).astype(np.int8)
    return whole, np.where(np.isfinite(scales), scales, np.nan).astype(np.float32)


def packed_int8(whole: np.ndarray) -> np.ndarray:
    """(O, I) → (P, I/4, 64, 4), each number plus 128, which makes it a byte without sign."""
    outputs, inputs = whole.shape
    padded = np.full((rounded_up(outputs, PANEL), rounded_up(inputs, GROUP)), 128, np.uint8)
    padded[:outputs, :inputs] = (whole.astype(np.int16) + 128).astype(np.uint8)
    return np.ascontiguousarray(padded.reshape(-1, PANEL, padded.shape[1] // GROUP, GROUP).transpose(0, 2, 1, 3))


def padded_row(values: np.ndarray, outputs: int, fill: float = 0.0) -> np.ndarray:
    row = np.full(rounded_up(outputs, PANEL), fill, np.float32)
    row[: len(values)] = values
    return row


def packed_matrix(
    name: str, weight: Tensor, bias: Tensor | None, precision: str, *, missing: float = 0.0
) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of one matrix by name; `missing` is the bias of outputs that there are not."""
    matrix = weight.detach().numpy()
    outputs, _ = matrix.shape
    if precision == "int8":
        whole, scales = quantised(matrix)
        yield f"{name}.weights", packed_int8(whole)
        yield f"{name}.scales", padded_row(scales, outputs)
    else:
        yield f"{name}.weights", packed_fp32(matrix)
    own = np.zeros(outputs, np.float32) if bias is None else bias.detach().numpy()
    yield f"{name}.bias", padded_row(own, outputs, missing)


def packed_arrays(model: Transformer, precision: str) -> dict[str, np.ndarray]:
    """Everything that the engine multiplies by. Embeddings, positions and norms stay where the model has them."""
    found: dict[str, np.ndarray] = {}
    for name, weight, bias in matrices_of(model):
        missing = -math.inf if name == "projection" else 0.0
        found |= packed_matrix(name, weight, bias, precision, missing=missing)
    return found


def expected_arrays(model: Transformer, precision: str) -> dict[str, tuple[tuple[int, ...], str]]:
    """The shape and type of each of `packed_arrays`, without packing."""
    found: dict[str, tuple[tuple[int, ...], str]] = {}
    for name, weight, _ in matrices_of(model):
        outputs, inputs = weight.shape
        wide, panels = rounded_up(outputs, PANEL), rounded_up(outputs, PANEL) // PANEL
        if precision == "int8":
            found[f"{name}.weights"] = (panels, rounded_up(inputs, GROUP) // GROUP, PANEL, GROUP), "uint8"
            found[f"{name}.scales"] = (wide,), "float32"
        else:
            found[f"{name}.weights"] = (panels, inputs, PANEL), "float32"
        found[f"{name}.bias"] = (wide,), "float32"
    return found


def matrices_of(model: Transformer) -> Iterator[tuple[str, Tensor, Tensor | None]]:
    """Every matrix of the model as the engine has it: its name, its weight, its bias."""
    for side, layers in (("encoder", model.encoder), ("decoder", model.decoder)):
        for number, layer in enumerate(layers):
            assert isinstance(layer, Layer | DecoderLayer)
            name, own, feedforward = f"{side}.{number}", layer.attention, layer.feedforward
            assert isinstance(feedforward, FeedForward)
            yield f"{name}.all", own.weight, own.bias
            yield f"{name}.output", own.output.weight, bias_of(own.output)
            if isinstance(layer, DecoderLayer):
                across = layer.cross_attention
                yield from ((f"{name}.{part}", weight, bias) for part, weight, bias in apart(across))
                yield f"{name}.across", across.output.weight, bias_of(across.output)
            yield f"{name}.inner", feedforward.inner.weight, bias_of(feedforward.inner)
            yield f"{name}.outer", feedforward.outer.weight, bias_of(feedforward.outer)
    yield "projection", model.output_weight, model.output_bias


def apart(attention: MultiHeadAttention) -> Iterator[tuple[str, Tensor, Tensor | None]]:
    """The projections of attention over a source: queries, and keys with values."""
    size, bias = attention.sizes[0], attention.bias
    yield "queries", attention.weight[:size], None if bias is None else bias[:size]
    yield "memory", attention.weight[size:], None if bias is None else bias[size:]


def bias_of(layer: nn.Linear) -> Tensor | None:
    return layer.bias if layer.bias is not None else None  # pyright: ignore[reportUnnecessaryComparison]


def refusal(model: object) -> str | None:
    """Why the engine cannot run a model, as the end of "because …"; None where it can."""
    if isinstance(model, Mixing):
        return "the model copies words of its source"
    if type(model) is not Transformer:
        return f"it runs model.architecture=transformer alone, and this is {architecture_of(model)}"
    if len(model.further):
        return "the model reads several sources"
    if model.source_embedding.projection is not None or not isinstance(model.to_output, nn.Identity):
        return "the model's embeddings are word vectors with a projection or a scale of their own"
    kinds = {(parameter.device.type, str(parameter.dtype)) for parameter in model.parameters()}
    if not kinds <= {("cpu", "torch.float32"), ("meta", "torch.float32")}:  # a model on paper is judged too
        return "the model's weights are not fp32 on the CPU"
    widest = max(size for name, weight, _ in matrices_of(model) for size in widths_of(name, weight))
    if widest > WIDEST:
        return f"a matrix is {widest:,} wide, and it takes at most {WIDEST:,}"
    return None


def architecture_of(model: object) -> str:
    """What a recipe says of a model, or of the encoder that it stands on; its class where no recipe can name it."""
    parts = model.modules() if isinstance(model, nn.Module) else ()
    names = (getattr(getattr(part, "config", None), "architecture", "") for part in parts)
    found = next(filter(None, names), "")
    return f"model.architecture={found}" if found else f"a {type(model).__name__}"


def widths_of(name: str, weight: Tensor) -> tuple[int, ...]:
    """The sizes of a matrix that the library multiplies with others; a vocabulary is as large as it likes."""
    return (weight.size(1),) if name == "projection" else tuple(weight.shape)


@dataclass(frozen=True, slots=True)
class Packed:
    """The model's weights for the library, and all that keeps their memory."""

    weights: native.Weights
    keep: list[Any]

    @classmethod
    def of(cls, model: Transformer, arrays: Arrays) -> Packed:
        """The arrays must outlive the model in the library, as what is kept does."""
        keep: list[Any] = [arrays, model]
        config, attention = model.config, model.decoder_layers[0].attention

        def pointer(values: Tensor | np.ndarray) -> int:
            if isinstance(values, Tensor):
                values = values.detach().contiguous().numpy()
            keep.append(values)
            return values.ctypes.data

        def matrix(name: str, weight: Tensor) -> native.Matrix:
            scales = arrays.get(f"{name}.scales")
            return native.Matrix(
                weight.size(1),
                weight.size(0),
                pointer(arrays[f"{name}.weights"]),
                None if scales is None else pointer(scales),
                pointer(arrays[f"{name}.bias"]),
            )

        def norm(module: nn.Module) -> native.Norm:
            own = module.norm if isinstance(module, Residual) else module
            return (
                native.Norm(pointer(own.weight), pointer(own.bias)) if isinstance(own, nn.LayerNorm) else native.Norm()
            )

        matrices = {name: matrix(name, weight) for name, weight, _ in matrices_of(model)}

        def layers(side: str, kind: Any, modules: nn.ModuleList) -> Any:
            found = (kind * len(modules))()
            for number, layer in enumerate(modules):
                assert isinstance(layer, Layer | DecoderLayer)
                for place, residual in enumerate(layer.residuals):
                    found[number].norms[place] = norm(residual)
                prefix = f"{side}.{number}."
                for name, own in matrices.items():
                    if name.startswith(prefix):
                        setattr(found[number], name.removeprefix(prefix), own)
            keep.append(found)
            return found

        epsilon = next(module.eps for module in model.modules() if isinstance(module, nn.LayerNorm))
        shape = native.Shape(
            width=config.width,
            heads=config.heads,
            key_width=attention.key_width,
            value_width=attention.value_width,
            feedforward=config.feedforward,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            pre_norm=config.norm == "pre",
            vocabulary=model.output_weight.size(0),
            source_vocabulary=model.source_embedding.weight.size(0),
            epsilon=epsilon,
            source_scale=model.source_embedding.scale,
            target_scale=model.target_embedding.scale,
        )
        weights = native.Weights(
            shape=shape,
            encoder=layers("encoder", native.EncoderLayer, model.encoder),
            decoder=layers("decoder", native.DecoderLayer, model.decoder),
            encoder_norm=norm(model.encoder_norm),
            decoder_norm=norm(model.decoder_norm),
            projection=matrices["projection"],
            source_table=pointer(model.source_embedding.weight),
            target_table=pointer(model.target_embedding.weight),
        )
        return cls(weights, keep)


def check_precision(precision: str) -> str:
    if precision not in PRECISIONS:
        raise ConfigError(f"precision={precision!r} is not one of {', '.join(PRECISIONS)}")
    return precision
