"""The page of `regard inspect`: its data, its file, its server."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

from regard.cli_inspect import further_sources, numbers, output
from regard.data.columns import Column
from regard.decode.translate import Translator
from regard.errors import ConfigError, RegardError
from regard.inspect import Attention, Inspection, Side
from regard.inspect import html as page_html
from regard.inspect.comparing import counterparts, turns
from regard.inspect.html import built, self_contained
from regard.inspect.likeness import likenesses
from regard.inspect.packing import OVERVIEW, Chosen, block, block_bytes, blocks_of, described, small
from regard.inspect.record import of_words
from regard.models import ARCHITECTURES, Shapes
from regard.report.attention_map import attention_picture
from regard.serve.inspecting import MOST_BODY, MOST_CHARACTERS, POLICY, inspection_app
from regard.text.codecs import WordCodec
from regard.text.tokenizer import Tokenizer
from tests.encoders import pieces, text_encoder

ROOT = Path(__file__).parents[2]
HOSTILE = ["</script><img/src=x/onerror=alert(1)>", "<!--", "<script>", "שלום", "🙂", "&lt;", '"\\', "x" * 5000]
WORDS = [*HOSTILE, "a", "b", "c"]


def translator(**settings: Any) -> Translator:
    torch.manual_seed(3)
    codec = WordCodec(WORDS)
    config = ARCHITECTURES["transformer"].config(
        **{"width": 12, "heads": 3, "feedforward": 11, "encoder_layers": 2, "decoder_layers": 1} | settings
    )
    model: Any = ARCHITECTURES["transformer"].build(config, Shapes({"source": codec.size, "target": codec.size})).eval()
    return Translator(model=model, tokenizer=Tokenizer.pair(codec, codec))


@pytest.fixture(scope="module")
def inspected() -> Inspection:
    return translator().inspect(" ".join(["a", "b", *HOSTILE]), "a c b")


# What is built


def sources() -> list[Path]:
    web = ROOT / "web"
    own = [path for path in (web / "src").rglob("*") if path.is_file()]
    return [*own, *(web / name for name in ("package.json", "package-lock.json", "vite.config.js"))]


def test_the_page_is_built_from_its_sources() -> None:
    """By the hash that the build writes in front of each file: no Node is needed to tell."""
    named = {path.relative_to(ROOT / "web").as_posix(): path.read_bytes() for path in sources()}
    digest = hashlib.sha256(b"".join(f"{name}\n".encode() + named[name] for name in sorted(named))).hexdigest()
    for name in ("page.js", "page.css"):
        found = re.match(r"/\* regard; built by web/ from sources (\w+) \*/", built(name))
        assert found is not None
        assert found[1] == digest, f"{name} is not built from web/: run make page"


@pytest.mark.verify
def test_the_build_can_be_repeated(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, so the page cannot be built anew")
    copy = shutil.copytree(ROOT / "web", tmp_path / "web", ignore=shutil.ignore_patterns("node_modules"))
    (tmp_path / "regard" / "inspect").mkdir(parents=True)
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=copy, check=True, timeout=300)
    subprocess.run(["npm", "run", "build"], cwd=copy, check=True, timeout=300)
    for name in ("page.js", "page.css"):
        assert (tmp_path / "regard" / "inspect" / "built" / name).read_text("utf-8") == built(name)


def test_the_page_is_small_and_names_no_address() -> None:
    files = built("page.js") + built("page.css")
    assert len(gzip.compress(files.encode())) < 150_000
    assert set(re.findall(r"\bhttps?://[^\s\"'`)]+", files)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
        "http://www.w3.org/1999/xhtml",
        "http://www.w3.org/1998/Math/MathML",
    }
    own = "".join(path.read_text("utf-8") for path in (ROOT / "web" / "src").rglob("*.js"))
    assert "innerHTML" not in own
    assert "InnerHTML" not in own
    assert "eval(" not in files
    assert "</script" not in files.lower()


# The data


def test_a_block_holds_what_was_recorded(inspected: Inspection) -> None:
    for attention in inspected.attentions:
        queries, keys, width = len(attention.queries), len(attention.keys), attention.q.shape[-1]
        for head in range(attention.heads):
            values = np.frombuffer(block(attention, str(head)), "<f4")
            weights, q, k = np.split(values, [queries * keys, queries * keys + queries * width])
            assert (weights.reshape(queries, keys) == attention.weights[head]).all()
            assert (q.reshape(queries, width) == attention.q[head]).all()
            assert (k.reshape(keys, width) == attention.k[head]).all()
        if attention.mask is not None:
            bits = np.unpackbits(np.frombuffer(block(attention, "mask"), np.uint8))[: queries * keys]
            assert (bits.reshape(queries, keys) == attention.mask[0]).all()
    assert inspected["decoder.0.self"].mask is not None
    assert inspected["encoder.0.self"].mask is None


def test_small_pictures() -> None:
    weights = np.zeros((100, 7), np.float32)
    weights[99, 3], weights[0, 0] = 1.0, 0.5
    picture = small(weights)
    assert picture.shape == (OVERVIEW, 7)
    assert picture[-1, 3] == 255
    assert picture[0, 0] == 128
    assert np.count_nonzero(picture) == 2
    assert small(weights[:2]).shape == (2, 7)


def test_chosen_layers_and_heads(inspected: Inspection) -> None:
    chosen = Chosen(only_layers=(1,), only_heads=(0, 2))
    assert [name for name, _ in blocks_of(inspected, chosen)][:3] == [
        f"encoder.1.self/{n}" for n in ("0", "2", "overview")
    ]
    assert [each["shown"] for each in described(inspected, "d", chosen)["attentions"]] == [[0, 2]]
    assert block_bytes(inspected, chosen) < block_bytes(inspected)
    with pytest.raises(ConfigError, match="--layers 7: the layers of this model are 0,1"):
        self_contained([inspected], chosen=Chosen(only_layers=(7,)))
    with pytest.raises(ConfigError, match="--heads 3: the heads of this model are 0,1,2"):
        self_contained([inspected], chosen=Chosen(only_heads=(3,)))


def test_the_estimate_of_a_pages_size_bounds_it(inspected: Inspection) -> None:
    size = sum(len(make()) for _, make in blocks_of(inspected))
    assert size <= block_bytes(inspected) <= size + len(inspected.attentions) * 3 * OVERVIEW**2 + 99


def test_a_page_that_is_too_large_is_refused(inspected: Inspection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_html, "MOST_BYTES", 1000)
    with pytest.raises(RegardError, match=r"choose fewer layers and heads \(--layers 0,5 --heads 0-3\)"):
        self_contained([inspected])


def test_numbers_and_files() -> None:
    assert numbers("heads", "0,2-4") == (0, 2, 3, 4)
    assert numbers("heads", None) is None
    for bad in ("", "a", "3-1", "-1", "0-99999"):
        with pytest.raises(ConfigError, match=r"--heads .* should be numbers from 0"):
            numbers("heads", bad)
    assert output(None, None) == (Path("inspect.html"), "html")
    assert output(None, "json") == (Path("inspect.json"), "json")
    with pytest.raises(ConfigError, match=r"page\.pdf ends in \.pdf"):
        output(Path("page.pdf"), None)
    with pytest.raises(ConfigError, match="--format 'gif'"):
        output(None, "gif")
    with pytest.raises(ConfigError, match="there is no folder"):
        output(Path("nowhere/page.html"), None)


# Several sources


def reader_of_three() -> Translator:
    columns = (Column("source"), Column("german"), Column("image", kind="vectors"), Column("target"))
    return replace(translator(), columns=columns)


def test_further_sources_are_given_once_for_all_texts_or_for_each(tmp_path: Path) -> None:
    model, image = reader_of_three(), str(tmp_path / "image.npy")
    np.save(image, np.ones((1, 2, 5)))
    one, other = further_sources(model, Path("run"), ["eins", image], 2)
    assert one is other
    assert one["also"][0] == "eins"
    assert np.shape(one["also"][1]) == (1, 2, 5)
    found = further_sources(model, Path("run"), ["eins", image, "zwei", image], 2)
    assert [each["also"][0] for each in found] == ["eins", "zwei"]
    assert further_sources(translator(), Path("run"), [], 3) == [{}, {}, {}]
    assert further_sources(text_encoder(pieces()), Path("run"), [], 1) == [{}]


@pytest.mark.parametrize(
    ("given", "texts", "why"),
    [
        ([], 1, r"run also reads german, image, but no further source is given; give each of them with also, in this"),
        (["a"], 1, r"but 1 further source is given; give each of them with also, in this order$"),
        (["a", "b", "c"], 2, r"but 3 further sources are given; .* in this order, once for all texts or for each text"),
        ([" ", "few.npy"], 1, r"--also for german is blank; give it a text"),
        (
            ["a", "few.npy"],
            1,
            r"few\.npy has vectors of 3 sentences, and image is read beside one text; give a file of",
        ),
        (["a", "none.npy"], 1, r"none\.npy does not exist"),
    ],
)
def test_further_sources_that_do_not_fit(
    given: list[str], texts: int, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("few.npy", np.ones((3, 2, 5)))
    with pytest.raises(RegardError, match=why):
        further_sources(reader_of_three(), Path("run"), given, texts)


def test_a_model_of_one_source_has_no_further_ones() -> None:
    for model in (translator(), text_encoder(pieces())):
        with pytest.raises(ConfigError, match=r"^run reads one source; leave --also out$"):
            further_sources(model, Path("run"), ["a"], 1)


# Two texts


def attention_of(block: str, words: str, looks: dict[str, str]) -> Inspection:
    """One head that looks with 0.8 from each word to another, and with what is left at the first."""
    side = of_words("source", words.split())
    weights = np.zeros((1, len(side), len(side)), np.float32)
    weights[0, :, 0] = 1.0
    for word, at in looks.items():
        row = side.tokens.index(word)
        weights[0, row, 0], weights[0, row, side.tokens.index(at)] = 0.2, 0.8
    empty = np.zeros((1, len(side), 2), np.float32)
    return Inspection(words, sides=(side,), attentions=(Attention(block, side, side, empty, empty, weights, weights),))


def test_what_tells_two_texts_apart() -> None:
    tired = attention_of("encoder.1.self", "the animal and street it is tired .", {"it": "animal", "tired": "is"})
    wide = attention_of("encoder.1.self", "the animal and street it is wide .", {"it": "street", "wide": "is"})
    (turn,) = turns(tired, wide)
    assert (turn.words, turn.at, turn.heads) == (("it", "it"), ("animal", "street"), [("encoder.1.self", 0)])
    assert turn.sureness == pytest.approx(0.8)
    assert not turn.decides  # it is in both
    assert str(turn) == (
        "“it” looks at “animal” (0.80) in the first text, and at “street” (0.80) in the second: "
        "encoder self, layer 1, head 0"
    )
    other = attention_of("encoder.1.self", "the animal and street it is wide .", {"wide": "street"})
    first, second = turns(tired, other)
    assert first.decides  # where the texts differ comes first
    assert "“tired” looks at “is” (0.80) in the first text, and “wide” at “street”" in str(first)
    assert (second.words, second.at) == (("it", "it"), ("animal", "the"))
    # What only one of the texts has is no place to turn to, and punctuation is none either.
    for at in ("wide", "."):
        elsewhere = attention_of("encoder.1.self", "the animal and street it is wide .", {"it": at, "wide": "is"})
        assert turns(tired, elsewhere) == []
    assert turns(tired, tired) == []
    assert turns(tired, attention_of("decoder.0.self", "the", {})) == []


def with_heads(*layers: Inspection) -> Inspection:
    """One inspection whose heads are those of several."""
    (first,) = (each.attentions[0] for each in layers[:1])
    together = {
        name: np.concatenate([getattr(each.attentions[0], name) for each in layers])
        for name in ("q", "k", "scores", "weights")
    }
    return replace(layers[0], attentions=(replace(first, **together),))


def test_two_heads_are_named_where_no_single_one_tells_two_texts_apart() -> None:
    """One looks at the animal, where it is meant, the other at the street."""

    def text(adjective: str, *looks: dict[str, str]) -> Inspection:
        words = f"the animal and street it is {adjective}"
        return with_heads(*(attention_of("decoder.1.cross", words, each) for each in looks))

    tired, wide = text("tired", {"it": "animal"}, {"it": "tired"}), text("wide", {"it": "wide"}, {"it": "street"})
    turn = turns(tired, wide)[0]
    assert turn.heads == [("decoder.1.cross", 0), ("decoder.1.cross", 1)]
    assert str(turn) == (
        "“it” looks at “animal” (0.80) in the first text (decoder cross, layer 1, head 0), "
        "and at “street” (0.80) in the second (decoder cross, layer 1, head 1)"
    )
    wide = text("wide", {"it": "street"}, {"it": "street"})
    assert turns(tired, wide)[0].heads == [("decoder.1.cross", 0)]  # one is as sure


def test_words_that_correspond() -> None:
    def pairs(one: str, other: str) -> list[tuple[int, int]]:
        return counterparts(of_words("a", one.split()), of_words("b", other.split()))

    assert pairs("it was too tired .", "it was too wide .") == [(place, place) for place in range(5)]
    assert pairs("a b c", "a c") == [(0, 0), (2, 1)]
    assert pairs("x y", "z") == []


# The file


class Elements(HTMLParser):
    """The elements of a page, and the text of its scripts, as a browser reads them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: dict[str, str] = {}
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.inside = str(dict(attrs).get("id", "")) if tag == "script" else ""

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.scripts[self.inside] = self.scripts.get(self.inside, "") + data


