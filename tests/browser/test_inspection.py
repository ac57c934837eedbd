"""The page of `regard inspect` in a real browser: every view is drawn, says what was recorded, and asks for nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.data.batch import Source, pair_batch
from regard.data.columns import Column
from regard.decode.config import SearchConfig
from regard.decode.translate import Translator
from regard.inspect import Inspection, comparing
from regard.inspect.comparing import counterparts, face, turns
from regard.inspect.html import self_contained
from regard.inspect.packing import Chosen
from regard.models import ARCHITECTURES, Shapes
from regard.text.codecs import WordCodec
from regard.text.tokenizer import Tokenizer
from tests.browser.conftest import SIZES, Seen, violations
from tests.encoders import pieces, text_encoder

Look = Callable[[Path], Seen]

HOSTILE = ["</script><img/src=x/onerror=document.title='gone'>", "<b>", "שלום", "🙂", "x" * 5000]
WORDS = ["one", "two", "three", "four", "five", *HOSTILE, "שלום."]
VIEWS = ("heatmap", "heads", "model", "neuron", "steps", "search", "compare", "embedding", "positions")


def trained() -> Translator:
    """Learns to copy, for a second or two."""
    torch.manual_seed(7)
    codec = WordCodec(WORDS)
    architecture = ARCHITECTURES["transformer"]
    config = architecture.config(
        width=24, heads=3, feedforward=32, encoder_layers=2, decoder_layers=2, dropout=0.0, norm="pre"
    )
    model: Any = architecture.build(config, Shapes({"source": codec.size, "target": codec.size}))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    first = codec.encode("one")[0]
    for _ in range(60):
        rows = torch.randint(first, first + 5, (16, 4)).tolist()
        ended = [[*row, model.symbols.end] for row in rows]
        batch = pair_batch(Source.of(ended), ended, model.symbols)
        loss = torch.nn.functional.cross_entropy(model(batch).flatten(0, 1), batch.target_out.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    pair = Tokenizer.pair(codec, codec)
    return Translator(model=model.eval(), tokenizer=pair, config=SearchConfig(beam=3, max_extra=2))


@pytest.fixture(scope="module")
def model() -> Translator:
    return trained()


@pytest.fixture(scope="module")
def inspected(model: Translator) -> list[Inspection]:
    return [model.inspect("one two three one"), model.inspect("one two five one")]


@pytest.fixture(scope="module")
def file(inspected: list[Inspection], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inspect") / "page.html"
    path.write_text(self_contained(inspected, title="test"), "utf-8")
    return path


def go(seen: Seen, view: str, **chosen: Any) -> Any:
    """The view, once it is drawn."""
    address = "&".join(f"{name}={value}" for name, value in {"view": view, **chosen}.items())
    seen.page.evaluate("address => { window.location.hash = address }", address)
    seen.page.wait_for_selector(f'[data-view="{view}"][data-ready="true"]')
    return seen.page.locator(f'[data-view="{view}"]')


def value(place: Any, number: int = 0) -> float:
    return float(place.locator("output[data-value]").nth(number).get_attribute("data-value"))


def test_every_view_is_drawn_and_true(look: Look, file: Path, inspected: list[Inspection]) -> None:
    seen, first = look(file), inspected[0]
    cross, own = first["decoder.1.cross"], first["encoder.1.self"]
    queries, keys = cross.weights.shape[1:]
    chosen = {"block": "decoder.cross", "layer": 1, "head": 2, "query": 3, "key": 1}

    view = go(seen, "heatmap", **chosen)
    assert view.locator(".cells").get_attribute("data-rows") == str(queries)
    assert view.locator(".cells").get_attribute("data-columns") == str(keys)
    assert value(view) == pytest.approx(float(cross.weights[2, 3, 1]), abs=1e-7)
    assert f"{cross.weights[2, 3, 1]:.4f}"[:5] in view.locator("output").first.inner_text() or value(view) < 1e-4
    view.locator("summary").click()
    view.locator("table.numbers").wait_for()
    cells = [float(text.replace("−", "-")) for text in view.locator("table.numbers td").all_inner_texts() if text]
    assert np.allclose(cells, cross.weights[2].flatten(), atol=1e-4)

    view = go(seen, "heatmap", **chosen | {"head": -1})
    assert value(view) == pytest.approx(float(cross.weights[:, 3, 1].mean()), abs=1e-6)
    both = (first["decoder.0.cross"].weights + cross.weights).mean(0)[3, 1] / 2
    assert value(go(seen, "heatmap", **chosen | {"layer": -1})) == pytest.approx(float(both), abs=1e-6)

    view = go(seen, "heads", block="encoder.self", layer=1, least=0.05)
    assert view.locator("path[data-head]").count() == int((own.weights >= 0.05).sum())
    view = go(seen, "heads", block="encoder.self", layer=1, least=0.05, heads="1", query=2, follow=1)
    assert view.locator("path[data-head]").count() == int((own.weights[1, 2] >= 0.05).sum())

    assert go(seen, "model", block="encoder.self").locator("button.thumbnail").count() == 2 * 3

    view = go(seen, "neuron", **chosen, feature=4)
    rows = view.locator("tbody tr")
    assert view.locator("table.neuron tbody tr").count() == keys == rows.count()
    weights = [float(each.get_attribute("data-weight")) for each in view.locator("td.bar").all()]
    scores = [float(each.get_attribute("data-score")) for each in view.locator("td.number").all()]
    assert np.allclose(weights, cross.weights[2, 3], atol=1e-6)
    assert np.allclose(scores, cross.scores[2, 3], atol=1e-4)
    term = cross.factor * cross.q[2, 3, 4] * cross.k[2, 1, 4]
    assert value(view) == pytest.approx(float(term), abs=1e-5)
    assert f"q · k / √{cross.q.shape[-1]}" in view.inner_text()

    view = go(seen, "steps", **chosen)
    best = [float(each.get_attribute("data-chance")) for each in view.locator("td.bar").all()]
    assert best == pytest.approx([chance for _, chance in first.steps[3].best])
    assert value(view) == pytest.approx(first.steps[3].probability)

    view = go(seen, "search")
    assert first.tree is not None
    assert view.locator("[data-node]").count() == len(first.tree["nodes"])
    assert view.locator("g.node.won").count() == len(first.steps) + 1

    view = go(seen, "compare", block="encoder.self", query=0)
    assert view.locator(".ranking tbody tr").count() == 2 * 3
    changes = [float(each.get_attribute("data-change")) for each in view.locator("[data-change]").all()]
    gaps = [
        0.5 * np.abs(one.weights[:, 0] - inspected[1][one.block].weights[:, 0]).sum(-1)
        for one in first.attentions
        if one.group == "encoder.self"
    ]
    assert changes == pytest.approx(sorted(np.concatenate(gaps).tolist(), reverse=True), abs=1e-5)

    view = go(seen, "embedding", word="two")
    assert view.locator(".cosines").count() == 3
    assert view.locator(".places li").count() == 2

    view = go(seen, "positions")
    assert view.locator("canvas").first.get_attribute("data-cells") == str(64 * 24)
    assert float(value(view, 1)) == pytest.approx(12.0, abs=1e-4)  # sin² + cos², half the width

    assert seen.requests == [file.as_uri()]
    assert seen.complaints == []


def test_no_view_is_wider_than_the_window_and_every_part_has_a_name(look: Look, file: Path) -> None:
    seen = look(file)
    for view in VIEWS:
        go(seen, view)
        assert seen.overflow() <= 0, view
        assert seen.page.evaluate(UNNAMED) == [], view


UNNAMED = """() => {
    const kinds = 'button, input, select, textarea, [tabindex="0"], [role="img"], [role="application"]';
    const named = (each) => each.getAttribute('aria-label') || each.closest('label') || each.textContent.trim();
    const parts = [...document.querySelectorAll(kinds)];
    const ids = [...document.querySelectorAll('[id]')].map((each) => each.id);
    return [
        ...parts.filter((each) => !named(each)).map((each) => each.outerHTML.slice(0, 80)),
        ...ids.filter((each, place) => ids.indexOf(each) !== place),
        ...(document.documentElement.lang ? [] : ['no language']),
        ...(document.querySelectorAll('h1, main').length === 2 ? [] : ['one h1 and one main']),
    ];
}"""
"""Whatever can be reached by a key has a name, ids are unique, the page has a language, a heading and a main part."""


@pytest.mark.parametrize(
    ("size", "scheme"),
    [
        ("desktop", "light"),
        ("phone", "dark"),
        pytest.param("desktop", "dark", marks=pytest.mark.verify),
        pytest.param("phone", "light", marks=pytest.mark.verify),
    ],
)
def test_axe_core_finds_nothing_serious(chromium: Any, axe_core: str, file: Path, size: str, scheme: str) -> None:
    """In every view, with its tables unfolded, light and dark, on a desktop and on a phone."""
    width, height = SIZES[size]
    context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    page.goto(file.as_uri())
    for view in VIEWS:
        go(Seen(page), view)
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true })")
        page.wait_for_function("document.querySelectorAll('details:not(:has(table))').length === 0")
        assert violations(page, axe_core) == [], view
    context.close()


def test_axe_core_would_find_something(chromium: Any, axe_core: str) -> None:
    """A picture without a text and a button without a name are found, so that finding nothing means something."""
    page = chromium.new_page()
    page.set_content("<html lang=en><title>t</title><main><img src='data:,'><button></button></main></html>")
    assert {each.split(":")[0] for each in violations(page, axe_core)} >= {"image-alt", "button-name"}
    page.close()


def test_the_keyboard_and_the_address(look: Look, file: Path) -> None:
    seen = look(file)
    page, cells = seen.page, go(seen, "heatmap", block="encoder.self", layer=0, head=0).locator(".cells")
    cells.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "]", "}"):
        page.keyboard.press(key)
    assert {"query=1", "key=2", "head=1", "layer=1"} <= set(page.evaluate("location.hash").replace("#", "").split("&"))
    before = page.inner_text(".readout")
    page.reload()
    page.wait_for_selector('[data-ready="true"]')
    assert page.inner_text(".readout") == before
    assert page.evaluate("document.querySelector('.cells') !== null")

    view = go(seen, "heads", block="encoder.self", layer=1)
    view.locator('g[role="button"]').nth(2).focus()
    page.keyboard.press("Enter")
    assert "follow=1" in page.evaluate("location.hash")
    assert view.locator("g.token.chosen").count() == 1
    page.locator("nav button", has_text="Model").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector('[data-view="model"]')
    page.locator("button.thumbnail").nth(4).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector('[data-view="heatmap"]')
    assert {"layer=1", "head=1"} <= set(page.evaluate("location.hash").replace("#", "").split("&"))

    view = go(seen, "neuron", block="encoder.self", layer=1, head=1, query=1)
    view.locator('[role="application"]').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert {"key=1", "feature=1"} <= set(page.evaluate("location.hash").replace("#", "").split("&"))
    go(seen, "search").locator('[role="application"]').focus()
    page.keyboard.press("ArrowRight")
    assert "node=" in page.evaluate("location.hash")
    assert seen.complaints == []


def test_words_symbols_and_addresses_that_make_no_sense(look: Look, file: Path) -> None:
    seen = look(file)
    cells = go(seen, "heatmap", block="encoder.self", symbols=0).locator(".cells")
    assert cells.get_attribute("data-columns") == "4"
    seen.page.evaluate("location.hash = '#view=none&layer=99&head=x&query=1e9&key=-7&doc=NaN&block=__proto__'")
    seen.page.wait_for_selector('[data-view="heatmap"][data-ready="true"]')
    assert seen.complaints == []


def test_hostile_tokens_are_text(look: Look, model: Translator, tmp_path: Path) -> None:
    text = " ".join(["one", *HOSTILE, "two"])
    path = tmp_path / "hostile.html"
    path.write_text(self_contained([model.inspect(text, " ".join(HOSTILE))], title="<b>"), "utf-8")
    seen = look(path)
    for view in ("heatmap", "heads", "model", "neuron", "steps"):
        go(seen, view, block="encoder.self", words=0)
        assert seen.overflow() <= 0, view
    assert seen.page.locator("img, b").count() == 0
    assert "gone" not in seen.page.title()
    go(seen, "heads", block="encoder.self")
    assert "</script><img/src=x" in seen.page.text_content('[data-view="heads"] svg.lines')
    assert seen.requests == [path.as_uri()]
    assert seen.complaints == []


def test_right_to_left(look: Look, model: Translator, tmp_path: Path) -> None:
    """The first token of Hebrew stands on the right."""
    path = tmp_path / "hebrew.html"
    path.write_text(self_contained([model.inspect("שלום one two", "one")]), "utf-8")
    seen = look(path)
    labels = go(seen, "heatmap", block="encoder.self").locator("text.label[transform]").all()
    places = [each.bounding_box()["x"] for each in labels]
    assert places == sorted(places, reverse=True)


def test_words_from_right_to_left_stay_in_their_places(look: Look, model: Translator, tmp_path: Path) -> None:
    """In what is said of two of them, the one that looks comes first; what a decoder has read begins on the right. A
    full stop stands left of its word, and symbols read as ever."""
    path = tmp_path / "hebrew.html"
    path.write_text(self_contained([model.inspect("שלום שלום.", "שלום שלום.")]), "utf-8")
    seen = look(path)
    chosen = {"block": "encoder.self", "layer": 0, "head": 0, "symbols": 0, "query": 0, "key": 1}
    for view in ("heatmap", "heads", "neuron"):
        first, second = (left(word) for word in go(seen, view, **chosen).locator(".readout bdi").all())
        assert first < second, view
    read = [left(word) for word in go(seen, "steps", query=2).locator(".shaded").first.locator("span").all()]
    assert len(read) == 4  # <s>, two words, and what is written next
    assert read == sorted(read, reverse=True)
    for view, label in {"heatmap": "text.label:not([transform])", "heads": "g.token text"}.items():
        places = go(seen, view, block="encoder.self").locator(label).nth(1).evaluate(LETTERS)
        assert places == sorted(places, reverse=True), view
    end = go(seen, "steps", block="decoder.cross").locator(".shaded").nth(1).locator("span").last
    assert end.inner_text() == "</s>"
    assert end.evaluate(LETTERS) == sorted(end.evaluate(LETTERS))


LETTERS = """element => {
    const text = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).at(-1);
    return [...text.data].map((_, place) => {
        const range = document.createRange();
        range.setStart(text, place);
        range.setEnd(text, place + 1);
        return range.getBoundingClientRect().left;
    });
}"""
"""Where each letter of a text stands."""


def left(place: Any) -> float:
    return place.bounding_box()["x"]


def test_a_pair_in_one_sequence(look: Look, tmp_path: Path) -> None:
    """Of an encoder's pair the filter shows A → A, A → B, B → A or B → B alone; pieces of a word can be joined."""
    found = text_encoder(pieces()).inspect("the ripe apple", "my favourite fruit")
    path = tmp_path / "pair.html"
    path.write_text(self_contained([found]), "utf-8")
    seen = look(path)
    sizes = {"": (10, 10), "AA": (6, 6), "AB": (6, 4), "BA": (4, 6), "BB": (4, 4)}
    for pair, size in sizes.items():
        cells = go(seen, "heatmap", block="encoder.self", head=1, pair=pair).locator(".cells")
        assert (int(cells.get_attribute("data-rows")), int(cells.get_attribute("data-columns"))) == size
    weights = found["encoder.0.self"].weights[1]
    view = go(seen, "heatmap", block="encoder.self", head=1, pair="AB", query=1, key=7)
    assert value(view) == pytest.approx(float(weights[1, 7]), abs=1e-6)
    chosen = {"block": "encoder.self", "head": 1, "words": 1, "symbols": 0}
    view = go(seen, "heatmap", **chosen, query=1, key=3)  # how much "ripe" looks at "app" and "##le"
    assert view.locator(".cells").get_attribute("data-columns") == "6"
    assert value(view) == pytest.approx(float(weights[1, 3:5].sum()), abs=1e-6)
    seen.page.get_by_label("pair").select_option("BA")
    assert "pair=BA" in seen.page.evaluate("location.hash")
    assert seen.complaints == []


