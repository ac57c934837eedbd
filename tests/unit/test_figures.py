"""Figures: what is measured against what is known, the files, and the command."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.decode.config import SearchConfig
from regard.decode.translate import Translator
from regard.errors import ConfigError
from regard.figures import (
    FIGURES,
    Bars,
    Branches,
    Curve,
    Grid,
    Options,
    Panel,
    Picture,
    Route,
    cost,
    headline,
    intra_attention,
    tour,
    translator,
)
from regard.figures.drawing import power, rendered
from regard.figures.vanishing_gradient import MODELS, POSITIONS, averaged, linear_norms, model_norms
from regard.models import ARCHITECTURES, Shapes
from regard.text.codecs import WordCodec
from regard.text.phrasebook import ANIMAL_TIRED, ANIMAL_WIDE
from regard.text.tokenizer import Tokenizer
from tests.e2e.toolbox import Outcome

Call = Callable[..., Outcome]
SMALL = Picture(
    "small",
    "A title & more",
    "how it was measured",
    (Panel("left", "k", "norm", (Curve("one", (1.0, 1e-3, 1e-6)), Curve("two", (1.0, 2.0, 4.0)))),),
)


# --- vanishing gradients


@pytest.mark.parametrize("radius", [0.5, 1.0, 1.5])
def test_a_linear_rnn_follows_its_spectral_radius_exactly(radius: float) -> None:
    """An orthogonal matrix keeps every norm, so `radius` times it makes of each a power of `radius`."""
    torch.manual_seed(3)
    expected = radius ** torch.arange(POSITIONS, dtype=torch.float64)
    torch.testing.assert_close(linear_norms(radius), expected.expand(16, -1), rtol=1e-10, atol=0)


def test_every_input_has_a_finite_influence_on_every_model() -> None:
    """However small: in double precision nothing is rounded to 0."""
    torch.manual_seed(3)
    for settings in MODELS.values():
        norms = model_norms(settings)
        assert norms.shape == (16, POSITIONS)
        assert torch.isfinite(norms).all()
        assert (norms > 0).all()


def test_recurrence_forgets_and_attention_does_not() -> None:
    """Far back, every gate or matrix at initialisation has shrunk the gradient; a look across has not."""
    curves = {name: averaged(Options(repeats=1), partial(model_norms, settings)) for name, settings in MODELS.items()}
    assert all(values[0] == 1.0 for values in curves.values())
    for name in ("RNN", "GRU", "LSTM"):
        assert curves[name][50] < 1e-6
        assert curves[name][100] < curves[name][50] < curves[name][10]
    assert curves["RNN"][50] < curves["GRU"][50], "gates pass on more than a matrix"
    assert 1e-4 < curves["RNN with attention"][100] < 1.0
    assert 0.1 < curves["Transformer"][100] < 10.0


def test_the_same_seeds_give_the_same_curves_and_leave_the_generator_alone() -> None:
    before = torch.random.get_rng_state()
    measure = partial(linear_norms, 0.5)
    assert averaged(Options(seed=7, repeats=2), measure) == averaged(Options(seed=7, repeats=2), measure)
    assert torch.equal(torch.random.get_rng_state(), before)


# --- pictures and the command


def test_a_picture_is_drawn_the_same_each_time() -> None:
    assert rendered(SMALL, "png").startswith(b"\x89PNG")
    for kind in ("png", "svg"):
        assert rendered(SMALL, kind) == rendered(SMALL, kind)


def test_an_svg_has_the_words_and_stands_alone() -> None:
    root = ElementTree.fromstring(rendered(SMALL, "svg"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = " ".join(root.itertext())
    for word in ("A title & more", "how it was measured", "left", "one", "two", "norm"):
        assert word in words


def test_powers_of_ten_are_written_as_such() -> None:
    assert [power(value) for value in (1.0, 1e5, 1e-32)] == ["1", "10⁵", "10⁻³²"]


@pytest.fixture
def command(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """With a picture that takes no time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("regard.figures.vanishing_gradient.picture", lambda _: SMALL)
    return partial(call, page=True)


@pytest.mark.parametrize(
    ("arguments", "files"),
    [
        ((), ["vanishing-gradient.png", "vanishing-gradient.svg"]),
        (("--out", "x"), ["x.png", "x.svg"]),
        (("--out", "x.png"), ["x.png"]),
        (("--out", "x.svg"), ["x.svg"]),
    ],
)
def test_the_ending_says_which_kind(arguments: tuple[str, ...], files: list[str], command: Call) -> None:
    said = command("figure", "vanishing-gradient", *arguments).done()
    assert sorted(path.name for path in Path().iterdir()) == files
    assert " and ".join(files) in said.out


