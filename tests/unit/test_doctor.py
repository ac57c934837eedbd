"""The doctor: broken corpora, each with the finding, line and column it must give, and clean ones with none."""

import gzip
import json
from itertools import zip_longest
from pathlib import Path

import pytest
from typer.testing import CliRunner

from regard.cli_corpus import corpus as command
from regard.errors import CorpusError
from regard.text.corpus import CorpusFiles, read_pairs
from regard.text.doctor import KINDS, check
from regard.text.doctor.characters import one_script, repaired
from regard.text.doctor.fix import write_fixed
from regard.text.doctor.html import report_html
from regard.text.formats import FORMATS, write_pairs

GERMAN = [
    ("The house on the corner was built in 1911.", "Das Haus an der Ecke wurde 1911 gebaut."),
    ("Good morning!", "Guten Morgen!"),
    ("She said: “I will be back at 3 pm.”", "Sie sagte: „Ich bin um 15 Uhr zurück.“"),
    ("Where did you buy these shoes?", "Wo hast du diese Schuhe gekauft?"),
    ("The company sold 1,250,000 phones last year.", "Das Unternehmen verkaufte letztes Jahr 1.250.000 Telefone."),
    ("I don't know.", "Ich weiß es nicht."),
    ("Two children are playing football in the park.", "Zwei Kinder spielen im Park Fußball."),
    ("Mrs. Schneider lives in Berlin with her three cats.", "Frau Schneider wohnt mit ihren drei Katzen in Berlin."),
    ("It was raining, so we stayed at home.", "Es regnete, deshalb blieben wir zu Hause."),
    ("The price rose by 4.5% (from €20 to €20.90).", "Der Preis stieg um 4,5 % (von 20 € auf 20,90 €)."),
    ("Can you help me with my homework?", "Kannst du mir bei den Hausaufgaben helfen?"),
    ("No.", "Nein."),
    ("He has been working here since 2004.", "Er arbeitet seit 2004 hier."),
    ("The weather in Hamburg is better than expected.", "Das Wetter in Hamburg ist besser als erwartet."),
    ("Please close the door and open the window.", "Bitte schließen Sie die Tür und öffnen Sie das Fenster."),
    ("My brother's train arrives at 10:45.", "Der Zug meines Bruders kommt um 10:45 Uhr an."),
    ("What a beautiful day!", "Was für ein schöner Tag!"),
    ("There are 365 days in a year; a leap year has 366.", "Ein Jahr hat 365 Tage; ein Schaltjahr hat 366."),
    ("We are looking for a room with a view of the lake.", "Wir suchen ein Zimmer mit Blick auf den See."),
    ("The doctor told him to drink more water.", "Der Arzt sagte ihm, er solle mehr Wasser trinken."),
    ("Is there a pharmacy nearby?", "Gibt es hier in der Nähe eine Apotheke?"),
    ("Their flat has four rooms and a small kitchen.", "Ihre Wohnung hat vier Zimmer und eine kleine Küche."),
    ("OK", "OK"),
    ("The museum opens at 9 and closes at 17:30.", "Das Museum öffnet um 9 und schließt um 17:30 Uhr."),
    ("Nobody was injured in the accident on Monday.", "Bei dem Unfall am Montag wurde niemand verletzt."),
    ("I would like a cup of tea without sugar.", "Ich hätte gern eine Tasse Tee ohne Zucker."),
    ("Call me on 030 123456 if you are late.", "Ruf mich unter 030 123456 an, wenn du zu spät kommst."),
    ("The old bridge will be closed until spring.", "Die alte Brücke bleibt bis zum Frühling gesperrt."),
    ("Thank you very much for your letter.", "Vielen Dank für Ihren Brief."),
    ("Peter and Maria were married in Vienna in 1987.", "Peter und Maria haben 1987 in Wien geheiratet."),
    ("The teacher explained the rule once more.", "Die Lehrerin erklärte die Regel noch einmal."),
    ("See you tomorrow!", "Bis morgen!"),
]
FRENCH = [
    ("The train leaves at 8:15.", "Le train part à 8 h 15."),
    ("“Are you coming?” she asked.", "« Tu viens ? » demanda-t-elle."),
    ("It costs €1,299.", "Cela coûte 1 299 €."),
    ("Yes.", "Oui."),
    ("He didn't see the dog's bowl.", "Il n'a pas vu l'écuelle du chien."),
    ("Today's lunch: soup, bread & cheese", "Au déjeuner aujourd’hui : soupe, pain et fromage"),
    ("In the 1990s, about 70% of them voted.", "Dans les années 1990, environ 70 % d’entre eux ont voté."),
    ("Hurry up!", "Dépêchez-vous !"),
    ("Côte d'Ivoire", "Côte d'Ivoire"),
    ("I have already eaten, thank you.", "J'ai déjà mangé, merci."),
]
RUSSIAN = [
    ("The VIPs arrived on Friday.", "VIPы приехали в пятницу."),
    ("He works in IT.", "Он работает в IT-компании."),
    ("Vitamin C is healthy.", "Витамин C полезен."),
    ("Angle α and voltage ΔU", "Угол α и напряжение ΔU"),
]


