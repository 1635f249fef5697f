"""Upgrades step by step; in V4 partition fields become expressions, and specs read as they did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iceexplore.commits import RULES, evolve_schema, evolve_spec, upgrade
from iceexplore.errors import FormatError, Problems, RuleError, UnsupportedError
from iceexplore.metadata import parse_table_metadata
from iceexplore.storage import parse_document
from tests.commits.metadata_updates.document_table import (
    DAY,
    IDENTITY,
    checked,
    committed,
    history,
    metadata_of,
    old_v1,
    pure,
    table,
)

Json = dict[str, Any]


def refused(rule: str) -> Any:
    assert rule in RULES
    return pytest.raises(RuleError, match=rf"\[rule {rule}\]")


@pytest.mark.parametrize("field_ids", [True, False])
def test_an_old_v1_document_gets_its_lists(field_ids: bool) -> None:
    document = old_v1(field_ids=field_ids)
    for snapshot_id in (1, 2):
        document = committed(document, snapshot_id)
    after = checked(pure(upgrade, document, to=2))
    assert not {"schema", "partition-spec"} & set(after)
    assert after["schemas"][0]["schema-id"] == after["current-schema-id"] == after["default-spec-id"] == 0
    assert after["partition-specs"] == [
        {"spec-id": 0, "fields": [{"name": "ts_day", "transform": "day", "source-id": 2, "field-id": 1000}]}
    ]
    assert (after["last-partition-id"], after["last-sequence-number"]) == (1000, 0)
    assert [s["sequence-number"] for s in after["snapshots"]] == [0, 0]
    assert after["sort-orders"] == [{"order-id": 0, "fields": []}]
    assert after["x-vendor"] == {"a": 1}
    assert after["table-uuid"] == upgrade(document, 2)["table-uuid"]
    assert upgrade(document, 2, table_uuid="u")["table-uuid"] == "u"
    assert metadata_of(committed(after, 3)).snapshots[-1].sequence_number == 1


@pytest.mark.parametrize("to", [1, 2, 3, 4])
@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_every_step_is_valid_and_can_be_written_on(version: int, to: int) -> None:
    document = history(version, 2, spec=(DAY, IDENTITY))
    if to < version:
        with refused("format-version-rises"):
            upgrade(document, to)
        return
    after = checked(pure(upgrade, document, to=to))
    assert after["format-version"] == to
    assert (after == document) == (to == version)
    assert metadata_of(after).partition_specs == metadata_of(document).partition_specs
    assert metadata_of(after).schemas == metadata_of(document).schemas
    if version < 3 <= to:
        assert after["next-row-id"] == 0
        assert all("first-row-id" not in s for s in after["snapshots"])
    checked(committed(after, 3))


def test_versions_that_do_not_exist() -> None:
    for wrong in (5, 0, "3", True, None):
        with refused("format-version-rises"):
            upgrade(table(2), wrong)  # type: ignore[arg-type]
    with pytest.raises(FormatError, match="no commit can be made"):
        upgrade({**table(2), "format-version": 5}, 6)


def test_expressions_share_the_columns_id_space() -> None:
    document = table(3, spec=(DAY, IDENTITY, {"source-id": 1, "transform": "bucket[16]", "name": "b"}))
    document = evolve_schema(document, add={"n": "int"})  # id 4
    document = evolve_schema(document, drop=["n"])
    document = evolve_spec(document, rename={"ts_day": "day"}, add=["truncate(3, s)"])
    after = checked(pure(upgrade, document, to=4))
    truncate = {"source-id": 3, "transform": "truncate[3]"}
    assert after["expressions"] == [
        {"expr-id": 5, "expr": {"source-id": 2, "transform": "day"}, "name": "ts_day", "partition-field-id": 1000},
        {"expr-id": 6, "expr": {"source-id": 1, "transform": "bucket[16]"}, "name": "b", "partition-field-id": 1002},
        {"expr-id": 7, "expr": truncate, "name": "s_trunc_3", "partition-field-id": 1003},
    ]
    assert after["last-column-id"] == 7
    assert after["partition-specs"] == [
        {"spec-id": 0, "fields": [{"expr-id": 5}, {"field-id": 1001, **IDENTITY}, {"expr-id": 6}]},
        {"spec-id": 1, "fields": [
            {"expr-id": 5, "name": "day"}, {"field-id": 1001, **IDENTITY}, {"expr-id": 6}, {"expr-id": 7},
        ]},
    ]  # fmt: skip
    assert metadata_of(after).partition_specs == metadata_of(document).partition_specs
    added = checked(evolve_schema(after, add={"m": "int"}))
    assert [f.field_id for f in metadata_of(added).schema().fields] == [1, 2, 3, 8]


def test_a_column_id_above_last_column_id_is_not_given_again() -> None:
    document = {**table(3), "last-column-id": 1}
    assert upgrade(document, 4)["expressions"][0]["expr-id"] == 4


def test_transforms_of_several_columns_and_unknown_ones() -> None:
    document = table(3, spec=())
    fields = [
        {"field-id": 1000, "source-ids": [1, 3], "transform": "bucket[4]", "name": "both"},
        {"field-id": 1001, "source-id": 2, "transform": "zorder", "name": "z"},
        {"field-id": 1002, "source-id": 2, "transform": "void", "name": "v"},
    ]
    document["partition-specs"][0]["fields"] = fields
    after = upgrade(document, 4)
    assert [e["expr"] for e in after["expressions"]] == [
        {"source-ids": [1, 3], "transform": "bucket[4]"},
        {"source-id": 2, "transform": "zorder"},
        {"source-id": 2, "transform": "void"},
    ]
    assert metadata_of(after).partition_specs == metadata_of(document).partition_specs


def test_the_proposal_s_own_spelling_reads_the_same() -> None:
    """There, name and partition-field-id are within ``expr``."""
    after = upgrade(table(3), 4)
    inside = [
        {
            "expr-id": e["expr-id"],
            "expr": {**e["expr"], "name": e["name"], "partition-field-id": e["partition-field-id"]},
        }
        for e in after["expressions"]
    ]
    other = metadata_of({**after, "expressions": inside})
    assert other.partition_specs == metadata_of(after).partition_specs
    assert other.expressions[0].name == "ts_day"


def test_java_s_v4_keeps_its_specs() -> None:
    document = history(3)
    after = upgrade(document, 4, expressions=False)
    assert after == {**document, "format-version": 4}


def test_partition_fields_without_what_they_need_are_refused() -> None:
    document = table(3)
    document["partition-specs"][0]["fields"] = [{"field-id": 1000, "source-id": 2, "transform": "day"}]
    with pytest.raises(FormatError, match="lacks name"):
        upgrade(document, 4)


TERMS = ["day(ts)", "month(ts)", "bucket(16, id)", "bucket(8, s)", "truncate(4, s)", "s", "id"]


@given(st.sampled_from([1, 2, 3]), st.lists(st.tuples(st.booleans(), st.sampled_from(TERMS)), max_size=8))
def test_specs_of_any_history_read_the_same_after_an_upgrade(version: int, changes: list[tuple[bool, str]]) -> None:
    document = table(version, spec=())
    for adds, term in changes:
        try:
            document = evolve_spec(document, add=[term] if adds else (), remove=() if adds else [term])
        except RuleError:
            continue
    before = metadata_of(document)
    after = pure(upgrade, document, to=4)
    metadata = metadata_of(after)
    assert metadata.partition_specs == before.partition_specs
    assert metadata.default_spec_id == before.default_spec_id
    ids = [e.expr_id for e in metadata.expressions]
    assert ids == list(range(4, 4 + len(ids)))
    assert upgrade(after, 4) == after


@pytest.mark.corpus
def test_real_tables_are_upgraded(corpus: Path) -> None:
    count = 0
    for path in sorted(corpus.rglob("*.metadata.json*")):
        try:
            document, _ = parse_document(path.read_bytes(), str(path))
            before = parse_table_metadata(document, str(path), Problems(strict=True))
        except (FormatError, UnsupportedError):
            continue  # damaged on purpose, or no table
        for to in range(before.format_version, 5):
            after = parse_table_metadata(pure(upgrade, document, to=to), str(path), Problems(strict=True))
            assert after.partition_specs == before.partition_specs, path
            assert after.schemas == before.schemas, path
            assert after.refs == before.refs, path
            assert [s.snapshot_id for s in after.snapshots] == [s.snapshot_id for s in before.snapshots]
        count += 1
    assert count > 300
