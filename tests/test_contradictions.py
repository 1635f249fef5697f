"""Whatever is missing in a list, or changed in an entry, is not silent: a problem, a finding, and an error of strict.

The tables are healthy labs with rows, deletes and two partitions, of which one file is written anew, its records
changed. Each damage in the list used to change the rows without being reported.
"""

from __future__ import annotations

import json
import shutil
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import PROBLEM_KINDS
from iceexplore.errors._concerns import _CONCERNS
from iceexplore.manifests.checks._totals import LiveTotals, live_totals
from iceexplore.widgets.grid._panel import GridPanel
from iceexplore.widgets.grid._query import GridQuery
from iceexplore.widgets.scan_lab._texts import plan_sent
from iceexplore.widgets.tree._compare import Comparison
from tests.doctor import file_damages, manifest_damages  # noqa: F401 (they register their damages)
from tests.doctor.damages import DAMAGES, Record, document_path, edit_avro, edit_json, records, root_path
from tests.doctor.damages import healthy as doctor_table
from tests.helpers.folders import local

Change = Callable[[list[Any]], None]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("contradictions") / "t"
    lab = ix.create(
        folder, {"id": "long", "k": "string"}, partition_by="k",
        properties={"write.delete.mode": "merge-on-read", "commit.manifest-merge.enabled": "false"},
    )  # fmt: skip
    lab.append({"id": list(range(10)), "k": ["a"] * 5 + ["b"] * 5})
    lab.append({"id": list(range(10, 16)), "k": ["a", "b"] * 3})
    lab.delete("id = 3")
    assert lab.count() == 15
    assert not lab.problems
    assert lab.verify(level="data").empty
    return folder


def _rewritten(path: Path, change: Change) -> None:
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        rows: list[Any] = list(reader)
        header = {k: v for k, v in reader.metadata.items() if not k.startswith("avro.")}
        schema: Any = reader.writer_schema
    change(rows)
    with path.open("wb") as out:
        fastavro.writer(out, schema, rows, metadata=header)


def _list(t: ix.Table) -> Path:
    assert t.snapshot is not None
    return Path(str(t.snapshot.root_location).removeprefix("file://"))


def _leaf(t: ix.Table, content: int) -> Path:
    """The first manifest of data (0) or deletes (1)."""
    rows = t.inspect.manifests.arrow().to_pylist()
    return Path(next(r["path"] for r in rows if r["content"] == content).removeprefix("file://"))


def _set(kind: int, /, **values: Any) -> Change:
    """Let the first record of a list with this content say something else."""

    def change(rows: list[Any]) -> None:
        next(r for r in rows if r["content"] == kind).update(values)

    return change


def _gone(content: int) -> Change:
    def change(rows: list[Any]) -> None:
        rows.remove(next(r for r in rows if r["content"] == content))

    return change


def _cut(rows: list[Any]) -> None:
    rows.clear()


#: By name: the change of the list, and the field of a problem that tells it. Rows are still given, with a warning.
COUNTED: dict[str, tuple[Change, str]] = {
    "list cut after its header": (_cut, "total-data-files"),
    "record gone": (_gone(0), "total-records"),
    "record of deletes gone": (_gone(1), "total-delete-files"),
    "added_files_count 0": (_set(0, added_files_count=0, added_rows_count=0), "total-data-files"),
    "added_files_count of deletes 0": (_set(1, added_files_count=0), "total-delete-files"),
    "rows of deletes": (_set(1, added_rows_count=2), "total-position-deletes + total-equality-deletes"),
}
#: Here nobody can tell how the entry is to be read: rows are refused.
UNKNOWN: dict[str, tuple[Change, str]] = {
    "content of deletes 5": (_set(1, content=5), "517 content"),
    "content of data 5": (_set(0, content=5), "517 content"),
    "content -1": (_set(0, content=-1), "517 content"),
    "partition_spec_id 9": (_set(0, partition_spec_id=9), "502 partition_spec_id"),
    "partition_spec_id of deletes 9": (_set(1, partition_spec_id=9), "502 partition_spec_id"),
}


@pytest.fixture
def table(healthy: Path, tmp_path: Path) -> Path:
    """A copy that moved: its metadata names files under the first folder."""
    return Path(shutil.copytree(healthy, tmp_path / "t"))


