"""Maintenance plans: what the procedures would do, with sources, costs, statements and the table after them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import iceexplore as ix
from iceexplore.doctor import Maintenance, Threshold
from iceexplore.errors import FileMissingError, OptionError, RuleError

DAY = 86_400_000


@pytest.fixture
def lab(tmp_path: Path) -> ix.Lab:
    """A lab with four snapshots, of which one is on a branch, and one tag."""
    lab = ix.create(tmp_path / "db" / "t", {"id": "long"}, format_version=2)
    lab.append({"id": [1, 2]})
    lab.tag("first")
    lab.append({"id": [3]})
    lab.branch("dev", min_snapshots_to_keep=2)
    lab.append({"id": [4]}, ref="dev")
    lab.overwrite({"id": [5]})
    return lab


def maintenance(table: ix.Table, days: float = 0) -> Maintenance[ix.Simulation]:
    """The maintenance of a table some days from now."""
    m = table.maintenance()
    m.now_ms += int(days * DAY)
    return m


def test_young_snapshots_stay(lab: ix.Lab) -> None:
    plan = lab.maintenance().expire_snapshots()
    assert plan.nothing
    assert plan.text == "no snapshot expires, 4 are kept"
    assert {k.reason for k in plan.snapshots.kept} == {
        "branch 'main' points to it",
        "branch 'dev' points to it",
        "tag 'first' points to it",
        "younger than 5 days, in branch 'main' (default of history.expire.max-snapshot-age-ms)",
    }


def test_each_reason_has_its_source(lab: ix.Lab) -> None:
    lab.set_properties({"history.expire.max-snapshot-age-ms": str(2 * DAY)})
    reasons = lab.maintenance().expire_snapshots(retain_last=2).reasons
    assert reasons == (
        Threshold("history.expire.max-snapshot-age-ms", str(2 * DAY), "table property", "2 days"),
        Threshold("history.expire.min-snapshots-to-keep", "2", "argument retain_last"),
        Threshold("history.expire.max-ref-age-ms", str(2**63 - 1), "default of Iceberg", "without limit"),
        Threshold("gc.enabled", "true", "default of Iceberg"),
        Threshold("min-snapshots-to-keep", "2", "branch dev"),
    )


def test_the_table_after_an_expiry_lacks_what_the_plan_names(lab: ix.Lab) -> None:
    lab.remove_ref("dev")
    plan = maintenance(lab, days=6).expire_snapshots()
    assert len(plan.snapshots) == 2
    after = plan.table
    assert {s.snapshot_id for s in after.snapshots} == {k.snapshot_id for k in plan.snapshots.kept}
    assert after.count() == lab.count()
    assert len(lab.snapshots) == 4  # the table itself is as it was
    assert plan.table is after


def test_files_that_a_lab_then_deletes_are_those_of_the_plan(lab: ix.Lab, tmp_path: Path) -> None:
    lab.remove_ref("dev")
    lab.remove_ref("first")
    folder = tmp_path / "db" / "t"

    def files() -> set[str]:
        return {str(p) for p in folder.rglob("*") if p.is_file() and not p.name.endswith(".metadata.json")}

    before = files()
    plan = lab.maintenance().expire(older_than="0s")
    planned = {lab.state.storage.resolve(place): size for place, size in _files(plan.files)}
    assert {place: Path(place).stat().st_size for place in planned} == planned
    lab.expire_snapshots(older_than=plan.older_than_ms)
    assert before - files() == planned.keys()
    assert plan.counts == {
        "deleted_data_files_count": 3,
        "deleted_position_delete_files_count": 0,
        "deleted_equality_delete_files_count": 0,
        "deleted_manifest_files_count": 3,
        "deleted_manifest_lists_count": 3,
        "deleted_statistics_files_count": 0,
    }
    assert (plan.cost.files_freed, plan.cost.bytes_freed) == (9, sum(planned.values()))


def _files(files: object) -> list[tuple[str, int]]:
    rows = files.to_pylist()  # type: ignore[attr-defined]
    return [(row["location"], row["bytes"]) for row in rows]


def test_a_time_travelled_table_has_the_plans_of_the_newest_snapshot(lab: ix.Lab) -> None:
    old = lab.at("first").maintenance().expire("0s")
    new = lab.maintenance().expire("0s")
    assert set(old.snapshots) == set(new.snapshots)
    assert old.table.snapshot == lab.snapshot


def test_statements_name_the_table_and_the_arguments(lab: ix.Lab) -> None:
    plan = lab.maintenance().expire(older_than="2024-01-31T12:00:00.5", retain_last=3)
    calls = {call.engine: call.code for call in plan.calls}
    assert calls["Spark SQL"] == (
        "CALL catalog_name.system.expire_snapshots(table => 'db.t', "
        "older_than => TIMESTAMP '2024-01-31 12:00:00.500Z', retain_last => 3)"
    )
    assert calls["iceexplore"] == f"lab.expire_snapshots(older_than={plan.older_than_ms}, retain_last=3)"
    assert "PyIceberg" not in calls  # nothing expires
    lab.remove_ref("dev")
    expired = lab.maintenance().expire("0s")
    assert len(expired.snapshots) == 2
    ids = ", ".join(map(str, expired.snapshots))
    assert expired.calls[1].code == f"table.maintenance.expire_snapshots().by_ids([{ids}]).commit()"


def test_engines_refuse_without_garbage_collection(lab: ix.Lab) -> None:
    lab.set_properties({"gc.enabled": "false"})
    m = lab.maintenance()
    with pytest.raises(RuleError, match="expire-gc"):
        m.expire_snapshots()
    assert "gc.enabled is false" in m.refused["expire_snapshots"]
    assert "gc.enabled is false" in repr(m)


def test_a_plan_is_not_guessed_where_a_manifest_list_is_missing(lab: ix.Lab) -> None:
    lab.remove_ref("dev")
    snapshot = lab.snapshot
    assert snapshot is not None
    Path(lab.state.storage.resolve(snapshot.root_location or "")).unlink()
    table = ix.open(lab.location)
    assert table.maintenance().expire_snapshots().nothing  # no list is needed to know it
    with pytest.raises(FileMissingError):
        maintenance(table, days=6).expire_snapshots()


@pytest.mark.parametrize(("given", "match"), [("soon", "older_than='soon'"), (object(), "older_than=")])
def test_times_that_are_none_are_refused(lab: ix.Lab, given: object, match: str) -> None:
    with pytest.raises(OptionError, match=match):
        lab.maintenance().expire_snapshots(older_than=given)
    with pytest.raises(OptionError, match="retain_last"):
        lab.maintenance().expire_snapshots(retain_last=0)


def test_the_card_and_the_json_have_every_plan(lab: ix.Lab) -> None:
    m = maintenance(lab, days=6)
    text, page, frame = repr(m), m._repr_html_(), m.to_pandas()
    for name in m.plans:
        assert name in text
        assert name in page
        assert name in set(frame["procedure"])
    values = json.loads(m.to_json())
    assert values["version"] == 1
    assert values["plans"].keys() == m.plans.keys()
    for name, plan in m.plans.items():
        assert values["plans"][name] == json.loads(plan.to_json())
        assert plan.title in repr(plan)
        assert plan.title in plan._repr_html_()
        assert len(plan.to_pandas()) >= 0
