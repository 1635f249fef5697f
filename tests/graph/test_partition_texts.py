"""Partition texts of whole manifests, against one entry at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.graph import TableState
from iceexplore.graph._partition_text import KnownTexts, partition_texts
from iceexplore.manifests import EntryBatch, Manifest, concat_batches
from iceexplore.metadata import parse_transform, result_type


def one_by_one(leaf: Any, metadata: Any) -> list[str]:
    """Return the texts as the transforms format each value of each entry."""
    columns, out = metadata.all_fields(), []
    tuples = leaf.partition()
    rows = [{}] * len(leaf) if tuples is None else tuples.to_pylist()
    for spec_id, values in zip(leaf.entries["partition_spec_id"].to_pylist(), rows, strict=True):
        words = []
        for f in metadata.spec(spec_id).fields:
            transform = parse_transform(f.transform)
            if not transform.is_void:
                kind = result_type(f.transform, columns[f.source_ids[0]][1].type)
                words.append(f"{f.name}={transform.to_human_string(kind, values[str(f.field_id)])}")
        out.append("/".join(words))
    return out


def leaves(state: TableState) -> list[Manifest]:
    root = state.root()
    assert root is not None
    return list(state.reader.leaves(root))


def test_texts_are_those_of_each_entry() -> None:
    state = ix.sample("trips").state
    known: KnownTexts = {}
    for leaf in leaves(state):
        expected = one_by_one(leaf, state.metadata)
        assert partition_texts(leaf, state.metadata).to_pylist() == expected
        assert partition_texts(leaf, state.metadata, known).to_pylist() == expected
    assert known


class Mixed:
    """The entries of several manifests as one, in another order, with the fields of all specs, as V4 allows."""

    def __init__(self, leaves: list[Any]) -> None:
        batch = concat_batches(EntryBatch.of(leaf, []) for leaf in leaves)
        self.batch = batch.take(np.random.default_rng(1).permutation(len(batch)))
        self.entries = self.batch.entries

    def __len__(self) -> int:
        return len(self.batch)

    def partition(self) -> pa.StructArray | None:
        return self.batch.partition


def test_entries_of_several_specs_have_the_fields_of_their_own() -> None:
    state = ix.sample("trips").state
    mixed: Any = Mixed(leaves(state))
    texts = partition_texts(mixed, state.metadata).to_pylist()
    assert len(set(mixed.entries["partition_spec_id"].to_pylist())) > 1
    assert texts == one_by_one(mixed, state.metadata)


def test_equal_values_keep_their_own_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    table = ix.sample("trips")
    state = table.state
    leaf = next(leaf for leaf in leaves(state) if leaf.entries["partition_spec_id"][0].as_py() == 0)
    spec = state.metadata.spec(0)
    assert spec is not None
    field = spec.fields[0]
    values = np.resize([0.0, -0.0], len(leaf))
    tuples = pa.StructArray.from_arrays([pa.array(values)], names=[str(field.field_id)])
    monkeypatch.setattr(leaf, "partition", lambda: tuples)
    monkeypatch.setattr(type(parse_transform(field.transform)), "to_human_string", lambda self, kind, v: str(v))
    assert set(partition_texts(leaf, state.metadata).to_pylist()) == {f"{field.name}=0.0", f"{field.name}=-0.0"}
