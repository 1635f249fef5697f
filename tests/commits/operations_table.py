"""A sandbox on an empty table, for the tests of operations."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from iceexplore.commits import Change, CommitWriter, LayoutOptions, Sandbox, new_table_document
from iceexplore.graph import TableState, open_state
from iceexplore.manifests import ContentType, live
from iceexplore.metadata import Snapshot

SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "kind", "type": "string", "required": False},
        {"id": 3, "name": "x", "type": "double", "required": False},
        {"id": 4, "name": "ts", "type": "timestamptz", "required": False},
    ],
}
BY_KIND: list[dict[str, Any]] = [{"source-id": 2, "field-id": 1000, "transform": "identity", "name": "kind"}]
NOW = 1_715_000_000_000


def table(
    folder: Path,
    version: int = 2,
    *,
    schema: Mapping[str, Any] = SCHEMA,
    spec: Sequence[Mapping[str, Any]] = (),
    properties: Mapping[str, str] | None = None,
    **more: Any,
) -> TableState:
    """An empty table on disk."""
    document = new_table_document(
        format_version=version, location=str(folder), schema=schema, partition_spec=spec, properties=properties,
        timestamp_ms=NOW,
    )  # fmt: skip
    document.update(more)
    (folder / "metadata").mkdir(parents=True)
    (folder / "metadata" / "v1.metadata.json").write_text(json.dumps(document))
    return open_state(str(folder))


def sandbox(folder: Path, version: int = 2, *, options: Mapping[str, Any] | None = None, **more: Any) -> Sandbox:
    """A sandbox on an empty table; its seed makes it repeatable."""
    return Sandbox(table(folder, version, **more), LayoutOptions.of(version, **(options or {})), seed=1)


class Commits:
    """A sandbox, with the change of each commit kept."""

    def __init__(self, box: Sandbox) -> None:
        self.box = box
        self.changes: list[Change] = []

    @property
    def state(self) -> TableState:
        return self.box.state

    def run(self, operation: Any, *args: Any, **how: Any) -> Snapshot:
        def make(writer: CommitWriter) -> Change:
            change: Change = operation(writer.base, writer, *args, **how)
            self.changes.append(change)
            return change

        snapshot = self.box.commit(make)
        assert snapshot is not None
        return snapshot

    @property
    def change(self) -> Change:
        """The last one."""
        return self.changes[-1]

    @property
    def written(self) -> int:
        return len(list(self.box.storage.writes))

    def entries(self, *kinds: ContentType) -> list[dict[str, Any]]:
        """Live entries of the state, data files by default."""
        out = []
        root = self.state.root()
        if root is None:
            return []
        for leaf in self.state.reader.leaves(root):
            mask = live(leaf.entries)
            for row in leaf.entries.filter(mask).to_pylist():
                if row["content_type"] in (kinds or (ContentType.DATA,)):
                    out.append(row)
        return out

    def locations(self) -> list[str]:
        return [e["location"] for e in self.entries()]


def frame(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows of `SCHEMA`: id, kind, x."""
    ids, kinds, xs = zip(*rows, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "kind": list(kinds), "x": pa.array(xs, pa.float64())})
