"""Simulated tables, and what their commits write and plans read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import iceexplore as ix
from iceexplore.commits import plan_cost
from iceexplore.manifests import live
from iceexplore.table import Simulation, Table

__all__ = ["LAYOUTS", "columns_of", "costs", "footer", "live_rows", "planned", "sizes", "table", "written"]

#: The three layouts that most experiments compare.
LAYOUTS: dict[str, dict[str, Any]] = {
    "v3": {"format_version": 3},
    "V4, Parquet": {"format_version": 4, "manifest_format": "parquet"},
    "V4, Avro": {"format_version": 4, "manifest_format": "avro"},
}


def columns_of(count: int) -> dict[str, str]:
    """Return a schema of so many columns: a key, a time, two strings, and numbers."""
    first = {"id": "long", "ts": "timestamp", "region": "string", "user": "string"}
    chosen = dict(list(first.items())[:count])
    return chosen | {f"measure_{i}": "double" for i in range(count - len(chosen))}


def table(seed: int, columns: int = 10, *, with_statistics: int | None = None, **given: Any) -> Simulation:
    """Return an empty table; only the first so many columns get statistics (by default all of them)."""
    schema = columns_of(columns)
    properties = {} if with_statistics is None else {"write.metadata.metrics.default": "none"}
    for name in list(schema)[: with_statistics or 0]:
        properties[f"write.metadata.metrics.column.{name}"] = "truncate(16)"
    properties |= given.pop("properties", {})
    return ix.empty(schema, seed=seed, properties=properties, **given)


def written(s: Simulation, since: int = 0) -> tuple[float, float]:
    """Return the mean of what commits wrote: bytes without the table's JSON, and PUTs including the JSON's."""
    made = s.cost().commits.iloc[since:]
    return float((made.metadata_bytes - made.json_bytes).mean()), float(made.metadata_files.mean())


def planned(t: Table) -> dict[str, dict[str, float]]:
    """Return what a cold and a warm plan without a filter read: bytes without the JSON's, and GETs including it."""
    cost = plan_cost(t.state)
    return {
        name: {"bytes": sum(f.size for f in files if f.kind != "metadata"), "requests": len(files)}
        for name, files in (("cold", cost.cold), ("warm", cost.warm))
    }


def costs(s: Simulation, since: int = 0) -> Iterator[tuple[str, str, float]]:
    """Yield what commits wrote, and what plans of the last snapshot read: metric, unit and value."""
    size, puts = written(s, since)
    yield "written by a commit", "bytes", size
    yield "PUTs of a commit", "requests", puts
    for name, plan in planned(s).items():
        yield f"{name} plan", "bytes", plan["bytes"]
        yield f"{name} plan, GETs", "requests", plan["requests"]
    root = sizes(s)["manifest-list"]
    yield "root or list", "bytes", root


def sizes(s: Simulation) -> dict[str, int]:
    """Return the bytes of the last commit's files by kind."""
    number = s._sandbox.records[-1].number
    found: dict[str, int] = {}
    for write in s.writes:
        if write.commit == number:
            found[write.kind] = found.get(write.kind, 0) + write.length
    return found


def footer(s: Simulation) -> bytes:
    """Return the footer of the root, a Parquet file, with its length and magic; nothing of an Avro root."""
    root = s.state.root()
    assert root is not None
    data = s.state.storage.read(root.location, kind="manifest-list")
    return data[-8 - int.from_bytes(data[-8:-4], "little") :] if data[-4:] == b"PAR1" else b""


def live_rows(t: Table) -> list[Mapping[str, Any]]:
    """Return the live rows of the snapshot's root or manifest list, without statistics."""
    root = t.state.root()
    assert root is not None
    names = ["content_type", "status", "location", "referenced_file", "file_size_in_bytes"]
    return list(root.entries.filter(live(root.entries)).select(names).to_pylist())
