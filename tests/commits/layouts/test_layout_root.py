"""The V4 layout, case by case: the examples of the proposal, encodings, flushing, affinity, compaction, refusals."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from iceexplore.arrow import build
from iceexplore.commits import (
    Change,
    apply_to_root,
    check_rules,
    evolve_spec,
    locate,
    rules_violated_by,
    set_properties,
)
from iceexplore.errors import FormatError, IceexploreError, RuleError
from iceexplore.graph import TableState, state_of, travel
from iceexplore.manifests import EntryBatch, read_manifest_dv, write_manifest
from tests.helpers.tables.root_table import (
    BY_KIND_AND_BUCKET,
    PLACE,
    RootLab,
    data_file,
    dv,
    entries,
    equality,
    live_files,
    path,
    root_rows,
    short,
)

LEAVES = {"flush_data_files": 2, "flush_delete_files": 1}
DATA_MANIFEST, DELETE_MANIFEST, MANIFEST_DV = "DATA_MANIFEST", "DELETE_MANIFEST", "MANIFEST_DV"


def made(folder: Path, **options: Any) -> RootLab:
    return RootLab(folder / "t", options=options)


def right(state: TableState, *, relaxed: tuple[str, ...] = ()) -> TableState:
    """The state, after a look at the rules."""
    assert check_rules(state, relaxed=relaxed) == []
    return state


def positions(state: TableState) -> dict[str, list[list[int]]]:
    """What the manifest DVs of the root remove, by status."""
    root = state.root()
    assert root is not None
    out: dict[str, list[list[int]]] = {}
    for i, row in enumerate(root.entries.to_pylist()):
        if row["deletion_vector"] is not None and row["content_type"] >= 3:
            status = ("EXISTING", "ADDED", "DELETED")[row["status"]]
            out.setdefault(status, []).append(list(read_manifest_dv(state.storage, root, i)))
    return out


def test_append_to_the_root(tmp_path: Path) -> None:
    lab = made(tmp_path, **LEAVES)
    lab.commit(add=[data_file(n) for n in ("D1", "D2", "D3")])
    assert root_rows(lab.state) == [(DATA_MANIFEST, "", "ADDED")]
    lab.commit(add=[data_file("D4")])
    state = right(lab.commit(add=[data_file("D5")]))
    assert root_rows(state) == [(DATA_MANIFEST, "", "EXISTING"), ("DATA", "D4", "EXISTING"), ("DATA", "D5", "ADDED")]
    assert [kind for kind, _ in lab.written()] == ["manifest-list"]
    assert sorted(live_files(state)) == ["D1", "D2", "D3", "D4", "D5"]


def test_append_with_a_leaf(tmp_path: Path) -> None:
    lab = made(tmp_path, **LEAVES)
    lab.commit(add=[data_file(n) for n in ("D1", "D2", "D3")])
    state = right(lab.commit(add=[data_file(n) for n in ("D4", "D5", "D6")]))
    assert root_rows(state) == [(DATA_MANIFEST, "", "EXISTING"), (DATA_MANIFEST, "", "ADDED")]
    assert [kind for kind, _ in lab.written()] == ["manifest", "manifest-list"]
    root = state.root()
    assert root is not None
    leaf = state.reader.leaf(root, 1)
    assert leaf.entries["status"].to_pylist() == [1, 1, 1]
    assert set(leaf.entries["sequence_number"].to_pylist()) == {2}


def test_remove_from_the_root(tmp_path: Path) -> None:
    lab = made(tmp_path)
    lab.commit(add=[data_file("D1"), data_file("D2")])
    state = right(lab.commit("delete", remove_data=path("D1")))
    assert root_rows(state) == [("DATA", "D1", "DELETED"), ("DATA", "D2", "EXISTING")]
    root = state.root()
    assert root is not None and state.snapshot is not None
    assert root.entries["snapshot_id"].to_pylist()[0] == state.snapshot.snapshot_id
    state = right(lab.commit(add=[data_file("D3")]))
    assert root_rows(state) == [("DATA", "D2", "EXISTING"), ("DATA", "D3", "ADDED")]


def test_remove_from_a_leaf(tmp_path: Path) -> None:
    lab = made(tmp_path, **LEAVES)
    lab.commit(add=[data_file(n) for n in ("D1", "D2", "D3")])
    state = right(lab.commit("delete", remove_data=path("D2")))
    assert root_rows(state) == [(DATA_MANIFEST, "", "EXISTING"), (MANIFEST_DV, "", "ADDED")]
    assert positions(state) == {"ADDED": [[1]]}
    summary = state.snapshot.summary if state.snapshot else None
    assert summary is not None and "changed-partition-count" not in summary  # the leaf's statistics are not read
    assert [kind for kind, _ in lab.written()] == ["manifest-list"]


def test_partitions_are_summarised_where_the_table_asks_for_it(tmp_path: Path) -> None:
    lab = made(tmp_path, **LEAVES)
    lab.box.commit(document_change=lambda d, at: set_properties(d, set={"write.summary.partition-limit": "5"}))
    lab.commit(add=[data_file("D1"), data_file("D2", kind="b"), data_file("D3")])
    state = lab.commit("delete", remove_data=path("D2"))
    summary = state.snapshot.summary if state.snapshot else None
    assert summary is not None and summary["changed-partition-count"] == "1"
    assert summary["partitions.kind=b"].startswith("deleted-data-files=1")


def test_overwrite_in_a_leaf_and_in_the_root(tmp_path: Path) -> None:
    lab = made(tmp_path, **LEAVES)
    lab.commit(add=[data_file(n) for n in ("D1", "D2", "D3")])
    state = right(lab.commit("overwrite", add=[data_file("D4")], remove_data=path("D2")))
    assert root_rows(state) == [(DATA_MANIFEST, "", "EXISTING"), (MANIFEST_DV, "", "ADDED"), ("DATA", "D4", "ADDED")]
    state = right(lab.commit("overwrite", add=[data_file("D5")], remove_data=path("D4")))
    assert root_rows(state)[2:] == [("DATA", "D4", "DELETED"), ("DATA", "D5", "ADDED")]


def test_row_delta_in_the_root_only(tmp_path: Path) -> None:
    lab = made(tmp_path)
    lab.commit(add=[data_file("D1")])
    state = right(lab.commit("overwrite", add=[dv("DV1", "D1"), data_file("D2")]))
    assert root_rows(state) == [
        ("DATA", "D1", "EXISTING"),
        ("DATA", "D2", "ADDED"),
        ("POSITION_DELETE", "DV1", "ADDED"),
    ]


def test_complex_row_delta(tmp_path: Path) -> None:
    lab = made(tmp_path, flush_data_files=1, flush_delete_files=1, affinity="none")
    lab.commit(add=[data_file("D1"), data_file("D2"), dv("DV1", "D1"), dv("DV2", "D2")])
    assert root_rows(lab.state) == [(DATA_MANIFEST, "", "ADDED"), (DELETE_MANIFEST, "", "ADDED")]
    state = right(lab.commit("overwrite", add=[dv("DV4", "D1", rows=3), data_file("D3")], replace_dvs=path("D1")))
    assert root_rows(state) == [
        (DATA_MANIFEST, "", "EXISTING"),
        (DELETE_MANIFEST, "", "EXISTING"),
        (MANIFEST_DV, "", "ADDED"),
        ("DATA", "D3", "ADDED"),
        ("POSITION_DELETE", "DV4", "ADDED"),
    ]
    assert sorted(live_files(state)) == ["D1", "D2", "D3", "DV2", "DV4"]


def test_compaction_during_an_append(tmp_path: Path) -> None:
    lab = made(tmp_path, **LEAVES)
    lab.commit(add=[data_file(n) for n in ("D1", "D2", "D3")])
    lab.commit(add=[data_file(n) for n in ("D4", "D5", "D6")])
    lab.commit("delete", remove_data=path("D1", "D5"))
    state = right(lab.commit(add=[data_file("D7")], rewrite_manifests=True))
    rows = root_rows(state)
    assert rows[-2:] == [(DATA_MANIFEST, "", "EXISTING"), ("DATA", "D7", "ADDED")]
    assert sorted(rows[:-2]) == [(DATA_MANIFEST, "", "DELETED")] * 2 + [(MANIFEST_DV, "", "DELETED")] * 2
    root = state.root()
    assert root is not None
    leaf = state.reader.leaf(root, len(rows) - 2)
    assert list(map(short, leaf.entries["location"].to_pylist())) == ["D2", "D3", "D4", "D6"]
    assert leaf.entries["status"].to_pylist() == [0, 0, 0, 0]
    assert leaf.entries["sequence_number"].to_pylist() == [1, 1, 2, 2]
    summary = state.snapshot.summary if state.snapshot else None
    assert summary is not None
    assert [summary[f"manifests-{n}"] for n in ("created", "kept", "replaced")] == ["1", "0", "2"]
    assert sorted(live_files(state)) == ["D2", "D3", "D4", "D6", "D7"]


@pytest.mark.parametrize(
    ("encoding", "second", "third"),
    [
        ("removed", {"DELETED": [[0]], "ADDED": [[0, 1]]}, {"EXISTING": [[0, 1]]}),
        ("replace", {"ADDED": [[0, 1]]}, {"EXISTING": [[0, 1]]}),
        ("delta", {"EXISTING": [[0]], "ADDED": [[1]]}, {"EXISTING": [[0, 1]]}),
    ],
)
@pytest.mark.parametrize("puffin", [False, True])
def test_encodings_of_manifest_dvs(tmp_path: Path, encoding: str, second: Any, third: Any, puffin: bool) -> None:
    lab = made(tmp_path, dv_encoding=encoding, inline_dv_bytes=0 if puffin else 4096, **LEAVES)
    lab.commit(add=[data_file(n) for n in ("D1", "D2", "D3", "D4")])
    lab.commit("delete", remove_data=path("D1"))
    assert positions(right(lab.state)) == {"ADDED": [[0]]}
    lab.commit("delete", remove_data=path("D2"))
    assert positions(right(lab.state)) == second
    assert sum(kind == "puffin" for kind, _ in lab.written()) == int(puffin)
    lab.commit(add=[data_file("E")])
    assert positions(right(lab.state)) == third
    if puffin:
        root = lab.state.root()
        assert root is not None
        row = root.entries.to_pylist()[1]
        assert row["location"].endswith(".puffin") and row["deletion_vector"]["inline_content"] is None
        assert row["file_size_in_bytes"] == lab.state.storage.stat(row["location"]).size


@pytest.mark.parametrize(
    ("encoding", "second"),
    [
        ("removed", {"DELETED": [[0]], "EXISTING": [[0, 1]]}),
        ("replace", {"EXISTING": [[0, 1]]}),
        ("delta", {"EXISTING": [[0]], "ADDED": [[1]]}),
    ],
)
def test_attached_manifest_dvs(tmp_path: Path, encoding: str, second: Any) -> None:
    lab = made(tmp_path, dv_encoding=encoding, dv_attached=True, inline_dv_bytes=0, **LEAVES)
    violated = rules_violated_by(lab.box.options)
    assert violated == ("added-is-change", "dv-struct")
    lab.commit(add=[data_file(n) for n in ("D1", "D2", "D3", "D4")])
    lab.commit("delete", remove_data=path("D1"))
    lab.commit("delete", remove_data=path("D2"))
    assert positions(right(lab.state, relaxed=violated)) == second
    assert {b.rule for b in check_rules(lab.state)} <= set(violated)
    lab.commit(add=[data_file("E")])
    assert positions(right(lab.state, relaxed=violated)) == {"EXISTING": [[0, 1]]}
    assert all(row[0] != MANIFEST_DV for row in root_rows(lab.state))
    assert sorted(live_files(lab.state)) == ["D3", "D4", "E"]


def test_a_leaf_loses_all_of_its_files(tmp_path: Path) -> None:
    lab = made(tmp_path, rewrite_leaf_at=1.0, **LEAVES)
    lab.commit(add=[data_file(n) for n in ("D1", "D2", "D3")])
    state = right(lab.commit("delete", remove_data=path("D1", "D2", "D3")))
    assert root_rows(state) == [(DATA_MANIFEST, "", "EXISTING"), (MANIFEST_DV, "", "ADDED")]
    state = right(lab.commit(add=[data_file("E")]))  # one commit later it is dropped
    assert root_rows(state) == [(DATA_MANIFEST, "", "DELETED"), (MANIFEST_DV, "", "DELETED"), ("DATA", "E", "ADDED")]


def test_dvs_go_with_their_data_files(tmp_path: Path) -> None:
    lab = made(tmp_path, flush_data_files=1, flush_delete_files=1)
    lab.commit(add=[data_file(n) for n in ("D1", "D2", "D3")])
    lab.commit("overwrite", add=[dv("V1", "D1"), dv("V2", "D2")])
    lab.commit("overwrite", add=[dv("V3", "D3")])
    state = right(lab.commit("delete", remove_data=path("D1", "D3")))
    assert sorted(live_files(state)) == ["D2", "V2"]
    assert ("POSITION_DELETE", "V3", "DELETED") in root_rows(state)
    summary = state.snapshot.summary if state.snapshot else None
    assert summary is not None and summary["removed-dvs"] == "2" and summary["deleted-data-files"] == "2"
    assert summary["total-delete-files"] == "1" and summary["total-position-deletes"] == "1"


def test_totals_that_the_base_lacks_are_left_out_and_no_leaf_is_read_for_them(tmp_path: Path) -> None:
    lab = made(tmp_path, **LEAVES)
    state = lab.commit(add=[data_file(n) for n in ("D1", "D2", "D3")])
    document = copy.deepcopy(dict(state.opened.document))
    del document["snapshots"][0]["summary"]["total-files-size"]
    lab.box.state = state_of(replace(state.opened, document=document), strict=True)
    before = len(lab.box.storage.reads)
    state = lab.commit(add=[data_file("D4")])
    assert not [read for read in tuple(lab.box.storage.reads)[before:] if read.kind == "manifest"]
    assert state.snapshot is not None and state.snapshot.summary is not None
    assert "total-files-size" not in state.snapshot.summary
    assert state.snapshot.summary["total-data-files"] == "4"
    right(state)


def test_equality_deletes_and_dropped_deletes(tmp_path: Path) -> None:
    lab = made(tmp_path, flush_delete_files=1)
    lab.commit(add=[data_file("D1"), equality("Q1"), equality("Q2")])
    state = right(lab.commit("overwrite", remove_deletes=path("Q1"), add=[equality("Q3")]))
    assert sorted(live_files(state)) == ["D1", "Q2", "Q3"]


def test_flushing_data_files(tmp_path: Path) -> None:
    lab = made(tmp_path, flush_data_files=3, leaf_entries=2)
    for n in ("D1", "D2", "D3"):
        lab.commit(add=[data_file(n)])
    assert [row[0] for row in root_rows(lab.state)] == ["DATA"] * 3
    state = right(lab.commit(add=[data_file("D4")]))
    assert root_rows(state) == [
        (DATA_MANIFEST, "", "EXISTING"),
        (DATA_MANIFEST, "", "EXISTING"),
        ("DATA", "D4", "ADDED"),
    ]
    root = state.root()
    assert root is not None
    leaf = state.reader.leaf(root, 0)
    assert leaf.entries["status"].to_pylist() == [0, 0]
    assert leaf.entries["sequence_number"].to_pylist() == [1, 2]
    assert leaf.entries["first_row_id"].to_pylist() == [0, 10]
    # nothing is left in the root at 0
    none = made(tmp_path / "none", flush_data_files=0, flush_delete_files=0)
    none.commit(add=[data_file("D1")])
    none.commit("overwrite", add=[dv("V1", "D1")])
    assert {row[0] for row in root_rows(right(none.state))} == {DATA_MANIFEST, DELETE_MANIFEST}


def owners(state: TableState) -> list[tuple[str | None, list[str]]]:
    """The live delete manifests: the first file of the data manifest that each is affiliated to, and its own files."""
    root = state.root()
    assert root is not None
    first, out = {}, []
    for i, row in enumerate(root.entries.to_pylist()):
        if row["content_type"] in (3, 4) and row["status"] != 2:
            held = state.reader.leaf(root, i).entries
            names = sorted(short(x) for x in held["location"].filter(held["manifest_dv"].is_null()).to_pylist())
            if row["content_type"] == 3:
                first[row["location"]] = names[0]
            else:
                owner = row["referenced_file"]
                out.append((None if owner is None else first[owner], names))
    return sorted(out, key=str)


def affine(folder: Path, **options: Any) -> RootLab:
    """Two data leaves (A, B), a data file in the root, and DVs of all of them in the root."""
    lab = made(folder, flush_data_files=3, flush_delete_files=3, **options)
    lab.commit(add=[data_file(f"A{i}") for i in range(4)])
    lab.commit(add=[data_file(f"B{i}") for i in range(4)])
    lab.commit(add=[data_file("R")])
    lab.commit("overwrite", add=[dv("V0", "A0"), dv("V1", "B1"), dv("V2", "R")])
    return lab


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_affinity_all(tmp_path: Path, limit: int) -> None:
    lab = affine(tmp_path, affinity="all", affiliated_manifests=limit)
    state = right(lab.commit("overwrite", add=[dv("V3", "A3"), equality("Q1")]))
    assert owners(state) == [("A0", ["V0"]), ("B0", ["V1"])]
    assert [row[1] for row in root_rows(state) if row[0] == "POSITION_DELETE"] == ["V2", "V3"]  # with its file
    state = right(lab.commit("overwrite", add=[dv("V4", "B3")]))
    of_a = [("A0", ["V0", "V3"])] if limit == 1 else [("A0", ["V0"]), ("A0", ["V3"])]
    assert owners(state) == [*of_a, ("B0", ["V1"]), (None, ["Q1"])]
    lab.commit("overwrite", add=[dv("V5", "A1")])
    lab.commit("overwrite", add=[dv("V6", "B0"), dv("V7", "B2")])
    state = right(lab.commit("overwrite", add=[dv("V8", "A2")]))
    held = [names for owner, names in owners(state) if owner == "A0"]
    assert len(held) == (3 if limit == 0 else 1)
    assert sorted(n for names in held for n in names) == ["V0", "V3", "V5"]


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_every_commit_keeps_the_limit_of_unaffiliated_manifests(tmp_path: Path, limit: int) -> None:
    lab = made(tmp_path, flush_data_files=0, flush_delete_files=0, affinity="some", unaffiliated_manifests=limit)
    lab.commit(add=[data_file(f"A{i}") for i in range(9)])
    for i in range(9):
        state = right(lab.commit("overwrite", add=[dv(f"V{i}", f"A{i}")]))
        found = owners(state)
        assert sum(owner is None for owner, _ in found) <= limit
        assert sorted(n for _, names in found for n in names) == [f"V{j}" for j in range(i + 1)]
    # Replacing DVs changes the manifests that list them, so that this commit cannot rewrite these.
    replaced = [dv("W0", "A0"), dv("W8", "A8")]
    state = right(lab.commit("overwrite", add=replaced, replace_dvs=path("A0", "A8")))
    assert sum(owner is None for owner, _ in owners(state)) <= limit


def test_delete_manifests_of_one_data_manifest_are_merged_later(tmp_path: Path) -> None:
    lab = made(tmp_path, flush_data_files=0, flush_delete_files=0, affinity="all", affiliated_manifests=2)
    lab.commit(add=[data_file(f"A{i}") for i in range(9)])
    counts = []
    for i in range(6):
        state = right(lab.commit("overwrite", add=[dv(f"V{i}", f"A{i}")]))
        counts.append(len(owners(state)))
    assert counts == [1, 2, 3, 2, 3, 2]  # a commit's own deletes are not merged with older ones


def test_affinity_of_a_commits_own_leaves(tmp_path: Path) -> None:
    lab = affine(tmp_path, affinity="all", unaffiliated_manifests=0)
    state = right(lab.commit("overwrite", add=[dv(f"W{i}", f"A{i}") for i in (1, 2)] + [dv("W3", "B3"), equality("Q")]))
    assert owners(state) == [("A0", ["W1", "W2"]), ("B0", ["W3"]), (None, ["Q"])]


def test_affinity_none(tmp_path: Path) -> None:
    lab = affine(tmp_path, affinity="none")
    state = right(lab.commit("overwrite", add=[dv("V3", "A3")]))
    assert owners(state) == [(None, ["V0", "V1", "V2"])]


def test_affinity_some(tmp_path: Path) -> None:
    lab = affine(tmp_path, affinity="some", unaffiliated_manifests=1)
    state = right(lab.commit("overwrite", add=[dv("V3", "A3")]))
    assert owners(state) == [(None, ["V0", "V1", "V2"])]
    lab.commit("overwrite", add=[dv("V4", "B3"), equality("Q")])
    state = right(lab.commit("overwrite", add=[dv("V5", "A2")]))  # a second unaffiliated one would be too many
    assert owners(state) == [("A0", ["V0", "V3"]), ("B0", ["V1", "V4"]), (None, ["Q", "V2"])]


def test_compaction_re_affiliates(tmp_path: Path) -> None:
    lab = affine(tmp_path, affinity="all")
    lab.commit("overwrite", add=[dv("V3", "A3")])
    before = owners(lab.state)
    lab.commit("delete", remove_data=path("A1", "B2"))
    state = right(lab.commit("replace", rewrite_manifests=True))
    # one leaf holds the files of both now, and its delete manifests were merged
    assert before == [("A0", ["V0"]), ("B0", ["V1"])]
    assert owners(state) == [("A0", ["V0", "V1"])]


def test_rewriting_named_manifests(tmp_path: Path) -> None:
    lab = made(tmp_path, **LEAVES)
    for letter in "ABC":
        lab.commit(add=[data_file(f"{letter}{i}") for i in range(3)])
    root = lab.state.root()
    assert root is not None
    names = root.entries["location"].to_pylist()
    state = right(lab.commit("replace", rewrite_manifests=(names[0], names[2])))
    assert [row[2] for row in root_rows(state)] == ["DELETED", "EXISTING", "DELETED", "EXISTING"]
    with pytest.raises(RuleError, match="files-exist"):
        lab.commit("replace", rewrite_manifests=(names[0],))
    # a leaf that the same commit changes stays: the change must show
    state = right(lab.commit("delete", remove_data=path("B1"), rewrite_manifests=(names[1],)))
    assert (MANIFEST_DV, "", "ADDED") in root_rows(state)
    assert names[1] in [r["location"] for r in state.root().entries.to_pylist()]  # type: ignore[union-attr]


def test_small_leaves_are_compacted_in_any_commit(tmp_path: Path) -> None:
    lab = made(tmp_path, compact_leaves=3, leaf_entries=12, **LEAVES)
    for letter in "ABC":
        lab.commit(add=[data_file(f"{letter}{i}") for i in range(3)])
    assert len(root_rows(lab.state)) == 3
    state = right(lab.commit(add=[data_file("D")]))
    assert [row[2] for row in root_rows(state)] == ["DELETED"] * 3 + ["EXISTING", "ADDED"]


def test_leaves_have_one_spec_each(tmp_path: Path) -> None:
    lab = made(tmp_path, flush_data_files=2, leaf_entries=10)
    lab.commit(add=[data_file("A")])
    lab.box.commit(document_change=lambda document, at: evolve_spec(document, add=[("bucket[4](id)", "b")]))
    lab.commit(add=[data_file("B", partition_spec_id=1)])
    lab.commit(add=[data_file("C")])  # A and B are flushed
    state = right(lab.commit("replace", rewrite_manifests=True))
    root = state.root()
    assert root is not None
    rows = [r for r in root.entries.to_pylist() if r["content_type"] == 3]
    assert [r["partition_spec_id"] for r in rows] == [0, 1]
    files = live_files(state)
    assert files["A"]["tuple"] == {"1000": "a"}
    assert files["B"]["tuple"] == {"1000": "a", "1001": ord("B") % 4}


REFUSED = {
    "files-exist": {"remove_data": path("no", "D1")},
    "files-exist ": {"remove_deletes": path("no")},
    "files-exist  ": {"replace_dvs": path("D1")},
    "duplicate-file": {"add": [data_file("D1")]},
    "duplicate-file ": {"add": [data_file("N"), data_file("N")]},
    "duplicate-file  ": {"add": [data_file("D1")], "remove_data": path("D1")},
    "one-dv": {"add": [dv("V", "D2"), dv("W", "D2")]},
    "one-dv ": {"add": [dv("V", "D0")]},
    "orphan-dv": {"add": [dv("V", "D1")], "remove_data": path("D1")},
    "deletes-need-v2": {"add": [{**dv("V", "D1"), "deletion_vector": None}]},
    "no-inline-data-dv": {
        "add": [dv("V", "D1", deletion_vector={"offset": None, "size_in_bytes": None, "inline_content": b"x"})]
    },
    "content-fields": {"add": [data_file("N", equality_ids=[1])]},
    "content-fields ": {"add": [equality("N", equality_ids=None)]},
    "size-with-location": {"add": [data_file("N", file_size_in_bytes=None)]},
    "sequence-order": {"add": [data_file("N", sequence_number=77)]},
}


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize("rule", REFUSED)
def test_refused_before_a_byte_is_written(tmp_path: Path, rule: str, leaves: bool) -> None:
    lab = made(tmp_path)
    lab.commit(add=[data_file("D0"), data_file("D1"), data_file("D2"), dv("V0", "D0")])
    if leaves:  # this commit's own leaves, too, are refused before they are written
        lab.box.options = type(lab.box.options).of(4, flush_data_files=0, flush_delete_files=0)
    before, writes = lab.state, len(list(lab.box.storage.writes))
    with pytest.raises(RuleError) as refusal:
        lab.commit("overwrite", **REFUSED[rule])  # type: ignore[arg-type]
    assert refusal.value.rule == rule.strip()
    assert lab.state is before and len(list(lab.box.storage.writes)) == writes


def test_what_need_not_be_there(tmp_path: Path) -> None:
    lab = made(tmp_path)
    lab.commit(add=[data_file("D1")])
    state = right(lab.commit("delete", remove_data=path("D1", "gone"), ignore_missing=True))
    assert not live_files(state)


def test_a_retry_uses_its_leaves_again(tmp_path: Path) -> None:
    lab = made(tmp_path, **LEAVES)
    lab.commit(add=[data_file("D1")])
    other = lab.box.fork()
    lab.commit(add=[data_file("D2")])
    late = Change("append", added=entries([data_file(f"N{i}") for i in range(3)]))
    other.commit(lambda writer: late)
    last = max(w.commit or 0 for w in other.storage.writes)
    kinds = [(w.kind, w.attempt) for w in other.storage.writes if w.commit == last and w.kind != "metadata"]
    assert kinds == [("manifest", 1), ("manifest-list", 1), ("manifest-list", 2)]
    state = right(other.state)
    files = live_files(state)
    assert sorted(files) == ["D1", "D2", "N0", "N1", "N2"]
    assert files["N0"]["sequence_number"] == 3 and files["N0"]["first_row_id"] == 20


def test_a_damaged_base_is_refused(tmp_path: Path) -> None:
    lab = made(tmp_path, **LEAVES)
    lab.commit(add=[data_file(n) for n in ("D1", "D2", "D3")])
    root = lab.state.root()
    assert root is not None
    Path(lab.state.storage.resolve(build.to_pylist(root.entries["location"])[0])).write_bytes(b"PAR1 no more")
    lab.commit(add=[data_file("E")])  # nothing is read
    with pytest.raises(FormatError, match="cannot build on"):
        lab.commit("delete", remove_data=path("D1"))
    Path(lab.state.storage.resolve(lab.state.root().location)).unlink()  # type: ignore[union-attr]
    with pytest.raises(IceexploreError):
        lab.commit(add=[data_file("F")])


def test_locate(tmp_path: Path) -> None:
    lab = RootLab(tmp_path / "t", spec=BY_KIND_AND_BUCKET, options=LEAVES)
    empty = locate(lab.state, path("D1"))
    assert empty.num_rows == 0
    lab.commit(add=[*(data_file(f"D{i}") for i in range(3)), dv("V0", "D0"), dv("V1", "D1")])
    lab.commit(add=[data_file("R"), equality("Q")])
    state = lab.commit("delete", remove_data=path("D2"))
    found = locate(state, path("D1", "R", "D2", "no")).to_pylist()
    assert [(f["root_row"], f["ordinal"], short(f["location"])) for f in found] == [(None, 2, "R"), (0, 1, "D1")]
    vectors = locate(state, (), referenced=path("D0", "R")).to_pylist()
    assert [(f["root_row"], short(f["location"]), short(f["referenced_file"])) for f in vectors] == [(1, "V0", "D0")]
    deletes = locate(state, [*path("Q"), f"{PLACE}V1.puffin"], contents=(1, 2)).to_pylist()
    assert sorted(short(f["location"]) for f in deletes) == ["Q", "V1"]
    # a snapshot before: the file was live then
    first = travel(state, snapshot=state.metadata.snapshots[0].snapshot_id)
    assert len(locate(first, path("D2"))) == 1


def test_on_an_empty_table_nothing_can_be_removed(tmp_path: Path) -> None:
    lab = made(tmp_path)
    with pytest.raises(RuleError, match="files-exist"):
        lab.commit("delete", remove_data=path("D1"))
    state = right(lab.commit("append"))
    assert root_rows(state) == []
    right(lab.commit(add=[data_file("D1")]))


def test_apply_to_root_by_itself(tmp_path: Path) -> None:
    """What a layout returns: the location, and how many row ids it gave."""
    lab = made(tmp_path)
    seen = []

    def change(writer: Any) -> Change:
        one = Change("append", added=entries([data_file("A", rows=5), data_file("B", rows=7)]))
        seen.append(apply_to_root(one, writer))
        return one

    lab.box.commit(change)
    assert seen[0].added_rows == 12 and seen[0].root_location.endswith("-root.parquet")


def test_on_top_of_a_root_of_the_draft(tmp_path: Path) -> None:
    """A root of the later draft (DVs on the entries of their files, and of manifests) is carried over."""
    lab = made(tmp_path, **LEAVES)
    lab.commit(add=[data_file(n) for n in ("D1", "D2", "D3")])
    lab.commit("overwrite", add=[data_file("E"), data_file("F"), dv("V", "E")])
    state = lab.commit("delete", remove_data=path("D2"))
    root = state.root()
    assert root is not None
    direct = state.reader.direct(root)
    assert direct is not None
    batch = EntryBatch.of(root)
    files = [row["content_type"] < 3 for row in batch.entries.to_pylist()]
    at = pa.array([sum(files[:i]) if is_file else None for i, is_file in enumerate(files)], pa.int64())
    tuples = direct.partition()
    assert tuples is not None
    data = write_manifest(
        replace(batch, partition=tuples.take(at)), content="root", metadata=state.metadata, spec_id=0,
        dialect="v4-draft", manifest_format="parquet",
    )  # fmt: skip
    location = f"{state.metadata.location}/metadata/draft-root.parquet"
    state.storage.write(location, data, kind="manifest-list")  # type: ignore[attr-defined]
    document = copy.deepcopy(state.opened.document)
    document["snapshots"][-1]["root-manifest"] = location
    lab.box.state = state_of(replace(state.opened, document=document))
    drafted = lab.state.root()
    assert drafted is not None and drafted.dialect == "v4-draft"
    assert sorted(live_files(lab.state)) == ["D1", "D3", "E", "F", "V"]
    lab.box.commit(lambda w: Change("overwrite", added=entries([data_file("G")]), remove_data=path("E", "D3")))
    assert sorted(live_files(lab.state)) == ["D1", "F", "G"]
    now = lab.state.root()
    assert now is not None and now.dialect == "v4-proposal"
    assert positions(lab.state) == {"DELETED": [[1]], "ADDED": [[1, 2]]}
