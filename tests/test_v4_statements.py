"""Statements of the V4 proposal that concern several packages: what a commit writes, a plan reads, an upgrade keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.manifests import EntryBatch, write_manifest
from iceexplore.storage import CACHE

LEAVES: dict[str, Any] = {"format_version": 4, "flush_data_files": 0, "flush_delete_files": 0}
METADATA = ("manifest", "manifest-list", "puffin")


def table(leaves: int, **layout: Any) -> Any:
    """A table with so many data manifests of one file each."""
    s = ix.empty({"id": "long", "s": "string"}, seed=1, **{**LEAVES, **layout})
    for i in range(leaves):
        s.append(rows(i))
    return s


def rows(number: int) -> pa.Table:
    return pa.table({"id": range(10 * number, 10 * number + 10), "s": [f"s{number:02}"] * 10})


def names(s: Any) -> list[str]:
    return [str(n) for n in build.to_pylist(s.inspect.data_files.arrow()["file_path"])]


def written(s: Any) -> list[str]:
    """The kinds of the metadata files that the last commit wrote."""
    last = max(w.commit or 0 for w in s.writes)
    return sorted(w.kind for w in s.writes if w.commit == last and w.kind not in ("data-file", "delete-file"))


def reads(s: Any, **how: Any) -> list[str]:
    """The metadata files that a plan reads, without those that are cached."""
    s.state.storage.reads.clear()
    s.plan(**how)
    return [r.location for r in s.state.storage.reads.of_kind(*METADATA) if not r.cached]


def test_a_small_commit_writes_a_root_and_the_metadata_file() -> None:
    """Motivation: before, "at least 3 files: 1 metadata.json, 1 manifest list and 1 manifest file"."""
    for version, kinds in ((3, ["manifest", "manifest-list", "metadata"]), (4, ["manifest-list", "metadata"])):
        s = ix.empty({"id": "long", "s": "string"}, format_version=version, seed=1)
        s.append(rows(0))
        assert written(s) == kinds
        s.row_delta(deletes={names(s)[0]: [0]})
        assert [k for k in written(s) if k in ("manifest", "manifest-list", "metadata")] == kinds


def test_files_written_do_not_depend_on_the_number_of_manifests() -> None:
    found = {}
    for leaves in (2, 12):
        s = table(leaves)
        s.append(rows(90))
        appended = written(s)
        s.delete_files(names(s)[:1])
        found[leaves] = (appended, written(s))
    assert found[2] == found[12] == (["manifest", "manifest-list", "metadata"], ["manifest-list", "metadata"])


def test_with_the_previous_snapshot_cached_only_what_is_new_is_read() -> None:
    """By the commit that builds the next snapshot, and by the plan of that one."""
    s = table(12)
    CACHE.clear()
    assert len(reads(s)) == 13
    first = names(s)[0]
    s.state.storage.reads.clear()
    s.delete_files([first])
    s.append(rows(50))
    new = {w.location for w in s.writes if (w.commit or 0) > 12 and w.kind in METADATA}
    assert {r.location for r in s.state.storage.reads.of_kind(*METADATA) if not r.cached} <= new
    assert set(reads(s)) <= new and len(new) == 3
    CACHE.clear()
    assert len(reads(s)) == 13  # the first manifest has nothing left, another one came


def test_snapshots_reference_a_root_and_no_manifest_list(tmp_path: Path) -> None:
    s = table(2)
    raw = s.metadata.raw["snapshots"]
    assert all("root-manifest" in snapshot and "manifest-list" not in snapshot for snapshot in raw)
    for snapshot in raw:
        file = pq.read_schema(s.state.storage.resolve(snapshot["root-manifest"]))
        ids = {int(f.metadata[b"PARQUET:field_id"]) for f in file}  # type: ignore[index]
        assert {134, 100, 5} <= ids and not ids & {500, 501, 502}
        assert (file.metadata or {})[b"content"] == b"root"


def test_every_entry_of_a_root_has_statistics_of_all_columns() -> None:
    """Files as written, manifests aggregated."""
    s = table(2)
    s.set_layout(flush_data_files=10)
    s.append(rows(40))
    root = s.state.root()
    assert root is not None
    assert build.to_pylist(root.entries["content_type"]) == [3, 3, 0]
    bounds = {i: (root.stats(i).lower.to_pylist(), root.stats(i).upper.to_pylist()) for i in (1, 2)}
    assert bounds == {1: ([0, 10, 400], [9, 19, 409]), 2: (["s00", "s01", "s40"],) * 2}
    for i in (1, 2):
        assert root.stats(i).value_count.to_pylist() == [10, 10, 10]
        assert root.stats(i).null_count.to_pylist() == [0, 0, 0]


@pytest.mark.parametrize("flush", [0, 100])
def test_columns_that_are_no_partition_prune_at_each_level(flush: int) -> None:
    """At the root manifests and the files that it lists; in a manifest its files."""
    s = table(6, flush_data_files=flush)
    CACHE.clear()
    plan = s.plan("id = 33")
    assert len(plan.files) == 1
    assert len(s.state.storage.reads.of_kind("manifest")) == 0 or flush == 0
    assert set(plan.skipped["level"]) == {"root manifest"}
    merged = s.copy()
    merged.set_layout(flush_data_files=0)
    merged.append(rows(60))
    merged.rewrite_manifests()
    inside = merged.plan("id = 33")
    assert len(inside.files) == 1 and len(inside.roots[0].kept) == 1
    assert set(inside.skipped["level"]) == {"leaf manifest"}


def test_buckets_prune_where_bounds_of_their_column_cannot() -> None:
    """Stats of a derived column, at the root: each manifest has the ids 0 to 99, and one bucket."""
    s = ix.empty({"id": "long"}, partition_by=["bucket(4, id)"], seed=1, **LEAVES)
    every = ix.empty({"id": "long"}, partition_by=["bucket(4, id)"], seed=1)
    every.append(pa.table({"id": range(400)}))
    places = every.to_arrow(columns=["id", "_file"]).to_pylist()
    for file in sorted({p["_file"] for p in places}):
        s.append(pa.table({"id": [p["id"] for p in places if p["_file"] == file]}))
    root = s.state.root()
    assert root is not None
    (expression,) = s.metadata.expressions
    buckets = root.stats(expression.expr_id)
    assert sorted(build.to_pylist(buckets.lower)) == [0, 1, 2, 3] and buckets.lower.equals(buckets.upper)
    assert all(low < 20 and high > 380 for low, high in zip(*_bounds(root.stats(1)), strict=True))
    plan = s.plan("id = 200")
    assert len(plan.roots[0].kept) == 1 and len(plan.files) == 1
    assert s.count("id = 200") == 1


def _bounds(stats: Any) -> tuple[list[Any], list[Any]]:
    return stats.lower.to_pylist(), stats.upper.to_pylist()


def test_identity_values_in_a_manifests_statistics_are_whole() -> None:
    """Those of other columns are truncated to 16 characters."""
    s = ix.empty({"k": "string", "s": "string"}, partition_by=["k"], seed=1, **LEAVES)
    long = "x" * 40
    s.append(pa.table({"k": [long], "s": [long]}))
    root = s.state.root()
    assert root is not None
    assert _bounds(root.stats(1)) == ([long], [long])
    assert _bounds(root.stats(2)) == ([long[:16]], ["x" * 15 + "y"])


def test_an_upgrade_rewrites_no_manifest_and_rewriting_makes_them_columnar() -> None:
    s = ix.empty({"id": "long", "s": "string"}, format_version=3, partition_by=["truncate(2, s)"], seed=1)
    for i in range(3):
        s.append(rows(i))
    s.row_delta(deletes={names(s)[0]: [0]})
    old = {m["path"]: Path(s.state.storage.resolve(m["path"])).read_bytes() for m in manifests(s)}
    s.upgrade(4)
    assert [e.partition_field_id for e in s.metadata.expressions] == [1000]
    s.append(rows(7))
    root = s.state.root()
    assert root is not None
    listed = [r for r in root.entries.to_pylist() if r["content_type"] in (3, 4)]
    assert {r["location"] for r in listed} == set(old) and {r["status"] for r in listed} == {0}
    assert all(Path(s.state.storage.resolve(name)).read_bytes() == data for name, data in old.items())
    assert s.count() == 39 and s.rules().ok
    s.set_layout(flush_data_files=0, flush_delete_files=0)
    s.rewrite_manifests()
    kinds = {m["path"]: Path(s.state.storage.resolve(m["path"])).read_bytes()[:4] for m in manifests(s)}
    assert set(kinds.values()) == {b"PAR1"} and not set(kinds) & set(old)
    assert s.count() == 39 and s.rules().ok


def manifests(s: Any) -> list[dict[str, Any]]:
    return list(build.to_pylist(s.inspect.manifests.arrow()))


def test_the_metadata_file_does_not_grow_with_the_files() -> None:
    """Discarded Alternatives: "keep the root level metadata.json independent of the underlying table metadata"."""
    sizes = []
    for files in (10, 2000):
        s = ix.empty({"id": "long"}, format_version=4, seed=1)
        s.append(files=files, rows=10)
        sizes.append(len(Path(s.state.storage.resolve(s.metadata_location)).read_bytes()))
    assert abs(sizes[1] - sizes[0]) < 50  # digits of counts


def test_removing_a_file_of_a_leaf_with_its_vector_makes_two_manifest_dvs() -> None:
    s = table(1, affinity="all")
    s.append(rows(1))
    (first, second) = names(s)
    s.row_delta(deletes={first: [0], second: [1]})
    s.delete_files([first])
    root = s.state.root()
    assert root is not None
    entries = root.entries.to_pylist()
    kinds = {r["location"]: r["content_type"] for r in entries if r["content_type"] in (3, 4)}
    added = [r for r in entries if r["content_type"] == 5 and r["status"] == 1]
    assert sorted(kinds[r["referenced_file"]] for r in added) == [3, 4]
    assert s.count() == 9 and s.rules().ok


def test_vectors_of_manifests_that_are_pruned_are_not_read() -> None:
    """Each of six manifests has a manifest DV in a Puffin file of its own."""
    s = ix.empty({"id": "long", "s": "string"}, partition_by=["bucket(2, id)"], seed=1, inline_dv_bytes=0, **LEAVES)
    for i in range(6):
        s.append(rows(i))
    for i in range(6):
        s.delete_files(s.plan(f"s = 's{i:02}'").tasks["file_path"].tolist()[:1])
    before = s.count()
    assert len([w for w in s.writes if w.kind == "puffin"]) == 6
    for where, vectors in ((None, 6), ("s = 's03'", 1), ("id < 0", 0)):
        CACHE.clear()
        s.state.storage.reads.clear()
        s.plan(where)
        assert len({r.location for r in s.state.storage.reads.of_kind("puffin")}) == vectors
    assert before == s.count()


@pytest.mark.parametrize("entries", [2000])
def test_inline_manifest_dvs_are_compressed_with_their_column(entries: int) -> None:
    s = ix.empty({"id": "long"}, seed=1, inline_dv_bytes=1 << 20, leaf_entries=entries, **LEAVES)
    s.append(files=entries, rows=1)
    s.delete_files(names(s)[:entries:2])
    root = s.state.root()
    assert root is not None
    (row,) = (r for r in root.entries.to_pylist() if r["content_type"] == 5)
    content = row["deletion_vector"]["inline_content"]
    group = pq.ParquetFile(s.state.storage.resolve(root.location)).metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    (column,) = (c for c in columns if c.path_in_schema.endswith("inline_content"))
    assert column.compression == "ZSTD" and len(content) > entries
    assert column.total_compressed_size < column.total_uncompressed_size


def test_key_metadata_stays_with_a_manifest_through_the_upgrade() -> None:
    from iceexplore.manifests import EntryBatch, upgrade_entries

    row = {"content_type": 3, "location": "m", "partition_spec_id": 0, "record_count": 1, "file_size_in_bytes": 9,
           "sequence_number": 4, "snapshot_id": 7, "first_row_id": 30, "key_metadata": b"k",
           "manifest_stats": {"added_files_count": 1, "min_sequence_number": 2}}  # fmt: skip
    (made,) = upgrade_entries(EntryBatch.of_rows([row]), table(0).metadata).entries.to_pylist()
    assert made["key_metadata"] == b"k" and made["first_row_id"] == 30 and made["file_size_in_bytes"] == 9
    assert (made["sequence_number"], made["file_sequence_number"], made["snapshot_id"]) == (4, 4, 7)
    assert made["manifest_stats"]["min_sequence_number"] == 2


LEAVES_OF_A_BILLION, FILES_PER_LEAF = 40_000, 25_000


def test_a_plan_in_a_billion_files_reads_the_root_and_one_leaf(tmp_path: Path) -> None:
    """Why limit tree depth to 2: "With larger leaf manifests, the 2 level tree scales well into the billion ..."

    The root lists 40,000 leaves of 25,000 files; one of these is there, with all of its entries.
    """
    s = ix.empty({"id": "long"}, seed=1, flush_data_files=0, leaf_entries=FILES_PER_LEAF)
    s.append(files=FILES_PER_LEAF, rows=10)
    saved = s.save(tmp_path / "t")
    t = ix.open(saved.metadata_location)
    root = t.state.root()
    assert root is not None
    one = EntryBatch.of(root)
    (bounds,) = build.to_pylist(one.stats[1])
    leaf = one.entries["location"][0].as_py()
    many = one.take(np.zeros(LEAVES_OF_A_BILLION, np.int64))
    steps = np.arange(LEAVES_OF_A_BILLION) * (bounds["upper"] - bounds["lower"] + 1)
    places = [f"{t.location}/metadata/leaf-{i}.parquet" for i in range(1, LEAVES_OF_A_BILLION)]
    kind = many.stats[1].type
    moved = {"lower": pa.array(bounds["lower"] + steps), "upper": pa.array(bounds["upper"] + steps)}
    columns = [moved.get(f.name, many.stats[1].field(i)) for i, f in enumerate(kind)]
    batch = EntryBatch(
        many.with_columns(location=pa.array([leaf, *places])).entries,
        {1: pa.StructArray.from_arrays(columns, fields=list(kind))},
        many.partition,
    )
    data = write_manifest(batch, content="root", metadata=t.metadata, spec_id=0, dialect="v4-proposal",
                          manifest_format="parquet")  # fmt: skip
    Path(t.state.storage.resolve(root.location)).write_bytes(data)
    document = json.loads(Path(t.state.storage.resolve(t.metadata_location)).read_text())
    files = LEAVES_OF_A_BILLION * FILES_PER_LEAF
    document["snapshots"][-1]["summary"] |= {"total-data-files": str(files), "total-records": str(files * 10)}
    Path(t.state.storage.resolve(t.metadata_location)).write_text(json.dumps(document))
    CACHE.clear()
    big = ix.open(saved.metadata_location)
    plan = big.plan(f"id = {bounds['lower']}")
    assert 0 < len(plan.files) < FILES_PER_LEAF
    assert {r.location for r in big.reads.of_kind(*METADATA)} == {root.location, leaf}
    assert not big.state.problems.met()
    listed = big.state.root()
    assert listed is not None
    counts = pc.struct_field(listed.entries["manifest_stats"].combine_chunks(), "added_files_count")
    assert pc.sum(counts).as_py() == files == 10**9


def test_file_references_in_the_metadata_file_would_grow_with_the_files() -> None:
    """Discarded Alternatives: "Metadata.json would essentially grow as the table data grows", so no commit does it."""
    sizes: list[int] = []
    for files in (100, 200):
        s = ix.empty({"id": "long"}, seed=1)
        s.append(files=files, rows=10)
        document = json.loads(Path(s.state.storage.resolve(s.metadata_location)).read_text())
        held = [r["file_path"] for r in s.inspect.data_files.arrow().to_pylist()]
        assert not any(name in json.dumps(document) for name in held)
        buffered = {**document, "files": s.inspect.data_files.arrow().select(["file_path", "record_count"]).to_pylist()}
        sizes.append(len(json.dumps(buffered)) - len(json.dumps(document)))
    assert 1.9 < sizes[1] / sizes[0] < 2.1 and sizes[0] > 100 * len(held[0])
