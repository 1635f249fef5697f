"""``ix.spark()``: what it starts, what it leaves alone, and what it says where Java or PySpark is missing."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import iceexplore as ix
from iceexplore.errors import MissingDependencyError, OptionError, UnsupportedError
from iceexplore.on_spark import SessionInfo, _session
from iceexplore.on_spark._session import _installed, active_session, defaults, iceberg_runtime
from iceexplore.on_spark.environment._java import check_java, java_version
from tests.spark.conftest import Warehouse

ROOT = Path(__file__).resolve().parents[2]


def python(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A script in a Python of its own, whose last line of output is JSON."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYSPARK_", "SPARK_")) and k != "MASTER"}
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT, env=clean | environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


NEW = """
import json, sys
import iceexplore as ix
assert "pyspark" not in sys.modules
# Workers that nobody else reaches: a kernel's ZeroMQ that looks for its old port, and finds the workers' there, makes
# PySpark print an error ("read length must be non-negative").
own = {"spark.python.unix.domain.socket.enabled": "true"}
s = ix.spark("mine", config={"spark.sql.shuffle.partitions": 3, "spark.master": "local[1]", **own})
from iceexplore.on_spark import SessionInfo, _session
info = SessionInfo.of(s)
get = s.sparkContext.getConf().get
def where(batches):
    import pyarrow, sys
    for batch in batches:
        yield pyarrow.record_batch({"python": [sys.executable]})
out = {
    "name": s.sparkContext.appName,
    "master": s.sparkContext.master,
    "partitions": s.conf.get("spark.sql.shuffle.partitions"),
    "host": get("spark.driver.host"),
    "ui": s.sparkContext.uiWebUrl,
    "progress": get("spark.ui.showConsoleProgress"),
    "memory": get("spark.driver.memory"),
    "python": s.range(1).mapInArrow(where, "python string").collect()[0][0],
    "again": ix.spark() is s,
    "local": info.local, "connect": info.connect, "iceberg": info.iceberg,
    "format": s.read.format("iceexplore").load(SAMPLE).columns,
}
t = ix.open(SAMPLE)
frame = s.range(3)
lab = ix.create(LAB, {"id": "long"})
s.stop()
out["stopped"] = __import__("iceexplore.on_spark._session", fromlist=["x"]).active_session() is None
messages = set()
for use in (
    lambda: t.scan(s), lambda: t.changes(None, "main", rows=True, spark=s), lambda: t.inspect.files(spark=s),
    lambda: t.verify(s), lambda: lab.append(frame), lambda: lab.merge(frame, on="id"), lambda: ix.on_spark.register(s),
):
    try:
        use()
    except Exception as e:
        messages.add(f"{type(e).__name__}: {e}"[:45])
out["then"] = sorted(messages)
print(json.dumps(out))
"""


@pytest.mark.spark
def test_a_new_session_works_at_once(trips: Path, tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.memory 700m\nspark.sql.shuffle.partitions 9\n")
    script = NEW.replace("SAMPLE", repr(str(trips))).replace("LAB", repr(str(tmp_path / "lab")))
    done = python(script, SPARK_CONF_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout.splitlines()[-1])
    assert out.pop("format") == [f.name for f in ix.open(trips).schema.fields]
    assert out == {
        "name": "mine", "master": "local[1]", "partitions": "3", "host": "127.0.0.1", "ui": None, "progress": "false",
        "memory": "700m",
        "python": sys.executable, "again": True, "local": True, "connect": False, "iceberg": False, "stopped": True,
        "then": ["OptionError: this Spark session was stopped: "],
    }  # fmt: skip
    # Java leaves as soon as it has its answer. A worker that still writes then prints a traceback of PySpark's daemon.
    # The daemon's end (SIGHUP) may cut that traceback after any line, and two workers may print at once: so each line
    # is judged by itself. An error from elsewhere still shows its own file and its own last line.
    left = r'Traceback \(most|  File ".*/pyspark/daemon\.py", |    |BrokenPipeError: '
    lines = [line for line in done.stderr.splitlines() if not re.match(left, line)]
    messages = [line for line in lines if not re.search("incubator modules|JAVA_TOOL_OPTIONS", line)]
    assert messages == [], "a session is quiet"


WITH_ICEBERG = """
import json, sys
import iceexplore as ix
s = ix.spark(iceberg=True, config={"spark.master": "local[1]"})
def worker(batches):
    import pyarrow, sys, zipimport
    import iceexplore.on_spark
    for batch in batches:
        patched = zipimport.zipimporter.invalidate_caches.__module__
        yield pyarrow.record_batch({"path": [sys.path], "by": [patched]})
