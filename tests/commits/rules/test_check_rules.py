"""The rule checker: each rule is broken by hand, in a tree that is otherwise right, and that rule alone is seen."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap

from iceexplore.arrow import build
from iceexplore.commits import RULES, check_rules, rule
from iceexplore.errors import PROBLEM_KINDS, FormatError, OptionError, Problems
from iceexplore.graph import TableState, state_of
from iceexplore.manifests import (
    EntryBatch,
    Manifest,
    ManifestReader,
    concat_batches,
    encode_manifest_dv,
    live,
    manifest_entry,
    stats_type,
    write_manifest,
)
from iceexplore.manifests.rules import ENTRY_CHECKS, Rows, misplaced
from tests.helpers.tables.root_table import BY_KIND_AND_BUCKET, PLACE, RootLab, data_file, dv, entries, equality, path

SMALL = {"flush_data_files": 2, "flush_delete_files": 1, "leaf_entries": 10, "affinity": "none"}
Row = dict[str, Any]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> RootLab:
    """A table that no test commits to: see `make_lab`."""
    return make_lab(tmp_path_factory.mktemp("rules"))


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> RootLab:
    """A table of one snapshot, a data leaf and a delete leaf, that no test commits to."""
    lab = RootLab(tmp_path_factory.mktemp("one") / "t", spec=BY_KIND_AND_BUCKET, options=SMALL)
    lab.commit(add=[*(data_file(f"L{i}", low=10 * i) for i in range(3)), dv("V0", "L0"), dv("V1", "L1")])
    return lab


def make_lab(folder: Path) -> RootLab:
    """One snapshot: a data leaf (L0 to L2) and a delete leaf; then one in which everything else happens in the root."""
    lab = RootLab(folder / "t", spec=BY_KIND_AND_BUCKET, options=SMALL)
    lab.commit(add=[*(data_file(f"L{i}", low=10 * i) for i in range(3)), dv("V0", "L0"), dv("V1", "L1")])
    lab.commit(add=[data_file("R1", kind="b"), data_file("R2")])
    lab.commit("overwrite", add=[dv("V2", "L2")], remove_data=path("R1", "L0"))
    return lab


def batch_of(state: TableState, manifest: Manifest) -> EntryBatch:
    """Everything of a manifest; of a root with the tuples of its files."""
    made = EntryBatch.of(manifest)
    if not manifest.is_root:
        return made
    direct = state.reader.direct(manifest)
    if direct is None:
        return made
    places = {row: i for i, row in enumerate(direct.entries["ordinal"].to_pylist())}
    tuples = direct.partition()
    assert tuples is not None
    return replace(made, partition=tuples.take(pa.array([places.get(i) for i in range(len(made))], pa.int64())))


def written(state: TableState, batch: EntryBatch, content: Any, name: str) -> tuple[str, int]:
    location = f"{state.metadata.location}/metadata/{name}.parquet"
    data = write_manifest(
        batch,
        content=content,
        metadata=state.metadata,
        spec_id=0,
        dialect="v4-proposal",
        manifest_format="parquet",
    )
    state.storage.write(location, data, kind="manifest")  # type: ignore[attr-defined]
    return location, len(data)


def with_snapshot(state: TableState, **keys: Any) -> TableState:
    """The state with other keys in its current snapshot."""
    document = copy.deepcopy(state.opened.document)
    assert state.snapshot is not None
    shown = next(s for s in document["snapshots"] if s["snapshot-id"] == state.snapshot.snapshot_id)
    shown |= keys
    return state_of(replace(state.opened, document=document))


def edited(batch: EntryBatch, where: Callable[[Row], bool], **columns: Any) -> EntryBatch:
    """A batch with other values in the rows that are meant; at least one is."""
    rows = batch.entries.to_pylist()
    hits = [where(row) for row in rows]
    assert any(hits)
    values = {name: [value if hit else row[name] for row, hit in zip(rows, hits, strict=True)]
              for name, value in columns.items()}  # fmt: skip
    arrays = {name: pa.array(v, batch.entries.schema.field(name).type) for name, v in values.items()}
    return batch.with_columns(**arrays)


def with_root(state: TableState, edit: Callable[[EntryBatch], EntryBatch]) -> TableState:
    """The state with another root, written anew."""
    root = state.root()
    assert root is not None
    location, _ = written(state, edit(batch_of(state, root)), "root", f"edited-root-{uuid4()}")
    return with_snapshot(state, **{"root-manifest": location})


def with_leaf(state: TableState, kind: int, edit: Callable[[EntryBatch], EntryBatch], **of_row: Any) -> TableState:
    """The state with another leaf in the place of its (only) one of this content type; the root's row describes it."""
    root = state.root()
    assert root is not None
    at = root.entries["content_type"].to_pylist().index(kind)
    old = root.entries.slice(at, 1).to_pylist()[0]
    batch = edit(batch_of(state, state.reader.leaf(root, at)))
    content = "data" if kind == 3 else "delete"
    location, length = written(state, batch, content, f"edited-leaf-{uuid4()}")
    row = manifest_entry(
        batch, location=location, length=length, content=content, metadata=state.metadata, spec_id=0,
        dialect="v4-proposal", status=old["status"], snapshot_id=old["snapshot_id"],
        sequence_number=old["sequence_number"], first_row_id=old["first_row_id"],
    )  # fmt: skip
    row = row.with_columns(**of_row)

    def placed(b: EntryBatch) -> EntryBatch:
        return concat_batches([b.take(list(range(at))), row, b.take(list(range(at + 1, len(b))))])

    return with_root(state, placed)


