"""The rules of the V4 draft: each is broken by hand, in a tree that is otherwise right, and that rule alone is seen."""

from __future__ import annotations

import copy
import io
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap

import iceexplore as ix
from iceexplore.commits import RULES, check_rules, checked_rules
from iceexplore.commits.rules._report import rule_report
from iceexplore.deletes import encode_bitmap32, encode_mumbling
from iceexplore.doctor import examine
from iceexplore.graph import TableState, state_of
from iceexplore.manifests import EntryBatch, root_batch, stats_type, write_manifest
from tests.helpers.tables.root_table import RootLab, data_file, dv, path

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


def column_file(*ids: int, **more: Any) -> Row:
    return {
        "field_ids": list(ids), "location": path("columns")[0], "file_format": "parquet", "file_size_in_bytes": 9,
        "format_version": 4, "key_metadata": None, "split_offsets": None, **more,
    }  # fmt: skip


def with_column_files(*files: Row, since: int | None = 7, status: int = 4) -> Callable[[list[Row]], list[Row]]:
    """The live entry of the file R with column files."""
    return changed(is_named("R", status), column_files=list(files), column_files_snapshot_id=since)


EDITS: dict[str, Callable[[list[Row]], list[Row]]] = {
    "column-file-columns": with_column_files(column_file(3, 77)),
    "column-file-columns ": with_column_files(column_file(3), column_file(1, 3)),
    "column-file-columns  ": with_column_files(column_file(3, 3)),
    "column-file-columns   ": with_column_files(column_file()),
    "column-files-of-data": with_column_files(column_file(3), since=None),
    "column-files-of-data ": with_column_files(),
    "column-files-of-data  ": changed(is_leaf, column_files=[column_file(3)], column_files_snapshot_id=7),
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


def test_column_files_that_break_nothing(lab: RootLab) -> None:
    sound = with_column_files(column_file(3), column_file(1, 2_147_483_539))
    assert check_rules(with_root(lab.state, sound)) == []
    for number in (0, 2**31 - 1, -1):
        broken = check_rules(with_root(lab.state, with_column_files(column_file(number))))
        assert [b.rule for b in broken] == ["column-file-columns"]


def test_older_forms_of_manifest_dvs_are_noted(lab: RootLab) -> None:
    """Both forms are read; neither breaks a rule that t.rules() checks."""
    assert not [f for f in examine(lab.state) if f.code == "manifest-dv-older"]
    state = with_older_vectors(lab.state)
    assert check_rules(state) == []
    (found,) = [f for f in examine(state) if f.code == "manifest-dv-older"]
    assert found.severity == "untidy" and 85 in found.modes
    assert "dv_cardinality (523)" in found.text and "apache/iceberg#18138" in found.text
    assert found.field == "523 dv_cardinality"


def with_older_vectors(state: TableState) -> TableState:
    """The state with a root whose manifest DVs state their cardinality in 523."""
    root = state.root()
    assert root is not None
    batch = root_batch(root)
    data = write_manifest(
        batch, content="root", metadata=state.metadata, spec_id=0, dialect="v4-draft", manifest_format="parquet"
    )
    table = pq.read_table(io.BytesIO(data))
    at = table.schema.get_field_index("manifest_info")
    info = cast(pa.StructArray, table.column(at).combine_chunks())
    fields = [
        *(f.with_nullable(True) for f in info.type),
        pa.field("dv_cardinality", pa.int64(), metadata={"PARQUET:field_id": "523"}),
    ]
    sizes = pa.array([None if v is None else 2 for v in info.field("dv").to_pylist()], pa.int64())
    info = pa.StructArray.from_arrays([*info.flatten(), sizes], fields=fields, mask=info.is_null())
    table = table.set_column(at, table.schema.field(at).with_type(info.type), info)
    out = io.BytesIO()
    pq.write_table(table, out)
    location = f"{state.metadata.location}/metadata/{uuid4()}-root.parquet"
    state.storage.write(location, out.getvalue(), kind="manifest-list")  # type: ignore[attr-defined]
    return with_snapshot(state, **{"root-manifest": location})


BOXES: dict[str, tuple[bytes | None, bytes | None]] = {
    "one corner": (struct.pack("<2d", 1, 2), None),
    "no y": (struct.pack("<2d", 1, float("nan")), struct.pack("<2d", 2, 3)),
    "x falls": (struct.pack("<2d", 5, 2), struct.pack("<2d", 1, 3)),
    "y falls": (struct.pack("<2d", 1, 4), struct.pack("<2d", 2, 3)),
    "z falls": (struct.pack("<3d", 1, 2, 9), struct.pack("<3d", 2, 3, 8)),
    "off the globe": (struct.pack("<2d", -190, 2), struct.pack("<2d", 2, 3)),
    "too far north": (struct.pack("<2d", 1, 2), struct.pack("<2d", 2, 91)),
    "sound": (struct.pack("<2d", -180, -90), struct.pack("<2d", 180, 90)),
    "a point": (struct.pack("<2d", 1, 2), struct.pack("<2d", 1, 2)),
    "no box": (None, None),
    "with m": (struct.pack("<4d", 1, 2, float("nan"), 5), struct.pack("<4d", 2, 3, float("nan"), 6)),
}
#: Boxes that are sound for one of the two types.
ONLY = {"x falls": "geometry", "off the globe": "geography", "too far north": "geography"}


@pytest.mark.parametrize("dialect", ["v4-draft", "v4-proposal"])
@pytest.mark.parametrize("kind", ["geometry", "geography"])
@pytest.mark.parametrize("name", BOXES)
def test_boxes_of_geometries(tmp_path: Path, dialect: str, kind: str, name: str) -> None:
    s = ix.empty({"id": "long", "place": kind}, format_version=4, dialect=dialect, seed=1)
    s.append(2, rows=10)
    root = s.state.root()
    assert root is not None
    batch = root_batch(root)
    low, high = BOXES[name]
    sound = {"lower": struct.pack("<2d", 0, 0), "upper": struct.pack("<2d", 1, 1), "value_count": 10, "null_count": 0}
    stats = cast(pa.StructArray, pa.array([{**sound, "lower": low, "upper": high}, sound], stats_type(pa.binary())))
    data = write_manifest(
        EntryBatch(batch.entries, {**batch.stats, 2: stats}, batch.partition), content="root",
        metadata=s.state.metadata, spec_id=0, dialect=dialect, manifest_format="parquet",
    )  # fmt: skip
    location = f"{s.state.metadata.location}/metadata/{uuid4()}-root.parquet"
    s.state.storage.write(location, data, kind="manifest-list")  # type: ignore[attr-defined]
    broken = check_rules(with_snapshot(s.state, **{"root-manifest": location}))
    fine = name in ("sound", "a point", "no box", "with m") or ONLY.get(name, kind) != kind
    assert [b.rule for b in broken] == ([] if fine else ["geo-bounds"])
    if not fine:
        assert "column 'place'" in broken[0].text and broken[0].where.endswith("#entry 0")


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
