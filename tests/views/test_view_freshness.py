"""Materialized views, as the open proposal defines them: freshness, with real storage tables and sources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.views import read_refresh_state
from tests.helpers.hangs import ends
from tests.helpers.hostile import HOSTILE
from tests.views.test_view_hostile import IN_HTML, IN_TEXT
from tests.views.view_documents import UUID, schema, version, view, write_view

COLUMN = {"id": 1, "name": "n", "required": False, "type": "long"}
STORAGE = {"namespace": ["db"], "name": "v__storage"}
SQL = "SELECT count(*) FROM trips"


class Warehouse:
    """A materialized view ``db.v`` of ``db.trips``, whose storage table is ``db.v__storage``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.trips = ix.create(folder / "db" / "trips", {"id": "long"})
        self.trips.append({"id": [1, 2]})
        self.storage = ix.create(folder / "db" / "v__storage", {"n": "long"})
        self.write()

    def write(self, sql: str = SQL, version_id: int = 1, name: str = "v", storage: Any = STORAGE) -> None:
        """Write the view's metadata."""
        document = view([version(version_id, sql, **{"storage-table": storage})], schemas=[schema(1, COLUMN)])
        write_view(self.folder / "db" / name, document)

    def source(self, **changes: Any) -> dict[str, Any]:
        """The state of ``trips`` now."""
        table = self.trips.table
        assert table.snapshot is not None
        return {
            "type": "table", "namespace": ["db"], "name": "trips", "uuid": table.metadata.table_uuid,
            "snapshot-id": table.snapshot.snapshot_id, **changes,
        }  # fmt: skip

    def refresh(self, *sources: dict[str, Any], text: str | None = None, **changes: Any) -> None:
        """Commit to the storage table, with a refresh state in the summary."""
        state = {
            "view-version-id": 1,
            "refresh-start-timestamp-ms": 1_700_000_000_000,
            "source-states": sources,
            **changes,
        }
        self.storage.append({"n": [2]})
        path = Path(self.storage.metadata_location.removeprefix("file://"))
        document = json.loads(path.read_text())
        document["snapshots"][-1]["summary"]["refresh-state"] = json.dumps(state) if text is None else text
        path.write_text(json.dumps(document))
        self.storage = ix.lab(self.folder / "db" / "v__storage")

    def freshness(self) -> ix.views.Freshness:
        """The freshness now."""
        return ix.open_view(self.folder / "db" / "v").freshness()


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path)


def test_fresh_until_a_source_changes(warehouse: Warehouse) -> None:
    assert warehouse.freshness().status == "stale"
    assert "never refreshed" in warehouse.freshness().rule
    warehouse.refresh(warehouse.source())
    found = warehouse.freshness()
    assert (found.status, [one.status for one in found.sources]) == ("fresh", ["fresh"])
    assert found.refresh is not None and found.snapshot_id == warehouse.storage.snapshot.snapshot_id  # type: ignore[union-attr]
    assert "proposal" in repr(found) and "2023-11-14" in repr(found)
    recorded = found.sources[0].recorded_id
    warehouse.trips.append({"id": [3]})
    found = warehouse.freshness()
    assert (found.status, found.sources[0].recorded_id) == ("stale", recorded)
    assert found.sources[0].current_id == warehouse.trips.table.snapshot.snapshot_id  # type: ignore[union-attr]
    assert "db.trips (another snapshot is current)" in found.rule
    assert found.to_pandas()["status"].tolist() == ["stale"]


def test_rewritten_files(warehouse: Warehouse) -> None:
    warehouse.trips.append({"id": [3]})
    warehouse.refresh(warehouse.source())
    warehouse.storage.append({"n": [4]})
    assert warehouse.freshness().status == "unknowable", "an append that records no refresh"
    warehouse.refresh(warehouse.source())
    warehouse.storage.compact()
    assert warehouse.freshness().status == "fresh", "a rewrite of the storage table keeps its rows"
    warehouse.trips.compact()
    found = warehouse.freshness()
    assert found.status == "stale" and "the rows are the same" in found.rule


