"""V4 trees written by an engine (Delta Lake 4.4, ``adaptiveMetadata-preview``), against its own account of versions.

The tables are in the corpus, with what Delta's snapshot of each version lists: path, records, cardinality of the
deletion vector. A version is the tree of the newest checkpoint, and the log's commits after it.
"""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

import iceexplore as ix
from iceexplore.deletes import read_deletion_vector
from iceexplore.graph import table_card
from iceexplore.inspect import open_file
from iceexplore.storage import Storage

pytestmark = pytest.mark.corpus

TYPES = {"integer": "int", "string": "string", "double": "double"}
Files = dict[str, tuple[int, int]]


@pytest.fixture(scope="module", params=["small", "parted"])
def delta(request: Any, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the table, in which data files also have the (URL-encoded) names that its manifests give them."""
    folder = tmp_path_factory.mktemp("delta") / str(request.param)
    shutil.copytree(corpus / "delta-amt" / str(request.param), folder)
    for path in [p for p in folder.rglob("*.parquet") if p.parent.name != "metadata"]:
        path.rename(path.with_name(path.name.replace("%", "%25")))
    return folder


def oracle(corpus: Path, delta: Path) -> dict[int, tuple[int, Files]]:
    """By version how many rows there are, and of each file its records and deleted rows."""
    found = json.loads((corpus / "delta-amt" / "oracle.json").read_text())[delta.name]
    return {int(v): (e["rows"], {p: (n, gone) for p, n, gone in e["files"]}) for v, e in found.items()}


def actions(delta: Path, version: int) -> Iterator[dict[str, Any]]:
    for line in (delta / "_delta_log" / f"{version:020}.json").read_text().splitlines():
        yield json.loads(line)


def trees(delta: Path) -> dict[int, dict[str, Any]]:
    """The checkpoints, by the version whose state their tree is."""
    versions = sorted(int(p.stem) for p in (delta / "_delta_log").glob("*.json"))
    found = [a["checkpoint"] for v in versions for a in actions(delta, v) if "checkpoint" in a]
    return {c["version"]: c for c in found}


def table_of(delta: Path, checkpoint: dict[str, Any]) -> ix.Table:
    """The tree of a checkpoint as a table of format version 4."""
    columns = json.loads(checkpoint["metaData"]["schemaString"])["fields"]
    fields = [{"id": c["metadata"]["delta.columnMapping.id"], "name": c["name"], "type": TYPES[c["type"]],
               "required": not c["nullable"]} for c in columns]  # fmt: skip
    version = checkpoint["version"]
    document = {
        "format-version": 4, "table-uuid": checkpoint["metaData"]["id"], "location": str(delta),
        "last-sequence-number": version, "last-updated-ms": 1_700_000_000_000 + version, "last-column-id": len(fields),
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}], "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}], "default-spec-id": 0, "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}], "default-sort-order-id": 0, "next-row-id": 1000,
        "current-snapshot-id": version, "snapshots": [{
            "snapshot-id": version, "sequence-number": version, "timestamp-ms": 1_700_000_000_000 + version,
            "root-manifest": f"{delta}/{checkpoint['contentRoot']['path']}", "summary": {"operation": "append"},
        }],
    }  # fmt: skip
    path = delta / "metadata" / f"v{version}.metadata.json"
    path.write_text(json.dumps(document))
    vectors = _folder_of_vectors(delta)
    return ix.open(path, moved={vectors: str(delta)} if vectors else None)


def _folder_of_vectors(delta: Path) -> str:
    """Where the table was written: its vectors have absolute locations."""
    for path in sorted((delta / "metadata").glob("leaf-*.parquet")):
        for row in open_file(path).arrow()["deletion_vector"].to_pylist():
            if row:
                return str(row["location"].rpartition("/")[0])
    return ""


def live_files(t: ix.Table, delta: Path) -> Files:
    """The live data files, relative to the table as they are written, with their records and deleted rows."""
    vectors = {r["referenced_data_file"]: r["record_count"] for r in t.inspect.delete_files.arrow().to_pylist()}
    return {
        r["file_path"].removeprefix(f"{delta}/"): (r["record_count"], vectors.get(r["file_path"], 0))
        for r in t.inspect.data_files.arrow().to_pylist()
    }


def replayed(delta: Path, start: Files, first: int, last: int) -> Files:
    """What commits of the log make of a tree's files."""
    files = dict(start)
    for version in range(first, last + 1):
        done = list(actions(delta, version))
        for path in (a["remove"]["path"] for a in done if "remove" in a):
            files.pop(path, None)
        for added in (a["add"] for a in done if "add" in a):
            gone = (added.get("deletionVector") or {}).get("cardinality", 0)
            files[added["path"]] = (json.loads(added["stats"])["numRecords"], gone)
    return files


def test_files_and_vectors_of_each_version(corpus: Path, delta: Path) -> None:
    """Those of the tree at or before the version, and the commits after it; before the first tree there is only the
    log."""
    found = {v: live_files(table_of(delta, c), delta) for v, c in trees(delta).items()}
    assert len(found) in (3, 4)
    compared = 0
    for version, (rows, files) in oracle(corpus, delta).items():
        base = max((v for v in found if v <= version), default=None)
        assert replayed(delta, {} if base is None else found[base], 1 if base is None else base + 1, version) == files
        assert sum(n - gone for n, gone in files.values()) == rows
        compared += base is not None
    assert compared >= 4


def test_rows_of_each_tree(corpus: Path, delta: Path) -> None:
    """A checkpoint is committed by a version of its own, whose state is the tree's."""
    known = oracle(corpus, delta)
    compared = 0
    for version, checkpoint in trees(delta).items():
        t = table_of(delta, checkpoint)
        if version + 1 in known:
            rows, files = known[version + 1]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # counts that Delta writes as 0 contradict the leaves
                assert t.count() == t.to_arrow().num_rows == rows
            assert len(t.plan().files.files) == len(files)
            compared += 1
        assert [p.text for p in t.problems if p.severity == "error"] == []
        facts = dict(table_card(t.state).facts)
        assert [facts[n] for n in ("Data files", "Rows before deletes", "Delete files")] == ["unknown"] * 3
    assert compared >= 3


def test_vectors_have_their_cardinality(delta: Path) -> None:
    for checkpoint in trees(delta).values():
        t = table_of(delta, checkpoint)
        for row in t.inspect.delete_files.arrow().to_pylist():
            place = (row["file_path"], row["content_offset"], row["content_size_in_bytes"])
            assert len(read_deletion_vector(t._state.storage, *place)) == row["record_count"]


def test_manifest_vectors_are_what_removes_refer_to(delta: Path) -> None:
    """A manifest DV has each position that a commit between two trees removed, and that many are stated."""
    made, seen = trees(delta), 0
    for before, after in zip(sorted(made), sorted(made)[1:], strict=False):
        gone = [a["remove"]["backReference"] for v in range(before + 1, after + 1) for a in actions(delta, v)
                if "backReference" in a.get("remove", {})]  # fmt: skip
        vectors = open_file(delta / made[after]["contentRoot"]["path"]).manifest_deletion_vectors().to_pylist()
        found = {(r["manifest"], p) for r in vectors for p in r["positions"]}
        assert {(g["manifest"], g["pos"]) for g in gone} <= found
        seen += len(gone)
        assert all(r["cardinality"] == r["stated_cardinality"] == len(r["positions"]) for r in vectors)
    assert seen


def test_names_are_those_of_the_files(delta: Path) -> None:
    """No location of the trees leads nowhere, once decoded."""
    for checkpoint in trees(delta).values():
        storage = Storage(str(delta))
        for name in live_files(table_of(delta, checkpoint), delta):
            assert "%25" in name and "%25" not in unquote(name)
            assert storage.exists(f"{delta}/{name}")
