"""The tree: what it shows, what it reads, what it folds; over tables written here row by row."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import fastavro
import pytest

import iceexplore as ix
from iceexplore.errors import OptionError, SnapshotNotFoundError
from iceexplore.graph import _root, build_tree, open_state
from iceexplore.graph.tree._applies import MOST_TARGETS
from iceexplore.graph.tree._nodes import NodeId, TreeNode, json_safe
from tests.helpers.hostile import HOSTILE

# A table written by hand --------------------------------------------------------------------------------------------


def _field(name: str, kind: Any, field_id: int, *, optional: bool = True) -> dict[str, Any]:
    spec: dict[str, Any] = {"name": name, "type": ["null", kind] if optional else kind, "field-id": field_id}
    return {**spec, "default": None} if optional else spec


_PARTITION = {"type": "record", "name": "r102", "fields": [_field("part", "string", 1000)]}
_DATA_FILE = {
    "type": "record",
    "name": "r2",
    "fields": [
        _field("content", "int", 134, optional=False),
        _field("file_path", "string", 100, optional=False),
        _field("file_format", "string", 101, optional=False),
        _field("partition", _PARTITION, 102, optional=False),
        _field("record_count", "long", 103, optional=False),
        _field("file_size_in_bytes", "long", 104, optional=False),
        {
            "name": "equality_ids",
            "type": ["null", {"type": "array", "items": "int", "element-id": 136}],
            "default": None,
            "field-id": 135,
        },
        _field("referenced_data_file", "string", 143),
        _field("content_offset", "long", 144),
        _field("content_size_in_bytes", "long", 145),
    ],
}
_ENTRY = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        _field("status", "int", 0, optional=False),
        _field("snapshot_id", "long", 1),
        _field("sequence_number", "long", 3),
        _field("file_sequence_number", "long", 4),
        _field("data_file", _DATA_FILE, 2, optional=False),
    ],
}
_LIST = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        _field(name, kind, field_id, optional=False)
        for name, kind, field_id in (
            ("manifest_path", "string", 500),
            ("manifest_length", "long", 501),
            ("partition_spec_id", "int", 502),
            ("content", "int", 517),
            ("sequence_number", "long", 515),
            ("min_sequence_number", "long", 516),
            ("added_snapshot_id", "long", 503),
            ("added_files_count", "int", 504),
            ("existing_files_count", "int", 505),
            ("deleted_files_count", "int", 506),
            ("added_rows_count", "long", 512),
            ("existing_rows_count", "long", 513),
            ("deleted_rows_count", "long", 514),
        )
    ],
}
_SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "part", "required": False, "type": "string"},
    ],
}


@dataclass
class File:
    path: str
    status: int = 1
    content: int = 0
    part: str | None = "a"
    rows: int = 10
    referenced: str | None = None
    offset: int | None = None
    equality: list[int] | None = None
    sequence: int | None = None


@dataclass
class Writer:
    """Writes a v3 table, commit by commit; every commit carries over the manifests that it does not drop."""

    folder: Path
    name: str = "t"
    manifests: list[dict[str, Any]] = field(default_factory=list)
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    refs: dict[str, Any] = field(default_factory=dict)

    @property
    def location(self) -> str:
        return str(self.folder)

    def commit(self, *groups: list[File], drop: int = 0) -> int:
        n = len(self.snapshots) + 1
        snapshot_id = 9_000_000_000_000_000_000 + n
        (self.folder / "metadata").mkdir(parents=True, exist_ok=True)
        self.manifests = self.manifests[drop:]
        for i, files in enumerate(groups):
            path = self.folder / "metadata" / f"c{n}-m{i}.avro"
            deletes = any(f.content for f in files)
            with path.open("wb") as out:
                fastavro.writer(
                    out,
                    fastavro.parse_schema(_ENTRY),
                    [self._entry(f, snapshot_id) for f in files],
                    metadata={
                        "schema": json.dumps(_SCHEMA),
                        "partition-spec": json.dumps(
                            [{"name": "part", "transform": "identity", "source-id": 2, "field-id": 1000}]
                        ),
                        "partition-spec-id": "0",
                        "format-version": "3",
                        "content": "deletes" if deletes else "data",
                    },
                )
            count = Counter(f.status for f in files)
            rows = Counter({s: sum(f.rows for f in files if f.status == s) for s in count})
            self.manifests.append(
                {
                    "manifest_path": str(path),
                    "manifest_length": path.stat().st_size,
                    "partition_spec_id": 0,
                    "content": int(deletes),
                    "sequence_number": n,
                    "min_sequence_number": n,
                    "added_snapshot_id": snapshot_id,
                    **{f"{w}_files_count": count[s] for s, w in enumerate(("existing", "added", "deleted"))},
                    **{f"{w}_rows_count": rows[s] for s, w in enumerate(("existing", "added", "deleted"))},
                }
            )
        path = self.folder / "metadata" / f"snap-{n}.avro"
        with path.open("wb") as out:
            fastavro.writer(out, fastavro.parse_schema(_LIST), self.manifests, metadata={"format-version": "3"})
        parent = {"parent-snapshot-id": self.snapshots[-1]["snapshot-id"]} if self.snapshots else {}
        self.snapshots.append(
            {
                "snapshot-id": snapshot_id,
                **parent,
                "sequence-number": n,
                "timestamp-ms": 1_700_000_000_000 + n,
                "manifest-list": str(path),
                "summary": {"operation": "append", "added-data-files": "3"},
                "schema-id": 0,
                "first-row-id": 0,
                "added-rows": 0,
            }
        )
        return snapshot_id

    def _entry(self, f: File, snapshot_id: int) -> dict[str, Any]:
        return {
            "status": f.status,
            "snapshot_id": snapshot_id if f.status else snapshot_id - 1,
            "sequence_number": f.sequence if f.status != 0 else f.sequence or 1,
            "file_sequence_number": f.sequence if f.status != 0 else f.sequence or 1,
            "data_file": {
                "content": f.content,
                "file_path": f.path,
                "file_format": "PUFFIN" if f.offset is not None else "PARQUET",
                "partition": {"part": f.part},
                "record_count": f.rows,
                "file_size_in_bytes": 1000,
                "equality_ids": f.equality,
                "referenced_data_file": f.referenced,
                "content_offset": f.offset,
                "content_size_in_bytes": None if f.offset is None else 44,
            },
        }

    def write(self, *, log: int = 0) -> str:
        current = self.snapshots[-1]["snapshot-id"] if self.snapshots else None
        document = {
            "format-version": 3,
            "table-uuid": "11111111-2222-3333-4444-555555555555",
            "location": self.location,
            "last-sequence-number": len(self.snapshots),
            "last-updated-ms": 1_700_000_001_000,
            "last-column-id": 2,
            "schemas": [_SCHEMA],
            "current-schema-id": 0,
            "partition-specs": [
                {
                    "spec-id": 0,
                    "fields": [{"name": "part", "transform": "identity", "source-id": 2, "field-id": 1000}],
                }
            ],
            "default-spec-id": 0,
            "last-partition-id": 1000,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": {},
            "current-snapshot-id": current,
            "refs": {**({"main": {"snapshot-id": current, "type": "branch"}} if current else {}), **self.refs},
            "snapshots": self.snapshots,
            "snapshot-log": [],
            "metadata-log": [
                {"timestamp-ms": 1_700_000_000_000 + i, "metadata-file": f"{self.location}/metadata/v{i}.metadata.json"}
                for i in range(log)
            ],
            "next-row-id": 0,
        }
        (self.folder / "metadata").mkdir(parents=True, exist_ok=True)
        (self.folder / "metadata" / "v9.metadata.json").write_text(json.dumps(document))
        return str(self.folder)


def data(n: int, start: int = 0, **kwargs: Any) -> list[File]:
    return [File(f"/data/f{i:06d}.parquet", **kwargs) for i in range(start, start + n)]


def reads(state: Any) -> Counter[str]:
    """Files read in full, by kind; what looks for the table's files is not counted."""
    return Counter(r.kind for r in state.storage.reads if r.length and not r.cached and r.kind not in ("list", "stat"))


