# ruff: noqa: E501 - the text of SQL
"""ORC files, read by plain Spark where it reads them as Iceberg means it: every snapshot as Iceberg's runtime."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import orc

import iceexplore as ix
from tests.helpers.tables.data_table import field, listed, struct, table_of
from tests.spark.conftest import Warehouse
from tests.spark.scans.test_scan import SETTINGS, changed, own, plan_of, same
from tests.spark.session import Spark, arrow
from tests.spark.tables import _delete_equal

pytestmark = pytest.mark.spark

SHAPES = (
    "id int, b boolean, f float, d double, m decimal(9,2), wide decimal(38,10), s string, bin binary, day date, gone string, "
    "st struct<x: int, y: int, in: struct<c: string>>, li array<int>, ma map<int, string>, "
    "deep array<struct<k: string, v: map<string, struct<z: double>>>>, local timestamp_ntz"
)
FIRST = (
    "(1, true, float('1.1'), 1.1D, 1.25BD, 1234567890123456789012345678.0123456789BD, 'été', X'00FF', date '0001-01-01', 'g', "
    "named_struct('x', 1, 'y', 2, 'in', named_struct('c', 'x')), array(1, null), map(1, 'one', 2, null), "
    "array(named_struct('k', 'q', 'v', map('m', named_struct('z', double('NaN'))))), timestamp_ntz '1700-02-28 00:00:00.000001'), "
    "(2, null, null, null, null, null, null, null, null, null, null, null, null, null, null), "
    "(-2147483648, false, float('NaN'), -0.0D, -9999999.99BD, -1BD, '', X'', date '1582-10-10', '', "
    "named_struct('x', null, 'y', null, 'in', null), array(), map(), array(null), timestamp_ntz '2262-01-31 23:59:59.999999')"
)
SECOND = (
    "(3000000000, false, 1e300, double('Infinity'), 1234567890123456.78BD, 1BD, 'b', X'61', date '9999-12-31', "
    "named_struct('x', 3000000000, 'why', 5, 'in', named_struct('c', 'y', 'more', 7), 'z', 0.5D), array(3), map(5, 'five'), array(), "
    "timestamp_ntz '1969-12-31 23:59:59.999999', 'again', '00000000-0000-0000-0000-0000000000ff', X'01020304')"
)
CHANGES = (
    "ALTER COLUMN id TYPE bigint", "ALTER COLUMN f TYPE double", "ALTER COLUMN m TYPE decimal(18,2)", "RENAME COLUMN m TO cost",
    "DROP COLUMN gone", "ALTER COLUMN st.x TYPE bigint", "RENAME COLUMN st.y TO why", "ADD COLUMN st.in.more int",
    "ADD COLUMN st.z double", "ADD COLUMN gone string", "RENAME COLUMN d TO swap", "RENAME COLUMN b TO d", "RENAME COLUMN swap TO b",
)  # fmt: skip


def written(s: Spark, name: str) -> ix.Table:
    """ORC files of two shapes, of which the second is what the first became."""
    s.create(name, SHAPES, write__format__default="orc")
    s.insert(name, FIRST)
    s.alter(name, *CHANGES)
    types = s.session._jvm.org.apache.iceberg.types.Types
    update = s.java(name).updateSchema().addColumn("uid", types.UUIDType.get())
    update.addColumn("fix", types.FixedType.ofLength(4)).commit()
    s.insert(name, SECOND)
    _delete_equal(s, name, {"id": (1, [2])}, None, "1")
    return ix.open(Path(s.java(name).location()))


def test_every_snapshot_as_icebergs_runtime(warehouse: Warehouse) -> None:
    session = warehouse.session
    t = written(Spark(session), "orc_shapes")
    where = t.state.storage.resolve(t.state.metadata_location)
    for snapshot in t.snapshots:
        shown = t.at(snapshot=snapshot.snapshot_id)
        names = [f.name for f in shown.state.schema.fields]
        theirs = session.read.format("iceberg").option("versionAsOf", str(snapshot.snapshot_id)).load(where)
        names = [n for n in names if n not in ("local", "day")]  # timestamps and dates are the workers'
        frame = shown.scan(session, columns=names, engine="spark")
        assert "MapInArrow" not in plan_of(frame)
        same(frame, arrow(theirs.select(*names)))
    same(t.scan(session, engine="spark"), arrow(session.read.format("iceberg").load(where)))
    columns = ["id", "d", "st", "_file", "_spec_id"]
    frame = t.scan(session, "cost > 0 and st.why is not null", columns, engine="spark")
    assert "MapInArrow" not in plan_of(frame)
    expected = own(t, "cost > 0 and st.why is not null", columns)
    same(frame, expected)
    impl = {f"spark.sql.orc.{key}": "false" for key in ("enableVectorizedReader", "filterPushdown")}
    with changed(session, {**SETTINGS, **impl, "spark.sql.orc.impl": "hive", "spark.sql.orc.mergeSchema": "true"}):
        same(frame.select("*"), expected)
        same(t.scan(session, "cost > 0 and st.why is not null", columns, engine="spark"), expected)
    same(t.scan(session, columns=["_pos", "id"], engine="spark"), own(t, columns=["_pos", "id"]))


def test_files_without_ids(warehouse: Warehouse, tmp_path: Path) -> None:
    fields = [
        field(1, "id", "long"),
        field(2, "at", "time"),
        field(3, "s", struct(field(4, "a", "int"), field(5, "new", "int"))),
        field(6, "l", listed(7, "string")),
    ]
    mapping = (
        '[{"field-id": 1, "names": ["key"]}, {"field-id": 2, "names": ["at"]}, {"field-id": 3, "names": ["s"], '
        '"fields": [{"field-id": 4, "names": ["was"]}]}, {"field-id": 6, "names": ["l"], "fields": [{"field-id": 7, "names": ["element"]}]}]'
    )
    s = table_of(tmp_path, fields, properties={"schema.name-mapping.default": mapping}).simulate()
    rows = pa.table(
        {
            "l": pa.array([["x", None], None]), "key": pa.array([1, 2]), "at": pa.array([5, None], pa.int64()),
            "s": pa.array([{"was": 1}, None], pa.struct([("was", pa.int32())])),
        }
    )  # fmt: skip
    path = tmp_path / "data" / "a.orc"
    orc.write_table(rows, str(path))
    entry = {"location": str(path), "file_format": "orc", "record_count": 2, "file_size_in_bytes": path.stat().st_size}
    s.append([entry])
    frame = s.scan(warehouse.session)
    assert "MapInArrow" not in plan_of(frame)
    same(frame, own(s))
    assert s.scan(warehouse.session, columns=[]).count() == 2
