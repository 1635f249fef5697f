"""Compare a file's existence, size, format, row count and columns with its manifest entry; only the footer is read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from iceexplore.errors import RULES, FileMissingError, IceexploreError, Problems
from iceexplore.formats import (
    HEAD_BYTES,
    DataFile,
    FileFacts,
    ParquetLeaf,
    empty_file,
    format_of_content,
    sniff,
    unknown_content,
)
from iceexplore.graph import TableState
from iceexplore.manifests import ManifestReader
from iceexplore.metadata import LINEAGE_FIELDS, PrimitiveType, Type, name_mapping, type_base
from iceexplore.planning import stands_for
from iceexplore.reading import is_synthetic
from iceexplore.storage import RangeFile
from iceexplore.verification._findings import Checked, Place

__all__ = [
    "check_column_files",
    "check_columns",
    "check_entry",
    "check_footer",
    "quiet",
]

#: Types that are groups of columns or have several physical forms: their stored types are not checked.
_FREE = frozenset(("variant", "geometry", "geography", "unknown"))


def check_types(state: TableState, place: Place, leaves: Sequence[ParquetLeaf], out: Checked) -> None:
    """Compare each column's stored type with the types that its field has or had; files may predate a type promotion.

    If it fits none of them, readers behave differently: some fail, some cast, and some misinterpret the bytes.
    """
    known = state.metadata.schema().by_id()
    by_id: dict[int, list[ParquetLeaf]] = defaultdict(list)
    for leaf in leaves:
        number = leaf.ids[-1]
        if number is not None:
            by_id[number].append(leaf)
    for number, found in by_id.items():
        if len(found) > 1:
            paths = ", ".join(".".join(leaf.names) for leaf in found)
            text = f"{len(found)} columns of the file have the field id {number}: readers pick one of them or fail."
            out.say(place, "field-id-twice", text, field=f"field id {number}", found=paths, expected="one column")
        if number not in known:
            continue
        name, field = known[number]
        if _fits(found[0], field.type) or any(_fits(found[0], kind) for kind in _once(state, number)):
            continue
        text = f"The stored type of column {name!r} does not match its type in the table: readers fail or misread it."
        out.say(place, "stored-type", text, field=f"{name} ({number})", found=_stored(found[0]), expected=field.type)


def _once(state: TableState, number: int) -> Iterator[Type]:
    """Yield the types that a field has in any schema, because the file may be newer than the snapshot that is shown."""
    for schema in state.metadata.schemas:
        field = schema.find(number)
        if field is not None:
            yield field.type


def _fits(leaf: ParquetLeaf, kind: Type) -> bool:
    if not isinstance(kind, PrimitiveType):
        return False
    base = type_base(kind)
    if base in _FREE:
        return True
    if leaf.physical == "INT96":  # Hive's and Impala's timestamps
        return base.startswith("timestamp")
    return stands_for(leaf, kind)


def _stored(leaf: ParquetLeaf) -> str:
    """Return a stored type in Parquet's notation: ``INT64``, ``INT32 Decimal(precision=9, scale=4)``."""
    logical = dict(leaf.logical)
    name = logical.pop("Type", "None")
    size = f"[{leaf.length}]" if leaf.physical == "FIXED_LEN_BYTE_ARRAY" else ""
    more = ", ".join(f"{key}={value}" for key, value in logical.items())
    return f"{leaf.physical}{size}" + ("" if name == "None" else f" {name}" + (f"({more})" if more else ""))


def check_entry(state: TableState, place: Place, entry: Mapping[str, Any], out: Checked) -> None:
    """Compare the sequence number and first row id with the counters in the metadata file."""
    last, number = state.metadata.last_sequence_number, entry["sequence_number"]
    if number is not None and number > last:
        text = (
            "The file's sequence number is above the table's. If it is a data file, future deletes do not apply to it; "
            "if it is a delete file, it also deletes future rows."
        )
        out.say(
            place, "metadata-invalid", text, field="sequence_number", found=number,
            expected=f"at most last-sequence-number {last}",
        )  # fmt: skip
    first = entry["first_row_id"]
    if entry["content_type"] != 0 or first is None:
        return
    end, rows = state.metadata.next_row_id, max(entry["record_count"] or 0, 0)
    if first < 0 or (end is not None and first + rows > end):
        text = "Rows of the file have row ids that the table has not assigned: future rows will get the same ids."
        expected = "0 or more" if first < 0 else f"plus {rows} rows, at most next-row-id {end}"
        out.say(place, "metadata-invalid", text, field="first_row_id", found=first, expected=expected)


#: Field ids from here up are reserved (spec, "Reserved Field IDs").
_RESERVED = 2147483447


