"""Manifests of real tables: read, written in their own dialect and as V4, read again, column by column the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from iceexplore.commits import upgrade
from iceexplore.errors import IceexploreError, Problems
from iceexplore.manifests import (
    EntryBatch,
    ManifestReader,
    manifest_entry,
    upgrade_entries,
    write_manifest,
    write_manifest_list,
)
from iceexplore.metadata import TableMetadata, parse_table_metadata
from iceexplore.storage import CACHE, open_source
from tests.manifests import write_cases as cases

PARTS = {"entries", "partition", "stats"}
#: Leaves of a table that are written again, and entries of one: so that the module takes seconds.
LEAVES, ENTRIES = 4, 300


def parsed(document: dict[str, Any]) -> TableMetadata:
    return parse_table_metadata(document, "memory://t", Problems())


def check_same(found: EntryBatch, wanted: EntryBatch, *, v4: bool = False) -> None:
    """Entries, tuples and statistics are equal; V4 keeps no column sizes, and identity partitions replace bounds."""
    for name in wanted.entries.column_names:
        cases.same(found.entries[name].combine_chunks(), wanted.entries[name].combine_chunks())
    if wanted.partition is not None and wanted.partition.type.num_fields:
        for child in wanted.partition.type:
            assert found.partition is not None
            cases.same(pc.struct_field(found.partition, child.name), pc.struct_field(wanted.partition, child.name))
    parts = ("lower", "upper", "value_count", "null_count", "nan_count") + (() if v4 else ("column_size",))
    for column_id, stats in wanted.stats.items():
        for part in parts:
            column = pc.struct_field(stats, part)
            if column_id in found.stats:
                cases.same(pc.struct_field(found.stats[column_id], part), column)
            else:
                assert column.null_count == len(column), (column_id, part)


def check_table(path: str) -> int:
    """Write a table's manifests anew; how many leaves were."""
    CACHE.clear()
    try:
        opened = open_source(path)
    except IceexploreError:  # a view, or a folder of several tables
        return 0
    table = parsed(dict(opened.document))
    snapshot = table.snapshot()
    if snapshot is None or not table.schemas:
        return 0
    reader = ManifestReader(opened.storage, table, Problems())
    root = reader.root(snapshot)
    if root.dialect not in ("v1", "v2", "v3", "v4-java") or root.problems or root.header.format == "inline":
        return 0
    rows = EntryBatch.of(root)
    if root.dialect == "v1" or not pc.struct_field(root.entries["manifest_stats"], "added_files_count").null_count:
        made = write_manifest_list(
            rows, metadata=table, dialect=root.dialect, snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id, sequence_number=snapshot.sequence_number,
        )  # fmt: skip
        again = cases.read_root(made, table, snapshot.snapshot_id)
        for name in rows.entries.column_names:
            cases.same(again.entries[name].combine_chunks(), rows.entries[name].combine_chunks())
    # A relative location means another thing in V4.
    absolute = table.location.startswith("/") or "://" in table.location
    newer = parsed(upgrade(dict(opened.document), 4)) if table.format_version < 4 and absolute else None
    count = 0
    for row in range(min(LEAVES, len(root))):
        leaf = reader.leaf(root, row, PARTS)
        if leaf.problems or leaf.dialect == "":
            continue
        batch = EntryBatch.of(leaf).take(list(range(min(ENTRIES, len(leaf)))))
        whole = len(batch) == len(leaf)
        parent = rows.take([row])
        rewrite(batch, parent, table, leaf.dialect, check_entry=whole and leaf.dialect == root.dialect)
        deletes = set(batch.entries["content_type"].to_pylist()) - {0}
        if newer is not None and not deletes and leaf.dialect != "v1":
            rewrite(without_sources(batch, newer), upgrade_entries(parent, newer), newer, "v4-proposal")
        count += 1
    return count


def without_sources(batch: EntryBatch, table: TableMetadata) -> EntryBatch:
    """Without statistics that V4 does not keep as they are: of identity partition sources, of columns in no schema."""
    sources = {f.source_id for s in table.partition_specs for f in s.fields if f.transform == "identity"}
    kept = {i: a for i, a in batch.stats.items() if i in table.all_fields() and i not in sources}
    return EntryBatch(batch.entries, kept, batch.partition)


def rewrite(
    batch: EntryBatch, parent: EntryBatch, table: TableMetadata, dialect: str, *, check_entry: bool = False
) -> None:
    row = parent.entries.to_pylist()[0]
    content = "data" if row["content_type"] == 3 else "delete"
    spec_id = row["partition_spec_id"]
    made = write_manifest(batch, content=content, metadata=table, spec_id=spec_id, dialect=dialect)
    entry = manifest_entry(
        batch, location=row["location"], length=len(made), content=content, metadata=table, spec_id=spec_id,
        dialect=dialect, status=row["status"], snapshot_id=row["snapshot_id"], sequence_number=row["sequence_number"],
        first_row_id=row["first_row_id"],
    )  # fmt: skip
    v4 = dialect == "v4-proposal"
    check_same(EntryBatch.of(cases.read_leaf(made, table, entry, dialect)), batch, v4=v4)
    if check_entry:
        counted = entry.entries["manifest_stats"][0].as_py()
        given = row["manifest_stats"]
        assert {k: v for k, v in counted.items() if given[k] is not None and k != "min_sequence_number"} == {
            k: v for k, v in given.items() if v is not None and k != "min_sequence_number"
        }


def test_the_sample(trips: Path) -> None:
    assert check_table(str(trips)) > 0


@pytest.mark.corpus
def test_real_tables(corpus: Path) -> None:
    folders = sorted({p.parent.parent for p in corpus.rglob("*.metadata.json")})
    assert sum(check_table(str(folder)) for folder in folders) > 100
