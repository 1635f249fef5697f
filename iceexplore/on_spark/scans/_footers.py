"""Read the footers of very many files on Spark's workers."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.errors import IceexploreError
from iceexplore.graph import TableState
from iceexplore.on_spark.environment._info import SessionInfo
from iceexplore.on_spark.scans._file_schemas import Footer, Footers, footers_of, keep_footers, known_footers
from iceexplore.on_spark.transport._bundles import frame_of, parallelism
from iceexplore.on_spark.transport._errors import as_ours
from iceexplore.on_spark.transport._state import ShippedState, ship

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["footers_by"]

#: Maximum number of footers that the driver reads; if storage is fast, this takes less time than starting workers.
_MOST_HERE = 10_000
#: Tasks per worker.
_TASKS = 4
_SCHEMA = build.schema([pa.field("part", pa.int64()), pa.field("footers", pa.binary())])

_Bundle = tuple[int, Sequence[str], Sequence[int | None]]


def footers_by(session: SparkSession, info: SessionInfo) -> Footers:
    """Return a function that reads footers in this process or, if very many are not cached, on the workers."""

    def read(
        state: TableState, locations: Sequence[str], sizes: Sequence[int | None]
    ) -> list[Footer | IceexploreError]:
        out: list[Footer | IceexploreError | None] = list(known_footers(state, locations))
        left = [i for i, found in enumerate(out) if found is None]
        if len(left) <= _MOST_HERE:
            return footers_of(state, locations, sizes)
        parts = parallelism(session, info) * _TASKS
        bundles = []
        for n in range(parts):
            mine = left[n::parts]
            bundles.append((n, [locations[i] for i in mine], [sizes[i] for i in mine]))
        table = frame_of(session, bundles, _Read(ship(state)), _SCHEMA)
        with as_ours():
            rows = table.collect()
        for row in rows:
            # Pickled by `_Read`, in a worker that runs only our code.
            read_there = pickle.loads(row.footers)  # noqa: S301
            for i, found in zip(left[row.part :: parts], read_there, strict=True):
                out[i] = found
        keep_footers(state, {locations[i]: found for i in left if isinstance(found := out[i], Footer)})
        return [found for found in out if found is not None]

    return read


@dataclass(frozen=True)
class _Read:
    shipped: ShippedState

    def __call__(self, bundle: _Bundle) -> Iterator[pa.Table]:
        part, locations, sizes = bundle
        footers = pickle.dumps(footers_of(self.shipped.open(), locations, sizes))
        yield pa.Table.from_arrays([pa.array([part], pa.int64()), pa.array([footers])], schema=_SCHEMA)
