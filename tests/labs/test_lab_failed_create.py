"""A lab that cannot be created leaves nothing behind."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.errors import CatalogError, OptionError
from iceexplore.labs import _new_place, _open
from iceexplore.labs._catalog import CatalogRow
from iceexplore.storage import write_new as real_write


def _full(*given: Any, **named: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("function", ["write_new", "replace_file"])
def test_a_full_disk(function: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(_new_place if function == "write_new" else _open, function, _full)
        with pytest.raises(OptionError, match=r"cannot create a table: .*No space left"):
            ix.create(tmp_path / "a" / "b" / "t", {"id": "long"})
    assert os.listdir(tmp_path) == []
    ix.create(tmp_path / "a" / "b" / "t", {"id": "long"})


def test_an_empty_folder_of_the_user_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t").mkdir()
    monkeypatch.setattr(_open, "replace_file", _full)
    with pytest.raises(OptionError):
        ix.create(tmp_path / "t", {"id": "long"})
    assert list(tmp_path.rglob("*")) == [tmp_path / "t"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_interrupted(error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*given: Any, **named: Any) -> None:
        raise error

    monkeypatch.setattr(_open, "open_lab", stop)
    with pytest.raises(error):
        ix.create(tmp_path / "t", {"id": "long"})
    assert os.listdir(tmp_path) == []


def test_the_file_is_there_and_its_folder_is_not_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_new(path: str, data: bytes) -> None:
        real_write(path, data)
        _full()

    monkeypatch.setattr(_new_place, "write_new", write_new)
    with pytest.raises(OptionError):
        ix.create(tmp_path / "t", {"id": "long"})
    assert os.listdir(tmp_path) == []


def test_another_writers_table_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def first(path: str, data: bytes) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(_new_place, "write_new", real_write)
            ix.create(tmp_path / "t", {"theirs": "long"}).append({"theirs": [7]})
        real_write(path, data)

    monkeypatch.setattr(_new_place, "write_new", first)
    with pytest.raises(OptionError, match="another writer"):
        ix.create(tmp_path / "t", {"id": "long"})
    assert ix.open(tmp_path / "t").to_arrow().to_pydict() == {"theirs": [7]}


def test_a_commit_that_came_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = _open.open_lab

    def commits(source: Any, **named: Any) -> None:
        monkeypatch.setattr(_open, "open_lab", real)
        ix.lab(source).append({"id": [1]})
        raise KeyboardInterrupt

    monkeypatch.setattr(_open, "open_lab", commits)
    with pytest.raises(KeyboardInterrupt):
        ix.create(tmp_path / "t", {"id": "long"})
    assert ix.open(tmp_path / "t").count() == 1


@pytest.mark.parametrize("added", [False, True])
def test_a_catalog_that_fails(added: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    catalog = sql.SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "w"))
    catalog.create_namespace("db")
    real = CatalogRow.add

    def add(row: CatalogRow, location: str) -> None:
        if added:
            real(row, location)
        raise CatalogError("lost")

    before = set(tmp_path.rglob("*"))
    with monkeypatch.context() as patch:
        patch.setattr(CatalogRow, "add", add)
        with pytest.raises(CatalogError, match="lost"):
            ix.create("db.t", {"id": "long"}, catalog=catalog)
    if added:  # the catalog has it in spite of the error
        assert ix.lab("db.t", catalog=catalog).append({"id": [1]}) is not None
    else:
        assert set(tmp_path.rglob("*")) == before
        ix.create("db.t", {"id": "long"}, catalog=catalog)
