"""The tensors of a directory: one safetensors file, or several named by an index. Their headers are read and checked
before anything else is; what only a pickle file holds is refused, because to read one is to run it."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from regard.checkpoint import MAX_BYTES
from regard.errors import CheckpointError
from regard.files import checked_size, parse_json_object
from regard.interchange.fields import REMEDY, Fields

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
MAX_HEADER = 4 << 20
"""Ten thousand tensors take less than half of it."""
MOST_SHARDS = 1000
READABLE = ("F64", "F32", "F16", "BF16")
"""What weights are read from."""
BYTES = {8: ("F64", "I64", "U64"), 4: ("F32", "I32", "U32"), 2: ("F16", "BF16", "I16", "U16")}
ONE_BYTE = ("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2")
SIZES = {kind: size for size, kinds in (*BYTES.items(), (1, ONE_BYTE)) for kind in kinds}
"""Bytes of a number, also of those kinds that stand in files and are no weights."""
PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
LINKS = "Copy the model with its links resolved, as `cp -rL` does."


@dataclass(frozen=True, slots=True)
class Held:
    """A tensor that a file holds."""

    path: Path
    name: str
    shape: tuple[int, ...]
    kind: str
    """As safetensors names it: F32 …"""


def held_tensors(folder: Path) -> dict[str, Held]:
    """Every tensor of a directory by its name; no more than headers is read."""
    if is_there(folder / WEIGHTS):
        return header_of(folder / WEIGHTS)
    if not is_there(folder / INDEX):
        raise without_weights(folder)
    named = shards_of(Fields.read(folder / INDEX))
    found: dict[str, Held] = {}
    for file in sorted(set(named.values())):
        for name, held in header_of(folder / file).items():
            if named.get(name) != file:
                raise CheckpointError(f"{folder / file} holds {name!r}, which {INDEX} does not say of it. {REMEDY}")
            found[name] = held
    absent = sorted(named.keys() - found.keys())
    if absent:
        raise CheckpointError(f"{folder / named[absent[0]]} does not hold {absent[0]!r}, as {INDEX} says. {REMEDY}")
    return found


def is_there(path: Path) -> bool:
    """Also as a link that leads nowhere, which is refused where it is read."""
    return path.exists() or path.is_symlink()


def without_weights(folder: Path) -> CheckpointError:
    names = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLED)
    if not names:
        return CheckpointError(f"{folder} has no {WEIGHTS}, and no {INDEX}: there are no weights to open. {REMEDY}")
    return CheckpointError(
        f"{folder} has its weights in {names[0]}, a pickle file, which runs code when it is read; regard opens "
        f"safetensors only. Where you trust it, transformers converts it: AutoModel.from_pretrained(OLD) and then "
        f".save_pretrained(NEW), with the class of model that docs/published.md names."
    )


def shards_of(index: Fields) -> dict[str, str]:
    """Tensor → file, which lies in the same directory."""
    named = index.table("weight_map")
    if not named:
        raise index.wrong("weight_map", "should name a file for each tensor")
    for file in named.values():
        if not isinstance(file, str) or Path(file).name != file or not file.endswith(".safetensors"):
            raise CheckpointError(f"{index.path} names {str(file)[:80]!r}, which is no file of its directory. {REMEDY}")
    if len(set(named.values())) > MOST_SHARDS:
        raise CheckpointError(f"{index.path} names more than {MOST_SHARDS:,} files. {REMEDY}")
    return dict(named)


def header_of(path: Path) -> dict[str, Held]:
    """The tensors of one file, whose numbers lie one behind the other and fill it."""
    size = checked_size(path, MAX_BYTES, LINKS if path.is_symlink() else REMEDY)
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 2 <= length <= min(MAX_HEADER, size - 8):
            raise CheckpointError(
                f"{path} is not valid safetensors: its header claims {length:,} bytes of {size:,}, and at most "
                f"{MAX_HEADER:,} are read. {REMEDY}"
            )
        header = parse_json_object(file.read(length), path, REMEDY)
    header.pop("__metadata__", None)
    spans = {name: span_of(path, name, entry) for name, entry in header.items()}
    end = 0
    for name, (_, begin, stop) in sorted(spans.items(), key=lambda each: each[1][1:]):
        if begin != end:
            raise CheckpointError(f"{path}: {name!r} overlaps another tensor, or leaves a gap before it. {REMEDY}")
        end = stop
    if 8 + length + end != size:
        raise CheckpointError(
            f"{path} has {size:,} bytes, but its tensors end at {8 + length + end:,}: it was cut or changed. {REMEDY}"
        )
    return {name: Held(path, name, shape, header[name]["dtype"]) for name, (shape, _, _) in spans.items()}


def span_of(path: Path, name: str, entry: Any) -> tuple[tuple[int, ...], int, int]:
    """Shape, and where the numbers begin and end."""
    fields: Mapping[str, Any] = entry if isinstance(entry, dict) else {}
    shape: Any = fields.get("shape")
    offsets: Any = fields.get("data_offsets")
    kind: Any = fields.get("dtype")
    if not is_counts(shape) or not is_counts(offsets) or len(offsets) != 2 or len(shape) > 8:
        raise CheckpointError(f"{path}: the header's entry of {name[:80]!r} is broken. {REMEDY}")
    if not isinstance(kind, str) or kind not in SIZES:
        raise CheckpointError(f"{path}: {name[:80]!r} has the unknown dtype {str(kind)[:20]!r}. {REMEDY}")
    if math.prod(shape) * SIZES[kind] != offsets[1] - offsets[0]:
        raise CheckpointError(f"{path}: {name[:80]!r} has other bytes than its shape and dtype take. {REMEDY}")
    return tuple(shape), offsets[0], offsets[1]


def is_counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(each) is int and 0 <= each < 1 << 62 for each in value)


def read_tensor(held: Held) -> Tensor:
    """In fp32, whatever it was published in."""
    try:
        with safe_open(held.path, framework="pt", device="cpu") as file:
            # Cloned where nothing is converted: it may be memory that is mapped from the file.
            found = file.get_tensor(held.name)
            return found.clone() if found.dtype == torch.float32 else found.to(torch.float32)
    except (SafetensorError, OSError, RuntimeError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"{held.path} is not valid safetensors ({reason}). {REMEDY}") from error
