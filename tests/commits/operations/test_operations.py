"""Operations: what they refuse, what they change, and that the rows come out right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iceexplore.arrow import build
from iceexplore.commits import (
    append,
    check_rules,
    cherry_pick,
    compact,
    delete_files,
    delete_where,
    is_synthetic,
    overwrite,
    rewrite_manifests,
    rewrite_position_deletes,
    row_delta,
    set_ref,
    upgrade,
)
from iceexplore.deletes import read_puffin_footer
from iceexplore.errors import CommitConflictError, IceexploreError, OptionError, RuleError
from iceexplore.manifests import ContentType
from iceexplore.reading import to_arrow
from tests.commits.operations_table import BY_KIND, Commits, frame, sandbox
from tests.helpers.sampling import one_of

DELETES = (ContentType.POSITION_DELETE, ContentType.EQUALITY_DELETE)
LEAVES = (4, {"flush_data_files": 0, "flush_delete_files": 0})
VERSIONS: list[Any] = [1, 2, 3, (4, {"dialect": "v4-java"}), (4, {}), LEAVES]
EACH = [pytest.param(version) for version in VERSIONS]
WITH_DELETES = VERSIONS[1:]
WITH_VECTORS = VERSIONS[2:]


def box(folder: Path, version: Any, **more: Any) -> Commits:
    number, options = version if isinstance(version, tuple) else (version, {})
    return Commits(sandbox(folder / "t", number, options=options, **more))


def rows_of(commits: Commits) -> list[tuple[Any, ...]]:
    """The table's rows, all deletes applied."""
    rows = to_arrow(commits.state).to_pylist()
    return sorted(((r["id"], r["kind"], r["x"]) for r in rows), key=lambda row: (row[0], repr(row)))


TEN = [(i, "ab"[i % 2], float(i)) for i in range(10)]


# What is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "how", "error", "message"),
    [
        (delete_files, {"paths": "/nope"}, RuleError, "files-exist"),
        (delete_files, {"paths": []}, OptionError, "no file"),
        (delete_files, {"paths": 5}, OptionError, "locations"),
        (delete_files, {"paths": [5]}, OptionError, "not a file location"),
        (overwrite, {"files": 1, "rows": 5, "delete": ["/nope"]}, RuleError, "files-exist"),
        (overwrite, {}, OptionError, "needs files"),
        (overwrite, {"rows": 5, "delete": ["/nope"]}, RuleError, "files-exist"),
        (overwrite, {"files": 1, "rows": 5, "isolation": "none"}, OptionError, "isolation"),
        (row_delta, {}, OptionError, "row_delta needs"),
        (row_delta, {"deletes": {}}, OptionError, "positions by data file"),
        (row_delta, {"deletes": {"/nope": [1]}}, RuleError, "files-exist"),
        (row_delta, {"deletes": {"FIRST": [10]}}, RuleError, "position 10 is beyond the 10 rows of .*dv-in-range"),
        (row_delta, {"deletes": {"FIRST": [-1]}}, OptionError, "integers of at least 0"),
        (row_delta, {"deletes": {"FIRST": [1.5]}}, OptionError, "integers of at least 0"),
        (row_delta, {"deletes": {"FIRST": []}}, OptionError, "no position"),
        (row_delta, {"deletes": {"FIRST": "0"}}, OptionError, "give a list of integers"),
        (row_delta, {"equality": {"idd": [1]}}, OptionError, "nearest: id"),
        (row_delta, {"equality": {"id": ["x"]}}, OptionError, "does not fit"),
        (row_delta, {"equality": {"id": []}}, OptionError, "equality|id"),
        (row_delta, {"equality": {"id": [1]}, "equality_partition": {"kind": "a"}}, OptionError, "not partitioned"),
        (row_delta, {"equality_partition": {"kind": "a"}, "files": 1, "rows": 1}, OptionError, "option of equality"),
        (row_delta, {"deletes": {"FIRST": [1]}, "rows": 4}, OptionError, "is an option of files"),
        (row_delta, {"deletes": {"FIRST": [1]}, "files": [{"location": "x"}]}, OptionError, "lacks"),
        (compact, {"paths": ["/nope"]}, RuleError, "files-exist"),
        (compact, {}, OptionError, "nothing to compact: no partition has more files"),
        (compact, {"where": "id > 1000"}, OptionError, "nothing to compact: no data file is chosen"),
        (compact, {"small_than": 1}, OptionError, "nothing to compact: no data file is chosen"),
        (compact, {"files": 0}, OptionError, "files=0"),
        (compact, {"paths": ["FIRST"], "where": "id = 1"}, OptionError, "not both"),
        (rewrite_manifests, {"manifests": ["/nope"]}, RuleError, "files-exist"),
        (cherry_pick, {"snapshot": "main"}, RuleError, "cherry-pick"),
        (cherry_pick, {"snapshot": 5}, IceexploreError, "5"),
        (rewrite_position_deletes, {}, OptionError, "no position delete files"),
    ],
)
def test_refused_before_a_byte_is_written(
    tmp_path: Path, operation: Callable[..., Any], how: dict[str, Any], error: type[Exception], message: str
) -> None:
    commits = box(tmp_path, 3)
    commits.run(append, frame(TEN))
    first = commits.locations()[0]
    how = dict(how)
    if isinstance(how.get("deletes"), dict):
        how["deletes"] = {first if k == "FIRST" else k: v for k, v in how["deletes"].items()}
    if how.get("paths") == ["FIRST"]:
        how["paths"] = [first]
    before = commits.written
    with pytest.raises(error, match=message):
        commits.run(operation, **how)
    assert commits.written == before


