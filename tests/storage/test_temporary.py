"""Temporary folders: swept after killed processes, and errors of ours where there is no room for them."""

from __future__ import annotations

import builtins
import errno
import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

import iceexplore as ix
from iceexplore.errors import TemporaryFolderError
from iceexplore.storage import _temporary

pytestmark = pytest.mark.skipif(os.name == "nt", reason="folders are not locked on Windows")

KILLED = """
import os, signal, sys
import iceexplore as ix
s = ix.sample().simulate(seed=1)
s.delete_files(s.inspect.data_files()["file_path"].iloc[0])
t = ix.open(sys.argv[1])
e = ix.empty({"id": "long"})
print(s.overlay, flush=True)
if sys.argv[2] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
sys.stdin.read()
"""


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder for this test alone, looked through each time."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(_temporary, "_PAUSE", 0.0)
    yield folder
    gc.collect()


@pytest.fixture
def zipped(tmp_path: Path) -> Path:
    ix.sample().bundle(tmp_path / "t.zip")
    return tmp_path / "t.zip"


def started(zipped: Path, end: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", KILLED, str(zipped), end], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_folders_of_killed_processes_are_swept(room: Path, zipped: Path) -> None:
    process = started(zipped, "kill")
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    left = set(os.listdir(room))
    kinds = {name.split("-")[1] for name in left}
    assert kinds == {"overlay", "zip", "table"}
    s = ix.sample().simulate()
    assert os.listdir(room) == [os.path.basename(s.overlay)] and not left & set(os.listdir(room))


def test_folders_of_living_processes_stay(room: Path, zipped: Path) -> None:
    process = started(zipped, "wait")
    try:
        assert process.stdout is not None
        overlay = Path(process.stdout.readline().strip())
        held = set(os.listdir(room))
        files = sorted(p for p in overlay.rglob("*") if p.is_file())
        assert files and len(held) >= 3
        s = ix.sample().simulate()
        assert held < set(os.listdir(room)) and s.overlay != str(overlay)
        assert sorted(p for p in overlay.rglob("*") if p.is_file()) == files
    finally:
        process.communicate("")
    assert process.returncode == 0 and not held & set(os.listdir(room))


def test_nothing_else_is_swept(room: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_bytes(b"x")
    (room / "iceexplore-overlay-locked-aaaaaaaa").symlink_to(kept)
    (room / "iceexplore-overlay-locked-bbbbbbbb").write_bytes(b"a file")
    for name in ("iceexplore-overlay-cccccccc", "iceexplore-zip-locked-dddddddd.old", "other-overlay-locked-eeeeeeee"):
        (room / name).mkdir()
    swept = room / "iceexplore-zip-locked-ffffffff"
    swept.mkdir()
    (swept / "link").symlink_to(kept)
    before = set(os.listdir(room)) - {swept.name}
    s = ix.sample().simulate()
    assert set(os.listdir(room)) == before | {os.path.basename(s.overlay)}
    assert (kept / "file").read_bytes() == b"x"


def test_folders_of_other_users_stay(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = room / "iceexplore-zip-locked-ffffffff"
    other.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: 12345)
        s = ix.sample().simulate()
        assert other.is_dir()
    again = ix.sample().simulate()
    assert not other.exists() and s.overlay != again.overlay


def test_a_file_system_without_locks(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(descriptor: int, how: int) -> None:
        raise OSError(errno.EBADF, "no locks")

    with monkeypatch.context() as patch:
        patch.setattr("fcntl.flock", refused)
        s = ix.sample().simulate()
    ix.sample().simulate()
    assert Path(s.overlay).is_dir()
    s.close()
    assert not Path(s.overlay).exists()


class _Disk:
    """A temporary folder in which nothing can be made (``folders``), or nothing written (``files``)."""

    def __init__(self, room: Path, number: int, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
        error = OSError(number, os.strerror(number))
        opened, made, named = builtins.open, os.mkdir, tempfile.mkdtemp

        def inside(path: Any) -> bool:
            return isinstance(path, str | os.PathLike) and os.fspath(path).startswith(str(room))

        def refuse(path: Any, mode: str = "r", *args: Any, **others: Any) -> Any:
            if inside(path) and set(mode) & set("wxa"):
                raise error
            return opened(path, mode, *args, **others)

        def no_folder(path: Any, *args: Any, **others: Any) -> None:
            if inside(path):
                raise error
            made(path, *args, **others)

        def no_name(*args: Any, **others: Any) -> str:
            if what == "folders":
                raise error
            monkeypatch.setattr(os, "mkdir", made)
            try:
                return str(named(*args, **others))
            finally:
                monkeypatch.setattr(os, "mkdir", no_folder)

        monkeypatch.setattr(builtins, "open", refuse)
        monkeypatch.setattr(os, "mkdir", no_folder)
        monkeypatch.setattr(tempfile, "mkdtemp", no_name)


@pytest.mark.parametrize("what", ["folders", "files"])
@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.ENOSPC, "is full .No space left on device.. Make room there, or"),
        (errno.EROFS, "is read-only"),
        (errno.EACCES, "is read-only"),
    ],
)
def test_no_room(room: Path, tmp_path: Path, zipped: Path, number: int, why: str, what: str) -> None:
    path = tmp_path / "x.orc"
    orc.write_table(pa.table({"id": [1]}), path)
    lab = ix.create(tmp_path / "lab", {"id": "long"})
    lab.append({"id": [1, 2]})
    t = ix.open(tmp_path / "lab")

    def simulated() -> None:
        s = t.simulate()
        s.delete_files(s.inspect.data_files()["file_path"].iloc[0])

    tried = {
        "simulate": simulated,
        "zip": lambda: ix.open(zipped),
        "plan": lambda: t.plan("id > 1", row_groups=True),
        "empty": lambda: ix.empty({"id": "long"}),
        "orc": lambda: ix.open_file(path),
    }
    for name, attempt in tried.items():
        with pytest.MonkeyPatch.context() as patch:
            _Disk(room, number, what, patch)
            with pytest.raises(TemporaryFolderError, match=why) as caught:
                attempt()
        assert not t.problems
        assert str(room) in str(caught.value) and "TMPDIR" in str(caught.value), name
        assert ("overlay=" in str(caught.value)) == (name == "simulate"), name
    del caught
    gc.collect()
    assert os.listdir(room) == []
    simulated()  # and with room again it works


def test_no_temporary_folder_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(TemporaryFolderError, match=r"none is writable: set the .* TMPDIR"):
        ix.sample().simulate()


_KILLED_SAVE = """
import os, signal, sys
import iceexplore as ix
from iceexplore.commits.saving import _save
_save._publish = lambda building, target: os.kill(os.getpid(), signal.SIGKILL)
ix.empty({"id": "long"}).save(sys.argv[1])
"""


@pytest.mark.skipif(os.name != "posix", reason="nothing is locked there, so nothing is swept")
def test_what_a_killed_save_left_goes_with_the_next(tmp_path: Path) -> None:
    """A day later, and if it is of the same target: not of all machines that share a folder the locks are seen."""
    target = tmp_path / "t"
    done = subprocess.run([sys.executable, "-c", _KILLED_SAVE, str(target)], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".t-iceexplore-locked-") and any(left.rglob("*.json"))
    other = tmp_path / f".t2{left.name[2:]}"
    mine = tmp_path / ".t-iceexplore-mine"
    for folder in (other, mine):
        folder.mkdir()
        os.utime(folder, (0, 0))
    simulation = ix.empty({"id": "long"})
    simulation.save(target)
    assert left.exists(), "it may be another machine's that is still at it"
    os.utime(left, (0, 0))
    lock = _temporary._lock_of(str(left))
    assert lock is not None
    (target / "metadata").rename(tmp_path / "gone")
    simulation.save(target)
    assert left.exists(), "somebody has it locked"
    os.close(lock)
    (target / "metadata").rename(tmp_path / "gone2")
    simulation.save(target)
    assert not left.exists() and other.exists() and mine.exists()
    assert {p.name for p in tmp_path.iterdir()} == {"t", "gone", "gone2", other.name, mine.name}
