"""The sandbox's own part: attempts, the pointer, names, times, records. What a layout writes is tested with layouts."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from iceexplore.commits import (
    Applied,
    Change,
    CommitWriter,
    FolderFiles,
    LayoutOptions,
    MetadataNames,
    Pointer,
    Sandbox,
    new_table_document,
    publish_by_rename,
    publish_by_swap,
    rollback,
    set_properties,
    set_ref,
    upgrade,
)
from iceexplore.errors import (
    CommitConflictError,
    IceexploreError,
    OptionError,
    RuleError,
    SnapshotNotFoundError,
    UnsupportedError,
)
from iceexplore.graph import TableState, open_state, refreshed, travel
from iceexplore.storage import ExistsError, OverlayStorage, list_versions

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}


def hashes(folder: Path) -> dict[str, str]:
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.rglob("*")) if p.is_file()}


def thin_layout(change: Change, writer: CommitWriter) -> Applied:
    """A leaf that attempts share, and a list that is the base's, copied: what the sandbox does around it is real."""
    if change.summary.get("refuse"):
        raise RuleError("duplicate-file", "the layout looked before it wrote")

    def leaf() -> str:
        location = writer.new_location("m0", ".avro")
        writer.write(location, b"leaf", kind="manifest")
        return location

    writer.once("leaf", leaf)
    root = writer.new_location("snap", ".avro")
    base = writer.base
    old = base.snapshot.manifest_list if base.snapshot else None
    data = base.storage.read(old, kind="manifest-list") if old else b"nothing yet"
    writer.write(root, data, kind="manifest-list")
    rows = 5 if base.metadata.format_version >= 3 else None
    return Applied(root, {"attempt": str(writer.attempt), **change.summary}, rows)


@pytest.fixture(autouse=True)
def layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iceexplore.commits.transaction._committer.layout_of", lambda options: thin_layout)


@pytest.fixture
def table(trips: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trips, tmp_path / "trips"))


def make_table(folder: Path, version: int, name: str = "v1.metadata.json", **properties: str) -> Path:
    document = new_table_document(
        format_version=version,
        location=str(folder),
        schema=SCHEMA,
        properties=properties,
        table_uuid="00000000-0000-4000-8000-000000000000",
        timestamp_ms=1_700_000_000_000,
    )
    (folder / "metadata").mkdir(parents=True)
    (folder / "metadata" / name).write_text(json.dumps(document))
    return folder


def sandbox(source: Path | TableState, version: int | None = None, **given: Any) -> Sandbox:
    state = open_state(source) if isinstance(source, Path) else source
    return Sandbox(state, LayoutOptions.of(version or state.metadata.format_version), **given)


def append(writer: CommitWriter) -> Change:
    return Change("append", summary={"by": "a test"})


def test_a_commit_moves_the_state_and_nothing_else(table: Path) -> None:
    before = hashes(table)
    state = open_state(table)
    box = sandbox(state)
    frozen = box.state
    snapshot = box.commit(append)
    assert snapshot is not None and snapshot.operation == "append" and snapshot.summary is not None
    assert snapshot.summary["by"] == "a test"
    assert box.state.snapshot == snapshot and box.state.ref == "main"
    assert snapshot.parent_snapshot_id == state.snapshot.snapshot_id  # type: ignore[union-attr]
    assert snapshot.sequence_number == state.metadata.last_sequence_number + 1
    assert snapshot.first_row_id == state.metadata.next_row_id
    assert box.state.metadata.next_row_id == (state.metadata.next_row_id or 0) + 5
    assert box.state.metadata.last_updated_ms == snapshot.timestamp_ms > (state.metadata.last_updated_ms or 0)
    assert frozen.snapshot == state.snapshot and frozen.metadata_location == state.metadata_location
    assert hashes(table) == before
    assert box.state.metadata.metadata_log[-1].metadata_file == state.metadata_location
    assert box.state.opened.version == (state.opened.version or 0) + 1
    assert Path(box.state.metadata_location).name == f"v{box.state.opened.version}.gz.metadata.json"
    written = [(w.kind, w.commit, w.attempt) for w in box.storage.writes]
    assert written == [("manifest", 1, 1), ("manifest-list", 1, 1), ("metadata", 1, 1)]


