"""Selection by filter, against brute force over the rows of each file."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import expressions as ex

from iceexplore.arrow import build
from iceexplore.commits import (
    CommitWriter,
    LayoutOptions,
    append,
    check_rules,
    delete_where,
    new_files,
    overwrite,
    row_delta,
    select,
)
from iceexplore.errors import OptionError, RuleError
from iceexplore.graph import TableState
from iceexplore.manifests import EntryBatch
from iceexplore.planning import make_filter
from tests.commits.operations_table import BY_KIND, NOW, Commits, frame, sandbox, table
from tests.helpers.folders import fresh

EARLY = datetime(1969, 12, 31, 23, 59, tzinfo=UTC)
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "i": ("int", [None, -3, 0, 1, 2, 5, 9, 100]),
    "l": ("long", [None, -(2**40), 0, 7, 8, 2**40]),
    "f": ("double", [None, float("nan"), float("-inf"), -1.5, -0.0, 0.0, 2.5, float("inf")]),
    "s": ("string", [None, "", "a", "ab", "abc", "abd", "b", "日本語", "\U0010ffff\U0010ffffz"]),
    "d": ("date", [None, date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), date(2024, 3, 1)]),
    "t": ("timestamptz", [None, *(datetime(2024, 1, 1, h, tzinfo=UTC) for h in (0, 1, 23)), EARLY]),
    "c": ("decimal(9,2)", [None, Decimal("-1.50"), Decimal("0.00"), Decimal("1.25"), Decimal("9.99")]),
    "b": ("boolean", [None, True, False]),
    "y": ("binary", [None, b"", b"\x00", b"a\xff", b"a\xff\xff\xff", b"b"]),
}  # fmt: skip
TRANSFORMS = {
    "i": ["identity", "bucket[3]", "truncate[5]"],
    "l": ["identity", "bucket[4]", "truncate[8]"],
    "f": ["identity"],
    "s": ["identity", "bucket[3]", "truncate[2]"],
    "d": ["identity", "year", "month", "day", "bucket[3]"],
    "t": ["identity", "year", "month", "day", "hour", "bucket[2]"],
    "c": ["identity", "bucket[3]", "truncate[100]"],
    "b": ["identity"],
    "y": ["identity", "bucket[3]", "truncate[1]"],
}
NAMES = list(COLUMNS)
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": i, "name": name, "type": COLUMNS[name][0], "required": False} for i, name in enumerate(NAMES, start=1)
    ],
}
ARROW = {
    "i": pa.int32(), "l": pa.int64(), "f": pa.float64(), "s": pa.string(), "d": pa.date32(),
    "t": pa.timestamp("us", "UTC"), "c": pa.decimal128(9, 2), "b": pa.bool_(), "y": pa.binary(),
}  # fmt: skip

Row = dict[str, Any]
Test = Callable[[Row], bool]


class Memory:
    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def write(self, location: str, data: bytes, *, kind: str) -> None:
        assert location not in self.files
        self.files[location] = data


def writer_of(state: TableState, seed: int = 1) -> tuple[CommitWriter, Memory]:
    memory = Memory()
    version = state.metadata.format_version
    return CommitWriter(memory, state, LayoutOptions.of(version), 5, 1, None, NOW, 1, Random(seed)), memory


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value


def compare(op: str, name: str, literal: Any) -> tuple[Any, Test]:
    """An expression and what it means, as in SQL: a null matches no comparison, a NaN `!=` alone."""
    kinds: dict[str, Any] = {
        "<": (ex.LessThan, lambda v: v < literal),
        "<=": (ex.LessThanOrEqual, lambda v: v <= literal),
        ">": (ex.GreaterThan, lambda v: v > literal),
        ">=": (ex.GreaterThanOrEqual, lambda v: v >= literal),
        "=": (ex.EqualTo, lambda v: v == literal),
    }
    text = literal
    if isinstance(literal, datetime | date):
        text = literal.isoformat()
    if op == "!=":
        return ex.NotEqualTo(name, text), lambda row: row[name] is not None and row[name] != literal
    kind, test = kinds[op]
    return kind(name, text), lambda row: row[name] is not None and not is_nan(row[name]) and test(row[name])


@st.composite
def leaf(draw: st.DrawFn) -> tuple[Any, Test]:
    name = draw(st.sampled_from(NAMES))
    pool = [v for v in COLUMNS[name][1] if v is not None and not is_nan(v)]
    shape = draw(st.sampled_from(["compare"] * 4 + ["null", "nan", "in", "starts"]))
    if shape == "null":
        if draw(st.booleans()):
            return ex.IsNull(name), lambda row: row[name] is None
        return ex.NotNull(name), lambda row: row[name] is not None
    if shape == "nan":
        if draw(st.booleans()):
            return ex.IsNaN("f"), lambda row: is_nan(row["f"])
        return ex.NotNaN("f"), lambda row: not is_nan(row["f"])
    if shape == "starts":
        prefix = draw(st.sampled_from(["", "a", "ab", "abc", "日", "\U0010ffff", "abcd"]))
        if draw(st.booleans()):
            return ex.StartsWith("s", prefix), lambda row: row["s"] is not None and row["s"].startswith(prefix)
        return ex.NotStartsWith("s", prefix), lambda row: row["s"] is not None and not row["s"].startswith(prefix)
    if shape == "in":
        # PyIceberg takes dates and times in sets as numbers of days and microseconds only: other columns do.
        if name in "dt":
            name, pool = "s", ["", "a", "ab", "abd", "日本語"]
        chosen = draw(st.lists(st.sampled_from(pool), min_size=2, max_size=3, unique=True))
        if draw(st.booleans()):
            return ex.In(name, chosen), lambda row: row[name] is not None and row[name] in chosen
        return ex.NotIn(name, chosen), lambda row: row[name] is not None and row[name] not in chosen
    op = draw(st.sampled_from(["<", "<=", ">", ">=", "=", "!="]))
    return compare(op, name, draw(st.sampled_from(pool)))


def both(a: tuple[Any, Test], b: tuple[Any, Test]) -> tuple[Any, Test]:
    return ex.And(a[0], b[0]), lambda row: a[1](row) and b[1](row)


def either(a: tuple[Any, Test], b: tuple[Any, Test]) -> tuple[Any, Test]:
    return ex.Or(a[0], b[0]), lambda row: a[1](row) or b[1](row)


EXPRESSIONS = st.recursive(
    leaf(),
    lambda inner: st.one_of(st.builds(both, inner, inner), st.builds(either, inner, inner)),
    max_leaves=4,
)
ROWS = st.lists(st.fixed_dictionaries({n: st.sampled_from(COLUMNS[n][1]) for n in NAMES}), min_size=1, max_size=6)
SPECS = st.lists(
    st.sampled_from([(n, t) for n in NAMES for t in TRANSFORMS[n]]), max_size=2, unique_by=lambda pair: pair
)
MODES = st.dictionaries(
    st.sampled_from(NAMES), st.sampled_from(["none", "counts", "truncate(1)", "truncate(2)", "full"])
)


def state_of(spec: list[tuple[str, str]], modes: dict[str, str]) -> TableState:
    fields = [
        {"source-id": NAMES.index(n) + 1, "field-id": 1000 + i, "transform": t, "name": f"p{i}"}
        for i, (n, t) in enumerate(spec)
    ]
    properties = {f"write.metadata.metrics.column.{n}": m for n, m in modes.items()}
    return table(fresh() / "t", schema=SCHEMA, spec=fields, properties=properties)


def rows_of(batch: EntryBatch, memory: Memory) -> list[list[Row]]:
    names = batch.entries["location"].to_pylist()
    return [build.to_pylist(pq.read_table(io.BytesIO(memory.files[name]))) for name in names]  # type: ignore[index]


@given(rows=ROWS, spec=SPECS, modes=MODES, wanted=EXPRESSIONS)
def test_against_brute_force(
    rows: list[Row], spec: list[tuple[str, str]], modes: dict[str, str], wanted: tuple[Any, Test]
) -> None:
    state = state_of(spec, modes)
    writer, memory = writer_of(state)
    data = pa.table({n: pa.array([r[n] for r in rows], ARROW[n]) for n in NAMES})
    batch = new_files(state, data, writer=writer)
    expression, test = wanted
    may, must = make_filter(state.metadata, state.schema, expression).evaluate(batch, state.metadata)
    for found, maybe, surely in zip(rows_of(batch, memory), may.to_pylist(), must.to_pylist(), strict=True):
        hits = [test(row) for row in found]
        assert maybe or not any(hits), (expression, found)
        assert not surely or all(hits), (expression, found)
        if len(found) == 1 and not modes and not spec:
            assert maybe >= surely  # type: ignore[operator]


@given(rows=ROWS, op=st.sampled_from(["<", "<=", ">", ">=", "="]), name=st.sampled_from("ildtc"), data=st.data())
def test_exact_where_bounds_are(rows: list[Row], op: str, name: str, data: st.DataObject) -> None:
    """With complete statistics of types without truncation and NaN, bounds decide whatever they can."""
    state = state_of([], {})
    writer, memory = writer_of(state)
    literal = data.draw(st.sampled_from([v for v in COLUMNS[name][1] if v is not None]))
    expression, test = compare(op, name, literal)
    batch = new_files(state, pa.table({n: pa.array([r[n] for r in rows], ARROW[n]) for n in NAMES}), writer=writer)
    may, must = make_filter(state.metadata, state.schema, expression).evaluate(batch, state.metadata)
    (found,) = rows_of(batch, memory)
    hits = [test(row) for row in found]
    assert must[0].as_py() == (all(hits) and bool(hits))
    if op != "=":
        assert may[0].as_py() == any(hits)


def test_unknown_counts_never_delete() -> None:
    state = table(fresh() / "t")
    writer, _ = writer_of(state)
    record = {
        "location": "/a",
        "record_count": 5,
        "file_size_in_bytes": 9,
        "lower_bounds": {"kind": "a"},
        "upper_bounds": {"kind": "c"},
    }
    batch = new_files(state, [record, {**record, "location": "/b", "null_value_counts": {"kind": 0}}], writer=writer)
    may, must = make_filter(state.metadata, state.schema, "kind < 'm'").evaluate(batch, state.metadata)
    assert may.to_pylist() == [True, True]
    assert must.to_pylist() == [False, True]
    required = {**record, "lower_bounds": {"id": 1}, "upper_bounds": {"id": 3}}
    _, must = make_filter(state.metadata, state.schema, "id < 9").evaluate(
        new_files(state, [required], writer=writer), state.metadata
    )
    assert must.to_pylist() == [True]  # a required column has no nulls to be counted


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_manifests_that_cannot_match_are_not_read(tmp_path: Path, version: int) -> None:
    options = {"flush_data_files": 0} if version == 4 else {}
    commits = Commits(sandbox(tmp_path / "t", version, spec=BY_KIND, options=options))
    for kind in "abcd":
        commits.run(append, 3, rows=10, partitions=[{"kind": kind}])
    found = select(commits.state, "kind = 'b'")
    assert (found.skipped, found.read) == (3, 1)
    assert len(found.whole) == 3
    assert not len(found.part)
    assert select(commits.state, "kind > 'd'").read == 0
    by_tuple = select(commits.state, partition={"kind": "c"})
    assert (by_tuple.skipped, by_tuple.read, len(by_tuple.whole)) == (3, 1, 3)
    every = select(commits.state)
    assert len(every.whole) == 12
    assert not check_rules(commits.state)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("idd = 1", "no column 'idd'; nearest: id"),
        ("id = = 1", "cannot be parsed at character"),
        ("id = 'abc'", "does not fit the schema"),
        (7, "give text or an expression"),
        ("", "cannot be parsed"),
    ],
)
def test_filters_that_make_no_sense(where: Any, message: str) -> None:
    state = table(fresh() / "t")
    with pytest.raises(OptionError, match=message):
        select(state, where)


@pytest.mark.parametrize("partition", [{}, {"nope": 1}, "kind=a", {"kind": 5}])
def test_partitions_that_make_no_sense(partition: Any) -> None:
    state = table(fresh() / "t", spec=BY_KIND)
    with pytest.raises(OptionError, match=r"partition|kind"):
        select(state, partition=partition)


def test_delete_where(tmp_path: Path) -> None:
    commits = Commits(sandbox(tmp_path / "t", spec=BY_KIND))
    commits.run(append, frame([(i, "ab"[i % 2], 1.0) for i in range(10)]))
    commits.run(append, frame([(i, "ab"[i % 2], 1.0) for i in range(100, 110)]))
    before = commits.written
    with pytest.raises(RuleError, match=r"2 files may have both rows that match id < 5 and .*whole-files"):
        commits.run(delete_where, "id < 5")
    with pytest.raises(OptionError, match="nothing to delete"):
        commits.run(delete_where, "id > 1000")
    assert commits.written == before
    snapshot = commits.run(delete_where, "id < 50 and kind = 'a'")
    assert snapshot.operation == "delete"
    assert len(commits.locations()) == 3
    commits.run(delete_where, partition={"kind": "b"})
    assert [e["record_count"] for e in commits.entries()] == [5]
    with pytest.raises(OptionError, match="needs a filter"):
        commits.run(delete_where)


def test_delete_where_is_made_anew_on_a_retry(tmp_path: Path) -> None:
    """Deletes by expression always apply: what another writer added meanwhile goes, too."""
    one = sandbox(tmp_path / "t", spec=BY_KIND)
    first = Commits(one)
    first.run(append, frame([(1, "a", 1.0), (2, "b", 1.0)]))
    second = Commits(one.fork())
    second.run(append, frame([(3, "a", 1.0)]))
    first.run(delete_where, "kind = 'a'")
    assert [e["record_count"] for e in first.entries()] == [1]
    assert "kind=b" in first.locations()[0]


def test_overwrite_by_filter(tmp_path: Path) -> None:
    commits = Commits(sandbox(tmp_path / "t", spec=BY_KIND))
    commits.run(append, frame([(i, "ab"[i % 2], 1.0) for i in range(10)]))
    snapshot = commits.run(overwrite, frame([(1, "a", 2.0)]), where="kind = 'a'")
    assert snapshot.operation == "overwrite"
    assert sorted(e["record_count"] for e in commits.entries()) == [1, 5]
    with pytest.raises(RuleError, match="whole-files"):
        commits.run(overwrite, frame([(1, "a", 2.0)]), where="id = 3")
    with pytest.raises(OptionError, match="not both"):
        commits.run(overwrite, where="id = 3", delete=["x"])


def test_a_filter_narrows_the_conflict(tmp_path: Path) -> None:
    one = sandbox(tmp_path / "t", spec=BY_KIND)
    first, second = Commits(one), None
    first.run(append, frame([(1, "a", 1.0), (2, "b", 1.0)]))
    second = Commits(one.fork())
    second.run(append, frame([(3, "b", 1.0)]))
    first.run(overwrite, frame([(9, "a", 9.0)]), where="kind = 'a'")  # the other's rows are of kind b
    assert len(first.locations()) == 3


def test_deletes_of_v1_by_filter_are_whole_files(tmp_path: Path) -> None:
    commits = Commits(sandbox(tmp_path / "t", 1))
    commits.run(append, frame([(1, "a", 1.0)]))
    with pytest.raises(RuleError, match="deletes-need-v2"):
        commits.run(row_delta, deletes={commits.locations()[0]: [0]})
    commits.run(delete_where, "true")
    assert commits.locations() == []
