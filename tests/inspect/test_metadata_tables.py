"""``t.inspect`` as a person meets it: names, data frames, flat columns, travel, and what is read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import FileMissingError, OptionError
from iceexplore.inspect import DEFINITIONS

SPARK = [
    "snapshots",
    "history",
    "refs",
    "metadata_log_entries",
    "manifests",
    "all_manifests",
    "files",
    "data_files",
    "delete_files",
    "all_files",
    "all_data_files",
    "all_delete_files",
    "entries",
    "all_entries",
    "partitions",
    "position_deletes",
]
OURS = [
    "content_entries",
    "deletion_vectors",
    "column_files",
    "manifest_deletion_vectors",
    "puffin_blobs",
    "column_stats",
    "schemas",
    "specs",
    "expressions",
    "sort_orders",
    "properties",
]
V4_ONLY = ["column_files", "manifest_deletion_vectors", "expressions"]  # no row in a table of an older version


@pytest.fixture(scope="module")
def t(trips: Path) -> Any:
    return ix.open(trips)


def test_the_tables_and_which_are_sparks() -> None:
    assert list(DEFINITIONS) == SPARK + OURS
    assert [d.name for d in DEFINITIONS.values() if d.spark] == SPARK
    # Java: BaseMetadataTable.TIME_TRAVEL_TABLE_TYPES
    travels = {d.name for d in DEFINITIONS.values() if d.spark and d.travels}
    assert travels == {"entries", "files", "data_files", "delete_files", "manifests", "partitions", "position_deletes"}


@pytest.mark.parametrize("name", SPARK + OURS)
def test_every_table_is_valid_arrow_with_the_columns_it_says(t: Any, name: str) -> None:
    made = t.inspect[name].arrow()
    made.validate(full=True)
    assert made.schema.equals(t.inspect[name].schema)
    assert all(t.inspect[name].columns.values()), "every column is explained"
    assert (made.num_rows > 0) == (name not in V4_ONLY)


@pytest.mark.parametrize("name", SPARK + OURS)
def test_pandas_keeps_every_digit(t: Any, name: str) -> None:
    table = getattr(t.inspect, name)
    frame = table()
    assert isinstance(frame, pd.DataFrame)
    assert all(isinstance(kind, pd.ArrowDtype) for kind in frame.dtypes)
    again = pa.Table.from_pandas(frame, preserve_index=False)
    assert again.select(frame.columns.tolist()).cast(table.schema).equals(table.arrow())


@pytest.mark.parametrize("name", SPARK + OURS)
def test_flat_has_a_plain_column_for_every_field(t: Any, name: str) -> None:
    table = t.inspect[name].arrow()
    flat = t.inspect[name].arrow(flat=True)
    assert not any(pa.types.is_struct(f.type) for f in flat.schema)
    assert flat.num_rows == table.num_rows
    assert list(t.inspect[name](flat=True).columns) == flat.column_names
    for column in flat.column_names:
        head, *path = column.split(".")
        values: Any = table.column(head)
        if path and len(path) == values.type.num_fields == 1:
            assert pc.struct_field(values, path).equals(flat.column(column))


def test_flat_names_are_paths(t: Any) -> None:
    names = t.inspect.entries.arrow(flat=True).column_names
    assert "data_file.file_path" in names
    assert any(n.startswith("data_file.partition.") for n in names)
    assert any(n.startswith("readable_metrics.") and n.endswith(".lower_bound") for n in names)


def test_looking_at_a_table_reads_nothing(trips: Path) -> None:
    t = ix.open(trips)
    t.reads.clear()
    for name in t.inspect:
        table = t.inspect[name]
        assert name in repr(table)
        assert table.schema is not None
        assert table._repr_html_()
    assert "files" in repr(t.inspect)
    assert len(t.inspect) == len(DEFINITIONS)
    assert len(t.reads) == 0
    for name in (
        "snapshots",
        "history",
        "refs",
        "metadata_log_entries",
        "schemas",
        "specs",
        "sort_orders",
        "properties",
    ):
        t.inspect[name]()
    assert len(t.reads) == 0


def test_only_the_manifests_that_matter_are_read(tmp_path: Path, trips: Path) -> None:
    shutil.copytree(trips, tmp_path / "trips")  # a copy, that nothing has in the cache
    t = ix.open(tmp_path / "trips")
    manifests = t.inspect.manifests()
    t.reads.clear()
    t.inspect.data_files()
    data = set(manifests[manifests["content"] == 0]["path"])
    assert {r.location for r in t.reads.of_kind("manifest")} == data
    t.reads.clear()
    t.inspect.files()
    assert {r.location for r in t.reads.of_kind("manifest")} == set(manifests["path"]) - data
    t.reads.clear()
    t.inspect.entries()
    assert not t.reads.of_kind("manifest")


def test_unknown_names(t: Any) -> None:
    with pytest.raises(AttributeError, match=r"no metadata table 'fiels'.*position_deletes"):
        _ = t.inspect.fiels
    with pytest.raises(OptionError, match="no metadata table"):
        _ = t.inspect["fiels"]
    assert not hasattr(t.inspect, "__wrapped__")
    assert set(DEFINITIONS) <= set(dir(t.inspect))
    assert t.inspect.files.__doc__ == DEFINITIONS["files"].doc


def test_files_agree_with_the_other_tables(t: Any) -> None:
    files, entries = t.inspect.files(), t.inspect.entries(flat=True)
    live = entries[entries["status"] != 2]
    assert sorted(files["file_path"]) == sorted(live["data_file.file_path"])
    assert len(t.inspect.data_files()) + len(t.inspect.delete_files()) == len(files)
    partitions = t.inspect.partitions()
    data = files[files["content"] == 0]
    assert partitions["record_count"].sum() == data["record_count"].sum()
    assert partitions["total_data_file_size_in_bytes"].sum() == data["file_size_in_bytes"].sum()
    assert partitions["position_delete_record_count"].sum() == files[files["content"] == 1]["record_count"].sum()
    positions = t.inspect.position_deletes()
    assert len(positions) == files[files["content"] == 1]["record_count"].sum()
    vectors = t.inspect.deletion_vectors()
    assert (
        vectors["cardinality"].sum() == positions["content_offset"].notna().groupby(positions["file_path"]).sum().sum()
    )
    everything = t.inspect.content_entries()
    assert len(everything) == len(t.inspect.manifests()) + len(entries)


def test_time_travel(t: Any) -> None:
    for snapshot in t.snapshots:
        then = t.at(snapshot=snapshot.snapshot_id)
        summary = snapshot.summary or {}
        files = then.inspect.files()
        assert str((files["content"] == 0).sum()) == summary["total-data-files"]
        assert str((files["content"] == 1).sum()) == summary["total-delete-files"]
        assert str(files[files["content"] == 0]["record_count"].sum()) == summary["total-records"]
        assert then.inspect.snapshots().equals(t.inspect.snapshots())
        assert then.inspect.all_files.arrow().equals(t.inspect.all_files.arrow())


def test_column_stats_are_the_metrics_as_rows(t: Any) -> None:
    metrics = {r["file_path"]: r["readable_metrics"] for r in t.inspect.data_files.arrow().to_pylist()}
    stats = [r for r in t.inspect.column_stats.arrow().to_pylist() if r["content"] == 0]
    seen = 0
    for row in stats:
        metric = metrics[row["file_path"]].get(row["column"])
        if metric is None:
            continue  # of a column that is not in the current schema
        seen += 1
        counts = ("column_size", "value_count", "null_value_count", "nan_value_count")
        assert [row[name] for name in counts] == [metric[name] for name in counts]
        assert (row["lower_bound"] is None) == (metric["lower_bound"] is None) == (row["lower_bound_bytes"] is None)
    assert seen > len(metrics)


def test_a_missing_delete_file_is_a_problem_and_the_rest_is_shown(tmp_path: Path, trips: Path) -> None:
    shutil.copytree(trips, tmp_path / "trips")
    t = ix.open(tmp_path / "trips")
    whole = t.inspect.position_deletes()
    counts = whole["delete_file_path"].value_counts()
    gone = counts.index[0]
    (tmp_path / "trips" / "data" / gone.rpartition("/data/")[2]).unlink()
    again = ix.open(tmp_path / "trips")
    rest = again.inspect.position_deletes()
    assert len(rest) == len(whole) - counts.iloc[0]
    assert {p.code for p in again.problems} == {"file-missing"}
    assert gone in {p.where for p in again.problems}
    again.inspect.puffin_blobs()
    strict = ix.open(tmp_path / "trips", strict=True)
    with pytest.raises(FileMissingError):
        strict.inspect.position_deletes()


def test_a_vector_of_too_many_positions_is_a_problem(trips: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    t = ix.open(trips)
    whole = t.inspect.position_deletes()
    vectors = t.inspect.deletion_vectors()
    limit = int(vectors["cardinality"].max()) - 1
    monkeypatch.setattr("iceexplore.inspect._position_deletes.MAX_POSITIONS", limit)
    left_out = vectors[vectors["cardinality"] > limit]["cardinality"].sum()
    assert len(t.inspect.position_deletes()) == len(whole) - left_out
    assert {p.code for p in t.problems} == {"unsupported"}


def test_a_table_without_a_snapshot(tmp_path: Path) -> None:
    import json

    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "<b>", "required": False, "type": "uuid"}]}
    document = {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": str(tmp_path / "t"),
        "last-sequence-number": 0,
        "last-updated-ms": 1,
        "last-column-id": 1,
        "schemas": [schema],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "properties": {"a": "<i>"},
        "snapshots": [],
    }
    (tmp_path / "t" / "metadata").mkdir(parents=True)
    (tmp_path / "t" / "metadata" / "v1.metadata.json").write_text(json.dumps(document))
    t = ix.open(tmp_path / "t")
    for name in SPARK + OURS:
        made = t.inspect[name].arrow()
        assert made.schema.equals(t.inspect[name].schema)
        t.inspect[name](flat=True)
    assert "partition" not in t.inspect.files.schema.names
    assert not {"partition", "spec_id"} & set(t.inspect.partitions.schema.names)
    assert (
        t.inspect.files.schema.field("readable_metrics").type.field("<b>").type.field("lower_bound").type == pa.string()
    )
    assert "content_offset" not in t.inspect.position_deletes.schema.names
    assert "<i>" not in t.inspect._repr_html_()
    assert not list(t.problems)


def test_metrics_of_many_columns_take_no_work_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 200,000 columns what is done for each takes seconds: bounds of columns of one type are converted together."""
    from iceexplore.inspect._shown import conform

    columns = {f"c{i}": "long" if i % 2 else "string" for i in range(90)}
    s = ix.empty(columns, format_version=2)
    s.append(pd.DataFrame({name: [1, 2] if kind == "long" else ["a", "b"] for name, kind in columns.items()}))
    asked: list[pa.DataType] = []

    def counted(array: pa.Array, kind: pa.DataType) -> pa.Array:
        asked.append(kind)
        return conform(array, kind)

    monkeypatch.setattr("iceexplore.inspect._metrics.conform", counted)
    [row] = build.to_pylist(s.inspect.files.arrow()["readable_metrics"])
    assert {name: (m["lower_bound"], m["upper_bound"], m["value_count"]) for name, m in row.items()} == {
        name: (1, 2, 2) if kind == "long" else ("a", "b", 2) for name, kind in columns.items()
    }
    assert len(asked) <= 8