def test_what_it_writes_can_be_opened_through_the_storage_anew(table: Path) -> None:
    box = sandbox(table)
    made = box.commit(append)
    again = refreshed(box.state)
    assert again.snapshot == made and again.metadata == box.state.metadata
    assert isinstance(again.storage, OverlayStorage)
    first = open_state(table)
    older = travel(box.state, version=first.opened.version)
    assert older.snapshot == first.snapshot
    versions = [v.number for v in list_versions(box.state.opened)]
    assert versions[-1] == box.state.opened.version and first.opened.version in versions


def test_a_state_of_before_is_refreshed_to_the_newest(table: Path) -> None:
    box = sandbox(table)
    before = box.state
    made = box.commit(append)
    assert refreshed(before).snapshot == made


@pytest.mark.parametrize("version", [1, 2, 3])
def test_first_snapshot_of_an_empty_table(tmp_path: Path, version: int) -> None:
    box = sandbox(make_table(tmp_path / "t", version))
    snapshot = box.commit(append)
    assert snapshot is not None and snapshot.parent_snapshot_id is None
    assert snapshot.sequence_number == (0 if version == 1 else 1)
    assert snapshot.first_row_id == (0 if version == 3 else None)
    assert box.state.metadata.refs["main"].snapshot_id == snapshot.snapshot_id
    assert [e.snapshot_id for e in box.state.metadata.snapshot_log] == [snapshot.snapshot_id]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_first_commit_upgrades_in_its_own_metadata_file(tmp_path: Path, version: int) -> None:
    state = open_state(make_table(tmp_path / "t", 1))
    options = LayoutOptions.of(version, **({"dialect": "v4-java"} if version == 4 else {}))
    box = Sandbox(state, options)
    assert box.state.metadata.format_version == 1
    seen: list[int] = []

    def change(writer: CommitWriter) -> Change:
        seen.append(writer.base.metadata.format_version)
        return append(writer)

    box.commit(change)
    assert seen == [version] and box.state.metadata.format_version == version
    assert [w.kind for w in box.storage.writes].count("metadata") == 1


def test_no_way_back_to_a_lower_version(table: Path) -> None:
    with pytest.raises(OptionError, match="cannot be downgraded"):
        sandbox(table, 2)
    with pytest.raises(OptionError, match="max_attempts"):
        sandbox(table, max_attempts=0)


def test_an_encrypted_table_is_refused(tmp_path: Path) -> None:
    folder = make_table(tmp_path / "t", 3, **{"encryption.key-id": "k"})
    with pytest.raises(UnsupportedError, match="encrypted"):
        sandbox(folder)


# Refusals -------------------------------------------------------------------------------------------------------------


def refuse(writer: CommitWriter) -> Change:
    raise RuleError("files-exist", "not there")


@pytest.mark.parametrize(
    ("change", "more"),
    [
        (refuse, {}),
        (lambda w: Change("append", summary={"refuse": "1"}), {}),
        (append, {"ref": "nowhere"}),
        (append, {"ref": "before-v3"}),
        (append, {"document_change": lambda d, ms: rollback(d, snapshot_id=1, timestamp_ms=ms)}),
        (None, {"document_change": lambda d, ms: upgrade(d, 2)}),
        (None, {"document_change": lambda d, ms: set_properties(d, set={"format-version": "2"})}),
        (None, {"document_change": lambda d, ms: set_ref(d, name="x", snapshot_id=12, type="tag")}),
    ],
)
def test_a_refusal_comes_before_a_byte_is_written(table: Path, change: Any, more: dict[str, Any]) -> None:
    state = open_state(table)
    tags = [n for n, r in state.metadata.refs.items() if r.type == "tag"]
    if more.get("ref") == "before-v3":
        more = {"ref": tags[0]}
    box = sandbox(state)
    with pytest.raises(IceexploreError):
        box.commit(change, **more)
    assert len(box.storage.writes) == 0 and box.records == ()
    assert box.state.metadata_location == state.metadata_location == box.pointer.location
    assert box.commit(append) is not None


