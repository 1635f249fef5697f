"""The sentences of the view spec that a reader can honour, each as a test: the adopted spec, and its early draft.

Sentences about writers (optimistic commits, reuse of identical versions) are in `test_view_writers.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from tests.views.view_documents import (
    EXAMPLE_CREATED,
    EXAMPLE_REPLACED,
    HOUR,
    START,
    cleaned,
    log,
    schema,
    version,
    view,
    without,
    write_view,
)


def opened(tmp_path: Path, document: dict[str, Any]) -> ix.View:
    """The view of a document."""
    return ix.open_view(write_view(tmp_path / "v", document))


def codes(v: ix.View) -> list[tuple[str, str | None]]:
    """The codes and fields of a view's problems."""
    return [(p.code, p.field) for p in v.problems]


def draft(*representations: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The early draft's example after its first step, with other representations or keys."""
    made = cleaned(EXAMPLE_CREATED)
    if representations:
        made["versions"][0]["representations"] = list(representations)
    return {**made, **changes}


SQL: dict[str, Any] = {"type": "sql", "sql": "SELECT c1, c2 FROM base_tab", "dialect": "presto", "schema-id": 1}


# Overview and metadata location ---------------------------------------------------------------------------------------


def test_all_changes_create_a_new_metadata_file_that_replaces_the_old_one(tmp_path: Path) -> None:
    folder = write_view(tmp_path / "v", view())
    write_view(folder, view([version(1), version(2)]), "v2.metadata.json")
    v = ix.open_view(folder)
    assert v.metadata.current_version_id == 2
    assert list(v.inspect.metadata_log()["number"]) == [1, 2]


def test_each_metadata_file_is_self_sufficient(tmp_path: Path) -> None:
    v = opened(tmp_path, view([version(1), version(2)]))
    before = len(list(v.reads))
    assert v.at(1).sql() and len(v.inspect.version_log.arrow()) == 2
    assert len(list(v.reads)) == before, "history and earlier versions need no other file"


def test_readers_keep_the_version_that_was_current_when_they_loaded_until_they_refresh(tmp_path: Path) -> None:
    folder = write_view(tmp_path / "v", view())
    v = ix.open_view(folder)
    write_view(folder, view([version(1), version(2)]), "v2.metadata.json")
    assert v.version is not None and v.version.version_id == 1
    newer = v.refresh().version
    assert newer is not None and newer.version_id == 2


# View metadata --------------------------------------------------------------------------------------------------------


def test_implementations_must_throw_if_the_uuid_differs_after_refreshing(tmp_path: Path) -> None:
    folder = write_view(tmp_path / "v", view())
    v = ix.open_view(folder)
    write_view(folder, view(**{"view-uuid": "11111111-3681-40c8-86dc-e36561f83385"}), "v2.metadata.json")
    with pytest.raises(ix.TableChangedError, match="the view was dropped and created again"):
        v.refresh()
    write_view(folder, view(**{"view-uuid": str(v.uuid).upper()}), "v3.metadata.json")
    assert v.refresh().uuid == str(v.uuid).upper(), "the case of a UUID means nothing"


def test_implementations_must_throw_if_the_format_version_is_higher_than_supported(tmp_path: Path) -> None:
    for number in (2, 3, 2**31):
        with pytest.raises(ix.UnsupportedError, match=f"format-version {number} of the view"):
            opened(tmp_path, view(**{"format-version": number}))
        with pytest.raises(ix.UnsupportedError, match="format-version"):
            opened(tmp_path, draft(**{"format-version": number}))


@pytest.mark.parametrize(
    "key", ["view-uuid", "format-version", "location", "schemas", "current-version-id", "versions", "version-log"]
)
def test_a_key_that_the_adopted_spec_requires(key: str, tmp_path: Path) -> None:
    assert ("view-invalid", key) in codes(opened(tmp_path, without(view(), key)))


@pytest.mark.parametrize("key", ["format-version", "location", "current-version-id", "versions", "version-log"])
def test_a_key_that_the_early_draft_requires(key: str, tmp_path: Path) -> None:
    assert ("view-invalid", key) in codes(opened(tmp_path, without(draft(), key)))


@pytest.mark.parametrize("key", ["properties", "schemas", "current-schema-id"])
def test_a_key_that_is_optional_in_the_early_draft(key: str, tmp_path: Path) -> None:
    made = without(draft(), key)
    if key == "schemas":  # without schemas there are no ids of them
        made = without(draft(without(SQL, "schema-id")), key, "current-schema-id")
    v = opened(tmp_path, made)
    assert codes(v) == [] and v.sql()


def test_properties_are_optional(tmp_path: Path) -> None:
    v = opened(tmp_path, without(view(), "properties"))
    assert v.properties == {} and not v.problems


def test_properties_are_a_map_of_strings(tmp_path: Path) -> None:
    v = opened(tmp_path, view(properties={"comment": "Trips", "n": 5}))
    assert dict(v.properties) == {"comment": "Trips", "n": "5"}
    assert [(p.severity, p.field) for p in v.problems] == [("warning", "properties")]
    assert "Comment" in repr(v)


def test_the_number_of_versions_to_retain_is_a_property(tmp_path: Path) -> None:
    assert ix.views.history_entries(opened(tmp_path, view()).metadata) == 10, "Java's default"
    kept = view(properties={"version.history.num-entries": "3"})
    assert ix.views.history_entries(opened(tmp_path, kept).metadata) == 3
    for wrong in ("0", "-1", "many", "", "9" * 5000):
        v = opened(tmp_path, view(properties={"version.history.num-entries": wrong}))
        assert codes(v) == [("view-invalid", "version.history.num-entries")]


def test_schemas_are_those_of_the_table_spec(tmp_path: Path) -> None:
    nested = {"type": "list", "element-id": 4, "element": "decimal(9, 2)", "element-required": False}
    v = opened(tmp_path, view(schemas=[schema(1, {"id": 3, "name": "x", "required": True, "type": nested})]))
    assert v.schema is not None and str(v.schema.fields[0].type) == "list<decimal(9,2)>"


def test_keys_that_the_spec_does_not_know_are_kept(tmp_path: Path) -> None:
    v = opened(tmp_path, view([version(1, **{"x-version": 1})], **{"x-view": {"a": 1}}))
    assert v.metadata.raw["x-view"] == {"a": 1} and v.versions[0].raw["x-version"] == 1 and not v.problems


# Versions -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key", ["version-id", "schema-id", "timestamp-ms", "summary", "representations", "default-namespace"]
)
def test_a_key_that_a_version_requires(key: str, tmp_path: Path) -> None:
    assert ("view-invalid", key) in codes(opened(tmp_path, view([version(7), without(version(1), key)], 7)))