@pytest.fixture
def writer(tmp_path: Path) -> Writer:
    return Writer(tmp_path / "t")


# What is read -------------------------------------------------------------------------------------------------------


def test_a_page_of_snapshots_costs_no_more_in_a_long_history() -> None:
    made = ix.empty({"id": "long"})
    for _ in range(3):
        made.append(1, rows=1)
    made.branch("b")
    made.tag("t", made.snapshots[0])
    tree = made.tree()
    every = [node.id for node in tree.children("metadata")]
    assert len(every) == 6
    pages = [[n.id for n in tree.children("metadata", offset=a, limit=b)] for a in range(7) for b in range(7)]
    assert pages == [every[a : a + b] for a in range(7) for b in range(7)]
    newest = made.state.metadata.snapshots[-1]
    long = replace(made.state.metadata, snapshots=tuple(replace(newest, snapshot_id=i) for i in range(1, 2_000)))
    tree = build_tree(replace(made.state, metadata=long), depth="snapshots", snapshots=1)
    assert tree.children("metadata", limit=4)
    calls: list[object] = []
    sys.setprofile(lambda frame, event, arg: calls.append(event) if event == "call" else None)
    try:
        assert len(tree.children("metadata", limit=4)) == 4
    finally:
        sys.setprofile(None)
    assert len(calls) < 1_500, "nothing is made or sorted anew for those beyond the page"


