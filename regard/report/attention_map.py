"""One attention of an inspection as a picture: PNG or SVG, by matplotlib."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from regard.errors import ConfigError
from regard.inspect.record import Attention, Inspection
from regard.report.drawing import PNG_DPI, SETTINGS

CELL = 0.3
"""Inches."""
MOST_INCHES = 14.0
LABEL_LENGTH = 18


def attention_picture(
    inspection: Inspection, kind: str, *, block: str = "", layer: int | None = None, head: int | None = None
) -> bytes:
    """As `png` or `svg`: one head, or the mean of a layer's heads, or of all layers'. `block` is `decoder.cross` …"""
    chosen = chosen_attentions(inspection, block, layer)
    first = chosen[0]
    if head is not None and not 0 <= head < first.heads:
        raise ConfigError(f"--head {head}: {first.group} has the heads 0 to {first.heads - 1}")
    weights = [each.weights if head is None else each.weights[head : head + 1] for each in chosen]
    of = "mean of all layers" if len(chosen) > 1 else f"layer {first.layer}"
    title = f"{first.group}, {of}, {'mean of all heads' if head is None else f'head {head}'}"
    return drawn(first, np.concatenate(weights).mean(0), title, kind)


def chosen_attentions(inspection: Inspection, block: str, layer: int | None) -> list[Attention]:
    groups = list(dict.fromkeys(each.group for each in inspection.attentions))
    if not groups:
        raise ConfigError("this model has no attention to draw; --format json has what it did")
    wanted = block or ("decoder.cross" if "decoder.cross" in groups else groups[0])
    if wanted not in groups:
        raise ConfigError(f"--block {wanted!r} is not one of {', '.join(groups)}")
    found = [each for each in inspection.attentions if each.group == wanted and layer in (None, each.layer)]
    if not found:
        layers = ", ".join(str(each.layer) for each in inspection.attentions if each.group == wanted)
        raise ConfigError(f"--layer {layer}: the layers of {wanted} are {layers}")
    return found


def drawn(attention: Attention, weights: np.ndarray, title: str, kind: str) -> bytes:
    rows, columns = weights.shape
    cell = min(CELL, MOST_INCHES / max(rows, columns))
    figure = Figure(figsize=(columns * cell + 2.2, rows * cell + 1.8), layout="constrained")
    axes = figure.subplots()
    mirrored = attention.keys.direction == "rtl"
    axes.imshow(weights[:, ::-1] if mirrored else weights, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    if cell >= 0.1:
        names = [short(token) for token in attention.keys.tokens]
        axes.set_xticks(
            range(columns), names[::-1] if mirrored else names, rotation=60, ha="left", rotation_mode="anchor"
        )
        axes.set_yticks(range(rows), [short(token) for token in attention.queries.tokens])
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=8)
    axes.set_title(title, fontsize=10, pad=10)
    settings: dict[Any, Any] = {**SETTINGS, "svg.hashsalt": title}
    nothing = {"svg": {"Date": None}, "png": {"Software": None}}[kind]
    buffer = io.BytesIO()
    with warnings.catch_warnings(), rc_context(settings):
        warnings.simplefilter("ignore")  # a letter that no font has is drawn as a box
        figure.savefig(buffer, format=kind, dpi=PNG_DPI, facecolor="white", metadata=nothing)
    return buffer.getvalue()


def short(token: str) -> str:
    shown = token.removeprefix("▁") or token
    return shown if len(shown) <= LABEL_LENGTH else f"{shown[: LABEL_LENGTH - 1]}…"