def _open(folder: Path, healthy: Path, **options: Any) -> ix.Table:
    return ix.open(folder, moved={str(healthy): str(folder)}, **options)


def _place(path: Path, healthy: Path, folder: Path) -> Path:
    return folder / path.relative_to(healthy)


@pytest.mark.parametrize("name", COUNTED)
def test_a_list_whose_counts_are_not_the_summarys(name: str, healthy: Path, table: Path) -> None:
    change, field = COUNTED[name]
    _rewritten(_place(_list(_open(table, healthy)), healthy, table), change)
    t = _open(table, healthy)
    with pytest.warns(UserWarning, match="summary has"):
        rows = t.to_arrow().num_rows
    with pytest.warns(UserWarning, match="summary has"):
        assert t.count() == rows
    with pytest.warns(UserWarning, match="summary has"):
        t.head(3)
    if "_count" in name:  # the counts are not believed, so that all is read
        assert rows == 15
    (found,) = [p for p in t.problems if p.field == field]
    assert (found.code, found.severity) == ("totals-differ", "warning")
    assert found.found is not None and found.expected is not None
    assert int(found.found) != int(found.expected)
    assert found.text in repr(t)
    plan = t.plan()
    assert any(found.text in text for text in plan.doubts)
    assert found.text in repr(plan)
    for level in ("footers", "data"):
        assert field in set(t.verify(level=level)["field"])
    for use in ("to_arrow", "count", "head", "plan"):
        with pytest.raises(ix.FormatError, match="summary has"):
            getattr(_open(table, healthy, strict=True), use)()


@pytest.mark.parametrize("name", UNKNOWN)
def test_numbers_of_a_list_that_mean_nothing(name: str, healthy: Path, table: Path) -> None:
    change, field = UNKNOWN[name]
    _rewritten(_place(_list(_open(table, healthy)), healthy, table), change)
    _refused(table, healthy, field)


@pytest.mark.parametrize(
    ("content", "values", "field"),
    [(1, {"content": 5}, "134 content"), (0, {"content": 5}, "134 content"), (0, {"content": -1}, "134 content")],
)
def test_contents_of_entries_that_mean_nothing(
    content: int, values: dict[str, int], field: str, healthy: Path, table: Path
) -> None:
    path = _place(_leaf(_open(table, healthy), content), healthy, table)
    _rewritten(path, lambda rows: rows[0]["data_file"].update(values))
    _refused(table, healthy, field)


def test_a_status_that_means_nothing(healthy: Path, table: Path) -> None:
    path = _place(_leaf(_open(table, healthy), 0), healthy, table)
    _rewritten(path, lambda rows: rows[0].update(status=7))
    _refused(table, healthy, "0 status")


def _refused(table: Path, healthy: Path, field: str) -> None:
    for use in ("to_arrow", "count", "head"):
        with pytest.raises(ix.FormatError, match="missing from this plan"):
            getattr(_open(table, healthy), use)()
    t = _open(table, healthy)
    with pytest.warns(UserWarning, match="missing from this plan"):
        t.to_arrow(on_error="skip")
    (found,) = [p for p in t.problems if p.field == field and p.severity == "error"]
    assert found.code == "file-corrupt"
    assert field in set(t.verify()["field"])
    with pytest.raises(ix.FormatError, match="field"):
        _open(table, healthy, strict=True).count()


@pytest.mark.parametrize("number", [0, 1])
def test_a_sequence_number_that_is_not_the_snapshots(number: int, healthy: Path, table: Path) -> None:
    """With 0 the delete is older than its data, and its row comes back."""
    _rewritten(_place(_list(_open(table, healthy)), healthy, table), _set(1, sequence_number=number))
    t = _open(table, healthy)
    t.to_arrow()
    found = [p for p in t.problems if p.field == "515 sequence_number" and p.expected == "3"]
    assert [(p.code, p.found) for p in found[:1]] == [("sequence-number", str(number))]