def of_three_sources(combine: str) -> Inspection:
    """Texts of two languages and vectors, each beside the others."""
    torch.manual_seed(11)
    columns = (
        Column("source", end=True),
        Column("german", end=True),
        Column("image", kind="vectors"),
        Column("target", end=True),
    )
    codec = WordCodec(["one", "two", "three", "eins", "zwei"])
    sizes = {"source": codec.size, "german": codec.size, "image": 5, "target": codec.size}
    shape = {"width": 24, "heads": 3, "feedforward": 32, "encoder_layers": 1, "decoder_layers": 1}
    config = ARCHITECTURES["transformer"].config(**shape, combine=combine)
    model: Any = ARCHITECTURES["transformer"].build(config, Shapes(sizes, columns=columns)).eval()
    tokenizer = Tokenizer(dict.fromkeys(("source", "german", "target"), codec))
    translator = Translator(model=model, tokenizer=tokenizer, columns=columns)
    image = np.linspace(0, 1, 7 * 5).reshape(1, 7, 5)
    return translator.inspect("one two three", "two one", also=["eins zwei", image])


def test_the_page_of_several_sources_says_which_is_looked_at(look: Look, tmp_path: Path) -> None:
    found, path = of_three_sources("serial"), tmp_path / "page.html"
    path.write_text(self_contained([found]), "utf-8")
    seen = look(path)
    assert seen.page.locator(".sentence .read").all_inner_texts() == [
        "one two three",
        "german eins zwei",
        "image 7 vectors of width 5",
    ]
    view = go(seen, "heatmap")
    assert seen.page.locator("label.choice select").first.locator("option").all_inner_texts() == [
        "Encoder self-attention, source",
        "Encoder self-attention, german",
        "Encoder self-attention, image",
        "Decoder self-attention",
        "Attention over source",
        "Attention over german",
        "Attention over image",
    ]
    for block, name, tokens in (
        ("decoder.cross", "source", ["one", "two", "three", "</s>"]),
        ("decoder.cross-german", "german", ["eins", "zwei", "</s>"]),
        ("encoder-german.self", "german", ["eins", "zwei", "</s>"]),
        ("decoder.cross-image", "image", list(found.sides[2].tokens)),
    ):
        side, kind = block.split(".")
        own = found[f"{side}.0.{kind}"]
        view = go(seen, "heatmap", block=block, head=1, query=1, key=2)
        assert view.locator("text.axis").nth(1).text_content() == f"{name} →"
        if not view.locator("details[open]").count():
            view.locator("summary").click()
        view.locator("table.numbers").wait_for()
        assert view.locator("table.numbers thead th").all_inner_texts() == tokens
        assert value(view) == pytest.approx(float(own.weights[1, 1, 2]), abs=1e-7)
        assert go(seen, "heads", block=block).locator("text.axis").nth(1).text_content() == f"at {name}"
    view = go(seen, "steps", block="decoder.cross-german", query=1)
    assert "Where it looks in german" in view.inner_text()
    assert not seen.complaints


