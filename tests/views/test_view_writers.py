"""The sentences of the view spec, and of its early draft, that a writer honours, each as a test."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from pyiceberg.view.metadata import ViewMetadata as PyIcebergView

import iceexplore as ix
from iceexplore.commits import adopted_form
from tests.views.view_documents import (
    EXAMPLE_CREATED,
    EXAMPLE_REPLACED,
    HOUR,
    START,
    cleaned,
    version,
    view,
    without,
    write_view,
)

COLUMNS = {"day": "date", "trips": "long"}
SQL = "SELECT day, count(*) AS trips FROM t GROUP BY day"
OTHER = SQL.replace("FROM t", "FROM u")


def created(**changes: object) -> ix.ViewSimulation:
    """A simulated view of one version."""
    return ix.simulate_view(**{"sql": SQL, "schema": COLUMNS, "dialect": "spark", "seed": 1, **changes})  # type: ignore[arg-type]


def log_of(v: ix.View) -> list[int]:
    """The version ids of the log."""
    return [entry.version_id for entry in v.metadata.version_log]


def ids_of(v: ix.View) -> list[int]:
    """The ids of the versions, in the order in which they are stored."""
    return [one.version_id for one in v.versions]


# Metadata location ----------------------------------------------------------------------------------------------------


def test_each_change_writes_one_new_metadata_file_and_none_is_changed(tmp_path: Path) -> None:
    s = created(overlay=tmp_path)
    seen: dict[Path, bytes] = {}
    for change in (lambda: s.replace(OTHER), lambda: s.rollback(1), lambda: s.set_properties({"k": "v"})):
        change()
        now = {place: place.read_bytes() for place in tmp_path.rglob("*.json")}
        assert len(now) == len(seen) + 1 and seen.items() <= now.items()
        seen = now
    s.set_properties({"k": "v"})
    s.rollback(1)
    s.replace(SQL)
    assert len(list(tmp_path.rglob("*.json"))) == 3, "nothing has changed, so nothing is written"


def test_metadata_files_are_written_below_the_location(tmp_path: Path) -> None:
    s = created(location="s3://bucket/warehouse/db/daily")
    s.replace(OTHER)
    assert s.metadata_location == "s3://bucket/warehouse/db/daily/metadata/v2.gz.metadata.json"
    name = "00004-fa6506c3-7681-40c8-86dc-e36561f83385.gz.metadata.json"
    s = ix.open_view(write_view(tmp_path / "v", view(location=f"file://{tmp_path}/v"), name)).simulate()
    s.set_location("s3://bucket/moved/")
    assert s.metadata_location.startswith("s3://bucket/moved/metadata/00005-") and s.location == "s3://bucket/moved"
    s.set_properties({"write.metadata.path": "s3://bucket/meta/", "write.metadata.compression-codec": "none"})
    assert s.metadata_location.startswith("s3://bucket/meta/00006-")
    assert s.metadata_location.endswith(".metadata.json") and ".gz." not in s.metadata_location


def test_any_metadata_file_can_be_used_to_roll_back(tmp_path: Path) -> None:
    s = created()
    s.replace(OTHER)
    saved = s.view.save(tmp_path / "saved")
    assert [p.name for p in (saved.path / "metadata").glob("*.json")] == ["v2.gz.metadata.json"], "only the newest"
    again = ix.open_view(saved.path).simulate()
    again.rollback(1)
    assert again.sql() == SQL and log_of(again) == [1, 2, 1]


def test_writers_commit_optimistically_and_try_again_on_the_newest_state() -> None:
    a = created()
    b = a.fork()
    a.replace(OTHER)
    assert ids_of(b) == [1], "a reader is not affected by changes until it refreshes"
    b.replace(SQL.replace("FROM t", "FROM w"))
    assert (ids_of(b), log_of(b)) == ([1, 2, 3], [1, 2, 3]), "both versions are in the history"
    assert [(c.what, c.attempts, c.version_id) for c in b.commits] == [("replace", 1, 2), ("replace", 2, 3)]
    assert a.refresh() is a and a.metadata.raw == b.metadata.raw


def test_the_swap_is_atomic_so_of_many_writers_none_is_lost() -> None:
    a = created(properties={"version.history.num-entries": "100", "commit.retry.num-retries": "100"})
    writers = [a.fork() for _ in range(4)]

    def write(s: ix.ViewSimulation, name: str) -> None:
        for i in range(5):
            s.replace(SQL.replace("FROM t", f"FROM {name}{i}"))

    threads = [threading.Thread(target=write, args=(s, f"t{i}_")) for i, s in enumerate(writers)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    a.refresh()
    assert ids_of(a) == log_of(a) == list(range(1, 22)) and a.check().ok
    assert len({one.sql[0].sql for one in a.versions}) == 21


def test_a_writer_that_does_not_retry_gets_a_conflict() -> None:
    a = created()
    b = a.fork()
    a.replace(OTHER)
    with pytest.raises(ix.CommitConflictError, match=r"version 2 is current.*refresh\(\).*view-unchanged"):
        b.replace(SQL.replace("FROM t", "FROM w"), retry=False)
    b.refresh()
    assert b.replace(SQL.replace("FROM t", "FROM w"), retry=False).version_id == 3


# View metadata --------------------------------------------------------------------------------------------------------


def test_the_first_version_is_1_and_the_format_version_is_1() -> None:
    s = created()
    raw = s.metadata.raw
    assert (raw["current-version-id"], raw["format-version"], ids_of(s), log_of(s)) == (1, 1, [1], [1])
    assert PyIcebergView.model_validate(raw).view_uuid == s.uuid
    assert list(raw) == ["view-uuid", "format-version", "location", "schemas", "current-version-id", "versions",
                         "version-log"], "as Java orders them"  # fmt: skip


def test_the_uuid_is_generated_when_the_view_is_created_and_kept() -> None:
    s = created(seed=None)
    uuid = s.uuid
    s.replace(OTHER)
    s.set_properties({"k": "v"})
    assert s.uuid == uuid != created(seed=None).uuid


def test_each_change_of_the_current_version_adds_an_entry_to_the_log() -> None:
    s = created()
    s.replace(OTHER)
    s.set_properties({"comment": "x"})
    assert log_of(s) == [1, 2], "properties are no change of it"
    s.rollback(1)
    first, *_, last = s.metadata.version_log
    assert log_of(s) == [1, 2, 1] and last.timestamp_ms > first.timestamp_ms
    assert s.versions[0].timestamp_ms == first.timestamp_ms, "the time of creation stays"
    assert s.inspect.version_log()["is_rollback"].tolist() == [False, False, True]


def test_the_number_of_versions_is_limited_by_the_property() -> None:
    s = created()
    for i in range(2, 14):
        s.replace(SQL.replace("FROM t", f"FROM t{i}"))
    assert ids_of(s) == list(range(13, 3, -1)) and log_of(s) == list(range(4, 14)), "10 by default"
    s.rollback(6)
    s.set_properties({"version.history.num-entries": "3"})
    assert ids_of(s) == [6, 13, 12], "the current one and the latest, in the order in which Java writes them"
    assert log_of(s) == [12, 13, 6], "the log begins after its last entry of an expired version"
    s.set_properties({"version.history.num-entries": "1"})
    assert (ids_of(s), log_of(s)) == ([6], [6]) and s.check().ok
    with pytest.raises(ix.SnapshotNotFoundError, match=r"no version 12 to roll back to; the nearest: 6"):
        s.rollback(12)
    assert s.replace(SQL).version_id == 7, "ids of expired versions come again, as in Java"


@pytest.mark.parametrize("value", ["0", "-1", "many", ""])
def test_the_number_of_versions_is_positive(value: str) -> None:
    s = created()
    with pytest.raises(ix.OptionError, match=r"version\.history\.num-entries=.* must be a positive number"):
        s.set_properties({"version.history.num-entries": value})
    assert not s.properties and not s.commits


# Versions -------------------------------------------------------------------------------------------------------------


def test_an_identical_version_is_reused() -> None:
    s = created()
    s.replace(OTHER)
    assert s.replace(SQL).version_id == 1 and (ids_of(s), log_of(s)) == ([1, 2], [1, 2, 1])
    s.rollback(2)
    for change in (
        {"summary": {"engine-name": "other"}},
        {"default_catalog": "c"},
        {"default_namespace": "n"},
        {"schema": {"day": ("date", "a comment"), "trips": "long"}},
        {"sql": {"spark": SQL, "trino": SQL}},
        {"sql": {"trino": SQL, "spark": SQL}},
        {"sql": {"spark": SQL + " ", "trino": SQL}},
    ):
        before = len(s.versions)
        s.replace(**{"sql": SQL, **change})  # type: ignore[arg-type]
        assert len(s.versions) == before + 1, change
        if "sql" not in change:
            s.rollback(2)


def test_sql_that_a_version_has_brings_its_columns() -> None:
    s = created()
    s.replace("SELECT * FROM t", {**COLUMNS, "x": "double"})
    s.replace(OTHER, COLUMNS)
    assert s.replace("SELECT * FROM t").version_id == 2 and log_of(s) == [1, 2, 3, 2]


def test_versions_are_immutable() -> None:
    s = created()
    first = dict(s.versions[0].raw)
    s.replace(OTHER)
    s.add_dialects({"trino": OTHER})
    s.set_properties({"replace.drop-dialect.allowed": "true"})
    s.rollback(1)
    assert s.versions[0].raw == first and s.check().ok


def test_an_equal_schema_is_reused_and_ids_are_kept_by_name() -> None:
    s = created()
    s.replace(f"SELECT day, trips, 1.5 AS x FROM ({SQL})", {**COLUMNS, "x": "double"})
    s.replace(f"SELECT x, day FROM ({SQL})", {"x": "double", "day": "date"})
    s.replace(OTHER, COLUMNS)
    assert [[(f.field_id, f.name) for f in one.fields] for one in s.metadata.schemas] == [
        [(1, "day"), (2, "trips")], [(1, "day"), (2, "trips"), (3, "x")], [(3, "x"), (1, "day")]
    ]  # fmt: skip
    assert s.version is not None and s.version.schema_id == 0


def test_added_dialects_make_a_new_version() -> None:
    s = created()
    s.add_dialects({"trino": SQL, "duckdb": s.sql("duckdb")})
    assert s.dialects == ("spark", "trino", "duckdb") and s.versions[0].dialects == ("spark",)
    with pytest.raises(ix.RuleError, match=r"'TRINO'.*view-one-sql-per-dialect"):
        s.add_dialects({"TRINO": SQL})


def test_a_dialect_is_dropped_only_if_the_property_allows_it() -> None:
    s = created(sql={"spark": SQL, "trino": SQL}, dialect=None)
    for change in (lambda: s.replace(OTHER, dialect="Spark"), lambda: s.replace({"trino": OTHER, "duckdb": OTHER})):
        with pytest.raises(ix.RuleError, match=r"replace\.drop-dialect\.allowed.*view-dialects-kept"):
            change()
    assert not s.commits
    s.set_properties({"replace.drop-dialect.allowed": "TRUE"})
    assert s.replace(OTHER, dialect="spark").dialects == ("spark",)
    s.rollback(1)
    s.remove_properties("replace.drop-dialect.allowed", "never there")
    with pytest.raises(ix.RuleError, match=r"no SQL for trino.*view-dialects-kept"):
        s.rollback(2)
    assert log_of(s) == [1, 2, 1]


def test_a_conflict_names_the_rule_that_the_other_commit_brought_into_play() -> None:
    a = created()
    b = a.fork()
    a.add_dialects({"trino": SQL})
    with pytest.raises(ix.CommitConflictError, match=r"version 2 is current.*no SQL for trino") as found:
        b.replace(OTHER, dialect="spark")
    assert found.value.rule == "view-dialects-kept" and ids_of(a) == [1, 2] and len(a.commits) == 1
    a.set_properties({"version.history.num-entries": "1"})
    b.refresh()
    with pytest.raises(ix.SnapshotNotFoundError):
        b.rollback(1)
    b = created()
    b.replace(OTHER)
    a = b.fork()
    a.set_properties({"version.history.num-entries": "1"})
    with pytest.raises(ix.CommitConflictError, match="no version 1 to roll back to"):
        b.rollback(1)


def test_a_translation_of_a_query_that_was_replaced_is_a_conflict() -> None:
    a = created()
    b = a.fork()
    a.replace(OTHER)
    with pytest.raises(ix.CommitConflictError, match="no longer the current one") as found:
        b.add_dialects({"trino": SQL})
    assert found.value.rule == "view-unchanged" and a.dialects == ("spark",)
    a.set_properties({"k": "v"})
    b.refresh()
    assert b.add_dialects({"trino": OTHER}).dialects == ("spark", "trino")


def test_nothing_to_do_on_an_old_state_is_done_on_the_newest() -> None:
    a = created()
    b = a.fork()
    a.replace(OTHER)
    assert b.replace(SQL).version_id == 1 and log_of(b) == [1, 2, 1], "the last writer's query is the current one"
    with pytest.raises(ix.CommitConflictError, match="view-unchanged"):
        a.replace(OTHER, retry=False)


# The early draft ------------------------------------------------------------------------------------------------------

SUMMARIES = ({"engineVersion": "presto-350"}, {"engineVersion": "spark-2.4.4"})
COMMENTS = ({"comment": "View captures all the data from the table"},
            {"comment": "View captures count of the data from the table"})  # fmt: skip


def replayed(*, early_draft: bool) -> list[ix.View]:
    """The views after CREATE VIEW and after CREATE OR REPLACE VIEW of the early draft's example."""
    first, second = cleaned(EXAMPLE_CREATED), cleaned(EXAMPLE_REPLACED)
    sql = [v["representations"][0]["sql"] for v in second["versions"]]
    times = [v["timestamp-ms"] for v in second["versions"]]
    s = ix.simulate_view(
        sql[0], first["schemas"][0], dialect="presto", default_catalog="iceberg", default_namespace="anorwood",
        properties=COMMENTS[0], summary=SUMMARIES[0], location=first["location"], timestamp=times[0],
        early_draft=early_draft,
    )  # fmt: skip
    before = s.view
    s.set_properties({"replace.drop-dialect.allowed": "true"})
    s.replace(sql[1], second["schemas"][1], dialect="spark", properties=COMMENTS[1], summary=SUMMARIES[1],
              timestamp=times[1])  # fmt: skip
    return [before, s]


