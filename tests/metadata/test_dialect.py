"""What the dialects and format versions have."""

from __future__ import annotations

from dataclasses import replace

import pytest

import iceexplore as ix
from iceexplore.metadata import Dialect, has_nanosecond_timestamps


def test_a_dialect_equals_its_name() -> None:
    assert Dialect("v4-draft") is Dialect.V4_DRAFT
    assert sorted([Dialect.V2, "v2"]) == ["v2", "v2"]
    assert str(Dialect.V4_JAVA) == "v4-java"
    assert not Dialect.UNKNOWN


def test_what_each_dialect_has() -> None:
    has = {d: (d.is_published, d.has_root_manifest, d.typed_stats, d.deletion_vectors_on_entries) for d in Dialect}
    assert has == {
        Dialect.UNKNOWN: (False, False, False, False),
        Dialect.INLINE: (False, False, False, False),
        Dialect.V1: (True, False, False, False),
        Dialect.V2: (True, False, False, False),
        Dialect.V3: (True, False, False, False),
        Dialect.V4_JAVA: (False, False, False, False),
        Dialect.V4_PROPOSAL: (False, True, True, False),
        Dialect.V4_DRAFT: (False, True, True, True),
    }


@pytest.mark.parametrize(
    ("version", "deletes", "vectors", "lineage", "roots", "nanoseconds"),
    [
        (1, False, False, False, False, False),
        (2, True, False, False, False, False),
        (3, True, True, True, False, True),
        (4, True, True, True, True, True),
    ],
)
def test_what_each_version_has(
    version: int, deletes: bool, vectors: bool, lineage: bool, roots: bool, nanoseconds: bool
) -> None:
    m = replace(ix.sample("trips").metadata, format_version=version)
    assert (m.has_deletes, m.has_deletion_vectors, m.has_row_lineage) == (deletes, vectors, lineage)
    assert (m.may_have_root_manifests, has_nanosecond_timestamps(version)) == (roots, nanoseconds)


def test_manifests_have_a_dialect() -> None:
    table = ix.sample("trips")
    root = table.state.root()
    assert root is not None
    assert root.dialect is Dialect.V3
    assert {leaf.dialect for leaf in table.state.leaves()} <= {Dialect.V1, Dialect.V2, Dialect.V3}
