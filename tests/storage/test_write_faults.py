"""Files that cannot be written into a table's folder: the errors."""

from __future__ import annotations

import errno
import os
import resource
import signal
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.errors import AccessDeniedError, OptionError, OutsideRootsError, StorageError, UnsupportedError
from iceexplore.storage.output import _folder

ROWS = {"id": [1], "s": ["a"]}


@pytest.fixture
def lab(tmp_path: Path) -> ix.Lab:
    return ix.create(tmp_path / "t", {"id": "long", "s": "string"}, partition_by="s")


def test_a_file_in_the_way_is_named(lab: ix.Lab, tmp_path: Path) -> None:
    data = tmp_path / "t" / "data"
    data.write_bytes(b"")
    with pytest.raises(StorageError, match=rf"could not be written: {data} is a file, but must be a folder"):
        lab.append(ROWS)
    data.unlink()
    lab.append(ROWS)
    (data / "s=b").symlink_to(data / "nothing")
    with pytest.raises(StorageError, match=rf"{data}/s=b is a link that leads nowhere"):
        lab.append({"id": [1], "s": ["b"]})


def test_a_full_disk(lab: ix.Lab) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        with pytest.raises(StorageError, match=r"-data.parquet could not be written: File too large$"):
            lab.append(ROWS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert lab.append(ROWS) is not None


@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [
        (errno.ENOSPC, StorageError, r"could not be written: No space left on device; make room on the disk$"),
        (errno.EROFS, StorageError, r"could not be written: Read-only file system$"),
        (
            errno.EACCES,
            AccessDeniedError,
            r"could not be written: Permission denied. Check the permissions and the owner of /.*/s=a",
        ),
        (errno.EPERM, AccessDeniedError, r"could not be written: Operation not permitted. Check the permissions"),
    ],
)
def test_what_the_system_says(
    lab: ix.Lab, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception], message: str
) -> None:
    def failing(path: str, data: bytes) -> None:
        raise OSError(number, os.strerror(number), path)  # root, as whom tests may run, is refused nothing

    monkeypatch.setattr(_folder, "_write", failing)
    with pytest.raises(kind, match=message) as caught:
        lab.append(ROWS)
    assert "could not be read" not in str(caught.value) and "credentials" not in str(caught.value)


def test_a_file_system_without_links(lab: ix.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(src: str, dst: str) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM), src, None, dst)

    monkeypatch.setattr(os, "link", failing)
    with pytest.raises(UnsupportedError, match="has no hard links"):
        lab.append(ROWS)


def test_a_link_is_named_with_its_target(lab: ix.Lab, tmp_path: Path) -> None:
    lab.append(ROWS)  # the folder is known from now on
    data = tmp_path / "t" / "data" / "s=a"
    data.rename(tmp_path / "outside")
    data.symlink_to(tmp_path / "outside")
    with pytest.raises(OutsideRootsError) as caught:
        lab.append(ROWS)
    written, _, rest = str(caught.value).partition(" leads to ")
    assert written.startswith(f"file://{data}/") and rest.startswith(f"{tmp_path}/outside/")
    assert rest.endswith(f": a lab writes only in its own folder, {tmp_path}/t")


def test_an_overlay_where_a_file_is(lab: ix.Lab, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match=r"file is a file, but must be a folder"):
        lab.table.simulate(overlay=tmp_path / "file")


def test_refused_reads_of_local_files_do_not_speak_of_object_stores(
    lab: ix.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = os.open

    def refuse(path: Any, *args: Any, **kwargs: Any) -> int:
        if str(path).endswith("v1.metadata.json"):
            raise PermissionError(13, "Permission denied", path)
        return really(path, *args, **kwargs)

    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(
        AccessDeniedError, match=r"was refused .*check the permissions of the file and of the folders above it$"
    ):
        ix.open(tmp_path / "t")


# Hosts ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("uri", ["file://otherhost/tmp/x", "FILE://otherhost", "file://10.0.0.1/x"])
def test_files_of_other_machines_are_refused(
    lab: ix.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uri: str
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = pytest.raises(OptionError, match=r"names the host (otherhost|10.0.0.1), and file: is for files of this")
    with refused:
        ix.create(uri, {"id": "long"})
    with refused:
        ix.open(uri)
    with refused:
        ix.lab(uri)
    with refused:
        ix.open(tmp_path / "t", allow=[uri])
    with refused:
        ix.open(tmp_path / "t", moved={"/elsewhere": uri})
    with refused:
        lab.table.simulate(overlay=uri)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t"]


def test_files_of_this_machine_are_not(lab: ix.Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for uri in (f"file:{tmp_path}/t", f"file://{tmp_path}/t", f"file://localhost{tmp_path}/t", "file://./t"):
        assert ix.open(uri).metadata.location == f"file://{tmp_path}/t"
