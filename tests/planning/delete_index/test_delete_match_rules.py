"""Delete matching against the spec's rules applied pair by pair, on made-up entries."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.deletes import FILE_PATH_ID
from iceexplore.planning import make_filter
from tests.planning.delete_index.delete_table import (
    COLUMNS,
    EQUALITY,
    POSITION,
    SPECS,
    Entry,
    Stats,
    by_file,
    matched,
    naive,
    same_value,
    scoped,
    state,
)

NAN = float("nan")
SEQUENCES = st.one_of(st.none(), st.integers(0, 4))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "1000": st.sampled_from([None, "", "a", "b"]),
    "1001": st.sampled_from([None, NAN, -0.0, 0.0, 1.5]),
    "1002": st.none(),
    "1003": st.sampled_from([None, 1, 2]),
}


@st.composite
def places(draw: st.DrawFn) -> dict[str, Any]:
    spec = draw(st.sampled_from(sorted(SPECS)))
    return {"spec": spec, "place": {k: draw(VALUES[k]) for k in SPECS[spec]}, "sequence": draw(SEQUENCES)}


@st.composite
def statistics(draw: st.DrawFn) -> Stats:
    low, high = sorted([draw(st.integers(0, 6)), draw(st.integers(0, 6))])
    nulls = draw(st.sampled_from([None, 0, 0, 3, 10]))
    bounds = (None, None) if nulls == 10 else (draw(st.sampled_from([low, None])), draw(st.sampled_from([high, None])))
    return Stats(*bounds, values=draw(st.sampled_from([10, None])), nulls=nulls)


@st.composite
def data_files(draw: st.DrawFn) -> list[Entry]:
    count = draw(st.integers(1, 7))
    return [
        Entry(location=f"/t/{name}", **draw(places()), stats={1: draw(statistics())} if draw(st.booleans()) else {})
        for name in "abcdefg"[:count]
    ]


@st.composite
def delete_entries(draw: st.DrawFn) -> list[Entry]:
    out = []
    for i in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(["vector", "named", "bounds", "open", "equality", "equality"]))
        entry = Entry(EQUALITY if kind == "equality" else POSITION, f"/d/{i}", **draw(places()))
        names = st.sampled_from([f"/t/{c}" for c in "abcdefgz"])
        if kind == "equality":
            entry.ids, entry.stats = (1,), {1: draw(statistics())} if draw(st.booleans()) else {}
        elif kind == "bounds":
            low, high = sorted([draw(names), draw(names)])
            entry.stats = {FILE_PATH_ID: Stats(low.encode(), high.encode())}
            if low == high:
                entry.referenced = low
        elif kind != "open":
            entry.referenced, entry.vector = draw(names), kind == "vector"
        out.append(entry)
    return out


@given(data_files(), delete_entries())
def test_each_pair_is_as_the_spec_says(files: list[Entry], deletes: list[Entry]) -> None:
    assert by_file(matched(files, deletes)) == naive(files, deletes)


@given(data_files(), delete_entries(), st.integers(1, 4))
def test_many_pairs_come_out_as_few_do(files: list[Entry], deletes: list[Entry], most: int) -> None:
    """Limits on how many pairs are looked at once change nothing but that bounds may not be compared."""
    from iceexplore.planning.delete_index import _scope_join as _delete_join

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_delete_join, "_AT_ONCE", most)
        assert by_file(matched(files, deletes)) == naive(files, deletes)
        patch.setattr(_delete_join, "MOST_PAIRS", most)
        for found, wanted, file in zip(by_file(matched(files, deletes)), naive(files, deletes), files, strict=True):
            assert found[0] == wanted[0]
            assert wanted[1] <= found[1] or found[0]
            assert wanted[2] <= found[2]
            assert found[1] | found[2] <= {d.location for d in deletes if scoped(file, d)}


# Rows: nothing that is equal is ever missed ---------------------------------------------------------------------------

ROWS = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2, 3, 9]),
        st.sampled_from([None, "", "a", "ab", "b", "x" * 20, "x" * 16 + "y", "x" * 16 + "\U0010ffff"]),
        st.sampled_from([None, NAN, -0.0, 0.0, 2.5]),
    ),
    max_size=4,
)


def stats_of(rows: list[tuple[Any, ...]], column: int, how: str, kept: frozenset[str]) -> Stats:
    """Statistics as a writer makes them: ``how`` says what it does with text, `kept` what it leaves out."""
    values = [r[column - 1] for r in rows]
    there = [v for v in values if v is not None and v == v]
    low, high = (min(there), max(there)) if there else (None, None)
    if isinstance(low, str) and isinstance(high, str):
        if how != "whole":
            low = low[:16]
        if how == "cut":
            high = high[:16]
        elif how == "counted up" and len(high) > 16:
            last = ord(high[15])
            high = high[:15] + chr(last + 1)
        elif how == "cut short":
            high = high[:1]
    if how == "nan bounds" and column == 3 and any(v != v for v in values if v is not None):
        low = high = NAN
    made = Stats(low, high, len(values), values.count(None), sum(v is not None and v != v for v in values))
    for name in ("lower", "upper", "values", "nulls", "nans"):
        if name not in kept:
            setattr(made, name, None)
    return made


HOW = st.sampled_from(["whole", "cut", "counted up", "cut short", "nan bounds"])
KEPT = st.one_of(
    st.just(frozenset(("lower", "upper", "values", "nulls", "nans"))),
    st.frozensets(st.sampled_from(["lower", "upper", "values", "nulls", "nans"])),
)


@st.composite
def with_rows(draw: st.DrawFn, kind: int, name: str) -> Entry:
    rows = draw(ROWS)
    ids = tuple(draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=3, unique=True)))
    stats = {c: stats_of(rows, c, draw(HOW), draw(KEPT)) for c in COLUMNS if draw(st.integers(0, 3))}
    return Entry(kind, name, draw(st.integers(1, 3)), ids=ids if kind else (), stats=stats, rows=rows, count=len(rows))


def equal(a: Any, b: Any) -> bool:
    return a is b or a == b or (isinstance(a, float) and isinstance(b, float) and same_value(a, b))


def deletes_row(row: tuple[Any, ...], delete: Entry) -> bool:
    return any(all(equal(row[c - 1], gone[c - 1]) for c in delete.ids) for gone in delete.rows)


FILTERS: dict[str, Callable[[Any, Any, Any], bool]] = {
    "id = 9": lambda i, n, x: i == 9,
    "id is null": lambda i, n, x: i is None,
    "id > 1 and name = 'a'": lambda i, n, x: i is not None and i > 1 and n == "a",
    "id < 2 or x > 1": lambda i, n, x: (i is not None and i < 2) or (x is not None and x > 1),
    "name like 'xx%'": lambda i, n, x: n is not None and n.startswith("xx"),
    "name in ('', 'b')": lambda i, n, x: n in ("", "b"),
    "x is null or id != 3": lambda i, n, x: x is None or (i is not None and i != 3),
    "name > 'xxxxxxxxxxxxxxxxx'": lambda i, n, x: n is not None and n > "x" * 17,
}


@given(st.lists(with_rows(0, "/t/a"), min_size=1, max_size=3), st.data(), st.sampled_from([None, *FILTERS]))
def test_no_delete_of_an_equal_row_is_left_out(files: list[Entry], data: st.DataObject, where: str | None) -> None:
    deletes = [data.draw(with_rows(EQUALITY, f"/d/{i}")) for i in range(data.draw(st.integers(1, 4)))]
    here = state()
    wanted = None if where is None else make_filter(here.metadata, here.schema, where)
    selects = (lambda i, n, x: True) if where is None else FILTERS[where]
    for file, (_, _, found) in zip(files, by_file(matched(files, deletes, filter=wanted, of=here)), strict=True):
        for delete in deletes:
            if scoped(file, delete) and any(selects(*row) and deletes_row(row, delete) for row in file.rows):
                assert delete.location in found, (file, delete)
            if not scoped(file, delete):
                assert delete.location not in found


def test_not_a_number_may_be_deleted_whatever_the_bounds_are() -> None:
    ours = Stats(0.0, 1.0, 10, 0, 2)
    theirs = Stats(5.0, 6.0, 10, 0, 1)
    assert by_file(matched([Entry(stats={3: ours})], [Entry(EQUALITY, "/d", 2, ids=(3,), stats={3: theirs})]))[0][2]
    theirs.nans = 0
    assert not by_file(matched([Entry(stats={3: ours})], [Entry(EQUALITY, "/d", 2, ids=(3,), stats={3: theirs})]))[0][2]
    assert math.isnan(NAN)


@pytest.mark.parametrize(
    ("ours", "theirs", "applies"),
    [
        (Stats("a", "c", 9, 0), Stats("d", "e", 9, 0), False),
        (Stats("a", "c", 9, 0), Stats("cc", "e", 9, 0), True),  # "c" may have been cut
        (Stats("a", "x" * 16, 9, 0), Stats("y", "z", 9, 0), True),  # so may x…x, which proves nothing
        (Stats("a", "x" * 16, 9, 0, tight=True), Stats("y", "z", 9, 0), False),
        (Stats("a", "c", 9, 0, tight=False), Stats("d", "e", 9, 0), True),
        (Stats("c", "a", 9, 0), Stats("x", "y", 9, 0), True),  # the wrong way round
        (Stats(None, "c", 9, 0), Stats("d", "e", 9, 0), True),
        (Stats("a", None, 9, 0), Stats("d", "e", 9, 0), True),
        (Stats(None, None, 9, 9), Stats("d", "e", 9, 0), False),
        (Stats("a", "c", 9, 0), Stats(None, None, 9, 9), False),
        (Stats("a", "c", 9, 1), Stats("d", "e", 9, 1), True),
        (Stats("a", "c", 9, 1), Stats("d", "e", 9, None), True),
    ],
)
def test_bounds_of_text(ours: Stats, theirs: Stats, applies: bool) -> None:
    file, delete = Entry(stats={2: ours}), Entry(EQUALITY, "/d", 2, ids=(2,), stats={2: theirs})
    assert bool(by_file(matched([file], [delete]))[0][2]) is applies


def test_the_length_that_a_table_cuts_to_is_known() -> None:
    file = Entry(stats={2: Stats("a", "bbbb", 9, 0)})
    delete = Entry(EQUALITY, "/d", 2, ids=(2,), stats={2: Stats("d", "e", 9, 0)})
    assert not by_file(matched([file], [delete]))[0][2]
    for key in ("default", "column.name"):
        cut = state(properties={f"write.metadata.metrics.{key}": "truncate(4)"})
        assert by_file(matched([file], [delete], of=cut))[0][2]


def test_columns_besides_the_equality_columns_say_nothing() -> None:
    file = Entry(stats={1: Stats(1, 10, 9, 0), 2: Stats("a", "c", 9, 0)})
    delete = Entry(EQUALITY, "/d", 2, ids=(1,), stats={1: Stats(3, 4, 2, 0), 2: Stats("x", "y", 2, 0)})
    here = state()
    for where, applies in (("name = 'a'", True), ("id = 3", True), ("id = 9", False)):
        wanted = make_filter(here.metadata, here.schema, where)
        assert bool(by_file(matched([file], [delete], filter=wanted, of=here))[0][2]) is applies


def test_a_required_column_has_no_nulls_to_share() -> None:
    file = Entry(stats={1: Stats(1, 4, 9, None)})
    delete = Entry(EQUALITY, "/d", 2, ids=(1,), stats={1: Stats(5, 9, 9, None)})
    assert by_file(matched([file], [delete]))[0][2]
    assert not by_file(matched([file], [delete], of=state(required=True)))[0][2]


@pytest.mark.parametrize("since", [0, 1])
def test_a_column_that_is_required_later_is_null_in_older_files(since: int) -> None:
    files = [Entry(), Entry(location="/t/b", stats={1: Stats(1, 4, 9, 0)})]
    delete = Entry(EQUALITY, "/d", 2, ids=(1,), stats={1: Stats(None, None, 2, 2)})
    found = by_file(matched(files, [delete], of=state(required=True, since=since)))
    assert bool(found[0][2]) is (since > 0)
    assert not found[1][2]


# One data file -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "applies"),
    [
        ("/t/a", "/t/c", True),
        ("/t/c", "/t/d", False),
        ("/t/", "/t/", True),  # a path cut off, which names no file
        ("/t/b", "/t/b", True),
        ("file:/t/a", "file:/t/c", True),
        ("file:/t/c", "file:/t/d", False),
        ("hdfs://host:8020/t/c", "hdfs://host:8020/t/d", False),
        ("hdfs://host:8020/t/a", "s3://bucket/t/b", True),  # no order of both
        ("hdfs://localhost", "hdfs://localhosu", True),  # cut off before the path begins
        ("/t//c", "/t/d", True),
        ("/t/d", "/t/c", True),
    ],
)
def test_bounds_of_paths(low: str, high: str, applies: bool) -> None:
    file = Entry(location="/t/b")
    delete = Entry(POSITION, "/d", 1, stats={FILE_PATH_ID: Stats(low.encode(), high.encode())})
    assert bool(by_file(matched([file], [delete]))[0][1]) is applies


def test_bounds_that_are_no_text_exclude_nothing() -> None:
    delete = Entry(POSITION, "/d", 1, stats={FILE_PATH_ID: Stats(b"\xff\xfe", b"\xff\xfe")})
    assert by_file(matched([Entry()], [delete]))[0][1] == {"/d"}


@pytest.mark.parametrize("named", ["file:/t/a", "file:///t/a", "file://localhost/t/a", "/t/./a", "/t//a"])
def test_a_place_may_be_spelled_in_many_ways(named: str) -> None:
    here = state()
    vector = Entry(POSITION, "/d", 1, referenced=named, vector=True)
    found = by_file(matched([Entry(), Entry(location="/t/b")], [vector], of=here))
    assert found == [("/d", set(), set()), (None, set(), set())]
    assert not here.problems


def test_another_scheme_or_host_applies_and_is_reported() -> None:
    here = state()
    deletes = [
        Entry(POSITION, "/d/v", 1, referenced="hdfs://localhost:20500/t/a", vector=True),
        Entry(POSITION, "/d/p", 1, referenced="s3://bucket/t/b"),
        Entry(POSITION, "/d/q", 1, referenced="s3://bucket/t/a/b"),
    ]
    found = by_file(matched([Entry(), Entry(location="/t/b")], deletes, of=here))
    assert found == [("/d/v", set(), set()), (None, {"/d/p"}, set())]
    assert sorted((p.code, p.where, p.found) for p in here.problems) == [
        ("delete-path", "/d/p", "s3://bucket/t/b"),
        ("delete-path", "/d/v", "hdfs://localhost:20500/t/a"),
    ]


def test_of_several_vectors_the_newest_counts() -> None:
    here = state()
    deletes = [Entry(POSITION, f"/d/{n}", n, referenced="/t/a", vector=True) for n in (2, 4, 3)]
    assert by_file(matched([Entry()], deletes, of=here)) == [("/d/4", set(), set())]
    assert [(p.code, p.severity) for p in here.problems] == [("delete-scope", "error")] * 2


def test_deletes_that_cannot_apply_to_what_they_name_are_reported() -> None:
    here = state()
    deletes = [
        Entry(POSITION, "/d/1", 1, referenced="/t/a", vector=True),
        Entry(POSITION, "/d/2", 9, 4, {"1000": "b"}, referenced="/t/a"),
        Entry(POSITION, "/d/3", 9, vector=True),
    ]
    assert by_file(matched([Entry(sequence=5)], deletes, of=here)) == [(None, set(), set())]
    texts = {p.where: p.text for p in here.problems}
    assert "the delete's sequence number 1 is below that of the data file, 5" in texts["/d/1"]
    assert "the delete and the data file are in different partitions" in texts["/d/2"]
    assert "references no data file" in texts["/d/3"]


def test_a_filter_rules_out_no_delete_by_a_bound_that_was_cut_short() -> None:
    """The upper bound of 'xxx' is 'x': cut, not counted up, and at a length that no writer is known for."""
    here = state()
    deletes = [Entry(EQUALITY, "/d/0", 2, ids=(2,), count=1, stats={2: Stats("x" * 16, "x", 1, 0, 0)})]
    for where, expected in (("name like 'xx%'", {"/d/0"}), ("name like 'y%'", set())):
        wanted = make_filter(here.metadata, here.schema, where)
        found = by_file(matched([Entry(0, "/t/a", 1)], deletes, filter=wanted, of=here))
        assert found[0][2] == expected
