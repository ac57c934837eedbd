"""The native engine is optional: what is said where it is not there, and what is tried before it is used."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from regard.native import build, library
from tests.native_engine import needs_native

ROOT = Path(__file__).parents[2]


def test_without_a_compiler_the_build_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    with pytest.raises(build.BuildError, match="names 'no-such-compiler', which is not here; install a C compiler"):
        build.build(tmp_path / "library.so")
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(build.BuildError, match="there is neither cc nor gcc nor clang; install a C compiler"):
        build.build(tmp_path / "library.so")


def test_what_the_compiler_says_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("CC", sys.executable)
    with pytest.raises(build.BuildError, match="failed: "):
        build.build(tmp_path / "library.so")
    assert list(tmp_path.iterdir()) == []


@needs_native
def test_instructions_that_the_compiler_does_not_know_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """One such as gcc 9, which has no AVX-VNNI and no AMX."""
    (compiler,) = build.find_compiler()[:1]
    old = tmp_path / "old"
    old.write_text(f"""#!/bin/sh
case "$*" in *-mamx*|*-mavxvnni*) echo "unrecognized command line option" >&2; exit 1; esac
exec {compiler} "$@"
""")
    old.chmod(0o755)
    monkeypatch.setenv("CC", str(old))
    names = library.instruction_sets(library.opened(build.build(tmp_path / "library.so")))
    assert "AMX" not in names
    assert "AVX-VNNI" not in names
    assert names[-1] == "plain C"
    assert len(names) == len(build.known_sets()) - 2 + 1 or not build.known_sets()


def test_so_are_those_that_only_its_assembler_does_not_know(tmp_path: Path):
    """A compiler with all options, whose assembler has neither AMX nor AVX-VNNI."""
    old = tmp_path / "old"
    old.write_text("#!/bin/sh\n! grep -q -e tdpbf16ps -e vex\n")
    old.chmod(0o755)
    known = [name for name, own in (build.PLAIN | build.X86).items() if build.understands([str(old)], own)]
    assert known == ["plain", "avx2", "avx512vnni"]


def test_the_command_fails_in_one_line_and_says_that_all_works_without(tmp_path: Path):
    command = [sys.executable, "-m", "regard.native.build"]
    found = subprocess.run(
        command, env=os.environ | {"CC": "no-such-compiler"}, capture_output=True, text=True, check=False
    )
    assert found.returncode == 1
    assert len(found.stderr.splitlines()) == 1
    assert "Everything works without it, only more slowly." in found.stderr


def test_an_installation_without_a_compiler_goes_on_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The build hook in a checkout with a library of other sources; hatchling, which calls it, is a stand-in."""
    native = tmp_path / "regard" / "native"
    native.mkdir(parents=True)
    for name in ("build.py", "_native.so"):
        (native / name).write_bytes(Path(build.__file__).read_bytes() if name == "build.py" else b"old")
    for name in ("hatchling", "hatchling.builders", "hatchling.builders.hooks", "hatchling.builders.hooks.plugin"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    interface: Any = ModuleType("hatchling.builders.hooks.plugin.interface")
    interface.BuildHookInterface = dict  # what it is made of is not used, and it can be subscripted
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))["NativeHook"]()
    said: list[str] = []
    hook.target_name, hook.root, hook.app = "wheel", str(tmp_path), SimpleNamespace(display_warning=said.append)
    build_data: dict[str, Any] = {"artifacts": []}
    hook.initialize("standard", build_data)
    assert said == [
        "regard: without the native engine, which only makes it faster: there is neither cc nor gcc nor clang; "
        "install a C compiler, for example with `apt-get install gcc libc6-dev`"
    ]
    assert build_data == {"artifacts": []}  # a wheel for any machine
    assert not (native / "_native.so").exists()  # that of other sources does not go into the wheel