def test_sources_behind_each_other_are_one_map(look: Look, tmp_path: Path) -> None:
    found, path = of_three_sources("flat"), tmp_path / "page.html"
    path.write_text(self_contained([found, found]), "utf-8")
    seen = look(path)
    view = go(seen, "heatmap", block="decoder.cross", head=0)
    assert view.locator("text.axis").nth(1).text_content() == "source + german + image →"
    assert view.locator(".cells").get_attribute("data-columns") == str(4 + 3 + 7)
    options = seen.page.locator("label.choice select").nth(1).locator("option").all_inner_texts()
    assert options[-1] == "Attention over source + german + image"
    assert go(seen, "compare").locator("h3").first.inner_text() == "one two three"
    assert not seen.complaints


def test_in_a_notebook(chromium: Any, inspected: list[Inspection]) -> None:
    """What a notebook shows of an inspection is the page, in a frame whose address cannot be changed."""
    page = chromium.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.set_content(f"<html lang=en><title>notebook</title><body>{inspected[0]._repr_html_()}</body></html>")
    frame = page.frame_locator("iframe")
    frame.locator('[data-view="heatmap"][data-ready="true"]').wait_for()
    frame.locator("nav button", has_text="Neurons").click()
    frame.locator('[data-view="neuron"][data-ready="true"]').wait_for()
    assert complaints == []
    page.close()


