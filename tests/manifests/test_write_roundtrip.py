"""What is written is read again, by our reader, in every dialect and format, for every type and transform."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.errors import OptionError, RuleError, UnsupportedError
from iceexplore.manifests import EntryBatch, manifest_entry, write_manifest, write_manifest_list
from iceexplore.metadata import TableMetadata, is_variable_length
from tests.manifests import write_cases as cases

TABLES = {version: cases.metadata(version) for version in (2, 3, 4)}
BELOW = (("v1", 2, "avro"), ("v2", 2, "avro"), ("v3", 3, "avro"), ("v4-java", 4, "avro"), ("v4-java", 4, "parquet"))
STATS = ("lower", "upper", "value_count", "null_count", "nan_count")


def written(batch: EntryBatch, table: TableMetadata, spec_id: int, dialect: str, **options: Any) -> EntryBatch:
    """The batch written and read again."""
    kind = "data" if options.pop("content", "data") == "data" else "delete"
    data = write_manifest(batch, content=kind, metadata=table, spec_id=spec_id, dialect=dialect, **options)
    entry = manifest_entry(
        batch, location="memory://t/metadata/m", length=len(data), content=kind, metadata=table, spec_id=spec_id,
        dialect=dialect, status=1, snapshot_id=7, sequence_number=9, manifest_format=options["manifest_format"],
    )  # fmt: skip
    return EntryBatch.of(cases.read_leaf(data, table, entry, dialect))


def check_entries(found: EntryBatch, wanted: EntryBatch, *skipped: str) -> None:
    """The same entries, but for what is inherited: null sequence numbers are the manifest's, 9."""
    for name in wanted.entries.column_names:
        column = wanted.entries[name].combine_chunks()
        if name == "sequence_number":
            column = pc.fill_null(column, 9)
        if name not in skipped:
            cases.same(found.entries[name].combine_chunks(), column)


def check_partition(found: EntryBatch, wanted: EntryBatch) -> None:
    """The same tuples; a field that no row has may be left out."""
    if wanted.partition is None or wanted.partition.null_count == len(wanted):
        assert found.partition is None
        return
    assert found.partition is not None
    cases.same(found.partition.is_null(), wanted.partition.is_null())
    names = [child.name for child in found.partition.type]
    for child in wanted.partition.type:
        values = pc.struct_field(wanted.partition, child.name)
        if child.name in names:
            cases.same(pc.struct_field(found.partition, child.name), values)
        else:
            assert values.null_count == len(values)


@pytest.mark.parametrize(("dialect", "version", "manifest_format"), BELOW)
@cases.FEW
@given(data=st.data())
def test_below_v4(dialect: str, version: int, manifest_format: str, data: st.DataObject) -> None:
    table = TABLES[version]
    spec_id = data.draw(st.sampled_from((cases.IDENTITY, cases.DERIVED, cases.SEVERAL, cases.UNPARTITIONED)))
    content = data.draw(st.sampled_from(("data", "deletes"))) if dialect != "v1" else "data"
    kinds = (0,) if content == "data" else (1, 2)
    types = cases.TYPES if version > 2 else tuple(sorted(cases.V2_TYPES))
    batch = data.draw(cases.batches(table, (spec_id,), kinds=kinds, types=types, nan=True))
    if content == "data" and version > 2:  # null row ids are inherited where the manifest has a first one
        batch = batch.with_columns(first_row_id=None)
    found = written(batch, table, spec_id, dialect, manifest_format=manifest_format, content=content)
    sequences = ("sequence_number", "file_sequence_number") if dialect == "v1" else ()
    check_entries(found, batch, *sequences)
    check_partition(found, batch)
    for column_id, stats in batch.stats.items():
        for name in (*STATS, "column_size"):
            wanted = pc.struct_field(stats, name)
            if column_id in found.stats:
                cases.same(pc.struct_field(found.stats[column_id], name), wanted)
            else:
                assert wanted.null_count == len(batch)


def check_stats(found: EntryBatch, wanted: EntryBatch, but: set[int]) -> None:
    """The same statistics of columns that are no partition's source."""
    for column_id, stats in wanted.stats.items():
        if column_id in but:
            continue
        for name in (*STATS, "average_length", "max_length", "tight_bounds"):
            column = pc.struct_field(stats, name)
            if name.endswith("length") and not is_variable_length(TABLES[4].all_fields()[column_id][1].type):
                assert column_id not in found.stats or pc.struct_field(found.stats[column_id], name).null_count == len(
                    wanted
                )
            elif column_id in found.stats:
                cases.same(pc.struct_field(found.stats[column_id], name), column)
            else:
                assert column.null_count == len(wanted)


