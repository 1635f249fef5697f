"""The timeline's Python side: lanes, sizes, what differs between two snapshots."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.metadata import Ref, Snapshot
from iceexplore.storage import CACHE
from iceexplore.widgets import Timeline
from iceexplore.widgets.timeline._lanes import MAX_LANES, lanes_of
from iceexplore.widgets.timeline._panel import MAX_SNAPSHOTS
from tests.helpers.hostile import HOSTILE


@pytest.fixture
def table() -> ix.Table:
    return ix.sample("trips")


@pytest.fixture
def widget(table: ix.Table) -> Iterator[Timeline]:
    made = Timeline(table)
    yield made
    made.close()


def snapshot(number: int, parent: int | None = None, ms: int = 0, **summary: str) -> Snapshot:
    recorded = {"operation": "append", **{key.replace("_", "-"): value for key, value in summary.items()}}
    return Snapshot(number, parent, number, ms or number, None, (), recorded, None)


def branch(name: str, number: int) -> tuple[str, Ref]:
    return name, Ref(name, "branch", number)


def with_snapshots(state: Any, snapshots: Any, refs: dict[str, Ref], current: int | None) -> Any:
    """The state of a table that has these snapshots."""
    from dataclasses import replace

    metadata = replace(state.metadata, snapshots=tuple(snapshots), refs=refs, current_snapshot_id=current)
    return replace(state, metadata=metadata, snapshot=metadata.snapshot())


def test_every_snapshot_is_there(table: ix.Table, widget: Timeline) -> None:
    assert [s["id"] for s in widget.snapshots] == [str(s.snapshot_id) for s in table.snapshots]
    by_ref = {name: s for s in widget.snapshots for name in s["refs"]}
    assert set(by_ref) == set(table.metadata.refs)
    assert by_ref["main"]["lane"] == 0
    assert by_ref["promotion"]["lane"] == 1, "a branch's own snapshots are below"
    assert all(s["reached"] for s in widget.snapshots)
    ids = [s["id"] for s in widget.snapshots]
    for sent, real in zip(widget.snapshots, table.snapshots, strict=True):
        wanted = -1 if real.parent_snapshot_id is None else ids.index(str(real.parent_snapshot_id))
        assert sent["parent"] == wanted


def test_sizes_are_the_summary_s(table: ix.Table, widget: Timeline) -> None:
    for sent, real in zip(widget.snapshots, table.snapshots, strict=True):
        recorded = {k: int(v) for k, v in (real.summary or {}).items() if v.isdecimal()}
        marked = recorded.get("added-position-deletes", 0) + recorded.get("added-equality-deletes", 0)
        before = recorded.get("removed-position-deletes", 0)  # a vector took them in, or they went with their file
        assert sent["rows"] == [recorded.get("added-records", 0), recorded.get("deleted-records", 0) + marked - before]
        counts = [table.at(snapshot=one).count() for one in (real.snapshot_id, real.parent_snapshot_id) if one]
        assert sent["rows"][0] - sent["rows"][1] == counts[0] - sum(counts[1:]), "as many as a scan finds"
        assert sent["bytes"] == [recorded.get("added-files-size", 0), recorded.get("removed-files-size", 0)]
    assert any(s["rows"][1] for s in widget.snapshots)


def test_a_change_is_counted_in_one_way(table: ix.Table, widget: Timeline) -> None:
    # The last commit removes a file with 60 rows, of which 2 were deleted before: 58 rows went.
    last = table.snapshots[-1]
    words = ["−1 data file", "−58 rows", "−1 delete file"]
    assert widget.snapshots[-1]["words"].split(" · ")[2:5] == words
    assert f" delete     main       {'  '.join(words)}" in repr(table), "the card"
    assert " · ".join(words) in str(table.tree(depth="snapshots")), "the tree"
    for one in table.snapshots[1:]:
        assert one.parent_snapshot_id is not None
        found, sent = table.diff(one.parent_snapshot_id, one.snapshot_id), widget.snapshots[table.snapshots.index(one)]
        assert [*found.rows] == sent["rows"], one.operation
    assert last.parent_snapshot_id is not None
    assert "Rows          +0 −58" in repr(table.diff(last.parent_snapshot_id, last.snapshot_id))


def test_words(widget: Timeline, table: ix.Table) -> None:
    times = [s["time"] for s in widget.snapshots]
    assert widget.snapshots[0]["words"] == f"{times[0]} · append · +3 data files · +180 rows · +7.2 KiB"
    legend = [_text(block) for block in widget.legend["files"]]
    assert legend[:4] == ["● append", "■ overwrite", "▼ delete", "◆ replace"]
    assert legend[4:] == ["bar height: files added ↑, removed ↓ (log scale, max 9)"]
    odd = [snapshot(1, operation="vacuum", deleted_records="1234"), Snapshot(2, None, 0, 0, None, None, None, None)]
    made = Timeline(with_snapshots(table.state, odd, dict([branch("main", 1)]), 1))
    assert [s["words"].split(" · ", 1)[1] for s in made.snapshots] == [
        "no operation · not reachable from any ref",
        "vacuum · −1,234 rows",
    ]
    assert [_text(block) for block in made.legend["bytes"]] == ["○ other", "hollow: not reachable from any ref"]
    made.close()


def _text(block: list[Any]) -> str:
    return "".join(part if isinstance(part, str) else part[1] for part in block[1])


def test_two_are_compared(table: ix.Table, widget: Timeline) -> None:
    first, last = table.snapshots[2].snapshot_id, table.snapshots[-1].snapshot_id
    CACHE.clear()  # what another test has read would be kept
    reads = len(table.reads)
    widget.select(snapshot=last, against=first)
    assert widget.settle(60)
    assert widget.error == {}
    assert (widget.comparison["against"], widget.comparison["snapshot"]) == (str(first), str(last))
    counts = table.diff(first, last).counts.set_index("content")
    rows = {what: (more, less) for what, more, less in widget.comparison["rows"]}
    data = counts.loc["data file"]
    assert rows["data files"] == (data["added_files"], data["removed_files"])
    counted = [table.at(snapshot=one).count() for one in (first, last)]
    assert rows["rows"] == table.diff(first, last).rows
    assert rows["rows"][0] - rows["rows"][1] == counted[1] - counted[0], "as many as a scan finds"
    assert rows["bytes"] == (counts["added_bytes"].sum(), counts["removed_bytes"].sum()), "deletion vectors too"
    others = counts.drop("data file").sum()
    assert rows["delete files"] == (others["added_files"], others["removed_files"])
    more, less = rows["data files"]
    assert _text(widget.comparison["differences"][0]) == f"+{more} −{less} data files"
    json.dumps(widget.comparison)
    assert len(table.reads) > reads
    recorded = widget.comparison["differences"]
    widget.select(snapshot=first, against=last)
    assert widget.settle(60)
    assert widget.comparison["snapshot"] == str(first)
    assert widget.comparison["differences"] == recorded, "from the older to the newer one, whichever is shown"
    widget.select(against="")
    assert widget.settle(60)
    assert widget.comparison == {}


def test_a_cancelled_comparison_is_taken_back(table: ix.Table, widget: Timeline) -> None:
    widget.select(against=table.snapshots[0])
    widget.cancelled += 1
    assert widget.settle(60)
    assert (widget.selection["against"], widget.comparison) == ("", {}), "nothing waits for what does not come"
    widget.select(against=table.snapshots[0])
    assert widget.settle(60)
    assert widget.comparison["against"] == str(table.snapshots[0].snapshot_id)
    widget.cancelled += 1
    assert widget.selection["against"], "it is there"


def test_what_is_compared_with_itself_differs_in_nothing(table: ix.Table, widget: Timeline) -> None:
    widget.select(snapshot=table.snapshots[0], against=table.snapshots[0])
    assert widget.settle(60)
    assert widget.comparison == {}
    assert widget.error == {}


def test_opening_reads_one_metadata_file(table: ix.Table) -> None:
    made = Timeline(table)
    assert made.settle(10)
    made.close()
    assert {read.kind for read in table.reads} <= {"metadata", "stat", "list"}


def test_selected_is_the_snapshot(table: ix.Table, widget: Timeline) -> None:
    assert widget.selected == table.snapshot
    widget.select(snapshot=table.snapshots[0].snapshot_id)
    assert widget.selected == table.snapshots[0]


def test_years_have_four_digits(table: ix.Table) -> None:
    times = [-62_135_596_800_000, -30_000_000_000_123, 123, 10**18]
    many = [snapshot(i, None, ms=ms) for i, ms in enumerate(times, 1)]
    made = Timeline(with_snapshots(table.state, many, {}, 4))
    shown = [one["time"] for one in made.snapshots]
    made.close()
    assert shown[0] == "0001-01-01 00:00:00 UTC"
    assert shown[1].startswith("1019-") and shown[2:] == ["1970-01-01 00:00:00.123 UTC", "1000000000000000000 ms"]


def test_no_snapshot(tmp_path: Any) -> None:
    from iceexplore.widgets import Explorer

    empty = ix.empty({"a": "long"})
    for kind in (Timeline, Explorer):
        made = kind(empty)
        assert made.settle(10)
        assert made.snapshots == []
        assert made.selection["snapshot"] == ""
        assert made.collapsed is None, "chosen by nobody"
        assert made.error == {}
        made.close()


def test_thousands_are_sent_in_little(table: ix.Table) -> None:
    ids = range(2**62, 2**62 + 20_000)
    many = [snapshot(i, i - 1, ms=i // 3, added_records="999999999") for i in ids]
    refs = dict([branch("main", many[-1].snapshot_id), branch("old", many[5].snapshot_id)])
    made = Timeline(with_snapshots(table.state, many, refs, many[-1].snapshot_id))
    assert len(made.snapshots) == MAX_SNAPSHOTS
    assert made.left_out == 20_000 - MAX_SNAPSHOTS
    assert _text(made.legend["rows"][-1]) == "10,000 earlier snapshots left out"
    assert [made.snapshots[0]["refs"], made.snapshots[-1]["refs"]] == [["old"], ["main"]]
    assert len(json.dumps({k: v for k, v in made.get_state().items() if k != "script"})) < 5_000_000
    made.close()


def test_numbers_and_names_of_nobody_s_making(table: ix.Table) -> None:
    names = list(HOSTILE.values())
    refs = {name: Ref(name, "tag", 1) for name in names}
    damaged = [
        snapshot(1, 2, ms=-(2**63), added_records="9" * 400, deleted_records="-1", removed_files_size="٣"),
        snapshot(2, 1, ms=2**63 - 1, added_records="9" * 18, operation=HOSTILE["script"] * 50),
        snapshot(3, 3, ms=2**63 - 1),
        Snapshot(4, 99, 0, 0, None, None, None, None),
    ]
    made = Timeline(with_snapshots(table.state, damaged, refs, 2))
    text = json.dumps(made.get_state()["snapshots"], allow_nan=False)
    numbers: list[int] = []
    json.loads(text, parse_int=lambda digits: numbers.append(int(digits)))
    assert max(map(abs, numbers)) < 2**53
    assert len(text) < 20_000
    assert "\u202e" not in "".join(name for s in made.snapshots for name in s["refs"])
    assert made.snapshots[0]["rows"] == [0, 0]
    made.close()


@given(st.lists(st.integers(-1, 12), max_size=12), st.lists(st.integers(0, 12), max_size=4))
def test_lanes_of_any_history(parents: list[int], heads: list[int]) -> None:
    many = [snapshot(i, None if p < 0 else p) for i, p in enumerate(parents)]
    refs = dict(branch("main" if n == 0 else f"b{n}", head) for n, head in enumerate(heads))
    found = lanes_of(many, refs, many[0] if many else None)
    assert all(0 <= lane < MAX_LANES for lane in found.lane)
    for i, p in enumerate(parents):
        assert found.parent[i] == (p if 0 <= p < len(many) else -1)
    reached = set()
    for head in [*heads, *([] if heads else [0])]:
        while 0 <= head < len(many) and head not in reached:
            reached.add(head)
            head = parents[head]
    assert {i for i, is_reached in enumerate(found.reached) if is_reached} == reached
    if heads and heads[0] < len(many):
        at, seen = heads[0], set()
        while 0 <= at < len(many) and at not in seen:
            assert found.lane[at] == 0, "main and what it came from are in the first lane"
            seen.add(at)
            at = parents[at]


def test_many_that_no_ref_reaches() -> None:
    many = [snapshot(i, 0 if i else None) for i in range(MAX_SNAPSHOTS)]
    found = lanes_of(many, dict([branch("main", 1)]), None)
    assert found.reached.count(True) == 2


def test_what_cannot_be_read_is_not_the_same(trips: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(trips, tmp_path / "trips"))
    for path in folder.rglob("*.avro"):
        if not path.name.startswith("snap-"):
            path.unlink()
    table = ix.open(folder)
    widget = Timeline(table, selection={"against": str(table.snapshots[-3].snapshot_id)})
    assert widget.settle(60)
    assert widget.comparison["rows"] == []
    unread = widget.comparison["unread"]
    assert unread > 0
    assert [*map(_text, widget.comparison["differences"])] == [f"▲ incomplete: {unread} manifests cannot be read"]
    whole = Timeline(ix.open(trips), selection={"against": str(table.snapshots[-3].snapshot_id)})
    assert whole.settle(60)
    assert whole.comparison["unread"] == 0 and whole.comparison["rows"]


def test_totals_and_writers_are_those_of_the_summaries(table: ix.Table, widget: Timeline) -> None:
    for sent, real in zip(widget.snapshots, table.snapshots, strict=True):
        names = ("total-records", "total-data-files", "total-delete-files", "total-files-size")
        assert sent["totals"][:4] == [int((real.summary or {})[name]) for name in names]
    assert "4.1.4 · spark · Apache Iceberg" in widget.writers[widget.snapshots[-1]["by"]]
    odd = [snapshot(1, total_records="٣", api_token="hunter2", user="ana" * 50), snapshot(2, total_records="9" * 18)]
    made = Timeline(with_snapshots(table.state, odd, {}, 1))
    assert [s["totals"][0] for s in made.snapshots] == [-1, -1], "not stated, or not exact in JavaScript"
    assert made.writers[0].startswith("ana") and len(made.writers[0]) <= 100
    assert "hunter2" not in str(made.writers)
    made.close()


def test_the_rows_left_are_those_that_a_reader_counts(table: ix.Table, widget: Timeline) -> None:
    assert any(s["totals"][4] < s["totals"][0] for s in widget.snapshots), "the table has position deletes"
    for sent, real in zip(widget.snapshots, table.snapshots, strict=True):
        assert sent["totals"][4] == table.at(real).count()
    stated: dict[str, Any] = {"total_records": "10", "total_position_deletes": "3"}
    odd = [
        snapshot(1, **stated), snapshot(2, **stated, total_equality_deletes="0"),
        snapshot(3, **stated, total_equality_deletes="1"), snapshot(4, total_records="10"),
        snapshot(5, total_position_deletes="3"), snapshot(6, total_records="10", total_position_deletes="11"),
    ]  # fmt: skip
    made = Timeline(with_snapshots(table.state, odd, {}, 1))
    assert [s["totals"][4] for s in made.snapshots] == [7, 7, -1, -1, -1, -1]
    made.close()


def test_ten_thousand_different_writers_fit_a_message(table: ix.Table) -> None:
    many = [snapshot(2**62 + i, ms=i, app=f"application_{i:020d}", engine="e" * 60) for i in range(MAX_SNAPSHOTS)]
    made = Timeline(with_snapshots(table.state, many, {}, None))
    assert len(made.writers) == MAX_SNAPSHOTS
    assert len(json.dumps({k: v for k, v in made.get_state().items() if k != "script"})) < 5_000_000
    made.close()


def test_broken_snapshots_are_marked_once_their_files_are_read(trips: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(trips, tmp_path / "trips"))
    table = ix.open(folder)
    assert table.snapshot is not None
    shown = str(table.snapshot.snapshot_id)
    made = Timeline(table)
    assert made.settle(10) and made.broken == {}
    newest = max(folder.rglob("snap-*.avro"), key=lambda path: shown in path.name)
    newest.write_bytes(b"no manifest list")
    made.select(against=table.snapshots[0])
    assert made.settle(60)
    assert made.broken == {shown: "1 error"}
    made.close()