def test_the_numbers_are_printed_as_json(command: Call) -> None:
    said = json.loads(command("figure", "vanishing-gradient", "--json", "--out", "x.png").done().out)
    assert said["panels"][0]["curves"][0] == {"label": "one", "values": [1.0, 1e-3, 1e-6]}
    assert said["files"] == ["x.png"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("vanishing",), "there is no figure 'vanishing'; the figures are positions, positions-tensor2tensor"),
        (("vanishing-gradient", "--out", "x.pdf"), "--out x.pdf ends in .pdf; a figure is .png or .svg"),
        (("vanishing-gradient", "--out", "no/x"), "--out no/x: there is no folder no; make it"),
        (("all", "--out", "no/x"), "--out no/x: there is no folder no; make it"),
        (("all", "--out", __file__), "is a file; all figures go into a directory"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments: tuple[str, ...], message: str, command: Call) -> None:
    said = command("figure", *arguments)
    assert said.code == 1
    assert message in said.err
    assert list(Path().iterdir()) == []


def test_every_figure_has_a_purpose() -> None:
    assert all(figure.purpose for figure in FIGURES.values())


def test_a_seed_and_a_name_that_cannot_be(call: Call) -> None:
    order = ["figure", "vanishing-gradient", "--repeats", 1]
    call(*order, "--seed", 1 << 63).refusal("--seed 9223372036854775808 is too large", "below 2^63")
    call(*order, "--out", "").refusal("is no name of a file", "figure.png")


# --- figures that are computed


def of(name: str) -> Picture:
    return FIGURES[name].measure(Options())


def is_drawn(picture: Picture, name: str) -> None:
    assert picture.name == name
    assert len(picture.note.split()) > 20, "one paragraph of explanation"
    assert rendered(picture, "svg").count(b"<svg") == 1
    json.dumps(picture.to_json())


TRAINED = ("headline", "intra-attention", "six-words", "tour", "cost", "vanishing-gradient")


def test_every_computed_figure_is_drawn() -> None:
    for name, figure in FIGURES.items():
        if name not in TRAINED and not figure.of_run:
            is_drawn(figure.measure(Options()), name)


@pytest.mark.parametrize(
    ("name", "module", "short"),
    [
        ("headline", headline, {"STEPS": 2}),
        ("intra-attention", intra_attention, {"STEPS": 2, "SENTENCES": 60}),
        ("tour", tour, {"STEPS": 2}),
        ("cost", cost, {"POINTS": 2, "ROUNDS": 1}),
    ],
)
def test_every_trained_figure_is_drawn(name: str, module: Any, short: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """After next to no training: that it can be learnt is shown below, and in the gallery."""
    for constant, value in short.items():
        monkeypatch.setattr(module, constant, value)
    said: list[str] = []
    is_drawn(FIGURES[name].measure(Options(say=said.append)), name)
    assert said, "how far it is"


def test_six_words_are_learnt() -> None:
    """SPEC, example 9: the right word has at least 0.8 at every position."""
    target, trained = of("six-words").panels
    assert isinstance(target, Grid)
    assert isinstance(trained, Grid)
    for right, found in zip(target.values, trained.values, strict=True):
        assert sum(right) == 1.0
        assert found[right.index(1.0)] >= 0.8


def test_a_tour_visits_every_point_and_the_shortest_is_not_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tour, "STEPS", 2)
    found, best = of("tour").panels
    assert isinstance(found, Route)
    assert isinstance(best, Route)
    assert sorted(found.order) == sorted(best.order) == list(range(tour.POINTS))
    assert float(best.title.split()[-1]) <= float(found.title.split()[-1])


@pytest.mark.verify
def test_headlines_and_tours_are_learnt() -> None:
    picture = of("headline")
    assert headline.SHOWN[1] in picture.title
    found, best = of("tour").panels
    assert isinstance(found, Route)
    assert isinstance(best, Route)
    assert float(found.title.split()[-1]) <= 1.1 * float(best.title.split()[-1])


