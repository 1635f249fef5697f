"""The overlay: files are seen at the table's own locations, the base is never written, no name climbs out."""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.errors import FileMissingError, IceexploreError, OptionError, OutsideRootsError, StorageError
from iceexplore.storage import CACHE, ExistsError, OverlayStorage, list_versions, open_source
from iceexplore.storage.finding._opened import Opened


def hashes(folder: Path) -> dict[str, str]:
    """Every file under a folder, with the hash of its bytes and its time."""
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() + str(p.stat().st_mtime_ns)
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


@pytest.fixture
def table(trips: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trips, tmp_path / "trips"))


@pytest.fixture
def opened(table: Path) -> Opened:
    return open_source(table)


def at(opened: Opened, name: str) -> str:
    """A location in the table's metadata folder, as the table spells it."""
    return f"{opened.document['location']}/metadata/{name}"


def test_a_written_file_is_seen_by_every_way_to_look(opened: Opened) -> None:
    overlay = OverlayStorage(opened.storage)
    location = at(opened, "x.parquet")
    assert not overlay.exists(location)
    overlay.write(location, b"0123456789", kind="manifest")
    assert overlay.read(location, kind="manifest") == b"0123456789"
    assert overlay.read(location, kind="manifest", offset=3, length=4) == b"3456"
    assert overlay.open(location, kind="manifest").read() == b"0123456789"
    assert overlay.exists(location) and overlay.stat(location).size == 10
    assert overlay.fingerprint(location) is not None
    with overlay.local_path(location, kind="manifest") as path:
        assert path.read_bytes() == b"0123456789" and path.is_relative_to(overlay.overlay_folder)
    real = overlay.resolve(location)
    assert Path(real).read_bytes() == b"0123456789" and overlay.unresolve(real) == location
    assert overlay.find(real) is not None and overlay.read_real(real, kind="other") == b"0123456789"
    listed = {f.location for f in overlay.list(f"{opened.document['location']}/metadata")}
    assert location in listed
    assert listed - {location} == {f.location for f in opened.storage.list(at(opened, "").rstrip("/"))}
    assert location in {f.location for f in overlay.list(opened.document["location"], recursive=True)}


def test_other_spellings_of_a_location_are_the_same_file(opened: Opened) -> None:
    overlay = OverlayStorage(opened.storage)
    location = at(opened, "x.parquet")
    overlay.write(location, b"x", kind="other")
    for other in (
        f"file:{location}",
        f"file://{location}",
        location.replace("/metadata/", "/metadata/./"),
        "metadata/x.parquet",
    ):
        assert overlay.read(other, kind="other") == b"x", other
    moved_here = f"{opened.storage.folder}/metadata/x.parquet"
    assert overlay.read(moved_here, kind="other") == b"x"


def test_files_of_the_base_are_seen_and_read_through_the_overlays_own_log(opened: Opened) -> None:
    overlay = OverlayStorage(opened.storage)
    before = len(opened.storage.reads)
    data = overlay.read(opened.metadata_location, kind="metadata")
    assert data == opened.storage.read(opened.metadata_location, kind="metadata")
    assert [r.location for r in overlay.reads] == [opened.metadata_location]
    assert len(opened.storage.reads) == before + 1
    assert overlay.resolve(opened.metadata_location) == opened.storage.resolve(opened.metadata_location)
    assert overlay.roots == opened.storage.roots and overlay.moved == opened.storage.moved


def test_nothing_is_written_twice(opened: Opened) -> None:
    overlay = OverlayStorage(opened.storage)
    location = at(opened, "x.parquet")
    overlay.write(location, b"first", kind="manifest")
    with pytest.raises(ExistsError, match=r"x\.parquet"):
        overlay.write(location, b"second", kind="manifest")
    with pytest.raises(FileExistsError):
        overlay.write("file://" + location, b"second", kind="manifest")
    with pytest.raises(ExistsError):
        overlay.write(opened.metadata_location, b"{}", kind="metadata")
    assert overlay.read(location, kind="manifest") == b"first"
    assert len(overlay.writes) == 1 and overlay.writes.bytes == 5


