"""Partition evolution and sort orders: PyIceberg's UpdateSpec on random changes, and each rule by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, target
from hypothesis import strategies as st

import iceexplore as ix
from iceexplore.commits import RULES, evolve_schema, evolve_spec, set_sort_order, upgrade
from iceexplore.errors import FormatError, OptionError, RuleError
from tests.commits.metadata_updates.document_table import DAY, checked, metadata_of, old_v1, pure, pyiceberg_of, table

Json = dict[str, Any]

SCHEMA: Json = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "ts", "required": False, "type": "timestamp"},
        {"id": 3, "name": "s", "required": False, "type": "string"},
        {"id": 4, "name": "p", "required": False, "type": {"type": "struct", "fields": [
            {"id": 5, "name": "d", "required": False, "type": "date"},
        ]}},
        {"id": 6, "name": "l", "required": False, "type": {
            "type": "list", "element-id": 7, "element-required": False, "element": "int"}},
        {"id": 8, "name": "f", "required": False, "type": "double"},
        {"id": 9, "name": "a b", "required": False, "type": "int"},
        {"id": 10, "name": "b`t", "required": False, "type": "int"},
    ],
}  # fmt: skip


def refused(rule: str) -> Any:
    assert rule in RULES
    return pytest.raises(RuleError, match=rf"\[rule {rule}\]")


def spec_of(document: Json) -> list[str]:
    """The default spec, a text for each field."""
    spec = metadata_of(document).spec()
    assert spec is not None
    return [f"{f.field_id} {f.name}={f.transform}({f.source_id})" for f in spec.fields]


def plain(version: int = 2) -> Json:
    return table(version, spec=(), schema=SCHEMA)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_spec_evolves(version: int) -> None:
    document = pure(evolve_spec, plain(version), add=["day(ts)", ("bucket(16, id)", "b"), "truncate(4, s)", "p.d"])
    document = checked(document)
    assert spec_of(document) == [
        "1000 ts_day=day(2)", "1001 b=bucket[16](1)", "1002 s_trunc_4=truncate[4](3)", "1003 p.d=identity(5)"
    ]  # fmt: skip
    after = checked(pure(evolve_spec, document, remove=["days(ts)", "s_trunc_4"], rename={"b": "c"}, add=["hours(ts)"]))
    assert spec_of(after) == ["1001 c=bucket[16](1)", "1003 p.d=identity(5)", "1004 ts_hour=hour(2)"]
    assert (after["default-spec-id"], after["last-partition-id"], len(after["partition-specs"])) == (2, 1004, 3)
    assert after["partition-specs"][0] is document["partition-specs"][0]
    # What was there before comes back under its id and its name.
    back = checked(evolve_spec(after, add=["day(ts)"], remove=["ts_hour"]))
    assert spec_of(back) == ["1001 c=bucket[16](1)", "1003 p.d=identity(5)", "1000 ts_day=day(2)"]
    assert back["last-partition-id"] == 1004
    named = checked(evolve_spec(after, add=[("day(ts)", "d")]))
    assert spec_of(named)[-1] == "1005 d=day(2)"


def test_v1_replaces_by_void() -> None:
    document = table(1, schema=SCHEMA, spec=(DAY,))
    gone = checked(pure(evolve_spec, document, remove=["ts_day"]))
    assert spec_of(gone) == ["1000 ts_day=void(2)"]
    assert gone["partition-spec"] == gone["partition-specs"][1]["fields"]
    back = checked(evolve_spec(gone, add=["day(ts)", "s"]))
    assert spec_of(back) == ["1000 ts_day_1000=void(2)", "1001 ts_day=day(2)", "1002 s=identity(3)"]
    both = checked(evolve_spec(document, remove=["ts_day"], add=[("hour(ts)", "ts_day")]))
    assert spec_of(both) == ["1000 ts_day_1000=void(2)", "1001 ts_day=hour(2)"]
    with refused("partition-ids-v1"):
        evolve_spec({**document, "last-partition-id": 1005}, add=["s"])


def test_old_v1_documents_evolve() -> None:
    after = checked(pure(evolve_spec, old_v1(field_ids=False), add=["bucket(4, id)"]))
    assert spec_of(after) == ["1000 ts_day=day(2)", "1001 id_bucket_4=bucket[4](1)"]
    assert after["last-partition-id"] == 1001


def test_names_given_anew_at_once() -> None:
    document = evolve_spec(plain(), add=[("day(ts)", "a"), ("bucket(4, id)", "b")])
    removed = checked(evolve_spec(document, remove=["a"], add=[("month(ts)", "a")]))
    assert spec_of(removed) == ["1001 b=bucket[4](1)", "1002 a=month(2)"]
    renamed = checked(evolve_spec(document, rename={"a": "x"}, add=[("month(ts)", "a")]))
    assert spec_of(renamed) == ["1000 x=day(2)", "1001 b=bucket[4](1)", "1002 a=month(2)"]
    swapped = checked(evolve_spec(document, rename={"a": "b", "b": "a"}))
    assert spec_of(swapped) == ["1000 b=day(2)", "1001 a=bucket[4](1)"]


def test_equal_specs_keep_their_id() -> None:
    document = checked(evolve_spec(plain(), add=["day(ts)"]))
    empty = checked(evolve_spec(document, remove=["ts_day"]))
    assert (empty["default-spec-id"], len(empty["partition-specs"])) == (0, 2)
    again = checked(evolve_spec(empty, add=["day(ts)"]))
    assert (again["default-spec-id"], again["partition-specs"]) == (1, document["partition-specs"])
    assert evolve_spec(document, remove=["ts_day"], add=["day(ts)"]) == document
    renamed = evolve_spec(document, remove=["ts_day"], add=[("day(ts)", "d")])
    assert spec_of(renamed) == ["1000 d=day(2)"]


def test_expressions_of_new_fields() -> None:
    document = upgrade(evolve_spec(plain(), add=["day(ts)", "s"]), 4)
    after = checked(pure(evolve_spec, document, add=["bucket(4, id)"], rename={"ts_day": "d"}, remove=["s"]))
    assert after["partition-specs"][-1]["fields"] == [{"expr-id": 11, "name": "d"}, {"expr-id": 12}]
    assert after["expressions"][:1] == document["expressions"]
    assert after["expressions"][1] == {
        "expr-id": 12, "expr": {"source-id": 1, "transform": "bucket[4]"}, "name": "id_bucket_4",
        "partition-field-id": 1002,
    }  # fmt: skip
    assert after["last-column-id"] == 12
    assert spec_of(after) == ["1000 d=day(2)", "1002 id_bucket_4=bucket[4](1)"]
    # Removed and added again: the same partition field, the same expression.
    back = checked(evolve_spec(evolve_spec(after, remove=["id_bucket_4"]), add=["bucket(4, id)"]))
    assert back["expressions"] == after["expressions"]
    assert "expressions" not in evolve_spec(upgrade(plain(), 4, expressions=False), add=["day(ts)"])


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("partition-source", {"add": ["nobody"]}),
        ("partition-source", {"add": ["day(id)"]}),
        ("partition-source", {"add": ["hour(p.d)"]}),
        ("partition-source", {"add": ["truncate(4, ts)"]}),
        ("partition-source", {"add": ["bucket(4, f)"]}),
        ("partition-source", {"add": ["p"]}),
        ("partition-source", {"add": ["l.element"]}),
        ("partition-source", {"add": ["bucket(4, l.element)"]}),
        ("partition-names", {"add": [("day(p.d)", "s")]}),
        ("partition-names", {"add": [("id", "s")]}),
        ("partition-names", {"add": [("id", "ts_day")]}),
        ("partition-names", {"add": [("id", "x"), ("s", "x")]}),
        ("partition-names", {"add": [("id", "")]}),
        ("partition-names", {"rename": {"ts_day": "s"}}),
        ("partition-names", {"rename": {"ts_day": "b"}}),
        ("partition-names", {"rename": {"ts_day": "ts"}}),
        ("partition-fields", {"add": ["day(ts)"]}),
        ("partition-fields", {"add": [("day(ts)", "again")]}),
        ("partition-fields", {"add": ["s", "identity(s)"]}),
        ("partition-fields", {"add": ["year(p.d)", "day(p.d)"]}),
        ("partition-fields", {"remove": ["nobody"]}),
        ("partition-fields", {"remove": ["bucket(4, id)"]}),
        ("partition-fields", {"rename": {"nobody": "x"}}),
        ("partition-fields", {"rename": {"b": "x"}, "remove": ["b"]}),
    ],
)
@pytest.mark.parametrize("version", [1, 2, 4])
def test_refusals(version: int, rule: str, change: Json) -> None:
    document = evolve_spec(plain(version), add=["day(ts)", ("bucket(16, id)", "b")])
    with refused(rule):
        pure(evolve_spec, document, **change)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("day(ts)", "ts_day=day(2)"), ("DAYS( ts )", "ts_day=day(2)"), ("years(ts)", "ts_year=year(2)"),
        ("bucket[16](id)", "id_bucket_16=bucket[16](1)"), ("bucket(id, 16)", "id_bucket_16=bucket[16](1)"),
        ("truncate(3,`s`)", "s_trunc_3=truncate[3](3)"), ("identity(s)", "s=identity(3)"), ("`a b`", "a b=identity(9)"),
        ("day(p.`d`)", "p.d_day=day(5)"), ("`p`.`d`", "p.d=identity(5)"), ("void(s)", "s_null=void(3)"),
        ("b`t", "b`t=identity(10)"), ("`b``t`", "b`t=identity(10)"), ("bucket(4, b`t)", "b`t_bucket_4=bucket[4](10)"),
    ],
)  # fmt: skip
def test_terms(text: str, field: str) -> None:
    assert spec_of(checked(evolve_spec(plain(), add=[text]))) == [f"1000 {field}"]
    assert spec_of(evolve_spec(plain(), add=text)) == [f"1000 {field}"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "day()",
        "day(ts, id)",
        "bucket(id)",
        "bucket(0, id)",
        "bucket(4, 5)",
        "week(ts)",
        "truncate(9999999999, s)",
    ],
)
def test_what_is_no_term(text: str) -> None:
    with pytest.raises(OptionError, match=r"is neither a column nor a transform|is not "):
        evolve_spec(plain(), add=[text])


def test_damaged_specs_are_not_evolved() -> None:
    document = {**plain(), "partition-specs": [{"spec-id": 0, "fields": [{"name": "x"}]}]}
    with pytest.raises(FormatError):
        evolve_spec(document, add=["s"])
    with pytest.raises(FormatError):
        evolve_spec({**plain(), "default-spec-id": 7}, add=["s"])


def test_unknown_transforms_are_carried() -> None:
    document = plain(3)
    field = {"field-id": 1000, "source-id": 2, "transform": "zorder", "name": "z"}
    document["partition-specs"] = [{"spec-id": 0, "fields": [field]}]
    after = evolve_spec({**document, "last-partition-id": 1000}, add=["s"])
    assert after["partition-specs"][1]["fields"][0] is field
    assert spec_of(evolve_spec(after, remove=["z"])) == ["1001 s=identity(3)"]


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_sort_orders(version: int) -> None:
    document = plain(version)
    after = checked(pure(set_sort_order, document, fields=["ts desc", "bucket(4, id) asc NULLS LAST", "s nulls-first"]))
    assert after["default-sort-order-id"] == 1
    assert after["sort-orders"][1] == {"order-id": 1, "fields": [
        {"transform": "identity", "source-id": 2, "direction": "desc", "null-order": "nulls-last"},
        {"transform": "bucket[4]", "source-id": 1, "direction": "asc", "null-order": "nulls-last"},
        {"transform": "identity", "source-id": 3, "direction": "asc", "null-order": "nulls-first"},
    ]}  # fmt: skip
    none = checked(set_sort_order(after, fields=[]))
    assert (none["default-sort-order-id"], len(none["sort-orders"])) == (0, 2)
    other = checked(set_sort_order(none, fields="id"))
    assert other["default-sort-order-id"] == 2
    again = checked(set_sort_order(other, fields=["ts desc nulls last", "bucket(4, id) nulls last", "s asc"]))
    assert (again["default-sort-order-id"], len(again["sort-orders"])) == (1, 3)
    without = dict(document, **{"sort-orders": [{"order-id": 3, "fields": after["sort-orders"][1]["fields"]}]})
    without["default-sort-order-id"] = 3
    assert {"order-id": 0, "fields": []} in checked(set_sort_order(without, fields=[]))["sort-orders"]
    for wrong in ("nobody", "l.element", "p", "day(id)"):
        with refused("sort-source"):
            set_sort_order(document, fields=[wrong])
    with pytest.raises(OptionError):
        set_sort_order(document, fields=["week(ts) desc"])


def test_a_column_called_as_a_direction() -> None:
    document = evolve_schema(plain(), add={"desc": "int", "x desc": "int"})
    assert metadata_of(set_sort_order(document, fields=["desc desc"])).sort_orders[-1].fields[0].source_ids == (11,)
    field = metadata_of(set_sort_order(document, fields=["`x desc`"])).sort_orders[-1].fields[0]
    assert (field.source_ids, field.direction) == ((12,), "asc")


# --- against PyIceberg

TERMS = [
    ("ts", "day"), ("ts", "month"), ("ts", "hour"), ("p.d", "day"), ("id", "bucket[16]"), ("id", "bucket[8]"),
    ("id", "identity"), ("s", "identity"), ("s", "truncate[4]"), ("id", "day"), ("l", "identity"),
    ("nobody", "identity"),
]  # fmt: skip


def draw_change(data: st.DataObject, document: Json) -> Json:
    """A change that mostly can be made; now and then any.

    One kind at a time: a field that is removed and comes back at once keeps its place in Java, not in PyIceberg, and
    we let a name be given anew at once, as Java does after a removal.
    """
    spec = metadata_of(document).spec()
    assert spec is not None
    names = [f.name for f in spec.fields]
    wild = data.draw(st.integers(0, 9)) == 0
    known = st.sampled_from([*names, "nobody"] if wild or not names else names)
    have = {(f.source_id, f.transform) for f in spec.fields}
    ids = {"id": 1, "ts": 2, "s": 3, "p.d": 5}
    free = [(c, t) for c, t in TERMS[:9] if (ids[c], t) not in have]
    out: Json = {}
    for kind in [data.draw(st.sampled_from(["add", "add", "remove", "rename"]))]:
        if kind == "add":
            name = st.sampled_from([None, None, None, "a", "b", *(["s", "id", "ts_day"] if wild else [])])
            term = st.sampled_from(TERMS if wild or not free else free)
            out[kind] = data.draw(st.lists(st.tuples(term, name), min_size=1, max_size=2))
        elif kind == "remove" and (names or wild):
            out[kind] = [data.draw(known)]
        elif kind == "rename" and (names or wild):
            # PyIceberg lets two fields have one name, and renames another field than Java where the name is a void's.
            fresh = [n for n in ("x", "y", "z", *(("s", "id") if wild else ())) if n not in names]
            out[kind] = {data.draw(known): data.draw(st.sampled_from(fresh or ["w"]))}
    return out


def theirs_of(document: Json, change: Json) -> Any:
    """The metadata after PyIceberg's UpdateSpec."""
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.io import load_file_io
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.update import update_table_metadata
    from pyiceberg.table.update.spec import UpdateSpec

    metadata = pyiceberg_of(document)
    base = Table(("db", "t"), metadata, "", load_file_io({}), NoopCatalog("none"))
    update = UpdateSpec(Transaction(base))
    for name in change.get("remove", ()):
        update.remove_field(name)
    for name, new in change.get("rename", {}).items():
        update.rename_field(name, new)
    for (column, transform), name in change.get("add", ()):
        update.add_field(column, transform, name)
    updates, _ = update._commit()
    return update_table_metadata(metadata, updates)