def test_a_delete_file_is_no_data_file(tmp_path: Path) -> None:
    commits = box(tmp_path, 3)
    commits.run(append, frame(TEN))
    commits.run(row_delta, deletes={commits.locations()[0]: [1]})
    (vector,) = commits.entries(ContentType.POSITION_DELETE)
    with pytest.raises(RuleError, match="is of type POSITION_DELETE"):
        commits.run(delete_files, vector["location"])
    with pytest.raises(OptionError, match="already deleted"):
        commits.run(row_delta, deletes={commits.locations()[0]: [1]})


# Files ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_delete_and_overwrite(tmp_path: Path, version: Any) -> None:
    commits = box(tmp_path, version, spec=BY_KIND)
    assert commits.run(append, frame(TEN)).operation == "append"
    assert commits.run(append, 3, rows=7).operation == "append"
    # locations in any spelling: a path, a frame with the column of inspect.files(), a URI
    real = [name for name in commits.locations() if not is_synthetic(name)]
    assert commits.run(delete_files, Path(real[0])).operation == "delete"
    made = [name for name in commits.locations() if is_synthetic(name)]
    assert commits.run(overwrite, 2, rows=5, delete=pa.table({"file_path": made[:2]})).operation == "overwrite"
    by_name = commits.change
    assert by_name.conflict_partitions is None
    assert by_name.conflict_files == frozenset(made[:2])
    assert commits.run(overwrite, delete=f"file://{made[2]}").operation == "delete"
    assert commits.run(overwrite, 1, rows=1).operation == "append"
    assert commits.change.conflict_partitions == frozenset()
    assert sorted(e["record_count"] for e in commits.entries()) == [1, 5, 5, 5]
    assert not check_rules(commits.state)


def test_overwrites_conflict_by_isolation(tmp_path: Path) -> None:
    for isolation in ("serializable", "snapshot"):
        first = Commits(sandbox(tmp_path / isolation))
        first.run(append, frame(TEN))
        second = Commits(first.box.fork())
        second.run(append, frame(TEN))
        names = first.locations()
        if isolation == "serializable":
            with pytest.raises(CommitConflictError, match="no-new-conflicting-files"):
                first.run(overwrite, frame(TEN), delete=names, isolation=isolation)
        else:
            first.run(overwrite, frame(TEN), delete=names, isolation=isolation)
            assert len(first.locations()) == 2