[(path, by)] = s.range(1).mapInArrow(worker, "path array<string>, by string").collect()
print(json.dumps({"here": sys.path, "there": path, "by": by}))
s.stop()
"""


@pytest.mark.spark
def test_icebergs_runtime_is_for_java_alone() -> None:
    done = python(WITH_ICEBERG)
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout.splitlines()[-1])
    assert not [path for path in (*out["here"], *out["there"]) if "iceberg" in path]
    assert [path for path in out["there"] if path.endswith(".zip")], "and what Spark itself needs is there"
    ours = "iceexplore.on_spark.environment._worker_imports"
    assert out["by"] == (ours if sys.version_info < (3, 12) else "zipimport")


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_session_that_runs_is_taken_as_it_is(warehouse: Warehouse) -> None:
    before = dict(warehouse.session.sparkContext.getConf().getAll())
    assert ix.spark("other") is warehouse.session
    assert ix.spark(iceberg=True, config={"spark.sql.session.timeZone": "UTC"}) is warehouse.session
    assert dict(warehouse.session.sparkContext.getConf().getAll()) == before
    with pytest.raises(OptionError, match=r"spark\.x=None instead of 'true'.*spark\.stop"):
        ix.spark(config={"spark.x": True})
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(active_session()))
    thread.start()
    thread.join()
    assert found == [warehouse.session], "also from another thread, where Java has no active session"


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_a_session_is(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    info = SessionInfo.of(warehouse.session)
    assert (info.connect, info.local, info.iceberg) == (False, True, True)
    assert info.version >= (4, 0)
    assert SessionInfo.of(warehouse.session) is info
    for strange in (None, "local[2]", [], object()):
        with pytest.raises(OptionError, match="not a Spark session"):
            SessionInfo.of(strange)
    lacking = SessionInfo(info.version, False, True, _Lacking())
    monkeypatch.setattr(SessionInfo, "of", lambda session: lacking)
    with pytest.raises(UnsupportedError, match=r"without Iceberg's runtime: stop it.*--packages org\.apache\.iceberg:"):
        ix.spark(iceberg=True)


class _Lacking:
    """A session that knows no format ``iceberg``."""

    @property
    def read(self) -> Any:
        raise RuntimeError("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: iceberg.")


def test_runtimes_of_each_spark() -> None:
    assert iceberg_runtime((4, 1), "2.13") == "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0"
    assert iceberg_runtime((4, 0), "2.13") == "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0"
    assert iceberg_runtime((3, 5), "2.12") == "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.11.0"
    with pytest.raises(UnsupportedError, match=r"no runtime for Spark 4\.2.*3\.5, 4\.0, 4\.1"):
        iceberg_runtime((4, 2), "2.13")
    with pytest.raises(UnsupportedError, match=r"Scala 2\.12"):
        iceberg_runtime((4, 1), "2.12")


def java(folder: Path, says: str | None) -> Path:
    """A home of a Java that says this of itself; without words it fails."""
    home = folder / "java"
    (home / "bin").mkdir(parents=True)
    command = home / "bin" / "java"
    command.write_text("#!/bin/sh\n" + ("exit 1\n" if says is None else f"echo '{says}' >&2\n"))
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return home


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError, match=r"none was found: no java on the PATH.*apt-get install"):
        check_java((4, 1))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(MissingDependencyError, match=r"JAVA_HOME is '.*gone', which contains no bin/java\. Install"):
        check_java((3, 5))
    monkeypatch.setenv("PATH", str(java(tmp_path, 'openjdk version "17.0.15"') / "bin"))
    unset = r"gone'.* \(if JAVA_HOME is not set, Spark uses .*java/bin/java, found on the PATH"
    with pytest.raises(MissingDependencyError, match=unset):
        check_java((4, 1))


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx="1"\nopenjdk version "21" 2023-09-19 LTS', 21),
        ("no such thing", None),
        (None, None),
    ],
)
def test_the_version_that_java_says(tmp_path: Path, says: str | None, version: int | None) -> None:
    assert java_version(str(java(tmp_path, says) / "bin" / "java")) == version


def test_java_that_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, 'openjdk version "11.0.2"')))
    assert check_java((3, 5)) == 11
    with pytest.raises(MissingDependencyError, match=r"Spark 4\.1 needs Java 17 or later, but .* is Java 11.*Install"):
        check_java((4, 1))
    with pytest.raises(MissingDependencyError, match=r"Iceberg's runtime needs Java 17"):
        check_java((3, 5), iceberg=True)
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "broken", None)))
    with pytest.raises(MissingDependencyError, match="does not run"):
        check_java((4, 1))


@pytest.mark.parametrize("where", ["variable", "home"])
def test_the_users_settings_come_before_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    ours = defaults(tmp_path)
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text(
        "# spark.ui.enabled true\n\n  spark.driver.memory\t16g\nspark.master=local[1]\nspark.driver.host: here\n"
        "spark.sql.shuffle.partitions\nspark.app.name caf\u00e9 \udcff\n",
        encoding="utf-8", errors="surrogateescape",
    )  # fmt: skip
    if where == "variable":
        monkeypatch.setenv("SPARK_CONF_DIR", str(folder))
    given = {"spark.driver.memory", "spark.master", "spark.driver.host", "spark.sql.shuffle.partitions"}
    left = defaults(tmp_path / "nowhere" if where == "variable" else tmp_path)
    assert left == {name: value for name, value in ours.items() if name not in given} != ours


@pytest.mark.parametrize("home", ["gone", "java"])
def test_no_spark_where_spark_home_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    java(tmp_path, None)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / home))
    wrong = rf"SPARK_HOME is '.*{home}', which contains no bin/spark-submit.*unset"
    with pytest.raises(MissingDependencyError, match=wrong):
        _installed()


def test_spark_that_does_not_start_may_not_like_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")

    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, 'openjdk version "17.0.15"')))
    monkeypatch.setattr(_session, "_build", refused)
    monkeypatch.setattr(_session, "_end_java", lambda: None)
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(variable, sys.executable)
    with pytest.raises(MissingDependencyError, match=r"start on Java 17.*spark\.driver\.memory.*lacks modul.*Install"):
        _session._start("x", False, {"spark.driver.memory": "abc"})


def test_without_java_or_pyspark_a_session_says_what_is_missing(tmp_path: Path) -> None:
    asks = "import iceexplore as ix\ntry:\n    ix.spark()\nexcept ImportError as e:\n    print(type(e).__name__, e)\n"
    bare = python(asks, PATH=str(tmp_path), JAVA_HOME="")
    assert "MissingDependencyError Spark needs Java, but none was found" in bare.stdout, bare.stderr
    without = python("import sys\nsys.modules['pyspark'] = None\n" + asks)
    assert "MissingDependencyError PySpark is not installed: pip install 'iceexplore[spark]'" in without.stdout