def test_hostile_tokens_stay_data(inspected: Inspection) -> None:
    elements = Elements()
    elements.feed(self_contained([inspected], title='</title><img src="x">'))
    blocks = len(list(blocks_of(inspected)))
    assert elements.tags.count("script") == 2 + blocks
    assert elements.tags.count("img") == 0
    data = json.loads(elements.scripts["inspection"])
    assert data["documents"][0]["sides"][0]["tokens"][2:10] == HOSTILE
    assert data["documents"][0]["sides"][0]["direction"] == "ltr"


def test_in_a_notebook(inspected: Inspection) -> None:
    shown = inspected._repr_html_()
    elements = Elements()
    elements.feed(shown)
    assert elements.tags == ["iframe"]


def test_a_picture(inspected: Inspection) -> None:
    assert attention_picture(inspected, "png").startswith(b"\x89PNG")
    assert b"<svg" in attention_picture(inspected, "svg", block="encoder.self", layer=1, head=2)
    with pytest.raises(ConfigError, match=r"--block 'encoder' is not one of encoder\.self, decoder"):
        attention_picture(inspected, "png", block="encoder")
    with pytest.raises(ConfigError, match=r"--layer 2: the layers of encoder\.self are 0, 1"):
        attention_picture(inspected, "png", block="encoder.self", layer=2)
    with pytest.raises(ConfigError, match=r"--head 3: decoder\.cross has the heads 0 to 2"):
        attention_picture(inspected, "png", head=3)
    with pytest.raises(ConfigError, match="no attention to draw"):
        attention_picture(Inspection("a"), "png")