def row_of(attention: Attention, look: comparing.Look) -> int:
    """The place of the word that looks, which may stand in the text twice."""
    words = [place for place, token in enumerate(attention.queries.tokens) if face(token) == look.word]
    return next(place for place in words if look.weight in attention.weights[look.head, place])


def test_the_word_that_differs_is_compared_first(look: Look, file: Path, inspected: list[Inspection]) -> None:
    """The page and `regard inspect` name the same word, and the same head, or two."""
    surest = turns(*inspected)[0]
    view = go(look(file), "compare")
    said = view.locator(".readout").inner_text()
    for each in (surest.first, surest.second):
        assert f"layer {each.block.split('.')[1]}, head {each.head}" in said
    assert ("two heads" in said) == (len(surest.heads) == 2)
    assert f"“{surest.words[0]}” looks at “{surest.at[0]}”" in said
    weights = [float(each.get_attribute("data-value")) for each in view.locator("output[data-value]").all()]
    assert weights == pytest.approx([surest.first.weight, surest.second.weight], abs=1e-6)
    attentions = [each[surest.first.block] for each in inspected]
    rows = [
        own.weights[surest.first.head, row_of(each[look.block], look)]
        for each, own, look in zip(inspected, attentions, (surest.first, surest.second), strict=True)
    ]
    pairs = counterparts(*(each.keys for each in attentions))
    change = 1 - sum(min(rows[0][i], rows[1][j]) for i, j in pairs)
    label = f"layer {surest.first.block.split('.')[1]}, head {surest.first.head}"
    row = view.locator("tr.chosen").filter(has=view.page.get_by_label(label, exact=True))
    shown = float(row.locator("[data-change]").get_attribute("data-change"))
    assert shown == pytest.approx(change, abs=1e-5)


