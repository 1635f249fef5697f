"""Metadata tables reduced to what people look for first: short names, words instead of codes, plain columns."""

from __future__ import annotations

import pyarrow as pa

from iceexplore.arrow import AnyArray, AnyChunkedArray, build, join_texts
from iceexplore.arrow import compute as pc
from iceexplore.graph import TableState, snapshot_change
from iceexplore.inspect._partition import partition_union
from iceexplore.manifests import ContentType, Status, whole
from iceexplore.metadata import TableMetadata, human_value, parse_transform

__all__ = ["essentials", "partition_texts", "tuple_texts"]

#: The columns of each table to show, in an order that suits pandas, which in a narrow terminal leaves out the middle
#: columns first. For tables that are not listed, all columns except nested ones are shown.
_FILE = ("name", "content", "referenced_data_file", "partition", "record_count", "file_size_in_bytes")
_MANIFEST = ("name", "content", "length", "added_snapshot_id", "added", "existing", "deleted")
_ENTRY = ("name", "status", "content", "referenced_data_file", "partition", "record_count", "file_size_in_bytes")
_COLUMNS: dict[str, tuple[str, ...]] = {
    "snapshots": ("committed_at", "snapshot_id", "operation", "change"),
    "manifests": _MANIFEST,
    "all_manifests": (*_MANIFEST, "reference_snapshot_id"),
    **dict.fromkeys(("files", "data_files", "delete_files", "all_files", "all_data_files", "all_delete_files"), _FILE),
    **dict.fromkeys(("entries", "all_entries"), (*_ENTRY, "snapshot_id")),
    "content_entries": (
        "name",
        "status",
        "content_type",
        "referenced_file",
        "partition",
        "record_count",
        "file_size_in_bytes",
        "snapshot_id",
    ),
    "partitions": (
        "partition",
        "file_count",
        "record_count",
        "total_data_file_size_in_bytes",
        "position_delete_record_count",
        "equality_delete_record_count",
        "last_updated_at",
    ),
    "deletion_vectors": ("name", "file_path", "content_offset", "partition", "content_size_in_bytes", "cardinality"),
    "column_stats": ("name", "column", "value_count", "null_value_count", "lower_bound", "upper_bound"),
    "position_deletes": ("name", "pos", "partition", "delete_file_path"),
}
#: Shorter column names, for the tables that are listed above.
_SHORT = {
    "record_count": "rows",
    "file_size_in_bytes": "bytes",
    "length": "bytes",
    "total_data_file_size_in_bytes": "bytes",
    "content_size_in_bytes": "bytes",
    "file_count": "files",
    "referenced_data_file": "applies_to",
    "referenced_file": "applies_to",
    "content_type": "content",
    "cardinality": "deleted_rows",
    "position_delete_record_count": "position_deletes",
    "equality_delete_record_count": "equality_deletes",
    "delete_file_path": "delete_file",
    "content_offset": "offset",
    "file_path": "delete_file",
}
#: Columns with locations. The rows of a table are named after the first of these columns that the table has.
_LOCATIONS = ("file_path", "path", "location", "file", "manifest")
_MORE_LOCATIONS = ("referenced_data_file", "referenced_file", "delete_file_path", "manifest_list")
#: Tables in which a different column provides the names: vectors may share a Puffin file, so each is named after the
#: file or manifest to which it applies.
_NAMED_BY = {"deletion_vectors": "referenced_data_file", "manifest_deletion_vectors": "manifest"}
_UUID = r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_CODES: dict[str, dict[int, str]] = {
    "content": {0: "data", 1: "position deletes", 2: "equality deletes"},
    "content_type": {kind.value: kind.name.lower().replace("_", " ") for kind in ContentType},
    "status": {status.value: status.name.lower() for status in Status},
}
#: Codes in the column ``content`` of the tables of manifests.
_MANIFEST_CONTENT = {0: "data", 1: "deletes"}


def essentials(name: str, table: pa.Table, state: TableState) -> pa.Table:
    """Return the essential columns of a metadata table, without those that are null in all rows.

    Parameters
    ----------
    name
        The table's name, as in ``t.inspect``.
    table
        The whole table.
    """
    columns: dict[str, AnyArray | AnyChunkedArray] = {}
    for field in table.schema:
        if field.name == "data_file":
            file = _one(table[field.name])
            columns |= {part.name: pc.struct_field(file, part.name) for part in field.type}
        else:
            columns[field.name] = table[field.name]
    if name.endswith("manifests"):
        columns |= _manifest_counts(table)
    if name == "snapshots":
        columns["change"] = _changes(table)
    if "partition" in columns:
        specs = columns.get("spec_id", columns.get("partition_spec_id"))
        columns["partition"] = partition_texts(_one(columns["partition"]), specs, state.metadata)
    codes = {**_CODES, "content": _MANIFEST_CONTENT} if name.endswith("manifests") else _CODES
    for key in codes.keys() & columns.keys():
        columns[key] = _words(_one(columns[key]), codes[key])
    if "content" in columns and "content_offset" in columns:
        columns["content"] = pc.if_else(pc.is_valid(columns["content_offset"]), "deletion vector", columns["content"])
    named = _NAMED_BY.get(name, next((key for key in _LOCATIONS if key in columns), None))
    if named is not None:
        columns = {"name": short_names(columns.pop(named)), **columns}
    for key in (*_LOCATIONS, *_MORE_LOCATIONS):
        if key in columns:
            columns[key] = short_names(columns[key])
    plain = [key for key, values in columns.items() if not pa.types.is_nested(values.type)]
    shown = [key for key in _COLUMNS.get(name, plain) if key in columns]
    filled = [key for key in shown if columns[key].null_count < table.num_rows or not table.num_rows]
    short = _SHORT if name in _COLUMNS else {}
    return build.table({short.get(key, key): _to_seconds(columns[key]) for key in filled})