def test_the_operations_of_the_example_replay_to_its_documents() -> None:
    before, after = replayed(early_draft=True)
    assert before.metadata.raw == cleaned(EXAMPLE_CREATED)
    wanted = cleaned(EXAMPLE_REPLACED)
    assert wanted["versions"][0].pop("properties") == {}, "a key that the first document does not have"
    found = json.loads(json.dumps(after.metadata.raw))
    assert found["properties"].pop("replace.drop-dialect.allowed") == "true", "the example drops presto"
    assert found == wanted


def test_a_commit_to_an_early_draft_writes_the_adopted_form(tmp_path: Path) -> None:
    s = ix.open_view(replayed(early_draft=True)[1].save(tmp_path / "draft").path).simulate()
    assert s.metadata.early_draft
    s.set_properties({"k": "v"})
    for made in (s, replayed(early_draft=False)[1]):
        assert not made.metadata.early_draft and list(made.problems) == []
        assert PyIcebergView.model_validate(made.metadata.raw).current_version_id == 2
    v = ix.open_view(write_view(tmp_path / "v", cleaned(EXAMPLE_REPLACED)))
    document = adopted_form(v.metadata.raw, "fa6506c3-7681-40c8-86dc-e36561f83385")
    new = ix.open_view(write_view(tmp_path / "new", document))
    assert list(new.problems) == [] and new.check().ok and not new.metadata.early_draft
    for i in (1, 2):
        old, now = v.at(i), new.at(i)
        assert old.sql() == now.sql() and old.schema == now.schema
        assert old.version and now.version and old.version.catalog_of() == now.version.catalog_of() == "iceberg"
        assert old.version.namespace_of() == now.version.namespace_of() == ("anorwood",)
    assert "parent-version-id" not in json.dumps(document) and "current-schema-id" not in document
    with pytest.raises(ix.OptionError, match="adopted spec"):
        new.simulate(early_draft=True)


