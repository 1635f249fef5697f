"""Every metadata table of every table that Spark wrote equals Spark's, column by column and value by value."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.arrow import build
from iceexplore.inspect import DEFINITIONS
from tests.helpers.sampling import one_of
from tests.spark import tables
from tests.spark.compare import differences
from tests.spark.conftest import Warehouse
from tests.spark.session import TABLES, arrow

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open

SPARKS = [d.name for d in DEFINITIONS.values() if d.spark]
TRAVEL = [d.name for d in DEFINITIONS.values() if d.spark and d.travels]
UUID_BOUNDS = "UUID (to|cannot be cast to) .*CharSequence"

#: Where Spark itself fails, and how: it cannot show the bounds of a uuid. The rest of those tables is still compared.
SPARK_FAILS = {
    ("java_types", name): UUID_BOUNDS
    for name in ("files", "data_files", "all_files", "all_data_files", "entries", "all_entries")
}


def spark_says(warehouse: Warehouse, name: str, table: str, columns: str = "*", travel: str = "") -> pa.Table:
    """What Spark has."""
    return arrow(warehouse.session.sql(f"SELECT {columns} FROM cat.db.{name}.{table} {travel}"))


def check(warehouse: Warehouse, t: Any, name: str, table: str, travel: str = "") -> list[str]:
    """Lines on how one metadata table differs."""
    ours = t.inspect[table].arrow()
    fails = SPARK_FAILS.get((name, table))
    columns = "*"
    if fails is not None:
        with pytest.raises(Exception, match=fails):  # a Java exception, in one of PySpark's wrappers
            spark_says(warehouse, name, table, travel=travel)
        metrics = ours.select(["readable_metrics"]).flatten()
        ours = ours.drop_columns(["readable_metrics"])
        columns = ", ".join(ours.column_names)
        for path, metric in zip(metrics.column_names, metrics.columns, strict=True):
            if path != "readable_metrics.uid":
                ours = ours.append_column(path.rpartition(".")[2], metric)
                columns += f", {path}"
    return [
        f"{table} {travel}: {line}" for line in differences(ours, spark_says(warehouse, name, table, columns, travel))
    ]


@pytest.mark.parametrize("name", one_of(3, TABLES))
def test_every_metadata_table_equals_sparks(warehouse: Warehouse, name: str) -> None:
    assert tables.__name__  # importing it registers the tables
    t = ix.open(warehouse.path(name))
    assert t.name == name
    found = [line for table in SPARKS for line in check(warehouse, t, name, table)]
    assert not found, "\n".join(found)
    assert not list(t.problems), f"a healthy table has problems:\n{t.problems}"


@pytest.mark.parametrize("name", one_of(3, TABLES))
def test_a_time_travelled_table_equals_version_as_of(warehouse: Warehouse, name: str) -> None:
    t = ix.open(warehouse.path(name))
    ids = [s.snapshot_id for s in t.snapshots]
    if not ids:
        assert name.startswith("empty")
        return
    found = []
    # the oldest, one between, and the newest where the test above has not compared it as the current one
    newest = () if t.snapshot is not None and t.snapshot.snapshot_id == ids[-1] and len(ids) > 2 else (ids[-1],)
    for snapshot_id in dict.fromkeys([ids[0], ids[len(ids) // 2], *newest]):
        then = t.at(snapshot=snapshot_id)
        for table in TRAVEL:
            found += check(warehouse, then, name, table, f"VERSION AS OF {snapshot_id}")
    assert not found, "\n".join(found)
    assert not list(t.problems)


def test_the_other_tables_do_not_travel_in_spark_either(warehouse: Warehouse) -> None:
    t = ix.open(warehouse.path("expired"))
    first = t.snapshots[0].snapshot_id
    then = t.at(snapshot=first)
    for table in sorted(set(SPARKS) - set(TRAVEL)):
        if table.startswith("all_"):
            with pytest.raises(Exception, match="Cannot select snapshot in table"):
                spark_says(warehouse, "expired", table, travel=f"VERSION AS OF {first}")
        else:
            assert not check(warehouse, then, "expired", table, f"VERSION AS OF {first}")
        assert then.inspect[table].arrow().equals(t.inspect[table].arrow())


def test_a_branch_and_a_tag_equal_version_as_of_their_names(warehouse: Warehouse) -> None:
    t = ix.open(warehouse.path("refs"))
    found = []
    for ref in t.refs:
        for table in TRAVEL:
            quoted = ref.replace("'", "''")
            found += check(warehouse, t.at(ref=ref), "refs", table, f"VERSION AS OF '{quoted}'")
    assert not found, "\n".join(found)


def test_our_own_tables_agree_with_sparks_rows(warehouse: Warehouse) -> None:
    """Row counts of what Spark reads, deletes applied, from the metadata alone."""
    for name in TABLES:
        t = ix.open(warehouse.path(name))
        rows = warehouse.session.sql(f"SELECT count(*) FROM cat.db.{name}").collect()[0][0]
        files = t.inspect.data_files.arrow()
        total = sum(build.to_pylist(files.column("record_count")))
        pairs = (
            t.inspect.position_deletes.arrow().select(["file_path", "pos"]).group_by(["file_path", "pos"]).aggregate([])
        )
        live = set(files.column("file_path").to_pylist())
        deleted = sum(path in live for path in pairs.column("file_path").to_pylist())
        if not name.startswith("equality_deletes"):
            assert total - deleted == rows, name
        vectors = t.inspect.deletion_vectors.arrow()
        from_files = sum(build.to_pylist(t.inspect.delete_files.arrow().filter(_is_vector(t)).column("record_count")))
        assert sum(build.to_pylist(vectors.column("cardinality"))) == from_files
        for table in (
            "content_entries",
            "column_stats",
            "puffin_blobs",
            "schemas",
            "specs",
            "sort_orders",
            "properties",
        ):
            made = t.inspect[table].arrow()
            made.validate(full=True)
            assert made.schema.names == t.inspect[table].schema.names
        assert not list(t.problems), f"{name}:\n{t.problems}"


def _is_vector(t: Any) -> pa.Array:
    return pa.compute.is_valid(t.inspect.delete_files.arrow().column("content_offset"))  # type: ignore[no-any-return]


def test_bounds_of_a_uuid_that_spark_cannot_show(warehouse: Warehouse) -> None:
    files = ix.open(warehouse.path("java_types")).inspect.files.arrow(flat=True)
    lower = set(files.column("readable_metrics.uid.lower_bound").to_pylist())
    assert {"00000000-0000-0000-0000-0000000000ff"} < lower | {None}
    assert lower <= {"00000000-0000-0000-0000-0000000000ff", "ffffffff-1111-2222-3333-444444444444", None}


def test_puffin_blobs_of_spark_statistics(warehouse: Warehouse) -> None:
    blobs = ix.open(warehouse.path("statistics")).inspect.puffin_blobs.arrow()
    assert set(blobs.column("type").to_pylist()) == {"apache-datasketches-theta-v1"}
    found = {
        (c[0], n)
        for c, n in zip(build.to_pylist(blobs.column("columns")), build.to_pylist(blobs.column("ndv")), strict=True)
    }
    assert {("id", 3), ("kind", 2), ("kind", 3)} == found
