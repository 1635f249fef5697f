"""Scans on Spark of the real tables: the rows that are expected, and every value as our own reading has it."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from tests.helpers.sampling import one_of
from tests.spark.compare import differences
from tests.spark.conftest import Warehouse
from tests.spark.scans.test_scan import own
from tests.spark.session import arrow

pytestmark = [pytest.mark.spark, pytest.mark.corpus]

_MOST = 5_000
#: Somebody changed data files, and left Hadoop's ``.crc`` beside them as it was: Spark refuses such files.
STALE_CRC = {
    "duckdb/hive_partitioned_table",
    *(
        f"duckdb/partition_{kind}"
        for kind in ("bigint", "binary", "bool", "decimal_bigint", "decimal_hugeint", "decimal_integer",
                     "decimal_smallint", "double", "float", "integer", "timestamp_ns")
    ),
}  # fmt: skip
#: Their metadata has numbers that contradict each other (test_corpus.py names them): a scan warns of it.
CONTRADICTORY = {"duckdb/large_partitioned_table", "duckdb/unknown_puffin", "impala/iceberg_v2_null_delete_record"}


def _tables() -> dict[str, dict[str, Any]]:
    folder = os.environ.get("ICEEXPLORE_CORPUS")
    return json.loads((Path(folder) / "expected.json").read_text()) if folder else {}


def _open(corpus: Path, name: str, metadata: str) -> ix.Table:
    if name == "duckdb/column_mapping":  # its data is beside the table's folder
        place = str(corpus / name)
        return ix.open(corpus / name / metadata, moved={"data/persistent/column_mapping": place}, allow=[place])
    return ix.open(corpus / name / metadata)


@pytest.mark.parametrize("group", one_of(4, sorted({name.partition("/")[0] for name in _tables()})))
def test_newest_snapshots(warehouse: Warehouse, corpus: Path, tmp_path: Path, group: str) -> None:
    wrong = []
    for name, expected in sorted(_tables().items()):
        counts = expected["rows_by_snapshot"]
        if name.partition("/")[0] != group:
            continue
        t = _open(corpus, name, expected["metadata"])
        rows = None if t.state.snapshot is None else counts.get(str(t.state.snapshot.snapshot_id))
        if rows is None or rows > _MOST:
            continue
        if name in STALE_CRC:
            shutil.copytree(corpus / name, tmp_path / name, ignore=shutil.ignore_patterns("*.crc"))
            t = _open(tmp_path, name, expected["metadata"])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            frame = t.scan(warehouse.session, engine="spark")
            # PySpark gives no Arrow of variants that are null.
            variants = [x.name for x in frame.schema if x.dataType.typeName() == "variant"]
            found = arrow(frame.drop(*variants))
        warned = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
        if bool(warned) != (name in CONTRADICTORY):
            wrong.append(f"{name}: warnings {warned}")
        if found.num_rows != rows:
            wrong.append(f"{name}: {found.num_rows} rows, not {rows}")
        wrong += [f"{name}: {line}" for line in differences(found, own(t).drop_columns(variants))[:2]]
    assert wrong == []
