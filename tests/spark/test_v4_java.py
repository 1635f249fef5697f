# ruff: noqa: E501 - the text of SQL
"""Format version 4 as Iceberg's released runtime writes it: read here as Spark reads it, and committed to for Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.commits import check_rules
from tests.helpers.history_view import Seen, view
from tests.helpers.sampling import one_of
from tests.spark.conftest import Warehouse
from tests.spark.session import MERGE_ON_READ, Spark
from tests.spark.tables import _delete_equal
from tests.spark.test_simulated import rows_at
from tests.spark.test_spark_metadata_tables import SPARKS, TRAVEL, check

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open


def java4_plain(s: Spark, name: str) -> None:
    """Unpartitioned: vectors added and merged, an update, a merge, the schema evolved on the way."""
    s.create(name, "id int, kind string, x float", version=4, **MERGE_ON_READ)
    s.insert(name, "(1, 'a', 1.5), (2, 'b', null), (3, 'c', float('NaN')), (4, 'd', -0.0)", "(5, 'a', 2), (6, null, 3)")
    s.sql(f"DELETE FROM cat.db.{name} WHERE id IN (1, 6)", f"DELETE FROM cat.db.{name} WHERE id = 2")
    s.alter(
        name,
        "ADD COLUMN more struct<a: bigint, b: array<string>>",
        "ALTER COLUMN id TYPE bigint",
        "RENAME COLUMN kind TO sort_of",
    )
    s.sql(f"UPDATE cat.db.{name} SET x = 9 WHERE id = 4")
    s.sql(
        f"MERGE INTO cat.db.{name} t USING (SELECT * FROM VALUES (3L, 'm'), (77L, 'n') AS v(id, kind)) u ON t.id = u.id "
        "WHEN MATCHED THEN UPDATE SET sort_of = u.kind WHEN NOT MATCHED THEN INSERT (id, sort_of) VALUES (u.id, u.kind)"
    )
    s.alter(name, "DROP COLUMN x")
    s.insert(name, "(8, 'z', named_struct('a', 1, 'b', array('q', null)))")


def java4_parts(s: Spark, name: str) -> None:
    """Partitioned, and the spec evolved: deletes of rows and of partitions, overwrites, branches, compaction."""
    s.create(name, "id bigint, kind string, at timestamp", "kind, bucket(4, id)", version=4, **MERGE_ON_READ)
    s.insert(
        name,
        "(1, 'a', timestamp '2024-01-01 00:00:00'), (2, 'a', null), (3, 'b', timestamp '2024-02-01 01:00:00'), (4, null, null)",
    )
    s.insert(name, "(5, 'a', timestamp '1969-12-31 23:00:00'), (6, 'b', null), (7, 'c', null)")
    s.sql(f"DELETE FROM cat.db.{name} WHERE id IN (2, 6)", f"DELETE FROM cat.db.{name} WHERE kind = 'c'")
    s.alter(name, "CREATE BRANCH dev", "CREATE TAG first")
    s.sql(f"INSERT INTO cat.db.{name}.branch_dev VALUES (100, 'd', null)")
    s.alter(name, "DROP PARTITION FIELD bucket(4, id)", "ADD PARTITION FIELD days(at)")
    s.insert(
        name,
        "(8, 'a', timestamp '2024-01-01 00:00:00'), (9, 'b', timestamp '2024-01-02 00:00:00'), (10, 'b', timestamp '2024-01-02 05:00:00')",
    )
    s.sql(f"DELETE FROM cat.db.{name} WHERE id IN (1, 9)")
    s.call(f"rewrite_manifests('db.{name}')")
    s.call(f"rewrite_data_files(table => 'db.{name}', where => 'kind = \"a\"', options => map('rewrite-all', 'true'))")
    s.sql(f"INSERT OVERWRITE cat.db.{name} VALUES (11, 'z', timestamp '2024-05-05 00:00:00')")


def java4_upgraded(s: Spark, name: str) -> None:
    """Version 2 with position deletes, 3 with vectors, then 4."""
    s.create(name, "id bigint, kind string", "kind", version=2, **MERGE_ON_READ)
    s.insert(name, "(1, 'a'), (2, 'a'), (3, 'b'), (4, 'b')", "(5, 'a'), (6, 'a'), (7, 'b'), (8, 'b')")
    s.sql(f"DELETE FROM cat.db.{name} WHERE id IN (1, 5)")
    s.alter(name, "SET TBLPROPERTIES ('format-version'='3')")
    s.sql(f"DELETE FROM cat.db.{name} WHERE id IN (2, 3)")
    s.alter(name, "SET TBLPROPERTIES ('format-version'='4')")
    s.insert(name, "(9, 'a'), (10, 'c')")
    s.sql(f"DELETE FROM cat.db.{name} WHERE id IN (4, 9)")


def java4_equality(s: Spark, name: str) -> None:
    """Equality deletes in a partition, beside vectors."""
    s.create(name, "id bigint, kind string, note string", "kind", version=4, **MERGE_ON_READ)
    s.insert(name, "(1, 'a', 'x'), (2, 'a', 'y'), (3, 'b', 'x'), (4, 'b', null)")
    _delete_equal(s, name, {"id": (1, [1])}, "kind=a", "1")
    s.insert(name, "(1, 'a', 'z'), (5, 'b', null)")
    s.sql(f"DELETE FROM cat.db.{name} WHERE id = 3")


def java4_empty(s: Spark, name: str) -> None:
    """Created, never written."""
    s.create(name, "id bigint, kind string", "kind", version=4)


TABLES: dict[str, Callable[[Spark, str], None]] = {
    f.__name__: f for f in (java4_plain, java4_parts, java4_upgraded, java4_equality, java4_empty)
}
WRITTEN = [name for name in TABLES if name != "java4_empty"]


@pytest.fixture(scope="module")
def java4(warehouse: Warehouse) -> Warehouse:
    """The warehouse with these tables in it."""
    for name, writer in TABLES.items():
        writer(Spark(warehouse.session), name)
    return warehouse


def count(java4: Warehouse, table: str, snapshot_id: int) -> int:
    """Spark's."""
    return int(java4.session.sql(f"SELECT count(*) FROM cat.db.{table} VERSION AS OF {snapshot_id}").collect()[0][0])


