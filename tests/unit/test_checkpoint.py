"""A checkpoint is whole or not there, and damage never loads."""

import errno
import hashlib
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import Tensor

import regard.checkpoint
import regard.files
from regard.checkpoint import (
    Checkpoint,
    average_weights,
    clear_temporaries,
    committed_steps,
    load_checkpoint,
    load_weights,
    remove_checkpoint,
    save_checkpoint,
    save_folder,
    signatures_of,
)
from regard.errors import CheckpointError, RunError
from regard.files import write_atomically

FILES = ["weights.safetensors", "optimizer.safetensors", "state.json", "manifest.json"]
ROOT = Path(regard.checkpoint.__file__).parents[1]


def tensors(seed: int, width: int = 5) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "output.bias": torch.randn(width, generator=generator),
        "embedding": torch.randn(7, width, generator=generator),
        "scale": torch.randn((), generator=generator, dtype=torch.float64),
    }


def checkpoint(step: int, width: int = 5) -> Checkpoint:
    generator_state = torch.Generator().manual_seed(step).get_state()
    moments = {f"moment.{name}": tensor for name, tensor in tensors(step + 1000, width).items()}
    state = {"step": step, "epoch": 2, "batch": 11, "best": [0.1, None], "name": "é"}
    return Checkpoint(step, tensors(step, width), {**moments, "generator": generator_state}, state)


def assert_equal(found: Checkpoint, expected: Checkpoint) -> None:
    assert (found.step, found.state) == (expected.step, expected.state)
    for ours, theirs in ((found.weights, expected.weights), (found.optimizer, expected.optimizer)):
        assert signatures_of(ours) == signatures_of(theirs)
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_one_line_with_remedy(message: str, *parts: object) -> None:
    assert "\n" not in message
    assert all(str(part) in message for part in parts), message
    assert any(word in message for word in ("Copy", "remove", "Use", "use the", "Convert", "Free", "Make"))


# --- round trip


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path / "checkpoints", checkpoint(3))
    assert folder == tmp_path / "checkpoints" / "3"
    assert sorted(os.listdir(folder)) == sorted(FILES)
    assert_equal(load_checkpoint(folder), checkpoint(3))
    assert load_checkpoint(folder, with_optimizer=False).optimizer == {}


def test_without_an_optimizer_there_is_no_file_for_it(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, Checkpoint(3, tensors(3), {}, {"epoch": 1}))
    assert "optimizer.safetensors" not in os.listdir(folder)
    found = load_checkpoint(folder)
    assert found.optimizer == {}
    assert found.state == {"epoch": 1, "step": 3}


def test_views_and_tied_tensors_are_saved_as_they_look(tmp_path: Path) -> None:
    base = torch.arange(35.0).reshape(5, 7)
    weights = {"a": base, "tied": base, "transposed": base.T, "row": base[2], "parameter": torch.nn.Parameter(base)}
    found = load_weights(save_checkpoint(tmp_path, Checkpoint(1, weights, {}, {})))
    assert all(torch.equal(found[name], weights[name]) for name in weights)
    found["a"][0] = 9.0
    assert not torch.equal(found["a"], found["tied"])


def test_loaded_weights_do_not_write_into_the_file(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(1))
    before = bytes_of(folder)
    for tensor in load_weights(folder).values():
        tensor.fill_(4.0)
    assert bytes_of(folder) == before


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"best": float("inf")}, "not JSON compliant"),
        ({"pair": (1, 2)}, "changes when it is written as JSON"),
        ({"table": {1: "a"}}, "changes when it is written as JSON"),
        ({"step": 4}, "step 3 with state 4"),
    ],
)
def test_a_state_that_json_would_change_is_refused(tmp_path: Path, state: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        save_checkpoint(tmp_path, Checkpoint(3, tensors(3), {}, state))
    assert os.listdir(tmp_path) == []


def test_a_dtype_that_could_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"'z' is torch\.complex64"):
        save_checkpoint(tmp_path, Checkpoint(3, {"z": torch.zeros(3, dtype=torch.complex64)}, {}, {}))


