"""The detail pane: facts, problems and tables of one node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iceexplore.errors import OptionError
from iceexplore.graph import TableState, TreeNode, format_ms, human_bytes, json_safe, travel
from iceexplore.render import style

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TableKey", "detail_of", "load_table", "tables_of"]

_MAX_FACTS = 60
_MAX_PROBLEMS = 30


@dataclass(frozen=True)
class TableKey:
    """A table of a node: what it is called in `iceexplore.inspect` or here, and on its tab."""

    key: str
    title: str


_MANIFEST_COUNTS = (
    "added_files_count",
    "existing_files_count",
    "deleted_files_count",
    "added_rows_count",
    "existing_rows_count",
    "deleted_rows_count",
    "file_size_in_bytes",
    "sequence_number",
)
_FILES = {"data-file", "position-delete", "equality-delete", "deletion-vector"}
_TABLES: dict[str, tuple[TableKey, ...]] = {
    "table": (
        TableKey("snapshots", "Snapshots"),
        TableKey("refs", "Refs"),
        TableKey("schemas", "Schemas"),
        TableKey("specs", "Specs"),
        TableKey("properties", "Properties"),
        TableKey("history", "History"),
    ),
    "metadata": (
        TableKey("schemas", "Schemas"),
        TableKey("specs", "Specs"),
        TableKey("sort_orders", "Sort orders"),
        TableKey("metadata_log_entries", "Metadata log"),
    ),
    "snapshot": (
        TableKey("manifests", "Manifests"),  # first: it costs no more than the tree
        TableKey("files", "Files"),
        TableKey("partitions", "Partitions"),
        TableKey("entries", "Entries"),
    ),
    "manifest-list": (TableKey("manifests", "Manifests"), TableKey("content_entries", "Content entries")),
    "root-manifest": (
        TableKey("leaf", "Entries"),  # first: it costs no more than the tree
        TableKey("manifests", "Manifests"),
        TableKey("manifest_deletion_vectors", "Manifest DVs"),
        TableKey("content_entries", "Content entries"),
    ),
    "manifest-dv": (TableKey("removed", "Removed entries"),),
    "data-manifest": (TableKey("leaf", "Entries"),),
    "delete-manifest": (TableKey("leaf", "Entries"),),
    "statistics": (TableKey("puffin_blobs", "Puffin blobs"),),
    **dict.fromkeys(_FILES, (TableKey("columns", "Columns"),)),
}


_ENTRY = ("record_count", "file_size_in_bytes", "sequence_number")
#: The fields that are seen at once; the others are one click away.
_FIRST: dict[str, tuple[str, ...]] = {
    "table": ("format-version", "last-sequence-number", "current-snapshot-id"),
    "metadata": ("last-updated-ms", "snapshots", "refs", "schemas", "partition-specs", "current-schema-id"),
    "snapshot": (
        "timestamp-ms",
        "operation",
        "sequence-number",
        "total-data-files",
        "total-records",
        "total-delete-files",
        "total-files-size",
        "added-data-files",
        "deleted-data-files",
        "added-records",
        "deleted-records",
    ),
    "data-manifest": (*_MANIFEST_COUNTS, "removed_entries", "status", "snapshot_id"),
    "delete-manifest": (*_MANIFEST_COUNTS, "removed_entries", "referenced_file", "status", "snapshot_id"),
    "manifest-dv": ("record_count", "status", "referenced_file", "size_in_bytes", "offset", "snapshot_id"),
    **dict.fromkeys(_FILES, (*_ENTRY, "status", "removed_by", "snapshot_id", "referenced_file")),
}


def tables_of(node: TreeNode) -> tuple[TableKey, ...]:
    """The tables of a node, the one to show first coming first."""
    if node.id.startswith("metadata:"):  # an earlier metadata file: known by name, not read
        return ()
    return _TABLES.get(node.kind, ())


def load_table(state: TableState, node: TreeNode, key: str) -> pd.DataFrame:
    """A table of a node as a data frame.

    Raises
    ------
    OptionError
        The node has no such table.
    """
    if key not in {t.key for t in tables_of(node)}:
        raise OptionError(f"{node.kind} {node.label!r} has no table {key!r}")
    if key == "leaf":
        from iceexplore.widgets._leaf import leaf_table

        return leaf_table(state, node)
    if key == "removed":
        from iceexplore.widgets._leaf import removed_table

        return removed_table(state, node)
    if key == "columns":
        from iceexplore.widgets._leaf import column_table

        return column_table(state, node)
    from iceexplore.inspect import Inspect

    parts = node.id.split(":")
    if parts[0] in ("snapshot", "root", "statistics"):
        state = travel(state, snapshot=int(parts[1]))
    frame: pd.DataFrame = getattr(Inspect(state), key)()
    return frame


def detail_of(node: TreeNode) -> dict[str, Any]:
    """What the detail pane shows of a node, JSON-safe."""
    facts = [(name, text) for name, text in _facts(node) if text][:_MAX_FACTS]
    first = [f for name in _FIRST.get(node.kind, ()) for f in facts if f[0] == name]
    if not first:
        first = facts[:6]
    rest = [f for f in facts if f not in first]
    problems = [
        {
            "severity": p.severity,
            "title": p.title,
            "text": json_safe(p.text),
            "evidence": json_safe(
                " · ".join(f"{k} {v}" for k, v in (("found", p.found), ("expected", p.expected)) if v is not None)
            ),
            "advice": p.advice,
        }
        for p in node.problems[:_MAX_PROBLEMS]
    ]
    return {
        "id": node.id,
        "kind": node.kind,
        "kind_title": " · ".join([style(node.kind).title, *sorted(node.marks - {"folded", "problem"})]),
        "title": json_safe(node.label[:400]),
        "path": json_safe(node.location or "")[:2000],
        "facts": [[json_safe(name), json_safe(text)] for name, text in first],
        "more": [[json_safe(name), json_safe(text)] for name, text in rest],
        "problems": problems,
        "tables": [{"key": t.key, "title": t.title} for t in tables_of(node)],
    }


def _facts(node: TreeNode) -> list[tuple[str, str]]:
    out: list[tuple[str, str]] = []
    for name, value in node.fields.items():
        if value is None or value == node.location or name in ("properties", "committed"):
            continue
        if name == "partitions":
            out += [(p["name"], _range(p)) for p in value]
        elif isinstance(value, Mapping):
            out += [(k, _text(k, v)) for k, v in value.items() if v is not None]
        else:
            out.append((name, _text(name, value)))
    return out


def _range(partition: Mapping[str, Any]) -> str:
    lower, upper = partition["lower_bound"], partition["upper_bound"]
    if lower is None and upper is None:
        return "null" if partition["contains_null"] else "?"
    text = f"{lower}" if lower == upper else f"{lower} – {upper}"
    return f"{text} or null" if partition["contains_null"] else text


def _text(name: str, value: Any) -> str:
    """A field's value for people; ids and sequence numbers stay plain digits."""
    words = name.replace("_", "-")
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 16:
        value = int(value)  # summaries are strings
    if isinstance(value, bool) or not isinstance(value, int):
        text = str(json_safe(value)) if not isinstance(value, str) else value
        return text[:1000]
    if words.endswith("-ms"):
        return format_ms(value)
    if words.endswith(("id", "version")) or "sequence" in words:
        return str(value)
    if "size" in words or words == "length":
        return human_bytes(value)
    return f"{value:,}"
