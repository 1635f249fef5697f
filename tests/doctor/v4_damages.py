"""Healthy V4 tables, and ways to damage them: modes 50 to 58 and 85, and what a V4 tree makes of others."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

import iceexplore as ix
from iceexplore.graph import TableState, open_state
from iceexplore.manifests import EntryBatch, Manifest, encode_manifest_dv, write_manifest
from tests.doctor.damages import Damage, document_path, edit_json, local, root_path

Row = dict[str, Any]
DATA, POSITION, EQUALITY, DATA_LEAF, DELETE_LEAF, MANIFEST_DV = range(6)
EXISTING, ADDED, DELETED, REPLACED = range(4)


# Healthy tables -------------------------------------------------------------------------------------------------------


@cache
def simulated(**options: Any) -> ix.Simulation:
    """A table whose newest root has everything: leaves, manifest DVs, deletion vectors, and files of its own."""
    s = ix.empty(
        {"id": "long", "k": "string"}, partition_by=["k", "bucket(4, id)"], format_version=4, seed=3,
        **{"leaf_entries": 3, "flush_data_files": 2, "flush_delete_files": 1, "affinity": "none", **options},
    )  # fmt: skip
    s.append(files=6, rows=600)  # two data leaves
    first = _files(s)
    s.row_delta(deletes={first[0]: [0, 5], first[1]: [2]})  # a delete leaf
    s.delete_files([first[2]])  # a manifest DV
    s.append(files=2, rows=10)  # files in the root
    second = [f for f in _files(s) if f not in first]
    s.row_delta(deletes={first[4]: [1]})  # a deletion vector in the root
    s.delete_files([second[0], first[3]])  # a DELETED entry, and an ADDED manifest DV
    return s


@cache
def _appended() -> ix.Simulation:
    """A table whose newest commit adds a leaf."""
    s = ix.empty({"id": "long"}, format_version=4, seed=5, leaf_entries=3, flush_data_files=2)
    s.append(files=3, rows=30)
    s.append(files=3, rows=30)
    return s


@cache
def _for_draft() -> ix.Simulation:
    """A table whose newest root can be written in the draft: vectors are in the manifests of their files."""
    s = ix.empty({"id": "long"}, format_version=4, seed=7, leaf_entries=3, flush_data_files=2, flush_delete_files=2)
    s.append(files=6, rows=60)
    first = _files(s)
    s.delete_files([first[1]])
    s.append(files=2, rows=10)
    s.row_delta(deletes={next(f for f in _files(s) if f not in first): [3]})
    return s


def _files(s: ix.Simulation) -> list[str]:
    return [row["file_path"] for row in s.inspect.data_files.arrow().to_pylist()]


def healthy_v4(folder: Path, **options: Any) -> Path:
    """Save a table of the proposal; ``options`` are those of its layout."""
    simulated(**options).save(folder / "t")
    return folder / "t"


def appended_v4(folder: Path) -> Path:
    """Save a table whose newest commit adds a leaf manifest."""
    _appended().save(folder / "t")
    return folder / "t"


def affiliated_v4(folder: Path) -> Path:
    """Save a table whose delete manifests are affiliated to data manifests."""
    return healthy_v4(folder, affinity="all")


def draft_v4(folder: Path) -> Path:
    """Save a table whose newest root and leaves are of the V4 draft."""
    _for_draft().save(folder / "t")
    return write_as_draft(folder / "t")


def write_as_draft(folder: Path) -> Path:
    """Write a table's newest root and its leaves again, in the V4 draft."""
    state = open_state(folder)
    root = state.root()
    assert root is not None
    batch = EntryBatch.of(root)
    rows = batch.entries.to_pylist()
    for at, row in enumerate(rows):
        if row["content_type"] in (DATA_LEAF, DELETE_LEAF):
            leaf, row_location = state.reader.leaf(root, at), row["location"]
            path = local(row["location"]).with_name(f"draft-{at}.parquet")
            data = _drafted(state, EntryBatch.of(leaf), "data" if row["content_type"] == DATA_LEAF else "delete")
            path.write_bytes(data)
            rows[at].update(location=str(path), file_size_in_bytes=len(data))
            for other in rows:
                if other["referenced_file"] == row_location:
                    other["referenced_file"] = str(path)
    batch = batch.with_columns(
        **{
            name: pa.array([row[name] for row in rows], batch.entries.schema.field(name).type)
            for name in ("location", "referenced_file", "file_size_in_bytes")
        }
    )
    path = local(root.location).with_name("draft-root.parquet")
    path.write_bytes(_drafted(state, _with_tuples(state, root, batch), "root"))

    def change(document: Row) -> None:
        newest = next(s for s in document["snapshots"] if s["snapshot-id"] == document["current-snapshot-id"])
        newest["root-manifest"] = str(path)

    edit_json(document_path(folder), change)
    return folder