# --- equal state, equal bytes


def test_equal_state_gives_equal_bytes_whatever_the_order(tmp_path: Path) -> None:
    one = checkpoint(3)
    other = Checkpoint(
        3,
        dict(reversed(one.weights.items())),
        dict(reversed(one.optimizer.items())),
        dict(reversed(one.state.items())),
    )
    assert bytes_of(save_checkpoint(tmp_path / "a", one)) == bytes_of(save_checkpoint(tmp_path / "b", other))


def test_equal_state_gives_equal_bytes_in_two_processes(tmp_path: Path) -> None:
    script = (
        "import sys; sys.path[:0] = sys.argv[2:]; from pathlib import Path; import test_checkpoint as t; "
        "t.save_checkpoint(Path(sys.argv[1]), t.checkpoint(3))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "77", "OMP_NUM_THREADS": "1"}
    arguments = [sys.executable, "-c", script, str(tmp_path / "b"), str(ROOT), str(Path(__file__).parent)]
    subprocess.run(arguments, check=True, env=environment, cwd=tmp_path)
    assert bytes_of(save_checkpoint(tmp_path / "a", checkpoint(3))) == bytes_of(tmp_path / "b" / "3")


# --- damage


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_anywhere_does_not_load(tmp_path: Path, name: str) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(3))
    whole = (folder / name).read_bytes()
    for length in {*range(0, len(whole), 1 + len(whole) // 20), len(whole) - 1}:
        (folder / name).write_bytes(whole[:length])
        with pytest.raises(CheckpointError) as caught:
            load_checkpoint(folder)
        assert_one_line_with_remedy(str(caught.value), folder / name)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_checkpoint(tmp_path_factory.mktemp("saved"), checkpoint(3))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(FILES), place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_a_byte_changed_anywhere_does_not_load(saved: Path, name: str, place: float, flip: int) -> None:
    whole = (saved / name).read_bytes()
    changed = bytearray(whole)
    changed[int(place * len(whole))] ^= flip
    try:
        (saved / name).write_bytes(changed)
        with pytest.raises(CheckpointError) as caught:
            load_checkpoint(saved)
    finally:
        (saved / name).write_bytes(whole)
    assert_one_line_with_remedy(str(caught.value), saved)


def test_every_bit_of_the_manifest_counts(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, Checkpoint(3, tensors(3), {}, {})) / "manifest.json"
    whole = path.read_bytes()
    for position in range(len(whole)):
        changed = bytearray(whole)
        changed[position] ^= 1 << (position % 8)
        path.write_bytes(changed)
        with pytest.raises(CheckpointError):
            load_checkpoint(path.parent)


@pytest.mark.parametrize("name", FILES[:3])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(3))
    (folder / name).unlink()
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(folder)
    assert_one_line_with_remedy(str(caught.value), folder / name, "missing")


def test_without_a_manifest_it_is_not_a_checkpoint(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(3))
    (folder / "manifest.json").unlink()
    assert committed_steps(tmp_path) == []
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(folder)
    assert_one_line_with_remedy(str(caught.value), folder, "manifest.json")


@pytest.mark.parametrize("format_number", [0, 2, "1", None])
def test_another_format_names_both_numbers(tmp_path: Path, format_number: object) -> None:
    path = save_checkpoint(tmp_path, checkpoint(3)) / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": format_number}))
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(path.parent)
    assert_one_line_with_remedy(str(caught.value), path, f"format {format_number!r}", "reads 1", "version")


def test_a_checkpoint_under_another_step_is_refused(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, checkpoint(3)).rename(tmp_path / "30")
    with pytest.raises(CheckpointError, match="is of step 3, not 30"):
        load_checkpoint(tmp_path / "30")


# --- strangers


def forge(folder: Path, **contents: bytes) -> Path:
    """Replaces files (`weights`, `state`) and writes the manifest that agrees with them, as a stranger could."""
    names = {"weights": "weights.safetensors", "state": "state.json"}
    for key, data in contents.items():
        (folder / names[key]).write_bytes(data)
    remanifest(folder, *names.values())
    return folder


def remanifest(folder: Path, *names: str) -> None:
    data = {name: (folder / name).read_bytes() for name in names}
    files = {name: {"sha256": hashlib.sha256(it).hexdigest(), "size": len(it)} for name, it in data.items()}
    document = {"format": 1, "step": 3, "files": files}
    (folder / "manifest.json").write_bytes(regard.files.canonical_json(document))


def raw_safetensors(header: object, data: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@pytest.mark.parametrize(
    "weights",
    [
        b"",
        b"no safetensors at all",
        struct.pack("<Q", 2**60) + b"{}",
        raw_safetensors({"a": {"dtype": "F32", "shape": [10**15], "data_offsets": [0, 4 * 10**15]}}),
        raw_safetensors({"a": {"dtype": "F32", "shape": [2**63, 4], "data_offsets": [0, 0]}}),
        raw_safetensors({"a": {"dtype": "F32", "shape": [2**62, 0], "data_offsets": [0, 0]}, "b": 3}),
        raw_safetensors({"a": {"dtype": "X32", "shape": [1], "data_offsets": [0, 4]}}, b"1234"),
    ],
)
def test_weights_that_are_not_safetensors_are_refused_whatever_the_hash(tmp_path: Path, weights: bytes) -> None:
    folder = forge(save_checkpoint(tmp_path, checkpoint(3)), weights=weights)
    for load in (load_checkpoint, load_weights):
        with pytest.raises(CheckpointError) as caught:
            load(folder)
        assert_one_line_with_remedy(str(caught.value), folder / "weights.safetensors")


@pytest.mark.parametrize(
    "state", [b"", b"[3]", b'{"step": 3', b'{"step": NaN}', b"\xff", b"[" * 100_000, b'{"step": 4}']
)
def test_a_state_that_is_not_ours_is_refused_whatever_the_hash(tmp_path: Path, state: bytes) -> None:
    folder = forge(save_checkpoint(tmp_path, checkpoint(3)), state=state)
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(folder)
    assert_one_line_with_remedy(str(caught.value), folder / "state.json")


def test_an_unexpected_dtype_is_named(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(3))
    save_file({"a": torch.zeros(3, dtype=torch.float8_e4m3fn)}, folder / "weights.safetensors")
    forge(folder)
    with pytest.raises(CheckpointError) as caught:
        load_weights(folder)
    assert_one_line_with_remedy(str(caught.value), folder / "weights.safetensors", "'a'", "F8_E4M3", "F32")


def test_the_manifest_cannot_name_other_files(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(3))
    (tmp_path / "secret").write_bytes(b"secret")
    remanifest(folder, "weights.safetensors", "state.json", "../secret")
    with pytest.raises(CheckpointError, match=r"manifest\.json is damaged"):
        load_checkpoint(folder)


@pytest.mark.parametrize("name", FILES)
def test_a_link_out_of_the_directory_is_refused(tmp_path: Path, name: str) -> None:
    folder = save_checkpoint(tmp_path / "checkpoints", checkpoint(3))
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(folder)
    assert_one_line_with_remedy(str(caught.value), folder / name, "link")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(3))
    (folder / "weights.safetensors").unlink()
    os.mkfifo(folder / "weights.safetensors")
    with pytest.raises(CheckpointError, match="not a regular file"):
        load_checkpoint(folder)


def test_files_beyond_the_cap_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(3))
    monkeypatch.setattr(regard.checkpoint, "MAX_BYTES", 250)
    with pytest.raises(CheckpointError) as caught:
        load_weights(folder)
    assert_one_line_with_remedy(str(caught.value), folder / "weights.safetensors", "250")


