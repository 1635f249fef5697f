"""A table that is committed to through the V4 layout, beside a plain model of what must be live in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from iceexplore.arrow import build
from iceexplore.commits import Change, LayoutOptions, Sandbox, new_table_document
from iceexplore.graph import TableState, open_state
from iceexplore.manifests import ContentType, EntryBatch, live, stats_type

SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": False},
        {"id": 2, "name": "kind", "type": "string", "required": False},
        {"id": 3, "name": "x", "type": "double", "required": False},
    ],
}
BY_KIND = ({"source-id": 2, "field-id": 1000, "transform": "identity", "name": "kind"},)
BY_KIND_AND_BUCKET = (*BY_KIND, {"source-id": 1, "field-id": 1001, "transform": "bucket[4]", "name": "id_bucket"})
PLACE = "s3://elsewhere/data/"


def entries(rows: Sequence[Mapping[str, Any]]) -> EntryBatch:
    """Files to add: ``kind`` and ``bucket`` are partition values, ``low`` and ``high`` bounds of ``id``."""
    plain = [{k: v for k, v in r.items() if k not in ("kind", "bucket", "low", "high")} for r in rows]
    children = [
        pa.array([r.get("kind") for r in rows], pa.string()),
        pa.array([r.get("bucket") for r in rows], pa.int32()),
    ]
    of_long = stats_type(pa.int64())
    stats = [
        {
            "lower": r.get("low"),
            "upper": r.get("high"),
            "value_count": r["record_count"],
            "null_count": 0 if r.get("low") is not None else None,
        }
        for r in rows
    ]
    return EntryBatch.of_rows(
        plain,
        stats={1: pa.array(stats, of_long)},
        partition=pa.StructArray.from_arrays(children, names=["1000", "1001"]),  # type: ignore[arg-type]
    )


def data_file(name: str, *, rows: int = 10, kind: str | None = "a", low: int = 0, **more: Any) -> dict[str, Any]:
    """An entry of a data file."""
    return {
        "content_type": 0,
        "location": f"{PLACE}{name}.parquet",
        "file_format": "parquet",
        "partition_spec_id": 0,
        "record_count": rows,
        "file_size_in_bytes": 1000 + rows,
        "kind": kind,
        "bucket": sum(map(ord, name)) % 4,
        "low": low,
        "high": low + rows,
        **more,
    }


def dv(name: str, target: str, *, rows: int = 1, kind: str | None = "a", **more: Any) -> dict[str, Any]:
    """An entry of a deletion vector ``name`` for the data file ``target``."""
    return {
        "content_type": 1,
        "location": f"{PLACE}{name}.puffin",
        "file_format": "puffin",
        "partition_spec_id": 0,
        "record_count": rows,
        "file_size_in_bytes": 300,
        "referenced_file": f"{PLACE}{target}.parquet",
        "deletion_vector": {"offset": 4, "size_in_bytes": 40, "inline_content": None},
        "kind": kind,
        "bucket": sum(map(ord, target)) % 4,
        **more,
    }


def equality(name: str, *, kind: str | None = "a", **more: Any) -> dict[str, Any]:
    """An entry of an equality delete file."""
    return {
        "content_type": 2,
        "location": f"{PLACE}{name}.parquet",
        "file_format": "parquet",
        "partition_spec_id": 0,
        "record_count": 3,
        "file_size_in_bytes": 500,
        "equality_ids": [1],
        "kind": kind,
        "bucket": 0,
        **more,
    }


def path(*names: str) -> tuple[str, ...]:
    """Locations of data files (and equality deletes) by their names."""
    return tuple(f"{PLACE}{n}.parquet" for n in names)


def short(location: str | None) -> str:
    """A location as tests speak of it."""
    return "" if location is None else location.removeprefix(PLACE).rpartition(".")[0]


@dataclass
class RootLab:
    """One table in a folder, with commits on an overlay in front of it."""

    folder: Path
    version: int = 4
    spec: Sequence[Mapping[str, Any]] = BY_KIND
    options: Mapping[str, Any] = field(default_factory=dict)
    box: Sandbox = field(init=False)

    def __post_init__(self) -> None:
        document = new_table_document(
            format_version=self.version,
            location=str(self.folder),
            schema=SCHEMA,
            partition_spec=list(self.spec),
            timestamp_ms=1_700_000_000_000,
        )
        (self.folder / "metadata").mkdir(parents=True)
        (self.folder / "metadata" / "v1.metadata.json").write_text(json.dumps(document))
        self.box = Sandbox(open_state(self.folder), LayoutOptions.of(self.version, **self.options), seed=7)

    @property
    def state(self) -> TableState:
        return self.box.state

    def commit(self, operation: Any = "append", add: Iterable[Mapping[str, Any]] = (), **change: Any) -> TableState:
        """One commit; ``add`` are rows as `data_file`, `dv` and `equality` make them."""
        rows = list(add)
        made = Change(operation, added=entries(rows) if rows else EntryBatch.empty(), **change)
        self.box.commit(lambda writer: made)
        return self.box.state

    def upgraded(self, **options: Any) -> RootLab:
        """The same table, from now on committed to as V4."""
        other = object.__new__(RootLab)
        other.folder, other.version, other.spec, other.options = self.folder, 4, self.spec, options
        other.box = Sandbox(self.state, LayoutOptions.of(4, **options), seed=11)
        return other

    def written(self) -> list[tuple[str, str]]:
        """Kind and location of the files of the last commit, without the table metadata."""
        last = max(w.commit or 0 for w in self.box.storage.writes)
        return [(w.kind, w.location) for w in self.box.storage.writes if w.commit == last and w.kind != "metadata"]


def root_rows(state: TableState) -> list[tuple[str, str, str]]:
    """The root as the proposal draws it: content, name (or the target of a DV), status."""
    root = state.root()
    assert root is not None
    out = []
    for row in root.entries.to_pylist():
        kind = ContentType(row["content_type"]).name
        about = short(row["location"]) if row["content_type"] < 3 else ""
        out.append((kind, about, ("EXISTING", "ADDED", "DELETED")[row["status"]]))
    return out


def live_files(state: TableState) -> dict[str, dict[str, Any]]:
    """Live files of a state by name, as its reader finds them."""
    root = state.root()
    out: dict[str, dict[str, Any]] = {}
    if root is None:
        return out
    for leaf in state.reader.leaves(root, parts={"entries", "partition", "stats"}):
        batch = EntryBatch.of(leaf)
        tuples = [None] * len(batch) if batch.partition is None else build.to_pylist(batch.partition)
        bounds = [None] * len(batch) if 1 not in batch.stats else build.to_pylist(batch.stats[1])
        rows = batch.entries.to_pylist()
        for row, alive, values, bound in zip(rows, live(leaf.entries).to_pylist(), tuples, bounds, strict=True):
            if alive:
                name = short(row["location"])
                assert name not in out, f"{name} is live twice"
                out[name] = {**row, "tuple": values, "bounds": bound}
    return out
