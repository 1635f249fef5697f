"""Spark Connect: a server in one process, a client in another, which has no JVM to ask and no RDDs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CI

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[2]

SERVER = """
import sys
import iceexplore as ix
ix.spark("server", config={
    "spark.master": "local[2]",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": sys.argv[1],
})
print("ready", flush=True)
sys.stdin.read()
"""

CLIENT = """
import collections, json, os, sys, tempfile, traceback
# No Java here: a client needs none.
os.environ["PATH"], os.environ["JAVA_HOME"] = "/nonexistent", "/nonexistent"
import pandas as pd
from pyspark.sql.connect import functions
import iceexplore as ix
from iceexplore.on_spark import SessionInfo

spark = ix.spark()
assert ix.spark() is spark
t = ix.open(sys.argv[1])
simulated = t.simulate()
[first, *_] = simulated.inspect.files()["file_path"]
simulated.row_delta(deletes={first: [0]})
CHECKS = {}

def check(function):
    CHECKS[function.__name__] = function

def rows(table):
    return collections.Counter(tuple(map(repr, row.values())) for row in table.to_pylist())

@check
def session():
    info = SessionInfo.of(spark)
    return [info.connect, info.local, info.iceberg, hasattr(type(spark), "_jvm") and type(spark).__module__]

@check
def data_source():
    frame = spark.read.format("iceexplore").option("columns", "trip_id,km,_pos").load(sys.argv[1])
    found = frame.where("km > 2").toArrow()
    return rows(found) == rows(t.to_arrow("km > 2", ["trip_id", "km", "_pos"])) and found.num_rows > 0

@check
def scan():
    wanted = ["trip_id", "km", "_pos"]
    plain, after = (rows(x.scan(spark, columns=wanted).toArrow()) for x in (t, simulated))
    return plain == rows(t.to_arrow(columns=wanted)) and after == rows(simulated.to_arrow(columns=wanted))

@check
def view():
    with tempfile.TemporaryDirectory() as folder:
        sql = {"spark": "SELECT t.trip_id % 5 AS k, count(*) AS n FROM trips t GROUP BY 1"}
        v = ix.create_view(f"{folder}/v", sql, {"k": "long", "n": "long"}, default_namespace="db")
        return [rows(v.scan(spark, tables={"db.trips": one}).toArrow()) == rows(v.to_arrow(tables={"db.trips": one}))
                for one in (t, simulated)]

@check
def metadata():
    found = simulated.inspect.files(spark=spark)
    return sorted(r.file_path for r in found.collect()) == sorted(simulated.inspect.files()["file_path"])

@check
def verify():
    return [str(r) for r in t.verify(spark).collect()]

@check
def changes():
    ids = [s.snapshot_id for s in simulated.snapshots]
    ours = simulated.changes(None, ids[-1], rows=True, spark=spark, columns=["trip_id"]).toArrow()
    return rows(ours) == rows(simulated.changes(None, ids[-1], rows=True, columns=["trip_id"]))

@check
def labs():
    with tempfile.TemporaryDirectory() as folder:
        lab = ix.create(f"{folder}/t", {"id": "long", "x": "double"}, partition_by="bucket(2, id)", sort_by="x desc")
        lab.append(spark.range(100).selectExpr("id", "id / 3 AS x"))
        lab.overwrite(spark.range(100, 110), "id < 50")
        lab.merge(spark.range(105, 120), on="id")
        lab.update({"x": lambda rows: rows["id"] * 2.0, "id": functions.col("id") + 1000}, "id = 50", spark=spark)
        lab.set_properties({f"write.{o}.mode": "merge-on-read" for o in ("delete", "update", "merge")})
        lab.delete("id = 51", spark=spark)
        lab.merge(spark.range(52, 54).selectExpr("id", "-1d AS x"), on="id")
        lab.compact(spark=spark)
        [moved] = lab.to_arrow("id = 1050")["x"].to_pylist()
        [merged] = {x for x in lab.to_arrow("id < 54")["x"].to_pylist()}
        lab.overwrite(spark.range(50, 54), "id = 1050 or id < 54")
        try:
            lab.append(spark.range(3).selectExpr("id + 0.5BD AS id"))
        except ix.OptionError as e:
            refusal = str(e)
        ids = sorted(lab.to_arrow()["id"].to_pylist())
        left = len(lab.orphan_files(running=True))
        return [ids == list(range(50, 120)), moved, merged, len(lab.verify()), left, refusal[:12]]

out = {}
for name, function in CHECKS.items():
    try:
        out[name] = function()
    except Exception:
        out[name] = traceback.format_exc()
print(json.dumps(out))
"""


def environment(**more: str) -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "SPARK_"))}
    return clean | more


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Where a Connect server listens."""
    if not CI:
        pytest.importorskip("grpc", reason="Spark Connect needs grpcio (pyspark[connect])")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(port)],
        cwd=ROOT, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            assert process.stdout.readline().strip() == "ready"
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def answers(server: str, trips: Path) -> dict[str, Any]:
    """What the client found, by check."""
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(trips)],
        cwd=ROOT, env=environment(SPARK_REMOTE=server), capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_session_without_java(answers: dict[str, Any]) -> None:
    assert answers["session"] == [True, True, False, False]


@pytest.mark.parametrize("what", ["data_source", "scan", "metadata", "changes"])
def test_the_same_rows_as_without_spark(answers: dict[str, Any], what: str) -> None:
    assert answers[what] is True, answers[what]


def test_views_are_run(answers: dict[str, Any]) -> None:
    assert answers["view"] == [True, True], answers["view"]


def test_a_whole_table_has_no_findings(answers: dict[str, Any]) -> None:
    assert answers["verify"] == []


def test_labs_get_files_from_the_workers(answers: dict[str, Any]) -> None:
    assert answers["labs"] == [True, 100.0, -1.0, 0, 0, "column 'id':"], answers["labs"]