def test_huge_json_is_not_read(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(3))
    with (folder / "manifest.json").open("ab") as file:
        file.truncate(17 * 2**20)
    with pytest.raises(CheckpointError, match="more than the 16777216"):
        load_checkpoint(folder)


# --- what the model expects


def expected_with(name: str, signature: tuple[tuple[int, ...], torch.dtype] | None) -> Any:
    expected = signatures_of(tensors(3))
    if signature is None:
        del expected[name]
    else:
        expected[name] = signature
    return expected


@pytest.mark.parametrize(
    ("name", "signature", "shown"),
    [
        ("embedding", ((5, 7), torch.float32), ["7×5 float32", "5×7 float32"]),
        ("scale", ((), torch.float32), ["a scalar float64", "a scalar float32"]),
        ("zeta", ((3,), torch.float32), ["nothing", "3 float32"]),
        ("output.bias", None, ["5 float32", "nothing"]),
    ],
)
def test_weights_of_another_model_are_refused_before_any_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, signature: Any, shown: list[str]
) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(3))
    monkeypatch.setattr(Tensor, "clone", lambda self: pytest.fail("a tensor was read"))
    with pytest.raises(CheckpointError) as caught:
        load_weights(folder, expected_with(name, signature))
    assert_one_line_with_remedy(str(caught.value), folder / "weights.safetensors", repr(name), *shown)


