"""Start a local Spark session that works without further configuration."""

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
#: G1 settings that keep the heap small. It starts at 64 MB instead of a 64th of the machine's memory, grows only when
#: garbage collection would take half of the time (default: a thirteenth), and then by 3 % of what is available
#: (default: 20 %). Concurrent marking starts at 80 % occupancy instead of 45 %: each cycle begins with a collection,
#: and two collections in quick succession, which large arrays of Parquet pages cause, make G1 double the heap. Scans
#: use less memory, and a stable amount; nothing got slower (benchmarks/results/scan.md).
_SMALL_HEAP = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockExperimentalVMOptions -Xms64m -XX:GCTimeRatio=1 "
    "-XX:G1ExpandByPercentOfAvailable=3 -XX:InitiatingHeapOccupancyPercent=80 -XX:-G1UseAdaptiveIHOP"
)
#: A setting in a Java properties file: a name, then a space, ``=`` or ``:``, then the value.
_SETTING = re.compile(r"\s*([^\s#!=:][^\s=:]*)(?:\s*[=:]\s*|\s+|$)")


def defaults(spark_home: Path) -> dict[str, str]:
    """Return default settings, except those in ``spark-defaults.conf``, where the user's values must win."""
    cores = os.cpu_count() or 2
    interactive = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    ours = {
        "spark.master": os.environ.get("MASTER") or "local[*]",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": f"{_heap() >> 20}m",
        "spark.driver.extraJavaOptions": f"{_SMALL_HEAP} -Dlog4j2.configurationFile={log}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": as_text(interactive),
        # Spark's default of 200 shuffle partitions is meant for clusters.
        "spark.sql.shuffle.partitions": str(max(4, 2 * cores)),
        "spark.sql.python.filterPushdown.enabled": "true",
    }
    configured = _names_in(Path(os.environ.get("SPARK_CONF_DIR") or spark_home / "conf") / "spark-defaults.conf")
    return {name: value for name, value in ours.items() if name not in configured}


