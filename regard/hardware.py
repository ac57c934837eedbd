"""The machine: threads, memory, precision. Instruction sets are probed in a child process, never assumed."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import RunError
from regard.files import write_atomically

if TYPE_CHECKING:
    from torch import Tensor

PROBE = """
import torch
a = torch.randn(256, 256).to(torch.bfloat16)
assert torch.isfinite((a @ a).float()).all()
with torch.autocast("cpu", dtype=torch.bfloat16):
    layer = torch.nn.Linear(64, 64)
    layer(torch.randn(32, 64)).float().sum().backward()
"""


CONTROL_GROUP = Path("/sys/fs/cgroup")


def cores() -> int:
    """Those that this process may use; in a container, as many as its quota of time is worth."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = (CONTROL_GROUP / "cpu.max").read_text().split()
        return min(allowed, max(1, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError, ZeroDivisionError):
        return allowed  # "max", or no control group


def available_memory() -> int:
    """Bytes that can be had without swapping, within the limit of our control group."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                limits.append(int(line.split()[1]) * 1024)
        limit = (CONTROL_GROUP / "memory.max").read_text().strip()
        if limit.isdigit():
            used = int((CONTROL_GROUP / "memory.current").read_text())
            stat = dict(line.split() for line in (CONTROL_GROUP / "memory.stat").read_text().splitlines())
            limits.append(int(limit) - used + int(stat.get("inactive_file", 0)))  # files that were read can go
    except (OSError, ValueError, IndexError):
        pass  # not Linux, or another layout: the machine's size has to do
    return min(limits)


def refuse_beyond_memory(needed: int, what: str, remedy: str) -> None:
    """RunError with the estimate, before anything is built."""
    available = available_memory()
    if needed > available:
        raise RunError(
            f"to {what} takes about {needed / 2**30:.1f} GiB of memory, and {available / 2**30:.1f} GiB are free; "
            f"{remedy}"
        )


def keep_memory() -> None:
    """Tells glibc to keep freed memory instead of giving it back.

    Training asks for the same large tensors again in each step; new pages, each zeroed by the system, cost more than
    the softmax that fills them. Elsewhere than on glibc nothing happens.
    """
    try:
        libc = ctypes.CDLL("libc.so.6")
    except OSError:
        return
    trim_threshold, top_pad, mmap_max = -1, -2, -4
    libc.mallopt(mmap_max, 0)
    libc.mallopt(trim_threshold, 2**31 - 1)
    libc.mallopt(top_pad, 64 << 20)


def keep_objects() -> None:
    """Leaves everything that has been made so far, such as torch's modules and a loaded model, out of garbage
    collection. A full pass over it takes a tenth of a second, in which hundreds of sentences are translated."""
    gc.freeze()


def set_threads(threads: int) -> int:
    """For torch; 0 = what OMP_NUM_THREADS says, else one a core. Gives the number."""
    import torch

    wished = os.environ.get("OMP_NUM_THREADS", "")
    torch.set_num_threads(threads or (int(wished) if wished.isdigit() else 0) or cores())
    return torch.get_num_threads()


def matrix_speed(multiply: Callable[[Tensor, Tensor, Tensor], object]) -> float:
    """Floating-point operations a second of a product of the size that training has, done by `multiply(left, right,
    out)`; a few milliseconds."""
    import torch

    left, right = torch.randn(2048, 256), torch.randn(512, 256).t()
    product = left @ right
    multiply(left, right, product)
    started, rounds = time.perf_counter(), 5
    for _ in range(rounds):
        multiply(left, right, product)
    return 2 * 2048 * 256 * 512 * rounds / max(time.perf_counter() - started, 1e-6)


def describe() -> dict[str, Any]:
    """What the same bits are promised for."""
    import torch

    return {
        "torch": torch.__version__,
        "numpy": version("numpy"),
        "tokenizers": version("tokenizers"),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
    }


def cpu_flags() -> frozenset[str]:
    """The instructions that the processor advertises; empty elsewhere than on Linux."""
    return frozenset(cpu_says("flags").split())


def cpu_says(key: str) -> str:
    """What /proc/cpuinfo has under a key, such as `vendor_id`, for the first core; empty where there is none."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
    return ""


def bf16_works(cache: Path | None = None) -> bool:
    """A virtual machine may advertise AMX and trap it, which kills the process; so a child tries first, once."""
    import torch

    folder = cache or Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "regard"
    machine = json.dumps([platform.machine(), platform.release(), sorted(cpu_flags()), torch.__version__])
    path = folder / f"bf16-{hashlib.sha256(machine.encode()).hexdigest()[:16]}.json"
    try:
        return bool(json.loads(path.read_text())["works"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not probed yet, or unreadable: probe
    try:
        command = [sys.executable, "-P", "-c", PROBE]
        works = subprocess.run(command, capture_output=True, timeout=120, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        works = False
    with suppress(OSError, RunError):  # a cache that cannot be written costs a second next time
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({"works": works}).encode())
    return works