def _drafted(state: TableState, batch: EntryBatch, content: str) -> bytes:
    return write_manifest(
        batch, content=content, metadata=state.metadata, spec_id=0, dialect="v4-draft", manifest_format="parquet"
    )


def _with_tuples(state: TableState, root: Manifest, batch: EntryBatch) -> EntryBatch:
    """Return a root's rows with the partition tuples of its files."""
    direct = state.reader.direct(root)
    tuples = None if direct is None else direct.partition()
    if direct is None or tuples is None:
        return batch
    places = {row: i for i, row in enumerate(direct.entries["ordinal"].to_pylist())}
    return replace(batch, partition=tuples.take(pa.array([places.get(i) for i in range(len(batch))], pa.int64())))


# Edits ----------------------------------------------------------------------------------------------------------------


def edit_parquet(path: Path, change: Callable[[list[Row]], None]) -> None:
    """Change the rows of a Parquet manifest in place."""
    table = pq.read_table(path)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)


def edit_root(folder: Path, change: Callable[[list[Row]], None]) -> str:
    """Change the rows of the newest root; return the beginning of its places."""
    path = root_path(folder)
    edit_parquet(path, change)
    return f"{path.name}#entry"


def leaf_paths(folder: Path, kind: int = DATA_LEAF) -> list[Path]:
    """Return the leaves of a content type in the newest root."""
    return [local(r["location"]) for r in pq.read_table(root_path(folder)).to_pylist() if r["content_type"] == kind]


def edit_leaf(folder: Path, change: Callable[[list[Row]], None], kind: int = DATA_LEAF, number: int = 0) -> str:
    """Change the rows of a leaf, and its size in the root; return its name."""
    path = leaf_paths(folder, kind)[number]
    edit_parquet(path, change)

    def sized(rows: list[Row]) -> None:
        one = next(r for r in rows if local(r["location"]) == path and r["content_type"] == kind)
        one["file_size_in_bytes"] = path.stat().st_size

    edit_parquet(root_path(folder), sized)
    return path.name


def one(kind: int, status: int | None = None, **values: Any) -> Callable[[list[Row]], None]:
    """Return a change of the first row of a content type (and status): values of its columns."""

    def change(rows: list[Row]) -> None:
        find(rows, kind, status).update(values)

    return change


def find(rows: list[Row], kind: int, status: int | None = None) -> Row:
    """Return the first row of a content type (and status)."""
    return next(r for r in rows if r["content_type"] == kind and status in (None, tracking(r)["status"]))


def tracking(row: Row) -> Row:
    """Return the struct with status, snapshot and sequence numbers: its name differs between proposal and draft."""
    found: Row = row.get("version_info") or row["tracking"]
    return found


def inline(*positions: int) -> Row:
    """Return a manifest DV."""
    return {"offset": None, "size_in_bytes": None, "inline_content": encode_manifest_dv(BitMap(positions))}


# The damages ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class V4Damage(Damage):
    """A damage of a V4 table; ``healthy`` makes the table in a folder."""

    healthy: Callable[[Path], Path] = healthy_v4


