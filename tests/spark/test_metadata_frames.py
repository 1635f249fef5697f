"""Metadata tables that Spark's workers make equal those that are made here."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import hypothesis
import pandas as pd
import pyarrow as pa
import pytest

import iceexplore as ix
from iceexplore.errors import OptionError, UnsupportedError
from iceexplore.inspect import DEFINITIONS
from iceexplore.on_spark import metadata_frame
from tests.helpers.sampling import one_of
from tests.spark import tables
from tests.spark.compare import differences
from tests.spark.conftest import Warehouse
from tests.spark.session import TABLES

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open

BY_LEAF = [d.name for d in DEFINITIONS.values() if d.by_leaf is not None or d.name == "partitions"]
LONG = hypothesis.settings().max_examples > 1_000
OTHERS = [name for name in DEFINITIONS if name not in (*BY_LEAF, "puffin_blobs")]


def same(t: Any, spark: Any, name: str, flat: bool = False) -> list[str]:
    """Lines on how a table that Spark made differs from ours."""
    ours = t.inspect[name].arrow(flat=flat)
    return [f"{name}: {line}" for line in differences(shown(ours), t.inspect[name](spark=spark, flat=flat).toArrow())]


def shown(table: pa.Table) -> pa.Table:
    """Our table with the types that Spark has."""
    from iceexplore.on_spark.transport._arrow_schema import for_spark

    return for_spark(table)


def test_every_table_of_files_and_entries(warehouse: Warehouse) -> None:
    """Each kind of Spark-written table by a metadata table (by more of them in a long run), the next one by another."""
    assert tables.__name__  # importing it registers the tables
    found = []
    for i, name in enumerate(TABLES):
        t = ix.open(warehouse.path(name))
        for step in range(3 if LONG else 1):
            table = BY_LEAF[(i * (1 + step * 4) + step * 3) % len(BY_LEAF)]
            found += [f"{name}.{line}" for line in same(t, warehouse.session, table)]
        assert not list(t.problems)
    assert not found, "\n".join(found)


def test_every_table_of_one(warehouse: Warehouse) -> None:
    t = ix.open(warehouse.path("rewritten"))
    found = [line for name in (*BY_LEAF, *OTHERS) for line in same(t, warehouse.session, name)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", one_of(2, ["upgraded", "partition_types", "evolved", "java_types", "expired"]))
def test_partitions_and_readable_metrics(warehouse: Warehouse, name: str) -> None:
    t = ix.open(warehouse.path(name))
    found = [line for table in ("partitions", "files", "all_entries") for line in same(t, warehouse.session, table)]
    assert not found, "\n".join(found)


def test_flat_columns(warehouse: Warehouse) -> None:
    assert not same(ix.open(warehouse.path("hostile_names")), warehouse.session, "files", flat=True)


def test_chosen_columns(warehouse: Warehouse) -> None:
    t = ix.open(warehouse.path("types"))
    for table, columns in (
        ("files", ["file_path", "record_count"]),
        ("data_files", ["readable_metrics", "content"]),
        ("all_files", ["lower_bounds"]),
        ("entries", ["status"]),
        ("partitions", ["file_count"]),
        ("snapshots", ["operation", "snapshot_id"]),
    ):
        ours = t.inspect[table].arrow()
        names = [n for n in ours.column_names if n in columns]
        made = t.inspect[table](spark=warehouse.session, columns=columns).toArrow()
        assert not differences(shown(ours.select(names)), made)
    with pytest.raises(OptionError, match=r"columns=\['path'\]: files has content, file_path"):
        t.inspect.files(spark=warehouse.session, columns=["path"])
    with pytest.raises(OptionError, match="columns= works on Spark only"):
        t.inspect.files(columns=["file_path"])  # type: ignore[call-overload]


def test_a_travelled_table(warehouse: Warehouse) -> None:
    t = ix.open(warehouse.path("v3_dv"))
    then = t.at(snapshot=t.snapshots[1].snapshot_id)
    found = [line for table in ("files", "entries") for line in same(then, warehouse.session, table)]
    assert not found, "\n".join(found)


def test_a_v4_table_with_manifest_dvs_and_files_in_its_root(warehouse: Warehouse) -> None:
    rows = pd.DataFrame({"id": range(40), "kind": ["a", "b", "c", "d"] * 10})
    s = ix.empty({"id": "long", "kind": "string"}, partition_by="kind", format_version=4, flush_data_files=5)
    for _ in range(4):
        s.append(rows)
    paths = s.inspect.data_files()["file_path"].tolist()
    s.delete_files([paths[0], paths[-3]])
    s.row_delta(deletes={paths[5]: [0, 1]})
    s.append(rows)
    t = s.table
    assert len(t.inspect.manifest_deletion_vectors.arrow()), "a manifest DV is what this is about"
    found = [line for name in BY_LEAF for line in same(t, warehouse.session, name)]
    assert not found, "\n".join(found)


def test_a_manifest_that_is_gone_fails_the_query_or_is_left_out(warehouse: Warehouse, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "refs"
    shutil.copytree(warehouse.path("v2_pos_file"), copy)
    whole = ix.open(copy)
    gone = whole.inspect.manifests.arrow()["path"][0].as_py()
    Path(whole.state.storage.resolve(gone)).unlink()
    t = ix.open(copy)
    with pytest.raises(Exception, match=r"file-missing[\s\S]*verify"):
        t.inspect.files(spark=warehouse.session).count()
    left = t.inspect.files(spark=warehouse.session, on_error="skip")
    assert left.count() == len(t.inspect.files.arrow()) < len(TABLES)


def test_what_makes_no_sense(warehouse: Warehouse) -> None:
    t = ix.open(warehouse.path("statistics"))
    with pytest.raises(UnsupportedError, match="puffin_blobs is not available on Spark"):
        t.inspect.puffin_blobs(spark=warehouse.session)
    with pytest.raises(OptionError, match="not a Spark session"):
        t.inspect.files(spark="local")
    with pytest.raises(OptionError, match="on_error='warn'"):
        metadata_frame(t.state, warehouse.session, "files", on_error="warn")  # type: ignore[arg-type]


def test_nothing_is_read_before_the_query_runs(warehouse: Warehouse) -> None:
    t = ix.open(warehouse.path("v2_pos_file"))
    frame = t.inspect.files(spark=warehouse.session)
    kinds = {read.kind for read in t.reads}
    assert "manifest" not in kinds
    assert frame.count() == len(t.inspect.files())
    assert pickle.dumps(t.state.storage)