# Rows ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", WITH_DELETES)
def test_positions(tmp_path: Path, version: Any) -> None:
    commits = box(tmp_path, version, spec=BY_KIND)
    commits.run(append, frame(TEN))
    a, b = commits.locations()
    snapshot = commits.run(row_delta, deletes={a: [0, 4], f"file://{b}": range(2)})
    assert snapshot.operation == "delete"
    assert commits.change.conflict_files == {a, b}
    assert {spec for spec, _ in commits.change.conflict_partitions or ()} == {0}
    assert len(rows_of(commits)) == 6
    again = commits.run(row_delta, frame([(100, "a", 0.0)]), deletes={a: [1]})
    assert again.operation == "overwrite"
    assert len(rows_of(commits)) == 6
    assert not check_rules(commits.state)
    deletes = commits.entries(ContentType.POSITION_DELETE)
    if version == 2:
        assert len(deletes) == 3
        assert {d["file_format"] for d in deletes} == {"parquet"}
        return
    assert {d["referenced_file"]: d["record_count"] for d in deletes} == {a: 3, b: 2}  # merged
    assert commits.change.replace_dvs == (a,)
    puffin = {d["location"] for d in deletes}
    assert len(puffin) == 2  # one file per commit
    for location in puffin:
        assert read_puffin_footer(commits.state.storage, location).blobs


@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_position_delete_files_by_granularity(tmp_path: Path, granularity: str) -> None:
    commits = box(tmp_path, 2, spec=BY_KIND, properties={"write.delete.granularity": granularity})
    commits.run(append, frame(TEN))
    commits.run(append, frame(TEN))
    commits.run(row_delta, deletes={key: [0] for key in commits.locations()})
    deletes = commits.entries(ContentType.POSITION_DELETE)
    assert len(deletes) == (4 if granularity == "file" else 2)
    assert all((d["referenced_file"] is None) == (granularity == "partition") for d in deletes)
    assert len(rows_of(commits)) == 16


@pytest.mark.parametrize("granularity", ["file", "partition"])
@pytest.mark.parametrize("to", [3, 4])
def test_vectors_take_over_position_deletes(tmp_path: Path, granularity: str, to: int) -> None:
    commits = box(tmp_path, 2, spec=BY_KIND, properties={"write.delete.granularity": granularity})
    commits.run(append, frame(TEN))
    commits.run(append, frame([(i + 100, k, x) for i, k, x in TEN]))
    names = commits.locations()
    commits.run(row_delta, deletes={key: [0, 1] for key in names})
    commits.box.commit(document_change=lambda document, _: upgrade(document, to))
    commits.box.options = type(commits.box.options).of(to)
    commits.run(row_delta, deletes={names[0]: [4]})
    assert len(rows_of(commits)) == 11
    left = commits.entries(ContentType.POSITION_DELETE)
    vectors = [d for d in left if d["deletion_vector"] is not None]
    assert [d["record_count"] for d in vectors] == [3]
    # What concerned that file alone went into its vector, what concerned others too stays for them.
    assert len(left) - 1 == (3 if granularity == "file" else 2)
    snapshot = commits.run(rewrite_position_deletes)
    assert snapshot.operation == "replace"
    left = commits.entries(ContentType.POSITION_DELETE)
    assert all(d["deletion_vector"] is not None for d in left)
    assert sorted(d["record_count"] for d in left) == [2, 2, 2, 3]
    assert len(rows_of(commits)) == 11
    assert not check_rules(commits.state)


