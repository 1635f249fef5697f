"""Advice that is taken: the same rows written again as it says, and the same filter planned on them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import iceexplore as ix
from iceexplore.commits import empty_state
from iceexplore.planning import ScanPlan
from iceexplore.planning.advice._suggestion import Suggestion
from iceexplore.writing._frames import fit_columns

ROWS = 3600
FILES = 24


def written(
    schema: Mapping[str, str],
    rows: pa.Table,
    *,
    files: int = FILES,
    by: Sequence[str] = (),
    version: int = 2,
    properties: Mapping[str, str] | None = None,
) -> ix.Simulation:
    """The rows in about so many data files of about the same size, in their order; a partition has at least one."""
    fitted = fit_columns(rows, empty_state(schema).schema, complete=True)
    size = {"write.target-file-size-bytes": str(max(1, -(-fitted.nbytes // files)))}
    table = ix.empty(schema, partition_by=by, format_version=version, seed=1, properties=size | dict(properties or {}))
    table.append(rows)
    return table


def taken(schema: Mapping[str, str], rows: pa.Table, by: Sequence[str], advice: Suggestion) -> ix.Simulation:
    """The rows written as advice to sort or to partition says."""
    if advice.kind == "sort":
        column = rows[advice.column]  # type: ignore[index]
        plain = column.cast(pa.binary()) if pa.types.is_fixed_size_binary(column.type) else column
        order = np.asarray(pc.array_sort_indices(plain.combine_chunks(), null_placement="at_start"))
        return written(schema, rows.take(pa.array(order)), by=by)
    assert advice.kind == "partition"
    found = re.search(r"(ADD|REPLACE) PARTITION FIELD (?:(\S+) WITH )?(.+)$", advice.statements[0])
    assert found is not None
    field = re.sub(r"^(year|month|day|hour)s\(", r"\1(", found[3])
    kept = [b for b in by if found[1] == "ADD" or str(advice.column) not in b]
    return written(schema, rows, by=(*kept, field))


def read(plan: ScanPlan) -> tuple[int, int]:
    """Data files and bytes."""
    return len(plan), int(plan.totals["bytes"] or 0)


def column(name: str) -> tuple[str, pa.Array]:
    """Values of one column, by what is special about them, and their type."""
    return _columns()[name]


@cache
def _columns() -> dict[str, tuple[str, pa.Array]]:
    rng = np.random.default_rng(11)
    ids = rng.permutation(ROWS)
    words = np.array(["athens", "bern", "oslo", "paris", "rome", "vienna"])
    day = np.datetime64("2024-01-01")
    return {
        "shuffled": ("long", pa.array(ids)),
        "clustered": ("long", pa.array(np.arange(ROWS))),
        "nearly clustered": ("long", pa.array(np.argsort(np.arange(ROWS) + rng.normal(0, 120, ROWS)))),
        "half null": ("long", pa.array(ids, mask=rng.random(ROWS) < 0.5)),
        "outliers": ("double", pa.array(rng.normal(0, 1, ROWS))),
        "few numbers": ("int", pa.array(rng.integers(0, 6, ROWS), pa.int32())),
        "few texts": ("string", pa.array(words[rng.integers(0, 6, ROWS)].tolist())),
        "one frequent": ("string", pa.array([f"city-{i:03d}" for i in np.minimum(rng.zipf(1.8, ROWS), 200)])),
        "prefix": ("string", pa.array([f"user-{i:08d}" for i in ids])),
        "accented prefix": ("string", pa.array([f"üsér-{i:08d}" for i in ids])),
        "long prefix": ("string", pa.array([f"https://www.example.org/shop/{i:08d}" for i in ids])),
        "hex": ("string", pa.array([rng.bytes(16).hex() for _ in ids])),
        "uuid": ("uuid", pa.array([rng.bytes(15) + bytes([i % 251]) for i in ids], pa.binary(16))),
        "days": ("date", pa.array(day + rng.integers(0, 40, ROWS))),
        "times": ("timestamp", pa.array(day.astype("M8[us]") + rng.integers(0, 20 * 86_400 * 10**6, ROWS))),
        "decimals": ("decimal(9,2)", pa.array([Decimal(int(i)).scaleb(-2) for i in ids], pa.decimal128(9, 2))),
    }


@cache
def one_column(name: str) -> ix.Simulation:
    """A table of one column, ``x``."""
    kind, values = column(name)
    return written({"x": kind}, pa.table({"x": values}))