def test_a_record_count_of_0_skips_no_file(healthy: Path, table: Path) -> None:
    path = _place(_leaf(_open(table, healthy), 0), healthy, table)

    def change(rows: list[Any]) -> None:
        rows[0]["data_file"].update(record_count=0, value_counts=None, null_value_counts=[{"key": 1, "value": 0}])

    _rewritten(path, change)
    t = _open(table, healthy)
    with pytest.warns(UserWarning, match="record counts"):
        assert t.count() == t.to_arrow().num_rows == 15
    with pytest.warns(UserWarning, match="record counts"):
        assert t.count("id >= 0") == t.to_arrow("id >= 0").num_rows == 15
    assert "512 added_rows_count" in {p.field for p in t.problems}
    assert "512 added_rows_count" in set(t.verify()["field"])
    with pytest.raises(ix.FormatError, match="record counts"):
        _open(table, healthy, strict=True).count()


@pytest.mark.parametrize(
    ("rows", "codes"),
    [
        ([3], {"count-mismatch"}),
        ([3, 99], {"delete-position"}),
        ([3, -1], {"delete-position"}),
        ([3, 4, 4], {"count-mismatch"}),
    ],
)
def test_position_deletes_that_are_not_those_of_the_entry(tmp_path: Path, rows: list[int], codes: set[str]) -> None:
    folder = tmp_path / "t"
    lab = ix.create(folder, {"id": "long"}, properties={"write.delete.mode": "merge-on-read"})
    lab.append({"id": list(range(10))})
    lab.delete("id in (3, 4)")
    assert ix.open(folder).count() == 8
    assert not ix.open(folder).problems
    (path,) = folder.rglob("*-deletes.parquet")
    old = pq.read_table(path)
    new = {"file_path": build.to_pylist(old["file_path"][:1]) * len(rows), "pos": rows}
    pq.write_table(build.table(new, schema=old.schema), path)
    _contradicted(folder, codes)


@pytest.mark.parametrize("others", [1, 2])
def test_position_deletes_of_another_file_than_the_one_referred_to(tmp_path: Path, others: int) -> None:
    folder = tmp_path / "t"
    lab = ix.create(folder, {"id": "long"}, properties={"write.delete.mode": "merge-on-read"})
    lab.append({"id": list(range(10))})
    lab.delete("id in (3, 4)")
    (path,) = folder.rglob("*-deletes.parquet")
    old = pq.read_table(path)
    names = old["file_path"].to_pylist()[others:] + ["/elsewhere.parquet"] * others
    pq.write_table(old.set_column(0, old.schema.field(0), pa.array(names)), path)
    for use in ("to_arrow", "count"):
        t = ix.open(folder)
        getattr(t, use)()
        assert {p.code for p in t.problems} == {"delete-dangling"}


def _flip_a_value(path: Path) -> None:
    """Flip the last byte of the last page of the first column."""
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(0)
    places = (chunk.dictionary_page_offset, chunk.data_page_offset)
    at = min(p for p in places if p is not None) + chunk.total_compressed_size - 1
    data = bytearray(path.read_bytes())
    data[at] ^= 0x01
    path.write_bytes(data)


@pytest.mark.parametrize("kind", ["data", "deletes", "root"])
def test_a_flipped_byte_in_a_page_is_refused(kind: str, healthy: Path, table: Path, tmp_path: Path) -> None:
    if kind == "root":
        s = ix.empty({"id": "long"}, format_version=4, location=str(tmp_path / "v4"))
        s.append(pa.table({"id": list(range(20))}))
        s.save(tmp_path / "v4", data="copy")
        path = _list(ix.open(tmp_path / "v4"))
        pq.write_table(pq.read_table(path), path, write_page_checksum=True)
        _flip_a_value(path)
        with pytest.raises(ix.FormatError, match="CRC"):
            ix.open(tmp_path / "v4", strict=True).count()
        return
    t = _open(table, healthy)
    rows = t.inspect.files.arrow().to_pylist()
    path = next(Path(r["file_path"].removeprefix("file://")) for r in rows if r["content"] == int(kind == "deletes"))
    path = _place(path, healthy, table)
    if kind == "deletes":
        old = pq.read_table(path)
        pq.write_table(old, path, write_page_checksum=True)
    _flip_a_value(path)
    with pytest.raises(ix.FormatError, match="CRC"):
        _open(table, healthy).to_arrow()