def test_a_tag_takes_no_commits_and_a_branch_must_be_there(table: Path) -> None:
    box = sandbox(table)
    tag = next(n for n, r in box.state.metadata.refs.items() if r.type == "tag")
    with pytest.raises(RuleError) as tagged:
        box.commit(append, ref=tag)
    assert tagged.value.rule == "ref-type"
    with pytest.raises(SnapshotNotFoundError, match="main"):
        box.commit(append, ref="nowhere")


# Without files --------------------------------------------------------------------------------------------------------


def test_a_change_of_the_document_alone(table: Path) -> None:
    box = sandbox(table)
    head = box.state.snapshot
    found = box.commit(document_change=lambda d, ms: set_properties(d, set={"a": "b"}), what="set_properties")
    assert found == head and box.state.metadata.properties["a"] == "b"
    assert [w.kind for w in box.storage.writes] == ["metadata"]
    assert [(r.what, r.snapshot_id, r.attempts) for r in box.records] == [("set_properties", None, 1)]


def test_what_changes_nothing_is_no_commit(table: Path) -> None:
    box = sandbox(table)
    box.commit(document_change=lambda d, ms: set_properties(d, remove=["not-there"]))
    assert len(box.storage.writes) == 0 and box.records == ()


def test_files_and_document_in_one_commit(table: Path) -> None:
    box = sandbox(table)
    box.commit(append, document_change=lambda d, ms: set_properties(d, set={"a": "b"}))
    assert box.state.metadata.properties["a"] == "b" and len(box.records) == 1


def test_a_branch_moves_alone(table: Path) -> None:
    box = sandbox(table)
    head = box.state.snapshot
    assert head is not None
    box.commit(document_change=lambda d, ms: set_ref(d, name="audit2", snapshot_id=head.snapshot_id, type="branch"))
    made = box.commit(append, ref="audit2")
    assert made is not None and made.parent_snapshot_id == head.snapshot_id
    assert box.state.snapshot == head and box.state.metadata.refs["audit2"].snapshot_id == made.snapshot_id
    again = box.commit(append, ref="audit2")
    assert again is not None and again.parent_snapshot_id == made.snapshot_id


# Names and times ------------------------------------------------------------------------------------------------------


def test_names_follow_the_tables(tmp_path: Path) -> None:
    catalog = make_table(tmp_path / "c", 2, "00007-8b1ff0c5-4a3a-4d5c-9c1c-3b0e4b9c1b1a.metadata.json")
    box = sandbox(catalog)
    box.commit(append)
    name = Path(box.state.metadata_location).name
    assert (
        name.startswith("00008-") and name.endswith(".metadata.json") and len(name) == len("00008-.metadata.json") + 36
    )
    packed = sandbox(make_table(tmp_path / "g", 2, **{"write.metadata.compression-codec": "gzip"}))
    packed.commit(append)
    assert packed.state.metadata_location.endswith("/v2.gz.metadata.json")
    data = packed.storage.read(packed.state.metadata_location, kind="metadata")
    assert json.loads(gzip.decompress(data))["format-version"] == 2


def test_from_an_older_metadata_file_no_name_of_the_table_is_hidden(table: Path) -> None:
    newest = open_state(table)
    older = open_state(table, version=5)
    box = sandbox(older)
    box.commit(append)
    assert box.state.opened.version is not None and newest.opened.version is not None
    taken = {v.name for v in list_versions(newest.opened)}
    assert Path(box.state.metadata_location).name not in taken


def test_a_seed_repeats_everything(table: Path) -> None:
    def run(seed: int | None) -> tuple[list[str], bytes]:
        box = sandbox(table, seed=seed)
        box.commit(append)
        box.commit(document_change=lambda d, ms: set_properties(d, set={"a": "b"}))
        box.commit(append)
        return [w.location for w in box.storage.writes], box.storage.read(box.state.metadata_location, kind="metadata")

    assert run(7) == run(7)
    assert run(7) != run(8)
    assert run(None) != run(None)


def test_time_always_goes_on(table: Path) -> None:
    box = sandbox(table, clock=lambda: 5)
    first, second = box.commit(append), box.commit(append)
    assert first is not None and second is not None
    last = open_state(table).metadata.last_updated_ms
    assert last is not None and first.timestamp_ms == last + 1 and second.timestamp_ms == last + 2
    assert travel(box.state, timestamp=first.timestamp_ms).snapshot == first


