"""What statistics, tuples and summaries prove, against brute force over the values that they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iceexplore.expressions import ALWAYS, Op, Predicate, all_of, any_of
from iceexplore.manifests import EntryBatch, stats_type
from iceexplore.metadata import Type, arrow_type, parse_table_metadata
from iceexplore.planning import ColumnMetrics, Filter, may_match, must_match
from iceexplore.planning.evaluators._explain import explain_files
from iceexplore.planning.evaluators._file_evaluator import FileMetricsSources, evaluate_inclusive
from tests.planning.evaluators.naive import POOLS, matches, predicates_of, type_of

KINDS = [k for k in POOLS if k not in ("uuid",)] + ["uuid"]


def typed(kind: str, values: list[Any]) -> pa.Array:
    """Stored values as an array of the type."""
    target = arrow_type(type_of(kind))
    if pa.types.is_date32(target):
        return pa.array(values, pa.int32()).cast(target)
    if pa.types.is_temporal(target):
        return pa.array(values, pa.int64()).cast(target)
    return pa.array(values, target)


def evidence_of(
    kind: str, files: list[list[Any]], *, bounds: bool = True, counts: bool = True, cut: int | None = None
) -> ColumnMetrics:
    """Statistics as a writer makes them: nulls and NaN counted, bounds of the rest, text and bytes cut off."""
    lower, upper, values, nulls, nans = [], [], [], [], []
    for rows in files:
        rest = sorted(v for v in rows if v is not None and v == v)
        low, high = (rest[0], rest[-1]) if rest and bounds else (None, None)
        if cut is not None and low is not None:
            low, high = low[:cut], raised(high, cut)
        lower.append(low)
        upper.append(high)
        values.append(len(rows) if counts else None)
        nulls.append(sum(v is None for v in rows) if counts else None)
        nans.append(sum(v != v for v in rows) if counts and kind in ("float", "double") else None)
    counted, null, nan = (pa.array(c, pa.int64()) for c in (values, nulls, nans))
    records = pa.array([len(rows) for rows in files], pa.int64())
    return ColumnMetrics.of_counts(typed(kind, lower), typed(kind, upper), counted, null, nan, records)


def raised(value: Any, cut: int) -> Any:
    """An upper bound of so many characters or bytes; None where there is none."""
    if len(value) <= cut:
        return value
    head = value[:cut]
    for i in reversed(range(cut)):
        if isinstance(head, bytes) and head[i] < 255:
            return head[:i] + bytes([head[i] + 1])
        if isinstance(head, str) and ord(head[i]) < 0x10FFFF:
            return head[:i] + chr(ord(head[i]) + 1)
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_never_contradict_the_rows(kind: str) -> None:
    rows = st.lists(st.sampled_from([None, *POOLS[kind]]), min_size=1, max_size=5)
    cuts = st.sampled_from([None, 1, 2]) if kind in ("string", "binary") else st.none()

    @settings(max_examples=60)
    @given(p=predicates_of(kind), files=st.lists(rows, min_size=1, max_size=8), cut=cuts,
           bounds=st.booleans(), counts=st.booleans())  # fmt: skip
    def check(p: Predicate, files: list[list[Any]], cut: int | None, bounds: bool, counts: bool) -> None:
        e = evidence_of(kind, files, bounds=bounds, counts=counts, cut=cut)
        for values, may, must in zip(files, may_match(p, e), must_match(p, e), strict=True):
            hits = [matches(p, v) for v in values]
            assert may or not any(hits), (p, values)
            assert not must or all(hits), (p, values)

    check()


@pytest.mark.parametrize("kind", ["int", "long", "date", "decimal(9,2)", "string", "timestamptz_ns", "uuid"])
def test_bounds_tell_what_they_can(kind: str) -> None:
    """Whole statistics of an ordered type: of an order comparison with one literal nothing is left open."""

    @settings(max_examples=40)
    @given(
        op=st.sampled_from(["<", "<=", ">", ">=", "is-null", "not-null"]),
        x=st.sampled_from(POOLS[kind]),
        rows=st.lists(st.sampled_from([None, *POOLS[kind]]), min_size=1, max_size=5),
    )
    def check(op: Op, x: Any, rows: list[Any]) -> None:
        p = Predicate(1, op, () if "null" in op else (x,), "x", type_of(kind))
        e = evidence_of(kind, [rows])
        hits = [matches(p, v) for v in rows]
        assert (bool(may_match(p, e)[0]), bool(must_match(p, e)[0])) == (any(hits), all(hits))

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_tuples_and_summaries_never_contradict_the_rows(kind: str) -> None:
    @settings(max_examples=40)
    @given(p=predicates_of(kind), values=st.lists(st.sampled_from([None, *POOLS[kind]]), min_size=1, max_size=5),
           nan_known=st.booleans())  # fmt: skip
    def check(p: Predicate, values: list[Any], nan_known: bool) -> None:
        exact = ColumnMetrics.of_values(typed(kind, values))
        hits = [matches(p, v) for v in values]
        assert may_match(p, exact).tolist() == hits
        assert must_match(p, exact).tolist() == hits
        rest = sorted(v for v in values if v is not None and v == v)
        low, high = (typed(kind, [rest[i] if rest else None]) for i in (0, -1))
        nan = any(v is not None and v != v for v in values) if nan_known else None
        null = pa.array([None in values])
        summary = ColumnMetrics.of_summaries(low, high, null, pa.array([nan], pa.bool_()), np.array([not rest]))
        assert may_match(p, summary)[0] or not any(hits)
        assert not must_match(p, summary)[0] or all(hits)

    check()


def test_bounds_that_are_nan_or_of_another_type_are_unknown() -> None:
    counted = [pa.array([3], pa.int64()), pa.array([0], pa.int64()), pa.nulls(1, pa.int64())]
    nan = pa.array([float("nan")])
    e = ColumnMetrics.of_counts(nan, nan, *counted)
    for op in ("<", ">", "=", "<=", ">="):
        p = Predicate(1, op, (1.0,), "x", type_of("double"))
        assert (may_match(p, e)[0], must_match(p, e)[0]) == (True, False)
    text = ColumnMetrics.of_counts(pa.array(["a"]), pa.array(["b"]), *counted)
    older = ColumnMetrics.of_counts(typed("timestamp", [0]), typed("timestamp", [1]), *counted)
    for p, other in [
        (Predicate(1, "=", (5,), "x", type_of("int")), text),
        (Predicate(1, "=", (5,), "x", type_of("date")), older),  # microseconds are no days
        (Predicate(1, "=", (5,), "x", type_of("timestamp_ns")), older),
        (Predicate(1, ">", ("c",), "x", type_of("string")), older),
    ]:
        assert (may_match(p, other)[0], must_match(p, other)[0]) == (True, False)


def test_an_int_is_compared_with_bounds_of_the_long_it_became() -> None:
    counted = [pa.array([3], pa.int64()), pa.array([0], pa.int64()), pa.nulls(1, pa.int64())]
    e = ColumnMetrics.of_counts(pa.array([2**40]), pa.array([2**41]), *counted)
    assert not may_match(Predicate(1, "<", (7,), "x", type_of("int")), e)[0]
    assert must_match(Predicate(1, ">", (7,), "x", type_of("int")), e)[0]


# ----------------------------------------------------------------------------------------------------------------------
# TestInclusiveMetricsEvaluator and TestStrictMetricsEvaluator: FILE, and what each expression may and must. A null
# matches no comparison here, so files of nulls alone are pruned where Java keeps them (marked).

FIELDS = [
    (1, "id", "int"), (2, "no_stats", "int"), (4, "all_nulls", "string"), (5, "some_nulls", "string"),
    (6, "no_nulls", "string"), (7, "all_nans", "double"), (8, "some_nans", "float"), (9, "no_nans", "float"),
    (10, "all_nulls_double", "double"), (11, "all_nans_v1_stats", "float"), (12, "nan_and_null_only", "double"),
    (14, "some_empty", "string"),
]  # fmt: skip
FILE: dict[str, tuple[Any, ...]] = {  # lower, upper, values, nulls, NaN
    "id": (30, 79, None, None, None), "all_nulls": (None, None, 50, 50, None), "some_nulls": (None, None, 50, 10, None),
    "no_nulls": (None, None, 50, 0, None), "all_nans": (None, None, 50, None, 50),
    "some_nans": (None, None, 50, None, 10), "no_nans": (None, None, 50, None, 0),
    "all_nulls_double": (None, None, 50, 50, None), "all_nans_v1_stats": (float("nan"), float("nan"), 50, 0, None),
    "nan_and_null_only": (float("nan"), float("nan"), 50, 1, None),
    "some_empty": ("", "房东整租霍营小区二层两居室", 50, 0, None),
}  # fmt: skip


def java_file(records: int | None = 50) -> tuple[EntryBatch, Any]:
    """The file of Java's tests, in an unpartitioned table."""
    document = {
        "format-version": 2, "table-uuid": "00000000-0000-0000-0000-000000000000", "location": "/t",
        "last-sequence-number": 0, "last-updated-ms": 0, "last-column-id": 20, "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": [
            *({"id": i, "name": n, "type": t, "required": False} for i, n, t in FIELDS),
            {"id": 15, "name": "s", "required": False, "type": {"type": "struct", "fields": [
                {"id": 16, "name": "inner", "type": "int", "required": False}]}},
        ]}],
        "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999,
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}],
    }  # fmt: skip
    from iceexplore.errors import Problems

    metadata = parse_table_metadata(document, "/t/metadata/v1.metadata.json", Problems())
    kinds = {n: (i, t) for i, n, t in FIELDS}
    stats = {kinds[n][0]: column_stats(kinds[n][1], *given) for n, given in FILE.items()}
    row = {"content_type": 0, "location": "/f", "record_count": records, "partition_spec_id": 0}
    return EntryBatch.of_rows([row], stats=stats), metadata


