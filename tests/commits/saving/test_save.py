"""Saving is all or nothing; a saved table opens anywhere, and other engines read it in place."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits.saving._relocate import relocated_manifest
from iceexplore.errors import FormatError, OptionError, RuleError, StorageError
from iceexplore.manifests import Status
from iceexplore.simulation import Simulation
from tests.helpers.full_disk import little_room
from tests.helpers.sampling import one_of

LAYOUTS = [
    (3, {}),
    (4, {}),
    (4, {"manifest_format": "avro"}),
    (4, {"flush_data_files": 0, "flush_delete_files": 0, "inline_dv_bytes": 0}),
    (4, {"dialect": "v4-java"}),
]


@pytest.fixture(params=LAYOUTS, ids=lambda p: f"v{p[0]}" + "".join(f"-{k}" for k in p[1]))
def simulation(request: pytest.FixtureRequest) -> Simulation:
    version, layout = request.param
    return simulated(version, **layout)


def simulated(version: int, **layout: Any) -> Simulation:
    s = ix.sample().simulate(version, seed=5, **layout)
    s.append(3, rows=1000)
    paths = s.inspect.data_files()["file_path"].tolist()
    s.row_delta(deletes={paths[0]: [0], paths[-1]: [7]})
    s.delete_files(paths[1])
    return s


def files(t: ix.Table) -> pd.DataFrame:
    columns = ["content", "spec_id", "record_count", "file_size_in_bytes", "content_offset"]
    return t.inspect.files()[columns].sort_values(columns).reset_index(drop=True)


def own_names(t: ix.Table) -> list[str]:
    return sorted(p.rpartition("/")[2] for p in t.inspect.files()["file_path"])


@pytest.mark.parametrize("location", one_of(3, [None, "keep", "s3://bucket/elsewhere/t/"]))
def test_the_same_table_wherever_it_is_opened(simulation: Simulation, tmp_path: Path, location: str | None) -> None:
    # What is not copied is compared to the byte: copies of delete files name other locations.
    saved = simulation.save(tmp_path / "deep" / "t", data="refer", location=location)
    assert saved.missing == {} and saved.files == sum(p.is_file() for p in saved.path.rglob("*"))
    assert saved.bytes == sum(p.stat().st_size for p in saved.path.rglob("*") if p.is_file())
    wanted = {None: str(tmp_path / "deep" / "t"), "keep": simulation.location}.get(location, "s3://bucket/elsewhere/t")
    assert saved.location == wanted
    moved = Path(shutil.move(saved.path, tmp_path / "moved"))
    for version in (None, 5):
        t = ix.open(moved) if version is None else ix.open(moved, version=version)
        assert t.location == wanted
        original = simulation if version is None else simulation.at(version=version)
        pd.testing.assert_frame_equal(files(t), files(original))
        assert own_names(t) == own_names(original)
        assert list(t.problems) == []
    t = ix.open(moved)
    assert [s.snapshot_id for s in t.snapshots] == [s.snapshot_id for s in simulation.snapshots]
    for snapshot in t.snapshots if location is None else ():
        pd.testing.assert_frame_equal(
            files(t.at(snapshot=snapshot.snapshot_id)), files(simulation.at(snapshot=snapshot.snapshot_id))
        )
    assert list(t.problems) == []


def test_the_saved_table_names_files_where_they_are(simulation: Simulation, tmp_path: Path) -> None:
    saved = simulation.save(tmp_path / "t", data="refer")
    t = ix.open(saved.path)
    assert t.metadata_location == saved.metadata_location and Path(saved.metadata_location).is_file()
    for snapshot in t.snapshots:
        assert Path(snapshot.root_location or "").is_file()
    assert all(Path(p).is_file() for p in t.inspect.all_manifests()["path"])
    deletes = t.inspect.delete_files()["file_path"]
    here = [p for p in deletes if p.startswith(str(tmp_path))]
    assert here and all(Path(p).is_file() for p in here)
    # Made-up data files and the table's own are named as they were.
    data = set(t.inspect.data_files()["file_path"])
    assert data == set(simulation.inspect.data_files()["file_path"])


@pytest.mark.parametrize("version", [2, 3])
def test_pyiceberg_reads_rows_of_a_saved_table(tmp_path: Path, version: int) -> None:
    from pyiceberg.catalog.memory import InMemoryCatalog

    catalog = InMemoryCatalog("c", warehouse=f"file://{tmp_path}/warehouse")
    catalog.create_namespace("db")
    rows = pa.table({"id": pa.array(range(100), pa.int64())})
    real = catalog.create_table("db.t", rows.schema, properties={"format-version": "2"})
    real.append(rows)
    real.append(rows)
    s = ix.open(real).simulate(version, seed=1)
    gone = s.inspect.data_files()["file_path"].tolist()[0]
    s.delete_files(gone)
    s.append(pd.DataFrame({"id": range(100, 105)}))
    saved = s.save(tmp_path / "saved")
    from pyiceberg.table import StaticTable

    read = StaticTable.from_metadata(saved.metadata_location).scan().to_arrow()
    assert sorted(read["id"].to_pylist()) == list(range(105))
    copy = s.save(tmp_path / "copy", data="copy")
    shutil.rmtree(tmp_path / "warehouse")
    read = StaticTable.from_metadata(copy.metadata_location).scan().to_arrow()
    assert sorted(read["id"].to_pylist()) == list(range(105))
    assert all(p.startswith(str(tmp_path / "copy")) for p in ix.open(copy.path).inspect.data_files()["file_path"])


def test_without_data(simulation: Simulation, tmp_path: Path) -> None:
    saved = simulation.save(tmp_path / "t", data="none")
    assert {p.parent.name for p in saved.path.rglob("*") if p.is_file()} == {"metadata"}
    pd.testing.assert_frame_equal(files(ix.open(saved.path)), files(simulation))


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_follow_their_data_files(version: int, tmp_path: Path) -> None:
    s = ix.empty({"id": "long"}, format_version=version, location="s3://warehouse/db/t", seed=3)
    s.append(pd.DataFrame({"id": range(100)}))
    first = s.inspect.data_files()["file_path"].iloc[0]
    s.row_delta(deletes={first: [1, 2, 3]})
    s.append(pd.DataFrame({"id": range(100, 150)}))
    second = s.inspect.data_files()["file_path"].drop_duplicates().tolist()
    s.row_delta(deletes={next(p for p in second if p != first): [0]})
    expected = sorted(set(range(150)) - {1, 2, 3, 100})
    from pyiceberg.table import StaticTable

    for data in ("refer", "copy"):
        saved = s.save(tmp_path / data, data=data)
        assert not saved.missing
        read = StaticTable.from_metadata(saved.metadata_location).scan().to_arrow()
        assert sorted(read["id"].to_pylist()) == expected
        t = ix.open(saved.path)
        assert not t.problems
        deletes = t.inspect.position_deletes()
        assert set(deletes["file_path"]) <= set(t.inspect.data_files()["file_path"])


def test_a_copied_table_keeps_its_rows(tmp_path: Path) -> None:
    s = ix.sample().at(version=12).simulate(seed=1)
    assert len(s.inspect.delete_files()) > 0
    saved = s.save(tmp_path / "copy", data="copy")
    t = ix.open(saved.path)
    names = set(t.inspect.all_files()["file_path"])
    assert all(str(saved.path) in name for name in names)
    assert set(t.inspect.position_deletes()["file_path"]) <= names
    assert len(t.inspect.position_deletes()) == len(s.inspect.position_deletes())
    kept = s.save(tmp_path / "t", data="copy", location="keep")
    t = ix.open(kept.path)
    pd.testing.assert_frame_equal(files(t), files(s))
    assert all(t.state.storage.exists(p) for p in t.inspect.files()["file_path"])


def test_removed_rows_of_a_root_name_what_was_saved(tmp_path: Path) -> None:
    s = ix.empty({"id": "long"}, seed=1, flush_data_files=0)
    for _ in range(3):
        s.append(files=2, rows=10)
    s.rewrite_manifests()
    t = ix.open(s.save(tmp_path / "t").path)
    root = t.state.root()
    assert root is not None
    gone = build.to_pylist(root.entries.filter(pc.equal(root.entries["status"], int(Status.DELETED)))["location"])
    assert gone and all(t.state.storage.exists(location) for location in gone)


def test_a_uri_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    s = ix.sample().simulate()
    with pytest.raises(OptionError, match=r"is a remote URI.* location='s3://bucket/t' if the table is going"):
        s.save("s3://bucket/t")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(StorageError, match="File name too long"):
        s.save("n" * 300)
    s.save(f"file://{tmp_path}/t")
    assert [p.name for p in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize("make", ["file", "full", "link"])
def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path, make: str) -> None:
    s, target = ix.sample().simulate(), tmp_path / "t"
    if make == "file":
        target.write_bytes(b"")
    elif make == "full":
        target.mkdir()
        (target / ".hidden").write_bytes(b"mine")
    else:
        target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OptionError, match="not an empty folder"):
        s.save(target)
    assert [p.name for p in tmp_path.iterdir()] == ["t"]
    with pytest.raises(OptionError, match="give the folder to write"):
        s.save("~nobody-of-that-name/t")
    with pytest.raises(OptionError, match="refer, copy, none"):
        s.save(tmp_path / "other", data="all")  # type: ignore[arg-type]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    assert ix.open(ix.sample().simulate().save(tmp_path / "t").path).snapshot is not None


def test_a_manifest_that_cannot_be_read_stops_it_if_the_table_needs_it(trips: Path, tmp_path: Path) -> None:
    table = Path(shutil.copytree(trips, tmp_path / "trips"))
    t = ix.open(table)
    now = set(t.inspect.manifests()["path"])
    before = set(t.inspect.all_manifests()["path"]) - now
    lost = Path(t.state.storage.resolve(sorted(before)[0]))
    lost.unlink()
    saved = ix.open(table).simulate().save(tmp_path / "a")
    assert len(saved.missing) == 1 and lost.name in next(iter(saved.missing))
    Path(t.state.storage.resolve(sorted(now)[0])).unlink()
    with pytest.raises(ix.FileMissingError):
        ix.open(table).simulate().save(tmp_path / "b")
    assert not (tmp_path / "b").exists() and not list(tmp_path.glob(".b-*"))


def test_a_current_metadata_file_that_is_gone_stops_it(trips: Path, tmp_path: Path) -> None:
    s = ix.open(shutil.copytree(trips, tmp_path / "trips")).simulate()
    lost = Path(s.state.storage.resolve(s.state.metadata_location))
    lost.unlink()
    with pytest.raises(ix.FileMissingError, match=re.escape(lost.name)):
        s.save(tmp_path / "a")
    assert not (tmp_path / "a").exists()


KILLED = """
import os, signal, sys
import iceexplore as ix

