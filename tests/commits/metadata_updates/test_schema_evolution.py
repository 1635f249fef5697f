"""Schema evolution: PyIceberg's UpdateSchema on random changes, and each rule of the spec by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, target
from hypothesis import strategies as st

from iceexplore.commits import RULES, evolve_schema, evolve_spec, set_properties, set_sort_order, upgrade
from iceexplore.errors import FormatError, OptionError, RuleError
from iceexplore.metadata import PrimitiveType, Schema, StructType, schema_at, type_to_json
from tests.commits.metadata_updates.document_table import (
    checked,
    committed,
    metadata_of,
    old_v1,
    pure,
    pyiceberg_of,
    table,
)

Json = dict[str, Any]


def refused(rule: str) -> Any:
    assert rule in RULES
    return pytest.raises(RuleError, match=rf"\[rule {rule}\]")


def current(document: Json) -> Schema:
    return metadata_of(document).schema()


def shape(document: Json) -> list[str]:
    """The current schema, a line for each field."""
    kinds = {f.field_id: getattr(f.type, "name", type(f.type).__name__) for _, f in current(document).walk()}
    return [f"{f.field_id} {n} {kinds[f.field_id]}{' required' * f.required}" for n, f in current(document).walk()]


NESTED: Json = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "int"},
        {"id": 2, "name": "ts", "required": False, "type": "date"},
        {"id": 3, "name": "p", "required": True, "type": {"type": "struct", "fields": [
            {"id": 4, "name": "x", "required": True, "type": "float"},
            {"id": 5, "name": "y", "required": False, "type": "decimal(9, 2)"},
        ]}},
        {"id": 6, "name": "l", "required": False, "type": {
            "type": "list", "element-id": 7, "element-required": False, "element": {"type": "struct", "fields": [
                {"id": 8, "name": "a", "required": False, "type": "int"},
            ]}}},
        {"id": 9, "name": "m", "required": False, "type": {
            "type": "map", "key-id": 10, "key": {"type": "struct", "fields": [
                {"id": 12, "name": "k", "required": False, "type": "int"},
            ]}, "value-id": 11, "value-required": True, "value": {"type": "struct", "fields": [
                {"id": 13, "name": "v", "required": False, "type": "string"},
            ]}}},
        {"id": 14, "name": "n", "required": False, "type": {
            "type": "list", "element-id": 15, "element-required": True, "element": "int"}},
    ],
}  # fmt: skip


def nested(version: int = 2, **more: Any) -> Json:
    return table(version, spec=(), schema=NESTED, **more)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_schema_evolves(version: int) -> None:
    document = nested(version)
    after = checked(
        pure(
            evolve_schema,
            document,
            add={"note": "string", "p.z": "list<struct<q: int>>", "l.b": "map<string, bigint>", "m.w": "int"},
            drop=["ts"],
            rename={"id": "key", "p.x": "left"},
            update={"id": "long", "p.x": "double", "p.y": "decimal(12,2)", "n.element": "long"},
            move={"note": "first", "p.z": "after x", "l": "before id"},
            make_optional=["p", "n.element"],
            doc={"key" if version == 0 else "id": "the key"},
        )
    )
    assert shape(after) == [
        "16 note string",
        "6 l ListType",
        "7 l.element StructType",
        "8 l.element.a int",
        "20 l.element.b MapType",
        "21 l.element.b.key string required",
        "22 l.element.b.value long",
        "1 key long required",
        "3 p StructType",
        "4 p.left double required",
        "17 p.z ListType",
        "18 p.z.element StructType",
        "19 p.z.element.q int",
        "5 p.y decimal(12,2)",
        "9 m MapType",
        "10 m.key StructType required",
        "12 m.key.k int",
        "11 m.value StructType required",
        "13 m.value.v string",
        "23 m.value.w int",
        "14 n ListType",
        "15 n.element long",
    ]
    assert (after["last-column-id"], after["current-schema-id"], len(after["schemas"])) == (23, 1, 2)
    assert after["schemas"][0] is document["schemas"][0]
    if version == 1:
        assert after["schema"] is after["schemas"][1]


def test_an_equal_schema_keeps_its_id() -> None:
    document = nested()
    once = evolve_schema(document, rename={"id": "key"})
    back = checked(evolve_schema(once, rename={"key": "id"}))
    assert (back["current-schema-id"], len(back["schemas"])) == (0, 2)
    assert evolve_schema(document) == document
    again = evolve_schema(back, doc={"id": "now documented"})
    assert again["current-schema-id"] == 2
    # A dropped column does not come back under its name: new id, new schema.
    fresh = evolve_schema(evolve_schema(document, drop=["ts"]), add={"ts": "date"})
    assert current(fresh).fields[-1].field_id == 16


def test_dropped_and_added_at_once() -> None:
    after = checked(evolve_schema(nested(), drop=["ts"], add={"ts": "string"}, doc={"ts": "new"}, move={"ts": "first"}))
    assert shape(after)[0] == "16 ts string"
    assert current(after).fields[0].doc == "new"


def test_what_nobody_knows_stays() -> None:
    document = nested()
    schema = json.loads(json.dumps(document["schemas"][0])) | {"x-top": 1}
    schema["fields"][0]["x-field"] = {"fields": [1]}
    schema["fields"][2]["type"]["x-struct"] = 2
    schema["fields"][3]["type"]["x-list"] = 3
    document = {**document, "schemas": [schema]}
    made = evolve_schema(document, add={"note": "int"}, rename={"p": "q"})["schemas"][1]
    assert (made["x-top"], made["fields"][0]["x-field"]) == (1, {"fields": [1]})
    assert (made["fields"][2]["type"]["x-struct"], made["fields"][3]["type"]["x-list"]) == (2, 3)
    assert json.dumps(made).count("x-") == 4


def test_old_v1_documents_evolve() -> None:
    after = checked(pure(evolve_schema, old_v1(), add={"n": "int"}))
    assert [s["schema-id"] for s in after["schemas"]] == [0, 1]
    assert after["schema"] == after["schemas"][1]
    assert "schema-id" not in old_v1()["schema"]
    assert schema_at(metadata_of(committed(after, 1)), None).schema_id == 1


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("schema-names", {"rename": {"nobody": "x"}}),
        ("schema-names", {"rename": {"id": "ts"}}),
        ("schema-names", {"rename": {"id": ""}}),
        ("schema-names", {"rename": {"p.x": "y"}}),
        ("schema-names", {"add": {"id": "int"}}),
        ("schema-names", {"add": {"l.a": "int"}}),
        ("schema-names", {"add": {"l.element.a": "int"}}),
        ("schema-names", {"add": {"nobody.x": "int"}}),
        ("schema-names", {"add": {"q": "struct<a: int>", "q.b": "int"}}),
        ("schema-names", {"add": {"p.": "int"}}),
        ("schema-names", {"add": {"q": "struct<a: int, a: int>"}}),
        ("schema-struct", {"add": {"id.x": "int"}}),
        ("schema-struct", {"add": {"n.x": "int"}}),
        ("schema-struct", {"drop": ["l.element"]}),
        ("schema-struct", {"rename": {"m.value": "w"}}),
        ("schema-struct", {"move": {"l.element": "first"}}),
        ("schema-struct", {"move": {"p.x": "after id"}}),
        ("schema-struct", {"move": {"id": "after id"}}),
        ("schema-struct", {"move": {"id": "last"}}),
        ("schema-map-key", {"drop": ["m.key"]}),
        ("schema-map-key", {"add": {"m.key.x": "int"}}),
        ("schema-map-key", {"update": {"m.key.k": "long"}}),
        ("schema-map-key", {"rename": {"m.key.k": "z"}}),
        ("schema-map-key", {"doc": {"m.key.k": "z"}}),
        ("schema-conflict", {"drop": ["id"], "rename": {"id": "x"}}),
        ("schema-conflict", {"drop": ["p"], "update": {"p.x": "double"}}),
        ("schema-conflict", {"drop": ["p"], "add": {"p.z": "int"}}),
        ("schema-conflict", {"drop": ["p"], "move": {"p.x": "first"}}),
        ("type-promotion", {"update": {"id": "int"}} | {"update": {"id": "string"}}),
        ("type-promotion", {"update": {"p.x": "float"}} | {"update": {"p.x": "long"}}),
        ("type-promotion", {"update": {"p.y": "decimal(8,2)"}}),
        ("type-promotion", {"update": {"p.y": "decimal(12,3)"}}),
        ("type-promotion", {"update": {"ts": "timestamp"}}),
        ("type-promotion", {"update": {"p": "int"}}),
        ("type-promotion", {"update": {"id": "struct<a: int>"}}),
        ("required-columns", {"require": ["ts"]}),
        ("required-columns", {"add": {"q": "int"}, "require": ["q"]}),
        ("default-values", {"add": {"q": "int"}, "initial_default": {"q": 4}}),
        ("default-values", {"write_default": {"id": 4}}),
        ("types-of-version", {"add": {"q": "variant"}}),
        ("types-of-version", {"add": {"q": "list<timestamp_ns>"}}),
        ("identifier-fields", {"identifier": ["ts"]}),
        ("identifier-fields", {"identifier": ["p.x"]}),
        ("identifier-fields", {"identifier": ["p"]}),
        ("identifier-fields", {"identifier": ["nobody"]}),
        ("identifier-fields", {"identifier": ["n.element"]}),
        ("identifier-fields", {"identifier": ["id"], "make_optional": ["id"]}),
    ],
)
def test_refusals(rule: str, change: Json) -> None:
    with refused(rule):
        pure(evolve_schema, nested(), **change)


def test_what_is_refused_below_v3_and_allowed_then() -> None:
    document = nested(3)
    after = checked(evolve_schema(document, add={"q": "int"}, require=["q"], initial_default={"q": 4}))
    field = current(after).fields[-1]
    assert (field.required, field.initial_default, field.write_default) == (True, 4, 4)
    later = checked(evolve_schema(after, write_default={"q": 5}))
    assert (current(later).fields[-1].initial_default, current(later).fields[-1].write_default) == (4, 5)
    both = checked(
        evolve_schema(document, add={"q": "date"}, initial_default={"q": "2024-02-29"}, write_default={"q": None})
    )
    assert [current(both).fields[-1].initial_default.isoformat(), current(both).fields[-1].write_default] == [
        "2024-02-29",
        None,
    ]
    promoted = checked(evolve_schema(both, update={"q": "timestamp", "ts": "timestamp_ns"}))
    assert current(promoted).fields[-1].initial_default.isoformat() == "2024-02-29T00:00:00"
    assert str(current(promoted).fields[1].type) == "timestamp_ns"
    variants = evolve_schema(document, add={"v": "variant", "u": "unknown"})
    assert str(current(evolve_schema(variants, update={"u": "list<int>"})).fields[-1].type) == "list<int>"
    without: list[Json] = [
        {"add": {"q": "int"}, "require": ["q"], "initial_default": {"q": 4}, "write_default": {"q": None}},
        {"add": {"q": "int"}, "require": ["q"], "write_default": {"q": 4}},
    ]
    for wrong in without:
        with refused("required-columns"):
            evolve_schema(document, **wrong)
    misfits: list[Json] = [
        {"initial_default": {"id": 3}},
        {"add": {"q": "int"}, "initial_default": {"q": "x"}},
        {"add": {"q": "int"}, "initial_default": {"q": 2**31}},
        {"add": {"q": "variant"}, "initial_default": {"q": 1}},
        {"add": {"q": "struct<a: int>"}, "initial_default": {"q": {"17": 1}}},
    ]
    for wrong in misfits:
        with refused("default-values"):
            evolve_schema(document, **wrong)
    with refused("type-promotion"):
        evolve_schema(document, update={"ts": "timestamptz"})
    empty = evolve_schema(document, add={"q": "struct<a: int>"}, initial_default={"q": {}})
    assert current(empty).fields[-1].initial_default == {}  # PyIceberg reads no defaults of structs


@pytest.mark.parametrize(
    ("term", "good"), [("day(ts)", True), ("month(ts)", True), ("ts", False), ("bucket(4, ts)", False)]
)
def test_dates_that_partitions_are_made_from(term: str, good: bool) -> None:
    document = evolve_spec(nested(3), add=[term])
    if good:
        checked(evolve_schema(document, update={"ts": "timestamp"}))
    # Files of an earlier spec keep their partition values.
    for partitioned in (document, evolve_spec(document, remove=[term])):
        if not good:
            with refused("type-promotion"):
                evolve_schema(partitioned, update={"ts": "timestamp"})


def test_columns_that_the_spec_and_the_sort_order_need() -> None:
    document = evolve_spec(nested(2), add=["bucket(4, p.y)"])
    for drop in ("p.y", "p"):
        with refused("partition-source"):
            evolve_schema(document, drop=[drop])
    free = evolve_spec(document, remove=["bucket(4, p.y)"])
    checked(evolve_schema(free, drop=["p"]))
    v1 = evolve_spec(evolve_spec(nested(1), add=["p.y"]), remove=["p.y"])
    dropped = evolve_schema(v1, drop=["p.y"])  # a void field has no need of its source
    assert metadata_of(dropped).schema().find(5) is None
    with refused("partition-names"):
        evolve_schema(evolve_spec(document, add=["day(ts)"]), add={"ts_day": "date"})
    ordered = set_sort_order(nested(2), fields=["ts desc"])
    with refused("sort-source"):
        evolve_schema(ordered, drop=["ts"])
    checked(evolve_schema(set_sort_order(ordered, fields=[]), drop=["ts"]))


def test_identifier_fields() -> None:
    document = checked(evolve_schema(nested(), identifier=["id"]))
    assert current(document).identifier_field_ids == (1,)
    renamed = checked(evolve_schema(document, rename={"id": "key"}))
    assert current(renamed).identifier_field_ids == (1,)
    with refused("identifier-fields"):
        evolve_schema(document, drop=["id"])
    assert current(checked(evolve_schema(document, drop=["id"], identifier=[]))).identifier_field_ids == ()
    with_string = nested(3)
    added: Json = {"add": {"s": "string"}, "require": ["s"], "initial_default": {"s": ""}}
    assert current(checked(evolve_schema(with_string, identifier=["s", "id"], **added))).identifier_field_ids == (1, 16)


def test_case() -> None:
    document = nested()
    with refused("schema-names"):
        evolve_schema(document, rename={"ID": "key"})
    assert current(evolve_schema(document, rename={"ID": "key"}, case_sensitive=False)).fields[0].name == "key"
    checked(evolve_schema(document, add={"ID": "int"}))
    with refused("schema-names"):
        evolve_schema(document, add={"ID": "int"}, case_sensitive=False)


@pytest.mark.parametrize(
    "wrong",
    ["", "foo", "list", "list<int", "int(3)", "decimal", "decimal(39,2)", "map<int>", "struct<a int>", "int int", 7],
)
def test_what_is_no_type(wrong: Any) -> None:
    with pytest.raises(OptionError, match="is not a type"):
        evolve_schema(nested(), add={"q": wrong})


def test_types_in_other_words() -> None:
    deep = "list<" * 101 + "int" + ">" * 101
    with pytest.raises(OptionError, match="nested deeper"):
        evolve_schema(nested(), add={"q": deep})
    words = {"a": "ARRAY<smallint>", "b": "struct<`x y`: varchar(3)>", "c": "decimal( 4 , 2 )", "d": "timestamp_ltz"}
    after = checked(evolve_schema(nested(), add=words))
    assert [str(f.type) for f in current(after).fields[-4:]] == [
        "list<int>", "struct<x y: string>", "decimal(4,2)", "timestamptz"
    ]  # fmt: skip
    required = {"type": "list", "element-id": 99, "element": "int", "element-required": True}
    assert shape(evolve_schema(nested(), add={"q": required}))[-1] == "17 q.element int required"


def test_damaged_schemas_are_not_evolved() -> None:
    document = nested()
    broken = {**document, "schemas": [{"type": "struct", "schema-id": 0, "fields": [{"id": "1"}]}]}
    with pytest.raises(FormatError):
        evolve_schema(broken, add={"q": "int"})
    with pytest.raises(FormatError):
        evolve_schema({**document, "current-schema-id": 7}, add={"q": "int"})


def test_properties_follow_columns() -> None:
    mapping = [
        {"field-id": 1, "names": ["id", "old_id"]},
        {"field-id": 2, "names": ["ts"]},
        {"field-id": 3, "names": ["p"], "fields": [{"field-id": 4, "names": ["x"]}, {"field-id": 5, "names": ["y"]}]},
        {"names": ["elsewhere"]},
    ]
    properties = {
        "schema.name-mapping.default": json.dumps(mapping),
        "write.metadata.metrics.column.p.x": "full",
        "write.metadata.metrics.column.ts": "none",
        "write.parquet.bloom-filter-enabled.column.gone": "true",
        "other": "1",
    }
    document = nested(2, properties=properties)
    after = checked(
        evolve_schema(document, rename={"p.x": "old_id", "id": "n2"}, drop=["ts"], add={"ts": "struct<q: int>"})
    )
    assert json.loads(after["properties"].pop("schema.name-mapping.default")) == [
        {"field-id": 1, "names": ["id", "old_id", "n2"]},
        {"field-id": 2, "names": []},
        {"field-id": 3, "names": ["p"], "fields": [
            {"field-id": 4, "names": ["x", "old_id"]}, {"field-id": 5, "names": ["y"]},
        ]},
        {"names": ["elsewhere"]},
        {"field-id": 16, "names": ["ts"], "fields": [{"field-id": 17, "names": ["q"]}]},
    ]  # fmt: skip
    assert after["properties"] == {
        "write.metadata.metrics.column.p.old_id": "full",
        "write.parquet.bloom-filter-enabled.column.gone": "true",
        "other": "1",
    }
    broken = set_properties(document, set={"schema.name-mapping.default": "[{]"})
    assert evolve_schema(broken, add={"q": "int"})["properties"] == broken["properties"]


def test_evolution_after_an_upgrade_to_v4() -> None:
    document = upgrade(evolve_spec(nested(2), add=["day(ts)", "p.y"]), 4)
    after = checked(evolve_schema(document, add={"q": "int"}))
    assert shape(after)[-1] == "17 q int"  # 16 is the expression
    with refused("partition-source"):
        evolve_schema(after, drop=["ts"])


# --- against PyIceberg

WILD_PATHS = [
    "id", "ts", "p", "p.x", "l", "l.a", "l.element.a", "l.element", "m", "m.key", "m.key.k", "m.value", "m.value.v",
    "n", "n.element", "q", "p.q", "nobody",
]  # fmt: skip
WILD_NEW = ["q", "id", "p.q", "p.x", "l.q", "l.element.q", "m.q", "m.value.q", "m.key.q", "n.q", "id.q"]
TYPES = [
    "int",
    "float",
    "decimal(9,2)",
    "string",
    "list<int>",
    "struct<a: int, b: float>",
    "map<string, struct<a: int>>",
]
PROMOTIONS = {"int": "long", "float": "double", "decimal(9,2)": "decimal(12,2)", "decimal(12,2)": "decimal(13,2)"}


def draw_change(data: st.DataObject, document: Json) -> Json:
    """A change that mostly can be made: of columns that are there, to what their types allow; now and then any."""
    schema = current(document)
    walked = [(n, f) for n, f in schema.walk() if ".key." not in n and not n.endswith(".key")]
    # Emptied structs are left out: PyIceberg cannot empty one in a list or map.
    names = [n for n, f in walked if n.rpartition(".")[2] not in ("element", "value", "keep")]
    leaves = [(n, f) for n, f in walked if isinstance(f.type, PrimitiveType) and f.type.name in PROMOTIONS]
    structs = ["", *(f"{n}." for n, f in walked if isinstance(f.type, StructType))]

    def some(tame: list[str], wild: list[str]) -> str:
        return data.draw(st.sampled_from(wild if not tame or data.draw(st.integers(0, 19)) == 0 else tame))

    out: Json = {}
    kinds = ["drop", "add", "update", "rename", "doc", "make_optional", "move"]
    for kind in sorted(data.draw(st.sets(st.sampled_from(kinds), min_size=1, max_size=3))):
        if kind == "add":
            news = [f"{parent}c{data.draw(st.integers(0, 9))}" for parent in structs]
            out[kind] = {
                some(news, WILD_NEW): data.draw(st.sampled_from(TYPES)) for _ in range(data.draw(st.integers(1, 3)))
            }
        elif kind == "update":
            name = some([n for n, _ in leaves], WILD_PATHS)
            old = next((str(f.type) for n, f in leaves if n == name), "")
            out[kind] = {name: some([PROMOTIONS.get(old, "long")], ["int", "long", "double", "decimal(12,3)", "date"])}
        elif kind == "rename":
            out[kind] = {some(names, WILD_PATHS): some(["r1", "r2", "r3", "r4"], ["id", "ts", "x", "y", "a"])}
        elif kind == "move":
            name = some(names, WILD_PATHS)
            siblings = [n for n in names if n != name and n.rpartition(".")[0] == name.rpartition(".")[0]]
            out[kind] = {name: some(["first", *(f"after {n}" for n in siblings)], [f"after {n}" for n in WILD_PATHS])}
        elif kind == "doc":
            out[kind] = {some(names, WILD_PATHS): data.draw(st.sampled_from(["one", "two"]))}
        else:
            out[kind] = [some(names, WILD_PATHS)]
    return out


def theirs_of(document: Json, change: Json) -> Any:
    """The metadata after PyIceberg's UpdateSchema; its errors are many kinds."""
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.io import load_file_io
    from pyiceberg.schema import Schema as TheirSchema
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.update import update_table_metadata
    from pyiceberg.table.update.schema import UpdateSchema

    from iceexplore.writing._type_strings import type_of

    metadata = pyiceberg_of(document)
    base = Table(("db", "t"), metadata, "", load_file_io({}), NoopCatalog("none"))
    update = UpdateSchema(Transaction(base), name_mapping=metadata.name_mapping())
    for name in change.get("drop", ()):
        update.delete_column(name)
    for path, text in change.get("add", {}).items():
        field = {"id": 1, "name": "x", "required": False, "type": _with_ids(type_to_json(type_of(text)))}
        kind = TheirSchema.model_validate({"type": "struct", "fields": [field]}).fields[0].field_type
        update.add_column(tuple(path.split(".")), kind)
    for name, text in change.get("update", {}).items():
        field = {"id": 1, "name": "x", "required": False, "type": type_to_json(type_of(text))}
        kind = TheirSchema.model_validate({"type": "struct", "fields": [field]}).fields[0].field_type
        update.update_column(name, kind)
    for name, new in change.get("rename", {}).items():
        update.rename_column(name, new)
    for name, text in change.get("doc", {}).items():
        update.update_column(name, doc=text)
    for name in change.get("make_optional", ()):
        update.make_column_optional(name)
    for name, where in change.get("move", {}).items():
        if where == "first":
            update.move_first(name)
        else:
            update.move_after(name, where.removeprefix("after "))
    updates, _ = update._commit()
    after = update_table_metadata(metadata, updates)
    assert after.schema()._name_to_id  # made when first asked for: two fields of one name raise here
    return after


