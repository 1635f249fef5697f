"""Names that no metadata holds, packages that are not there, and attempts that were lost."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import check_rules
from iceexplore.labs import _failed_commit_cleanup
from iceexplore.storage import CACHE
from tests.helpers.folders import local
from tests.labs.test_lab_rows import in_between
from tests.labs.writers import append as appends
from tests.labs.writers import context, go_on, new_lab, sql_catalog


def append(lab: ix.Lab, number: int) -> Any:
    return lab.append({"id": [number], "writer": [0]})


def test_names_with_half_a_character(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused = pytest.raises(ix.OptionError, match=r"contains a lone surrogate .*choose another name")
    with refused:
        ix.create("\udcff", {"id": "long"})
    (tmp_path / "\udcff").mkdir()
    monkeypatch.chdir(tmp_path / "\udcff")
    with refused:
        ix.create("t", {"id": "long"})
    with refused:
        ix.create("db.\udcff", {"id": "long"}, catalog=sql_catalog(tmp_path))
    assert not any((tmp_path / "\udcff").iterdir())


def test_the_error_says_how_to_get_sqlalchemy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyiceberg.catalog.sql", None)
    with pytest.raises(ix.MissingDependencyError, match=r"SQLAlchemy .*pip install 'iceexplore\[catalog\]'"):
        ix.create("db.t", {"id": "long"}, catalog="here")


# Attempts that were lost ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("protocol", ["rename", "check-and-put"])
def test_lost_attempts_leave_nothing(tmp_path: Path, protocol: str, version: int) -> None:
    lab, place = new_lab(tmp_path, protocol, format_version=version)
    lab.set_properties({"commit.manifest.min-count-to-merge": "2"})  # each attempt merges other manifests
    append(lab, 0)
    two = go_on(place)
    for n in (1, 3):
        in_between(lab, lambda n=n: append(two, n))  # type: ignore[misc]
        append(lab, n + 1)
    assert [r.attempts for r in lab._sandbox.records][-2:] == [2, 2]
    assert not len(lab.orphan_files(running=True))
    assert sorted(build.to_pylist(lab.to_arrow()["id"])) == [0, 1, 2, 3, 4]
    for snapshot in lab.snapshots:  # each of them is whole
        then = lab.at(snapshot=snapshot.snapshot_id)
        assert len(then.to_arrow()) == then.count() > 0
    assert not check_rules(lab.state) and not len(lab.verify())


def test_writers_in_a_race_leave_nothing(tmp_path: Path) -> None:
    lab, place = new_lab(tmp_path, "rename")
    made = context()
    processes = [made.Process(target=appends, args=(place, n, 6)) for n in range(3)]
    for p in processes:
        p.start()
    for p in processes:
        p.join()
    lab.refresh()
    assert lab.count() == 18 and not len(lab.orphan_files(running=True)) and not len(lab.verify())


def test_an_attempt_that_was_published_after_all_keeps_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A database that has put the location, and says that it has not."""
    lab, _ = new_lab(tmp_path, "check-and-put")
    append(lab, 0)
    pointer = lab._sandbox.pointer
    swap = type(pointer).swap

    def lying(self: Any, expected: str, new: str) -> bool:
        monkeypatch.setattr(type(pointer), "swap", swap)
        swap(self, expected, new)
        return False

    monkeypatch.setattr(type(pointer), "swap", lying)
    try:
        append(lab, 1)
    except ix.IceexploreError:
        lab.refresh()
    assert lab.to_arrow()["id"].to_pylist().count(0) == 1 and not len(lab.verify())
    lab.remove_orphan_files(0)
    before = set(tmp_path.rglob("*"))
    for record in lab._sandbox.records:
        _failed_commit_cleanup.remove_lost(lab._sandbox.storage, replace(record, attempts=9), lab.state)
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(("protocol", "version"), [("rename", 2), ("check-and-put", 3), ("rename", 4)])
def test_refused_commits_leave_nothing(tmp_path: Path, protocol: str, version: int) -> None:
    lab, place = new_lab(tmp_path, protocol, format_version=version)
    lab.set_properties({"write.delete.mode": "merge-on-read"})
    for n in range(4):
        append(lab, n)
    two = go_on(place)
    in_between(lab, lambda: two.delete("id = 1"))
    with pytest.raises(ix.CommitConflictError):
        lab.compact()
    in_between(lab, lambda: append(two, 9))
    with pytest.raises(ix.CommitConflictError, match="no-new-conflicting-files"):
        lab.delete("id = 0 or id = 9 or id = 2")
    lab.refresh()
    with pytest.raises(ZeroDivisionError):
        lab.update({"writer": lambda rows: 1 // 0}, "id = 2")
    assert not len(lab.orphan_files(running=True)) and not len(lab.verify())
    assert sorted(build.to_pylist(lab.to_arrow()["id"])) == [0, 2, 3, 9]
    assert lab.cost().commits["orphans"].sum() > 0  # it tells what was written all the same


def test_a_commit_in_doubt_keeps_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that does not answer, and puts the location once nobody waits for it any more."""
    lab, place = new_lab(tmp_path, "check-and-put")
    pointer = lab._sandbox.pointer
    asked: list[tuple[str, str]] = []

    def silent(self: Any, expected: str, new: str) -> bool:
        asked.append((expected, new))
        raise ix.CatalogError("it is not known whether the commit was made")

    with monkeypatch.context() as patch:
        patch.setattr(type(pointer), "swap", silent)
        with pytest.raises(ix.CatalogError):
            append(lab, 1)
    assert pointer.swap(*asked[0])
    assert go_on(place).to_arrow()["id"].to_pylist() == [1] and not len(go_on(place).verify())


_READS = ("manifest-list", "manifest", "data-file", "delete-file")


@pytest.mark.parametrize("kind", _READS)
def test_what_goes_while_it_is_read_is_a_conflict(tmp_path: Path, kind: str) -> None:
    """Another writer commits, and lets expire what this one is being made on, after its plan is read, say."""
    lab, place = new_lab(tmp_path, "rename")
    lab.set_properties({"write.delete.mode": "merge-on-read"})
    lab.append({"id": [1, 2], "writer": [0, 0]})
    append(lab, 3)
    lab.delete("id = 1")
    one, two = go_on(place), go_on(place)
    storage = one._sandbox.storage
    read, opened = storage.read, storage.open

    def before(what: str) -> None:
        if what == kind:
            storage.read, storage.open = read, opened  # type: ignore[method-assign]
            two.compact()
            two.rewrite_manifests()
            two.expire_snapshots(older_than=2**60, retain_last=1)

    def reading(location: str, *, kind: str, **how: Any) -> bytes:
        before(kind)
        return read(location, kind=kind, **how)

    def opening(location: str, *, kind: str, size: int | None = None) -> Any:
        before(kind)
        return opened(location, kind=kind, size=size)

    storage.read, storage.open = reading, opening  # type: ignore[method-assign]
    CACHE.clear()
    with pytest.raises(ix.CommitConflictError, match=r"has expired.*does not exist.*\[rule files-exist\]"):
        one.compact()
    assert not len(one.orphan_files(running=True))
    one.update({"writer": 5}, "id = 2")
    assert one.to_arrow().sort_by("id").to_pydict() == {"id": [2, 3], "writer": [5, 0]}


def test_what_is_gone_for_good_is_damage(tmp_path: Path) -> None:
    lab, place = new_lab(tmp_path, "rename")
    append(lab, 1)
    append(lab, 2)
    local(lab.inspect.data_files()["file_path"][0]).unlink()
    in_between(lab, lambda: append(go_on(place), 3))
    with pytest.raises(ix.FileMissingError):
        lab.compact()


def test_what_cannot_be_removed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab, place = new_lab(tmp_path, "check-and-put")
    two = go_on(place)
    in_between(lab, lambda: append(two, 1))

    def refused(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(_failed_commit_cleanup, "os", type("os", (), {"unlink": staticmethod(refused)}))
    append(lab, 2)
    assert lab.count() == 2 and set(lab.orphan_files()["kind"]) == {"metadata", "manifest"}