@pytest.mark.parametrize("version", WITH_DELETES)
def test_equality(tmp_path: Path, version: Any) -> None:
    commits = box(tmp_path, version, spec=BY_KIND)
    commits.run(append, frame([*TEN, (20, None, None)]))
    snapshot = commits.run(row_delta, equality={"id": [1, 2, 20], "kind": ["b", "b", None]})
    assert snapshot.operation == "delete"
    deletes = commits.entries(ContentType.EQUALITY_DELETE)
    assert {tuple(d["equality_ids"]) for d in deletes} == {(1, 2)}
    assert len(deletes) == 2  # a partition each
    assert [r[0] for r in rows_of(commits)] == [0, 2, 3, 4, 5, 6, 7, 8, 9]  # 2 is of kind a; null equals null
    commits.run(row_delta, frame([(3, "b", 33.0)]), equality=pa.table({"id": [3]}), equality_partition={"kind": "b"})
    assert [r[2] for r in rows_of(commits) if r[0] == 3] == [33.0]
    with pytest.raises(OptionError, match="give equality_partition"):
        commits.run(row_delta, equality={"id": [3]})
    assert not check_rules(commits.state)


def test_global_equality_deletes(tmp_path: Path) -> None:
    from iceexplore.commits import evolve_spec

    commits = box(tmp_path, 2)
    commits.run(append, frame(TEN))
    commits.box.commit(document_change=lambda document, _: evolve_spec(document, add=["kind"]))
    commits.run(append, frame([(i + 100, k, x) for i, k, x in TEN]))
    commits.run(row_delta, equality={"id": [5, 105]})
    (delete,) = commits.entries(ContentType.EQUALITY_DELETE)
    assert delete["partition_spec_id"] == 0
    assert len(rows_of(commits)) == 18


# Rewrites ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", one_of(2, EACH))
def test_compact(tmp_path: Path, version: Any) -> None:
    commits = box(tmp_path, version, spec=BY_KIND)
    for start in (0, 10, 20):
        commits.run(append, frame([(i, "ab"[i % 2], float(i)) for i in range(start, start + 10)]))
    if version != 1:
        names = commits.locations()
        commits.run(row_delta, deletes={names[0]: [0], names[1]: [1, 2]})
        commits.run(row_delta, equality={"id": [25], "kind": ["b"]})
        commits.run(append, frame([(25, "b", 0.5)]))  # newer than the delete
    before = rows_of(commits)
    snapshot_before = commits.state.snapshot
    snapshot = commits.run(compact)
    assert snapshot.operation == "replace"
    assert rows_of(commits) == before
    entries = commits.entries()
    assert len(entries) == 2
    assert sum(e["record_count"] for e in entries) == len(before)
    assert not check_rules(commits.state)
    assert snapshot_before is not None
    if version != 1:
        assert {e["sequence_number"] for e in entries} == {snapshot_before.sequence_number}
        assert not commits.entries(ContentType.POSITION_DELETE)  # DVs went with their files, position deletes too
    with pytest.raises(OptionError, match="nothing to compact"):
        commits.run(compact)
    commits.run(compact, commits.locations(), files=3)
    assert len(commits.locations()) == 6
    assert rows_of(commits) == before


@pytest.mark.parametrize("version", WITH_VECTORS)
def test_compaction_keeps_row_ids(tmp_path: Path, version: Any) -> None:
    commits = box(tmp_path, version)
    commits.run(append, frame(TEN))
    commits.run(append, frame([(i + 100, k, x) for i, k, x in TEN]))
    before = {e["location"]: (e["first_row_id"], e["sequence_number"]) for e in commits.entries()}
    assert sorted(first for first, _ in before.values()) == [0, 10]
    commits.run(row_delta, deletes={commits.locations()[0]: [3]})
    commits.run(compact)
    (name,) = commits.locations()
    stored = pq.read_table(commits.state.storage.resolve(name))
    found = {r["id"]: (r["_row_id"], r["_last_updated_sequence_number"]) for r in stored.to_pylist()}
    assert len(found) == 19
    for number, (row_id, sequence) in found.items():
        assert row_id == (number if number < 100 else number - 90)
        assert sequence == (1 if number < 100 else 2)


