"""Simulated views: they are Views, the user's view stays as it is, arguments are checked, and any history is sound."""

from __future__ import annotations

import copy
import gzip
import json
import pickle
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema as PyIcebergSchema
from pyiceberg.types import LongType, NestedField
from pyiceberg.view import View as PyIcebergView
from pyiceberg.view.metadata import ViewMetadata as PyIcebergViewMetadata

import iceexplore as ix
from tests.helpers.hostile import HOSTILE
from tests.views.view_documents import (
    EXAMPLE_REPLACED,
    HOUR,
    START,
    cleaned,
    schema,
    version,
    view,
    without,
    write_view,
)

COLUMNS = {"day": "date", "trips": "long"}
SQL = "SELECT day, trips FROM t"


def small(**changes: Any) -> ix.ViewSimulation:
    """A simulated view of one version."""
    return ix.simulate_view(**{"sql": SQL, "schema": COLUMNS, "dialect": "spark", "seed": 1, **changes})


# A simulation is a View -----------------------------------------------------------------------------------------------


def test_the_users_view_is_never_written(tmp_path: Path) -> None:
    folder = write_view(tmp_path / "v", view([version(1), version(2)]))
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file()}
    v = ix.open_view(folder)
    s = v.simulate(overlay=tmp_path / "overlay")
    s.replace("SELECT day, trips FROM other")
    s.rollback(1)
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.rglob("*") if p.is_file()} == before
    assert v.version is not None and v.version.version_id == 2 and v.refresh().metadata.raw == v.metadata.raw
    assert len(s.writes) == 2 and s.overlay == str(tmp_path / "overlay")
    with pytest.raises(ix.OptionError, match="inside"):
        v.simulate(overlay=folder / "metadata")


def test_everything_that_a_view_can_do() -> None:
    s = small(location="/warehouse/db/daily", default_namespace="db")
    before = s.view
    s.replace("SELECT day, trips, fares FROM t", {**COLUMNS, "fares": "double"}, timestamp="2030-01-01")
    assert (s.name, before.name) == ("daily", "daily")
    assert [c.text for c in s.diff(before).changes] == [c.text for c in s.diff(1, 2).changes] != []
    assert s.at(timestamp="2029-12-31").sql() == SQL == s.at(1).sql() == before.sql()
    assert s.inspect.versions()["version_id"].tolist() == [1, 2] and s.check().ok
    assert s.inspect.metadata_log()["is_open"].tolist() == [False, True]
    assert "db.t" in s.tree().to_text() and [str(t) for t in s.lineage().tables["table"]] == ["db.t"]
    assert "A simulation: nothing is written to /warehouse/db/daily" in repr(s)
    assert s.refresh() is s and before.refresh().metadata.raw == s.metadata.raw


def test_copies_go_their_own_way() -> None:
    s = small()
    other = copy.deepcopy(s)
    other.replace("SELECT day, trips FROM a")
    s.replace("SELECT day, trips FROM b")
    assert (s.sql()[-1], other.sql()[-1], len(s.commits), len(other.commits)) == ("b", "a", 1, 1)
    again = small()
    again.replace("SELECT day, trips FROM b")
    assert again.metadata.raw == s.metadata.raw and again.metadata_location == s.metadata_location, "the same seed"
    with pytest.raises(TypeError, match=r"s\.save\(folder\)"):
        pickle.dumps(s)
    s.close()
    with pytest.raises(ix.StorageError, match="closed"):
        s.replace(SQL)


def test_a_saved_simulation_opens_with_its_metadata_files(tmp_path: Path) -> None:
    s = small(location="s3://bucket/daily")
    a = s.fork()
    s.replace("SELECT day, trips FROM a")
    a.replace("SELECT day, trips FROM b")
    saved = a.save(tmp_path / "new" / "daily")
    v = ix.open_view(saved.path)
    assert v.inspect.metadata_log()["number"].tolist() == [1, 2, 3] and list(v.problems) == []
    assert v.location == str(tmp_path / "new" / "daily") and v.sql() == a.sql() and saved.files == 4
    assert without(v.metadata.raw, "location") == without(a.metadata.raw, "location")
    assert s.view.save(tmp_path / "early", location="s3://else/where").location == "s3://else/where"
    assert ix.open_view(tmp_path / "early").location == "s3://else/where"
    with pytest.raises(ix.OptionError, match="not an empty folder"):
        s.save(tmp_path / "new" / "daily")
    later = v.simulate(seed=1)
    later.rollback(1)
    assert later.metadata_location.endswith("/v4.gz.metadata.json")