def column_stats(kind: str, lower: Any, upper: Any, values: Any, nulls: Any, nans: Any) -> pa.StructArray:
    bound: Type = type_of(kind)
    fields = list(stats_type(arrow_type(bound)))
    made = {"lower": typed(kind, [lower]), "upper": typed(kind, [upper]), "value_count": values, "null_count": nulls,
            "nan_count": nans}  # fmt: skip
    arrays = [v if isinstance(v := made.get(f.name), pa.Array) else pa.array([v], f.type) for f in fields]
    return pa.StructArray.from_arrays(arrays, fields=fields)


def asked(name: str, op: Op, *literals: Any) -> Predicate:
    number, kind = next((i, t) for i, n, t in FIELDS if n == name)
    return Predicate(number, op, literals, name, type_of(kind))


YES, NO, OPEN = (True, True), (False, False), (True, False)
JAVA: list[tuple[str, Op, tuple[Any, ...], tuple[bool, bool]]] = [
    ("all_nulls", "not-null", (), NO), ("some_nulls", "not-null", (), OPEN), ("no_nulls", "not-null", (), YES),
    ("all_nulls", "<", ("a",), NO), ("all_nulls", "<=", ("a",), NO), ("all_nulls", ">", ("a",), NO),
    ("all_nulls", ">=", ("a",), NO), ("all_nulls", "=", ("a",), NO), ("all_nulls", "starts-with", ("a",), NO),
    ("all_nulls", "!=", ("a",), NO), ("all_nulls", "not-starts-with", ("a",), NO),  # Java: may, as a null does
    ("all_nulls", "in", ("abc", "def"), NO), ("all_nulls", "not-in", ("abc", "def"), NO),
    ("some_nulls", "!=", ("a",), OPEN), ("all_nulls", "is-null", (), YES), ("some_nulls", "is-null", (), OPEN),
    ("no_nulls", "is-null", (), NO), ("all_nans", "is-nan", (), (True, True)), ("some_nans", "is-nan", (), OPEN),
    ("no_nans", "is-nan", (), NO), ("all_nulls_double", "is-nan", (), NO), ("all_nans_v1_stats", "is-nan", (), OPEN),
    ("nan_and_null_only", "is-nan", (), OPEN), ("all_nans", "not-nan", (), NO), ("some_nans", "not-nan", (), OPEN),
    ("no_nans", "not-nan", (), YES), ("all_nulls_double", "not-nan", (), YES),
    ("all_nans", "<", (1.0,), NO), ("all_nans", ">=", (1.0,), NO), ("all_nans", "=", (1.0,), NO),
    ("nan_and_null_only", "<", (1.0,), OPEN), ("all_nans_v1_stats", ">", (1.0,), OPEN),
    ("no_stats", "<", (5,), OPEN), ("no_stats", "=", (5,), OPEN), ("no_stats", "is-null", (), OPEN),
    ("no_stats", "not-null", (), OPEN), ("no_stats", "!=", (5,), OPEN), ("no_stats", "in", (5, 6), OPEN),
    ("id", "<", (5,), NO), ("id", "<", (30,), NO), ("id", "<", (31,), OPEN), ("id", "<", (79,), OPEN),
    ("id", "<=", (29,), NO), ("id", "<=", (30,), OPEN), ("id", "<=", (79,), OPEN), ("id", ">", (85,), NO),
    ("id", ">", (79,), NO), ("id", ">", (78,), OPEN), ("id", ">=", (80,), NO), ("id", ">=", (79,), OPEN),
    ("id", "=", (29,), NO), ("id", "=", (30,), OPEN), ("id", "=", (75,), OPEN), ("id", "=", (79,), OPEN),
    ("id", "=", (80,), NO), ("id", "!=", (5,), OPEN), ("id", "!=", (75,), OPEN), ("id", "in", (5, 6), NO),
    ("id", "in", (28, 29), NO), ("id", "in", (29, 30), OPEN), ("id", "in", (79, 80), OPEN), ("id", "in", (80, 81), NO),
    ("id", "in", tuple(range(80, 480)), NO), ("id", "not-in", (5, 6), OPEN),
    ("some_empty", "starts-with", ("房东整租霍营小区二",), OPEN), ("some_empty", "starts-with", ("鼎",), NO),
    ("some_empty", "starts-with", ("",), YES),
]  # fmt: skip


