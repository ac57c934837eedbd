"""Who translates in `regard bench translate`: ours in each precision, and whoever can be given the run's weights."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from regard.bench.children import Contestant
from regard.bench.environments import interpreter, missing
from regard.bench.twins import write_for_ctranslate2, write_for_eole, write_for_huggingface
from regard.decode.options import Options
from regard.errors import ConfigError, RegardError
from regard.loading import Opened, load_translator
from regard.models.transformer import own_symbols
from regard.text.tokenizer import Tokenizer

OURS = "regard fp32"
SHORTLIST, EARLY = "shortlist", "early stopping"


def contestants(
    opened: Opened, settings: dict[str, Any], folder: Path, shortlist: int = 0
) -> tuple[list[Contestant], list[dict[str, Any]]]:
    """Ours in fp32 first, with which the others are compared; and who is left out, with the reason."""
    found = [Contestant(OURS, "regard_translate", sys.executable, ours("fp32", settings))]
    found += [
        Contestant(f"regard {precision}", "regard_translate", sys.executable, ours(precision, settings), optional=True)
        for precision in precisions()[1:]
    ]
    plain, wide = tuple(found), [beam for beam in settings["beams"] if beam > 1]
    if wide:
        found += [stopping_early(each, settings, wide) for each in plain]
    if shortlist:
        found += [with_shortlist(each, settings, shortlist) for each in plain]
    absent: list[dict[str, Any]] = []
    for make in (ctranslate2_contestants, huggingface_contestants, eole_contestants):
        try:
            found += make(opened, folder)
        except RegardError as error:
            absent.append({"name": make.__name__.split("_")[0], "note": f"left out: {error}"})
    return found, absent


def precisions() -> tuple[str, ...]:
    """Those in which the installed regard translates."""
    return ("fp32", "int8") if takes_precision() else ("fp32",)


def takes_precision() -> str:
    """Where a precision is asked for: on loading, or on translating; empty where there is only fp32."""
    if "precision" in inspect.signature(load_translator).parameters:
        return "loading"
    return "options" if "precision" in Options.__annotations__ else ""


def ours(precision: str, settings: dict[str, Any]) -> dict[str, Any]:
    where = takes_precision()
    return {where: settings[where] | {"precision": precision}} if where else {}


def stopping_early(plain: Contestant, settings: dict[str, Any], beams: Sequence[int]) -> Contestant:
    """The same by the rule of CTranslate2; only with these beams, for a greedy search is the same."""
    options = settings["options"] | plain.settings.get("options", {}) | {"early_stopping": True}
    own = {"options": options, "beams": list(beams)}
    return replace(plain, name=f"{plain.name}, {EARLY}", settings=plain.settings | own, optional=True)


def counterpart(name: str, beam: int, measured: Collection[str]) -> str:
    """Which of ours an engine is compared with: the one of its precision, and with a beam of its rule of stopping.

    Ours are compared with the first of them.
    """
    if name.startswith("regard"):
        return OURS
    own = "regard int8" if name.endswith("int8") else OURS
    stopping = [f"{own}, {EARLY}"] if beam > 1 and name.startswith("CTranslate2") else []
    return next((each for each in (*stopping, own) if each in measured), OURS)


def with_shortlist(plain: Contestant, settings: dict[str, Any], best: int) -> Contestant:
    """The same, which may write only tokens of a shortlist; counted before the clock starts."""
    own = {"options": settings["options"] | plain.settings.get("options", {}) | {"shortlist": best}}
    return replace(plain, name=f"{plain.name}, {SHORTLIST} {best}", settings=plain.settings | own, optional=True)


def ctranslate2_contestants(opened: Opened, folder: Path) -> list[Contestant]:
    python = interpreter("ctranslate2")
    if not python:
        raise ConfigError(missing("ctranslate2"))
    write_for_ctranslate2(opened.path, folder / "ctranslate2", python)
    own = {"folder": str(folder / "ctranslate2")} | names_of(opened.tokenizer)
    return [
        Contestant(f"CTranslate2 {shown}", "ctranslate2_translate", python, own | {"compute_type": kind}, optional=True)
        for shown, kind in (("fp32", "float32"), ("int8", "int8"))
    ]


def names_of(tokenizer: Tokenizer) -> dict[str, Any]:
    from regard.interchange.ctranslate2 import vocabulary_of

    return {f"{side}_names": vocabulary_of(getattr(tokenizer, side)) for side in ("source", "target")}


def huggingface_contestants(opened: Opened, folder: Path) -> list[Contestant]:
    python = interpreter("transformers")
    if not python:
        raise ConfigError(missing("transformers"))
    config = write_for_huggingface(opened, folder / "huggingface")
    symbols = opened.tokenizer.symbols
    own = {
        "folder": str(folder / "huggingface"),
        "config": config,
        "norm": opened.config.model.norm,
        "symbols": {"pad": symbols.pad, "end": symbols.end, "never": list(symbols.never)},
    }
    return [Contestant("Hugging Face generate", "huggingface_translate", python, own, optional=True)]


def eole_contestants(opened: Opened, folder: Path) -> list[Contestant]:
    python = interpreter("eole")
    if not python:
        raise ConfigError(missing("eole"))
    write_for_eole(opened, folder / "eole")
    symbols = own_symbols(opened.config.model, opened.tokenizer.symbols)
    own = {
        "folder": str(folder / "eole"),
        "symbols": {"pad": symbols.pad, "start": symbols.start, "end": symbols.end},
    }
    return [Contestant("eole", "eole_translate", python, own, optional=True)]
