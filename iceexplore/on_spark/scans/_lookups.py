"""Helpers for Spark plans: lookups of per-file values in one-row frames, paths in Spark's notation, read options."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa

from iceexplore.arrow import AnyArray
from iceexplore.on_spark.environment._info import SessionInfo, version_of
from iceexplore.storage import is_local

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql import types as spark_types

__all__ = [
    "FILE_COLUMN",
    "Lookups",
    "arrow_frame",
    "few_listings",
    "hadoop_path",
    "link_options",
    "read_options",
    "spark_reads",
]

#: The partition column that holds a file's number; a table is unlikely to have a column of this name.
FILE_COLUMN = "_iceexplore_file"

_LISTINGS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_LOCALITY = "spark.sql.sources.ignoreDataLocality"
#: File systems whose blocks may be on the same machines as workers.
_BLOCKS = ("hdfs:", "viewfs:")
_LISTING = Lock()
#: Links point to folders only if a group has at most this many, because each link is tried for each path.
_MOST_FOLDERS = 64
#: The number of tasks per worker for listing files.
_TASKS = 4

#: Schemes for which Hadoop has file systems; Python may support others, too.
_HADOOP = frozenset(
    ("s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "adl", "hdfs", "viewfs", "oss", "cosn", "obs", "ofs")
)

#: Passed with each read, as the session's settings may be different when the query runs.
_READ_OPTIONS = {
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "__globPaths__": "false",
    "orc.force.positional.evolution": "false",
    "parquet.page.verify-checksum.enabled": "true",
}


def read_options(reals: Sequence[str]) -> dict[str, str]:
    """Return the options for reading files.

    Vectored reads are disabled for local disks: they are no faster there, but Java keeps their buffers, as large as the
    pieces read, for each thread (60 MB for a read of 20 million rows).
    """
    options = dict(_READ_OPTIONS)
    if all(map(is_local, reals)):
        options["parquet.hadoop.vectored.io.enabled"] = "false"
    return options


def arrow_frame(session: SparkSession, info: SessionInfo, table: pa.Table, schema: spark_types.StructType) -> DataFrame:
    """Return an Arrow table as a DataFrame."""
    if info.version >= (4, 0):
        frame: DataFrame = session.createDataFrame(table, schema)
        return frame
    rows = list(zip(*[column.to_pylist() for column in table.columns], strict=True))
    frame = session.createDataFrame(rows, schema)
    return frame


def hadoop_path(session: SparkSession, real: str) -> str:
    """Return a real location in the notation of Hadoop's file systems."""
    scheme, found, rest = real.partition("://")
    if not found:
        return "file://" + real
    if scheme in ("s3", "s3n") and not session.conf.get(f"spark.hadoop.fs.{scheme}.impl", None):
        return f"s3a://{rest}"
    return real


def spark_reads(real: str) -> bool:
    """Return whether Spark treats a file of this name as data and takes its name literally."""
    name = real.rpartition("/")[2]
    if name.startswith((".", "_")) or name.endswith("._COPYING_"):
        return False  # Spark skips such files as hidden or incomplete
    scheme, found, rest = real.partition("://")
    path = rest if found else real
    return (not found or scheme in _HADOOP) and not re.search(r"[\\:?*{}\[\]\x00-\x1f]|[^\x00-\x7f]", path)