@pytest.mark.parametrize(("name", "op", "literals", "wanted"), JAVA)
def test_cases_of_java(name: str, op: Op, literals: tuple[Any, ...], wanted: tuple[bool, bool]) -> None:
    batch, metadata = java_file()
    may, must = Filter("", asked(name, op, *literals)).evaluate(batch, metadata)
    assert (may[0].as_py(), must[0].as_py()) == wanted


@pytest.mark.parametrize(
    ("records", "below", "whole"),
    [(50, NO, YES), (None, NO, YES), (0, NO, YES), (-1, OPEN, OPEN)],
)
def test_record_counts(records: int | None, below: tuple[bool, bool], whole: tuple[bool, bool]) -> None:
    """A count of 0 prunes nothing by itself; of old imported files the statistics are not believed."""
    batch, metadata = java_file(records)
    for p, wanted in [(asked("id", "<", 5), below), (asked("no_nulls", "not-null"), whole)]:
        may, must = Filter("", p).evaluate(batch, metadata)
        assert (may[0].as_py(), must[0].as_py()) == wanted


def test_and_or_and_constants() -> None:
    batch, metadata = java_file()
    low, middle, high = asked("id", "<", 5), asked("id", "=", 50), asked("id", "not-null")

    def may(e: Any) -> bool:
        return bool(Filter("", e).evaluate(batch, metadata)[0][0].as_py())

    assert may(ALWAYS)
    assert not may(all_of(middle, low))
    assert may(any_of(middle, low))
    assert not may(any_of(low, all_of(high, low)))