def rules_of(state: TableState) -> list[str]:
    return sorted({b.rule for b in check_rules(state)})


#: The manifest DV of one position, portable roaring.
PORTABLE = encode_manifest_dv(BitMap([0]))
#: One that removes an entry which its leaf of three does not have.
BEYOND = encode_manifest_dv(BitMap([3]))


def is_named(name: str) -> Callable[[Row], bool]:
    return lambda row: bool(row["location"].rpartition("/")[2].rpartition(".")[0] == name)


def of_kind(kind: int, status: int | None = None) -> Callable[[Row], bool]:
    return lambda row: row["content_type"] == kind and status in (None, row["status"])


def without(batch: EntryBatch, where: Callable[[Row], bool]) -> EntryBatch:
    keep = [not where(row) for row in batch.entries.to_pylist()]
    assert not all(keep)
    return batch.filter(pa.array(keep))


def plus(batch: EntryBatch, *rows: Mapping[str, Any], **columns: Any) -> EntryBatch:
    """A batch and further rows, ADDED by the newest snapshot."""
    newest = max(build.to_pylist(batch.entries["sequence_number"]))
    owner = next(r for r in batch.entries.to_pylist() if r["sequence_number"] == newest)["snapshot_id"]
    fields = {"status": 1, "snapshot_id": owner, "sequence_number": newest, "file_sequence_number": newest, **columns}
    return concat_batches([batch, entries(rows).with_columns(**fields)])


def test_what_the_layout_writes_breaks_nothing(lab: RootLab) -> None:
    state = lab.state
    for snapshot in state.metadata.snapshots:
        assert check_rules(state, snapshot) == []
    assert rules_of(with_root(state, lambda b: b)) == []  # the tool of the tests below does no harm
    with pytest.raises(OptionError, match="unknown rule"):
        check_rules(state, relaxed=["no-such"])


