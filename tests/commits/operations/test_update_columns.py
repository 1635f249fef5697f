"""Column updates in the V4 draft: entries by plain pyarrow, rows by brute force, refusals, conflicts, hostile input."""

from __future__ import annotations

import copy
import datetime
import decimal
import io
import math
import random
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pac
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap

import iceexplore as ix
from iceexplore.commits import NothingToDo, check_rules
from iceexplore.deletes import decode_mumbling
from iceexplore.errors import CommitConflictError, IceexploreError, OptionError, RuleError, UnsupportedError
from iceexplore.simulation import Simulation
from tests.helpers.sampling import one_of
from tests.helpers.tables import column_files_table as table

SCHEMA = {"id": "long", "kind": "string", "price": "double", "note": "string"}
LINEAGE = 2_147_483_539
DRAFT: dict[str, Any] = {"format_version": 4, "dialect": "v4-draft"}


def empty(**layout: Any) -> Simulation:
    return ix.empty(SCHEMA, partition_by=["kind"], seed=3, **DRAFT, **layout)


def rows_of(start: int, count: int, kinds: str = "ab") -> pa.Table:
    ids = list(range(start, start + count))
    return pa.table(
        {
            "id": ids,
            "kind": [kinds[i % len(kinds)] for i in ids],
            "price": [None if i % 7 == 3 else i / 2 for i in ids],
            "note": [f"note {i}" for i in ids],
        }
    )


def files(s: ix.Table) -> list[str]:
    return [str(p) for p in s.inspect.data_files.arrow()["file_path"].to_pylist()]


def root_rows(s: ix.Table) -> list[dict[str, Any]]:
    """The root as plain pyarrow reads it."""
    root = s.state.root()
    assert root is not None
    return pq.read_table(io.BytesIO(s.state.storage.read(root.location, kind="manifest-list"))).to_pylist()


def test_entries_in_the_root() -> None:
    s = empty()
    s.append(rows_of(0, 4, "a"))
    (name,) = files(s)
    s.row_delta(deletes={name: [1]})
    vector = s.state.snapshot.snapshot_id  # type: ignore[union-attr]
    now = s.update_columns({"price": 1.5, "note": None})
    assert now is not None
    assert now.operation == "overwrite"
    assert (now.summary or {})["added-column-files"] == "1"
    replaced, modified = root_rows(s)
    assert [r["tracking"]["status"] for r in (replaced, modified)] == [3, 4]
    assert replaced["column_files"] is None and replaced["tracking"]["sequence_number"] == 1
    assert replaced["deletion_vector"] == modified["deletion_vector"] is not None
    tracking = modified["tracking"]
    assert tracking["latest_column_file_snapshot_id"] == now.snapshot_id
    assert (tracking["sequence_number"], tracking["file_sequence_number"]) == (3, 1)
    assert tracking["dv_snapshot_id"] == vector and tracking["first_row_id"] == 0
    (one,) = modified["column_files"]
    assert one["field_ids"] == [3, 4, LINEAGE] and one["format_version"] == 4 and one["file_format"] == "parquet"
    stored = pq.read_table(io.BytesIO(s.state.storage.read(resolved(s, one["location"]), kind="data-file")))
    assert stored.num_rows == modified["record_count"] == 4  # deleted rows have values, too
    assert stored.to_pylist()[0] == {"price": 1.5, "note": None, "_last_updated_sequence_number": None}
    ids = [int((f.metadata or {})[b"PARQUET:field_id"]) for f in stored.schema]
    assert ids == one["field_ids"]
    size = s.state.storage.stat(resolved(s, one["location"])).size
    assert one["file_size_in_bytes"] == size
    stats = modified["content_stats"]
    assert (stats["price"]["lower_bound"], stats["price"]["upper_bound"], stats["note"]["null_value_count"]) == (
        1.5, 1.5, 4,
    )  # fmt: skip
    assert stats["id"] == replaced["content_stats"]["id"]
    assert check_rules(s.state) == [] and list(s.state.problems) == []


def resolved(s: ix.Table, location: str) -> str:
    return location if "://" in location or location.startswith("/") else f"{s.state.metadata.location}/{location}"