def test_compaction_of_made_up_files(tmp_path: Path) -> None:
    commits = box(tmp_path, 3, spec=BY_KIND)
    commits.run(append, 6, rows=100, partitions=[{"kind": "a"}, {"kind": "b"}])
    commits.run(row_delta, deletes={commits.locations()[0]: range(40)})
    old = {e["location"]: e for e in commits.entries()}
    stats_before = [leaf.stats(1) for leaf in commits.state.leaves(parts=frozenset({"entries", "stats"}))]
    low = min(v for s in stats_before for v in s.lower.to_pylist() if v is not None)
    commits.run(compact)
    entries = commits.entries()
    assert sorted(e["record_count"] for e in entries) == [260, 300]
    assert all(is_synthetic(e["location"]) for e in entries)
    assert sum(e["file_size_in_bytes"] for e in entries) < sum(e["file_size_in_bytes"] for e in old.values())
    leaves = list(commits.state.leaves(parts=frozenset({"entries", "stats"})))
    assert low in [v for leaf in leaves for v in leaf.stats(1).lower.to_pylist()]
    assert not commits.entries(*DELETES)
    with pytest.raises(OptionError, match="synthetic"):
        commits.run(compact, commits.locations(), read=True)
    assert not check_rules(commits.state)


def test_compact_some(tmp_path: Path) -> None:
    commits = box(tmp_path, 2, spec=BY_KIND)
    for _ in range(2):
        commits.run(append, frame(TEN))
    commits.run(append, 2, rows=10_000, partitions=[{"kind": "a"}])
    commits.run(compact, where="kind = 'b'")
    assert len(commits.locations()) == 5
    commits.run(compact, small_than=20_000)
    assert len(commits.locations()) == 4
    assert sorted(e["record_count"] for e in commits.entries()) == [10, 10, 10_000, 10_000]
    with pytest.raises(OptionError, match="synthetic"):  # all files are smaller than what Arrow has a number for
        commits.run(compact, small_than=2**63, read=True)


def test_a_damaged_file_refuses_the_compaction_whole(tmp_path: Path) -> None:
    commits = box(tmp_path, 2)
    commits.run(append, frame(TEN))
    commits.run(append, frame(TEN))
    Path(commits.state.storage.resolve(commits.locations()[1])).write_bytes(b"PAR1 no more PAR1")
    before = commits.written
    with pytest.raises(IceexploreError):
        commits.run(compact)
    assert commits.written == before


def test_compaction_conflicts_with_new_deletes(tmp_path: Path) -> None:
    first = box(tmp_path, 3)
    first.run(append, frame(TEN))
    first.run(append, frame(TEN))
    second = Commits(first.box.fork())
    second.run(row_delta, deletes={second.locations()[0]: [1]})
    with pytest.raises(CommitConflictError, match=r"no-new-deletes|no-concurrent-dv"):
        first.run(compact)
    third = Commits(first.box.fork())
    third.box.refresh()
    fourth = Commits(third.box.fork())
    fourth.run(row_delta, equality={"id": [5]})
    third.run(compact)  # keeps the sequence number that it started from: the new deletes still apply
    assert [r[0] for r in rows_of(third)] == [0, 0, 1, 2, 2, 3, 3, 4, 4, 6, 6, 7, 7, 8, 8, 9, 9]