def test_a_library_that_is_not_there_or_is_none_is_refused_with_the_remedy(tmp_path: Path):
    with pytest.raises(library.UnavailableError, match="it is not built"):
        library.opened(tmp_path / "library.so")
    (tmp_path / "library.so").write_bytes(b"none")
    with pytest.raises(library.UnavailableError, match=r"cannot be loaded .*run `python -m regard.native.build`"):
        library.opened(tmp_path / "library.so")


def test_the_python_path_can_be_asked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("REGARD_NATIVE", "0")
    library.library.cache_clear()
    try:
        assert library.engine_in_use() == "Python; the native engine is not in use: REGARD_NATIVE=0 asks for it"
    finally:
        library.library.cache_clear()


@needs_native
def test_a_library_of_other_sources_is_known_for_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(library, "sources_hash", lambda: "another")
    with pytest.raises(library.UnavailableError, match="was built from other sources; run"):
        library.opened(library.LIBRARY)


@needs_native
def test_an_instruction_set_that_kills_a_child_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """As on a machine that advertises what it cannot run; the answer is noted, and asked once."""
    monkeypatch.setattr(library, "PROBE", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    find = library.working_sets.__wrapped__
    names = library.instruction_sets(library.library())
    assert [names[number] for number in find(library.LIBRARY, tmp_path)] == ["plain C"]
    monkeypatch.setattr(library, "works", lambda *_: pytest.fail("it was tried again"))
    assert [names[number] for number in find(library.LIBRARY, tmp_path)] == ["plain C"]


@needs_native
def test_a_note_without_plain_c_is_not_believed_and_without_a_child_nothing_else_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(library.sys, "executable", str(tmp_path / "no python"))
    find, names = library.working_sets.__wrapped__, library.instruction_sets(library.library())
    assert [names[number] for number in find(library.LIBRARY, tmp_path)] == ["plain C"]
    (noted,) = tmp_path.iterdir()
    for wrong in ('{"works": []}', '{"works": ["AVX2"]}', '{"works": 7}', "[]"):
        noted.write_text(wrong)
        assert [names[number] for number in find(library.LIBRARY, tmp_path)] == ["plain C"]


@needs_native
def test_an_instruction_set_that_the_processor_lacks_is_not_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(library, "cpu_flags", lambda: frozenset({"avx2"}))
    monkeypatch.setattr(library, "works", lambda *_: pytest.fail("it was tried"))
    names = library.instruction_sets(library.library())
    assert [names[number] for number in library.working_sets.__wrapped__(library.LIBRARY, tmp_path)] == ["plain C"]


@needs_native
def test_a_child_of_a_fork_translates_too():
    """Its threads stay in the parent; it works alone."""
    code = """
import os, torch
from regard.data.batch import Source
from tests.native_engine import random_transformer
from regard.native.engine import NativeTransformer
native = NativeTransformer(random_transformer("even"), threads=3)
source, tokens = Source.of([[5, 3]] * 7), torch.tensor([4] * 7)
expected = native.step(tokens, native.start(source))[0]
if (child := os.fork()) == 0:
    found = native.step(tokens, native.start(source))[0]
    os._exit(0 if torch.equal(found, expected) else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100)


@needs_native
@pytest.mark.verify
def test_nothing_is_read_or_written_out_of_bounds(tmp_path: Path):
    """Every kernel and the engine under the address and undefined-behaviour sanitizers."""
    path = build.build(tmp_path / "library.so", build.SANITIZED)
    runtime = " ".join(
        subprocess.run(
            [*build.find_compiler(), f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libstdc++.so.6")  # with the latter the sanitizer knows torch's exceptions
    )
    environment = os.environ | {
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0",  # Python's own
        "REGARD_NATIVE_LIBRARY": str(path),
        "REGARD_NATIVE_REQUIRED": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    tests = [
        f"tests/parity/test_{name}.py" for name in ("native_kernels", "native_engine", "shortlist", "training_kernels")
    ]
    subprocess.run([*command, *tests], env=environment, check=True, timeout=3600)
