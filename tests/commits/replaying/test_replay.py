"""A table's own history committed again: the same files at every snapshot, and what it costs on either side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.arrow import compute as pc
from iceexplore.commits import check_rules, is_synthetic
from iceexplore.commits.replaying import _position_deletes as positions
from iceexplore.commits.saving._reachable import tree_files
from iceexplore.deletes import read_positions
from iceexplore.errors import MissingDependencyError, OptionError
from iceexplore.metadata import Snapshot
from tests.helpers.history_view import view
from tests.helpers.sampling import one_of

SCHEMA = {"id": "long", "day": "date", "kind": "string"}


def history(version: int, **layout: Any) -> ix.Simulation:
    """A simulation with every sort of commit that its version allows; data files and deletes are real."""
    s = ix.empty(SCHEMA, partition_by="kind", format_version=version, seed=3, **layout)
    parts = [{"kind": "a"}, {"kind": "b"}]
    s.append(4, rows=100, partitions=parts, materialize=True)
    s.append(2, rows=50, partitions=parts, materialize=True)
    paths = s.inspect.data_files()["file_path"].tolist()
    if version >= 2:
        s.row_delta(deletes={paths[0]: [0, 5], paths[1]: [7]})
        s.row_delta(equality={"id": [1, 2]}, equality_partition={"kind": "a"})
        s.row_delta(1, rows=10, partitions=parts[:1], materialize=True, deletes={paths[0]: [6]})
    s.delete_files(paths[1])
    s.rewrite_manifests()
    s.set_properties({"seen": "yes"})
    s.evolve_schema(add={"more": "string"})
    s.append(3, rows=10, partitions=parts, materialize=True)
    s.compact(partition={"kind": "b"}, files=1)
    return s


def pairs(r: Any) -> list[tuple[Snapshot, Snapshot]]:
    return [(s.snapshot, s.replayed) for s in r.snapshots if s.replayed is not None]


def seen_in(t: ix.Table, snapshot: Snapshot) -> tuple[Any, ...]:
    """Live files with their places and counts, deleted positions by file, what applies to what: the slow way."""
    seen = view(t, snapshot)
    columns = ("place", "record_count", "file_size_in_bytes")
    data = {n: tuple(r[c] for c in columns) for n, r in seen.data.items()}
    equality = {n: (*(r[c] for c in columns), tuple(r["equality_ids"])) for n, r in seen.equality.items()}
    return data, equality, seen.gone, seen.applies


@pytest.mark.parametrize(
    ("version", "to", "layout"),
    one_of(2, [
        (1, 4, {}),
        (2, 2, {}),
        (2, 4, {}),
        (2, 3, {}),
        (2, 4, {"flush_data_files": 0, "flush_delete_files": 0, "inline_dv_bytes": 0}),
        (3, 3, {}),
        (3, 4, {"dialect": "v4-java"}),
        (3, 4, {"flush_data_files": 2, "dv_encoding": "replace", "partition_storage": "tuple"}),
        (4, 4, {"partition_storage": "source"}),
    ]),
)  # fmt: skip
def test_every_snapshot_has_the_tables_files(version: int, to: int, layout: dict[str, Any]) -> None:
    t = history(version, **({"flush_data_files": 0} if version == 4 else {})).table
    r = t.replay(to, **layout)
    assert r.differences == () and r.check() == ()
    for old, new in pairs(r):
        assert seen_in(t, old) == seen_in(r.simulation, new)
        assert (old.operation, old.timestamp_ms, old.schema_id) == (new.operation, new.timestamp_ms, new.schema_id)
    assert check_rules(r.simulation.state) == []
    assert r.simulation.format_version == to and r.simulation.schema == t.schema
    assert r.simulation.properties == t.properties


def test_the_sample_is_smaller_as_v4_and_stays_as_it_is() -> None:
    t = ix.sample()
    folder = Path(t.state.storage.folder)
    before = {p: p.stat().st_mtime_ns for p in folder.rglob("*")}
    r = t.replay()
    assert r.check() == () and check_rules(r.simulation.state) == []
    for old, new in pairs(r):
        assert seen_in(t, old) == seen_in(r.simulation, new)
    assert {p: p.stat().st_mtime_ns for p in folder.rglob("*")} == before
    table = r.table
    assert (table["after_files"] == 1).all()
    assert table["before_bytes"].sum() > table["after_bytes"].sum()
    assert "manifests rewritten" in table["note"].tolist()
    # What a commit did is what its writer recorded in the summary.
    for row, s in zip(table.to_dict("records"), r.snapshots, strict=True):
        recorded = s.snapshot.summary or {}
        if s.snapshot.operation != "replace":
            assert row["files_added"] == int(recorded.get("added-data-files", 0))
            assert row["files_removed"] == int(recorded.get("deleted-data-files", 0))
            assert row["deletes_added"] == int(recorded.get("added-delete-files", 0))


@pytest.mark.parametrize("layout", [{}, {"flush_data_files": 0, "inline_dv_bytes": 0}, {"dialect": "v4-java"}])
def test_what_is_reported_as_written_was_written(layout: dict[str, Any]) -> None:
    r = history(3).table.replay(4, **layout)
    commits = r.simulation.cost().commits.set_index("snapshot_id")
    kinds = {"root_bytes", "manifest_bytes"}
    for s in r.snapshots:
        assert s.replayed is not None and s.after is not None
        made = commits.loc[s.replayed.snapshot_id]
        assert s.after.json_bytes == made["json_bytes"]
        # Of a Puffin file the blobs count, not the footer.
        blobs = sum(f.size for f in tree_files(r.simulation.state, s.replayed) if f.kind == "puffin")
        assert sum(made[k] for k in kinds) <= s.after.bytes <= sum(made[k] for k in kinds) + blobs


def test_before_is_what_each_snapshot_was_the_first_to_name() -> None:
    t = history(2).table
    r = t.replay()
    named: dict[str, int] = {}
    for s in r.snapshots:
        root = t.state.root(s.snapshot)
        assert root is not None
        tree = {root.location, *build.to_pylist(root.entries["location"])}
        new = tree - named.keys()
        named |= {name: t.state.storage.stat(name).size or 0 for name in new}
        assert (s.before.files, s.before.bytes) == (len(new), sum(named[n] for n in new))
        assert s.before.plan_cold_files == len(tree)
        assert s.before.plan_cold_bytes == sum(named[n] for n in tree)
        assert s.before.retained_bytes == sum(named.values())
        assert s.before.json_bytes
    retained = t.retained(1000)
    assert r.snapshots[-1].before.retained_bytes == retained.bytes


def test_position_deletes_that_cannot_be_read_are_estimated() -> None:
    s = history(2)
    t = s.table
    for location in t.inspect.delete_files()["file_path"]:
        Path(t.state.storage.resolve(location)).unlink()
    r = t.replay()
    assert sum(x.estimated for x in r.snapshots) == 3  # two vectors, one of them changed later
    assert "estimated" in r.summary and r.check() == () and check_rules(r.simulation.state) == []
    synthetic = r.simulation.inspect.delete_files()
    vectors = synthetic[synthetic["content"] == 1]
    assert [is_synthetic(p) for p in vectors["file_path"]] == [True]
    assert vectors["record_count"].tolist() == [3]


def test_a_history_whose_beginning_has_expired_has_a_start() -> None:
    s = history(2)
    s.expire_snapshots(retain_last=4, older_than=2**60)
    t = s.table
    r = t.replay(flush_data_files=1)
    assert len(r.snapshots) == 4 and r.snapshots[0].note.startswith("start: all files")
    assert r.check() == () and "the start" in r.summary and not r.snapshots[0].counts
    for old, new in pairs(r):
        assert seen_in(t, old) == seen_in(r.simulation, new)
    few = t.replay(last=2)
    assert [x.snapshot.snapshot_id for x in few.snapshots] == [x.snapshot.snapshot_id for x in r.snapshots[1:]]
    assert few.snapshots[0].note.startswith("start: all files") and few.check() == ()
    assert view(few.simulation, few.simulation.snapshot).applies == view(t, t.snapshot).applies


def test_rewritten_position_deletes_are_no_commit_of_v4() -> None:
    s = ix.empty(SCHEMA, format_version=2, seed=1)
    s.append(1, rows=10, materialize=True)
    path = s.inspect.data_files()["file_path"][0]
    s.row_delta(deletes={path: [1, 2]})
    s.upgrade(3)
    s.rewrite_position_deletes()
    r = s.table.replay()
    # The vector is the table's own now: its place differs from the one made before, so it is committed.
    assert r.check() == () and len(r.snapshots) == 3
    assert view(r.simulation, r.simulation.snapshot).gone == {path: frozenset({1, 2})}


def test_deletes_of_files_that_are_not_there_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    s = ix.empty(SCHEMA, format_version=2, seed=1)
    s.append(1, rows=10, materialize=True)
    path = s.inspect.data_files()["file_path"][0]
    s.row_delta(deletes={path: [1, 2]})

    def otherwise(*args: Any) -> dict[str, Any]:
        return {f"hdfs://host:1{name}": found for name, found in read_positions(*args).items()}

    monkeypatch.setattr(positions, "read_positions", otherwise)
    r = s.table.replay()
    assert [x.unapplied for x in r.snapshots] == [0, 1]
    assert r.snapshots[1].note == "left out: its deletes change no deletion vector" and r.snapshots[1].replayed is None
    assert "because no live data file has the location that they reference, in the same spelling: 1." in r.summary


def test_a_field_that_v1_dropped_keeps_its_values() -> None:
    s = ix.empty(SCHEMA, partition_by=["kind", "bucket(4, id)"], format_version=1, seed=1)
    s.append(2, rows=10, partitions=[{"kind": "a", "id_bucket_4": 1}, {"kind": "b", "id_bucket_4": 3}])
    s.evolve_spec(remove=["id_bucket_4"])
    s.append(1, rows=10, partitions=[{"kind": "a"}])
    s.append(1, rows=10, partitions=[{"kind": "b"}])
    t = s.table
    r = t.replay()
    assert r.check() == ()
    for old, new in pairs(r):
        assert seen_in(t, old) == seen_in(r.simulation, new)


def test_check_tells_what_differs() -> None:
    t = history(3).table
    r = t.replay()
    r.simulation.delete_files(r.simulation.inspect.data_files()["file_path"][0])
    last = r.snapshots[-1]
    wrong = type(last)(**{**last.__dict__, "replayed": r.simulation.snapshot})
    broken = type(r)(r.state, r.sandbox, (*r.snapshots[:-1], wrong), r.simulation)
    (text,) = [x for x in broken.check() if "data file" in x]
    assert "is missing" in text and str(last.snapshot.snapshot_id) in text


def test_check_notices_lost_position_delete_files() -> None:
    s = ix.empty(SCHEMA, format_version=2, seed=1)
    s.append(1, rows=10, materialize=True)
    path = s.inspect.data_files()["file_path"][0]
    for position in (1, 2):
        s.row_delta(deletes={path: [position]})
    r = s.table.replay(2)
    assert r.check() == ()
    *before, last = r.snapshots
    for earlier, more in zip(before, (" and 1 more", ""), strict=True):  # without both delete files, without one
        wrong = type(last)(**{**last.__dict__, "replayed": earlier.replayed})
        (text,) = type(r)(r.state, r.sandbox, (wrong,), r.simulation).check()
        assert ": a position delete file is missing from the replay: " in text and text.endswith(f".parquet{more}")


def test_seeded_replays_are_the_same() -> None:
    t = ix.sample()
    first, second = t.replay(seed=4), t.replay(seed=4)
    assert first.table.equals(second.table)
    assert [w.location for w in first.simulation.writes] == [w.location for w in second.simulation.writes]
    assert not set(first.table["replayed_id"]) & set(t.replay(seed=5).table["replayed_id"])


def test_it_goes_on_from_there() -> None:
    r = ix.sample().replay()
    made = r.simulation.append(2, rows=10)
    assert made.timestamp_ms > r.snapshots[-1].snapshot.timestamp_ms
    assert check_rules(r.simulation.state) == []


def test_how_it_looks() -> None:
    r = ix.sample().replay()
    text, html = repr(r), r._repr_html_()
    assert r.summary in text and "less" in r.summary and "<table" in html and "<script" not in html
    figure: Any = r.plot()
    assert len(figure.axes) == 4 and all(len(a.lines) == 2 for a in figure.axes)
    assert figure.axes[0].lines[1].get_ydata().tolist() == r.table["after_bytes"].tolist()
    assert figure._repr_png_()[:8] == b"\x89PNG\r\n\x1a\n"


def test_plot_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    r = ix.sample().replay(last=1)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match="pip install"):
        r.plot()


def test_what_is_refused() -> None:
    with pytest.raises(OptionError, match="no snapshot"):
        ix.empty(SCHEMA).table.replay()
    with pytest.raises(OptionError, match="last"):
        ix.sample().replay(last=0)
    with pytest.raises(OptionError, match="cannot be downgraded"):
        ix.sample().replay(2)
    with pytest.raises(OptionError, match="unknown layout option"):
        ix.sample().replay(flush=3)


@pytest.mark.parametrize("window", one_of(2, [1, 2, 5, 100], 1))
def test_retained_of_a_real_table(window: int) -> None:
    t = ix.sample()
    found = t.retained(window, data=True)
    chain, at = [], t.snapshot
    while at is not None:
        chain.append(at.snapshot_id)
        at = None if at.parent_snapshot_id is None else t.metadata.snapshot(at.parent_snapshot_id)
    stay = {*chain[:window], *(r.snapshot_id for r in t.refs.values())}
    named: dict[bool, set[str]] = {True: set(), False: set()}
    live: dict[bool, dict[str, int]] = {True: {}, False: {}}
    for s in t.snapshots:
        root = t.state.root(s)
        assert root is not None
        side = s.snapshot_id in stay
        named[side] |= {root.location, *build.to_pylist(root.entries["location"])}
        for leaf in t.state.leaves(s):
            alive = leaf.entries.filter(pc.not_equal(leaf.entries["status"], 2))
            both = zip(build.to_pylist(alive["location"]), build.to_pylist(alive["file_size_in_bytes"]), strict=True)
            live[side] |= dict(both)
    size = {n: t.state.storage.stat(n).size or 0 for side in named.values() for n in side}
    freed = named[False] - named[True]
    assert set(found.kept) == stay
    assert {f.location for f in found.files} == named[True] and {f.location for f in found.freed} == freed
    assert (found.bytes, found.freed_bytes) == (sum(size[n] for n in named[True]), sum(size[n] for n in freed))
    gone = live[False].keys() - live[True].keys()
    assert found.freed_data_files == len(gone) and found.freed_data_bytes == sum(live[False][n] for n in gone)
    table = found.to_pandas().set_index("kind")
    assert table.loc["all", "kept_bytes"] == found.bytes and table.loc["all", "freed_files"] == len(found.freed)
    keep = "snapshot keeps" if len(found.kept) == 1 else "snapshots keep"
    assert f"{len(found.kept):,} {keep}" in found._repr_html_() and "<table" in found._repr_html_()
