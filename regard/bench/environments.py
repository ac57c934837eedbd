"""Environments for the peers: a virtual environment each, so that no peer's dependencies disturb another's or ours.

They see the packages of the interpreter that runs regard, torch among them, through a .pth file behind their own: what
a peer needs in another version is installed beside it, and torch is held to the version that is timed. `regard bench
peers` makes them; nothing else here uses the network.
"""

from __future__ import annotations

import os
import site
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from regard.errors import ConfigError, RunError

FOLDER = "REGARD_BENCH_PEERS"
"""The environment variable that names the folder of the peers' environments."""


@dataclass(frozen=True, slots=True)
class Package:
    """What is installed for a peer, and the module that shows that it is there."""

    name: str
    module: str
    requirements: tuple[str, ...]


PACKAGES: dict[str, Package] = {
    package.name: package
    for package in (
        Package("eole", "eole", ("eole==0.6.*", "aiohttp")),
        Package("joeynmt", "joeynmt", ("joeynmt==2.3.*", "setuptools<81", "importlib-metadata")),
        Package("transformers", "transformers", ("transformers>=5,<6", "sentencepiece")),
        Package("ctranslate2", "ctranslate2", ("ctranslate2>=4.6,<5",)),
    )
}


def peers_folder() -> Path | None:
    named = os.environ.get(FOLDER)
    return Path(named) if named else None


def interpreter(name: str) -> str:
    """Of the peer's own environment, else this one where the peer is installed in it, else none ("")."""
    folder = peers_folder()
    own = folder / name / "bin" / "python" if folder else None
    if own is not None and own.is_file():
        return str(own)
    return sys.executable if find_spec(PACKAGES[name].module) else ""


def missing(name: str) -> str:
    """What to say of a peer that is left out."""
    return f"not installed: run `regard bench peers DIR --only {name}` and set {FOLDER}=DIR"


def make_environments(folder: Path, names: Sequence[str], console: Console) -> dict[str, str]:
    """Peer → "" where it can be used, else why it cannot. One that fails does not keep the others from being made."""
    unknown = [name for name in names if name not in PACKAGES]
    if unknown:
        raise ConfigError(f"--only {unknown[0]} is not one of {', '.join(PACKAGES)}")
    results: dict[str, str] = {}
    for name in names or PACKAGES:
        console.print(f"making {folder / name}", highlight=False)
        results[name] = make_environment(folder / name, PACKAGES[name])
        console.print(f"{name}: {results[name] or 'ready'}", highlight=False)
    return results


def make_environment(folder: Path, package: Package) -> str:
    try:
        venv.create(folder, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise RunError(f"{folder} cannot be made into a virtual environment: {error}") from error
    python = folder / "bin" / "python"
    share_packages(python)
    constraints = folder / "constraints.txt"
    constraints.write_text(f"torch=={version('torch').split('+')[0]}\n")
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    failed = ran([*pip, "-c", str(constraints), *package.requirements])
    return failed or ran([str(python), "-c", f"import torch, {package.module}"])


def share_packages(python: Path) -> None:
    """Our packages behind the environment's own, so that torch need not be installed again."""
    question = "import sysconfig; print(sysconfig.get_path('purelib'))"
    asked = subprocess.run([str(python), "-c", question], capture_output=True, text=True, check=True)
    ours = [path for path in site.getsitepackages() if Path(path).is_dir()]
    (Path(asked.stdout.strip()) / "regard_bench_shared.pth").write_text("".join(f"{path}\n" for path in ours))


def ran(command: Sequence[str]) -> str:
    """The last line of what went wrong, "" where nothing did."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return "" if done.returncode == 0 else (lines[-1].strip()[:300] if lines else f"ended with code {done.returncode}")
