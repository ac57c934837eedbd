"""That the harness finds fault where there is some."""

from pathlib import Path

import pytest

from tests.docs.dry import mentioned, parse_regard
from tests.docs.markdown import Block, Document, documents, hidden, links, spans, undeclared
from tests.docs.pages import Page
from tests.docs.session import commands, difference
from tests.docs.shell import Shell, UnknownCommandError, parse
from tests.docs.substitutions import substituted


def console(text: str, info: str = "console") -> Block:
    return Block("docs/page.md", 7, info, text)


def test_pages_are_found_by_themselves() -> None:
    names = [str(page) for page in documents()]
    assert {"README.md", "CONTRIBUTING.md", "docs/tutorial.md", "docs/paper-map.md", "docs/results.md"} <= {*names}


@pytest.mark.parametrize("info", ["", "bash", "sh quietly", "console varying"])
def test_a_block_of_no_kind_is_a_fault(info: str) -> None:
    assert "docs/page.md:6" in undeclared([console("$ ls\n", info)])[0]


def test_what_could_be_run_is_not_text() -> None:
    assert hidden([console("regard/\n  cli.py\n", "text")]) == []
    for line in ("$ ls", "regard info RUN", "import regard"):
        assert "docs/page.md:7" in hidden([console(f"so:\n{line}\n", "text")])[0]


def test_commands_of_a_session() -> None:
    first, second = commands(console("$ regard info \\\n  RUN\nline one\nline two\n$ echo $?\n1\n"))
    assert (first.place, first.command, first.output) == (
        "docs/page.md:7",
        "regard info   RUN",
        ("line one", "line two"),
    )
    assert (second.place, second.command, second.output) == ("docs/page.md:11", "echo $?", ("1",))
    (stopped,) = commands(console("$ regard train --out r\n^C\nregard: interrupted\n"))
    assert stopped.interrupted
    assert stopped.output == ("regard: interrupted",)
    assert [each.command for each in commands(console("# why\nls\n\nls  a # b\n", "sh"))] == ["ls", "ls  a # b"]


@pytest.mark.parametrize(
    ("shown", "printed", "fits"),
    [
        (["3 pairs", "BLEU 12.3 (a|b)"], "3 pairs\nBLEU 13.1 (a|b)\n", True),
        (["3 pairs"], "4 pairs\n", False),
        (["BLEU 12.3"], "BLEU 3.1\n", False),
        (["a", "…", "d"], "a\nb\nc\nd\n", True),
        (["a", "d"], "a\nb\nd\n", False),
        (["at … GFLOP/s"], "at 17 GFLOP/s\n", True),
        (["run  9.98  x"], "run 10.36  x\n", True),
        (["run  9.98x"], "run 9.98 x\n", False),
        (["a"], "a\nb\n", False),
        ([], "anything\n", True),
    ],
)
def test_what_is_shown_is_compared(shown: list[str], printed: str, fits: bool) -> None:
    assert (difference(tuple(shown), printed) is None) is fits


def test_where_words_vary_lines_are_counted() -> None:
    assert difference(("un", "deux"), "ein\nzwei\n", varies=True) is None
    assert "3 were printed" in str(difference(("un", "deux"), "ein\nzwei\ndrei\n", varies=True))


@pytest.mark.parametrize("command", ["curl here", "ls | sudo tee x", "ls && ls", "ls; ls", "echo $HOME", "ls *", "> x"])
def test_an_unknown_command_is_a_fault(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownCommandError):
        Shell().run(command)
    assert list(tmp_path.iterdir()) == []


def test_pipes_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shell = Shell()
    assert shell.run("printf 'a|b\\nc\\n' > out.txt  # two lines") == ""
    assert shell.run("head -n 1 < out.txt | cat") == "a|b\n"
    assert shell.run("regard --version | wc -l").strip() == "1"
    assert "regard: " in shell.run("regard info nowhere")
    assert (shell.code, shell.run("echo $?")) == (1, "1\n")
    assert [stage.given for stage in parse("regard translate RUN < in.txt > out.txt")] == ["in.txt"]


def test_a_failure_that_the_page_does_not_tell_is_a_fault() -> None:
    page = Page(Document("docs/page.md"))
    with pytest.raises(AssertionError, match="ended with 1, and the page does not say so"):
        page.run_block(console("$ regard info nowhere\n"))
    page.run_block(console("$ regard info nowhere\n$ echo $?\n1\n"))
    with pytest.raises(AssertionError, match="nowhere to be found"):
        page.run_block(console("$ regard info nowhere\nregard: nowhere to be found\n$ echo $?\n"))
    page.run_block(console("print(6 * 7)\n", "python"))
    page.run_block(console("42\n", "output"))
    with pytest.raises(AssertionError, match="43"):
        page.run_block(console("43\n", "output"))


def test_what_is_only_parsed_is_parsed() -> None:
    parse_regard(["bench", "train", "--rounds", "2"])
    for wrong, fault in {
        "train --rounds two": "should be a valid integer",
        "train --round 2": "No such option: --round",
    }.items():
        with pytest.raises(Exception, match=fault):  # UsageError of the click that Typer carries
            parse_regard(["bench", *wrong.split()])
    for words, fault in {
        "regard banch": "there is no command 'banch'",
        "regard train --form": "regard train --form: no --form there",
        "regard trian": "there is no command 'trian'",
        "make cofee": "No rule to make target 'cofee'",
        "python benchmarks/no.py": "there is no benchmarks/no.py",
    }.items():
        with pytest.raises(AssertionError, match=fault):
            mentioned(words.split())
    mentioned(["regard", "train", "…", "--resume"])


def test_names_and_links_are_found_in_the_prose() -> None:
    """Else what is asked of each of them would hold of none."""
    assert {span for _, span in spans(Document("CONTRIBUTING.md"))} >= {"regard/nn/masks.py", "REGARD_DATA"}
    assert {target for _, target in links(Document("CONTRIBUTING.md"))} >= {"docs/results.md", "docs/paper-map.md"}


def test_the_tutorial_is_not_shortened() -> None:
    command = "regard train --source a.en --target a.de --out runs/a  # a remark"
    assert substituted("docs/tutorial.md", command) == command
    assert "train.max_steps=2" in substituted("README.md", command)
    assert substituted("README.md", "regard demo --seed 2") == "parsed regard demo --seed 2"
    assert substituted("README.md", "regard train --out runs/a --resume") == "regard train --out runs/a --resume"
