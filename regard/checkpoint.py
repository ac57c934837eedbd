"""A checkpoint is a directory of data: safetensors for numbers, JSON for the rest, no pickle.

    weights.safetensors     the model's tensors, each under one name
    optimizer.safetensors   what training needs besides: moments, moving average; may be absent
    state.json              step, epoch, batch …
    manifest.json           format, step, size and SHA-256 of each file; written last

It is written under a temporary name and renamed, so a directory with its final name is whole. Equal state gives equal
bytes: there is no time, path or host in it. What is read may be a stranger's and is checked before it is believed.
"""

import hashlib
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as tensors_to_bytes
from torch import Tensor

from regard.errors import CheckpointError
from regard.files import (
    MAX_JSON_BYTES,
    canonical_json,
    checked_size,
    clear_temporaries,
    commit_directory,
    discard,
    make_directory,
    parse_json_object,
    read_bounded,
    read_json_object,
    sync_directory,
    temporary_beside,
    write_durably,
    writing,
)

__all__ = [
    "FORMAT",
    "MAX_BYTES",
    "Checkpoint",
    "Signatures",
    "average_weights",
    "clear_temporaries",
    "committed_steps",
    "is_committed",
    "load_checkpoint",
    "load_weights",
    "remove_checkpoint",
    "save_checkpoint",
    "save_folder",
    "signatures_of",
]

FORMAT = 1
MAX_BYTES = 64 * 2**30
"""No file larger than this is opened."""

WEIGHTS = "weights.safetensors"
OPTIMIZER = "optimizer.safetensors"
MOVING_AVERAGE = "ema:"
"""Before the names of the weights' moving average, which lies with the optimizer."""
STATE = "state.json"
MANIFEST = "manifest.json"

# Two or more metadata keys would be written in random order.
METADATA = {"format": "pt"}

DTYPES: dict[str, torch.dtype] = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}

Signatures = Mapping[str, tuple[tuple[int, ...], torch.dtype]]
"""Name → (shape, dtype)."""


@dataclass(frozen=True)
class Checkpoint:
    """What a run needs to go on as if it had not stopped; `state` is plain JSON and its "step" is `step`."""

    step: int
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]


@dataclass(frozen=True)
class _Entry:
    """A line of the manifest."""

    sha256: str
    size: int


@dataclass(frozen=True)
class _Manifest:
    step: int
    files: dict[str, _Entry]


# --- writing


def save_checkpoint(checkpoints: Path, checkpoint: Checkpoint) -> Path:
    """Writes `checkpoints/<step>/` and returns it; RunError if the disk is full, with nothing left behind."""
    return save_folder(checkpoints / str(checkpoint.step), checkpoint)


def save_folder(folder: Path, checkpoint: Checkpoint) -> Path:
    """Writes a checkpoint under a name of the caller's choice and returns it.

    If `folder` already holds the same bytes, it stays untouched; anything else under that name is replaced.
    `state` must survive JSON as it is (no tuples, no infinities); "step" is added to it.
    """
    contents = _contents(checkpoint)
    make_directory(folder.parent)
    if _holds(folder, contents[MANIFEST]):
        return folder
    temporary = temporary_beside(folder)
    with writing(folder):
        try:
            temporary.mkdir()
            for name, data in contents.items():
                write_durably(temporary / name, data)
            commit_directory(temporary, folder)
        except BaseException:
            discard(temporary)
            raise
    return folder


def remove_checkpoint(folder: Path) -> None:
    """Deletes a checkpoint; it loses its name first, so a half-deleted one is never taken for committed."""
    temporary = temporary_beside(folder)
    with writing(folder):
        os.rename(folder, temporary)
        sync_directory(folder.parent)
        discard(temporary)


def _contents(checkpoint: Checkpoint) -> dict[str, bytes]:
    """File name → bytes, the manifest last.

    The bytes are made in memory, one copy of the state, because safetensors' own writing reports a full disk as text
    and gives the file to its owner alone.
    """
    contents = {WEIGHTS: _tensor_bytes(checkpoint.weights)}
    if checkpoint.optimizer:
        contents[OPTIMIZER] = _tensor_bytes(checkpoint.optimizer)
    contents[STATE] = _state_bytes(checkpoint)
    files = {name: _Entry(hashlib.sha256(data).hexdigest(), len(data)) for name, data in contents.items()}
    contents[MANIFEST] = _manifest_bytes(_Manifest(checkpoint.step, files))
    return contents


def _manifest_bytes(manifest: _Manifest) -> bytes:
    return canonical_json({"format": FORMAT, **asdict(manifest)})


