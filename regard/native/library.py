"""The compiled library: loaded if it is there, and the instruction set chosen that the processor really runs."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from ctypes import POINTER, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_uint64, c_void_p
from pathlib import Path
from typing import Any

from regard.errors import RegardError, RunError
from regard.files import write_atomically
from regard.hardware import cpu_flags
from regard.native.build import LIBRARY as BUILT
from regard.native.build import sources_hash

Pointer = c_void_p
AVX512 = {"avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"}
NEEDED = {
    "AMX": AVX512 | {"avx512_bf16", "amx_tile", "amx_int8", "amx_bf16"},
    "AVX-512 VNNI": AVX512,
    "AVX-VNNI": {"avx2", "fma", "avx_vnni"},
    "AVX2": {"avx2", "fma"},
}
"""What /proc/cpuinfo calls the instructions of each set; one that lacks them is not tried."""
ERRORS = {
    -1: "out of memory",
    -2: "an argument is out of range",
    -3: "a position is beyond the table",
    -4: "no such instructions",
}
LIBRARY = Path(os.environ.get("REGARD_NATIVE_LIBRARY", BUILT))
"""The package's own, or another build of the same sources, such as one with sanitizers."""
PROBE = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).rg_self_check(int(sys.argv[2])))"


class Matrix(ctypes.Structure):
    _fields_ = (("inputs", c_int32), ("outputs", c_int32), ("weights", Pointer), ("scales", Pointer), ("bias", Pointer))


class Norm(ctypes.Structure):
    _fields_ = (("gain", Pointer), ("bias", Pointer))


class Shape(ctypes.Structure):
    _fields_ = (
        *((name, c_int32) for name in ("width", "heads", "key_width", "value_width", "feedforward")),
        *((name, c_int32) for name in ("encoder_layers", "decoder_layers", "pre_norm")),
        *((name, c_int32) for name in ("vocabulary", "source_vocabulary")),
        *((name, c_float) for name in ("epsilon", "source_scale", "target_scale")),
    )


class EncoderLayer(ctypes.Structure):
    _fields_ = (("norms", Norm * 2), *((name, Matrix) for name in ("all", "output", "inner", "outer")))


class DecoderLayer(ctypes.Structure):
    _fields_ = (
        ("norms", Norm * 3),
        *((name, Matrix) for name in ("all", "output", "queries", "memory", "across", "inner", "outer")),
    )


class Weights(ctypes.Structure):
    _fields_ = (
        ("shape", Shape),
        ("encoder", POINTER(EncoderLayer)),
        ("decoder", POINTER(DecoderLayer)),
        ("encoder_norm", Norm),
        ("decoder_norm", Norm),
        ("projection", Matrix),
        ("source_table", Pointer),
        ("target_table", Pointer),
    )


SIGNATURES: dict[str, tuple[Any, Sequence[Any]]] = {
    "rg_built_from": (c_char_p, ()),
    "rg_instruction_sets": (c_int, ()),
    "rg_instruction_set": (c_char_p, (c_int,)),
    "rg_prepare": (c_int, (c_int,)),
    "rg_self_check": (c_int, (c_int,)),
    "rg_model_new": (c_void_p, (POINTER(Weights), c_int, c_int)),
    "rg_model_free": (None, (c_void_p,)),
    "rg_positions": (None, (c_void_p, c_void_p, c_int, c_void_p, c_int)),
    "rg_entries": (c_int64, (c_void_p,)),
    "rg_start": (c_int, (c_void_p, Pointer, Pointer, Pointer, c_int, POINTER(c_void_p))),
    "rg_step": (
        c_int,
        (c_void_p, c_void_p, Pointer, Pointer, Pointer, c_int, POINTER(c_void_p)),
    ),
    "rg_log_probabilities": (None, (c_void_p, Pointer, c_int, Pointer)),
    "rg_reorder": (c_int, (c_void_p, c_void_p, Pointer, c_int, POINTER(c_void_p))),
    "rg_join": (c_int, (c_void_p, c_void_p, c_void_p, POINTER(c_void_p))),
    "rg_state_free": (None, (c_void_p, c_void_p)),
    "rg_state_rows": (c_int, (c_void_p,)),
    "rg_state_longest": (c_int, (c_void_p,)),
    "rg_search_new": (c_void_p, (c_void_p, *(c_int,) * 6, Pointer)),
    "rg_search_free": (None, (c_void_p,)),
    "rg_search_penalties": (c_int, (c_void_p, Pointer, c_int)),
    "rg_search_admit": (c_int, (c_void_p, *(Pointer,) * 7, c_int)),
    "rg_search_cancel": (c_int, (c_void_p, c_int64)),
    "rg_search_run": (c_int, (c_void_p, c_int)),
    "rg_search_finished": (c_int, (c_void_p, POINTER(c_int64), POINTER(c_int64))),
    "rg_search_take": (None, (c_void_p, Pointer, Pointer)),
    "rg_search_written": (c_int, (c_void_p, c_int64, c_int, Pointer, c_int)),
    "rg_train_threads": (None, (c_void_p,) * 3),
    "rg_train_multiplies": (c_int, (c_int, c_int)),
    "rg_train_multiply": (c_int, (c_int, c_int, c_void_p)),
    "rg_train_attend": (c_int, (c_int, c_int, *(Pointer,) * 3)),
    "rg_train_attend_back": (c_int, (c_int, c_int, *(Pointer,) * 6)),
    "rg_train_drop_add": (c_int, (c_int, c_int, Pointer, Pointer, c_int64, c_double, c_uint64, Pointer)),
    "rg_train_relu": (c_int, (c_int, c_int, Pointer, c_int64, c_int, Pointer)),
    "rg_train_relu_back": (c_int, (c_int, c_int, Pointer, Pointer, c_int64, c_int, Pointer, Pointer)),
    "rg_train_norm": (
        c_int,
        (
            c_int,
            c_int,
            Pointer,
            Pointer,
            c_int64,
            c_int,
            c_double,
            c_uint64,
            Pointer,
            Pointer,
            c_float,
            *(Pointer,) * 3,
        ),
    ),
    "rg_train_norm_back": (
        c_int,
        (c_int, c_int, *(Pointer,) * 3, c_int64, c_int, c_double, c_uint64, *(Pointer,) * 5),
    ),
    "rg_train_cross_entropy": (c_int, (c_int, c_int, Pointer, c_int, c_int, Pointer, c_float, Pointer, Pointer)),
    "rg_test_quantise": (c_int, (c_int, Pointer, c_int, c_int, Pointer, Pointer)),
    "rg_test_multiply": (c_int, (c_int, Pointer, c_int, POINTER(Matrix), c_int, Pointer)),
    "rg_test_norm": (c_int, (c_int, Pointer, c_int, c_int, POINTER(Norm), c_float, Pointer)),
    "rg_test_attend": (c_int, (c_int, c_int, Pointer, Pointer, c_int, POINTER(Shape), Pointer, Pointer)),
    "rg_test_rank": (c_int, (c_int, Pointer, c_int, Pointer, c_int, Pointer, Pointer, Pointer)),
}