def write(folder: Path, pairs: list[tuple[str, str]], name: str = "a") -> tuple[Path, Path]:
    paths = (folder / f"{name}.en", folder / f"{name}.de")
    for path, side in zip(paths, zip(*pairs, strict=True) if pairs else ([], []), strict=True):
        path.write_bytes("".join(f"{line}\n" for line in side).encode("utf-8", "surrogateescape"))
    return paths


def with_source(line: int, text: str) -> list[tuple[str, str]]:
    return [(text if n == line else source, target) for n, (source, target) in enumerate(GERMAN, start=1)]


def with_target(line: int, text: str) -> list[tuple[str, str]]:
    return [(source, text if n == line else target) for n, (source, target) in enumerate(GERMAN, start=1)]


def with_pair(line: int, source: str, target: str) -> list[tuple[str, str]]:
    return [*GERMAN[: line - 1], (source, target), *GERMAN[line:]]


def parted(sources: list[tuple[str, str]], targets: list[tuple[str, str]]) -> list[tuple[str | None, str | None]]:
    return list(zip_longest([source for source, _ in sources], [target for _, target in targets]))


RAW_FC = "\udcfc"  # the byte 0xFC, which is no UTF-8
LONG = "long " * 500

# name: (pairs, kind, side, line, column)
BROKEN = {
    "source empty": (with_source(4, ""), "empty", "en", 4, 1),
    "target empty": (with_target(32, ""), "empty", "de", 32, 1),
    "both empty": (with_pair(5, "", ""), "empty", "en", 5, 1),
    "only spaces": (with_source(2, " \t "), "empty", "en", 2, 1),
    "only a no-break space": (with_target(3, "\u00a0\u3000"), "empty", "de", 3, 1),
    "NUL": (with_source(6, "I don\0t know."), "nul", "en", 6, 6),
    "NUL after an umlaut": (with_target(6, "weiß\0 es nicht"), "nul", "de", 6, 5),
    "control character": (with_source(7, "Two\x01 children are playing football."), "control", "en", 7, 4),
    "escape sequence": (with_target(2, "Guten \x1b[0mMorgen!"), "control", "de", 2, 7),
    "delete": (with_target(2, "Güten\x7f Morgen!"), "control", "de", 2, 6),
    "C1 control of Windows quotes": (with_source(6, "I don\x92t know."), "control", "en", 6, 6),
    "not UTF-8": (with_target(4, f"Wo hast d{RAW_FC} diese Schuhe gekauft?"), "invalid_utf8", "de", 4, 10),
    "not UTF-8 after umlauts": (with_target(14, f"Für Größe z{RAW_FC}"), "invalid_utf8", "de", 14, 12),
    "cut UTF-8": (with_source(2, "Good m\udcc3"), "invalid_utf8", "en", 2, 7),
    "surrogates in UTF-8": (with_source(2, "Good \udced\udca0\udc80!"), "invalid_utf8", "en", 2, 6),
    "byte order mark": (with_source(1, "\ufeff" + GERMAN[0][0]), "byte_order_mark", "en", 1, 1),
    "byte order mark inside": (with_target(9, "Es \ufeffregnete, deshalb blieben wir da."), "invisible", "de", 9, 4),
    "zero width space": (with_source(9, "It was\u200b raining, so we stayed."), "invisible", "en", 9, 7),
    "direction override": (with_source(9, "It was \u202eraining, so we stayed."), "invisible", "en", 9, 8),
    "carriage return inside": (with_source(9, "It was\rraining, so we stayed."), "line_break", "en", 9, 7),
    "line separator": (with_target(9, "Es regnete,\u2028deshalb blieben wir da."), "line_break", "de", 9, 12),
    "next line": (with_target(9, "Es regnete,\x85deshalb blieben wir da."), "line_break", "de", 9, 12),
    "form feed": (with_source(9, "\x0cIt was raining, so we stayed."), "line_break", "en", 9, 1),
    "over-long": (with_pair(8, LONG, LONG.replace("long", "lang")), "too_long", "en", 8, 1),
    "repeated pair": ([*GERMAN, GERMAN[6]], "duplicate", "en", 33, 1),
    "repeated with other blanks": ([*GERMAN, (" " + GERMAN[6][0], GERMAN[6][1])], "duplicate", "en", 33, 1),
    "swapped": (with_pair(19, *reversed(GERMAN[18])), "swapped", "en", 19, 1),
    "swapped at the end": ([*GERMAN, (GERMAN[14][1], GERMAN[14][0])], "swapped", "en", 33, 1),
    "untranslated": (with_target(25, GERMAN[24][0]), "identical", "en", 25, 1),
    "not translated but changed": (
        with_target(28, "The old bridges are closed until the spring of the next year."), "wrong_language", "de", 28, 1,
    ),
    "target far too long": (with_target(12, " ".join(target for _, target in GERMAN[:3])), "length_ratio", "en", 12, 1),
    "target far too short": (with_target(18, "Ja."), "length_ratio", "en", 18, 1),
    "other numbers": (with_target(13, "Er arbeitet seit 1998 hier."), "numbers", "en", 13, 32),
    "other telephone": (with_source(27, "Call me on 040 99887 if late, please."), "numbers", "en", 27, 12),
    "Cyrillic a": (with_source(19, "We аre looking for a room with a view."), "mixed_scripts", "en", 19, 4),
    "Cyrillic o in a word": (with_target(19, "Wir suchen ein Zimmer v\u043en hier."), "mixed_scripts", "de", 19, 24),
    "Greek capital": (with_source(22, "Their flat has four rooms and Αnna's kitchen."), "mixed_scripts", "en", 22, 31),
    "replacement character": (with_target(17, "Was f\ufffdr ein schöner Tag!"), "replacement", "de", 17, 6),
    "mojibake": (with_target(17, "Was fÃ¼r ein schöner Tag!"), "mojibake", "de", 17, 6),
    "mojibake of a quote": (with_source(6, "I donâ€™t know."), "mojibake", "en", 6, 6),
    "mojibake of a space": (with_source(10, "It rose by 4.5Â\u00a0% (from €20 to €20.90)."), "mojibake", "en", 10, 15),
    "mojibake of Cyrillic": (with_source(10, "The price 4.5 20 20.90 ÐŸÑ€Ð¸Ð²ÐµÑ‚ it was"), "mojibake", "en", 10, 24),
    "entity": (with_source(15, "Please close the door &amp; open the window."), "markup", "en", 15, 23),
    "numeric entity": (with_target(17, "Was f&#252;r ein schöner Tag!"), "markup", "de", 17, 6),
    "tag on one side": (with_source(17, "What a <b>beautiful</b> day!"), "markup", "en", 17, 8),
    "a line missing": (parted(GERMAN, GERMAN[:14] + GERMAN[15:]), "unequal_counts", "en", 15, 1),
    "a line too many": (parted(GERMAN[:20] + GERMAN[21:], GERMAN), "unequal_counts", "de", 21, 1),
    "an empty line at the end": ([*GERMAN, (None, "")], "unequal_counts", "de", 33, 1),
    "the first line missing": (parted(GERMAN[1:], GERMAN), "unequal_counts", "de", 1, 1),
}  # fmt: skip


