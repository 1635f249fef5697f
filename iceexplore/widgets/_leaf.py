"""The tables of a manifest and of a file: read from that manifest alone, not from the whole snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import OptionError
from iceexplore.graph import TableState, TreeNode, to_frame
from iceexplore.manifests import CONTENT_NAMES, Manifest, Status

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["column_table", "leaf_table"]

_STATUS_NAMES = {s.value: s.name for s in Status}


def leaf_table(state: TableState, node: TreeNode) -> pd.DataFrame:
    """The entries of a manifest, the telling columns first."""
    _, snapshot_id, row = node.id.split(":")
    manifest = _leaf(state, int(snapshot_id), int(row), frozenset({"entries", "partition"}))
    entries = manifest.entries
    columns: dict[str, Any] = {
        "file": pc.replace_substring_regex(entries["location"], r"^.*/", ""),
        "content": _named(entries["content_type"], CONTENT_NAMES),
        "status": _named(entries["status"], _STATUS_NAMES),
        "record_count": entries["record_count"],
        "file_size_in_bytes": entries["file_size_in_bytes"],
    }
    partition = manifest.partition()
    if partition is not None and partition.type.num_fields:
        columns["partition"] = _named_partition(state, manifest, partition)
    for name in (
        "sequence_number", "file_sequence_number", "snapshot_id", "sort_order_id", "referenced_file",
        "deletion_vector", "equality_ids", "first_row_id", "split_offsets", "file_format", "location",
    ):  # fmt: skip
        if name in ("location", "file_format") or entries[name].null_count < len(entries):
            columns[name] = entries[name]
    return to_frame(pa.table(columns))


def column_table(state: TableState, node: TreeNode) -> pd.DataFrame:
    """What a manifest says of each column of a file: sizes, counts and bounds, typed."""
    parts = [int(p) for p in node.id.split(":")[1:]]
    row = parts[-1]
    if len(parts) == 3:
        manifest = _leaf(state, parts[0], parts[1], frozenset({"entries", "stats"}))
    else:
        manifest = _root(state, parts[0])
    if not 0 <= row < manifest.entries.num_rows:
        raise OptionError(f"{manifest.location} has no entry {row}")
    fields = state.metadata.all_fields()
    records = []
    for field_id in sorted(manifest.stat_field_ids()):
        stats = manifest.stats(field_id)
        name, field = fields.get(field_id, (_RESERVED.get(field_id, f"#{field_id}"), None))
        values = {
            "value_count": stats.value_count,
            "null_count": stats.null_count,
            "nan_count": stats.nan_count,
            "column_size": stats.column_size,
            "lower": stats.lower,
            "upper": stats.upper,
        }
        record = {"id": field_id, "column": name, "type": "" if field is None else str(field.type)}
        record.update({k: None if v is None else _python(v[row]) for k, v in values.items()})
        if any(record[k] is not None for k in values):
            records.append(record)
    import pandas as pd

    frame = pd.DataFrame(
        records,
        columns=["id", "column", "type", "lower", "upper", "value_count", "null_count", "nan_count", "column_size"],
        dtype=object,
    )
    return frame.astype(dict.fromkeys(("id", "value_count", "null_count", "nan_count", "column_size"), "Int64"))


#: Columns that only files have (spec, "Reserved Field IDs").
_RESERVED = {2_147_483_546: "file_path", 2_147_483_545: "pos", 2_147_483_544: "row"}


def _root(state: TableState, snapshot_id: int) -> Manifest:
    root = state.root(state.metadata.snapshot(snapshot_id))
    if root is None:
        raise OptionError(f"snapshot {snapshot_id} of {state.name} has no manifests")
    return root


def _leaf(state: TableState, snapshot_id: int, row: int, parts: frozenset[str]) -> Manifest:
    root = _root(state, snapshot_id)
    return state.reader.leaf(root, root.entries["ordinal"][row].as_py(), parts)


def _named(values: Any, names: dict[int, str]) -> Any:
    """Numbers by their names; a number without one as it is."""
    column = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    dictionary = column.dictionary_encode()
    labels = [names.get(v, str(v)) for v in dictionary.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(dictionary.indices, pa.array(labels, pa.string())).cast(pa.string())


def _named_partition(state: TableState, manifest: Manifest, partition: Any) -> Any:
    spec = None if manifest.header.spec_id is None else state.metadata.spec(manifest.header.spec_id)
    names = {str(f.field_id): f.name for f in spec.fields} if spec else {}
    fields = [partition.field(i) for i in range(partition.type.num_fields)]
    return pa.StructArray.from_arrays(fields, [names.get(f.name, f.name) for f in partition.type])


def _python(value: Any) -> Any:
    try:
        return value.as_py()
    except (ValueError, OverflowError):  # beyond Python's calendar
        return value.value
