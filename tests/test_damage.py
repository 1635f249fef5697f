"""Damage is data: whatever byte is wrong, what can be read is shown, or one of our errors says why not."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import hypothesis
import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore._samples import sample_path
from iceexplore.arrow import build
from iceexplore.storage import canonical

TABLES = ("snapshots", "files", "all_entries", "manifests", "partitions", "position_deletes", "puffin_blobs", "refs")


def _show_everything(t: ix.Table) -> None:
    repr(t), t._repr_html_()
    for name in TABLES:
        getattr(t.inspect, name)()
    t.tree(snapshots="all", depth="files").to_text()
    t.diff(t.snapshots[0].snapshot_id).card() if len(t.snapshots) else None
    repr(t.problems)


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("damage") / "trips"
    shutil.copytree(sample_path("trips"), path)
    return path


def _files(trips: Path) -> list[Path]:
    return sorted(p for p in trips.rglob("*") if p.is_file() and "/data/started" not in str(p))


@hypothesis.settings(
    max_examples=max(25, hypothesis.settings().max_examples // 2),
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(seed=st.integers(0, 2**32 - 1))
def test_no_damage_raises_anything_but_our_errors(trips: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = rng.choice(_files(trips))
    before = path.read_bytes()
    data = bytearray(before)
    match rng.choice(["flip", "truncate", "zero", "insert", "empty", "gone"]):
        case "flip":
            for _ in range(rng.randint(1, 8)):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        case "truncate":
            del data[rng.randrange(len(data)) :]
        case "zero":
            at = rng.randrange(len(data))
            data[at : at + 64] = bytes(len(data[at : at + 64]))
        case "insert":
            at = rng.randrange(len(data))
            data[at:at] = rng.randbytes(rng.randint(1, 100))
        case "empty":
            data.clear()
        case "gone":
            path.unlink()
    try:
        if path.exists():
            path.write_bytes(data)
        try:
            t = ix.open(trips)
            _show_everything(t)
        except ix.IceexploreError as e:
            assert str(e)  # noqa: PT017
        else:
            assert all(p.text and p.where for p in t.problems)
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("kind", ["metadata.json", "snap-", "-m0.avro", "deletes.parquet", ".puffin"])
def test_a_missing_file_is_a_problem_on_its_node_and_strict_raises(trips: Path, kind: str) -> None:
    t = ix.open(trips)
    if kind == "metadata.json":
        path = trips / "metadata" / Path(t.metadata_location).name
    elif kind == "snap-":
        path = trips / "metadata" / Path(str(t.snapshot.manifest_list)).name  # type: ignore[union-attr]
    else:
        live = build.to_pylist(t.inspect.delete_files.arrow()["file_path"]) + build.to_pylist(
            t.inspect.manifests.arrow()["path"]
        )
        names = {Path(p).name for p in live}
        path = min(p for p in trips.rglob(f"*{kind}*") if p.name in names)
    data = path.read_bytes()
    path.unlink()
    try:
        if kind == "metadata.json":
            older = ix.open(trips)
            assert older.metadata_location != t.metadata_location
            return
        broken = ix.open(trips)
        _show_everything(broken)
        mine = [p for p in broken.problems if p.code == "file-missing"]
        assert mine
        assert all(path.name in p.where for p in mine)
        tree = broken.tree(snapshots="all", depth="files")
        if kind in ("snap-", "-m0.avro"):
            assert any(n.problems for n in tree.nodes)
        with pytest.raises(ix.FileMissingError, match=path.name):
            _show_everything(ix.open(trips, strict=True))
    finally:
        path.write_bytes(data)


def test_a_whole_table_has_no_problem(trips: Path) -> None:
    t = ix.open(trips)
    _show_everything(t)
    assert list(t.problems) == []


def _rewritten(path: Path, change: Callable[[list[Any], dict[str, Any]], None]) -> None:
    """An Avro file with other records, and other keys in its header."""
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        rows: list[Any] = list(reader)
        header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        schema: Any = reader.writer_schema
    change(rows, header)
    with path.open("wb") as out:
        fastavro.writer(out, schema, rows, metadata=header, codec="deflate")


def _lab(folder: Path) -> tuple[Path, Path]:
    """A lab with a deleted row, its current manifest list, and the manifest of its rows."""
    merge_on_read = {"write.delete.mode": "merge-on-read"}
    lab = ix.create(folder, {"id": "long", "k": "string"}, partition_by="k", properties=merge_on_read)
    lab.append({"id": [1, 2, 3], "k": ["a", "b", "b"]})
    lab.delete("id = 2")
    assert lab.snapshot is not None
    manifests = lab.inspect.manifests()
    data = manifests["path"][manifests["content"] == 0].iloc[0]
    return Path(canonical(str(lab.snapshot.root_location))), Path(canonical(data))


def test_summaries_the_wrong_way_round_bring_no_row_back(tmp_path: Path) -> None:
    root, _ = _lab(tmp_path / "t")

    def turn(rows: list[Any], header: dict[str, Any]) -> None:
        for row in rows:
            for summary in row["partitions"]:
                summary.update(lower_bound=b"z", upper_bound=b"a")

    assert not ix.open(tmp_path / "t").problems
    _rewritten(root, turn)
    t = ix.open(tmp_path / "t")
    assert t.count() == 2
    assert sorted(build.to_pylist(t.to_arrow()["id"])) == [1, 3]
    (found,) = t.problems
    assert (found.code, found.field, found.found) == ("bounds-untrue", "507 partitions", "z to a")
    assert found.where == f"file://{root}#entry 0"
    assert "'k'" in found.text
    assert "2 of 2 manifests" in found.text


def test_headers_of_manifests_that_other_engines_cannot_read(tmp_path: Path) -> None:
    root, manifest = _lab(tmp_path / "t")

    def spoil(rows: list[Any], header: dict[str, Any]) -> None:
        header["partition-spec"] = json.dumps({"spec-id": 0, "fields": json.loads(header["partition-spec"])})
        header.update({"schema": "{not json", "format-version": "two"})

    _rewritten(manifest, spoil)

    def fit(rows: list[Any], header: dict[str, Any]) -> None:
        for row in rows:
            row["manifest_length"] = Path(canonical(row["manifest_path"])).stat().st_size

    _rewritten(root, fit)
    t = ix.open(tmp_path / "t")
    assert t.count() == 2
    t.inspect.entries()
    found = [(p.field, p.severity, p.where) for p in t.problems]
    assert found == [(key, "warning", f"file://{manifest}") for key in ("schema", "partition-spec", "format-version")]


def test_metadata_whose_name_does_not_say_that_it_is_gzip(tmp_path: Path) -> None:
    _lab(tmp_path / "t")
    newest = tmp_path / "t" / "metadata" / "v3.metadata.json"
    text = newest.read_bytes()
    newest.write_bytes(gzip.compress(text))
    assert "v3.metadata.json is gzip, but its name has no .gz" in repr(ix.open(tmp_path / "t"))
    newest.unlink()
    newest.with_name("v3.gz.metadata.json").write_bytes(text)
    assert "v3.gz.metadata.json is not gzip, but its name has .gz" in repr(ix.open(tmp_path / "t"))


def test_a_vector_that_has_no_place(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"}, format_version=3, properties={"write.delete.mode": "merge-on-read"})
    lab.append({"id": [1, 2]})
    lab.delete("id = 2")
    manifests = lab.inspect.manifests()
    manifest = Path(canonical(manifests["path"][manifests["content"] == 1].iloc[0]))
    _rewritten(manifest, lambda rows, header: rows[0]["data_file"].update(content_offset=None))
    t = ix.open(tmp_path / "t")
    assert len(t.inspect.position_deletes()) == 0
    (found,) = [p for p in t.problems if p.code == "file-corrupt"]
    assert "lacks its offset or size" in found.text
    assert found.field == "content_offset"


@pytest.mark.parametrize("version", [2, 4])
def test_a_data_file_that_two_manifests_hold(tmp_path: Path, version: int) -> None:
    layout = {"flush_data_files": 0} if version == 4 else {}
    s = ix.empty({"id": "long"}, format_version=version, **layout)  # type: ignore[arg-type]
    files = [{"location": f"/w/{i}.parquet", "record_count": 10 + i, "file_size_in_bytes": 9} for i in range(3)]
    for file in files[:2]:
        s.append([file])
    s.append([files[2], files[0] | {"record_count": 7}], check_duplicates=False)
    t = s.at(ref="main")
    assert t.count() == 40
    (found,) = t.problems
    assert (found.code, found.where, found.severity) == ("file-twice", "/w/0.parquet", "warning")
    assert "live in 2 manifests: its rows" in found.text
    assert str(found.found).count(", ") == 1
    s.delete_files(["/w/1.parquet"])
    assert len(s.plan("id > 5").tasks) == 3
    assert "live in 2 manifests" in repr(s.problems)
    clean = s.at(snapshot=s.snapshots[1].snapshot_id)
    assert clean.count() == 21


def test_a_drawing_does_not_make_a_scan_refuse(tmp_path: Path) -> None:
    merge_on_read = {"write.delete.mode": "merge-on-read"}
    lab = ix.create(tmp_path / "t", {"id": "long"}, format_version=4, properties=merge_on_read)
    lab.append({"id": [1, 2]})
    lab.delete("id = 2")
    vector = Path(canonical(lab.inspect.delete_files()["file_path"].iloc[0]))
    vector.unlink()
    t = ix.open(tmp_path / "t")
    assert "cannot be read" in t.tree(style="proposal").to_text()
    assert {p.where for p in t.problems} == {f"file://{vector}"}
    assert not t.plan().notes
    assert t.to_arrow("id > 2").num_rows == 0
    with pytest.raises(ix.FileMissingError, match=vector.name):
        t.to_arrow()


def _root_of_v4(folder: Path, change: Callable[[list[dict[str, Any]]], None]) -> tuple[ix.Table, Path]:
    """A V4 table with a manifest DV (entry 2 of its root), its root changed, and the root."""
    s = ix.empty({"id": "long"}, format_version=4, leaf_entries=2, flush_data_files=0)
    s.append([{"location": f"/w/{i}.parquet", "record_count": 10, "file_size_in_bytes": 9} for i in range(4)])
    s.delete_files(["/w/1.parquet"])
    s.save(folder)
    t = ix.open(folder)
    assert t.snapshot is not None
    assert t.count() == 30
    assert not t.problems
    root = Path(str(t.snapshot.root_location))
    table = pq.read_table(root)
    rows = table.to_pylist()
    assert [row["content_type"] for row in rows] == [3, 3, 5]
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), root)
    return ix.open(folder), root


@pytest.mark.parametrize("kind", [7, -1])
def test_a_content_type_that_is_none(tmp_path: Path, kind: int) -> None:
    t, root = _root_of_v4(tmp_path / "t", lambda rows: rows[0].update(content_type=kind))
    assert t.tree(style="proposal").to_text()
    (found,) = [p for p in t.problems if p.field == "134 content_type"]
    assert (found.where, found.found) == (f"{root}#entry 0", str(kind))


def test_a_manifest_vector_of_no_manifest(tmp_path: Path) -> None:
    t, root = _root_of_v4(tmp_path / "t", lambda rows: rows[2].update(referenced_file="/w/none.parquet"))
    assert t.count() == 40
    found, *totals = t.problems
    assert (found.code, found.where, found.found) == ("manifest-dv-invalid", f"{root}#entry 2", "/w/none.parquet")
    assert {p.code for p in totals} == {"totals-differ"}  # what it removed from the other manifest is back
    assert found.severity == "warning"