def test_manifests_without_a_field_of_their_spec(tmp_path: Path) -> None:
    """Of deletes whose partition is not known it is not known either where they apply."""
    folder = tmp_path / "t"
    lab = ix.create(
        folder, {"id": "long", "k": "string"}, partition_by="k", properties={"write.delete.mode": "merge-on-read"}
    )  # fmt: skip
    lab.append({"id": [1, 2, 3], "k": ["a", "a", "b"]})
    lab.delete("id = 1")
    path = local(ix.open(folder).metadata_location)
    document = json.loads(path.read_text())
    document["partition-specs"][0]["fields"][0]["field-id"] = 7
    path.write_text(json.dumps(document))
    t = ix.open(folder)
    assert t.count() == t.to_arrow().num_rows
    (found, *_) = (p for p in t.problems if p.field == "102 partition")
    assert (found.code, found.found, found.expected) == ("file-corrupt", "k (1000)", "k (7)")


@pytest.mark.parametrize("version", [3, 4])
def test_a_deletion_vector_beyond_its_file(tmp_path: Path, version: int) -> None:
    folder = tmp_path / "t"
    lab = ix.create(
        folder, {"id": "long"}, format_version=version, properties={"write.delete.mode": "merge-on-read"}
    )  # fmt: skip
    lab.append({"id": list(range(10))})
    lab.delete("id in (3, 4)")
    (path,) = folder.rglob("*.puffin")
    data = bytearray(path.read_bytes())
    start = data.index(bytes.fromhex("d1d33964"))
    assert data[start + 32 : start + 36] == b"\3\0\4\0"
    data[start + 34] = 99
    data[start + 36 : start + 40] = zlib.crc32(data[start : start + 36]).to_bytes(4, "big")
    path.write_bytes(data)
    _contradicted(folder, {"delete-position"})


def _contradicted(folder: Path, codes: set[str]) -> None:
    for use in ("to_arrow", "count"):
        t = ix.open(folder)
        getattr(t, use)()
        assert {p.code for p in t.problems} == codes
        with pytest.raises(ix.FormatError):
            getattr(ix.open(folder, strict=True), use)()


def test_a_row_of_a_v4_root_that_is_gone(tmp_path: Path) -> None:
    s = ix.empty({"id": "long"}, format_version=4, location=str(tmp_path / "t"))
    s.append(pa.table({"id": list(range(20))}))
    s.append(pa.table({"id": list(range(3))}))
    s.save(tmp_path / "t", data="copy")
    t = ix.open(tmp_path / "t")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert t.count() == 23
    assert t.verify(level="data").empty
    root = _list(t)
    rows = pq.read_table(root)
    pq.write_table(rows.slice(0, len(rows) - 1), root)
    t = ix.open(tmp_path / "t")
    with pytest.warns(UserWarning, match="summary has"):
        assert t.count() < 23
    assert {"total-data-files", "total-records"} <= {p.field for p in t.problems}
    assert {"total-data-files", "total-records"} <= set(t.verify(level="data")["field"])
    with pytest.raises(ix.FormatError, match="summary has"):
        ix.open(tmp_path / "t", strict=True).count()


def test_a_summary_that_says_nothing_contradicts_nothing(healthy: Path, table: Path) -> None:
    t = _open(table, healthy)
    root = t.state.root()
    assert root is not None
    assert live_totals(root.entries, root.dv_rows) == LiveTotals(4, 16, 1, 1)
    path = _place(Path(t.metadata_location.removeprefix("file://")), healthy, table)
    text = path.read_text()
    for key in ("total-data-files", "total-records", "total-delete-files", "total-position-deletes"):
        text = text.replace(f'"{key}"', f'"x-{key}"')
    path.write_text(text)
    t = _open(table, healthy)
    assert t.count() == 15
    assert not t.problems


def test_counts_that_a_list_lacks_are_not_compared(healthy: Path, table: Path) -> None:
    t = _open(table, healthy)
    root = t.state.root()
    assert root is not None
    stats = [dict.fromkeys(s, None) for s in build.to_pylist(root.entries["manifest_stats"])]
    at = root.entries.schema.get_field_index("manifest_stats")
    kind = root.entries.schema.field(at)
    unknown = root.entries.set_column(at, kind, pa.array(stats, kind.type))
    assert live_totals(unknown, {}) == LiveTotals(None, None, None, None)