def write_uneven(folder: Path, pairs: list) -> tuple[Path, Path]:
    paths = (folder / "a.en", folder / "a.de")
    for n, path in enumerate(paths):
        lines = [pair[n] for pair in pairs if pair[n] is not None]
        path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
    return paths


@pytest.mark.parametrize("name", BROKEN)
def test_broken_corpus(tmp_path, name):
    pairs, kind, side, line, column = BROKEN[name]
    source, target = write_uneven(tmp_path, pairs)
    diagnosis = check(CorpusFiles(source, target))
    findings = [finding for kind in diagnosis.ordered() for finding in diagnosis.findings(kind)]
    first = diagnosis.findings(kind)[0] if kind in diagnosis.by_kind else findings
    assert (first.file, first.line, first.column) == (str(tmp_path / f"a.{side}"), line, column), findings
    assert {finding.kind for finding in findings} == {kind}, findings
    assert first.remedy == KINDS[kind].remedy
    assert diagnosis.harmful == (KINDS[kind].harmful_share < 1 / 33), kind


@pytest.mark.parametrize(
    "pairs",
    [GERMAN, FRENCH, [*GERMAN, *FRENCH[:0], *[(f"Item {n}", f"Posten {n}") for n in range(50)]], RUSSIAN],
    ids=["German", "French", "many short numbered lines", "Russian"],
)
def test_clean_corpus(tmp_path, pairs):
    source, target = write(tmp_path, pairs)
    diagnosis = check(CorpusFiles(source, target))
    assert not diagnosis.hits, diagnosis.summary()
    assert not diagnosis.harmful
    assert diagnosis.counts == (len(pairs), len(pairs))


