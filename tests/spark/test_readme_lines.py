"""The code of the guides on Spark, as it is printed: a lab's life, and the lab read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from tests.spark.conftest import Warehouse
from tests.test_readme import LABS, ON_SPARK, SPARK, run, statements

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open


def test_code_on_spark_runs_as_printed(warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reads = [statement for statement in statements(SPARK) if ON_SPARK.search(statement)]
    lab = statements(LABS)
    plain = [statement for statement in lab if not ON_SPARK.search(statement)]
    on_spark = [statement for statement in lab if ON_SPARK.search(statement)]
    begin = next(i for i, statement in enumerate(on_spark) if statement.startswith("lab."))
    made, writes = on_spark[:begin], on_spark[begin:]
    assert len(reads) == 8 and len(made) == 3 and len(writes) == 6
    names: dict[str, Any] = {"ix": ix, "path": str(tmp_path / "lab/trips")}
    try:
        expire = next(line for line in plain if line.startswith("lab.expire_snapshots("))
        run([line for line in plain if line != expire], names, LABS)
        names["t"] = ix.open("lab/trips")
        run(reads, names, SPARK)  # the changes since the first snapshot need all snapshots
        run([expire], names, LABS)
        assert names["spark"] is warehouse.session
        run([*made, *writes[:-1]], names, LABS)
        for _ in range(2):  # something to compact
            names["lab"].append(names["rides"])
        run(writes[-1:], names, LABS)
        assert not len(names["lab"].verify())
    finally:
        names["catalog"].close()
