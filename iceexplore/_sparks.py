"""What a Table does with Spark. Each method is a line or two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from iceexplore import graph

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

    from iceexplore.planning import ScanPlan

__all__ = ["Sparks"]


class Sparks:
    """The part of a `iceexplore.Table` that needs Spark."""

    _state: graph.TableState

    def _resolve(self, at: Any) -> graph.TableState:
        raise NotImplementedError

    def scan(
        self,
        spark: Any,
        filter: Any = None,  # noqa: A002
        columns: Any = None,
        *,
        snapshot: Any = None,
        partition: Any = None,
        strict: bool = False,
        engine: Literal["auto", "spark", "iceberg"] = "auto",
        plan: ScanPlan | None = None,
    ) -> DataFrame:
        """The rows as a Spark DataFrame, every delete applied, of any state of any table: time-travelled, simulated,
        moved, from a zip, damaged. The files are those of `plan`, and plain Spark reads them; it needs nothing of
        Iceberg's.

        The DataFrame stays right whatever the session's settings become. Columns that are not selected are not read,
        and filters reach the files, also those that come after the scan. What plain Spark cannot read, or not as
        Iceberg means it (Avro files; ORC files with dates, timestamps, rows deleted by position, or rows whose place is
        asked for; INT96, names that differ in case alone, very many deletes), Python workers do: there only ``filter``
        and ``columns`` spare reading, and iceexplore must be installed for the workers.

        Of a zip or a simulation the files are in a temporary folder, which stays until Python ends, as nothing tells
        when the last DataFrame made of this one is gone; a simulation's ``close`` removes it at once.

        Types are Iceberg's as its Spark runtime shows them: ``uuid`` as string, ``fixed`` as binary, ``timestamp`` as
        ``timestamp_ntz``. Those that it refuses come as they are stored: ``time`` as bigint (microseconds),
        ``timestamp_ns`` and ``timestamptz_ns`` as bigint (nanoseconds since 1970), geometry and geography as binary
        (WKB).

        Parameters
        ----------
        spark
            A session of Spark 3.5 or later, Connect too (`iceexplore.spark` makes one).
        filter
            As for `plan`.
        columns
            As for `to_arrow`, metadata columns too: ``_file``, ``_pos``, ``_row_id``,
            ``_last_updated_sequence_number``, ``_spec_id``, ``_partition``, ``_deleted``. With ``_deleted`` the deleted
            rows come too, marked.
        snapshot
            A snapshot, branch, tag or Table; by default what is shown.
        partition
            A dictionary by partition field: only rows of files of these partitions.
        strict
            Raise where a file is missing or damaged. Otherwise its rows are left out, with a problem in ``.problems``
            and a warning that names the files. Damage beyond a file's footer shows when the DataFrame runs, in Spark's
            words: ``t.verify(spark, level="data")`` names the file.
        engine
            ``"spark"``: as above. ``"iceberg"``: let Iceberg's runtime, if the session has it, read the table's own
            metadata file, version 1 to 3, as it is. ``"auto"``: plain Spark, but Iceberg's runtime where Python workers
            would have to read and it can.
        plan
            What `plan` made of this metadata file: snapshot and filter are its own then. One of appends
            (``from_snapshot=``) makes an incremental read.

        Raises
        ------
        OptionError
            The filter, a column or an option makes no sense; the nearest names are listed.
        UnsupportedError
            A file is made up by a simulation; Spark is too old; a simulation or an extracted zip is in a temporary
            folder that workers on other machines do not see; or ``engine="iceberg"`` cannot read this state.
        FormatError, FileMissingError
            With ``strict``: a file is missing or damaged.

        Examples
        --------
        >>> t.scan(spark, "ts >= '2024-01-01'", columns=["id", "_file"]).groupBy("_file").count().show()
        """
        from iceexplore.on_spark import scan

        state = self._state if snapshot is None else self._resolve(snapshot)
        return scan(state, spark, filter, columns, partition=partition, strict=strict, engine=engine, plan=plan)

    @overload
    def verify(self, spark: None = ..., *, level: Literal["footers", "data"] = ...) -> pd.DataFrame: ...

    @overload
    def verify(self, spark: Any, *, level: Literal["footers", "data"] = ...) -> DataFrame: ...

    def verify(self, spark: Any = None, *, level: Literal["footers", "data"] = "footers") -> pd.DataFrame | DataFrame:
        """Open every live data and delete file, and say where metadata is not true of it; nothing found: no rows.

        Parameters
        ----------
        spark
            A Spark session: its workers open the files, when the data frame that comes back is run (and again each
            time). Without one it is done here, in threads.
        level
            ``"footers"``: whether each file is there, can be opened, has the size, format, row count, row groups and
            field ids that the table says; delete files and deletion vectors are read: CRC, counts, positions within
            their data file, the data files that they name, the columns of equality deletes. ``"data"``: besides, every
            row is read, with all of its columns: whether pages fit their checksums, bounds and counts of columns hold,
            each row is in its file's partition, rows are in the sort order that the file claims, and in version 3 and
            later no two live rows have one id, nor any row an id or a time of change that the table has not given out.

        Returns
        -------
        pandas or Spark DataFrame
            A row per finding: ``code`` and ``severity`` (`iceexplore.errors.PROBLEM_KINDS`), ``location``, ``content``
            (0 data, 1 position deletes and vectors, 2 equality deletes, null: a manifest), ``manifest``, ``entry`` (its
            ordinal there), ``snapshot_id`` (of the entry), ``field``, ``found``, ``expected``, ``text``.

        Raises
        ------
        OptionError
            No Spark session, or an unknown level.
        UnsupportedError
            Spark's workers cannot see the files, or the storage cannot go to them.

        Notes
        -----
        Only the state shown is verified: snapshots that are older by ``t.at(...)``. Not compared are bounds of columns
        inside lists and maps, of variants and geometries; the offsets of row groups in ORC and Avro; whether a position
        delete's data file was live once; encrypted files; of the ids that a file's rows have in more than 1,000
        stretches, any but the longest 1,000 with those of other files. Delete files that apply to nothing are no
        finding while the data file that they name is there.
        """
        from iceexplore.on_spark import verify, verify_here

        if spark is None:
            return graph.to_frame(verify_here(self._state, level=level))
        return verify(self._state, spark, level=level)
