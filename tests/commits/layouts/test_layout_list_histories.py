"""Random histories against a model in plain Python: which files and deletes are live, with which numbers."""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iceexplore.commits import Change
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, Status
from tests.helpers.sampling import one_of
from tests.helpers.tables.list_table import ListLab, batch, entry, live_rows

Key = tuple[str, str | None]  # location, and of a DV its data file
KINDS = ["a", "b", None]


@dataclass
class Row:
    """A live file of the model."""

    content: int
    kind: str | None
    rows: int
    size: int
    sequence: int
    file_sequence: int
    snapshot: int = 0
    equality: bool = False


@dataclass
class Model:
    """What the table holds."""

    version: int
    sequence: int = 0
    live: dict[Key, Row] = field(default_factory=dict)

    def data(self) -> list[str]:
        return [k[0] for k, r in self.live.items() if r.content == ContentType.DATA]

    def dvs(self) -> dict[str, Key]:
        return {k[1]: k for k in self.live if k[1] is not None}

    def commit(self, added: dict[Key, Row], gone: list[Key]) -> None:
        self.sequence += 1
        given = [r.sequence for r in added.values() if r.sequence and r.content == ContentType.DATA]
        gone = list(gone)
        for key in list(gone):
            if self.live[key].content == ContentType.DATA and key[0] in self.dvs():
                gone.append(self.dvs()[key[0]])
        for key in set(gone):
            del self.live[key]
        if gone:
            data = [r.sequence for r in self.live.values() if r.content == ContentType.DATA]
            oldest = min([self.sequence - 1, *data, *given])
            self.live = {k: r for k, r in self.live.items() if r.content == 0 or r.sequence >= oldest}
        for key, row in added.items():
            row.sequence, row.file_sequence = row.sequence or self.sequence, self.sequence
            self.live[key] = row


OPERATIONS = ["append", "append", "delete", "overwrite", "rows", "rows", "equality", "compact", "merge", "drop deletes"]


@pytest.mark.parametrize("version", one_of(2, [2, 3, 4]))
@given(data=st.data())
@settings(max_examples=15)
def test_random_histories(version: int, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spec = data.draw(st.sampled_from(["kind", "none"]))
        options: dict[str, Any] = {} if spec == "kind" else {"spec": []}
        if version == 4:
            options["manifest_format"] = data.draw(st.sampled_from(["avro", "parquet"]))
        lab = ListLab(Path(folder) / "t", version, leaf_entries=data.draw(st.integers(1, 4)), **options)
        model, number = Model(version), itertools.count()
        ids: dict[str, int] = {}
        for operation in data.draw(st.lists(st.sampled_from(OPERATIONS), min_size=3, max_size=9)):
            change, added, gone = _change(operation, model, data, number, spec == "kind")
            state = lab.commit(change)
            model.commit(added, gone)
            _compare(state, model, spec == "kind")
            if version >= 3:
                _row_ids(state, ids)


def _change(
    operation: str, model: Model, data: st.DataObject, number: Any, partitioned: bool
) -> tuple[Change, dict[Key, Row], list[Key]]:
    files = model.data()
    some = data.draw(st.lists(st.sampled_from(files), unique=True, max_size=3)) if files else []
    added: dict[Key, Row] = {}
    entries: list[dict[str, Any]] = []

    def new(content: ContentType, kind: str | None, *, of: str | None = None, sequence: int = 0, **more: Any) -> None:
        name = f"{content.name}-{next(number)}"
        rows, size = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 99))
        dv = {"offset": 4, "size_in_bytes": size} if of else None
        given = sequence or None
        entries.append(
            entry(
                name,
                rows,
                1000 if dv else size,
                content_type=int(content),
                deletion_vector=dv,
                referenced_file=of,
                sequence_number=given,
                **more,
            )
        )
        added[(name, of)] = Row(int(content), kind, rows, size, sequence, 0)

    def kind_of(name: str | None = None) -> str | None:
        if not partitioned:
            return None
        return data.draw(st.sampled_from(KINDS)) if name is None else model.live[(name, None)].kind

    def made(what: Any, **more: Any) -> Change:
        kinds = [r.kind for r in added.values()] if partitioned else None
        return Change(what, batch(entries, kinds), **more)

    if operation == "append":
        for _ in range(data.draw(st.integers(1, 5))):
            new(ContentType.DATA, kind_of())
        return made("append"), added, []
    if operation == "delete":
        return Change("delete", remove_data=tuple(some)), {}, [(f, None) for f in some]
    if operation == "overwrite":
        new(ContentType.DATA, kind_of())
        return made("overwrite", remove_data=tuple(some)), added, [(f, None) for f in some]
    if operation == "rows":
        before = model.dvs()
        for name in some:
            of = name if model.version >= 3 else None
            new(ContentType.POSITION_DELETE, kind_of(name), of=of)
        replaced = [before[f] for f in some if f in before]
        return made("delete", replace_dvs=tuple(k[1] or "" for k in replaced)), added, replaced
    if operation == "equality":
        new(ContentType.EQUALITY_DELETE, kind_of(), equality_ids=[1])
        return made("delete"), added, []
    if operation == "compact" and some:
        least = min(model.live[(f, None)].sequence for f in some)
        new(ContentType.DATA, kind_of(some[0]), sequence=data.draw(st.sampled_from([0, least])))
        return made("replace", remove_data=tuple(some)), added, [(f, None) for f in some]
    if operation == "drop deletes":
        others = [k for k, r in model.live.items() if r.content != 0 and k[1] is None]
        picked = data.draw(st.lists(st.sampled_from(others), unique=True, max_size=2)) if others else []
        return Change("replace", remove_deletes=tuple(k[0] for k in picked)), {}, picked
    return Change("replace", rewrite_manifests=True), {}, []