class UnavailableError(RegardError):
    """Why the native engine is not in use."""


def opened(path: Path) -> ctypes.CDLL:
    """The library at `path`; `UnavailableError` for one that is not there or was built from other sources."""
    if not path.is_file():
        raise UnavailableError(
            "it is not built (`python -m regard.native.build` builds it where a C compiler is found)"
        )
    try:
        library = ctypes.CDLL(str(path))
        library.rg_built_from.restype = c_char_p
    except (OSError, AttributeError) as error:
        raise UnavailableError(f"{path} cannot be loaded ({error}); run `python -m regard.native.build`") from None
    if library.rg_built_from().decode() != sources_hash():
        raise UnavailableError(f"{path} was built from other sources; run `python -m regard.native.build`")
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, tuple(arguments)
    return library


@functools.cache
def library() -> ctypes.CDLL:
    """The package's own; `UnavailableError`, with the reason, where there is none."""
    if os.environ.get("REGARD_NATIVE", "1") == "0":
        raise UnavailableError("REGARD_NATIVE=0 asks for it")
    return opened(LIBRARY)


def instruction_sets(library: ctypes.CDLL) -> list[str]:
    """The names of all that were compiled, best first."""
    return [library.rg_instruction_set(number).decode() for number in range(library.rg_instruction_sets())]


@functools.cache
def working_sets(path: Path = LIBRARY, cache: Path | None = None) -> tuple[int, ...]:
    """The numbers of the instruction sets that this processor really runs, best first; plain C is always the last.

    A virtual machine may advertise what it traps, which kills the process, so each is tried in a child, once.
    """
    loaded, flags = library() if path == LIBRARY else opened(path), cpu_flags()
    names = instruction_sets(loaded)
    folder = cache or Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "regard"
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    machine = json.dumps([platform.machine(), platform.release(), sorted(flags), content])
    noted = folder / f"native-{hashlib.sha256(machine.encode()).hexdigest()[:16]}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        before = tuple(names.index(name) for name in json.loads(noted.read_text())["works"])
        if before[-1:] == (len(names) - 1,):  # plain C works everywhere
            return prepared(loaded, before)
    wanted = [number for number, name in enumerate(names) if not flags or NEEDED.get(name, set()) <= flags]
    found = [number for number in wanted if names[number] not in NEEDED or works(path, number)]
    with suppress(OSError, RunError):  # a cache that cannot be written costs a moment next time
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(noted, json.dumps({"works": [names[number] for number in found]}).encode())
    return prepared(loaded, found)


def prepared(library: ctypes.CDLL, numbers: Sequence[int]) -> tuple[int, ...]:
    """Those whose registers the system gives this process."""
    return tuple(number for number in numbers if library.rg_prepare(number) == 0)


def works(path: Path, number: int) -> bool:
    """Whether a child survives the self check of an instruction set, and it computes what plain C computes."""
    command = [sys.executable, "-I", "-S", "-c", PROBE, str(path), str(number)]
    try:
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):  # no child to try it in: plain C will do
        return False


def checked(code: int) -> None:
    """For what a function of the library gives back."""
    if code == -1:
        raise MemoryError("the native engine is out of memory")
    if code < 0:
        raise RunError(f"the native engine refused: {ERRORS.get(code, code)}")


def best_set() -> str:
    """The name of the instruction set in use."""
    return instruction_sets(library())[working_sets()[0]]


def engine_in_use() -> str:
    """For a person: whether the engine can be used."""
    try:
        return f"the native engine ({best_set()})"
    except UnavailableError as error:
        return f"Python; the native engine is not in use: {error}"