@pytest.mark.parametrize("manifest_format", ["avro", "parquet"])
@pytest.mark.parametrize("storage", ["derived", "source", "tuple"])
@cases.FEW
@given(data=st.data())
def test_v4_proposal(storage: str, manifest_format: str, data: st.DataObject) -> None:
    table = TABLES[4]
    specs = [cases.IDENTITY, cases.DERIVED, cases.UNPARTITIONED]
    if storage != "source":
        specs.append(cases.SEVERAL)  # a transform of two columns
    chosen = tuple(data.draw(st.lists(st.sampled_from(specs), min_size=1, max_size=3, unique=True)))
    batch = data.draw(cases.batches(table, chosen, kinds=data.draw(st.sampled_from(((0,), (1, 2)))), nan=True))
    batch = batch.with_columns(first_row_id=None)
    found = written(batch, table, chosen[0], "v4-proposal", manifest_format=manifest_format, partition_storage=storage)
    check_entries(found, batch)
    check_partition(found, batch)
    identities = cases.IDENTITY in batch.entries["partition_spec_id"].to_pylist() and storage != "tuple"
    check_stats(found, batch, set(cases.COLUMNS.values()) if identities else set())


@pytest.mark.parametrize("manifest_format", ["avro", "parquet"])
@cases.FEW
@given(data=st.data())
def test_v4_draft(manifest_format: str, data: st.DataObject) -> None:
    table = TABLES[4]
    specs = (cases.IDENTITY, cases.DERIVED, cases.SEVERAL, cases.UNPARTITIONED)
    chosen = tuple(data.draw(st.lists(st.sampled_from(specs), min_size=1, max_size=3, unique=True)))
    batch = data.draw(cases.batches(table, chosen, kinds=(0, 2), nan=True)).with_columns(first_row_id=None)
    found = written(batch, table, chosen[0], "v4-draft", manifest_format=manifest_format)
    # 157 is required: files are of version 4 unless known to be older
    check_entries(found, batch.with_columns(format_version=pc.fill_null(batch.entries["format_version"], 4)))
    check_partition(found, batch)
    for column_id, stats in batch.stats.items():
        for name in (*STATS, "average_length", "tight_bounds"):
            wanted = pc.struct_field(stats, name)
            if name == "tight_bounds" and column_id == cases.COLUMNS["geometry"]:
                continue  # the draft has none for geometries
            sized = is_variable_length(TABLES[4].all_fields()[column_id][1].type)
            if column_id in found.stats and name == "average_length" and not sized:
                assert pc.struct_field(found.stats[column_id], name).null_count == len(batch)
            elif column_id in found.stats:
                cases.same(pc.struct_field(found.stats[column_id], name), wanted)


@st.composite
def manifests(draw: st.DrawFn, table: TableMetadata, *, deletes: bool = True) -> EntryBatch:
    """Rows of a manifest list."""
    count = st.integers(0, 2**31 - 1)
    rows = []
    for row in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from((3, 4) if deletes else (3,)))
        counts = [draw(count) for _ in range(6)]
        names = [f"{a}_{b}_count" for b in ("files", "rows") for a in ("added", "existing", "deleted")]
        bounds = st.none() | st.binary(max_size=4)
        summary = st.fixed_dictionaries(
            {
                "contains_null": st.booleans(),
                "contains_nan": st.none() | st.booleans(),
                "lower_bound": bounds,
                "upper_bound": bounds,
            }
        )
        rows.append(
            {
                "content_type": kind,
                "location": f"memory://t/metadata/m{row}.avro",
                "file_format": "avro",
                "status": 1 if (snapshot := draw(st.sampled_from((7, 8)))) == 7 else 0,
                "snapshot_id": snapshot,
                "sequence_number": (sequence := draw(count)),
                "file_sequence_number": sequence,
                "partition_spec_id": draw(st.integers(0, 3)),
                "record_count": sum(counts[:3]),
                "file_size_in_bytes": draw(count),
                "manifest_stats": dict(zip(names, counts, strict=True)) | {"min_sequence_number": draw(count)},
                "partition_summaries": draw(st.none() | st.lists(summary, max_size=3)),
                "key_metadata": draw(st.none() | st.binary(max_size=3)),
                "first_row_id": draw(count) if kind == 3 and table.format_version > 2 else None,
            }
        )
    return EntryBatch.of_rows(rows)


@pytest.mark.parametrize(("dialect", "version", "manifest_format"), BELOW)
@cases.FEW
@given(data=st.data())
def test_manifest_lists(dialect: str, version: int, manifest_format: str, data: st.DataObject) -> None:
    table = TABLES[version]
    batch = data.draw(manifests(table, deletes=dialect != "v1"))
    if dialect == "v1":  # without sequence numbers, which read as 0
        stats = [s | {"min_sequence_number": 0} for s in build.to_pylist(batch.entries["manifest_stats"])]
        kind = batch.entries.schema.field("manifest_stats").type
        batch = batch.with_columns(sequence_number=0, file_sequence_number=0, manifest_stats=pa.array(stats, kind))
    made = write_manifest_list(
        batch, metadata=table, dialect=dialect, snapshot_id=7, parent_snapshot_id=None, sequence_number=9,
        manifest_format=manifest_format,
    )  # fmt: skip
    root = cases.read_root(made, table)
    assert (root.dialect, root.is_root, root.header.format) == (dialect, True, manifest_format)
    check_entries(EntryBatch.of(root), batch)
    keys = {"snapshot-id": "7", "parent-snapshot-id": "null", "format-version": dialect[1]}
    if dialect != "v1":
        keys["sequence-number"] = "9"
    if dialect not in ("v1", "v2"):
        keys["first-row-id"] = "null"
    assert {k: v for k, v in root.header.metadata.items() if not k.startswith("avro.")} == keys
    row = EntryBatch.of_rows([{"content_type": 0, "location": "x"}])
    with pytest.raises(OptionError, match="holds manifests"):
        write_manifest_list(
            row, metadata=table, dialect=dialect, snapshot_id=7, parent_snapshot_id=6, sequence_number=9
        )