def test_line_ends_of_windows_and_gzip_are_no_defect(tmp_path):
    paths = (tmp_path / "a.en.gz", tmp_path / "a.de")
    paths[0].write_bytes(gzip.compress("\r\n".join(source for source, _ in GERMAN).encode()))
    paths[1].write_bytes("".join(f"{target}\r\n" for _, target in GERMAN).encode())
    assert not check(CorpusFiles(*paths)).hits


def test_every_invalid_byte_is_counted_and_placed(tmp_path):
    pairs = [(f"{source} {RAW_FC}{RAW_FC} ö {RAW_FC}", target) for source, target in GERMAN[:9]]
    diagnosis = check(CorpusFiles(*write(tmp_path, pairs)))
    assert diagnosis.count("invalid_utf8") == 27
    assert [(f.line, f.column) for f in diagnosis.findings("invalid_utf8", 4)] == [(1, 44), (1, 45), (1, 49), (2, 15)]
    assert len(diagnosis.findings("invalid_utf8")) == 27


def test_a_shifted_stretch(tmp_path):
    targets = [target for _, target in GERMAN]
    shifted = [*targets[:6], "Das hier gehört nirgends hin.", *targets[6:25], *targets[26:]]
    diagnosis = check(CorpusFiles(*write(tmp_path, list(zip([s for s, _ in GERMAN], shifted, strict=True)))))
    found = diagnosis.findings("shifted")[0]
    assert found.line == 7
    assert "lines 7 to 25 fit" in found.message
    assert "1 line later" in found.message


def test_a_long_gap(tmp_path):
    pairs = [
        (f"This is the sentence number {n * n}, of {n}.", f"Dies ist der Satz Nummer {n * n} von {n}.")
        for n in range(900)
    ]
    source, target = write(tmp_path, pairs)
    target.write_text("".join(f"{t}\n" for n, (_, t) in enumerate(pairs) if not 400 <= n < 500))
    found = check(CorpusFiles(source, target)).findings("unequal_counts")[0]
    assert (found.file, found.line) == (str(source), 401)
    assert "100 lines from here on" in found.message
    assert "an estimate" in found.message


