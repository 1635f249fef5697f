"""Whole tables: pruned files have no matching row, residuals keep every matching row, and each reason is given."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.expressions import ALWAYS, NEVER, And, Expression, Or, predicates
from iceexplore.graph import TableState
from iceexplore.manifests import ContentType, EntryBatch, Manifest
from iceexplore.planning import (
    WHY_SCHEMA,
    Filter,
    evaluate,
    explain_files,
    explain_manifests,
    make_filter,
    may_hold,
    residuals,
)
from tests.planning.brute_force import brute_force

COLUMNS = {"id": "long", "kind": "string", "at": "timestamptz", "x": "double"}
NAMES = ("a", "ab", "b", "日本", None)
START = dt.datetime(1969, 12, 30, tzinfo=dt.UTC)
TERMS = [
    "id = 7", "id < 5", "id >= 17", "id in (1, 2, 30)", "id <> 3", "id is null", "kind = 'a'", "kind like 'a%'",
    "kind not like 'a%'", "kind <> 'b'", "kind is null", "kind is not null", "kind not in ('a', 'b')",
    "at >= '1970-01-02 00:00:00+00:00'", "at < '1969-12-31 07:00:00+00:00'", "at = '1969-12-30 05:00:00+00:00'",
    "at <> '1969-12-31 00:00:00+00:00'", "x > 3.5", "x is nan", "x <> 2.0", "x is null",
    "days(at) = date '1969-12-31'", "days(at) <> date '1969-12-31'", "days(at) < date '1970-01-02'", "months(at) >= 0",
    "bucket(3, id) in (0, 2)", "bucket(2, id) = 1", "truncate(1, kind) = 'a'", "truncate(5, id) is null",
]  # fmt: skip


def frame(start: int, count: int) -> pd.DataFrame:
    numbers = range(start, start + count)
    columns = {
        "id": pd.array([None if i % 11 == 10 else i for i in numbers], "Int64"),
        "kind": [NAMES[i % len(NAMES)] for i in numbers],
        "at": pd.to_datetime([START + dt.timedelta(hours=5 * i) for i in numbers]),
        "x": [None if i % 5 == 0 else float("nan") if i % 7 == 0 else i / 2 for i in numbers],
    }
    return pd.DataFrame(columns)


def made(version: int, partition_by: list[str], again: list[str] | None) -> TableState:
    return made_table(version, partition_by, again)._state


def made_table(version: int, partition_by: list[str], again: list[str] | None) -> ix.Simulation:
    """A table of three appends, the last by another spec, each in a manifest of its own."""
    options: dict[str, Any] = {"flush_data_files": 0} if version == 4 else {}
    table = ix.empty(COLUMNS, partition_by=partition_by, format_version=version, **options)
    table.append(frame(0, 9))
    table.append(frame(9, 9))
    if again is not None:
        removed = [f for f in partition_by if f not in again]
        table.evolve_spec(add=[f for f in again if f not in partition_by], remove=removed)
    table.append(frame(18, 12))
    return table


def leaves(state: TableState) -> list[tuple[int | None, Manifest]]:
    wanted = frozenset({"entries", "partition", "stats"})
    return [(leaf.root_row, leaf) for leaf in state.leaves(parts=wanted)]


@pytest.fixture(
    scope="module",
    params=[
        (1, ["kind"], None),
        (2, ["day(at)", "bucket(3, id)"], ["truncate(1, kind)"]),
        (3, ["truncate(5, id)", "month(at)"], ["hour(at)", "kind"]),
        (4, ["day(at)", "kind"], ["bucket(2, id)"]),
        (4, [], None),
    ],
    ids=lambda p: f"v{p[0]} {p[1]}",
)
def case(request: pytest.FixtureRequest) -> tuple[TableState, Any]:
    state = made(*request.param)
    return state, brute_force(state)


def expression_text() -> st.SearchStrategy[str]:
    term = st.sampled_from(TERMS)
    return st.recursive(
        term,
        lambda inner: (
            st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner)
            | st.builds("not ({})".format, inner)
        ),
        max_leaves=4,
    )


def selected(state: TableState, expression: Expression, rows: list[dict[str, Any]]) -> list[bool]:
    fields = [
        pa.field(f.name, kind, metadata={"PARQUET:field_id": str(f.field_id)})
        for f, kind in zip(
            state.schema.fields, (pa.int64(), pa.string(), pa.timestamp("us", "UTC"), pa.float64()), strict=True
        )
    ]
    arrays = [pa.array([r[f.name] for r in rows], f.type) for f in fields]
    found: list[bool] = build.to_pylist(evaluate(expression, pa.Table.from_arrays(arrays, schema=pa.schema(fields))))
    return found


def test_nothing_that_matches_is_pruned(case: tuple[TableState, Any]) -> None:
    state, files = case
    root = state.root()
    assert root is not None
    kinds = root.entries["content_type"].to_pylist()
    rows = np.array([i for i, k in enumerate(kinds) if k == ContentType.DATA_MANIFEST], np.int64)
    every = leaves(state)

    @settings(max_examples=settings().max_examples // 2)
    @given(text=expression_text())
    def check(text: str) -> None:
        wanted = make_filter(state.metadata, state.schema, text)
        held = dict(zip(rows.tolist(), may_hold(state, root, rows, wanted).to_pylist(), strict=True))
        for root_row, leaf in every:
            batch = EntryBatch.of(leaf, wanted.field_ids)
            may, must = wanted.evaluate(batch, state.metadata)
            number, left = residuals(wanted, batch, state.metadata)
            assert left[0] == wanted.expression
            assert len(set(left)) == len(left)
            assert not {part for e in left for part in parts(e)} & {ALWAYS, NEVER} - set(left)
            for i, location in enumerate(batch.entries["location"].to_pylist()):
                hits = selected(state, wanted.expression, files[location].rows)
                if any(hits):
                    assert may[i].as_py(), (text, location)
                    assert root_row is None or held[root_row], (text, location)
                if must[i].as_py():
                    assert all(hits), (text, location)
                assert selected(state, left[number[i].as_py()], files[location].rows) == hits, (text, location)
            gone = np.flatnonzero(~np.asarray(may))
            reasons = explain_files(wanted, batch, state.metadata, gone)
            assert reasons.schema == WHY_SCHEMA
            assert not any(reasons[n].null_count for n in ("term", "by", "why")), (text, reasons.to_pylist())
            kept = explain_files(wanted, batch, state.metadata, np.flatnonzero(np.asarray(may)))
            assert kept["why"].null_count == len(kept)
        out = rows[[not held[r] for r in rows.tolist()]]
        reasons = explain_manifests(state, root, out, wanted)
        assert (len(reasons), reasons["why"].null_count) == (len(out), 0)
        # Deletes are of partitions: what is ruled out for them is ruled out for data files, too.
        for_deletes = np.asarray(may_hold(state, root, rows, wanted, files="deletes"))
        assert not (np.array([held[r] for r in rows.tolist()], bool) & ~for_deletes).any()

    check()


@pytest.mark.parametrize("version", [2, 3, 4])
def test_residuals_of_values_that_partitions_store(version: int) -> None:
    """As in Java, a comparison of ``day(at)`` is decided by the partition field that stores just this value."""
    state = made(version, ["day(at)"], ["bucket(2, id)"])
    wanted = make_filter(state.metadata, state.schema, "days(at) = date '1969-12-31' and id > 3")
    found = set()
    for _, leaf in leaves(state):
        batch = EntryBatch.of(leaf, wanted.field_ids)
        number, left = residuals(wanted, batch, state.metadata)
        found |= {left[i] for i in build.to_pylist(number)}
    (rest,) = (p for p in predicates(wanted.expression))
    assert rest.text == "id > 3"
    assert found == {NEVER, rest, wanted.expression}


def parts(expression: Expression) -> list[Expression]:
    children = expression.children if isinstance(expression, (And, Or)) else ()
    return [p for c in children for p in (c, *parts(c))]


def pruned(state: TableState, text: str | None, partition: Any = None) -> list[dict[str, Any]]:
    wanted = make_filter(state.metadata, state.schema, text, partition)
    out = []
    for _, leaf in leaves(state):
        batch = EntryBatch.of(leaf, wanted.field_ids)
        gone = np.flatnonzero(~np.asarray(wanted.evaluate(batch, state.metadata)[0]))
        out += explain_files(wanted, batch, state.metadata, gone).to_pylist()
    return out


def test_reasons() -> None:
    state = made(2, ["kind"], None)
    by_kind = pruned(state, "kind = 'a' and id > 6")
    assert {r["by"] for r in by_kind} == {"partition", "bounds"}
    one = next(r for r in by_kind if r["lower"] == "ab")
    assert (one["term"], one["column"], one["upper"], one["null_count"]) == ("kind = 'a'", "kind", "ab", None)
    assert one["why"] == "kind of the file's partition is 'ab': no row has kind = 'a'"
    (low,) = (r for r in by_kind if r["by"] == "bounds")
    assert (low["lower"], low["upper"], low["null_count"]) == ("0", "5", 0)
    assert low["why"] == "id is 0 to 5: no row has id > 6"
    either = pruned(state, "id > 100 or x > 1000")[0]
    assert either["term"] == "id > 100 or x > 1000"
    assert (either["by"], either["column"], either["lower"]) == ("bounds", "id, x", None)
    assert ": no row has id > 100; " in either["why"]
    assert {r["why"] for r in pruned(state, "id is not null and kind is null and id = 3")} >= {
        "kind of the file's partition is 'a': no row has kind is null"
    }
    assert {(r["by"], r["why"]) for r in pruned(state, "false")} == {("filter", "the filter matches no row")}
    assert {r["by"] for r in pruned(state, None, {"kind": "b"})} == {"partition"}
    assert not pruned(state, "true")


def test_reasons_of_manifests() -> None:
    state = made(2, ["day(at)"], None)
    root = state.root()
    assert root is not None
    wanted = make_filter(state.metadata, state.schema, "at > '1980-01-01 00:00:00+00:00'")
    assert may_hold(state, root, np.arange(3), wanted).to_pylist() == [False] * 3
    reasons = explain_manifests(state, root, np.array([2, 0]), wanted).to_pylist()
    assert [r["by"] for r in reasons] == ["partition", "partition"]
    days = sorted((r["lower"], r["upper"]) for r in reasons)
    assert days[0][0] == "1969-12-30"
    why = next(r["why"] for r in reasons if r["lower"] == days[0][0])
    assert "of the manifest's partitions is 1969-12-30 to " in why
    assert reasons[0]["why"].endswith("can only be in partitions with at_day >= 1980-01-01")


def test_a_tuple_that_contradicts_the_bounds_proves_nothing() -> None:
    state = made(2, ["kind"], None)
    (_, leaf), *_ = leaves(state)
    batch = EntryBatch.of(leaf, [2])
    assert batch.partition is not None
    nulls = pa.StructArray.from_arrays([pa.nulls(len(batch), pa.string())], names=["1000"])
    lost = EntryBatch(batch.entries, batch.stats, nulls)
    may, must = make_filter(state.metadata, state.schema, "kind = 'a'").evaluate(lost, state.metadata)
    had = [v == "a" for v in batch.partition.field(0).to_pylist()]
    assert all(m >= h for m, h in zip(build.to_pylist(may), had, strict=True))
    others = pa.StructArray.from_arrays([pa.array(range(len(batch)))], names=["1000"])
    for partition in (None, others):  # missing, of another type
        may, must = make_filter(state.metadata, state.schema, "kind = 'a'").evaluate(
            EntryBatch(batch.entries, {}, partition), state.metadata
        )
        assert all(may.to_pylist())
        assert not any(must.to_pylist())
    unknown = batch.with_columns(partition_spec_id=77)
    may, _ = Filter("", ALWAYS, {"kind": "a"}).evaluate(unknown, state.metadata)
    assert all(may.to_pylist())
