from __future__ import annotations

import json
from pathlib import Path

import pytest

from iceexplore.errors import FileMissingError, OutsideRootsError
from iceexplore.storage import Opened, open_source, open_version
from tests.storage.tables_on_disk import document, make_table, snapshots


def moved_table(folder: Path, location: str, lists: str | None = None, **changes: object) -> Path:
    """A table that was written at ``location`` and is at ``folder`` now, with one snapshot."""
    path = f"{lists or location}/metadata/snap-1.avro"
    files = {"metadata/snap-1.avro": b"list", "data/f.parquet": b"data"}
    return make_table(folder, {"v1.metadata.json": document(location, **snapshots(path), **changes)}, files)


def manifest_list(opened: Opened) -> str:
    return str(opened.document["snapshots"][-1]["manifest-list"])


@pytest.mark.parametrize(
    "location",
    [
        "s3://bucket/wh/t",
        "s3a://bucket/wh/t/",
        "hdfs://localhost:20500/wh/t",
        "/somewhere/else/t",
        "file:///somewhere/else/t",
        "file:/somewhere/else/t",
        "file://data/persistent/t",
        "data/persistent/t",
        "./t",
        "/wh/with space/ü%20/t",
        "gs://bucket",
    ],
)
def test_found_by_itself(tmp_path: Path, location: str) -> None:
    opened = open_source(moved_table(tmp_path / "t", location))
    s = opened.storage
    assert dict(s.moved) == {location.rstrip("/"): str(tmp_path / "t")}
    assert s.read(manifest_list(opened), kind="manifest-list") == b"list"
    data = location.rstrip("/") + "/data/f.parquet"
    assert s.resolve(data) == str(tmp_path / "t" / "data" / "f.parquet")
    assert s.unresolve(s.resolve(data)) == data
    assert s.unresolve("file:" + s.resolve(data)) == data  # as Spark's _metadata.file_path says it
    assert s.unresolve("file://" + s.resolve(data)) == data
    assert opened.metadata_location == location.rstrip("/") + "/metadata/v1.metadata.json"
    assert opened.notes[-1].startswith("Moved: ") and "found by the files" in opened.notes[-1]


def test_not_moved_is_not_noted_however_it_is_spelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i, spell in enumerate(("{}", "file:{}", "file://{}", "{}/", "//{}")):
        folder = tmp_path / f"t{i}"
        location = spell.format(folder)
        opened = open_source(moved_table(folder, location))
        assert not opened.storage.moved and len(opened.notes) == 1
        assert opened.metadata_location == location.rstrip("/") + "/metadata/v1.metadata.json"
        # the metadata file, and nothing looked for: three stats for the hint and the names at most
        assert len(opened.storage.reads.of_kind("metadata")) == 2
    monkeypatch.chdir(tmp_path)
    opened = open_source(moved_table(tmp_path / "rel", "rel"))
    assert not opened.storage.moved and opened.storage.read("rel/metadata/snap-1.avro", kind="manifest-list") == b"list"


def test_paths_that_differ_from_the_location(tmp_path: Path) -> None:
    # People edit `location` alone, or the paths alone (DuckDB's and Impala's test data do either).
    opened = open_source(moved_table(tmp_path / "t", "gs://bucket/t", lists="data/persistent/t"))
    s = opened.storage
    assert s.read(manifest_list(opened), kind="manifest-list") == b"list"
    assert s.read("data/persistent/t/data/f.parquet", kind="other") == b"data"
    assert s.read("gs://bucket/t/data/f.parquet", kind="other") == b"data"
    assert s.moved == {"gs://bucket/t": str(tmp_path / "t"), "data/persistent/t": str(tmp_path / "t")}


def test_another_spelling_of_scheme_and_host(tmp_path: Path) -> None:
    s = open_source(moved_table(tmp_path / "t", "/wh/t")).storage
    assert s.read("hdfs://localhost:20500/wh/t/data/f.parquet", kind="delete-file") == b"data"
    s = open_source(moved_table(tmp_path / "t", "hdfs://nn/wh/t")).storage
    assert s.read("/wh/t/data/f.parquet", kind="delete-file") == b"data"
    s = open_source(moved_table(tmp_path / "t", "s3a://b/t")).storage
    assert s.read("s3n://b/t/data/f.parquet", kind="delete-file") == b"data"
    s = open_source(moved_table(tmp_path / "u", "s3://b/t")).storage
    with pytest.raises(OutsideRootsError):
        s.read("s3://another/t/data/f.parquet", kind="delete-file")  # two buckets are two places


