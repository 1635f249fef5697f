"""A node of the tree: a table, file, snapshot, ref or manifest with its fields, to display or send to a widget."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import Any
from urllib.parse import quote, unquote

from iceexplore.arrow import PlainValue
from iceexplore.errors import Problem
from iceexplore.graph.tree._labels import basename
from iceexplore.render import CellBlock, Mark, SceneNode, style
from iceexplore.storage import JsonValue

__all__ = ["NodeId", "TreeNode", "json_safe"]

#: The largest integer that JavaScript holds exactly.
_SAFE_INTEGER = 2**53 - 1


@dataclass(frozen=True)
class NodeId:
    """Builds and parses the ids of nodes.

    Ids are derived from what they identify, so they are the same in every tree of the table:
    ``table``, ``metadata``, ``metadata:3`` (third entry of the metadata log), ``ref:main``, ``snapshot:17``,
    ``root:17`` (that snapshot's manifest list), ``statistics:17:0``, ``manifest:17:2`` (row 2 of root 17),
    ``file:17:2:5`` (row 5 of that manifest), ``file:17:4`` (a file in the root itself), ``more:...`` and
    ``carried:17`` (what is folded under a node).
    """

    kind: str
    parts: tuple[int, ...] = ()
    name: str = ""

    @staticmethod
    def ref(name: str) -> str:
        """Return the id of a branch or tag; its name is percent-encoded."""
        return "ref:" + quote(name, safe="", errors="surrogatepass")

    @classmethod
    def parse(cls, text: str) -> NodeId | None:
        """Return the parsed id; None if it is invalid or, like the id of a fold, means something in one tree only."""
        kind, _, rest = text.partition(":")
        if kind == "ref":
            return cls("ref", (), unquote(rest, errors="surrogatepass"))
        try:
            parts = tuple(int(p) for p in rest.split(":")) if rest else ()
        except ValueError:
            return None
        lengths = {
            "table": (0,),
            "metadata": (0, 1),
            "snapshot": (1,),
            "root": (1,),
            "statistics": (2,),
            "manifest": (2,),
            "file": (2, 3),
        }
        return cls(kind, parts) if len(parts) in lengths.get(kind, ()) else None


@dataclass(frozen=True)
class TreeNode:
    """One node of a tree.

    Attributes
    ----------
    id
        Derived from what it identifies: see `NodeId`.
    kind
        ``table``, ``metadata``, ``branch``, ``tag``, ``snapshot``, ``statistics``, ``manifest-list``,
        ``root-manifest``, ``data-manifest``, ``delete-manifest``, ``manifest-dv``, ``data-file``,
        ``position-delete``, ``equality-delete``, ``deletion-vector``, or ``more`` for folded nodes.
    label, lines, badge
        The texts that a drawing shows; not escaped.
    marks
        ``added``, ``removed``, ``carried``, ``problem``, ``folded``.
    parent
        The id of its parent; None for the table.
    fields
        Its fields, by their names in the spec.
    location
        The file, as the table spells it.
    problems
        The problems found in it so far.
    child_count
        The number of its children; None if that requires reading a file that has not been read.
    cells
        For a fold, cells that represent the folded nodes, one or several nodes each; None for other nodes.
    headline, partition
        For a file or manifest, two texts: what distinguishes it from its siblings, and its partition (or partition
        ranges).
    partition_key
        Identifies the partition of a file: spec and values; None if it is not known.
    """

    id: str
    kind: str
    label: str
    level: int
    parent: str | None
    lines: tuple[str, ...] = ()
    badge: str | None = None
    marks: frozenset[Mark] = frozenset()
    fields: Mapping[str, Any] = field(default_factory=dict)
    location: str | None = None
    problems: tuple[Problem, ...] = ()
    child_count: int | None = 0
    cells: CellBlock | None = field(default=None, repr=False)
    headline: str = ""
    partition: str = ""
    partition_key: str | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"TreeNode(id={self.id!r}, kind={self.kind!r}, label={self.label!r})"

    @property
    def size(self) -> int | None:
        """The size in bytes of an entry's file, or of its blob; None for other nodes."""
        vector = (self.fields.get("deletion_vector") or {}).get("size_in_bytes")
        size = self.fields.get("file_size_in_bytes") if vector is None else vector
        return size if isinstance(size, int) else None

    @property
    def own_label(self) -> str:
        """The label; a deletion vector is named after its data file, because vectors may share a Puffin file."""
        target = self.fields.get("referenced_file")
        is_named = self.kind == "deletion-vector" and target and self.label == basename(self.location)
        return f"DV of {basename(target)}" if is_named else self.label

    def scene_node(self) -> SceneNode:
        """Return the node in the form that renderers take."""
        tooltip = [self.location or self.label, *self.lines, *(f"! {p.text}" for p in self.problems[:5])]
        lines = self.lines
        if self.own_label != self.label:
            target = f"in {basename(self.fields['referenced_file'])}"
            lines = tuple(self.label if line == target else line for line in lines)
        return SceneNode(
            id=self.id,
            kind=self.kind,
            label=self.own_label,
            lines=lines,
            badge=self.badge,
            marks=self.marks,
            parent=self.parent,
            level=self.level,
            tooltip="\n".join(tooltip),
            size=self.size,
            cells=self.cells,
            count=self.child_count or 1,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON; snapshot ids and integers beyond 2⁵³ become strings, as JavaScript has no exact int64."""
        return {
            "id": json_safe(self.id),
            "kind": self.kind,
            "title": style(self.kind).title,
            "label": json_safe(self.label),
            "lines": json_safe(self.lines),
            "badge": json_safe(self.badge),
            "marks": sorted(self.marks),
            "parent": json_safe(self.parent),
            "level": self.level,
            "location": json_safe(self.location),
            "child_count": self.child_count,
            "fields": json_safe(self.fields),
            "problems": [json_safe(p.to_dict()) for p in self.problems],
        }


def json_safe(value: PlainValue, *, key: str = "") -> JsonValue:
    """Return a value that any JSON reader accepts, and JavaScript without losing digits."""
    match value:
        case None | bool():
            return value
        case int():
            is_snapshot = key.replace("_", "-").endswith("snapshot-id")
            return str(int(value)) if is_snapshot or abs(value) > _SAFE_INTEGER else int(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return value.encode("utf-8", "backslashreplace").decode("utf-8")  # UTF-8 has no lone surrogates
        case bytes() | bytearray() | memoryview():
            head = bytes(value[:64]).hex()
            return f"0x{head}{'…' if len(value) > 64 else ''} ({len(value)} bytes)"
        case datetime() | date() | time():
            return value.isoformat()
        case Mapping():
            return {json_safe(str(k)): json_safe(v, key=str(k)) for k, v in value.items()}
        case Sequence() | set() | frozenset():
            return [json_safe(v, key=key) for v in value]
        case _:
            return json_safe(str(value))
