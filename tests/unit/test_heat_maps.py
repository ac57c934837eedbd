"""Tables as heat maps: one scale, numbers that can be read, any size."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import colormaps

from regard.encode.rows import Span
from regard.encode.similarity import Occurrence, Similarity
from regard.figures.heat_maps import COLOURS, HeatMap, HeatMaps, draw, is_bright, rendered
from regard.figures.similarity import maps_of


def maps(size: int, count: int = 1, lowest: float = 0.43) -> HeatMaps:
    table = tuple(tuple(1.0 if row == column else lowest for column in range(size)) for row in range(size))
    own = tuple(HeatMap(f"map {number}", table) for number in range(count))
    return HeatMaps("name", "A title & more", own, "what it means", lines=("a sentence",), borders=(2,))


def test_the_same_picture_each_time_with_all_its_words() -> None:
    for kind in ("png", "svg"):
        assert rendered(maps(3), kind) == rendered(maps(3), kind)
    words = " ".join(ElementTree.fromstring(rendered(maps(3, 2), "svg")).itertext())
    for word in ("A title & more", "map 0", "map 1", "what it means", "a sentence", "0.43", "1.00"):
        assert word in words


@pytest.mark.parametrize(("lowest", "begin"), [(0.43, 0.4), (0.4, 0.4), (0.0, 0.0), (-0.31, -0.4), (1.0, 0.9)])
def test_the_scale_begins_at_a_tenth(lowest: float, begin: float) -> None:
    assert maps(3, lowest=lowest).lowest == pytest.approx(begin)
    rendered(maps(2, lowest=lowest), "png")


def test_letters_stand_out_from_their_colour() -> None:
    """By the contrast of the web's guidelines, at least 4 to 1 at every value."""

    def luminance(colour: tuple[float, ...]) -> float:
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
        return float(np.dot([0.2126, 0.7152, 0.0722], parts))

    for value in np.linspace(0.2, 1.0, 41):
        behind = luminance(colormaps[COLOURS]((value - 0.2) / 0.8))
        ink = 0.0 if is_bright(float(value), 0.2) else 1.0
        assert (max(behind, ink) + 0.05) / (min(behind, ink) + 0.05) > 4.0


@pytest.mark.parametrize(
    ("size", "count", "across", "down"), [(6, 7, 4, 2), (6, 3, 3, 1), (30, 5, 2, 3), (100, 2, 1, 2)]
)
def test_many_maps_or_large_ones_take_more_rows(size: int, count: int, across: int, down: int) -> None:
    figure = draw(maps(size, count))
    places = figure.subfigs[0].axes[0].get_subplotspec()
    assert places is not None
    assert places.get_gridspec().get_geometry() == (down, across)
    written = [axes for axes in figure.subfigs[0].axes if axes.texts]
    assert len(written) == (count if size <= 12 else 0)


def test_the_maps_of_a_word_name_its_layers_and_sentences() -> None:
    where = tuple(Occurrence(f"{'x' * 150} w{number} {'y' * 90}", Span(0, 151, 153), ("w",)) for number in range(30))
    found = Similarity("w", where, np.ones((3, 30, 30)))
    picture = maps_of(found, [0, 2])
    assert [each.title for each in picture.maps] == ["embeddings", "layer 2"]
    assert len(picture.lines) == 25
    assert picture.lines[-1] == "… and 6 more"
    assert "[w0]" in picture.lines[0]
    assert picture.lines[0].endswith("…")
