"""The face of a simulation: a Table that moves, and leaves everything else where it is."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.commits import check_rules, new_table_document
from iceexplore.errors import CommitConflictError, IceexploreError, OptionError, RuleError, StorageError
from iceexplore.manifests import EntryBatch
from iceexplore.storage import CACHE


def hashes(folder: Path) -> dict[str, str]:
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.rglob("*")) if p.is_file()}


def head(t: ix.Table) -> int:
    assert t.snapshot is not None
    return t.snapshot.snapshot_id


@pytest.fixture
def folder(trips: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trips, tmp_path / "trips"))


@pytest.mark.parametrize(
    ("version", "layout"),
    [
        (3, {}),
        (4, {}),
        (4, {"dialect": "v4-java"}),
        (4, {"flush_data_files": 1, "flush_delete_files": 1, "leaf_entries": 3, "compact_leaves": 3}),
    ],
    ids=["v3", "v4", "v4-java", "v4-small"],
)
def test_every_method_is_a_commit(folder: Path, version: int, layout: dict[str, Any]) -> None:
    before = hashes(folder)
    t = ix.open(folder)
    s = t.simulate(version, seed=1, **layout)
    frozen, first = s.table, s.snapshot
    assert first is not None
    seen = [s.metadata_location]

    def made(snapshot: Any) -> Any:
        assert s.metadata_location not in seen
        seen.append(s.metadata_location)
        assert check_rules(s.state) == []
        return snapshot

    assert made(s.append(4, rows=100)).operation == "append" and s.format_version == version
    new = [p for p in s.inspect.data_files()["file_path"] if "made-up" in p]
    assert made(s.row_delta(deletes={new[0]: [0, 5], new[1]: [1]})).operation == "delete"
    assert made(s.delete_files([new[0]])).operation == "delete"
    assert made(s.overwrite(2, rows=10, delete=[new[1]])).operation == "overwrite"
    assert made(s.compact([new[2], new[3]])).operation == "replace"
    assert made(s.rewrite_manifests()).operation == "replace"
    made(s.branch("audit"))
    assert made(s.append(1, rows=1, ref="audit")).snapshot_id == s.refs["audit"].snapshot_id != head(s)
    made(s.append(1, rows=7))
    made(s.cherry_pick("audit"))
    made(s.branch("next"))
    child = s.append(1, rows=1, ref="next")
    seen.append(s.metadata_location)
    assert made(s.cherry_pick("next")).snapshot_id == child.snapshot_id == head(s)
    made(s.tag("release", max_ref_age_ms=10**10))
    made(s.set_properties({"owner": "me"}, remove=["nothing"]))
    made(s.evolve_schema(add={"note": "string"}, rename={"fare": "price"}))
    made(s.evolve_spec(add=["truncate(4, note)"]))
    made(s.set_sort_order("km desc"))
    made(s.append(2, rows=3))
    made(s.rollback(first.snapshot_id))
    made(s.fast_forward("main", "next"))
    made(s.remove_ref("next"))
    assert made(s.expire_snapshots(retain_last=3, older_than=2**60)) != ()
    assert s.properties["owner"] == "me" and {"note", "price"} <= {f.name for f in s.schema.fields}
    assert [r for r in s.refs.values() if r.type == "tag" and r.name == "release"]
    assert hashes(folder) == before
    assert frozen.metadata_location == t.metadata_location and frozen.format_version == t.format_version
    assert repr(frozen.inspect.files()) == repr(t.inspect.files())
    assert s.cost().commits["published"].all() and len(s.cost().commits) == len(s._sandbox.records)


def test_a_simulation_is_a_table(folder: Path) -> None:
    t = ix.open(folder)
    s = t.simulate(4)
    s.append(2, rows=1000)
    assert issubclass(ix.Simulation, ix.Table) and type(s) is ix.Simulation
    assert "A simulation: nothing is written" in repr(s) and "2 synthetic data files" in repr(s)
    assert str(folder) not in s.overlay and s.overlay in repr(s)
    assert len(s.inspect.files()) == len(t.inspect.files()) + 2
    assert len(s.tree().nodes) > 1 and "added" in repr(s.diff(t))
    counts = s.diff(t).counts.set_index("content")
    assert counts.loc["data file", "added_files"] == 2 and counts.loc["data file", "removed_files"] == 0
    assert s.at(snapshot=t.snapshot.snapshot_id).snapshot == t.snapshot  # type: ignore[union-attr]
    assert len(s.snapshots) == len(t.snapshots) + 1 and len(s.history()) == len(t.history()) + 1


def test_what_was_taken_before_does_not_move(folder: Path) -> None:
    s = ix.open(folder).simulate()
    taken, here = s.table, s.at(ref="main")
    made = s.append(1, rows=1)
    assert taken.snapshot != made and here.snapshot != made and s.snapshot == made
    assert taken.refresh().snapshot == made
    assert ix.open(folder).snapshot != made


def test_the_difference_to_the_table_costs_what_the_change_does(folder: Path) -> None:
    t = ix.open(folder)
    s = t.simulate()
    s.append(2, rows=10)
    t.reads.clear()
    s.state.storage.reads.clear()
    CACHE.clear()
    assert s.diff(t).files["change"].tolist() == ["added", "added"]
    read = [r for log in (t.reads, s.reads) for r in log if r.kind == "manifest"]
    assert [r.location for r in read] == [w.location for w in s.writes if w.kind == "manifest"]


def test_two_writers(folder: Path) -> None:
    s = ix.open(folder).simulate(4)
    other = s.fork()
    paths = s.inspect.data_files()["file_path"].tolist()
    s.delete_files(paths[0])
    with pytest.raises(CommitConflictError) as failed:
        other.delete_files(paths[0])
    assert failed.value.rule == "files-exist" and failed.value.files == (paths[0],)
    other.delete_files(paths[1])
    assert s.refresh() is s and s.snapshot == other.snapshot
    assert len(s.inspect.data_files()) == len(paths) - 2
    assert s.cost().commits["attempt"].tolist() == [1, 1, 2, 1] or s.cost().commits["attempt"].max() == 2


def test_upgrade_by_itself_and_with_the_first_commit(folder: Path) -> None:
    alone = ix.open(folder).simulate()
    head = alone.snapshot
    assert alone.upgrade(4, flush_data_files=7) == head
    assert alone.format_version == 4 and alone.options.flush_data_files == 7 and alone.snapshot == head
    assert len(alone.inspect.files()) == len(ix.open(folder).inspect.files())
    alone.append(1, rows=1)
    with pytest.raises(RuleError) as refused:
        alone.upgrade(3)
    assert refused.value.rule == "format-version-rises" and alone.options.format_version == 4
    with pytest.raises(OptionError):
        alone.upgrade(4, no_such_option=1)
    together = ix.open(folder).simulate(4)
    assert together.format_version == 3
    together.set_properties({"a": "b"})
    assert together.format_version == 4 and len(together.writes) == 1


def test_from_the_past(folder: Path) -> None:
    t = ix.open(folder)
    old = t.snapshots[3]
    s = t.at(snapshot=old.snapshot_id).simulate()
    assert s.snapshot == old and s.refs["main"].snapshot_id == old.snapshot_id
    assert s.append(1, rows=1).parent_snapshot_id == old.snapshot_id
    by_ref = t.at(ref=next(r.name for r in t.refs.values() if r.type == "tag")).simulate()
    assert by_ref.snapshot == t.at(ref=next(r.name for r in t.refs.values() if r.type == "tag")).snapshot
    older = t.at(version=6).simulate()
    assert older.format_version == t.at(version=6).format_version
    older.append(1, rows=1)


def test_a_v4_java_table_stays_one(folder: Path) -> None:
    s = ix.open(folder).simulate(4, dialect="v4-java")
    s.append(1, rows=1)
    again = s.table.simulate()
    assert again.options.dialect == "v4-java"
    assert s.table.simulate(dialect="v4-proposal").options.has_root_manifest
    root = ix.open(folder).simulate(4)
    root.append(1, rows=1)
    assert root.table.simulate().options.dialect == "v4-proposal"


def test_a_seed_repeats_a_simulation(folder: Path) -> None:
    def run() -> list[tuple[str, int]]:
        s = ix.open(folder).simulate(4, seed="x")
        s.append(3, rows=10)
        s.delete_files(s.inspect.data_files()["file_path"].tolist()[0])
        return [(w.location, w.length) for w in s.writes]

    assert run() == run()


def test_refusals(folder: Path) -> None:
    t = ix.open(folder)
    with pytest.raises(OptionError, match="cannot be downgraded"):
        t.simulate(2)
    with pytest.raises(OptionError, match="unknown layout option"):
        t.simulate(4, flush=1)
    with pytest.raises(OptionError, match="inside the table"):
        t.simulate(overlay=folder / "x")
    s = t.simulate()
    for act in (
        lambda: s.append(0),
        lambda: s.append([{"location": "x"}]),
        lambda: s.delete_files("s3://not/there"),
        lambda: s.row_delta(deletes={s.inspect.data_files()["file_path"].tolist()[0]: [10**9]}),
        lambda: s.evolve_schema(add={"km": "string"}),
        lambda: s.evolve_spec(add=["bucket(0, km)"]),
        lambda: s.set_properties({"format-version": "2"}),
        lambda: s.rollback(12345),
        lambda: s.remove_ref("main"),
        lambda: s.tag("main"),
        lambda: s.branch("x", min_snapshots_to_keep=0),
        lambda: s.expire_snapshots([s.snapshot.snapshot_id]),  # type: ignore[union-attr]
        lambda: s.cherry_pick(s.snapshot.snapshot_id),  # type: ignore[union-attr]
        lambda: s.append(1, rows=1, ref="nowhere"),
        lambda: s.fast_forward("main", "nowhere"),
    ):
        with pytest.raises(IceexploreError):
            act()
    assert len(s.writes) == 0 and s.snapshot == t.snapshot


def test_expiry_by_id_takes_these_alone(folder: Path) -> None:
    s = ix.open(folder).simulate()
    named = {r.snapshot_id for r in s.refs.values()}
    some = [x.snapshot_id for x in s.snapshots if x.snapshot_id not in named][:2]
    assert set(s.expire_snapshots(some)) == set(some)


def test_closing_takes_the_overlay_and_leaves_the_table(folder: Path, tmp_path: Path) -> None:
    t = ix.open(folder)
    s = t.simulate()
    s.append(1, rows=1)
    s.close()
    assert not Path(s.overlay).exists()
    with pytest.raises(StorageError, match="closed"):
        s.append(1, rows=1)
    assert len(t.inspect.files()) > 0
    kept = t.simulate(overlay=tmp_path / "mine")
    kept.append(1, rows=1)
    kept.close()
    assert list((tmp_path / "mine" / "metadata").iterdir())


def test_on_a_simulation(folder: Path) -> None:
    s = ix.open(folder).simulate(4)
    a = s.append(1, rows=1)
    above = s.simulate()
    b = above.append(1, rows=1)
    assert b.parent_snapshot_id == a.snapshot_id and s.snapshot == a
    assert len(above.inspect.files()) == len(s.inspect.files()) + 1


@pytest.mark.parametrize("location", ["data/persistent/t", "./t"])
@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_table_whose_own_location_is_relative(tmp_path: Path, version: int, location: str) -> None:
    """Not what the spec allows, but what some writers left behind; V4 must not join its locations with it."""
    document = new_table_document(
        format_version=2,
        location=location,
        schema={
            "type": "struct",
            "schema-id": 0,
            "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
        },
        timestamp_ms=1,
    )
    (tmp_path / "t" / "metadata").mkdir(parents=True)
    (tmp_path / "t" / "metadata" / "v1.metadata.json").write_text(json.dumps(document))
    s = ix.open(tmp_path / "t").simulate(version, flush_data_files=1 if version == 4 else 1000)
    s.append(2, rows=10)
    s.append(1, rows=10)
    assert len(s.inspect.data_files()) == 3 and list(s.problems) == [] and check_rules(s.state) == []
    assert len(ix.open(s.save(tmp_path / "saved").path).inspect.data_files()) == 3


def test_manifests_are_carried_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one, a commit on a table of a thousand manifests took a second."""
    s = ix.empty({"id": "long"}, format_version=2, seed=1)
    for _ in range(12):
        s.append(files=1, rows=10)
    taken: list[int] = []
    take = EntryBatch.take

    def counted(batch: EntryBatch, rows: Any) -> EntryBatch:
        taken.append(len(rows))
        return take(batch, rows)

    monkeypatch.setattr(EntryBatch, "take", counted)
    s.append(files=1, rows=10)
    s.delete_files([s.inspect.data_files()["file_path"][0]])
    assert len(taken) < 12 and max(taken) >= 12
    assert (len(s.inspect.manifests()), len(s.inspect.files())) == (13, 12)


def test_mistyped_arguments_of_operations_are_named_with_the_nearest() -> None:
    s: Any = ix.empty({"id": "long"})
    for call, near in (
        (lambda: s.append(1, rwos=3), r"append has no argument 'rwos'; .*rows"),
        (lambda: s.append(1, writer=3), "append has no argument 'writer'"),
        (lambda: s.overwrite(1, isolatoin="x"), r"overwrite .*isolation"),
        (lambda: s.row_delta(equalty=[]), r"row_delta .*equality"),
        (lambda: s.row_delta(1, materialise=True), r"row_delta .*materialize"),
        (lambda: s.compact(smal_than=1), r"compact .*small_than"),
    ):
        with pytest.raises(OptionError, match=near):
            call()
    s.append(1, rows=3, bytes_per_row=2.0)
    with pytest.raises(OptionError, match="last='x': expected a whole number"):
        s.replay(4, last="x")