def test_nulls_of_a_list_are_the_commits_own_and_row_ids_go_on() -> None:
    stats = dict.fromkeys(("added_files_count", "existing_files_count", "deleted_files_count", "deleted_rows_count"), 1)
    stats |= {"added_rows_count": 10, "existing_rows_count": 5}
    rows = [
        {"content_type": kind, "location": f"m{i}", "file_size_in_bytes": 1, "partition_spec_id": 0,
         "manifest_stats": stats, "first_row_id": given}
        for i, (kind, given) in enumerate([(3, None), (4, None), (3, 3), (3, None)])
    ]  # fmt: skip
    made = write_manifest_list(
        EntryBatch.of_rows(rows), metadata=TABLES[3], dialect="v3", snapshot_id=7, parent_snapshot_id=6,
        sequence_number=9, first_row_id=100,
    )  # fmt: skip
    found = cases.read_root(made, TABLES[3])
    assert found.entries["first_row_id"].to_pylist() == [100, None, 3, 115]  # ManifestListWriter.V3Writer
    assert found.entries["snapshot_id"].to_pylist() == [7] * 4
    assert found.entries["sequence_number"].to_pylist() == [9] * 4
    assert [s["min_sequence_number"] for s in build.to_pylist(found.entries["manifest_stats"])] == [9] * 4


FILE = {
    "content_type": 0, "location": "memory://t/f", "file_format": "parquet", "status": 1, "snapshot_id": 7,
    "partition_spec_id": cases.UNPARTITIONED, "record_count": 3, "file_size_in_bytes": 5,
}  # fmt: skip
VECTOR = FILE | {"content_type": 1, "deletion_vector": {"offset": 4, "size_in_bytes": 40}, "referenced_file": "f"}


@pytest.mark.parametrize(
    ("row", "options", "error", "message"),
    [
        (FILE | {"status": None}, {}, OptionError, r"row 0 \(memory://t/f\) has no status"),
        (FILE | {"status": 4}, {}, OptionError, "MODIFIED"),
        (FILE | {"status": 0}, {}, OptionError, "only ADDED entries inherit"),
        (FILE | {"record_count": None}, {}, OptionError, "no record_count"),
        (FILE | {"location": None}, {}, OptionError, "no location"),
        (FILE | {"content_type": 3}, {}, OptionError, "holds files"),
        (FILE | {"partition_spec_id": cases.IDENTITY}, {}, OptionError, "write a manifest for each spec"),
        (VECTOR, {"dialect": "v2"}, RuleError, "deletes-need-v2"),
        (VECTOR, {"dialect": "v1"}, RuleError, "deletes-need-v2"),
        (FILE | {"snapshot_id": None}, {"dialect": "v1"}, OptionError, "snapshot_id="),
        (FILE, {"dialect": "v5"}, OptionError, "v4-proposal"),
        (FILE, {"content": "root"}, OptionError, "'data' or 'delete'"),
        (FILE, {"manifest_format": "orc"}, OptionError, "'avro' or 'parquet'"),
        (FILE, {"manifest_format": "parquet"}, OptionError, "are Avro"),
        (FILE, {"spec_id": 77}, OptionError, "no partition spec 77"),
        (FILE | {"partition_spec_id": 77}, {"dialect": "v4-proposal"}, OptionError, "no partition spec 77"),
        (FILE, {"dialect": "v4-proposal", "partition_storage": "hidden"}, OptionError, "'derived'"),
        (VECTOR, {"dialect": "v4-draft"}, UnsupportedError, "not in the batch"),
        (FILE | {"partition_spec_id": cases.SEVERAL}, {"dialect": "v4-proposal", "partition_storage": "source"},
         UnsupportedError, "several columns"),
    ],
)  # fmt: skip
def test_refused_before_a_byte_is_written(row: Any, options: Any, error: type[Exception], message: str) -> None:
    given = {"content": "data", "spec_id": cases.UNPARTITIONED, "dialect": "v3", **options}
    table = TABLES[4 if given["dialect"].startswith("v4") else 3]
    with pytest.raises(error, match=message):
        write_manifest(EntryBatch.of_rows([row]), metadata=table, **given)


def test_a_partition_field_without_an_expression_is_refused() -> None:
    row = FILE | {"partition_spec_id": cases.DERIVED}
    with pytest.raises(OptionError, match="upgrade the metadata"):
        write_manifest(
            EntryBatch.of_rows([row]), content="root", metadata=TABLES[3], spec_id=None, dialect="v4-proposal"
        )
