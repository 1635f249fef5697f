"""Column files of the V4 draft: read, merged into rows, shown, counted among files, saved, and missed by the doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import snapshot_files
from iceexplore.errors import FileMissingError, FormatError
from tests.helpers import v4_files as v4
from tests.helpers.tables import column_files_table as table
from tests.manifests.test_v4_draft import tracked
from tests.manifests.test_v4_proposal import Table, root_of


@pytest.fixture(params=["avro", "parquet"])
def made(request: Any, tmp_path: Path) -> tuple[ix.Table, list[dict[str, Any]]]:
    place, rows = table.make(tmp_path / "t", request.param)
    return ix.open(place), rows


FIELDS = [
    v4.F(161, "format_version", "int"),
    v4.F(162, "field_ids", ["int", 163]),
    v4.F(164, "location", "string"),
    v4.F(165, "file_format", "string"),
    v4.F(166, "file_size_in_bytes", "long"),
    v4.F(167, "key_metadata", "binary"),
    v4.F(168, "split_offsets", ["long", 169]),
]
OLD = [v4.F(161, "field_ids", ["int", 162]), v4.F(163, "location", "string"), v4.F(164, "file_size_in_bytes", "long")]


@pytest.mark.parametrize("kind", ["avro", "parquet"])
@pytest.mark.parametrize("old", [False, True])
def test_column_files_of_other_writers(tmp_path: Path, kind: str, old: bool) -> None:
    """Written by pyarrow and fastavro alone, with relative locations and in both forms of the draft."""
    made = Table(tmp_path, kind)
    first = {"field_ids": [3, 4], "location": "data/c.parquet", "file_size_in_bytes": 9}
    more = {"format_version": 4, "file_format": "PARQUET", "key_metadata": b"k", "split_offsets": [4]}
    given = first if old else first | more
    fields = [*v4.draft(), v4.F(158, "column_files", [OLD if old else FIELDS, 159])]
    rows = [tracked(0, column_files=[given]), tracked(1), tracked(2, column_files=[])]
    leaf, length = made.write("a", fields, rows, "data")
    reader = made.root([v4.manifest_row(leaf, length, 3)])
    entries = reader.leaf(root_of(reader), 0).entries
    found = build.to_pylist(entries["column_files"].combine_chunks())
    wanted = dict.fromkeys(("format_version", "file_format", "key_metadata", "split_offsets"))
    wanted |= {} if old else {**more, "file_format": "parquet"}
    assert found == [[first | wanted | {"location": f"{made.folder}/data/c.parquet"}], None, []]


def test_rows_have_the_newest_values(made: tuple[ix.Table, list[dict[str, Any]]]) -> None:
    t, rows = made
    assert table.rows_of(t.to_arrow()) == rows
    assert table.rows_of(t.to_arrow(columns=["id", "note"])) == [{k: r[k] for k in ("id", "note")} for r in rows]
    some = [r for r in rows if r["price"] is not None and r["price"] < 0]
    assert table.rows_of(t.to_arrow("price < 0")) == some
    assert t.count("name = 'newest 1'") == 1
    assert t.count("name is null") == sum(r["name"] is None for r in rows)
    assert len(t.head(5)) == 5
    places = t.to_arrow("id = 45", columns=["_file", "_pos", "_row_id", "name"]).to_pylist()
    assert [(p["_pos"], p["_row_id"], p["name"]) for p in places] == [(5, 45, "newest 5")]
    assert len(t.verify(level="data")) == 0


def test_row_groups_are_not_pruned_by_old_values(made: tuple[ix.Table, list[dict[str, Any]]]) -> None:
    t, rows = made
    wanted = "price < -35.0"
    assert t.count(wanted) == sum(r["price"] < -35 for r in rows) == 5
    plan = t.plan(wanted, row_groups=True)
    kept = [f for f in build.to_pylist(plan.tasks_arrow["file_path"]) if f.endswith("file-1.parquet")]
    assert kept


def test_they_are_shown_and_counted(made: tuple[ix.Table, list[dict[str, Any]]]) -> None:
    t, _ = made
    found = t.inspect.column_files.arrow().to_pylist()
    assert [(Path(str(r["file_path"])).name, r["field_ids"], r["columns"]) for r in found] == [
        ("file-1.parquet", [2, 3], ["name", "price"]),
        ("file-1.parquet", [2], ["name"]),
        ("file-2.parquet", [4], ["note"]),
    ]
    assert {r["snapshot_id"] for r in found} == {table.SNAPSHOT}
    assert "2 column files · 2.0 KiB · newer values of name, price" in t.tree().to_text()
    files = snapshot_files(t.state).to_pylist()
    names = {Path(str(r["location"])).name: r["bytes"] for r in files}
    for row in found:
        path = Path(str(row["column_file_path"]))
        assert names[path.name] == path.stat().st_size == row["file_size_in_bytes"]


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "missing": ({"location": "nowhere.parquet"}, FileMissingError, "nowhere.parquet"),
    "a column that it lacks": ({"field_ids": [2, 3, 4]}, FormatError, "the column file lacks column 'price'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_column_file(tmp_path: Path, name: str) -> None:
    changed, error, text = WRONG[name]
    if "location" in changed:
        changed = {"location": str(tmp_path / "t" / changed["location"])}
    place, _ = table.make(tmp_path / "t", **changed)
    with pytest.raises(error, match=text):
        ix.open(place, strict=True).to_arrow()
    t = ix.open(place)
    assert t.to_arrow(columns=["id"]).num_rows == 3 * table.ROWS  # the columns of the file itself are there


def test_row_counts_must_agree(tmp_path: Path) -> None:
    place, _ = table.make(tmp_path / "t")
    short = tmp_path / "t" / "data" / "column-1.parquet"
    pq.write_table(pq.read_table(short).slice(1), short)
    with pytest.raises(FormatError, match="39 rows, its data file 40"):
        ix.open(place, strict=True).to_arrow()


def test_the_doctor_finds_a_missing_column_file(made: tuple[ix.Table, list[dict[str, Any]]]) -> None:
    t, _ = made
    assert not [f for f in t.check().findings if f.code == "file-missing"]
    lost = Path(str(t.inspect.column_files.arrow()["column_file_path"][1]))
    lost.unlink()
    for level in ("metadata", "files"):
        findings = ix.open(t.state.metadata_location).check(level=level).findings
        found = next(f for f in findings if (f.code, f.field) == ("file-missing", "158 column_files"))
        assert lost.name in found.text and "column-file-there" in found.text


def test_two_column_files_with_one_column_break_a_rule(made: tuple[ix.Table, list[dict[str, Any]]]) -> None:
    """Readers take the newest; the draft's writers take the column out of the older file."""
    t, _ = made
    (found,) = t.rules().breaks
    assert found.rule == "column-file-columns" and "its column files have a column twice" in found.text