def test_a_plan_and_a_grid_tell_manifests_that_cannot_be_read(healthy: Path, table: Path) -> None:
    t = _open(table, healthy)
    whole = t.plan().levels()["manifests"].tolist()
    assert whole == [2, 2, 2]
    _place(_leaf(t, 0), healthy, table).write_bytes(b"Obj\x01")
    t = _open(table, healthy)
    plan = t.plan()
    assert plan.levels()["manifests"].tolist() == whole, "what cannot be read is not pruned"
    waterfall = plan.waterfall()
    assert "incomplete, as 1 of 2 manifests cannot be read" in waterfall.description
    assert "1 manifest cannot be read in full" in waterfall.to_text()
    explorer = t.explore()
    assert t.snapshot is not None
    for key, missing in (("manifests", False), ("files", True)):
        page = explorer._panel(GridPanel)._page("detail", GridQuery(f"snapshot:{t.snapshot.snapshot_id}", key))
        assert bool(page["total"])
        assert ("1 of the files listed in the manifest list cannot be read" in page.get("lacks", "")) is missing
    assert "%" not in str(plan_sent(plan)["headline"])
    explorer.close()


@pytest.mark.parametrize("turned", [False, True])
def test_a_tree_compares_from_the_older_to_the_newer_snapshot(turned: bool) -> None:
    t = ix.sample("trips")
    first, last = t.snapshots[2].snapshot_id, t.snapshots[-1].snapshot_id
    pair = (last, first) if turned else (first, last)
    shown = Comparison(t.state, *pair).words()
    assert shown == Comparison(t.state, first, last).words()


#: What became of /wh/t/ in the path of a data file whose deletes name the true one, and how its rows were deleted: by
#: format version, and whether a file of deletes is of one data file or of several.
DAMAGED_PATHS = {
    "other name": ("/w~/t/", 2, True),
    "inserted": ("/wh/x/t/", 2, False),
    "inserted, several files": ("/wh/x/t/", 2, True),
    "removed": ("/t/", 3, True),
    "deep": ("/a/b/c/d/t/", 3, False),
}


def _deleted_then_damaged(folder: Path, to: str, version: int, several: bool) -> Path:
    """A table of 12 rows, 6 of them deleted, that moved; its data files' paths were damaged afterwards."""
    old = folder / "wh" / "t"
    properties = {"write.delete.mode": "merge-on-read", "write.delete.granularity": "partition"}
    lab = ix.create(old, {"id": "long"}, format_version=version, properties=properties)
    lab.append({"id": list(range(6))})
    lab.append({"id": list(range(10, 16))})
    if several:
        lab.delete("id < 3 or id > 12")
    else:
        lab.delete("id < 3")
        lab.delete("id > 12")
    new = folder / "elsewhere"
    shutil.move(old, new)
    t = ix.open(new)
    assert t.to_arrow().num_rows == 6
    assert not t.problems

    def damage(rows: list[Any]) -> None:
        for row in rows:
            path = row["data_file"]["file_path"]
            row["data_file"]["file_path"] = path.replace("/wh/t/", to)
            assert row["data_file"]["file_path"] != path

    for leaf in t._state.leaves(None):
        if leaf.entries["content_type"][0].as_py() == 0:
            _rewritten(new / "metadata" / leaf.location.rpartition("/")[2], damage)
    return new