ROOT_EDITS: dict[str, Callable[[EntryBatch], EntryBatch]] = {
    "dv-struct": lambda b: edited(b, is_named("V2"), deletion_vector=None),
    "dv-struct ": lambda b: edited(
        b, is_named("R2"), deletion_vector={"offset": 4, "size_in_bytes": 4, "inline_content": None}
    ),
    "dv-struct  ": lambda b: edited(
        b, of_kind(5, 1), deletion_vector={"offset": 4, "size_in_bytes": 4, "inline_content": PORTABLE}
    ),
    "dv-struct   ": lambda b: edited(
        b, is_named("V2"), deletion_vector={"offset": 4, "size_in_bytes": None, "inline_content": None}
    ),
    "referenced-file": lambda b: edited(b, is_named("R2"), referenced_file=f"{PLACE}L1.parquet"),
    "referenced-file ": lambda b: edited(b, of_kind(3), referenced_file=f"{PLACE}L1.parquet"),
    "no-inline-data-dv": lambda b: edited(
        b, is_named("V2"), deletion_vector={"offset": None, "size_in_bytes": None, "inline_content": b"1"}
    ),
    "one-manifest-dv": lambda b: concat_batches([b, b.take([b.entries["content_type"].to_pylist().index(5)])]),
    "one-dv": lambda b: plus(b, dv("V9", "L2")),
    "orphan-dv": lambda b: edited(b, is_named("V2"), referenced_file=f"{PLACE}nowhere.parquet"),
    "orphan-dv ": lambda b: concat_batches(
        [b, edited(b.take([b.entries["content_type"].to_pylist().index(5)]), of_kind(5), referenced_file="s3://x/no")]
    ),
    "dv-in-range": lambda b: edited(b, is_named("V2"), record_count=1000),
    "dv-in-range ": lambda b: edited(
        b, of_kind(5, 1), deletion_vector={"offset": None, "size_in_bytes": None, "inline_content": BEYOND}
    ),
    "added-is-change": lambda b: edited(
        b, is_named("R2"), status=1, snapshot_id=b.entries["snapshot_id"].to_pylist()[-1]
    ),
    "added-is-change ": lambda b: edited(b, of_kind(5, 1), status=0),
    "deleted-entries": lambda b: without(b, is_named("R1")),
    "leaf-change-by-dv": lambda b: without(
        b, lambda row: row["content_type"] in (4, 5) and "delete" in (row["referenced_file"] or row["location"])
    ),
    "manifest-stats": lambda b: edited(b, of_kind(3), manifest_stats={"added_files_count": 7}),
    "manifest-stats ": lambda b: edited(b, of_kind(3), manifest_stats=None),
    "manifest-stats  ": lambda b: edited(b, of_kind(3), manifest_stats={"added_rows_count": 7}),
    "manifest-stats   ": lambda b: edited(b, of_kind(3), manifest_stats={"min_sequence_number": 2}),
    "size-with-location": lambda b: edited(b, is_named("R2"), file_size_in_bytes=None),
    "size-with-location ": lambda b: edited(b, of_kind(5, 1), file_size_in_bytes=9),
    "manifest-sequence": lambda b: edited(b, of_kind(3), file_sequence_number=2),
    "content-fields": lambda b: edited(b, is_named("V2"), sort_order_id=1),
    "content-fields ": lambda b: edited(b, is_named("R2"), equality_ids=[1]),
    "content-fields  ": lambda b: plus(b, equality("Q", equality_ids=None)),
    "content-fields   ": lambda b: plus(b, equality("Q", equality_ids=[])),
    "sequence-order": lambda b: edited(b, is_named("R2"), sequence_number=99, file_sequence_number=99),
    "row-ids": lambda b: edited(b, is_named("R2"), first_row_id=5),
    "row-ids ": lambda b: edited(b, is_named("R2"), first_row_id=10_000),
    "row-ids  ": lambda b: edited(b, is_named("R2"), first_row_id=2**63 - 1),
    "duplicate-file": lambda b: plus(b, data_file("L1", rows=1), first_row_id=0, status=0, snapshot_id=1),
    "duplicate-file ": lambda b: plus(b, data_file("R2", rows=1), first_row_id=0, status=0, snapshot_id=1),
    "affinity": lambda b: edited(b, of_kind(4), referenced_file="s3://x/no"),
    "split-offsets": lambda b: edited(b, is_named("R2"), split_offsets=[4, 400, 90]),
}


@pytest.mark.parametrize("name", ROOT_EDITS)
def test_a_root_that_breaks_a_rule(lab: RootLab, name: str) -> None:
    state = with_root(lab.state, ROOT_EDITS[name])
    assert rules_of(state) == [name.strip()], check_rules(state)
    assert check_rules(state, relaxed=[name.strip()]) == []


LEAF_EDITS: dict[str, tuple[int, Callable[[EntryBatch], EntryBatch]]] = {
    "two-levels": (3, lambda b: concat_batches([b, nested(b)])),
    "leaf-data-content": (3, lambda b: plus(b, dv("V8", "L2"))),
    "leaf-delete-content": (4, lambda b: plus(b, data_file("D9"))),
    "added-is-change": (3, lambda b: edited(b, is_named("L1"), status=0)),
    "dv-struct": (4, lambda b: edited(b, is_named("V1"), deletion_vector=None)),
    "orphan-dv": (3, lambda b: without(b, is_named("L1"))),
}


