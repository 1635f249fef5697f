"""Columns of type unknown: never in a data file, whatever writes it (spec, "Parquet": omitted)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iceexplore as ix
from iceexplore.arrow import build

NULLS = {"null", "unknown"}


def lab_of(tmp_path: Path, **columns: str) -> ix.Lab:
    return ix.create(tmp_path / "lab", {"id": "long", **columns}, format_version=3)


def leaves(folder: Path) -> set[str]:
    """The dotted paths of all leaf columns of all Parquet files."""
    paths = list(folder.rglob("*.parquet"))
    assert paths
    found = set()
    for path in paths:
        schema = pq.ParquetFile(path).schema
        for i in range(len(schema.names)):
            assert schema.column(i).logical_type.to_json() != '{"Type": "Null"}'
            found.add(schema.column(i).path)
    return found


@pytest.mark.parametrize(
    ("kind", "value", "stored", "expected"),
    [
        ("unknown", None, set(), None),
        ("struct<a: int, u: unknown>", {"a": 1}, {"v.a"}, {"a": 1, "u": None}),
        ("struct<s: struct<a: int, u: unknown>>", {"s": {"a": 1}}, {"v.s.a"}, {"s": {"a": 1, "u": None}}),
        ("list<struct<a: int, u: unknown>>", [{"a": 1}, None], {"v.list.element.a"}, [{"a": 1, "u": None}, None]),
        (
            "map<string, struct<a: int, u: unknown>>", {"k": {"a": 1}}, {"v.key_value.key", "v.key_value.value.a"},
            [("k", {"a": 1, "u": None})],
        ),
    ],
)  # fmt: skip
def test_unknown_is_left_out_of_files(tmp_path: Path, kind: str, value: Any, stored: set[str], expected: Any) -> None:
    lab = lab_of(tmp_path, v=kind)
    lab.append([{"id": 1, "v": value}, {"id": 2, "v": None}])
    lab.append([{"id": 3, "v": value}])
    lab.delete("id = 3")
    lab.compact()
    assert leaves(tmp_path) == {"id", *stored}
    rows = build.to_pylist(lab.to_arrow().sort_by("id"))
    assert [row["v"] for row in rows] == [expected, None]
    unknown = {f.field_id for _, f in lab.schema.walk() if str(f.type) == "unknown"}
    counted = build.to_pylist(lab.inspect.files.arrow()["value_counts"])
    assert all(unknown.isdisjoint(dict(counts)) for counts in counted)


@pytest.mark.parametrize("kind", ["list<unknown>", "map<string, unknown>", "struct<u: unknown>"])
def test_unknown_that_cannot_be_left_out_is_refused(tmp_path: Path, kind: str) -> None:
    lab = lab_of(tmp_path, v=kind)
    with pytest.raises(ix.OptionError, match=r"'v.*' has .*unknown"):
        lab.append([{"id": 1, "v": None}])
    assert lab.count() == 0


def test_a_table_of_nothing_but_unknown_is_refused(tmp_path: Path) -> None:
    lab = ix.create(tmp_path / "lab", {"u": "unknown"}, format_version=3)
    with pytest.raises(ix.OptionError, match="only columns of type unknown"):
        lab.append(pa.table({"u": pa.nulls(2)}))


def test_simulated_rows_have_no_unknown(tmp_path: Path) -> None:
    simulation = ix.empty({"id": "long", "u": "unknown"}, format_version=3)
    simulation.append(2, rows=5, materialize=True)
    assert leaves(Path(simulation.overlay.removeprefix("file://"))) == {"id"}
    assert simulation.to_arrow()["u"].null_count == 10


def test_a_required_unknown_is_refused(tmp_path: Path) -> None:
    schema = {
        "type": "struct", "schema-id": 0,
        "fields": [
            {"id": 1, "name": "id", "type": "long", "required": False},
            {"id": 2, "name": "u", "type": "unknown", "required": True},
        ],
    }  # fmt: skip
    with pytest.raises(ix.RuleError, match=r"'u' has type unknown.*optional") as refused:
        ix.create(tmp_path / "lab", parse(schema), format_version=3)
    assert refused.value.rule == "required-columns"


def test_a_struct_default_with_values_is_refused(tmp_path: Path) -> None:
    inner = {"type": "struct", "fields": [{"id": 3, "name": "a", "type": "int", "required": False}]}
    field = {"id": 2, "name": "s", "type": inner, "required": False, "write-default": {"3": 7}}
    schema = {"type": "struct", "schema-id": 0, "fields": [field]}
    with pytest.raises(ix.RuleError, match=r"'s' is a struct: its default must be null or \{\}"):
        ix.create(tmp_path / "lab", parse(schema), format_version=3)
    field["write-default"] = {}
    assert ix.create(tmp_path / "lab", parse(schema), format_version=3).schema.fields[0].write_default == {}


def parse(schema: dict[str, Any]) -> Any:
    from iceexplore.metadata import parse_schema

    return parse_schema(schema)


def test_foreign_tables_that_break_these_rules_carry_problems(tmp_path: Path) -> None:
    lab = lab_of(tmp_path, s="struct<a: int>")
    [path] = (tmp_path / "lab" / "metadata").glob("v1.metadata.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    fields = document["schemas"][0]["fields"]
    fields[1]["write-default"] = {str(fields[1]["type"]["fields"][0]["id"]): 7}
    fields.append({"id": 9, "name": "u", "type": "unknown", "required": True})
    document["last-column-id"] = 9
    path.write_text(json.dumps(document), encoding="utf-8")
    found = [str(problem) for problem in ix.open(path).problems]
    assert any("'u' is required, but all values of its type, unknown, are null" in text for text in found)
    assert any("write-default of column 's' has values" in text for text in found)
    assert not list(lab.problems)