def test_a_default_catalog_that_is_null_or_not_set_is_the_views_own(tmp_path: Path) -> None:
    for made in (version(1, **{"default-catalog": None}), without(version(1), "default-catalog")):
        v = opened(tmp_path, view([made]))
        assert v.version is not None and v.version.catalog_of() is None and not v.problems
        assert "the view's own" in repr(v)
        assert v.inspect.versions.arrow()["default_catalog"].to_pylist() == [None]


def test_a_default_namespace_has_several_parts_or_none(tmp_path: Path) -> None:
    v = opened(tmp_path, view([version(1, **{"default-namespace": ["a", "b.c"]})]))
    assert v.version is not None and v.version.namespace_of() == ("a", "b.c")
    v = opened(tmp_path, view([version(1, **{"default-namespace": []})]))
    assert v.version is not None and v.version.namespace_of() == () and not v.problems


def test_without_a_storage_table_it_is_a_common_view_and_with_one_a_materialized_view(tmp_path: Path) -> None:
    for common in (version(1), version(1, **{"storage-table": None})):
        assert "[materialized]" not in repr(opened(tmp_path, view([common])))
    named = version(1, **{"storage-table": {"namespace": ["a", "b"], "name": "s"}})
    v = opened(tmp_path, view([named]))
    assert v.inspect.versions.arrow()["storage_table"].to_pylist() == [["a", "b", "s"]]


@pytest.mark.parametrize("key", ["namespace", "name"])
def test_a_storage_table_requires_namespace_and_name(key: str, tmp_path: Path) -> None:
    table = without({"namespace": ["a"], "name": "s"}, key)
    v = opened(tmp_path, view([version(1, **{"storage-table": table})]))
    assert codes(v) == [("view-invalid", key)]


