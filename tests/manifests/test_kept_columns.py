"""Statistics cached by column: the same as from the maps, without decoding these again, and never what is damaged."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.manifests import EntryBatch, Manifest, _reader
from iceexplore.manifests.column_stats import _kept_columns
from iceexplore.manifests.decode._file import Source
from iceexplore.storage import CACHE

COUNTS = {"null_value_counts": [{"key": 1, "value": 13}, {"key": 2, "value": 0}]}
PARTS = frozenset({"entries", "partition", "stats"})


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small manifests are treated like large ones, and few like many."""
    monkeypatch.setattr(_kept_columns, "_LEAST_ROWS", 0)
    monkeypatch.setattr(_reader, "_FEW", 0)
    monkeypatch.setattr(_reader.ManifestReader, "_are_many", lambda self, root, sizes: True)
    monkeypatch.setattr("iceexplore.manifests.decode._file.BULK_BYTES", 0)


def filled(table: Any, make: Any) -> None:
    """Three manifests of four entries, of which the last but one has a wrong count in column 1."""
    entry, listed = make("entry"), []
    for n in range(3):
        entries = [entry(10 * n + i, **(COUNTS if i == 2 else {})) for i in range(4)]
        listed.append(make("listed")(table.manifest(f"{n}.avro", entries)))
    table.snapshot(*listed)


def read(reader: Any, columns: Any) -> list[dict[int, Any]]:
    root = reader.root(reader.metadata.snapshots[-1])
    leaves = reader.leaves(root, parts=PARTS, columns=columns)
    return [{s.field_id: s for s in leaf.stats_of([1, 2])} for leaf in leaves]


def decoded(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    seen: list[set[str]] = []
    decode = Source._decode

    def noting(self: Source, names: set[str], least: str) -> Any:
        seen.append(set(names))
        return decode(self, names, least)

    monkeypatch.setattr(Source, "_decode", noting)
    return seen


def test_columns_are_those_of_the_maps_and_decoded_once(table: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(table, make)
    with monkeypatch.context() as without:
        without.setattr(_kept_columns, "_MOST_COLUMNS", -1)
        expected = read(table.reader(), None)
    CACHE.clear()
    seen = decoded(monkeypatch)
    reader = table.reader()
    first = read(reader, {1, 2})
    assert sum("stats" in names for names in seen) == 3
    assert not any(key[-1] == "stats" for key in CACHE._items)
    seen.clear()
    again = read(table.reader(), {1, 2})
    assert seen == [], "neither entries nor statistics"
    for made in (first, again):
        for leaf, wanted in zip(made, expected, strict=True):
            for field_id, stats in wanted.items():
                for f in fields(stats):
                    one, other = getattr(leaf[field_id], f.name), getattr(stats, f.name)
                    assert one.equals(other) if hasattr(one, "equals") else one == other, f.name
    read(table.reader(), {1, 2, 3})
    assert sum("stats" in names for names in seen) == 3, "another column needs the maps"


def test_contradictions_are_reported_to_each_reader(table: Any, make: Any) -> None:
    filled(table, make)
    for _ in range(2):
        reader = table.reader()
        read(reader, {1, 2})
        assert {p.code for p in reader.problems} == {"count-mismatch"}


def test_statistics_that_cannot_be_read_are_not_cached(table: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(table, make)
    part = Manifest._part
    monkeypatch.setattr(Manifest, "_part", lambda self, name: None if name == "stats" else part(self, name))
    monkeypatch.setattr(_reader, "MapStats", None)  # not even by the threads that read ahead
    monkeypatch.setattr(_reader.ManifestReader, "_are_many", lambda self, root, sizes: False)
    found = read(table.reader(), {1, 2})
    assert all(leaf[1].lower.null_count == len(leaf[1].lower) for leaf in found)
    assert not any("column" in key for key in CACHE._items)
    monkeypatch.undo()
    assert all(leaf[1].lower.null_count == 0 for leaf in read(table.reader(), None))


def test_without_columns_no_statistics_of_v4_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ix.empty({"id": "long"}, format_version=4, seed=1, flush_data_files=0)
    made.append(3, rows=10)
    state = made.state
    CACHE.clear()
    seen = decoded(monkeypatch)
    root = state.root()
    assert root is not None
    (leaf,) = state.reader.leaves(root, parts={"entries", "partition"})
    seen.clear()
    assert EntryBatch.of(leaf, []).stats == {}
    assert seen == []
    assert len(EntryBatch.of(leaf, [1]).stats) == 1
    assert {"stats"} in seen