def _compare(state: TableState, model: Model, partitioned: bool) -> None:
    assert len(state.problems) == 0  # the state is strict, too: any error would have been raised
    found = live_rows(state)
    keys = [(r["location"], r["referenced_file"] if r["deletion_vector"] else None) for r in found]
    assert sorted(keys, key=str) == sorted(model.live, key=str)
    for key, row in zip(keys, found, strict=True):
        expected = model.live[key]
        row_facts = (row["content_type"], row["record_count"], row["sequence_number"], row["file_sequence_number"])
        assert row_facts == (expected.content, expected.rows, expected.sequence, expected.file_sequence), key
        assert row["kind"] == expected.kind
    root = state.root()
    assert root is not None
    for ordinal, manifest in enumerate(root.entries.to_pylist()):
        (leaf,) = state.leaves(rows=[ordinal])
        rows = leaf.entries.to_pylist()
        stats = manifest["manifest_stats"]
        for status in (Status.ADDED, Status.EXISTING, Status.DELETED):
            mine = [r for r in rows if r["status"] == status]
            assert stats[f"{status.name.lower()}_files_count"] == len(mine)
            assert stats[f"{status.name.lower()}_rows_count"] == sum(r["record_count"] for r in mine)
            assert status != Status.DELETED or {r["snapshot_id"] for r in mine} <= {manifest["snapshot_id"]}
        alive = [r["sequence_number"] for r in rows if r["status"] != Status.DELETED]
        assert stats["min_sequence_number"] == min(alive, default=manifest["sequence_number"])
        assert alive or manifest["snapshot_id"] == state.metadata.current_snapshot_id
    _compare_totals(state, model)


def _compare_totals(state: TableState, model: Model) -> None:
    assert state.snapshot is not None and state.snapshot.summary is not None
    rows = model.live.values()
    kinds = {c: [r for r in rows if r.content == c] for c in (0, 1, 2)}
    expected = {
        "total-data-files": len(kinds[0]),
        "total-records": sum(r.rows for r in kinds[0]),
        "total-delete-files": len(kinds[1]) + len(kinds[2]),
        "total-position-deletes": sum(r.rows for r in kinds[1]),
        "total-equality-deletes": sum(r.rows for r in kinds[2]),
        "total-files-size": sum(r.size for r in rows),
    }
    assert {k: int(state.snapshot.summary[k]) for k in expected} == expected


def _row_ids(state: TableState, ids: dict[str, int]) -> None:
    """Never given twice, never changed, all below next-row-id."""
    spans = []
    for row in live_rows(state, ContentType.DATA):
        first = row["first_row_id"]
        assert ids.setdefault(row["location"], first) == first
        spans.append((first, first + row["record_count"]))
    spans.sort()
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))
    assert not spans or spans[-1][1] <= (state.metadata.next_row_id or 0)