def test_in_the_early_draft_a_version_names_its_parent_and_its_operation() -> None:
    _, s = replayed(early_draft=True)
    assert [(v.parent_version_id, v.operation) for v in s.versions] == [(-1, "create"), (1, "replace")]
    assert s.metadata.current_schema_id == 2
    assert isinstance(s, ix.ViewSimulation)
    s.rollback(1)
    assert s.metadata.current_schema_id == 1 and log_of(s) == [1, 2, 1]


def test_aliases_and_docs_become_columns_in_the_adopted_form(tmp_path: Path) -> None:
    made = cleaned(EXAMPLE_CREATED)
    made["versions"][0]["representations"][0] |= {"field-aliases": ["one", None], "field-docs": [None, "two"]}
    s = ix.open_view(write_view(tmp_path / "v", made)).simulate()
    s.set_properties({"k": "v"})
    assert s.schema is not None and [(f.name, f.doc) for f in s.schema.fields] == [("one", ""), ("c2", "two")]
    assert s.version is not None and s.version.schema_id == 2 and list(s.problems) == []


def test_what_the_adopted_form_cannot_express_is_refused(tmp_path: Path) -> None:
    made = cleaned(EXAMPLE_CREATED)
    first = made["versions"][0]["representations"][0]
    made["versions"][0]["representations"].append({**first, "dialect": "spark", "default-catalog": "other"})
    v = ix.open_view(write_view(tmp_path / "v", made))
    with pytest.raises(
        ix.UnsupportedError, match=r"different schemas, defaults, aliases or comments.*early_draft=True"
    ):
        v.simulate().set_properties({"k": "v"})
    s = v.simulate(early_draft=True)
    s.set_properties({"k": "v"})
    assert s.metadata.early_draft and s.properties["k"] == "v"
    bare = without(made, "schemas", "current-schema-id")
    bare["versions"][0]["representations"] = [without(first, "schema-id")]
    with pytest.raises(ix.UnsupportedError, match="has no schema"):
        ix.open_view(write_view(tmp_path / "bare", bare)).simulate().set_properties({"k": "v"})


def test_a_time_travelled_view_begins_with_its_version(tmp_path: Path) -> None:
    v = ix.open_view(write_view(tmp_path / "v", view([version(1), version(2)])))
    s = v.at(timestamp=START + HOUR).simulate()
    assert s.version is not None and s.version.version_id == 1 and log_of(s) == [1, 2, 1]
    assert log_of(v.simulate()) == [1, 2]