# The same word in several texts


def test_cosines_of_a_word() -> None:
    side = Side("source", ("It", "is", "it.", "</s>"), ("It", "is", "it."), (0, 1, 2, -1))
    states = np.array([[[1, 0], [5, 5], [1, 0], [9, 9]], [[1, 0], [5, 5], [1, 1], [9, 9]]], np.float32)
    (found,) = likenesses([Inspection("It is it.", sides=(side,), states={"encoder": states})])
    assert found.word == "it"
    assert found.places == ((0, 0), (0, 2))
    assert found.cosines[:, 0, 1] == pytest.approx([1.0, 0.5**0.5])
    assert likenesses([Inspection("a a", sides=(side,))]) == []


def test_words_in_two_texts_come_first() -> None:
    model = translator()
    found = likenesses([model.inspect("a a b", "a"), model.inspect("b c", "a")])
    assert [each.word for each in found] == ["b", "a"]
    assert np.allclose(np.diagonal(found[0].cosines, axis1=1, axis2=2), 1, atol=1e-5)


# The server


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(inspection_app(translator(), title="t"), base_url="http://127.0.0.1")


def test_a_server_gives_what_inspect_gives(client: TestClient, inspected: Inspection) -> None:
    answer = client.post("/api/inspections", json={"texts": [inspected.text], "target": "a c b"})
    assert answer.status_code == 200
    (found,) = answer.json()["documents"]
    assert found["output"] == "a c b"
    for name, make in blocks_of(inspected):
        assert client.get(f"/api/inspections/{found['id']}/{name}").content == make()
    assert client.get(f"/api/inspections/{found['id']}/encoder.0.self/9").status_code == 404
    assert client.get("/api/inspections/0000/encoder.0.self/0").status_code == 404


