"""Which engine and which precision translate, and the packed weights that lie beside a run.

The native engine translates wherever it can run a model, else Python. fp32 is the default. int8 is it where
`results.json` holds the validation BLEU of both, made with these very weights, and int8 moved it by less than 0.1
(`regard quantise` writes that). What is asked for goes before.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from regard.data.array_file import file_of, read_arrays
from regard.errors import ConfigError, RegardError
from regard.files import make_directory, write_atomically
from regard.models.parameters import parameters_of
from regard.models.transformer import Transformer
from regard.naming import named
from regard.native.engine import NativeTransformer
from regard.native.library import UnavailableError, best_set, library
from regard.native.packing import Arrays, check_precision, expected_arrays, packed_arrays, refusal
from regard.run import NATIVE

Keys = Callable[[], Collection[str]]
"""Gives the hashes of all weights of a run, when it is asked."""

MOST_MOVED = 0.1
"""BLEU by which int8 may move the validation set's, if it is to be the default."""


def weights_key(model: nn.Module) -> str:
    """A hash of all parameters, by name."""
    return key_of(parameters_of(model))


def key_of(weights: Mapping[str, Tensor]) -> str:
    """The `weights_key` of a model that has these parameters."""
    digest = hashlib.blake2b(digest_size=16)
    for name, value in sorted(weights.items()):
        digest.update(f"{name} {tuple(value.shape)}\n".encode())
        digest.update(value.float().contiguous().numpy().data)
    return digest.hexdigest()


def may_be_default(results: Mapping[str, Any] | None, key: str) -> bool:
    """Whether `results.json` says that int8 hardly changes the translations of these weights."""
    noted = (results or {}).get("int8")
    if not isinstance(noted, dict) or noted.get("weights") != key:
        return False
    scores = [noted.get(name) for name in ("bleu", "fp32_bleu")]
    known = [score for score in scores if isinstance(score, int | float) and not isinstance(score, bool)]
    return len(known) == 2 and all(0 <= score <= 100 for score in known) and abs(known[0] - known[1]) < MOST_MOVED


def chosen_engine(
    model: nn.Module,
    precision: str | None,
    results: Mapping[str, Any] | None = None,
    run: Path | None = None,
    keys: Keys | None = None,
) -> NativeTransformer | None:
    """What translates in place of `model`; None: the model itself, by Python in fp32, which the engine cannot run here.

    `precision` is what is asked for; None leaves it to the rule. `run` is where packed weights are kept, and `keys`
    says for which weights (`kept_arrays`).
    """
    wanted = check_precision(precision) if precision is not None else None
    reason = refused(model)
    if reason is not None:
        if wanted == "int8":
            raise ConfigError(
                f"precision int8 needs the native engine, which cannot be used here: {reason}; leave "
                f"{named('precision')} out, or choose fp32"
            )
        return None
    assert isinstance(model, Transformer)
    if wanted is None:
        noted = isinstance((results or {}).get("int8"), dict)
        wanted = "int8" if noted and may_be_default(results, weights_key(model)) else "fp32"
    kept = run if wanted == "int8" else None  # in fp32 packing is a plain copy, not worth a file of the weights' size
    return NativeTransformer(model, wanted, arrays=kept_arrays(model, wanted, kept, keys))


def described(model: nn.Module, results: Mapping[str, Any] | None) -> str:
    """For a person: what translates by default with a model like this one; empty for one that the engine never runs."""
    if type(model) is not Transformer:
        return ""
    try:
        library()
    except UnavailableError as error:
        return f"Python, fp32; the native engine is not in use: {error}"
    reason = refusal(model)
    if reason is not None:
        return f"Python, fp32; the native engine cannot run it, because {reason}"
    noted = (results or {}).get("int8")
    key = str(noted.get("weights")) if isinstance(noted, dict) else ""
    return f"native ({best_set()}), {'int8' if may_be_default(results, key) else 'fp32'}"


def refused(model: nn.Module) -> str | None:
    """Why the engine cannot translate with this model here; None where it can."""
    try:
        library()
    except UnavailableError as error:
        return str(error)
    return refusal(model)


# Packed weights beside a run


def kept_arrays(model: Transformer, precision: str, run: Path | None, keys: Keys | None = None) -> Arrays:
    """Packed once, then mapped from the file that the weights' hash names; a file that does not fit is written anew.

    With a new file, those of weights that are no longer there are removed: `keys` gives the hashes of all that are.
    """
    if run is None:
        return packed_arrays(model, precision)
    path = run / NATIVE / f"{precision}-{weights_key(model)}.bin"
    found = read_arrays(path, expected_arrays(model, precision))
    if found is not None:
        return found
    arrays = packed_arrays(model, precision)
    with suppress(OSError, RegardError):  # a directory that cannot be written costs the packing each time
        make_directory(path.parent)
        write_atomically(path, file_of(arrays))
        if keys is not None:
            remove_orphans(path, keys)
    return arrays


def remove_orphans(path: Path, keys: Keys) -> None:
    """Of the files of its precision beside `path`, those that belong to no weights. A process that has mapped one keeps
    it: what is removed is its name. `keys` is asked after the files are listed: what is packed meanwhile stays."""
    precision, own = path.stem.split("-")
    named = ((re.fullmatch(rf"{precision}-([0-9a-f]+)\.bin", name), name) for name in os.listdir(path.parent))
    others = {match[1]: path.parent / name for match, name in named if match and match[1] != own}
    if not others:
        return
    there = keys()
    for key, other in others.items():
        if key not in there:
            other.unlink(missing_ok=True)