def test_weights_of_this_model_load(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(3))
    assert load_weights(folder, signatures_of(tensors(3))).keys() == tensors(3).keys()


def test_the_moving_average_is_read_where_it_is_asked_for_and_there(tmp_path: Path) -> None:
    moved = {f"ema:{name}": tensor + 1 for name, tensor in tensors(3).items()}
    folder = save_checkpoint(tmp_path, Checkpoint(3, tensors(3), moved | {"exp_avg:a": torch.zeros(2)}, {}))
    found = load_weights(folder, signatures_of(tensors(3)), moving_average=True)
    assert all(torch.equal(found[name], tensor + 1) for name, tensor in tensors(3).items())
    ended = save_folder(tmp_path / "final", Checkpoint(3, tensors(3), {}, {}))
    for weights in (load_weights(folder), load_weights(ended, moving_average=True)):
        assert all(torch.equal(weights[name], tensor) for name, tensor in tensors(3).items())


# --- averaging


def test_the_average_is_the_mean_in_float64(tmp_path: Path) -> None:
    folders = [save_checkpoint(tmp_path, checkpoint(step)) for step in (3, 5, 11)]
    average = average_weights(folders)
    for name, tensor in average.items():
        inputs = torch.stack([tensors(step)[name].double() for step in (3, 5, 11)])
        assert tensor.dtype == inputs.to(tensors(3)[name].dtype).dtype
        torch.testing.assert_close(tensor, inputs.mean(0).to(tensor.dtype), rtol=1e-7, atol=0)


def test_float32_would_lose_what_the_average_keeps(tmp_path: Path) -> None:
    values = [1.0] + [2.0**-25] * 3
    folders = [
        save_checkpoint(tmp_path, Checkpoint(step, {"a": torch.tensor([value])}, {}, {}))
        for step, value in enumerate(values)
    ]
    assert average_weights(folders)["a"].item() == torch.tensor(sum(values) / 4).item() != 0.25


@pytest.mark.parametrize("copies", [1, 3, 7])
def test_the_average_of_copies_is_the_original(tmp_path: Path, copies: int) -> None:
    weights = {**tensors(3), "count": torch.tensor([2**60 + 1]), "half": torch.randn(13).bfloat16()}
    folder = save_checkpoint(tmp_path, Checkpoint(3, weights, {}, {}))
    average = average_weights([folder] * copies)
    assert signatures_of(average) == signatures_of(weights)
    # float64 itself is not exact under a division by three
    assert all(torch.equal(average[name], weights[name]) for name in weights if name != "scale")
    torch.testing.assert_close(average["scale"], weights["scale"], rtol=1e-15, atol=0)


def test_the_average_of_two_models_is_refused(tmp_path: Path) -> None:
    folders = [save_checkpoint(tmp_path, checkpoint(3, width=5)), save_checkpoint(tmp_path, checkpoint(4, width=11))]
    with pytest.raises(CheckpointError) as caught:
        average_weights(folders)
    assert_one_line_with_remedy(str(caught.value), folders[1], "'embedding'", "7×11", "7×5")


