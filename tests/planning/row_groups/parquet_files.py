"""Files and tasks made for tests of what a footer proves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

import iceexplore as ix
from iceexplore.expressions._model import Expression
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.planning import FileTasks, MatchedDeletes
from iceexplore.storage import OverlayStorage

LOCATION = "/warehouse/db/events/data/{}.parquet"


def state_of(schema: Mapping[str, Any], **how: Any) -> TableState:
    """A table without a snapshot."""
    return ix.empty(schema, **how)._state


def put(state: TableState, data: bytes, name: str = "0") -> str:
    """Write a data file beside a table."""
    storage = state.storage
    assert isinstance(storage, OverlayStorage)
    location = LOCATION.format(name)
    storage.write(location, data, kind="data-file")
    return location


def storage_of(data: bytes) -> tuple[OverlayStorage, str]:
    """One file in a storage of its own."""
    state = state_of({"x": "long"})
    location = put(state, data)
    storage = state.storage
    assert isinstance(storage, OverlayStorage)
    return storage, location


def tasks_of(locations: list[str], residual: Expression, **columns: Any) -> FileTasks:
    """A task for each file, without deletes and tuples."""
    n = len(locations)
    given = {"content_type": 0, "file_format": "parquet", "status": 1, "partition_spec_id": 0, "record_count": 10}
    files = EntryBatch.of_rows([{**given, **columns, "location": at} for at in locations])
    nothing = pa.array([[]] * n, pa.list_(pa.int32()))
    matched = MatchedDeletes(EntryBatch.empty(), pa.nulls(n, pa.int32()), nothing, nothing)
    return FileTasks(
        files, pa.nulls(n, pa.int64()), pa.repeat(pa.scalar(False), n), pa.array([0] * n, pa.int32()), (residual,),
        matched,
    )  # fmt: skip