def test_version_ids_increase_monotonically(tmp_path: Path) -> None:
    later = version(1, **{"timestamp-ms": START + 9 * HOUR})
    v = opened(tmp_path, view([later, version(2)], 2, 1))
    assert codes(v) == [("view-version-ids", "version-id")]
    v = opened(tmp_path, view([version(2, **{"timestamp-ms": START}), version(1, **{"timestamp-ms": START})], 1, 2))
    assert codes(v) == [], "equal times show no order"


def test_version_ids_start_with_1(tmp_path: Path) -> None:
    assert codes(opened(tmp_path, view([version(0), version(1)]))) == [("view-version-ids", "version-id")]
    assert codes(opened(tmp_path, view([version(8), version(9)]))) == [], "the first ones may have expired"


def test_a_parent_is_an_earlier_version(tmp_path: Path) -> None:
    assert codes(opened(tmp_path, draft())) == [], "-1 is no parent"
    made = draft()
    made["versions"][0]["parent-version-id"] = 1
    assert codes(opened(tmp_path, made)) == [("view-version-ids", "parent-version-id")]


# Summary --------------------------------------------------------------------------------------------------------------


def test_engine_name_and_version_are_optional(tmp_path: Path) -> None:
    for summary, engine in (
        ({"engine-name": "Trino", "engine-version": "450"}, "Trino 450"),
        ({"engine-name": "Trino"}, "Trino"),
        ({"engineVersion": "presto-350"}, "presto-350"),
        ({}, None),
        ({"other": "x"}, None),
    ):
        v = opened(tmp_path, view([version(1, summary=summary)]))
        assert v.version is not None and v.version.engine == engine and not v.problems


def test_the_operation_is_create_or_replace_in_the_early_draft(tmp_path: Path) -> None:
    for summary, found in (({"operation": "create"}, []), ({"operation": "replace"}, []), ({}, ["operation"]),
                           ({"operation": "drop"}, ["operation"])):  # fmt: skip
        made = draft()
        made["versions"][0]["summary"] = summary
        v = opened(tmp_path, made)
        assert [(p.severity, p.field) for p in v.problems] == [("warning", key) for key in found]
        assert v.version is not None and v.version.operation == summary.get("operation")


def test_engines_may_store_more_in_the_summary(tmp_path: Path) -> None:
    v = opened(tmp_path, view([version(1, summary={"user": "me"})]))
    assert v.inspect.versions.arrow()["summary"].to_pylist() == [[("user", "me")]]


# Representations ------------------------------------------------------------------------------------------------------


def test_a_version_can_have_several_dialects(tmp_path: Path) -> None:
    v = opened(tmp_path, view([version(1, {"spark": "SELECT 1", "trino": "SELECT 2"})]))
    assert v.dialects == ("spark", "trino") and (v.sql("spark"), v.sql("trino")) == ("SELECT 1", "SELECT 2")


def test_there_is_only_one_sql_representation_per_dialect(tmp_path: Path) -> None:
    two = [{"type": "sql", "sql": f"SELECT {i}", "dialect": name} for i, name in enumerate(("spark", "Spark"))]
    v = opened(tmp_path, view([version(1, representations=two)]))
    assert codes(v) == [("view-dialect-twice", "dialect")]
    assert v.sql("spark") == "SELECT 0", "the first is shown"
    assert len(v.inspect.representations()) == 2


def test_only_sql_is_defined_and_other_types_are_kept(tmp_path: Path) -> None:
    ir = {"type": "substrait", "plan": "AAA", "sql": 5}
    v = opened(tmp_path, view([version(1, representations=[ir, SQL])]))
    assert codes(v) == [("view-representation-unknown", "type")]
    assert v.versions[0].representations[0].raw == ir
    assert v.inspect.representations()["type"].tolist() == ["substrait", "sql"] and v.dialects == ("presto",)


@pytest.mark.parametrize("key", ["type", "sql", "dialect"])
def test_a_key_that_a_sql_representation_requires(key: str, tmp_path: Path) -> None:
    v = opened(tmp_path, view([version(1, representations=[without(without(SQL, "schema-id"), key)])]))
    assert ("view-invalid", key) in codes(v)