def _with_ids(json_type: Any) -> Any:
    """Ids that differ, as PyIceberg wants them."""
    counter = iter(range(1000, 2000))

    def walk(item: Any) -> Any:
        if isinstance(item, list):
            return [walk(i) for i in item]
        if isinstance(item, dict):
            return {
                k: next(counter) if k in ("id", "element-id", "key-id", "value-id") else walk(v)
                for k, v in item.items()
            }
        return item

    return walk(json_type)


def named_only(mapping: list[Json]) -> list[Json]:
    return [{**f, "fields": named_only(f.get("fields", []))} for f in mapping if f["names"]]


def lost(rule: str, change: Json) -> bool:
    """Whether PyIceberg loses the change without a word, where we refuse it.

    That is: changes within what is dropped; names, docs and places of elements, keys and values; what a key already is.
    """
    if rule == "schema-conflict":
        return bool(change.get("drop"))
    named = {n for key in change for n in change[key]}
    return rule in ("schema-struct", "schema-map-key") and any(
        ".key" in n or n.endswith((".element", ".value")) for n in named
    )


@given(st.data(), st.booleans())
def test_changes_agree_with_pyiceberg(data: st.DataObject, mapped: bool) -> None:
    document = evolve_schema(nested(2), add={"p.keep": "int", "l.keep": "int", "m.keep": "int"})
    if mapped:
        names: list[Json] = [{"field-id": 1, "names": ["id"]}]
        names.append({"field-id": 3, "names": ["p"], "fields": [{"field-id": 4, "names": ["x"]}]})
        document = set_properties(document, set={"schema.name-mapping.default": json.dumps(names)})
    made = 0
    for _ in range(data.draw(st.integers(1, 3))):
        change = draw_change(data, document)
        try:
            theirs = theirs_of(document, change)
        except Exception as error:  # ValueError, ResolveError, KeyError, TypeError, AttributeError, ...
            theirs = error
        try:
            after = pure(evolve_schema, document, **change)
        except RuleError as error:
            refusals = [error.rule]
        else:
            refusals = []
        if refusals:
            assert isinstance(theirs, Exception) or lost(refusals[0], change), (change, refusals)
            continue
        if isinstance(theirs, Exception):
            # A column that is added can be changed at once, as in Java; PyIceberg does not find it.
            added = set(change.get("add", ()))
            assert any(added.intersection(change[key]) for key in change if key != "add"), (change, theirs)
            continue
        ours = pyiceberg_of(checked(after))
        assert ours.schema() == theirs.schema()
        assert ours.current_schema_id == theirs.current_schema_id
        assert ours.last_column_id == theirs.last_column_id
        assert ours.schemas == theirs.schemas
        if mapped:
            # PyIceberg drops what has no name left; Java keeps it, and so do we.
            assert named_only(ours.name_mapping().model_dump()) == named_only(theirs.name_mapping().model_dump())
        document = after
        made += 1
    target(float(made))