def _one(column: AnyArray | AnyChunkedArray) -> AnyArray:
    return whole(column) if isinstance(column, pa.ChunkedArray) else column


def _to_seconds(column: AnyArray | AnyChunkedArray) -> AnyArray | AnyChunkedArray:
    """Return times without fractions of a second, other values unchanged."""
    if not pa.types.is_timestamp(column.type):
        return column
    made: AnyArray | AnyChunkedArray = column.cast(pa.timestamp("s", column.type.tz), safe=False)
    return made


def short_names(locations: AnyArray | AnyChunkedArray) -> AnyArray:
    """Return the file names of locations, with UUIDs cut to eight digits unless names would then be ambiguous."""
    names = pc.replace_substring_regex(_one(locations), r"^.*/", "")
    short = pc.replace_substring_regex(names, _UUID, r"\1…")
    made: AnyArray = short if len(short.unique()) == len(names.unique()) else names
    return made


def _words(values: AnyArray, names: dict[int, str]) -> AnyArray:
    """Return codes as words; a code that has no name becomes its digits."""
    codes = values.dictionary_encode()
    words = [None if code is None else names.get(code, str(code)) for code in build.to_pylist(codes.dictionary)]
    made: AnyArray = pa.array(words, pa.string()).take(codes.indices)
    return made


def _manifest_counts(table: pa.Table) -> dict[str, AnyChunkedArray]:
    """Return each manifest's file counts by status: of data files or delete files, as a manifest has only one kind."""
    return {
        what: pc.add(table[f"{what}_data_files_count"], table[f"{what}_delete_files_count"])
        for what in ("added", "existing", "deleted")
    }


def _changes(table: pa.Table) -> AnyArray:
    rows = zip(build.to_pylist(table["operation"]), build.to_pylist(table["summary"]), strict=True)
    texts = [" · ".join(snapshot_change(operation, dict(summary or ())).words()) for operation, summary in rows]
    return pa.array(texts, pa.string())


def tuple_texts(tuples: pa.StructArray | None, specs: AnyArray, metadata: TableMetadata) -> AnyArray:
    """Return partition tuples of manifest entries as text; like `partition_texts`, but the fields are named by id."""
    return partition_texts(partition_union(metadata).of_tuples(tuples, len(specs)), specs, metadata)


def partition_texts(values: AnyArray, specs: AnyArray | AnyChunkedArray | None, metadata: TableMetadata) -> AnyArray:
    """Return partition tuples as text, ``kind=guest, day=2024-05-01``, with only the fields of each tuple's spec.

    Parameters
    ----------
    values
        The tuples, with fields named as in the metadata tables, or as in a single spec.
    specs
        The id of each tuple's spec; None if it is unknown.
    """
    union = partition_union(metadata)
    columns = metadata.schema().by_id()
    ids = dict(zip((field.name for field in union.type), union.ids, strict=True))
    ids |= {f.name: f.field_id for s in metadata.partition_specs for f in s.fields if f.name not in ids}
    parts = []
    for field in values.type:
        field_id = ids.get(field.name)
        fields = [(spec.spec_id, f) for spec in metadata.partition_specs for f in spec.fields if f.field_id == field_id]
        fields = [(spec_id, f) for spec_id, f in fields if not parse_transform(f.transform).is_void]
        if not fields:
            continue
        owners, own = [spec_id for spec_id, _ in fields], fields[-1][1]
        source = columns.get(own.source_id) if own.source_ids else None
        column: AnyArray = pc.struct_field(values, field.name)
        text: AnyArray
        if source is not None and pa.types.is_integer(field.type):  # months, hours and the like
            kind = parse_transform(own.transform).result_type(source[1].type)
            codes = column.dictionary_encode()
            texts = [human_value(kind, own.transform, value) for value in build.to_pylist(codes.dictionary)]
            text = pa.array(texts, pa.string()).take(codes.indices)
        else:
            text = column.cast(pa.string())
        text = pc.binary_join_element_wise(field.name, pc.fill_null(text, "null"), "=")
        if specs is not None:
            is_own = pc.is_in(_one(specs), value_set=pa.array(owners, pa.int32()))
            text = pc.if_else(is_own, text, pa.scalar(None, pa.string()))
        parts.append(text)
    if not parts:
        return pa.nulls(len(values), pa.string())
    return join_texts(parts, ", ")
