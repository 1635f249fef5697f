"""The essential columns of metadata tables: what people read, in an 80-column terminal, from the same rows."""

from __future__ import annotations

import itertools
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.arrow import join_texts
from iceexplore.inspect import DEFINITIONS
from iceexplore.inspect._essentials import short_names


@pytest.fixture(scope="module")
def trips() -> ix.Table:
    return ix.sample("trips")


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_table_has_them(trips: ix.Table, name: str) -> None:
    table = trips.inspect[name]
    whole = table.arrow()
    found = table.essentials()
    assert len(found) == whole.num_rows
    assert 0 < found.shape[1] <= 13
    assert not len(found) or not found.isna().all().any(), "no column without values"
    assert table.arrow().schema == table.schema == whole.schema, "the table itself stays as in Spark"
    assert list(table().columns) == whole.column_names


def test_files_of_an_unpartitioned_spec_have_no_partition_text(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"a": "long", "b": "string"})
    lab.append({"a": [1], "b": ["x"]})
    lab.evolve_spec(add=["a"])
    lab.append({"a": [2], "b": ["y"]})
    lab.evolve_spec(add=["b"])
    lab.append({"a": [3], "b": ["z"]})
    whole, found = lab.inspect.files(), lab.inspect.files.essentials()
    assert dict(zip(whole["spec_id"], found["partition"], strict=True)) == {0: "", 1: "a=2", 2: "a=3, b=z"}
    entries = lab.inspect.entries.essentials()
    assert sorted(entries["partition"]) == ["", "a=2", "a=3, b=z"]
    assert lab.file_map().to_svg()
    widget = lab.explore()
    assert widget.settle(60)
    widget.close()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_texts_are_joined_whatever_is_null(count: int) -> None:
    rows = list(itertools.product(["x", "", None], repeat=count))
    parts = [pa.array([row[i] for row in rows], pa.string()) for i in range(count)]
    expected = ["/".join(text for text in row if text is not None) for row in rows]
    assert join_texts(parts, "/").to_pylist() == expected


def test_files_are_named_and_described(trips: ix.Table) -> None:
    whole, found = trips.inspect.files(), trips.inspect.files.essentials()
    assert list(found) == ["name", "content", "applies_to", "partition", "rows", "bytes"]
    assert found["rows"].tolist() == whole["record_count"].tolist()
    assert found["bytes"].tolist() == whole["file_size_in_bytes"].tolist()
    assert set(found["content"]) == {"data", "position deletes", "deletion vector"}
    for name, path in zip(found["name"], whole["file_path"], strict=True):
        begin, _, end = name.partition("…")
        assert path.rpartition("/")[2].startswith(begin) and path.endswith(end) and len(name) <= 40
    data = whole["content"] == 0
    assert found["name"][data].nunique() == data.sum(), "short names are distinct"
    by_day = found["partition"][whole["spec_id"] == 0]
    assert by_day.str.fullmatch(r"started_at_day=2024-\d\d-\d\d").all(), "a file has the fields of its own spec only"
    by_month = found["partition"][whole["spec_id"] == 2]
    assert by_month.str.fullmatch(r"started_at_month=2024-\d\d, start_station_bucket_2=\d+").all(), "months as in Java"
    vectors = found[found["content"] == "deletion vector"]
    assert set(vectors["applies_to"]) <= set(found["name"][data]), "by the same short names"


def test_an_80_column_terminal_shows_names_and_sizes(trips: ix.Table) -> None:
    with pd.option_context("display.width", 80, "display.max_columns", 0):
        lines = repr(trips.inspect.data_files.essentials()).split("\n")
        raw = repr(trips.inspect.data_files()).split("\n")
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[0] == "name" and lines[0].split()[-2:] == ["rows", "bytes"]
    assert len(set(lines[1:13])) == len(trips.inspect.data_files()) == 12, "every file has a name of its own"
    assert raw[0].split()[0] == "content"


def test_snapshots_say_what_changed(trips: ix.Table) -> None:
    found = trips.inspect.snapshots.essentials()
    assert list(found) == ["committed_at", "snapshot_id", "operation", "change"]
    assert found["change"].iloc[-1] == "−1 data file · −58 rows · −1 delete file"


def test_manifests_count_their_files(trips: ix.Table) -> None:
    found, whole = trips.inspect.manifests.essentials(), trips.inspect.manifests()
    assert set(found["content"]) == {"data", "deletes"}
    for what in ("added", "existing", "deleted"):
        counts = whole[f"{what}_data_files_count"] + whole[f"{what}_delete_files_count"]
        assert found[what].tolist() == counts.tolist()


def test_v4_entries_and_hostile_names() -> None:
    s = ix.empty({"id": "long", "kind": "string"}, partition_by=["kind"], seed=5, flush_data_files=3)
    s.append(5, rows=10)
    s.append(1, rows=10)
    found = s.table.inspect.content_entries.essentials()
    assert {"data manifest", "data"} == set(found["content"])
    assert found["status"].isin(["added", "existing"]).all()
    assert len(ix.empty({"id": "long"}).table.inspect.files.essentials()) == 0
    paths = pa.array(["x/\x1b[31m\u202e.parquet", None, "no-slash", "x/"])
    assert short_names(paths).to_pylist() == ["\x1b[31m\u202e.parquet", None, "no-slash", ""]


def test_names_that_would_be_ambiguous_stay_whole() -> None:
    alike = [f"a/0-12345678-0000-0000-0000-00000000000{n}.parquet" for n in (1, 2)]
    assert short_names(pa.array(alike)).to_pylist() == [path.removeprefix("a/") for path in alike]
    assert short_names(pa.array(alike[:1])).to_pylist() == ["0-12345678….parquet"]