def test_the_average_of_nothing_is_refused() -> None:
    with pytest.raises(CheckpointError, match="no checkpoint to average"):
        average_weights([])


# --- the directory


def test_steps_are_digits_with_a_manifest(tmp_path: Path) -> None:
    for step in (20, 3, 100):
        save_checkpoint(tmp_path, checkpoint(step))
    for name in (".tmp-7-1", "best", "007", "٣", "8", "-1"):
        (tmp_path / name).mkdir()
        if name != "8":
            shutil.copy(tmp_path / "3" / "manifest.json", tmp_path / name)
    assert committed_steps(tmp_path) == [3, 20, 100]
    assert committed_steps(tmp_path / "nowhere") == []


def test_temporaries_are_cleared_and_nothing_else(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, checkpoint(3))
    (tmp_path / ".tmp-7-1-ab").mkdir()
    (tmp_path / ".tmp-7-1-ab" / "weights.safetensors").write_bytes(b"half")
    (tmp_path / ".tmp-file").write_bytes(b"")
    (tmp_path / "notes").write_bytes(b"")
    assert clear_temporaries(tmp_path) == [".tmp-7-1-ab", ".tmp-file"]
    assert sorted(os.listdir(tmp_path)) == ["3", "notes"]
    assert clear_temporaries(tmp_path / "nowhere") == []


def test_a_removed_checkpoint_is_gone(tmp_path: Path) -> None:
    remove_checkpoint(save_checkpoint(tmp_path, checkpoint(3)))
    assert os.listdir(tmp_path) == []


def test_a_checkpoint_half_removed_is_not_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(3))
    monkeypatch.setattr(shutil, "rmtree", failing(OSError(errno.EIO, "Input/output error")))
    with pytest.raises(RunError, match="Input/output error"):
        remove_checkpoint(folder)
    assert committed_steps(tmp_path) == []
    assert len(os.listdir(tmp_path)) == 1


def test_saving_the_same_again_leaves_it_alone(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(3))
    inode = folder.stat().st_ino
    save_checkpoint(tmp_path, checkpoint(3))
    assert folder.stat().st_ino == inode
    assert os.listdir(tmp_path) == ["3"]


def test_saving_something_else_replaces_it(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, checkpoint(3))
    save_checkpoint(tmp_path, checkpoint(3, width=11))
    assert_equal(load_checkpoint(tmp_path / "3"), checkpoint(3, width=11))
    assert os.listdir(tmp_path) == ["3"]


@pytest.mark.parametrize("name", FILES)
def test_saving_again_mends_damage(tmp_path: Path, name: str) -> None:
    path = save_checkpoint(tmp_path, checkpoint(3)) / name
    path.write_bytes(path.read_bytes()[:-2] + b"x\n")
    save_checkpoint(tmp_path, checkpoint(3))
    assert_equal(load_checkpoint(tmp_path / "3"), checkpoint(3))


# --- a process that dies


