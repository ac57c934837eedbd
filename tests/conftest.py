"""What every test shares: one thread, shapes checked at run time, and a way to the corpora.

Set REGARD_TEST_SHAPES=0 to leave the shape checks out (a debugger steps more easily without them).
"""

import functools
import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Two threads beside another busy process spin and lose tenfold. Libraries read these when they are first imported (the
# imports below bring numpy), and child processes inherit them.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import beartype.typing  # noqa: F401 (TYPE_CHECKER names it)
import hypothesis
import jaxtyping
import pytest

if TYPE_CHECKING:
    from tests.e2e.toolbox import Outcome

if "regard" in sys.modules:
    raise RuntimeError("regard was imported before tests/conftest.py, so its shapes and threads would go unchecked")
# As pyright reads them: an int is a float, and Self is legal (beartype alone refuses it in a single method).
TYPE_CHECKER = """beartype.beartype(conf=beartype.BeartypeConf(
    is_pep484_tower=True,
    hint_overrides=beartype.FrozenDict({beartype.typing.Self: beartype.typing.Any}),
))"""
JAXTYPED, MADE = jaxtyping.jaxtyped, Counter[object]()
SHAPE = re.compile(r"\b(Bool|Float|Int|Shaped)\[")


def sampled(function: Callable[..., Any], checked: Callable[..., Any]) -> Callable[..., Any]:
    """The one, and in place of some of its calls the other."""
    calls = itertools.count()

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> Any:
        number = next(calls)
        return (checked if number < 200 or number % 20 == 0 else function)(*arguments, **options)

    return run


def jaxtyped(*, typechecker: Any) -> Callable[[Any], Any]:
    """Functions and dataclasses that name a shape are checked; pyright checks all other types at no cost to a test.

    Checking takes longer than most calls: of each function the first two hundred calls are checked, then one in twenty.
    A function within a function is made anew by each call, and instrumenting it takes longer still, so the first
    hundred of each are checked, and none while checks are off.
    """
    check = JAXTYPED(typechecker=typechecker)

    def decorate(function: Any) -> Any:
        named = vars(sys.modules[function.__module__])
        hints = getattr(function, "__annotations__", {}).values()
        if not any(SHAPE.search(str(named.get(hint, hint))) for hint in hints):
            return function
        if isinstance(function, type):
            return check(function)
        if "<locals>" not in function.__qualname__:
            return sampled(function, check(function))
        MADE[made := getattr(function, "__code__", function.__qualname__)] += 1
        return function if jaxtyping.config.jaxtyping_disable or MADE[made] > 100 else check(function)

    return decorate


if os.environ.get("REGARD_TEST_SHAPES", "1") != "0":
    jaxtyping.jaxtyped = jaxtyped  # what the hook puts in front of each function
    jaxtyping.install_import_hook("regard", TYPE_CHECKER)

# A shell starts what runs in the background with Ctrl-C ignored, and children inherit that too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is slow, not wrong.
hypothesis.settings.register_profile("regard", deadline=None, print_blob=True)
# Where a change is judged, the examples are the same each time; elsewhere new ones are looked for.
hypothesis.settings.register_profile("ci", parent=hypothesis.settings.get_profile("regard"), derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("REGARD_CI") else "regard")


def pytest_runtest_setup() -> None:
    """Hold torch to one thread, also after a test that changed it; a test without torch does not pay for its import."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)


@pytest.fixture(scope="module")
def shapes_unchecked() -> Iterator[None]:
    """For tests in which they would take more time than the products; other tests check them."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture(scope="session")
def data_directory(pytestconfig: pytest.Config) -> Path:
    """Where the corpora lie: $REGARD_DATA, else ./data. It need not exist."""
    return pytestconfig.invocation_params.dir / (os.environ.get("REGARD_DATA") or "data")


@pytest.fixture(scope="session")
def corpus(data_directory: Path) -> Callable[[str], Path]:
    """`corpus("multi30k")` is that corpus's folder; where it is absent, the test is skipped and says so."""

    def find(name: str) -> Path:
        folder = data_directory / name
        if not folder.is_dir():
            pytest.skip(f"no corpus '{name}': {folder} is not there (set REGARD_DATA to the folder that holds it)")
        return folder

    return find


@pytest.fixture
def call() -> "Callable[..., Outcome]":
    """The command line within this process: `call("translate", run, given="hello\\n")`."""
    from tests.within import regard_within

    return regard_within


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A disk of a given size, in place of the one before."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def mount(size: str) -> Path:
        again = "remount," if os.path.ismount(disk) else ""
        command = ["mount", "-t", "tmpfs", "-o", f"{again}size={size}", "tmpfs", str(disk)]
        if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
            pytest.skip("a small tmpfs can be mounted by root only")
        return disk

    yield mount
    if os.path.ismount(disk):
        subprocess.run(["umount", "-l", str(disk)], check=True)  # later, if some array still lies on it
