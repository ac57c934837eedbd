"""Compiles the native engine: `python -m regard.native.build`. Needs a C compiler (gcc or clang) and nothing else.

The installation runs this file by its path, before there is a package, so it imports the standard library alone.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
SOURCES = FOLDER / "source"
LIBRARY = FOLDER / "_native.so"
"""Where the package looks for it."""
FLAGS = ("-std=gnu11", "-O3", "-fPIC", "-fvisibility=hidden", "-fno-math-errno", "-Wall", "-Wextra", "-Wno-psabi")
SANITIZED = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
"""Flags of a library whose every access and every operation is checked."""
AVX2, AVX512 = ("-mavx2", "-mfma"), ("-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni")
AMX = ("-mavx512bf16", "-mamx-tile", "-mamx-int8", "-mamx-bf16")


class InstructionSet(NamedTuple):
    """What kernels are compiled for, once for each."""

    name: str
    flags: Sequence[str] = ()
    """What the compiler is told."""
    instruction: str = "nop"
    """One that is new with it, for the assembler: an old one may stand beside a newer compiler."""


PLAIN = {"plain": InstructionSet("plain C")}
X86 = {
    "avx2": InstructionSet("AVX2", AVX2, "vpaddd %ymm0, %ymm1, %ymm2"),
    "avxvnni": InstructionSet("AVX-VNNI", (*AVX2, "-mavxvnni"), "{vex} vpdpbusd %ymm0, %ymm1, %ymm2"),
    "avx512vnni": InstructionSet("AVX-512 VNNI", (*AVX2, *AVX512), "vpdpbusd %zmm0, %zmm1, %zmm2"),
    "amx": InstructionSet("AMX", (*AVX2, *AVX512, *AMX), "tdpbf16ps %tmm0, %tmm1, %tmm2"),
}


class BuildError(Exception):
    """One line: what is missing, or what the compiler said."""


def sources_hash() -> str:
    """Of everything that is compiled, so that a library of other sources is known for one."""
    digest = hashlib.sha256()
    for path in sorted([*SOURCES.glob("*.[ch]"), Path(__file__)]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def find_compiler() -> list[str]:
    """What $CC says, else the first of cc, gcc and clang; BuildError where there is none."""
    wished = shlex.split(os.environ.get("CC", ""))
    for command in [wished] if wished else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(command[0]):
            return command
    named = f"$CC names {wished[0]!r}, which is not here" if wished else "there is neither cc nor gcc nor clang"
    raise BuildError(f"{named}; install a C compiler, for example with `apt-get install gcc libc6-dev`")


def build(target: Path = LIBRARY, flags: Sequence[str] = ()) -> Path:
    """The library at `target`, which is replaced only by a whole one. BuildError where it cannot be built."""
    if sys.platform == "win32":
        raise BuildError("the native engine is built on Linux and macOS only")
    compiler = find_compiler()
    kernels = PLAIN | {table: own for table, own in known_sets().items() if understands(compiler, own)}
    with tempfile.TemporaryDirectory() as folder:
        objects: list[str] = []

        def compiled(source: str, name: str, own: Sequence[str]) -> None:
            objects.append(str(Path(folder) / f"{name}.o"))
            run([*compiler, *FLAGS, *own, *flags, "-c", str(SOURCES / source), "-o", objects[-1]])

        for table, (name, own, _) in kernels.items():
            named = [f"-DKERNELS=kernels_{table}", f'-DKERNELS_NAME="{name}"']
            named += [f"-D{each.upper()}={each}_{table}" for each in ("training", "products", "rounded")]
            for source in ("kernels", "training", "products", "rounded"):
                compiled(f"{source}.c", f"{source}_{table}", [*own, *named])
        there = [f"-DHAS_{table.upper()}" for table in kernels]
        for source in ("pool", "shortlist", "model", "search", "train", "native"):
            compiled(f"{source}.c", source, [f'-DBUILT_FROM="{sources_hash()}"', *there])
        linked = Path(folder) / "library.so"
        run([*compiler, "-shared", *flags, *objects, "-o", str(linked), "-lm", "-lpthread"])
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f"{target.name}.{os.getpid()}")
        shutil.copyfile(linked, beside)
        beside.replace(target)
    return target


def known_sets() -> dict[str, InstructionSet]:
    """Those of this kind of processor."""
    return X86 if platform.machine() in ("x86_64", "AMD64") else {}


def understands(compiler: Sequence[str], own: InstructionSet) -> bool:
    """Whether a compiler and its assembler know the instructions of a set: those of long-lived systems lack some."""
    with tempfile.TemporaryDirectory() as folder:
        command = [*compiler, *own.flags, "-c", "-x", "c", "-", "-o", str(Path(folder) / "probe.o")]
        probe = f'__asm__("{own.instruction}");'
        return subprocess.run(command, input=probe, text=True, capture_output=True, check=False).returncode == 0


def run(command: Sequence[str]) -> None:
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        said = [line for line in found.stderr.splitlines() if "error" in line] or found.stderr.splitlines()[:1]
        raise BuildError(f"`{shlex.join(command[:1])}` failed: {' '.join(said[:1]) or f'exit code {found.returncode}'}")


def wheel_tag() -> str:
    """Of a wheel that holds the library: any Python 3 on this platform."""
    return f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def main() -> None:
    try:
        print(f"native engine: built {build()}")
    except BuildError as error:
        sys.exit(f"native engine: not built, because {error}. Everything works without it, only more slowly.")


if __name__ == "__main__":
    main()
