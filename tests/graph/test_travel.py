"""Travel in time: the right snapshot, the right schema, the right clock, and errors that help."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore._samples import sample_path
from iceexplore.errors import OptionError, SnapshotNotFoundError, TableChangedError
from iceexplore.graph import format_ms, to_ms


@pytest.fixture(scope="module")
def trips() -> ix.Table:
    return ix.sample("trips")


def _raw(table: ix.Table) -> dict[str, Any]:
    return dict(table.metadata.raw)


def test_opening_reads_one_json_file(trips: ix.Table) -> None:
    t = ix.sample("trips")
    assert {r.kind for r in t.reads} <= {"metadata", "stat", "list"}
    assert sum(r.kind == "metadata" and r.location.endswith(".json") for r in t.reads) == 1


def test_snapshot_is_read_with_its_own_schema(trips: ix.Table) -> None:
    for raw in _raw(trips)["snapshots"]:
        then = trips.at(snapshot=raw["snapshot-id"])
        assert then.snapshot is not None
        assert then.snapshot.snapshot_id == raw["snapshot-id"]
        assert then.schema.schema_id == raw["schema-id"]
    assert len({s["schema-id"] for s in _raw(trips)["snapshots"]}) > 1


def test_branch_takes_the_tables_schema_and_a_tag_its_snapshots(trips: ix.Table) -> None:
    kinds = set()
    for name, raw in _raw(trips)["refs"].items():
        then = trips.at(ref=name)
        assert then.snapshot is not None and then.snapshot.snapshot_id == raw["snapshot-id"]
        kinds.add(raw["type"])
        if raw["type"] == "branch":
            assert then.schema.schema_id == _raw(trips)["current-schema-id"]
        else:
            assert then.schema.schema_id == then.snapshot.schema_id
    assert kinds == {"branch", "tag"}


def test_timestamp_is_inclusive_and_by_the_log(trips: ix.Table) -> None:
    log = sorted(_raw(trips)["snapshot-log"], key=lambda e: e["timestamp-ms"])
    alive = {s["snapshot-id"] for s in _raw(trips)["snapshots"]}
    for before, entry in zip([None, *log], log, strict=False):
        if entry["snapshot-id"] not in alive:
            continue
        at = trips.at(timestamp=entry["timestamp-ms"])
        assert at.snapshot is not None and at.snapshot.snapshot_id == entry["snapshot-id"]
        if before is not None and before["snapshot-id"] in alive and before["timestamp-ms"] < entry["timestamp-ms"]:
            earlier = trips.at(timestamp=entry["timestamp-ms"] - 1)
            assert earlier.snapshot is not None and earlier.snapshot.snapshot_id == before["snapshot-id"]
    with pytest.raises(SnapshotNotFoundError, match="history begins at"):
        trips.at(timestamp=log[0]["timestamp-ms"] - 1)


def test_every_form_of_a_time_is_the_same_time() -> None:
    ms = to_ms("2024-01-31T12:00:00")
    assert ms == 1_706_702_400_000
    assert to_ms(datetime(2024, 1, 31, 12)) == ms
    assert to_ms(datetime(2024, 1, 31, 12, tzinfo=UTC)) == ms
    assert to_ms(datetime(2024, 1, 31, 14, tzinfo=timezone(timedelta(hours=2)))) == ms
    assert to_ms("2024-01-31T14:00:00+02:00") == ms
    assert to_ms(date(2024, 1, 31)) == to_ms("2024-01-31") == 1_706_659_200_000
    assert to_ms(ms) == ms
    assert to_ms(datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)) == 253_402_300_799_999
    assert format_ms(ms) == "2024-01-31 12:00:00.000 UTC"
    assert format_ms(10**18) == "1000000000000000000 ms"
    for bad in ("yesterday", 1.5, True, object()):
        with pytest.raises(OptionError):
            to_ms(bad)


def test_without_a_log_the_snapshots_own_times_and_a_note(tmp_path: Path) -> None:
    path = _copy(tmp_path)
    newest = _newest(path)
    document = json.loads(newest.read_bytes())
    document["snapshot-log"] = []
    newest.write_text(json.dumps(document))
    t = ix.open(path)
    current = document["current-snapshot-id"]
    when = next(s["timestamp-ms"] for s in document["snapshots"] if s["snapshot-id"] == current)
    then = t.at(timestamp=when)
    assert then.snapshot is not None and then.snapshot.snapshot_id == current
    assert "no snapshot-log" in repr(then)
    assert "no snapshot-log" in repr(t)
    assert "no snapshot-log" not in repr(ix.sample("trips"))


def test_what_is_not_there_names_the_nearest(trips: ix.Table) -> None:
    some = trips.snapshots[0].snapshot_id
    with pytest.raises(SnapshotNotFoundError, match=str(some)):
        trips.at(snapshot=some + 1)
    name = next(n for n, r in trips.refs.items() if r.type == "tag")
    with pytest.raises(SnapshotNotFoundError, match=name):
        trips.at(ref=name + "x")
    with pytest.raises(ix.IceexploreError, match="999"):
        trips.at(version=999)
    with pytest.raises(OptionError, match="exactly one"):
        trips.at()
    with pytest.raises(OptionError, match="exactly one"):
        trips.at(snapshot=some, ref="main")
    with pytest.raises(OptionError, match="ref="):
        trips.at(snapshot="main")


def test_version_is_the_metadata_file_of_then(trips: ix.Table) -> None:
    then = trips.at(version=1)
    assert then.metadata_location.endswith("v1.metadata.json")
    assert then.metadata.table_uuid == trips.metadata.table_uuid
    assert len(then.snapshots) < len(trips.snapshots)
    assert "metadata version 1" in repr(then)


def test_metadata_of_another_table_is_reported_on_both(tmp_path: Path) -> None:
    path = _copy(tmp_path)
    document = json.loads((first := path / "metadata" / "v1.metadata.json").read_bytes())
    mine, its = document["table-uuid"], "00000000-0000-0000-0000-000000000001"
    first.write_text(json.dumps({**document, "table-uuid": mine.upper()}))
    t = ix.open(path)
    assert not t.at(version=1).problems
    first.write_text(json.dumps({**document, "table-uuid": its}))
    then = t.at(version=1)
    (newer,), (older,) = t.problems, then.problems
    assert newer.code == older.code == "table-uuid-differs"
    assert (newer.where, newer.found, newer.expected) == (t.metadata_location, mine, its)
    assert (older.where, older.found, older.expected) == (then.metadata_location, its, mine)
    assert newer.severity == "warning"


def test_refresh_is_a_new_table_and_another_uuid_an_error(tmp_path: Path) -> None:
    path = _copy(tmp_path)
    t = ix.open(path)
    newest = _newest(path)
    document = json.loads(newest.read_bytes())
    number = int(newest.name.split(".")[0][1:])
    document["properties"]["colour"] = "red"
    (path / "metadata" / f"v{number + 1}.metadata.json").write_text(json.dumps(document))
    (path / "metadata" / "version-hint.text").write_text(str(number + 1))
    fresh = t.refresh()
    assert fresh.properties["colour"] == "red"
    assert "colour" not in t.properties
    document["table-uuid"] = "00000000-0000-0000-0000-000000000001"
    (path / "metadata" / f"v{number + 2}.metadata.json").write_text(json.dumps(document))
    (path / "metadata" / "version-hint.text").write_text(str(number + 2))
    with pytest.raises(TableChangedError, match="00000000-0000-0000-0000-000000000001"):
        t.refresh()


def test_history_follows_the_log(trips: ix.Table) -> None:
    frame = trips.history()
    log = _raw(trips)["snapshot-log"]
    assert frame["snapshot_id"].tolist() == [e["snapshot-id"] for e in sorted(log, key=lambda e: e["timestamp-ms"])]
    assert str(frame["snapshot_id"].dtype).startswith("int64")


def _copy(tmp_path: Path) -> Path:
    path = tmp_path / "trips"
    shutil.copytree(sample_path("trips"), path)
    return path


def _newest(path: Path) -> Path:
    """The newest metadata file, rewritten as plain JSON."""
    import gzip

    files = sorted((path / "metadata").glob("v*.metadata.json"), key=lambda p: int(p.name.split(".")[0][1:]))
    data = files[-1].read_bytes()
    if data[:2] == b"\x1f\x8b":
        plain = files[-1].with_name(files[-1].name.replace(".gz", ""))
        files[-1].unlink()
        plain.write_bytes(gzip.decompress(data))
        return plain
    return files[-1]


@pytest.mark.parametrize("log", [True, False])
def test_commits_of_one_millisecond_keep_their_order(tmp_path: Path, log: bool) -> None:
    """Ids are no order: of v1, which has no sequence numbers, the log and the parents say it."""
    path = _copy(tmp_path)
    newest = _newest(path)
    document = json.loads(newest.read_bytes())
    history = document["snapshots"]
    for number, snapshot in enumerate(history):
        new = {"snapshot-id": 100 - number, "timestamp-ms": 5, "sequence-number": 0, "summary": {"operation": "x"}}
        snapshot |= new | {"parent-snapshot-id": 101 - number if number else None}
    last = history[-1]["snapshot-id"]
    document |= {"current-snapshot-id": last, "refs": {}, "statistics": []}
    document["snapshot-log"] = [{"timestamp-ms": 5, "snapshot-id": s["snapshot-id"]} for s in history] if log else []
    history.reverse()
    newest.write_text(json.dumps(document))
    t = ix.open(path)
    assert [s.snapshot_id for s in t.snapshots] == list(range(last, 101))[::-1]
    assert t.history()["snapshot_id"].tolist() == list(range(last, 101))[::-1]
    then = t.at(timestamp=5)
    assert then.snapshot is not None and then.snapshot.snapshot_id == last
    card = repr(t).partition("\nSnapshots")[2]
    assert card.index(f" {last} ") < card.index(f" {last + 1} ") < card.index(f" {last + 2} ")


def test_arguments_of_another_type_are_refused_in_words(trips: ix.Table) -> None:
    x: Any = ix
    t: Any = trips
    path, tree = sample_path("trips"), t.tree()
    asked: list[Any] = [
        lambda: x.open(path, moved="x"), lambda: x.open(path, moved={"a": 1}), lambda: x.open(path, allow=[1]),
        lambda: x.open(path, allow=None), lambda: x.open(path, properties="x"), lambda: x.open(path, properties=1),
        lambda: t.at(version=1.5), lambda: t.at(ref=1), lambda: t.at(ref=[]),
        lambda: x.open_file(None), lambda: x.open_file(b"x"), lambda: t.simulate(overlay=1),
        lambda: x.empty({"id": "long"}, location=None), lambda: t.retained(1.5),
        lambda: t.tree(max_nodes=None), lambda: tree.node(None), lambda: tree.children([], limit=3),
        lambda: tree.children("table", limit=None), lambda: tree.expand(b"x"), lambda: t.rows("km > 5", limit=""),
        lambda: t.changes("2024-q1-audit", "main").locations("moved"), lambda: t.plan().distribution(by=[]),
    ]  # fmt: skip
    for call in asked:
        with pytest.raises(ix.OptionError, match=r"give|choose|is no|ids look like|expected"):
            call()
    assert len(trips.head(10**30)) == trips.count()
    assert x.open(path, moved={"s3://a": Path(path)}, allow=Path(path)).count() == trips.count()


def test_what_a_process_sends_to_another(trips: ix.Table) -> None:
    """A pool of processes broke on an error that could not be made again, and on a table."""
    for error in (
        ix.RuleError("one-dv", "No."), ix.CommitConflictError("one-dv", "No", ["f"]), ix.OptionError("No."),
        ix.FormatError("No", location="f", offset=3), ix.FileMissingError("No."),
    ):  # fmt: skip
        again: Any = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
        assert str(copy.copy(error)) == str(error)
    again = pickle.loads(pickle.dumps(trips))
    assert (repr(again), again.count(), len(again.problems)) == (repr(trips), trips.count(), len(trips.problems))
    assert len({*trips.snapshots, *again.snapshots}) == len(trips.snapshots)


def test_what_is_made_of_a_table_goes_to_another_process(trips: ix.Table, tmp_path: Path) -> None:
    manifest = next(sample_path("trips").glob("metadata/*-m0.avro"))
    diff, tree, loose = trips.diff("2024-q1-audit", "main"), trips.tree(), ix.open_file(manifest)
    for one in (diff, tree, loose):
        again: Any = pickle.loads(pickle.dumps(one))
        assert repr(again) == repr(copy.deepcopy(one)) == repr(one)
    assert pickle.loads(pickle.dumps(diff)).carried == diff.carried
    assert pickle.loads(pickle.dumps(tree)).to_text() == tree.to_text()
    assert pickle.loads(pickle.dumps(loose)).arrow() == loose.arrow()
    s, lab = trips.simulate(), ix.create(tmp_path / "lab", {"id": "long"})
    for live, text in ((s, r"simulation.*save\(folder\)"), (s.cost(), "simulation"), (lab, r"lab.*ix\.lab")):
        with pytest.raises(TypeError, match=rf"{text}"):
            pickle.dumps(live)
    other = copy.deepcopy(s)
    other.append(1, rows=1)
    assert len(other.table.snapshots) == len(s.table.snapshots) + 1


def test_names_in_errors_and_problems_cannot_drive_a_terminal(tmp_path: Path) -> None:
    path = _copy(tmp_path)
    newest = _newest(path)
    document = json.loads(newest.read_bytes())
    document["refs"]["x\x1b[2J\u202e"] = {"snapshot-id": 5, "type": "branch"}
    newest.write_text(json.dumps(document))
    t = ix.open(path)
    with pytest.raises(SnapshotNotFoundError) as refused:
        t.at(ref="x")
    for text in (str(refused.value), repr(t.problems)):
        assert "x␛[2J⟨U+202E⟩" in text and "\x1b" not in text
