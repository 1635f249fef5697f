"""The README's code on Spark, as it is printed: a lab's life, and the lab read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from tests.spark.conftest import Warehouse
from tests.test_readme import ON_SPARK, lines, run

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore::ResourceWarning")]  # py4j leaves sockets open


def test_code_on_spark_runs_as_printed(warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    everything = lines()
    begin = next(i for i, line in enumerate(everything) if line.startswith("import pyarrow.compute"))
    plain = [line for line in everything[begin:] if not ON_SPARK.search(line.partition("#")[0])]
    on_spark = [line for line in everything if line not in plain and ON_SPARK.search(line.partition("#")[0])]
    writes = [line for line in on_spark if line.startswith("lab.")]
    reads = [line for line in on_spark if line not in writes]
    assert len(writes) == 3 and len(reads) == 9
    names: dict[str, Any] = {"ix": ix, "path": str(tmp_path / "lab/trips")}
    try:
        expire = next(line for line in plain if line.startswith("lab.expire("))
        run([line for line in plain if line != expire], names)
        names["t"] = ix.open("lab/trips")
        run(reads, names)  # the changes since the first snapshot need all snapshots
        run([expire], names)
        assert names["spark"] is warehouse.session
        run(writes[:-1], names)
        for _ in range(2):  # something to compact
            names["lab"].append(names["rides"])
        run(writes[-1:], names)
        assert not len(names["lab"].verify())
    finally:
        names["catalog"].close()