def rows(seen: Seen) -> int:
    """Records that neither a vector nor a position delete removes."""
    return sum(row["record_count"] - len(seen.gone.get(name, ())) for name, row in seen.data.items())


@pytest.mark.parametrize("name", TABLES)
def test_the_dialect(java4: Warehouse, name: str) -> None:
    t = ix.open(java4.path(name))
    assert t.format_version == 4
    if t.snapshot is None:
        assert name == "java4_empty"
    else:
        root = t.state.root()
        assert root is not None and root.dialect == "v4-java"
        leaves = {leaf.dialect for leaf in t.state.leaves()}
        assert leaves <= {"v4-java", "v3", "v2"} if name == "java4_upgraded" else leaves == {"v4-java"}
    assert "v4" in repr(t).lower() or "4" in repr(t)
    assert len(t.tree(snapshots="all", depth="files").nodes) > 1
    assert not list(t.problems)


@pytest.mark.parametrize("name", one_of(2, WRITTEN))
def test_every_snapshot_has_sparks_rows(java4: Warehouse, name: str) -> None:
    t = ix.open(java4.path(name))
    assert len(t.snapshots) > 3
    vectors = 0
    for snapshot in t.snapshots:
        seen = view(t, snapshot)
        vectors += seen.dvs
        found = count(java4, name, snapshot.snapshot_id)
        if not seen.applies:
            assert rows(seen) == found
            if not [r for r in seen.deletes if r["deletion_vector"] is None]:
                files = t.at(snapshot=snapshot.snapshot_id).inspect.files.arrow().to_pylist()
                assert sum(f["record_count"] * (1 if f["content"] == 0 else -1) for f in files) == found
        else:
            assert name == "java4_equality" and rows(seen) == found + 1
    assert vectors


@pytest.mark.parametrize("name", one_of(2, TABLES))
def test_every_metadata_table_equals_sparks(java4: Warehouse, name: str) -> None:
    t = ix.open(java4.path(name))
    found = [line for table in SPARKS for line in check(java4, t, name, table)]
    for snapshot in t.snapshots:
        then = t.at(snapshot=snapshot.snapshot_id)
        for table in ("files", "entries", "manifests"):
            assert table in TRAVEL
            found += check(java4, then, name, table, f"VERSION AS OF {snapshot.snapshot_id}")
    assert not found, "\n".join(found)
    assert not list(t.problems)


