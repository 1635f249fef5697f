"""The public class of a lab: a real table created by iceexplore. Each method delegates to `labs` in a line or two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from iceexplore import commits, labs
from iceexplore.errors import OptionError, renamed_method
from iceexplore.metadata import Snapshot
from iceexplore.table import CommittedTable

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession

    from iceexplore.expressions import FilterLike
    from iceexplore.storage import CatalogLike
    from iceexplore.writing import RowsLike, SchemaLike

__all__ = ["Lab", "create", "lab"]

_THREE_DAYS_MS = 3 * 24 * 60 * 60 * 1000


def create(
    path: str | PathLike[str],
    schema: SchemaLike,
    *,
    partition_by: str | Iterable[str] | None = (),
    sort_by: str | Iterable[str] | None = (),
    format_version: int = 2,
    properties: Mapping[str, str] | None = None,
    virtual_columns: str | Iterable[str | tuple[str, str]] | None = (),
    catalog: CatalogLike | None = None,
    location: str | None = None,
    **layout: Any,
) -> Lab:
    """Create a lab: an Iceberg table with real data, for trying things out.

    Parameters
    ----------
    path
        A local folder that is empty or does not exist; with ``catalog`` the table's name, ``"db.table"``. A plain path
        is recorded as a ``file:///`` URI, as the spec requires; ``file:/x`` stays as given.
    schema
        Types by column name: ``{"id": "long", "ts": "timestamp", "tags": "list<string>"}``. Or a schema: a table's
        (``t.schema``), PyIceberg's, PyArrow's, or that of a data frame or Arrow table. Columns get new ids; required
        columns, identifiers, docs and defaults are kept.
    partition_by
        Partition fields: ``"day(ts)"``, ``"bucket(16, id)"``, ``"region"``.
    sort_by
        Sort order of the rows in each file: ``"ts desc nulls last"``, ``"bucket(16, id)"``.
    format_version
        1 to 4.
    properties
        Table properties: ``write.delete.mode``, ``commit.retry.num-retries`` and so on.
    virtual_columns
        Functions of columns for which files store statistics, so that filters on them can prune (V4):
        ``"lower(name)"``, ``("char_length(name)", "length")`` (`iceexplore.commits.evolve_virtual_columns`).
    catalog
        A PyIceberg catalog that supports check-and-put of a metadata location, or its name: a ``SqlCatalog``. Without
        one, commits follow the spec's "File System Tables": the first to create ``v<N+1>.metadata.json`` wins.
    location
        With ``catalog``, the table's local folder; by default one in the catalog's warehouse.
    layout
        Layout options (`iceexplore.commits.LayoutOptions`), which the lab keeps.

    Raises
    ------
    OptionError, RuleError
        The folder is not empty, or the schema, the spec, the sort order or an option is invalid.
    UnsupportedError
        The storage or catalog cannot detect concurrent writers: an object store, a REST catalog.
    CatalogError
        The catalog already has the table, lacks the namespace, or failed.
    """
    made = labs.create_lab(
        path,
        schema,
        partition_by=partition_by,
        sort_by=sort_by,
        format_version=format_version,
        properties=properties,
        virtual_columns=virtual_columns,
        catalog=catalog,
        location=location,
        layout=layout,
    )
    return Lab(made)


def lab(
    source: str | PathLike[str],
    *,
    catalog: CatalogLike | None = None,
    allow: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    on_error: Literal["raise", "skip"] = "raise",
) -> Lab:
    """Open a lab that `create` created, to commit to it.

    Parameters
    ----------
    source
        Its folder; with ``catalog`` the table's name.
    allow
        Additional places that may be read, as for `iceexplore.open`. Nothing is written there.
    on_error
        If counts in the table's metadata contradict each other, rows may be missing. Operations that rewrite rows or
        manifests then raise `FormatError`, because they would make the loss permanent. ``"skip"`` lets them continue
        with the rows found, and warn. `append` adds rows in either case.

    Raises
    ------
    OptionError
        The table is not a lab, because only tables that iceexplore has created are written; or ``on_error`` is invalid.
    MetadataNotFoundError, CatalogError
        There is no such table.
    """
    if on_error not in ("raise", "skip"):
        raise OptionError(f"on_error={on_error!r}: choose 'raise' or 'skip'")
    made = labs.open_lab(source, catalog=catalog, allow=allow)
    made.on_error = on_error
    return Lab(made)


class Lab(CommittedTable):
    """A table created by iceexplore in a real folder: commits write real data and metadata.

    Returned by `iceexplore.create` and `iceexplore.lab`. It is a Table of its current state: scans, plans, tree and
    inspect show it. Each commit starts from the newest state, whoever wrote it. If another commit is published first
    anyway, the commit is validated and retried (``commit.retry.*``), or refused by `CommitConflictError`. Methods
    return the new snapshot; operations on rows return None, without a commit, if no row matches. If rows may be
    missing, because counts in the metadata contradict each other, all operations but `append` are refused
    (`iceexplore.lab`: ``on_error``).

    Rows are read and written in this process, within its memory limit (`iceexplore.memory_limit`). If a Spark session
    is given (``spark=``), or rows as a Spark data frame, Spark's workers read and write them instead, without this
    limit (Spark 3.5 or later, classic or Connect). The workers need iceexplore and must share the folder; this process
    only receives the files' entries and compressed bitmaps of positions. The rows are the same either way.

    ``write.delete.mode``, ``write.update.mode`` and ``write.merge.mode`` select the mode: ``copy-on-write`` (the
    default) rewrites files, ``merge-on-read`` writes position delete files (version 2) or deletion vectors (from 3);
    version 1 only has copy-on-write. Both kinds of delete files are written by this process.

    Methods that add or remove files take ``ref=``, the branch to commit to.
    """

    _sandbox: labs.LabCommitter
    _kind = "lab"

    def fork(self) -> Lab:
        """Return a second writer to the same table."""
        return Lab(self._sandbox.fork())

    # Commits of rows --------------------------------------------------------------------------------------------------

    def append(self, rows: RowsLike, *, ref: str = "main") -> Snapshot:
        """Add rows: a pandas or Spark data frame, an Arrow table, a dictionary of columns, or a list of dictionaries.

        Writes one file per partition, sorted by the table's order. Missing columns get their write default; keys
        missing from one of several dictionaries become null. Any object with an Arrow stream (``__arrow_c_stream__``),
        such as a Polars data frame, is treated as an Arrow table; LazyFrames are collected.

        The rows of a Spark data frame (3.5 or later, classic or Connect) are written by Spark's workers, which need
        iceexplore and must share the folder; the rows are not sent to this process. Large partitions are written by
        several tasks. In an unpartitioned table, each task of the data frame writes its own rows, so ``coalesce(n)``
        results in fewer files. A file has at most 256 MiB of rows, as measured in memory.

        Raises
        ------
        OptionError
            There are no rows, a column is unknown, a required column is missing, or values do not fit.
        UnsupportedError, StorageError
            Spark's workers cannot reach the folder, or see another folder there.
        """
        return self._files("append", ref, rows)

    def delete(
        self, where: FilterLike | None, *, spark: SparkSession | None = None, ref: str = "main"
    ) -> Snapshot | None:
        """Delete the rows that match a filter; ``"true"`` deletes all. Files that match by metadata are not read.

        Parameters
        ----------
        spark
            A Spark session, whose workers read and rewrite the files.

        Raises
        ------
        OptionError
            The filter is missing or invalid.
        UnsupportedError, StorageError
            As for `append`; or the rows exceed this process's memory limit.
        """
        return self._files_if_any("delete", ref, where, spark=spark)

    def update(
        self,
        set: Mapping[str, Any],  # noqa: A002 (the word of UPDATE)
        where: FilterLike | None = None,
        *,
        spark: SparkSession | None = None,
        ref: str = "main",
    ) -> Snapshot | None:
        """Set columns to other values in the rows that match; without a filter in all rows.

        Parameters
        ----------
        set
            By column: a value, or a function of the rows (an Arrow table) that returns a value or an array with one
            value per row: ``{"price": lambda rows: pc.multiply(rows["price"], 2)}``. It is called for some rows at a
            time. To assign existing values to rows, use `merge`. With ``spark``: a value, a Spark Column (``{"price":
            F.col("price") * 2}``), or a function of the rows (a data frame) that returns one.
        spark
            A Spark session, whose workers read the files and rewrite rows.

        Raises
        ------
        OptionError
            The filter or a column is invalid, or a value does not fit.
        UnsupportedError, StorageError
            As for `delete`; with ``spark`` also column names that differ only in case.
        """
        return self._files_if_any("update", ref, set, where, spark=spark)

    def merge(
        self,
        rows: RowsLike,
        on: str | Iterable[str],
        *,
        matched: Literal["update", "delete"] | None = "update",
        not_matched: Literal["insert"] | None = "insert",
        where: FilterLike | None = None,
        ref: str = "main",
    ) -> Snapshot | None:
        """Merge rows into the table by key.

        Parameters
        ----------
        rows
            As for `append`. Rows of a Spark data frame are matched by Spark, which caches them meanwhile. This process
            only receives up to 200 values of each key column, or their range, to select files. If Spark loses its
            cache, the data frame must return the same rows again.
        on
            Primitive columns that must be equal for a match; null matches nothing, NaN equals NaN, -0.0 equals 0.0.
        matched
            What to do with matching rows of the table: update their other columns from ``rows``, or delete them.
        not_matched
            What to do with ``rows`` without a match.
        where
            Consider only rows of the table that match this filter.

        Raises
        ------
        OptionError
            A column or an option is invalid, or several of ``rows`` match one row of the table.
        UnsupportedError, StorageError
            As for `delete`.
        """
        return self._files_if_any("merge", ref, rows, on, matched=matched, not_matched=not_matched, where=where)

    def overwrite(self, rows: RowsLike, where: FilterLike | None = None, *, ref: str = "main") -> Snapshot:
        """Delete the rows that match a filter, by default all, and add others (as `append`), in one commit.

        If ``rows`` are a Spark data frame, Spark's workers rewrite files in which only some rows match.

        Raises
        ------
        OptionError
            The filter is invalid, or the rows do not fit.
        UnsupportedError, StorageError
            As for `delete`.
        """
        return self._files("overwrite", ref, rows, where)

    def compact(
        self, where: FilterLike | None = None, *, spark: SparkSession | None = None, ref: str = "main", **how: Any
    ) -> Snapshot | None:
        """Rewrite data files into fewer, without deleted rows (operation ``replace``).

        New files have the partition and spec of the old ones; rows keep the order of their files. With ``spark``, the
        rows of each new file are sorted by the table's order, if it has one, and a partition gets one new file per
        64 MiB of old files if that makes more than ``files``. Returns None, without a commit, if no partition has more
        files than the target.

        Parameters
        ----------
        where
            Only files that may contain matching rows.
        spark
            A Spark session, whose workers rewrite the files in one job.
        how
            As for `iceexplore.commits.compact`: ``paths``, ``partition``, ``small_than``, ``files`` per partition.

        Raises
        ------
        OptionError
            An argument is invalid; or, without ``spark``, more than 2 GiB would be read.
        FileMissingError, FormatError
            A data file is missing or damaged; nothing is committed.
        UnsupportedError, StorageError
            As for `delete`.
        """
        return self._files_if_any("compact", ref, where, spark=spark, **how)

    # Unneeded files ---------------------------------------------------------------------------------------------------

    def expire_snapshots(
        self,
        ids: Iterable[int] | None = None,
        *,
        older_than: object = None,
        retain_last: int | None = None,
        files: bool = True,
    ) -> commits.Expired:
        """Expire snapshots, and remove the files that only they needed.

        Parameters
        ----------
        ids, older_than, retain_last
            As for `iceexplore.Simulation.expire_snapshots`.
        files
            False keeps the files, which `orphan_files` then lists.

        Returns
        -------
        Expired
            A tuple of the expired ids. It prints which snapshots were kept and why (``.kept``).

        Raises
        ------
        RuleError
            ``expire-referenced``, ``expire-gc``.
        FormatError, FileMissingError
            Metadata cannot be read, so it is unknown which files are needed; nothing was done.
        """
        self.refresh()
        before = labs.needed_by_snapshots(self._sandbox.strict()) if files else frozenset()
        gone = super().expire_snapshots(ids, older_than=older_than, retain_last=retain_last)
        if files and gone:
            labs.remove_unneeded(self._sandbox, before)
        return gone

    expire = renamed_method("expire_snapshots", "expire")

    def orphan_files(self, *, running: bool = False) -> pd.DataFrame:
        """Return files under the table's folder that no metadata file, manifest or DV references (orphan files).

        They are left behind by killed commits, by failed commits whose outcome is unknown, and by failed Spark jobs. A
        refused commit removes what it wrote; a retried one removes the metadata of its lost attempts, but not data
        files that it wrote again. Files not older than a running commit are left out; only commits of iceexplore on
        this machine are recognized as running, not those of other engines.

        Parameters
        ----------
        running
            Whether to include the files that are not older than a running commit.

        Returns
        -------
        pandas.DataFrame
            ``location``, ``kind``, ``size``, ``modified_at``.

        Raises
        ------
        FormatError, FileMissingError
            Metadata cannot be read, so its references are unknown.
        """
        return labs.leftovers_frame(labs.find_leftovers(self._sandbox, running=running))

    def remove_orphan_files(self, older_than_ms: int = _THREE_DAYS_MS) -> pd.DataFrame:
        """Remove the files that `orphan_files` lists; return the removed ones.

        Parameters
        ----------
        older_than_ms
            Only files that were last modified at least this many milliseconds ago; by default three days, as in
            Iceberg, which is longer than commits of other engines should take. 0 for all.

        Raises
        ------
        StorageError
            A file cannot be removed.
        FormatError, FileMissingError
            As for `orphan_files`.
        """
        found = labs.find_leftovers(self._sandbox)
        return labs.leftovers_frame(labs.remove_files(self._sandbox, found, older_than_ms=older_than_ms))

    leftovers = renamed_method("orphan_files", "leftovers")
    remove_leftovers = renamed_method("remove_orphan_files", "remove_leftovers")

    # ------------------------------------------------------------------------------------------------------------------

    def _making(self, operation: commits.CommitOperation, /, *given: Any, **arguments: Any) -> commits.MakeChange:
        make = labs.ROW_OPERATIONS.get(operation.name, operation.make)
        return make(*given, **arguments)

    def _commit_options(self, operation: commits.CommitOperation) -> dict[str, Any]:
        return {"adds_only": operation.adds_only}

    def _upgraded(self) -> commits.DocumentChange:
        mark = {labs.LAB_PROPERTY: labs.layout_text(self.options)}
        return lambda document, _: commits.set_properties(document, set=mark)
