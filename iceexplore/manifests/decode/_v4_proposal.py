"""Convert rows of the V4 proposal to content entries, before inheritance; most fields have the same names in both.

V4 proposal, "V4 content entry structure". Both of its tables are supported: ``partition_spec_id`` is field 148
in the first; in the second it is 147, an id that the struct ``deletion_vector`` has, too.
"""

from __future__ import annotations

import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.arrow import compute as pc
from iceexplore.errors import Problem
from iceexplore.manifests.decode._v1_v3 import entry_table
from iceexplore.manifests.model._arrow import Columns
from iceexplore.manifests.model._content_entry import ENTRY_SCHEMA, MANIFEST_STATS, ContentType
from iceexplore.manifests.model._reader_schema import ReaderSchema

__all__ = ["COUNT_IDS", "or_null", "proposal_entries"]

_IDS: dict[str, int | str] = {
    "content_type": 134,
    "location": 100,
    "file_format": 101,
    "status": "5_0",
    "snapshot_id": "5_1",
    "sequence_number": "5_3",
    "file_sequence_number": "5_4",
    "sort_order_id": 140,
    "record_count": 103,
    "file_size_in_bytes": 104,
    "referenced_file": 143,
    "key_metadata": 131,
    "split_offsets": 132,
    "equality_ids": 135,
    "first_row_id": 142,
}
#: Field ids of the children of `MANIFEST_STATS`, in the same order.
COUNT_IDS = (504, 505, 506, 512, 513, 514, 516)


def proposal_entries(table: pa.Table, reader_schema: ReaderSchema, location: str) -> tuple[pa.Table, list[Problem]]:
    """Return the entries of a root, data or delete manifest of the V4 proposal."""
    source = Columns(table, location)
    out = {name: source.get(i, ENTRY_SCHEMA.field(name).type) for name, i in _IDS.items()}
    out["partition_spec_id"] = source.get(148 if reader_schema.has(148) else 147, pa.int32())
    out["file_format"] = pc.utf8_lower(out["file_format"])
    vector = [source.get("147_144", pa.int64()), source.get("147_145", pa.int64()), source.get("147_146", pa.binary())]
    out["deletion_vector"] = or_null(vector, ENTRY_SCHEMA.field("deletion_vector").type)
    counts = [source.get(f"521_{i}", pa.int64()) for i in COUNT_IDS]
    out["manifest_stats"] = or_null(counts, MANIFEST_STATS)
    # An inline manifest DV has no file, so its location may be null or empty: use the location of its leaf.
    of_leaf = pc.equal(pc.fill_null(out["content_type"], -1), int(ContentType.MANIFEST_DV))
    if of_leaf.true_count:
        nowhere = pc.equal(pc.fill_null(out["location"], ""), "")
        out["location"] = pc.if_else(pc.and_(nowhere, of_leaf), out["referenced_file"], out["location"])
    return entry_table(len(source), out), source.problems


def or_null(children: list[AnyArray], kind: pa.StructType) -> pa.StructArray:
    """Return a struct of these children; null where all of them are null."""
    rows = len(children[0])
    if all(child.null_count == rows for child in children):
        return pa.nulls(rows, kind)
    absent = children[0].is_null()
    for child in children[1:]:
        absent = pc.and_(absent, child.is_null())
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=absent)