def test_utf16_is_recognised(tmp_path):
    source, target = write(tmp_path, GERMAN)
    source.write_bytes(source.read_text().encode("utf-16"))
    diagnosis = check(CorpusFiles(source, target))
    assert {*diagnosis.by_kind} - {"byte_order_mark"} == {"encoding"}


def test_files_that_have_each_others_name(tmp_path):
    pairs = [(target, source) for source, target in GERMAN]
    diagnosis = check(CorpusFiles(*write(tmp_path, pairs)))
    assert set(diagnosis.by_kind) == {"swapped_files"}
    assert diagnosis.harmful


def test_overlap_with_validation(tmp_path):
    files = CorpusFiles(*write(tmp_path, GERMAN))
    held_out = [("Quite new.", "Ganz neu."), GERMAN[8], (GERMAN[3][0], "Anders."), ("Different.", GERMAN[5][1])]
    diagnosis = check(files, CorpusFiles(*write(tmp_path, held_out, "valid")))
    places = {kind: [(f.file[-2:], f.line) for f in diagnosis.findings(kind)] for kind in diagnosis.by_kind}
    assert places == {"overlap": [("en", 9)], "overlap_source": [("en", 4)], "overlap_target": [("de", 6)]}
    assert f"also in {tmp_path / 'valid.en'}:2" in diagnosis.findings("overlap")[0].message
    swapped = [(target, source) for source, target in GERMAN]
    diagnosis = check(files, CorpusFiles(*write(tmp_path, swapped, "other")))
    assert "swapped_files" in diagnosis.by_kind


def test_severity_depends_on_the_share(tmp_path):
    pairs = [(f"{source} {n}", f"{target} {n}") for n in range(10) for source, target in GERMAN]
    one = check(CorpusFiles(*write(tmp_path, [*pairs, ("Nothing", "")])))
    assert (one.severity("empty"), one.harmful) == ("worth a look", False)
    crowded = check(CorpusFiles(*write(tmp_path, [*pairs, ("Beep" + "\a" * 99, "Piep")])))  # 99 in one pair of many
    assert (crowded.count("control"), crowded.severity("control")) == (99, "worth a look")
    many = check(CorpusFiles(*write(tmp_path, [*pairs, *[("Nothing", "")] * 9])))
    assert (many.severity("empty"), many.harmful) == ("harms training", True)


def test_tsv_places_are_those_of_the_file(tmp_path):
    lines = [f"{source}\t{target}" for source, target in GERMAN]
    lines[2] = "no tab"
    lines[4] = "größer\tb\tc"
    lines[5] = "I don't know.\tIch weiß\x01 es nicht."
    path = tmp_path / "a.tsv"
    path.write_text("\n".join(lines))
    diagnosis = check(CorpusFiles(path))
    places = {kind: [(f.line, f.column) for f in diagnosis.findings(kind)] for kind in diagnosis.by_kind}
    assert places == {"columns": [(3, 1), (5, 9)], "control": [(6, 23)]}


@pytest.mark.parametrize("format", [name for name in FORMATS if name not in ("tsv", "po", "xliff", "xliff2")])
def test_other_formats_are_checked_too(tmp_path, format):
    path = tmp_path / f"a.{format}"
    write_pairs(path, with_target(17, "Was f\ufffdr ein schöner Tag!"), format, ("en", "de"))
    diagnosis = check(CorpusFiles(path, format=format))
    assert [finding.column for finding in diagnosis.findings("replacement")] == [6]
    assert set(diagnosis.by_kind) == {"replacement"}


def test_a_broken_xml_file_is_a_finding_at_its_line(tmp_path):
    path = tmp_path / "a.tmx"
    write_pairs(path, GERMAN, "tmx", ("en", "de"))
    path.write_text(path.read_text().replace("Good morning!</seg>", "Good morning!</sag>"))
    diagnosis = check(CorpusFiles(path))
    assert [(f.kind, f.line) for f in diagnosis.findings("unreadable")] == [("unreadable", 6)]
    assert len(diagnosis.pairs) == 1


