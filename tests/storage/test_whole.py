"""Files for the user are written completely or not at all, and failures are explained."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from iceexplore.errors import OptionError, StorageError
from iceexplore.storage import ExistsError, place_to_write, whole_file
from tests.helpers.full_disk import little_room


def write(path: Any, data: bytes, *, overwrite: bool = False) -> None:
    with whole_file(path, overwrite=overwrite) as out:
        out.write(data)


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    place = tmp_path / "x"
    write(place, b"1")
    umask = os.umask(0)
    os.umask(umask)
    assert place.stat().st_mode & 0o777 == 0o666 & ~umask
    with pytest.raises(ExistsError, match="overwrite=True"):
        write(place, b"2")
    with little_room(), pytest.raises(StorageError, match="nothing was changed"):
        write(place, b"3" * 10_000, overwrite=True)
    assert place.read_bytes() == b"1"
    write(place, b"4", overwrite=True)
    assert place.read_bytes() == b"4"
    assert os.listdir(tmp_path) == ["x"]


def test_one_that_came_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(ExistsError), whole_file(tmp_path / "x"):
        (tmp_path / "x").write_bytes(b"mine")
    assert (tmp_path / "x").read_bytes() == b"mine"
    assert os.listdir(tmp_path) == ["x"]


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"1")
    (tmp_path / "link").symlink_to(tmp_path / "x")
    write(tmp_path / "link", b"2", overwrite=True)
    assert (tmp_path / "link").is_symlink() and (tmp_path / "x").read_bytes() == b"2"


def test_where_no_file_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, why in [
        (None, "expected the file to write"),
        ("half \ud800.html", "a lone surrogate"),
        ("nul \0.html", "a NUL"),
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "x", "the folder .*none does not exist: create it"),
        (tmp_path / "pipe", "not a regular file"),
        ("s3://bucket/x.html", "the local disk"),
        ("file://elsewhere/x.html", "names the host elsewhere"),
    ]:
        with pytest.raises(OptionError, match=why):
            place_to_write(path, overwrite=True)  # type: ignore[arg-type]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert place_to_write("~/x") == tmp_path / "x"


def test_a_uri_of_this_machine_is_its_path(tmp_path: Path) -> None:
    write(f"file://{tmp_path}/x", b"1")
    write(f"file:{tmp_path}/y", b"2")
    assert sorted(os.listdir(tmp_path)) == ["x", "y"]


def test_a_uri_is_decoded_unless_what_it_spells_is_there(tmp_path: Path) -> None:
    write(f"file://{tmp_path}/a%20b%23.html", b"1")
    (tmp_path / "c%20d").mkdir()
    write(f"file://{tmp_path}/c%20d/e%20f", b"2")
    write(f"{tmp_path}/g%20h", b"3")
    write(f"file://{tmp_path}/g%20h", b"4", overwrite=True)
    found = {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert found == {"a b#.html": b"1", "c%20d/e f": b"2", "g%20h": b"4"}


def test_a_name_that_is_too_long_is_the_disk_s_to_refuse(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="could not be written"):
        place_to_write(tmp_path / ("x" * 300))
