"""Spark with Iceberg's runtime reads what we commit, row for row, and commits on top of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iceexplore.arrow import compute as pc
from iceexplore.commits import (
    Change,
    LayoutOptions,
    Sandbox,
    check_rules,
    delete_files,
    row_delta,
    save,
    summary_of,
)
from iceexplore.graph import TableState, open_state
from iceexplore.manifests import EntryBatch, Status, concat_batches, whole
from iceexplore.metadata import Snapshot
from tests.helpers.real_history import RealHistory, Row, play, rows_of
from tests.helpers.sampling import one_of
from tests.helpers.tables.list_table import ListLab
from tests.spark import tables
from tests.spark.conftest import Warehouse
from tests.spark.session import TABLES

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open

VERSIONS = [1, 2, 3, 4]


def read(session: Any, path: Path | str) -> list[Row]:
    """The rows that Spark finds."""
    table = session.read.format("iceberg").load(str(path)).select("id", "kind", "x").toArrow()
    return sorted(zip(*(c.to_pylist() for c in table.columns), strict=True), key=str)


@pytest.mark.parametrize(("version", "manifest_format"), one_of(2, [*((v, "avro") for v in VERSIONS), (4, "parquet")]))
def test_spark_finds_the_rows_after_every_commit(
    warehouse: Warehouse, tmp_path: Path, version: int, manifest_format: str
) -> None:
    history, states = play(tmp_path / "t", version, equality=True, manifest_format=manifest_format)
    for i, expected in enumerate(states):
        path = history.lab.folder / "metadata" / f"v{i + 1}.metadata.json"
        assert read(warehouse.session, path) == expected, f"after {i} commits"


@pytest.mark.parametrize("version", one_of(2, VERSIONS, 1))
def test_spark_appends_on_top_of_ours_and_we_on_top_of_it(warehouse: Warehouse, tmp_path: Path, version: int) -> None:
    session = warehouse.session
    history, states = play(tmp_path / "t", version, equality=True)
    new = session.createDataFrame([(1000, "a", 0.5), (1001, "new", None)], "id long, kind string, x double")
    new.write.format("iceberg").mode("append").save(str(history.lab.folder))
    expected = sorted([*states[-1], (1000, "a", 0.5), (1001, "new", None)], key=str)
    assert read(session, history.lab.folder) == expected
    hint = int((history.lab.folder / "metadata" / "version-hint.text").read_text())
    again = RealHistory(ListLab.on(history.lab.folder, version, hint))
    again.append(rows_of(2000, 3, "a"))
    again.rewrite_manifests()
    assert read(session, history.lab.folder) == sorted([*expected, *rows_of(2000, 3, "a")], key=str)


@pytest.mark.parametrize("version", one_of(2, VERSIONS))
def test_commits_between_sparks_own(warehouse: Warehouse, version: int) -> None:
    session, name, folder = (
        warehouse.session,
        f"cat.sim.between_{version}",
        warehouse.folder / "sim" / f"between_{version}",
    )
    session.sql("CREATE NAMESPACE IF NOT EXISTS cat.sim")
    modes = ", ".join(f"'write.{w}.mode'='merge-on-read'" for w in ("delete", "update", "merge"))
    session.sql(
        f"CREATE TABLE {name} (id bigint, kind string, x double) USING iceberg PARTITIONED BY (kind) "
        f"TBLPROPERTIES ('format-version'='{version}', 'write.metadata.compression-codec'='none'"
        f"{', ' + modes if version > 1 else ''})"
    )
    for kind in ("a", "b"):
        values = ", ".join(
            f"({i}, '{kind}', {i / 4})" for i in range(10 if kind == "a" else 30, 20 if kind == "a" else 40)
        )
        session.sql(f"INSERT INTO {name} VALUES {values}")

    def hint() -> int:
        return int((folder / "metadata" / "version-hint.text").read_text())

    history = RealHistory.on(ListLab.on(folder, version, hint()))
    first, second = sorted(history.rows, key=lambda f: history.rows[f][0][0])
    (third,) = history.append(rows_of(50, 6, "a"))
    if version > 1:
        history.delete_rows({first: [0, 1], second: [5]})
    history.compact([first, third])
    assert read(session, folder) == history.expected()
    session.sql(f"DELETE FROM {name} WHERE id IN (13, 36, 52)")
    session.sql(f"INSERT INTO {name} VALUES (99, 'b', 9.5)")
    expected = sorted([*(r for r in history.expected() if r[0] not in (13, 36, 52)), (99, "b", 9.5)], key=str)
    assert read(session, folder) == expected
    ours = ListLab.on(folder, version, hint())
    RealHistory(ours).rewrite_manifests()
    assert read(session, folder) == expected
    session.sql(
        f"CALL cat.system.rewrite_data_files(table => 'sim.between_{version}', options => map('rewrite-all','true'))"
    )
    session.sql(f"CALL cat.system.rewrite_manifests('sim.between_{version}')")
    assert read(session, folder) == expected
    assert len(ListLab.on(folder, version, hint()).state.problems) == 0


def rows_at(session: Any, location: str) -> list[tuple[str, str, int]]:
    """Return every row as text, with its place."""
    frame = session.read.format("iceberg").load(location)
    columns = [
        f"CAST(`{f.name}` AS STRING)" if f.dataType.typeName() == "variant" else f"`{f.name.replace('`', '``')}`"
        for f in frame.schema
    ]
    table = frame.selectExpr(*columns, "_file", "_pos").toArrow()
    places = zip(table["_file"].to_pylist(), table["_pos"].to_pylist(), strict=True)
    texts = [repr(row) for row in table.drop_columns(["_file", "_pos"]).to_pylist()]
    return [(text, file, pos) for text, (file, pos) in zip(texts, places, strict=True)]


#: Spark's tables that have row lineage already: they are committed to as they are, and not upgraded.
ROW_LINEAGE = ("empty_unpartitioned", "upgraded", "v3_dv", "v3_new_types", "v4_java")


@pytest.mark.parametrize(
    ("name", "to"),
    one_of(3, [(n, to) for n in TABLES for to in ("same", "v3") if to == "same" or n not in ROW_LINEAGE]),
)
def test_a_simulation_on_a_table_that_spark_wrote(warehouse: Warehouse, tmp_path: Path, name: str, to: str) -> None:
    state = open_state(str(warehouse.path(name)))
    version = state.metadata.format_version
    assert (version >= 3) == (name in ROW_LINEAGE)
    target = 3 if to == "v3" else version
    options = LayoutOptions.of(target, **({"dialect": "v4-java"} if target == 4 else {}))
    before = rows_at(warehouse.session, state.metadata_location)
    files = sorted({file for _, file, _ in before})
    sandbox = Sandbox(state, options, overlay=tmp_path / "overlay", seed=name)
    expected = before
    if len(files) > 1:
        sandbox.commit(lambda writer: delete_files(writer.base, writer, [files[0]]))
        expected = [r for r in expected if r[1] != files[0]]
    if target > 1 and files:
        (_, file, pos), *_ = [r for r in expected if r[1] == files[-1]]
        sandbox.commit(lambda writer: row_delta(writer.base, writer, deletes={file: [pos]}))
        expected = [r for r in expected if r[1:] != (file, pos)]
    sandbox.commit(lambda writer: Change("replace", rewrite_manifests=True))
    saved = save(sandbox.newest(), tmp_path / "saved")
    found = rows_at(warehouse.session, saved.metadata_location)
    assert sorted(t for t, _, _ in found) == sorted(t for t, _, _ in expected)
    assert check_rules(sandbox.newest()) == []


def changed(state: TableState, snapshot: Snapshot, status: Status) -> EntryBatch:
    """The files that a snapshot added or removed."""
    found = []
    for leaf in state.leaves(snapshot, parts=frozenset({"entries", "partition"})):
        mine = pc.and_(
            pc.equal(leaf.entries["snapshot_id"], snapshot.snapshot_id), pc.equal(leaf.entries["status"], int(status))
        )
        found.append(EntryBatch.of(leaf, ()).filter(whole(mine)))
    return concat_batches(found)


@pytest.mark.parametrize("name", one_of(2, TABLES))
def test_summaries_are_javas(warehouse: Warehouse, name: str) -> None:
    assert tables.__name__  # importing it registers the tables
    state = open_state(str(warehouse.path(name)))
    for snapshot in state.metadata.snapshots:
        parent = state.metadata.snapshot(snapshot.parent_snapshot_id) if snapshot.parent_snapshot_id else None
        if snapshot.summary is None or (snapshot.parent_snapshot_id and parent is None):
            continue  # the parent has expired, and with it the totals
        added, removed = (changed(state, snapshot, s) for s in (Status.ADDED, Status.DELETED))
        made = summary_of(added=added, removed=removed, metadata=state.metadata, parent=parent)
        begins = ("added-", "deleted-", "removed-", "total-", "changed-", "partition")
        assert made == {k: v for k, v in snapshot.summary.items() if k.startswith(begins)}
