"""The texts of nodes, by label style: short, full, or counts only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from iceexplore.formats import PUFFIN
from iceexplore.graph._card import human_bytes
from iceexplore.graph._root import Removed
from iceexplore.graph._snapshot_change import snapshot_change
from iceexplore.graph._travel import format_ms
from iceexplore.manifests import ContentType
from iceexplore.metadata import LINEAGE_FIELDS, Snapshot, TableMetadata
from iceexplore.render import escape, style

__all__ = [
    "Labels",
    "amount",
    "basename",
    "file_headline",
    "file_lines",
    "kind_of_entry",
    "manifest_headline",
    "manifest_lines",
    "name",
    "short_time",
    "snapshot_lines",
    "wrapped",
]

Labels = Literal["short", "full", "counts"]

#: Number of characters of a line that drawings show without truncation.
_LINE = 40


def basename(location: str | None) -> str:
    """Return the last part of a location."""
    if not location:
        return "(no location)"
    return location.rstrip("/").rpartition("/")[2] or location


def name(labels: Labels, kind: str, location: str | None) -> str:
    """Return a file's label: its name, its location, or only its kind."""
    match labels:
        case "counts":
            return style(kind).title
        case "full":
            return location or "(no location)"
        case _:
            return basename(location)


def short_time(ms: int | None) -> str:
    """Return a time as text, to the second."""
    text = format_ms(ms)
    return f"{text.partition('.')[0]} UTC" if text.endswith(" UTC") else text


