"""The changelog's algebra against Iceberg's iterators, written down row by row as Java has them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.arrow import build
from iceexplore.errors import OptionError
from iceexplore.reading.changelogs._algebra import net_of, with_updates, without_carryovers
from iceexplore.reading.row_history._codes import row_codes

Row = tuple[Any, ...]
SCHEMA = build.schema(
    [("id", pa.int64()), ("x", pa.string()), ("_change_type", pa.string()), ("_change_ordinal", pa.int32()),
     ("_commit_snapshot_id", pa.int64())]
)  # fmt: skip


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def rows_of(table: pa.Table) -> list[Row]:
    return list(zip(*(c.to_pylist() for c in table.columns), strict=True))


def key(value: Any) -> tuple[bool, Any]:
    return value is not None, value if value is not None else 0


def java_carryovers(rows: list[Row]) -> Counter[Row]:
    """``RemoveCarryoverIterator`` on rows sorted by every column, the change type last."""
    out: Counter[Row] = Counter()
    ordered = sorted(rows, key=lambda r: (key(r[0]), key(r[1]), r[3], r[4], r[2]))
    i = 0
    while i < len(ordered):
        row = ordered[i]
        i += 1
        if row[2] != "DELETE":
            out[row] += 1
            continue
        deleted = 1
        while i < len(ordered) and deleted and (*ordered[i][:2], *ordered[i][3:]) == (*row[:2], *row[3:]):
            deleted += -1 if ordered[i][2] == "INSERT" else 1
            i += 1
        out[row] += deleted
    return +out


def java_net(rows: list[Row]) -> Counter[Row]:
    """``RemoveNetCarryoverIterator`` on rows sorted by every column, ordinal and change type."""
    out: Counter[Row] = Counter()
    ordered = sorted(rows, key=lambda r: (key(r[0]), key(r[1]), r[3], r[2]))
    i = 0
    while i < len(ordered):
        kept, count = ordered[i], 1
        i += 1
        while i < len(ordered) and count and ordered[i][:2] == kept[:2]:
            count += 1 if ordered[i][2] == kept[2] else -1
            i += 1
        out[kept] += count
    return +out


changes = st.lists(
    st.tuples(
        st.sampled_from([1, 2, None]), st.sampled_from(["a", "b", None]), st.sampled_from(["INSERT", "DELETE"]),
        st.integers(0, 3),
    ).map(lambda r: (*r, 100 + r[3])),
    max_size=14,
)  # fmt: skip


@given(changes)
def test_carryovers_go_as_in_java(rows: list[Row]) -> None:
    found = rows_of(without_carryovers(table_of(rows)))
    assert Counter(found) == java_carryovers(rows)
    kept = iter(rows)
    assert all(row in kept for row in found)  # the order stays


@given(changes)
def test_net_changes_as_in_java(rows: list[Row]) -> None:
    found = rows_of(net_of(table_of(rows)))
    assert Counter(found) == java_net(rows)
    assert [r[3] for r in found] == sorted(r[3] for r in found)


@given(changes)
def test_updates_pair_one_removed_with_one_added_row_of_its_identifier(rows: list[Row]) -> None:
    before = rows_of(without_carryovers(table_of(rows)))
    gone = Counter((r[0], r[3]) for r in before if r[2] == "DELETE")
    come = Counter((r[0], r[3]) for r in before if r[2] == "INSERT")
    if any(n > 1 for n in gone.values()):
        with pytest.raises(OptionError, match="several rows with id = "):
            with_updates(table_of(before), {"id": table_of(before)["id"]})  # type: ignore[dict-item]
        return
    found = rows_of(with_updates(table_of(before), {"id": table_of(before)["id"]}))  # type: ignore[dict-item]
    plain = {"UPDATE_BEFORE": "DELETE", "UPDATE_AFTER": "INSERT"}
    assert Counter((*r[:2], plain.get(r[2], r[2]), *r[3:]) for r in found) == Counter(before)
    assert [r[3] for r in found] == sorted(r[3] for r in found)
    pairs = {k for k in gone if come[k]}
    assert Counter((r[0], r[3]) for r in found if r[2] == "UPDATE_BEFORE") == Counter(pairs)
    assert Counter((r[0], r[3]) for r in found if r[2] == "UPDATE_AFTER") == Counter(pairs)
    for i, row in enumerate(found):
        if row[2] == "UPDATE_BEFORE":
            assert (found[i + 1][2], found[i + 1][0], found[i + 1][3]) == ("UPDATE_AFTER", row[0], row[3])


nested = st.lists(
    st.tuples(
        st.none() | st.lists(st.sampled_from([None, 1, 2]), max_size=3),
        st.none() | st.fixed_dictionaries({"a": st.sampled_from([None, "u", "v"])}),
        st.sampled_from([0.0, -0.0, float("nan"), None]),
        st.none() | st.lists(st.tuples(st.sampled_from("kl"), st.sampled_from([None, 1])), max_size=2),
    ),
    max_size=12,
)


@given(nested, st.integers(0, 3))
def test_rows_have_the_same_code_if_they_are_equal(rows: list[Row], skip: int) -> None:
    kinds = [pa.list_(pa.int64()), pa.struct([("a", pa.string())]), pa.float64(), pa.map_(pa.string(), pa.int64())]
    columns = [pa.array([r[i] for r in rows], kind).slice(skip) for i, kind in enumerate(kinds)]
    codes = row_codes(columns, max(0, len(rows) - skip)).tolist()
    texts = [repr(r) for r in rows[skip:]]
    assert len(codes) == len(texts)
    for i, a in enumerate(texts):
        for j, b in enumerate(texts):
            assert (codes[i] == codes[j]) == (a == b)


def test_codes_of_columns_of_every_plain_kind() -> None:
    columns = [pa.array([None, None, None]), pa.array([b"ab", b"ab", b"cd"], pa.binary(2)), pa.array([1, 1, 1])]
    assert row_codes(columns, 3).tolist() == [0, 0, 1]  # type: ignore[arg-type]
    assert row_codes([], 2).tolist() == [0, 0]
    assert row_codes([pa.array([], pa.list_(pa.int64()))], 0).dtype == np.int64