# --- figures of a translator


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A translator that has learnt nothing, but knows the words."""
    words = {word for pair in (ANIMAL_TIRED, ANIMAL_WIDE) for text in pair for word in text.split()}
    codec = WordCodec(sorted({*words, *translator.THINGS, f"{translator.WORD}.", "tired", "wide"}))
    torch.manual_seed(3)
    config = ARCHITECTURES["transformer"].config(
        width=12, heads=3, feedforward=11, encoder_layers=2, decoder_layers=1, dropout=0.0
    )
    model: Any = ARCHITECTURES["transformer"].build(config, Shapes({"source": codec.size, "target": codec.size})).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    own = Translator(model=model, tokenizer=Tokenizer.pair(codec, codec), config=SearchConfig(beam=3, max_extra=2))
    monkeypatch.setattr(translator, "opened", lambda _: own)
    return Path("runs/demo")


def test_every_figure_of_a_translator_is_drawn(run: Path) -> None:
    for name, figure in FIGURES.items():
        if figure.of_run:
            is_drawn(figure.measure(Options(run=run)), name)
            with pytest.raises(ConfigError, match="give one with --run RUN"):
                figure.measure(Options())


def test_it_by_head_is_what_the_model_did(run: Path) -> None:
    own = translator.opened(run)
    tired, wide, *written = FIGURES["it"].measure(Options(run=run)).panels
    both = [own.inspect(text) for text in (ANIMAL_TIRED[0], ANIMAL_WIDE[0])]
    parting = translator.parting_of(*(found.sides[-1].tokens for found in both))
    for found, read, pronoun in zip(both, (tired, wide), written, strict=True):
        assert isinstance(read, Grid)
        assert isinstance(pronoun, Grid)
        place = found.sides[0].tokens.index("it")
        assert read.values[4] == pytest.approx(found["encoder.1.self"].weights[1, place])
        assert len(read.values) == 2 * 3
        assert sum(read.values[0]) == pytest.approx(1.0, abs=1e-5)
        assert pronoun.values[1] == pytest.approx(
            found["decoder.0.cross"].weights[1, min(parting, len(found.sides[-1]) - 1)]
        )
        assert len(pronoun.values) == 1 * 3


def test_where_two_texts_part() -> None:
    assert translator.parting_of("abc", "abd") == 2
    assert translator.parting_of("ab", "abd") == 2
    assert translator.parting_of("", "abd") == 0


def test_a_beam_tree_has_every_node_once_and_no_two_in_one_place(run: Path) -> None:
    (tree,) = FIGURES["beam-tree"].measure(Options(run=run)).panels
    assert isinstance(tree, Branches)
    assert len({(node.step, node.line) for node in tree.nodes}) == len(tree.nodes)
    won = [node for node in tree.nodes if node.won]
    assert [node.line for node in won] == [0] * len(won)
    assert [node.step for node in won] == list(range(len(won)))
    for node in tree.nodes[1:]:
        assert node.step == tree.nodes[node.parent].step + 1
        assert node.total == pytest.approx(tree.nodes[node.parent].total + math.log(node.probability), abs=1e-4)


def test_positions_and_their_products() -> None:
    """The product depends on the distance alone and is largest, 64, at 0."""
    grid, panel = of("position-products").panels
    assert isinstance(grid, Grid)
    assert isinstance(panel, Panel)
    assert panel.curves[0].values[0] == pytest.approx(64, abs=1e-4)
    assert max(panel.curves[0].values[1:]) < 64
    for row in range(50):
        for column in range(50):
            assert grid.values[row][column] == pytest.approx(panel.curves[0].values[abs(row - column)], abs=1e-4)
    (table,) = of("positions").panels
    assert isinstance(table, Grid)
    assert (len(table.values), len(table.values[0])) == (50, 128)
    assert table.values[0][:4] == (0, 1, 0, 1)
    (other,) = of("positions-tensor2tensor").panels
    assert isinstance(other, Grid)
    assert (len(other.values), len(other.values[0])) == (20, 512)
    assert set(other.values[0][:256]) == {0.0}
    assert set(other.values[0][256:]) == {1.0}


def test_worked_numbers_in_the_figures() -> None:
    bars = of("label-smoothing").panels[0]
    assert isinstance(bars, Bars)
    assert bars.curves[1].values == pytest.approx([0.02] * 4 + [0.9, 0.02])
    assert bars.curves[2].values == pytest.approx([1 / 60] * 4 + [0.9 + 1 / 60, 1 / 60])
    rates = of("warm-up").panels[0]
    assert isinstance(rates, Panel)
    assert rates.curves[0].values[39] == max(rates.curves[0].values) == pytest.approx(6.99e-4, abs=1e-6)
    look_ahead, padding = of("masks").panels
    assert isinstance(look_ahead, Grid)
    assert isinstance(padding, Grid)
    assert look_ahead.values[1] == (0, 0, -math.inf, -math.inf, -math.inf)
    assert padding.values == ((0, 0, 0, 1, 1, 1), (0, 0, 0, 0, 1, 1))
    costs = of("multiplications").panels[0]
    assert isinstance(costs, Panel)
    attention, recurrence = (curve.values for curve in costs.curves[:2])
    assert attention[31] == recurrence[31] == 512**3, "they cross at n = d"
    assert attention[30] < recurrence[30]
    hot = of("temperature").panels[0]
    assert isinstance(hot, Bars)
    assert all(sum(curve.values) == pytest.approx(1) for curve in hot.curves)
    assert [curve.values[0] for curve in hot.curves] == sorted((c.values[0] for c in hot.curves), reverse=True)


def test_the_gallery_shows_every_figure() -> None:
    page = (Path(__file__).parents[2] / "docs" / "gallery.md").read_text("utf-8")
    for name in FIGURES:
        assert f"`regard figure {name}`" in page
        assert f"(images/gallery/{name}.png)" in page


def test_all_figures_go_into_a_directory(command: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: FIGURES[name] for name in ("masks", "vanishing-gradient")}
    monkeypatch.setattr("regard.cli_figure.FIGURES", few)
    command("figure", "all", "--out", "drawn").done()
    expected = [f"{name}.{kind}" for name in few for kind in ("png", "svg")]
    assert sorted(path.name for path in Path("drawn").iterdir()) == expected