V4_DAMAGES: list[V4Damage] = []


def damage(mode: int, code: str, severity: str, healthy: Callable[[Path], Path] = healthy_v4) -> Any:
    """Register a damage under its function's name."""

    def register(function: Callable[[Path], str]) -> Callable[[Path], str]:
        V4_DAMAGES.append(V4Damage(mode, function.__name__, code, severity, function, 4, healthy=healthy))
        return function

    return register


@damage(50, "file-corrupt", "wrong")
def content_type_unknown(folder: Path) -> str:
    return edit_root(folder, one(DATA, EXISTING, content_type=7))


@damage(50, "file-corrupt", "wrong")
def manifest_in_a_leaf(folder: Path) -> str:
    return edit_leaf(folder, lambda rows: rows[1].update(content_type=DATA_LEAF))


@damage(50, "file-corrupt", "fail")
def two_roots(folder: Path) -> str:
    place = str(root_path(folder, 1))
    edit_json(document_path(folder), lambda document: document["snapshots"][-1].update({"manifest-list": place}))
    return "#snapshot"


@damage(50, "entry-invalid", "wrong")
def deletes_in_a_data_leaf(folder: Path) -> str:
    name = leaf_paths(folder, DELETE_LEAF)[0].name
    edit_root(folder, one(DELETE_LEAF, content_type=DATA_LEAF))
    return name


@damage(51, "manifest-dv-invalid", "wrong")
def manifest_dv_of_no_manifest(folder: Path) -> str:
    def change(rows: list[Row]) -> None:
        rows.append(copy.deepcopy(find(rows, MANIFEST_DV, ADDED)))
        rows[-1].update(location="/w/none.parquet", referenced_file="/w/none.parquet")

    return edit_root(folder, change)


@damage(51, "manifest-dv-invalid", "wrong")
def two_manifest_dvs_of_a_leaf(folder: Path) -> str:
    def change(rows: list[Row]) -> None:
        rows.append(copy.deepcopy(find(rows, MANIFEST_DV, ADDED)))

    edit_root(folder, change)
    return leaf_paths(folder)[1].name


@damage(51, "manifest-dv-invalid", "wrong")
def manifest_dv_past_its_leaf(folder: Path) -> str:
    return edit_root(folder, one(MANIFEST_DV, ADDED, deletion_vector=inline(0, 3), record_count=2))


@damage(51, "count-mismatch", "wrong")
@damage(85, "count-mismatch", "wrong")
def manifest_dv_with_a_wrong_count(folder: Path) -> str:
    return edit_root(folder, one(MANIFEST_DV, ADDED, record_count=2))


@damage(51, "entry-invalid", "fail")
def manifest_dv_in_two_places(folder: Path) -> str:
    both = {**inline(0), "offset": 4, "size_in_bytes": 40}
    return edit_root(folder, one(MANIFEST_DV, ADDED, deletion_vector=both))


@damage(51, "file-corrupt", "wrong")
def manifest_dv_in_no_place(folder: Path) -> str:
    return edit_root(folder, one(MANIFEST_DV, ADDED, deletion_vector={**inline(0), "inline_content": None}))


@damage(52, "entry-invalid", "fail")
def data_file_with_a_vector(folder: Path) -> str:
    vector = {"offset": 4, "size_in_bytes": 40, "inline_content": None}
    return edit_root(folder, one(DATA, EXISTING, deletion_vector=vector))


@damage(52, "entry-invalid", "fail")
def deletes_without_a_vector(folder: Path) -> str:
    return edit_root(folder, one(POSITION, deletion_vector=None))


@damage(52, "entry-invalid", "fail")
def data_dv_inline(folder: Path) -> str:
    return edit_root(folder, one(POSITION, deletion_vector=inline(1)))


@damage(52, "entry-invalid", "fail")
def manifest_without_stats(folder: Path) -> str:
    return edit_root(folder, one(DATA_LEAF, manifest_stats=None))