@pytest.mark.parametrize("version", one_of(2, EACH, 1))
def test_rewrite_manifests(tmp_path: Path, version: Any) -> None:
    commits = box(tmp_path, version, spec=BY_KIND)
    for _ in range(4):
        commits.run(append, frame(TEN))
    before = sorted(commits.locations())
    if isinstance(version, tuple) and version[1] == {}:
        with pytest.raises(OptionError, match="no leaf manifests"):
            commits.run(rewrite_manifests)
        return
    assert commits.run(rewrite_manifests).operation == "replace"
    assert sorted(commits.locations()) == before
    assert not check_rules(commits.state)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_pyiceberg_reads_the_same_rows(tmp_path: Path, version: int) -> None:
    """Data, position deletes, vectors and compacted files, put where the table says that they are."""
    from pyiceberg.table import StaticTable

    commits = box(tmp_path, version, spec=BY_KIND)
    commits.run(append, frame(TEN))
    commits.run(append, 4, rows=50, materialize=True)
    if version > 1:
        commits.run(row_delta, frame([(77, "a", 7.0)]), deletes={commits.locations()[0]: [0, 3]})
        large = [e["location"] for e in commits.entries() if e["record_count"] > 10]
        commits.run(row_delta, deletes={large[0]: [1]})
    commits.run(compact, where="kind = 'a'")
    if version > 1:
        large = [e["location"] for e in commits.entries() if e["record_count"] > 10]
        commits.run(row_delta, deletes={large[0]: [1, 2], large[1]: [0]})
    for write in commits.box.storage.writes:
        place = Path(write.location)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(Path(write.real).read_bytes())
    scanned = StaticTable.from_metadata(commits.state.metadata_location).scan().to_arrow().to_pylist()
    theirs = sorted(((r["id"], r["kind"], r["x"]) for r in scanned), key=repr)
    assert theirs == sorted(rows_of(commits), key=repr)
    assert len(theirs) == (205 if version > 1 else 210)


# Cherry-pick ---------------------------------------------------------------------------------------------------------


def staged(commits: Commits, operation: Callable[..., Any], *args: Any, **how: Any) -> int:
    """A snapshot on a branch that main does not have."""
    main = commits.state.snapshot
    assert main is not None
    commits.box.commit(
        document_change=lambda document, _: set_ref(document, name="side", snapshot_id=main.snapshot_id, type="branch")
    )

    def make(writer: Any) -> Any:
        return operation(writer.base, writer, *args, **how)

    snapshot = commits.box.commit(make, ref="side")
    assert snapshot is not None
    return snapshot.snapshot_id


@pytest.mark.parametrize("version", one_of(2, EACH))
def test_cherry_pick_an_append(tmp_path: Path, version: Any) -> None:
    commits = box(tmp_path, version, spec=BY_KIND)
    commits.run(append, frame(TEN))
    side = staged(commits, append, frame([(50, "c", 5.0)]))
    with pytest.raises(RuleError, match="set_current_snapshot"):
        commits.run(cherry_pick, side)
    commits.run(append, frame([(60, "a", 6.0)]))
    snapshot = commits.run(cherry_pick, side)
    assert snapshot.operation == "append"
    assert (snapshot.summary or {})["source-snapshot-id"] == str(side)
    assert [r[0] for r in rows_of(commits)] == [*range(10), 50, 60]
    before = commits.written
    with pytest.raises(RuleError, match="already picked"):
        commits.run(cherry_pick, side)
    assert commits.written == before
    assert not check_rules(commits.state)


def test_cherry_pick_what_cannot_be_picked(tmp_path: Path) -> None:
    commits = box(tmp_path, 2, spec=BY_KIND)
    commits.run(append, frame(TEN))
    side = staged(commits, delete_where, "kind = 'a'")
    commits.run(append, frame([(60, "a", 6.0)]))
    with pytest.raises(RuleError, match=r"'delete'.*cherry-pick"):
        commits.run(cherry_pick, side)