def test_metadata_and_data_in_one_flat_folder(tmp_path: Path) -> None:
    flat = tmp_path / "flat"
    flat.mkdir()
    doc = document("hdfs://h/t", **snapshots("hdfs://h/t/metadata/snap-1.avro"))
    (flat / "00001-a.metadata.json").write_text(json.dumps(doc))
    (flat / "snap-1.avro").write_bytes(b"list")
    opened = open_source(flat)
    assert opened.storage.read(manifest_list(opened), kind="manifest-list") == b"list"


def test_metadata_folder_of_another_name(tmp_path: Path) -> None:
    made = moved_table(tmp_path / "t", "/old/t")
    (made / "metadata").rename(made / "local_metadata")
    (made / "local_metadata" / "v1.metadata.json").rename(made / "local_metadata" / "any.json")
    for path in (made, made / "local_metadata", made / "local_metadata" / "any.json"):
        opened = open_source(path)
        assert opened.storage.read(manifest_list(opened), kind="manifest-list") == b"list"
        assert opened.storage.read("/old/t/data/f.parquet", kind="other") == b"data"


def test_data_path_that_moved_along(tmp_path: Path) -> None:
    made = moved_table(tmp_path / "t", "/wh/t", properties={"write.data.path": "/wh/t_data02"})
    for n in ("t_data01", "t_data02"):
        (made / "_siblings" / n / "p=1").mkdir(parents=True)
        (made / "_siblings" / n / "p=1" / "f.parquet").write_bytes(n.encode())
    opened = open_source(made)
    assert opened.storage.moved["/wh/t_data02"] == str(made / "_siblings" / "t_data02")
    # An earlier data path is in no JSON: found by the end of the path when it is asked for, then remembered.
    assert opened.storage.read("/wh/t_data01/p=1/f.parquet", kind="other") == b"t_data01"
    assert opened.storage.moved["/wh/t_data01"] == str(made / "_siblings" / "t_data01")
    assert (
        opened.storage.unresolve(str(made / "_siblings" / "t_data01" / "p=1" / "f.parquet"))
        == "/wh/t_data01/p=1/f.parquet"
    )
    with pytest.raises(OutsideRootsError):
        opened.storage.read("/wh/t_data03/p=1/f.parquet", kind="other")


def test_a_warehouse_that_moved_as_a_whole_names_the_new_data_path(tmp_path: Path) -> None:
    made = moved_table(
        tmp_path / "wh" / "db" / "t", "s3://b/wh/db/t", properties={"write.data.path": "s3://b/wh/data/t"}
    )
    (tmp_path / "wh" / "data" / "t").mkdir(parents=True)
    (tmp_path / "wh" / "data" / "t" / "f.parquet").write_bytes(b"data")
    opened = open_source(made)
    with pytest.raises(OutsideRootsError, match=str(tmp_path / "wh/data/t")):
        opened.storage.read("s3://b/wh/data/t/f.parquet", kind="other")
    opened = open_source(made, allow=[str(tmp_path / "wh" / "data")])
    assert opened.storage.read("s3://b/wh/data/t/f.parquet", kind="other") == b"data"


def test_metadata_kept_apart_by_write_metadata_path_has_not_moved(tmp_path: Path) -> None:
    data, meta = tmp_path / "wh" / "t", tmp_path / "meta" / "t"
    (data / "data").mkdir(parents=True)
    (data / "data" / "f.parquet").write_bytes(b"data")
    meta.mkdir(parents=True)
    (meta / "snap-1.avro").write_bytes(b"list")
    doc = document(str(data), **snapshots(f"{meta}/snap-1.avro"), properties={"write.metadata.path": str(meta)})
    (meta / "00001-x.metadata.json").write_text(json.dumps(doc))
    opened = open_source(meta)
    assert not opened.storage.moved
    assert opened.storage.read(manifest_list(opened), kind="manifest-list") == b"list"
    with pytest.raises(OutsideRootsError, match="allow="):
        opened.storage.read(f"{data}/data/f.parquet", kind="other")
    assert open_source(meta, allow=[str(data)]).storage.read(f"{data}/data/f.parquet", kind="other") == b"data"