def test_a_tree_of_one_snapshot_reads_its_manifest_list_and_nothing_more(writer: Writer) -> None:
    writer.commit(data(3))
    writer.commit(data(3, 3), data(2, 6))
    state = open_state(writer.write(log=4))
    tree = build_tree(state)
    assert reads(state)["manifest-list"] == 0  # not even that before somebody looks
    tree.to_text()
    tree.to_svg()
    tree.to_mermaid()
    assert (reads(state)["manifest-list"], reads(state)["manifest"]) == (1, 0)
    # One unfolding reads one manifest.
    manifest = next(n for n in tree.nodes if n.kind == "data-manifest")
    wider = tree.expand(manifest.id)
    assert [n.kind for n in wider.nodes].count("data-file") == manifest.child_count
    assert (reads(state)["manifest-list"], reads(state)["manifest"]) == (1, 1)
    assert not [n for n in tree.nodes if n.kind == "data-file"]  # the first tree is as it was


def test_depth_snapshots_reads_nothing(writer: Writer) -> None:
    for i in range(3):
        writer.commit(data(1, i))
    state = open_state(writer.write())
    tree = build_tree(state, snapshots="all", depth="snapshots")
    assert [n.kind for n in tree.nodes].count("snapshot") == 3
    assert reads(state)["manifest-list"] == 0
    wider = tree.expand("snapshot:9000000000000000002")
    assert [n.id for n in wider.nodes if n.kind == "data-manifest"] == [
        "manifest:9000000000000000002:0",
        "manifest:9000000000000000002:1",
    ]
    assert reads(state)["manifest-list"] == 1


def test_depth_files_reads_no_more_manifests_than_it_shows(writer: Writer) -> None:
    writer.commit(*[data(5, 5 * i) for i in range(40)])
    state = open_state(writer.write())
    tree = build_tree(state, depth="files", max_nodes=30)
    assert len(tree.nodes) <= 30
    shown = [n for n in tree.nodes if n.kind == "data-manifest"]
    assert 0 < reads(state)["manifest"] <= len(shown) < 40


# What is shown ------------------------------------------------------------------------------------------------------


def test_marks_edges_and_scopes(writer: Writer) -> None:
    files = data(4)
    writer.commit(files)
    second = writer.commit(
        [File(files[0].path, status=2, sequence=1), *[File(f.path, status=0) for f in files[1:]]],
        [
            File("/data/dv.puffin", content=1, rows=2, referenced=files[1].path, offset=4),
            File("/data/pos.parquet", content=1, rows=3, referenced=files[2].path),
            File("/data/wide.parquet", content=1, rows=3),
            File("/data/eq.parquet", content=2, rows=1, equality=[1]),
        ],
        drop=1,
    )
    tree = build_tree(open_state(writer.write()), depth="files")
    named = {n.label: n for n in tree.nodes}
    assert named["f000000.parquet"].marks == {"removed"}
    assert named["f000001.parquet"].marks == {"carried"}
    assert named["dv.puffin"].kind == "deletion-vector"
    assert named["dv.puffin"].marks == {"added"}
    assert "in f000001.parquet" in named["dv.puffin"].lines
    assert named["pos.parquet"].kind == named["wide.parquet"].kind == "position-delete"
    assert "in files of sequence ≤ 2, same partition" in named["wide.parquet"].lines
    assert "where id is equal" in named["eq.parquet"].lines
    assert "in files of sequence < 2, same partition" in named["eq.parquet"].lines
    applies = {(tree.node(e.source).label, tree.node(e.target).label) for e in tree.edges if e.kind == "applies-to"}
    named_targets = {("dv.puffin", "f000001.parquet"), ("pos.parquet", "f000002.parquet")}
    # By partition and sequence number; a file with a vector ignores position deletes.
    by_scope = {("wide.parquet", f"f00000{i}.parquet") for i in (2, 3)}
    assert applies == named_targets | by_scope | {("eq.parquet", f"f00000{i}.parquet") for i in (1, 2, 3)}
    # What distinguishes siblings: rows and deleted rows, or the file that a delete is for.
    headlines = {label: node.headline.replace(" · 1,000 B", "") for label, node in named.items()}
    assert headlines["f000001.parquet"] == "10 rows · 2 deleted"
    assert headlines["f000002.parquet"] == "10 rows · 3 deleted"
    assert headlines["f000003.parquet"] == "10 rows", "deletes of several files are not counted"
    assert headlines["dv.puffin"] == "2 deleted in f000001.parquet"
    assert headlines["wide.parquet"] == "3 deleted in several files"
    assert headlines["eq.parquet"] == "1 key deleted by id"
    assert any(line.endswith("2 deleted") for line in named["f000001.parquet"].lines)
    assert [(e.source, e.target) for e in tree.edges if e.kind == "ref"] == [("ref:main", f"snapshot:{second}")]
    assert named["f000001.parquet"].fields["partition"] == {"part": "a"}
    assert named["f000001.parquet"].fields["status"] == "EXISTING"