def test_of_many_writers_of_one_location_one_wins(opened: Opened) -> None:
    overlay = OverlayStorage(opened.storage)
    location = at(opened, "v999.metadata.json")
    won: list[bytes] = []
    start = threading.Barrier(8)

    def race(n: int) -> None:
        start.wait()
        try:
            overlay.view().write(location, b"%d" % n, kind="metadata")
            won.append(b"%d" % n)
        except ExistsError:
            pass

    threads = [threading.Thread(target=race, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(won) == 1 and overlay.read(location, kind="metadata") == won[0]


def test_a_base_that_cannot_be_written_is_not(opened: Opened, table: Path) -> None:
    before = hashes(table)
    for path in [table, *table.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        overlay = OverlayStorage(opened.storage)
        for n in range(20):
            overlay.write(at(opened, f"{n}.avro"), b"x" * n, kind="manifest")
            overlay.write(f"{opened.document['location']}/data/p={n}/{n}.parquet", b"y", kind="other")
        overlay.close()
    finally:
        for path in [table, *table.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert hashes(table) == before


def test_the_folder_goes_with_the_last_user(opened: Opened) -> None:
    overlay = OverlayStorage(opened.storage)
    folder = overlay.overlay_folder
    second = overlay.view()
    overlay.write(at(opened, "x"), b"x", kind="other")
    assert second.read(at(opened, "x"), kind="other") == b"x" and len(second.reads) == 1 and len(overlay.reads) == 0
    del overlay
    gc.collect()
    assert os.path.isdir(folder)
    del second
    gc.collect()
    assert not os.path.exists(folder)


def test_closed_for_all(opened: Opened) -> None:
    overlay = OverlayStorage(opened.storage)
    second = overlay.view()
    overlay.write(at(opened, "x"), b"x", kind="other")
    overlay.close()
    assert not os.path.exists(overlay.overlay_folder)
    with pytest.raises(StorageError, match="closed"):
        second.read(at(opened, "x"), kind="other")
    with pytest.raises(StorageError, match="closed"):
        second.write(at(opened, "y"), b"x", kind="other")
    assert opened.storage.exists(opened.metadata_location)


def test_a_given_folder_stays_and_must_be_empty(opened: Opened, table: Path, tmp_path: Path) -> None:
    overlay = OverlayStorage(opened.storage, tmp_path / "mine")
    overlay.write(at(opened, "x"), b"x", kind="other")
    overlay.close()
    assert (tmp_path / "mine" / "metadata" / "x").read_bytes() == b"x"
    with pytest.raises(OptionError, match="not empty"):
        OverlayStorage(opened.storage, tmp_path / "mine")
    with pytest.raises(OptionError, match="inside the table"):
        OverlayStorage(opened.storage, table / "sandbox")
    with pytest.raises(OptionError, match="local disk"):
        OverlayStorage(opened.storage, "s3://bucket/overlay")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(IceexploreError):
        OverlayStorage(opened.storage, tmp_path / "file")


HOSTILE = [
    "../../../../etc/passwd",
    "/etc/passwd",
    "file:///etc/passwd",
    "s3://b/t/../../../x",
    "s3://b/t/..",
    "s3://b//t//x",
    "s3://b/t/a\0b",
    "s3://b/t/" + "n" * 5000,
    "C:\\x\\..\\..\\y",
    "s3://b/t/%2e%2e/%2e%2e/x",
    "s3://b/t/é\N{RIGHT-TO-LEFT OVERRIDE}\n",
    "metadata",
]


@pytest.mark.parametrize("location", HOSTILE)
def test_no_name_climbs_out(opened: Opened, location: str) -> None:
    overlay = OverlayStorage(opened.storage)
    overlay.write(location, b"x", kind="other")
    real = os.path.realpath(overlay.resolve(location))
    assert real.startswith(overlay.overlay_folder + os.sep)
    assert overlay.read(location, kind="other") == b"x"
    assert overlay.unresolve(overlay.resolve(location)) == location


@given(st.lists(st.text(min_size=1, max_size=30), unique=True, max_size=6))
def test_any_locations_are_kept_apart(trips: Path, tails: list[str]) -> None:
    opened = open_source(trips)
    overlay = OverlayStorage(opened.storage)
    kept: dict[str, bytes] = {}
    for n, tail in enumerate(tails):
        location = f"s3://b/t/{tail}"
        try:
            overlay.write(location, b"%d" % n, kind="other")
        except (ExistsError, StorageError):
            continue  # another spelling of one before, or below one that is a file
        kept[location] = b"%d" % n
        real = os.path.realpath(overlay.resolve(location))
        assert real.startswith(overlay.overlay_folder + os.sep)
    for location, data in kept.items():
        assert overlay.read(location, kind="other") == data


def test_the_overlays_folder_is_no_way_to_other_files(opened: Opened) -> None:
    overlay = OverlayStorage(opened.storage)
    Path(overlay.overlay_folder, "stray").write_bytes(b"x")
    with pytest.raises(OutsideRootsError):
        overlay.read(f"{overlay.overlay_folder}/stray", kind="other")
    with pytest.raises(OutsideRootsError):
        overlay.read_real(f"{overlay.overlay_folder}/stray", kind="other")
    with pytest.raises(OutsideRootsError):
        overlay.read("/etc/passwd", kind="other")


def test_cache_keys_are_the_bases_for_its_files(opened: Opened) -> None:
    overlay = OverlayStorage(opened.storage)
    location = at(opened, "x.avro")
    overlay.write(location, b"x", kind="manifest")
    assert overlay.key(opened.metadata_location) == opened.storage.key(opened.metadata_location)
    assert overlay.key(location) != opened.storage.key(location)
    assert overlay.key(location) == overlay.view().key(location) != OverlayStorage(opened.storage).key(location)
    assert overlay.identity == overlay.view().identity != OverlayStorage(opened.storage).identity


def test_manifests_of_the_base_are_read_once_for_both(table: Path) -> None:
    from dataclasses import replace

    from iceexplore.graph import state_of

    opened = open_source(table)
    state = state_of(opened)
    CACHE.clear()
    assert len(list(state.leaves())) > 1
    overlay = OverlayStorage(opened.storage)
    list(state_of(replace(opened, storage=overlay)).leaves())
    assert [r for r in overlay.reads if r.kind in ("manifest", "manifest-list")] == []


def test_overlay_on_an_overlay(opened: Opened) -> None:
    below = OverlayStorage(opened.storage)
    below.write(at(opened, "x"), b"below", kind="other")
    above = OverlayStorage(below)
    above.write(at(opened, "y"), b"above", kind="other")
    assert above.read(at(opened, "x"), kind="other") == b"below" and above.has(at(opened, "x"))
    assert not below.exists(at(opened, "y")) and not above.has(opened.metadata_location)
    with pytest.raises(ExistsError):
        above.write(at(opened, "x"), b"", kind="other")
    names = {f.location.rpartition("/")[2] for f in above.list(at(opened, "").rstrip("/"))}
    assert {"x", "y"} < names


def test_versions_of_both(opened: Opened) -> None:
    from dataclasses import replace

    overlay = OverlayStorage(opened.storage)
    location = at(opened, "v99.metadata.json")
    overlay.write(location, b"{}", kind="metadata")
    before = [v.name for v in list_versions(opened)]
    after = [v.name for v in list_versions(replace(opened, storage=overlay, metadata_location=location))]
    assert after == [*before, "v99.metadata.json"]


def test_the_log_of_writes(opened: Opened) -> None:
    overlay = OverlayStorage(opened.storage)
    overlay.for_commit(3, 2).write(at(opened, "x<b>.avro"), b"12345", kind="manifest")
    overlay.write(at(opened, "y"), b"1", kind="other")
    frame = overlay.writes.to_pandas()
    assert frame["commit"].tolist()[0] == 3 and frame["attempt"].tolist()[0] == 2 and frame["length"].sum() == 6
    assert frame["commit"].isna().tolist() == [False, True]
    assert "attempt 2" in repr(overlay.writes) and "2 files written, 6 bytes" in repr(overlay.writes)
    assert "<b>" not in overlay.writes._repr_html_()


def test_a_missing_file_is_missing_in_both(opened: Opened) -> None:
    overlay = OverlayStorage(opened.storage)
    with pytest.raises(FileMissingError):
        overlay.read(at(opened, "nothing"), kind="other")
    with pytest.raises(FileMissingError):
        overlay.list(f"{opened.document['location']}/nothing")