def amount(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its unit: ``1 row``, ``2,000 rows``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def snapshot_lines(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the operation and time and, if the summary has them, the changes."""
    changes = snapshot_change(snapshot.operation, snapshot.summary).words()
    first = f"{snapshot.operation or 'no operation'} · {short_time(snapshot.timestamp_ms)}"
    return (first, " · ".join(changes)) if changes else (first,)


def manifest_lines(
    entry: Mapping[str, Any], labels: Labels, partitions: list[str], *, own: bool, removed: Removed
) -> tuple[str, ...]:
    """Return lines with file counts by status, rows and bytes, removals by manifest DVs, and partition ranges.

    Counts describe the manifest as written, regardless of manifest DVs. "Added" and "deleted" refer to the snapshot
    that wrote the manifest, so only nodes of that snapshot (``own``) show these counts separately.
    """
    counts, size = _manifest_counts(entry, own=own), _manifest_size(entry)
    lines = [counts, size]
    if len(lines[0]) + len(lines[1]) <= 34:
        lines = [" · ".join(filter(None, lines))]
    if removed.rows:
        stats = entry["manifest_stats"] or {}
        known = [stats.get(f"{status}_files_count") for status in ("added", "existing", "deleted")]
        total = None if None in known else sum(n for n in known if n is not None)
        count = "some" if removed.entries is None else f"{removed.entries:,}"
        vectors = "a manifest DV" if len(removed.rows) == 1 else "manifest DVs"
        what = "entry" if count == "1" and total is None else "entries"
        lines.append(f"{count}{'' if total is None else f' of {total:,}'} {what} removed by {vectors}")
    if entry["referenced_file"] and labels != "counts":
        lines.append(f"for {basename(entry['referenced_file'])}")
    if partitions and labels != "counts":
        lines += wrapped(partitions[: None if labels == "full" else 2], " · ")
    if labels == "full":
        lines.append(f"sequence {_text(entry['sequence_number'])} · added by snapshot {_text(entry['snapshot_id'])}")
    return tuple(filter(None, lines))


def manifest_headline(entry: Mapping[str, Any], *, own: bool) -> str:
    """Return one line that distinguishes a manifest from its siblings: files, rows and bytes."""
    return " · ".join(filter(None, (_manifest_counts(entry, own=own), _manifest_size(entry))))


def _manifest_counts(entry: Mapping[str, Any], *, own: bool) -> str:
    stats = entry["manifest_stats"] or {}
    parts = []
    for key, sign, word in (
        ("added_files_count", "+", "added"),
        ("existing_files_count", "", "kept"),
        ("deleted_files_count", "", "removed"),
    ):
        count = stats.get(key)
        if count is None:
            parts.append(f"? {word}")  # "assume non-zero" (spec, "Manifest Lists": field ids 504-506)
        elif count:
            parts.append(f"{sign}{count:,} {word}")
    added, existing, deleted = (stats.get(f"{s}_files_count") for s in ("added", "existing", "deleted"))
    if not own and added is not None and existing is not None and deleted is not None:
        parts = [amount(added + existing, "file")] + ([f"{deleted:,} removed earlier"] if deleted else [])
    if added is existing is deleted is None:
        parts = ["counts unknown"]
    return " · ".join(parts) or "no files"


def _manifest_size(entry: Mapping[str, Any]) -> str:
    stats = entry["manifest_stats"] or {}
    rows = [stats.get("added_rows_count"), stats.get("existing_rows_count")]
    size = entry["file_size_in_bytes"]
    parts = [] if None in rows else [amount(sum(r for r in rows if r is not None), "row")]
    return " · ".join(parts + ([] if size is None else [human_bytes(size)]))


def file_headline(
    entry: Mapping[str, Any], kind: str, metadata: TableMetadata, referenced: str | None, deleted: int | None = None
) -> str:
    """Return one line that distinguishes a file from its siblings.

    For a data file, it has rows, bytes and deleted rows; for a delete, the number of rows or keys, and the file or
    columns to which it applies.

    Parameters
    ----------
    referenced
        The single data file or manifest to which a delete applies, if it names one.
    deleted
        The deleted rows of a data file, if they are known.
    """
    count, size = entry["record_count"], entry["file_size_in_bytes"]
    if kind == "data-file":
        parts = [] if count is None else [amount(count, "row")]
        parts += [] if size is None else [human_bytes(size)]
        return " · ".join([*parts, *([f"{deleted:,} deleted"] if deleted else [])])
    number = "?" if count is None else f"{count:,}"
    if kind == "manifest-dv":
        return f"{number} removed from {basename(referenced or entry['location'])}"
    if kind == "equality-delete":
        # Each key may delete any number of rows.
        columns = ", ".join(_equality_columns(entry, metadata)) or "?"
        return f"{number} {'key' if count == 1 else 'keys'} deleted by {columns}"
    return f"{number} deleted in {basename(referenced)}" if referenced else f"{number} deleted in several files"


def _equality_columns(entry: Mapping[str, Any], metadata: TableMetadata) -> list[str]:
    columns = metadata.all_fields()
    return [columns[i][0] if i in columns else f"#{i}" for i in entry["equality_ids"] or []]


def _column_files(files: Sequence[Mapping[str, Any]], metadata: TableMetadata) -> str:
    """Return a line that names the columns whose newest values are in column files (V4 draft)."""
    columns = metadata.all_fields()
    ids = dict.fromkeys(i for one in files for i in one["field_ids"] or ())
    names = ", ".join(columns[i][0] if i in columns else f"#{i}" for i in ids if i not in LINEAGE_FIELDS)
    size = sum(one["file_size_in_bytes"] or 0 for one in files)
    count = amount(len(files), "column file")
    return escape.shorten(f"{count} · {human_bytes(size)} · newer values of {names}", 2 * _LINE)


def file_lines(
    entry: Mapping[str, Any],
    kind: str,
    labels: Labels,
    partition: Mapping[str, str],
    metadata: TableMetadata,
    referenced: str | None,
    deleted: int | None = None,
) -> tuple[str, ...]:
    """Return partition, rows, bytes and deleted rows and, for a delete, the file or the scope that it applies to."""
    counts = []
    if entry["record_count"] is not None and kind == "manifest-dv":
        counts.append(amount(entry["record_count"], "entry", "entries") + " removed")
    elif entry["record_count"] is not None:
        deletes = kind in ("deletion-vector", "position-delete")
        counts.append(amount(entry["record_count"], "deleted row" if deletes else "row"))
    vector = entry["deletion_vector"]
    if vector and vector["inline_content"] is not None:
        counts.append(f"{len(vector['inline_content']):,} B inline")
    elif vector and vector["size_in_bytes"] is not None:
        counts.append(f"{vector['size_in_bytes']:,} B at byte {_text(vector['offset'])}")
    elif entry["file_size_in_bytes"] is not None:
        counts.append(human_bytes(entry["file_size_in_bytes"]))
    if deleted:
        counts.append(f"{deleted:,} deleted")
    text = " · ".join(counts)
    if labels == "counts":
        lines = [text]
    else:
        pairs = [f"{k}={v}" for k, v in partition.items()]
        lines = [*wrapped(pairs, ", "), text]
        if len(lines) == 2 and len(lines[0]) + len(text) <= _LINE - 3:
            lines = [" · ".join(lines)]
    if kind == "equality-delete":
        names = _equality_columns(entry, metadata)
        lines += [f"where {', '.join(names) or '?'} is equal", _scope(entry, metadata, equality=True)]
    elif kind == "manifest-dv":
        lines.append(f"in {basename(referenced or entry['location'])}")
    elif kind in ("position-delete", "deletion-vector"):
        lines.append(f"in {basename(referenced)}" if referenced else _scope(entry, metadata, equality=False))
    if entry.get("column_files"):
        lines.append(_column_files(entry["column_files"], metadata))
    if labels == "full":
        lines.append(f"sequence {_text(entry['sequence_number'])} · snapshot {_text(entry['snapshot_id'])}")
    return tuple(filter(None, lines))


def wrapped(parts: list[str], between: str) -> list[str]:
    """Join parts into lines of at most `_LINE` characters, if possible."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(between) + len(part) <= _LINE:
            lines[-1] += between + part
        else:
            lines.append(part)
    return lines


def _scope(entry: Mapping[str, Any], metadata: TableMetadata, *, equality: bool) -> str:
    """Return the scope of a delete without a referenced file (spec, "Scan Planning").

    An equality delete applies to the data files with a smaller data sequence number in its partition, or in all
    partitions if its spec is unpartitioned. A position delete applies to the data files in its partition with the same
    or a smaller sequence number.
    """
    spec = metadata.spec(entry["partition_spec_id"]) if entry["partition_spec_id"] is not None else None
    everywhere = spec is not None and spec.is_unpartitioned
    where = "" if everywhere and not equality else (", all partitions" if everywhere else ", same partition")
    return f"in files of sequence {'<' if equality else '≤'} {_text(entry['sequence_number'])}{where}"


def _text(value: object) -> str:
    return "?" if value is None else f"{value}"


def kind_of_entry(entry: Mapping[str, Any]) -> str:
    """Return the node kind of a content entry."""
    match entry["content_type"]:
        case ContentType.DATA_MANIFEST:
            return "data-manifest"
        case ContentType.DELETE_MANIFEST:
            return "delete-manifest"
        case ContentType.MANIFEST_DV:
            return "manifest-dv"
        case ContentType.EQUALITY_DELETE:
            return "equality-delete"
        case ContentType.POSITION_DELETE:
            # Spec, "Deletion Vectors": a vector is stored in a Puffin file, and found by its offset and size.
            vector = entry["deletion_vector"] or {}
            is_vector = any(v is not None for v in vector.values()) or entry["file_format"] == PUFFIN.name
            return "deletion-vector" if is_vector else "position-delete"
        case _:
            return "data-file"
