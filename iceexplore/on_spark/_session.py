"""A Spark session that works at once, on this machine."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iceexplore.errors import MissingDependencyError, OptionError, UnsupportedError
from iceexplore.on_spark.data_source._register import register
from iceexplore.on_spark.environment._info import SessionInfo, version_of
from iceexplore.on_spark.environment._java import JAVA_ADVICE, check_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "ICEBERG_VERSION",
    "active_session",
    "defaults",
    "iceberg_runtime",
    "spark",
]

_GIB = 1 << 30
#: A heap that begins small, not with a 64th of the machine's memory, and grows where collections would take half of
#: the time, not a thirteenth, and then by a 33rd of what it may still take, not by a fifth. And old objects are looked
#: through where they fill it, not from 45 % on: each such look begins with a collection, and two at once, which large
#: arrays of Parquet's pages bring about, let G1 double the heap. A scan holds less, and no longer another amount each
#: time; nothing was slower (benchmarks/results/scan.md).
_SMALL_HEAP = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockExperimentalVMOptions -Xms64m -XX:GCTimeRatio=1 "
    "-XX:G1ExpandByPercentOfAvailable=3 -XX:InitiatingHeapOccupancyPercent=80 -XX:-G1UseAdaptiveIHOP"
)
#: A setting as Java reads a properties file: a name, and after a space, ``=`` or ``:`` its value.
_SETTING = re.compile(r"\s*([^\s#!=:][^\s=:]*)(?:\s*[=:]\s*|\s+|$)")


def defaults(spark_home: Path) -> dict[str, str]:
    """Settings, without those that the user's ``spark-defaults.conf`` has: what a builder is given comes before it."""
    cores = os.cpu_count() or 2
    somebody_looks = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    ours = {
        "spark.master": os.environ.get("MASTER") or "local[*]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": f"{_heap() >> 20}m",
        "spark.driver.extraJavaOptions": f"{_SMALL_HEAP} -Dlog4j2.configurationFile={log}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": as_text(somebody_looks),
        # Joins and sorts on one machine: Spark's 200 pieces are for clusters.
        "spark.sql.shuffle.partitions": str(max(4, 2 * cores)),
        "spark.sql.python.filterPushdown.enabled": "true",
    }
    said = _names_in(Path(os.environ.get("SPARK_CONF_DIR") or spark_home / "conf") / "spark-defaults.conf")
    return {name: value for name, value in ours.items() if name not in said}