@pytest.fixture
def served(model: Translator) -> Iterator[str]:
    uvicorn = pytest.importorskip("uvicorn")
    from regard.serve.inspecting import inspection_app, listening

    with closing(listening(0)) as own:
        server = uvicorn.Server(uvicorn.Config(inspection_app(model, title="test"), log_level="error"))
        thread = threading.Thread(target=server.run, args=([own],), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{own.getsockname()[1]}/"
        server.should_exit = True
        thread.join(20)


def test_a_server(chromium: Any, served: str, model: Translator) -> None:
    """A sentence is typed and looked into; nothing leaves the origin, and the policy has nothing to complain about."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    seen = Seen(context.new_page())
    seen.page.on("request", lambda sent: seen.requests.append(sent.url))
    seen.page.on("console", lambda said: seen.complaints.append(said.text) if said.type == "error" else None)
    seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    seen.page.goto(served)
    seen.page.fill("textarea", "one two three one\none two five one")
    seen.page.click("button[type=submit]")
    seen.page.wait_for_selector('[data-ready="true"]')
    view = go(seen, "heatmap", block="encoder.self", layer=1, head=2, query=1, key=2)
    expected = model.inspect("one two three one")["encoder.1.self"].weights[2, 1, 2]
    assert value(view) == pytest.approx(float(expected), abs=1e-6)
    for name in VIEWS:
        go(seen, name)
    assert any("/encoder.1.self/2" in url for url in seen.requests)
    assert all(url.startswith((served, "data:")) for url in seen.requests)
    assert seen.complaints == []
    seen.page.fill("textarea", "x " * 6000)
    seen.page.click("button[type=submit]")
    seen.page.wait_for_selector(".failed")
    assert "give at most 10,000" in seen.page.inner_text(".failed")
    context.close()


def test_print_has_no_controls(look: Look, file: Path) -> None:
    seen = look(file)
    go(seen, "heatmap")
    seen.page.emulate_media(media="print")
    assert not seen.page.locator("nav").is_visible()
    assert seen.page.locator(".cells").is_visible()
    assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    seen.page.locator(".about", has_text="the darker a cell").wait_for()  # a browser tells the page in its next frame
    seen.page.set_viewport_size({"width": 718, "height": 1000})  # a sheet of paper, whatever the screen
    for view in VIEWS:
        go(seen, view)
        # A browser shrinks a page that is a little too wide, as the neuron view is, and cuts off what is far too wide.
        assert seen.overflow() <= (200 if view == "neuron" else 0), view


def test_a_map_is_printed_on_one_sheet_with_its_labels(chromium: Any, model: Translator, tmp_path: Path) -> None:
    """Whatever its size; a browser puts a picture that does not fit below the text onto the next sheet alone."""
    path = tmp_path / "long.html"
    path.write_text(self_contained([model.inspect("one two " * 60, "one two")], chosen=Chosen((0,), (0,))), "utf-8")
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, color_scheme="dark")
    seen = Seen(context.new_page())
    seen.page.goto(path.as_uri())
    place = go(seen, "heatmap", block="encoder.self").locator(".map")
    assert place.bounding_box()["height"] > 1000
    assert "the lighter a cell" in seen.page.inner_text(".about")
    seen.page.emulate_media(media="print")
    seen.page.wait_for_function("document.querySelector('.map').offsetHeight < 700")
    assert place.bounding_box()["width"] < 700
    assert place.evaluate("element => getComputedStyle(element).breakInside") == "avoid"
    assert b"/Count 1" in seen.page.pdf()
    context.close()


def test_a_long_text(look: Look, model: Translator, tmp_path: Path) -> None:
    """512 tokens: first paint and a change of head, without a bound on time; `benchmarks/page_speed.py` measures."""
    text = " ".join(WORDS[place % 5] for place in range(511))
    path = tmp_path / "long.html"
    path.write_text(self_contained([model.inspect(text, "one")], chosen=Chosen((0,), (0, 1))), "utf-8")
    seen = look(path)
    for view in ("heatmap", "heads", "neuron", "model"):
        go(seen, view, block="encoder.self", layer=0, head=1, query=300)
        assert seen.overflow() <= 0, view
    assert go(seen, "heatmap", block="encoder.self", head=1).locator(".cells").get_attribute("data-rows") == "512"
    assert seen.complaints == []