def nested(batch: EntryBatch) -> EntryBatch:
    """A manifest among the rows of a leaf."""
    stats = {"added_files_count": 0, "existing_files_count": 0, "deleted_files_count": 0, "added_rows_count": 0,
             "existing_rows_count": 0, "deleted_rows_count": 0, "min_sequence_number": 1}  # fmt: skip
    one = batch.take([0]).with_columns(
        content_type=3,
        location=f"{PLACE}nested.parquet",
        manifest_stats=pa.array([stats], batch.entries.schema.field("manifest_stats").type),
    )
    return EntryBatch(one.entries)


@pytest.mark.parametrize("name", LEAF_EDITS)
def test_a_leaf_that_breaks_a_rule(one: RootLab, name: str) -> None:
    kind, edit = LEAF_EDITS[name]
    state = with_leaf(one.state, kind, edit)
    assert rules_of(state) == [name.strip()], check_rules(state)


def with_file(state: TableState, leaf: int | None, keys: dict[str, str] | None, status: int | None) -> TableState:
    """The state whose root, or one leaf, is written again by pyarrow with other keys, and a status in its first row.

    `leaf` is the content type of the leaf; None for the root.
    """
    root = state.root()
    assert root is not None
    at = None if leaf is None else root.entries["content_type"].to_pylist().index(leaf)
    old = root.location if at is None else root.entries["location"][at].as_py()
    table = pq.read_table(state.storage.resolve(old))
    rows = build.to_pylist(table)
    if status is not None:
        rows[0]["version_info"]["status"] = status
    kept = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
    out = pa.BufferOutputStream()
    schema = table.schema.with_metadata(kept if keys is None else keys)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), out, store_schema=False)
    location = f"{state.metadata.location}/metadata/{'root' if at is None else 'leaf'}-{uuid4()}.parquet"
    state.storage.write(location, out.getvalue().to_pybytes(), kind="manifest")  # type: ignore[attr-defined]
    if at is None:
        return with_snapshot(state, **{"root-manifest": location})
    size = len(out.getvalue())
    assert leaf is not None
    return with_root(state, lambda b: edited(b, of_kind(leaf), location=location, file_size_in_bytes=size))


#: What pyarrow writes that our writer refuses to: the content type of the leaf (None: the root), keys, a status.
FILE_EDITS: dict[str, tuple[int | None, dict[str, str] | None, int | None]] = {
    "manifest-keys": (None, {}, None),
    "manifest-keys ": (3, {"format-version": "4"}, None),
    "manifest-keys  ": (3, {"content": "data"}, None),
    "manifest-keys   ": (3, {"format-version": "4", "content": "delete"}, None),
    "manifest-keys    ": (4, {"format-version": "four", "content": "deletes"}, None),
}


@pytest.mark.parametrize("name", FILE_EDITS)
def test_keys_that_a_manifest_lacks(one: RootLab, name: str) -> None:
    state = with_file(one.state, *FILE_EDITS[name])
    assert rules_of(state) == [name.strip()], check_rules(state)
    assert codes_of(state) == {"header-incomplete"}


@pytest.mark.parametrize("leaf", [None, 3, 4])
@pytest.mark.parametrize("status", [3, 7, -1])
def test_statuses_out_of_range(one: RootLab, leaf: int | None, status: int) -> None:
    state = with_file(one.state, leaf, None, status)
    assert "known-status" in rules_of(state) and "file-corrupt" in codes_of(state)


def test_statistics_that_do_not_cover(lab: RootLab) -> None:
    def narrow(batch: EntryBatch) -> EntryBatch:
        held = build.to_pylist(batch.stats[1])
        held[batch.entries["content_type"].to_pylist().index(3)]["lower"] = 5
        return replace(batch, stats={**batch.stats, 1: pa.array(held, stats_type(pa.int64()))})  # type: ignore[dict-item]

    state = with_root(lab.state, narrow)
    assert rules_of(state) == ["stats-cover"], check_rules(state)
    assert "lower bound of field 1 is 5" in check_rules(state)[0].text


