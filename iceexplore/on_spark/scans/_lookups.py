"""Small things that go with a plan: values as a DataFrame of one row, to be looked up; paths as Spark spells them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa

from iceexplore.on_spark.environment._info import SessionInfo, version_of
from iceexplore.storage import is_local

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
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

#: The partition column that tells files apart; its names are improbable in a table.
FILE_COLUMN = "_iceexplore_file"

_LISTINGS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_LOCALITY = "spark.sql.sources.ignoreDataLocality"
#: File systems whose blocks are on machines that may be workers, too.
_BLOCKS = ("hdfs:", "viewfs:")
_LISTING = Lock()
#: Folders of a group's files up to which links lead to them: each is tried for each path.
_MOST_FOLDERS = 64
#: Tasks of a listing, for each worker.
_TASKS = 4

#: Schemes that Hadoop has file systems for; of others it may not know, and Python's do.
_HADOOP = frozenset(
    ("s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "adl", "hdfs", "viewfs", "oss", "cosn", "obs", "ofs")
)

#: Said with each read, for the session's own settings may be anything when the query runs.
_READ_OPTIONS = {
    "mergeSchema": "false",
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "__globPaths__": "false",
    "orc.force.positional.evolution": "false",
}


def read_options(reals: Sequence[str], *, checksums: bool = False) -> dict[str, str]:
    """What is said with the read of files; with ``checksums`` Parquet's pages are held against theirs.

    Of a local disk Parquet reads what lies together at once no sooner than one piece after another; but Java keeps the
    buffers through which it does, as large as the pieces, for each thread (60 MB of a read of 20 million rows).
    """
    options = dict(_READ_OPTIONS)
    if checksums:
        options["parquet.page.verify-checksum.enabled"] = "true"
    if all(map(is_local, reals)):
        options["parquet.hadoop.vectored.io.enabled"] = "false"
    return options


def arrow_frame(session: Any, info: SessionInfo, table: pa.Table, schema: spark_types.StructType) -> DataFrame:
    """An Arrow table as a DataFrame."""
    if info.version >= (4, 0):
        frame: DataFrame = session.createDataFrame(table, schema)
        return frame
    rows = list(zip(*[column.to_pylist() for column in table.columns], strict=True))
    frame = session.createDataFrame(rows, schema)
    return frame


def hadoop_path(session: Any, real: str) -> str:
    """A real location as Hadoop's file systems spell it."""
    scheme, found, rest = real.partition("://")
    if not found:
        return "file://" + real
    if scheme in ("s3", "s3n") and not session.conf.get(f"spark.hadoop.fs.{scheme}.impl", None):
        return f"s3a://{rest}"
    return real


def spark_reads(real: str) -> bool:
    """Whether Spark takes a file of this name for data, and its name for what it is."""
    name = real.rpartition("/")[2]
    if name.startswith((".", "_")) or name.endswith("._COPYING_"):
        return False  # Spark passes over what it takes for hidden or not complete
    scheme, found, rest = real.partition("://")
    path = rest if found else real
    return (not found or scheme in _HADOOP) and not re.search(r"[\\:?*{}\[\]\x00-\x1f]|[^\x00-\x7f]", path)


def link_options(
    session: Any, info: SessionInfo, reals: Sequence[str], values: Sequence[str]
) -> tuple[dict[str, str], list[str]]:
    """Options and paths of links to files, each in a folder that tells values of the file.

    A constant of a file costs nothing as a partition value, and much as ``input_file_name()`` or as a join by path. So
    Hadoop's viewfs has links to the files, made by options of the read alone: nothing is written anywhere. Each process
    keeps the links that it has met until it ends, as Hadoop keeps file systems.

    Spark copies all options for each file that it opens, and once for each option. So where files share folders, and
    Hadoop knows patterns, a link leads to a folder, whatever the values before it; else there is a link for each file.
    """
    targets = [hadoop_path(session, real) for real in reals]
    folders = {target.rpartition("/")[0]: "" for target in targets}
    shared = len(folders) <= min(_MOST_FOLDERS, len(targets) // 2) and _knows_patterns(session, info)
    # File systems are kept by their name: another set of links is another name.
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


def _knows_patterns(session: Any, info: SessionInfo) -> bool:
    """Whether links of viewfs may be patterns (Hadoop 3.4, HADOOP-15891); Connect does not say which Hadoop it has."""
    if info.connect:
        return False
    try:
        found = session.sparkContext._jvm.org.apache.hadoop.util.VersionInfo.getVersion()
        return version_of(found) >= (3, 4)
    except Exception:  # managed Sparks let nobody ask
        return False


@contextmanager
def few_listings(session: Any, info: SessionInfo, reals: Sequence[str]) -> Iterator[None]:
    """Have Spark look up the files of a read in few tasks, and without asking where their blocks are.

    It lists more than 32 paths by a job of a task each, and each task gets every option of the read; of links it asks
    for blocks in a way for which a local file system starts a process each (``HadoopFSUtils``): of thousands of links
    that takes minutes. Both are settings of the session that change no result; they are put back at once. Connect
    reads them too late for that.
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
    """Arrays that rows look their file's values up in, each from a scalar subquery: one value in a plan, however long.

    Spark 3.5 has no scalar subqueries in its DataFrames: there the arrays are columns of a row that is joined.
    """

    def __init__(self, session: Any, info: SessionInfo) -> None:
        self._session = session
        self._info = info
        self._joined: list[tuple[str, DataFrame]] = []

    def array(self, values: pa.Array, kind: spark_types.DataType) -> Column:
        """An array of values."""
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
        """The frame in which the arrays are found; what is done with them comes after."""
        from pyspark.sql import functions as f

        for _, one in self._joined:
            frame = frame.crossJoin(f.broadcast(one))
        return frame
