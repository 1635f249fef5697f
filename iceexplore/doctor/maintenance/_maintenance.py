"""Maintenance of a table: a plan for each procedure of the engines, made on request."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

from iceexplore.doctor.maintenance._expire import ExpirePlan, plan_expire_snapshots
from iceexplore.doctor.maintenance._files import strict
from iceexplore.doctor.maintenance._metadata_files import MetadataFilesPlan, plan_metadata_files
from iceexplore.doctor.maintenance._orphans import MismatchMode, OrphanPlan, plan_orphan_files
from iceexplore.doctor.maintenance._plan import Plan, T, Wrap
from iceexplore.doctor.maintenance._rewrite_data_files import (
    RewriteDataFilesPlan,
    Strategy,
    plan_rewrite_data_files,
)
from iceexplore.doctor.maintenance._rewrite_deletes import RewritePositionDeletesPlan, plan_rewrite_position_deletes
from iceexplore.doctor.maintenance._rewrite_manifests import RewriteManifestsPlan, plan_rewrite_manifests
from iceexplore.doctor.maintenance._unused import UnusedPlan, plan_unused
from iceexplore.errors import IceexploreError
from iceexplore.expressions import FilterLike
from iceexplore.graph import TableState
from iceexplore.metadata import format_ms
from iceexplore.planning import Clustering, plan_scan
from iceexplore.render import Card, CardTable, card_html, card_text, shown_frame, whole_numbers

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MAINTENANCE_JSON_VERSION", "Maintenance"]

#: The version of the JSON that `Maintenance.to_json` writes; it changes when a key is renamed or removed.
MAINTENANCE_JSON_VERSION = 1


class Maintenance(Generic[T]):
    """Plans of the engines' maintenance procedures: what each would do now, given the table's properties.

    ``t.maintenance()`` returns this object. Nothing is read before a plan is requested, and no plan changes the table.
    For each procedure, a method makes the plan; `plans` has the plans with default arguments, and a notebook displays
    these as a card. The plans are for the current snapshot of the metadata file, even if ``t`` shows another snapshot.

    Parameters
    ----------
    state
        The table's state.
    wrap
        A function that returns a table for the simulation (`Sandbox`) in which a plan was carried out: the value of
        ``plan.table``.
    now_ms
        The time from which ages are computed, in milliseconds since the epoch; by default the current time.
    """

    def __init__(self, state: TableState, wrap: Wrap[T], *, now_ms: int | None = None) -> None:
        metadata = state.metadata
        ref = "main" if "main" in metadata.refs else None
        self.state = state.showing(metadata.snapshot(), metadata.schema(), ref=ref, travel=None)
        self.now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        self._wrap = wrap

    def expire_snapshots(
        self, older_than: object = None, retain_last: int | None = None, *, clean_expired_metadata: bool = False
    ) -> ExpirePlan[T]:
        """Plan ``expire_snapshots``: which snapshots expire, what keeps the others, and which files are freed.

        If a snapshot expires, every manifest list and every manifest is read. Otherwise only ``clean_expired_metadata``
        may need manifest lists.

        Parameters
        ----------
        older_than
            An age (``"5d"``, a timedelta) or a time (a datetime, ISO text or milliseconds); by default the table's
            ``history.expire.max-snapshot-age-ms``, or five days.
        retain_last
            Keep at least this number of snapshots of each branch, however old; by default the table's
            ``history.expire.min-snapshots-to-keep``, or 1.
        clean_expired_metadata
            Also remove the schemas and partition specs that no kept snapshot uses.

        Raises
        ------
        OptionError
            An argument is invalid.
        RuleError
            ``expire-gc``: ``gc.enabled`` is false, so that engines refuse.
        FormatError, FileMissingError
            A manifest list or manifest is damaged or missing, so that it is unknown which files are needed.
        """
        return plan_expire_snapshots(
            self.state,
            self._wrap,
            now_ms=self.now_ms,
            older_than=older_than,
            retain_last=retain_last,
            clean_expired_metadata=clean_expired_metadata,
        )

    expire = expire_snapshots

    def orphan_files(
        self,
        older_than: object = "3d",
        *,
        location: str | None = None,
        equal_schemes: Mapping[str, str] | None = None,
        equal_authorities: Mapping[str, str] | None = None,
        prefix_mismatch_mode: MismatchMode = "error",
    ) -> OrphanPlan[T]:
        """Plan ``remove_orphan_files``: unreferenced files under the table's folder, and missing referenced files.

        The folder is listed, and every manifest is read. These files are referenced: the manifest lists, manifests,
        data files and delete files of all snapshots; statistics files; the current metadata file, and those in the
        metadata log; and the version hint. Every other file is an orphan if it is old enough, for example an older
        metadata file that the log no longer lists.

        As in Iceberg, files and folders below the listed folder are ignored if their names begin with ``_`` or ``.``.
        There is one exception: if the name of a partition field begins so, for example ``_day``, its folders, such as
        ``_day=2024-01-01``, are not ignored.

        Parameters
        ----------
        older_than
            An age (``"3d"``, a timedelta) or a time. Only files modified before this time are orphans, because newer
            ones may belong to a running commit.
        location
            The folder to list instead of the table's, for example its data folder.
        equal_schemes, equal_authorities
            Schemes and authorities to treat as equal. Iceberg's default for schemes is ``{"s3a,s3n": "s3"}``; an
            example of authorities is ``{"namenode1,namenode2": "ha"}``.
        prefix_mismatch_mode
            What to do with a listed file whose location differs from a referenced one only in scheme or authority, such
            as ``hdfs://nn1/f`` and ``hdfs://nn2/f``. ``"ignore"`` keeps the file; ``"delete"`` treats it as an
            orphan. With ``"error"``, the procedure deletes no file at all if there is such a file; the plan's attribute
            ``conflicts`` then has the pairs of differing schemes and authorities.

        Raises
        ------
        OptionError
            An argument is invalid.
        OutsideRootsError
            ``location`` is outside the folders that may be read: see ``allow=`` of `iceexplore.open`.
        FormatError, FileMissingError
            A manifest list or manifest is damaged or missing, so that it is unknown which files are needed; or
            ``location`` does not exist.
        """
        return plan_orphan_files(
            self.state,
            self._wrap,
            now_ms=self.now_ms,
            older_than=older_than,
            location=location,
            equal_schemes=equal_schemes,
            equal_authorities=equal_authorities,
            prefix_mismatch_mode=prefix_mismatch_mode,
        )

    remove_orphan_files = orphan_files

    def unused_schemas_and_specs(self) -> UnusedPlan[T]:
        """Plan the removal of schemas and partition specs that no snapshot uses, without expiring snapshots.

        The option ``clean_expired_metadata`` of ``expire_snapshots`` removes these schemas and specs. If there is more
        than one spec, manifest lists are read until every spec is known to be used. In V4, root manifests and their
        leaf manifests are read instead.

        Raises
        ------
        FormatError, FileMissingError
            A manifest list or manifest is damaged or missing, so that it is unknown which specs are used.
        """
        return plan_unused(self.state, self._wrap)

    def metadata_files(self) -> MetadataFilesPlan[T]:
        """Plan the removal of metadata files that are not in the metadata log, or that the next commit drops from it.

        A commit deletes metadata files only if ``write.metadata.delete-after-commit.enabled`` is true, and only those
        that it drops from the log. The metadata folder is listed.

        Raises
        ------
        AccessDeniedError, StorageError
            The folder cannot be listed.
        """
        return plan_metadata_files(self.state, self._wrap)

    def rewrite_data_files(
        self,
        where: FilterLike | None = None,
        *,
        strategy: Strategy = "binpack",
        sort_order: str | None = None,
        **options: object,
    ) -> RewriteDataFilesPlan[T]:
        """Plan ``rewrite_data_files``: which data files are compacted or sorted, in which groups, into how many files.

        The manifests are read, but no data or delete file.

        Parameters
        ----------
        where
            Rewrite only files that may contain matching rows.
        strategy
            ``"binpack"`` combines files, ``"sort"`` also sorts their rows.
        sort_order
            For ``"sort"``, the sort order in the syntax of Spark's procedure (``"id DESC NULLS LAST, name"``,
            ``"zorder(a, b)"``); by default the table's sort order.
        **options
            The procedure's options with underscores: ``target_file_size_bytes``, ``min_file_size_bytes``,
            ``max_file_size_bytes``, ``min_input_files``, ``rewrite_all``, ``max_file_group_size_bytes``,
            ``max_file_group_input_files``, ``rewrite_job_order``, ``delete_file_threshold``,
            ``delete_ratio_threshold``, ``max_files_to_rewrite``, ``output_spec_id``, ``remove_dangling_deletes``,
            ``use_starting_sequence_number``, ``partial_progress_enabled``, ``partial_progress_max_commits``,
            ``partial_progress_max_failed_commits``, ``max_concurrent_file_group_rewrites``; for ``"sort"`` also
            ``compression_factor``.

        Raises
        ------
        OptionError
            An option is unknown, or Spark's procedure would refuse it; or ``"sort"`` has no sort order.
        FormatError, FileMissingError
            A manifest list or manifest is damaged or missing; engines fail, too.
        """
        return plan_rewrite_data_files(
            self.state, self._wrap, where=where, strategy=strategy, sort_order=sort_order, scan=None, **options
        )

    def rewrite_manifests(
        self, *, spec_id: int | None = None, sort_by: Iterable[str] | None = None
    ) -> RewriteManifestsPlan[T]:
        """Plan ``rewrite_manifests``: which manifests are rewritten, clustered by partition, and into how many.

        The manifest list is read. If a partitioned spec gets more than one new data manifest, or more than one new
        delete manifest, the old manifests are read, too.

        Parameters
        ----------
        spec_id
            Rewrite the manifests of this partition spec; by default those of the table's default spec.
        sort_by
            Names of the partition fields by which entries are clustered; by default all.

        Raises
        ------
        OptionError
            There is no such spec or field; or the manifest list does not state how many files a manifest adds, keeps
            and deletes, without which the procedure fails; or ``commit.manifest.target-size-bytes`` is not a whole
            number above 0.
        UnsupportedError
            The table has a root manifest: no engine has a procedure for it.
        FormatError, FileMissingError
            The manifest list, or a manifest that is read, is damaged or missing; engines fail, too.
        """
        return plan_rewrite_manifests(self.state, self._wrap, spec_id=spec_id, sort_by=sort_by)

    def rewrite_position_delete_files(
        self, where: FilterLike | None = None, *, read: bool | None = None, **options: object
    ) -> RewritePositionDeletesPlan[T]:
        """Plan ``rewrite_position_delete_files``: which delete files are merged, or become deletion vectors.

        The manifests are read, and those delete files that ``read`` selects.

        Parameters
        ----------
        where
            Rewrite only delete files of partitions that may contain matching rows. The filter is compared with
            partition values only: conditions on columns by which the table is not partitioned have no effect.
        read
            Whether to open the delete files that may delete rows of several data files. The number of new delete files
            depends on which data files these are, and only the delete file itself lists them. True opens all such
            delete files, False none; by default, all are opened if there are at most 100 of them. If they are not
            opened, the number of new delete files is a lower bound.
        **options
            The procedure's options with underscores: ``target_file_size_bytes``, ``min_file_size_bytes``,
            ``max_file_size_bytes``, ``min_input_files``, ``rewrite_all``, ``max_file_group_size_bytes``,
            ``max_file_group_input_files``, ``rewrite_job_order``.

        Raises
        ------
        OptionError
            An option is unknown, or Spark's procedure would refuse it.
        FormatError, FileMissingError
            A manifest, or a delete file that is opened, is damaged or missing; engines fail, too.
        """
        return plan_rewrite_position_deletes(self.state, self._wrap, where=where, read=read, **options)

    def clustering(self, columns: Iterable[str] | None = None) -> Clustering:
        """Measure the clustering of the data files by single columns: how many files may contain the same value.

        A file may contain a value if the value is between the file's bounds of the column. A filter for one value has
        to read all files that may contain it. Sorting the table by the column reduces their number.

        The manifests are read for the bounds of the columns; data files are not opened. All data files of the snapshot
        are measured; ``t.plan(where).clustering()`` measures only those that a query with the filter ``where`` reads.

        Parameters
        ----------
        columns
            Names of columns; a field in a struct has a name with a dot, such as ``address.city``. The default is the
            columns of the table's sort order or, if the table has no sort order, the first 20 columns with bounds.

        Raises
        ------
        OptionError
            The table has no column with one of these names, or the column does not have a single value per row: it is a
            struct, a list or a map, or an element of a list or map.
        FormatError, FileMissingError
            A manifest list or manifest is damaged or missing.
        """
        return plan_scan(strict(self.state)).clustering(columns)

    @cached_property
    def _clustering(self) -> Clustering | None:
        """The clustering of the default columns; None if manifests cannot be read, or if no column has bounds."""
        try:
            found = self.clustering()
        except IceexploreError:
            return None
        return found if len(found.columns) else None

    def _makers(self) -> Mapping[str, Callable[[], Plan[T]]]:
        """Return, by the name of each procedure, the method that plans it.

        The order is that in which Iceberg recommends running the procedures.
        """
        return {
            "expire_snapshots": self.expire_snapshots,
            "unused_schemas_and_specs": self.unused_schemas_and_specs,
            "metadata_files": self.metadata_files,
            "remove_orphan_files": self.orphan_files,
            "rewrite_data_files": self.rewrite_data_files,
            "rewrite_position_delete_files": self.rewrite_position_delete_files,
            "rewrite_manifests": self.rewrite_manifests,
        }

    @cached_property
    def plans(self) -> Mapping[str, Plan[T]]:
        """The plans by procedure, with default arguments; procedures without a plan are in `refused` instead."""
        return {name: found for name, found in self._made.items() if isinstance(found, Plan)}

    @cached_property
    def refused(self) -> Mapping[str, str]:
        """The procedures for which no plan can be made, with the reasons; engines would refuse them or fail, too."""
        return {name: str(found) for name, found in self._made.items() if not isinstance(found, Plan)}

    @cached_property
    def _made(self) -> dict[str, Plan[T] | IceexploreError]:
        made: dict[str, Plan[T] | IceexploreError] = {}
        for name, make in self._makers().items():
            try:
                made[name] = make()
            except IceexploreError as error:
                made[name] = error
        return made

    @property
    def nothing(self) -> bool:
        """True if no planned procedure would change anything; those in `refused` are ignored."""
        return all(plan.nothing for plan in self.plans.values())

    def __iter__(self) -> Iterator[Plan[T]]:
        return iter(self.plans.values())

    def to_pandas(self) -> pd.DataFrame:
        """Return a row per procedure: whether it is needed, what it would do, and its cost.

        For a procedure in `refused`, ``needed`` and the cost are missing, and ``text`` is the reason.
        """
        import pandas as pd

        costs = ("files_read", "bytes_read", "files_written", "bytes_written", "files_freed", "bytes_freed")
        rows: list[tuple[Any, ...]] = [
            (name, not plan.nothing, plan.text, *(getattr(plan.cost, c) for c in costs))
            for name, plan in self.plans.items()
        ]
        rows += [(name, None, why, *(None for _ in costs)) for name, why in self.refused.items()]
        frame = pd.DataFrame(rows, columns=["procedure", "needed", "text", *costs])
        for at, name in enumerate(costs, 3):
            frame[name] = whole_numbers(row[at] for row in rows)
        return shown_frame(frame.astype({"needed": "boolean"}))

    def to_dict(self) -> dict[str, Any]:
        """Return all plans as plain values."""
        return {
            "version": MAINTENANCE_JSON_VERSION,
            "table": self.state.name,
            "metadata_location": self.state.metadata_location,
            "format_version": self.state.metadata.format_version,
            "now_ms": self.now_ms,
            "plans": {name: plan.to_dict() for name, plan in self.plans.items()},
            "refused": dict(self.refused),
            "clustering": None if self._clustering is None else self._clustering.to_dict(),
        }

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return all plans as JSON (ASCII, so that characters in names cannot affect a terminal or a page)."""
        return json.dumps(self.to_dict(), indent=indent)

    def _card(self) -> Card:
        rows = tuple((name, "" if plan.nothing else "yes", plan.text) for name, plan in self.plans.items())
        refused = tuple(("warning", f"{name} cannot be planned: {why}", "") for name, why in self.refused.items())
        calls = ((c.engine, c.code) for plan in self if not plan.nothing for c in plan.calls[:1])
        plans = CardTable("Plans", ("procedure", "needed", "what it would do"), rows, code=frozenset({0}))
        return Card(
            title=f"Maintenance of {self.state.name}",
            badges=("nothing to do",) if self.nothing and not self.refused else (),
            subtitle=self.state.metadata_location,
            facts=(("As of", format_ms(self.now_ms)), *dict.fromkeys(calls)),
            tables=(plans,) if self._clustering is None else (plans, self._clustering.card_table()),
            problems=refused,
        )

    def __repr__(self) -> str:
        return card_text(self._card())

    def _repr_html_(self) -> str:
        return card_html(self._card())