# Two writers ----------------------------------------------------------------------------------------------------------


def test_the_second_writer_rebases_and_uses_its_manifests_again(table: Path) -> None:
    one = sandbox(table)
    two = one.fork()
    calls: list[int] = []

    def change(writer: CommitWriter) -> Change:
        calls.append(writer.attempt)
        return append(writer)

    a = one.commit(append)
    b = two.commit(change)
    assert a is not None and b is not None and b.parent_snapshot_id == a.snapshot_id
    assert b.sequence_number == a.sequence_number + 1 and (b.first_row_id or 0) == (a.first_row_id or 0) + 5
    assert calls == [1] and b.summary is not None and b.summary["attempt"] == "2"
    mine = [(w.kind, w.attempt) for w in two.storage.writes if w.commit == 2]
    assert mine == [("manifest", 1), ("manifest-list", 1), ("manifest-list", 2), ("metadata", 2)]
    assert two.records[-1].attempts == 2 and len(two.records[-1].reads) == 2
    assert one.state.snapshot == a and one.refresh().snapshot == b


def test_catalog_tables_leave_the_losers_metadata_file(tmp_path: Path) -> None:
    one = sandbox(make_table(tmp_path / "t", 2, "00001-8b1ff0c5-4a3a-4d5c-9c1c-3b0e4b9c1b1a.metadata.json"))
    two = one.fork()
    one.commit(append)
    two.commit(append)
    assert [w.attempt for w in two.storage.writes if w.commit == 2 and w.kind == "metadata"] == [1, 2]


def test_attempts_run_out(table: Path) -> None:
    one = sandbox(table, max_attempts=2)
    other = one.fork()

    def slow(change: Change, writer: CommitWriter) -> Applied:
        if writer.storage.commit == 1:  # type: ignore[attr-defined]
            other.refresh()
            other.commit(append)
        return thin_layout(change, writer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("iceexplore.commits.transaction._committer.layout_of", lambda options: slow)
        with pytest.raises(CommitConflictError, match="2 attempts") as failed:
            one.commit(append)
    assert failed.value.rule == "table-unchanged"
    record = next(r for r in one.records if r.number == 1)
    assert record.metadata_location is None and record.attempts == 2
    assert {w.attempt for w in one.storage.writes if w.commit == 1} == {1, 2}


@pytest.mark.parametrize(("text", "most"), [("0", 1), ("2", 3), ("x", 5), ("-1", 5), ("9" * 400, 5)])
def test_retries_by_the_tables_property(tmp_path: Path, text: str, most: int) -> None:
    one = sandbox(make_table(tmp_path / "t", 2, **{"commit.retry.num-retries": text}))
    other = one.fork()

    def slow(change: Change, writer: CommitWriter) -> Applied:
        if writer.storage.commit == 1:  # type: ignore[attr-defined]
            other.refresh()
            other.commit(append)
        return thin_layout(change, writer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("iceexplore.commits.transaction._committer.layout_of", lambda options: slow)
        with pytest.raises(CommitConflictError, match=f"{most} attempts"):
            one.commit(append)


def test_pinned_keys(table: Path) -> None:
    one = sandbox(table)
    two, three = one.fork(), one.fork()
    one.commit(document_change=lambda d, ms: {**d, "last-column-id": 99})
    with pytest.raises(CommitConflictError, match="last-column-id") as failed:
        two.commit(document_change=lambda d, ms: {**d, "x": 1}, pins=("current-schema-id", "last-column-id"))
    assert failed.value.rule == "schema-unchanged" and two.records[-1].number == 1
    three.commit(document_change=lambda d, ms: set_properties(d, set={"a": "b"}), pins=("current-schema-id",))
    assert three.state.metadata.last_column_id == 99 and three.state.metadata.properties["a"] == "b"


def test_many_writers_at_once(table: Path) -> None:
    first = sandbox(table, max_attempts=100)
    writers = [first.fork() for _ in range(4)]
    failures: list[BaseException] = []

    def work(box: Sandbox) -> None:
        try:
            for _ in range(5):
                box.commit(append)
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(w,)) for w in writers]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []
    base = open_state(table)
    state = first.refresh()
    assert len(state.metadata.snapshots) == len(base.metadata.snapshots) + 20
    at, seen = state.snapshot, []
    while at is not None and at.snapshot_id != base.snapshot.snapshot_id:  # type: ignore[union-attr]
        seen.append(at.sequence_number)
        at = state.metadata.snapshot(at.parent_snapshot_id)
    assert seen == sorted(seen, reverse=True) and len(seen) == 20
    assert sorted(r.number for r in first.records) == list(range(1, 21))