def test_the_rule_that_decides(warehouse: Warehouse) -> None:
    branch = warehouse.source(ref="audit")
    cases: list[tuple[list[dict[str, Any]], dict[str, Any], str, str]] = [
        ([], {}, "unknowable", "prod.db.trips (not recorded)"),
        ([warehouse.source()], {"view-version-id": 7}, "stale", "The data is the result of version 7"),
        ([warehouse.source(uuid=UUID)], {}, "stale", "dropped and created again"),
        ([branch], {}, "stale", "it has no branch audit"),
        ([warehouse.source(), warehouse.source(name="elsewhere")], {}, "unknowable", "not found beside the view"),
        ([warehouse.source(type="view", **{"version-id": 1})], {}, "unknowable", "not opened as a view"),
    ]
    for sources, changes, status, rule in cases:
        warehouse.refresh(*sources, **changes)
        found = warehouse.freshness()
        assert (found.status, rule in found.rule) == (status, True), found.rule
    warehouse.trips.branch("audit")
    warehouse.refresh(branch)
    warehouse.trips.append({"id": [9]})
    assert warehouse.freshness().status == "fresh", "of the branch"
    warehouse.refresh(warehouse.source())
    warehouse.write("SELECT FROM WHERE")
    assert warehouse.freshness().status == "unknowable"
    assert "its sources are not known" in warehouse.freshness().rule


def test_views_inside_a_materialized_view(warehouse: Warehouse) -> None:
    warehouse.write(name="mid", storage=None)
    warehouse.write("SELECT n FROM mid")
    mid = {"type": "view", "namespace": ["db"], "name": "mid", "uuid": UUID, "version-id": 1}
    warehouse.refresh(mid)
    assert "prod.db.trips (not recorded)" in warehouse.freshness().rule
    warehouse.refresh(warehouse.source())
    assert "prod.db.mid (not recorded)" in warehouse.freshness().rule
    warehouse.refresh(mid, warehouse.source())
    assert warehouse.freshness().status == "fresh"
    warehouse.write("SELECT count(*) FROM trips -- changed", 2, name="mid", storage=None)
    found = warehouse.freshness()
    assert found.status == "stale" and "db.mid (another version is current)" in found.rule
    # An upstream materialized view may be recorded by its storage table alone.
    warehouse.write(name="mid", storage={"namespace": ["db"], "name": "trips"})
    warehouse.refresh(warehouse.source())
    assert warehouse.freshness().status == "fresh"


def test_what_is_not_a_materialized_view(warehouse: Warehouse) -> None:
    warehouse.write(storage=None)
    with pytest.raises(ix.OptionError, match="is not a materialized view"):
        warehouse.freshness()
    warehouse.write(storage={"namespace": ["db"], "name": "gone"})
    assert warehouse.freshness().status == "unknowable"
    assert "The storage table db.gone was not opened" in warehouse.freshness().rule


def test_users_see_that_it_is_a_proposal(warehouse: Warehouse) -> None:
    v = ix.open_view(warehouse.folder / "db" / "v")
    assert "materialized (proposal)" in repr(v) and "db.v__storage" in repr(v)
    assert "storage table (proposal)" in v.tree().to_text() and "db.v__storage" in v.tree().to_text()
    assert v.inspect.versions.arrow()["storage_table"].to_pylist() == [["db", "v__storage"]]


STATE = {"view-version-id": 1, "refresh-start-timestamp-ms": 5, "source-states": []}
SOURCE = {"type": "table", "namespace": ["a"], "name": "t", "uuid": "u", "snapshot-id": 3}
BAD = [
    "", "[]", "{", "[" * 100_000, "1e999", "\x00", json.dumps({**STATE, "view-version-id": "1"}),
    json.dumps({**STATE, "view-version-id": True}), json.dumps({**STATE, "refresh-start-timestamp-ms": 1 << 70}),
    json.dumps({**STATE, "source-states": {}}), json.dumps({**STATE, "source-states": [3]}),
    *(json.dumps({**STATE, "source-states": [{**SOURCE, key: value}]}) for key, value in (
        ("type", "x"), ("type", ["table"]), ("snapshot-id", 1.5), ("snapshot-id", 1 << 64), ("namespace", "db"),
        ("namespace", [3]), ("name", ""), ("name", None), ("uuid", 3), ("catalog", 3), ("ref", ["x"]),
    )),
    json.dumps({**STATE, "source-states": [SOURCE] * 501}), " " * (5 << 20),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(BAD)))
def test_refresh_states_that_are_none(number: int) -> None:
    with ends():
        assert isinstance(read_refresh_state(BAD[number]), str)


def test_a_damaged_refresh_state_is_unknowable(warehouse: Warehouse) -> None:
    warehouse.refresh(text="{")
    assert warehouse.freshness().status == "unknowable"
    assert "cannot be read: it is not JSON" in warehouse.freshness().rule


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_texts(name: str, warehouse: Warehouse) -> None:
    text = HOSTILE[name]
    warehouse.refresh(warehouse.source(name=text or "x", catalog=text, uuid=text or "u", ref=text))
    found = warehouse.freshness()
    assert found.status in ("stale", "unknowable")
    assert not [sign for sign in IN_TEXT if sign in repr(found)]
    assert not [sign for sign in IN_HTML if sign in found._repr_html_()]