def test_a_view_whose_metadata_file_is_not_known(tmp_path: Path) -> None:
    v = ix.open_view(PyIcebergView(("db", "daily"), PyIcebergViewMetadata.model_validate(view())))
    assert ix.open_view(v.save(tmp_path / "as it is").path).metadata.raw["versions"] == v.metadata.raw["versions"]
    s = v.simulate()
    s.replace("SELECT day, trips FROM other")
    assert "/metadata/00001-" in s.metadata_location and s.name == "db.daily"
    saved = s.save(tmp_path / "saved")
    assert ix.open_view(saved.path).sql() == s.sql() and [*saved.missing] == [v.metadata_location]


@pytest.mark.parametrize("name", ["v3.metadata.json.gz", "v3.gz.metadata.json", "v3.metadata.json"])
def test_metadata_files_are_compressed_as_their_names_say(name: str, tmp_path: Path) -> None:
    data = json.dumps(view()).encode()
    s = ix.open_view(write_view(tmp_path / "v", gzip.compress(data) if "gz" in name else data, name)).simulate()
    s.replace("SELECT day, trips FROM other")
    assert s.metadata_location.endswith("/v4.gz.metadata.json" if "gz" in name else "/v4.metadata.json")
    saved = s.save(tmp_path / "saved")
    for file in (saved.path / "metadata").glob("v*"):
        assert (file.read_bytes()[:2] == b"\x1f\x8b") == ("gz" in file.name) or file.name == "version-hint.text"
    assert ix.open_view(saved.path).sql() == s.sql()


def test_losing_metadata_files_of_a_catalog_are_not_saved(tmp_path: Path) -> None:
    name = "00000-fa6506c3-7681-40c8-86dc-e36561f83385.metadata.json"
    a = ix.open_view(write_view(tmp_path / "v", view(), name)).simulate(overlay=tmp_path / "overlay")
    b = a.fork()
    a.replace("SELECT day, trips FROM a")
    b.replace("SELECT day, trips FROM b")
    assert len(list((tmp_path / "overlay").rglob("*.json"))) == 3, "the losing attempt left an orphan file"
    saved = b.save(tmp_path / "saved")
    assert len(list((saved.path / "metadata").glob("*.json"))) == 3
    assert ix.open_view(saved.path).sql() == b.sql() and list(ix.open_view(saved.path).problems) == []


def test_metadata_files_of_one_name_in_several_folders_are_all_saved(tmp_path: Path) -> None:
    """A view that has moved has files of one name in its old folder and in the new one."""
    name = "v1.metadata.json"
    moved, oldest, older = (
        ix.open_view(write_view(tmp_path / where, view(location=str(tmp_path / where)), name), allow=[tmp_path])
        for where in ("new", "a", "b")
    )
    saved = ix.commits.save_view(
        moved._state, tmp_path / "saved", earlier=[oldest.metadata_location, older.metadata_location]
    )
    assert not saved.missing
    files = sorted(file.name for file in (saved.path / "metadata").glob("*.json"))
    assert files == ["1-v1.metadata.json", "2-v1.metadata.json", name]
    assert saved.metadata_location.endswith(f"/{name}") and saved.files == 4
    assert ix.open_view(saved.path).sql() == moved.sql()


def test_a_view_with_damage(tmp_path: Path) -> None:
    for changes, says in (
        ({"current-version-id": 7}, "no current version"),
        ({"versions": [version(1), version(1)]}, "several versions have the same id"),
        ({"versions": [version(1), {"version-id": "x"}]}, "an item of versions cannot be read"),
        ({"schemas": [schema(1), schema(1)]}, "several schemas have the same id"),
        ({"schemas": [schema(1), 5]}, "an item of schemas cannot be read"),
        ({"location": None}, "no location"),
        ({"properties": "x"}, "properties is not an object"),
        ({"version-log": 5}, "version-log is not a list"),
    ):
        v = ix.open_view(write_view(tmp_path / says.replace(" ", ""), view(**changes)))
        with pytest.raises(ix.FormatError, match=rf"no commit can be made on this metadata: .*{says}"):
            v.simulate()
    late = view([version(1, **{"timestamp-ms": 2**63 - 1})])
    with pytest.raises(ix.FormatError, match="no later time can be stored"):
        ix.open_view(write_view(tmp_path / "late", late)).simulate().rollback(1)
    largest = view([version(2**31 - 1)])
    with pytest.raises(ix.FormatError, match="the largest id"):
        ix.open_view(write_view(tmp_path / "largest", largest)).simulate().replace("SELECT day, trips FROM o")
    made = version(1, **{"storage-table": {"namespace": ["a"], "name": "s"}})
    with pytest.raises(ix.UnsupportedError, match="materialized view"):
        ix.open_view(write_view(tmp_path / "materialized", view([made]))).simulate().replace("SELECT day, trips FROM o")


