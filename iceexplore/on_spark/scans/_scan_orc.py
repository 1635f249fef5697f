"""What an ORC file holds physically, and whether plain Spark reads it as Iceberg means it (spec, "ORC").

Spark's reader finds ORC's columns by name and gives no row index: files with rows deleted by position, and scans that
show places or row ids, go to the workers. So do files with a timestamp of a zone, whose type's name Spark 4.1 cannot
parse; columns of timestamps without one, which it would move by the zone of the machine that reads them; and dates,
since it takes those before 1582-10-15 for days of the Julian calendar, which Iceberg's writer does not mean.
"""

from __future__ import annotations

import re

import pyarrow as pa

from iceexplore.formats import field_id
from iceexplore.on_spark.scans._nodes import ORC, Node, children_of

__all__ = ["orc_nodes"]

#: Columns that are all called so are taken by their place (``OrcUtils.requestedColumnIds``).
_PLACED = "_col"
#: What needs no quotes in ORC's own text of a schema, by which Spark tells it what to read.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def orc_nodes(schema: pa.Schema) -> tuple[Node, ...] | None:
    """The columns of an ORC file; None where plain Spark does not read it."""
    nodes = tuple(_node(f) for f in schema)
    if not nodes or all(n.name.startswith(_PLACED) for n in nodes) or not all(_plain(n) for n in nodes):
        return None
    return nodes


def _node(f: pa.Field) -> Node:
    children = tuple(_node(c) for c in children_of(f.type))
    if pa.types.is_struct(f.type):
        kind: pa.DataType = pa.struct([n.field() for n in children])
    elif pa.types.is_map(f.type):
        kind = pa.map_(children[0].field().with_nullable(False), children[1].field())
    elif pa.types.is_list(f.type):
        kind = pa.list_(children[0].field())
    else:
        kind = f.type
    return Node(f.name, kind, "" if children else ORC, children, field_id(f))


def _plain(node: Node, *, named: bool = True) -> bool:
    """Whether Spark can parse a column's type and name, and all in it; what is in lists and maps has no name."""
    if pa.types.is_timestamp(node.kind) and node.kind.tz is not None:
        return False
    if named and not _PLAIN.fullmatch(node.name):
        return False
    return all(_plain(c, named=pa.types.is_struct(node.kind)) for c in node.children)
