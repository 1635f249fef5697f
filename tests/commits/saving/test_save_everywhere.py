"""Saved tables opened elsewhere, by iceexplore and PyIceberg: every version, dialect, data mode and kind of delete."""

from __future__ import annotations

import gzip
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

import iceexplore as ix
import iceexplore.commits.saving._save as save_module
from iceexplore.commits.saving._relocate import relocated_document, relocated_manifest
from iceexplore.deletes import FILE_PATH_ID, POS_ID, read_puffin_footer
from iceexplore.errors import OutsideRootsError, StorageError
from iceexplore.formats import rewritten_avro
from iceexplore.simulation import Simulation
from tests.helpers.sampling import one_of

LAYOUTS: list[tuple[int, dict[str, Any]]] = [
    (1, {}),
    (2, {}),
    (3, {}),
    (4, {}),
    (4, {"manifest_format": "avro"}),
    (4, {"flush_data_files": 0, "flush_delete_files": 0, "inline_dv_bytes": 0}),
    (4, {"dialect": "v4-draft"}),
    (4, {"dialect": "v4-draft", "flush_data_files": 0, "manifest_format": "avro"}),
    (4, {"dialect": "v4-java"}),
    (4, {"dialect": "v4-java", "manifest_format": "parquet"}),
]


@pytest.fixture(params=LAYOUTS, ids=lambda p: f"v{p[0]}" + "".join(f"-{v}" for v in p[1].values()))
def simulated(request: pytest.FixtureRequest, tmp_path: Path) -> Simulation:
    """A simulation on a lab: both have data files and deletes."""
    version, layout = request.param
    lab = ix.create(
        tmp_path / "lab",
        {"id": "long", "s": "string"},
        format_version=version,
        properties={"write.delete.mode": "merge-on-read"},
        **layout,
    )
    lab.append({"id": range(100), "s": ["x"] * 100})
    if version > 1:
        lab.delete("id < 3")
    s = ix.open(tmp_path / "lab").simulate(seed=4)
    s.append(pd.DataFrame({"id": range(100, 150), "s": ["y"] * 50}))
    storage: Any = s.state.storage
    newest = next(p for p in s.inspect.data_files()["file_path"] if storage.has(p))
    if version > 1:
        s.row_delta(deletes={newest: [1, 2]})
    return s


def ids(t: Any) -> list[int]:
    found = sorted(t.to_arrow()["id"].to_pylist())
    assert t.count() == len(found) and not t.problems
    return found


def other_reader(metadata: str) -> list[int]:
    static = pytest.importorskip("pyiceberg.table").StaticTable
    return sorted(static.from_metadata(metadata).scan().to_arrow()["id"].to_pylist())


def test_rows_of_a_copy_are_those_of_the_original(simulated: Simulation, tmp_path: Path) -> None:
    expected = ids(simulated)
    saved = simulated.save(tmp_path / "t")
    shutil.rmtree(tmp_path / "lab")  # nothing of it is needed any more
    assert ids(ix.open(saved.path)) == expected == ids(ix.open(saved.metadata_location))
    if simulated.metadata.format_version < 4:
        assert other_reader(saved.metadata_location) == expected
    archive = shutil.make_archive(str(tmp_path / "zipped"), "zip", saved.path)
    moved = shutil.move(saved.path, tmp_path / "moved")
    assert ids(ix.open(moved)) == expected
    assert ids(ix.open(archive)) == expected


def test_a_table_that_refers_is_read_where_it_is_allowed(simulated: Simulation, tmp_path: Path) -> None:
    expected = ids(simulated)
    saved = simulated.save(tmp_path / "t", data="refer")
    with pytest.raises(OutsideRootsError) as caught:
        ix.open(saved.path).to_arrow()
    assert ids(ix.open(saved.path, allow=caught.value.allow)) == expected
    if simulated.metadata.format_version < 4:
        assert other_reader(saved.metadata_location) == expected