target, at = sys.argv[1], int(sys.argv[2])
s = ix.sample().simulate(4, seed=5)
s.append(3, rows=1000)
real_fsync, real_rename, count = os.fsync, os.rename, 0

def fsync(descriptor):
    global count
    count += 1
    if count == at:
        os.kill(os.getpid(), signal.SIGKILL)
    real_fsync(descriptor)

def rename(a, b):
    last = os.fspath(b) == target  # not that of the folder it is built in
    if at == -1 and last:
        os.kill(os.getpid(), signal.SIGKILL)
    real_rename(a, b)
    if at == -2 and last:
        os.kill(os.getpid(), signal.SIGKILL)

os.fsync, os.rename = fsync, rename
s.save(target)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize(("at", "whole"), one_of(2, [(1, False), (9, False), (-1, False), (30, False), (-2, True)]))
def test_a_killed_process_leaves_no_table_or_a_whole_one(tmp_path: Path, at: int, whole: bool) -> None:
    target = tmp_path / "t"
    (tmp_path / "tmp").mkdir()
    env = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}  # a killed process leaves its overlay, too
    done = subprocess.run([sys.executable, "-c", KILLED, str(target), str(at)], check=False, timeout=120, env=env)
    assert done.returncode == -signal.SIGKILL
    assert target.exists() == whole
    if whole:
        t = ix.open(target)
        assert t.snapshot is not None and len(t.inspect.all_manifests()) > 0 and list(t.problems) == []
    else:
        assert ix.sample().simulate(4).save(target).files > 0  # what is left over is in nobody's way


