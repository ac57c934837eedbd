"""A small world for the pages: files with the names that their commands use, and a run that was trained."""

import gzip
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.docs.markdown import Document
from tests.docs.shell import Shell
from tests.docs.substitutions import OWN, SMALL
from tests.e2e.toolbox import chosen
from tests.published import write_bert, write_good

PUBLISHED: dict[str, Callable[[Path], object]] = {
    "models/bert": lambda folder: write_bert(folder, "BertForMaskedLM"),
    "models/gpt2": lambda folder: write_good(folder, "gpt2"),
}
"""Names under which pages speak of published weights."""
POLARITY = """
task = "classify"
[data]
train = [{ text = "polarity.text", label = "polarity.label" }]
[model]
architecture = "encoder"
"""
EMPTY = frozenset({OWN})
"""Pages that bring all that they use."""

PAIRS = [
    ("A dog runs across the grass.", "Ein Hund rennt über das Gras."),
    ("Two women sit on a bench.", "Zwei Frauen sitzen auf einer Bank."),
    ("The old man reads his newspaper.", "Der alte Mann liest seine Zeitung."),
    ("Children play football in the park.", "Kinder spielen Fußball im Park."),
    ("Somebody waits for the last train.", "Jemand wartet auf den letzten Zug."),
    ("Our cat sleeps on the warm roof.", "Unsere Katze schläft auf dem warmen Dach."),
    ("He paints the wall of the house.", "Er streicht die Wand des Hauses."),
    ("A girl jumps into the cold water.", "Ein Mädchen springt ins kalte Wasser."),
    ("They sell fresh bread at the market.", "Sie verkaufen frisches Brot auf dem Markt."),
    ("The bridge crosses a narrow river.", "Die Brücke überquert einen schmalen Fluss."),
    ("My brother repairs an old bicycle.", "Mein Bruder repariert ein altes Fahrrad."),
    ("It will rain again in the evening.", "Am Abend wird es wieder regnen."),
]
PLACES = ("kitchen", "garden", "station", "library", "museum", "harbour", "theatre", "village", "castle", "forest")
ORTE = ("Küche", "Garten", "Bahnhof", "Bücherei", "Museum", "Hafen", "Theater", "Dorf", "Schloss", "Wald")
RUNS = ("RUN", "runs/first", "runs/second", "runs/demo", "runs/m30k", "runs/base", "runs/mine")
"""Names under which pages speak of a run; a page that trains one itself finds its place free."""
ENCODER = "minilm"
"""The name under which they speak of published weights."""


def pairs() -> list[tuple[str, str]]:
    """Distinct, and nothing that the doctor would complain about."""
    more = [
        (f"{source} Now we walk to the {place}.", f"{target} Nun gehen wir zum Ort: {ort}.")
        for source, target in PAIRS[:8]
        for place, ort in zip(PLACES, ORTE, strict=True)
    ]
    return PAIRS + more