def link_options(
    session: SparkSession, info: SessionInfo, reals: Sequence[str], values: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    """Return options and paths of links to files, each in a folder whose name holds values of the file.

    A constant per file costs nothing as a partition value, but is expensive with ``input_file_name()`` or a join on the
    path. The links are those of Hadoop's viewfs, defined by read options only, so nothing is written. As Hadoop caches
    file systems, each process keeps the links until it ends.

    Spark copies all options for each file that it opens, once per option. So if files share folders and this Hadoop
    supports patterns, there is one link per folder, whose pattern accepts any values before the folder; otherwise each
    file has its own link.
    """
    targets = [hadoop_path(session, real) for real in reals]
    folders = {target.rpartition("/")[0]: "" for target in targets}
    shared = len(folders) <= min(_MOST_FOLDERS, len(targets) // 2) and _knows_patterns(session, info)
    # Hadoop caches file systems by name, so each set of links gets a different name.
    mount = "ix" + hashlib.sha256("\n".join((*targets, *values, str(shared))).encode()).hexdigest()[:24]
    table, base = f"fs.viewfs.mounttable.{mount}", f"viewfs://{mount}/"
    if shared:
        folders = {folder: f"f{i}" for i, folder in enumerate(folders)}
        links = {f"{table}.linkRegex.^/.*/{name}/": folder for folder, name in folders.items()}
        split = [target.rpartition("/") for target in targets]
        paths = [f"/{value}/{folders[folder]}/{name}" for (folder, _, name), value in zip(split, values, strict=True)]
    else:
        paths = [f"/{value}/{i}.parquet" for i, value in enumerate(values)]
        links = {f"{table}.link.{path}": target for path, target in zip(paths, targets, strict=True)}
    options = {key: quote(target, safe="/:=@!&'()*+,;~-._") for key, target in links.items()}
    options["basePath"] = base
    return options, [base + path[1:] for path in paths]


def _knows_patterns(session: SparkSession, info: SessionInfo) -> bool:
    """Return whether viewfs links may be patterns (Hadoop 3.4, HADOOP-15891); Connect does not report its Hadoop."""
    if info.connect:
        return False
    try:
        found = session.sparkContext._jvm.org.apache.hadoop.util.VersionInfo.getVersion()
        return version_of(found) >= (3, 4)
    except Exception:  # managed Spark services do not allow this call
        return False


@contextmanager
def few_listings(session: SparkSession, info: SessionInfo, reals: Sequence[str]) -> Iterator[None]:
    """Make Spark list the files of a read in few tasks and without looking up block locations.

    Spark lists more than 32 paths in a job with one task per path, and each task gets all read options. When Spark
    looks up the block locations of links on a local file system, it starts a process per link (``HadoopFSUtils``). For
    thousands of links this takes minutes. The two session settings that are changed do not affect results, and are
    restored when the context ends. Spark Connect reads them too late, so nothing is changed there.
    """
    if info.connect:
        yield
        return
    with _LISTING:
        tasks = min(int(session.conf.get(_LISTINGS)), _TASKS * session.sparkContext.defaultParallelism)
        wanted = {_LISTINGS: str(tasks)}
        if not any(real.startswith(_BLOCKS) for real in reals):
            wanted[_LOCALITY] = "true"
        before = {key: session.conf.get(key, None) for key in wanted}
        try:
            for key, value in wanted.items():
                session.conf.set(key, value)
            yield
        finally:
            for key, was in before.items():
                session.conf.unset(key) if was is None else session.conf.set(key, was)


class Lookups:
    """Arrays in which rows look up their file's values, each a scalar subquery and so a single value in the plan.

    Spark 3.5 has no scalar subqueries for DataFrames; there the arrays are columns of a joined one-row frame.
    """

    def __init__(self, session: SparkSession, info: SessionInfo) -> None:
        self._session = session
        self._info = info
        self._joined: list[tuple[str, DataFrame]] = []

    def array(self, values: AnyArray, kind: spark_types.DataType) -> Column:
        """Return a Column with an array of values."""
        from pyspark.sql import functions as f
        from pyspark.sql import types as t

        name = f"_iceexplore_array_{len(self._joined)}"
        schema = t.StructType([t.StructField(name, t.ArrayType(kind, True), True)])
        held = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
        frame = arrow_frame(self._session, self._info, pa.Table.from_arrays([held], names=[name]), schema)
        if self._info.version >= (4, 0):
            return frame.scalar()
        self._joined.append((name, frame))
        return f.col(name)

    def join(self, frame: DataFrame) -> DataFrame:
        """Return the frame with the arrays in scope; expressions that use them have to come after this call."""
        from pyspark.sql import functions as f

        for _, one in self._joined:
            frame = frame.crossJoin(f.broadcast(one))
        return frame