@pytest.mark.parametrize("damage", DAMAGED_PATHS)
def test_a_data_file_that_is_found_by_its_end_keeps_its_deletes(damage: str, tmp_path: Path) -> None:
    new = _deleted_then_damaged(tmp_path, *DAMAGED_PATHS[damage])
    left = [3, 4, 5, 10, 11, 12]
    assert sorted(build.to_pylist(ix.open(new).to_arrow()["id"])) == left
    assert ix.open(new).count() == ix.open(new).count("id >= 0") == 6
    assert len(ix.open(new).head(100)) == 6
    assert sorted(build.to_pylist(ix.open(new).to_arrow("id < 12")["id"])) == left[:5]
    t = ix.open(new)
    plan = t.plan()
    matched = plan.files.matched
    deletes = zip(matched.vector.to_pylist(), matched.positions.to_pylist(), strict=True)
    assert [vector is not None or bool(files) for vector, files in deletes] == [True, True]
    t.to_arrow()
    assert {"location-guessed", "delete-path"} <= {p.code for p in t.problems}
    for use in ("to_arrow", "count", "head"):
        strict = ix.open(new, strict=True)
        for _ in range(2):  # what was refused once is refused again
            with pytest.raises(ix.FormatError, match="end of its path"):
                getattr(strict, use)()


def test_a_row_is_gone_though_its_file_was_found_by_its_end(tmp_path: Path) -> None:
    new = _deleted_then_damaged(tmp_path, *DAMAGED_PATHS["inserted, several files"])
    t = ix.open(new)
    changes = t.changes(t.snapshots[1].snapshot_id, t.snapshots[-1].snapshot_id, rows=True)
    assert sorted(build.to_pylist(changes["id"])) == [0, 1, 2, 13, 14, 15]
    assert set(changes["_change_type"].to_pylist()) == {"DELETE"}