def write_sides(folder: Path, name: str, some: Sequence[tuple[str, str]], *, packed: bool = False) -> None:
    """`name`.en and `name`.de, gzip'd on request."""
    folder.mkdir(parents=True, exist_ok=True)
    for language, lines in zip(("en", "de"), zip(*some, strict=True), strict=True):
        data = "".join(f"{line}\n" for line in lines).encode()
        path = folder / f"{name}.{language}"
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(data)) if packed else path.write_bytes(data)


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """One column, gzip'd."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))


def write_corpora(folder: Path) -> None:
    """What README and docs name: a corpus of one's own, text to translate, and the folder DATA of the recipes."""
    for name in ("corpus", "train", "a"):
        write_sides(folder, name, pairs())
    write_sides(folder, "valid", PAIRS[3:9])
    write_sides(folder, "test", PAIRS[:5])
    (folder / "app.po").write_text('msgid ""\nmsgstr "Language: de\\n"\n\nmsgid "A dog runs."\nmsgstr ""\n')
    words = sorted({word for source, _ in PAIRS for word in source.split()})
    (folder / "glove.txt").write_text("".join(f"{word} 0.5 -0.25 {place / 64}\n" for place, word in enumerate(words)))
    (folder / "in.txt").write_text("".join(f"{source}\n" for source, _ in PAIRS[:3]))
    for name, some in (("train", pairs()), ("val", PAIRS[3:9]), ("test_2016_flickr", PAIRS[:5])):
        data = "".join(f"{target.upper()}\n" for _, target in some).encode()  # no French, but a third language
        (folder / "DATA" / "multi30k").mkdir(parents=True, exist_ok=True)
        (folder / "DATA" / "multi30k" / f"{name}.fr.gz").write_bytes(gzip.compress(data))
    for corpus, valid, test in (("multi30k", "val", "test_2016_flickr"), ("multi30k_bpe", "valid", "test.2016")):
        for name, some in (("train", pairs()), (valid, PAIRS[3:9]), (test, PAIRS[:5])):
            write_sides(folder / "DATA" / corpus, name, some, packed=True)
    write_lines(folder / "DATA" / "tiny_shakespeare" / "input.txt.gz", [source for source, _ in pairs()])
    for part in ("train", "valid"):
        write_lines(folder / "DATA" / "tatoeba_en_de" / f"{part}.en.gz", [source for source, _ in pairs()])
    asked = [
        line for place in PLACES for line in (f"ENTY:word What is a {place} ?", f"LOC:city Where is the {place} ?")
    ]
    write_lines(folder / "DATA" / "trec" / "train.txt.gz", asked)
    tree = "(S (NP (DT The) (NN {place})) (VP (VBZ is) (ADJP (JJ old))) (. .))"
    for part in ("train", "dev"):
        trees = [tree.replace("{place}", place) for place in PLACES]
        write_lines(folder / "DATA" / "craft_treebank" / f"{part}.trees.gz", trees)
    rows = [(f"{source} {label}", label) for source, _ in PAIRS for label in ("good", "bad")]
    for column, lines in zip(("text", "label"), zip(*rows, strict=True), strict=True):
        (folder / "DATA" / f"polarity.{column}").write_text("".join(f"{line[:18]}\n" for line in lines))
    (folder / "polarity.toml").write_text(POLARITY)
    run_well(f"regard corpus convert {folder}/a.en {folder}/a.de {folder}/memory.tmx")


def run_well(command: str) -> None:
    shell = Shell()
    said = shell.run(command)
    assert shell.code == 0, said


def train_once(folder: Path) -> Path:
    """A run that has ended; it learns nothing, in no time."""
    write_corpora(folder)
    few_steps = {"train.max_steps": 4, "train.validate_every": 4, "train.checkpoint_every": 2, "train.average": 2}
    settings = " ".join(chosen(SMALL | few_steps | {"tokenizer.size": 400}))
    files = f"--source {folder}/corpus.en --target {folder}/corpus.de"
    run_well(f"regard train {files} --out {folder}/RUN {settings}")
    return folder / "RUN"


def write_encoder(folder: Path) -> None:
    """In place of published weights: an encoder with random ones, which reads bytes."""
    from regard.text.codecs import ByteCodec
    from regard.text.tokenizer import Tokenizer
    from tests.encoders import save_run

    save_run(folder, Tokenizer({"text": ByteCodec()}), max_positions=200)


def furnish(folder: Path, page: Document, run: Path) -> None:
    """The folder in which a page's commands run."""
    folder.mkdir(parents=True, exist_ok=True)
    if page.path in EMPTY:
        return
    for path in run.parent.iterdir():
        if path != run:
            shutil.copytree(path, folder / path.name) if path.is_dir() else shutil.copy(path, folder)
    for name, write in PUBLISHED.items():
        if name in page.text:
            write(folder / name)
    trained_here = re.findall(r"regard train (?:recipes/|--source )[^\n]*--out (\S+)", page.text)
    for name in RUNS:
        if name in page.text and name not in trained_here:
            shutil.copytree(run, folder / name)
    if ENCODER in page.text:
        write_encoder(folder / ENCODER)
