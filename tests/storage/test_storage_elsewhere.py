"""A storage in another process: the same bytes, the same rules, a log of reads of its own."""

from __future__ import annotations

import pickle
from pathlib import Path

import pandas as pd
import pytest

import iceexplore as ix
from iceexplore.errors import OutsideRootsError
from iceexplore.storage import OverlayStorage


def test_a_storage_reads_the_same_in_another_process(trips: Path) -> None:
    t = ix.open(trips)
    here = t.state.storage
    there = pickle.loads(pickle.dumps(here))
    assert there.identity == here.identity
    assert there.roots == here.roots
    before = len(here.reads)
    assert there.read(t.metadata_location, kind="metadata") == here.read(t.metadata_location, kind="metadata")
    assert (len(there.reads), len(here.reads)) == (1, before + 1)
    with pytest.raises(OutsideRootsError):
        there.read("/etc/hostname", kind="other")


def test_an_overlay_reads_the_same_in_another_process() -> None:
    s = ix.empty({"id": "long"}, format_version=2)
    s.append(pd.DataFrame({"id": [1, 2]}))
    here = s.state.storage
    there = pickle.loads(pickle.dumps(here))
    assert isinstance(here, OverlayStorage)
    assert isinstance(there, OverlayStorage)
    for location in here.locations():
        assert there.read(location, kind="other") == here.read(location, kind="other")
    there.close()
    assert here.exists(s.metadata_location), "what another process closes is its own"
