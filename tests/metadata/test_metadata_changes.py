"""Changes between schemas, specs and properties."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from iceexplore.metadata import (
    NestedField,
    PrimitiveType,
    Schema,
    StructType,
    is_promotion,
    parse_spec,
    parse_type,
    properties_changes,
    schema_changes,
    spec_changes,
)

INT, LONG, STRING = PrimitiveType("int"), PrimitiveType("long"), PrimitiveType("string")


def schema(*fields: NestedField, keys: tuple[int, ...] = ()) -> Schema:
    return Schema(0, fields, keys)


def changes_of(old: Schema, new: Schema) -> list[tuple[str, str]]:
    return [(c.kind, c.text) for c in schema_changes(old, new)]


A, B, C, D = (NestedField(i, n, STRING) for i, n in ((1, "a"), (2, "b"), (3, "c"), (4, "d")))


def test_equal_schemas_have_no_changes() -> None:
    assert changes_of(schema(A, B), Schema(7, (A, B))) == []


def test_added_dropped_renamed() -> None:
    new = schema(NestedField(1, "alpha", STRING), NestedField(5, "b", LONG, required=True))
    assert changes_of(schema(A, B), new) == [
        ("renamed", "a renamed to alpha"),
        ("added", "b added, long, required"),
        ("dropped", "b dropped, was string"),
    ]


def test_names_swapped_are_two_renames() -> None:
    assert changes_of(schema(A, B), schema(NestedField(1, "b", STRING), NestedField(2, "a", STRING))) == [
        ("renamed", "a renamed to b"),
        ("renamed", "b renamed to a"),
    ]


def test_retyped_required_doc_default_identifier() -> None:
    old = schema(NestedField(1, "a", INT), keys=())
    new = schema(NestedField(1, "a", LONG, True, "why", 1, 2), keys=(1,))
    assert changes_of(old, new) == [
        ("retyped", "a promoted from int to long"),
        ("required", "a became required"),
        ("doc", "a documented: 'why'"),
        ("default", "initial default of a changed from None to 1"),
        ("default", "write default of a changed from None to 2"),
        ("identifier", "a became an identifier field"),
    ]
    assert changes_of(new, old)[:3] == [
        ("retyped", "a changed (not a promotion that the spec allows) from long to int"),
        ("optional", "a became optional"),
        ("doc", "a lost its doc"),
    ]


def test_one_moved_field_is_one_move() -> None:
    assert changes_of(schema(A, B, C, D), schema(D, A, B, C)) == [("moved", "d moved from after c to first")]
    assert changes_of(schema(A, B, C, D), schema(B, C, A, D)) == [("moved", "a moved from first to after c")]
    # a dropped or an added neighbour moves nothing
    assert [k for k, _ in changes_of(schema(A, B, C), schema(B, C, D))] == ["added", "dropped"]


def struct(*fields: NestedField) -> StructType:
    return StructType(fields)


def test_nested_fields() -> None:
    old = schema(NestedField(9, "p", struct(NestedField(1, "x", INT), NestedField(2, "y", INT))))
    new = schema(
        NestedField(9, "q", struct(NestedField(2, "y", LONG), NestedField(1, "x", INT), NestedField(3, "z", INT)))
    )
    assert changes_of(old, new) == [
        ("renamed", "p renamed to q"),
        ("retyped", "q.y promoted from int to long"),
        ("moved", "q.y moved from after x to first"),
        ("added", "q.z added, int"),
    ]


def test_an_added_struct_is_reported_once() -> None:
    point = parse_type({"type": "list", "element-id": 11, "element-required": False, "element": {
        "type": "struct", "fields": [{"id": 12, "name": "x", "required": False, "type": "int"}]}})  # fmt: skip
    wide = schema(A, NestedField(10, "points", point))
    assert changes_of(schema(A), wide) == [("added", "points added, list<struct<x: int>>")]
    assert changes_of(wide, schema(A)) == [("dropped", "points dropped, was list<struct<x: int>>")]


def test_a_field_under_another_parent_has_moved() -> None:
    inner = NestedField(1, "x", INT)
    old = schema(inner, NestedField(2, "p", struct()))
    new = schema(NestedField(2, "p", struct(inner)))
    assert changes_of(old, new) == [("moved", "p.x moved from the top level to inside p")]


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        ("int", "long", True), ("float", "double", True), ("decimal(9,2)", "decimal(10,2)", True),
        ("date", "timestamp", True), ("date", "timestamp_ns", True), ("unknown", "string", True),
        ("long", "int", False), ("decimal(9,2)", "decimal(10,3)", False), ("decimal(9,2)", "decimal(8,2)", False),
        ("date", "timestamptz", False), ("int", "double", False), ("string", "binary", False),
    ],
)  # fmt: skip
def test_promotions_of_the_spec(old: str, new: str, allowed: bool) -> None:
    assert is_promotion(PrimitiveType(old), PrimitiveType(new)) is allowed


IDS = st.lists(st.integers(1, 8), unique=True, max_size=8)


@given(IDS, IDS)
def test_moves_explain_the_order(before: list[int], after: list[int]) -> None:
    """Without the moved, added and dropped fields both schemas have the same order; no reported move is needless."""
    old, new = (schema(*(NestedField(i, f"f{i}", INT) for i in ids)) for ids in (before, after))
    changes = schema_changes(old, new)
    by_kind = {kind: {c.field_id for c in changes if c.kind == kind} for kind in ("added", "dropped", "moved")}
    assert by_kind["added"] == set(after) - set(before)
    assert by_kind["dropped"] == set(before) - set(after)
    gone = by_kind["moved"]
    common = set(before) & set(after)
    assert [i for i in before if i in common - gone] == [i for i in after if i in common - gone]
    # putting any one moved field back breaks the order
    for i in gone:
        kept = (common - gone) | {i}
        assert [j for j in before if j in kept] != [j for j in after if j in kept]
    assert len(changes) == len(gone) + len(by_kind["added"]) + len(by_kind["dropped"])


def part(field_id: int, name: str, transform: str, source: int = 1) -> dict[str, object]:
    return {"source-id": source, "field-id": field_id, "name": name, "transform": transform}


def test_spec_changes() -> None:
    names = schema(NestedField(1, "ts", STRING), NestedField(2, "id", LONG))
    old = parse_spec([part(1000, "ts_day", "day"), part(1001, "b", "bucket[4]", 2), part(1002, "i", "identity", 2)])
    new = parse_spec([part(1003, "ts_hour", "hour"), part(1001, "b4", "bucket[4]", 2), part(1002, "i", "void", 2)])
    assert [(c.kind, c.text) for c in spec_changes(old, new, names)] == [
        ("added", "partition field ts_hour added: hours(ts)"),
        ("renamed", "partition field b renamed to b4"),
        ("dropped", "partition field ts_day dropped: days(ts)"),
        ("dropped", "partition field i dropped: id"),
    ]
    assert spec_changes(old, old) == []
    reused = parse_spec([part(1000, "b", "bucket[4]", 2)])
    assert [c.kind for c in spec_changes(parse_spec([part(1000, "d", "day")]), reused)] == ["added", "dropped"]
    turned = parse_spec([part(1001, "b", "bucket[4]", 2), part(1000, "d", "day")])
    straight = parse_spec([part(1000, "d", "day"), part(1001, "b", "bucket[4]", 2)])
    assert [c.text for c in spec_changes(straight, turned)] == ["partition fields reordered: b, d"]


def test_properties_changes() -> None:
    found = properties_changes({"a": "1", "b": "2", "c": "3"}, {"b": "2", "c": "4", "d": "5"})
    assert [(c.kind, c.text) for c in found] == [
        ("removed", "a removed, was 1"),
        ("changed", "c changed from 3 to 4"),
        ("added", "d set to 5"),
    ]