def test_a_delete_older_than_the_file_or_replaced_by_a_vector_has_no_edge(writer: Writer) -> None:
    writer.commit([File("/data/early-pos.parquet", content=1, referenced="/data/f000000.parquet")])
    writer.commit(data(2))
    writer.commit(
        [
            File("/data/dv.puffin", content=1, referenced="/data/f000001.parquet", offset=4),
            File("/data/old-pos.parquet", content=1, referenced="/data/f000001.parquet"),
        ]
    )
    tree = build_tree(open_state(writer.write()), depth="files")
    assert [tree.node(e.source).label for e in tree.edges if e.kind == "applies-to"] == ["dv.puffin"]


def test_deletes_of_several_files_keep_to_their_partition_and_sequence(writer: Writer) -> None:
    writer.commit([File("/data/null.parquet", part=None), File("/data/word.parquet", part="null")])
    writer.commit([File("/data/eq.parquet", content=2, part=None, equality=[1])])
    writer.commit([File("/data/late.parquet", part=None)])
    tree = build_tree(open_state(writer.write()), depth="files")
    applies = [(tree.node(e.source).label, tree.node(e.target).label) for e in tree.edges if e.kind == "applies-to"]
    assert applies == [("eq.parquet", "null.parquet")], (
        "null is not the text null, and later files are not deleted from"
    )


def test_a_delete_of_very_many_files_has_no_edges(writer: Writer) -> None:
    writer.commit(data(MOST_TARGETS + 1))
    writer.commit([File("/data/eq.parquet", content=2, equality=[1])])
    tree = build_tree(open_state(writer.write()), depth="files")
    assert not [e for e in tree.edges if e.kind == "applies-to"]
    assert "in files of sequence < 2, same partition" in next(n for n in tree.nodes if n.label == "eq.parquet").lines


def test_the_vectors_of_one_puffin_file_are_drawn_with_the_names_of_their_files(writer: Writer) -> None:
    writer.commit(data(3))
    writer.commit([File("/data/dv.puffin", content=1, referenced=f"/data/f00000{i}.parquet", offset=i) for i in (1, 2)])
    tree = build_tree(open_state(writer.write()), depth="files")
    drawn = [n for n in tree.scene().nodes if n.kind == "deletion-vector"]
    assert [n.label for n in drawn] == ["DV of f000001.parquet", "DV of f000002.parquet"]
    assert all("dv.puffin" in n.lines for n in drawn)
    assert {n.label for n in tree.nodes if n.kind == "deletion-vector"} == {"dv.puffin"}