def test_the_sql_is_kept_as_it_was_written(tmp_path: Path) -> None:
    text = "-- a comment\r\nSELECT\t'ü 表', \"x\" -- end\n;  "
    v = opened(tmp_path, view([version(1, text)]))
    assert v.sql() == text and v.inspect.representations.arrow()["sql"].to_pylist() == [text]


def test_in_the_early_draft_schema_and_defaults_are_in_the_representation(tmp_path: Path) -> None:
    v = opened(tmp_path, cleaned(EXAMPLE_REPLACED))
    assert [v.at(i).schema and v.at(i).schema.schema_id for i in (1, 2)] == [1, 2]  # type: ignore[union-attr]
    rows = v.inspect.representations.arrow().to_pylist()
    assert [(r["default_catalog"], r["default_namespace"], r["schema_id"]) for r in rows] == [
        ("iceberg", ["anorwood"], 1), ("iceberg", ["anorwood"], 2)
    ]  # fmt: skip


def test_field_aliases_and_docs_name_the_columns(tmp_path: Path) -> None:
    named = {**SQL, "field-aliases": ["alias_name", "alias_name2"], "field-docs": ["docs", None]}
    v = opened(tmp_path, draft(named))
    assert v.schema is not None and not v.problems
    assert [(f.name, f.doc) for f in v.schema.fields] == [("alias_name", "docs"), ("alias_name2", "")]
    assert v.inspect.schemas()["name"].tolist() == ["c1", "c2"], "the table shows the schema as stored"


@pytest.mark.parametrize("key", ["field-aliases", "field-docs"])
def test_field_aliases_and_docs_have_the_length_of_the_schema(key: str, tmp_path: Path) -> None:
    v = opened(tmp_path, draft({**SQL, key: ["only one"]}))
    (found,) = v.problems
    assert (found.code, found.field, found.found, found.expected) == ("view-aliases", key, "1", "2")
    assert v.schema is not None and [f.name for f in v.schema.fields] == ["c1", "c2"], "they are not used"


# Version log ----------------------------------------------------------------------------------------------------------


def test_the_log_says_when_a_version_was_current_rather_than_created(tmp_path: Path) -> None:
    entries = [{"timestamp-ms": START + (40 + 10 * i) * HOUR, "version-id": i} for i in (1, 2)]
    v = opened(tmp_path, view([version(1), version(2)], **{"version-log": entries}))
    at = v.at(timestamp=START + 55 * HOUR).version
    assert at is not None and at.version_id == 1, "version 2 existed, but was not current"
    with pytest.raises(ix.SnapshotNotFoundError, match="its history begins at"):
        v.at(timestamp=START + 49 * HOUR)


def test_a_version_can_appear_several_times_because_the_view_was_rolled_back(tmp_path: Path) -> None:
    v = opened(tmp_path, view([version(1), version(2)], 1, 2, 1))
    found = [v.at(timestamp=START + i * HOUR).version for i in (1, 2, 3)]
    assert [one and one.version_id for one in found] == [1, 2, 1] and not v.problems
    assert v.inspect.version_log()["is_rollback"].tolist() == [False, False, True]
    assert "rolled back to" in repr(v)


def test_each_change_of_the_current_version_is_logged(tmp_path: Path) -> None:
    v = opened(tmp_path, view([version(1), version(2)], **{"version-log": log(1)}))
    (found,) = v.problems
    assert (found.code, found.found, found.expected) == ("view-log-differs", "1", "2")


def test_the_log_is_in_the_order_of_time(tmp_path: Path) -> None:
    v = opened(tmp_path, view([version(1), version(2)], **{"version-log": log(1, 2)[::-1], "current-version-id": 1}))
    assert codes(v) == [("view-log-differs", "timestamp-ms")]


@pytest.mark.parametrize("key", ["timestamp-ms", "version-id"])
def test_a_key_that_an_entry_of_the_log_requires(key: str, tmp_path: Path) -> None:
    entries = [*log(1), without(log(2)[0], key)]
    assert ("view-invalid", key) in codes(opened(tmp_path, view([version(1), version(2)], **{"version-log": entries})))