def test_affiliation(tmp_path: Path) -> None:
    lab = RootLab(tmp_path / "t", spec=BY_KIND_AND_BUCKET, options={**SMALL, "affinity": "all"})
    lab.commit(add=[data_file(f"L{i}") for i in range(3)])
    lab.commit("overwrite", add=[dv("V0", "L0"), dv("V1", "L1")])
    root = lab.state.root()
    assert root is not None
    entries = root.entries.to_pylist()
    data_leaf = entries[0]["location"]
    assert rules_of(lab.state) == [] and [e["referenced_file"] for e in entries] == [None, data_leaf]
    reach = with_leaf(lab.state, 4, lambda b: plus(b, equality("Q")), referenced_file=data_leaf)
    assert rules_of(reach) == ["affinity"]
    lab.commit(add=[data_file(f"M{i}") for i in range(3)])
    other = lab.state.root()
    assert other is not None
    wrong = with_root(
        lab.state, lambda b: edited(b, of_kind(4), referenced_file=other.entries["location"].to_pylist()[-1])
    )
    assert rules_of(wrong) == ["affinity"]


@pytest.mark.parametrize(
    ("column", "bounds"),
    [(2, {"lower_bound": "b", "upper_bound": "z"}), (2, {"lower_bound": None, "upper_bound": None, "null_count": 0}),
     (4, {"lower_bound": None, "null_count": 0})],
)  # fmt: skip
def test_a_partition_that_cannot_be_rebuilt(lab: RootLab, column: int, bounds: Row) -> None:
    """Bounds that the writer would not write: the file's columns are changed, whatever they are called."""
    state = with_root(lab.state, lambda b: b)
    root = state.root()
    assert root is not None
    file = state.storage.resolve(root.location)
    table = pq.read_table(file)
    rows = build.to_pylist(table)
    stats = next(f for f in table.schema if f.metadata[b"PARQUET:field_id"] == b"149")  # type: ignore[index]
    of_column = next(f for f in stats.type if f.metadata[b"PARQUET:field_id"] == str(10_000 + 200 * column).encode())
    for row in rows:
        if row["location"].endswith("R2.parquet"):
            held = row[stats.name].setdefault(of_column.name, {}) or {}
            row[stats.name][of_column.name] = {**held, **bounds}
    location = f"{state.metadata.location}/metadata/rewritten-root-{uuid4()}.parquet"
    out = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), out)
    state.storage.write(location, out.getvalue().to_pybytes(), kind="manifest-list")  # type: ignore[attr-defined]
    broken = with_snapshot(state, **{"root-manifest": location})
    assert rules_of(broken) == ["partition-rebuilds"], check_rules(broken)


def test_more_than_one_root(lab: RootLab) -> None:
    state = with_snapshot(lab.state, **{"manifest-list": f"{PLACE}another.avro"})
    assert rules_of(state) == ["one-root"]
    root = lab.state.root()
    assert root is not None
    leaf = root.entries["location"].to_pylist()[root.entries["content_type"].to_pylist().index(3)]
    assert "one-root" in rules_of(with_snapshot(lab.state, **{"root-manifest": leaf}))


def test_a_manifest_that_hides_a_change(tmp_path: Path) -> None:
    """Adds in a manifest that calls itself compacted; and a compacted one that calls itself added."""
    lab = make_lab(tmp_path)
    lab.commit(add=[data_file(f"N{i}") for i in range(3)])
    hidden = with_root(lab.state, lambda b: edited(b, of_kind(3, 1), status=0))
    assert rules_of(hidden) == ["compaction-existing"]
    lab.commit("replace", rewrite_manifests=True)
    assert rules_of(lab.state) == []
    rewritten = with_root(
        lab.state, lambda b: edited(b, lambda row: row["content_type"] == 3 and row["status"] == 0, status=1)
    )
    assert rules_of(rewritten) == ["added-is-change"]