def test_entries_of_a_leaf() -> None:
    s = empty(flush_data_files=1)
    s.append(rows_of(0, 9, "abc"))
    name = files(s)[1]
    now = s.update_columns({"note": "new"}, name)
    assert now is not None
    leaf, modified = root_rows(s)
    assert (leaf["content_type"], leaf["tracking"]["status"]) == (3, 4)
    assert decode_mumbling(leaf["tracking"]["replaced_positions"]) == BitMap([1])
    assert leaf["tracking"]["deleted_positions"] is None
    assert modified["tracking"]["status"] == 4 and modified["column_files"][0]["field_ids"] == [4, LINEAGE]
    s.update_columns({"note": "newer"})  # three files: a leaf of its own
    kinds = [(r["content_type"], r["tracking"]["status"]) for r in root_rows(s)]
    assert kinds == [(3, 4), (0, 3), (3, 1)]
    assert check_rules(s.state) == [] and list(s.state.problems) == []
    assert set(s.to_arrow()["note"].to_pylist()) == {"newer"}
    assert set(s.at(snapshot=now.snapshot_id).to_arrow()["note"].to_pylist()) > {"new"}


def test_a_column_has_its_values_in_one_file() -> None:
    """Older column files lose the columns that a newer one has, and go when none are left."""
    s = empty()
    s.append(rows_of(0, 3, "a"))
    s.update_columns({"price": 1.0, "note": "x"})
    s.update_columns({"note": "y"})
    held = s.inspect.column_files.arrow().to_pylist()
    assert [(r["field_ids"], r["columns"]) for r in held] == [
        ([3], ["price"]),
        ([4, LINEAGE], ["note", "_last_updated_sequence_number"]),
    ]
    s.update_columns({"price": 2.0})
    assert [r["columns"] for r in s.inspect.column_files.arrow().to_pylist()] == [
        ["note"],
        ["price", "_last_updated_sequence_number"],
    ]
    s.update_columns({"price": 3.0, "note": "z"})
    assert len(s.inspect.column_files.arrow()) == 1
    assert s.to_arrow(columns=["price", "note"]).to_pylist() == [{"price": 3.0, "note": "z"}] * 3


# Histories against brute force ----------------------------------------------------------------------------------------