def test_given_wins(tmp_path: Path) -> None:
    made = moved_table(tmp_path / "t", "s3://b/wh/t")
    other = tmp_path / "other"
    (other / "data").mkdir(parents=True)
    (other / "data" / "f.parquet").write_bytes(b"other")
    opened = open_source(made, moved={"s3://b/wh/t/data": str(other / "data")}, allow=[str(other)])
    assert opened.storage.read("s3://b/wh/t/data/f.parquet", kind="other") == b"other"
    assert opened.storage.read(manifest_list(opened), kind="manifest-list") == b"list"
    assert "from moved=" in opened.notes[-1]
    opened = open_source(made, moved={"s3a://b/wh": str(tmp_path)})
    assert opened.storage.read("s3://b/wh/t/data/f.parquet", kind="other") == b"data"
    assert opened.storage.moved == {"s3a://b/wh": str(tmp_path)}


def test_given_may_apply_to_the_source_itself(tmp_path: Path) -> None:
    moved_table(tmp_path / "t", "s3://b/wh/t")
    for place in (str(tmp_path), tmp_path):
        opened = open_source("s3://b/wh/t", moved={"s3://b/wh": place})
        assert opened.storage.folder == str(tmp_path / "t")


def test_nothing_proves_it(tmp_path: Path) -> None:
    made = make_table(
        tmp_path / "t", {"v1.metadata.json": document("s3://b/t", **snapshots("s3://b/t/metadata/gone.avro"))}
    )
    opened = open_source(made)
    assert "assumed" in opened.notes[-1]
    with pytest.raises(FileMissingError, match=r"s3://b/t/metadata/gone.avro \(looked for at .*t/metadata/gone.avro\)"):
        opened.storage.read(manifest_list(opened), kind="manifest-list")


def test_relative_locations_of_format_version_4_are_under_the_table(tmp_path: Path) -> None:
    made = make_table(
        tmp_path / "t",
        {"v1.metadata.json": document("s3://b/t", **snapshots("metadata/snap-1.avro"))},
        {"metadata/snap-1.avro": b"list"},
    )
    opened = open_source(made)
    assert opened.storage.read("metadata/snap-1.avro", kind="manifest-list") == b"list"
    assert opened.storage.moved == {"s3://b/t": str(made)}


def test_an_older_version_at_another_location(tmp_path: Path) -> None:
    made = moved_table(tmp_path / "t", "s3://new/t")
    make_table(made, {"v0.metadata.json": document("s3://older/t", **snapshots("s3://older/t/metadata/snap-1.avro"))})
    old = open_version(open_source(made), 0)
    assert old.storage.read("s3://older/t/metadata/snap-1.avro", kind="manifest-list") == b"list"


def test_identity_tells_tables_apart(tmp_path: Path) -> None:
    a = open_source(moved_table(tmp_path / "a", "s3://b/t")).storage.identity
    b = open_source(moved_table(tmp_path / "b", "s3://b/t")).storage.identity
    assert a != b and a == open_source(tmp_path / "a").storage.identity
    assert a != open_source(tmp_path / "a", moved={"s3://b/t/data": "/elsewhere"}).storage.identity


@pytest.mark.parametrize(
    "damage",
    [
        {"location": 5},
        {"location": None},
        {"location": ""},
        {"snapshots": {}},
        {"snapshots": [1, None, {"manifest-list": 7}]},
        {"metadata-log": "x"},
        {"metadata-log": [5]},
        {"properties": []},
        {"properties": {"write.data.path": 5}},
        {"statistics": {"a": 1}},
        {"current-snapshot-id": "x", "snapshots": [{"timestamp-ms": "y", "manifests": 4}]},
    ],
)
def test_damaged_metadata_opens(tmp_path: Path, damage: dict[str, object]) -> None:
    opened = open_source(make_table(tmp_path / "t", {"v1.metadata.json": document("s3://b/t") | damage}))
    assert opened.version == 1


@pytest.mark.parametrize("path", ["../t-2/metadata/snap-1.avro", "s3://b/wh/t/../t-2/metadata/snap-1.avro"])
def test_a_file_in_a_neighbouring_folder_proves_nothing(tmp_path: Path, path: str) -> None:
    make_table(tmp_path / "t-2", {}, {"metadata/snap-1.avro": b"list of another table"})
    opened = open_source(make_table(tmp_path / "t", {"v1.metadata.json": document("s3://b/wh/t", **snapshots(path))}))
    assert opened.notes[-1].endswith("(assumed: none of the files that could prove it was found).")
