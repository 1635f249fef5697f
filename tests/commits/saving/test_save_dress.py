"""Saved tables by other eyes: files as their writers wrote them but for the locations, rows that can be read."""

from __future__ import annotations

import io
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
from iceexplore.arrow import build
from iceexplore.commits.saving._relocate import relocated_deletes, relocated_manifest
from iceexplore.deletes import read_puffin_footer
from iceexplore.errors import StorageError
from iceexplore.formats import read_rows
from iceexplore.simulation import Simulation

LAYOUTS = [
    (2, {}),
    (3, {}),
    (4, {}),
    (4, {"manifest_format": "avro"}),
    (4, {"flush_data_files": 0, "flush_delete_files": 0, "inline_dv_bytes": 0}),
    (4, {"dialect": "v4-java"}),
    (4, {"dialect": "v4-java", "manifest_format": "parquet"}),
]


@pytest.fixture(params=LAYOUTS, ids=lambda p: f"v{p[0]}" + "".join(f"-{v}" for v in p[1].values()))
def simulation(request: pytest.FixtureRequest) -> Simulation:
    version, layout = request.param
    s = ix.empty({"id": "long", "s": "string"}, format_version=version, location="s3://old/t", seed=3, **layout)
    s.append(pd.DataFrame({"id": range(100), "s": ["x"] * 100}))
    first = s.inspect.data_files()["file_path"].iloc[0]
    s.append(pd.DataFrame({"id": range(100, 150), "s": ["y"] * 50}))
    s.row_delta(deletes={first: [1, 2, 3]})
    second = next(p for p in s.inspect.data_files()["file_path"] if p != first)
    s.delete_files(second)
    return s


def dress(path: Path) -> Any:
    """What of a file does not depend on the locations in it."""
    data = path.read_bytes()
    if data[:4] == b"PAR1":
        file = pq.ParquetFile(io.BytesIO(data))
        found = file.metadata
        groups = [found.row_group(i) for i in range(found.num_row_groups)]
        chunks = [
            (c.path_in_schema, c.compression, sorted(c.encodings), c.is_stats_set, c.has_dictionary_page)
            for g in groups
            for c in (g.column(i) for i in range(g.num_columns))
        ]
        return found.metadata, str(file.schema).partition("\n")[2], [g.num_rows for g in groups], chunks
    if data[:4] == b"Obj\x01":
        return fastavro.reader(io.BytesIO(data)).metadata
    return None


def test_files_keep_the_dress_of_their_writer(simulation: Simulation, tmp_path: Path) -> None:
    simulation.save(tmp_path / "t")
    was = {p.name: p for p in Path(simulation.overlay).rglob("*") if p.is_file()}
    compared = 0
    for saved in (p for p in (tmp_path / "t").rglob("*") if p.is_file()):
        original = next((p for name, p in was.items() if name.endswith(saved.name)), None)
        if original is not None and dress(original) is not None:
            assert dress(saved) == dress(original), saved.name
            compared += 1
    assert compared >= 5


def test_no_old_location_is_left(simulation: Simulation, tmp_path: Path) -> None:
    simulation.save(tmp_path / "t")
    for path in (p for p in (tmp_path / "t").rglob("*") if p.is_file()):
        data = path.read_bytes()
        text: Any = data
        if data[:4] == b"PAR1":
            text = repr(pq.read_table(io.BytesIO(data)).to_pylist()).encode()
        elif data[:4] == b"Obj\x01":
            text = repr(list(fastavro.reader(io.BytesIO(data)))).encode()
        assert b"s3://old/t" not in text, path


@pytest.mark.parametrize("moved", [False, True])
def test_rows_are_read_wherever_it_is(simulation: Simulation, tmp_path: Path, moved: bool) -> None:
    folder = simulation.save(tmp_path / "t").path
    if moved:
        folder = Path(shutil.move(folder, tmp_path / "moved"))
    t = ix.open(folder)
    expected = sorted(set(range(100)) - {1, 2, 3})
    assert sorted(build.to_pylist(t.to_arrow()["id"])) == expected
    assert t.count() == len(expected) and len(t.head(5)) == 5 and not t.problems


def test_the_default_reads_what_the_simulation_did_not_write(tmp_path: Path) -> None:
    s = ix.sample().at(version=12).simulate(seed=1)
    expected = s.count()
    t = ix.open(s.save(tmp_path / "t").path)
    assert t.count() == expected and t.to_arrow().num_rows == expected