@dataclass
class Model:
    """Rows by data file, as dictionaries, and the positions that are deleted."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    gone: dict[str, set[int]] = field(default_factory=dict)

    def matching(self, name: str, wanted: str | None) -> set[int]:
        """Positions of the live rows that match; without a filter all rows, deleted ones included."""
        if wanted is None:
            return set(range(len(self.rows[name])))
        rows = enumerate(self.rows[name])
        return {i for i, row in rows if i not in self.gone.get(name, ()) and matches(wanted, tuple(row.values()))}

    def live(self) -> Counter[tuple[Any, ...]]:
        return Counter(
            tuple(row.values())
            for name, rows in self.rows.items()
            for i, row in enumerate(rows)
            if i not in self.gone.get(name, ())
        )


def counted(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in rows.to_pylist())


VALUES: list[tuple[dict[str, Any], Callable[[dict[str, Any]], dict[str, Any]]]] = [
    ({"price": 5.0}, lambda r: {"price": 5.0}),
    ({"note": None}, lambda r: {"note": None}),
    (
        {"price": lambda t: pac.add(t["price"], 1.0)},
        lambda r: {"price": None if r["price"] is None else r["price"] + 1.0},
    ),
    (
        {"note": lambda t: pac.binary_join_element_wise(t["note"], t["id"].cast(pa.string()), "-"), "price": 0.5},
        lambda r: {"note": None if r["note"] is None else f"{r['note']}-{r['id']}", "price": 0.5},
    ),
]
LAYOUTS: list[dict[str, Any]] = [
    {},
    {"flush_data_files": 0},
    {"flush_data_files": 2, "manifest_format": "avro"},
]


WANTED = ("price = 5.0", "note is null", "price < 3 and id > 2")


def held_files(s: ix.Table) -> dict[str, list[str]]:
    """The column files of each data file."""
    found: dict[str, list[str]] = {}
    for row in s.inspect.column_files.arrow().to_pylist():
        found.setdefault(str(row["file_path"]), []).append(str(row["column_file_path"]))
    return found


def check_updated(s: ix.Table, before: Any, hits: dict[str, set[int]]) -> None:
    """Only the rows that match count as updated by the last commit."""
    columns = ["_file", "_pos", "_last_updated_sequence_number"]
    was, now = (t.to_arrow(columns=columns).to_pylist() for t in (s.at(snapshot=before.snapshot_id), s))
    last = s.state.snapshot
    assert last is not None
    old = {(r["_file"], r["_pos"]): r[columns[2]] for r in was}
    for row in now:
        place = row["_file"], row["_pos"]
        updated = place[1] in hits.get(place[0], ())
        assert row[columns[2]] == (last.sequence_number if updated else old[place])


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda o: "-".join(map(str, o.values())) or "root")
@pytest.mark.parametrize("seed", one_of(2, range(2)))
def test_histories(layout: dict[str, Any], seed: int, tmp_path: Path) -> None:
    r = random.Random(seed)
    s, model = empty(**layout), Model()
    states: list[tuple[int, Counter[tuple[Any, ...]], dict[int, int]]] = []
    count = 0
    for _ in range(9):
        what = r.choice(["append", "update", "update", "delete", "drop", "rewrite", "compact"])
        known = sorted(model.rows)
        if what == "append" or not known:
            new = rows_of(count, r.randrange(1, 12))
            count += len(new)
            before = set(files(s))
            s.append(new)
            for name in set(files(s)) - before:
                kind = name.split("kind=")[1][0]
                model.rows[name] = [row for row in new.to_pylist() if row["kind"] == kind]
        elif what == "update":
            values, expected = r.choice(VALUES)
            names = r.sample(known, r.randrange(1, len(known) + 1))
            wanted = r.choice([None, *WANTED])
            held, last = held_files(s), s.state.snapshot
            made = s.update_columns(values, names, where=wanted)
            hits = {name: model.matching(name, wanted) for name in names}
            assert (made is not None) == any(hits.values())
            for name in names:
                model.rows[name] = [
                    {**row, **expected(row)} if i in hits[name] else row for i, row in enumerate(model.rows[name])
                ]
            if made is not None:
                assert {n for n, files in held_files(s).items() if files != held.get(n)} == {
                    n for n in names if hits[n]
                }
                check_updated(s, last, hits)
        elif what == "delete":
            name = r.choice(known)
            left = set(range(len(model.rows[name]))) - model.gone.get(name, set())
            if not left:
                continue
            places = set(r.sample(sorted(left), r.randrange(1, len(left) + 1)))
            s.row_delta(deletes={name: sorted(places)})
            model.gone.setdefault(name, set()).update(places)
        elif what == "drop":
            name = r.choice(known)
            s.delete_files(name)
            del model.rows[name]
            model.gone.pop(name, None)
        elif what == "rewrite":
            s.rewrite_manifests()
        elif s.compact() is not None:
            live = model.live()
            model = Model()
            for name in files(s):
                found = s.to_arrow(columns=[*SCHEMA, "_file"])
                mine = found.filter(pac.equal(found["_file"], pa.scalar(name))).drop_columns(["_file"]).to_pylist()
                model.rows[name] = mine
            assert model.live() == live
        assert check_rules(s.state) == [] and list(s.state.problems) == []
        assert counted(s.to_arrow()) == model.live()
        for wanted in WANTED:
            assert counted(s.to_arrow(wanted)) == Counter(
                {row: n for row, n in model.live().items() if matches(wanted, row)}
            )
        snapshot = s.state.snapshot
        assert snapshot is not None
        lineage = s.to_arrow(columns=["_row_id", "_last_updated_sequence_number"]).to_pydict()
        updated = dict(zip(*lineage.values(), strict=True))
        states.append((snapshot.snapshot_id, model.live(), updated))
    assert len(s.verify(level="data")) == 0
    check_changes(s, states)
    saved = ix.open(s.save(tmp_path / "copy").metadata_location)
    assert counted(saved.to_arrow()) == model.live()
    assert check_rules(saved.state) == []
    for number, live, updated in states:
        then = saved.at(snapshot=number)
        assert counted(then.to_arrow()) == live
        lineage = then.to_arrow(columns=["_row_id", "_last_updated_sequence_number"]).to_pydict()
        assert dict(zip(*lineage.values(), strict=True)) == updated
    on = saved.simulate()
    if files(on):
        on.update_columns({"price": -1.0})
        assert check_rules(on.state) == []
        assert set(on.to_arrow()["price"].to_pylist()) <= {-1.0}


def matches(wanted: str, row: tuple[Any, ...]) -> bool:
    number, _, price, note = row
    if wanted == "note is null":
        return note is None
    if price is None:
        return False
    return bool(price == 5.0 if wanted == "price = 5.0" else price < 3 and number > 2)


def check_changes(s: ix.Table, states: list[tuple[int, Counter[tuple[Any, ...]], dict[int, int]]]) -> None:
    """Row changes between versions are what brute force finds in their rows, after carry-overs."""
    ids = list(dict.fromkeys(number for number, _, _ in states))
    rows = {number: live for number, live, _ in states}
    for before, after in pairwise(ids):
        found = s.changes(before, after, rows=True)
        net: Counter[tuple[Any, ...]] = Counter()
        for change in found.to_pylist():
            row = tuple(change[name] for name in SCHEMA)
            net[row] += 1 if change["_change_type"] == "INSERT" else -1
        wanted = Counter(rows[after])
        wanted.subtract(rows[before])
        assert {k: n for k, n in net.items() if n} == {k: n for k, n in wanted.items() if n}


def test_updated_rows_have_the_commit_s_sequence_number() -> None:
    s = empty()
    s.append(rows_of(0, 4))
    s.append(rows_of(4, 4))
    assert s.compact() is not None  # the compacted files store the numbers of their rows
    target = files(s)[0]
    s.update_columns({"price": 1.0}, target)
    found = s.to_arrow(columns=["_file", "_last_updated_sequence_number"])
    now = s.state.snapshot.sequence_number  # type: ignore[union-attr]
    for row in found.to_pylist():
        assert (row["_last_updated_sequence_number"] == now) == (row["_file"] == target)
    assert s.compact() is not None  # merges the column file, in a partition of one file
    assert not len(s.inspect.column_files.arrow())
    assert s.to_arrow(columns=["_last_updated_sequence_number"]).to_pydict().popitem()[1].count(now) == 4


def test_an_update_makes_a_pair_with_identifiers() -> None:
    s = empty()
    s.append(rows_of(0, 2, "a"))
    s.update_columns({"price": 9.0})
    found = s.changes(rows=True, identifier_columns=["id"]).to_pylist()
    assert Counter(row["_change_type"] for row in found) == {"UPDATE_BEFORE": 2, "UPDATE_AFTER": 2}
    assert {row["price"] for row in found if row["_change_type"] == "UPDATE_AFTER"} == {9.0}


# Shown ----------------------------------------------------------------------------------------------------------------


def test_it_is_shown() -> None:
    s = empty()
    s.append(rows_of(0, 6))
    before = s.state.snapshot.snapshot_id  # type: ignore[union-attr]
    s.update_columns({"price": 1.0})
    assert "newer values of price" in s.tree().to_text()
    marks = [sorted(n.marks) for n in s.tree().nodes if n.kind == "data-file"]
    assert sorted(marks) == [["added"], ["added"], ["removed"], ["removed"]]
    found = s.changes()
    assert [(r["change"], r["content"]) for r in found.files_arrow.to_pylist()] == [("added", "column file")] * 2
    assert {r["referenced_file"] for r in found.files_arrow.to_pylist()} == set(files(s))
    assert sum(r["record_count"] for r in found.files_arrow.to_pylist()) == 6
    different = s.diff(before, s.state.snapshot)
    assert not different.is_empty
    counts = {r["content"]: r for r in different.counts_arrow.to_pylist()}
    assert counts["column file"]["added_files"] == 2 and counts["data file"]["carried_over_files"] == 2
    assert (different.change.data_files, different.change.delete_files, different.rows) == ((0, 0), (0, 0), (0, 0))
    s.update_columns({"price": 2.0}, files(s)[0])
    changed = s.changes().files_arrow.to_pylist()
    assert sorted(r["change"] for r in changed) == ["added", "removed"]


def test_rows_tell_of_updates() -> None:
    s = empty()
    s.append(rows_of(0, 3, "a"))
    (name,) = files(s)
    s.row_delta(deletes={name: [0]})
    now = s.update_columns({"price": 9.0})
    assert now is not None
    for history in (False, True):
        found = {p.position: p for p in s.rows("id >= 0", history=history).places}
        for position, place in found.items():
            kinds = [e.kind for e in place.events]
            assert kinds == (["added", "deleted"] if position == 0 else ["added", "updated"])
            if position:
                assert place.events[-1].by.snapshot_id == now.snapshot_id
    story = s.rows("id = 1", columns=["price"]).story().to_text()
    assert "updated by a column file of" in story and story.count("(price = 9.0") + story.count("price = 9.0)") == 1


def test_cost_beside_a_rewrite() -> None:
    s = ix.empty({"id": "long", **{f"c{i}": "double" for i in range(20)}}, seed=1, **DRAFT)
    rng = random.Random(5)
    s.append(pa.table({"id": range(2000), **{f"c{i}": [rng.random() for _ in range(2000)] for i in range(20)}}))
    s.update_columns({"c3": lambda t: pac.multiply(t["c3"], 2.0)})
    (row,) = s.cost().column_updates.to_dict("records")
    written = {Path(w.location).name: w.length for w in s.state.storage.writes}  # type: ignore[attr-defined]
    (name,) = (Path(str(x)).name for x in s.inspect.column_files.arrow()["column_file_path"].to_pylist())
    (data,) = (Path(x).name for x in files(s))
    assert row["column_file_bytes"] == written[name] and row["data_file_bytes"] == written[data]
    assert math.isclose(row["share"], written[name] / written[data], abs_tol=0.0001) and row["share"] < 0.1
    assert "column_file_bytes" in repr(s.cost()) and "share" in s.cost()._repr_html_()
    assert s.cost().commits.iloc[-1]["data_bytes"] == written[name]


def test_synthetic_column_files() -> None:
    s = empty(flush_data_files=5)
    s.append(12, rows=1000)
    before = {r["file_path"]: r for r in s.inspect.files.arrow().to_pylist()}
    s.update_columns("price", files(s)[:7])
    held = s.inspect.column_files.arrow().to_pylist()
    assert [r["file_path"] for r in held] == files(s)[-7:] or {r["file_path"] for r in held} < set(files(s))
    assert len(held) == 7 and all(r["field_ids"] == [3, LINEAGE] for r in held)
    assert all(0 < r["file_size_in_bytes"] < before[r["file_path"]]["file_size_in_bytes"] for r in held)
    assert s.rules().ok and list(s.state.problems) == []
    with pytest.raises(UnsupportedError, match="synthetic"):
        s.to_arrow()
    assert s.cost().column_updates["column_files"].tolist() == [7]
    assert s.compact() is not None
    assert not len(s.inspect.column_files.arrow())


# Refused --------------------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[Simulation], Any], type[Exception], str]] = {
    "no such column": (lambda s: s.update_columns("prize"), OptionError, "nearest: price"),
    "no columns": (lambda s: s.update_columns([]), OptionError, "no columns given"),
    "bytes": (lambda s: s.update_columns(cast(Any, b"price")), OptionError, "give names of columns"),
    "a number": (lambda s: s.update_columns(cast(Any, 3)), OptionError, "give names of columns"),
    "an array": (lambda s: s.update_columns({"price": pa.array([1.0])}), OptionError, "is an array"),
    "a value that does not fit": (lambda s: s.update_columns({"price": "much"}), OptionError, "price"),
    "too few values": (lambda s: s.update_columns({"price": lambda t: pa.array([1.0])}), OptionError, "1 values of"),
    "no such file": (lambda s: s.update_columns({"price": 1.0}, "s3://x/y.parquet"), RuleError, "files-exist"),
    "a partition source": (lambda s: s.update_columns({"kind": "c"}), RuleError, "column-updates"),
    "a filter of no column": (lambda s: s.update_columns({"price": 1.0}, where="prize > 1"), OptionError, "price"),
    "too few values of matching rows": (
        lambda s: s.update_columns({"price": lambda t: pa.array([1.0] * 6)}, where="id > 3"),
        OptionError,
        "6 values of",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_leave_nothing_behind(name: str) -> None:
    act, error, text = REFUSED[name]
    s = empty()
    s.append(rows_of(0, 6))
    before, writes = s.state.metadata_location, len(s.state.storage.writes)  # type: ignore[attr-defined]
    with pytest.raises(error, match=text):
        act(s)
    assert s.state.metadata_location == before
    assert len(s.state.storage.writes) == writes  # type: ignore[attr-defined]


@pytest.mark.parametrize(("version", "layout"), [(1, {}), (2, {}), (3, {}), (4, {}), (4, {"dialect": "v4-java"})])
def test_other_formats_have_no_column_files(version: int, layout: dict[str, Any]) -> None:
    s = ix.empty(SCHEMA, format_version=version, **layout)
    s.append(rows_of(0, 3))
    with pytest.raises(RuleError, match="part of the V4 draft only") as caught:
        s.update_columns({"price": 1.0})
    assert caught.value.rule == "column-updates"


def test_an_empty_table_has_nothing_to_update() -> None:
    with pytest.raises(OptionError, match="no data files"):
        empty().update_columns("price")


def test_synthetic_files_have_no_rows_to_compute_from() -> None:
    s = empty()
    s.append(1, rows=5)
    with pytest.raises(OptionError, match="give names of columns"):
        s.update_columns({"price": 1.0})


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_from_before_v4(version: int, tmp_path: Path) -> None:
    """Vectors move to the entries; deletes that match by sequence number would no longer apply."""
    old = ix.empty(SCHEMA, format_version=version, seed=2)
    old.append(rows_of(0, 8))
    old.row_delta(deletes={files(old)[0]: [0, 3]})
    saved = ix.open(old.save(tmp_path / "t").metadata_location)
    s = saved.simulate(**DRAFT)
    if version == 2:
        with pytest.raises(RuleError, match="position delete files apply"):
            s.update_columns({"price": 1.0})
        assert s.compact(files=1, read=True) is not None or s.rewrite_position_deletes() is not None
    else:
        s.update_columns({"price": 1.0})
        assert set(s.to_arrow()["price"].to_pylist()) == {1.0}
        assert check_rules(s.state) == []
    assert len(s.to_arrow()) == 6
    equal = ix.empty(SCHEMA, format_version=version, seed=2)
    equal.append(rows_of(0, 8))
    equal.row_delta(equality={"id": [1]})
    s = ix.open(equal.save(tmp_path / "e").metadata_location).simulate(**DRAFT)
    with pytest.raises(RuleError, match="equality deletes or position delete files apply"):
        s.update_columns({"price": 1.0})
    s.append(rows_of(20, 2))  # the equality delete does not apply to newer files
    newest = [r["file_path"] for r in s.inspect.data_files.arrow().to_pylist() if r["record_count"] == 2]
    s.update_columns({"price": 1.0}, newest)
    assert len(s.to_arrow()) == 9
    assert s.update_columns({"price": 99.0}, where="id >= 20") is not None  # may match others by statistics alone
    assert s.count("price = 99.0") == 2
    with pytest.raises(RuleError, match="equality deletes or position delete files apply"):
        s.update_columns({"price": 1.0}, where="id >= 0")


def test_a_replay_is_refused(tmp_path: Path) -> None:
    s = empty()
    s.append(rows_of(0, 3))
    s.update_columns({"price": 1.0})
    with pytest.raises(UnsupportedError, match=r"column files .*which a replay cannot repeat"):
        s.replay(**DRAFT)
    t = ix.open(s.save(tmp_path / "t").metadata_location)
    with pytest.raises(UnsupportedError, match="which a replay cannot repeat"):
        t.replay(format_version=4)


# Some rows ------------------------------------------------------------------------------------------------------------


def test_only_matching_rows_are_updated() -> None:
    """The column file, read by plain pyarrow, has all rows: those that do not match with old values and numbers."""
    s = empty()
    s.append(rows_of(0, 8))
    first, second = sorted(files(s))
    s.row_delta(deletes={first: [1]})  # the row of id 2
    seen: list[list[Any]] = []

    def price(rows: pa.Table) -> Any:
        seen.append(rows["id"].to_pylist())
        return pac.multiply(rows["price"], 100.0)

    now = s.update_columns({"price": price}, where="id in (0, 2, 6)")
    assert now is not None and seen == [[0, 6]]  # the deleted row does not match
    (held,) = s.inspect.column_files.arrow().to_pylist()
    assert held["file_path"] == first != second
    stored = pq.read_table(io.BytesIO(s.state.storage.read(str(held["column_file_path"]), kind="data-file")))
    assert stored.to_pydict() == {
        "price": [0.0, 1.0, 2.0, 300.0],
        "_last_updated_sequence_number": [None, 1, 1, None],
    }
    assert s.update_columns({"price": 0.0}, where="id = 99") is None
    assert s.update_columns({"price": 0.0}, second, where="id = 0") is None  # of another file
    for where in ("id = 0", "id in (2, 6)"):  # the bounds exclude the file, or its rows do not match
        with pytest.raises(NothingToDo, match="nothing to commit: no row of the given files matches"):
            s._files("update_columns", "main", {"price": 0.0}, second, where=where)
    assert s.state.snapshot is not None and s.state.snapshot.snapshot_id == now.snapshot_id
    changed = s.changes(rows=True).to_pylist()
    assert Counter((row["id"], row["_change_type"]) for row in changed) == {
        (6, "DELETE"): 1, (6, "INSERT"): 1,
    }  # fmt: skip


def test_synthetic_files_that_may_have_matching_rows() -> None:
    s = empty()
    s.append(2, rows=10, partitions=[{"kind": "a"}, {"kind": "b"}])
    made = s.update_columns("price", where="kind = 'b'")
    assert made is not None
    (held,) = s.inspect.column_files.arrow().to_pylist()
    assert "kind=b" in str(held["file_path"])
    assert s.update_columns("price", where="kind = 'c'") is None
    with pytest.raises(OptionError, match="give names of columns"):
        s.update_columns({"price": 1.0}, where="kind = 'b'")


NESTED = {
    "id": "long", "u": "uuid", "names": "list<string>", "at": "struct<x:int,y:string>", "counts": "map<string,int>",
    "d": "decimal(9,2)", "f": "fixed[4]", "ts": "timestamptz",
}  # fmt: skip


def test_a_lab_writes_real_column_files(tmp_path: Path) -> None:
    """Of every type; its rows, its files and its orphan files are those that plain code finds."""
    made = ix.create(tmp_path / "t", NESTED, **DRAFT)

    def row(i: int) -> dict[str, Any]:
        return {
            "id": i, "u": uuid.UUID(int=i), "names": [str(i), None], "at": {"x": i, "y": None}, "counts": {"k": i},
            "d": decimal.Decimal(i), "f": b"abcd", "ts": datetime.datetime(2024, 1, 1 + i, tzinfo=datetime.UTC),
        }  # fmt: skip

    made.append([row(i) for i in range(6)])
    before = {r["id"]: r for r in made.to_arrow().to_pylist()}
    new = {name: value for name, value in row(20).items() if name != "id"}
    assert made.update_columns(new, where="id in (1, 4) and ts is not null") is not None
    twenty = ix.create(tmp_path / "u", NESTED, **DRAFT)
    twenty.append([row(20)])
    (wanted,) = twenty.to_arrow().to_pylist()
    after = {r["id"]: r for r in made.to_arrow().to_pylist()}
    assert after == {i: {**wanted, "id": i} if i in (1, 4) else r for i, r in before.items()}
    on_disk = {p.name for p in (tmp_path / "t" / "data").rglob("*.parquet")}
    (held,) = made.inspect.column_files.arrow()["column_file_path"].to_pylist()
    assert on_disk == {Path(str(p)).name for p in (held, *files(made))}
    assert made.orphan_files().empty and made.rules().ok and len(made.verify(level="data")) == 0
    assert made.update({"d": 5}, "id = 1") is not None  # a rewrite reads through the column file
    assert {r["id"]: r["names"] for r in made.to_arrow().to_pylist()} == {i: r["names"] for i, r in after.items()}
    made.expire_snapshots(older_than="2100-01-01", retain_last=1)
    assert not list((tmp_path / "t" / "data").rglob(Path(str(held)).name))
    with pytest.raises(OptionError, match="only for simulations"):
        made.update_columns(cast(Any, "d"))
    old = ix.create(tmp_path / "v3", {"id": "long"}, format_version=3)
    with pytest.raises(RuleError, match="V4 draft only"):
        old.update_columns({"id": 1})


# Two writers ----------------------------------------------------------------------------------------------------------

SECOND: dict[str, tuple[Callable[[Simulation, str], Any], str | None]] = {
    "an update of the same file": (lambda s, f: s.update_columns({"note": "b"}, f), "no-concurrent-column-files"),
    "a rewrite": (lambda s, f: s.overwrite(rows_of(50, 2, "a"), delete=f), "no-concurrent-column-files"),
    "a compaction": (lambda s, f: s.compact(files=1, read=True), "no-concurrent-column-files"),
    "a removal": (lambda s, f: s.delete_files(f), None),
    "a deletion vector": (lambda s, f: s.row_delta(deletes={f: [0]}), None),
    "an append": (lambda s, f: s.append(rows_of(50, 2)), None),
}


@pytest.mark.parametrize(
    ("name", "flush"),
    # each with one of both; the long run has both
    one_of(2, [(name, flush) for i, name in enumerate(SECOND) for flush in ((0, 100) if i % 2 else (100, 0))]),
)
def test_after_another_writer_s_update(name: str, flush: int) -> None:
    act, rule = SECOND[name]
    s = empty(flush_data_files=flush)
    s.append(rows_of(0, 4, "a"))
    s.append(rows_of(4, 4, "a"))
    other = s.fork()
    target = files(s)[0]
    s.update_columns({"price": 77.0}, target)
    if rule is None:
        act(other, target)
        assert check_rules(other.state) == []
        prices = other.to_arrow()["price"].to_pylist()
        assert prices.count(77.0) == {"a removal": 0, "a deletion vector": 3, "an append": 4}[name]
    else:
        with pytest.raises(CommitConflictError) as caught:
            act(other, target)
        assert caught.value.rule == rule


@pytest.mark.parametrize("flush", [0, 100])
def test_an_update_after_another_commit(flush: int) -> None:
    s = empty(flush_data_files=flush)
    s.append(rows_of(0, 4, "a"))
    (name,) = files(s)
    others = {what: s.fork() for what in ("vector", "gone")}
    s.row_delta(deletes={name: [0]})
    others["vector"].update_columns({"price": 5.0}, name)  # keeps the vector of the newer state
    assert check_rules(others["vector"].state) == []
    assert others["vector"].to_arrow()["price"].to_pylist() == [5.0] * 3
    others["vector"].delete_files(name)
    with pytest.raises(CommitConflictError, match="another commit removed data files"):
        others["gone"].update_columns({"price": 5.0}, name)


#: A filter, what another writer does first, and whether that conflicts with an update of the rows that match.
FILTERED: dict[str, tuple[Callable[[Simulation], Any], bool]] = {
    "rows that may match": (lambda s: s.append(rows_of(50, 1, "a")), False),
    "rows that do": (lambda s: s.append(rows_of(2, 1, "a")), True),
    "an update that lets rows match": (lambda s: s.update_columns({"price": 2.0}, files(s)[1]), True),
    "an update of other rows": (lambda s: s.update_columns({"price": 70.0}, files(s)[1]), False),
    "an update of other columns": (lambda s: s.update_columns({"note": "x"}, files(s)[1]), False),
    "a removal": (lambda s: s.delete_files(files(s)[1]), False),
}  # fmt: skip


@pytest.mark.parametrize("name", FILTERED)
def test_an_update_of_some_rows_after_another_writer(name: str) -> None:
    act, conflicts = FILTERED[name]
    s = empty()
    s.append(pa.concat_tables([rows_of(0, 4, "a")]))
    s.append(rows_of(40, 4, "a"))
    first, second = (s.to_arrow("id = 0", columns=["_file"]), s.to_arrow("id = 40", columns=["_file"]))
    assert files(s) == [t["_file"][0].as_py() for t in (first, second)]
    other = s.fork()
    act(s)
    if conflicts:
        with pytest.raises(CommitConflictError, match=r"should have read") as caught:
            other.update_columns({"note": "cheap"}, where="price < 3")
        assert caught.value.rule == "no-new-conflicting-files"
    else:
        assert other.update_columns({"note": "cheap"}, where="price < 3") is not None
        assert check_rules(other.state) == []
        assert other.count("note = 'cheap'") == other.count("price < 3") == 3


# Hostile --------------------------------------------------------------------------------------------------------------

HOSTILE: dict[str, dict[str, Any]] = {
    "no ids": {"field_ids": None},
    "many ids": {"field_ids": list(range(1, 20_000))},
    "negative ids": {"field_ids": [-1, -(2**31)]},
    "no location": {"location": None},
    "a strange location": {"location": "<script>alert(1)</script>"},
    "a strange format": {"file_format": "<b>"},
    "a huge size": {"file_size_in_bytes": 2**62},
    "a negative size": {"file_size_in_bytes": -5},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_update_beside_hostile_column_files(name: str, tmp_path: Path) -> None:
    try:
        place, _ = table.make(tmp_path / "t", **HOSTILE[name])
    except IceexploreError:
        return  # it cannot be written
    t = ix.open(place)
    s = t.simulate()
    views: list[Callable[[], Any]] = [
        lambda: t.tree().to_svg(),
        lambda: t.check()._repr_html_(),
        lambda: t.rules()._repr_html_(),
        lambda: t.changes()._repr_html_(),
        lambda: t.explore()._repr_mimebundle_()[0].get("text/html", ""),
        lambda: t.to_arrow().schema,
    ]
    for view in views:
        try:
            made = view()
        except IceexploreError:
            continue
        assert "<script>alert" not in str(made)
    try:
        s.update_columns("note")
    except IceexploreError:
        return
    assert len(s.inspect.column_files.arrow()) >= 1
    copy.copy(s).cost()
