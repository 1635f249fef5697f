"""Present a scan plan: the tasks for readers, and reports that explain why each file is read or skipped."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.errors import renamed_method
from iceexplore.graph import card_html, card_text, to_frame
from iceexplore.planning.scan._result import PlannedScan
from iceexplore.planning.scan._splits import SplitOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from iceexplore.planning.advice._advise import Advice
    from iceexplore.planning.distribution._clustering import Clustering
    from iceexplore.planning.distribution._table_distribution import By, TableDistribution
    from iceexplore.planning.range_map._range_map import RangeBy, RangeMap
    from iceexplore.planning.report._compare import PlanComparison
    from iceexplore.planning.report._tree import PlanTree
    from iceexplore.planning.report._waterfall import Waterfall

__all__ = ["ScanPlan"]


@dataclass(frozen=True, eq=False)
class ScanPlan(PlannedScan):
    """The files that a scan reads, those that it skips, and the reasons. Shown as a card in a notebook.

    Data frames such as `tasks` are built on first access. The plan keeps only the files to read. So to explain why
    other files were skipped, the filter is evaluated again on their manifests, which are usually still in the cache.
    See `PlannedScan` for the attributes.
    """

    # Tables -------------------------------------------------------------------------------------------------------

    @cached_property
    def tasks_arrow(self) -> pa.Table:
        """Return `tasks` as an Arrow table."""
        from iceexplore.planning.report._tables import tasks_table

        return tasks_table(self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return `tasks` as an Arrow C stream, for example for ``polars.DataFrame(t.plan(...))``."""
        tasks: Any = self.tasks_arrow  # pyarrow-stubs has no types for __arrow_c_stream__
        stream: object = tasks.__arrow_c_stream__(requested_schema)
        return stream

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """One row per data file that is read.

        Columns are ``file_path``, ``file_format``, ``spec_id``, ``partition`` (as text), ``rows``, ``bytes``,
        ``splits`` (the number of splits), ``residual`` (the residual filter, as SQL), ``whole`` (true if metadata
        proves that every row of the file matches the filter), ``deletes`` (the number of deletes that apply),
        ``delete_bytes``, ``deletion_vector`` (the location of the file that contains the deletion vector),
        ``deleted_rows`` (the number of rows that the deletion vector removes; null without a vector, because metadata
        does not count the rows that delete files remove), ``position_deletes`` and ``equality_deletes`` (lists of the
        locations of delete files; if the lists of one column would have more than ten million items in total, they are
        incomplete), ``sequence_number``, ``first_row_id``, ``snapshot_id``.

        If planned with ``columns``, there is also ``column_bytes`` (the stored bytes of these columns; null if the
        manifest has no column sizes). If planned with ``row_groups``, there are also ``row_groups`` (the number of row
        groups of the file) and ``row_groups_read`` (how many of them are read).
        """
        return to_frame(self.tasks_arrow)

    @cached_property
    def skipped_arrow(self) -> pa.Table:
        """Return `skipped` as an Arrow table."""
        from iceexplore.planning.report._skipped import skipped_table

        return skipped_table(self)

    @cached_property
    def skipped(self) -> pd.DataFrame:
        """One row per manifest, data file and row group that is not read, with the reason.

        Data files in a manifest that is not read have no rows of their own. A number is null where it is unknown.
        Below, "item" means the manifest, data file or row group that a row describes. The columns are:

        - ``level``: where planning found the metadata that excluded the item. It is "manifest list" (V4: "root
          manifest") for a manifest, "leaf manifest" for a data file in a manifest, and "row group" for a row group. A
          data file that a V4 root lists itself has "root manifest".
        - ``kind``: "manifest", "data file" or "row group".
        - ``name``: the location of the manifest or data file; for a row group, of its file.
        - ``root_row``: the row number, in the manifest list (V4: root manifest), of the manifest or of the manifest
          that lists the file; null for a data file that a V4 root manifest lists itself.
        - ``ordinal``: the position of a data file in its manifest, or of a row group in its file; null for a manifest.
        - ``files``: the number of live data files in a manifest; 1 for a data file; null for a row group.
        - ``rows``: the number of rows in the item.
        - ``bytes``: the size of a data file, or the uncompressed size of a row group. For a manifest, it is null,
          because the root does not state the size of the data files. Only a manifest without live files has 0 instead
          (but null in an incremental plan).
        - ``term``: a condition of the filter that no row of the item matches; null for a manifest without live files.
        - ``by``: the metadata that proves that no row matches ``term``, such as "partition", "bounds", "counts" (of
          nulls and NaN) or "bloom filter". For a manifest without live files, it is "counts".
        - ``column``, ``lower``, ``upper``, ``null_count``: the column of the condition, and its bounds and number of
          nulls.
        - ``why``: the reason as a sentence.
        """
        return to_frame(self.skipped_arrow)

    @cached_property
    def deletes_arrow(self) -> pa.Table:
        """Return `deletes` as an Arrow table."""
        from iceexplore.planning.report._tables import deletes_table

        return deletes_table(self)

    @cached_property
    def deletes(self) -> pd.DataFrame:
        """One row per delete file or deletion vector that applies to a data file that is read.

        Columns are ``file_path``, ``kind`` ("vector", "position", "equality"), ``file_format``, ``spec_id``,
        ``partition`` (as text), ``tasks`` (the number of planned data files to which the delete applies), ``rows``
        (the record count of the delete file, or of the deletion vector), ``bytes`` (the size of the delete file, or of
        the deletion vector's blob), ``offset`` (of the blob in its Puffin file; null for delete files),
        ``referenced_file``, ``equality_ids`` (field ids), ``sequence_number`` and ``snapshot_id``.
        """
        return to_frame(self.deletes_arrow)

    @cached_property
    def unmatched_deletes(self) -> pd.DataFrame:
        """Deletes that are not applied, each with the reason (`iceexplore.planning.unmatched_deletes`).

        There are two kinds of rows:

        - If ``data_file`` is null, the delete applies to no data file of the plan. Either the filter excludes the
          delete, or the delete references a data file that is not in the plan, or its partition or sequence number does
          not allow it to apply to any file of the plan.
        - Otherwise, the delete does not apply to ``data_file``, although partition and sequence number allow it. Either
          the metrics of the delete file and the data file, or the delete's bounds of ``file_path``, exclude the data
          file, or a deletion vector replaces the delete.

        If there would be more than 1,000 rows, one more row counts those that are not shown. The first access reads all
        delete manifests and, if a delete of the first kind references a data file, all live data manifests.
        """
        from iceexplore.planning.delete_index._unmatched import unmatched_deletes

        return to_frame(unmatched_deletes(self.state, self.files.files, self.files.matched, where=self.filter))

    def levels(self, *, exact: bool = False) -> pd.DataFrame:
        """Count the manifests, files, rows and bytes that remain after each step of planning, one row per step.

        The first row counts the whole table (for an incremental plan, all appended files). The next two rows count what
        remains after manifests are pruned with the metrics in the root (the manifest list, or the root manifest of V4),
        and then after data files are pruned with the metrics in the remaining manifests. If planned with
        ``row_groups``, the last row counts what remains after row groups are pruned. Columns are ``level`` (the name of
        the step), ``manifests``, ``files``, ``rows``, ``bytes``, ``row_groups``, and ``known``, a text that states
        where the numbers come from and which of them are unknown.

        The first row also counts the files and rows in pruned manifests. Planning did not read these manifests, so
        their counts are taken from the root. If the root does not state a count, the number in the first row is null.
        For example, a root does not state how many rows remain in a manifest if a manifest DV (manifest deletion
        vector) removes some of its entries. For an incremental plan, these numbers are null whenever a manifest was
        pruned: the root's counts are not used, because a manifest may also have files that other snapshots added.

        A root does not state the bytes of the data files. So if a manifest with live files is pruned, the bytes in the
        first row are taken from the snapshot's summary, where they include delete files. The bytes are null if the
        summary does not state them, or if the plan is incremental.

        Parameters
        ----------
        exact
            Also read the pruned manifests, so that the first row counts their files, rows and bytes exactly.
        """
        from iceexplore.planning.report._levels import levels_table

        return to_frame(levels_table(self, exact=exact))

    @cached_property
    def reads(self) -> pd.DataFrame:
        """Files that planning used, one row each: roots, manifests, and files of which only a part was read.

        A root is a manifest list or V4 root manifest. Planning reads only a part of data files (footers, Bloom filters)
        and of Puffin files (in V4, the deletion vectors of manifests). Columns are ``kind``, ``location``, ``bytes``
        (the size of a root or manifest; for other files, the number of bytes that were read), ``ms`` (the time to read,
        in milliseconds; 0 if cached) and ``cached`` (true if the file was in the cache, so that it was not read).
        """
        from iceexplore.planning.report._tables import reads_table

        return to_frame(reads_table(self))

    @cached_property
    def totals(self) -> dict[str, int | None]:
        """The totals of the plan by name, such as ``files``, ``rows`` and ``bytes``; None for an unknown total."""
        from iceexplore.planning.report._card import plan_totals

        return plan_totals(self)

    def splits(
        self,
        size: int | None = None,
        *,
        lookback: int | None = None,
        open_file_cost: int | None = None,
        combined: bool = False,
    ) -> pd.DataFrame:
        """Split the planned files, and pack the splits into combined tasks, as Iceberg's ``TableScanUtil`` does.

        A file with split offsets is split at these, any other file every ``size`` bytes. A file of a format that cannot
        be split is one split. The splits are then packed into combined tasks of about ``size`` bytes, each of which one
        reader would read. Spark also adjusts the size to its parallelism; this method does not.

        Packing adds up the weights of the splits. The weight of a split is the larger of these two numbers of bytes:

        - the bytes that a reader reads: the bytes of the split, plus the bytes of all deletes that apply to its data
          file (for a deletion vector, only its blob counts, not the whole Puffin file);
        - the cost of opening files: ``open_file_cost`` once for the data file, and once for each of these deletes.

        Parameters
        ----------
        size
            Bytes per split; by default the plan's ``split_size``.
        lookback
            The maximum number of combined tasks that are filled at the same time; by default the table's property
            ``read.split.planning-lookback``, or 10.
        open_file_cost
            The cost of opening a file, in bytes; by default the table's property ``read.split.open-file-cost``, or
            4 MiB.
        combined
            Return one row per combined task instead of one per split.

        Returns
        -------
        DataFrame
            One row per split, with the columns ``task`` (the row number of the file in `tasks`), ``file_path``,
            ``start`` and ``length`` (bytes in the file), ``rows`` (estimated from bytes), ``deletes`` (their number),
            ``delete_bytes``, ``weight``, and ``combined`` (the number of the combined task). Or one row per combined
            task, with the columns ``combined``, ``splits`` (adjacent splits of a file count as one), ``files``,
            ``bytes``, ``rows``, ``delete_bytes`` (the deletes of a data file count once, however many of its splits are
            in the task) and ``weight``.

        Raises
        ------
        OptionError
            ``size`` or ``lookback`` is below 1, ``open_file_cost`` is below 0, one of the three is not a whole number
            below 2**62, or there would be more than 50 million splits.
        """
        from iceexplore.planning.scan._splits import combined_table, split_table

        options = SplitOptions.of(
            self.state.metadata.properties,
            size=self.options.size if size is None else size,
            lookback=lookback,
            open_file_cost=open_file_cost,
        )
        table = split_table(self.files, options)
        if combined:
            return to_frame(combined_table(table))
        names = self.files.files.entries["location"].take(table["task"])
        return to_frame(table.add_column(1, "file_path", names))

    def compare(self, other: ScanPlan) -> PlanComparison:
        """Compare this plan with another, for example with another filter, snapshot, partition spec or format version.

        Files are matched by location. The result has a text (``summary``), the settings that differ (``differences``),
        totals of both plans (``numbers``), the data files that either plan reads (``files``), and the reasons why a
        file is read by only one plan (``alone``).

        Raises
        ------
        OptionError
            ``other`` is not a plan.
        """
        from iceexplore.planning.report._compare import compare_plans

        return compare_plans(self, other)

    # Pictures and advice --------------------------------------------------------------------------------------------

    def tree(self, *, max_nodes: int = 60) -> PlanTree:
        """Draw the plan as a tree of manifests, data files and deletes; skipped ones are gray and show the reason.

        The result has ``to_svg()``, ``to_text()``, ``to_mermaid()`` and ``to_graphviz()``.

        Parameters
        ----------
        max_nodes
            Approximate maximum number of nodes, at least 8. If there are too many manifests, files or deletes to draw
            each as a node, some nodes represent several of them, and show how many.

        Raises
        ------
        OptionError
            ``max_nodes`` is less than 8.
        """
        from iceexplore.planning.report._tree import PlanTree

        return PlanTree(self, max_nodes)

    def waterfall(self, *, exact: bool = False) -> Waterfall:
        """Draw how many manifests, files, bytes and rows remain after each step of planning, as a bar chart.

        The numbers are those of `levels`. If deletes apply, one more step shows the rows that remain after them.

        Parameters
        ----------
        exact
            Also read the pruned manifests, to count the files, rows and bytes of the whole table (see `levels`).
        """
        from iceexplore.planning.report._waterfall import waterfall_of

        return waterfall_of(self, exact=exact)

    def advice(self) -> Advice:
        """Suggest changes that would help this filter: sort order, partition fields, column metrics, compaction.

        Each suggestion compares what is read now with what would be read after the change, estimated from column
        metrics (`Advice` describes the accuracy). If nothing helps, notes give the reasons. This reads every data
        manifest, but no data file.
        """
        from iceexplore.planning.advice._advise import advise

        return advise(self)

    def clustering(self, columns: Iterable[str] | None = None) -> Clustering:
        """Measure how well the planned files are clustered, separately for each of the given columns.

        The bounds of a column give each file a range of values. For each value in a file's range, count the planned
        files whose ranges contain this value: the depth of the file is the highest of these counts. It is 1 if no other
        file's range overlaps, so that a query for one value reads one file. It is the number of files if every file
        spans the whole range. The result has the average and the maximum depth of the files for each column (see
        `Clustering`).

        This reads the data manifests that the plan reads, for the bounds of the columns, but no data file.

        Parameters
        ----------
        columns
            Names of columns, dotted inside structs; by default the columns of the table's sort order or, if it has
            none, the first 20 columns that have bounds.

        Raises
        ------
        OptionError
            A name is unknown, or is that of a struct, list or map, or of a column inside a list or map.
        """
        from iceexplore.planning.distribution._clustering import clustering_of

        return clustering_of(self, columns)

    def distribution(self, by: By = "partition") -> TableDistribution:
        """Count bytes, rows, small files and deletes of the planned files per group, as a data frame and as bars.

        A file is small if it has less than 75 % of the table's target file size, as in ``rewrite_data_files``.

        Parameters
        ----------
        by
            ``partition``, ``spec``, ``snapshot`` (the one that added a file), ``age`` (the time from the commit that
            added a file to the snapshot that is planned) or ``size`` (a histogram).

        Raises
        ------
        OptionError
            ``by`` is none of these.
        """
        from iceexplore.planning.distribution._table_distribution import table_distribution

        return table_distribution(self.state, self.files, by)

    def range_map(self, column: str | None = None, *, by: RangeBy = "range") -> RangeMap:
        """Draw each live file's range of a column and the filter's range, and show which files the plan reads.

        This reads all data manifests, but no data file. Each file is drawn as a bar from its lower to its upper bound.
        If more than 1,500 files have a range, files with similar ranges are drawn as one rectangle, which is darker if
        it represents more files.

        The result has the methods ``to_svg()`` and ``to_text()``, and the data frame ``counts``: how many files are
        read, and how many are skipped for each reason. Its method ``lit()`` returns a mask of the files that the plan
        would read if the filter selected another range.

        Parameters
        ----------
        column
            A column's name, dotted inside structs. The default is the filter's first column or, if the filter has none,
            the first column of the table's sort order, else of its partition fields, else of its schema.
        by
            The order of files: by the start of their ``range``, by their ``partition``, or by the ``snapshot`` that
            added them, the oldest first.

        Raises
        ------
        OptionError
            The column is unknown or its values have no order, or ``by`` is not one of the three orders.
        """
        from iceexplore.planning.range_map._build import range_map_of

        return range_map_of(self, column, by)

    layout = renamed_method("distribution", "layout")

    # Display ------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        from iceexplore.planning.report._card import plan_card

        return card_text(plan_card(self))

    def _repr_html_(self) -> str:
        from iceexplore.planning.report._card import plan_card

        return card_html(plan_card(self))

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
