"""Tables of every layout with the same rows, whose data files are known row by row."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.planning import ScanPlan

Row = dict[str, Any]

SCHEMA = {"id": "long", "day": "date", "region": "string", "amount": "double"}
#: Layouts by name: format version and options. ``spread`` has everything in leaf manifests, ``root`` in the root.
LAYOUTS: dict[str, tuple[int, dict[str, Any]]] = {
    "v1": (1, {}),
    "v2": (2, {}),
    "v3": (3, {}),
    "v4-root": (4, {}),
    "v4-leaves": (4, {"flush_data_files": 1, "flush_delete_files": 1, "leaf_entries": 3, "affinity": "all"}),
    "v4-leaves-plain": (4, {"flush_data_files": 1, "flush_delete_files": 1, "leaf_entries": 3, "affinity": "none"}),
    "v4-source": (4, {"partition_storage": "source", "flush_data_files": 2}),
    "v4-avro": (4, {"manifest_format": "avro", "flush_data_files": 2}),
    "v4-java": (4, {"dialect": "v4-java"}),
}
#: Filters, and what they mean of a row.
FILTERS: dict[str, Callable[[Row], bool]] = {
    "id >= 25": lambda r: r["id"] >= 25,
    "id < 0": lambda r: False,
    "id >= 0": lambda r: True,
    "region = 'b'": lambda r: r["region"] == "b",
    "region is null": lambda r: r["region"] is None,
    "region <> 'a'": lambda r: r["region"] is not None and r["region"] != "a",
    "day = date '2024-01-03'": lambda r: r["day"] == dt.date(2024, 1, 3),
    "day >= date '2024-01-02' and region = 'a'": lambda r: r["day"] >= dt.date(2024, 1, 2) and r["region"] == "a",
    "amount > 100 or id in (1, 2)": lambda r: r["amount"] > 100 or r["id"] in (1, 2),
    "not (region = 'a' or id < 20)": lambda r: (r["region"] or "a") != "a" and r["id"] >= 20,
    "region like 'b%'": lambda r: (r["region"] or "").startswith("b"),
}


def rows_of(n: int) -> list[Row]:
    """Ten rows of a day, of the regions a, b and none."""
    regions = ("a", "b", None)
    return [
        {"id": 10 * n + i, "day": dt.date(2024, 1, 1 + n), "region": regions[i % 3], "amount": 1.5 * (10 * n + i)}
        for i in range(10)
    ]


def frame(rows: list[Row]) -> pd.DataFrame:
    """Rows as a data frame."""
    return pd.DataFrame(rows)


def filled(layout: str, *, partition_by: Any = ("day(day)", "region"), appends: int = 5) -> ix.Simulation:
    """A table of five days, an append each; where the version has them with deletes."""
    version, options = LAYOUTS[layout]
    table = ix.empty(SCHEMA, partition_by=partition_by, format_version=version, seed=7, **options)
    for n in range(appends):
        table.append(frame(rows_of(n)))
    return table


def with_deletes(layout: str, **how: Any) -> ix.Simulation:
    """`filled`, with a position deleted in each of two files (not in version 1, which has no deletes)."""
    table = filled(layout, **how)
    if LAYOUTS[layout][0] > 1:
        files = live_files(table)
        table.row_delta(deletes={files[0]: [0], files[-1]: [1]})
    return table


def live_files(table: Any) -> list[str]:
    """Live data files, by ``inspect.entries()``."""
    entries = table.inspect.entries()
    return [
        record["file_path"]
        for status, record in zip(entries["status"], entries["data_file"], strict=True)
        if status != 2 and record["content"] == 0
    ]


def contents(table: Any) -> dict[str, list[Row]]:
    """The rows of each live data file, deleted ones too, read whole."""
    out = {}
    for name in live_files(table):
        with table.state.storage.open(name, kind="other") as stream:
            out[name] = pq.read_table(stream).to_pylist()
    return out


def planned(plan: ScanPlan) -> list[str]:
    """The data files of a plan."""
    return list(build.to_pylist(plan.files.files.entries["location"]))
