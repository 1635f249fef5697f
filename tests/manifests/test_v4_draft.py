"""The V4 draft (``TrackedFile``): rows that hold a file and its deletion vector, manifests with theirs."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from pyroaring import BitMap

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.deletes import encode_mumbling
from iceexplore.graph import table_card
from iceexplore.manifests import encode_manifest_dv, live, open_manifest
from tests.helpers import v4_files as v4
from tests.manifests.test_v4_proposal import Table, root_of


@pytest.fixture(params=["avro", "parquet"])
def table(request: Any, tmp_path: Path) -> Table:
    return Table(tmp_path, request.param)


def tracked(number: int, *, status: int = 1, tracking: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "tracking": {"status": status, **(tracking or {})},
        "content_type": 0,
        "format_version": 4,
        "location": f"data/{number:05d}.parquet",
        "file_format": "parquet",
        "record_count": 10 + number,
        "file_size_in_bytes": 1000 + number,
        **more,
    }


def vector(number: int) -> dict[str, Any]:
    return {"location": f"data/{number}.puffin", "offset": 4, "size_in_bytes": 50, "cardinality": number}


def manifest(location: str, length: int, *, dv: bytes | None = None, removed: int = 1, **more: Any) -> dict[str, Any]:
    counts = {f"{s}_files_count": 0 for s in ("existing", "deleted", "replaced")}
    rows = {f"{s}_rows_count": None for s in ("added", "existing", "deleted", "replaced")}
    info = {"added_files_count": 3, **counts, **rows, "min_sequence_number": 2, "dv": dv}
    if dv is not None:
        info["dv_cardinality"] = removed
    return tracked(
        0, content_type=3, location=location, file_size_in_bytes=length, record_count=3, manifest_info=info, **more
    )


def test_a_row_with_a_file_and_its_vector_is_two_entries(table: Table) -> None:
    stats = [v4.column_stats(1, "long")]
    partition = [v4.F(1000, "at_day", "date"), v4.F(1002, "id_bucket", "int")]
    low = {"c1": {"lower_bound": 3}}
    rows = [
        tracked(0, spec_id=1, partition={"at_day": dt.date(2024, 1, 1)}, content_stats=low, deletion_vector=vector(2)),
        tracked(1, spec_id=2, partition={"id_bucket": 5}),
        tracked(2, deletion_vector=vector(4)),
    ]
    leaf, length = table.write("leaf", v4.draft(stats, partition), rows, "data")
    reader = table.root([manifest("metadata/leaf", length, tracking={"first_row_id": 40})], v4.draft())
    root = root_of(reader)
    assert (root.dialect, root.entries["location"].to_pylist()) == ("v4-draft", [leaf])
    made = reader.leaf(root, 0)
    at = str(table.folder)
    assert list(reader.problems) == []
    got = made.entries.to_pylist()
    assert [(e["ordinal"], e["content_type"]) for e in got] == [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1)]
    assert got[1]["location"] == f"{at}/data/2.puffin"
    assert got[1]["referenced_file"] == got[0]["location"] == f"{at}/data/00000.parquet"
    assert (got[1]["file_format"], got[1]["record_count"]) == ("puffin", 2)
    assert got[1]["deletion_vector"] == {"offset": 4, "size_in_bytes": 50, "inline_content": None}
    assert [e["deletion_vector"] is None for e in got] == [True, False, True, True, False]
    assert [e["sequence_number"] for e in got] == [7] * 5
    assert [e["snapshot_id"] for e in got] == [77] * 5
    assert [e["first_row_id"] for e in got] == [40, None, 50, 61, None]  # vectors are no rows
    assert [e["partition_spec_id"] for e in got] == [1, 1, 2, 0, 0]  # null is the unpartitioned one
    assert made.stats(1).lower.to_pylist() == [3, None, None, None, None]
    tuples = made.partition()
    assert tuples is not None
    first = {"1000": dt.date(2024, 1, 1), "1001": None, "1002": None}
    assert build.to_pylist(tuples) == [first, first, {"1000": None, "1001": None, "1002": 5}, None, None]


def test_a_vector_on_what_is_no_data_file(table: Table) -> None:
    vectors: dict[str, Any] = {"deletion_vector": vector(3)}
    rows = [tracked(0, **vectors), tracked(1, content_type=2, equality_ids=[1], **vectors), tracked(2, content_type=1)]
    reader = table.root(rows, v4.draft())
    root = root_of(reader)
    assert [(p.code, p.where, p.field, p.found) for p in root.problems] == [
        ("entry-invalid", f"{root.location}#entry 2", "147 deletion_vector", "POSITION_DELETE"),
        ("entry-invalid", f"{root.location}#entry 1", "147 deletion_vector", "POSITION_DELETE"),
        ("entry-invalid", f"{root.location}#entry 2", "143 referenced_file", "POSITION_DELETE"),
    ]


@pytest.mark.parametrize("encode", [encode_manifest_dv, encode_mumbling])
def test_the_dv_of_a_manifest(table: Table, encode: Any) -> None:
    rows = [tracked(0, deletion_vector=vector(1)), tracked(1), tracked(2, deletion_vector=vector(3))]
    leaf, length = table.write("leaf", v4.draft(), rows, "data")
    tracking = {"sequence_number": 2, "file_sequence_number": 2, "snapshot_id": 5, "dv_snapshot_id": 77}
    changed = encode(BitMap([0]))
    # MODIFIED: a live manifest whose dv changed; its positions of this commit are for reading changes
    modified = {**tracking, "deleted_positions": changed}
    rows = [
        tracked(9, deletion_vector=vector(9)),
        manifest(leaf, length, dv=encode(BitMap([0, 1])), removed=2, status=4, tracking=modified),
        manifest(leaf, length, dv=encode(BitMap([2])), status=3, tracking=tracking),
    ]
    reader = table.root(rows, v4.draft())
    root = root_of(reader)
    got = root.entries.to_pylist()
    assert [(e["ordinal"], e["content_type"], e["status"]) for e in got] == [
        (0, 0, 1), (0, 1, 1), (1, 3, 4), (1, 5, 1), (2, 3, 3), (2, 5, 3),
    ]  # fmt: skip
    assert got[3]["referenced_file"] == got[3]["location"] == leaf
    assert (got[3]["record_count"], got[3]["snapshot_id"]) == (2, 77)
    assert live(root.entries).to_pylist() == [True, True, True, True, False, False]
    direct, made = reader.leaves(root)
    assert direct.entries["ordinal"].to_pylist() == [0, 0]
    assert made.root_row == 2
    # both entries of a removed row go; the one of the REPLACED manifest does not apply
    assert made.entries["manifest_dv"].to_pylist() == [1, 1, 1, None, None]
    assert list(reader.problems) == []


def test_replaced_and_modified_entries(table: Table) -> None:
    rows = [tracked(0, status=4, deletion_vector=vector(1)), tracked(1, status=3, deletion_vector=vector(2))]
    leaf, length = table.write("leaf", v4.draft(), rows, "data")
    reader = table.root([manifest(leaf, length)], v4.draft())
    made = reader.leaf(root_of(reader), 0)
    assert made.entries["status"].to_pylist() == [4, 1, 3, 3]
    assert live(made.entries).to_pylist() == [True, True, False, False]
    assert list(reader.problems) == []  # the draft does not define which count includes MODIFIED entries


def test_counts_are_of_rows(table: Table) -> None:
    rows = [tracked(0, deletion_vector=vector(1)), tracked(1)]
    leaf, length = table.write("leaf", v4.draft(), rows, "data")
    reader = table.root([manifest(leaf, length)], v4.draft())
    (item,) = reader.leaf(root_of(reader), 0).problems
    assert (item.code, item.found, item.expected) == ("count-mismatch", "3", "2")


def test_loose_and_without_ids(table: Table) -> None:
    leaf, length = table.write("leaf", v4.draft(), [tracked(0, deletion_vector=vector(1))], "data", ids=False)
    reader = table.root([manifest(leaf, length)], v4.draft())
    made = open_manifest(reader.storage, leaf)
    assert (made.dialect, [p.code for p in made.problems]) == ("v4-draft", ["avro-no-field-ids"])
    assert made.entries["content_type"].to_pylist() == [0, 1]
    assert made.entries["location"].to_pylist() == ["data/00000.parquet", "data/1.puffin"]


def test_vectors_of_data_entries_are_listed_as_deletes(table: Table) -> None:
    rows = [tracked(0, deletion_vector=vector(2)), tracked(1), tracked(2, deletion_vector=vector(4))]
    leaf, length = table.write("leaf", v4.draft(), rows, "data")
    top = [tracked(9, deletion_vector=vector(9)), manifest(leaf, length)]
    at, _ = table.write("root", v4.draft(), top, "root")
    snapshot = {"snapshot-id": 77, "sequence-number": 7, "timestamp-ms": 1, "schema-id": 0, "root-manifest": at}
    document = table.document | {"snapshots": [snapshot]}
    path = table.folder / "metadata" / "v1.metadata.json"
    path.write_text(json.dumps(document))
    t = ix.open(path)
    data, deletes = t.inspect.data_files(), t.inspect.delete_files()
    assert sorted(data["content"].tolist()) == [0] * 4
    assert sorted(deletes["record_count"].tolist()) == [2, 4, 9]
    assert sorted(t.inspect.deletion_vectors()["cardinality"].tolist()) == [2, 4, 9]
    assert sorted(t.inspect.all_delete_files()["record_count"].tolist()) == [2, 4, 9]
    assert set(t.inspect.all_data_files()["content"]) == {0}
    assert len(t.inspect.files()) == 7


@pytest.mark.parametrize("removed", [0, 2])
def test_a_count_of_0_leaves_no_manifest_out(table: Table, removed: int) -> None:
    """Delta Lake 4.4: all counts of leaves of a full rewrite are 0, and 506 is the manifest DV's cardinality."""
    location, length = table.write("leaf", v4.draft(), [tracked(n) for n in range(4)], "data")
    row = manifest(location, length, dv=encode_manifest_dv(BitMap(range(removed))) if removed else None)
    zeros = {k: 0 for k in row["manifest_info"] if k.endswith("_count")} | {"min_sequence_number": 0}
    row["manifest_info"] |= zeros | {"deleted_files_count": removed}
    table.root([row | {"record_count": 0}], v4.draft())
    t = ix.open(table.folder)
    assert dict(table_card(t.state).facts)["Data files"] == "unknown"
    assert len(t.plan().files.files) == len(t.inspect.data_files.arrow()) == 4 - removed
    assert {p.code for p in t.problems} == {"count-mismatch", "totals-differ"}
