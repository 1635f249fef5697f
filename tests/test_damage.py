"""Damage is data: whatever byte is wrong, what can be read is shown, or one of our errors says why not."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest

import iceexplore as ix
from iceexplore._samples import sample_path

TABLES = ("snapshots", "files", "all_entries", "manifests", "partitions", "position_deletes", "puffin_blobs", "refs")


def _show_everything(t: ix.Table) -> None:
    repr(t), t._repr_html_()
    for name in TABLES:
        getattr(t.inspect, name)()
    t.tree(snapshots="all", depth="files").to_text()
    t.diff(t.snapshots[0].snapshot_id).card() if len(t.snapshots) else None
    repr(t.problems)


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("damage") / "trips"
    shutil.copytree(sample_path("trips"), path)
    return path


def _files(trips: Path) -> list[Path]:
    return sorted(p for p in trips.rglob("*") if p.is_file() and "/data/started" not in str(p))


@hypothesis.settings(
    max_examples=max(25, hypothesis.settings().max_examples // 2),
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(seed=st.integers(0, 2**32 - 1))
def test_no_damage_raises_anything_but_our_errors(trips: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = rng.choice(_files(trips))
    before = path.read_bytes()
    data = bytearray(before)
    match rng.choice(["flip", "truncate", "zero", "insert", "empty", "gone"]):
        case "flip":
            for _ in range(rng.randint(1, 8)):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        case "truncate":
            del data[rng.randrange(len(data)) :]
        case "zero":
            at = rng.randrange(len(data))
            data[at : at + 64] = bytes(len(data[at : at + 64]))
        case "insert":
            at = rng.randrange(len(data))
            data[at:at] = rng.randbytes(rng.randint(1, 100))
        case "empty":
            data.clear()
        case "gone":
            path.unlink()
    try:
        if path.exists():
            path.write_bytes(data)
        try:
            t = ix.open(trips)
            _show_everything(t)
        except ix.IceexploreError as e:
            assert str(e)  # noqa: PT017
        else:
            assert all(p.text and p.where for p in t.problems)
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize("kind", ["metadata.json", "snap-", "-m0.avro", "deletes.parquet", ".puffin"])
def test_a_missing_file_is_a_problem_on_its_node_and_strict_raises(trips: Path, kind: str) -> None:
    t = ix.open(trips)
    if kind == "metadata.json":
        path = trips / "metadata" / Path(t.metadata_location).name
    elif kind == "snap-":
        path = trips / "metadata" / Path(str(t.snapshot.manifest_list)).name  # type: ignore[union-attr]
    else:
        live = t.inspect.delete_files.arrow()["file_path"].to_pylist() + t.inspect.manifests.arrow()["path"].to_pylist()
        names = {Path(p).name for p in live}
        path = min(p for p in trips.rglob(f"*{kind}*") if p.name in names)
    data = path.read_bytes()
    path.unlink()
    try:
        if kind == "metadata.json":
            older = ix.open(trips)
            assert older.metadata_location != t.metadata_location
            return
        broken = ix.open(trips)
        _show_everything(broken)
        mine = [p for p in broken.problems if p.code == "file-missing"]
        assert mine
        assert all(path.name in p.where for p in mine)
        tree = broken.tree(snapshots="all", depth="files")
        if kind in ("snap-", "-m0.avro"):
            assert any(n.problems for n in tree.nodes)
        with pytest.raises(ix.FileMissingError, match=path.name):
            _show_everything(ix.open(trips, strict=True))
    finally:
        path.write_bytes(data)


def test_a_whole_table_has_no_problem(trips: Path) -> None:
    t = ix.open(trips)
    _show_everything(t)
    assert list(t.problems) == []