@pytest.mark.parametrize("claimed", [0, 1])
def test_a_vector_deletes_its_rows_whatever_the_file_counts(claimed: int, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    properties = {"write.delete.mode": "merge-on-read"}
    lab = ix.create(folder, {"id": "long"}, format_version=3, properties=properties)
    lab.append({"id": list(range(8))})
    lab.delete("id = 2 or id = 6")
    path = _leaf(lab, 0)
    _rewritten(path, lambda rows: rows[0]["data_file"].update(record_count=claimed))
    t = ix.open(folder)
    with pytest.warns(UserWarning, match="rows|counts"):
        assert sorted(build.to_pylist(t.to_arrow()["id"])) == [0, 1, 3, 4, 5, 7]


# Every contradiction at every door -----------------------------------------------------------------------------------


def _no_current_snapshot(folder: Path) -> str:
    def change(document: Record) -> None:
        document["current-snapshot-id"] = None
        document["refs"].pop("main")

    edit_json(document_path(folder), change)
    return ""


def _rows_of_a_manifest_wrong(folder: Path) -> str:
    edit_avro(root_path(folder), records(lambda r: r.update(added_rows_count=1), lambda r: r["content"] == 0))
    return ""


_DAMAGES = {one.name: one.damage for one in DAMAGES}
#: Contradictions that reading meets by itself: the damage, the code that warnings name, and the filter of the scan.
MET: dict[str, tuple[Callable[[Path], str], str, str | None]] = {
    "no current snapshot": (_no_current_snapshot, "metadata-invalid", None),
    "file counts 0 in the list": (_DAMAGES["counts_of_a_manifest_zero"], "count-mismatch", None),
    "row counts wrong in the list": (_rows_of_a_manifest_wrong, "totals-differ", None),
    "summary totals": (_DAMAGES["summary_totals_wrong"], "totals-differ", None),
    "summary without the deletes": (_DAMAGES["summary_without_the_deletes"], "totals-differ", None),
    "list of another attempt": (_DAMAGES["list_of_another_attempt"], "root-other-snapshot", None),
    "a path twice": (_DAMAGES["path_live_twice"], "file-twice", None),
    "two sizes of a file": (_DAMAGES["file_with_two_sizes"], "file-twice", None),
    "least sequence number": (_DAMAGES["least_sequence_number_too_high"], "sequence-number", None),
    "no sequence number": (_DAMAGES["existing_without_a_sequence_number"], "sequence-number", None),
    "another partition tuple": (_DAMAGES["tuple_without_a_field_of_the_spec"], "file-corrupt", None),
}
#: Contradictions that only `Table.check` can find, as it reads more than a scan: also its level.
EXAMINED: dict[str, tuple[Callable[[Path], str], str, str | None, str]] = {
    "bounds of a pruned manifest": (_DAMAGES["summary_bounds_too_narrow"], "summary-untrue", "k = 'b'", "metadata"),
    "a lost update": (_DAMAGES["update_lost"], "snapshot-lost", None, "metadata"),
    "a commit on an older file": (_DAMAGES["commit_on_an_older_file"], "snapshot-lost", None, "metadata"),
    "a data file is gone": (_DAMAGES["data_file_gone"], "file-missing", None, "metadata"),
    "deletes of another spec": (_DAMAGES["deletes_of_a_newer_spec"], "delete-no-effect", None, "metadata"),
    "deletes dropped": (_DAMAGES["deletes_dropped_by_a_compaction"], "deletes-dropped", None, "metadata"),
    "bounds of a file": (_DAMAGES["bounds_of_one_row_group"], "bounds-untrue", "id > 5", "rows"),
    "rows of another partition": (_DAMAGES["rows_of_another_partition"], "partition-untrue", "k = 'a'", "rows"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return doctor_table(tmp_path_factory.mktemp("doors"))


@pytest.fixture
def damaged(whole: Path) -> Iterator[Path]:
    """The table in its own place, so that no location moves; it is restored afterwards."""
    kept = whole.with_name("kept")
    shutil.copytree(whole, kept)
    yield whole
    shutil.rmtree(whole)
    kept.rename(whole)


def _every_door(t: ix.Table, code: str, where: str | None) -> None:
    named = rf"\[{code}\]"
    with pytest.warns(UserWarning, match=named):
        t.count(where)
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        with suppress(ix.IceexploreError):  # a file that is gone is an error of reading
            t.to_arrow(where)
    texts = [str(one.message) for one in met]
    assert any(f"[{code}]" in text for text in texts)
    assert len(texts) == len(set(texts)), "each contradiction warns once per call"
    plan = t.plan(where)
    assert any(f"[{code}]" in text for text in plan.doubts)
    assert f"[{code}]" in repr(plan)
    assert f"[{code}]" in str(plan_sent(plan))
    assert f"[{code}]" in repr(t)
    assert code in {p.code for p in t.problems}


@pytest.mark.parametrize("name", MET)
def test_a_contradiction_warns_at_every_door(name: str, damaged: Path) -> None:
    damage, code, where = MET[name]
    damage(damaged)
    _every_door(ix.open(damaged), code, where)
    with pytest.raises(ix.FormatError):
        ix.open(damaged, strict=True).count(where)


@pytest.mark.parametrize("name", EXAMINED)
def test_a_finding_of_a_check_warns_at_every_door_afterwards(name: str, damaged: Path) -> None:
    damage, code, where, level = EXAMINED[name]
    damage(damaged)
    t = ix.open(damaged)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        t.count(where)
    assert not t.check(level=level).ok  # type: ignore[arg-type]
    _every_door(t, code, where)
    before = t.at(snapshot=min(t.snapshots, key=lambda s: s.sequence_number).snapshot_id)
    if code != "snapshot-lost":
        assert not [text for text in before.plan(where).doubts if f"[{code}]" in text], "another snapshot is right"


def test_untrue_bounds_warn_when_their_manifest_is_read(damaged: Path) -> None:
    """Another claim of the list prunes a manifest; of the one that is read, the bounds are seen to be untrue."""
    _DAMAGES["summary_bounds_too_narrow"](damaged)
    t = ix.open(damaged)
    t.count()
    with pytest.warns(UserWarning, match=r"\[summary-untrue\]"):
        t.count("k = 'b'")


def test_a_healthy_table_does_not_warn_at_any_door(whole: Path) -> None:
    t = ix.open(whole)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert t.count() == t.to_arrow().num_rows == 17
        assert t.check(level="rows").ok
        assert t.count("k = 'b'") == t.to_arrow("k = 'b'").num_rows
    assert t.plan().doubts == ()


def test_a_card_names_the_source_of_its_counts(whole: Path) -> None:
    t = ix.open(whole)
    assert "the snapshot's summary, unverified" in repr(t)
    assert t.state.root() is not None
    assert "the snapshot's summary, compared with the manifest list only" in repr(t)
    t.count()
    assert "Counts from" not in repr(t)


def test_each_code_with_a_concern_is_known() -> None:
    assert _CONCERNS.keys() <= PROBLEM_KINDS.keys()
