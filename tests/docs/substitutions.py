"""What a test runs in place of what a page shows, and why. Everything else runs as it stands.

A pattern fits the whole command. `parsed …` has the program's options read, and nothing done.
"""

import fnmatch
import re
from dataclasses import dataclass

from tests.e2e.toolbox import TINY, chosen

FEW_STEPS = " ".join(chosen({"train.max_steps": 2, "train.validate_every": 9, "train.checkpoint_every": 2}))
"""And no validation, for an untrained model talks to the limit."""
SMALL = {key: value for key, value in TINY.items() if key.startswith("model.")} | {
    "train.batch_tokens": 128,
    "train.accumulate": 1,
    "decode.beam": 1,
    "decode.max_extra": 2,
}
OWN = "docs/tutorial.md"
"""The one page that runs as it stands, from the first command to the last."""
DRAWN = frozenset({OWN, "docs/report.md"})
"""Pages whose trainings draw their report. It costs seconds, so elsewhere the shared run alone has one."""


@dataclass(frozen=True)
class Substitution:
    """`becomes` may name the groups of `pattern`; `pages` are those that it holds for."""

    pattern: str
    becomes: str
    why: str
    pages: str = "*"


SUBSTITUTIONS = (
    Substitution(r"pip install \.", "parsed pip install .", "`make wheel-check` installs it in an empty environment"),
    Substitution(r"(regard demo.*)", r"parsed \1", "takes minutes; `make demo`"),
    Substitution(r"(regard inspect \S+)", r"parsed \1", "serves until it is ended; tests/browser/test_inspection.py"),
    Substitution(
        r"(regard bench .*)", r"parsed \1", "measures, which nothing else may run beside; tests/unit/test_bench.py"
    ),
    Substitution(r"(regard distill .*)", r"parsed \1", "trains, on what it translates; tests/e2e/test_distill.py"),
    Substitution(r"(regard train .*--from .*)", rf"\1 {FEW_STEPS}", "a few steps of the model that is there"),
    Substitution(
        r"(regard train recipes/relatives/shakespeare\S*\.toml .*)",
        rf"\1 --set model.width=16 --set train.batch_tokens=1024 {FEW_STEPS}",
        "a few steps, small",
    ),
    Substitution(
        r"(regard train recipes/decoders/shakespeare\S*\.toml .*)",
        rf"\1 --set model.width=16 --set model.feedforward=16 --set train.batch_tokens=512 --set decode.max_extra=9 "
        rf"{FEW_STEPS}",
        "a few steps, small",
    ),
    Substitution(
        r"(regard train recipes/encoders/\S*\.toml .*)",
        rf"\1 --set model.width=8 --set model.heads=2 --set model.layers=1 --set model.feedforward=16 {FEW_STEPS}",
        "a few steps, small",
    ),
    Substitution(
        r"(regard train recipes/relatives/multi30k-gru\S*\.toml .*)",
        rf"\1 --set model.width=8 --set decode.beam=1 --set decode.max_extra=2 {FEW_STEPS}",
        "a few steps, small",
    ),
    Substitution(
        r"(regard train recipes/relatives/multi30k-en-de-fr\.toml .*)",
        rf"\1 {' '.join(chosen(SMALL))} --set tokenizer.size=400 {FEW_STEPS}",
        "a few steps, small",
    ),
    Substitution(
        r"(regard train recipes/relatives/copying-transformer\.toml .*)",
        rf"\1 {' '.join(chosen(SMALL))} {FEW_STEPS}",
        "a few steps, small",
    ),
    Substitution(
        r"(regard train recipes/relatives/\S*pointer\S*\.toml .*)",
        rf"\1 --set model.width=16 {FEW_STEPS}",
        "a few steps, small",
    ),
    Substitution(
        r"(regard train (?:recipes/|--source ).*)", rf"\1 {' '.join(chosen(SMALL))} {FEW_STEPS}", "a few steps, small"
    ),
    Substitution(r"(regard predict .*)", r"parsed \1", "docs/pointing.md trains its model", pages="README.md"),
    Substitution(r"(regard generate .*)", r"parsed \1", "docs/language-models.md trains its model", pages="README.md"),
    Substitution(
        r"(regard train strings-transformer .*)", rf"\1 {' '.join(chosen(SMALL))} {FEW_STEPS}", "a few steps, small"
    ),
    Substitution(
        r"(regard figure all .*)", r"parsed \1", "it trains four models; tests/unit/test_figures.py draws all"
    ),
    Substitution(r"(regard figure .*)", r"\1 --repeats 1", "one model a curve is enough"),
    Substitution(
        r"(python benchmarks/prepare_memory\.py)", r"\1 --pairs 200 --forms 100", "two million pairs take minutes"
    ),
    Substitution(r"(\.venv/bin/python -m pytest .*)", r"parsed \1", "tests do not start tests"),
    Substitution(r"(\.venv/bin/pre-commit install)", r"parsed \1", "it would change the checkout"),
)


def substituted(page: str, command: str) -> str:
    """What to run for a command of a page."""
    if page == OWN:
        return command
    for each in SUBSTITUTIONS:
        match = re.fullmatch(each.pattern, uncommented(command))
        if match is not None and fnmatch.fnmatch(page, each.pages):
            return match.expand(each.becomes)
    return command


def uncommented(command: str) -> str:
    """Without the remark that a page puts behind a command."""
    return re.sub(r"\s+#\s.*$", "", command)