def test_deleted_rows_are_not_counted_in_many_delete_manifests(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.commit(data(2))
    writer.commit([File("/data/dv.puffin", content=1, rows=2, referenced="/data/f000001.parquet", offset=4)])
    path = writer.write()
    first = build_tree(open_state(path)).children("manifest:9000000000000000002:0")
    assert [n.headline.partition(" deleted")[0].rpartition(" ")[2] for n in first][1] == "2"
    monkeypatch.setattr("iceexplore.graph.tree._deleted_rows._MOST_ENTRIES", 0)
    state = open_state(path)
    assert not any("deleted" in n.headline for n in build_tree(state).children("manifest:9000000000000000002:0"))


def test_a_delete_that_spells_its_file_with_another_scheme_has_an_edge(writer: Writer) -> None:
    writer.commit([*data(2), File("s3://one/data/x.parquet"), File("s3://two/data/x.parquet")])
    writer.commit(
        [
            File("/data/dv.puffin", content=1, referenced="hdfs://localhost:20500/data/f000001.parquet", offset=4),
            File("/data/old-pos.parquet", content=1, referenced="/data/f000001.parquet"),
            File("/data/pos.parquet", content=1, referenced="s3://bucket/data/f000000.parquet"),
            File("/data/none-of-both.parquet", content=1, referenced="s3://three/data/x.parquet"),
        ]
    )
    tree = build_tree(open_state(writer.write()), depth="files")
    applies = {(tree.node(e.source).label, tree.node(e.target).label) for e in tree.edges if e.kind == "applies-to"}
    assert applies == {("dv.puffin", "f000001.parquet"), ("pos.parquet", "f000000.parquet")}


def test_carried_over_manifests_are_folded_and_named(writer: Writer) -> None:
    for i in range(4):
        writer.commit(data(2, 2 * i))
    last = writer.commit(data(1, 100), drop=2)
    state = open_state(writer.write())
    tree = build_tree(state, snapshots="all")
    assert [n.kind for n in tree.nodes].count("data-manifest") == 5  # each once
    folds = {n.id: n for n in tree.nodes if n.id.startswith("carried:")}
    assert [n.label for n in folds.values()] == [f"{i} carried over" for i in (1, 2, 3, 2)]
    assert folds[f"carried:{last}"].fields["names"] == ["c3-m0.avro", "c4-m0.avro"]
    assert folds[f"carried:{last}"].fields["files"] == 4
    assert "−2 manifests of its parent" in tree.node(f"root:{last}").lines
    hidden = tree.children(f"carried:{last}")
    assert [n.label for n in hidden] == ["c3-m0.avro", "c4-m0.avro"]
    wider = tree.expand(f"carried:{last}")
    assert [n.label for n in wider.nodes if n.parent == f"root:{last}"] == ["c5-m0.avro", "c3-m0.avro", "c4-m0.avro"]
    # Alone, a snapshot shows them all, marked.
    alone = build_tree(state)
    marks = {n.label: n.marks - {"folded"} for n in alone.nodes if n.kind == "data-manifest"}
    assert marks == {"c3-m0.avro": {"carried"}, "c4-m0.avro": {"carried"}, "c5-m0.avro": {"added"}}


def test_more_names_what_it_folds_and_prefers_what_changed(writer: Writer) -> None:
    old = data(500, status=0, rows=7)
    new = [File("/data/new.parquet", rows=1), File("/data/gone.parquet", status=2, rows=1, sequence=1)]
    writer.commit([*old[:300], *new, *old[300:]])
    tree = build_tree(open_state(writer.write(log=3)), depth="files", max_nodes=20)
    assert len(tree.nodes) <= 20
    shown = [n for n in tree.nodes if n.kind == "data-file"]
    assert {"new.parquet", "gone.parquet"} <= {n.label for n in shown}
    more = next(n for n in tree.nodes if n.id.startswith("more:manifest:"))
    rest = 502 - len(shown)
    assert (more.label, more.child_count) == (f"+{rest} more", rest)
    assert more.fields["record_count"] == 7 * rest
    assert more.fields["file_size_in_bytes"] == 1000 * rest
    page = tree.children(more.id, offset=10, limit=5)
    assert len(page) == 5
    assert not {n.id for n in page} & {n.id for n in shown}
    everything = {n.id for n in shown} | {n.id for n in tree.children(more.id, limit=1000)}
    assert len(everything) == 502
    wider = tree.expand(more.id, limit=100)
    assert [n.kind for n in wider.nodes].count("data-file") == len(shown) + 100
    logs = next(n for n in tree.nodes if n.id == "more:table")
    assert logs.label == "+3 earlier metadata files"
    assert [n.label for n in tree.children(logs.id)] == [f"v{i}.metadata.json" for i in (2, 1, 0)]
    assert [n.kind for n in tree.expand("more:table").nodes].count("metadata") == 4


def test_many_snapshots_fold_to_the_newest(writer: Writer) -> None:
    for i in range(60):
        writer.commit(data(1, i))
    writer.refs["old"] = {"snapshot-id": writer.snapshots[0]["snapshot-id"], "type": "tag"}
    writer.refs["lost"] = {"snapshot-id": 5, "type": "tag"}
    tree = build_tree(open_state(writer.write()), snapshots="all", max_nodes=60)
    shown = [n.id for n in tree.nodes if n.kind == "snapshot"]
    assert shown == [f"snapshot:{9_000_000_000_000_000_000 + n}" for n in range(61 - len(shown), 61)]
    assert len(tree.nodes) <= 60
    more = tree.node("more:metadata")
    assert more.label == f"+{60 - len(shown)} snapshots"
    assert more.lines == ("2 refs",)
    every = [*shown, *(n.id for n in tree.children("more:metadata") if n.kind == "snapshot")]
    assert len(set(every)) == 60
    lost = tree.node("ref:lost")
    assert "problem" in lost.marks
    assert lost.lines == ("points to snapshot 5, which is not in the metadata",)


@pytest.mark.parametrize(
    ("snapshots", "expected"),
    [
        (None, [4]),
        ("current", [4]),
        ("all", [1, 2, 3, 4]),
        (2, [3, 4]),
        (100, [1, 2, 3, 4]),
        (9_000_000_000_000_000_002, [2]),
        ("9000000000000000002", [2]),
        ([9_000_000_000_000_000_003, 9_000_000_000_000_000_001], [1, 3]),
    ],
)
def test_which_snapshots(writer: Writer, snapshots: Any, expected: list[int]) -> None:
    for i in range(4):
        writer.commit(data(1, i))
    tree = build_tree(open_state(writer.write()), snapshots=snapshots)
    assert [n.fields["sequence-number"] for n in tree.nodes if n.kind == "snapshot"] == expected


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"snapshots": 9_000_000_000_000_000_009}, SnapshotNotFoundError, "9000000000000000001"),
        ({"snapshots": [7]}, SnapshotNotFoundError, "no snapshot 7"),
        ({"snapshots": "main"}, OptionError, "'current', 'all'"),
        ({"snapshots": True}, OptionError, "'current', 'all'"),
        ({"snapshots": 1.5}, OptionError, "'current', 'all'"),
        ({"snapshots": 0}, SnapshotNotFoundError, "no snapshot 0"),
        ({"depth": "rows"}, OptionError, "'manifests'"),
        ({"labels": "long"}, OptionError, "'counts'"),
        ({"max_nodes": 0}, OptionError, "at least 1"),
    ],
)
def test_options_that_make_no_sense(writer: Writer, options: Any, error: type[Exception], words: str) -> None:
    writer.commit(data(1))
    state = open_state(writer.write())
    with pytest.raises(error, match=words):
        build_tree(state, **options)