def simulated(s: ix.Simulation, seen: Seen) -> tuple[list[str], dict[str, list[int]], int]:
    """Commits of every kind; the files that went, the positions deleted in others, and the rows that came."""
    new = len(seen.data)
    gone = sorted(seen.data)[:1] if new > 1 else []
    if gone:
        s.delete_files(gone)
    free = {n: sorted(set(range(r["record_count"])) - seen.gone.get(n, frozenset())) for n, r in seen.data.items()}
    target, left = max((n, rows) for n, rows in free.items() if rows and n not in gone)
    s.row_delta(deletes={target: left[:1]})
    s.append(2, rows=5, materialize=True)
    s.rewrite_manifests()
    s.evolve_schema(add={"made_later": "string"})
    s.append(1, rows=3, materialize=True)
    return gone, {target: left[:1]}, 13


@pytest.mark.parametrize("name", one_of(2, WRITTEN, 1))
def test_spark_reads_what_is_simulated_on_it(java4: Warehouse, tmp_path: Path, name: str) -> None:
    t = ix.open(java4.path(name))
    before = rows_at(java4.session, t.metadata_location)
    s = t.simulate(format_version=4, seed=1)
    assert s.options.dialect == "v4-java" and s.options.manifest_format == "avro"
    gone, deleted, came = simulated(s, view(t, t.snapshot))
    assert check_rules(s.state) == [] and not list(s.problems)
    saved = s.save(tmp_path / "saved", data="refer")
    found = rows_at(java4.session, saved.metadata_location)
    old = {file for _, file, _ in before}
    kept = [(file, pos) for _, file, pos in before if file not in gone and pos not in deleted.get(file, [])]
    assert Counter((file, pos) for _, file, pos in found if file in old) == Counter(kept)
    assert len(found) == len(kept) + came
    merged = ix.open(saved.metadata_location, allow=[str(java4.path(name))]).simulate(seed=2)
    everything = sorted(build.to_pylist(merged.inspect.data_files.arrow()["file_path"]))
    merged.compact(everything)
    again = merged.save(tmp_path / "again", data="refer")
    assert sorted(text for text, _, _ in rows_at(java4.session, again.metadata_location)) == sorted(
        text for text, _, _ in found
    )


def test_parquet_manifests_of_two_files_with_split_offsets_fail_in_the_released_reader(
    java4: Warehouse, tmp_path: Path
) -> None:
    """Iceberg 1.11 reuses a list that cannot be changed (``ParquetValueReaders.ListReader``); main's reader is newer."""
    s = ix.open(java4.path("java4_equality")).simulate(seed=1, manifest_format="parquet")
    s.append(1, rows=5, materialize=True)
    count = len(rows_at(java4.session, s.save(tmp_path / "one").metadata_location))
    assert count == 5 + java4.session.sql("SELECT * FROM cat.db.java4_equality").count()
    s.rewrite_manifests()
    from pyspark.errors.exceptions.captured import UnsupportedOperationException

    with pytest.raises(UnsupportedOperationException):
        rows_at(java4.session, s.save(tmp_path / "many").metadata_location)


@pytest.mark.parametrize("flush", [0, 1000])
@pytest.mark.parametrize("name", one_of(2, WRITTEN))
def test_the_proposal_on_it(java4: Warehouse, tmp_path: Path, name: str, flush: int) -> None:
    t = ix.open(java4.path(name))
    before = view(t, t.snapshot)
    s = t.simulate(dialect="v4-proposal", seed=1, flush_data_files=flush, flush_delete_files=flush)
    assert s.options.dialect == "v4-proposal"
    gone, deleted, came = simulated(s, before)
    root = s.state.root()
    assert root is not None and root.dialect == "v4-proposal"
    assert check_rules(s.state) == [] and not list(s.problems)
    saved = ix.open(s.save(tmp_path / "saved", data="refer").metadata_location, allow=[str(java4.path(name))])
    seen = view(saved, saved.snapshot)
    want = {n: (r["place"], r["record_count"]) for n, r in before.data.items() if n not in gone}
    assert {n: (r["place"], r["record_count"]) for n, r in seen.data.items() if n in before.data} == want
    for n in want:
        assert seen.gone.get(n, frozenset()) == before.gone.get(n, frozenset()) | frozenset(deleted.get(n, ()))
    assert {a for a in seen.applies if a[1] in want} == {a for a in before.applies if a[1] in want}
    assert sum(r["record_count"] for n, r in seen.data.items() if n not in want) == came
    for snapshot in t.snapshots:
        then, now = view(t, snapshot), view(saved, saved.metadata.snapshot(snapshot.snapshot_id))
        assert (then.data.keys(), then.gone, then.applies) == (now.data.keys(), now.gone, now.applies)
