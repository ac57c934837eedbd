"""A pointer network's way through points of the plane, beside the shortest: trained while the figure is drawn."""

from __future__ import annotations

import numpy as np

from regard.data.batch import Batch, Source, pair_batch
from regard.data.columns import Column
from regard.decode.config import SearchConfig
from regard.figures import Options
from regard.figures.picture import Picture, Route
from regard.figures.training import built, fitted
from regard.models.interface import Shapes
from regard.synthetic.tsp import best_tours, tour_lengths
from regard.tasks.point import Pointer
from regard.text.codecs import ByteCodec
from regard.text.tokenizer import Tokenizer

POINTS, STEPS, BATCH, RATE = 7, 500, 64, 2e-3
LEAST_GAP = 0.2
COLUMNS = (Column("numbers", kind="numbers", width=2), Column("positions", kind="positions", of="numbers"))


def apart(rng: np.random.Generator) -> np.ndarray:
    """Points that do not cover each other."""
    while True:
        points = rng.random((1, POINTS, 2))
        gaps = np.linalg.norm(points[0, :, None] - points[0, None], axis=-1)
        if gaps[~np.eye(POINTS, dtype=bool)].min() >= LEAST_GAP:
            return points


def picture(options: Options) -> Picture:
    model = built(
        Shapes({"numbers": 2, "positions": 1}, columns=COLUMNS),
        options.seed,
        "pointer",
        reader="transformer",
        positions="interleaved",
        width=64,
        layers=2,
        heads=4,
        feedforward=128,
        all=True,
        dropout=0.0,
    )
    rng = np.random.default_rng(options.seed)
    shown = apart(np.random.default_rng([options.seed, 1]))

    def batch(_: int) -> Batch:
        points = rng.random((BATCH, POINTS, 2))
        ends = [[*(int(place) + 1 for place in tour), model.symbols.end] for tour in best_tours(points)]
        return pair_batch(Source.of(list(points.astype(np.float32))), ends, model.symbols)

    fitted(model, batch, options, name="tour", steps=STEPS, rate=RATE)
    pointer = Pointer(model, COLUMNS[0], Tokenizer.pair(ByteCodec(), ByteCodec()), SearchConfig(beam=4))
    found = np.array([pointer.predict([shown[0]])[0].positions])
    best = best_tours(shown)
    lengths = [float(tour_lengths(shown, tour)[0]) for tour in (found, best)]
    points = tuple((float(x), float(y)) for x, y in shown[0])
    return Picture(
        "tour",
        "A tour by a pointer network, and the shortest",
        "A pointer network (Vinyals et al., 2015) answers with positions of its input: each step is an attention over "
        f"the points, and where it looks most is what it says. It has seen {STEPS * BATCH:,} sets of {POINTS} points "
        "with their shortest tours, made when this figure is drawn, and none of them is this one. The numbers are the "
        "order of the input; both tours begin at 0.",
        (
            Route(f"by the model: length {lengths[0]:.3f}", points, tuple(map(int, found[0]))),
            Route(f"the shortest: length {lengths[1]:.3f}", points, tuple(map(int, best[0]))),
        ),
    )