def as_text(value: object) -> str:
    """Return a setting's value in Spark's notation."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _names_in(file: Path) -> set[str]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    return {found[1] for line in lines if (found := _SETTING.match(line))}


def _heap() -> int:
    """Return the heap size for Java in bytes: a quarter of the memory (of the container), between 1 and 8 GiB.

    The rest is left for the Python workers and other processes.
    """
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        total = 8 * _GIB
    with contextlib.suppress(OSError, ValueError):
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return max(_GIB, min(8 * _GIB, total // 4))


#: The newest version of Iceberg's runtime that supports every Spark version below.
ICEBERG_VERSION = "1.11.0"
#: The Spark versions for which Iceberg's runtime exists, each with its Scala versions.
_RUNTIMES = {(3, 5): ("2.12", "2.13"), (4, 0): ("2.13",), (4, 1): ("2.13",)}
_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
_PYSPARK_ADVICE = "pip install 'iceexplore[spark]' installs PySpark 3.5 to 4.1"
_REFUSED = (
    "Spark may have rejected a setting from config= or spark-defaults.conf (SPARK_CONF_DIR): more memory than the "
    "machine has (spark.driver.memory), an unknown Java option, or packages that cannot be downloaded "
    "(spark.jars.packages)."
)
_SECONDS_TO_END = 60
#: Settings that hold lists: our values are appended to the user's.
_LISTS = ("spark.jars.packages", "spark.sql.extensions")
_CONNECT_VARIABLES = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")


def spark(name: str = "iceexplore", *, iceberg: bool = False, config: Mapping[str, Any] | None = None) -> SparkSession:
    """Return the running Spark session, unchanged, or start a local one.

    A new session runs on this machine (``local[*]``) with the current Python in the workers, a quarter of the memory
    for Java, no web interface, and only errors logged; interactively it shows Spark's progress bar. If the environment
    points to another Spark (``SPARK_REMOTE``, or the process was started by ``spark-submit``), the session is created
    there. ``spark.read.format("iceexplore")`` is registered in either, from Spark 4.0 on.

    Parameters
    ----------
    name
        The application name of a new session.
    iceberg
        Whether to add Iceberg's own runtime, for ``engine="iceberg"`` and for writing tables with Spark SQL. Spark
        downloads it (50 MB) on first use.
    config
        Settings of a new session. They override those in ``spark-defaults.conf`` (in ``SPARK_CONF_DIR``, or in the
        folder ``conf`` of Spark's home), which override this library's defaults.

    Returns
    -------
    pyspark.sql.SparkSession

    Raises
    ------
    MissingDependencyError
        PySpark or Java is missing or too old (the message says how to get it), or Spark did not start.
    UnsupportedError
        Iceberg's runtime is requested, but the running session lacks it, or none exists for this Spark version.
    OptionError
        A session is already running with settings other than ``config``.

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
    """Return this process's Spark session, classic or Connect, from any thread; None if there is none.

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
    # In Java, the active session belongs to a thread; this finds the session of another thread.
    held = SparkSession._instantiatedSession
    return held if held is not None and held._sc._jsc is not None else None


def iceberg_runtime(spark_version: tuple[int, int], scala: str) -> str:
    """Return the Maven coordinates of Iceberg's runtime for a Spark version (major, minor) and Scala (``"2.13"``).

    Raises
    ------
    UnsupportedError
        There is no runtime for these versions.
    """
    if scala not in _RUNTIMES.get(spark_version, ()):
        name = ".".join(map(str, spark_version))
        known = ", ".join(f"{a}.{b}" for a, b in _RUNTIMES)
        raise UnsupportedError(
            f"Iceberg {ICEBERG_VERSION} has no runtime for Spark {name} with Scala {scala}, only for Spark {known}"
        )
    return f"org.apache.iceberg:iceberg-spark-runtime-{spark_version[0]}.{spark_version[1]}_{scala}:{ICEBERG_VERSION}"


def _check_running(session: SparkSession, iceberg: bool, given: Mapping[str, str]) -> None:
    for key, value in given.items():
        try:
            found = session.conf.get(key, None)
        except Exception:
            found = None
        if found != value:
            raise OptionError(
                f"a Spark session is already running with {key}={found!r} instead of {value!r}: omit config to use "
                "it as it is, or stop it first (spark.stop())"
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
            f"a Spark session is already running without Iceberg's runtime: {how}, with "
            f"--packages org.apache.iceberg:{name} (use your Scala version)"
        )


def _elsewhere() -> bool:
    """Return whether the environment names a Spark to use: a Connect server, or the launcher of this process."""
    return "PYSPARK_GATEWAY_PORT" in os.environ or any(v in os.environ for v in _CONNECT_VARIABLES)


def _build(name: str, settings: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _start(name: str, iceberg: bool, given: Mapping[str, str]) -> SparkSession:
    version, scala = _installed()
    java = check_java(version, iceberg=iceberg)
    settings = {**defaults(_spark_home()), **given}
    if iceberg:
        ours = {_LISTS[0]: iceberg_runtime(version, scala), _LISTS[1]: _EXTENSIONS}
        for key, value in ours.items():
            settings[key] = ",".join(filter(None, [given.get(key), value]))
    _end_java()
    # Java reads these variables when it starts and passes them to the workers.
    for variable in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ[variable] = sys.executable
    try:
        session = _build(name, settings)
    except Exception as e:
        if "JAVA_GATEWAY_EXITED" in str(e):
            raise MissingDependencyError(
                f"Spark did not start on Java {java}; the reason is in this process's standard error (for a notebook: "
                f"in the log of its server). {_REFUSED} Or this Java lacks modules that Spark needs, or is too new. "
                f"{JAVA_ADVICE}"
            ) from e
        raise
    if iceberg:
        _only_for_java(session)
    return session


def _only_for_java(session: SparkSession) -> None:
    """Remove Iceberg's runtime from Python's path, to which Spark adds the jars of ``--packages``.

    The jar contains nothing for Python, but each import in a worker would search the jar's 26,000 names.
    """
    includes = session.sparkContext._python_includes
    includes[:] = [name for name in includes if "iceberg-spark-runtime" not in name]
    sys.path[:] = [path for path in sys.path if not ("iceberg-spark-runtime" in path and path.endswith(".jar"))]


def _end_java() -> None:
    """End the Java process of a stopped session, since only a new process applies a new session's Java options."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None or SparkContext._active_spark_context is not None:
        return
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()  # ends the Java process
        process.wait(_SECONDS_TO_END)
    SparkContext._gateway = SparkContext._jvm = None


def _spark_home() -> Path:
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home())


def _installed() -> tuple[tuple[int, int], str]:
    """Return the version and the Scala version of the Spark that PySpark would start.

    It is the one in ``SPARK_HOME``, or, if the variable is not set, the one that PySpark includes.
    """
    import pyspark

    home = _spark_home()
    if not (home / "bin" / "spark-submit").is_file():
        raise MissingDependencyError(
            f"SPARK_HOME is {os.environ.get('SPARK_HOME')!r}, which contains no bin/spark-submit: set it to Spark's "
            "folder, or unset it to use the Spark that PySpark includes"
        )
    for jar in (home / "jars").glob("spark-core_*.jar"):
        found = re.fullmatch(r"spark-core_(2\.\d+)-(\d+\.\d+.*)\.jar", jar.name)
        if found:
            return version_of(found.group(2)), found.group(1)
    return version_of(pyspark.__version__), "2.13"


def _register(session: SparkSession) -> None:
    """Register the data source if this Spark version supports Python data sources."""
    if SessionInfo.of(session).version >= (4, 0):
        register(session)