def test_manifest_dvs_between_snapshots(tmp_path: Path) -> None:
    lab = make_lab(tmp_path)

    def vector(*positions: int) -> Row:
        return {"offset": None, "size_in_bytes": None, "inline_content": encode_manifest_dv(BitMap(positions))}

    def data_dv(row: Row) -> bool:
        return row["content_type"] == 5 and row["status"] == 1 and "-data" in row["referenced_file"]

    beyond = with_root(lab.state, lambda b: edited(b, data_dv, deletion_vector=vector(0, 1, 2, 3), record_count=4))
    assert "dv-in-range" in rules_of(beyond)
    lab.commit("delete", remove_data=path("L1"))
    back = with_root(lab.state, lambda b: edited(b, data_dv, deletion_vector=vector(1), record_count=1))
    assert "added-is-change" in rules_of(back) and "are live again" in str(check_rules(back))


def test_every_rule_of_the_tree_is_broken_by_a_test() -> None:
    tested = {r.strip() for r in (*ROOT_EDITS, *LEAF_EDITS)}
    tested |= {r.strip() for r in FILE_EDITS} | {"known-status"}
    tested |= {"stats-cover", "partition-rebuilds", "one-root", "compaction-existing"}
    tested |= {"geo-bounds"}  # test_draft_rules.py, as are those of the V4 draft alone
    found = {r.id for r in RULES.values() if r.is_checked and r.only != "manifest list" and not r.draft_only}
    assert found == tested


def codes_of(state: TableState) -> set[str]:
    """The codes of all problems that reading the manifests of a snapshot reports."""
    assert state.snapshot is not None
    problems = Problems()
    reader = ManifestReader(state.storage, state.metadata, problems)
    list(reader.leaves(reader.root(state.snapshot)))
    return {p.code for p in problems}


@pytest.mark.parametrize("rule_id", sorted({r.strip() for r in (*ROOT_EDITS, *LEAF_EDITS)}))
def test_reading_reports_the_problems_that_the_registry_names(lab: RootLab, one: RootLab, rule_id: str) -> None:
    edits = [with_root(lab.state, edit) for name, edit in ROOT_EDITS.items() if name.strip() == rule_id]
    edits += [with_leaf(one.state, *edit) for name, edit in LEAF_EDITS.items() if name.strip() == rule_id]
    found = set().union(*map(codes_of, edits))
    # Manifests of a manifest list report it as a file that is corrupt: see test_manifest_reader.py.
    below_v4 = {"file-corrupt"} if rule_id in ("leaf-data-content", "leaf-delete-content") else set()
    assert set(rule(rule_id).problems) - below_v4 <= found
    # The summary's totals notice many an edit, whatever rule it breaks.
    assert rule(rule_id).problems or found <= {"totals-differ"}


def test_a_vector_on_its_data_files_row_is_in_its_place() -> None:
    """The V4 draft has them in data manifests, decoded into two entries of one row."""
    made = entries([data_file("A"), dv("V", "A")]).with_columns(ordinal=pa.array([0, 0])).entries
    assert misplaced(Rows(made, "v4-draft"), 3).tolist() == [False, False]
    assert misplaced(Rows(made, "v4-proposal"), 3).tolist() == [False, True]
    assert misplaced(Rows(made, "v4-draft"), 4).tolist() == [True, False]


def test_rules_name_codes_that_exist() -> None:
    assert {code for r in RULES.values() for code in r.problems} <= PROBLEM_KINDS.keys()
    assert not [r.id for r in RULES.values() if not r.is_checked and r.scope != "doctor" and r.problems]
    assert all(r.problems for r in (rule(check.rule) for check in ENTRY_CHECKS if check.problem))
    assert [rule_id for rule_id, r in RULES.items() if rule_id != r.id] == [] and list(RULES) == sorted(RULES)


def test_below_v4(tmp_path: Path) -> None:
    lab = RootLab(tmp_path / "t", version=3)
    lab.commit(add=[data_file("A"), data_file("B")])
    lab.commit("overwrite", add=[dv("V", "A")])
    assert rules_of(lab.state) == []
    lab.commit(add=[data_file("A"), equality("Q")])  # adding does not look at what is there
    assert rules_of(lab.state) == ["duplicate-file"]


def test_what_cannot_be_read_is_not_called_right(lab: RootLab) -> None:
    with pytest.raises(FormatError, match="cannot be checked"):
        check_rules(with_snapshot(lab.state, **{"root-manifest": f"{PLACE}missing.parquet"}))


def test_live_files_of_the_fixture(lab: RootLab) -> None:
    root = lab.state.root()
    assert root is not None and sum(build.to_pylist(live(root.entries))) == 6
