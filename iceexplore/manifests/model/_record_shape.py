"""Shapes of manifest records: the field ids of each struct, in one table per shape.

Some ids mean different things in different shapes (146 to 149, 520, 521), so the shape is determined first, for the
whole file, from its top-level fields. Then every field is identified by its id and the struct that contains it. Names
are used only for files without any ids; there, statistics cannot be identified, as their names are those of columns.
Iceberg spec, "Manifests" and "Manifest Lists"; V4 proposal, "V4 content entry structure" (both of its tables); V4
draft, ``TrackedFile``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from iceexplore.manifests.model._field_ids import (
    DRAFT_NAMES,
    DRAFT_STRUCTS,
    FILE_NAMES,
    LIST_NAMES,
    MANIFEST_ENTRY_NAMES,
    PROPOSAL_NAMES,
    PROPOSAL_STRUCTS,
    SUMMARY_NAMES,
    stats_of,
)

__all__ = ["PARTITION", "Peek", "STATS", "Shape", "TOP", "shape_of"]

#: Names of structs whose children become columns.
TOP, FILE, PARTITION, STATS = "0", "2", "102", "stats"


@dataclass(frozen=True)
class Peek:
    """The facts about a top-level field that determine the shape: id and name and, for a struct, its children's."""

    field_id: int | None
    name: str
    is_struct: bool = False
    child_ids: frozenset[int] = frozenset()
    child_names: frozenset[str] = frozenset()
    holds_structs: bool = False


@dataclass(frozen=True)
class Shape:
    """One shape of records.

    Attributes
    ----------
    name
        ``list``, ``entry`` (v1-v3 manifests), ``v4-proposal``, ``v4-draft``, or empty for any other file.
    structs
        The structs whose children become columns: (enclosing struct, field id) -> the struct's name.
    names
        Field ids by name, per struct, for files without any id.
    """

    name: str
    structs: Mapping[tuple[str, int], str] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @property
    def is_v4(self) -> bool:
        """True if rows are content entries of V4."""
        return self.name.startswith("v4")

    def opened(self, parent: str, field_id: int | None, holds_structs: bool) -> str | None:
        """Return the struct's name if its children become columns, else None."""
        if field_id is None:
            return None
        if parent == STATS:
            found = stats_of(field_id)
            return None if found is None or found[1] != 0 else f"{STATS}:{found[0]}"
        inside = self.structs.get((parent, field_id))
        if inside == STATS and field_id == 10_000 and not holds_structs:
            return None  # this is the struct for statistics of column 0, not the one for all columns
        return inside

    def column(self, parent: str, field_id: int | None, position: int) -> str:
        """Return the name of a field's column; a column whose name begins with ``x`` is only skipped."""
        if parent == PARTITION:
            return f"p{position if field_id is None else field_id}"
        if field_id is None:
            return f"x{parent.replace(':', '_')}_{position}"
        if parent.startswith(STATS):
            found = stats_of(field_id)
            if found is None or found[1] == 0 or parent != f"{STATS}:{found[0]}":
                return f"x{parent.replace(':', '_')}_{position}"
            return f"c{found[0]}_{found[1]}"
        if self.is_v4 and parent != TOP:
            return f"f{parent}_{field_id}"
        return f"f{field_id}"


LIST = Shape("list", {}, {TOP: LIST_NAMES, "507": SUMMARY_NAMES})
ENTRY = Shape("entry", {(TOP, 2): FILE, (FILE, 102): PARTITION}, {TOP: MANIFEST_ENTRY_NAMES, FILE: FILE_NAMES})
PROPOSAL = Shape("v4-proposal", PROPOSAL_STRUCTS, PROPOSAL_NAMES)
DRAFT = Shape("v4-draft", DRAFT_STRUCTS, DRAFT_NAMES)
UNKNOWN = Shape("")


def shape_of(fields: Sequence[Peek], has_ids: bool) -> Shape:
    """Return the shape of records with these top-level fields."""
    if not has_ids:
        return _by_names(fields)
    by_id = {f.field_id: f for f in reversed(fields) if f.field_id is not None}
    structs = {f.field_id: f for f in fields if f.is_struct}
    if 500 in by_id:
        return LIST
    if 2 in structs:
        return ENTRY
    # 147 is `tracking` in the draft. In the proposal it is either an int or `deletion_vector`, without a child 0.
    if 147 in structs and 0 in structs[147].child_ids:
        return DRAFT
    return PROPOSAL if 134 in by_id and 100 in by_id else UNKNOWN


def _by_names(fields: Sequence[Peek]) -> Shape:
    names = {f.name: f for f in fields}
    if "manifest_path" in names:
        return LIST
    if "data_file" in names and names["data_file"].is_struct:
        return ENTRY
    if "tracking" in names and names["tracking"].is_struct:
        return DRAFT
    return PROPOSAL if "location" in names and names.keys() & {"content_type", "type"} else UNKNOWN
