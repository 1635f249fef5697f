"""SQL functions: metadata files as the UDF spec's own examples have them, damage, and hostile texts."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from tests.helpers.hostile import HOSTILE
from tests.views.test_view_hostile import IN_HTML, IN_TEXT


def sql(**texts: str) -> list[dict[str, str]]:
    return [{"type": "sql", "dialect": dialect, "sql": text} for dialect, text in texts.items()]


#: As appendix A of the spec: a function with two overloads, of which one has two versions.
ADD_ONE: dict[str, Any] = {
    "function-uuid": "42fd3f91-bc10-41c1-8a52-92b57dd0a9b2",
    "format-version": 1,
    "definitions": [
        {
            "definition-id": "int",
            "parameters": [{"name": "x", "type": "int", "doc": "Input integer"}],
            "return-type": "int",
            "function-type": "udf",
            "doc": "Add one to the input integer",
            "versions": [
                {"version-id": 1, "deterministic": True, "representations": sql(trino="x + 2"),
                 "timestamp-ms": 1734507000123},
                {"version-id": 2, "representations": sql(trino="x + 1", spark="x + 1"), "timestamp-ms": 1735507000124},
            ],
            "current-version-id": 2,
        },
        {
            "definition-id": "float",
            "specific-name": "add_one_float",
            "parameters": [{"name": "x", "type": "float"}],
            "return-type": "float",
            "return-nullable": False,
            "function-type": "udf",
            "versions": [
                {"version-id": 1, "on-null-input": "return-null", "representations": sql(trino="x + 1.0"),
                 "timestamp-ms": 1734507001123},
            ],
            "current-version-id": 1,
        },
    ],
    "definition-log": [
        {"timestamp-ms": 1734507000123, "definition-versions": [{"definition-id": "int", "version-id": 1}]},
        {"timestamp-ms": 1735507000124, "definition-versions": [
            {"definition-id": "int", "version-id": 2}, {"definition-id": "float", "version-id": 1},
        ]},
    ],
    "location": "/warehouse/db/add_one",
    "doc": "Overloaded scalar function",
    "secure": True,
}  # fmt: skip

#: As appendix B: a function that returns a table.
FRUITS: dict[str, Any] = {
    "function-uuid": "8a7fa39a-6d8f-4a2f-9d8d-3f3a8f3c2a10",
    "format-version": 1,
    "definitions": [
        {
            "definition-id": "string,list<int>,map<string,struct<a:int>>",
            "parameters": [
                {"name": "c", "type": "string"},
                {"name": "l", "type": {"type": "list", "element": "int", "element-id": 5}},
                {"name": "m", "type": {"type": "map", "key": "string", "value": {
                    "type": "struct", "fields": [{"name": "a", "type": "int", "id": 3}]}}},
            ],
            "return-type": {"type": "struct", "fields": [{"name": "name", "type": "string"}]},
            "function-type": "udtf",
            "versions": [{"version-id": 1, "representations": sql(spark="SELECT name FROM fruits"), "timestamp-ms": 5}],
            "current-version-id": 1,
        }
    ],
    "definition-log": [],
}  # fmt: skip


def written(folder: Path, document: Any) -> Path:
    path = folder / "00001-x.metadata.json"
    path.write_text(json.dumps(document))
    return path


def test_overloads_versions_and_parameters(tmp_path: Path) -> None:
    u = ix.open_udf(written(tmp_path, ADD_ONE))
    assert (u.uuid, u.secure, u.location, len(u.problems)) == (
        ADD_ONE["function-uuid"],
        True,
        "/warehouse/db/add_one",
        0,
    )
    whole, real = u.overload("int"), u.overload("float")
    assert whole is not None and real is not None and u.overload("string") is None
    assert whole.current is not None and dict(whole.current.sql) == {"trino": "x + 1", "spark": "x + 1"}
    assert (real.specific_name, real.return_nullable, real.return_type) == ("add_one_float", False, "float")
    rows = u.versions_arrow().to_pylist()
    assert [(r["overload"], r["version_id"], r["dialect"], r["is_current"]) for r in rows] == [
        ("int", 1, "trino", False), ("int", 2, "trino", True), ("int", 2, "spark", True), ("float", 1, "trino", True),
    ]  # fmt: skip
    assert [r["deterministic"] for r in rows] == [True, False, False, False]
    assert [r["on_null_input"] for r in rows] == ["call", "call", "call", "return-null"]
    assert u.parameters()["doc"].tolist()[0] == "Input integer"
    assert u.log_arrow()["version_id"].to_pylist() == [1, 2, 1]
    for text in ("new spec", "secure", "(x int)", "float not null", "x + 1.0", "add_one_float", "2024-12-18"):
        assert text in repr(u)
        assert text in u._repr_html_()


def test_a_function_that_returns_a_table(tmp_path: Path) -> None:
    path = tmp_path / "f.gz.metadata.json"
    path.write_bytes(gzip.compress(json.dumps(FRUITS).encode()))
    u = ix.open_udf(path)
    (one,) = u.overloads
    assert not list(u.problems)
    assert (one.function_type, one.return_type) == ("udtf", "struct<name:string>")
    assert [p.type for p in one.parameters] == ["string", "list<int>", "map<string,struct<a:int>>"]


def test_loose_files_are_recognized(tmp_path: Path) -> None:
    file = ix.open_file(written(tmp_path, ADD_ONE))
    assert (file.kind, file.arrow().num_rows) == ("udf metadata", 4)
    assert "udf metadata" in repr(file)
    other = written(tmp_path, {"format-version": 2, "location": "x", "schemas": []})
    with pytest.raises(ix.FormatError, match="this is not UDF metadata, but a file of kind"):
        ix.open_udf(other)
    for call in (ix.open, ix.open_view):
        with pytest.raises(ix.IceexploreError):
            call(written(tmp_path, ADD_ONE))
    with pytest.raises(ix.UnsupportedError, match="format-version 2 of the function"):
        ix.views.parse_udf({**ADD_ONE, "format-version": 2}, "x", ix.errors.Problems())


def changed(path: str, value: Any) -> dict[str, Any]:
    """The example with one value replaced; ``path`` has keys and positions."""
    made = copy.deepcopy(ADD_ONE)
    at: Any = made
    *parents, last = path.split("/")
    for key in parents:
        at = at[int(key) if key.isdigit() else key]
    at[int(last) if last.isdigit() else last] = value
    return made


DAMAGES = [
    ("function-uuid", None, "lacks function-uuid"), ("format-version", 0, "format-version must be 1"),
    ("secure", "yes", "must be true or false"), ("definitions/0/definition-id", "long", "must be the types"),
    ("definitions/1/definition-id", "int", "several definitions have the id"),
    ("definitions/0/specific-name", "add_one_float", "the specific name"),
    ("definitions/0/function-type", "macro", "must be udf or udtf"),
    ("definitions/0/function-type", "udtf", "must be a struct"),
    ("definitions/0/return-type", None, "lacks return-type"), ("definitions/0/current-version-id", 9, "is not the id"),
    ("definitions/0/versions/1/version-id", 1, "several versions have the id 1"),
    ("definitions/0/versions/0/timestamp-ms", 1 << 50, "do not increase"),
    ("definitions/0/versions/0/representations", sql(Spark="1") + sql(spark="2"), "several texts for the dialect"),
    ("definitions/0/versions/0/representations", [{"type": "java"}], "unknown type 'java'"),
    ("definitions/0/versions/0/on-null-input", "fail", "must be call or return-null"),
    ("definitions/0/parameters", [{"name": "x", "type": "int"}, {"name": "X", "type": "int"}], "two parameters"),
    ("definitions/0/parameters/0/type", "in t", "no spaces or quotes"),
    ("definitions/0/parameters/0/type", 3, "unknown"),
    ("definitions/0/parameters/0/type", {"type": "struct", "fields": 3}, "a struct needs fields"),
    ("definition-log/0/definition-versions/0/version-id", 7, "not in the metadata any more"),
    ("definitions", {}, "definitions"), ("definitions/0", 3, "definition"), ("definitions/0/versions/0", [], "version"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "text"), DAMAGES)
def test_damage_is_a_problem(tmp_path: Path, path: str, value: Any, text: str) -> None:
    u = ix.open_udf(written(tmp_path, changed(path, value)))
    assert [p for p in u.problems if text in p.text and p.code == "udf-invalid"], list(u.problems)
    assert "udf-invalid" in repr(u)
    u.versions_arrow()


def test_deep_and_large_documents(tmp_path: Path) -> None:
    kind: Any = "int"
    for _ in range(200):
        kind = {"type": "list", "element": kind}
    u = ix.open_udf(written(tmp_path, changed("definitions/0/parameters/0/type", kind)))
    assert any("nested too deeply" in p.text for p in u.problems)
    many = [{**ADD_ONE["definitions"][0], "definition-id": f"t{i}"} for i in range(2000)]
    u = ix.open_udf(written(tmp_path, {**ADD_ONE, "definitions": many}))
    assert len(u.overloads) == 2000
    assert "first 40 of 2,000" in repr(u)


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_texts(name: str, tmp_path: Path) -> None:
    text = HOSTILE[name]
    for path in ("doc", "location", "definitions/0/doc", "definitions/0/parameters/0/name",
                 "definitions/0/parameters/0/type", "definitions/0/definition-id", "definitions/0/specific-name",
                 "definitions/0/versions/1/representations/0/sql", "definitions/0/versions/1/representations/0/dialect",
                 "definition-log/0/definition-versions/0/definition-id"):  # fmt: skip
        u = ix.open_udf(written(tmp_path, changed(path, text)))
        assert not [sign for sign in IN_TEXT if sign in repr(u)]
        assert not [sign for sign in IN_HTML if sign in u._repr_html_()]
