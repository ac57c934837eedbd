"""What is measured by length, drawn: every run by its name, every bucket with what it holds."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from regard.errors import ConfigError
from regard.report.drawing import COLOURS, draw, names_beside, picture_of
from regard.report.failure_plots import failure_plots
from regard.report.picture import refuse_picture, write_picture
from regard.report.plots import PointGroup, PointPlot


def bucket(shortest: int, longest: int | None, **more: float) -> dict[str, Any]:
    return {"shortest": shortest, "longest": longest, **more}


def found(bleu: float, tokens: int = 53) -> dict[str, Any]:
    return {
        "bleu_by_length": [
            bucket(1, 5, sentences=1234, bleu=bleu, interval=2.0),
            bucket(21, None, sentences=37, bleu=bleu / 2, interval=50.0),
        ],
        "loss_by_position": [bucket(1, 5, tokens=tokens, loss=1.5)],
    }


def test_each_run_has_its_points_and_each_bucket_its_size() -> None:
    by_length, by_position = failure_plots({"one": found(30.0), "other": found(20.0)})
    assert by_length.labels == ("1–5\n(1,234)", "21+\n(37)")
    assert by_length.bottom == "words of the source (sentences)"
    assert [group.label for group in by_length.groups] == ["one", "other"]
    assert by_length.groups[1].values == (20.0, 10.0)
    assert by_length.groups[0].intervals == (2.0, 50.0)
    assert (by_position.labels, by_position.groups[0].intervals) == (("1–5\n(53)",), ())


def test_runs_that_count_other_tokens_share_an_axis_without_sizes() -> None:
    other = found(20.0, tokens=97)
    other["loss_by_position"].append(bucket(6, 10, tokens=11, loss=2.5))
    by_position = failure_plots({"one": found(30.0), "other": other})[1]
    assert (by_position.labels, by_position.bottom) == (("1–5", "6–10"), "position of the target token")
    one, its = by_position.groups
    assert one.values[0] == 1.5
    assert math.isnan(one.values[1])
    assert its.values == (1.5, 2.5)


def test_without_a_loss_there_is_no_plot_of_it() -> None:
    assert [plot.name for plot in failure_plots({"one": found(1.0) | {"loss_by_position": []}})] == ["bleu_by_length"]


def test_the_picture_names_the_runs_and_the_sizes() -> None:
    """As text that can be read and found, in a file that stands alone; equal plots give equal bytes."""
    plots = failure_plots({"one": found(30.0), "other": found(20.0)})
    picture = picture_of(plots, svg=True)
    assert picture == picture_of(plots, svg=True)
    root = ElementTree.fromstring(picture)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    said = "".join(root.itertext())
    for part in ("one", "other", "(1,234)", "21+", "BLEU by source length", "95 % intervals", "Loss per token"):
        assert part in said
    colours = set(re.findall(rb"#[0-9a-f]{6}", picture))
    assert {colour.encode() for colour in COLOURS[:2]} <= colours
    assert picture_of(plots, svg=False).startswith(b"\x89PNG")


def test_for_a_page_it_is_drawn_without_an_address() -> None:
    for drawing in draw(failure_plots({"one": found(30.0), "other": found(20.0)})):
        assert "://" not in drawing.svg
        assert 'role="img"' in drawing.svg
        assert drawing.png.startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("count", "name", "beside"), [(2, "short", 2), (4, "a-name", 4), (11, "x" * 60, 2), (1, "x", 1)]
)
def test_names_share_lines_evenly(count: int, name: str, beside: int) -> None:
    plot = PointPlot("x", "x", ("a",), tuple(PointGroup(name, (1.0,)) for _ in range(count)), "x")
    assert names_beside(plot) == beside


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    write_picture(tmp_path / "a.PNG", failure_plots({"one": found(30.0)}))
    write_picture(tmp_path / "a.svg", failure_plots({"one": found(30.0)}))
    assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<?xml")
    assert {path.name for path in tmp_path.iterdir()} == {"a.PNG", "a.svg"}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("a.pdf", r"--plot a\.pdf is neither a \.png nor a \.svg file; give it one of these endings"),
        ("absent/a.png", r"--plot absent/a\.png: there is no folder absent; make it, or choose another place"),
    ],
)
def test_where_no_picture_can_be_written(path: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        refuse_picture(Path(path))
