"""The partition summaries of a manifest list: bounds the wrong way round, for which readers leave out manifests."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iceexplore.errors import Problem, problem
from iceexplore.manifests.model._arrow import whole
from iceexplore.metadata import TableMetadata, decode_values, partition_type, type_base

__all__ = ["summary_problems"]

#: Java's UUIDs have another order; of the rest the bounds are no values.
_UNORDERED = frozenset({"uuid", "geometry", "geography", "variant", "unknown"})


def summary_problems(location: str, entries: pa.Table, metadata: TableMetadata) -> list[Problem]:
    """510 ``lower_bound`` above 511 ``upper_bound``: a problem for each partition field, on the first such manifest."""
    out: list[Problem] = []
    summaries, ids = whole(entries["partition_summaries"]), whole(entries["partition_spec_id"])
    for spec in metadata.partition_specs:
        mine = pc.and_(pc.equal(ids, spec.spec_id), pc.equal(pc.list_value_length(summaries), len(spec.fields)))
        rows = np.flatnonzero(np.asarray(pc.fill_null(mine, False)))
        if not spec.fields or not len(rows):
            continue
        flat = summaries.take(pa.array(rows)).flatten()
        for i, field in enumerate(partition_type(spec, metadata).fields):
            if type_base(field.type) in _UNORDERED:
                continue
            one = flat.take(pa.array(np.arange(i, len(flat), len(spec.fields))))
            low, high = (decode_values(field.type, pc.struct_field(one, n))[0] for n in ("lower_bound", "upper_bound"))
            if low.null_count == len(low) or pa.types.is_null(low.type):
                continue
            above = pc.fill_null(pc.greater(low, high), False)
            if not above.true_count:
                continue
            at = pc.index(above, True).as_py()
            place = f"{location}#entry {entries['ordinal'][int(rows[at])].as_py()}"
            text = (
                f"Of partition field {field.name!r} the lower bound is above the upper one in {above.true_count} of "
                f"{len(rows)} manifests: readers that go by it leave out files, and deletes."
            )
            between = f"{low[at].as_py()} to {high[at].as_py()}"
            out.append(problem("bounds-untrue", place, text, field="507 partitions", found=between, severity="warning"))
    return out
