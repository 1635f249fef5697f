"""The doctor finds nothing in tables that Spark writes, and Spark reads tables that repair plans mended."""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pytest

import iceexplore as ix
from tests.doctor import file_damages, manifest_damages  # noqa: F401 (they register their damages)
from tests.doctor.damages import DAMAGES, healthy
from tests.doctor.repair.repairs import HOPELESS, ROWS
from tests.helpers.sampling import one_of
from tests.spark import shapes, tables  # noqa: F401 (they register their writers)
from tests.spark.conftest import Warehouse
from tests.spark.session import TABLES, arrow

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open


def _ids(rows: pa.Table) -> list[object]:
    return rows.sort_by("id")["id"].to_pylist() if "id" in rows.column_names else [rows.num_rows]


@pytest.mark.parametrize("part", one_of(3, range(3)))
def test_spark_reads_what_was_mended(warehouse: Warehouse, tmp_path: Path, part: int) -> None:
    found, promised = {}, {}
    for number, one in enumerate([d for d in DAMAGES if d.name not in HOPELESS][part::3]):
        (tmp_path / str(number)).mkdir()
        folder = healthy(tmp_path / str(number), one.version)
        one.damage(folder)
        folder = folder if folder.exists() else folder.parent / "moved"
        table = ix.open(folder if folder.name == "moved" else folder / one.opens)
        plan = table.check(level=one.level, snapshots=one.snapshots).repair()  # type: ignore[arg-type]
        saved = plan.save(tmp_path / f"fixed{number}")
        rows = arrow(warehouse.session.read.format("iceberg").load(saved.metadata_location))
        mended = ix.open(saved.path).to_arrow()
        found[one.name], promised[one.name] = _ids(rows), _ids(mended)
        assert mended.num_rows == ROWS.get(one.name, 17)
    assert found == promised


def test_tables_that_spark_writes_are_sound(warehouse: Warehouse) -> None:
    found = {}
    for name in TABLES:  # other tests add tables that are odd on purpose
        report = ix.open(warehouse.path(name)).check("files", snapshots="all", skip="health")
        found[name] = [str(f) for f in report if f.severity != "untidy"]
    assert len(found) > 20
    assert {name: findings for name, findings in found.items() if findings} == {}


@pytest.mark.parametrize("engine", ["spark", "iceberg"])
def test_a_scan_on_spark_warns_of_contradictions(warehouse: Warehouse, tmp_path: Path, engine: str) -> None:
    folder = healthy(tmp_path)
    damages = {one.name: one.damage for one in DAMAGES}
    damages["summary_totals_wrong"](folder)
    with pytest.warns(UserWarning, match=r"\[totals-differ\]"):
        assert ix.open(folder).scan(warehouse.session, engine=engine).count() == 17  # type: ignore[arg-type]
    with pytest.raises(ix.FormatError, match=r"summary has"):
        ix.open(folder, strict=True).scan(warehouse.session, engine=engine)  # type: ignore[arg-type]


def test_a_scan_on_spark_warns_of_what_a_check_has_found(warehouse: Warehouse, tmp_path: Path) -> None:
    folder = healthy(tmp_path)
    next(one for one in DAMAGES if one.name == "summary_bounds_too_narrow").damage(folder)
    t = ix.open(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        t.scan(warehouse.session, "k = 'b'", engine="spark")  # pruned by the untrue bounds: nothing shows it
    t.check()
    with pytest.warns(UserWarning, match=r"\[summary-untrue\]"):
        t.scan(warehouse.session, "k = 'b'", engine="spark")