def test_locations_are_all_that_changes() -> None:
    s = simulated(4)
    root = s.state.root()
    assert root is not None
    data = s.state.storage.read(root.location, kind="manifest-list")
    from iceexplore.manifests import open_manifest

    old = build.to_pylist(root.entries["location"])
    moved = {old[0]: "s3://new/place"}
    sizes = {"s3://new/place": 4711}

    stored = root.location

    class Loose:
        """One file in memory."""

        identity = "loose"

        def key(self, location: str) -> str:
            return location

        def fingerprint(self, location: str) -> None:
            return None

        def stat(self, location: str) -> Any:
            return s.state.storage.stat(stored)

        def read(self, location: str, *, kind: str, offset: int = 0, length: int | None = None) -> bytes:
            return changed if location == "changed" else data

    changed = relocated_manifest(data, "x", moved, sizes)
    before, after = (build.to_pylist(open_manifest(Loose(), name).entries) for name in ("as it was", "changed"))  # type: ignore[arg-type]  # has what it uses
    assert after[0]["location"] == "s3://new/place"
    for a, b in zip(before, after, strict=True):
        if a["location"] == old[0]:
            assert b["file_size_in_bytes"] == (4711 if a["file_size_in_bytes"] is not None else None)
            a = {**a, "location": b["location"], "file_size_in_bytes": b["file_size_in_bytes"]}
        if a["referenced_file"] == old[0]:
            a = {**a, "referenced_file": "s3://new/place"}
        assert a == b
    for bad in (b"", b"PAR1", b"Obj\x01", data[: len(data) // 2], os.urandom(100), json.dumps({}).encode()):
        with pytest.raises(FormatError):
            relocated_manifest(bad, "x", moved, sizes)


def test_two_savers_of_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = ix.sample().simulate()
    real = os.rename

    def slower(a: Any, b: Any) -> None:
        (tmp_path / "t").mkdir()
        (tmp_path / "t" / "theirs").write_bytes(b"")
        real(a, b)

    monkeypatch.setattr(os, "rename", slower)
    with pytest.raises(OptionError):
        s.save(tmp_path / "t")
    assert [p.name for p in (tmp_path / "t").iterdir()] == ["theirs"]
    assert not list(tmp_path.glob(".t-*"))


def test_a_sandbox_that_refused_can_be_saved(tmp_path: Path) -> None:
    s = ix.sample().simulate()
    with pytest.raises((RuleError, OptionError)):
        s.delete_files("s3://not/there")
    pd.testing.assert_frame_equal(files(ix.open(s.save(tmp_path / "t", data="refer").path)), files(ix.sample()))


def test_a_full_disk_and_a_file_in_the_way(tmp_path: Path) -> None:
    s = simulated(3)
    (tmp_path / "file").touch()
    with little_room(100), pytest.raises(StorageError, match="could not be written"):
        s.save(tmp_path / "t", data="copy")
    with pytest.raises(StorageError, match="file is a file, but must be a folder"):
        s.save(tmp_path / "file" / "t")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
