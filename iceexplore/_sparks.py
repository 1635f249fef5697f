"""What a Table does with Spark. Each method is a line or two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from iceexplore import graph

if TYPE_CHECKING:
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
        Iceberg means it (Avro and ORC files, INT96, names that differ in case alone, very many deletes), Python workers
        do: there only ``filter`` and ``columns`` spare reading, and iceexplore must be installed for the workers.

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
            and a warning that names the files. Damage beyond a file's footer shows when the DataFrame runs.
        engine
            ``"spark"``: as above. ``"iceberg"``: let Iceberg's runtime, if the session has it, read the table's own
            metadata file, version 1 to 3, as it is. ``"auto"``: plain Spark, but Iceberg's runtime where Python workers
            would have to read and it can.
        plan
            A plan that `plan` made of this very state; it has the filter.

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