def test_an_empty_table_has_a_tree(writer: Writer) -> None:
    tree = build_tree(open_state(writer.write()), snapshots="all", depth="files")
    assert [n.kind for n in tree.nodes] == ["table", "metadata"]
    assert "no snapshot" in tree.scene().description


def test_labels(writer: Writer) -> None:
    writer.commit(data(1))
    state = open_state(writer.write())
    labels: dict[str, list[str]] = {}
    for option in ("short", "full", "counts"):
        nodes = build_tree(state, depth="files", labels=option).nodes
        labels[option] = [n.label for n in nodes if n.level >= 4]
    assert labels["short"] == ["c1-m0.avro", "f000000.parquet"]
    assert labels["full"] == [f"{writer.location}/metadata/c1-m0.avro", "/data/f000000.parquet"]
    assert labels["counts"] == ["Data manifest", "Data file"]


# Nodes --------------------------------------------------------------------------------------------------------------


def test_every_shown_node_can_be_had_by_id_from_a_fresh_tree(writer: Writer) -> None:
    writer.commit(data(3))
    writer.refs["a b/ü:☃"] = {"snapshot-id": writer.snapshots[0]["snapshot-id"], "type": "tag"}
    writer.commit([File("/data/dv.puffin", content=1, referenced="/data/f000000.parquet", offset=4)])
    folder = writer.write(log=2)
    tree = build_tree(open_state(folder), snapshots="all", depth="files").expand("more:table")
    fresh = build_tree(open_state(folder), depth="snapshots")
    kinds = set()
    for node in tree.nodes:
        if node.kind == "more":
            continue
        found = fresh.node(node.id)
        assert (found.kind, found.label, found.fields) == (node.kind, node.label, node.fields)
        kinds.add(node.kind)
    assert kinds >= {"table", "metadata", "branch", "tag", "snapshot", "manifest-list", "data-file", "deletion-vector"}


def test_children_walk_the_whole_table(writer: Writer) -> None:
    writer.commit(data(3), data(2, 3))
    writer.commit(data(1, 5))
    tree = build_tree(open_state(writer.write(log=1)))
    found: list[str] = []
    todo = ["table"]
    while todo:
        for child in tree.children(todo.pop()):
            found.append(child.id)
            todo.append(child.id)
    assert len(found) == len(set(found))
    assert Counter(i.partition(":")[0] for i in found) == {
        "metadata": 2,
        "ref": 1,
        "snapshot": 2,
        "root": 2,
        "manifest": 5,
        "file": 5 + 6,
    }
    manifest = next(i for i in found if i.startswith("manifest:"))
    assert [n.id for n in tree.children(manifest, offset=1, limit=1)] == [f"file{manifest.removeprefix('manifest')}:1"]


@pytest.mark.parametrize(
    "node_id",
    ["", "nothing", "snapshot:", "snapshot:5", "snapshot:x", "manifest:9000000000000000001:7", "file:1:2:3:4",
     "file:9000000000000000001:0", "file:9000000000000000001:0:99", "metadata:-1", "ref:none", "root:-1", "more:x"],
)  # fmt: skip
def test_no_such_node(writer: Writer, node_id: str) -> None:
    writer.commit(data(1))
    tree = build_tree(open_state(writer.write()))
    for ask in (tree.node, tree.children, tree.expand):
        with pytest.raises(OptionError, match="node"):
            ask(node_id)


def test_find(writer: Writer) -> None:
    writer.commit(data(3, part="Köln"))
    tree = build_tree(open_state(writer.write()), depth="files")
    assert [n.label for n in tree.find("F000001")] == ["f000001.parquet"]
    assert len(tree.find("köln")) == 3
    assert tree.find("nowhere") == []


def test_to_dict_is_json_without_a_lost_digit(writer: Writer) -> None:
    snapshot_id = writer.commit(data(2))
    tree = build_tree(open_state(writer.write()), depth="files")
    for node in tree.nodes:
        whole = []
        json.loads(json.dumps(node.to_dict(), allow_nan=False), parse_int=lambda n: whole.append(int(n)))
        assert all(abs(n) < 2**53 for n in whole)
    assert tree.node(f"snapshot:{snapshot_id}").to_dict()["fields"]["snapshot-id"] == str(snapshot_id)


