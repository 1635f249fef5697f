"""Which data files a filter takes wholly, and which perhaps in part: by tuples and statistics, no data is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.commits._evidence import Evidence
from iceexplore.commits._filter import Filter, make_filter, row_evidence
from iceexplore.commits._locate import live_manifests, readable
from iceexplore.errors import RuleError
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, Manifest, concat_batches, live
from iceexplore.metadata import PartitionSpec, arrow_type, decode_values, partition_type

__all__ = ["Selection", "refuse_straddling", "select"]

_PARTS = frozenset({"entries", "partition", "stats"})


@dataclass(frozen=True)
class Selection:
    """The live data files that a filter concerns.

    Attributes
    ----------
    filter
        What was asked.
    whole
        Files all of whose rows match, and that may have rows at all.
    part
        Files of which some rows may match, and not surely all: reading them would tell.
    skipped, read
        Manifests that the root ruled out, and those that were read.
    """

    filter: Filter
    whole: EntryBatch
    part: EntryBatch
    skipped: int
    read: int

    @property
    def text(self) -> str:
        """The filter, for people."""
        return self.filter.text


def select(state: TableState, where: Any = None, partition: Any = None) -> Selection:
    """Find the data files that match a filter, as far as metadata tells.

    Parameters
    ----------
    where, partition
        See `make_filter`; without either every file matches.

    Raises
    ------
    OptionError
        The filter cannot be parsed or does not fit the schema.
    """
    wanted = make_filter(state.metadata, state.schema, where, partition)
    whole, part = [], []
    root = state.root()
    if root is None:
        return Selection(wanted, EntryBatch.empty(), EntryBatch.empty(), 0, 0)
    rows = np.array(live_manifests(readable(root).entries, {ContentType.DATA_MANIFEST}), dtype=np.int64)
    kept = rows[np.asarray(_may_hold(state, root, rows, wanted))]
    direct = state.reader.direct(root)
    parts = _PARTS if wanted.field_ids else frozenset({"entries", "partition"})
    leaves = state.reader.leaves(root, kept.tolist(), parts=parts) if len(kept) else ()
    for leaf in (*([] if direct is None else [direct]), *leaves):
        batch = EntryBatch.of(readable(leaf), wanted.field_ids)
        mine = pc.and_(live(leaf.entries), pc.equal(leaf.entries["content_type"], int(ContentType.DATA)))
        mine = mine.combine_chunks() if isinstance(mine, pa.ChunkedArray) else mine
        may, must = wanted.judge(batch, state.metadata)
        whole.append(batch.filter(pc.and_(mine, must)))
        part.append(batch.filter(pc.and_(mine, pc.and_(may, pc.invert(must)))))
    return Selection(wanted, concat_batches(whole), concat_batches(part), len(rows) - len(kept), len(kept))


def refuse_straddling(selection: Selection) -> None:
    """Refuse a selection of which a file may match in part only.

    Raises
    ------
    RuleError
        ``whole-files``.
    """
    if not len(selection.part):
        return
    names = selection.part.entries["location"].slice(0, 3).to_pylist()
    count = len(selection.part)
    raise RuleError(
        "whole-files",
        f"{count} file{'s' if count > 1 else ''} may have rows that match {selection.text} beside rows that do not, "
        f"as {', '.join(names)}: metadata cannot delete part of a file. Use row_delta, or a filter of whole files",
    )


def _may_hold(state: TableState, root: Manifest, rows: np.ndarray[Any, Any], wanted: Filter) -> pa.BooleanArray:
    """Which of a root's manifests may hold a matching file: by partition summaries, or by the root's own statistics."""
    may = np.ones(len(root), dtype=bool)
    specs = np.asarray(pc.fill_null(root.entries["partition_spec_id"], -1))
    for number in np.unique(specs[rows]).tolist():
        at = rows[specs[rows] == number]
        spec = state.metadata.spec(number)
        if spec is None:
            continue  # nobody knows what its tuples mean
        fields = _summaries(state, root, at, spec) or _derived(state, root, at, spec)

        def by_column(field_id: int, at: np.ndarray[Any, Any] = at) -> Evidence | None:
            return _aggregate(root, field_id, at)

        may[at] = np.asarray(wanted.may_leaves(len(at), state.metadata, spec, fields.get, by_column))
    return pa.array(may[rows])


def _aggregate(root: Manifest, field_id: int, at: np.ndarray[Any, Any]) -> Evidence | None:
    """A V4 root's statistics of a column or an expression, for some of its rows."""
    found = root.stats(field_id)
    known = (found.value_count, found.lower, found.null_count)
    if found.type is None or not any(a.is_valid().true_count for a in known):
        return None
    arrays = (found.lower, found.upper, found.value_count, found.null_count, found.nan_count)
    return Evidence(*(a.take(pa.array(at)) for a in arrays))


def _derived(state: TableState, root: Manifest, at: np.ndarray[Any, Any], spec: PartitionSpec) -> dict[str, Evidence]:
    """Evidence by partition field id from a V4 root: identity fields have their column's, others their expression's."""
    out = {}
    for f in spec.fields:
        same = (
            e.expr_id for e in state.metadata.expressions if (e.source_ids, e.transform) == (f.source_ids, f.transform)
        )
        number = f.source_id if f.transform == "identity" else next(same, None)
        found = None if number is None else _aggregate(root, number, at)
        if found is not None:
            out[str(f.field_id)] = found
    return out


def _summaries(state: TableState, root: Manifest, at: np.ndarray[Any, Any], spec: PartitionSpec) -> dict[str, Evidence]:
    """The partition summaries of some rows as evidence by partition field id; a manifest without them knows nothing."""
    column = root.entries["partition_summaries"].take(pa.array(at)).combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(column), 0)
    there = np.asarray(pc.equal(lengths, len(spec.fields)))
    if not spec.fields or not there.any():
        return {}
    flat = column.filter(pa.array(there)).flatten()
    places = np.cumsum(there) - 1
    out = {}
    for i, (f, typed) in enumerate(zip(spec.fields, partition_type(spec, state.metadata).fields, strict=True)):
        mine = flat.take(pa.array(np.arange(i, len(flat), len(spec.fields))))
        children = {child.name: pc.struct_field(mine, [j]) for j, child in enumerate(mine.type)}
        bounds = []
        for name in ("lower_bound", "upper_bound"):
            values, _ = decode_values(typed.type, children[name])
            bounds.append(values)
        spread = pa.array(places, mask=~there)
        arrays = [a.take(spread) for a in (*bounds, children["contains_null"], children["contains_nan"])]
        if pa.types.is_null(arrow_type(typed.type)):
            continue
        out[str(f.field_id)] = row_evidence(*arrays)
    return out