# The pointer and the two protocols ------------------------------------------------------------------------------------


def test_swap() -> None:
    pointer = Pointer("a")
    assert not pointer.swap("b", "c") and pointer.location == "a"
    assert pointer.swap("a", "c") and pointer.location == "c"

    def never() -> str:
        raise AssertionError("a commit that loses leaves no file")

    assert not pointer.swap_with("a", never)
    assert pointer.swap_with("c", lambda: "e") and pointer.location == "e"


def test_names() -> None:
    from random import Random

    version = MetadataNames.of("s3://b/t/metadata/v3.gz.metadata.json")
    assert version.by_version and version.location(4, Random(1)) == "s3://b/t/metadata/v4.metadata.json"
    assert version.location(4, Random(1), "GZIP") == "s3://b/t/metadata/v4.gz.metadata.json"
    assert not MetadataNames.of("m/00003-x.metadata.json").by_version
    assert not MetadataNames.of("m/vacation.metadata.json").by_version


def test_both_protocols_on_a_real_folder(tmp_path: Path) -> None:
    files = FolderFiles(tmp_path, "s3://b/t/metadata")
    pointer = Pointer("s3://b/t/metadata/v1.metadata.json")
    new = "s3://b/t/metadata/v2.metadata.json"
    assert publish_by_rename(files, pointer, pointer.location, new, b"{}")
    assert (tmp_path / "v2.metadata.json").read_bytes() == b"{}" and pointer.location == new
    stale = Pointer("s3://b/t/metadata/v1.metadata.json")  # another process, which has not seen it
    assert not publish_by_rename(files, stale, stale.location, new, b"other")
    assert (tmp_path / "v2.metadata.json").read_bytes() == b"{}"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["v2.metadata.json"]
    assert not publish_by_swap(files, pointer, "s3://b/t/metadata/v1.metadata.json", "s3://b/t/metadata/3-x", b"1")
    assert (tmp_path / "3-x").exists() and pointer.location == new
    with pytest.raises(ExistsError):
        files.write(new, b"", kind="metadata")
    for bad in ("s3://b/t/metadata/../x", "s3://b/other/x", "s3://b/t/metadata/"):
        with pytest.raises(ValueError, match="not a file under"):
            files.write(bad, b"", kind="metadata")


def test_of_many_renames_to_one_name_one_wins(tmp_path: Path) -> None:
    files, won = FolderFiles(tmp_path, "t"), []
    barrier = threading.Barrier(6)

    def race(n: int) -> None:
        barrier.wait()
        if publish_by_rename(
            files, Pointer("t/v1.metadata.json"), "t/v1.metadata.json", "t/v2.metadata.json", b"%d" % n
        ):
            won.append(b"%d" % n)

    threads = [threading.Thread(target=race, args=(n,)) for n in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(won) == 1 and (tmp_path / "v2.metadata.json").read_bytes() == won[0]


def test_notes_say_that_it_is_a_simulation(table: Path) -> None:
    box = sandbox(table)
    box.commit(append)
    note = box.state.notes[0]
    assert note.startswith("A simulation: ") and box.state.metadata.location in note
    assert box.storage.overlay_folder in note
    again = sandbox(box.state)
    assert sum(n.startswith("A simulation: ") for n in again.state.notes) == 1


def test_a_sandbox_on_a_sandbox(table: Path) -> None:
    below = sandbox(table)
    a = below.commit(append)
    above = sandbox(below.state)
    b = above.commit(append)
    assert a is not None and b is not None and b.parent_snapshot_id == a.snapshot_id
    assert below.state.snapshot == a
