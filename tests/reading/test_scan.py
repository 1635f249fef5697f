"""head, count, to_arrow and to_pandas: what people call."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import fastavro
import pandas as pd
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.simulation import Simulation
from tests.helpers.tables.data_table import field, listed, struct

FIRST = [(1, "a", 1.0), (2, "b", None), (3, "a", 3.0)]
SECOND = [(4, "b", 4.0), (5, "a", 5.0)]


def frame(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["id", "kind", "x"]).astype({"x": "float64"})


@pytest.fixture(params=[1, 2, 3, 4], ids="v{}".format)
def table(request: pytest.FixtureRequest) -> Simulation:
    """Five rows in four files of two partitions."""
    s = ix.empty({"id": "long", "kind": "string", "x": "double"}, partition_by=["kind"], format_version=request.param)
    s.append(frame(FIRST))
    s.append(frame(SECOND))
    return s


def ids(rows: pa.Table) -> list[int]:
    return sorted(build.to_pylist(rows["id"]))


def files_of(s: ix.Table) -> dict[int, tuple[str, int]]:
    rows = s.to_arrow(columns=["id", "_file", "_pos"]).to_pylist()
    return {r["id"]: (r["_file"], r["_pos"]) for r in rows}


def test_rows_by_filter_columns_and_limit(table: Simulation) -> None:
    assert ids(table.to_arrow()) == [1, 2, 3, 4, 5]
    assert ids(table.to_arrow("x >= 3")) == [3, 4, 5]
    assert table.to_arrow("kind = 'b'", columns=["X", "id"]).column_names == ["X", "id"]
    assert table.to_arrow("x is null", columns="id").to_pylist() == [{"id": 2}]
    assert table.to_arrow(limit=2).num_rows == 2
    assert table.to_arrow(limit=0).schema == table.to_arrow().schema
    assert ids(table.to_arrow(partition={"kind": "a"})) == [1, 3, 5]
    assert table.to_arrow(columns=[]).num_rows == 5
    head = table.head(3, columns=["*", "_file", "_pos", "_spec_id", "_partition"])
    assert list(head.columns) == ["id", "kind", "x", "_file", "_pos", "_spec_id", "_partition"]
    assert len(head) == 3
    assert head["_partition"][0] == {"kind": head["kind"][0]}
    assert len(table.to_pandas("id > 3")) == 2


def test_head_reads_no_further_than_needed(table: Simulation) -> None:
    table.plan()
    table.reads.clear()
    table.head(1)
    assert len({r.location for r in table.reads if r.kind == "data-file"}) == 1


def test_rows_keep_the_order_of_the_plan(table: Simulation) -> None:
    planned = table.plan().tasks["file_path"].tolist()
    rows = table.to_arrow(columns=["_file", "_pos"]).to_pylist()
    assert rows == sorted(rows, key=lambda r: (planned.index(r["_file"]), r["_pos"]))


def test_counts_come_of_metadata_where_that_is_exact(table: Simulation) -> None:
    table.reads.clear()
    whole = table.count()
    assert (whole, whole.files, whole.from_metadata, whole.read) == (5, 4, 4, 0)
    assert table.count("kind = 'a'") == 3
    assert not any(r.kind == "data-file" for r in table.reads)
    some = table.count("x > 2")
    assert some == 3
    assert 0 < some.read <= 4
    assert "5 rows in 4 data files: 4 counted from manifests alone" in whole.explain()


def test_counts_with_deletes(table: Simulation) -> None:
    version = table.format_version
    if version == 1:
        return
    path, pos = files_of(table)[1]
    table.row_delta(deletes={path: [pos]})
    by_position = table.count()
    assert (by_position, by_position.read) == (4, 0)
    assert by_position.from_deletes == 1
    table.row_delta(equality=pa.table({"id": [4], "kind": ["b"]}))
    by_value = table.count()
    assert by_value == table.to_arrow().num_rows == 3
    assert by_value.read > 0
    assert ids(table.to_arrow("x > 0")) == [3, 5]
    marked = {r["id"]: r["_deleted"] for r in table.to_arrow(columns=["id", "_deleted"]).to_pylist()}
    assert marked == {1: True, 2: False, 3: False, 4: True, 5: False}


def _rewrite(location: str, change: Callable[[dict[str, Any]], Any]) -> None:
    path = Path(location.removeprefix("file://"))
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        rows: list[Any] = list(reader)
        header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        schema: Any = reader.writer_schema
    for row in rows:
        change(row)
    with path.open("wb") as out:
        fastavro.writer(out, schema, rows, metadata=header)


@pytest.mark.parametrize("claimed", [1, 3])
def test_a_vector_that_counts_other_rows_than_its_entry_is_a_problem_and_counts_agree(
    tmp_path: Path, claimed: int
) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"}, format_version=3,
                    properties={"write.delete.mode": "merge-on-read"})  # fmt: skip
    lab.append({"id": list(range(4))})
    lab.delete("id < 2")
    manifest = lab.inspect.delete_files()  # one vector of two rows
    assert manifest["record_count"].tolist() == [2]
    leaf = next(m.location for m in lab._state.leaves(None) if m.entries["content_type"][0].as_py() == 1)
    _rewrite(leaf, lambda row: row["data_file"].update(record_count=claimed))
    assert lab.snapshot is not None
    _rewrite(str(lab.snapshot.root_location), lambda row: row["content"] and row.update(added_rows_count=claimed))
    document = Path(lab.metadata_location.removeprefix("file://"))
    document.write_text(document.read_text().replace("total-position-deletes", "was-total"))  # which tells it by itself
    t = ix.open(tmp_path / "t")
    assert t.count() == t.to_arrow().num_rows == 2
    assert {(p.code, p.found, p.expected, p.severity) for p in t.problems if p.field == "record_count"} == {
        ("count-mismatch", "2", str(claimed), "error")
    }
    for ask in (lambda s: s.count(), lambda s: s.to_arrow()):
        with pytest.raises(ix.FormatError, match="cardinality"):
            ask(ix.open(tmp_path / "t", strict=True))


def test_row_ids_from_version_three_on(table: Simulation) -> None:
    rows = table.to_arrow(columns=["_row_id", "_last_updated_sequence_number"]).to_pylist()
    if table.format_version < 3:
        assert rows == [{"_row_id": None, "_last_updated_sequence_number": None}] * 5
    else:
        assert sorted(r["_row_id"] for r in rows) == [0, 1, 2, 3, 4]
        assert {r["_last_updated_sequence_number"] for r in rows} == {1, 2}


def test_nested_fields_by_their_names() -> None:
    inner = struct(field(11, "a", "int"), field(12, "t", struct(field(13, "b", "string"))))
    s = ix.empty({"id": "long", "s": inner, "l": listed(14, "int")}, format_version=2)
    kind = pa.struct([("a", pa.int32()), ("t", pa.struct([("b", pa.string())]))])
    rows = [{"a": 1, "t": {"b": "x"}}, None, {"a": None, "t": None}]
    lists = pa.array([[1], None, []], pa.list_(pa.int32()))
    s.append(pa.table({"id": [1, 2, 3], "s": pa.array(rows, kind), "l": lists}))
    found = s.to_arrow(columns=["s.t.b", "s.a", "id"])
    assert found.to_pylist() == [
        {"s.t.b": "x", "s.a": 1, "id": 1}, {"s.t.b": None, "s.a": None, "id": 2}, {"s.t.b": None, "s.a": None, "id": 3},
    ]  # fmt: skip
    assert s.to_arrow("s.t.b = 'x'", columns="id").to_pylist() == [{"id": 1}]
    with pytest.raises(ix.OptionError, match="is inside a list or map"):
        s.to_arrow(columns="l.element")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"columns": ["idd"]}, "nearest: id"),
        ({"columns": [3]}, "not a column name"),
        ({"columns": {"id": 1}}, "give column names"),
        ({"filter": "nope = 1"}, "nope"),
        ({"limit": -1}, "limit=-1: expected a whole number, at least 0"),
        ({"limit": True}, "limit=True: expected a whole"),
        ({"limit": 1.5}, "limit=1.5: expected a whole"),
        ({"max_bytes": "4 GiB"}, "max_bytes='4 GiB': expected a whole"),
        ({"columns": 3}, "columns=3: give column names"),
        ({"on_error": "ignore"}, "'raise' or 'skip'"),
    ],
)
def test_options_that_make_no_sense_are_refused(table: Simulation, how: dict[str, Any], message: str) -> None:
    with pytest.raises(ix.OptionError, match=message):
        table.to_arrow(**how)


def test_rows_that_take_more_memory_than_allowed(table: Simulation) -> None:
    with pytest.raises(ix.UnsupportedError, match="max_bytes="):
        table.to_arrow(max_bytes=10)


# Damage --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def saved(table: Simulation, tmp_path: Path) -> ix.Table:
    """The table in a folder of its own, to be damaged."""
    table.save(tmp_path / "t", data="copy")
    return ix.open(tmp_path / "t")


def real(t: ix.Table, location: str) -> Path:
    return Path(t._state.storage.resolve(location))


def test_what_cannot_be_read_is_an_error_that_says_what_to_do_or_is_left_out(saved: ix.Table) -> None:
    places = files_of(saved)
    gone, broken = places[1][0], places[4][0]
    os.unlink(real(saved, gone))
    real(saved, gone).mkdir()
    with pytest.raises(ix.FileMissingError, match=r"is a folder, not a file .*on_error='skip'"):
        ix.open(saved.location).to_arrow()
    real(saved, gone).rmdir()
    real(saved, broken).write_bytes(b"PAR1 nonsense PAR1")
    t = ix.open(saved.location)
    with pytest.raises(ix.IceexploreError, match="on_error='skip'"):
        t.to_arrow()
    with pytest.raises(ix.IceexploreError, match="on_error='skip'"):
        t.count("x > 2")
    lost = sum(1 for place, _ in places.values() if place in (gone, broken))
    with pytest.warns(UserWarning, match=rf"2 data files could not be read: {lost} rows are left out"):
        rows = t.to_arrow(on_error="skip")
    assert ids(rows) == sorted(i for i, (place, _) in places.items() if place not in (gone, broken))
    assert {p.where for p in t.problems if p.severity == "error"} == {gone, broken}
    assert all("rows are left out)" in p.text for p in t.problems if p.severity == "error")
    with pytest.warns(UserWarning, match="left out"):
        assert t.count("x > 2", on_error="skip") == 2  # of files of one row each, by their bounds: they are not opened


def test_a_file_whose_deletes_cannot_be_read_is_not_read_without_them(saved: ix.Table, tmp_path: Path) -> None:
    if saved.format_version == 1:
        return
    s = saved.simulate()
    path, pos = files_of(s)[1]
    s.row_delta(deletes={path: [pos]})
    s.save(tmp_path / "u", data="copy")
    t = ix.open(tmp_path / "u")
    deletes = t.inspect.delete_files.arrow()["file_path"][0].as_py()
    os.unlink(real(t, deletes))
    with pytest.raises(ix.FileMissingError):
        t.to_arrow()
    with pytest.warns(UserWarning, match="1 data file could not be read"):
        rows = t.to_arrow(on_error="skip", columns=["_file"])
    assert path.rpartition("/")[2] not in {f.rpartition("/")[2] for f in build.to_pylist(rows["_file"])}


def test_a_manifest_that_is_gone_does_not_make_fewer_rows_in_silence(saved: ix.Table) -> None:
    manifests = build.to_pylist(saved.inspect.manifests.arrow()["path"])
    if not manifests:
        return
    os.unlink(real(saved, manifests[0]))
    t = ix.open(saved.location)
    for ask in (t.to_arrow, t.count, t.head):
        with pytest.raises(ix.FormatError, match="cannot be read in full"):
            ask()
    with pytest.warns(UserWarning, match="Files are missing"):
        assert t.to_arrow(on_error="skip").num_rows < 5


def test_several_notes_on_missing_manifests_are_one_readable_error(tmp_path: Path) -> None:
    s = ix.empty({"id": "long", "kind": "string", "x": "double"}, format_version=2)
    s.append(frame(FIRST))
    s.append(frame(SECOND))
    path, pos = files_of(s)[1]
    s.row_delta(deletes={path: [pos]})
    s.save(tmp_path / "t", data="copy")
    saved = ix.open(tmp_path / "t")
    manifests = saved.inspect.manifests.arrow().select(["path", "content", "added_snapshot_id"]).to_pylist()
    second = s.metadata.snapshots[1].snapshot_id
    for gone in manifests:
        if gone["content"] == 1 or gone["added_snapshot_id"] == second:
            os.unlink(real(saved, gone["path"]))
    with pytest.raises(ix.FormatError, match=r"\.avro; Deletes are missing .*: \S+\.avro \(on_error='skip'"):
        ix.open(tmp_path / "t").to_arrow()


def test_made_up_files_have_no_rows() -> None:
    s = ix.empty({"id": "long"}, format_version=2)
    s.append(files=3, rows=10)
    assert s.count() == 30
    with pytest.raises(ix.UnsupportedError, match="synthetic file of a simulation"):
        s.to_arrow()


def test_damaged_bytes_end_in_our_errors(tmp_path: Path) -> None:
    """Flipped bytes of a data file: rows, or an error of ours; the process goes on."""
    import random

    s = ix.empty({"id": "long", "kind": "string", "x": "double"}, format_version=2)
    s.append(frame(FIRST * 50))
    s.save(tmp_path / "t", data="copy")
    t = ix.open(tmp_path / "t")
    path = real(t, t.inspect.files()["file_path"][0])
    good = path.read_bytes()
    rng = random.Random(1)
    outcomes = set()
    for _ in range(300):
        bad = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(bad) if rng.random() < 0.9 else bytes(bad[: rng.randrange(len(bad))]))
        try:
            t.to_arrow("x > 1")
            outcomes.add("rows")
        except (ix.FormatError, ix.UnsupportedError) as error:
            outcomes.add("error" if path.name in str(error) else f"another file: {error}")
    assert outcomes == {"rows", "error"}


def test_small_parts_of_a_result_become_one_chunk_and_large_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iceexplore.reading._scan._PART_ROWS", 4)
    s = ix.empty({"id": "long"}, format_version=2)
    sizes = [1, 2, 1, 6, 1, 1, 5]
    for i, size in enumerate(sizes):
        s.append(pd.DataFrame({"id": range(100 * i, 100 * i + size)}))
    found = s.to_arrow(columns=["id", "_file"])
    by_file = [len(list(group)) for _, group in groupby(found["_file"].to_pylist())]
    assert sorted(by_file) == sorted(sizes)
    assert sorted(build.to_pylist(found["id"])) == sorted(
        100 * i + k for i, size in enumerate(sizes) for k in range(size)
    )
    lengths = [len(chunk) for chunk in found["id"].chunks if len(chunk)]
    assert len(lengths) < len(sizes)
    assert all(a + b > 4 for a, b in pairwise(lengths))


def test_the_size_of_a_file_that_grows_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows beyond what every file may take are held against the file's size; not anew with each batch."""
    from iceexplore.reading import _scan
    from iceexplore.storage import Storage

    s = ix.empty({"id": "long"})
    s.append(pd.DataFrame({"id": range(400_000)}))  # four batches
    asked: list[str] = []
    stat = Storage.stat

    def counted(self: Storage, location: str) -> Any:
        asked.append(location)
        return stat(self, location)

    monkeypatch.setattr(type(s.state.storage), "stat", counted)
    monkeypatch.setattr(_scan, "FLOOR", 1 << 20)
    assert s.table.to_arrow().num_rows == 400_000
    assert len(asked) == 1