def test_a_nested_null_count_needs_all_the_rows() -> None:
    """ORC counts only what is inside the struct: no nulls among the values there is no answer for the rows without."""
    batch, metadata = java_file()
    p = Predicate(16, "is-null", (), "s.inner", type_of("int"))
    for values, nulls, wanted in [(50, 0, False), (40, 0, True), (None, 0, True), (50, 50, True), (40, 40, True)]:
        stats = {16: column_stats("int", None, None, values, nulls, None)}
        one = EntryBatch(batch.entries, stats)
        assert Filter("", p).evaluate(one, metadata)[0][0].as_py() is wanted
        not_null = Filter("", Predicate(16, "not-null", (), "s.inner", type_of("int"))).evaluate(one, metadata)
        assert not_null[0][0].as_py() is (nulls != values or values is None)
        assert not_null[1][0].as_py() is (not wanted)


def test_a_value_count_that_is_not_there_is_the_record_count() -> None:
    batch, metadata = java_file()
    one = EntryBatch(batch.entries, {4: column_stats("string", None, None, None, 50, None)})
    assert not Filter("", asked("all_nulls", "not-null")).evaluate(one, metadata)[0][0].as_py()
    assert not FileMetricsSources(one, metadata, statistics=False).statistics(asked("all_nulls", "not-null"))
    assert evaluate_inclusive(asked("all_nulls", "=", "x"), 1, FileMetricsSources(one, metadata, statistics=False))[0]


# ----------------------------------------------------------------------------------------------------------------------
# Required columns, by the table's history.

OPTIONAL, REQUIRED, DEFAULTED, ABSENT = "optional", "required", "required with a default", "absent"


