"""Change detection: held against the live files of both states, and against what the storage was asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

import iceexplore as ix
from iceexplore.arrow import compute as pc
from iceexplore.commits import (
    Changes,
    add_snapshot,
    changes_between,
    changes_of,
    commit_violating_rules,
    manifest_dv_entry,
    root_rows,
    snapshot_json,
)
from iceexplore.errors import OptionError
from iceexplore.graph import TableState, open_state, state_of
from iceexplore.manifests import EntryBatch, Status, encode_manifest_dv, live
from iceexplore.metadata import Snapshot
from iceexplore.storage import CACHE
from tests.helpers import v4_files as v4
from tests.helpers.root_model import History
from tests.helpers.sampling import one_of
from tests.helpers.tables.root_table import RootLab, data_file, dv, equality, live_files, path

ENCODINGS = ("removed", "replace", "delta")
Key = tuple[int, str, int | None, str | None]


def at(state: TableState, snapshot: Snapshot | None) -> TableState:
    return state.showing(snapshot, state.schema, ref=None, travel=None)


def files(state: TableState) -> set[Key]:
    """What is live, every manifest read."""
    out: set[Key] = set()
    root = state.root()
    for leaf in () if root is None else state.reader.leaves(root):
        for row in leaf.entries.filter(live(leaf.entries)).to_pylist():
            offset = (row["deletion_vector"] or {}).get("offset")
            out.add((row["content_type"], row["location"], offset, row["referenced_file"]))
    return out


def keys(changes: Changes, change: str) -> set[Key]:
    """The files of a change; none is there twice."""
    kinds = {"data file": 0, "deletion vector": 1, "position delete file": 1, "equality delete file": 2}
    table = changes.files_arrow.filter(pc.equal(changes.files_arrow["change"], change))
    rows = [(kinds[r["content"]], r["location"], r["content_offset"], r["referenced_file"]) for r in table.to_pylist()]
    assert len(set(rows)) == len(rows)
    return set(rows)


def parent_of(state: TableState, snapshot: Snapshot) -> TableState:
    parent = snapshot.parent_snapshot_id
    return at(state, None if parent is None else state.metadata.snapshot(parent))


def read_by(state: TableState) -> set[str]:
    """Roots, manifests and Puffin files that the storage was asked for since its log was cleared."""
    return {r.location for r in state.storage.reads.of_kind("manifest-list", "manifest", "puffin")}


def proven(state: TableState, snapshot: Snapshot, **how: Any) -> Changes:
    """The changes of a snapshot, whose ``read`` is what the storage was asked for."""
    CACHE.clear()
    state.storage.reads.clear()
    found = changes_of(state, snapshot, **how)
    assert {r.location for r in found.read} == read_by(state)
    assert len({r.location for r in found.read}) == len(found.read)
    return found


def check(state: TableState, snapshot: Snapshot, **how: Any) -> Changes:
    """As `proven`, and the files are those in which the two states differ."""
    found = proven(state, snapshot, **how)
    before, now = files(parent_of(state, snapshot)), files(at(state, snapshot))
    assert keys(found, "added") == now - before
    assert keys(found, "removed") == before - now
    assert found.unambiguous, found.doubts
    return found


LAYOUTS = [
    {"flush_data_files": 2, "flush_delete_files": 1, "leaf_entries": 4},
    {"flush_data_files": 0, "flush_delete_files": 0, "leaf_entries": 3, "compact_leaves": 2, "affinity": "all"},
    {"flush_data_files": 3, "flush_delete_files": 2, "leaf_entries": 3, "rewrite_leaf_at": 0.5, "inline_dv_bytes": 0},
]


@pytest.mark.parametrize(
    ("attached", "encoding"),
    one_of(2, [(a, e) for a in (False, True) for e in ENCODINGS]),
)
@given(seed=st.integers(0, 10**6), layout=st.sampled_from(LAYOUTS))
@settings(max_examples=2, deadline=None)
def test_random_histories(tmp_path_factory: Any, encoding: str, attached: bool, seed: int, layout: Any) -> None:
    options = {**layout, "dv_encoding": encoding, "dv_attached": attached}
    lab = RootLab(tmp_path_factory.mktemp("detect") / "t", options=options)
    state = grown(History(lab, Random(seed)), 5)
    for snapshot in state.metadata.snapshots:
        known = check(state, snapshot, dv_encoding=encoding)
        blind = check(state, snapshot)
        assert {r.location for r in known.read} <= {r.location for r in blind.read}
        if encoding == "delta" or (encoding == "removed" and not attached):
            assert known.root_alone
        CACHE.clear()
        state.storage.reads.clear()
        pair = changes_between(parent_of(state, snapshot), at(state, snapshot))
        assert {r.location for r in pair.read} == read_by(state)
        assert pair.unambiguous
        for change in ("added", "removed"):
            assert keys(pair, change) == keys(known, change)


def grown(history: History, commits: int) -> TableState:
    """A history of so many commits; whether they are right, others test."""
    for _ in range(commits):
        change = history.change()
        history.lab.box.commit(lambda writer, made=change: made)  # type: ignore[misc]
        if history.version < 4:  # deletes that apply to nothing any more are dropped there, as in Java
            history.equality &= set(live_files(history.lab.state))
    return history.lab.state


@pytest.mark.parametrize(("version", "options"), [(1, {}), (2, {}), (3, {}), (4, {"dialect": "v4-java"})])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=2, deadline=None)
def test_manifest_lists(tmp_path_factory: Any, version: int, options: Any, seed: int) -> None:
    lab = RootLab(tmp_path_factory.mktemp("lists") / "t", version=version, options=options)
    history = History(lab, Random(seed))
    history.version = min(version, 3)
    state = grown(history, 5)
    for snapshot in state.metadata.snapshots:
        found = check(state, snapshot)
        assert found.root_alone == (not found.files_arrow.num_rows)  # a list tells which manifests are new, no more


@given(seed=st.integers(0, 10**6))
@settings(max_examples=3, deadline=None)
def test_a_table_that_is_upgraded(tmp_path_factory: Any, seed: int) -> None:
    lab = RootLab(tmp_path_factory.mktemp("upgraded") / "t", version=3)
    history = History(lab, Random(seed))
    history.version = 3
    grown(history, 3)
    history.upgrade(lab.upgraded(flush_data_files=2, flush_delete_files=2, leaf_entries=3))
    state = grown(history, 3)
    for snapshot in state.metadata.snapshots:
        check(state, snapshot)
        if "root-manifest" in snapshot.raw:
            assert check(state, snapshot, dv_encoding="removed").root_alone


@pytest.fixture
def sample_state(trips: Path) -> TableState:
    return open_state(trips)


def test_a_table_that_spark_wrote(sample_state: TableState) -> None:
    state = sample_state
    assert len(state.metadata.snapshots) > 2
    for snapshot in state.metadata.snapshots:
        check(state, snapshot)


@pytest.mark.corpus
def test_real_tables_are_right_or_doubted(corpus: Path) -> None:
    """Metadata that was edited, or whose writer gave entries other statuses, is not taken for certain."""
    counts = {True: 0, False: 0}
    for folder in sorted({p.parent.parent for p in corpus.rglob("metadata/*.metadata.json")}):
        try:
            state = open_state(str(folder))
        except ix.IceexploreError:
            continue
        for snapshot in state.metadata.snapshots:
            before = parent_of(state, snapshot)
            found = changes_of(state, snapshot)
            if found.unambiguous and (before.snapshot is not None or snapshot.parent_snapshot_id is None):
                was, now = files(before), files(at(state, snapshot))
                if not any(p.severity == "error" for p in state.problems):  # of the parent's manifests, say
                    assert keys(found, "added") == now - was, (folder, snapshot)
                    assert keys(found, "removed") == was - now, (folder, snapshot)
            counts[found.unambiguous] += 1
    assert counts[True] > 5 * counts[False]


def test_roots_of_the_draft_are_compared(tmp_path: Path) -> None:
    lab = RootLab(tmp_path / "t")
    where = f"{lab.folder}/metadata"

    def row(name: str, status: int, **more: Any) -> dict[str, Any]:
        return {
            "tracking": {"status": status, "snapshot_id": more.pop("added", None)},
            "content_type": 0,
            "format_version": 4,
            "location": f"data/{name}.parquet",
            "file_format": "parquet",
            "record_count": 10,
            "file_size_in_bytes": 100,
            **more,
        }

    def write(name: str, rows: list[dict[str, Any]], content: str) -> int:
        data = v4.parquet(v4.draft(), rows, content=content, format_version="4")
        Path(f"{where}/{name}").write_bytes(data)
        return len(data)

    def leaf(status: int, removed: list[int]) -> dict[str, Any]:
        zeros = dict.fromkeys(
            (f"{s}_{u}_count" for s in ("existing", "deleted", "replaced") for u in ("files", "rows")), 0
        )
        info = {"added_files_count": 3, "added_rows_count": 30, "min_sequence_number": 1, **zeros}
        if removed:
            info |= {"dv": encode_manifest_dv(BitMap(removed)), "dv_cardinality": len(removed)}  # type: ignore[dict-item]
        return row("", status, location="metadata/leaf.parquet", content_type=3, file_size_in_bytes=length,
                   record_count=30, manifest_info=info, added=1)  # fmt: skip

    length = write("leaf.parquet", [row(f"L{i}", 1) for i in range(3)], "data")
    write("root-1.parquet", [leaf(1, []), row("R1", 1)], "root")
    write("root-2.parquet", [leaf(4, [1]), row("R1", 2), row("R2", 1)], "root")
    document = json.loads(Path(f"{where}/v1.metadata.json").read_text())
    for i in (1, 2):
        made = snapshot_json(
            format_version=4, snapshot_id=i, timestamp_ms=1_700_000_000_000 + i, operation="overwrite",
            root_location=f"{where}/root-{i}.parquet", parent_snapshot_id=i - 1 or None, sequence_number=i, schema_id=0,
            root_manifest=True, first_row_id=40 * (i - 1), added_rows=40,
        )  # fmt: skip
        document = dict(add_snapshot(document, snapshot=made))
    Path(f"{where}/v2.metadata.json").write_text(json.dumps(document))
    state = open_state(str(lab.folder))
    root = state.root()
    assert root is not None and root.dialect == "v4-draft"
    first, second = state.metadata.snapshots
    assert check(state, first).root_alone
    found = check(state, second)  # it does not record which positions it removed
    assert not found.root_alone
    assert sorted(found.locations("removed")) == [f"{lab.folder}/data/{n}.parquet" for n in ("L1", "R1")]
    assert found.locations("added") == [f"{lab.folder}/data/R2.parquet"]


def renamed(state: TableState, old: int, new: int) -> TableState:
    """The state with another id for one of its snapshots in its metadata file (tools that round numbers do that)."""
    text = json.dumps(state.opened.document).replace(str(old), str(new))
    return state_of(replace(state.opened, document=json.loads(text)))


@pytest.mark.parametrize("version", [3, 4])
def test_a_snapshot_whose_id_is_not_that_of_its_entries(tmp_path: Path, version: int) -> None:
    lab = RootLab(tmp_path / "t", version=version)
    lab.commit(add=[data_file("A")])
    lab.commit(add=[data_file("B")])
    for snapshot in lab.state.metadata.snapshots:
        state = renamed(lab.state, snapshot.snapshot_id, snapshot.snapshot_id + 1)
        found = changes_of(state, state.metadata.snapshot(snapshot.snapshot_id + 1))
        assert not found.unambiguous
        assert any("has added-data-files=1" in d or "another snapshot" in d for d in found.doubts)


# What a root says without its parent ---------------------------------------------------------------------------------


def lab_with_leaf(folder: Path, **options: Any) -> RootLab:
    """A leaf of four files, one removed from it, then one more: the last snapshot replaces a manifest DV."""
    lab = RootLab(folder / "t", options={"flush_data_files": 1, **options})
    lab.commit(add=[data_file(f"L{i}", low=10 * i) for i in range(4)])
    lab.commit("delete", remove_data=path("L0"))
    lab.commit("delete", remove_data=path("L2"))
    return lab


def last(state: TableState) -> Snapshot:
    assert state.snapshot is not None
    return state.snapshot


def roles(changes: Changes, *, names: bool = False) -> list[str]:
    return [r.role for r in changes.read if r.names_only is names]


@pytest.mark.parametrize(
    ("encoding", "attached", "needed"),
    [
        ("removed", False, ["root"]),
        ("delta", False, ["root"]),
        ("replace", False, ["root", "previous root"]),
        ("removed", True, ["root"]),
        ("delta", True, ["root"]),
        ("replace", True, ["root", "previous root"]),
    ],
)
def test_which_roots_are_read(tmp_path: Path, encoding: str, attached: bool, needed: list[str]) -> None:
    state = lab_with_leaf(tmp_path, dv_encoding=encoding, dv_attached=attached).state
    found = check(state, last(state), dv_encoding=encoding)
    assert found.locations("removed") == list(path("L2")) and found.locations("added") == []
    assert roles(found) == needed and roles(found, names=True) == ["manifest"]
    assert found.root_alone == (len(needed) == 1)
    assert roles(check(state, last(state))) == needed  # a pair of vectors tells which encoding it is


@pytest.mark.parametrize("attached", [False, True])
def test_a_first_vector_is_detected_from_the_root_if_the_encoding_is_known(tmp_path: Path, attached: bool) -> None:
    state = lab_with_leaf(tmp_path, dv_attached=attached).state
    first = state.metadata.snapshots[1]
    blind, known = check(state, first), check(state, first, dv_encoding="removed")
    assert roles(blind) == ["root", "previous root"]
    # one that is attached has no status of its own, so that the root does not say whether it is new
    assert roles(known) == (["root", "previous root"] if attached else ["root"])


def test_an_append_reads_no_manifest_and_an_attached_vector_costs_the_previous_root(tmp_path: Path) -> None:
    for attached in (False, True):
        lab = lab_with_leaf(tmp_path / str(attached), dv_attached=attached)
        lab.commit(add=[data_file("R1")])
        found = check(lab.state, last(lab.state), dv_encoding="removed")
        assert [r.role for r in found.read] == ["root", *(["previous root"] if attached else [])]


def test_vectors_in_puffin_files_are_read(tmp_path: Path) -> None:
    state = lab_with_leaf(tmp_path, inline_dv_bytes=0).state
    found = check(state, last(state))
    assert roles(found) == ["root", "manifest DV", "manifest DV"] and found.root_alone


def test_compaction_changes_nothing_and_opens_nothing(tmp_path: Path) -> None:
    lab = lab_with_leaf(tmp_path)
    lab.commit("replace", rewrite_manifests=True)
    found = check(lab.state, last(lab.state))
    assert found.files_arrow.num_rows == 0 and [r.role for r in found.read] == ["root"]


def test_the_parent_has_expired(tmp_path: Path) -> None:
    for encoding in ("removed", "replace"):
        lab = lab_with_leaf(tmp_path / encoding, dv_encoding=encoding)
        box = lab.box
        box.commit(document_change=lambda d, ms: {**d, "snapshots": d["snapshots"][-1:]}, what="expire_snapshots")
        found = proven(box.state, last(box.state))
        if encoding == "removed":
            assert found.unambiguous and found.locations("removed") == list(path("L2"))
        else:
            assert not found.unambiguous and "has expired" in found.doubts[0]
            assert found.locations("removed") == list(path("L0", "L2"))


def test_files_in_the_root_of_every_kind(tmp_path: Path) -> None:
    lab = RootLab(tmp_path / "t")
    lab.commit(add=[data_file("A"), data_file("B")])
    lab.commit("overwrite", add=[dv("V1", "A"), equality("Q")])
    lab.commit("overwrite", add=[dv("V2", "A")], replace_dvs=path("A"), remove_deletes=path("Q"))
    found = check(lab.state, last(lab.state))
    rows = {(r["change"], r["content"]) for r in found.files_arrow.to_pylist()}
    assert rows == {
        ("added", "deletion vector"),
        ("removed", "deletion vector"),
        ("removed", "equality delete file"),
    }
    assert [r.role for r in found.read] == ["root"]


# Roots that violate rules, and damage ---------------------------------------------------------------------------------


def existing(lab: RootLab, **columns: Any) -> EntryBatch:
    rows = root_rows(lab.state)
    return rows.filter(live(rows.entries)).with_columns(status=int(Status.EXISTING), **columns)


def test_entries_that_are_back_are_noticed(tmp_path: Path) -> None:
    lab = lab_with_leaf(tmp_path)
    rows = existing(lab)
    leaf = rows.entries["location"][0].as_py()
    kept = rows.take([i for i, k in enumerate(rows.entries["content_type"].to_pylist()) if k != 5])
    commit_violating_rules(
        lab.box, [kept, manifest_dv_entry(leaf, [0, 1])], relaxed=("added-is-change", "deleted-entries")
    )
    found = proven(lab.state, last(lab.state))
    assert not found.unambiguous and "are live again" in " ".join(found.doubts)
    before, now = files(parent_of(lab.state, last(lab.state))), files(lab.state)
    assert keys(found, "added") == now - before and keys(found, "removed") == before - now
    assert found.locations("added") == list(path("L2")) and found.locations("removed") == list(path("L1"))


def test_files_whose_status_is_another_snapshots(tmp_path: Path) -> None:
    lab = RootLab(tmp_path / "t")
    lab.commit(add=[data_file("A"), data_file("B")])
    old = root_rows(lab.state)  # ADDED, by the first snapshot
    commit_violating_rules(lab.box, [old], relaxed=("added-is-change",))
    found = changes_of(lab.state)
    assert not found.unambiguous and "another snapshot" in found.doubts[0]
    commit_violating_rules(lab.box, [existing(lab, snapshot_id=None)], relaxed=("added-is-change",))
    assert "files of this snapshot are EXISTING" in changes_of(lab.state).doubts[0]


def test_a_vector_for_nothing(tmp_path: Path) -> None:
    lab = lab_with_leaf(tmp_path)
    stray = manifest_dv_entry(f"{lab.folder}/metadata/elsewhere.parquet", [0])
    commit_violating_rules(lab.box, [existing(lab), stray], relaxed=("orphan-dv",))
    found = proven(lab.state, last(lab.state))
    assert "which is not in the root" in found.doubts[0] and found.files_arrow.num_rows == 0


def test_a_vector_far_beyond_its_leaf_names_what_is_there(tmp_path: Path) -> None:
    lab = lab_with_leaf(tmp_path)
    rows = existing(lab)
    leaf = rows.entries["location"][0].as_py()
    kept = rows.take([i for i, k in enumerate(rows.entries["content_type"].to_pylist()) if k != 5])
    far = manifest_dv_entry(leaf, [0, 1, 2, 2**31, 2**32 - 1]).with_columns(record_count=pa.array([3], pa.int64()))
    commit_violating_rules(lab.box, [kept, far], relaxed=("dv-in-range", "added-is-change", "deleted-entries"))
    found = changes_of(lab.state)
    assert found.locations("removed") == list(path("L1"))


def test_a_manifest_that_is_not_there_any_more(tmp_path: Path) -> None:
    lab = lab_with_leaf(tmp_path)
    (leaf,) = [w for w in lab.box.storage.writes if w.kind == "manifest"]
    Path(leaf.real).unlink()
    CACHE.clear()
    found = changes_of(lab.state)
    assert not found.unambiguous and leaf.location in found.doubts[0]
    assert found.files_arrow.num_rows == 0


# The face -------------------------------------------------------------------------------------------------------------


def test_the_face(tmp_path: Path) -> None:
    s = ix.empty({"id": "long"}, seed=1, flush_data_files=0)
    assert s.changes().files_arrow.num_rows == 0 and "has no snapshot" in repr(s.changes())
    place = "/warehouse/db/events/data/"
    rows = [{"location": f"{place}D{i}.parquet", "record_count": 10, "file_size_in_bytes": 100} for i in range(4)]
    first = s.append(rows)
    s.delete_files([rows[1]["location"]])
    s.tag("two")
    third = s.delete_files([rows[2]["location"]])
    assert (
        s.changes().locations("removed") == [rows[2]["location"]] == s.changes(third.snapshot_id).locations("removed")
    )
    assert s.changes("two").locations("removed") == [rows[1]["location"]]
    assert s.changes(s.at(ref="two")).locations("removed") == [rows[1]["location"]]
    assert len(s.changes(first).locations("added")) == 4
    both = s.changes(first, third)
    assert sorted(both.locations("removed")) == [rows[1]["location"], rows[2]["location"]]
    assert not both.root_alone and list(both.files["change"]) == ["removed", "removed"]
    assert repr(both.files_arrow) == repr(s.diff(first, third).files_arrow)
    assert s.changes(third, first).locations("added") == both.locations("removed")
    text = repr(s.changes())
    assert "the root alone" in text and "data files" in text and "removed" in text
    assert "<table" in s.changes()._repr_html_()


def test_what_makes_no_sense_says_so() -> None:
    s = ix.empty({"id": "long"})
    with pytest.raises(OptionError, match="add rows=True"):
        s.changes(spark=object())  # type: ignore[call-overload]
    with pytest.raises(OptionError, match="dv_encoding='other'"):
        s.changes(dv_encoding="other")  # type: ignore[call-overload]
    with pytest.raises(ix.SnapshotNotFoundError):
        s.changes(5)