def test_a_cut_gzip_file_is_checked_as_far_as_it_goes(tmp_path, monkeypatch):
    monkeypatch.setattr("regard.text.corpus.BLOCK_BYTES", 512)
    source, target = write(tmp_path, GERMAN)
    source.write_bytes(gzip.compress(source.read_bytes() + bytes(range(32, 127)) * 99)[:-30])
    assert check(CorpusFiles(source, target)).findings("unreadable")[0].message.startswith(str(source))
    with pytest.raises(CorpusError, match="does not exist"):
        check(CorpusFiles(tmp_path / "nowhere", target))


@pytest.mark.parametrize(
    ("word", "single"),
    [("hоuse", "house"), ("дoм", "дом"), ("VIPы", "VIPы"), ("TNFα", "TNFα"), ("Αnna", "Anna"), ("Straße", "Straße")],
)
def test_one_script(word, single):
    assert one_script(word) == single


def test_repairs():
    text = "I donâ€™t\u200b know\x01 what\u2028\x85it &lt;is&gt; fÃ¼r hоuse"
    assert repaired(text) == "I don’t know what  it <is> für house"


ONE_OF_EACH_KIND = {case[1]: name for name, case in BROKEN.items() if case[1] != "unequal_counts"}


@pytest.mark.parametrize("name", ONE_OF_EACH_KIND.values(), ids=ONE_OF_EACH_KIND)
def test_a_fixed_copy_is_clean(tmp_path, name):
    pairs = BROKEN[name][0]
    diagnosis = check(CorpusFiles(*write_uneven(tmp_path, pairs)))
    fixed = write_fixed(diagnosis, tmp_path / "fixed")
    assert fixed.paths == (tmp_path / "fixed.en", tmp_path / "fixed.de")
    again = check(CorpusFiles(*fixed.paths))
    if name != "tag on one side":  # a tag may be meant: it stays, and is found again
        assert not again.hits, again.summary()
    assert fixed.pairs + sum(fixed.dropped.values()) == len(pairs)
    assert fixed.pairs >= 31
    assert list(read_pairs(CorpusFiles(*fixed.paths)))


def test_fixing_files_that_part_keeps_what_is_before(tmp_path):
    diagnosis = check(CorpusFiles(*write_uneven(tmp_path, BROKEN["a line missing"][0])))
    fixed = write_fixed(diagnosis, tmp_path / "fixed.tsv")
    assert list(read_pairs(CorpusFiles(fixed.paths[0]))) == GERMAN[:14]
    assert "18 lines that belong to no pair" in fixed.summary()


def test_the_html_report_stands_alone(tmp_path):
    pairs = with_source(15, "Please <script>alert(1)</script> &amp; open the window.")
    page = report_html(check(CorpusFiles(*write(tmp_path, pairs))))
    assert "<svg" in page
    assert "<script" not in page
    assert "http" not in page
    assert "the entity &amp;amp;" in page
    assert page.count("<rect") > 40


def test_the_command(tmp_path):
    source, target = map(str, write(tmp_path, with_target(32, "")))
    runner = CliRunner()
    page, fixed = tmp_path / "report.html", tmp_path / "fixed"
    result = runner.invoke(command, ["check", source, target, "--html", str(page), "--fix", str(fixed)])
    assert result.exit_code == 1, result.output
    assert f"{target}:32:1: empty, beside 'See you tomorrow!'" in result.output
    assert f"31 pairs written to {fixed}.en and {fixed}.de, 0 repaired; dropped 1 for pairs with" in result.output
    assert page.read_text().startswith("<!doctype html>")
    clean = runner.invoke(command, ["check", f"{fixed}.en", f"{fixed}.de", "--against", source, target, "--json"])
    assert clean.exit_code == 1
    document = json.loads(clean.stdout)
    assert [(found["kind"], found["count"]) for found in document["findings"]] == [("overlap", 31)]
    assert runner.invoke(command, ["check", f"{fixed}.en", f"{fixed}.de"]).exit_code == 0
    out = runner.invoke(command, ["convert", source, target, str(tmp_path / "c.tmx")])
    assert out.stdout == f"32 pairs written to {tmp_path / 'c.tmx'}\n"
    assert runner.invoke(command, ["check", str(tmp_path / "c.tmx")]).exit_code == 1
