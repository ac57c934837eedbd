"""Files that are whole or not there, and files of strangers.

Everything is written under a temporary name, flushed to the disk and renamed; a process or a machine that stops in
between leaves the old content and a temporary, which `clear_temporaries` removes. Temporary names start with `.tmp-`;
`.old-NAME` is a directory that was being replaced.
"""

import errno
import json
import os
import secrets
import shutil
import stat
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, cast

from regard.errors import CheckpointError, ConfigError, RunError

MAX_JSON_BYTES = 16 * 2**20
"""A larger JSON file is not one of ours; parsed, it could take many times its size in memory."""

TEMPORARY_PREFIX = ".tmp-"
REPLACED_PREFIX = ".old-"

STREAMS = ("/dev", "/dev/fd", "/proc/self/fd")
"""Directories of names that are not files."""

FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextmanager
def writing(path: Path) -> Generator[None, None, None]:
    """Turns an OSError of the block into a RunError of one line that names `path` and the remedy."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL_DISK:
            raise RunError(
                f"{path} cannot be written: the disk is full ({error.strerror}). "
                "Free some space; what was saved before is intact, --resume takes it up."
            ) from error
        raise RunError(
            f"{path} cannot be written ({error.strerror or error}). Make it writable, or choose another place."
        ) from error


def write_atomically(path: Path, data: bytes) -> None:
    """Puts `data` at `path`, replacing what was there; after a crash `path` holds the old bytes or the new ones.

    A device or a pipe (/dev/stdout) is written to instead.
    """
    if is_stream(path):
        with writing(path):
            path.write_bytes(data)
        return
    temporary = temporary_beside(path)
    with writing(path):
        try:
            write_durably(temporary, data)
            os.replace(temporary, path)
        except BaseException:
            discard(temporary)
            raise
        sync_directory(path.parent)


def refuse_replacing(outputs: Iterable[Path | None], inputs: Iterable[Path | None]) -> None:
    """ConfigError where what is to be written would take the place of what is read."""
    read = [path for path in inputs if path is not None and path.exists()]
    for output in outputs:
        if output is None or not output.exists() or is_stream(output):
            continue
        if any(output.samefile(path) for path in read):
            raise ConfigError(f"{output} is read here, and would be replaced; choose another name to write to")


def is_stream(path: Path) -> bool:
    """Whether a file must not take the place of `path`: a device, a pipe, or a link like /dev/stdout."""
    return str(path.absolute().parent) in STREAMS or (path.exists() and not path.is_file())


def write_durably(path: Path, data: bytes) -> None:
    """Creates `path`, which must not exist, and returns when its content is on the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """`os.write` until nothing is left: one call writes at most 2 GiB, and less on a disk that is nearly full."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_directory(folder: Path) -> None:
    """A rename survives a power cut only when the directory itself has been flushed."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(path: Path) -> None:
    """Creates `path` and its parents if they are missing."""
    with writing(path):
        if not path.is_dir():
            path.mkdir(parents=True, exist_ok=True)
            sync_directory(path.parent)


def temporary_beside(path: Path) -> Path:
    """A fresh name in the same directory, hence on the same file system, which a rename needs."""
    return path.with_name(f"{TEMPORARY_PREFIX}{path.name}-{os.getpid()}-{secrets.token_hex(4)}")


def commit_directory(temporary: Path, target: Path) -> None:
    """Gives a finished temporary directory its name; a directory that has the name already is replaced.

    A directory cannot be renamed onto one that is not empty, so the old one steps aside first; if the process dies
    between the two renames, `clear_temporaries` puts it back.
    """
    replaced = target.with_name(REPLACED_PREFIX + target.name)
    sync_directory(temporary)
    if target.exists():
        discard(replaced)
        os.rename(target, replaced)
    os.rename(temporary, target)
    sync_directory(target.parent)
    discard(replaced)


def discard(path: Path) -> None:
    """Removes a file, a link or a whole directory; something that is not there is fine."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def clear_temporaries(folder: Path) -> list[str]:
    """Removes what a killed process left in `folder` and returns the names, sorted.

    Call it with the run's lock held and before looking for committed directories: one that was being replaced when
    the process died comes back under its own name here.
    """
    if not folder.is_dir():
        return []
    names = sorted(name for name in os.listdir(folder) if name.startswith((TEMPORARY_PREFIX, REPLACED_PREFIX)))
    with writing(folder):
        for name in names:
            original = folder / name.removeprefix(REPLACED_PREFIX)
            if name.startswith(REPLACED_PREFIX) and not original.exists():
                os.rename(folder / name, original)
            else:
                discard(folder / name)
        if names:
            sync_directory(folder)
    return names


def canonical_json(value: Any) -> bytes:
    """Equal values give equal bytes. NaN, infinities and what JSON has no word for raise ValueError or TypeError."""
    return (json.dumps(value, sort_keys=True, indent=2, allow_nan=False) + "\n").encode()


def read_json_object(path: Path, remedy: str) -> dict[str, Any]:
    """The JSON object in a file, which may be a stranger's; CheckpointError, ending in `remedy`, if there is none."""
    return parse_json_object(read_bounded(path, MAX_JSON_BYTES, remedy), path, remedy)


def parse_json_object(data: bytes, path: Path, remedy: str) -> dict[str, Any]:
    """As `read_json_object`, for the bytes that were read from `path`."""
    try:
        value = json.loads(data.decode(), parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:  # a UnicodeDecodeError is a ValueError
        raise CheckpointError(f"{path} is not valid JSON ({error}). {remedy}") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds a JSON {type(value).__name__}, not an object. {remedy}")
    return cast(dict[str, Any], value)


def read_bounded(path: Path, limit: int, remedy: str) -> bytes:
    """The whole file, after `checked_size`."""
    checked_size(path, limit, remedy)
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}). {remedy}") from error


def checked_size(path: Path, limit: int, remedy: str) -> int:
    """The size of a regular file of at most `limit` bytes that does not link out of its directory.

    Raises CheckpointError otherwise: a stranger's directory must not make us read other files, wait for a pipe, or
    fill the memory.
    """
    try:
        status = path.stat()
        inside = path.resolve().is_relative_to(path.parent.resolve())
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} is missing. {remedy}") from error
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read ({error.strerror}). {remedy}") from error
    if not inside:
        raise CheckpointError(f"{path} is a link out of its directory, which is not followed. {remedy}")
    if not stat.S_ISREG(status.st_mode):
        raise CheckpointError(f"{path} is not a regular file. {remedy}")
    if status.st_size > limit:
        raise CheckpointError(f"{path} has {status.st_size} bytes, more than the {limit} that are read. {remedy}")
    return status.st_size


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of two values under one key other programs may take the other one."""
    found = dict(pairs)
    if len(found) != len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"it has the key {twice[:60]!r} twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