@given(st.sampled_from([1, 2]), st.data())
def test_changes_agree_with_pyiceberg(version: int, data: st.DataObject) -> None:
    document = plain(version)
    made = 0
    for _ in range(data.draw(st.integers(1, 6))):
        change = draw_change(data, document)
        try:
            theirs = theirs_of(document, change)
        except Exception as error:  # ValueError, KeyError, TypeError, ...
            theirs = error
        terms = [(f"{t}({c})", n) for (c, t), n in change.get("add", ())]
        arguments = {**change, "add": [text if name is None else (text, name) for text, name in terms]}
        try:
            after = pure(evolve_spec, document, **arguments)
        except RuleError:
            ours: Any = None
        else:
            ours = pyiceberg_of(checked(after))
        if ours is None:
            assert isinstance(theirs, Exception), (change, theirs.spec())
            continue
        assert not isinstance(theirs, Exception), (change, theirs, after["partition-specs"])
        assert ours.spec() == theirs.spec(), change
        assert ours.default_spec_id == theirs.default_spec_id
        assert ours.last_partition_id == theirs.last_partition_id
        assert ours.partition_specs == theirs.partition_specs
        document = json.loads(json.dumps(after))
        made += 1
    target(float(made))


def test_specs_of_a_new_table_in_javas_dialect_have_no_expressions() -> None:
    """Java's reader wants names and transforms in the fields themselves, first and later ones."""
    table = ix.empty({"id": "long", "s": "string"}, partition_by="bucket(2, id)", format_version=4, dialect="v4-java")
    table.evolve_spec(add=["truncate(3, s)"])
    raw = table._state.metadata.raw
    assert "expressions" not in raw
    fields = [f for spec in raw["partition-specs"] for f in spec["fields"]]
    assert len(fields) == 3
    assert all(f.keys() == {"name", "transform", "source-id", "field-id"} for f in fields)
    table.close()
