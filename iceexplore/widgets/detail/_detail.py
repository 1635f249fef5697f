"""The content of the detail pane: a node's kind, fields with their meanings, problems and tabs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from iceexplore.arrow import PlainValue
from iceexplore.graph import TableState, TreeNode, format_ms, human_bytes, json_safe
from iceexplore.render import style
from iceexplore.widgets.core._escape_text import signs, signs_of_lines
from iceexplore.widgets.detail._field_docs import (
    ENTRY_KINDS,
    help_sent,
    id_of_field,
    meaning,
    open_points,
    spec_name,
)
from iceexplore.widgets.detail._node_tables import FILES, Tab, load_table, tables_of, tabs_of
from iceexplore.widgets.detail._recorded import Recorded, recorded_of
from iceexplore.widgets.detail._table_help import dialect_of_node

__all__ = ["detail_of", "load_table", "tables_of"]

_MAX_FACTS = 60
_MAX_PROBLEMS = 30
_MAX_VALUE = 20_000


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
_ENTRY = ("record_count", "file_size_in_bytes", "sequence_number")
#: The fields shown at once; the others are one click away.
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
    **dict.fromkeys(FILES, (*_ENTRY, "status", "removed_by", "snapshot_id", "referenced_file")),
}


@dataclass(frozen=True)
class _Fact:
    """A field: its key in `TreeNode.fields`, its name in the spec, its value as text."""

    key: str
    name: str
    text: str
    partition: bool = False


def detail_of(
    node: TreeNode, state: TableState | None = None, beside: Tab | None = None, against: str = ""
) -> dict[str, Any]:
    """Return the content of the detail pane for a node, JSON-safe.

    Parameters
    ----------
    state
        The table's state, for the field names of its format version; None for those of version 3.
    beside
        The table in which the node is a row.
    against
        The id of the snapshot with which the node's snapshot is compared; empty for none.

    Returns
    -------
    dict
        ``id``, ``kind``, ``kind_title``, ``title``, ``path``; ``facts`` and ``more`` ([name, text] each); ``help`` (by
        name: meaning, section of the spec, its URL, and ids of points in ``open``); ``open`` (the points about these
        fields that the V4 proposal leaves open, by id: title, quotations, and what iceexplore does); ``problems``; and
        ``tables``, the node's tabs (key, title, of).

        If a text shows control characters as visible signs, the text to copy is a fact's third item; for the path, it
        is ``copy``. ``counted`` says whether recorded numbers were counted; where they differ, the fact has both
        numbers, and the problem is among the ``problems``. A problem of another node has that node's selection as
        ``go``.
    """
    version = 3 if state is None else state.metadata.format_version
    compared = Recorded() if state is None else recorded_of(state, node)
    facts = [_beside(f, compared.counted) for f in _facts(node, version) if f.text][:_MAX_FACTS]
    first = [f for key in _FIRST.get(node.kind, ()) for f in facts if f.key == key]
    if not first:
        first = facts[:6]
    rest = [f for f in facts if f not in first]
    problems = [
        {
            "severity": p.severity,
            "title": p.title,
            "text": signs(p.text),
            "evidence": signs(
                " · ".join(f"{k} {v}" for k, v in (("found", p.found), ("expected", p.expected)) if v is not None)
            ),
            "advice": p.advice,
            **({"go": {"node": elsewhere}} if elsewhere else {}),
        }
        for p, elsewhere in [*((p, "") for p in node.problems), *compared.problems][:_MAX_PROBLEMS]
    ]
    help_: dict[str, list[Any]] = {}
    opened: dict[str, list[Any]] = {}
    dialect = dialect_of_node(state, node) if node.kind in (*ENTRY_KINDS, "root-manifest") else None
    proposal = dialect is not None and dialect.has_root_manifest and not dialect.is_draft
    for fact in facts:
        found = meaning(node.kind, fact.name, version, partition=fact.partition, proposal=proposal)
        if found is None:
            continue
        if not fact.partition:
            found = replace(found, id=id_of_field(node.kind, fact.name, dialect))
        points = open_points(node.kind, fact.name, partition=fact.partition) if proposal else []
        help_[signs(fact.name)] = help_sent(found, points, opened)
    path = str(json_safe((node.location or "")[:2000]))
    return {
        "id": node.id,
        "kind": node.kind,
        "kind_title": " · ".join([style(node.kind).title, *sorted(node.marks - {"folded", "problem"})]),
        "title": signs(node.label[:400]),
        "path": signs(path),
        **({"copy": path} if signs(path) != path else {}),
        "facts": [_shown(f) for f in first],
        "more": [_shown(f) for f in rest],
        "help": help_,
        **({"open": opened} if opened else {}),
        **({"counted": compared.text} if compared.text else {}),
        "problems": problems,
        "tables": [{"key": t.key, "title": t.title, "of": t.of} for t in tabs_of(node, beside, against)],
    }


def _beside(fact: _Fact, counted: Mapping[str, int]) -> _Fact:
    """Return a field with its recorded and its counted number if the two differ; otherwise, the field unchanged."""
    if fact.key not in counted:
        return fact
    return replace(fact, text=f"{fact.text} recorded, {_text(fact.key, counted[fact.key])} counted")


def _shown(fact: _Fact) -> list[str]:
    text = signs_of_lines(fact.text)
    return [signs(fact.name), text, *([str(json_safe(fact.text))] if text != fact.text else [])]


def _facts(node: TreeNode, version: int) -> list[_Fact]:
    out: list[_Fact] = []

    def add(key: str, value: PlainValue) -> None:
        out.append(_Fact(key, spec_name(node.kind, key, version), _text(key, value)))

    for name, value in node.fields.items():
        if value is None or value == node.location or name in ("properties", "committed"):
            continue
        if name == "partitions":
            out += [_Fact(p["name"], p["name"], _range(p), partition=True) for p in value]
        elif name == "partition":
            out += [_Fact(k, k, _text("", v), partition=True) for k, v in value.items() if v is not None]
        elif isinstance(value, Mapping):
            for key, part in value.items():
                if part is not None:
                    add(key, part)
        else:
            add(name, value)
    return out


def _range(partition: Mapping[str, Any]) -> str:
    lower, upper = partition["lower_bound"], partition["upper_bound"]
    if lower is None and upper is None:
        return "null" if partition["contains_null"] else "?"
    text = f"{lower}" if lower == upper else f"{lower} – {upper}"
    return f"{text} or null" if partition["contains_null"] else text


def _text(name: str, value: PlainValue) -> str:
    """Return a field's value formatted for display; ids and sequence numbers stay plain digits."""
    words = name.replace("_", "-")
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 16:
        value = int(value)  # the values of summaries are strings
    if isinstance(value, bool) or not isinstance(value, int):
        text = str(json_safe(value)) if not isinstance(value, str) else value
        return text if len(text) <= _MAX_VALUE else text[: _MAX_VALUE - 1] + "…"
    if words.endswith("-ms"):
        return format_ms(value)
    if words.endswith(("id", "version")) or "sequence" in words:
        return str(value)
    if "size" in words or words == "length":
        return human_bytes(value)
    return f"{value:,}"