def places(document: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value in a JSON document."""
    items = (
        document.items() if isinstance(document, dict) else enumerate(document if isinstance(document, list) else ())
    )
    for key, value in items:
        yield (*place, key)
        if isinstance(value, (dict, list)):
            yield from places(value, (*place, key))


@pytest.mark.parametrize("seed", range(40))
def test_any_damage_is_refused_or_kept_apart(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    sound = view([version(1), version(2, {"spark": SQL, "trino": SQL})], 1, 2, 1)
    document = copy.deepcopy(random.choice([sound, cleaned(EXAMPLE_REPLACED)]))
    for _ in range(random.randint(1, 2)):
        *way, last = random.choice(list(places(document)))
        inner: Any = document
        for key in way:
            inner = inner[key]
        inner[last] = random.choice([None, True, -1, 2**31, 2**70, 1.5, "", "x", [], {}, [1], {"a": 1}, [[]]])
    try:
        s = ix.open_view(write_view(tmp_path / "v", document)).simulate()
        s.set_properties({"replace.drop-dialect.allowed": "true", "version.history.num-entries": "2"})
        made = s.replace({"spark": "SELECT n FROM u"}, {"n": "long"})
    except ix.IceexploreError:
        return
    assert s.sql("spark") == "SELECT n FROM u" and made == s.version
    assert s.metadata.version_log[-1].version_id == made.version_id
    assert all(v.version_id <= made.version_id for v in s.versions) and len(s.versions) <= 2


def test_unknown_keys_and_representations_are_kept(tmp_path: Path) -> None:
    plan = {"type": "plan", "body": "AAA", "x": 1}
    first = version(1, representations=[plan, *version(1)["representations"]], **{"x-version": 1})
    s = ix.open_view(write_view(tmp_path / "v", view([first], **{"x-view": {"a": 1}}))).simulate()
    with pytest.raises(ix.UnsupportedError, match="cannot be copied: plan"):
        s.add_dialects({"trino": SQL})
    s.replace("SELECT day, trips FROM o")
    assert s.metadata.raw["x-view"] == {"a": 1} and s.metadata.raw["versions"][0] == first


# Arguments ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"dialect": None}, r"in which dialect is the SQL\? give dialect='spark'"),
        ({"sql": {"spark": SQL}}, "dialect= is for a single text"),
        ({"sql": {}, "dialect": None}, "give at least one query"),
        ({"sql": {"spark": SQL, "Spark": SQL}, "dialect": None}, "view-one-sql-per-dialect"),
        ({"sql": {"": SQL}, "dialect": None}, "a dialect's name is empty"),
        ({"sql": {"spark": 5}, "dialect": None}, "sql: .*wrong type"),
        ({"sql": 5, "dialect": None}, "sql is of type int"),
        ({"sql": " \n"}, "the SQL for spark is empty"),
        ({"sql": "SELECT '\ud800'"}, "lone surrogate"),
        ({"sql": "  create or replace  view v AS SELECT 1"}, "only the query after AS"),
        ({"schema": {}}, "at least one column"),
        ({"schema": None}, "give the columns of the view"),
        ({"schema": {"day": "date"}},
         r"returns 2 columns \(day, trips\), but the schema has 1 column \(day\).*view-columns"),
        ({"schema": {"day": "dat", "trips": "long"}}, "dat"),
        ({"schema": {"day": ("date", 5), "trips": "long"}}, "a type and a comment"),
        ({"schema": {"fields": [{"id": 1, "name": "a"}]}}, "schema: "),
        ({"schema": schema(0, *[{"id": 1, "name": n, "required": False, "type": "int"} for n in "ab"])}, "the same id"),
        ({"schema": schema(0, *[{"id": i, "name": "a", "required": False, "type": "int"} for i in (1, 2)])},
         "two columns have the name 'a'"),
        ({"default_catalog": ""}, "default_catalog=''"),
        ({"default_namespace": "a..b"}, "a part of the namespace is empty"),
        ({"default_namespace": 5}, "default_namespace=5"),
        ({"properties": {"a": 1}}, "properties: .*wrong type"),
        ({"properties": {"version.history.num-entries": "x"}}, "must be a positive number"),
        ({"properties": {"write.metadata.compression-codec": "zstd"}}, "none or gzip"),
        ({"summary": {"a": 1}}, "summary: .*wrong type"),
        ({"location": " / "}, "location="),
        ({"location": "\ud800"}, "lone surrogate"),
        ({"timestamp": "yesterday"}, "yesterday"),
        ({"timestamp": -1}, "give a time from 1970 on"),
        ({"timestamp": 2**63}, r"below 2\^63"),
    ],
)  # fmt: skip
def test_arguments(changes: dict[str, Any], says: str) -> None:
    with pytest.raises((ix.OptionError, ix.RuleError), match=says):
        small(**changes)


def test_arguments_of_operations() -> None:
    s = small(sql={"spark": SQL, "trino": SQL}, dialect=None)
    for change, says in (
        (lambda: s.replace(SQL), r"in which dialect .*the view has spark, trino"),
        (lambda: s.replace("SELECT * FROM u", dialect="spark"), r"cannot be known from its text: give schema="),
        (lambda: s.replace("SELECT day, n FROM u", dialect="spark"), r"returns 2 columns \(day, n\), but the view has"),
        (lambda: s.replace(SQL, dialect="spark", timestamp="2025-01-01"), "is before the view's last change"),
        (lambda: s.rollback(1, timestamp=2**63), r"below 2\^63"),
        (lambda: s.set_properties({"a": "1"}, remove=["a"]), "both set and removed"),
        (lambda: s.set_properties(cast(Any, ["a"])), "properties is of type list"),
        (lambda: s.set_properties(remove=cast(Any, [5])), "remove: 5 is not a string"),
        (lambda: s.rollback("x"), "not a version id"),
        (lambda: s.set_location("/elsewhere"), "are numbered, as in a folder"),
    ):
        with pytest.raises((ix.OptionError, ix.UnsupportedError), match=says):
            change()
    with pytest.raises(ix.SnapshotNotFoundError, match="no version 9 to roll back to; the nearest: 1"):
        s.rollback(9)
    assert not s.commits and len(s.writes) == 0


def test_schemas_in_every_form() -> None:
    table = pa.table({"day": pa.array([], pa.date32()), "trips": pa.array([], pa.int64())})
    for given_schema in (
        COLUMNS,
        table,
        table.schema,
        small().schema,
        small().metadata.raw["schemas"][0],
    ):
        s = small(schema=given_schema)
        assert s.schema is not None and [f.name for f in s.schema.fields] == ["day", "trips"]
    kept = PyIcebergSchema(NestedField(7, "n", LongType(), required=False, doc="a number"))
    s = small(sql="SELECT n FROM t", schema=kept)
    assert s.metadata.raw["schemas"] == [
        {"type": "struct", "schema-id": 0, "fields": [
            {"id": 7, "name": "n", "required": False, "type": "long", "doc": "a number"}]}
    ]  # fmt: skip
    s.replace("SELECT n, m FROM t", {"m": "list<int>", "n": ("long", "a number")})
    assert s.metadata.raw["schemas"][1]["fields"][0]["id"] == 8 and s.metadata.raw["schemas"][1]["fields"][1]["id"] == 7
    s.replace("SELECT m, n FROM t", {"m": "list<int>", "n": "long"})
    fields = s.metadata.raw["schemas"][2]["fields"]
    assert [(f["id"], f["name"]) for f in fields] == [(8, "m"), (7, "n")] and fields[0]["type"]["element-id"] == 9


def test_times(tmp_path: Path) -> None:
    s = ix.open_view(write_view(tmp_path / "v", view())).simulate()
    s.replace("SELECT day, trips FROM o", timestamp=START + 5 * HOUR)
    assert s.versions[1].timestamp_ms == START + 5 * HOUR == s.metadata.version_log[1].timestamp_ms
    s.rollback(1, timestamp=START + 5 * HOUR)
    assert s.at(timestamp=START + 5 * HOUR).sql() == s.sql(), "of equal times the later entry counts"
    s.replace("SELECT day, trips FROM now")
    assert s.metadata.version_log[-1].timestamp_ms > START + 9_000 * HOUR


# Hostile texts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(k for k, text in HOSTILE.items() if k != "surrogate" and text.strip()))
def test_hostile_texts_are_stored_as_they_are(name: str, tmp_path: Path) -> None:
    text = HOSTILE[name]
    sql = f"SELECT '{text}' AS x -- {text}"
    column = {"id": 1, "name": text, "required": False, "type": "string", "doc": text}
    s = ix.simulate_view(
        {text: sql}, schema(0, column), default_catalog=text, default_namespace=[text], properties={text: text},
        summary={text: text}, location=f"/w/{text}",
    )  # fmt: skip
    s.replace({text: sql + " "}, schema(0, {**column, "doc": "x"}), properties={"comment": text})
    v = ix.open_view(s.save(tmp_path / "saved").path)
    assert without(v.metadata.raw, "location") == without(json.loads(json.dumps(s.metadata.raw)), "location")
    assert v.sql(text) == sql + " " and v.properties[text] == v.properties["comment"] == text
    for output in (repr(s), s._repr_html_(), repr(s.commits), repr(s.writes)):
        assert not [sign for sign in ("\x1b", "\u202e") if sign in output]
    assert not [sign for sign in ("<script", "<img", "<b>bold") if sign in s._repr_html_()]
    with pytest.raises(ix.RuleError) as found:
        s.add_dialects({text: sql})
    assert "\x1b" not in str(found.value) and "\u202e" not in str(found.value) and len(str(found.value)) < 1000


def test_a_thousand_versions_are_committed_to(tmp_path: Path) -> None:
    versions = [version(i, f"SELECT day, trips FROM t{i}") for i in range(1, 1001)]
    kept = view(versions, properties={"version.history.num-entries": "1000"})
    s = ix.open_view(write_view(tmp_path / "v", kept)).simulate()
    s.replace("SELECT day, trips FROM another")
    assert (s.versions[0].version_id, len(s.versions), len(s.metadata.version_log)) == (1001, 1000, 1000)


# Any history ----------------------------------------------------------------------------------------------------------

TEXTS = [f"SELECT day, trips FROM t{i}" for i in range(3)]
OPERATIONS = st.one_of(
    st.tuples(st.just("replace"), st.sampled_from(TEXTS), st.sampled_from(["spark", "trino", "both"])),
    st.tuples(st.just("add_dialects"), st.sampled_from(["trino", "duckdb"])),
    st.tuples(st.just("rollback"), st.integers(1, 9)),
    st.tuples(st.just("keep"), st.integers(2, 4)),
    st.tuples(st.just("allow"), st.sampled_from(["true", "false"])),
    st.tuples(st.just("remove")),
    st.tuples(st.just("refresh")),
)


def run(s: ix.ViewSimulation, operation: tuple[Any, ...]) -> None:
    """Run one operation."""
    what, *how = operation
    if what == "replace":
        dialects = ["spark", "trino"] if how[1] == "both" else [how[1]]
        s.replace(dict.fromkeys(dialects, how[0]))
    elif what == "add_dialects":
        s.add_dialects({how[0]: s.sql(s.dialects[0])})
    elif what == "rollback":
        s.rollback(how[0])
    elif what == "keep":
        s.set_properties({"version.history.num-entries": str(how[0])})
    elif what == "allow":
        s.set_properties({"replace.drop-dialect.allowed": how[0]})
    elif what == "remove":
        s.remove_properties("version.history.num-entries", "replace.drop-dialect.allowed")
    else:
        s.refresh()


@given(st.lists(st.tuples(st.booleans(), OPERATIONS), max_size=25))
def test_any_history_of_two_writers_is_sound(history: list[tuple[bool, tuple[Any, ...]]]) -> None:
    a = small()
    b = a.fork()
    try:
        for second, operation in history:
            s = b if second else a
            published = len(s.commits)
            before = s.view
            try:
                run(s, operation)
            except (ix.RuleError, ix.SnapshotNotFoundError, ix.CommitConflictError):
                assert len(s.commits) == published and s.metadata.raw == before.metadata.raw, "nothing was changed"
                continue
            check_sound(s, operation)
        assert a.refresh().metadata.raw == b.refresh().metadata.raw
        assert len(a.commits) == len(a.writes), "a refused commit writes nothing"
        assert [f.code for f in a.check()] == []
    finally:
        a.close()


def check_sound(s: ix.ViewSimulation, operation: tuple[Any, ...]) -> None:
    """Check the state after an operation against the spec."""
    m = s.metadata
    ids, log = [v.version_id for v in m.versions], [e.version_id for e in m.version_log]
    assert list(s.problems) == [] and log[-1] == m.current_version_id and set(log) <= set(ids)
    assert len(ids) <= int(s.properties.get("version.history.num-entries", 10))
    in_time = sorted(m.versions, key=lambda v: v.timestamp_ms)
    assert [v.version_id for v in in_time] == sorted(ids)
    assert all(a != b for a, b in pairwise(log)), "an entry is a change of the current version"
    if operation[0] == "replace":
        assert s.sql("trino" if operation[2] == "trino" else "spark", translate=False) == operation[1]