def test_json_safe() -> None:
    value = {
        "a": 2**53,
        "b": 2**53 - 1,
        "snapshot-id": 7,
        "c": float("nan"),
        "d": "\ud800",
        "e": b"\x01\xff",
        "f": [True],
    }
    assert json_safe(value) == {
        "a": "9007199254740992",
        "b": 9007199254740991,
        "snapshot-id": "7",
        "c": "nan",
        "d": "\\ud800",
        "e": "0x01ff (2 bytes)",
        "f": [True],
    }


def test_ids_come_apart() -> None:
    name = "x:y%z \ud800"
    assert NodeId.parse(NodeId.ref(name)) == NodeId("ref", (), name)
    assert NodeId.parse("file:-5:2:3") == NodeId("file", (-5, 2, 3))
    assert NodeId.parse("snapshot:1:2") is None


# Damage and hostility -----------------------------------------------------------------------------------------------


def test_damage_hangs_on_its_node(writer: Writer) -> None:
    writer.commit(data(2), data(2, 2), data(2, 4))
    folder = writer.write()
    (writer.folder / "metadata" / "c1-m1.avro").unlink()
    (writer.folder / "metadata" / "c1-m2.avro").write_bytes(b"no manifest")
    state = open_state(folder)
    tree = build_tree(state, depth="files")
    found = {n.label: n for n in tree.nodes if n.kind == "data-manifest"}
    assert not found["c1-m0.avro"].problems
    for label in ("c1-m1.avro", "c1-m2.avro"):
        assert "problem" in found[label].marks
        assert found[label].problems
    assert found["c1-m1.avro"].problems[0].code == "file-missing"
    assert [n.label for n in tree.nodes if n.kind == "data-file"] == ["f000000.parquet", "f000001.parquet"]
    assert "problem" in tree.scene().description
    assert "! ■ c1-m1.avro" in tree.to_text()


def test_a_missing_manifest_list_hangs_on_its_node(writer: Writer) -> None:
    snapshot_id = writer.commit(data(2))
    folder = writer.write()
    (writer.folder / "metadata" / "snap-1.avro").unlink()
    tree = build_tree(open_state(folder))
    assert [p.code for p in tree.node(f"root:{snapshot_id}").problems] == ["file-missing"]
    assert "problem" in tree.node(f"root:{snapshot_id}").marks


def test_hostile_names_do_nothing(writer: Writer) -> None:
    texts = [t.encode("utf-8", "replace").decode() for t in HOSTILE.values()]  # Avro strings are UTF-8
    writer.commit([File(f"/data/{i}/{t}", part=t) for i, t in enumerate(texts)])
    snapshot_id = writer.snapshots[0]["snapshot-id"]
    writer.refs.update({t: {"snapshot-id": snapshot_id, "type": "tag"} for t in HOSTILE.values() if t})
    tree = build_tree(open_state(writer.write()), depth="files", max_nodes=300)
    assert [n.kind for n in tree.nodes].count("data-file") == len(texts)
    assert [n.kind for n in tree.nodes].count("tag") == len(HOSTILE) - 1
    root = ET.fromstring(tree.to_svg())
    tags = {e.tag.rpartition("}")[2] for e in root.iter()}
    assert tags <= {"svg", "g", "rect", "path", "text", "title", "desc", "style", "circle"}
    plain = tree.to_text()
    assert len(plain.split("\n")) == len(tree.nodes)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", plain)
    mermaid = str(tree.to_mermaid())
    assert len(mermaid) < 50_000
    assert not re.search(r"<(?!br/>)", mermaid)
    bundle = tree._repr_mimebundle_()
    assert set(re.findall(r"<(/?\w+)", bundle["text/html"])) <= {
        *("div", "/div", "img", "details", "/details", "summary", "/summary", "pre", "/pre", "span", "/span"),
    }
    for node in tree.nodes:
        json.dumps(node.to_dict()).encode("utf-8")
        if node.kind != "more":
            assert tree.node(node.id).id == node.id
            assert build_tree(tree._source.state).node(node.id).label == node.label


def test_a_notebook_gets_an_image_and_a_text(writer: Writer) -> None:
    writer.commit(data(1))
    tree = build_tree(open_state(writer.write()))
    bundle = tree._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"] == tree.to_text() == repr(tree)
    html = bundle["text/html"]
    assert '<img src="data:image/svg+xml;base64,' in html
    assert "<details" in html
    assert "c1-m0.avro" in html
    for stripped in ("<svg", "<style", " id=", " role=", " class=", "<script"):
        assert stripped not in html


# Real tables --------------------------------------------------------------------------------------------------------