@pytest.mark.parametrize("codec", ["snappy", "gzip", "none"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_codecs_and_encodings_of_any_writer(codec: str, dictionary: bool) -> None:
    field = pa.field("location", pa.string(), metadata={"PARQUET:field_id": "100"})
    other = pa.field("n", pa.int64(), metadata={"PARQUET:field_id": "7"})
    reference = pa.field("referenced_file", pa.string(), metadata={"PARQUET:field_id": "143"})
    columns = [["a", "b", "b"], [1, 2, 3], ["file:///b", None, "file:///a"]]
    table = build.table(columns, schema=build.schema([field, other, reference]))
    out = io.BytesIO()
    extra: Any = {} if dictionary else {"column_encoding": {"location": "PLAIN", "n": "DELTA_BINARY_PACKED"}}
    with pq.ParquetWriter(
        out,
        table.schema,
        compression=codec,  # type: ignore[arg-type]
        use_dictionary=dictionary,
        write_statistics=["n"],
        **extra,
    ) as writer:
        writer.add_key_value_metadata({"content": "0"})
        writer.write_table(table, row_group_size=2)
    new = pq.ParquetFile(io.BytesIO(relocated_manifest(out.getvalue(), "m", {"b": "c", "/b": "/c"}, {})))
    old = pq.ParquetFile(io.BytesIO(out.getvalue()))
    assert new.read()["location"].to_pylist() == ["a", "c", "c"]
    assert new.read()["referenced_file"].to_pylist() == ["/c", None, "file:///a"]
    assert new.metadata.metadata == old.metadata.metadata and new.schema.equals(old.schema)
    for group in range(2):
        for column in range(2):
            a, b = (f.metadata.row_group(group).column(column) for f in (old, new))
            assert (a.compression, a.encodings, a.is_stats_set) == (b.compression, b.encodings, b.is_stats_set)


def _orc(path: Path) -> None:
    fields = [("file_path", pa.string(), "2147483546"), ("pos", pa.int64(), "2147483545")]
    schema = pa.schema([pa.field(n, k, metadata={"iceberg.id": i}) for n, k, i in fields])
    orc.write_table(build.table([["a", "a", "b"], [0, 4, 1]], schema=schema), path, compression="ZSTD")


def _avro(path: Path) -> None:
    fields = [
        {"name": "file_path", "type": "string", "field-id": 2147483546},
        {"name": "pos", "type": "long", "field-id": 2147483545},
    ]
    rows = [{"file_path": p, "pos": n} for p, n in (("a", 0), ("a", 4), ("b", 1))]
    schema = {"type": "record", "name": "r", "fields": fields}
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows, codec="deflate", metadata={"delete-type": "position"})


@pytest.mark.parametrize("write", [_orc, _avro])
def test_position_deletes_in_orc_and_avro_follow(write: Callable[[Path], None], tmp_path: Path) -> None:
    folder = ix.empty({"id": "long"}, seed=1).save(tmp_path / "t").path
    path = folder / "deletes"
    write(path)
    storage = ix.open(folder).state.storage
    made = relocated_deletes(storage, str(path), {"a": "z"})
    assert made is not None and made.paths == ("b", "z")
    data = made.data
    (folder / "new").write_bytes(data)
    rows = read_rows(storage, str(folder / "new"), kind="delete-file")
    assert rows.to_pydict() == {"file_path": ["b", "z", "z"], "pos": [1, 0, 4]}
    assert [f.metadata[b"PARQUET:field_id"] for f in rows.schema] == [b"2147483546", b"2147483545"]  # type: ignore[index]
    if write is _avro:
        reader = fastavro.reader(io.BytesIO(data))
        assert reader.metadata["delete-type"] == "position" and reader.metadata["avro.codec"] == "deflate"
    else:
        assert orc.ORCFile(folder / "new").compression == "ZSTD"


def test_puffins_of_manifests_name_the_saved_manifests(tmp_path: Path) -> None:
    s = ix.empty({"id": "long"}, seed=1, location="s3://old/t", flush_data_files=0, inline_dv_bytes=0)
    s.append(files=4, rows=10)
    s.delete_files(s.inspect.data_files()["file_path"].iloc[0])
    t = ix.open(s.save(tmp_path / "t").path)
    puffins = list((tmp_path / "t").rglob("*.puffin"))
    assert puffins
    for path in puffins:
        for blob in read_puffin_footer(t.state.storage, str(path)).blobs:
            assert Path(blob.referenced_data_file or "").is_file()
    assert len(t.inspect.data_files()) == 3


def test_failed_reads_are_blamed_on_the_original(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import iceexplore.commits.saving._save as module

    s = ix.empty({"id": "long"}, seed=1)
    s.append(pd.DataFrame({"id": range(3)}))
    monkeypatch.setattr(module, "_share_blocks", lambda original, copy: False)
    monkeypatch.setattr(module, "_copy_bytes", lambda original, copy: "Input/output error")
    saved = s.save(tmp_path / "t")
    (reason,) = saved.missing.values()
    (name,) = saved.missing
    assert name in reason and "Input/output error" in reason and str(tmp_path / "t") not in reason


def test_full_disks_are_blamed_on_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import iceexplore.commits.saving._save as module

    def full(original: Any, copy: Any) -> None:
        raise OSError(28, "No space left on device")

    s = ix.empty({"id": "long"}, seed=1)
    s.append(pd.DataFrame({"id": range(3)}))
    monkeypatch.setattr(module, "_share_blocks", lambda original, copy: False)
    monkeypatch.setattr(module, "_copy_bytes", full)
    with pytest.raises(StorageError, match="No space left"):
        s.save(tmp_path / "t")
    assert list(tmp_path.iterdir()) == []
