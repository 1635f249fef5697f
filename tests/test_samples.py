"""The sample tables: whole, small, and with the history that they are to show."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore._samples import sample_names, sample_path
from iceexplore.errors import OptionError


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def newest(folder: Path) -> dict[str, Any]:
    version = (folder / "metadata" / "version-hint.text").read_text()
    [path] = folder.glob(f"metadata/v{version}.*metadata.json")
    data = path.read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data)
    return document


def test_sample_names() -> None:
    assert sample_names() == ["delta", "trips"]


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(OptionError, match=r"no sample 'taxis'.*trips"):
        sample_path("taxis")
    with pytest.raises(OptionError):
        sample_path("../data/trips")


def test_small_and_clean(trips: Path) -> None:
    found = files(trips)
    assert sum(path.stat().st_size for path in found) <= 400_000
    assert not [path for path in found if path.name.endswith(".crc")]


def test_history_shows_what_the_format_can_do(trips: Path) -> None:
    table = newest(trips)
    assert table["format-version"] == 3
    assert table["location"] == "/tmp/warehouse/bikes/trips"
    assert len(table["snapshots"]) == 12
    assert len(table["partition-specs"]) == 3
    assert len(table["schemas"]) == 5
    assert {name: ref["type"] for name, ref in table["refs"].items()} == {
        "main": "branch", "2024-q1-audit": "tag", "promotion": "branch",
    }  # fmt: skip
    assert [entry["snapshot-id"] for entry in table["statistics"]] == [table["current-snapshot-id"]]
    totals = [int(snapshot["summary"].get("added-dvs", 0)) for snapshot in table["snapshots"]]
    assert sum(totals) > 0
    assert any(int(snapshot["summary"].get("added-position-deletes", 0)) for snapshot in table["snapshots"][:5])
    # both spellings of metadata files, and both are there to travel to
    assert {path.name for path in trips.glob("metadata/*.json")} == {
        *(f"v{n}.metadata.json" for n in range(1, 17)),
        *(f"v{n}.gz.metadata.json" for n in range(17, 24)),
    }


@pytest.mark.parametrize(("name", "message"), [("opne", "'opne'; nearest: open"), ("__wrapped__", "'__wrapped__'")])
def test_a_name_of_the_module_that_is_misspelt(name: str, message: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute {message}$"):
        getattr(ix, name)


def test_the_delta_sample_shows_what_trees_do() -> None:
    """Versions that are in the log only, a tree for every second commit, vectors of files and of manifests."""
    folder = sample_path("delta")
    assert sum(path.stat().st_size for path in files(folder)) <= 400_000
    t = ix.sample("delta")
    assert len(t.snapshots) == 12
    trees = ["/metadata/root-" in str(s.root_location) for s in t.snapshots]
    assert trees == [False, False, False, True, False, True, False, True, False, True, False, True]
    assert t.count() == t.to_arrow().num_rows == 111
    assert len(t.inspect.deletion_vectors()) == 5
    assert list(t.problems) == []
