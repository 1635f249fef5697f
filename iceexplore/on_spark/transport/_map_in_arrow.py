"""``mapInArrow`` of rows whose columns have any names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["map_in_arrow"]

_Batches = Iterator[pa.RecordBatch]


def map_in_arrow(frame: DataFrame, work: Callable[[_Batches], _Batches], schema: Any) -> DataFrame:
    """``frame.mapInArrow(work, schema)``, also where a column is called ``a.b``, or has a backquote in its name.

    PySpark looks up each column by its name, and takes that for a path: the columns have plain names on their way.
    """
    names = tuple(frame.columns)
    return frame.toDF(*[f"c{i}" for i in range(len(names))]).mapInArrow(_Named(work, names), schema)


@dataclass(frozen=True)
class _Named:
    """Work on batches whose columns have their own names again."""

    work: Callable[[_Batches], _Batches]
    names: tuple[str, ...]

    def __call__(self, batches: _Batches) -> _Batches:
        return self.work(self._named(batch) for batch in batches)

    def _named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        fields = [field.with_name(name) for field, name in zip(batch.schema, self.names, strict=True)]
        return pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields, batch.schema.metadata))
