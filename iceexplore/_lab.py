"""The face of a lab: a real table of iceexplore's own, with real data. Each method is a line or two into `labs`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from iceexplore import commits, labs
from iceexplore.errors import OptionError, known_arguments
from iceexplore.metadata import Snapshot
from iceexplore.table import CommittedTable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Lab", "create", "lab"]

_THREE_DAYS_MS = 3 * 24 * 60 * 60 * 1000


def create(
    path: str | PathLike[str],
    schema: Any,
    *,
    partition_by: str | Iterable[str] | None = (),
    sort_by: str | Iterable[str] | None = (),
    format_version: int = 2,
    properties: Mapping[str, str] | None = None,
    catalog: Any = None,
    location: str | None = None,
    **layout: Any,
) -> Lab:
    """Create a lab: an Iceberg table with real data, to try things out on.

    Parameters
    ----------
    path
        A local folder, empty or not there yet; with ``catalog`` the table's name, ``"db.table"``. A plain path is
        written into the table as a ``file:///`` URI, which the spec asks for; ``file:/x`` stays as it is given.
    schema
        Types by column name: ``{"id": "long", "ts": "timestamp", "tags": "list<string>"}``. Or a schema: of a table
        (``t.schema``), of PyIceberg, of PyArrow, or of what has one: a data frame, an Arrow table. Columns get new ids;
        what is required, identifiers, docs and defaults stay.
    partition_by
        Partition fields: ``"day(ts)"``, ``"bucket(16, id)"``, ``"region"``.
    sort_by
        How the rows of each file are sorted: ``"ts desc nulls last"``, ``"bucket(16, id)"``.
    format_version
        1 to 4.
    properties
        Of the table: ``write.delete.mode``, ``commit.retry.num-retries`` and so on.
    catalog
        A PyIceberg catalog that can check and put a metadata location, or its name: a ``SqlCatalog``. Without one
        commits are made as the spec's "File System Tables" are: whoever makes ``v<N+1>.metadata.json`` has won.
    location
        With ``catalog``, the local folder; by default one in the catalog's warehouse.
    layout
        Options of the layout (`iceexplore.commits.LayoutOptions`); the lab keeps them.

    Raises
    ------
    OptionError, RuleError
        The folder is not empty, or the schema, the spec, the order or an option makes no sense.
    UnsupportedError
        Neither the storage nor the catalog can tell two writers apart: an object store, a REST catalog.
    CatalogError
        There is such a table in the catalog, no such namespace, or it failed.
    """
    made = labs.create_lab(
        path,
        schema,
        partition_by=partition_by,
        sort_by=sort_by,
        format_version=format_version,
        properties=properties,
        catalog=catalog,
        location=location,
        layout=layout,
    )
    return Lab(made)


def lab(
    source: str | PathLike[str],
    *,
    catalog: Any = None,
    allow: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
    on_error: Literal["raise", "skip"] = "raise",
) -> Lab:
    """Go on with a lab that `create` made.

    Parameters
    ----------
    source
        Its folder; with ``catalog`` its name.
    allow
        Further places that may be read, as for `iceexplore.open`. Nothing is written there.
    on_error
        Where counts in the table's metadata contradict each other, so that rows may be missing, operations that write
        rows or manifests anew raise `FormatError`: they would make the loss final. ``"skip"`` lets them go on with
        what is there, and warn. `append` adds rows either way.

    Raises
    ------
    OptionError
        The table there is no lab: only tables that iceexplore has made are ever written. Or another ``on_error``.
    MetadataNotFoundError, CatalogError
        There is no table.
    """
    if on_error not in ("raise", "skip"):
        raise OptionError(f"on_error={on_error!r}: 'raise' or 'skip'")
    made = labs.open_lab(source, catalog=catalog, allow=allow)
    made.on_error = on_error
    return Lab(made)


class Lab(CommittedTable):
    """A table of iceexplore's own in a real folder: commits write real data and metadata.

    Made by `iceexplore.create` and `iceexplore.lab`. It is a Table of its present state: scans, plans, tree, inspect
    show what is there. Each commit starts from the newest state, whoever made it. If another writer comes first all
    the same, it is validated and tried again (``commit.retry.*``), or refused by `CommitConflictError`. It returns its
    snapshot; operations on rows return None, and make no commit, where no row matches. Where rows may be missing, since
    counts in the metadata contradict each other, all but `append` are refused (`iceexplore.lab`: ``on_error``).

    Rows are read and written in this process, 4 GiB of them a commit, or by Spark's workers, any number: with
    ``spark=``, a session, or where rows are given as a Spark data frame (3.5 or later, Connect too). They must have
    iceexplore and share the folder; of the rows this process gets the files' entries and compressed bitmaps of
    positions. The rows are the same either way.

    ``write.delete.mode``, ``write.update.mode`` and ``write.merge.mode`` say how: ``copy-on-write`` (the default)
    writes files anew, ``merge-on-read`` writes position delete files (version 2) or deletion vectors (from 3); version
    1 has copy-on-write alone. Both kinds of delete files are written by this process.

    Methods that add or remove files take ``ref=``, the branch to commit to.
    """

    _sandbox: labs.LabCommitter

    def fork(self) -> Lab:
        """A second writer to the same table."""
        return Lab(self._sandbox.fork())

    # Commits of rows --------------------------------------------------------------------------------------------------

    def append(self, rows: Any, *, ref: str = "main") -> Snapshot:
        """Add rows: a pandas or Spark data frame, an Arrow table, a dictionary of columns, or a list of dictionaries.

        A file per partition is written, sorted by the table's order. Columns that are missing get their write default;
        what one of several dictionaries lacks is null. Anything that gives itself as an Arrow stream
        (``__arrow_c_stream__``), as data frames of Polars do, is taken for an Arrow table; LazyFrames are collected.

        Files of a Spark data frame (3.5 or later, Connect too) are written by Spark's workers, which must have
        iceexplore and share the folder; the rows do not come here. Large partitions are written by several tasks, an
        unpartitioned table by each task of the data frame: ``coalesce(n)`` makes fewer files. A file has at most 256
        MiB of rows, as they are in memory.

        Raises
        ------
        OptionError
            No rows, an unknown column, a required one that is missing, or values that do not fit.
        UnsupportedError, StorageError
            Spark's workers cannot reach the folder, or it is another one there.
        """
        return self._files(lambda w: commits.append(w.base, w, labs.write_rows(w.base, w, rows)), ref, adds_only=True)

    def delete(self, where: Any, *, spark: Any = None, ref: str = "main") -> Snapshot | None:
        """Delete the rows that match a filter; ``"true"`` is all. Files that match by metadata go unread.

        Parameters
        ----------
        spark
            A Spark session, whose workers read the files and write them anew.

        Raises
        ------
        OptionError
            There is no filter, or it makes no sense.
        UnsupportedError, StorageError
            As `append`; or more rows than this process should hold.
        """
        engine = labs.engine_of(spark)
        return self._files_if_any(lambda w: labs.delete_rows(w.base, w, where, engine=engine), ref)

    def update(
        self,
        set: Mapping[str, Any],  # noqa: A002 (the word of UPDATE)
        where: Any = None,
        *,
        spark: Any = None,
        ref: str = "main",
    ) -> Snapshot | None:
        """Give columns other values in the rows that match; without a filter in all.

        Parameters
        ----------
        set
            By column a value, or a function of the rows (an Arrow table) that gives one, or an array with one for each:
            ``{"price": lambda rows: pc.multiply(rows["price"], 2)}``. It is called for some rows at a time. Values that
            are there already go to their rows by `merge`.
            With ``spark`` a value, a Spark Column (``{"price": F.col("price") * 2}``), or a function of the rows (a
            data frame) that gives one.
        spark
            A Spark session, whose workers read the files and write rows anew.

        Raises
        ------
        OptionError
            The filter or a column makes no sense, or a value does not fit.
        UnsupportedError, StorageError
            As `delete`; with ``spark`` also names of columns that differ in case alone.
        """
        engine = labs.engine_of(spark)
        return self._files_if_any(lambda w: labs.update_rows(w.base, w, set, where, engine=engine), ref)

    def merge(
        self,
        rows: Any,
        on: str | Iterable[str],
        *,
        matched: Literal["update", "delete"] | None = "update",
        not_matched: Literal["insert"] | None = "insert",
        where: Any = None,
        ref: str = "main",
    ) -> Snapshot | None:
        """Merge rows into the table, by key.

        Parameters
        ----------
        rows
            As for `append`. Those of a Spark data frame are matched by Spark, which keeps them while this lasts: this
            process gets at most 200 values of each key, or the least and the greatest, to choose files by. If Spark
            loses what it keeps, the data frame must give the same rows again.
        on
            Columns of plain values whose equal values make a match; null matches nothing, NaN is NaN, -0.0 is 0.0.
        matched
            What becomes of rows of the table that match: they get the other columns of ``rows``, or go.
        not_matched
            What becomes of ``rows`` that match none.
        where
            Only rows of the table that match this filter are looked at.

        Raises
        ------
        OptionError
            A column or an option makes no sense; or several of ``rows`` match one row of the table.
        UnsupportedError, StorageError
            As `delete`.
        """
        return self._files_if_any(
            lambda w: labs.merge_rows(w.base, w, rows, on, matched=matched, not_matched=not_matched, where=where), ref
        )

    def overwrite(self, rows: Any, where: Any = None, *, ref: str = "main") -> Snapshot:
        """Delete the rows that match a filter, by default all, and add others (as `append`), in one commit.

        Files in which some rows match are written anew by Spark's workers if ``rows`` are a Spark data frame.

        Raises
        ------
        OptionError
            The filter makes no sense, or the rows do not fit.
        UnsupportedError, StorageError
            As `delete`.
        """
        engine = labs.engine_of(rows=rows)
        return self._files(lambda w: labs.overwrite_rows(w.base, w, rows, where, engine=engine), ref)

    def compact(self, where: Any = None, *, spark: Any = None, ref: str = "main", **how: Any) -> Snapshot | None:
        """Write data files anew into fewer, deleted rows left out (operation ``replace``).

        Each file stays in its partition and spec; rows keep the order of their files. With ``spark`` the rows of each
        new file are sorted by the table's order, if it has one; and a partition gets a file for each 64 MiB of its old
        ones, if that is more than ``files``. Returns None, without a commit, if no partition has more files than it
        would get.

        Parameters
        ----------
        where
            Only files that may have matching rows.
        spark
            A Spark session, whose workers rewrite the files: one job.
        how
            As of `iceexplore.commits.compact`: ``paths``, ``partition``, ``small_than``, ``files`` a partition.

        Raises
        ------
        OptionError
            An argument makes no sense; or, without ``spark``, more than 2 GiB would be read.
        FileMissingError, FormatError
            A data file is gone or damaged; nothing is committed.
        UnsupportedError, StorageError
            As `delete`.
        """
        known_arguments("compact", how, commits.compact, ("state", "writer", "where", "rewrite"))
        if how.pop("read", None) is False:
            raise OptionError("read=False makes files without rows, which is for simulations: a lab has rows")
        if spark is not None:
            labs.engine_of(spark)
            return self._files_if_any(lambda w: labs.compact_on_spark(spark, w.base, w, where=where, **how), ref)
        # Of a simulation files are put together without their rows where some are missing: here these would be lost.
        return self._files_if_any(lambda w: commits.compact(w.base, w, where=where, read=True, **how), ref)

    # Files that are needed no more ------------------------------------------------------------------------------------

    def expire(
        self,
        ids: Iterable[int] | None = None,
        *,
        older_than: object = None,
        retain_last: int | None = None,
        files: bool = True,
    ) -> commits.Expired:
        """Expire snapshots, and remove the files that only they needed.

        Returns the ids that went, and prints which snapshots stayed and by which rule (`expire_snapshots`).

        Parameters
        ----------
        ids, older_than, retain_last
            As for `expire_snapshots`.
        files
            False: the files stay, and are among `leftovers`.

        Raises
        ------
        RuleError
            ``expire-referenced``, ``expire-gc``.
        FormatError, FileMissingError
            Metadata cannot be read, and so it is not known which files are needed; nothing was done.
        """
        self.refresh()
        before = labs.needed_by_snapshots(self._sandbox.strict()) if files else frozenset()
        gone = self.expire_snapshots(ids, older_than=older_than, retain_last=retain_last)
        if files and gone:
            labs.remove_unneeded(self._sandbox, before)
        return gone

    def leftovers(self, *, running: bool = False) -> pd.DataFrame:
        """Files under the table's folder that no metadata file, manifest or vector names.

        Killed commits leave them behind, and failed ones of which it is not known whether they were made, or whose job
        on Spark failed; one that is refused removes what it wrote, one that was tried again what metadata its lost
        attempts wrote, not data files that it made anew. Files not older than a commit that is going on are left out:
        of iceexplore's own commits, on this machine; another engine's cannot be told from leftovers.

        Parameters
        ----------
        running
            Name those, too.

        Returns
        -------
        pandas.DataFrame
            ``location``, ``kind``, ``size``, ``modified_at``.

        Raises
        ------
        FormatError, FileMissingError
            Metadata cannot be read, and what it names is not known.
        """
        return labs.leftovers_frame(labs.find_leftovers(self._sandbox, running=running))

    def remove_leftovers(self, older_than_ms: int = _THREE_DAYS_MS) -> pd.DataFrame:
        """Remove the files that `leftovers` lists; returns what went.

        Parameters
        ----------
        older_than_ms
            Only files that were last changed so many milliseconds ago or longer; by default three days, as in Iceberg,
            which another engine's commits should not last. 0: all.

        Raises
        ------
        StorageError
            One could not be removed. Otherwise as `leftovers`.
        """
        found = labs.find_leftovers(self._sandbox)
        return labs.leftovers_frame(labs.remove_files(self._sandbox, found, older_than_ms=older_than_ms))

    # ------------------------------------------------------------------------------------------------------------------

    def _upgraded(self) -> commits.DocumentChange:
        mark = {labs.LAB_PROPERTY: labs.layout_text(self.options)}
        return lambda document, _: commits.set_properties(document, set=mark)