@pytest.mark.parametrize("changed", [True, False])
def test_cherry_pick_an_overwrite_of_partitions(tmp_path: Path, changed: bool) -> None:
    from dataclasses import replace

    def replaced(state: Any, writer: Any, data: Any, kind: str) -> Any:
        change = overwrite(state, writer, data, where=f"kind = '{kind}'")
        return replace(change, summary={"replace-partitions": "true"})

    commits = box(tmp_path, 2, spec=BY_KIND)
    commits.run(append, frame(TEN))
    side = staged(commits, replaced, frame([(50, "a", 5.0)]), "a")
    commits.run(append, frame([(60, "a" if changed else "b", 6.0)]))
    if changed:
        with pytest.raises(RuleError, match="were added after the parent"):
            commits.run(cherry_pick, side)
        return
    snapshot = commits.run(cherry_pick, side)
    assert snapshot.operation == "overwrite"
    assert [r[0] for r in rows_of(commits)] == [1, 3, 5, 7, 9, 50, 60]


# Histories -----------------------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "positions", "equality", "delete", "overwrite", "compact", "manifests"]),
        st.integers(0, 2**16),
    ),
    min_size=1,
    max_size=7,
)


@pytest.mark.parametrize("version", [2, 3, (4, {}), (4, {"flush_data_files": 1, "flush_delete_files": 0})])
@settings(max_examples=max(5, settings().max_examples // 12))  # a history is some ten commits
@given(steps=STEPS)
def test_histories_against_a_plain_model(tmp_path_factory: Any, version: Any, steps: list[tuple[str, int]]) -> None:
    """Files as lists of rows: the same history, the same rows."""
    commits = box(tmp_path_factory.mktemp("h"), version, spec=BY_KIND)
    model: dict[str, list[tuple[Any, ...] | None]] = {}
    counter = 0

    def added() -> list[tuple[str, str | None]]:
        """The data files of the last commit, and the kind that each holds."""
        batch = commits.change.added
        if batch.partition is None:
            return []
        kinds = [place["1000"] for place in build.to_pylist(batch.partition)]
        pairs = zip(build.to_pylist(batch.entries["location"]), kinds, strict=True)
        return [(location, kind) for location, kind in pairs if location.endswith("-data.parquet")]

    def learn(rows: list[tuple[Any, ...]]) -> None:
        """What the last commit added: rows keep their order in a partition."""
        model.update({location: [r for r in rows if r[1] == kind] for location, kind in added()})

    for step, number in steps:
        names = sorted(model)
        name = names[number % len(names)] if names else None
        fresh = [(counter + i, "ab"[i % 2], float(i)) for i in range(1 + number % 5)]
        counter += len(fresh)
        if step == "append" or name is None:
            commits.run(append, frame(fresh))
            learn(fresh)
        elif step == "positions":
            at = number % len(model[name])
            if model[name][at] is None:
                continue
            commits.run(row_delta, deletes={name: [at]})
            model[name][at] = None
        elif step == "equality":
            victim = next((r for r in model[name] if r is not None), None)
            if victim is None:
                continue
            commits.run(row_delta, equality={"id": [victim[0]], "kind": [victim[1]]})
            model[name] = [None if r == victim else r for r in model[name]]
        elif step == "delete":
            commits.run(delete_files, name)
            del model[name]
        elif step == "overwrite":
            commits.run(overwrite, frame(fresh), delete=[name])
            del model[name]
            learn(fresh)
        elif step == "compact":
            commits.run(compact, names)
            left = [r for n in names for r in model[n] if r is not None]
            model.clear()
            for location, kind in added():
                stored = pq.read_table(commits.state.storage.resolve(location)).to_pylist()
                model[location] = [(r["id"], r["kind"], r["x"]) for r in stored]
                assert {r["kind"] for r in stored} == {kind}
            assert sorted(left) == sorted(r for rows in model.values() for r in rows if r)
        elif step == "manifests":
            try:
                commits.run(rewrite_manifests)
            except OptionError:  # everything is in the root
                assert isinstance(version, tuple)
    assert sorted(commits.locations()) == sorted(model)
    left = [r for rows in model.values() for r in rows if r is not None]
    assert rows_of(commits) == sorted(left, key=lambda row: (row[0], repr(row)))
    assert not check_rules(commits.state)