def killed(work: Callable[[], object], patience: float | None = None) -> bool:
    """Runs `work` in a forked child and kills it after `patience` seconds; whether it died of a kill."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    if patience is not None:
        time.sleep(patience)
        os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def die_at_call(number: int, work: Callable[[], object]) -> None:
    """Runs `work`; the process kills itself before the `number`-th call that changes the disk."""
    calls = 0

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for name in ("open", "write", "fsync", "close", "rename", "replace", "mkdir", "unlink", "rmdir"):
        setattr(os, name, counted(getattr(os, name)))
    work()


def deaths(work: Callable[[], object], least: int) -> Iterator[None]:
    """Runs `work` in children that die at their first, second … call, until one lives; yields after each.

    There must be `least` calls to die at, or the children died of something else.
    """
    for point in range(1, 100):
        died = killed(partial(die_at_call, point, work))
        yield
        if not died:
            assert point > least
            return
    pytest.fail("no child lived")


@pytest.mark.parametrize(
    ("second", "least"),
    [(checkpoint(3), 0), (checkpoint(3, width=11), 25), (checkpoint(4), 20)],
    ids=["same", "new", "next"],
)
def test_a_death_at_any_call_leaves_a_checkpoint(tmp_path: Path, second: Checkpoint, least: int) -> None:
    save_checkpoint(tmp_path, checkpoint(3))
    found = checkpoint(3)
    for _ in deaths(lambda: save_checkpoint(tmp_path, second), least):
        clear_temporaries(tmp_path)
        assert all(name.isdigit() for name in os.listdir(tmp_path))
        last = committed_steps(tmp_path)[-1]
        found = load_checkpoint(tmp_path / str(last))
        is_first = last == 3 and found.weights["embedding"].shape == (7, 5)
        assert_equal(found, checkpoint(3) if is_first else second)
        if not is_first:  # start each child from the same directory
            remove_checkpoint(tmp_path / str(last))
            save_checkpoint(tmp_path, checkpoint(3))
    assert_equal(found, second)


def test_a_death_while_removing_never_leaves_half_a_checkpoint(tmp_path: Path) -> None:
    folder = save_checkpoint(tmp_path, checkpoint(3))
    left = ["3"]
    for _ in deaths(lambda: remove_checkpoint(folder), least=5):
        clear_temporaries(tmp_path)
        left = os.listdir(tmp_path)
        if left:
            assert_equal(load_checkpoint(folder), checkpoint(3))
        else:
            save_checkpoint(tmp_path, checkpoint(3))
    assert left == []


def test_kills_at_random_times_leave_the_last_checkpoint(tmp_path: Path) -> None:
    checkpoints, told = tmp_path / "checkpoints", tmp_path / "told"

    def save_on() -> None:
        for step in range(committed_steps(checkpoints)[-1] + 1, 10_000):
            save_checkpoint(checkpoints, checkpoint(step, width=4099))
            write_atomically(told, str(step).encode())

    save_checkpoint(checkpoints, checkpoint(0, width=4099))
    told.write_text("0")
    chance = random.Random(5)
    for _ in range(15):
        assert killed(save_on, chance.uniform(0.01, 0.1))
        clear_temporaries(checkpoints)
        last = committed_steps(checkpoints)[-1]
        assert int(told.read_text()) <= last
        assert_equal(load_checkpoint(checkpoints / str(last)), checkpoint(last, width=4099))
    assert int(told.read_text()) > 0


# --- a disk that fills


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


def test_a_full_disk_is_one_line_and_the_old_checkpoint_stays(small_disk: Callable[[str], Path]) -> None:
    folder = small_disk("1m") / "checkpoints"
    save_checkpoint(folder, checkpoint(3))
    for step, width in ((4, 50_021), (3, 50_021)):
        with pytest.raises(RunError) as caught:
            save_checkpoint(folder, checkpoint(step, width))
        assert_one_line_with_remedy(str(caught.value), folder / str(step), "full", "--resume")
        assert os.listdir(folder) == ["3"]
        assert_equal(load_checkpoint(folder / "3"), checkpoint(3))
    save_checkpoint(folder, checkpoint(4))
    assert committed_steps(folder) == [3, 4]


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        (errno.ENOSPC, ["full", "Free"]),
        (errno.EDQUOT, ["full", "Free"]),
        (errno.EROFS, ["Read-only file system", "another place"]),
    ],
)
def test_a_failed_write_leaves_the_old_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, parts: list[str]
) -> None:
    path = tmp_path / "config.json"
    write_atomically(path, b"old")
    monkeypatch.setattr(os, "fsync", failing(OSError(code, os.strerror(code))))
    with pytest.raises(RunError) as caught:
        write_atomically(path, b"new")
    assert_one_line_with_remedy(str(caught.value), path, *parts)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["config.json"]


def test_a_short_write_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data)[:3]))
    write_atomically(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"0123456789")
    reader.join(timeout=10)
    assert read == [b"0123456789"]
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe"]
    write_atomically(Path("/dev/null"), b"0123456789")
    assert Path("/dev/null").is_char_device()
