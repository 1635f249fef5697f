"""The plan of a scan: for whoever reads it the tasks, for people what is read, what is not, and why."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iceexplore.graph import card_html, card_text, to_frame
from iceexplore.planning.scan._result import PlannedScan
from iceexplore.planning.scan._splits import SplitOptions

if TYPE_CHECKING:
    import pandas as pd

    from iceexplore.planning.advice._advise import Advice
    from iceexplore.planning.distribution._table_layout import By, TableLayout
    from iceexplore.planning.report._compare import PlanComparison
    from iceexplore.planning.report._tree import PlanTree
    from iceexplore.planning.report._waterfall import Waterfall

__all__ = ["ScanPlan"]


@dataclass(frozen=True, eq=False)
class ScanPlan(PlannedScan):
    """What a scan reads, what it skips, and why. In a notebook it shows a card.

    The tables are made when they are asked for: an explanation judges again what was pruned, of manifests that are in
    the cache. See `PlannedScan` for the attributes.
    """

    # Tables -------------------------------------------------------------------------------------------------------

    @cached_property
    def tasks_arrow(self) -> pa.Table:
        """`tasks` as Arrow."""
        from iceexplore.planning.report._tables import tasks_table

        return tasks_table(self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """`tasks` for whatever takes Arrow's C stream: ``polars.DataFrame(t.plan(...))``."""
        return self.tasks_arrow.__arrow_c_stream__(requested_schema)

    @cached_property
    def tasks(self) -> pd.DataFrame:
        """A row per data file that is read.

        ``file_path``, ``file_format``, ``spec_id``, ``partition`` (as text), ``rows``, ``bytes``, ``column_bytes`` (of
        the columns asked for, where the manifest has their sizes), ``splits``, ``residual`` (what is left of the
        filter, as SQL), ``whole`` (metadata proves that every row matches), ``deletes`` (how many apply),
        ``delete_bytes``, ``deletion_vector`` (the file that it is in), ``deleted_rows`` (by the vector; null without
        one: what delete files delete, metadata does not tell), ``position_deletes``, ``equality_deletes`` (lists of
        files, cut where all of them together would be more than ten million names), ``sequence_number``,
        ``first_row_id``, ``snapshot_id``; with row groups ``row_groups`` and how many of them are left,
        ``row_groups_read``.
        """
        return to_frame(self.tasks_arrow)

    @cached_property
    def skipped_arrow(self) -> pa.Table:
        """`skipped` as Arrow."""
        from iceexplore.planning.report._skipped import skipped_table

        return skipped_table(self)

    @cached_property
    def skipped(self) -> pd.DataFrame:
        """A row per manifest, data file and row group that is not read, and the term of the filter that decided.

        ``level`` ("manifest list" or, V4, "root manifest"; "leaf manifest"; "row group"), ``kind``, ``name``,
        ``root_row``, ``ordinal``, ``files``, ``rows``, ``bytes`` (of manifests where the root says it), ``term``,
        ``by`` (what it was judged by: "partition", "bounds", "counts", ...), ``column``, ``lower``, ``upper``,
        ``null_count`` (the evidence), ``why`` (a sentence).
        """
        return to_frame(self.skipped_arrow)

    @cached_property
    def deletes_arrow(self) -> pa.Table:
        """`deletes` as Arrow."""
        from iceexplore.planning.report._tables import deletes_table

        return deletes_table(self)

    @cached_property
    def deletes(self) -> pd.DataFrame:
        """A row per delete file or deletion vector that applies to a data file that is read: ``file_path``, ``kind``
        ("vector", "position", "equality"), ``tasks`` (how many data files it applies to), ``rows`` and the rest of its
        entry."""
        return to_frame(self.deletes_arrow)

    @cached_property
    def unmatched_deletes(self) -> pd.DataFrame:
        """Deletes that are not applied: pairs in scope that are skipped all the same, and delete files that reach no
        file of the plan, each with its reason (`iceexplore.planning.unmatched_deletes`)."""
        from iceexplore.planning.delete_index._unmatched import unmatched_deletes

        return to_frame(unmatched_deletes(self.state, self.files.files, self.files.matched, filter=self.filter))

    def levels(self, *, exact: bool = False) -> pd.DataFrame:
        """The waterfall: manifests, files, rows and bytes that are left after each level.

        ``known`` says where the numbers come from. What nobody knows without reading is null: rows of a manifest from
        which a manifest DV removes entries, bytes where the snapshot's summary does not have them.

        Parameters
        ----------
        exact
            Read the manifests that were pruned, too.
        """
        from iceexplore.planning.report._levels import levels_table

        return to_frame(levels_table(self, exact=exact))

    @cached_property
    def reads(self) -> pd.DataFrame:
        """What planning looked at: a row per manifest list or root, manifest, and read of a footer or a vector, with
        bytes, milliseconds, and whether it was in the cache already."""
        from iceexplore.planning.report._tables import reads_table

        return to_frame(reads_table(self))

    @cached_property
    def totals(self) -> dict[str, int | None]:
        """The plan in numbers; None where it is not known."""
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
        """The splits that the files are read in, and which combined task each is in, as Iceberg's ``TableScanUtil``.

        A file is cut at its split offsets where its entry has them, any other every ``size`` bytes. Small splits are
        packed into combined tasks of about ``size`` bytes, where a split weighs its bytes and those of its deletes (of
        a deletion vector the vector's own), and at least ``open_file_cost`` for itself and for each delete. Spark also
        fits the size to its parallelism; that is not done here.

        Parameters
        ----------
        size, lookback, open_file_cost
            By default the table's ``read.split.*``, else 128 MiB, 10 bins, 4 MiB.
        combined
            A row per combined task instead of one per split.

        Raises
        ------
        OptionError
            A number makes no sense, or there would be too many splits.
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
        """This plan beside another: of another filter, state, layout or version; files are told by location. In words
        (``summary``), what they were asked (``differences``), numbers, files, and why a file is read by one alone.

        Raises
        ------
        OptionError
            ``other`` is no plan.
        """
        from iceexplore.planning.report._compare import compare_plans

        return compare_plans(self, other)

    # Pictures and advice --------------------------------------------------------------------------------------------

    def tree(self, *, max_nodes: int = 60) -> PlanTree:
        """The plan drawn: manifests and files that are read, those that are skipped in grey with the term that decided,
        and which deletes apply to which file. ``to_svg()``, ``to_text()``, ``to_mermaid()``, ``to_graphviz()``.

        Parameters
        ----------
        max_nodes
            About so many nodes, at least 8; the rest is folded into nodes that say how many they hold.

        Raises
        ------
        OptionError
            ``max_nodes`` is less than 8.
        """
        from iceexplore.planning.report._tree import PlanTree

        return PlanTree(self, max_nodes)

    def waterfall(self, *, exact: bool = False) -> Waterfall:
        """`levels` as bars, and what deletes leave: manifests, files, bytes and rows.

        Parameters
        ----------
        exact
            Read the manifests that were pruned, too, for what the root does not say of them.
        """
        from iceexplore.planning.report._waterfall import waterfall_of

        return waterfall_of(self, exact=exact)

    def advice(self) -> Advice:
        """What would help this filter: order, partition fields, statistics, compaction, each with what it reads now and
        would read then, by estimates from statistics alone (how far they are off: `Advice`), or why nothing helps.
        Every manifest of data files is read; no data file is."""
        from iceexplore.planning.advice._advise import advise

        return advise(self)

    def layout(self, by: By = "partition") -> TableLayout:
        """Where bytes, rows, small files and deletes of the files that are read sit: a data frame, and bars.

        Parameters
        ----------
        by
            ``partition``, ``spec``, ``snapshot`` (the one that added them), ``age`` (how long before the snapshot shown
            that was) or ``size`` (a histogram).

        Raises
        ------
        OptionError
            Another word.
        """
        from iceexplore.planning.distribution._table_layout import table_layout

        return table_layout(self.state, self.files, by)

    # How it shows itself --------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        from iceexplore.planning.report._card import plan_card

        return card_text(plan_card(self))

    def _repr_html_(self) -> str:
        from iceexplore.planning.report._card import plan_card

        return card_html(plan_card(self))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