@pytest.mark.parametrize("name", ["rows", "columns", "size"])
def test_the_doctor_opens_column_files(tmp_path: Path, name: str) -> None:
    place, _ = table.make(tmp_path / "t")
    assert not [f for f in ix.open(place).check(level="files").findings if f.code in ("count-mismatch", "file-missing")]
    one = tmp_path / "t" / "data" / "column-0.parquet"
    held = pq.read_table(one)
    if name == "rows":
        pq.write_table(held.slice(1), one)
    elif name == "columns":
        pq.write_table(held.drop_columns(["price"]), one)
    else:
        pq.write_table(held, one, compression="none")
    text = {"rows": "has 39 rows, its data file 40", "columns": "lacks columns", "size": "its entry gives"}[name]
    findings = ix.open(place).check(level="files").findings
    found = [f for f in findings if f.field == "158 column_files" and f.code != "entry-invalid"]
    assert any(text in f.text and "column-0.parquet" in f.text for f in found), found
    assert {f.code for f in found} == {"count-mismatch"}
    if name != "size":
        assert any(rule in f.text for f in found for rule in ("column-file-rows", "column-file-there"))


def test_a_saved_table_has_its_column_files(made: tuple[ix.Table, list[dict[str, Any]]], tmp_path: Path) -> None:
    t, rows = made
    t.simulate().save(tmp_path / "copy")
    copy = ix.open(tmp_path / "copy")
    found = build.to_pylist(copy.inspect.column_files.arrow()["column_file_path"])
    assert all(str(tmp_path / "copy") in str(place) for place in found)
    assert table.rows_of(copy.to_arrow()) == rows
