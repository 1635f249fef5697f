"""Rows of real tables: every snapshot's count by an independent reader, values by PyIceberg where it can read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import iceexplore as ix
from tests.helpers.sampling import one_of

pytestmark = pytest.mark.corpus

#: What we do where nobody says how many rows there are, by the start of the table's name: the error, or the rows.
UNSAID: dict[str, type[Exception] | int] = {
    "altinity/ice_cli": ix.FormatError,  # the manifest list is not there
    "altinity/iceberg_table": ix.errors.OutsideRootsError,  # climbs to /etc/passwd
    "altinity/iceberg_table_traversal": ix.errors.OutsideRootsError,
    "duckdb/duckdb_repro/fake_data_test": ix.errors.OutsideRootsError,  # data in a folder of another machine
    "duckdb/equality_deletes/warehouse/mydb/mytable": ix.FormatError,  # the manifest list is not there
    "duckdb/generated_bounds": ix.errors.OutsideRootsError,  # data in a bucket that never was
    "duckdb/lineitem_iceberg_gz": ix.FileMissingError,  # metadata only
    "duckdb/table_partition_statistics": ix.FormatError,  # the manifest list is not there
    "duckdb/table_partition_statistics_bad_size": ix.FormatError,
    "duckdb/table_statistics": ix.FormatError,
    "duckdb/table_statistics_bad_footer": ix.FormatError,
    "iceberg-rust/datafusion_testdata": ix.FormatError,
    "iceberg-rust/testdata": ix.FormatError,
    "icescope/warehouse/analytics/events": ix.FormatError,
    "icescope/warehouse/analytics/users": ix.FormatError,
    "impala/iceberg_migrated_complex_test": ix.FormatError,  # a Parquet schema that Arrow refuses
    "trino/materialized_view_expired_snapshots__source_table": 1,  # the manifests that are gone hold no live file
    "trino/tpc": ix.FileMissingError,  # metadata only
}

#: Where PyIceberg's values are not the table's.
NOT_THEIRS = {
    "impala/iceberg_alltypes_part",  # an identity value of type double, narrowed to a float
    "impala/iceberg_alltypes_part_orc",
}


#: Counts that contradict each other: reading warns.
CONTRADICTED = {
    "duckdb/large_partitioned_table",
    "duckdb/unknown_puffin",
    "impala/iceberg_v2_null_delete_record",
}


def _tables() -> dict[str, dict[str, Any]]:
    folder = os.environ.get("ICEEXPLORE_CORPUS")
    return json.loads((Path(folder) / "expected.json").read_text()) if folder else {}


def _open(corpus: Path, name: str, metadata: str) -> ix.Table:
    if name == "duckdb/column_mapping":  # its data is beside the table's folder
        place = corpus / name
        return ix.open(
            corpus / name / metadata, moved={"data/persistent/column_mapping": str(place)}, allow=[str(place)]
        )
    return ix.open(corpus / name / metadata)


def _unsaid(name: str) -> type[Exception] | int:
    return next(UNSAID[key] for key in sorted(UNSAID, key=len, reverse=True) if name.startswith(key))


@pytest.mark.parametrize("name", one_of(2, sorted(_tables())))
@pytest.mark.filterwarnings("default:.*one of the two is wrong:UserWarning")
def test_every_snapshot_has_the_rows_that_are_expected(
    corpus: Path, name: str, recwarn: pytest.WarningsRecorder
) -> None:
    expected = _tables()[name]
    t = _open(corpus, name, expected["metadata"])
    for snapshot, rows in expected["rows_by_snapshot"].items():
        at = t.at(snapshot=int(snapshot))
        wanted = _unsaid(name) if rows is None else rows
        if isinstance(wanted, int):
            table = at.to_arrow(columns=["*", "_file", "_pos", "_row_id", "_partition"])
            table.validate(full=True)
            assert table.num_rows == wanted
            assert at.count() == wanted
            assert len(at.head(2)) == min(2, wanted)
            with_deleted = at.to_arrow(columns=["_deleted"])["_deleted"]
            assert len(with_deleted) - (pc.sum(with_deleted).as_py() or 0) == wanted
        else:
            with pytest.raises(wanted):
                at.to_arrow()
    assert any("one of the two is wrong" in str(w.message) for w in recwarn) == (name in CONTRADICTED)


def test_values_are_those_of_pyiceberg(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyIceberg can read: not ORC's maps, Avro, equality deletes, paths as they were before a move."""
    from pyiceberg.io.pyarrow import PyArrowFileIO

    compared, wrong = [], []
    for name, expected in sorted(_tables().items()):
        if name.startswith(("altinity", "trino/tp")):
            continue
        t = _open(corpus, name, expected["metadata"])
        storage = t._state.storage
        monkeypatch.setattr(PyArrowFileIO, "new_input", _moved(storage.resolve))
        theirs = _by_pyiceberg(t)
        if theirs is None:
            continue
        ours = t.to_arrow()
        if ours.num_rows != theirs.num_rows:
            # Deletes that it does not apply; counts are tested above.
            assert set(t.inspect.files.arrow()["content"].to_pylist()) != {0}, name
        elif ours.num_rows <= 20_000:
            compared.append(name)
            if (_plain(ours) == _plain(theirs)) != (name not in NOT_THEIRS):
                wrong.append(name)
    assert wrong == []
    assert len(compared) > 60


_NEW_INPUT: Any = None


def _moved(resolve: Any) -> Any:
    from pyiceberg.io.pyarrow import PyArrowFileIO

    global _NEW_INPUT
    _NEW_INPUT = _NEW_INPUT or PyArrowFileIO.new_input
    return lambda self, location: _NEW_INPUT(self, resolve(location))


def _by_pyiceberg(t: ix.Table) -> pa.Table | None:
    from pyiceberg.table import StaticTable

    try:
        return StaticTable.from_metadata(t._state.metadata_location).scan().to_arrow()  # type: ignore[no-any-return]
    except Exception:
        return None


def _plain(table: pa.Table) -> list[str]:
    return sorted(repr(_value(list(row.values()))) for row in table.to_pylist())


def _value(value: Any) -> Any:
    """Structs as lists; a null list as an empty one: PyIceberg gives that for a null list in a struct."""
    if isinstance(value, dict):
        return [_value(v) for v in value.values()]
    if isinstance(value, (list, tuple)):
        return [_value(v) for v in value] or None
    return getattr(value, "bytes", value)