def test_a_server_is_closed(client: TestClient) -> None:
    for path in ("/", "/page.js", "/page.css", "/nothing"):
        answer = client.get(path)
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert "<script>" not in client.get("/").text
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert client.get(path).status_code == 404
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400


def test_the_page_of_an_encoder_asks_for_a_second_text(client: TestClient) -> None:
    own = TestClient(inspection_app(text_encoder(pieces())), base_url="http://127.0.0.1")
    assert "data-pairs" in own.get("/").text
    assert "data-pairs" not in client.get("/").text
    found = own.post("/api/inspections", json={"texts": ["the apple"], "target": "a fruit"}).json()
    assert found["documents"][0]["sides"][0]["parts"] == [0, 0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({}, "a list of strings"),
        ({"texts": "a"}, "a list of strings"),
        ({"texts": [3]}, "a list of strings"),
        ([], "a list of strings"),
        ({"texts": ["a"], "target": 3}, '"target" is a string'),
        ({"texts": ["a"] * 9}, "9 texts are too many"),
        ({"texts": ["a" * (MOST_CHARACTERS + 1)]}, "10,001 characters; give at most 10,000"),
        ({"texts": [" "]}, "the sentence is blank"),
        ({"texts": ["a" * MOST_BODY]}, "more than 100,000 bytes"),
    ],
)
def test_bad_requests(client: TestClient, body: Any, why: str) -> None:
    answer = client.post("/api/inspections", json=body)
    assert answer.status_code == 422
    assert why in answer.json()["error"]


def test_requests_that_are_no_json(client: TestClient) -> None:
    assert "content-type" in client.post("/api/inspections", content=b"{}").json()["error"]
    broken = client.post("/api/inspections", content=b"{", headers={"content-type": "application/json"})
    assert broken.json()["error"] == "the request is not JSON"


def test_the_server_forgets_what_is_old() -> None:
    client = TestClient(inspection_app(translator()), base_url="http://127.0.0.1")
    first = client.post("/api/inspections", json={"texts": ["a"], "target": "b"}).json()["documents"][0]["id"]
    for _ in range(2):
        client.post("/api/inspections", json={"texts": ["a"] * 8, "target": "b"})
    assert client.get(f"/api/inspections/{first}/encoder.0.self/0").status_code == 404