def _state_bytes(checkpoint: Checkpoint) -> bytes:
    state = {**checkpoint.state, "step": checkpoint.step}
    if checkpoint.step < 0 or checkpoint.state.get("step", checkpoint.step) != checkpoint.step:
        raise ValueError(f"step {checkpoint.step} with state {checkpoint.state.get('step')}")
    data = canonical_json(state)
    if parse_json_object(data, Path(STATE), "") != state:
        raise ValueError("the state of a checkpoint changes when it is written as JSON: tuples, or keys not strings")
    return data


def _tensor_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    for name, tensor in tensors.items():
        if tensor.dtype not in DTYPES.values():
            raise TypeError(f"tensor {name!r} is {tensor.dtype}, which a checkpoint does not hold")
    return tensors_to_bytes(_separate(tensors), metadata=METADATA)


def _separate(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Sorted, contiguous, on the CPU, no two in the same memory, which safetensors refuses."""
    separate: dict[str, Tensor] = {}
    storages: set[int] = set()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        if tensor.untyped_storage().data_ptr() in storages:
            tensor = tensor.clone()
        storages.add(tensor.untyped_storage().data_ptr())
        separate[name] = tensor
    return separate


def _holds(folder: Path, manifest: bytes) -> bool:
    """Whether `folder` is committed, undamaged, and has this manifest."""
    if not is_committed(folder):
        return False
    try:
        committed = _read_manifest(folder)
        for name in committed.files:
            _check_file(folder, name, committed, verify=True)
    except CheckpointError:
        return False
    return _manifest_bytes(committed) == manifest


# --- looking


def is_committed(folder: Path) -> bool:
    """Whether `folder` was finished: the manifest is written last, and the name given after it."""
    return (folder / MANIFEST).is_file()


def committed_step(folder: Path) -> int:
    """The step of a committed checkpoint."""
    return _read_manifest(folder).step


def committed_steps(checkpoints: Path) -> list[int]:
    """The steps that can be loaded from `checkpoints`, ascending; none if there is no such directory."""
    if not checkpoints.is_dir():
        return []
    names = [name for name in os.listdir(checkpoints) if _is_step(name) and is_committed(checkpoints / name)]
    return sorted(int(name) for name in names)


def _is_step(name: str) -> bool:
    return name.isascii() and name.isdigit() and (name == "0" or name[0] != "0")


# --- reading


def load_checkpoint(folder: Path, *, with_optimizer: bool = True, verify: bool = True) -> Checkpoint:
    """Reads a committed checkpoint onto the CPU; `optimizer` is empty if it is not wanted or was not saved.

    Raises CheckpointError, naming the file and the remedy, for anything that is cut, changed, missing or not ours.
    `verify=False` skips the SHA-256 and still checks every size.
    """
    manifest = _read_manifest(folder)
    if _is_step(folder.name) and int(folder.name) != manifest.step:
        raise CheckpointError(f"{folder / MANIFEST} is of step {manifest.step}, not {folder.name}. {_remedy(folder)}")
    state = _read_state(folder, manifest, verify=verify)
    weights = _read_tensors(folder, WEIGHTS, manifest, verify=verify)
    optimizer: dict[str, Tensor] = {}
    if with_optimizer and OPTIMIZER in manifest.files:
        optimizer = _read_tensors(folder, OPTIMIZER, manifest, verify=verify)
    return Checkpoint(manifest.step, weights, optimizer, state)


def load_weights(
    folder: Path, expected: Signatures | None = None, *, moving_average: bool = False, verify: bool = True
) -> dict[str, Tensor]:
    """The weights alone, onto the CPU; on request their moving average, where training has not ended in it yet.

    With `expected`, names, shapes and dtypes are compared before memory is taken for any tensor, and the first that
    differs is named. The hash comes first, so that damage is not mistaken for another model.
    """
    manifest = _read_manifest(folder)
    if moving_average and OPTIMIZER in manifest.files:
        return _read_tensors(folder, OPTIMIZER, manifest, prefix=MOVING_AVERAGE, expected=expected, verify=verify)
    return _read_tensors(folder, WEIGHTS, manifest, expected=expected, verify=verify)


def signatures_of(tensors: Mapping[str, Tensor]) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """What `load_weights` expects of weights like these."""
    return {name: (tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()}


def average_weights(folders: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of each tensor, summed in float64 in the order given, in its own dtype.

    Tensors that are not floating point are those of the last folder. CheckpointError if the checkpoints are not of
    one model.
    """
    if not folders:
        raise CheckpointError("There is no checkpoint to average. Train until one is saved (train.checkpoint_every).")
    weights = load_weights(folders[0])
    expected = signatures_of(weights)
    sums = {name: tensor.double() for name, tensor in weights.items() if tensor.is_floating_point()}
    for folder in folders[1:]:
        weights = load_weights(folder, expected)
        for name, total in sums.items():
            total += weights[name]
    means = {name: (total / len(folders)).to(weights[name].dtype) for name, total in sums.items()}
    return {**weights, **means}


def _remedy(folder: Path) -> str:
    return f"Copy it again from where it came from, or remove {folder} and go on from another checkpoint."


def _read_manifest(folder: Path) -> _Manifest:
    path = folder / MANIFEST
    if not is_committed(folder):
        raise CheckpointError(f"{folder} is not a finished checkpoint: it has no {MANIFEST}. {_remedy(folder)}")
    data = read_bounded(path, MAX_JSON_BYTES, _remedy(folder))
    document = parse_json_object(data, path, _remedy(folder))
    found = document.get("format")
    if found != FORMAT:
        raise CheckpointError(
            f"{path} has format {found!r}, this version of regard reads {FORMAT}. "
            "Use the version of regard that wrote it."
        )
    manifest = _parse_manifest(document)
    # Byte for byte, so that a flipped bit has no place to hide, not even in white space.
    if manifest is None or _manifest_bytes(manifest) != data:
        raise CheckpointError(f"{path} is damaged: it is not what regard wrote. {_remedy(folder)}")
    return manifest


def _parse_manifest(document: dict[str, Any]) -> _Manifest | None:
    step, files = document.get("step"), document.get("files")
    if not _is_count(step) or not isinstance(files, dict):
        return None
    entries: dict[str, _Entry] = {}
    for name, entry in cast(dict[str, Any], files).items():
        if not isinstance(entry, dict) or not _is_count(cast(dict[str, Any], entry).get("size")):
            return None
        entries[name] = _Entry(str(cast(dict[str, Any], entry).get("sha256")), entry["size"])
    # Names are never joined to a path unless they are these.
    if not {WEIGHTS, STATE} <= entries.keys() <= {WEIGHTS, STATE, OPTIMIZER}:
        return None
    return _Manifest(cast(int, step), entries)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _check_file(folder: Path, name: str, manifest: _Manifest, *, verify: bool) -> Path:
    path, entry = folder / name, manifest.files[name]
    size = checked_size(path, MAX_BYTES, _remedy(folder))
    if size != entry.size:
        raise CheckpointError(f"{path} has {size} bytes, its manifest says {entry.size}. {_remedy(folder)}")
    if verify and _sha256(path) != entry.sha256:
        raise CheckpointError(f"{path} is damaged: its SHA-256 is not that of the manifest. {_remedy(folder)}")
    return path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_state(folder: Path, manifest: _Manifest, *, verify: bool) -> dict[str, Any]:
    path = _check_file(folder, STATE, manifest, verify=verify)
    state = read_json_object(path, _remedy(folder))
    if state.get("step") != manifest.step:
        raise CheckpointError(
            f"{path} is of step {state.get('step')!r}, its manifest of {manifest.step}. {_remedy(folder)}"
        )
    return state


def _read_tensors(
    folder: Path, name: str, manifest: _Manifest, *, prefix: str = "", expected: Signatures | None = None, verify: bool
) -> dict[str, Tensor]:
    """Those whose name starts with `prefix`, under the rest of it."""
    path = _check_file(folder, name, manifest, verify=verify)
    with _reading_safetensors(path), safe_open(path, framework="pt", device="cpu") as file:
        names: list[str] = sorted(name for name in file.keys() if name.startswith(prefix))  # noqa: SIM118
        found = {name.removeprefix(prefix): _signature(path, name, file.get_slice(name)) for name in names}
        if expected is not None:
            _check_signatures(path, found, expected)
        # Cloned: get_tensor may return memory mapped from the file, aligned as the file is.
        return {name.removeprefix(prefix): file.get_tensor(name).clone() for name in names}


@contextmanager
def _reading_safetensors(path: Path) -> Generator[None, None, None]:
    try:
        yield
    except (SafetensorError, OSError, RuntimeError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(f"{path} is not valid safetensors ({reason}). {_remedy(path.parent)}") from error


def _signature(path: Path, name: str, view: Any) -> tuple[tuple[int, ...], torch.dtype]:
    dtype = view.get_dtype()
    if dtype not in DTYPES:
        raise CheckpointError(
            f"{path}: tensor {name!r} has dtype {dtype}, which is not one of {', '.join(DTYPES)}. "
            "Convert it to one of them."
        )
    return tuple(view.get_shape()), DTYPES[dtype]


def _check_signatures(path: Path, found: Signatures, expected: Signatures) -> None:
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            raise CheckpointError(
                f"{path}: tensor {name!r} is {_shown(found.get(name))}, the model expects "
                f"{_shown(expected.get(name))}. The weights are of another model: use the config.json saved with them."
            )


def _shown(signature: tuple[tuple[int, ...], torch.dtype] | None) -> str:
    if signature is None:
        return "nothing"
    shape, dtype = signature
    return f"{'×'.join(map(str, shape)) if shape else 'a scalar'} {str(dtype).removeprefix('torch.')}"