@damage(52, "entry-invalid", "fail")
def data_file_with_manifest_stats(folder: Path) -> str:
    def change(rows: list[Row]) -> None:
        find(rows, DATA, EXISTING)["manifest_stats"] = find(rows, DATA_LEAF)["manifest_stats"]

    return edit_root(folder, change)


@damage(52, "entry-invalid", "fail")
def file_without_a_size(folder: Path) -> str:
    return edit_root(folder, one(DATA, EXISTING, file_size_in_bytes=None))


@damage(53, "count-mismatch", "wrong")
def counts_that_the_leaf_does_not_have(folder: Path) -> str:
    def change(rows: list[Row]) -> None:
        find(rows, DATA_LEAF)["manifest_stats"].update(added_files_count=2)

    edit_root(folder, change)
    return leaf_paths(folder)[0].name


@damage(53, "summary-untrue", "wrong")
def bounds_that_do_not_cover_the_leaf(folder: Path) -> str:
    def change(rows: list[Row]) -> None:
        stats = find(rows, DATA_LEAF)["content_stats"]["id"]
        stats["lower_bound"] = stats["upper_bound"]

    return edit_root(folder, change)


@damage(53, "summary-untrue", "wrong")
def value_count_below_the_leafs(folder: Path) -> str:
    def change(rows: list[Row]) -> None:
        find(rows, DATA_LEAF)["content_stats"]["id"]["value_count"] -= 1

    return edit_root(folder, change)


@damage(54, "changes-untrue", "wrong")
def leaf_written_again_without_a_file(folder: Path) -> str:
    old = leaf_paths(folder)[1]
    new = old.with_name("again-data.parquet")
    table = pq.read_table(old)
    kept = table.to_pylist()[1:]
    at = {"sequence_number": 1, "file_sequence_number": 1}

    def change(rows: list[Row]) -> None:
        row = next(r for r in rows if r["content_type"] == DATA_LEAF and local(r["location"]) == old)
        for entry in kept:
            tracking(entry).update(at, status=EXISTING, snapshot_id=tracking(row)["snapshot_id"])
        first = row["first_row_id"] + row["manifest_stats"]["added_rows_count"] // 3
        for number, entry in enumerate(kept):
            entry["first_row_id"] = first + number * entry["record_count"]
        pq.write_table(pa.Table.from_pylist(kept, schema=table.schema), new)
        counts = row["manifest_stats"]
        counts.update(added_files_count=0, existing_files_count=2, added_rows_count=0)
        counts["existing_rows_count"] = sum(entry["record_count"] for entry in kept)
        row.update(location=str(new), file_size_in_bytes=new.stat().st_size, record_count=2)
        rows.remove(find(rows, MANIFEST_DV, ADDED))

    edit_root(folder, change)
    return old.name


@damage(54, "changes-untrue", "wrong", appended_v4)
def own_files_in_an_existing_manifest(folder: Path) -> str:
    def change(rows: list[Row]) -> None:
        tracking(find(rows, DATA_LEAF, ADDED))["status"] = EXISTING

    edit_root(folder, change)
    return leaf_paths(folder)[-1].name


@damage(55, "delete-dangling", "untidy")
def vector_of_a_removed_file(folder: Path) -> str:
    # the newest commit's manifest DV also removes the file that the deletion vector in the root is for
    place = edit_root(folder, one(MANIFEST_DV, ADDED, deletion_vector=inline(0, 1), record_count=2))

    def change(document: Row) -> None:
        summary = document["snapshots"][-1]["summary"]
        summary["total-data-files"] = str(int(summary["total-data-files"]) - 1)

    edit_json(document_path(folder), change)
    return place


@damage(55, "delete-dangling", "untidy")
def vector_of_a_removed_file_in_a_leaf(folder: Path) -> str:
    gone = find(pq.read_table(root_path(folder)).to_pylist(), DATA, DELETED)["location"]
    return edit_leaf(folder, one(POSITION, referenced_file=gone), DELETE_LEAF)