def as_text(value: Any) -> str:
    """A setting's value as Spark writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _names_in(file: Path) -> set[str]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    return {found[1] for line in lines if (found := _SETTING.match(line))}


def _heap() -> int:
    """Bytes for Java: a quarter of the memory (of the container), between 1 and 8 GiB; the Python workers need some."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        total = 8 * _GIB
    with contextlib.suppress(OSError, ValueError):
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return max(_GIB, min(8 * _GIB, total // 4))


#: Of Iceberg's runtime: the newest that has one for each Spark here.
ICEBERG_VERSION = "1.11.0"
#: Sparks that Iceberg's runtime exists for, each with the Scala versions it exists for.
_RUNTIMES = {(3, 5): ("2.12", "2.13"), (4, 0): ("2.13",), (4, 1): ("2.13",)}
_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_PYSPARK_ADVICE = "pip install 'iceexplore[spark]' brings PySpark 3.5 to 4.1"
_REFUSED = (
    "It may refuse a setting, of config= or of a spark-defaults.conf (SPARK_CONF_DIR): more memory than there is "
    "(spark.driver.memory), an option that Java does not know, or packages that it cannot get (spark.jars.packages)."
)
_SECONDS_TO_END = 60
#: Settings that lists are given in: ours are added to the user's.
_LISTS = ("spark.jars.packages", "spark.sql.extensions")
_CONNECT_VARIABLES = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")


def spark(name: str = "iceexplore", *, iceberg: bool = False, config: Mapping[str, Any] | None = None) -> SparkSession:
    """The Spark session that is running, unchanged, or else a local one, made now.

    A new one runs on this machine (``local[*]``), with this Python in the workers, a quarter of the memory for Java,
    without web interface, and says errors only; for a person it shows Spark's progress bar. Where the environment says
    that Spark is elsewhere (``SPARK_REMOTE``, or this is run by ``spark-submit``), the session is made there.
    ``spark.read.format("iceexplore")`` is registered on either, from Spark 4.0 on.

    Parameters
    ----------
    name
        The application's, of a new session.
    iceberg
        Iceberg's own runtime, too: for ``engine="iceberg"``, and to write tables with Spark SQL. Spark downloads
        it (50 MB) when it is first asked for.
    config
        Settings of a new session, before those of a ``spark-defaults.conf`` (of ``SPARK_CONF_DIR``, or of the folder
        ``conf`` of Spark's home), which come before ours.

    Returns
    -------
    pyspark.sql.SparkSession

    Raises
    ------
    MissingDependencyError
        No PySpark, no Java, or one too old; the message says how to get it. Or Spark did not start.
    UnsupportedError
        Iceberg's runtime is asked for, and the session that is running lacks it, or there is none for this Spark.
    OptionError
        A session is running already, with other settings than ``config``.

    Examples
    --------
    >>> spark = ix.spark()
    >>> spark.read.format("iceexplore").option("branch", "audit").load("warehouse/db/trips").show()
    """
    given = {str(k): as_text(v) for k, v in (config or {}).items()}
    session = active_session()
    if session is not None:
        _check_running(session, iceberg, given)
    elif _elsewhere():
        session = _build(name, given)
        _check_running(session, iceberg, {})
    else:
        session = _start(name, iceberg, given)
    _register(session)
    return session


def active_session() -> SparkSession | None:
    """The Spark session of this process, classic or Connect, whichever thread made it; None without one.

    Raises
    ------
    MissingDependencyError
        PySpark is not installed.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as e:
        raise MissingDependencyError(f"PySpark is not installed: {_PYSPARK_ADVICE}.") from e
    connect = sys.modules.get("pyspark.sql.connect.session")
    if connect is not None:
        found = connect.SparkSession.getActiveSession() or connect.SparkSession._default_session
        if found is not None and not getattr(found, "is_stopped", False):
            return found
    if any(v in os.environ for v in _CONNECT_VARIABLES):
        return None
    found = SparkSession.getActiveSession()
    if found is not None:
        return found
    # Of another thread: Java's active session is one per thread.
    held = SparkSession._instantiatedSession
    return held if held is not None and held._sc._jsc is not None else None


def iceberg_runtime(spark_version: tuple[int, int], scala: str) -> str:
    """The Maven coordinates of Iceberg's runtime for a Spark (major and minor) and its Scala (``"2.13"``).

    Raises
    ------
    UnsupportedError
        There is none.
    """
    if scala not in _RUNTIMES.get(spark_version, ()):
        name = ".".join(map(str, spark_version))
        known = ", ".join(f"{a}.{b}" for a, b in _RUNTIMES)
        raise UnsupportedError(
            f"Iceberg {ICEBERG_VERSION} has no runtime for Spark {name} with Scala {scala}, only for Spark {known}"
        )
    return f"org.apache.iceberg:iceberg-spark-runtime-{spark_version[0]}.{spark_version[1]}_{scala}:{ICEBERG_VERSION}"


def _check_running(session: Any, iceberg: bool, given: Mapping[str, str]) -> None:
    for key, value in given.items():
        try:
            found = session.conf.get(key, None)
        except Exception:
            found = None
        if found != value:
            raise OptionError(
                f"a Spark session is running already, with {key}={found!r} instead of {value!r}: leave config out to "
                "use it as it is, or stop it first (spark.stop())"
            )
    info = SessionInfo.of(session)
    if iceberg and not info.iceberg:
        name = f"iceberg-spark-runtime-{info.version[0]}.{info.version[1]}_2.13:{ICEBERG_VERSION}"
        how = (
            "the server must be started with it"
            if info.connect
            else "stop it (spark.stop()) and call ix.spark(iceberg=True) again, or start it yourself"
        )
        raise UnsupportedError(
            f"a Spark session is running already, without Iceberg's runtime: {how}, with "
            f"--packages org.apache.iceberg:{name} (of your Scala version)"
        )


def _elsewhere() -> bool:
    """Whether the environment says where Spark is: a Connect server, or the launcher that started this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ or any(v in os.environ for v in _CONNECT_VARIABLES)


def _build(name: str, settings: Mapping[str, str]) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _start(name: str, iceberg: bool, given: Mapping[str, str]) -> Any:
    version, scala = _installed()
    java = check_java(version, iceberg=iceberg)
    settings = {**defaults(_spark_home()), **given}
    if iceberg:
        ours = {_LISTS[0]: iceberg_runtime(version, scala), _LISTS[1]: _EXTENSIONS}
        for key, value in ours.items():
            settings[key] = ",".join(filter(None, [given.get(key), value]))
    _end_java()
    # Java reads them when it starts, and hands them to workers.
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ[variable] = sys.executable
    try:
        session = _build(name, settings)
    except Exception as e:
        if "JAVA_GATEWAY_EXITED" in str(e):
            raise MissingDependencyError(
                f"Java {java} is there, and Spark did not start on it; why, it says where this process writes its "
                f"errors (of a notebook: its server does). {_REFUSED} Or it is a trimmed Java that lacks modules, or "
                f"too new a one. {JAVA_ADVICE}"
            ) from e
        raise
    if iceberg:
        _only_for_java(session)
    return session


def _only_for_java(session: Any) -> None:
    """Take Iceberg's runtime off Python's path, where Spark puts the jars of ``--packages``.

    There is nothing in it for Python, and 26,000 names to look through for whatever a worker imports.
    """
    includes = session.sparkContext._python_includes
    includes[:] = [name for name in includes if "iceberg-spark-runtime" not in name]
    sys.path[:] = [path for path in sys.path if not ("iceberg-spark-runtime" in path and path.endswith(".jar"))]


def _end_java() -> None:
    """End the Java of a session that was stopped: what a new session asks of Java, only a new one gives."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None or SparkContext._active_spark_context is not None:
        return
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()  # Java ends with it
        process.wait(_SECONDS_TO_END)
    SparkContext._gateway = SparkContext._jvm = None


def _spark_home() -> Path:
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home())


def _installed() -> tuple[tuple[int, int], str]:
    """Version and Scala version of the Spark that PySpark would start (``SPARK_HOME``, else its own)."""
    import pyspark

    home = _spark_home()
    if not (home / "bin" / "spark-submit").is_file():
        raise MissingDependencyError(
            f"SPARK_HOME is {os.environ.get('SPARK_HOME')!r}, and no bin/spark-submit is there: let it name Spark's "
            "folder, or leave it unset, and PySpark's own Spark is started"
        )
    for jar in (home / "jars").glob("spark-core_*.jar"):
        found = re.fullmatch(r"spark-core_(2\.\d+)-(\d+\.\d+.*)\.jar", jar.name)
        if found:
            return version_of(found.group(2)), found.group(1)
    return version_of(pyspark.__version__), "2.13"


def _register(session: Any) -> None:
    """The data source, where this Spark has them."""
    if SessionInfo.of(session).version >= (4, 0):
        register(session)