def table_of(history: list[str], kind: Any = "double", *, specs: Any = (), ids: Any = None) -> Any:
    """A table with a schema per word: what its column 1 is in it."""
    from iceexplore.errors import Problems

    schemas = []
    for number, word in enumerate(history):
        column: dict[str, Any] = {"id": 1, "name": "x", "type": kind, "required": word in (REQUIRED, DEFAULTED)}
        if word == DEFAULTED:
            column |= {"initial-default": 1.0, "write-default": 1.0}
        other = {"id": 2, "name": "y", "type": "int", "required": False}
        schema_id = number if ids is None else ids[number]
        schemas.append({"type": "struct", "schema-id": schema_id, "fields": [other] + [column] * (word != ABSENT)})
    document = {
        "format-version": 3, "table-uuid": "00000000-0000-0000-0000-000000000000", "location": "/t",
        "last-sequence-number": 0, "last-updated-ms": 0, "last-column-id": 2, "next-row-id": 0, "schemas": schemas,
        "current-schema-id": schemas[-1]["schema-id"], "default-spec-id": 0, "last-partition-id": 1000,
        "partition-specs": [{"spec-id": 0, "fields": list(specs)}],
        "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}],
    }  # fmt: skip
    return parse_table_metadata(document, "/t/metadata/v1.metadata.json", Problems())


@pytest.mark.parametrize(
    ("history", "how", "pruned"),
    [
        ([REQUIRED], {}, True),
        ([REQUIRED, REQUIRED], {}, True),
        ([OPTIONAL, REQUIRED], {}, False),  # made required against the rules: older files may have nulls
        ([REQUIRED, OPTIONAL], {}, False),
        ([ABSENT, REQUIRED], {}, False),  # older files lack it, and read as null
        ([ABSENT, DEFAULTED], {}, True),  # older files read as the default
        ([REQUIRED, REQUIRED], {"ids": [0, 2]}, False),  # schema 1 is gone, and nobody knows what it was
        ([REQUIRED], {"ids": [1]}, False),
    ],
)
def test_required_counts_as_far_as_every_schema_says_so(history: list[str], how: Any, pruned: bool) -> None:
    metadata = table_of(history, **how)
    row = {"content_type": 0, "location": "/f", "record_count": 3, "partition_spec_id": 0}
    batch = EntryBatch.of_rows([row], stats={1: column_stats("double", 1.0, 2.0, 3, None, None)})
    wanted = Filter("", Predicate(1, "is-null", (), "x", type_of("double")))
    may, _ = wanted.evaluate(batch, metadata)
    assert may[0].as_py() is not pruned
    assert not pruned or "never null" in explain_files(wanted, batch, metadata, [0])["why"][0].as_py()
    counted = EntryBatch(batch.entries, {1: column_stats("double", 1.0, 2.0, 3, 1, 0)})
    assert wanted.evaluate(counted, metadata)[0][0].as_py()  # a null that is counted is there


@settings(max_examples=150)
@given(data=st.data())
def test_files_of_any_history_are_never_judged_against_their_rows(data: st.DataObject) -> None:
    """Files written by any of a table's schemas, of whose true counts and bounds any may be missing."""
    history = data.draw(st.lists(st.sampled_from([OPTIONAL, REQUIRED, DEFAULTED, ABSENT]), min_size=1, max_size=3))
    if history[-1] == ABSENT:
        history.append(data.draw(st.sampled_from([OPTIONAL, REQUIRED, DEFAULTED])))
    metadata = table_of(history)
    pool = POOLS["double"]
    files, stats = [], []
    for _ in range(data.draw(st.integers(1, 4))):
        word = data.draw(st.sampled_from(history))
        n = data.draw(st.integers(1, 4))
        values = st.sampled_from([*pool, float("nan"), float("nan")] + [None] * (word == OPTIONAL))
        rows = data.draw(st.lists(values, min_size=n, max_size=n))
        rest = sorted(v for v in rows if v is not None and v == v)
        metrics: list[Any] = [rest[0] if rest else None, rest[-1] if rest else None, n, rows.count(None),
                           sum(v is not None and v != v for v in rows)]  # fmt: skip
        if word == ABSENT:
            rows, metrics = [1.0 if history[-1] == DEFAULTED else None] * n, [None] * 5
        files.append(rows)
        stats.append([v if data.draw(st.booleans()) else None for v in metrics])
    parts = pa.concat_arrays([column_stats("double", *s) for s in stats])
    entries = [
        {"content_type": 0, "location": f"/{i}", "record_count": len(rows), "partition_spec_id": 0}
        for i, rows in enumerate(files)
    ]
    batch = EntryBatch.of_rows(entries, stats={1: parts} if data.draw(st.booleans()) else {})
    p = data.draw(predicates_of("double"))
    may, must = Filter("", p).evaluate(batch, metadata)
    for rows, some, every in zip(files, may.to_pylist(), must.to_pylist(), strict=True):
        hits = [matches(p, v) for v in rows]
        assert some or not any(hits), (history, p, rows)
        assert not every or all(hits), (history, p, rows)