@damage(56, "entry-invalid", "wrong", affiliated_v4)
def affiliated_to_a_lost_manifest(folder: Path) -> str:
    return edit_root(folder, one(DELETE_LEAF, referenced_file="/w/none.parquet"))


@damage(56, "entry-invalid", "wrong", affiliated_v4)
def affiliated_in_both_directions(folder: Path) -> str:
    deletes = str(leaf_paths(folder, DELETE_LEAF)[0])
    return edit_root(folder, one(DATA_LEAF, referenced_file=deletes))


@damage(56, "entry-invalid", "wrong", affiliated_v4)
def affiliated_deletes_of_another_manifest(folder: Path) -> str:
    other = str(leaf_paths(folder)[1])
    edit_root(folder, one(DELETE_LEAF, referenced_file=other))
    return leaf_paths(folder, DELETE_LEAF)[0].name


@damage(57, "changes-untrue", "wrong")
def manifest_dv_of_this_commit_as_existing(folder: Path) -> str:
    def change(rows: list[Row]) -> None:
        tracking(find(rows, MANIFEST_DV, ADDED))["status"] = EXISTING

    return edit_root(folder, change)


@damage(57, "changes-untrue", "wrong")
def removed_file_not_listed(folder: Path) -> str:
    edit_root(folder, lambda rows: rows.remove(find(rows, DATA, DELETED)))
    return root_path(folder).name


@damage(57, "changes-untrue", "wrong")
def old_file_as_added(folder: Path) -> str:
    def change(rows: list[Row]) -> None:
        newest = tracking(find(rows, MANIFEST_DV, ADDED))
        tracking(find(rows, DATA, EXISTING)).update(status=ADDED, snapshot_id=newest["snapshot_id"])

    return edit_root(folder, change)


@damage(58, "partition-unknown", "wrong")
def bucket_without_a_statistic(folder: Path) -> str:
    def change(rows: list[Row]) -> None:
        find(rows, DATA, EXISTING)["content_stats"]["id_bucket_4"].update(lower_bound=None, upper_bound=None)

    return edit_root(folder, change)


@damage(58, "partition-unknown", "wrong")
def partition_value_truncated(folder: Path) -> str:
    def change(rows: list[Row]) -> None:
        stats = find(rows, DATA, EXISTING)["content_stats"]["k"]
        stats.update(lower_bound=stats["lower_bound"][:3], upper_bound=stats["lower_bound"][:3] + "z")

    return edit_root(folder, change)


@damage(85, "file-corrupt", "wrong")
def status_unknown(folder: Path) -> str:
    def change(rows: list[Row]) -> None:
        tracking(find(rows, DATA, EXISTING))["status"] = 9

    return edit_root(folder, change)


@damage(85, "split-offsets-invalid", "fail")
def split_offsets_unsorted(folder: Path) -> str:
    return edit_root(folder, one(DATA, EXISTING, split_offsets=[200, 4]))


@damage(85, "entry-invalid", "wrong", draft_v4)
def delete_file_in_a_draft_leaf(folder: Path) -> str:
    return edit_leaf(folder, lambda rows: rows[0].update(content_type=EQUALITY, equality_ids=[1]))


@damage(85, "entry-invalid", "wrong", draft_v4)
def delete_file_in_a_draft_root(folder: Path) -> str:
    return edit_root(folder, one(DATA, EXISTING, content_type=EQUALITY, equality_ids=[1]))


@damage(85, "changes-untrue", "wrong", draft_v4)
def replaced_without_a_successor(folder: Path) -> str:
    newest = json.loads(document_path(folder).read_text())["current-snapshot-id"]

    def change(rows: list[Row]) -> None:
        tracking(find(rows, DATA)).update(status=REPLACED, snapshot_id=newest)

    return edit_root(folder, change)
