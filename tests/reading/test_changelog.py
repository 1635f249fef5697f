"""Changes by rows against a model that knows the rows after every commit."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.errors import FileMissingError, FormatError, OptionError, UnsupportedError
from iceexplore.reading import changelog_batches
from tests.helpers.tables.rows_table import Lab, play

Values = tuple[int, str]
LAYOUTS: list[tuple[int, dict[str, Any]]] = [(2, {}), (3, {}), (4, {}), (4, {"dialect": "v4-java"})]


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(c.to_pylist() for c in table.columns), strict=True))


def difference(before: Sequence[Values], after: Sequence[Values]) -> Counter[tuple[Any, ...]]:
    """What one state has and the other has not."""
    gone, come = Counter(before) - Counter(after), Counter(after) - Counter(before)
    return Counter({(*v, "DELETE"): n for v, n in gone.items()} | {(*v, "INSERT"): n for v, n in come.items()})


def one_history(version: int, layout: dict[str, Any], draw: Callable[[int], int]) -> None:
    """Play a history, and ask for its changes in several ways."""
    lab = Lab.start(version, partitioned=bool(draw(2)), **layout)
    try:
        play(lab, draw, 1 + draw(7))
        t = lab.table
        first, last = sorted((draw(len(lab.commits) + 1), draw(len(lab.commits) + 1)))
        ids: list[int | None] = [None, *(s.snapshot_id for s in lab.commits)]
        states = [[], *(lab.states[s.snapshot_id] for s in lab.commits)]
        every: Counter[tuple[Any, ...]] = Counter()
        ordinal = 0
        for i in range(first + 1, last + 1):
            expected = difference(states[i - 1], states[i])
            one = rows_of(t.changes(ids[i], rows=True))
            assert Counter(r[:3] for r in one) == expected, lab.commits[i - 1].operation
            assert {r[3:] for r in one} <= {(0, ids[i])}
            if lab.commits[i - 1].operation == "replace":
                assert not expected
                continue
            every.update({(*row, ordinal, ids[i]): n for row, n in expected.items()})
            ordinal += 1
        if last > first:
            found = t.changes(ids[first], ids[last], rows=True)
            assert Counter(rows_of(found)) == every
            assert build.to_pylist(found["_change_ordinal"]) == sorted(build.to_pylist(found["_change_ordinal"]))
            net = rows_of(t.changes(ids[first], ids[last], rows=True, net_changes=True))
            assert Counter(r[:3] for r in net) == difference(states[first], states[last])
            some = rows_of(t.changes(ids[first], ids[last], rows=True, where="id < 6 and x = 'a'", columns=["id"]))
            kept = Counter({(r[0], *r[2:]): 0 for r in every})
            for r, n in every.items():
                kept[r[0], *r[2:]] += n if r[0] < 6 and r[1] == "a" else 0
            assert Counter(some) == +kept
        assert not t.problems
    finally:
        lab.table.close()


@pytest.mark.parametrize(("version", "layout"), LAYOUTS)
@settings(max_examples=settings().max_examples // 12)
@given(data=st.data())
def test_changes_are_the_differences_of_the_states(version: int, layout: dict[str, Any], data: st.DataObject) -> None:
    one_history(version, layout, lambda n: data.draw(st.integers(0, n - 1)))


@pytest.mark.parametrize("version", [2, 3, 4])
def test_an_update_is_a_pair(version: int) -> None:
    lab = Lab.start(version)
    lab.append([(1, "a"), (2, "b")])
    path = lab.files()[0]
    lab.delete([(path, 1)], [(2, "c"), (3, "d")])
    lab.delete_equal([(1, "a")], [(1, "z")])
    t = lab.table
    by_id = t.changes(None, "main", rows=True, identifier_columns=["id"])
    assert Counter(r[:4] for r in rows_of(by_id)) == Counter([
        (1, "a", "INSERT", 0), (2, "b", "INSERT", 0), (3, "d", "INSERT", 1), (2, "b", "UPDATE_BEFORE", 1),
        (2, "c", "UPDATE_AFTER", 1), (1, "a", "UPDATE_BEFORE", 2), (1, "z", "UPDATE_AFTER", 2),
    ])  # fmt: skip
    off = t.changes(None, "main", rows=True, identifier_columns=["id"], compute_updates=False)
    assert set(off["_change_type"].to_pylist()) == {"INSERT", "DELETE"}
    net = t.changes(None, "main", rows=True, net_changes=True)
    assert sorted(r[:3] for r in rows_of(net)) == [(1, "z", "INSERT"), (2, "c", "INSERT"), (3, "d", "INSERT")]
    batches = list(changelog_batches(t.state, None, t.snapshot, identifier_columns=["id"]))
    assert pa.concat_tables(batches) == by_id and len(batches) == 3
    lab.table.close()


def test_a_larger_vector_gives_only_the_new_positions() -> None:
    lab = Lab.start(3)
    lab.append([(i, "a") for i in range(5)])
    path = lab.files()[0]
    lab.delete([(path, 0), (path, 3)])
    lab.delete([(path, 1)])
    assert [r[:3] for r in rows_of(lab.table.changes(rows=True))] == [(1, "a", "DELETE")]
    lab.table.close()


def test_options_that_make_no_sense() -> None:
    lab = Lab.start(2)
    lab.append([(1, "a")])
    lab.append([(2, "a"), (2, "b")])
    lab.delete_equal([(2, "a")], [(2, "c")])
    t, (one, two, _) = lab.table, [s.snapshot_id for s in lab.commits]
    with pytest.raises(OptionError, match=f"{two} is not an ancestor of {one}"):
        t.changes(two, one, rows=True)
    with pytest.raises(OptionError, match="no identifier fields"):
        t.changes(one, two, rows=True, compute_updates=True)
    with pytest.raises(OptionError, match="net_changes"):
        t.changes(one, two, rows=True, identifier_columns=["id"], net_changes=True)
    with pytest.raises(OptionError, match="several rows with id = 2"):
        t.changes(rows=True, identifier_columns=["id"])
    with pytest.raises(OptionError, match="no column 'idd'"):
        t.changes(rows=True, columns=["idd"])
    with pytest.raises(OptionError, match="not a column of the table"):
        t.changes(rows=True, columns=["_file"])
    with pytest.raises(OptionError, match="need rows=True"):
        t.changes(columns=["id"])  # type: ignore[call-overload]
    with pytest.raises(OptionError, match="dv_encoding"):
        t.changes(rows=True, dv_encoding="delta")  # type: ignore[call-overload]
    with pytest.raises(OptionError, match="not a Spark session"):
        t.changes(rows=True, spark=object())
    with pytest.raises(OptionError, match="add rows=True"):
        t.changes(spark=object())  # type: ignore[call-overload]
    assert t.changes(one, one, rows=True).num_rows == 0
    t.close()
    nothing = ix.empty({"id": "long"})
    assert nothing.changes(rows=True).column_names == ["id", "_change_type", "_change_ordinal", "_commit_snapshot_id"]


def test_columns_are_those_of_the_schema_shown() -> None:
    lab = Lab.start(3)
    lab.append([(1, "a")])
    lab.table.evolve_schema(rename={"x": "y"}, add={"z": "int"})
    found = lab.table.changes(None, "main", rows=True)
    assert rows_of(found)[0][:3] == (1, "a", None) and found.column_names[:3] == ["id", "y", "z"]
    lab.table.close()


def test_columns_of_one_name_are_refused() -> None:
    lab = Lab.start(2)
    lab.append([(1, "a")])
    state = lab.table.state
    twice = dataclasses.replace(state.schema, fields=(state.schema.fields[0],) * 2)
    with pytest.raises(UnsupportedError, match="several columns 'id'"):
        ix.Table(dataclasses.replace(state, schema=twice)).changes(None, "main", rows=True)
    lab.table.close()


def test_a_parent_that_has_expired() -> None:
    lab = Lab.start(2)
    lab.append([(1, "a")])
    lab.append([(2, "a"), (3, "a")])
    lab.remove(next(place[0] for place, life in lab.lives.items() if life.values == (1, "a")))
    path = lab.files()[0]
    t = lab.table
    first, second, third = (s.snapshot_id for s in lab.commits)
    appended, removed = rows_of(t.changes(second, rows=True)), rows_of(t.changes(third, rows=True))
    since = rows_of(t.changes(first, "main", rows=True))
    t.expire_snapshots([first])
    assert rows_of(t.changes(second, rows=True)) == appended
    # Java begins after an expired parent, too: whoever has read up to it goes on from there.
    assert [r[:3] for r in rows_of(t.changes(first, "main", rows=True))] == [r[:3] for r in since]
    t.expire_snapshots([second])
    assert rows_of(t.changes(third, rows=True)) == removed
    cut = t.row_delta(deletes={path: [0]})
    last = t.row_delta(deletes={path: [1]})
    t.expire_snapshots([third])
    assert [r[2] for r in rows_of(t.changes(last.snapshot_id, rows=True))] == ["DELETE"]
    with pytest.raises(UnsupportedError, match=f"parent of snapshot {cut.snapshot_id} has expired"):
        t.changes(cut.snapshot_id, rows=True)
    t.close()


def test_an_expired_parent_takes_files_with_it(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "t", {"id": "long"})
    lab.append({"id": [1, 2, 3]})
    cut = lab.delete("id = 1")
    last = lab.delete("id = 2")
    assert cut and last
    lab.expire_snapshots(older_than="2100-01-01", retain_last=2)
    with pytest.raises(
        FileMissingError, match=f"parent of snapshot {cut.snapshot_id} has expired.* leave out what snapshot"
    ):
        lab.changes(None, "main", rows=True)
    assert rows_of(lab.changes(cut.snapshot_id, "main", rows=True)) == [(2, "DELETE", 0, last.snapshot_id)]


def test_damage_is_an_error_since_changes_would_be_missing(tmp_path: Path) -> None:
    lab = Lab.start(2)
    lab.append([(1, "a")])
    lab.append([(2, "a")])
    lab.table.save(tmp_path / "t", data="copy")
    lab.table.close()
    t = ix.open(tmp_path / "t")
    assert t.snapshot is not None and t.snapshot.manifest_list is not None
    Path(t.snapshot.manifest_list).write_bytes(b"Obj\x01 gone")
    t = ix.open(tmp_path / "t")
    with pytest.raises(FormatError, match="are unknown"):
        t.changes(rows=True)