def check_footer(state: TableState, place: Place, entry: Mapping[str, Any], out: Checked) -> FileFacts | None:
    """Open a file and compare it with its entry. Return None, with a finding added, if it cannot be opened."""
    location = place.location
    try:
        # Ask the store for the size, because the entry's size is one of the things to check.
        opened = state.storage.open(location, kind="data-footer")
    except IceexploreError as error:
        out.fail(place, error)
        if is_synthetic(location):
            out.rows[-1]["text"] = "A simulation (append(files=...)) added this synthetic file: it does not exist."
        return None
    size, recorded = opened.size, entry["file_size_in_bytes"]
    try:
        with opened:
            found = _read(state, location, opened)
    except IceexploreError as error:
        if recorded is not None and size < recorded:
            text = f"The file has {size:,} bytes, its entry gives {recorded:,}; it cannot be opened: {error}"
            out.say(place, "file-truncated", text, field="file_size_in_bytes", found=size, expected=recorded)
        else:
            out.fail(place, error)
        return None
    if recorded is not None and size != recorded:
        text = (
            "The file's size differs from its manifest entry: readers that rely on the entry look for the footer in "
            "the wrong place."
        )
        out.say(place, "count-mismatch", text, field="file_size_in_bytes", found=size, expected=recorded)
    named = entry["file_format"]
    if named is not None and named != found.format:
        text = f"The file's format is {found.format}, but its manifest entry gives {named}, which readers rely on."
        out.say(place, "file-corrupt", text, field="file_format", found=found.format, expected=named)
    rows = entry["record_count"]
    # Iceberg before 0.9 imported Hive files with a record count of -1, which means unknown.
    if rows is not None and rows >= 0 and rows != found.rows:
        text = "The file's row count differs from its manifest entry: counts computed from metadata are wrong."
        out.say(place, "count-mismatch", text, field="record_count", found=found.rows, expected=rows)
    _check_offsets(place, entry["split_offsets"], found, size, out)
    return found


def check_column_files(state: TableState, place: Place, entry: Mapping[str, Any], out: Checked) -> None:
    """Check that a data file's column files (V4 draft) have as many rows as it has, and the columns in the entry."""
    rows, field = entry["record_count"], "158 column_files"
    for one in entry["column_files"] or ():
        location, size = one["location"], one["file_size_in_bytes"]
        if location is None:
            continue  # the entry is invalid, but there is no file to check
        try:
            with state.storage.open(location, kind="data-footer") as opened:
                found, real = _read(state, location, opened), opened.size
        except FileMissingError:
            continue  # t.check() reports all missing files
        except IceexploreError as error:
            out.fail(place, error, field=field)
            continue
        if rows is not None and rows >= 0 and found.rows != rows:
            rule = RULES["column-file-rows"]
            text = f"Column file {location} has {found.rows:,} rows, its data file {rows:,}: rows cannot be read. "
            text += f"Rule {rule.id} ({rule.source}): {rule.text}"
            out.say(place, "count-mismatch", text, field=field, found=found.rows, expected=rows)
        lost = sorted(set(one["field_ids"] or ()) - found.ids - LINEAGE_FIELDS.keys())
        if lost and found.ids:
            rule = RULES["column-file-there"]
            text = f"Column file {location} lacks columns that its entry lists: readers of them fail. "
            text += f"Rule {rule.id} ({rule.source}): {rule.text}"
            out.say(place, "count-mismatch", text, field=field, found=sorted(found.ids), expected=one["field_ids"])
        if size is not None and size != real:
            text = f"Column file {location} has {real:,} bytes, its entry gives {size:,}."
            out.say(place, "count-mismatch", text, field=field, found=real, expected=size)


def _read(state: TableState, location: str, opened: RangeFile) -> FileFacts:
    head = opened.read(HEAD_BYTES)
    if not head:
        raise empty_file(location)
    found = sniff(head)
    known = format_of_content(found)
    if known is None:
        raise unknown_content(location, found)
    opened.seek(0)
    return known.facts(DataFile(state.storage, location, opened, "data-footer"))


def _check_offsets(
    place: Place, offsets: Sequence[int] | None, found: FileFacts, size: int | None, out: Checked
) -> None:
    """Check 132 ``split_offsets``: ascending, within the file, and each where a known row group begins."""
    if not offsets:
        return
    wrong = None
    if any(o is None for o in offsets) or any(b <= a for a, b in pairwise(offsets)):
        wrong = "They are not ascending."
    elif offsets[0] < 0 or (size is not None and offsets[-1] >= size):
        wrong = f"They point outside the file's {size:,} bytes."
    elif found.offsets is not None and not found.offsets.issuperset(offsets):
        wrong = "At least one of them is not where a row group begins."
    if wrong is not None:
        real = None if found.offsets is None else sorted(found.offsets)
        text = f"The entry's split offsets are invalid. {wrong} Readers that split by them lose rows or fail."
        out.say(place, "split-offsets-invalid", text, field="split_offsets", found=offsets, expected=real)


def check_columns(state: TableState, place: Place, found: FileFacts, out: Checked) -> None:
    """Check the columns: field ids or a name mapping exist, all ids were assigned, and the stored types match."""
    if not found.ids:
        if found.columns and not name_mapping(state.metadata):
            text = (
                "The file has no field ids and the table has no name mapping: readers match columns by position or "
                "name, or fail."
            )
            out.say(place, "data-no-field-ids", text, field="schema.name-mapping.default")
        return
    last = state.metadata.last_column_id
    # Allow the ids of partition fields: some writers store partition values in the file under these ids.
    partition = {f.field_id for spec in state.metadata.partition_specs for f in spec.fields}
    unknown = sorted(i for i in found.ids - partition if last is not None and last < i < _RESERVED)
    if unknown:
        text = (
            "The file has field ids above the table's last-column-id: it belongs to another table, or a schema "
            "change was lost."
        )
        out.say(place, "field-id-unknown", text, field="last-column-id", found=unknown, expected=f"at most {last}")
    check_types(state, place, found.leaves, out)


def quiet(state: TableState) -> TableState:
    """Return a copy of the state whose list of problems is discarded, because the checks report them as findings."""
    problems = Problems()
    reader = ManifestReader(state.storage, state.metadata, problems)
    return replace(state, problems=problems, reader=reader)