@pytest.mark.parametrize("data", one_of(2, ["copy", "none", "refer"]))
def test_every_mode_has_the_same_metadata(simulated: Simulation, data: Any, tmp_path: Path) -> None:
    def entries(t: Any) -> list[list[Any]]:
        frame = t.inspect.files()[["content", "record_count", "spec_id"]]
        return sorted(frame.to_numpy().tolist())

    saved = simulated.save(tmp_path / "t", data=data)
    t = ix.open(shutil.move(saved.path, tmp_path / "moved"))
    assert entries(t) == entries(simulated) and not t.problems and not saved.missing
    kept = simulated.save(tmp_path / "kept", data=data, location="keep")
    assert entries(ix.open(kept.path)) == entries(simulated)


def test_bounds_of_paths_follow_names_that_sort_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose name is out of the bounds of a delete file keeps its deleted rows."""
    real = save_module._Saver._name
    # As of data files outside the table's folder, whose names begin with a digest.
    monkeypatch.setattr(
        save_module._Saver,
        "_name",
        lambda self, location, folder: real(self, f"s3://x/{location}" if folder == "data" else location, folder),
    )
    for seed in range(4):
        s = ix.empty(
            {"id": "long"},
            format_version=2,
            seed=seed,
            location="s3://old/t",
            properties={"write.delete.granularity": "partition"},
        )
        for start in range(0, 40, 10):
            s.append(pd.DataFrame({"id": range(start, start + 10)}))
        s.row_delta(deletes={path: [1, 2] for path in s.inspect.data_files()["file_path"]})
        assert len(s.inspect.delete_files()) == 1
        saved = s.save(tmp_path / f"t{seed}")
        t = ix.open(saved.path)
        assert ids(t) == ids(s) == other_reader(saved.metadata_location)
        paths = sorted(t.inspect.data_files()["file_path"])
        (row,) = t.inspect.delete_files().to_dict("records")
        ends = [dict(row[name])[FILE_PATH_ID].decode() for name in ("lower_bounds", "upper_bounds")]
        assert ends == [paths[0], paths[-1]]


def _as_orc(rows: pa.Table, path: Path) -> None:
    numbers = [str(FILE_PATH_ID), str(POS_ID)]
    fields = [pa.field(f.name, f.type, metadata={"iceberg.id": n}) for f, n in zip(rows.schema, numbers, strict=True)]
    orc.write_table(pa.Table.from_arrays(rows.columns, schema=pa.schema(fields)), path)


def _as_avro(rows: pa.Table, path: Path) -> None:
    fields = [
        {"name": "file_path", "type": "string", "field-id": FILE_PATH_ID},
        {"name": "pos", "type": "long", "field-id": POS_ID},
    ]
    with path.open("wb") as file:
        fastavro.writer(file, {"type": "record", "name": "r", "fields": fields}, rows.to_pylist())


def _patched(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    reader = fastavro.reader(io.BytesIO(path.read_bytes()))
    records: list[Any] = list(reader)
    for record in records:
        change(record)
    path.write_bytes(rewritten_avro(reader.writer_schema, reader.metadata, records))


@pytest.mark.parametrize("write", [_as_orc, _as_avro])
def test_position_deletes_of_other_formats_apply_where_they_go(
    write: Callable[[pa.Table, Path], None], tmp_path: Path
) -> None:
    s = ix.empty({"id": "long"}, format_version=2, seed=2, properties={"write.delete.granularity": "partition"})
    for start in (0, 10):
        s.append(pd.DataFrame({"id": range(start, start + 10)}))
    s.row_delta(deletes={path: [1, 2] for path in s.inspect.data_files()["file_path"]})
    expected = ids(s)
    folder = s.save(tmp_path / "a").path
    (old,) = folder.rglob("*-deletes.parquet")
    new = old.with_suffix("." + write.__name__.removeprefix("_as_"))
    write(pq.read_table(old), new)
    old.unlink()

    def entry(record: dict[str, Any]) -> None:
        file = record["data_file"]
        if file["file_path"] == str(old):
            size = new.stat().st_size
            file.update(file_path=str(new), file_format=new.suffix[1:].upper(), file_size_in_bytes=size)

    manifests = list((folder / "metadata").glob("*.avro"))
    lists = [p for p in manifests if "manifest_path" in str(fastavro.reader(io.BytesIO(p.read_bytes())).writer_schema)]
    for path in set(manifests) - set(lists):
        _patched(path, entry)
    for path in lists:
        _patched(path, lambda r: r.update(manifest_length=Path(r["manifest_path"]).stat().st_size))
    original = ix.open(folder)
    assert ids(original) == expected and original.inspect.delete_files()["file_format"].tolist() == [
        new.suffix[1:].upper()
    ]

    saved = original.simulate().save(tmp_path / "b")
    shutil.rmtree(folder)
    assert ids(ix.open(saved.path)) == expected and not saved.missing
    (copied,) = saved.path.rglob(f"*{new.suffix}") if write is _as_orc else saved.path.rglob("*-deletes.avro")
    assert str(folder).encode() not in copied.read_bytes()
    assert ids(ix.open(shutil.move(saved.path, tmp_path / "moved"))) == expected


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_save_leaves_nothing(error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: Any) -> None:
        raise error

    (tmp_path / "a").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(save_module._Saver, "_documents", fail)
        with pytest.raises((StorageError, KeyboardInterrupt)):
            ix.sample().simulate().save(tmp_path / "a" / "b" / "c" / "t")
    assert list(tmp_path.rglob("*")) == [tmp_path / "a"]


def test_a_copy_shares_no_file_with_the_original(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "lab", {"id": "long"})
    lab.append({"id": [1, 2]})
    saved = ix.open(tmp_path / "lab").simulate().save(tmp_path / "t")
    (was,), (now,) = (list(f.rglob("*-data.parquet")) for f in (tmp_path / "lab", saved.path))
    assert not was.samefile(now) and was.stat().st_nlink == 1
    now.write_bytes(b"changed")
    assert ids(ix.open(tmp_path / "lab")) == [1, 2]


def test_statistics_files_go_with_the_table(tmp_path: Path) -> None:
    s = ix.sample().simulate(seed=1)
    assert s.metadata.statistics
    saved = s.save(tmp_path / "t")
    t = ix.open(shutil.move(saved.path, tmp_path / "moved"))
    document = json.loads(
        gzip.decompress((tmp_path / "moved" / "metadata" / Path(t.metadata_location).name).read_bytes())
    )
    for f in document["statistics"]:
        assert f["statistics-path"].startswith(saved.location)
    for f in t.metadata.statistics:
        real = t.state.storage.resolve(f.statistics_path)
        assert real.startswith(str(tmp_path / "moved"))
        assert Path(real).stat().st_size == f.file_size_in_bytes
        read_puffin_footer(t.state.storage, f.statistics_path, f.file_size_in_bytes)


def test_partition_statistics_files_go_with_the_table(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "lab", {"id": "long"})
    lab.append({"id": [1, 2]})
    newest = max((tmp_path / "lab" / "metadata").glob("v*.metadata.json"))
    document = json.loads(newest.read_text())
    path = tmp_path / "lab" / "metadata" / "partition-stats.parquet"
    pq.write_table(pa.table({"n": [1]}), path)
    document["partition-statistics"] = [
        {
            "snapshot-id": document["current-snapshot-id"],
            "statistics-path": str(path),
            "file-size-in-bytes": path.stat().st_size,
        }
    ]
    newest.write_text(json.dumps(document))
    saved = ix.open(tmp_path / "lab").simulate().save(tmp_path / "t")
    shutil.rmtree(tmp_path / "lab")
    (f,) = ix.open(saved.path).metadata.partition_statistics
    assert Path(f.statistics_path).is_relative_to(saved.path) and pq.read_table(f.statistics_path).num_rows == 1


def test_malformed_parts_of_a_document_stay_as_they_are() -> None:
    document = {
        "snapshots": [1, {"manifest-list": [], "manifests": ["/a", 7]}], "statistics": True,
        "partition-statistics": [{}, {"statistics-path": "/a"}], "metadata-log": 5,
    }  # fmt: skip
    saved = relocated_document(document, "/new", {"/a": "/b"})
    assert saved["snapshots"] == [1, {"manifest-list": [], "manifests": ["/b", 7]}]
    assert saved["partition-statistics"] == [{}, {"statistics-path": "/b"}]
    assert (saved["statistics"], saved["metadata-log"], saved["location"]) == (True, [], "/new")
    assert relocated_document({"metadata-log": [1, {"metadata-file": []}]}, "/new", {})["metadata-log"] == []


def _parquet_manifest(rows: list[dict[str, Any]], **options: Any) -> bytes:
    """A manifest as Java writes it for version 4, of few columns."""

    def field(name: str, kind: pa.DataType, number: int) -> pa.Field:
        return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})

    bounds = pa.map_(pa.int32(), pa.binary())
    inside = [
        field("file_path", pa.string(), 100),
        field("record_count", pa.int64(), 103),
        field("file_size_in_bytes", pa.int64(), 104),
        field("lower_bounds", bounds, 125),
        field("upper_bounds", bounds, 128),
    ]
    schema = pa.schema([field("status", pa.int32(), 0), field("data_file", pa.struct(inside), 2)])
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), out, **options)
    return out.getvalue()


def _entry(path: str, bounds: tuple[bytes, bytes] | None, status: int = 1) -> dict[str, Any]:
    lower, upper = (None, None) if bounds is None else ([(POS_ID, b"\x01"), (FILE_PATH_ID, b)] for b in bounds)
    file = {"file_path": path, "record_count": 4, "file_size_in_bytes": 50}
    return {"status": status, "data_file": {**file, "lower_bounds": lower, "upper_bounds": upper}}


def test_bounds_of_paths_in_parquet_manifests() -> None:
    rows = [_entry("d1", (b"a", b"c")), _entry("none", None), _entry("d2", (b"b", b"b")), _entry("kept", (b"k", b"k"))]
    moved = {"d1": "D1", "d2": "D2", "a": "z", "b": "y", "c": "x"}
    new = relocated_manifest(
        _parquet_manifest(rows), "m", moved, {"D1": 60}, {"D1": ("x", "z"), "D2": ("y", "y"), "other": ("o", "o")}
    )
    expected = [
        _entry("D1", (b"x", b"z")),
        _entry("none", None),
        _entry("D2", (b"y", b"y")),
        _entry("kept", (b"k", b"k")),
    ]
    expected[0]["data_file"]["file_size_in_bytes"] = 60
    assert pq.read_table(io.BytesIO(new)).to_pylist() == expected


def test_column_statistics_of_manifests_stay() -> None:
    """Minimum, maximum and nulls of columns that hold no location are the writer's; of those that do, the new ones."""
    rows = [_entry(path, (b"a", b"a"), n) for n, path in enumerate(("p1", "p2", "p3", "p4"))]
    old = _parquet_manifest(
        rows, row_group_size=2, compression="gzip", write_statistics=["status", "data_file.file_path"]
    )
    new = relocated_manifest(old, "m", {"p1": "q9", "p4": "a0"}, {})
    a, b = pq.read_metadata(io.BytesIO(old)), pq.read_metadata(io.BytesIO(new))
    ends = []
    for group in range(2):
        for i in range(a.num_columns):
            x, y = a.row_group(group).column(i), b.row_group(group).column(i)
            assert (x.path_in_schema, x.is_stats_set, x.compression) == (y.path_in_schema, y.is_stats_set, "GZIP")
            if x.path_in_schema == "status":
                assert x.is_stats_set and x.statistics.to_dict() == y.statistics.to_dict()  # type: ignore[union-attr]
            if x.path_in_schema == "data_file.file_path":
                ends.append((y.statistics.min, y.statistics.max))  # type: ignore[union-attr]
    assert ends == [("p2", "q9"), ("a0", "p3")]
