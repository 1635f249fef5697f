"""The rules of the V4 draft: each is broken by hand, in a tree that is otherwise right, and that rule alone is seen."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from pyroaring import BitMap

from iceexplore.commits import RULES, check_rules, checked_rules
from iceexplore.commits.rules._report import rule_report
from iceexplore.deletes import encode_bitmap32, encode_mumbling
from iceexplore.doctor import examine
from iceexplore.graph import TableState, state_of
from iceexplore.manifests import EntryBatch, root_batch, write_manifest
from tests.helpers.root_table import RootLab, data_file, dv, path

OPTIONS = {"dialect": "v4-draft", "flush_data_files": 2}
Row = dict[str, Any]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> RootLab:
    """A leaf of which B is replaced and C removed, and a file of the root that is replaced; no test commits to it."""
    lab = RootLab(tmp_path_factory.mktemp("draft") / "t", options=OPTIONS)
    lab.commit(add=[data_file(n) for n in "ABCD"])
    lab.commit(add=[data_file("R")])
    lab.commit("overwrite", add=[dv("V", "B"), dv("W", "R")], remove_data=path("C"))
    return lab


def with_root(state: TableState, edit: Callable[[list[Row]], list[Row]]) -> TableState:
    """The state with another root: its entries edited as dictionaries."""
    root = state.root()
    assert root is not None
    batch = root_batch(root)
    rows = edit([{**row, "was": i} for i, row in enumerate(batch.entries.to_pylist())])
    at = pa.array([row["was"] for row in rows], pa.int64())
    taken = batch.take(at)
    plain = [{k: v for k, v in row.items() if k != "was"} for row in rows]
    entries = pa.Table.from_pylist(plain, schema=batch.entries.schema)
    data = write_manifest(
        EntryBatch(entries, taken.stats, taken.partition), content="root", metadata=state.metadata, spec_id=0,
        dialect="v4-draft", manifest_format="parquet",
    )  # fmt: skip
    location = f"{state.metadata.location}/metadata/{uuid4()}-root.parquet"
    state.storage.write(location, data, kind="manifest-list")  # type: ignore[attr-defined]
    return with_snapshot(state, **{"root-manifest": location})


def with_snapshot(state: TableState, **keys: Any) -> TableState:
    document = copy.deepcopy(state.opened.document)
    document["snapshots"][-1] |= keys
    return state_of(replace(state.opened, document=document))


def changed(where: Callable[[Row], bool], **columns: Any) -> Callable[[list[Row]], list[Row]]:
    def edit(rows: list[Row]) -> list[Row]:
        assert any(map(where, rows))
        return [{**row, **columns} if where(row) else row for row in rows]

    return edit


def is_leaf(row: Row) -> bool:
    return bool(row["content_type"] == 3)


def is_named(name: str, status: int) -> Callable[[Row], bool]:
    return lambda row: row["content_type"] == 0 and row["location"] == path(name)[0] and row["status"] == status


def marks(*positions: int) -> bytes:
    return encode_mumbling(BitMap(positions))


EDITS: dict[str, Callable[[list[Row]], list[Row]]] = {
    "draft-content-types": changed(is_named("R", 3), content_type=2, equality_ids=[1]),
    "replaced-and-modified": changed(is_named("R", 3), location="s3://elsewhere/data/other.parquet"),
    "replaced-and-modified ": changed(is_leaf, replaced_positions=marks(2), deleted_positions=marks(1)),
    "positions-of-manifests": changed(is_named("R", 4), deleted_positions=marks(0)),
    "positions-disjoint": changed(is_leaf, deleted_positions=marks(1, 2)),
    "positions-disjoint ": changed(is_leaf, deleted_positions=marks(2, 3)),
    "positions-disjoint  ": changed(is_leaf, deleted_positions=b"\x01nonsense"),
}


def test_what_the_layout_writes_breaks_nothing(lab: RootLab) -> None:
    report = rule_report(lab.state)
    assert report.ok
    assert {r.id for r in report.rules} >= {r.id for r in RULES.values() if r.draft_only and r.is_checked}
    assert not [r for r in report.rules if not (r.draft or r.draft_only)]


@pytest.mark.parametrize("name", EDITS)
def test_a_draft_root_that_breaks_a_rule(lab: RootLab, name: str) -> None:
    state = with_root(lab.state, EDITS[name])
    assert {b.rule for b in check_rules(state)} == {name.strip()}
    assert name.strip() in {r.id for r in rule_report(state).broken}


@pytest.mark.parametrize("name", [n for n in EDITS if n == n.strip()])
def test_the_doctor_reports_it(lab: RootLab, name: str) -> None:
    before = {(f.code, f.field) for f in examine(lab.state)}
    found = [f for f in examine(with_root(lab.state, EDITS[name])) if (f.code, f.field) not in before]
    assert [f.modes for f in found if 85 in f.modes], [(f.code, f.modes) for f in found]


def test_positions_in_the_older_encoding_are_read(lab: RootLab) -> None:
    edit = changed(is_leaf, deleted_positions=encode_bitmap32(BitMap([2])))
    assert check_rules(with_root(lab.state, edit)) == []


def test_a_snapshot_that_is_not_later_than_its_parent(lab: RootLab) -> None:
    parent = lab.state.metadata.snapshots[-2].timestamp_ms
    state = with_snapshot(lab.state, **{"timestamp-ms": parent})
    (found,) = check_rules(state)
    assert (found.rule, str(parent) in found.text) == ("timestamp-order", True)
    assert check_rules(with_snapshot(lab.state, **{"timestamp-ms": parent + 1})) == []


def test_a_commit_after_a_snapshot_from_the_future(tmp_path: Path) -> None:
    """The time of a snapshot may lie after the table's last-updated-ms; the next one is still later."""
    lab = RootLab(tmp_path / "t", options=OPTIONS)
    lab.commit(add=[data_file("A")])
    late = (lab.state.metadata.last_updated_ms or 0) + 500_000
    document = copy.deepcopy(lab.state.opened.document)
    document["snapshots"][-1]["timestamp-ms"] = late
    lab.box.state = state_of(replace(lab.state.opened, document=document))
    lab.commit(add=[data_file("B")])
    assert lab.state.metadata.snapshots[-1].timestamp_ms == late + 1
    assert check_rules(lab.state) == []


def test_the_proposal_has_none_of_them(tmp_path: Path) -> None:
    lab = RootLab(tmp_path / "t")
    lab.commit(add=[data_file("A")])
    assert not [r for r in checked_rules(lab.state) if r.draft_only]