def test_the_sample() -> None:
    t = ix.sample("trips")
    tree = t.tree(snapshots="all", depth="files", max_nodes=400)
    kinds = Counter(n.kind for n in tree.nodes)
    assert kinds["snapshot"] == len(t.snapshots)
    assert kinds["deletion-vector"] > 0
    assert kinds["position-delete"] > 0
    assert not [n for n in tree.nodes if n.problems]
    # In the current snapshot every vector's file is shown, and every vector has its edge.
    now = t.tree(depth="files", max_nodes=400)
    vectors = [n.id for n in now.nodes if n.kind == "deletion-vector" and "removed" not in n.marks]
    assert vectors
    applies = [(now.node(e.source), now.node(e.target)) for e in now.edges if e.kind == "applies-to"]
    assert sorted(source.id for source, _ in applies if source.kind == "deletion-vector") == sorted(vectors)
    assert all(source.fields["referenced_file"] == target.location for source, target in applies)


def test_a_big_manifest_makes_few_objects(writer: Writer) -> None:
    writer.commit(data(20_000))
    state = open_state(writer.write())
    import iceexplore.graph.tree._entries as module

    made = 0
    original = TreeNode

    def counting(*args: Any, **kwargs: Any) -> Any:
        nonlocal made
        made += 1
        return original(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "TreeNode", counting)
        tree = build_tree(state, depth="files", max_nodes=50)
        assert len(tree.nodes) <= 50
        tree.children("manifest:9000000000000000001:0", offset=15_000, limit=100)
    assert made <= 50 + 1 + 101


@pytest.mark.corpus
def test_every_real_table_has_a_tree(corpus: Path) -> None:
    built = 0
    for engine in sorted(p for p in corpus.iterdir() if p.is_dir()):
        for folder in sorted(p for p in engine.iterdir() if p.is_dir() and not p.name.startswith("_")):
            try:
                state = open_state(str(folder))
            except ix.IceexploreError:
                continue
            tree = build_tree(state, snapshots="all", depth="files")
            ET.fromstring(tree.to_svg())
            assert len(tree.to_text().split("\n")) == len(tree.nodes)
            assert len(tree.to_mermaid()) < 50_000
            for node in tree.nodes:
                json.dumps(node.to_dict(), allow_nan=False)
                tree.children(node.id, limit=3)
            built += 1
    assert built > 120


def test_vectors_of_many_leaves_are_counted_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    s = ix.empty({"id": "long"}, format_version=4, leaf_entries=2, flush_data_files=0)
    s.append([{"location": f"/w/{i}.parquet", "record_count": 9, "file_size_in_bytes": 9} for i in range(12)])
    s.delete_files(s.inspect.data_files()["file_path"].tolist()[::2])
    state = s.table.state
    root = state.root()
    assert root is not None
    assert len(root.dv_rows) == 6
    counted = Mock(side_effect=_root.removed_counts)
    monkeypatch.setattr(_root, "removed_counts", counted)
    removed = _root.Removals(root).all
    assert [r.entries for r in removed] == [1] * 6
    assert [r.rows for r in removed] == [tuple(rows) for rows in root.dv_rows.values()]
    assert len(frozenset().union(*(r.identity for r in removed))) == 6
    assert counted.call_count == 1, "of 3,000 leaves one by one it took seconds, at every click"


def test_a_thousand_snapshots_fit_a_page() -> None:
    from tests.widgets.test_timeline_panel import branch, snapshot, with_snapshots

    many = [snapshot(i, i - 1 if i > 1 else None, ms=i * 1_000_000) for i in range(1, 1_001)]
    refs = dict([branch("main", 1_000), *(branch(f"b{i}", i) for i in range(1, 900, 3))])
    state = with_snapshots(ix.sample("trips").state, many, refs, 1_000)
    for most in (150, 5_000):
        tree = build_tree(state, snapshots="all", depth="snapshots", max_nodes=most)
        drawing = tree.to_svg()
        height = re.search(r'height="([\d.]+)"', drawing)
        assert height and float(height[1]) < 1_600, "88,047 without strips"
        assert "Snapshot 1000" in drawing and ">main<" in drawing
        assert len(tree.to_text().splitlines()) > 70, "the text has a line for each node"


def test_folded_rows_are_cells() -> None:
    from iceexplore.graph import FILE_KINDS

    sample = ix.sample("trips")
    tree = sample.tree(depth="files", max_nodes=30)
    folds = [node for node in tree.nodes if node.id.startswith("more:manifest")]
    assert folds
    for fold in folds:
        hidden = tree.children(fold.id, limit=1_000)
        assert fold.cells is not None and len(fold.cells) == fold.child_count == len(hidden)
        for node, kind, change in zip(hidden, fold.cells.kinds, fold.cells.changes, strict=True):
            assert fold.cells.names[kind] in (node.kind, "removed earlier")
            assert (fold.cells.names[kind] == "removed earlier") == ({"removed", "carried"} <= node.marks)
            assert change == (0 if "carried" in node.marks else 2 if "removed" in node.marks else 1)
        assert set(fold.cells.names) >= set(FILE_KINDS)
